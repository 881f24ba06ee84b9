"""Notebooks without a browser: one run, as many kernels as it takes."""

from nbckpt.headless.loop import Order, run

__all__ = ["Order", "run"]

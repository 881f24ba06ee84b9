"""Notebooks without a browser: one run, as many kernels as it takes."""

from nbckpt.headless.loop import Order, run
from nbckpt.headless.rehearsal import rehearsal_page, rehearse

__all__ = ["Order", "rehearsal_page", "rehearse", "run"]

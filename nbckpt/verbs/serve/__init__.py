"""Beside a run: the monitor and what it tells."""

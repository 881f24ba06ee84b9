"""What in a notebook's source would go wrong at a resume; nothing runs.

Rules are small and rather silent than wrong: what the source can't tell is no finding.
Limit: they look at the notebook's own cells, not into modules that these import.
"""

from __future__ import annotations

from nbckpt.lint.findings import CODES, Finding, Report
from nbckpt.lint.notebook import read_cell_page
from nbckpt.lint.rules import lint

__all__ = ["CODES", "Finding", "Report", "lint", "read_cell_page"]

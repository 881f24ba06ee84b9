"""``python -m tests.bench``: measure, show a table, write JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.report import all_subjects, run_round, summary, table

if TYPE_CHECKING:
    from collections.abc import Sequence


def read_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="1: 512 MiB, 2M rows")
    parser.add_argument("--rounds", type=int, default=3, help="medians are told")
    parser.add_argument("--only", nargs="+", default=all_subjects(), metavar="SUBJECT")
    parser.add_argument("--dir", type=Path, help="where to write; decides the disk")
    parser.add_argument("--json", type=Path, help="file for all figures")
    return parser.parse_args(words)


def main() -> None:
    """Measure, and tell."""
    wanted = read_arguments()
    found: dict[str, Any] = {}
    before = os.getloadavg()
    for subject in wanted.only:
        sys.stderr.write(f"{subject}: {wanted.rounds} rounds\n")
        rounds = [
            run_round(subject, wanted.scale, wanted.dir) for _ in range(wanted.rounds)
        ]
        found[subject] = summary(rounds)
    sys.stdout.write(table(found) + "\n")
    if wanted.json:
        told = {"scale": wanted.scale, "machine": _machine(before), "results": found}
        wanted.json.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


def _machine(before: tuple[float, float, float]) -> dict[str, Any]:
    """Return what the figures were measured on."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "load_before": before,
        "load_after": os.getloadavg(),
    }


if __name__ == "__main__":
    main()

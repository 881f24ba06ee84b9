"""A variable counts for whose code reads it, however its name is made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nbckpt.inputs import environs


def told(source: str) -> dict[str, str | None]:
    """Run code as a user's, and return the variables that it reads."""
    found: dict[str, str | None] = {}
    environs.watch(
        lambda name, value, frame: (
            found.setdefault(name, value)
            if environs.reader(frame) == "<cell>"
            else None
        )
    )
    try:
        space = {"os": os, "subprocess": subprocess, "sys": sys, "Path": Path}
        exec(compile(source, "<cell>", "exec"), space)  # noqa: S102
    finally:
        environs.leave()
    return found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("n = 'MODE'; os.environ[n]", {"MODE": "fast"}),
        ("os.environ.get('MO' + 'DE')", {"MODE": "fast"}),
        ("os.getenv(f'{\"MO\"}DE')", {"MODE": "fast"}),
        ("'MODE' in os.environ", {"MODE": "fast"}),
        ("os.getenv('NONE_OF_IT')", {"NONE_OF_IT": None}),
        ("os.environ['NEW'] = 'x'; del os.environ['NEW']", {}),
        ("dict(MODE=1)['MODE']", {}),
        ("Path('~').expanduser()", {}),
        ("subprocess.run([sys.executable, '-V'], capture_output=True)", {}),
    ],
)
def test_variables_that_code_reads_are_told(
    source: str, expected: dict[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODE", "fast")
    assert told(source) == expected


def test_environment_is_as_ever_afterwards() -> None:
    before = os._Environ.__getitem__
    told("os.getenv('HOME')")
    assert os._Environ.__getitem__ is before
    with pytest.raises(KeyError):
        os.environ["NONE_OF_IT"]

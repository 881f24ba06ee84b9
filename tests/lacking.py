"""What a test does for want of a program that not every machine has."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def lack(reason: str) -> NoReturn:
    """Skip the test; fail where ``TESTS=all`` says that none may be left out."""
    if os.environ.get("TESTS") == "all":
        pytest.fail(reason)
    pytest.skip(reason)

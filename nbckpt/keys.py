"""Names and digests: run ids, step keys, fingerprints of code.

Pure text work; nothing here touches disk, clock or kernel.
"""

from __future__ import annotations

import ast
import hashlib
import re
from typing import Any, TypeGuard

from nbckpt.errors import BadStep
from nbckpt.records import canonical

STEP_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
RUN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*")
RUN_ID_LETTERS = 100
"""Pack files are named after their run, and a file name has 255 bytes at most."""
SPELLED_BITS = 2048
"""Python spells integers of 640 digits in any case, and refuses ever longer ones."""
STEM_LETTERS = 80
"""What a run id takes of its notebook's name; the counter comes after it."""


def digest(*parts: bytes | str) -> str:
    """Return one digest of several parts, unambiguous about where each ends.

    Parameters
    ----------
    *parts : bytes or str
        Text counts as UTF-8.

    Returns
    -------
    str
        32 hexadecimal digits of SHA-256.
    """
    total = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()[:32]


def is_huge(value: object) -> TypeGuard[int]:
    """Tell whether a value is an integer so long that Python may refuse to spell it.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    bool
        ``repr``, ``str`` and JSON raise ``ValueError`` for such a one.
    """
    return isinstance(value, int) and value.bit_length() > SPELLED_BITS


def link(before: str, line: dict[str, Any]) -> str:
    """Return the digest by which a line of a history is chained to those before it.

    Parameters
    ----------
    before : str
        Digest of the line before; empty for the first.
    line : dict
        The line's JSON values; its own ``chain`` does not count.

    Returns
    -------
    str
        A digest that changes with any line up to this one.
    """
    return digest(before, canonical({**line, "chain": ""}))


def effect_key(run_id: str, step: str, name: str, item: str = "") -> str:
    """Return the idempotency key of an effect.

    Parameters
    ----------
    run_id, step : str
        The step.
    name : str
        The effect's name; may be empty.
    item : str, optional
        Key of the item that it belongs to.

    Returns
    -------
    str
        The same in every attempt and rerun of a run, another in every other run;
        letters, digits and ``_ . -``, at most 80, the first of which can be read.
    """
    readable = ".".join(part for part in (step, item, name) if part)
    prefix = re.sub(r"[^A-Za-z0-9_.-]+", "_", readable)[:47]
    return f"{prefix}-{digest(run_id, step, name, item)}"


def check_run_id(run_id: str) -> str:
    """Return a run id if it is well formed.

    Parameters
    ----------
    run_id : str
        Letters, digits and ``_ . @ + -``, at most 100 of them.

    Returns
    -------
    str
        The same run id.

    Raises
    ------
    BadStep
        If it holds anything else, or is longer.
    """
    if not RUN_ID.fullmatch(run_id):
        raise BadStep(
            f"{run_id!r} is no run id",
            "Use letters, digits and _ . @ + -, for example: orders-2026-11",
        )
    if len(run_id) > RUN_ID_LETTERS:
        raise BadStep(
            f"the run id {run_id[:20]}… has {len(run_id)} letters",
            f"Use at most {RUN_ID_LETTERS}, for example: orders-2026-11",
        )
    return run_id


def check_name(what: str, name: object) -> str:
    """Return a name if it is well formed.

    Parameters
    ----------
    what : str
        What bears the name, for the message.
    name : object
        Letters, digits and ``_ . -``.

    Returns
    -------
    str
        The same name.

    Raises
    ------
    BadStep
        If it holds anything else.
    """
    if not isinstance(name, str) or not STEP_NAME.fullmatch(name):
        raise BadStep(
            f"{name!r} is no name for a {what}",
            "Use letters, digits and _ . -, for example: cut-off",
        )
    return name


def next_run_id(stem: str, taken: set[str]) -> str:
    """Return the first free run id of a notebook.

    Parameters
    ----------
    stem : str
        File name of the notebook without its ending.
    taken : set of str
        Run ids that were ever used.

    Returns
    -------
    str
        ``stem-N`` with the smallest free N above every taken one.
    """
    base = re.sub(r"[^A-Za-z0-9_.@+-]", "_", stem).lstrip(".@+-")[:STEM_LETTERS]
    base = base or "notebook"
    pattern = re.compile(re.escape(base) + r"-(\d+)")
    numbers = [int(m[1]) for run_id in taken if (m := pattern.fullmatch(run_id))]
    return f"{base}-{max(numbers, default=0) + 1}"


def code_fingerprint(body: list[ast.stmt]) -> str:
    """Return the fingerprint of a step's code.

    Comments, blank lines, quotes and positions change nothing; the syntax tree does.

    Parameters
    ----------
    body : list of ast.stmt
        The statements, as IPython's own transformations left them.

    Returns
    -------
    str
        A digest.

    Examples
    --------
    >>> import ast
    >>> one = code_fingerprint(ast.parse("x = 1  # why").body)
    >>> one == code_fingerprint(ast.parse("x = 1").body)
    True
    """
    return digest(ast.dump(ast.Module(body, []), include_attributes=False))

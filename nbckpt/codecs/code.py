"""Compiled code: its digest, and the global names that it loads."""

from __future__ import annotations

import dis
import sys
import types
from pathlib import Path
from typing import Any

from nbckpt.keys import digest


def code_digest(code: types.CodeType) -> str:
    """Return the digest of compiled code without file name, lines and docstrings.

    Parameters
    ----------
    code : types.CodeType
        The code.

    Returns
    -------
    str
        Equal for equal code in every process of one Python version.
    """
    parts: list[bytes | str] = [
        code.co_code,
        repr((code.co_argcount, code.co_kwonlyargcount, code.co_flags)),
    ]
    parts.append(
        repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    )
    parts.extend(_constant(value) for value in code.co_consts[_has_doc(code) :])
    return digest(*parts)


def _has_doc(code: types.CodeType) -> bool:
    """Tell whether the first constant is a docstring, which the code does not load."""
    steps = dis.get_instructions(code)
    loaded = {step.arg for step in steps if step.opcode in dis.hasconst}
    return 0 not in loaded and isinstance(next(iter(code.co_consts), None), str)


def _constant(value: Any) -> str:
    """Return the text of a constant in code; sets in order, nested code by digest."""
    if isinstance(value, types.CodeType):
        return code_digest(value)
    if isinstance(value, frozenset):
        return repr(sorted(map(repr, value)))
    if isinstance(value, tuple):
        return repr([_constant(item) for item in value])
    return f"{type(value).__name__} {value!r}"


def global_names(code: types.CodeType) -> set[str]:
    """Return the global names that code and the code inside it load.

    Parameters
    ----------
    code : types.CodeType
        The code.

    Returns
    -------
    set of str
        Attribute names are not among them.
    """
    return _operands(code, {"LOAD_GLOBAL", "LOAD_NAME"})


def stored_globals(code: types.CodeType) -> set[str]:
    """Return the global names that a function, and functions inside it, bind.

    Parameters
    ----------
    code : types.CodeType
        The function's code.

    Returns
    -------
    set of str
        Those that it declares by ``global`` and sets.
    """
    return _operands(code, {"STORE_GLOBAL"})


def _operands(code: types.CodeType, operations: set[str]) -> set[str]:
    """Return the names that some operations have, in code and the code inside it."""
    found = {
        str(step.argval)
        for step in dis.get_instructions(code)
        if step.opname in operations
    }
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _operands(constant, operations)
    return found


def is_local(file: str | None) -> bool:
    """Tell whether a module is the user's own: a source file in no installed package.

    Parameters
    ----------
    file : str or None
        The module's file.

    Returns
    -------
    bool
        By where its file lies.
    """
    path = file or ""
    installed = ("site-packages", "dist-packages")
    inside = path.startswith((sys.base_prefix, sys.prefix)) or any(
        p in path for p in installed
    )
    # A module that a library makes up, such as torch.ops, names a file without a folder.
    return path.endswith(".py") and not inside and Path(path).is_absolute()

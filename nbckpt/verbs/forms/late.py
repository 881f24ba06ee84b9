"""Modules that load when they are first used, so that a quick verb stays quick."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def late(name: str) -> ModuleType:
    """Return a module that loads when something of it is asked for.

    Parameters
    ----------
    name : str
        Full name of a module of this package.

    Returns
    -------
    ModuleType
        The module itself, not a stand-in.

    Raises
    ------
    ImportError
        If there is no such module.

    Notes
    -----
    The recipe of the standard library's `importlib.util.LazyLoader`.
    """
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

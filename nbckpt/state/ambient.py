"""State around the variables that a step can change: random streams, options, folders.

Only what differs before and after a step is kept. Values of environment variables are
secrets until proven otherwise and are kept only where the source itself spells them out.
Of a variable that the source does not even name, an import has set it most likely: its
keyed digest tells whether the import, made again, has set it again.
"""

from __future__ import annotations

import importlib
import logging
import os
import random
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbckpt import keys
from nbckpt.state.settings import SETTINGS, library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

State = dict[str, Any]
HERE = Path()
STREAMS = ("random", "numpy", "torch")
REPLAYED = {
    "matplotlib",
    "load_ext",
    "autoreload",
    "precision",
    "aimport",
    "pylab",
    "config",
    "alias",
    "alias_magic",
    "xmode",
}


def _numpy_stream() -> Any:
    """Return numpy's global random state."""
    numpy = library("numpy.random")
    if numpy is None:
        return None
    kind, state, *rest = numpy.get_state(legacy=True)
    return (kind, state.tobytes(), *rest)


def _set_numpy_stream(state: Any) -> None:
    """Set numpy's global random state."""
    import numpy as np

    kind, words, *rest = state
    np.random.set_state((kind, np.frombuffer(words, np.uint32), *rest))  # noqa: NPY002


def _torch_stream() -> Any:
    """Return torch's random state."""
    torch = library("torch")
    return None if torch is None else torch.get_rng_state().numpy().tobytes()


def _set_torch_stream(state: Any) -> None:
    """Set torch's random state."""
    import torch

    torch.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def _log_levels() -> Any:
    """Return the levels of all loggers."""
    loggers = logging.root.manager.loggerDict
    named = {
        n: x.level
        for n, x in loggers.items()
        if isinstance(x, logging.Logger) and x.level
    }
    return {"": logging.root.level, **named}


def _set_log_levels(value: Any) -> None:
    """Set the levels of loggers."""
    for name, level in value.items():
        logging.getLogger(name or None).setLevel(level)


def _set_filters(value: Any) -> None:
    """Set the warning filters."""
    warnings.filters[:] = list(value)  # type: ignore[index]
    warnings._filters_mutated() if hasattr(warnings, "_filters_mutated") else None


def _set_random(value: Any) -> None:
    """Set Python's random state."""
    random.setstate(value)


def _numpy_seeded(seed: Any) -> Any:
    """Return the state of numpy's global stream right after seeding."""
    import numpy as np

    fresh: Any = np.random.RandomState(seed)
    kind, state, *rest = fresh.get_state(legacy=True)
    return (kind, state.tobytes(), *rest)


def _torch_seeded(seed: Any) -> Any:
    """Return the state of torch's stream right after seeding."""
    import torch

    return torch.Generator().manual_seed(seed).get_state().numpy().tobytes()


SEEDED: dict[str, Callable[[Any], Any]] = {
    "random": lambda seed: random.Random(seed).getstate(),  # noqa: S311
    "numpy": _numpy_seeded,
    "torch": _torch_seeded,
}

SECTIONS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "random": (random.getstate, _set_random),
    "numpy": (_numpy_stream, _set_numpy_stream),
    "torch": (_torch_stream, _set_torch_stream),
    "folder": (os.getcwd, os.chdir),
    "recursion": (sys.getrecursionlimit, sys.setrecursionlimit),
    "filters": (lambda: list(warnings.filters), _set_filters),
    "logging": (_log_levels, _set_log_levels),
    **SETTINGS,
}


def capture() -> State:
    """Return the state around the variables as it is now.

    Returns
    -------
    dict
        Section → value; compare two with `changed`.
    """
    state = {name: read() for name, (read, _) in SECTIONS.items()}
    state["path"] = list(sys.path)
    state["environment"] = dict(os.environ)
    return state


def streams() -> State:
    """Return the random streams as they are now, alone out of what `capture` returns."""
    return {name: SECTIONS[name][0]() for name in STREAMS}


def changed(before: State, after: State) -> State:
    """Return what has to be set to get from one state to the other.

    Parameters
    ----------
    before, after : dict
        Two states.

    Returns
    -------
    dict
        Only the sections that differ. Those of a library that was imported in between
        are all there: what it was set to right after its import shows nowhere else.
    """
    found = {
        name: after[name]
        for name in SECTIONS
        if after[name] is not None and before[name] != after[name]
    }
    if "logging" in found:
        # A logger that is not listed any more was set back to no level of its own.
        found["logging"] = {**dict.fromkeys(before["logging"], 0), **after["logging"]}
    added = [entry for entry in after["path"] if entry not in before["path"]]
    if added:
        found["path"] = [(after["path"].index(entry), entry) for entry in added]
    environment = _environment_changes(before["environment"], after["environment"])
    if environment:
        found["environment"] = environment
    return found


def _environment_changes(
    before: dict[str, str], after: dict[str, str]
) -> dict[str, str | None]:
    """Return the variables that were set or removed."""
    found: dict[str, str | None] = {
        name: value for name, value in after.items() if before.get(name) != value
    }
    found.update(dict.fromkeys(before.keys() - after.keys()))
    return found


def values_in_magics(magics: Iterable[tuple[str, str]]) -> set[str]:
    """Return the values that ``%env NAME=value`` and ``%set_env`` spell out.

    Parameters
    ----------
    magics : iterable of tuple
        Names and lines of magics.

    Returns
    -------
    set of str
        As the magics split their lines.
    """
    lines = [line for name, line in magics if name in {"env", "set_env"}]
    return {line.split("=" if "=" in line else " ", 1)[-1].strip() for line in lines}


def unspelled(change: State, constants: Iterable[str]) -> list[str]:
    """Return the environment variables whose new values must not be stored.

    Parameters
    ----------
    change : dict
        What `changed` returned.
    constants : iterable of str
        The texts in the step's source.

    Returns
    -------
    list of str
        Variables whose values the source does not spell out.
    """
    spelled = set(constants)
    values = change.get("environment", {})
    return sorted(n for n, v in values.items() if v is not None and v not in spelled)


def unnamed(change: State, texts: Iterable[str]) -> dict[str, str]:
    """Return the environment variables that code elsewhere has set, such as an import.

    Parameters
    ----------
    change : dict
        What `changed` returned.
    texts : iterable of str
        The texts in the step's source.

    Returns
    -------
    dict
        Variable → new value, of those whose name and value the source has nowhere.
    """
    given, values = list(texts), change.get("environment", {})
    return {
        name: value
        for name, value in values.items()
        if value is not None
        and value not in given
        and not any(name in text for text in given)
    }


def without_variables(change: State, names: Iterable[str]) -> State:
    """Return a change that leaves some environment variables alone.

    Parameters
    ----------
    change : dict
        What `changed` returned.
    names : iterable of str
        The variables.

    Returns
    -------
    dict
        Without the section if nothing is left of it.
    """
    left_out, values = set(names), change.get("environment", {})
    kept = {name: value for name, value in values.items() if name not in left_out}
    found = {name: value for name, value in change.items() if name != "environment"}
    return found | ({"environment": kept} if kept else {})


def restore(change: State, base: Path = HERE) -> None:
    """Set what a step had changed.

    Parameters
    ----------
    change : dict
        What `changed` returned.
    base : Path, optional
        Where the way to a folder begins.
    """
    for name, value in change.items():
        if name == "path":
            for place, entry in value:
                if entry not in sys.path:
                    sys.path.insert(place, entry)
        elif name == "environment":
            _restore_environment(value)
        elif name == "folder":
            os.chdir(base / value)
        else:
            SECTIONS[name][1](value)


def _restore_environment(values: dict[str, str | None]) -> None:
    """Set and remove environment variables."""
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if "TZ" in values and hasattr(time, "tzset"):
        time.tzset()


def stream_digests(state: State) -> dict[str, str]:
    """Return the digest of each random stream in a state.

    Parameters
    ----------
    state : dict
        What `capture` returned.

    Returns
    -------
    dict
        Stream → digest; libraries that are not imported are left out.
    """
    return {n: keys.digest(repr(state[n])) for n in STREAMS if state.get(n) is not None}


def is_seeded(stream: str, state: Any, seed: Any) -> bool:
    """Tell whether a stream stands where seeding it puts it, whatever was before.

    Parameters
    ----------
    stream : str
        One of `STREAMS`.
    state : object
        Its part of what `capture` returned.
    seed : object
        What may have been given as seed.

    Returns
    -------
    bool
        False too if it is no seed.
    """
    try:
        return bool(SEEDED[stream](seed) == state)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return False


def import_all(modules: Iterable[str]) -> None:
    """Import what a skipped step had imported, so that submodules are there.

    Parameters
    ----------
    modules : iterable of str
        Dotted names.

    Raises
    ------
    ImportError
        If one is missing now.
    """
    for name in modules:
        importlib.import_module(name)

"""Settings that values and figures are made with, where a library's own were changed.

How numbers, tables, warnings and errors are shown is no such setting: a result does not
change with it.
"""

from __future__ import annotations

import decimal
import locale
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nbckpt.state.settings import DECIMAL, library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Setting = tuple[str, Any, Any]

CATEGORIES = ("LC_COLLATE", "LC_MONETARY", "LC_NUMERIC", "LC_TIME")
FRONT_END = {"backend", "interactive", "toolbar", "savefig.directory"}
"""Settings of matplotlib that are the place's, not the notebook's."""
SKLEARN = {
    "transform_output": "default",
    "enable_metadata_routing": False,
    "array_api_dispatch": False,
}
SHOWN = {"chained_assignment", "max_threads", "performance_warnings", "sim_interactive"}


def _decimal() -> Iterator[Setting]:
    """Yield how decimals are computed."""
    now, own = decimal.getcontext(), decimal.DefaultContext
    for name in DECIMAL:
        yield f"decimal.getcontext().{name}", getattr(now, name), getattr(own, name)
    for signal, is_trapped in now.traps.items():
        name = f"decimal.getcontext().traps[{signal.__name__}]"
        yield name, is_trapped, own.traps[signal]


def _locale() -> Iterator[Setting]:
    """Yield the parts of the locale that a program sets, not its terminal."""
    for name in CATEGORIES:
        yield f"locale.{name}", locale.setlocale(getattr(locale, name)), "C"


def _matplotlib() -> Iterator[Setting]:
    """Yield how figures look."""
    matplotlib = library("matplotlib")
    for name, value in dict.items(matplotlib.rcParams):
        if name not in FRONT_END:
            own = dict.get(matplotlib.rcParamsOrig, name)
            yield f"matplotlib.rcParams[{name!r}]", value, own


def _pandas() -> Iterator[Setting]:
    """Yield by which rules frames are computed."""
    config = library("pandas._config.config")
    for name, option in config._registered_options.items():
        group, _, last = name.partition(".")
        if group in {"future", "mode"} and last not in SHOWN:
            now = config._global_config[group][last]
            yield f"pandas.options.{name}", now, option.defval


def _sklearn() -> Iterator[Setting]:
    """Yield what estimators return and take."""
    now = library("sklearn").get_config()
    for name, own in SKLEARN.items():
        yield f"sklearn.get_config()[{name!r}]", now.get(name, own), own


def _torch() -> Iterator[Setting]:
    """Yield the type of new tensors."""
    dtype = str(library("torch").get_default_dtype())
    yield "torch.get_default_dtype()", dtype, "torch.float32"


SETTINGS: dict[str, Callable[[], Iterator[Setting]]] = {
    "decimal": _decimal,
    "locale": _locale,
    "matplotlib": _matplotlib,
    "pandas": _pandas,
    "sklearn": _sklearn,
    "torch": _torch,
}
"""Library → what yields its settings: dotted name, value, the library's own value."""


def deviations(packages: Iterable[str]) -> dict[str, Any]:
    """Return the settings of some libraries that are not the library's own.

    Parameters
    ----------
    packages : iterable of str
        Those that are not imported are left out.

    Returns
    -------
    dict
        Dotted name, beginning with the library → value.
    """
    known = [name for name in sorted({*packages} & SETTINGS.keys()) if library(name)]
    found: list[Setting] = []
    for name in known:
        # Not all of them have public names: where these moved, none can be told.
        with suppress(AttributeError, KeyError):
            found += SETTINGS[name]()
    return {name: now for name, now, own in found if now != own}

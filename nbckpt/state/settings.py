"""Settings of libraries: how each is read and set, without importing any."""

from __future__ import annotations

import decimal
import gc
import importlib
import locale
import logging
import multiprocessing
import socket
import sys
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

UNSET = "\0unset"
DECIMAL = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")


def library(name: str) -> Any:
    """Return a library if it is imported already."""
    return sys.modules.get(name)


def _rc_params() -> Any:
    """Return matplotlib's settings that travel."""
    matplotlib = library("matplotlib")
    if matplotlib is None:
        return None
    left_out = {"backend", "interactive", "toolbar"}
    return {k: v for k, v in dict.items(matplotlib.rcParams) if k not in left_out}


def _set_rc_params(value: Any) -> None:
    """Set matplotlib's settings."""
    import matplotlib as mpl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mpl.rcParams.update(value)


def _pandas_options() -> Any:
    """Return pandas' options."""
    config = library("pandas._config.config")
    return None if config is None else _flat(getattr(config, "_global_config", {}))


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a tree of options as dotted names."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _set_pandas_options(value: Any) -> None:
    """Set pandas' options that differ."""
    import pandas as pd

    now = _pandas_options() or {}
    for name, option in value.items():
        if now.get(name, UNSET) != option:
            pd.set_option(name, option)


def _numpy_printing() -> Any:
    """Return how numpy prints and what it does on floating-point errors."""
    numpy = library("numpy")
    if numpy is None:
        return None
    printing = {
        k: v for k, v in numpy.get_printoptions().items() if k != "override_repr"
    }
    return {"print": printing, "errors": numpy.geterr()}


def _set_numpy_printing(value: Any) -> None:
    """Set how numpy prints and what it does on floating-point errors."""
    import numpy as np

    np.set_printoptions(**value["print"])
    np.seterr(**value["errors"])


def _decimal_context() -> Any:
    """Return the settings of decimal arithmetic, without what it met so far."""
    context = decimal.getcontext()
    found = {name: getattr(context, name) for name in DECIMAL}
    return {**found, "traps": {s for s, is_on in context.traps.items() if is_on}}


def _set_decimal_context(value: Any) -> None:
    """Set how decimals are computed."""
    context = decimal.getcontext()
    for name in DECIMAL:
        setattr(context, name, value[name])
    for signal in context.traps:
        context.traps[signal] = signal in value["traps"]


def _torch_dtype() -> Any:
    """Return the type of torch's new tensors."""
    torch = library("torch")
    return None if torch is None else str(torch.get_default_dtype())


def _set_torch_dtype(value: str) -> None:
    """Set the type of torch's new tensors."""
    import torch

    torch.set_default_dtype(getattr(torch, value.rpartition(".")[2]))


def _set_locale(value: str) -> None:
    """Set the locale of the process."""
    locale.setlocale(locale.LC_ALL, value)


def _interpreter() -> Any:
    """Return limits of the interpreter."""
    return sys.get_int_max_str_digits(), sys.getswitchinterval()


def _set_interpreter(value: Any) -> None:
    """Set limits of the interpreter."""
    sys.set_int_max_str_digits(value[0])
    sys.setswitchinterval(value[1])


def _collection() -> Any:
    """Return whether and when garbage is collected."""
    return gc.isenabled(), gc.get_threshold()


def _set_collection(value: Any) -> None:
    """Set whether and when garbage is collected."""
    gc.enable() if value[0] else gc.disable()
    gc.set_threshold(*value[1])


def _socket_timeout() -> Any:
    """Return how long new sockets wait; a tuple, since they may wait for ever."""
    found = library("socket")
    return None if found is None else (found.getdefaulttimeout(),)


def _set_socket_timeout(value: Any) -> None:
    """Set how long new sockets wait."""
    socket.setdefaulttimeout(value[0])


def _start_method() -> Any:
    """Return how child processes are started; a tuple, since it may be undecided."""
    found = library("multiprocessing")
    return None if found is None else (found.get_start_method(allow_none=True),)


def _set_start_method(value: Any) -> None:
    """Set how child processes are started."""
    multiprocessing.set_start_method(value[0], force=True)


def _log_flow() -> Any:
    """Return below which level nothing is logged, and loggers that keep to themselves."""
    loggers = logging.root.manager.loggerDict.items()
    alone = sorted(n for n, x in loggers if not getattr(x, "propagate", True))
    return logging.root.manager.disable, alone


def _set_log_flow(value: Any) -> None:
    """Set below which level nothing is logged, and loggers that keep to themselves."""
    logging.disable(value[0])
    for name in value[1]:
        logging.getLogger(name).propagate = False


def _sklearn_config() -> Any:
    """Return scikit-learn's configuration."""
    sklearn = library("sklearn")
    return None if sklearn is None else sklearn.get_config()


def _set_sklearn_config(value: Any) -> None:
    """Set scikit-learn's configuration."""
    importlib.import_module("sklearn").set_config(**value)


SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "printing": (_numpy_printing, _set_numpy_printing),
    "matplotlib": (_rc_params, _set_rc_params),
    "pandas": (_pandas_options, _set_pandas_options),
    "decimal": (_decimal_context, _set_decimal_context),
    "locale": (lambda: locale.setlocale(locale.LC_ALL), _set_locale),
    "dtype": (_torch_dtype, _set_torch_dtype),
    "interpreter": (_interpreter, _set_interpreter),
    "collection": (_collection, _set_collection),
    "sockets": (_socket_timeout, _set_socket_timeout),
    "processes": (_start_method, _set_start_method),
    "log flow": (_log_flow, _set_log_flow),
    "sklearn": (_sklearn_config, _set_sklearn_config),
}
"""Section → what reads it (None: its library is not imported) and what sets it."""

"""Settings that values are made with are inputs; how things are shown is none."""

from __future__ import annotations

import decimal
import locale
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import set_config

from nbckpt.state import ambient, settings
from nbckpt.state.deviations import SETTINGS, deviations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.notebook import Notebook


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Let libraries stand as a kernel imports them, and as they stood in the end."""
    before = ambient.capture()
    reset()
    yield
    ambient.restore(ambient.changed(ambient.capture(), before))


def reset() -> None:
    """Set the settings that tests change to those of the libraries."""
    decimal.setcontext(decimal.Context(prec=28))
    dict.update(mpl.rcParams, mpl.rcParamsOrig)
    torch.set_default_dtype(torch.float32)
    locale.setlocale(locale.LC_ALL, "C")
    for option in ("mode.string_storage", "display.max_rows"):
        pd.reset_option(option)
    set_config(transform_output="default", display="diagram")


SET: dict[str, tuple[Callable[[], object], set[str]]] = {
    "decimal": (
        lambda: setattr(decimal.getcontext(), "prec", 5),
        {"decimal.getcontext().prec"},
    ),
    "trap": (
        lambda: decimal.getcontext().traps.update({decimal.Inexact: True}),
        {"decimal.getcontext().traps[Inexact]"},
    ),
    "locale": (
        lambda: locale.setlocale(locale.LC_NUMERIC, "C.UTF-8"),
        {"locale.LC_NUMERIC"},
    ),
    "figures": (
        lambda: mpl.rcParams.update({"figure.dpi": 7}),
        {"matplotlib.rcParams['figure.dpi']"},
    ),
    "strings of pandas": (
        lambda: pd.set_option("mode.string_storage", "python"),
        {"pandas.options.mode.string_storage"},
    ),
    "estimators": (
        lambda: set_config(transform_output="pandas"),
        {"sklearn.get_config()['transform_output']"},
    ),
    "type of tensors": (
        lambda: torch.set_default_dtype(torch.float64),
        {"torch.get_default_dtype()"},
    ),
    "rows shown": (lambda: pd.set_option("display.max_rows", 7), set()),
    "numbers shown": (lambda: np.set_printoptions(precision=2), set()),
    "warnings of numpy": (lambda: np.seterr(all="ignore"), set()),
    "estimators shown": (lambda: set_config(display="text"), set()),
    "place of figures": (lambda: mpl.rcParams.update({"interactive": True}), set()),
    "terminal": (lambda: locale.setlocale(locale.LC_CTYPE, "C.UTF-8"), set()),
}


@pytest.mark.parametrize("label", SET)
def test_what_results_are_made_with_deviates_and_what_is_shown_does_not(
    label: str,
) -> None:
    assert deviations(SETTINGS) == {}
    change, found = SET[label]
    change()
    assert deviations(SETTINGS).keys() == found
    assert deviations(["json", "decimal2"]) == {}


def test_library_that_is_not_imported_has_no_deviations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.set_default_dtype(torch.float64)
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "torch")
        assert deviations(["torch"]) == {}


PLAIN = "from decimal import Decimal, getcontext; getcontext().prec = 5"
USE = "%%step use\nx = Decimal(1) / 3"
OTHER = "%%step other\ny = 1"


def again(notebook: Notebook, *sources: str) -> None:
    """Run cells in a new kernel, whose libraries nobody has set."""
    reset()
    notebook.restart()
    for source in sources:
        notebook.run(source)


def test_setting_of_a_plain_cell_is_an_input_of_steps_that_rest_on_its_library(
    notebook: Notebook,
) -> None:
    again(notebook, PLAIN, USE, OTHER)
    again(notebook, PLAIN, USE, OTHER)
    assert notebook.decision("use") == notebook.decision("other") == "Skip"
    again(notebook, PLAIN.replace("5", "9"), USE, OTHER)
    assert notebook.reason("use") == "input 'decimal.getcontext().prec' changed"
    assert notebook.decision("other") == "Skip"
    again(notebook, PLAIN.partition(";")[0], USE, OTHER)
    assert notebook.reason("use") == "input 'decimal.getcontext().prec' is gone"


def test_setting_of_a_step_is_an_input_of_those_below(notebook: Notebook) -> None:
    step = PLAIN.replace("from", "%%step set\nfrom")
    again(notebook, step, USE)
    again(notebook, step, USE)
    assert notebook.decision("set") == notebook.decision("use") == "Skip"
    again(notebook, step.replace("5", "9"), USE)
    assert "decimal.getcontext().prec" in notebook.reason("use")


FIGURE = "%%step plot\nimport matplotlib as mpl; width = 1"
BELOW = "mpl.rcParams['lines.linewidth'] = 9"


@pytest.mark.parametrize("anew", ["", "%load_ext nbckpt"])
def test_setting_of_a_cell_below_is_no_input_in_a_later_pass_of_one_kernel(
    notebook: Notebook, anew: str
) -> None:
    again(notebook, *2 * [anew, FIGURE, BELOW, OTHER])
    assert notebook.decision("plot") == "Skip"
    edited = FIGURE.replace("1", "2")
    for source in (anew, edited, BELOW):
        notebook.run(source)
    assert notebook.reason("plot") == "its code changed"
    again(notebook, edited)
    assert notebook.decision("plot") == "Skip"


def test_setting_that_is_edited_in_a_running_kernel_counts(notebook: Notebook) -> None:
    again(notebook, PLAIN, USE, PLAIN.replace("5", "9"), USE)
    assert notebook.reason("use") == "input 'decimal.getcontext().prec' changed"


def test_setting_of_a_step_that_failed_first_is_no_input_of_its_second_try(
    notebook: Notebook,
) -> None:
    step = PLAIN.replace("from", "%%step use\nfrom") + "\nx = Decimal(1) / 3"
    notebook.run(f"{step}\nraise ValueError", fine=False)
    notebook.run(step)
    again(notebook, step)
    assert notebook.decision("use") == "Skip"


def test_library_that_keeps_its_settings_elsewhere_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pandas._config.config", ModuleType("config"))
        assert deviations({"pandas"}) == {}
        assert settings._pandas_options() == {}

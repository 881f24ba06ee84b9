"""The style of the package stays within the budgets of CONTRIBUTING.md."""

from __future__ import annotations

import pytest

from tests.style.metrics import ROOT, Figures, measure


@pytest.fixture(scope="module")
def figures() -> Figures:
    """Measure the package once."""
    return measure(ROOT, "nbckpt")


def test_modules_are_short(figures: Figures) -> None:
    assert figures.module_lines.median <= 200
    assert figures.module_lines.maximum <= 400, figures.module_lines.largest


def test_functions_are_short(figures: Figures) -> None:
    assert figures.function_lines.median <= 9
    assert figures.function_lines.p90 <= 28
    assert figures.function_lines.maximum <= 50, figures.function_lines.largest


def test_functions_have_few_paths(figures: Figures) -> None:
    assert figures.cyclomatic.maximum <= 8, figures.cyclomatic.largest


def test_functions_have_few_parameters(figures: Figures) -> None:
    assert figures.parameters.maximum <= 6, figures.parameters.largest


def test_every_public_name_is_documented(figures: Figures) -> None:
    assert figures.undocumented == ()


def test_every_function_is_annotated(figures: Figures) -> None:
    assert figures.unannotated == ()


def test_few_names_are_exported(figures: Figures) -> None:
    assert 0 < len(figures.exported) <= 20


def test_modules_import_without_cycles(figures: Figures) -> None:
    assert figures.cycle == ()


def test_imports_stand_at_the_top(figures: Figures) -> None:
    assert len(figures.late_imports) <= 3, figures.late_imports


def test_comments_seldom_speak_to_tools(figures: Figures) -> None:
    assert figures.tool_comments_per_1000 <= 10


def test_tests_outweigh_the_code(figures: Figures) -> None:
    assert figures.test_code_per_code >= 1.3

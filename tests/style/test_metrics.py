"""The measuring itself finds what is planted, so that a budget can fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.style.metrics import measure

if TYPE_CHECKING:
    from pathlib import Path

    from tests.style.metrics import Figures

LEAF = '''"""Say what a leaf is."""
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from pack import trunk

def pick(a: int, *rest: int) -> int:
    """Pick one."""
    return a if a and rest else sum(x for x in rest if x)  # noqa: E501
'''
TRUNK = '''from pack.leaf import pick

class Trunk:
    """A trunk."""

    def grow(self, by):
        # plain words
        from . import leaf
        return [leaf, pick, by]

    def _hide(self) -> None:
        pass
'''
INIT = '"""A package."""\n__all__ = ["Trunk"]\nfrom .trunk import Trunk\n'


def figures_of(root: Path, **modules: str) -> Figures:
    """Measure a package `pack` with one line of tests."""
    (root / "pack").mkdir()
    (root / "tests").mkdir()
    (root / "tests" / "test_one.py").write_text("assert True\n")
    for name, text in {
        "__init__": INIT,
        "leaf": LEAF,
        "trunk": TRUNK,
        **modules,
    }.items():
        (root / "pack" / f"{name}.py").write_text(text)
    return measure(root, "pack")


def test_docstrings_and_comments_are_no_code(tmp_path: Path) -> None:
    assert figures_of(tmp_path).code_lines == 2 + 6 + 7


def test_sizes_name_the_largest(tmp_path: Path) -> None:
    sizes = figures_of(tmp_path)

    assert sizes.module_lines.largest == "pack.trunk"
    assert sizes.module_lines.maximum == 12
    assert sizes.function_lines.largest == "pack.trunk.grow"
    assert sizes.function_lines.maximum == 4


def test_paths_count_choices_conditions_and_filters(tmp_path: Path) -> None:
    """`pick` has a ternary, an `and` and a filter beside its straight path."""
    assert figures_of(tmp_path).cyclomatic.maximum == 4


def test_self_is_no_parameter(tmp_path: Path) -> None:
    assert figures_of(tmp_path).parameters.maximum == 1


def test_public_names_without_docstring_are_named(tmp_path: Path) -> None:
    expected = ("pack.trunk: the module", "pack.trunk: Trunk.grow")

    assert figures_of(tmp_path).undocumented == expected


def test_functions_without_types_are_named(tmp_path: Path) -> None:
    assert figures_of(tmp_path).unannotated == ("pack.trunk.grow",)


def test_exported_names_are_read_from_all(tmp_path: Path) -> None:
    assert figures_of(tmp_path).exported == ("Trunk",)


def test_imports_for_types_make_no_cycle(tmp_path: Path) -> None:
    assert figures_of(tmp_path).cycle == ()


def test_cycle_is_found(tmp_path: Path) -> None:
    found = figures_of(tmp_path, leaf="from pack import trunk\npick = 1\n")

    assert set(found.cycle) == {"pack.leaf", "pack.trunk"}


def test_import_inside_a_function_is_late(tmp_path: Path) -> None:
    assert figures_of(tmp_path).late_imports == ("pack.trunk -> pack.leaf",)


def test_comments_for_tools_are_counted(tmp_path: Path) -> None:
    assert figures_of(tmp_path).tool_comments_per_1000 == round(1000 / 15, 1)


def test_tests_are_weighed_against_code(tmp_path: Path) -> None:
    assert figures_of(tmp_path).test_code_per_code == round(1 / 15, 2)

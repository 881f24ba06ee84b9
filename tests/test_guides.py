"""The guides in ``docs`` do what they say, and the reference names all that there is."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbckpt
from nbckpt.cli import FAMILIES, commands
from nbckpt.plan import step_parser
from nbckpt.verbs.notebook import VERBS
from tests import pages

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = DOCS.parent / "notebooks"
REFERENCE = ("commands", "magics", "names", "exit-codes")


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return the pages that are generated, by name."""
    folder = tmp_path_factory.mktemp("reference")
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write(folder)
    yield {name: (folder / f"{name}.md").read_text("utf-8") for name in REFERENCE}
    sys.modules.pop("reference", None)


@pytest.mark.parametrize(
    "line", sorted({line for page in pages.PAGES for line in pages.commands(page)})
)
def test_command_of_a_page_exists_with_its_arguments_and_options(line: str) -> None:
    verb, *words = shlex.split(line, comments=True)[1:]
    if verb in {"VERB", "--help"} or not words:
        return
    commands.commands[verb].make_context(verb, words)


@pytest.mark.parametrize("page", pages.PAGES)
def test_file_that_a_page_links_to_exists(page: str) -> None:
    generated = {f"reference/{name}.md" for name in REFERENCE}
    folder = (pages.ROOT / page).parent
    for link in pages.links(page):
        assert link in generated or (folder / link).exists(), link


def test_each_notebook_is_a_page_of_the_documents() -> None:
    listed = re.findall(
        r"^notebooks/(\w+)$", (DOCS / "index.md").read_text(), re.MULTILINE
    )
    assert sorted(listed) == sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


def test_reference_has_each_command_with_its_help(reference: dict[str, str]) -> None:
    for family, members in FAMILIES.items():
        assert f"## {family}\n" in reference["commands"]
        for command in members:
            assert f"### {command.name}\n" in reference["commands"]
            assert f"Usage: nbckpt {command.name} " in reference["commands"]


def test_reference_has_each_option_of_a_step_and_each_verb(
    reference: dict[str, str],
) -> None:
    for action in step_parser()._actions:
        assert all(text in reference["magics"] for text in action.option_strings)
    for verb in VERBS:
        assert f"| `{verb}` | " in reference["magics"]


def test_reference_has_each_python_name(reference: dict[str, str]) -> None:
    found = re.findall(r"auto(?:class|function):: nbckpt\.(\w+)", reference["names"])
    assert found == list(nbckpt.HOMES)


def test_reference_has_each_exit_code(reference: dict[str, str]) -> None:
    codes = re.findall(r"^\| (\d) \|", reference["exit-codes"], re.MULTILINE)
    assert codes == ["0", "1", "2", "3", "4"]
    assert (
        "| 4 | not started: another holder has the run | `RunHeld` |"
        in (reference["exit-codes"])
    )

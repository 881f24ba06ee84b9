"""The guides in ``docs`` do what they say, and the reference names all that there is."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

import nbckpt
from nbckpt.cli import FAMILIES, commands
from nbckpt.plan import step_parser
from nbckpt.verbs.notebook import VERBS
from tests.notebook import opened

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = DOCS.parent / "notebooks"
GUIDES = ("tutorial", "concepts", "howto")
PAGES = ("commands", "magics", "names", "exit-codes")


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def called() -> list[str]:
    """Return each ``nbckpt`` line of the guides, blocks and text."""
    found = []
    for page in GUIDES:
        text = (DOCS / f"{page}.md").read_text("utf-8")
        lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
        found += [*lines, *re.findall(r"`(nbckpt [^`]+)`", text)]
    return sorted({line for line in found if line.startswith("nbckpt ")})


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
    yield {name: (folder / f"{name}.md").read_text("utf-8") for name in PAGES}
    sys.modules.pop("reference", None)


def test_tutorial_runs_and_its_steps_are_skipped_in_the_next_kernel(
    tmp_path: Path,
) -> None:
    cells = blocks("tutorial", "python")
    assert len(cells) > 5
    with opened(tmp_path) as notebook:
        for source in cells:
            notebook.run(source)
        assert {notebook.decision(step) for step in ("load", "total")} == {"Run"}
        notebook.restart()
        for source in cells:
            notebook.run(source)
        assert {notebook.decision(step) for step in ("load", "total")} == {"Skip"}


def test_blocks_of_the_guides_are_python_or_of_a_shell() -> None:
    for page in GUIDES:
        text = (DOCS / f"{page}.md").read_text("utf-8")
        assert set(re.findall(r"^```(.+)$", text, re.MULTILINE)) <= {"python", "sh"}


@pytest.mark.parametrize("line", called())
def test_command_of_a_guide_exists_with_its_options(line: str) -> None:
    verb, *words = shlex.split(line, comments=True)[1:]
    if verb == "VERB":
        return
    command = commands.commands[verb]
    context = click.Context(command, resilient_parsing=True)
    _, left, _ = command.make_parser(context).parse_args(words)
    assert left == []


@pytest.mark.parametrize("page", GUIDES)
def test_file_that_a_guide_links_to_exists(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    generated = {f"reference/{name}.md" for name in PAGES}
    assert all(link in generated or (DOCS / link).is_file() for link in links), links


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

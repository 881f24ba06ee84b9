"""An answer with a picture: in a notebook, in a file, and as text everywhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from nbckpt import cli
from nbckpt.errors import BadStep, NotFound
from nbckpt.pictures import Picture
from nbckpt.verbs import in_notebook
from nbckpt.verbs.forms.documents import CELLS
from nbckpt.verbs.forms.pages import Table, plain
from nbckpt.verbs.forms.showing import Shown
from nbckpt.verbs.look.overview import runs_page, runs_picture
from tests.notebook import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.notebook import Notebook

VERBS = ("timeline", "graph", "size", "runs")
PICTURE = Picture("a & b", "told", 10, 10, "")
SHOWN = Shown(PICTURE, ["line <b>", "", Table(("x",), [("<i>",)])])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """Open a notebook whose two steps ran."""
    with opened(tmp_path_factory.mktemp("showing")) as notebook:
        notebook.run("%%step load\nrows = [1]")
        notebook.run("%%step fit\nmodel = rows")
        yield notebook


@pytest.fixture
def book(shared: Notebook, capsys: pytest.CaptureFixture[str]) -> Notebook:
    """Return it, to read what this test has it print."""
    shared.capsys = capsys
    return shared


def run(book: Notebook, *arguments: str) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error of a command."""
    book.capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    found = book.capsys.readouterr()
    return int(left.value.code or 0), found.out, found.err


def test_front_end_gets_the_picture_and_the_same_table_as_text() -> None:
    found = SHOWN._repr_mimebundle_()
    assert found["text/plain"] == "line <b>\n\nx\n<i>"
    assert found["text/html"].count("<svg") == 1
    assert CELLS in found["text/html"]
    assert "<td>&lt;i&gt;</td>" in found["text/html"]
    assert "line &lt;b&gt;" in found["text/html"]
    assert "<script" not in found["text/html"]


def test_svg_file_is_whole_and_html_file_needs_nothing_else(tmp_path: Path) -> None:
    SHOWN.write(tmp_path / "a.svg")
    found = ET.parse(tmp_path / "a.svg").getroot()  # noqa: S314 - ours
    assert found.tag == "{http://www.w3.org/2000/svg}svg"
    SHOWN.write(tmp_path / "a.HTML")
    page = (tmp_path / "a.HTML").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "<title>a &amp; b</title>" in page
    assert "<svg" in page
    assert "<table>" in page


@pytest.mark.parametrize("name", ["a.png", "a", "a.mmd", "svg"])
def test_ending_without_a_form_is_refused_and_writes_nothing(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(BadStep, match=r"ends in \.svg, \.html"):
        SHOWN.write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", VERBS)
def test_verb_in_a_notebook_shows_a_picture(book: Notebook, verb: str) -> None:
    found = in_notebook(book.session, verb)
    assert isinstance(found, Shown)
    assert "<svg" in found._repr_mimebundle_()["text/html"]
    book.run(f"%nbckpt {verb}")
    assert "notebook-1" in book.shown()


@pytest.mark.parametrize("verb", VERBS)
def test_json_in_a_notebook_is_that_of_the_shell(book: Notebook, verb: str) -> None:
    inside = json.loads(str(in_notebook(book.session, f"{verb} --json")))
    code, out, _ = run(book, verb, "--json")
    outside = json.loads(out)
    assert code == 0
    assert (
        json.dumps(outside).partition("total")[0]
        == (json.dumps(inside).partition("total")[0])
    )


@pytest.mark.parametrize("verb", VERBS)
def test_command_writes_the_picture_and_says_nothing(
    book: Notebook, tmp_path: Path, verb: str
) -> None:
    svg, page = tmp_path / "p.svg", tmp_path / "p.html"
    assert run(book, verb, "--output", str(svg)) == (0, "", "")
    assert "<svg" in svg.read_text("utf-8")
    code, out, _ = run(book, verb, "--output", str(page), "--json")
    assert code == 0
    assert json.loads(out)
    assert "<svg" in page.read_text("utf-8")


@pytest.mark.parametrize("verb", ["timeline", "graph", "size"])
def test_unknown_run_is_refused_with_those_that_there_are(
    book: Notebook, verb: str
) -> None:
    with pytest.raises(NotFound, match="Known: notebook-1"):
        in_notebook(book.session, f"{verb} nope")


def test_graph_as_mermaid_in_notebook_shell_and_file(
    book: Notebook, tmp_path: Path
) -> None:
    text = in_notebook(book.session, "graph --mermaid")
    assert str(text).startswith("flowchart TD\n")
    assert run(book, "graph", "--mermaid") == (0, text, "")
    assert run(book, "graph", "--output", str(tmp_path / "g.mmd"))[0] == 0
    assert (tmp_path / "g.mmd").read_text("utf-8") == text


def test_audit_as_html_has_the_three_pictures_and_as_text_none(book: Notebook) -> None:
    _, page, _ = run(book, "audit", "--html")
    assert page.count("<svg") == 3
    assert "What the store keeps" in page
    _, text, _ = run(book, "audit")
    assert "svg" not in text
    assert "2 completed" in text


def a_run(name: str, **times: float) -> Any:
    return {
        "run": name, "notebook": "", "version": "", "state": "completed",
        "created_at": 1.0, "done": 1, "total": 1, "holder": "free",
        "seconds": sum(times.values()), "times": times,
    }  # fmt: skip


def test_picture_of_runs_cuts_each_into_its_steps() -> None:
    picture = runs_picture(
        [a_run("etl-1", load=1.0, fit=3.0), a_run("etl-2", load=2.0)]
    )
    svg = picture.svg()
    for told in ("etl-1, load: 1.0 s", "etl-1, fit: 3.0 s", "etl-2, load: 2.0 s"):
        assert f"<title>{told}</title>" in svg
    assert "4.0 s, completed</text>" in svg
    assert picture.told == "etl-1 4.0 s, etl-2 2.0 s"


def test_picture_of_many_runs_shows_the_last() -> None:
    picture = runs_picture([a_run(f"etl-{n}", load=1.0) for n in range(99)])
    assert "etl-98, load" in picture.svg()
    assert "etl-1, load" not in picture.svg()
    assert picture.title.endswith("the last 24 of 99")


def test_store_without_runs_has_a_picture_as_well() -> None:
    assert "<svg" in runs_picture([]).svg()
    assert plain(runs_page([])) == "no runs yet"


def test_runs_tell_the_time_of_each_step(book: Notebook) -> None:
    (line,) = json.loads(str(in_notebook(book.session, "runs --json")))
    assert list(line["times"]) == ["load", "fit"]
    assert line["seconds"] == pytest.approx(sum(line["times"].values()))

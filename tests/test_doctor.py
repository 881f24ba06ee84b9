"""What the doctor looks at: nothing is made, and each thing that is wrong has its line."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

from nbckpt import cli, trust
from nbckpt.records import RunRecord
from nbckpt.runs.opening import open_run
from nbckpt.store import Store
from nbckpt.verbs.forms.pages import plain
from nbckpt.verbs.prepare import doctor as doctors
from nbckpt.verbs.prepare.doctor import Finding, doctor, doctor_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(autouse=True)
def _here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Stand in an empty folder, with a key of one's own and the kernel of this Python."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    if "program" not in request.fixturenames:
        kernel(monkeypatch, sys.executable)


def kernel(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Let the kernel python3 be a program; an empty one: there is none."""

    def get(*_: object) -> Any:
        if not program:
            raise NoSuchKernel("python3")
        argv = [program, "-m", "ipykernel_launcher"]
        return SimpleNamespace(argv=argv, resource_dir="")

    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", get)


def a_store(folder: Path) -> Path:
    """Make a store with one run."""
    store = Store(folder / ".nbckpt", trust.load_secret())
    open_run(store, "etl", RunRecord("", ""))
    store.close()
    return store.folder


def a_notebook(folder: Path, *sources: str) -> Path:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [cell | {"source": text, "id": f"c{n}"} for n, text in enumerate(sources)]
    path = folder / "etl.ipynb"
    document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(document))
    return path


def found(area: str, what: str, **how: str) -> Finding:
    """Return one finding."""
    both = [
        f for f in doctor(**how)["findings"] if (f["area"], f["what"]) == (area, what)
    ]
    assert len(both) == 1, both
    return both[0]


def test_fresh_machine_is_well_and_nothing_is_made(tmp_path: Path) -> None:
    data = doctor()
    assert data["ok"], [f for f in data["findings"] if f["state"] == "wrong"]
    assert {f["area"] for f in data["findings"]} == {
        "environment",
        "trust",
        "store",
        "front-end",
    }
    assert "the first run makes it" in found("trust", "key")["said"]
    assert "the first run makes it" in found("store", "place")["said"]
    assert list(tmp_path.iterdir()) == []


def test_store_that_is_there_is_read(tmp_path: Path) -> None:
    folder = a_store(tmp_path)
    assert found("store", "records")["said"] == "1 run, all readable"
    assert str(folder) in found("store", "place")["said"]
    assert "readable by you alone" in found("trust", "key")["said"]


def test_store_of_another_user_is_a_note_with_the_way_to_trust_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_store(tmp_path)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "other"))
    assert doctor()["ok"]
    note = found("store", "owner")
    assert (note["state"], note["remedy"].split()[-1]) == ("note", str(folder))


def test_unsafe_store_is_wrong_and_is_not_opened(tmp_path: Path) -> None:
    folder = a_store(tmp_path)
    folder.chmod(0o777)
    wrong = found("store", "place")
    assert wrong["state"] == "wrong"
    assert "chmod" in wrong["remedy"]
    assert not any(f["what"] == "records" for f in doctor()["findings"])
    folder.chmod(0o700)


def test_damaged_store_is_wrong(tmp_path: Path) -> None:
    folder = a_store(tmp_path)
    for file in folder.rglob("*.db*"):
        file.write_bytes(b"no database at all" * 99)
    assert found("store", "records")["state"] == "wrong"


def test_key_that_others_can_read_is_wrong(tmp_path: Path) -> None:
    a_store(tmp_path)
    trust.secret_path().chmod(0o644)
    assert found("trust", "key")["state"] == "wrong"
    assert not doctor()["ok"]


def test_folder_that_can_not_be_written_is_told_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctors.os, "access", lambda *_: False)
    wrong = found("store", "place", store=str(tmp_path / "new" / ".nbckpt"))
    assert (wrong["state"], wrong["said"]) == (
        "wrong",
        f"nothing can be written to {tmp_path}",
    )
    assert "--store DIR" in wrong["remedy"]


def test_full_disk_is_told_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=5_000_000)
    monkeypatch.setattr(doctors.shutil, "disk_usage", lambda _: usage)
    note = found("store", "room")
    assert (note["state"], note["said"]) == ("note", "only 5.0 MB free")


@pytest.mark.parametrize(
    ("program", "state", "said"),
    [
        ("", "wrong", "not installed"),
        ("/nowhere/bin/python", "wrong", "can't load nbckpt"),
        ("/usr/bin/false", "wrong", "can't load nbckpt"),
        ("/usr/bin/true", "note", "another Python"),
    ],
)
def test_kernel_of_another_python_must_be_able_to_load_us(
    monkeypatch: pytest.MonkeyPatch, program: str, state: str, said: str
) -> None:
    kernel(monkeypatch, program)
    one = found("environment", "kernel python3")
    assert one["state"] == state
    assert said in one["said"]


def test_kernel_that_is_called_python_is_this_one_whatever_the_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As ipykernel installs it; ``.venv/bin/nbckpt`` runs without the path of its venv."""
    monkeypatch.setenv("PATH", "/usr/bin")
    kernel(monkeypatch, "python")
    one = found("environment", "kernel python3")
    assert (one["state"], one["said"]) == ("ok", sys.executable)


def test_kernel_that_does_not_answer_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("python", 1)

    kernel(monkeypatch, "/usr/bin/true")
    monkeypatch.setattr(doctors.subprocess, "run", hang)
    assert found("environment", "kernel python3")["state"] == "wrong"


def without(name: str) -> Callable[[str], str]:
    """Return what tells versions, as if one package were not installed."""
    real = doctors._version
    return lambda asked: "" if asked == name else real(asked)


def test_package_that_is_missing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctors, "_version", without("nbclient"))
    assert found("environment", "nbclient")["said"] == "not installed"


def test_front_end_that_is_not_installed_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctors, "_version", without("papermill"))
    assert not any("papermill" in f["what"] for f in doctor()["findings"])


def test_papermill_that_does_not_find_the_engine_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctors.metadata, "entry_points", lambda **_: ())
    assert found("front-end", "papermill engine")["state"] == "wrong"


def test_notebook_is_looked_at_with_its_store(tmp_path: Path) -> None:
    (tmp_path / "nb").mkdir()
    path = a_notebook(tmp_path / "nb", "%load_ext nbckpt", "%%step a\nx = 1", "y = 2")
    target = str(path)
    assert found("notebook", "etl.ipynb", target=target)["said"] == (
        "1 step in 3 code cells"
    )
    assert (
        str(path.parent / ".nbckpt") in found("store", "place", target=target)["said"]
    )


def test_notebook_with_wrong_lines_and_no_extension_is_told(tmp_path: Path) -> None:
    target = str(a_notebook(tmp_path, "%%step a --nope\nx = 1"))
    assert found("notebook", "step line", target=target)["state"] == "wrong"
    assert "annotate" in found("notebook", "extension", target=target)["remedy"]


def test_notebook_that_is_missing_is_a_finding() -> None:
    one = found("notebook", "none.ipynb", target="none.ipynb")
    assert (one["state"], "there is no notebook" in one["said"]) == ("wrong", True)


def test_page_tells_what_to_do_and_the_command_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_store(tmp_path).chmod(0o755)
    with pytest.raises(SystemExit) as left:
        cli.main(["doctor"])
    said = capsys.readouterr().out
    assert left.value.code == 1
    assert "something is wrong\nplace: Check who wrote to it" in said
    (tmp_path / ".nbckpt").chmod(0o700)
    assert "all is well" in plain(doctor_page(doctor()))


def test_command_prints_json_and_ends_with_0(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["doctor", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert (left.value.code, data["ok"]) == (0, True)
    assert set(data["findings"][0]) == {"area", "what", "state", "said", "remedy"}

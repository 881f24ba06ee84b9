"""A run travels in one file, and is nobody's until the user says otherwise."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.cli import main
from nbckpt.errors import RunHeld, StoreDamaged, StoreRefused
from nbckpt.records import RunRecord
from nbckpt.runs import lines, transfers
from nbckpt.runs.history import Reader
from nbckpt.runs.leases import Leases
from nbckpt.runs.opening import open_run
from nbckpt.runs.transfers import export_run, import_run
from nbckpt.runs.trusting import make_own
from nbckpt.state import garbage
from nbckpt.state.garbage import collect
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs import in_notebook
from tests.notebook import Notebook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN = "notebook-1"
BIG = "%%step big\ny = bytearray(range(256)) * 2000"
SMALL = "%%step small --writes out.txt\nfrom pathlib import Path\n"
SMALL += "x = Path('out.txt').write_text('1')"
NAUGHTY = """
import os
class Naughty:
    def __reduce__(self):
        return os.mkdir, (os.path.abspath('pwned'),)
"""


@pytest.fixture
def notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Notebook]:
    """Return a notebook with a small pack in the records and a large one in a file."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    notebook = Notebook(capsys)
    notebook.run(SMALL)
    notebook.run(BIG)
    yield notebook
    notebook.close()


@pytest.fixture
def archive(notebook: Notebook, tmp_path: Path) -> Path:
    """Return the archive of its run."""
    path = tmp_path / "run.nbckpt"
    export_run(notebook.session.store, RUN, path)
    return path


@pytest.fixture
def elsewhere(
    notebook: Notebook, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Go to another folder as another user; return the folder."""
    del archive
    notebook.close()
    there = tmp_path / "there"
    there.mkdir()
    monkeypatch.chdir(there)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "other-user"))
    return there


def rows(folder: Path) -> dict[str, bytes | None]:
    store = Store(folder, load_secret())
    found = {key: store.get_bytes(key) for key in store.keys("")}
    store.close()
    return found


def test_run_that_was_imported_and_trusted_skips_everything(
    notebook: Notebook, archive: Path, elsewhere: Path
) -> None:
    shutil.copy(elsewhere.parent / "here" / "out.txt", elsewhere)
    assert import_run(archive, elsewhere / ".nbckpt", load_secret()) == (RUN, True)
    notebook.shell = notebook._start()
    notebook.run(SMALL)
    notebook.run(BIG)
    assert notebook.session.run_id == RUN
    assert (notebook.decision("small"), notebook.decision("big")) == ("Skip", "Skip")
    assert notebook.names["y"] == bytearray(range(256)) * 2000
    kinds = [event.kind for _, event in notebook.journal.history(RUN)]
    assert "imported" in kinds
    assert lines.broken(notebook.session.store, RUN) == ""
    notebook.run("%%step more\nz = len(y)")
    assert notebook.names["z"] == 512_000


def test_run_without_the_users_word_is_looked_at_and_never_loaded(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run(f"%%step hostile\n{NAUGHTY}\nthing = Naughty()")
    shutil.rmtree("pwned", ignore_errors=True)
    path = tmp_path / "hostile.nbckpt"
    export_run(notebook.session.store, RUN, path)
    notebook.close()
    there = tmp_path / "there"
    there.mkdir()
    monkeypatch.chdir(there)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "other-user"))
    import_run(path, there / ".nbckpt", None)
    store = Store(there / ".nbckpt", load_secret())
    assert not store.trusted
    assert "small" in Reader(store).steps(RUN)
    assert lines.broken(store, RUN) == ""
    store.close()
    notebook.shell = notebook._start()
    assert isinstance(notebook.error(SMALL), StoreRefused)
    assert not (there / "pwned").exists()
    assert not (tmp_path / "here" / "pwned").exists()


def test_import_that_nobody_vouches_for_becomes_ones_own_by_trust(
    notebook: Notebook, archive: Path, elsewhere: Path
) -> None:
    shutil.copy(elsewhere.parent / "here" / "out.txt", elsewhere)
    import_run(archive, elsewhere / ".nbckpt", None)
    assert make_own(elsewhere / ".nbckpt", load_secret()) > 0
    notebook.shell = notebook._start()
    notebook.run(SMALL)
    assert notebook.decision("small") == "Skip"


def test_store_of_ones_own_takes_no_run_that_nobody_vouches_for(
    archive: Path, elsewhere: Path
) -> None:
    folder = elsewhere / ".nbckpt"
    store = Store(folder, load_secret())
    open_run(store, "mine", RunRecord("mine-1"))
    store.close()
    before = rows(folder)
    with pytest.raises(StoreRefused, match="vouches"):
        import_run(archive, folder, None)
    assert rows(folder) == before
    assert import_run(archive, folder, load_secret()) == (RUN, True)
    assert before.keys() - {"store"} <= rows(folder).keys()


def test_import_again_changes_nothing(archive: Path, elsewhere: Path) -> None:
    folder = elsewhere / ".nbckpt"
    import_run(archive, folder, load_secret())
    before = rows(folder)
    assert import_run(archive, folder, load_secret()) == (RUN, False)
    assert rows(folder) == before


def test_import_into_the_store_that_it_came_from_is_there_already(
    notebook: Notebook, archive: Path
) -> None:
    folder = notebook.session.store.folder
    assert import_run(archive, folder, load_secret()) == (RUN, False)


def test_other_run_of_the_same_id_is_never_replaced(
    notebook: Notebook, archive: Path
) -> None:
    notebook.run("%%step small\nx = 2")
    folder = notebook.session.store.folder
    before = rows(folder)
    with pytest.raises(StoreRefused, match="has another run notebook-1"):
        import_run(archive, folder, load_secret())
    assert rows(folder) == before


def test_import_is_made_current_only_where_there_is_no_other(
    archive: Path, elsewhere: Path
) -> None:
    folder = elsewhere / ".nbckpt"
    store = Store(folder, load_secret())
    open_run(store, "notebook", RunRecord("mine-1", "notebook.ipynb"))
    store.close()
    import_run(archive, folder, load_secret())
    found = Store(folder, load_secret())
    assert Reader(found).current("notebook") == "mine-1"
    found.close()


def test_lease_of_an_import_is_free_and_its_token_goes_on_growing(
    notebook: Notebook, archive: Path, elsewhere: Path
) -> None:
    token = notebook.names.get("no", 1)
    folder = elsewhere / ".nbckpt"
    import_run(archive, folder, load_secret())
    store = Store(folder, load_secret())
    lease = Reader(store).lease(RUN)
    assert lease is not None
    assert lease.released
    hold = Leases(store).hold(RUN)
    assert hold.token > token
    hold.release()
    store.close()


def test_packs_of_an_import_stay_when_what_is_not_needed_goes(
    archive: Path, elsewhere: Path
) -> None:
    folder = elsewhere / ".nbckpt"
    import_run(archive, folder, load_secret())
    store = Store(folder, load_secret())
    assert collect(store).files == 0
    store.close()
    assert list((folder / "packs").glob("*.pack"))


def test_garbage_is_not_collected_in_the_middle_of_an_import(
    archive: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = elsewhere / ".nbckpt"
    found: list[bool] = []

    def look(*_: object) -> int:
        found.append(is_locked(folder / "packs.lock"))
        return 0

    monkeypatch.setattr(garbage, "_remove", look)
    with monkeypatch.context() as patch:
        patch.setattr(transfers, "_bring", look)
        import_run(archive, folder, load_secret())
    store = Store(folder, load_secret())
    assert collect(store).files == 1
    assert found == [True, True]
    assert not is_locked(folder / "packs.lock")
    store.close()


def is_locked(path: Path) -> bool:
    """Tell whether another process than the one that asks holds a lock."""
    code = (
        "import fcntl as f, sys; f.lockf(open(sys.argv[1], 'w'), f.LOCK_EX | f.LOCK_NB)"
    )
    asked = [sys.executable, "-c", code, str(path)]
    said = subprocess.run(asked, check=False, capture_output=True)
    return b"BlockingIOError" in said.stderr


def test_pack_that_another_run_made_travels_too(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.run("%nbckpt start second")
    notebook.run(SMALL)
    notebook.run(BIG)
    store = notebook.session.store
    path = tmp_path / "second.nbckpt"
    export_run(store, "second", path)
    import_run(path, tmp_path / "other", load_secret())
    found = Store(tmp_path / "other", load_secret())
    for record in Reader(found).steps("second").values():
        for name in record.contents.packs:
            inline = found.get_bytes(f"inline/{name}")
            assert inline or (found.folder / "packs" / f"{name}.pack").exists()
    assert [run.run_id for run in Reader(found).runs()] == ["second"]
    found.close()


def test_finished_run_travels_as_it_is(notebook: Notebook, tmp_path: Path) -> None:
    folder = notebook.session.store.folder
    notebook.run("%nbckpt finish")
    store = Store(folder, load_secret())
    path = tmp_path / "done.nbckpt"
    export_run(store, RUN, path)
    history = [key for key, _ in Reader(store).history(RUN)]
    store.close()
    import_run(path, tmp_path / "other", load_secret())
    found = Store(tmp_path / "other", load_secret())
    assert [key for key, _ in Reader(found).history(RUN)] == history
    assert Reader(found).run(RUN).state == "finished"
    assert lines.broken(found, RUN) == ""
    found.close()


def test_kernel_that_holds_its_run_exports_it(
    notebook: Notebook, tmp_path: Path
) -> None:
    path = tmp_path / "of_kernel.nbckpt"
    said = in_notebook(notebook.session, f"export --output {path}")
    assert said.startswith(f"{path}: run {RUN}, ")
    assert notebook.session.is_held
    assert import_run(path, tmp_path / ".nbckpt", load_secret()) == (RUN, True)


def test_run_that_another_process_holds_is_not_exported(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lease = Reader(notebook.session.store).lease(RUN)
    assert lease is not None
    other = replace(lease, holder=replace(lease.holder, pid=os.getppid()))
    store = Store(tmp_path / "other", load_secret())
    store.transact(lambda tx: tx.put(f"lease/{RUN}", other.to_json()))
    monkeypatch.setattr(transfers, "is_held", lambda _: True)
    with pytest.raises(RunHeld, match="is held by"):
        export_run(store, RUN, tmp_path / "run.nbckpt")
    store.close()
    assert list(tmp_path.glob("*.nbckpt")) == []


def test_run_that_goes_on_meanwhile_is_not_exported(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write = transfers.parcels.write

    def meanwhile(*words: Any) -> None:
        write(*words)
        notebook.journal.note("note")

    monkeypatch.setattr(transfers.parcels, "write", meanwhile)
    with pytest.raises(RunHeld, match="went on"):
        export_run(notebook.session.store, RUN, tmp_path / "run.nbckpt")
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == []


def test_damaged_run_is_not_exported(notebook: Notebook, tmp_path: Path) -> None:
    store = notebook.session.store
    for path in (store.folder / "packs").glob("*.pack"):
        path.unlink()
    with pytest.raises(StoreDamaged, match="can't be read"):
        export_run(store, RUN, tmp_path / "run.nbckpt")
    assert not (tmp_path / "run.nbckpt").exists()


def test_full_disk_leaves_no_half_of_an_archive(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(transfers.parcels, "write", full)
    with pytest.raises(OSError, match="No space"):
        export_run(notebook.session.store, RUN, tmp_path / "run.nbckpt")
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == []


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Run the command line in this process; return what it printed."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    shown = capsys.readouterr()
    assert ended.value.code == code, shown.err
    return shown.out + shown.err


def test_command_line_exports_imports_and_says_how_to_go_on(
    notebook: Notebook, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    notebook.session.release()
    path = str(tmp_path / "e.nbckpt")
    assert path in told(capsys, "export", RUN, "--output", path)
    looked = told(capsys, "import", path, "--store", str(tmp_path / "a"))
    assert "nbckpt trust" in looked
    assert "not authenticated" in told(
        capsys, "status", RUN, "--store", str(tmp_path / "a")
    )
    mine = told(capsys, "import", path, "--trust", "--store", str(tmp_path / "b"))
    assert f"nbckpt handover {RUN}" in mine
    again = told(capsys, "import", path, "--trust", "--store", str(tmp_path / "b"))
    assert "already" in again
    broken = tmp_path / "broken.nbckpt"
    broken.write_bytes(b"no archive")
    assert "refused" in told(capsys, "import", str(broken), "--trust", code=2)
    told(capsys, "import", str(tmp_path / "missing"), "--trust", code=2)


def test_checkpoint_of_a_run_names_steps(
    notebook: Notebook, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    notebook.error("%%step bad\nraise ValueError('no')")
    found = json.loads(told(capsys, "export", RUN, "--format", "checkpoint"))
    assert found == {
        "task_id": RUN,
        "schema_version": 1,
        "current_step": 2,
        "total_steps": 3,
        "next_input": {"step": "bad"},
        "completed": ["small", "big"],
        "errors": [{"step": "bad", "error": "ValueError: no", "attempt": 1}],
    }
    path = tmp_path / "c.json"
    told(capsys, "export", RUN, "--format", "checkpoint", "--output", str(path))
    assert json.loads(path.read_text()) == found


def test_checkpoint_of_a_loop_names_items(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.run("import nbckpt")
    body = (
        "%%step loop\nfor n in nbckpt.items(list('abcd'), key=str):\n"
        "    if n == 'c':\n        raise ValueError('no')"
    )
    notebook.error(body)
    found = json.loads(told(capsys, "export", RUN, "--format", "checkpoint"))
    assert list(found) == [
        "task_id",
        "schema_version",
        "current_step",
        "total_steps",
        "next_input",
        "completed",
        "errors",
    ]
    assert found["completed"] == ["a", "b"]
    assert (found["current_step"], found["total_steps"]) == (2, 4)
    assert found["next_input"]["item"] == "c"
    assert [error["item"] for error in found["errors"]] == ["c"]


def test_checkpoint_of_a_complete_run_has_nothing_next(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    del notebook
    found = json.loads(told(capsys, "export", RUN, "--format", "checkpoint"))
    assert found["next_input"] is None
    assert found["current_step"] == found["total_steps"] == 2

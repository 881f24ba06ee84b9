"""``nbckpt run``: kernels that end, die, are interrupted or never start."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pexpect
import psutil
import pytest

from nbckpt import headless, places
from nbckpt.errors import BadNotebook, BadStep, NotFound, RunHeld, StoreDamaged
from nbckpt.headless import document, loop, passes, pinging, progress, twice
from nbckpt.records import (
    Event,
    Lease,
    PlannedStep,
    PlanRecord,
    RunRecord,
    StepState,
)
from nbckpt.runs import pings
from nbckpt.runs.history import Reader
from nbckpt.runs.identity import Wish
from nbckpt.runs.journal import Journal
from nbckpt.runs.leases import Leases
from nbckpt.runs.opening import open_run
from nbckpt.runs.processes import this_process
from nbckpt.source.cells import read_cells
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.finding.opening import changing, looking
from nbckpt.verbs.standing.status import status
from tests.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOAD = "%load_ext nbckpt\nimport os, pathlib, signal, time"
STEP_A = "%%step a\nx = 1\nprint('a ran')"
STEP_C = "%%step c\nz = x + 1\nprint('z is', z)"
DIE_ONCE = (
    "%%step b\nif not os.path.exists('died'):\n"
    "    open('died', 'w').close()\n    os.kill(os.getpid(), signal.SIGKILL)\ny = 2"
)


def a_notebook(folder: Path, *sources: str, **metadata: Any) -> Path:
    """Write a notebook; a source that begins with ``tags:`` names its cell's tags."""
    cells = []
    for number, source in enumerate(sources):
        tags, _, body = source.rpartition("tags:")[2].partition("\n")
        tagged = source.startswith("tags:")
        cells.append(
            {
                "cell_type": "code",
                "id": f"c{number}",
                "metadata": {"tags": tags.split()} if tagged else {},
                "source": body if tagged else source,
                "outputs": [{"output_type": "stream", "name": "stdout", "text": "old"}],
                "execution_count": 9,
            }
        )
    data = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    path = folder / "nb.ipynb"
    path.write_text(json.dumps(data))
    return path


class Said:
    """What a run said, and its exit code."""

    def __init__(self, notebook: Path, **order: Any) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []
        asked = headless.Order(notebook, **order)
        self.watched: list[tuple[Path, str, list[str], int]] = []
        self.code = headless.run(
            asked, self.lines.append, self.warnings.append, self._watch
        )

    @contextmanager
    def _watch(self, store: Path, run: str, tally: progress.Tally) -> Iterator[None]:
        yield
        self.watched.append((store, run, tally.skipped, len(self.lines)))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def warned(self) -> str:
        return "\n".join(self.warnings)


def outputs(path: Path) -> list[Any]:
    return [cell.outputs for cell in nbformat.read(path, 4).cells]


def until(true: Callable[[], Any], seconds: float = 60) -> Any:
    """Return what a condition gives once it holds; fail if it never does."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while not (found := true()):
        assert time.monotonic() < end, "it never came true"
        pause.wait(0.05)
    return found


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended; one that nobody has waited for yet has, too."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def holder(notebook: Path) -> Lease | None:
    with looking(notebook.parent / ".nbckpt") as reader:
        return reader.lease("nb-1")


# the executed copy


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("2.5", 2.5),
        ("[1, 'a']", [1, "a"]),
        ("None", None),
        ("true", True),
        ('{"a": null}', {"a": None}),
        ("2026-11-29", "2026-11-29"),
        ("'3'", "3"),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("[1e999]", "[1e999]"),
        (f"0x{'f' * 5000}", f"0x{'f' * 5000}"),
        ("[" * 9999, "[" * 9999),
        ("", ""),
        ("it's", "it's"),
    ],
)
def test_parameter_is_a_literal_a_json_value_or_its_text(
    text: str, value: object
) -> None:
    assert document.parse_value(text) == value
    scope: dict[str, Any] = {}
    exec(document.parameter_source({"x": text}), scope)  # noqa: S102 - that it is Python
    assert scope["x"] == value


@pytest.mark.parametrize("name", ["1x", "a b", "a;import os", "class", ""])
def test_parameter_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(BadStep, match="no name"):
        document.parameter_source({name: "1"})


@pytest.mark.parametrize(
    ("cells", "place"),
    [
        (["a = 1", "tags:parameters\nx = 0", "b = 2"], 2),
        (["a = 1", "b = 2"], 0),
        (["tags:parameters\nx = 0", "tags:injected-parameters\nx = 7"], 1),
    ],
)
def test_parameters_stand_where_papermill_puts_them(
    tmp_path: Path, cells: list[str], place: int
) -> None:
    found = document.make_copy(a_notebook(tmp_path, *cells), {"x": "5"}).cells
    injected = [
        n for n, c in enumerate(found) if "injected-parameters" in document._tags(c)
    ]
    assert injected == [place]
    assert found[place].source == "# Parameters\nx = 5"
    nbformat.validate(nbformat.v4.new_notebook(cells=found))


def test_copy_begins_without_outputs_and_the_source_stays(tmp_path: Path) -> None:
    notebook = a_notebook(tmp_path, "x = 1")
    before = notebook.read_bytes()
    (cell,) = document.make_copy(notebook, {}).cells
    assert (cell.outputs, cell.execution_count) == ([], None)
    assert notebook.read_bytes() == before


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            ["Cell In[2], line 3\n      2 a\n\x1b[31m----> 3\x1b[0m f(x)\n"],
            "line 3: f(x)",
        ),
        (["--> 12   return 1/0", "     13"], "line 12: return 1/0"),
        (["StopForHuman: step b --> 3"], ""),
        ([], ""),
    ],
)
def test_line_of_the_cell_is_read_from_its_traceback(
    lines: list[str], told: str
) -> None:
    outputs = [{"output_type": "stream"}, {"output_type": "error", "traceback": lines}]
    assert document.failed_line(outputs) == told


def test_error_of_a_notebook_steers_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    loop._to_stderr("nbckpt: step a failed: \x1b]0;title\x07\n  at line 3")
    assert (
        capsys.readouterr().err
        == "nbckpt: step a failed: \ufffd]0;title\ufffd\n  at line 3\n"
    )


def test_notebook_without_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadNotebook, match="no code"):
        document.make_copy(a_notebook(tmp_path, "  \n"), {})


def test_metadata_may_be_null(tmp_path: Path) -> None:
    path = a_notebook(tmp_path, "x = 1", kernelspec=None)
    path.write_text(
        path.read_text().replace('"metadata": {}', '"metadata": {"tags": null}')
    )
    whole = document.make_copy(path, {"y": "2"})
    assert [cell.source for cell in whole.cells] == ["# Parameters\ny = 2", "x = 1"]
    assert [cell.tags for cell in read_cells(path)] == [()]
    assert loop.kernel_name(whole, print) == "python3"


def test_half_of_a_pair_of_surrogates_is_saved_as_it_was(tmp_path: Path) -> None:
    path = a_notebook(tmp_path, "x = 1  # HALF")
    path.write_text(path.read_text().replace("HALF", r"\ud83d"))
    whole = document.make_copy(path, {})
    document.save(whole, tmp_path / "out.ipynb")
    assert document.make_copy(tmp_path / "out.ipynb", {}) == whole


def test_notebook_that_can_not_be_saved_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.ipynb"
    whole = document.make_copy(a_notebook(tmp_path, "x = 1"), {})
    document.save(whole, target)
    before = target.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    whole.cells[0].source = "x = 2"
    with pytest.raises(OSError, match="No space"):
        document.save(whole, target)
    assert target.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["nb.ipynb", "out.ipynb"]


# lines of progress


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            Event(0, "skipped", "a", "verified", 12.3),
            "skipped (verified, saved 12.3 s)",
        ),
        (
            Event(0, "completed", "a", "input 'x' changed", 1.2),
            "ran 1.2 s (input 'x' changed)",
        ),
        (Event(0, "failed", "a", "ValueError: no\nmore"), "failed ValueError: no"),
        (
            Event(0, "interrupted", "a", "KeyboardInterrupt: "),
            "interrupted KeyboardInterrupt",
        ),
        (Event(0, "started", "a"), ""),
        (Event(0, "plan"), ""),
    ],
)
def test_each_end_of_a_step_has_its_line(event: Event, text: str) -> None:
    assert progress.describe(event) == text


def test_progress_tells_what_is_new_and_only_once(tmp_path: Path) -> None:
    store = Store(tmp_path / ".nbckpt", load_secret())
    run = open_run(store, "nb", RunRecord("", ""))
    journal = Journal(store, run.run_id, 1, lambda _: None)
    journal.write_plan(
        PlanRecord((PlannedStep(1, "a", ""), PlannedStep(2, "long", "")))
    )
    journal.skip("a", "verified", 5.0)
    lines: list[str] = []
    told = progress.Progress(Reader(store), run.run_id, lines.append)
    journal.skip("a", "verified", 2.0)
    journal.start("long", "no record", writes=(), durable=False)
    journal.fail("long", StepState.FAILED, "ValueError: no")
    told.tell()
    told.tell()
    store.close()
    assert lines == [
        "[1/2] a    skipped (verified, saved 2.0 s)",
        "[2/2] long failed ValueError: no",
    ]
    assert (told.tally.skipped, told.tally.ran, told.tally.saved) == (["a"], [], 2.0)


# an order that is refused before anything starts


def refused(notebook: Path, **order: Any) -> None:
    """Run what must be refused; nothing may come of it."""
    with pytest.raises(BadStep):
        Said(notebook, **order)
    assert sorted(p.name for p in notebook.parent.iterdir()) == ["nb.ipynb"]


def test_output_that_is_the_notebook_itself_is_refused(tmp_path: Path) -> None:
    notebook = a_notebook(tmp_path, STEP_A)
    refused(notebook, output=str(notebook))


def test_output_in_no_folder_is_refused(tmp_path: Path) -> None:
    refused(a_notebook(tmp_path, STEP_A), output=str(tmp_path / "no" / "out.ipynb"))


@pytest.mark.parametrize(
    "bad", ["%%step a --nope\nx = 1", "%%step x\n1", "%%step ../up\n1"]
)
def test_wrong_step_line_is_refused_before_anything_runs(
    tmp_path: Path, bad: str
) -> None:
    refused(a_notebook(tmp_path, "%%step x\nx = 1", bad))


def test_wrong_run_id_is_refused(tmp_path: Path) -> None:
    refused(a_notebook(tmp_path, STEP_A), run_id="../up")


def test_run_id_that_is_not_the_notebooks_own_is_refused(tmp_path: Path) -> None:
    refused(a_notebook(tmp_path, "%nbckpt start mine", STEP_A), run_id="other")


def test_notebooks_own_start_line_tells_run_version_and_store(tmp_path: Path) -> None:
    line = "%nbckpt start mine --version 3 --overlap replace --store kept --fresh"
    order = loop._checked(headless.Order(a_notebook(tmp_path, line)))
    assert Wish("mine", "3", "replace", fresh=True, store="kept") == Wish(
        order.run_id, order.version, order.overlap, fresh=order.fresh, store="kept"
    )
    assert order.folder == tmp_path / "kept"


def test_kernel_is_told_a_store_that_is_its_notebooks_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBCKPT_STORE", "of the user")
    order = headless.Order(tmp_path / "nb.ipynb", store=tmp_path / "theirs")
    nothing: Any = None
    through = loop._Loop(order, RunRecord("nb-1"), nothing, nothing, "python3")
    told = through._environment()
    assert told["NBCKPT_STORE"] == "of the user"
    assert told[places.STORE] == str(tmp_path / "theirs")
    assert told[places.STORE_OF] == str(tmp_path / "nb.ipynb")


def test_wrong_step_line_may_stand_where_an_error_is_expected(tmp_path: Path) -> None:
    notebook = a_notebook(tmp_path, "tags:raises-exception\n%%step a --nope\n1")
    assert loop._checked(headless.Order(notebook)).notebook == notebook


def test_run_held_by_a_living_process_is_refused_before_a_kernel_starts(
    tmp_path: Path,
) -> None:
    notebook = a_notebook(tmp_path, STEP_A)
    store = Store(tmp_path / ".nbckpt", load_secret())
    run = open_run(store, "nb", RunRecord("", ""))
    lease = Lease(1, this_process(), beat_at=time.time()).to_json()
    store.transact(lambda transaction: transaction.put(f"lease/{run.run_id}", lease))
    store.close()
    with pytest.raises(RunHeld, match=f"process {os.getpid()}"):
        Said(notebook)
    assert not (tmp_path / "nb.out.ipynb").exists()


def test_kernel_that_is_not_installed_is_replaced_aloud(tmp_path: Path) -> None:
    spec = {"name": "conda-env-x", "language": "python", "display_name": "x"}
    found = document.make_copy(a_notebook(tmp_path, "1", kernelspec=spec), {})
    warnings: list[str] = []
    assert loop.kernel_name(found, warnings.append) == "python3"
    assert "conda-env-x" in warnings[0]


def test_notebook_of_another_language_is_refused(tmp_path: Path) -> None:
    spec = {"name": "ir", "language": "R", "display_name": "R"}
    found = document.make_copy(a_notebook(tmp_path, "1", kernelspec=spec), {})
    with pytest.raises(NotFound, match="'ir'"):
        loop.kernel_name(found, lambda _: None)


# kernels


def test_second_run_skips_all_shows_the_same_and_leaves_the_source(
    tmp_path: Path,
) -> None:
    cells = [LOAD, "tags:parameters\nn = 1", STEP_A, STEP_C, "print(n)"]
    notebook = a_notebook(tmp_path, *cells)
    before, target = notebook.read_bytes(), tmp_path / "nb.out.ipynb"
    cold = Said(notebook, parameters={"n": "5"})
    first = outputs(target)
    warm = Said(notebook, parameters={"n": "5"})
    assert (cold.code, warm.code) == (0, 0)
    assert outputs(target) == first
    assert first[-1][0].text == "5\n"
    assert "[2/2] c ran" in cold.text
    assert "skipped   2: a, c" in warm.text
    assert warm.watched == [(tmp_path / ".nbckpt", "nb-1", ["a", "c"], 3)]
    assert warm.lines[3] == "run nb-1: completed"
    assert "nbckpt run" in warm.lines[-1]
    assert "--run-id nb-1" in warm.lines[-1]
    assert notebook.read_bytes() == before
    assert warm.warnings == []


def test_outputs_that_arrive_late_are_kept_and_the_kernel_ends_by_itself(
    tmp_path: Path,
) -> None:
    late = (
        "import sys\nsys.stdout.flush_timeout = sys.stderr.flush_timeout = 0.1\n"
        "thread = get_ipython().kernel.iopub_thread\n"
        "thread.schedule(lambda: time.sleep(6))\ndisplay('late')"
    )
    leave = (
        "import atexit\ndef leave():\n    time.sleep(3)\n"
        "    pathlib.Path('left').touch()\natexit.register(leave)"
    )
    assert Said(a_notebook(tmp_path, LOAD, late, leave)).code == 0
    assert outputs(tmp_path / "nb.out.ipynb")[1][0].data["text/plain"] == "'late'"
    assert (tmp_path / "left").exists()


def test_dead_kernel_is_followed_by_one_that_resumes_the_same_new_run(
    tmp_path: Path,
) -> None:
    """``--fresh`` holds for the first kernel alone: the second one goes on."""
    notebook = a_notebook(tmp_path, LOAD, STEP_A, DIE_ONCE, STEP_C)
    store = Store(tmp_path / ".nbckpt", load_secret())
    open_run(store, "nb", RunRecord("", ""))
    store.close()
    found = Said(notebook, fresh=True)
    assert found.code == 0
    assert "the kernel died in step b" in found.warned
    assert "[1/3] a skipped" in found.text
    with looking(tmp_path / ".nbckpt") as reader:
        assert [run.run_id for run in reader.runs()] == ["nb-1", "nb-2"]
        events = [event for _, event in reader.history("nb-2")]
    bodies = [event.step for event in events if event.kind == "started"]
    assert bodies == ["a", "b", "b", "c"]


def test_step_that_kills_two_kernels_stops_the_run_and_is_named(tmp_path: Path) -> None:
    die = "%%step b\nos.kill(os.getpid(), signal.SIGKILL)"
    found = Said(a_notebook(tmp_path, LOAD, STEP_A, die, STEP_C))
    assert found.code == 1
    assert "step b killed its kernel 2 times" in found.warned
    assert "c ran" not in found.text


def test_plain_cell_that_kills_two_kernels_is_named_by_its_number(
    tmp_path: Path,
) -> None:
    found = Said(a_notebook(tmp_path, LOAD, "os.kill(os.getpid(), signal.SIGKILL)"))
    assert found.code == 1
    assert "cell 2 killed its kernel 2 times" in found.warned


def test_failed_step_stops_with_1_and_one_that_must_not_be_redone_with_3(
    tmp_path: Path,
) -> None:
    fail = "%%step b --stop-on-redo\n1 / 0"
    notebook = a_notebook(tmp_path, LOAD, STEP_A, fail, STEP_C)
    failed = Said(notebook)
    assert failed.code == 1
    assert "step b failed: ZeroDivisionError: division by zero" in failed.warned
    found = outputs(tmp_path / "nb.out.ipynb")
    assert found[2][-1].ename == "ZeroDivisionError"
    assert found[3] == []
    stopped = Said(notebook)
    assert stopped.code == 3
    assert "step b stopped for a human: step b: it was attempted" in stopped.warned
    assert "run nb-1: stopped for a human" in stopped.text


def test_kernel_whose_port_was_taken_meanwhile_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def start(through: passes.Pass) -> passes.End:
        asked.append(through._environment["NBCKPT_OVERLAP"])
        through._errors.write(b"ZMQError: Address already in use")
        through._errors.seek(0)
        if len(asked) == 1:
            return through._unstarted(RuntimeError("Kernel didn't respond"))
        return passes.End("completed", 0)

    monkeypatch.setattr(passes.Pass, "run", start)
    found = Said(a_notebook(tmp_path, LOAD), overlap="replace")
    assert found.code == 0
    assert "the kernel died in its start; another one resumes" in found.warned
    assert asked == ["replace", "replace"]


def test_kernel_that_does_not_start_is_told_with_its_own_words(tmp_path: Path) -> None:
    folder = Path(os.environ["JUPYTER_DATA_DIR"]) / "kernels" / "broken"
    folder.mkdir(parents=True)
    words = "import sys; sys.exit('no such library')"
    spec = {
        "argv": [sys.executable, "-c", words],
        "display_name": "b",
        "language": "python",
    }
    (folder / "kernel.json").write_text(json.dumps(spec))
    found = Said(
        a_notebook(tmp_path, STEP_A, kernelspec={"name": "broken", "display_name": "b"})
    )
    assert found.code == 1
    assert "did not start" in found.warned
    assert "no such library" in found.warned


def test_long_cell_is_saved_on_a_timer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cell ends only once the saved notebook holds what it printed before."""
    monkeypatch.setattr(passes, "SAVE_SECONDS", 0.1)
    body = (
        "print('half', 'way', flush=True)\nend = time.monotonic() + 60\n"
        "out = pathlib.Path('nb.out.ipynb')\n"
        "while not (out.exists() and 'half way' in out.read_text()):\n"
        "    assert time.monotonic() < end\n    time.sleep(0.05)"
    )
    assert Said(a_notebook(tmp_path, LOAD, body)).code == 0


def test_full_disk_does_not_end_the_run_but_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(loop, "save", full)
    found = Said(a_notebook(tmp_path, LOAD, STEP_A))
    assert found.code == 1
    assert "could not be saved" in found.warned
    assert "[1/1] a ran" in found.text


# signals: a runner of its own process

SLOW = "%%step slow\nprint('in slow', flush=True)\nopen('slow', 'w').close()\ntime.sleep(300)"


def a_runner(notebook: Path) -> subprocess.Popen[str]:
    """Start a runner; return when its notebook is in the slow step."""
    code = f"from nbckpt.cli import main; main(['run', {str(notebook)!r}])"
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, "-c", code], **pipes)
    until((notebook.parent / "slow").exists)
    return child


def in_terminal(notebook: Path) -> pexpect.spawn[str]:
    """Start a runner in a terminal of 70 columns, as a person does."""
    code = f"from nbckpt.cli import main; main(['run', {notebook.name!r}])"
    env = {**os.environ, "TERM": "xterm-256color", "CI": "", "NO_COLOR": ""}
    return pexpect.spawn(
        sys.executable, ["-c", code], cwd=str(notebook.parent), env=env,
        dimensions=(24, 70), encoding="utf-8", timeout=60,
    )  # fmt: skip


def seen(child: pexpect.spawn[str], until: str) -> str:
    """Return what a terminal is told up to a text, without colours and moves."""
    child.expect_exact(until)
    return re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", f"{child.before}{until}")


def left(child: pexpect.spawn[str]) -> tuple[str, int | None]:
    """Return what a terminal is told to the end, and the exit code."""
    child.expect(pexpect.EOF)
    child.close()
    return child.before or "", child.exitstatus


def test_ctrl_c_in_a_terminal_interrupts_the_cell_and_gives_the_terminal_back(
    tmp_path: Path,
) -> None:
    notebook = a_notebook(tmp_path, LOAD, STEP_A, SLOW)
    child = in_terminal(notebook)
    shown = seen(child, "slow  running for ")
    assert "✓ [1/2] a    ran " in shown
    assert shown.endswith("▸ slow  running for ")
    assert re.search("1 of 2 steps done, elapsed .* ━━━━", shown)
    lease = holder(notebook)
    assert lease is not None
    child.sendintr()
    end, code = left(child)
    assert code == 1
    told = "interrupting the cell; once more ends its kernel at once"
    assert end.count(told) == 1
    assert "slow interrupted KeyboardInterrupt" in end
    assert end.index(told) < end.index("interrupted in step slow")
    # Whatever was drawn over is gone, and the cursor is back.
    assert "running for" not in end[end.index("slow interrupted") :]
    assert end.rfind("\x1b[?25h") >= end.rfind("\x1b[?25l")
    assert is_gone(lease.holder.pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_interrupts_the_cell_saves_and_takes_the_kernel_along(
    number: signal.Signals, tmp_path: Path
) -> None:
    notebook = a_notebook(tmp_path, LOAD, STEP_A, SLOW)
    child = a_runner(notebook)
    lease = holder(notebook)
    assert lease is not None
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 1
    told = "interrupting the cell; once more ends its kernel at once"
    assert err.count(told) == 1
    assert err.index(told) < err.index("interrupted in step slow")
    assert "slow interrupted KeyboardInterrupt" in out
    assert is_gone(lease.holder.pid)
    assert outputs(tmp_path / "nb.out.ipynb")[2][0].text == "in slow\n"


def test_closed_terminal_interrupts_the_cell_and_saves(tmp_path: Path) -> None:
    notebook = a_notebook(tmp_path, LOAD, STEP_A, SLOW)
    child = in_terminal(notebook)
    seen(child, "slow  running for ")
    lease = holder(notebook)
    assert lease is not None
    os.close(child.child_fd)
    until(lambda: is_gone(lease.holder.pid))
    child.ptyproc.wait()
    assert child.ptyproc.exitstatus == 1
    shown = outputs(tmp_path / "nb.out.ipynb")[2]
    assert [o.get("ename") for o in shown] == [None, "KeyboardInterrupt"], shown
    released = holder(notebook)
    assert released is None or released.released


def test_hangup_that_is_ignored_stays_ignored() -> None:
    def stop() -> None:
        raise AssertionError

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with passes.stopped_by_signals(stop):
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_kernel_does_not_outlive_a_killed_runner_and_the_run_can_be_taken(
    tmp_path: Path,
) -> None:
    notebook = a_notebook(tmp_path, LOAD, STEP_A, SLOW)
    child = a_runner(notebook)
    lease = holder(notebook)
    assert lease is not None
    child.kill()
    child.communicate(timeout=60)
    until(lambda: is_gone(lease.holder.pid))
    short = notebook.read_text().replace("time.sleep(300)", "pass")
    notebook.write_text(short)
    terminal = in_terminal(notebook)
    assert "↷ [1/2] a    skipped" in seen(terminal, "skipped")
    end, code = left(terminal)
    assert code == 0, end
    assert "run nb-1: completed" in end


# cold and warm


def test_notebook_that_restores_everything_passes_twice(tmp_path: Path) -> None:
    notebook = a_notebook(tmp_path, LOAD, STEP_A, STEP_C, "%%step e --always\nq = 1")
    assert twice.cold_and_warm(notebook, tmp_path / "store") == []
    assert not (tmp_path / ".nbckpt").exists()


def test_step_that_runs_again_and_output_that_differs_are_found(tmp_path: Path) -> None:
    cells = [LOAD, "n = os.getpid()", "%%step a\nx = n", "print(os.getpid())"]
    found = twice.cold_and_warm(a_notebook(tmp_path, *cells), tmp_path / "store")
    assert found[0].startswith("step a ran again in the warm pass: input 'n' changed")
    assert found[1].startswith("cell 4: its output differs")


def test_output_that_nbval_ignores_may_differ(tmp_path: Path) -> None:
    cells = [LOAD, "# NBVAL_IGNORE_OUTPUT\nprint(os.getpid())", STEP_A]
    tagged = "tags:nbval-ignore-output\nprint(os.getpid())"
    notebook = a_notebook(tmp_path, *cells, tagged)
    assert twice.cold_and_warm(notebook, tmp_path / "store") == []


def test_pass_that_fails_is_told_with_its_cell(tmp_path: Path) -> None:
    found = twice.cold_and_warm(a_notebook(tmp_path, LOAD, "1 / 0"), tmp_path / "store")
    assert len(found) == 1
    assert "the cold pass failed in cell 2: ZeroDivisionError" in found[0]


# placement, and starts that come twice


def test_placement_is_recorded_before_the_kernel_starts_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = a_notebook(tmp_path, LOAD, STEP_A, "%%step f\n1 / 0")
    seen = []

    def start(_: passes.Pass) -> passes.End:
        with looking(tmp_path / ".nbckpt") as reader:
            seen.append(reader.placement("nb-1"))
        return passes.End("unstarted")

    monkeypatch.setattr(passes.Pass, "run", start)
    Said(notebook)
    assert seen[0].notebook == str(notebook)
    assert seen[0].folder == str(Path.cwd())
    assert seen[0].command == f"nbckpt run {notebook} --run-id nb-1"
    with changing(tmp_path / ".nbckpt") as store:
        plan = PlanRecord((PlannedStep(1, "a", ""), PlannedStep(2, "f", "")))
        store.transact(lambda tx: tx.put("plan/nb-1", plan.to_json()))
    Said(notebook)
    with looking(tmp_path / ".nbckpt") as reader:
        told = status(reader, reader.run("nb-1"))["placement"]
    assert told is not None
    assert told["from_step"] == "a"


def test_kernel_after_one_that_its_heir_killed_does_not_take_the_run_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def die(through: passes.Pass) -> passes.End:
        asked.append(through._environment["NBCKPT_OVERLAP"])
        return passes.End("died", 1)

    monkeypatch.setattr(passes.Pass, "run", die)
    Said(a_notebook(tmp_path, LOAD, STEP_A), overlap="replace")
    assert asked == ["replace", "skip"]


# pings of a URL


@pytest.fixture
def service() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


def test_url_is_told_the_start_and_the_end(tmp_path: Path, service: Receiver) -> None:
    notebook = a_notebook(tmp_path, LOAD, STEP_A)
    said = Said(notebook, ping=f"{service.base}/u/")
    assert said.code == 0
    assert service.asked == ["POST /u/start", "POST /u"]
    assert service.bodies[1] == "run nb-1: completed"


def test_url_is_told_where_it_failed_and_nothing_of_the_error(
    tmp_path: Path, service: Receiver
) -> None:
    """The text of an error can hold anything, and goes to somebody else's service."""
    wrong = "%%step b\nraise ValueError('password 4711')"
    said = Said(a_notebook(tmp_path, LOAD, STEP_A, wrong), ping=service.base)
    assert said.code == 1
    assert service.asked == ["POST /start", "POST /fail"]
    assert service.bodies[1] == "run nb-1: failed in step b ValueError"


def test_pings_that_fail_are_recorded_and_stop_nothing(
    tmp_path: Path, service: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pings, "PAUSE", 0.01)
    service.statuses += [500] * 10
    said = Said(a_notebook(tmp_path, LOAD, STEP_A), ping=service.base)
    assert said.code == 0
    assert said.warnings == [
        "nbckpt: pings fail: Internal Server Error; the run goes on"
    ]
    with looking(tmp_path / ".nbckpt") as reader:
        lines = [event for _, event in reader.history("nb-1")]
    assert [e.reason for e in lines if e.kind == "pings fail"] == [
        "Internal Server Error"
    ]


def test_url_that_can_not_be_pinged_is_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    refused(a_notebook(tmp_path, LOAD, STEP_A), ping="localhost/u")


@pytest.fixture
def pinged_store(tmp_path: Path) -> Iterator[Store]:
    found = Store(tmp_path / ".nbckpt", load_secret())
    open_run(found, "nb", RunRecord("", ""))
    yield found
    found.close()


@pytest.mark.parametrize(("code", "ends"), [(0, ["/"]), (1, ["/fail"]), (4, [])])
def test_end_is_told_by_the_exit_code_and_not_for_a_run_that_another_has(
    pinged_store: Store, service: Receiver, code: int, ends: list[str]
) -> None:
    with pinging.pinged(service.base, pinged_store, "nb-1", print) as tell:
        tell(code, "")
    assert service.asked == ["POST /start", *(f"POST {end}" for end in ends)]


def test_end_that_nobody_told_of_is_a_failure(
    pinged_store: Store, service: Receiver
) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        pinging.pinged(service.base, pinged_store, "nb-1", print),
    ):
        raise KeyboardInterrupt
    assert service.asked == ["POST /start", "POST /fail"]


def test_beat_is_the_leases_and_none_of_a_store_that_can_not_be_read(
    pinged_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat = pinging._beat_of(pinged_store, "nb-1")
    assert beat() is None
    hold = Leases(pinged_store).hold("nb-1")
    first = beat()
    pinged_store.transact(hold._beat)
    assert beat() not in {first, None}
    hold.release()

    def fail(*_: object) -> None:
        raise StoreDamaged("broken")

    monkeypatch.setattr(Store, "get", fail)
    assert beat() is None

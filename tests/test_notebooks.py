"""The notebooks of the discipline, each killed in the middle and resumed."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest

from nbckpt.runs.history import Reader
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from collections.abc import Callable

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
COMMAND = [sys.executable, "-c", "from nbckpt.cli import main; main()"]
TRIES = 5
"""How often a kill may come too late before a test gives up."""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """Return a folder with the notebooks and what they import."""
    for pattern in ("*.ipynb", "payments.py"):
        for path in NOTEBOOKS.glob(pattern):
            shutil.copy(path, tmp_path)
    return tmp_path


def nbckpt(desk: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Return what a command says."""
    return subprocess.run(
        [*COMMAND, *words], cwd=desk, text=True, capture_output=True, check=False
    )


def kernel_of(desk: Path, name: str) -> int:
    """Return the process that holds a notebook's run, or 0."""
    if not (desk / ".nbckpt/records/cache.db").exists():
        return 0
    store = Store(desk / ".nbckpt", load_secret())
    try:
        lease = Reader(store).lease(f"{name}-1")
    finally:
        store.close()
    return 0 if lease is None or lease.released else lease.holder.pid


def run_and_kill(
    desk: Path, name: str, is_middle: Callable[[], bool]
) -> tuple[int, str]:
    """Run a notebook whose kernel is killed once the condition holds."""
    for _ in range(TRIES):
        run = subprocess.Popen(
            [*COMMAND, "run", f"{name}.ipynb"],
            cwd=desk,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        while not is_middle():
            with suppress(subprocess.TimeoutExpired):
                run.wait(timeout=0.005)
                break
        pid = kernel_of(desk, name)
        if run.poll() is None and pid:
            os.kill(pid, signal.SIGKILL)
        out, _ = run.communicate(timeout=240)
        if "the kernel died in" in out:
            return run.returncode, out
        for made in (".nbckpt", "out"):
            shutil.rmtree(desk / made, ignore_errors=True)
    pytest.fail(f"no kill of {name} came in the middle")


def outputs(desk: Path, name: str) -> str:
    """Return all that the executed notebook shows."""
    cells = nbformat.read(desk / f"{name}.out.ipynb", as_version=4).cells
    shown = [output for cell in cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") for output in shown)


def test_refactoring_goes_on_at_the_file_in_flight(desk: Path) -> None:
    folder = desk / "out/refactor"
    first: dict[Path, int] = {}

    def is_middle() -> bool:
        first.clear()
        files = sorted(folder.glob("*.py"))
        moved = [path for path in files if "lib.text" in path.read_text("utf-8")]
        first.update({path: path.stat().st_ino for path in moved[:10]})
        return 60 < len(moved) < 180

    code, out = run_and_kill(desk, "refactor_200_files", is_middle)
    assert code == 0, out
    assert "died in step rewrite" in out
    # Each is moved to its place when it is rewritten: it would be another file.
    assert {path: path.stat().st_ino for path in first} == first
    assert "200 files compile, 0 have the old import" in outputs(
        desk, "refactor_200_files"
    )


def rows(path: Path, query: str) -> list[tuple[int, ...]]:
    """Return the answer of a database that may not be there yet."""
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
            return base.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []


def count(path: Path, query: str) -> int:
    """Return one number of a database; 0 if it is not there yet."""
    found = rows(path, query)
    return found[0][0] if found else 0


ORDERS = Counter((f"customer-{n * 7 % 90}", 1000 + 13 * n % 4000) for n in range(500))


def test_each_order_is_charged_once_over_a_kill_and_all_faults(desk: Path) -> None:
    ledger = desk / "out/payments.sqlite"

    def is_middle() -> bool:
        return 100 < count(ledger, "SELECT count(*) FROM charge") < 400

    code, out = run_and_kill(desk, "api_batch", is_middle)
    assert code == 0, out
    assert "died in step charge" in out
    assert Counter(rows(ledger, "SELECT customer, cents FROM charge")) == ORDERS
    met = {fault for (fault,) in rows(ledger, "SELECT DISTINCT fault FROM try")}
    assert met == {"", "busy", "down", "late", "silent", "hung"}
    assert "500 receipts, 500 different" in outputs(desk, "api_batch")
    # The service hides what is sent again; each thread had one in flight at the kill.
    again = "SELECT key FROM try GROUP BY key HAVING max(fault) = '' AND count(*) > 1"
    assert len(rows(ledger, again)) <= 4


def test_service_would_charge_twice_without_the_key(desk: Path) -> None:
    """Negative control: what counts the charges above can find too many."""
    path = desk / "api_batch.ipynb"
    source = path.read_text("utf-8").replace("import payments", "import payments, uuid")
    source = source.replace("(address, key,", "(address, uuid.uuid4().hex,")
    source = source.replace("counted == len(orders)", "True")
    path.write_text(source.replace("range(500)", "range(60)"), "utf-8")
    nbckpt(desk, "run", "api_batch.ipynb")
    charged = rows(desk / "out/payments.sqlite", "SELECT customer, cents FROM charge")
    assert any(times > 1 for times in Counter(charged).values())


def is_split(desk: Path) -> bool:
    """Tell whether some of the customers have their split names."""
    query = "SELECT count(*) FROM customer WHERE first IS NOT NULL"
    return 500 < count(desk / "out/shop.sqlite", query) < 4500


def is_told(desk: Path) -> bool:
    """Tell whether the reader was told of some of the batches."""
    return 3 < count(desk / "out/reader.sqlite", "SELECT count(*) FROM told") < 17


@pytest.mark.parametrize(
    ("step", "is_middle"), [("split", is_split), ("announce", is_told)]
)
def test_migration_is_whole_and_told_once(
    desk: Path, step: str, is_middle: Callable[[Path], bool]
) -> None:
    code, out = run_and_kill(desk, "migration", lambda: is_middle(desk))
    assert code == 0, out
    assert f"died in step {step}" in out
    query = "SELECT batch, count(*), sum(rows) FROM told GROUP BY 1"
    told = rows(desk / "out/reader.sqlite", query)
    assert told == [(batch, 1, 250) for batch in range(0, 5000, 250)]
    assert "0 customers without a split name" in outputs(desk, "migration")


def attempts_of(desk: Path, name: str) -> dict[str, tuple[int, str]]:
    """Return how often each step of a notebook was attempted, and how it stands."""
    if not (desk / ".nbckpt/records/cache.db").exists():
        return {}
    store = Store(desk / ".nbckpt", load_secret())
    found = Reader(store).attempts(f"{name}-1")
    store.close()
    return {step: (one.attempt, str(one.state)) for step, one in found.items()}


def test_night_that_is_started_twice_runs_once(desk: Path) -> None:
    starts = [
        subprocess.Popen(
            [*COMMAND, "run", "nightly.ipynb", "--output", f"{number}.ipynb"],
            cwd=desk,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for number in range(2)
    ]
    told = [start.communicate(timeout=240)[0] for start in starts]
    codes = sorted(start.returncode for start in starts)
    assert codes in ([0, 0], [0, 4]), told
    tried = {step: often for step, (often, _) in attempts_of(desk, "nightly").items()}
    assert tried == {"fetch": 1, "totals": 1, "report": 1}


def test_night_of_another_version_stops_for_a_person(desk: Path) -> None:
    """The first one is killed in its report, a pipe that nobody reads, and goes on."""
    report = desk / "out/nightly/report.txt"
    report.parent.mkdir(parents=True)
    os.mkfifo(report)

    def is_middle() -> bool:
        runs = attempts_of(desk, "nightly").get("report") == (1, "running")
        if runs:
            report.unlink()
        return runs

    code, out = run_and_kill(desk, "nightly", is_middle)
    assert (code, "died in step report" in out) == (0, True), out
    tried = {step: often for step, (often, _) in attempts_of(desk, "nightly").items()}
    assert tried == {"fetch": 1, "totals": 1, "report": 2}
    assert report.read_text("utf-8").startswith("total ")
    path = desk / "nightly.ipynb"
    path.write_text(
        path.read_text("utf-8").replace("--version 3", "--version 4"), "utf-8"
    )
    stopped = nbckpt(desk, "run", "nightly.ipynb")
    assert stopped.returncode == 3
    assert "version" in stopped.stderr


def without_answer(desk: Path) -> None:
    """Take the answer that is given in advance out of the notebook."""
    path = desk / "approval.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [c for c in notebook.cells if "%nbckpt answer" not in c.source]
    nbformat.write(notebook, path)


def letters(desk: Path) -> list[str]:
    """Return who has a letter in the mailbox."""
    lines = (desk / "out/mailbox.txt").read_text("utf-8").splitlines()
    return [line.partition(":")[0] for line in lines]


def test_approval_waits_is_answered_and_delivers_once(desk: Path) -> None:
    without_answer(desk)
    waiting = nbckpt(desk, "run", "approval.ipynb")
    assert waiting.returncode == 3, waiting.stderr
    assert "nbckpt answer" in waiting.stderr
    assert not (desk / "out").exists()
    assert nbckpt(desk, "answer", "approval-1", "send", "yes").returncode == 0
    for _ in range(2):
        done = nbckpt(desk, "run", "approval.ipynb")
        assert done.returncode == 0, done.stderr
        assert letters(desk) == ["ada", "grace", "edsger"]


def in_flight(desk: Path) -> str:
    """Return the key of the letter that is being delivered, once there is one."""
    if not (desk / ".nbckpt/records/cache.db").exists():
        return ""
    store = Store(desk / ".nbckpt", load_secret())
    found = Reader(store).effects("approval-1")
    store.close()
    return next((one.key for one in found if one.state == "intent"), "")


def test_letter_in_flight_at_a_kill_is_left_to_a_person(desk: Path) -> None:
    """The mailbox is a pipe that nobody reads: the delivery of the first letter hangs."""
    mailbox = desk / "out/mailbox.txt"
    mailbox.parent.mkdir()
    os.mkfifo(mailbox)
    code, out = run_and_kill(desk, "approval", lambda: bool(in_flight(desk)))
    assert (code, "died in step send" in out) == (3, True), out
    key = in_flight(desk)
    assert "nbckpt resolve approval-1" in out
    mailbox.unlink()
    again = nbckpt(desk, "run", "approval.ipynb")
    assert (again.returncode, mailbox.exists()) == (3, False), again.stderr
    said = nbckpt(desk, "resolve", "approval-1", key, "--not-done", "--why", "no file")
    assert said.returncode == 0, said.stderr
    done = nbckpt(desk, "run", "approval.ipynb")
    assert done.returncode == 0, done.stderr
    assert letters(desk) == ["ada", "grace", "edsger"]
    audit = nbckpt(desk, "audit", "approval-1", "--verify").stdout
    for word in ("given", "asked", "answered", "resolved", "no file"):
        assert word in audit

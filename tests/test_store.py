"""The store: all or nothing, nothing unsealed believed, nothing foreign run or written."""

from __future__ import annotations

import os
import pickle
import signal
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt import places, records
from nbckpt.errors import StoreDamaged, StoreError, StoreFull, StoreRefused
from nbckpt.store import Store
from nbckpt.store.database import StrictDisk, translated
from nbckpt.store.interrupts import waiting
from nbckpt.store.writer import Reply
from nbckpt.trust import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nbckpt.store import Transaction

MINE, OTHER = Secret(b"m" * 32), Secret(b"o" * 32)


@dataclass
class Desk:
    """A folder, and stores that are closed in the end."""

    folder: Path

    def __post_init__(self) -> None:
        self.opened: list[Store] = []

    def open(self, secret: Secret = MINE) -> Store:
        store = Store(self.folder, secret)
        self.opened.append(store)
        return store

    @property
    def database(self) -> Path:
        return self.folder / "records" / "cache.db"

    def filled(self) -> None:
        store = self.open()
        put(store, "k", 1)
        store.close()

    def sql(self, statement: str, *values: object) -> None:
        connection = sqlite3.connect(self.database)
        connection.execute(statement, values)
        connection.commit()
        connection.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "store")
    yield desk
    for store in desk.opened:
        store.close()


def put(store: Store, key: str, value: Any) -> None:
    store.transact(lambda tx: tx.put(key, value))


@pytest.mark.parametrize(
    "value",
    [0, "", "grün", [1, None], {"a": {"b": [1.5]}}, "x" * 3_000_000, False, "\ud800"],
)
def test_record_comes_back_in_another_process(desk: Desk, value: object) -> None:
    put(desk.open(), "k", value)
    assert desk.open().get("k") == value


@pytest.mark.parametrize("key", ["a", "step/r-1/clean", "ü", "a b", "k" * 500])
def test_any_text_is_a_key(desk: Desk, key: str) -> None:
    store = desk.open()
    put(store, key, 1)
    assert store.get(key) == 1
    assert key in store.keys("")


def test_looking_makes_no_file(desk: Desk) -> None:
    store = desk.open()
    assert store.get("k") is None
    assert store.keys("") == []
    assert not store.exists
    assert not desk.folder.exists()


def test_looking_at_a_closed_store_changes_nothing(desk: Desk) -> None:
    desk.filled()
    before = {p: p.stat().st_mtime_ns for p in desk.folder.rglob("*")}
    assert desk.open().get("k") == 1
    assert {p: p.stat().st_mtime_ns for p in desk.folder.rglob("*")} == before


def test_store_that_is_closed_leaves_no_log(desk: Desk) -> None:
    desk.filled()
    assert [p.name for p in desk.database.parent.iterdir()] == ["cache.db"]


def test_open_look_sees_what_is_written_afterwards(desk: Desk) -> None:
    desk.filled()
    looking, writing = desk.open(), desk.open()
    assert looking.get("k") == 1
    put(writing, "k", 2)
    assert looking.get("k") == 2


def test_records_are_for_the_user_alone(desk: Desk) -> None:
    before = os.umask(0)
    try:
        put(desk.open(), "k", 1)
    finally:
        os.umask(before)
    for path in [desk.folder, *desk.folder.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_writes_of_one_transaction_are_all_or_nothing(desk: Desk) -> None:
    store = desk.open()

    def change(tx: Transaction) -> None:
        tx.put("a", 1)
        tx.put("b", 2)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.transact(change)
    assert store.keys("a") == store.keys("b") == []
    put(store, "a", 3)
    assert store.get("a") == 3


def test_transaction_sees_its_own_writes(desk: Desk) -> None:
    def change(tx: Transaction) -> tuple[object, ...]:
        tx.put("a", 1)
        tx.delete("b")
        tx.delete("never there")
        tx.put("a/2", 2)
        return tx.get("a"), tx.get("b"), tx.keys("a")

    assert desk.open().transact(change) == (1, None, ["a", "a/2"])


def test_keys_come_in_order_and_by_prefix(desk: Desk) -> None:
    store = desk.open()
    for key in ("b/2", "a/1", "b/1", "b", "c/1"):
        put(store, key, key)
    assert store.keys("b/") == ["b/1", "b/2"]
    assert store.keys("b") == ["b", "b/1", "b/2"]
    assert [k for k, _ in store.scan("b/", after="b/1")] == ["b/2"]


@pytest.mark.parametrize("durable", [True, False])
def test_writes_without_a_sync_are_seen_as_well(desk: Desk, durable: bool) -> None:
    store = desk.open()
    store.transact(lambda tx: tx.put("k", 1), durable=durable)
    assert desk.open().get("k") == 1
    level = store.transact(
        lambda tx: tx._cache._con.execute("PRAGMA synchronous").fetchone()[0]
    )
    assert level == 2


def test_many_threads_and_stores_count_without_losing_one(desk: Desk) -> None:
    stores = [desk.open(), desk.open()]
    put(stores[0], "n", 0)

    def count(store: Store) -> None:
        for _ in range(10):
            store.transact(lambda tx: tx.put("n", tx.get("n") + 1), durable=False)

    threads = [threading.Thread(target=count, args=(s,)) for s in stores * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].get("n") == 40


def test_changed_record_is_not_believed(desk: Desk) -> None:
    desk.filled()
    desk.sql("UPDATE Cache SET value = CAST(value || x'20' AS BLOB) WHERE key = 'k'")
    with pytest.raises(StoreDamaged, match="'k' is damaged or not authentic"):
        desk.open().get("k")


def test_two_swapped_records_are_not_believed(desk: Desk) -> None:
    desk.filled()
    put(desk.open(), "l", 2)
    desk.sql(
        "UPDATE Cache SET value = (SELECT value FROM Cache WHERE key = 'l')"
        " WHERE key = 'k'"
    )
    store = desk.open()
    with pytest.raises(StoreDamaged):
        store.get("k")
    assert store.get("l") == 2


def test_database_that_can_not_be_opened_is_told_with_what_to_look_at(
    tmp_path: Path,
) -> None:
    (tmp_path / "store").mkdir(mode=0o700)
    (tmp_path / "store" / "records" / "cache.db").mkdir(parents=True)
    with pytest.raises(StoreError, match=r"can't be opened. Check its disk"):
        Store(tmp_path / "store", MINE)


def test_scan_leaves_damaged_records_out(desk: Desk) -> None:
    store = desk.open()
    for key in ("a/1", "a/2", "a/3"):
        put(store, key, key)
    desk.sql("UPDATE Cache SET value = x'00' WHERE key = 'a/2'")
    assert [key for key, _ in store.scan("a/")] == ["a/1", "a/3"]


def test_locked_store_tells_what_it_waits_for_and_goes_on_then(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At its opening, and at a write afterwards."""
    for module in ("embedded", "writer"):
        monkeypatch.setattr(f"nbckpt.store.{module}.PATIENCE", 0.05)
    monkeypatch.setattr("nbckpt.store.writer.LOCK_TRIES", 10_000)
    desk.filled()
    other, told = sqlite3.connect(desk.database, isolation_level=None), []
    store = desk.open()
    for value in (2, 3):
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(put, store, "k", value)
            while not (line := capsys.readouterr().err):
                assert not written.done()
                threading.Event().wait(0.01)
            told.append(line)
            other.execute("ROLLBACK")
            written.result(60)
        assert store.get("k") == value
    other.close()
    expected = (
        f"nbckpt: waiting for the store {desk.folder}: another process writes to it, or was"
        " stopped while it wrote; that is to be ended or continued (nbckpt status names the"
        " holder of the run)\n"
    )
    assert told == [expected, expected]


BOOM: list[str] = []


def explode(word: str) -> None:
    BOOM.append(word)


class Bomb:
    """Says so when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return explode, ("boom",)


@pytest.mark.parametrize(
    ("mode", "filename", "value"),
    [
        (4, None, pickle.dumps(Bomb())),
        (1, "../../etc/passwd", b"x" * 40),
        (2, "file.val", None),
        (3, "file.val", None),
        (1, None, "text"),
        (1, None, 7),
        (1, None, None),
    ],
)
def test_row_of_another_kind_is_refused_unread(
    desk: Desk, mode: int, filename: str | None, value: object
) -> None:
    desk.filled()
    desk.sql(
        "UPDATE Cache SET mode = ?, filename = ?, value = ? WHERE key = 'k'",
        mode,
        filename,
        value,
    )
    store = desk.open()
    with pytest.raises(StoreDamaged, match="nbckpt did not write"):
        store.get("k")
    with pytest.raises(StoreDamaged):
        store.transact(lambda tx: tx.get("k"))
    assert BOOM == []


def test_negative_control_the_bomb_goes_off_when_unpickled() -> None:
    pickle.loads(pickle.dumps(Bomb()))  # noqa: S301 - it is our own
    assert BOOM == ["boom"]
    BOOM.clear()


def test_pickled_key_is_not_even_seen(desk: Desk) -> None:
    desk.filled()
    desk.sql(
        "INSERT INTO Cache (key, raw, mode, value) VALUES (?, 0, 1, x'00')",
        pickle.dumps(Bomb()),
    )
    store = desk.open()
    assert store.keys("") == ["k", "store"]
    assert BOOM == []


@pytest.mark.parametrize("key", [1, b"k", None, ("k",)])
def test_only_text_is_a_key_on_the_disk(tmp_path: Path, key: object) -> None:
    with pytest.raises(TypeError):
        StrictDisk(str(tmp_path)).put(key)


@pytest.mark.parametrize("value", ["text", 1, None, bytearray(b"x"), {"a": 1}])
def test_only_bytes_are_a_value_on_the_disk(tmp_path: Path, value: object) -> None:
    with pytest.raises(TypeError):
        StrictDisk(str(tmp_path)).store(value, read=False)


def test_large_value_never_becomes_a_file(tmp_path: Path) -> None:
    size, _, filename, data = StrictDisk(str(tmp_path)).store(bytes(10**6), read=False)
    assert (size, filename, data.nbytes) == (0, None, 10**6)
    assert list(tmp_path.iterdir()) == []


def test_row_can_not_delete_a_file(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("x")
    with pytest.raises(StoreDamaged):
        StrictDisk(str(tmp_path)).remove("victim")
    assert (tmp_path / "victim").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER evil AFTER UPDATE ON Cache BEGIN DELETE FROM Cache; END",
        "CREATE VIEW evil AS SELECT 1",
        "CREATE TABLE evil (x)",
        "CREATE INDEX evil ON Cache (size)",
        "DROP TRIGGER Settings_count_insert",
        "ALTER TABLE Cache ADD COLUMN evil",
        "UPDATE Settings SET value = 1 WHERE key = 'cull_limit'",
        "UPDATE Settings SET value = 5 WHERE key = 'size_limit'",
        "UPDATE Settings SET value = 0 WHERE key = 'sqlite_synchronous'",
        "UPDATE Settings SET value = 'delete' WHERE key = 'sqlite_journal_mode'",
        "UPDATE Settings SET value = 9 WHERE key = 'disk_min_file_size'",
        "INSERT INTO Settings VALUES ('disk_evil', 1)",
        "INSERT INTO Settings VALUES ('sqlite_temp_store_directory', '/tmp')",
    ],
)
def test_database_that_something_else_changed_is_refused(
    desk: Desk, statement: str
) -> None:
    desk.filled()
    desk.sql(statement)
    with pytest.raises(StoreDamaged, match="changed by something else") as caught:
        desk.open()
    assert "Nothing of it was used" in caught.value.remedy


@pytest.mark.parametrize("counter", ["count", "size", "hits", "misses"])
def test_counters_of_the_database_are_of_no_matter(desk: Desk, counter: str) -> None:
    desk.filled()
    desk.sql("UPDATE Settings SET value = 99 WHERE key = ?", counter)
    assert desk.open().get("k") == 1


@pytest.mark.parametrize("data", [b"nonsense" * 1000, b"SQLite format 3\0" + bytes(99)])
def test_file_that_is_no_database_is_refused(desk: Desk, data: bytes) -> None:
    desk.filled()
    desk.database.write_bytes(data)
    with pytest.raises(StoreError):
        desk.open()
    assert desk.database.read_bytes() == data


def test_store_of_another_user_is_read_only(desk: Desk) -> None:
    desk.filled()
    foreign = desk.open(OTHER)
    assert not foreign.trusted
    assert foreign.get("k") == 1
    with pytest.raises(StoreRefused, match="another user's key") as caught:
        put(foreign, "k", 2)
    assert "nbckpt trust" in caught.value.remedy
    assert desk.open().get("k") == 1
    assert desk.open().trusted


def test_store_whose_mark_was_changed_is_refused(desk: Desk) -> None:
    desk.filled()
    body = records.dumps({"identity": MINE.identity, "schema_version": 1})
    desk.sql("UPDATE Cache SET value = ? WHERE key = 'store'", bytes(32) + body)
    with pytest.raises(StoreDamaged):
        desk.open()


def test_store_of_a_newer_schema_is_refused_and_kept(desk: Desk) -> None:
    desk.filled()
    newer = records.SCHEMA_VERSION + 1
    meta = {"identity": MINE.identity, "schema_version": newer}
    put(desk.open(), "store", meta)
    with pytest.raises(StoreRefused, match=f"schema {newer}") as caught:
        desk.open()
    assert "Nothing was changed" in caught.value.remedy


def test_store_of_an_older_schema_is_marked_at_the_first_write(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.filled()
    monkeypatch.setattr(records, "SCHEMA_VERSION", records.SCHEMA_VERSION + 1)
    store = desk.open()
    assert store.get("store")["schema_version"] == 1
    put(store, "k", 2)
    assert store.get("store")["schema_version"] == 2


def test_interrupt_waits_for_the_outcome(desk: Desk) -> None:
    store = desk.open()
    put(store, "k", 0)

    def change(tx: Transaction) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        tx.put("k", 1)

    with pytest.raises(KeyboardInterrupt):
        store.transact(change)
    assert store.get("k") == 1
    put(store, "k", 2)
    assert store.get("k") == 2


class Interrupting:
    """Stands for a part of the store; an interrupt comes right after each call."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def __call__(self, *given: Any) -> Any:
        result = self.real(*given)
        signal.raise_signal(signal.SIGINT)
        return result


def writers() -> int:
    """Return how many threads of stores there are."""
    return sum(thread.name == "nbckpt-store" for thread in threading.enumerate())


def test_interrupt_that_comes_with_the_outcome_does_not_lose_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = desk.open()
    interrupted = Interrupting(Reply.wait)

    def wait(reply: Reply) -> Any:
        return interrupted(reply)

    monkeypatch.setattr(Reply, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        put(store, "k", 1)
    assert store.get("k") == 1


def test_interrupt_before_the_wait_does_not_leave_ahead_of_the_outcome(
    desk: Desk,
) -> None:
    store = desk.open()
    put(store, "k", 0)
    left, done = threading.Event(), []

    def change(tx: Transaction) -> None:
        # Held up only if the interrupt does leave first.
        done.append(left.wait(0.5))
        tx.put("k", 1)

    jobs = store._jobs
    store._jobs = SimpleNamespace(put=Interrupting(jobs.put))  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        store.transact(change)
    left.set()
    store._jobs = jobs
    assert done == [False]
    assert store.get("k") == 1


def test_interrupt_while_the_store_starts_leaves_one_thread(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, store = writers(), desk.open()
    monkeypatch.setattr(places, "create", Interrupting(places.create))
    with pytest.raises(KeyboardInterrupt):
        put(store, "k", 1)
    assert store.get("k") == 1
    put(store, "k", 2)
    assert writers() == before + 1
    store.close()
    assert writers() == before


def test_interrupt_is_raised_once_and_its_handler_is_back() -> None:
    before, twice = signal.getsignal(signal.SIGINT), Interrupting(signal.raise_signal)
    with pytest.raises(KeyboardInterrupt), waiting():
        twice(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    with waiting():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_handler_that_the_user_set_is_the_one_that_is_called() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        with waiting():
            signal.raise_signal(signal.SIGINT)
            assert came == []
        assert came == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("missing", ["main thread", "handler"])
def test_interrupts_that_are_none_of_ours_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: pytest.fail("touched"))
    if missing == "handler":
        monkeypatch.setattr(signal, "getsignal", lambda _: None)
        with waiting():
            pass
        return
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: waiting().__enter__())
    assert found.result() is None


def test_outcome_is_what_the_change_came_to() -> None:
    fine, bad = Reply(), Reply()
    fine.give(done=True, value=7)
    bad.give(done=False, value=ZeroDivisionError("why"))
    assert fine.wait() == 7
    with pytest.raises(ZeroDivisionError, match="why"):
        bad.wait()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_process_must_not_write(desk: Desk) -> None:
    store = desk.open()
    put(store, "k", 1)
    child = os.fork()
    if not child:
        try:
            put(store, "k", 2)
        except StoreRefused:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert store.get("k") == 1


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (sqlite3.OperationalError("database or disk is full"), StoreFull),
        (OSError(28, "No space left on device"), StoreFull),
        (OSError(27, "File too large"), StoreFull),
        (sqlite3.OperationalError("disk I/O error"), StoreFull),
        (sqlite3.OperationalError("database is locked"), StoreError),
        (sqlite3.DatabaseError("file is not a database"), StoreDamaged),
        (sqlite3.DatabaseError("database disk image is malformed"), StoreDamaged),
        (ZeroDivisionError(), ZeroDivisionError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (StoreRefused("x"), StoreRefused),
    ],
)
def test_errors_of_the_system_become_ours(
    tmp_path: Path, error: BaseException, kind: type[BaseException]
) -> None:
    found = translated(error, tmp_path)
    assert type(found) is kind
    if isinstance(found, StoreFull):
        assert "Free some space" in found.remedy


def test_full_disk_is_told_and_the_store_goes_on(desk: Desk) -> None:
    store = desk.open()
    put(store, "k", 1)

    def shrink(tx: Transaction) -> None:
        tx._cache._con.execute("PRAGMA max_page_count = 20")

    store.transact(shrink)
    with pytest.raises(StoreFull, match="no room"):
        put(store, "large", "x" * 10**6)
    assert store.get("k") == 1
    store.transact(lambda tx: tx._cache._con.execute("PRAGMA max_page_count = 9999999"))
    put(store, "large", "x" * 10**6)


def test_closed_store_can_be_written_again(desk: Desk) -> None:
    store = desk.open()
    put(store, "k", 1)
    store.close()
    store.close()
    put(store, "k", 2)
    assert store.get("k") == 2


@pytest.mark.parametrize("replaced", [False, True])
def test_store_that_is_deleted_while_it_is_open_takes_no_write(
    desk: Desk, tmp_path: Path, *, replaced: bool
) -> None:
    store = desk.open()
    put(store, "k", 1)
    desk.folder.rename(tmp_path / "gone")
    if replaced:
        desk.filled()
    with pytest.raises(StoreError, match="was deleted or replaced"):
        put(store, "k", 2)


def test_half_made_database_is_made_anew(desk: Desk) -> None:
    desk.filled()
    scratch = desk.database.parent / "new-left"
    scratch.mkdir()
    desk.database.rename(scratch / "cache.db")
    put(desk.open(), "k", 5)
    assert not scratch.exists()
    assert desk.open().get("k") == 5

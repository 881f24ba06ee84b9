"""Killed at any point of a transaction, its rows and messages are there once.

The bank is a real database: SQLite in a file, and PostgreSQL on loopback. Killed are the
commit, each statement, each durable operation of our own store, and the relay.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tests.crash import receivers
from tests.crash.lab import Lab, sample
from tests.crash.test_kill_effects import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ALL = bool(os.environ.get("NBCKPT_KILL_ALL"))
POINTS = 24
CARDS = list(receivers.CARDS)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("transactions")) as found:
        yield found


class Booking(Trial):
    """The step with a bank of its own."""

    def __init__(self, lab: Lab, folder: Path, kind: str, address: str) -> None:
        super().__init__(lab, folder, kind)
        self.address = address
        if address:
            self.address = address.replace("dbname=postgres", f"dbname={_new(address)}")

    def run(self, **job: Any) -> dict[str, Any]:
        return super().run(env={"BANK": self.address}, **job)

    def rows(self, sql: str) -> list[str]:
        with closing(self._look()) as look:
            return [row[0] for row in look.execute(sql)]

    def _look(self) -> Any:
        if self.address:
            return __import__("psycopg").connect(self.address)
        return sqlite3.connect(self.folder / "bank.db")

    def wrong(self) -> list[str]:
        """Return what is wrong with the rows, the messages and what was received."""
        found = {
            "rows": self.rows("SELECT card FROM charges ORDER BY card"),
            "completions": self.rows("SELECT name FROM nbckpt_completed ORDER BY name"),
            "messages": [
                json.loads(body)
                for body in self.rows(
                    "SELECT body FROM nbckpt_outbox ORDER BY position"
                )
            ],
            "sent": self.sent(),
            "taken": self.taken(),
        }
        named = [f"charge-{card}" for card in CARDS]
        wanted = dict.fromkeys(found, CARDS) | {"completions": named}
        return [f"{n}: {found[n]}" for n in found if found[n] != wanted[n]]

    def sent(self) -> list[str]:
        """Return the messages in the order of their first delivery."""
        lines = (self.folder / receivers.LOG).read_text().splitlines()
        return list(dict.fromkeys(json.loads(line)["card"] for line in lines))

    def taken(self) -> list[str]:
        with closing(sqlite3.connect(self.folder / "receiver.db")) as there:
            return [row[0] for row in there.execute("SELECT card FROM taken")]


def _new(address: str) -> str:
    """Make a new database and return its name."""
    with __import__("psycopg").connect(address, autocommit=True) as admin:
        admin.execute("CREATE TABLE IF NOT EXISTS numbers (n SERIAL)")
        row = admin.execute("INSERT INTO numbers DEFAULT VALUES RETURNING n").fetchone()
        admin.execute(f"CREATE DATABASE kill{row[0]}")
    return f"kill{row[0]}"


def try_points(
    lab: Lab, folder: Path, kind: str, address: str, **job: Any
) -> tuple[int, list[str]]:
    """Try points of an uninterrupted run; return how many, and what was wrong."""
    whole = Booking(lab, folder / "whole", kind, address)
    told = whole.run(**job)
    assert not told["error"], told["text"]
    assert not whole.wrong()
    labels = whole.points()
    chosen = sample(labels, 2 * len(labels) if ALL else POINTS)
    wrong: list[str] = []
    for number, when in chosen:
        trial = Booking(lab, folder / f"{when}-{number}", kind, address)
        trial.run(number=number, when=when, **job)
        trial.finish(**job)
        wrong += [f"{when} {number} {labels[number - 1]}: {t}" for t in trial.wrong()]
        shutil.rmtree(trial.folder)
    return len(chosen), wrong


@pytest.mark.parametrize("kind", receivers.BANKS)
@pytest.mark.timeout(3600 if ALL else 600)
def test_kill_at_any_point_leaves_rows_and_messages_once(
    lab: Lab,
    tmp_path: Path,
    kind: str,
    request: pytest.FixtureRequest,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    address = request.getfixturevalue("postgres") if kind == "postgres" else ""
    tried, wrong = try_points(lab, tmp_path, kind, address)
    record_testsuite_property(f"kill points, {kind} transaction", tried)
    print(f"\n{kind}: {tried} points, {len(wrong)} violations")  # noqa: T201
    assert not wrong, "\n".join(wrong)


def test_without_the_row_in_the_bank_rows_are_there_twice(
    lab: Lab, tmp_path: Path
) -> None:
    """Negative control: the test above can fail."""
    trial = Booking(lab, tmp_path / "trial", "sqlite", "")
    trial.run(sabotage="no_row")
    charges = [n for n, label in enumerate(trial.points(), 1) if label == "bank charge"]
    wrong = []
    # After the charge come the message and the commit.
    for number in [charge + 2 for charge in charges]:
        trial = Booking(lab, tmp_path / str(number), "sqlite", "")
        trial.run(number=number, when="after", sabotage="no_row")
        trial.finish(sabotage="no_row")
        wrong += trial.wrong()
    print(f"\nno row: {len(wrong)} violations")  # noqa: T201
    assert any(text.startswith("rows") for text in wrong)

"""Killed at any point of a transaction, its rows and messages are there once.

The bank is a real database: SQLite in a file, and PostgreSQL on loopback. Killed are the
commits, the statements between, the durable operations of our own store, and the relay.
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
from tests.crash.test_kill_effects import Trial, prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ALL = bool(os.environ.get("NBCKPT_KILL_ALL"))
POINTS = 8
CARDS = list(receivers.CARDS)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("transactions")) as found:
        yield found


class Booking(Trial):
    """The step with a bank of its own."""

    def __init__(
        self, lab: Lab, folder: Path, place: tuple[str, str], address: str
    ) -> None:
        super().__init__(lab, folder, *place)
        self.address = address
        if address:
            self.address = address.replace("dbname=postgres", f"dbname={_new(address)}")

    def ask(self, **job: Any) -> dict[str, Any]:
        return super().ask(env={"BANK": self.address}, **job)

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
        if self.shape == "items":
            named = ["charge"] * len(CARDS)
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


PLACES = [("sqlite", "one by one"), ("sqlite", "items"), ("postgres", "one by one")]


def address_of(place: tuple[str, str], request: pytest.FixtureRequest) -> str:
    """Return how to connect to the bank; empty: it is a file."""
    if place[0] != "postgres":
        return ""
    address: str = request.getfixturevalue("postgres")
    return address


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.timeout(3600 if ALL else 600)
def test_kill_at_any_point_leaves_rows_and_messages_once(
    lab: Lab,
    tmp_path: Path,
    place: tuple[str, str],
    request: pytest.FixtureRequest,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    kind, shape = place
    address = address_of(place, request)
    prepare(lab, tmp_path)
    whole = Booking(lab, tmp_path / "whole", place, address)
    told = whole.run()
    assert not told["error"], told["text"]
    assert not whole.wrong()
    chosen = sample(labels := whole.points(), 2 * len(labels) if ALL else POINTS)
    wrong: list[str] = []
    for number, when in chosen:
        trial = Booking(lab, tmp_path / f"{when}-{number}", place, address)
        trial.run(number=number, when=when)
        trial.finish()
        wrong += [f"{when} {number} {labels[number - 1]}: {t}" for t in trial.wrong()]
        shutil.rmtree(trial.folder)
    record_testsuite_property(f"kill points, {kind} transaction, {shape}", len(chosen))
    print(f"\n{kind}, {shape}: {len(chosen)} points, {len(wrong)} violations")  # noqa: T201
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("place", [PLACES[0], PLACES[-1]])
def test_without_the_row_in_the_bank_rows_are_there_twice(
    lab: Lab, tmp_path: Path, place: tuple[str, str], request: pytest.FixtureRequest
) -> None:
    """Negative control: the test above can fail."""
    address = address_of(place, request)
    prepare(lab, tmp_path)
    trial = Booking(lab, tmp_path / "trial", place, address)
    trial.run(sabotage="no_row")
    charges = [n for n, label in enumerate(trial.points(), 1) if label == "bank charge"]
    wrong = []
    # After the charge comes the commit.
    for number in [charge + 1 for charge in charges]:
        trial = Booking(lab, tmp_path / str(number), place, address)
        trial.run(number=number, when="after", sabotage="no_row")
        trial.finish(sabotage="no_row")
        wrong += trial.wrong()
    print(f"\nno row, {place[0]}: {len(wrong)} violations")  # noqa: T201
    assert any(text.startswith("rows") for text in wrong)

"""Receivers of effects, and one step that charges four cards there.

A call's effect is one line that is appended and synced. Each call passes two points at
which the process may die: before its effect, and between the effect and the answer.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import nbckpt
from nbckpt import effects, intents
from nbckpt.connections import Postgres, Sqlite
from nbckpt.transactions import receive
from tests.crash import crashpoints

if TYPE_CHECKING:
    from collections.abc import Callable

CARDS = ("a", "b", "c", "d")
RUN = "pay-1"
LOG = "receiver.jsonl"
LAG = 0.2
"""How long a lagging receiver's lookup does not see what was done."""


class Receiver:
    """Charges cards; what it did is in a file.

    Parameters
    ----------
    kind : str
        ``keyed`` does nothing for a key that it knows; ``queryable`` can be asked;
        ``lagging`` can be asked, and knows a charge only after `LAG` seconds; ``late``
        charges and then times out, each card once; ``opaque`` does none of these.
    points : Points
        Where the process may die.
    """

    def __init__(self, kind: str, points: crashpoints.Points) -> None:
        self.kind = kind
        self.points = points

    def charge(self, key: str, card: str) -> str:
        """Charge a card."""
        with self.points.passing("call charge"):
            known = [line for line in done() if line["key"] == key]
            if self.kind != "keyed" or not known:
                append({"key": key, "card": card, "at": time.time()})
        with self.points.passing("answer charge"):
            if self.kind == "late" and not known:
                raise TimeoutError("no answer in time")
            return f"charged {card}"

    def find(self, key: str) -> str | None:
        """Return what was done under a key."""
        with self.points.passing("call find"):
            now = time.time() - (LAG if self.kind == "lagging" else 0.0)
            found = [d for d in done() if d["key"] == key and d["at"] <= now]
            return f"charged {found[0]['card']}" if found else None


def done() -> list[dict[str, Any]]:
    """Return what the receiver did."""
    path = Path(LOG)
    text = path.read_text("utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def append(line: dict[str, Any]) -> None:
    """Do one thing, for good."""
    with Path(LOG).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


class Bank:
    """A database of the user's, in which charges are rows.

    Parameters
    ----------
    address : str
        How to connect to PostgreSQL; empty: a file of SQLite.
    points : Points
        Where the process may die.
    """

    def __init__(self, address: str, points: crashpoints.Points) -> None:
        self.points = points
        self.connection: Any = connect(address)
        target = Postgres if address else Sqlite
        for name in ("execute", "begin", "commit", "rollback"):
            crashpoints.plant(target, **{name: self._passing(target, name)})

    def _passing(self, target: Any, name: str) -> Callable[..., Any]:
        """Return a call that passes a point."""
        call = getattr(target, name)

        def wrapped(*given: Any) -> Any:
            with self.points.passing(f"bank {name}"):
                return call(*given)

        return wrapped

    def charge(self, card: str) -> str:
        """Charge a card, within the transaction that is open."""
        with self.points.passing("bank charge"):
            self.connection.execute(f"INSERT INTO charges VALUES ('{card}')")  # noqa: S608
        return f"charged {card}"

    def send(self, message_id: str, message: Any) -> None:
        """Deliver a message to a receiver that takes each once."""
        with self.points.passing("call send"):
            append({"key": message_id, "card": message, "at": 0.0})
            with closing(sqlite3.connect("receiver.db")) as there:
                there.execute("CREATE TABLE IF NOT EXISTS taken (card TEXT)")
                with receive(there, message_id) as receipt:
                    if receipt.pending:
                        there.execute("INSERT INTO taken VALUES (?)", (message,))


def connect(address: str) -> Any:
    """Return a connection to the bank; its table is made."""
    psycopg = __import__("psycopg") if address else None
    found: Any = psycopg.connect(address) if psycopg else sqlite3.connect("bank.db")
    found.execute("CREATE TABLE IF NOT EXISTS charges (card TEXT)")
    found.commit()
    return found


CONTRACTS = {
    "keyed": "dedup='24h'",
    "queryable": "lookup=there.find",
    "lagging": f"lookup=there.find, settle={LAG * 1.5}",
    "late": "lookup=there.find",
    "opaque": "",
}
STEP = """%%step charge --effects cards
answers = [
    nbckpt.effect(f"charge-{{card}}", lambda key, card=card: there.charge(key, card), {})
    for card in {!r}
]
"""

BANKS = ("sqlite", "postgres")
BOOKING = """%%step charge --effects bank
answers = []
for card in {!r}:
    with nbckpt.transaction(there.connection, f"charge-{{card}}") as booking:
        if booking.pending:
            there.charge(card)
            booking.emit(card)
    answers.append(f"charged {{card}}")
del booking, card
"""
SENDING = """%%step send --effects messages
nbckpt.relay(there.connection, there.send)
"""


def no_intent() -> None:
    """Keep no intent: what was not recorded as done was not done."""

    def unwritten(self: intents.Intent, request: dict[str, str]) -> bool:
        del self, request
        return True

    crashpoints.plant(intents.Intent, write_intent=unwritten)


def no_key() -> None:
    """Give each attempt another key."""

    def changing(place: Any, name: str) -> str:
        del place
        return f"{name}-{os.getpid()}"

    crashpoints.plant(intents, key_here=changing)
    crashpoints.plant(effects, key_here=changing)


def no_row() -> None:
    """Believe our own record, not the row in the bank, about what was committed."""
    execute, ignored = Sqlite.execute, "OR IGNORE INTO nbckpt_outbox"

    def forgetful(self: Sqlite, sql: str, *values: Any) -> Any:
        if "INTO nbckpt_completed" in sql:
            sql = "DELETE FROM nbckpt_completed WHERE key = ?"
            execute(self, sql, values[0])
            sql = "INSERT INTO nbckpt_completed VALUES (?, ?, ?, ?, ?)"
        return execute(self, sql.replace("INTO nbckpt_outbox", ignored), *values)

    crashpoints.plant(Sqlite, execute=forgetful)


FAULTS: dict[str, Callable[[], None]] = {
    "no_intent": no_intent, "no_key": no_key, "no_row": no_row, "": lambda: None,
}  # fmt: skip


def run(job: dict[str, Any]) -> None:
    """Run the step in the folder of a job, in this process; never returns."""
    folder = Path(job["folder"])
    os.chdir(folder)
    os.environ.update({"NBCKPT_RUN_ID": RUN, **job["env"]})
    log = os.open("points.log", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    points = crashpoints.Points(folder / ".nbckpt", log, job["number"], job["when"])
    crashpoints.install(points)
    FAULTS[job["sabotage"]]()
    quiet = Config({"HistoryManager": {"enabled": False}})
    shell: Any = InteractiveShell.instance(config=quiet)
    kind, address = job["receiver"], job["env"].get("BANK", "")
    is_bank = kind in BANKS
    there = Bank(address, points) if is_bank else Receiver(kind, points)
    # Not among the notebook's names: no value of a notebook holds a crash point.
    vars(__import__("builtins")).update(there=there, nbckpt=nbckpt)
    cards = list(CARDS)
    steps = [BOOKING.format(cards), SENDING] if is_bank else []
    steps = steps or [STEP.format(CONTRACTS[kind], cards)]
    sources = ["%load_ext nbckpt", *steps]
    for source in sources:
        result = shell.run_cell(source, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        if error is not None:
            break
    told = {"error": type(error).__name__ if error else "", "text": str(error or "")}
    told["answers"] = shell.user_ns.get("answers", [])
    Path("report.json").write_text(json.dumps(told), "utf-8")
    __import__("atexit")._run_exitfuncs()
    os._exit(0)

"""Receivers of effects, and steps that charge cards there.

A call's effect is one line that is appended. Each call passes two points at which the
process may die: before its effect, and between the effect and the answer.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partialmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import diskcache
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import nbckpt
from nbckpt.effects import calls as effects
from nbckpt.effects import intents
from nbckpt.effects.transactions import receive
from nbckpt.inputs.connections import Postgres, Sqlite
from nbckpt.runs import takeover
from nbckpt.runs.leases import Hold
from nbckpt.session import Session
from nbckpt.store import writer
from tests.crash import crashpoints
from tests.crash.sabotage import no_fence as no_guard

if TYPE_CHECKING:
    from collections.abc import Callable

CARDS = ("a", "b", "c")
RUN = "pay-1"
LOG = "receiver.jsonl"
WORK = "work.log"
LAG = 0.2
"""How long a lagging receiver does not know what it is asked for the first time.

Counted from the question: a process takes its time to come to it.
"""
WAIT = 0.5


class Receiver:
    """Charges cards; what it did is in a file.

    Parameters
    ----------
    kind : str
        ``keyed`` does nothing for a key that it knows; ``queryable`` can be asked;
        ``lagging`` can be asked, and knows nothing until `LAG` seconds later; ``late``
        can be asked, and times out when it has charged, each card once; ``late-keyed``
        times out as well, and is keyed; ``opaque`` does none of these.
    points : Points
        Where the process may die.
    """

    def __init__(self, kind: str, points: crashpoints.Points) -> None:
        self.kind = kind
        self.points = points
        self.asked: dict[str, float] = {}

    def charge(self, key: str, card: str) -> str:
        """Charge a card."""
        with self.points.passing("call charge"):
            known = [line for line in done() if line["key"] == key]
            if not self.kind.endswith("keyed") or not known:
                append({"key": key, "card": card})
        with self.points.passing("answer charge"):
            if self.kind.startswith("late") and not known:
                raise TimeoutError("no answer in time")
            return f"charged {card}"

    def find(self, key: str) -> str | None:
        """Return what was done under a key."""
        with self.points.passing("call find"):
            now = time.monotonic()
            since = self.asked.setdefault(key, now)
            if self.kind == "lagging" and now - since < LAG:
                return None
            found = [line for line in done() if line["key"] == key]
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
        commit = target.commit

        def passing(bank: Any) -> None:
            with points.passing("bank commit"):
                commit(bank)

        crashpoints.plant(target, commit=passing)

    def charge(self, card: str) -> str:
        """Charge a card, within the transaction that is open."""
        with self.points.passing("bank charge"):
            self.connection.execute(f"INSERT INTO charges VALUES ('{card}')")  # noqa: S608
        return f"charged {card}"

    def send(self, message_id: str, message: Any) -> None:
        """Deliver a message to a receiver that takes each once."""
        with self.points.passing("call send"):
            append({"key": message_id, "card": message})
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


def patiently(call: Callable[[], Any]) -> Any:
    """Call again after a timeout, as a careful client does."""
    while True:
        with suppress(TimeoutError):
            return call()


def work(card: str) -> None:
    """Note that an item is worked on."""
    with Path(WORK).open("a", encoding="utf-8") as file:
        file.write(f"{card}\n")


CONTRACTS = {
    "keyed": "dedup='24h'",
    "queryable": "lookup=there.find",
    "lagging": f"lookup=there.find, settle={LAG * 1.5}",
    "late": "lookup=there.find",
    "late-keyed": "dedup='24h'",
    "opaque": "",
}
BEGINNING = [
    "%load_ext nbckpt",
    "%%step ready\nis_ready = True",
    "points.is_on = True",
]
"""The kill matrix looks at what happens until here."""
ONE_BY_ONE = """%%step charge --effects cards
answers = []
for card in {cards}:
    answers.append(patiently(lambda: nbckpt.effect(
        f"charge-{{card}}", lambda key: there.charge(key, card), {contract})))
"""
ITEMS = """%%step charge --effects cards
answers = []
for card in nbckpt.items({cards}, keep="answers"):
    work(card)
    answers.append(patiently(lambda: nbckpt.effect(
        "charge", lambda key: there.charge(key, card), {contract})))
"""
MAP = """%%step charge --effects cards
def charge(card):
    work(card)
    return patiently(lambda: nbckpt.effect(
        "charge", lambda key: there.charge(key, card), {contract}))
answers = nbckpt.map(charge, {cards}, executor={executor})
"""
THREADS = 2
SHAPES = {
    "one by one": ONE_BY_ONE,
    "items": ITEMS,
    "map": MAP.replace("{executor}", "None"),
    "threads": MAP.replace("{executor}", f"ThreadPoolExecutor({THREADS})"),
}
"""How a step charges the cards."""

BANKS = ("sqlite", "postgres")
BOOKING = """%%step charge --effects bank
answers = []
for card in {cards}:
    with nbckpt.transaction(there.connection, f"charge-{{card}}") as booking:
        if booking.pending:
            there.charge(card)
            booking.emit(card)
    answers.append(f"charged {{card}}")
del booking, card
"""
BOOKING_ITEMS = """%%step charge --effects bank
answers, booking, card = [], None, None
for card in nbckpt.items({cards}, keep="answers"):
    work(card)
    with nbckpt.transaction(there.connection, "charge") as booking:
        if booking.pending:
            there.charge(card)
            booking.emit(card)
    answers.append(f"charged {{card}}")
del booking, card
"""
BOOKINGS = {"one by one": BOOKING, "items": BOOKING_ITEMS}
SENDING = """%%step send --effects messages
nbckpt.relay(there.connection, there.send)
"""


def story(kind: str, shape: str) -> list[str]:
    """Return the cells that charge the cards; none if there is no receiver."""
    if kind in BANKS:
        return [BOOKINGS[shape].format(cards=list(CARDS)), SENDING]
    if not kind:
        return []
    return [SHAPES[shape].format(cards=list(CARDS), contract=CONTRACTS[kind])]


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
    for target in (Sqlite, Postgres):
        crashpoints.plant(target, execute=_forgetful(target.execute))


def _forgetful(execute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call that forgets a completion as it writes it."""

    def wrapped(target: Any, sql: str, *values: Any) -> Any:
        if "INSERT INTO nbckpt_completed" in sql:
            sql_before = "DELETE FROM nbckpt_completed WHERE key = ?"
            execute(target, sql_before, values[0])
        if "INSERT INTO nbckpt_outbox" in sql:
            sql += " ON CONFLICT DO NOTHING"
        return execute(target, sql, *values)

    return wrapped


def no_lookup() -> None:
    """Ask no receiver: what was not recorded as done was not done."""
    crashpoints.plant(effects, _look=lambda *_: None)


def no_settle() -> None:
    """Believe a lookup at once that lags behind."""
    crashpoints.plant(effects, _wait=lambda _: None)


def no_fence() -> None:
    """Let a process that was taken over go on, whatever the other has written."""
    no_guard()

    def blindly(self: intents.Intent, request: dict[str, str]) -> bool:
        self.read()
        return write(self, request)

    write = intents.Intent.write_intent
    crashpoints.plant(intents.Intent, write_intent=blindly)


def no_end() -> None:
    """End no holder that was replaced, as if it ran on another host."""

    def alone(self: Hold, grace: float = 0.0) -> None:
        del self, grace

    crashpoints.plant(Hold, alone=alone)


def forget_first() -> None:
    """Take the note of a former holder away before that one is ended."""
    whole, forget = takeover.Former._end_one, takeover.Former._forget

    def early(self: takeover.Former, left: Any, since: float, grace: float) -> str:
        for key, _ in list(self._store.scan(f"displaced/{self._run_id}/")):
            forget(self, key, left.holder, "not yet")
        return whole(self, left, since, grace)

    crashpoints.plant(takeover.Former, _end_one=early, _forget=lambda *_: None)


FAULTS: dict[str, Callable[[], None]] = {
    "no_intent": no_intent, "no_key": no_key, "no_row": no_row,
    "no_lookup": no_lookup, "no_settle": no_settle,
    "no_end": no_end, "no_fence": no_fence, "forget_first": forget_first,
    "": lambda: None,
}  # fmt: skip


def count_taking(points: crashpoints.Points) -> None:
    """Count the points from where the run is looked for in a store that is open."""
    opened = Session._open_run

    def counted(self: Session) -> Any:
        self.store.transact(lambda _: None)
        points.is_on = True
        return opened(self)

    crashpoints.plant(Session, _open_run=counted)


def be_impatient() -> None:
    """Wait shortly for a store that a stopped process locks: nobody else does for long."""
    connect = sqlite3.connect

    def quick(*given: Any, **options: Any) -> sqlite3.Connection:
        return connect(*given, **{**options, "timeout": WAIT})

    crashpoints.plant(sqlite3, connect=quick)
    crashpoints.plant(writer, LOCK_TRIES=1)
    crashpoints.plant(diskcache.Cache, _sql_retry=diskcache.Cache._sql)


def _end_soon(former: Any, end: Callable[..., None], since: float, _: float) -> None:
    """End the holders that were replaced; those here are stopped and can't heed it."""
    end(former, since, 0.1)


def run(job: dict[str, Any]) -> None:
    """Run the steps in the folder of a job, in this process; never returns."""
    folder, kind = Path(job["folder"]), job["receiver"]
    os.chdir(folder)
    os.environ.update({"NBCKPT_RUN_ID": RUN, **job["env"]})
    log = os.open("points.log", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    points = crashpoints.Points(
        folder / ".nbckpt", log, job["number"], job["when"], job["by"],
        commits_only=True, is_on=False,
    )  # fmt: skip
    crashpoints.install(points)
    be_impatient()
    if job["taking"]:
        count_taking(points)
    crashpoints.plant(
        takeover.Former, end=partialmethod(_end_soon, takeover.Former.end)
    )
    FAULTS[job["sabotage"]]()
    is_bank, address = kind in BANKS, job["env"].get("BANK", "")
    there = Bank(address, points) if is_bank else Receiver(kind, points)
    # Not among the notebook's names: no value of a notebook holds a crash point.
    vars(__import__("builtins")).update(
        there=there, points=points, nbckpt=nbckpt, patiently=patiently, work=work,
        ThreadPoolExecutor=ThreadPoolExecutor,
    )  # fmt: skip
    told = run_cells([*BEGINNING, *story(kind, job["shape"])])
    Path("report.json").write_text(json.dumps(told), "utf-8")
    __import__("atexit")._run_exitfuncs()
    os._exit(0)


def run_cells(sources: list[str]) -> dict[str, Any]:
    """Run cells until one fails; return its error, and what was answered."""
    quiet = Config({"HistoryManager": {"enabled": False}})
    shell: Any = InteractiveShell.instance(config=quiet)
    error = None
    for source in sources:
        result = shell.run_cell(source, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        if error is not None:
            break
    told = {"error": type(error).__name__ if error else "", "text": str(error or "")}
    return told | {"answers": shell.user_ns.get("answers", [])}

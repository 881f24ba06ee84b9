"""``%nbckpt VERB``: the verbs as a notebook calls them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbckpt.checkpoints import collect
from nbckpt.errors import BadStep, NotFound
from nbckpt.history import Reader
from nbckpt.trust import load_secret
from nbckpt.trusting import adopt, trusted_text
from nbckpt.verbs.marks import accept, rerun
from nbckpt.verbs.opening import choose_run, require
from nbckpt.verbs.overview import runs_page, status_page
from nbckpt.verbs.pages import Page, plain, size
from nbckpt.verbs.planning import plan_notebook, plan_page, plan_run
from nbckpt.verbs.starting import LineParser, read_start, words_of
from nbckpt.verbs.status import runs, status
from nbckpt.verbs.steps import explain, explain_page, show, show_page
from nbckpt.verbs.verification import verify, verify_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nbckpt.records import RunRecord
    from nbckpt.session import Session
    from nbckpt.store import Store

EXAMPLE = "%nbckpt explain clean"


def in_notebook(session: Session, line: str) -> str:
    """Do what a ``%nbckpt`` line asks for.

    Parameters
    ----------
    session : Session
        The kernel's hold on its run.
    line : str
        What follows the magic.

    Returns
    -------
    str
        The answer; empty if there is nothing to say.

    Raises
    ------
    BadStep
        If there is no such verb, or an option is wrong.
    NbckptError
        Whatever the verb finds wrong.
    """
    words = words_of(line)
    verb = VERBS.get(words[0]) if words else None
    if verb is None:
        said = f"%nbckpt has no verb {words[0]!r}" if words else "%nbckpt needs a verb"
        raise BadStep(said, f"Verbs: {', '.join(VERBS)}. Write for example: {EXAMPLE}")
    return verb(session, words[1:])


@dataclass(slots=True)
class _Call:
    """What a verb was called with."""

    store: Store
    reader: Reader
    run_id: str
    stem: str
    step: str
    as_json: bool

    def run(self) -> RunRecord:
        """Return the run that is meant."""
        return choose_run(self.reader, self.run_id, self.stem)

    def answer(self, data: Any, page: Callable[[Any], Page]) -> str:
        """Return data as the user asked for it."""
        return json.dumps(data, indent=2) if self.as_json else plain(page(data))


def _start(session: Session, words: list[str]) -> str:
    """Hold the run that the line names; silent, so that outputs stay the same."""
    session.begin(read_start(words))
    return ""


@contextmanager
def _calling(
    session: Session, verb: str, words: list[str], named: str
) -> Iterator[_Call]:
    """Read the options of a verb and open the notebook's store for it."""
    example = f"%nbckpt {verb}" + (" clean" if named == "step" else "")
    parser = LineParser(verb, f"Write for example: {example}")
    if named == "step":
        parser.add_argument("step")
        parser.add_argument("--run", default="")
    elif named == "run":
        parser.add_argument("run", nargs="?", default="")
    parser.add_argument("--json", action="store_true")
    told = parser.parse_args(words)
    held = session.is_held
    store = session.store if held else session.open_store()
    run_id = getattr(told, "run", "") or (
        session.run_id if held else session.wish.run_id
    )
    try:
        yield _Call(
            store, Reader(store), run_id, _stem(session, run_id),
            getattr(told, "step", ""), told.json,
        )  # fmt: skip
    finally:
        if not held:
            store.close()


def _stem(session: Session, run_id: str) -> str:
    """Return the notebook's name where no run is named."""
    return "" if run_id else session.identity.stem


def _status(session: Session, words: list[str]) -> str:
    """Say where a run stands."""
    with _calling(session, "status", words, "run") as call:
        return call.answer(status(call.reader, call.run()), status_page)


def _plan(session: Session, words: list[str]) -> str:
    """Say what would happen to each step."""
    with _calling(session, "plan", words, "run") as call:
        notebook = session.identity.notebook
        if words_without_options(words) or notebook is None:
            return call.answer(plan_run(call.reader, call.run()), plan_page)
        run_id = session.run_id if session.is_held else ""
        return call.answer(plan_notebook(call.reader, notebook, run_id), plan_page)


def words_without_options(words: Sequence[str]) -> list[str]:
    """Return the words of a line that are no options."""
    return [word for word in words if not word.startswith("--")]


def _show(session: Session, words: list[str]) -> str:
    """Show a step's record."""
    with _calling(session, "show", words, "step") as call:
        return call.answer(show(call.reader, call.run(), call.step), show_page)


def _explain(session: Session, words: list[str]) -> str:
    """Say why a step ran."""
    with _calling(session, "explain", words, "step") as call:
        return call.answer(explain(call.reader, call.run(), call.step), explain_page)


def _runs(session: Session, words: list[str]) -> str:
    """List the runs of the store."""
    with _calling(session, "runs", words, "") as call:
        return call.answer(runs(call.reader), runs_page)


def _verify(session: Session, words: list[str]) -> str:
    """Look at all evidence again; the checks too, since here is a kernel."""
    with _calling(session, "verify", words, "run") as call:
        found = verify(call.reader, call.run(), session.namespace)
        return call.answer(found, verify_page)


def _rerun(session: Session, words: list[str]) -> str:
    """Have a step run again."""
    with _calling(session, "rerun", words, "step") as call:
        return rerun(call.store, call.run(), call.step)


def _accept(session: Session, words: list[str]) -> str:
    """Accept a code change."""
    with _calling(session, "accept", words, "step") as call:
        notebook = session.identity.notebook
        if notebook is None:
            raise NotFound(
                "this kernel does not know its notebook's file",
                "In a shell: nbckpt accept STEP --notebook NOTEBOOK.ipynb",
            )
        return accept(call.store, call.run(), call.step, notebook)


def _gc(session: Session, words: list[str]) -> str:
    """Remove what no record needs."""
    with _calling(session, "gc", words, "") as call:
        require(call.store)
        swept = collect(call.store)
        if session.is_held:
            session.checkpoints.forget()
        return f"removed {swept.files} files, {size(swept.bytes)}"


def _trust(session: Session, words: list[str]) -> str:
    """Make the notebook's store, or another one, the user's own."""
    parser = LineParser("trust", "Write for example: %nbckpt trust .nbckpt")
    parser.add_argument("store", nargs="?", default="")
    named = parser.parse_args(words).store
    store = session.open_store()
    store.close()
    folder = Path(named) if named else store.folder
    return trusted_text(adopt(folder, load_secret()), folder)


VERBS: dict[str, Callable[[Session, list[str]], str]] = {
    "start": _start,
    "status": _status,
    "plan": _plan,
    "show": _show,
    "explain": _explain,
    "runs": _runs,
    "verify": _verify,
    "rerun": _rerun,
    "accept": _accept,
    "trust": _trust,
    "gc": _gc,
}

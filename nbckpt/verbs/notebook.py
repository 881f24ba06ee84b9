"""``%nbckpt VERB``: the verbs as a notebook calls them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nbckpt.errors import BadStep, NotFound
from nbckpt.runs.trusting import make_own, trusted_text
from nbckpt.state.garbage import collect
from nbckpt.trust import load_secret
from nbckpt.verbs.finding.calling import calling, opening
from nbckpt.verbs.finding.opening import require
from nbckpt.verbs.finding.starting import LineParser, read_start, words_of
from nbckpt.verbs.forms.documents import text
from nbckpt.verbs.forms.pages import as_json, size
from nbckpt.verbs.look import audited, picturing
from nbckpt.verbs.look.audit import audit
from nbckpt.verbs.look.checkpoint import archive
from nbckpt.verbs.look.explaining import explain, explain_page
from nbckpt.verbs.look.handover import handover, handover_text
from nbckpt.verbs.look.overview import status_page
from nbckpt.verbs.look.steps import show, show_page
from nbckpt.verbs.prepare.linting import lint_notebook, lint_page
from nbckpt.verbs.prepare.planning import plan_notebook, plan_page, plan_run
from nbckpt.verbs.settle import speaking
from nbckpt.verbs.settle.finishing import finish
from nbckpt.verbs.settle.marks import accept, accept_worktree, rerun
from nbckpt.verbs.settle.resolving import read_said, resolve
from nbckpt.verbs.settle.verification import verify, verify_page
from nbckpt.verbs.standing.status import status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbckpt.session import Session
    from nbckpt.verbs.forms.showing import Shown

EXAMPLE = "%nbckpt explain clean"
# They work on files and whole runs, from outside of the kernel.
SHELL_VERBS = ("run", "rehearse", "annotate", "doctor", "import", "monitor")


def in_notebook(session: Session, line: str) -> str | Shown:
    """Do what a ``%nbckpt`` line asks for.

    Parameters
    ----------
    session : Session
        The kernel's hold on its run.
    line : str
        What follows the magic.

    Returns
    -------
    str or Shown
        The answer; empty if there is nothing to say. With a picture, where it has one.

    Raises
    ------
    BadStep
        If there is no such verb, or an option is wrong.
    NbckptError
        Whatever the verb finds wrong.
    """
    words = words_of(line)
    verb = VERBS.get(words[0]) if words else None
    if words and words[0] in SHELL_VERBS:
        raise BadStep(
            f"nbckpt {words[0]} is a command of the shell",
            f"In a shell, or in a cell of its own: !nbckpt {line.strip()}",
        )
    if verb is None:
        said = f"%nbckpt has no verb {words[0]!r}" if words else "%nbckpt needs a verb"
        raise BadStep(said, f"Verbs: {', '.join(VERBS)}. Write for example: {EXAMPLE}")
    return verb(session, words[1:])


def _start(session: Session, words: list[str]) -> str:
    """Hold the run that the line names; silent, so that outputs stay the same."""
    session.begin(read_start(words))
    return ""


def _status(session: Session, words: list[str]) -> str:
    """Say where a run stands."""
    with calling(session, "status", words, "run") as call:
        return call.answer(status(call.reader, call.run()), status_page)


def _plan(session: Session, words: list[str]) -> str:
    """Say what would happen to each step."""
    with calling(session, "plan", words, "run") as call:
        notebook = session.identity.notebook
        if words_without_options(words) or notebook is None:
            return call.answer(plan_run(call.reader, call.run()), plan_page)
        run_id = session.run_id if session.is_held else ""
        return call.answer(plan_notebook(call.reader, notebook, run_id), plan_page)


def _lint(session: Session, words: list[str]) -> str:
    """Say what in the source would go wrong at a resume."""
    with calling(session, "lint", words, "") as call:
        notebook = _notebook(session, "lint NOTEBOOK.ipynb")
        return call.answer(lint_notebook(notebook), lint_page)


def _notebook(session: Session, command: str) -> Path:
    """Return the notebook's file; where it is not known, a shell's command helps."""
    found = session.identity.notebook
    if found is None:
        raise NotFound(
            "this kernel does not know its notebook's file",
            f"In a shell: nbckpt {command}",
        )
    return found


def words_without_options(words: Sequence[str]) -> list[str]:
    """Return the words of a line that are no options."""
    return [word for word in words if not word.startswith("--")]


def _show(session: Session, words: list[str]) -> str:
    """Show a step's record."""
    with calling(session, "show", words, "step") as call:
        return call.answer(show(call.reader, call.run(), call.step), show_page)


def _explain(session: Session, words: list[str]) -> str:
    """Say why a step ran."""
    with calling(session, "explain", words, "step") as call:
        return call.answer(explain(call.reader, call.run(), call.step), explain_page)


def _verify(session: Session, words: list[str]) -> str:
    """Look at all evidence again; the checks too, since here is a kernel."""
    with calling(session, "verify", words, "run") as call:
        found = verify(call.reader, call.run(), session.namespace)
        return call.answer(found, verify_page)


def _rerun(session: Session, words: list[str]) -> str:
    """Have a step run again."""
    with calling(session, "rerun", words, "step", "--and-after") as call:
        and_after = call.told.and_after
        return rerun(call.store, call.run(), call.step, and_after=and_after)


def _accept(session: Session, words: list[str]) -> str:
    """Accept a code change, or the Git worktree."""
    if "--worktree" in words:
        with calling(session, "accept", words, "run", "--worktree") as call:
            require(call.store)
            return accept_worktree(call.store, call.run(), session.identity.base)
    with calling(session, "accept", words, "step") as call:
        notebook = _notebook(session, "accept STEP --notebook NOTEBOOK.ipynb")
        return accept(call.store, call.run(), call.step, notebook)


def _resolve(session: Session, words: list[str]) -> str:
    """Say whether an effect happened; of the notebook's run, unless one is named."""
    example = "Write for example: %nbckpt resolve charge-4711 --done ch_8x1"
    parser = LineParser("resolve", example)
    parser.add_argument("named", nargs="+", metavar="[RUN] EFFECT")
    parser.add_argument("--done", nargs="?", const="")
    parser.add_argument("--not-done", action="store_true")
    parser.add_argument("--redo", action="store_true")
    parser.add_argument("--why", default="")
    told = parser.parse_args(words)
    *run, effect = told.named
    said = read_said(told.done, not_done=told.not_done, redo=told.redo, why=told.why)
    with opening(session, "".join(run[:1])) as call:
        require(call.store)
        return resolve(call.store, call.run(), effect, said)


def _audit(session: Session, words: list[str]) -> str:
    """Say what a run did."""
    with calling(session, "audit", words, "run", "--verify") as call:
        found = audit(call.reader, call.run(), verify=call.told.verify)
        if call.told.json:
            return as_json(found)
        return text(audited.title_of(found), audited.sections(found))


def _handover(session: Session, words: list[str]) -> str:
    """Print the page from which somebody else goes on."""
    with calling(session, "handover", words, "run") as call:
        found = handover(call.reader, call.run())
        return as_json(found) if call.told.json else handover_text(found)


def _export(session: Session, words: list[str]) -> str:
    """Write a run into one file, from the kernel that holds it."""
    parser = LineParser("export", "Write for example: %nbckpt export --output a.nbckpt")
    parser.add_argument("run", nargs="?", default="")
    parser.add_argument("--output", default="")
    told = parser.parse_args(words)
    with opening(session, told.run) as call:
        return archive(call.store, call.run(), told.output)


def _finish(session: Session, words: list[str]) -> str:
    """Archive a run; a kernel that holds it lets it go, and begins a new one next."""
    with calling(session, "finish", words, "run") as call:
        require(call.store)
        run = call.run()
        said = finish(call.store, run)
    if session.is_held and session.run_id == run.run_id:
        session.release()
    if session.wish.run_id == run.run_id:
        session.wish = replace(session.wish, run_id="")
    return said


def _gc(session: Session, words: list[str]) -> str:
    """Remove what no record needs."""
    with calling(session, "gc", words, "") as call:
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
    return trusted_text(make_own(folder, load_secret()), folder)


VERBS: dict[str, Callable[[Session, list[str]], str | Shown]] = {
    "start": _start,
    "status": _status,
    "plan": _plan,
    "lint": _lint,
    "show": _show,
    "explain": _explain,
    "runs": picturing.runs,
    "timeline": picturing.timeline,
    "graph": picturing.graph,
    "size": picturing.size,
    "verify": _verify,
    "audit": _audit,
    "handover": _handover,
    "export": _export,
    "finish": _finish,
    "rerun": _rerun,
    "accept": _accept,
    "fork": speaking.fork,
    "cancel": speaking.cancel,
    "answer": speaking.answer,
    "decide": speaking.decide,
    "unknown": speaking.unknown,
    "note": speaking.note,
    "resolve": _resolve,
    "trust": _trust,
    "gc": _gc,
}

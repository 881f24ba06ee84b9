"""``%nbckpt answer|decide|unknown|note|cancel|fork``: a person's words in a notebook."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nbckpt.errors import BadStep
from nbckpt.verbs.finding.calling import opening
from nbckpt.verbs.finding.starting import LineParser
from nbckpt.verbs.settle import branches
from nbckpt.verbs.settle import words as said

if TYPE_CHECKING:
    from nbckpt.session import Session


def answer(session: Session, words: list[str]) -> str:
    """Answer a question of the notebook's run, also before its step asks it."""
    parser = LineParser("answer", "Write for example: %nbckpt answer delete yes")
    parser.add_argument("--step", default="")
    parser.add_argument("question")
    parser.add_argument("value", nargs="+")
    told = parser.parse_args(words)
    word = " ".join(told.value)
    if told.step:
        session.hold()
    with opening(session) as call:
        if told.step:
            return said.answer_in_advance(
                call.store, call.run(), told.step, told.question, word
            )
        return said.answer(call.store, call.run(), told.question, word)


def decide(session: Session, words: list[str]) -> str:
    """Decide something for the notebook's run."""
    example = 'Write for example: %nbckpt decide cut-off 120 --reason "as in May"'
    parser = LineParser("decide", example)
    parser.add_argument("name")
    parser.add_argument("value")
    parser.add_argument("--reason", default="")
    told = parser.parse_args(words)
    with opening(session) as call:
        return said.decide(call.store, call.run(), told.name, told.value, told.reason)


def unknown(session: Session, words: list[str]) -> str:
    """Open or settle a point of the notebook's run."""
    example = 'Write for example: %nbckpt unknown "is 9E the carrier that was EV?"'
    parser = LineParser("unknown", example)
    parser.add_argument("text", nargs="*")
    parser.add_argument("--settle", type=int, default=0)
    parser.add_argument("--why", default="")
    told = parser.parse_args(words)
    text = " ".join(told.text)
    if bool(text) == bool(told.settle):
        raise BadStep("%nbckpt unknown needs a text, or --settle N --why TEXT", example)
    with opening(session) as call:
        if told.settle:
            return said.settle(call.store, call.run(), told.settle, told.why)
        return said.unknown(call.store, call.run(), text)


def note(session: Session, words: list[str]) -> str:
    """Note something in the notebook's run."""
    parser = LineParser("note", "Write for example: %nbckpt note the outliers are real")
    parser.add_argument("text", nargs="+")
    text = " ".join(parser.parse_args(words).text)
    with opening(session) as call:
        return said.note(call.store, call.run(), text)


def cancel(session: Session, words: list[str]) -> str:
    """Cancel the notebook's run, or the one that is named."""
    parser = LineParser("cancel", "Write for example: %nbckpt cancel etl-1")
    parser.add_argument("run", nargs="?", default="")
    with opening(session, parser.parse_args(words).run) as call:
        return branches.cancel(call.store, call.run())


def fork(session: Session, words: list[str]) -> str:
    """Begin a new run from the notebook's run; this kernel goes on in it."""
    parser = LineParser("fork", "Write for example: %nbckpt fork --from fit")
    parser.add_argument("run", nargs="?", default="")
    parser.add_argument("--from", dest="step", required=True)
    parser.add_argument("--run-id", default="")
    parser.add_argument("--version", default="")
    told = parser.parse_args(words)
    with opening(session, told.run) as call:
        new, said = branches.fork(
            call.store, call.run(), told.step, told.run_id, told.version
        )
    session.release()
    session.wish = replace(session.wish, run_id=new.run_id, version=new.version)
    return said

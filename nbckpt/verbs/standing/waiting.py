"""What a run waits for: answers, outcomes of effects, points that nobody settled yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from nbckpt import answers, places
from nbckpt.errors import WaitingForAnswer
from nbckpt.records import EffectState, StepState
from nbckpt.runs.leases import is_held
from nbckpt.runs.moments import local

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbckpt.records import Attempt, Lease, RunRecord
    from nbckpt.runs.history import Reader

MOST = 8
"""Effects that are shown to people one by one."""


class OpenQuestion(TypedDict):
    """A question that waits for a person."""

    id: str
    step: str
    item: str
    text: str
    options: list[Any]
    asked_at: float
    deadline: float
    """Seconds since the epoch; 0: none."""
    late: bool
    """Whether the deadline has passed."""
    commands: list[str]
    """What answers it, one for each option."""


class OpenEffect(TypedDict):
    """An effect that was begun, and of which no record tells whether it happened."""

    name: str
    step: str
    item: str
    key: str
    since: float
    """When it was begun first, in seconds since the epoch."""
    error: str
    """What the call raised."""
    command: str
    """What settles it, unless the notebook's own `lookup` or `dedup` does."""


class Stopped(TypedDict):
    """A step that stopped for a person, for neither a question nor such an effect."""

    step: str
    error: str
    """What is wrong, and the commands that settle it."""


class OpenPoint(TypedDict):
    """A point that is not settled."""

    number: int
    text: str
    step: str
    by: str
    at: float
    command: str
    """What settles it."""


def open_questions(reader: Reader, run: RunRecord, now: float) -> list[OpenQuestion]:
    """Return the questions of a run that wait for an answer, oldest first.

    Parameters
    ----------
    reader : Reader
        The run's store.
    run : RunRecord
        The run.
    now : float
        Wall clock in seconds since the epoch.

    Returns
    -------
    list of OpenQuestion
        JSON values.
    """
    store = store_named(reader, run)
    return [
        OpenQuestion(
            id=asked.id,
            step=asked.step,
            item=asked.item,
            text=asked.text,
            options=list(asked.options),
            asked_at=asked.asked_at,
            deadline=asked.deadline,
            late=bool(asked.deadline) and now > asked.deadline,
            commands=answers.commands(asked, store),
        )
        for asked in reader.questions(run.run_id)
        if not asked.answered
    ]


def store_named(reader: Reader, run: RunRecord) -> str:
    """Return the store's folder where a command would look for another one.

    Parameters
    ----------
    reader : Reader
        The run's store.
    run : RunRecord
        The run.

    Returns
    -------
    str
        Empty if a shell in the notebook's folder finds it.
    """
    folder = reader.store.folder.absolute()
    notebook = folder.parent / (run.notebook or "it.ipynb")
    return places.named(folder, notebook.parent)


def open_effects(reader: Reader, run: RunRecord) -> list[OpenEffect]:
    """Return the effects of a run of which it is not known whether they happened.

    Parameters
    ----------
    reader : Reader
        The run's store.
    run : RunRecord
        The run.

    Returns
    -------
    list of OpenEffect
        JSON values. Those of a step that runs are under way and not among them, nor
        those that a person has said to do again.
    """
    store = store_named(reader, run)
    found = []
    for step in _left(reader, run.run_id):
        for _, row in reader.store.scan(f"effect/{run.run_id}/{step}/"):
            if row.get("state") != EffectState.INTENT or row.get("answer"):
                continue
            key, name = row.get("key", ""), row.get("name", "")
            command = answers.resolving(run.run_id, key or name, store)
            found.append(
                OpenEffect(
                    name=name,
                    step=step,
                    item=row.get("item", ""),
                    key=key,
                    since=row.get("first_at", 0.0),
                    error=row.get("error", ""),
                    command=command,
                )
            )
    return found


def open_stops(
    reader: Reader,
    run: RunRecord,
    questions: list[OpenQuestion],
    effects: list[OpenEffect],
) -> list[Stopped]:
    """Return the steps that stopped for a person who has said nothing since.

    Parameters
    ----------
    reader : Reader
        The run's store.
    run : RunRecord
        The run.
    questions : list of OpenQuestion
        From `open_questions`: what a step asks is not shown twice.
    effects : list of OpenEffect
        From `open_effects`.

    Returns
    -------
    list of Stopped
        JSON values.
    """
    told = {one["step"] for one in (*questions, *effects)}
    question = WaitingForAnswer.__name__
    return [
        Stopped(step=name, error=attempt.error.partition(": ")[2])
        for name, attempt in reader.attempts(run.run_id).items()
        if attempt.state is StepState.WAITING
        and name not in told
        and not attempt.error.startswith(question)
        and not _said_since(reader, attempt)
    ]


def answered(reader: Reader, run: RunRecord, attempts: dict[str, Attempt]) -> set[str]:
    """Return the steps that stopped for a person, and wait for nobody any more.

    Parameters
    ----------
    reader : Reader
        The run's store.
    run : RunRecord
        The run.
    attempts : dict
        Its steps and the last attempt of each.

    Returns
    -------
    set of str
        The run goes on with them; every form of it is told from here.
    """
    found = {n for n, one in attempts.items() if one.state is StepState.WAITING}
    if not found:
        return found
    questions, effects = open_questions(reader, run, 0.0), open_effects(reader, run)
    stops = open_stops(reader, run, questions, effects)
    return found - {one["step"] for one in (*questions, *effects, *stops)}


def asked_outside(reader: Reader, run: RunRecord, lease: Lease | None) -> str:
    """Tell whether a run that was given back waits for an answer to a plain cell.

    Parameters
    ----------
    reader, run : Reader, RunRecord
        The run.
    lease : Lease or None
        The last one.

    Returns
    -------
    str
        ``waiting``; ``answered`` if that came after the last holder had left; or empty.
    """
    if lease is None or not lease.released:
        return ""
    asked = [one for one in reader.questions(run.run_id) if not one.step]
    if not all(one.answered for one in asked):
        return "waiting"
    return "answered" if any(q.answered_at > lease.beat_at for q in asked) else ""


def resume_command(run: RunRecord) -> str:
    """Return the command that goes on with a run.

    Parameters
    ----------
    run : RunRecord
        The run.

    Returns
    -------
    str
        In words where the notebook's file is not known.
    """
    if not run.notebook:
        return "run the notebook top to bottom"
    return answers.resuming(run.notebook, run.run_id)


def _said_since(reader: Reader, attempt: Attempt) -> bool:
    """Tell whether a person settled an effect at which a step stopped, since it did."""
    for _, row in reader.store.scan(f"effect/{attempt.run_id}/"):
        said, key = row.get("answer") or {}, row.get("key", "")
        # That of a step that is gone is named in the refusal.
        is_meant = row.get("step") == attempt.step or (key and key in attempt.error)
        if is_meant and said.get("at", 0.0) > attempt.ended_at:
            return True
    return False


def _left(reader: Reader, run_id: str) -> Iterator[str]:
    """Yield the steps that were begun, are not completed, and do not run now."""
    lease = reader.lease(run_id)
    token = lease.token if lease and is_held(lease) else None
    for name, attempt in reader.attempts(run_id).items():
        runs = attempt.state is StepState.RUNNING and attempt.token == token
        if attempt.state is not StepState.COMPLETED and not runs:
            yield name


def open_points(reader: Reader, run: RunRecord) -> list[OpenPoint]:
    """Return the points of a run that are not settled, by number.

    Parameters
    ----------
    reader : Reader
        The run's store.
    run : RunRecord
        The run.

    Returns
    -------
    list of OpenPoint
        JSON values.
    """
    return [
        OpenPoint(
            number=point.number,
            text=point.text,
            step=point.step,
            by=point.by,
            at=point.at,
            command=f"nbckpt unknown {run.run_id} --settle {point.number} --why TEXT",
        )
        for point in reader.unknowns(run.run_id)
        if not point.settled
    ]


def question_lines(questions: list[OpenQuestion]) -> list[str]:
    """Return open questions for people.

    Parameters
    ----------
    questions : list of OpenQuestion
        From `open_questions`.
    """
    lines = []
    for asked in questions:
        late = " (its deadline has passed without an answer)" if asked["late"] else ""
        lines += ["", f"question  {asked['id']}{_where(asked)}: {asked['text']}{late}"]
        lines += [f"  to answer: {command}" for command in asked["commands"]]
    return lines


def effect_lines(effects: list[OpenEffect]) -> list[str]:
    """Return effects of unknown outcome for people; of many, the first ones.

    Parameters
    ----------
    effects : list of OpenEffect
        From `open_effects`.
    """
    lines = []
    for one in effects[:MOST]:
        error = f" ({one['error']})" if one["error"] else ""
        known = f"not known whether it happened{error}"
        begun = f"begun at {local(one['since'])}, {known}"
        lines += ["", f"effect    {one['name']}{_where(one)}: {begun}"]
        lines.append(f"  to settle: {one['command']}")
    if len(effects) > MOST:
        lines.append(f"  and {len(effects) - MOST} effects more")
    return lines


def point_lines(points: list[OpenPoint]) -> list[str]:
    """Return open points for people.

    Parameters
    ----------
    points : list of OpenPoint
        From `open_points`.
    """
    lines = []
    for point in points:
        lines += ["", f"unknown   {point['number']}: {point['text']} ({point['by']})"]
        lines.append(f"  to settle: {point['command']}")
    return lines


def _where(one: OpenQuestion | OpenEffect) -> str:
    """Return the step and item of a question or effect."""
    return "".join(f", {word}" for word in (one["step"], one["item"]) if word)


def answering(questions: list[OpenQuestion]) -> list[str]:
    """Return the commands that answer questions, the options of each in one line.

    Parameters
    ----------
    questions : list of OpenQuestion
        From `open_questions`.
    """
    return [" | ".join(asked["commands"]) for asked in questions]


def settling(effects: list[OpenEffect]) -> list[str]:
    """Return the commands that settle effects; of many, the first ones.

    Parameters
    ----------
    effects : list of OpenEffect
        From `open_effects`.
    """
    left = len(effects) - MOST
    more = [f"nbckpt status shows {left} more"] if left > 0 else []
    return [one["command"] for one in effects[:MOST]] + more

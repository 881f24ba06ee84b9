"""What a run waits for: open questions, and points that nobody settled yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from nbckpt import answers

if TYPE_CHECKING:
    from nbckpt.history import Reader
    from nbckpt.records import RunRecord


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
            commands=answers.commands(asked),
        )
        for asked in reader.questions(run.run_id)
        if not asked.answered
    ]


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


def waiting_lines(questions: list[OpenQuestion], points: list[OpenPoint]) -> list[str]:
    """Return what a run waits for, for people.

    Parameters
    ----------
    questions : list of OpenQuestion
        From `open_questions`.
    points : list of OpenPoint
        From `open_points`.

    Returns
    -------
    list of str
        Empty if there is nothing.
    """
    lines = []
    for asked in questions:
        late = " (its deadline has passed without an answer)" if asked["late"] else ""
        where = "".join(f", {word}" for word in (asked["step"], asked["item"]) if word)
        lines += ["", f"question  {asked['id']}{where}: {asked['text']}{late}"]
        lines += [f"  to answer: {command}" for command in asked["commands"]]
    for point in points:
        lines += ["", f"unknown   {point['number']}: {point['text']} ({point['by']})"]
        lines.append(f"  to settle: {point['command']}")
    return lines

"""``nbckpt status`` and ``nbckpt runs`` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbckpt.pictures import Bar, Chart, Lane, Picture, chart_picture
from nbckpt.pictures.lanes import round_length
from nbckpt.verbs.forms.pages import (
    Page,
    Part,
    Table,
    duration,
    first_sentence,
    moment,
    size,
    slim,
    state_word,
)
from nbckpt.verbs.standing.looping import open_trees
from nbckpt.verbs.standing.waiting import effect_lines, point_lines, question_lines

if TYPE_CHECKING:
    from nbckpt.verbs.standing.status import HolderState, RunLine, Status, StepStatus

SHOWN = 24
"""Runs in the picture; all are in the table."""


def status_page(data: Status) -> Page:
    """Return a run's status for people.

    Parameters
    ----------
    data : Status
        From `status`.

    Returns
    -------
    Page
        The run, its steps, and how to go on.
    """
    version = f", version {data['version']}" if data["version"] else ""
    done = f"{data['done']} of {data['total']} steps done"
    page: list[Part] = [
        f"run {data['run']}{version}: {state_word(data['state'])}, {done}",
        f"notebook  {data['notebook'] or 'unknown'}",
        f"holder    {_holder_text(data['holder'])}",
        *_current_lines(data),
    ]
    trust = "" if data["store"]["authenticated"] else ", not authenticated"
    page.append(
        f"store     {data['store']['folder']} ({size(data['store']['bytes'])}{trust})"
    )
    page += [*open_trees(data["loops"]), "", _steps_table(data["steps"])]
    page += question_lines(data["questions"]) + effect_lines(data["effects"])
    for stop in data["stops"]:
        page += ["", f"stopped   {stop['step']}: {stop['error']}"]
    page += point_lines(data["unknowns"])
    if data["resume"]:
        page += ["", f"To go on: {data['resume']}"]
    return page


def _current_lines(data: Status) -> list[str]:
    """Return the step that runs, or that the run ended in."""
    is_dead = data["holder"] is None or data["holder"]["standing"] == "dead"
    ended = "died in  " if is_dead else "ended in "
    return [
        f"{words} {step['step']}, since {moment(step['since'])} "
        f"({duration(step['seconds'])})"
        for words, step in (("running  ", data["current"]), (ended, data["died_in"]))
        if step
    ]


def _holder_text(holder: HolderState | None) -> str:
    """Return who holds a run, for people."""
    if holder is None or holder["standing"] == "free":
        return "nobody"
    return (
        f"process {holder['pid']} on {holder['host']}: {holder['standing']}, "
        f"last beat {duration(holder['beat_age'])} ago"
    )


def _steps_table(steps: list[StepStatus]) -> Table:
    """Return the steps for people."""
    rows = [
        (
            str(step["number"]),
            step["name"],
            state_word(step["state"]),
            duration(step["seconds"]) if step["attempt"] else "-",
            str(step["attempt"] or "-"),
            first_sentence(step["error"]) or step["runs_again"],
        )
        for step in steps
    ]
    return Table(("#", "step", "state", "time", "attempt", "note"), rows)


def runs_page(data: list[RunLine]) -> Page:
    """Return a store's runs for people.

    Parameters
    ----------
    data : list of RunLine
        From `runs`.

    Returns
    -------
    Page
        One table.
    """
    if not data:
        return ["no runs yet"]
    rows = [
        (
            line["run"],
            state_word(line["state"]),
            f"{line['done']}/{line['total']}",
            duration(line["seconds"]),
            line["holder"],
            moment(line["created_at"]),
            line["version"] or "-",
            line["forked_from"] or "-",
            line["notebook"] or "-",
        )
        for line in data
    ]
    head = (
        "run", "state", "done", "time", "holder", "begun", "version", "forked from",
        "notebook",
    )  # fmt: skip
    return [slim(Table(head, rows), "version", "forked from")]


def runs_picture(data: list[RunLine]) -> Picture:
    """Return how long the runs of a store took, as a picture.

    Parameters
    ----------
    data : list of RunLine
        From `runs`.

    Returns
    -------
    Picture
        A lane for each of the last runs, cut into its steps.
    """
    shown = data[-SHOWN:]
    longest = max((line["seconds"] for line in shown), default=0.0)
    mark = round_length(max(longest / 4, 0.01))
    left_out = f", the last {SHOWN} of {len(data)}" if len(data) > SHOWN else ""
    chart = Chart(
        title=f"Time that runs took, by step{left_out}",
        told=", ".join(f"{line['run']} {duration(line['seconds'])}" for line in shown),
        lanes=tuple(Lane(line["run"], _stacked(line), _ending(line)) for line in shown),
        mark=(mark, duration(mark)),
    )
    return chart_picture(chart)


def _ending(line: RunLine) -> str:
    """Return how long a run took, and where it stands."""
    return f"{duration(line['seconds'])}, {state_word(line['state'])}"


def _stacked(line: RunLine) -> tuple[Bar, ...]:
    """Return the steps of a run, one after the other, light and dark in turn."""
    bars, begin = [], 0.0
    for order, (step, seconds) in enumerate(line["times"].items()):
        kind = "good" if order % 2 == 0 else "pale"
        told = f"{line['run']}, {step}: {duration(seconds)}"
        bars.append(Bar(begin, begin + seconds, kind, told))
        begin += seconds
    return tuple(bars)

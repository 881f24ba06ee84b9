"""Whether a step is skipped or runs, and why: a pure decision.

Nothing here touches disk, clock or kernel: everything that was found out comes in,
the decision goes out.
"""

from __future__ import annotations

from dataclasses import dataclass

from nbckpt.records import Fingerprint, StepRecord, StepState

PARTS = (
    ("inputs", "input"),
    ("sharing", "sharing of objects by"),
    ("modules", "module"),
    ("files", "file"),
    ("environment", "environment variable"),
    ("versions", "version of"),
    ("random", "random stream"),
)


@dataclass(frozen=True, slots=True)
class Skip:
    """The step is done; its values and outputs come back."""

    reason: str = "verified"


@dataclass(frozen=True, slots=True)
class Run:
    """The body runs."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """A person must decide."""

    reason: str
    remedy: str
    """For `str.format` with ``step`` and ``run``."""


Decision = Skip | Run | Stop


@dataclass(frozen=True, slots=True)
class Situation:
    """All that a decision rests on."""

    record: StepRecord | None
    now: Fingerprint
    findings: tuple[str, ...] = ()
    """What the evidence does not confirm, one text each."""
    accepted: tuple[str, ...] = ()
    rerun: str = ""
    always: bool = False
    age: float = 0.0
    max_age: float = 0.0
    last_attempt: StepState | None = None
    stop_on_redo: bool = False
    damaged: str = ""


def differences(
    recorded: Fingerprint, now: Fingerprint, accepted: tuple[str, ...] = ()
) -> list[str]:
    """Return the parts of a fingerprint that differ.

    Parameters
    ----------
    recorded : Fingerprint
        From the step's record.
    now : Fingerprint
        As things stand.
    accepted : tuple of str, optional
        Code fingerprints that a person accepted as unchanged.

    Returns
    -------
    list of str
        One text for each part, naming it; empty if the step is unchanged.

    Examples
    --------
    >>> differences(Fingerprint(inputs={"x": "1"}), Fingerprint(inputs={"x": "2"}))
    ["input 'x' changed"]
    """
    found = [text for text in (recorded.unknown, now.unknown) if text]
    if now.code != recorded.code and now.code not in accepted:
        found.append("its code changed")
    if now.options != recorded.options:
        found.append("its --version changed")
    for part, label in PARTS:
        found += _compare(label, getattr(recorded, part), getattr(now, part))
    found += _compare_names("folder", recorded.folders, now.folders)
    found += _compare_names("pattern", recorded.globs, now.globs)
    return found + _compare_ways(recorded.working_folder, now.working_folder)


def _compare(label: str, before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return how one part of two fingerprints differs; of no digest is what is not there."""
    found = []
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) == now.get(name):
            continue
        if label == "version of":
            change = f"{before.get(name, 'none')} → {now.get(name, 'none')}"
            found.append(f"version of {name} changed ({change})")
        elif not now.get(name):
            found.append(f"{label} {name!r} is gone")
        elif not before.get(name):
            found.append(f"{label} {name!r} is new")
        else:
            found.append(f"{label} {name!r} changed")
    return found


def _compare_names(
    label: str, before: dict[str, tuple[str, ...]], now: dict[str, tuple[str, ...]]
) -> list[str]:
    """Return which names came to folders, and which went."""
    found = []
    for place in sorted(before.keys() | now.keys()):
        old, new = set(before.get(place, ())), set(now.get(place, ()))
        changes = [f"{name!r} came" for name in sorted(new - old)]
        changes += [f"{name!r} went" for name in sorted(old - new)]
        if len(changes) > NAMES_TOLD:
            changes[NAMES_TOLD:] = [f"{len(changes) - NAMES_TOLD} more"]
        if changes:
            found.append(f"{label} {place!r}: {', '.join(changes)}")
    return found


def _compare_ways(before: tuple[str, ...], now: tuple[str, ...]) -> list[str]:
    """Return whether no way leads to the working folder any more that led there."""
    pairs = list(zip(before, now, strict=False))
    if not pairs or any(old == new for old, new in pairs):
        return []
    return [f"working folder changed ({before[-1]!r} → {now[-1]!r})"]


NAMES_TOLD = 3


def decide(situation: Situation) -> Decision:
    """Decide whether a step is skipped or runs.

    Parameters
    ----------
    situation : Situation
        What is recorded and what was found.

    Returns
    -------
    Skip or Run or Stop
        With the reason.

    Examples
    --------
    >>> decide(Situation(record=None, now=Fingerprint()))
    Run(reason='it has no record yet')
    """
    reason = _why_not_skipped(situation)
    if reason is None:
        return Skip()
    unfinished = situation.last_attempt in _UNFINISHED and not situation.rerun
    if situation.stop_on_redo and unfinished:
        return Stop(
            f"it was attempted and not completed ({situation.last_attempt})",
            "Look at what it did, then have it run again: %nbckpt rerun {step}, or in "
            "a shell: nbckpt rerun {step} --run {run}",
        )
    return Run(reason)


_UNFINISHED = {StepState.RUNNING, StepState.INTERRUPTED, StepState.FAILED}


def _why_not_skipped(situation: Situation) -> str | None:
    """Return why the body must run, or None."""
    record = situation.record
    if situation.always:
        return "it is marked --always"
    if record is None:
        return situation.damaged or _why_no_record(situation.last_attempt)
    if situation.rerun:
        return f"asked for: {situation.rerun}"
    return _why_not_believed(record, situation)


def _why_not_believed(record: StepRecord, situation: Situation) -> str | None:
    """Return why a record does not stand for another run of the body, or None."""
    if record.runs_again:
        return f"it can't be kept: {record.runs_again}"
    if situation.max_age and situation.age > situation.max_age:
        return "it is older than --max-age"
    changed = differences(record.fingerprint, situation.now, situation.accepted)
    return "; ".join([*changed, *situation.findings][:3]) or None


def _why_no_record(last: StepState | None) -> str:
    """Return why a step has no record."""
    if last is StepState.FAILED:
        return "it failed before"
    if last is StepState.WAITING:
        return "it waited for a person"
    if last in {StepState.RUNNING, StepState.INTERRUPTED}:
        return "it was interrupted before"
    return "it has no record yet"

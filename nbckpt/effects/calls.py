"""Effects on the outside world that happen once, or stop for a person who can tell.

A process that dies between a call and the record of it leaves behind that it does not
know. What is done then depends on what the receiver offers: it can be asked (`lookup`), it
recognises a repeated key (`dedup`), or a person must look. Without either contract every
end between the two stops the run. Nothing but a new run gives new keys.

A process that was taken over while it waits for the receiver is ended before its heir
asks or calls: what it sent may still arrive, and the heir finds the intent, not the
outcome.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from nbckpt import current
from nbckpt.effects import replies
from nbckpt.effects.intents import Intent, key_here
from nbckpt.effects.payloads import differing, request_given, request_read
from nbckpt.effects.renamed import takes_over
from nbckpt.errors import BadStep, OwnFramesHidden, StopForHuman
from nbckpt.plan import read_duration
from nbckpt.records import EffectState
from nbckpt.runs.moments import local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbckpt.records import EffectRecord

Duration = str | float | timedelta | None


class Rare(TypedDict, total=False):
    """What few effects need; see `effect`."""

    request: Any
    settle: Duration
    refused: type[Exception] | tuple[type[Exception], ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """An effect as the notebook asks for it."""

    perform: Callable[..., Any]
    lookup: Callable[..., Any] | None
    dedup: float
    settle: float
    refused: tuple[type[BaseException], ...]
    request: dict[str, str]


def effect(
    name: str,
    perform: Callable[..., Any],
    lookup: Callable[..., Any] | None = None,
    dedup: Duration = None,
    **rare: Unpack[Rare],
) -> Any:
    """Make an effect happen once in a run, and return its outcome.

    Parameters
    ----------
    name : str
        What happens to what; unique in its step (and item), such as ``charge-4711``.
    perform : callable
        Makes the call and returns its outcome, plain data at best. It is given the
        idempotency key if it needs an argument or has one named ``key``.
    lookup : callable, optional
        Asks the receiver for the outcome by key; None, and no other empty reply, means
        not found. What it raises goes up, and nothing is performed.
    dedup : str or float or timedelta, optional
        How long the receiver documents that it recognises a repeated key: ``"24h"``.
    **rare
        ``request``: what is sent, instead of the plain data that `perform` reads;
        ``settle``: how long answers to `lookup` may lag behind, ``"30s"``;
        ``refused``: types of errors after which it has certainly not happened.

    Returns
    -------
    object
        What `perform` returned, now or before, or what was found.

    Raises
    ------
    StopForHuman
        If it can't be known whether it happened, or its request differs from the one
        made under this key. As with every error before the call, nothing was performed.

    Examples
    --------
    ::

        nbckpt.effect("charge-7", lambda key: api.charge(7, key), api.find_charge)
    """
    place = current.place("effect")
    asked = _read(name, (perform, lookup), dedup, rare, place.session.namespace)
    with OwnFramesHidden(), _turn(key_here(place, name)):
        intent = Intent(place, name, "call")
        while (found := _go_on(intent, asked)) is None:
            intent.read()  # a person said something meanwhile
        return found.outcome


def idempotency_key(name: str = "") -> str:
    """Return the key that an effect of this name has in the step that runs.

    Parameters
    ----------
    name : str, optional
        The effect's name.

    Returns
    -------
    str
        The same in every attempt and rerun of the run, another in another run.

    Raises
    ------
    BadStep
        If it was called outside of a step.

    Notes
    -----
    The key alone prevents nothing: whether a repeated key is recognised is the
    receiver's contract, and nothing is recorded here.

    Examples
    --------
    ::

        requests.post(url, json=order, headers={"Idempotency-Key": idempotency_key("post")})
    """
    return key_here(current.place("idempotency_key"), name)


def _read(
    name: str,
    calls: tuple[Callable[..., Any], Callable[..., Any] | None],
    dedup: Duration,
    rare: Rare,
    namespace: dict[str, Any],
) -> Asked:
    """Return what is asked for; refuse what can't be right before anything happens."""
    if unknown := rare.keys() - {"request", "settle", "refused"}:
        raise TypeError(f"effect() has no argument {min(unknown)!r}")
    perform, lookup = calls
    replies.check_call(f"perform of effect {name}", perform)
    if lookup is not None:
        replies.check_call(f"lookup of effect {name}", lookup)
    if "request" in rare:
        request = request_given(rare["request"], namespace)
    else:
        request = request_read(perform, namespace)
    return Asked(
        perform,
        lookup,
        _seconds(dedup),
        _seconds(rare.get("settle")),
        _errors(rare.get("refused", ())),
        request,
    )


def _errors(kinds: Any) -> tuple[type[BaseException], ...]:
    """Return the types of errors after which nothing happened."""
    found = tuple(kinds) if isinstance(kinds, tuple | list) else (kinds,)
    for kind in found:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise BadStep(
                f"effect(refused={kinds!r}): {kind!r} is no type of errors",
                "Give classes, such as refused=(CardDeclined, ValueError)",
            )
    return (*found, replies.NotBegun)


def _seconds(length: Duration) -> float:
    """Return a length of time in seconds."""
    return read_duration(length) if length is not None else 0.0


@dataclass(frozen=True, slots=True)
class Settled:
    """An effect that happened."""

    outcome: Any


def _go_on(intent: Intent, asked: Asked) -> Settled | None:
    """Bring an effect to its end; None if its record changed meanwhile."""
    if intent.key in _unsaved:
        return _save(intent)
    record = intent.record
    if record is not None and record.state is EffectState.DONE:
        return _recorded(intent, record, asked)
    # Before the receiver is asked: a holder that was replaced may be in the middle of
    # the same call.
    intent.place.session.alone()
    if record is None and takes_over(intent, lambda it: _is_same(it, asked)):
        return None
    found = _find(intent, asked)
    if found is not None:
        intent.write_done(found, "found", asked.request)
        return Settled(found)
    # Killed before this line, nothing happened. After it, it is not known.
    if not intent.write_intent(asked.request):
        return None
    return Settled(_perform(intent, asked))


def _find(intent: Intent, asked: Asked) -> Any:
    """Return the outcome that the receiver knows; stop if nothing tells how to go on."""
    record = intent.record
    if record is not None and record.state is EffectState.INTENT:
        if record.answer is not None:
            return None  # a person who says to do it again has looked
        _check_unknown(intent, record, asked)
    return _look(intent, asked.lookup, asked.settle) if asked.lookup else None


def _recorded(intent: Intent, record: EffectRecord, asked: Asked) -> Settled:
    """Return the outcome of an effect that is done; the request must be the same."""
    intent.tell_shared()
    intent.ask()
    if record.request is None:
        intent.adopt(asked.request)
    else:
        _check_request(intent, record.request, asked.request)
    return Settled(intent.outcome())


def _is_same(former: Intent, asked: Asked) -> bool:
    """Tell whether the effect of another step was made, or begun, with this request."""
    record = former.record
    return record is not None and not differing(
        record.request or asked.request, asked.request
    )


def _check_unknown(intent: Intent, record: EffectRecord, asked: Asked) -> None:
    """Stop unless the receiver's contract tells how to go on from an intent."""
    _check_request(intent, record.request or {}, asked.request)
    age = time.time() - record.first_at
    if asked.lookup is None and not 0 <= age < asked.dedup:
        late = f", longer ago than dedup={asked.dedup:g}s" if asked.dedup else ""
        error = f" ({record.error})" if record.error else ""
        raise StopForHuman(
            f"{intent.where}: it was begun at {local(record.first_at)}{late}, and it "
            f"is not known whether it happened{error}",
            f"Look at the receiver for {intent.key}, then say it: {intent.resolving()}",
        )


def _check_request(
    intent: Intent, recorded: dict[str, str], now: dict[str, str]
) -> None:
    """Stop if another request was made under this key."""
    if names := differing(recorded, now):
        raise StopForHuman(
            f"{intent.where}: its request differs from the one that was made under its "
            f"key, in {', '.join(names)}",
            "Nothing was performed. Make it as it was, name request= if that is no part "
            "of it, give another effect another name, or say what counts: "
            f"{intent.resolving()}",
        )


def _look(intent: Intent, lookup: Callable[..., Any], settle: float) -> Any:
    """Ask the receiver; "not found" counts only once its answers have caught up."""
    found = _ask(intent, lookup)
    record = intent.record
    if found is not None or record is None or record.state is not EffectState.INTENT:
        return found
    if settle <= 0:
        return None
    # Whenever the call began, it may have been under way until a moment ago.
    _wait(settle)
    return _ask(intent, lookup)


def _ask(intent: Intent, lookup: Callable[..., Any]) -> Any:
    """Return what a lookup found."""
    return replies.found(f"lookup of {intent.where}", replies.call(lookup, intent.key))


def _wait(seconds: float) -> None:
    """Wait; Ctrl-C ends it."""
    threading.Event().wait(seconds)


def _perform(intent: Intent, asked: Asked) -> Any:
    """Make the call of an intent that is on disk."""
    try:
        reply = replies.call(asked.perform, intent.key)
        outcome = replies.outcome(f"perform of {intent.where}", reply)
    except asked.refused as error:
        intent.write_refused(error)
        raise
    except Exception as error:
        intent.note_error(error)
        raise
    _unsaved[intent.key] = Settled(outcome)
    # Killed before this line, the outcome is not known. After it, it never happens again.
    _save(intent)
    return outcome


_unsaved: dict[str, Settled] = {}
"""Outcomes that this process knows and the store does not: the disk was full."""


def _save(intent: Intent) -> Settled:
    """Record the outcome of a call that came back."""
    settled = _unsaved[intent.key]
    intent.write_done(settled.outcome, "performed")
    del _unsaved[intent.key]
    if intent.record is not None and intent.record.unkept:
        sys.stderr.write(
            f"nbckpt: {intent.where} is done, but a later run can't have its outcome: "
            f"{intent.record.unkept}. Return plain data from perform\n"
        )
    return settled


_performing: dict[str, int] = {}
_changed = threading.Condition()


@contextmanager
def _turn(key: str) -> Iterator[None]:
    """Let one thread at a time work on a key; the others find what it left."""
    me = threading.get_ident()
    with _changed:
        if _performing.get(key) == me:
            raise BadStep(
                f"the effect with key {key} was called from inside itself",
                "Give the inner one another name",
            )
        _changed.wait_for(lambda: key not in _performing)
        _performing[key] = me
    try:
        yield
    finally:
        with _changed:
            del _performing[key]
            _changed.notify_all()

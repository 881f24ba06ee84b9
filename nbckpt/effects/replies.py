"""What the functions of an effect are called with, and whether their replies tell anything.

A reply that is no outcome (a coroutine that nobody awaited, a future, an answer of HTTP that
is an error, an empty list of a lookup) must not be taken for one: the effect would count as
done, and never happen.
"""

from __future__ import annotations

import inspect
from concurrent.futures import Future
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from nbckpt.errors import BadStep

if TYPE_CHECKING:
    from collections.abc import Callable

KEY_NAMES = ("key", "idempotency_key")
BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
BY_PLACE = (
    Parameter.POSITIONAL_ONLY,
    Parameter.POSITIONAL_OR_KEYWORD,
    Parameter.VAR_POSITIONAL,
)
HTTP_ERRORS = 400
AGAIN = "Return what came of it: its result, plain data at best"


class NotBegun(BadStep):
    """A call made something that was never begun: nothing happened."""


def check_call(where: str, function: Any) -> None:
    """Refuse what can't be called with a key, before anything happens.

    Parameters
    ----------
    where : str
        The effect, for the message.
    function : object
        What the user gave as `perform` or `lookup`.

    Raises
    ------
    BadStep
        If it is no plain function of a key, or of nothing.
    """
    if not callable(function):
        raise BadStep(
            f"{where}: {function!r} can't be called",
            "Write for example: lambda key: api.charge(order, idempotency_key=key)",
        )
    if inspect.iscoroutinefunction(function):
        raise BadStep(
            f"{where}: a coroutine can't be awaited here", "Give a plain function"
        )
    signature = _signature(function)
    try:
        arguments, named = _given(signature, "")
        if signature is not None:
            signature.bind(*arguments, **named)
    except TypeError as error:
        raise BadStep(
            f"{where}: {function!r} can't be called with a key alone: {error}",
            "Bind the rest: lambda key: api.charge(order, idempotency_key=key)",
        ) from None


def call(function: Callable[..., Any], key: str) -> Any:
    """Call a function with the key, if it takes one.

    Parameters
    ----------
    function : callable
        As `check_call` let it pass.
    key : str
        The idempotency key.

    Returns
    -------
    object
        Its reply.
    """
    arguments, named = _given(_signature(function), key)
    return function(*arguments, **named)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """Return what a function takes; some built-in ones tell nothing."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _given(
    signature: inspect.Signature | None, key: str
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the arguments that hand over the key, where it is wanted."""
    if signature is None:
        return (key,), {}
    parameters = signature.parameters.values()
    for each in parameters:
        if each.name in KEY_NAMES and each.kind in BY_NAME:
            return (), {each.name: key}
    first = next(iter(parameters), None)
    # A default is what a loop binds for itself: lambda order=order: …
    if first is None or first.kind not in BY_PLACE or first.default is not first.empty:
        return (), {}
    return (key,), {}


def outcome(where: str, reply: Any) -> Any:
    """Return a reply, if it can be an outcome.

    Parameters
    ----------
    where : str
        Who gave it, for the message.
    reply : object
        What a function returned.

    Returns
    -------
    object
        The same.

    Raises
    ------
    NotBegun
        If it is a coroutine that nobody awaited.
    BadStep
        If it says that something is still to come, or that the receiver had an error.
    """
    kind = type(reply).__name__
    if inspect.iscoroutine(reply):
        is_new = inspect.getcoroutinestate(reply) == inspect.CORO_CREATED
        if is_new:
            reply.close()  # or Python warns that nobody awaited it
        raise (NotBegun if is_new else BadStep)(
            f"{where} returned a coroutine, which nobody has awaited",
            "Give a function that returns when it has happened",
        )
    if _is_to_come(reply):
        raise BadStep(f"{where} returned a {kind}, which is no outcome yet", AGAIN)
    status = getattr(reply, "status_code", getattr(reply, "status", None))
    if isinstance(status, int) and status >= HTTP_ERRORS and hasattr(reply, "headers"):
        raise BadStep(
            f"{where} returned a {kind} with status {status}, which is an error",
            "Let it raise: reply.raise_for_status(). Return plain data, or None for what "
            "a lookup did not find",
        )
    return reply


def found(where: str, reply: Any) -> Any:
    """Return what a lookup found; None for nothing.

    Parameters
    ----------
    where : str
        Who gave it, for the message.
    reply : object
        What `lookup` returned.

    Returns
    -------
    object
        The same.

    Raises
    ------
    BadStep
        As for `outcome`; also for what is empty or false, since it does not say which.
    """
    if outcome(where, reply) is not None and _is_empty(reply):
        raise BadStep(
            f"{where} returned {reply!r:.60}, and only None means that it was not found",
            "Return None where it did not happen, else its outcome, which is not empty",
        )
    return reply


def _is_to_come(reply: Any) -> bool:
    """Tell whether a reply stands for something that may not have happened yet."""
    is_lazy = inspect.isgenerator(reply) or inspect.isasyncgen(reply)
    return is_lazy or inspect.isawaitable(reply) or isinstance(reply, Future)


def _is_empty(reply: Any) -> bool:
    """Tell whether a reply holds nothing, or is false."""
    try:
        return not (len(reply) if hasattr(reply, "__len__") else reply)
    except (TypeError, ValueError):  # such as an array of one dimension or none
        return False

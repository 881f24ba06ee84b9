"""Listening in a Jupyter kernel, where everything shown goes through one method."""

from __future__ import annotations

import contextlib
import functools
import select
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbckpt.outputs.patches import Patch

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.outputs.intake import Intake

SHOWN = frozenset(
    {
        "stream",
        "display_data",
        "update_display_data",
        "execute_result",
        "clear_output",
        "error",
    }
)
"""Types of the messages that make the output of a cell."""

DRAIN_SECONDS = 1.0
"""How long to wait for output of other programs that is still in the pipe."""

HIDDEN = "\N{MIDDLE DOT}" * 8
"""What a page shows in place of a password."""

_DELIMITER = b"<IDS|MSG>"


class KernelTap:
    """Listens to what a kernel sends for the request that it is working on.

    Parameters
    ----------
    shell : InteractiveShell
        Its ``kernel`` is an ipykernel, 6 or 7.

    Notes
    -----
    ``kernel.session.send`` carries streams (other threads, the pipe of the file
    descriptors and so subprocesses and C code included), displays, results and comms.
    What a forked child prints comes in ready-made over the ``iopub_thread``. Output for
    other requests is none of ours.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._patches: list[Patch] = []
        self._intake: Intake | None = None
        self._request: str | None = None
        self._streams: list[Any] = []
        self._thread = threading.local()

    @property
    def request(self) -> str | None:
        """Id of the request that the kernel is working on."""
        return _header(self._shell.get_parent()).get("msg_id")

    def open(self, intake: Intake) -> None:
        """Begin to listen.

        Parameters
        ----------
        intake : Intake
            Gets the messages from now on.
        """
        self._install()
        self._streams = [sys.stdout, sys.stderr]
        self.settle()
        self._request = self.request
        self._intake = intake

    def settle(self) -> None:
        """Wait until all that was written so far has been sent."""
        end = time.monotonic() + DRAIN_SECONDS
        for stream in self._streams:
            _drain(stream, end)
        flush(*self._streams, sys.stdout, sys.stderr)

    def close(self) -> None:
        """Cease to listen; the wrappers stay and only forward."""
        self._intake = None

    def remove(self) -> None:
        """Take the wrappers away."""
        self.close()
        for patch in reversed(self._patches):
            patch.undo()
        self._patches.clear()

    def _install(self) -> None:
        """Wrap what sends, once."""
        if self._patches:
            return
        kernel = self._shell.kernel
        self._patches.append(Patch(kernel.session, "send", self._wrap_send))
        thread = getattr(kernel, "iopub_thread", None)
        if thread is not None:
            self._patches.append(Patch(thread, "send_multipart", self._wrap_parts))
        if hasattr(kernel, "_input_request"):
            self._patches.append(Patch(kernel, "_input_request", self._wrap_input))

    def _wrap_send(self, send: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap ``Session.send``."""

        @functools.wraps(send)
        def tapped(
            stream: Any,
            msg_or_type: Any,
            content: Any = None,
            parent: Any = None,
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            if self._intake is not None:
                self._hear(msg_or_type, content, parent)
            # The frames of this very message are not to be heard once more.
            before = self._is_sending()
            self._thread.sending = True
            try:
                return send(stream, msg_or_type, content, parent, *args, **kwargs)
            finally:
                self._thread.sending = before

        return tapped

    def _wrap_parts(self, send: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap ``IOPubThread.send_multipart``, which relays for forked children."""

        @functools.wraps(send)
        def tapped(parts: Any, *args: Any, **kwargs: Any) -> Any:
            if self._intake is not None and not self._is_sending():
                self._hear_parts(parts)
            return send(parts, *args, **kwargs)

        return tapped

    def _wrap_input(self, ask: Callable[..., str]) -> Callable[..., str]:
        """Wrap what asks for a line: a page adds prompt and answer to the cell itself."""

        @functools.wraps(ask)
        def tapped(prompt: str, *args: Any, **kwargs: Any) -> str:
            answer = ask(prompt, *args, **kwargs)
            shown = HIDDEN if kwargs.get("password") else answer
            self._pass_on("stream", {"name": "stdin", "text": f"{prompt} {shown}\n"})
            return answer

        return tapped

    def _is_sending(self) -> bool:
        """Return whether this thread is within ``Session.send``."""
        return getattr(self._thread, "sending", False)

    def _hear(self, message: Any, content: Any, parent: Any) -> None:
        """Take a message, given as ``Session.send`` takes it."""
        kind = message
        if isinstance(message, Mapping):
            kind = message.get("header", {}).get("msg_type")
            content, parent = message.get("content"), message.get("parent_header")
        if kind in SHOWN:
            if _header(parent).get("msg_id") == self._request:
                self._pass_on(kind, content)
        elif kind == "comm_msg":
            self._pass_on(kind, content)

    def _hear_parts(self, parts: Any) -> None:
        """Take a message, given as it goes over the wire."""
        with contextlib.suppress(ValueError, KeyError, TypeError, IndexError):
            unpack = self._shell.kernel.session.unpack
            _, header, parent, _, content = parts[parts.index(_DELIMITER) + 1 :][:5]
            self._hear(unpack(header)["msg_type"], unpack(content), unpack(parent))

    def _pass_on(self, kind: str, content: Mapping[str, Any] | None) -> None:
        """Hand a message over, if that is still wanted."""
        intake = self._intake
        if intake is not None:
            intake.take(kind, content or {})


def flush(*streams: Any) -> None:
    """Flush streams; one that is closed or broken is passed over.

    Parameters
    ----------
    *streams : file-like
        None is allowed, as ``sys.stdout`` may be.
    """
    for stream in dict.fromkeys(streams):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _header(parent: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the header of a message, or the header if it is one itself."""
    message = parent or {}
    header: Mapping[str, Any] = message.get("header", message)
    return header


def _drain(stream: Any, end: float) -> None:
    """Wait until ipykernel has read all that was written to a file descriptor.

    Nothing public tells; without the private names nothing is waited for.
    """
    pipe = getattr(stream, "_fid", None)
    watcher = getattr(stream, "watch_fd_thread", None)
    if pipe is None or watcher is None:
        return
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    pause = threading.Event()
    while time.monotonic() < end:
        if not poll.poll(0) and _waits_for(watcher, pipe):
            return
        pause.wait(0.001)


def _waits_for(watcher: threading.Thread, pipe: int) -> bool:
    """Return whether a thread has dealt with all it read and waits for more.

    An empty pipe is not enough, as the thread may hold what it has just read. Linux
    tells in which call the thread sleeps; elsewhere a moment is all that can be given.
    """
    call = Path(f"/proc/self/task/{watcher.native_id}/syscall")
    try:
        words = call.read_text().split()
    except OSError:
        threading.Event().wait(0.005)
        return True
    return len(words) > 1 and words[1] == hex(pipe)

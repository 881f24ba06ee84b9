"""Sending recorded messages again."""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING, Any

from nbckpt.outputs.kernel import SHOWN, flush
from nbckpt.outputs.patches import muted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CHUNK = 1 << 20

_QUEUE = 4 << 20
"""Bytes that may wait in the kernel to be sent."""

_BURST = 500
"""Messages that are sent at full speed; the later ones at most one a `_PAUSE`."""

_PAUSE = 0.001


def replay(shell: Any, data: bytes | memoryview) -> None:
    """Send recorded messages again, under the present request and execution count.

    ``_`` and ``Out`` are not bound. Nothing of it is recorded.

    Parameters
    ----------
    shell : InteractiveShell
        Of a kernel or of a terminal, whichever the messages were recorded in.
    data : bytes or memoryview
        What `Recording.data` gave; empty is allowed.

    Raises
    ------
    ValueError
        If the data are not recorded messages. Those before are sent.
    """
    flush(sys.stdout, sys.stderr)
    is_kernel = hasattr(getattr(shell, "kernel", None), "session")
    send = _kernel_sender(shell) if is_kernel else _terminal_sender(shell)
    pace = _Pace() if is_kernel else None
    with muted():
        for line in _lines(data):
            message = json.loads(line)
            if message["msg_type"] not in SHOWN:
                raise ValueError(f"{message['msg_type']!r} is no output")
            send(message["msg_type"], message["content"])
            if pace is not None:
                pace.keep(len(line))
    flush(sys.stdout, sys.stderr)


class _Pace:
    """Keeps a replay from outrunning the kernel's queue and the front end.

    A publisher drops what a slow subscriber has no room for (1000 messages by default),
    and does not tell. The first run gave the front end time between messages.
    """

    def __init__(self) -> None:
        self._messages = 0
        self._queued = 0
        self._pause = threading.Event()

    def keep(self, size: int) -> None:
        """Wait, if need be, after a message of some bytes."""
        self._messages += 1
        self._queued += size
        if self._queued > _QUEUE:
            self._queued = 0
            flush(sys.stdout, sys.stderr)
        if self._messages > _BURST:
            self._pause.wait(_PAUSE)


def _lines(data: bytes | memoryview) -> Iterator[bytes]:
    """Give the lines of large data, one at a time."""
    parts: list[bytes] = []
    for start in range(0, len(data), _CHUNK):
        first, *others = bytes(data[start : start + _CHUNK]).split(b"\n")
        parts.append(first)
        for other in others:
            yield b"".join(parts)
            parts = [other]
    if any(parts):
        raise ValueError("the recorded messages break off")


def _kernel_sender(shell: Any) -> Callable[[str, dict[str, Any]], None]:
    """Return what sends a message to the front end of a kernel."""
    kernel = shell.kernel
    parent = shell.get_parent()
    topics = {"execute_result": shell.displayhook.topic}

    def send(kind: str, content: dict[str, Any]) -> None:
        if kind == "execute_result":
            content["execution_count"] = shell.displayhook.prompt_count
        topic = topics.get(kind, shell.display_pub.topic)
        if kind == "stream":
            topic = b"stream." + content["name"].encode()
        kernel.session.send(kernel.iopub_socket, kind, content, parent, ident=topic)

    return send


def _terminal_sender(shell: Any) -> Callable[[str, dict[str, Any]], None]:
    """Return what prints a message."""

    def send(kind: str, content: dict[str, Any]) -> None:
        if kind == "stream":
            getattr(sys, content["name"]).write(content["text"])
        elif kind == "execute_result":
            shell.displayhook.start_displayhook()
            shell.displayhook.write_output_prompt()
            shell.displayhook.write_format_data(content["data"], content["metadata"])
            shell.displayhook.finish_displayhook()
        elif kind == "error":
            sys.stdout.write("\n".join(content["traceback"]) + "\n")
        else:
            shell.display_pub.publish(
                content["data"],
                content["metadata"],
                transient=content.get("transient"),
                update=kind == "update_display_data",
            )

    return send

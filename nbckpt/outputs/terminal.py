"""Listening in IPython without a kernel, where output is printed."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from nbckpt.outputs.kernel import flush
from nbckpt.outputs.patches import Patch, muted

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.outputs.intake import Intake


class TerminalTap:
    """Listens to what is printed and displayed.

    Parameters
    ----------
    shell : InteractiveShell
        IPython in a terminal, or embedded.

    Notes
    -----
    What is written to the file descriptors directly (by a subprocess, by C code) goes
    past Python and is not heard.
    """

    request = None

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._patches: list[Patch] = []
        self._writers: list[Patch] = []
        self._intake: Intake | None = None

    def open(self, intake: Intake) -> None:
        """Begin to listen.

        Parameters
        ----------
        intake : Intake
            Gets the messages from now on.
        """
        self._install()
        self.settle()
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is not None:
                self._listen(name)
        self._intake = intake

    def settle(self) -> None:
        """Write out what is buffered."""
        flush(sys.stdout, sys.stderr)

    def close(self) -> None:
        """Cease to listen; the wrappers of displays stay and only forward."""
        self._intake = None
        for patch in reversed(self._writers):
            patch.undo()
        self._writers.clear()

    def remove(self) -> None:
        """Take the wrappers away."""
        self.close()
        for patch in reversed(self._patches):
            patch.undo()
        self._patches.clear()

    def _install(self) -> None:
        """Wrap what displays, once."""
        if self._patches:
            return
        publisher, hook = self._shell.display_pub, self._shell.displayhook
        self._patches += [
            Patch(publisher, "publish", self._wrap_publish),
            Patch(publisher, "clear_output", self._wrap_clear),
            Patch(hook, "write_output_prompt", _mute),
            Patch(hook, "write_format_data", self._wrap_result),
            Patch(hook, "finish_displayhook", _mute),
        ]

    def _listen(self, name: str) -> None:
        """Wrap the writing of one stream."""

        def wrap(write: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(write)
            def tapped(text: str, *args: Any, **kwargs: Any) -> Any:
                count = write(text, *args, **kwargs)
                if text:
                    self._hear("stream", {"name": name, "text": text})
                return count

            return tapped

        self._writers.append(Patch(getattr(sys, name), "write", wrap))

    def _wrap_publish(self, publish: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap ``DisplayPublisher.publish``, which prints the text form."""

        @functools.wraps(publish)
        def tapped(data: Any, metadata: Any = None, *args: Any, **kwargs: Any) -> None:
            with muted():
                publish(data, metadata, *args, **kwargs)
            kind = "update_display_data" if kwargs.get("update") else "display_data"
            content = {"data": data, "metadata": metadata or {}}
            content["transient"] = kwargs.get("transient") or {}
            self._hear(kind, content)

        return tapped

    def _wrap_clear(self, clear: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap ``DisplayPublisher.clear_output``, which prints an escape code."""

        @functools.wraps(clear)
        def tapped(*args: bool, **kwargs: bool) -> None:
            with muted():
                clear(*args, **kwargs)
            wait, *_ = (*args, kwargs.get("wait", False))
            self._hear("clear_output", {"wait": wait})

        return tapped

    def _wrap_result(self, write: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap ``DisplayHook.write_format_data``, which prints the text form."""

        @functools.wraps(write)
        def tapped(format_dict: Any, md_dict: Any = None) -> None:
            with muted():
                write(format_dict, md_dict)
            content = {"data": format_dict, "metadata": md_dict or {}}
            self._hear("execute_result", content)

        return tapped

    def _hear(self, kind: str, content: dict[str, Any]) -> None:
        """Hand a message over, if someone listens."""
        intake = self._intake
        if intake is not None:
            intake.take(kind, content)


def _mute(write: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a writer of what is no output of the cell, such as ``Out[1]:``."""

    @functools.wraps(write)
    def tapped(*args: Any, **kwargs: Any) -> Any:
        with muted():
            return write(*args, **kwargs)

    return tapped

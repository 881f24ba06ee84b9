"""Folding of messages: what a cell sent becomes what a front end shows at the end.

Folds message by message, so that neither memory nor disk grows with what is drawn over,
cleared or updated away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbckpt.outputs.redraws import Redraws
from nbckpt.outputs.tape import Recording, Tape, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PIECE = 1 << 19
"""Characters of a stream that make one message, unless `MESSAGE` needs it smaller."""

MESSAGE = 1 << 20
"""Bytes that a message of a stream takes at most, encoded."""

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
"""The part of a display that a live widget model would have to stand behind."""


class Fold:
    """What a front end would show, kept up to date message by message.

    Parameters
    ----------
    tape : Tape
        Where the folded messages go.
    request : str, optional
        Id of the request that runs the cell; output widgets name it to take over the
        output of the cell.

    Notes
    -----
    Neighbouring texts of one stream become messages of at most `MESSAGE` bytes.
    ``clear_output`` drops what it clears. An update of a display of this cell is put
    into the display, which keeps its id; the last update of any other display is kept.
    Output that an output widget takes over is dropped, for it never was the cell's.
    """

    def __init__(self, tape: Tape, request: str | None = None) -> None:
        self.has_result = False
        self._tape = tape
        self._request = request
        self._diverts: set[str] = set()
        self._clears = False
        self._run: _Run | None = None
        self._ragged: set[str] = set()
        self._own: dict[str, list[tuple[int, str]]] = {}
        self._foreign: dict[str, int] = {}

    def take(self, kind: str, content: Mapping[str, Any]) -> None:
        """Take the next message.

        Parameters
        ----------
        kind : str
            The message type.
        content : mapping
            The message content; not kept.
        """
        self.has_result |= kind == "execute_result"
        if kind == "comm_msg":
            self._divert(content)
        elif kind == "update_display_data":
            self._update(content)
        elif self._diverts:
            return
        elif kind == "clear_output":
            self._clear(content)
        else:
            self._show(kind, content)

    def finish(self) -> Recording:
        """Return what shows in the end; the fold must not be used again.

        Returns
        -------
        Recording
            The folded messages.
        """
        self._end_run()
        return Recording(self._tape.finish(), has_result=self.has_result)

    def close(self) -> None:
        """Forget everything."""
        self._tape.close()

    def _divert(self, content: Mapping[str, Any]) -> None:
        """Note that a widget begins or ceases to take over the output."""
        data = content.get("data", {})
        state = data.get("state", {}) if data.get("method") == "update" else {}
        if "msg_id" not in state:
            return
        if self._request is not None and state["msg_id"] == self._request:
            self._diverts.add(content["comm_id"])
        else:
            self._diverts.discard(content["comm_id"])

    def _clear(self, content: Mapping[str, Any]) -> None:
        """Clear the output now, or when the next output comes."""
        self._clears = bool(content.get("wait"))
        if not self._clears:
            self._wipe()

    def _wipe(self) -> None:
        """Drop what shows; updates of displays elsewhere have happened all the same."""
        self._run = None
        self._ragged.clear()
        self._own.clear()
        self._tape.wipe(self._foreign.values())
        self._foreign = {name: slot for slot, name in enumerate(self._foreign)}

    def _show(self, kind: str, content: Mapping[str, Any]) -> None:
        """Show one more output."""
        if self._clears:
            self._clears = False
            self._wipe()
        if kind == "stream":
            self._write(content["name"], content["text"])
        else:
            self._end_run()
            self._display(kind, content)

    def _write(self, name: str, text: str) -> None:
        """Show text of a stream."""
        if self._run is None or self._run.name != name:
            self._end_run()
            self._run = _Run(name, fresh=not self._ragged)
        # One message may hold hundreds of megabytes; its copies should not.
        for start in range(0, len(text), PIECE):
            for piece in self._run.add(text[start : start + PIECE]):
                self._tape.append(piece)

    def _end_run(self) -> None:
        """Put down the text of the stream, as something else follows."""
        if self._run is None:
            return
        if self._run.clean:
            self._ragged.discard(self._run.name)
        else:
            self._ragged.add(self._run.name)
        for piece in self._run.finish():
            self._tape.append(piece)
        self._run = None

    def _display(self, kind: str, content: Mapping[str, Any]) -> None:
        """Show a display, result or error."""
        slot = self._tape.append(encode(kind, _static(content)))
        name = _display_id(content)
        if name is not None:
            self._own.setdefault(name, []).append((slot, kind))

    def _update(self, content: Mapping[str, Any]) -> None:
        """Change the displays of this cell that have the id, or note the change."""
        name = _display_id(content)
        if name is None:
            return
        static = _static(content)
        for slot, kind in self._own.get(name, ()):
            self._tape.replace(slot, encode(kind, static))
        if name in self._own:
            return
        line = encode("update_display_data", static)
        if name in self._foreign:
            self._tape.replace(self._foreign[name], line)
        else:
            self._foreign[name] = self._tape.append(line)


class _Run:
    """Text of one stream that nothing interrupts."""

    def __init__(self, name: str, *, fresh: bool) -> None:
        self.name = name
        self._line = Redraws(fresh=fresh)
        self._parts: list[str] = []
        self._size = 0

    @property
    def clean(self) -> bool:
        """Whether the text ends at a line start in the default colour."""
        return self._line.clean

    def add(self, text: str) -> list[bytes]:
        """Take more text and return the messages that are full."""
        return self._collect(self._line.add(text), PIECE)

    def finish(self) -> list[bytes]:
        """Return what is left as messages."""
        return self._collect(self._line.rest(), 1)

    def _collect(self, text: str, enough: int) -> list[bytes]:
        """Collect final text and return it as messages once there is enough."""
        self._parts.append(text)
        self._size += len(text)
        if self._size < enough:
            return []
        whole = "".join(self._parts)
        self._parts, self._size = [], 0
        return list(_encode_stream(self.name, whole)) if whole else []


def _encode_stream(name: str, text: str) -> Iterator[bytes]:
    """Give text of a stream as messages of bounded size."""
    line = encode("stream", {"name": name, "text": text})
    if len(line) <= MESSAGE:
        yield line
        return
    middle = len(text) // 2
    yield from _encode_stream(name, text[:middle])
    yield from _encode_stream(name, text[middle:])


def _display_id(content: Mapping[str, Any]) -> str | None:
    """Return the id of a display, if it has one."""
    name = (content.get("transient") or {}).get("display_id")
    return None if name is None else str(name)


def _static(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content without the view of a live widget, if something else shows."""
    fields = ("data", "metadata", "transient")
    static = {name: dict(content[name] or {}) for name in fields if name in content}
    if WIDGET_VIEW in static.get("data", {}) and len(static["data"]) > 1:
        del static["data"][WIDGET_VIEW]
        static.get("metadata", {}).pop(WIDGET_VIEW, None)
    others = content.keys() - {*fields, "execution_count"}
    return static | {name: content[name] for name in others}

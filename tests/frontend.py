"""A front end in this process: what it would be sent, and what it would show."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from nbckpt.magics import HOOKS

if TYPE_CHECKING:
    import pytest

    from nbckpt.panel.live import Panel
    from tests.notebook import Notebook


@dataclass(frozen=True, slots=True)
class Sent:
    """A message to the front end."""

    kind: str
    content: dict[str, Any]
    parent: dict[str, Any]

    @property
    def text(self) -> str:
        found: str = self.content["data"]["text/plain"]
        return found


class FrontEnd:
    """Stands in for the session of a kernel: keeps what is sent."""

    def __init__(self, notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[Sent] = []
        self.parent = {"header": {"msg_id": "m-1"}, "content": {"allow_stdin": True}}
        shell, kernel = notebook.shell, SimpleNamespace(session=self)
        monkeypatch.setattr(shell, "kernel", kernel, raising=False)
        monkeypatch.setattr(shell, "get_parent", lambda: self.parent, raising=False)
        for name, value in {"session": self, "pub_socket": None, "topic": b""}.items():
            setattr(shell.display_pub, name, value)
        shell.displayhook.topic = b""
        self._shell = shell
        # Nothing is told but from the test's own thread.
        self.panel._ticker = SimpleNamespace(  # type: ignore[assignment]
            wake=self._wake, stop=lambda: None
        )
        self.woken = 0

    def _wake(self) -> None:
        self.woken += 1

    @property
    def panel(self) -> Panel:
        found: Panel = self._shell.user_ns[HOOKS].panel
        return found

    def send(
        self, stream: Any, kind: str, content: Any, parent: Any, **_: object
    ) -> None:
        del stream
        self.sent.append(Sent(kind, content, parent))

    def displays(self) -> list[str]:
        """Return the text of each display as a page shows it."""
        shown: dict[str, str] = {}
        for message in self.sent:
            name = message.content["transient"]["display_id"]
            if message.kind == "display_data":
                assert name not in shown
                shown[name] = message.text
            elif name in shown:
                shown[name] = message.text
        return list(shown.values())

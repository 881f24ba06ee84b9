"""A kernel to try things in."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Self

from jupyter_client.manager import start_new_kernel

if TYPE_CHECKING:
    from pathlib import Path

_SETUP = """
import json, os, sys, threading
from pathlib import Path
from IPython.display import HTML, clear_output, display, update_display
from nbckpt.outputs import Recorder, replay

shell = get_ipython()
spill = Path({spill!r})
recorder = Recorder(shell, spill)

def messages(recording):
    found = [json.loads(line) for line in bytes(recording.data()).splitlines()]
    recording.close()
    return [(m["msg_type"], m["content"]) for m in found]
"""


class Kernel:
    """A kernel whose ``recorder`` spills into a folder.

    Parameters
    ----------
    folder : Path
        Where the kernel works and spills.
    """

    def __init__(self, folder: Path) -> None:
        self.spill = folder / "spill"
        # With this name set, ipykernel would leave the file descriptors alone.
        hidden = {"PYTEST_CURRENT_TEST"}
        env = {name: os.environ[name] for name in os.environ.keys() - hidden}
        env["PYTHONPATH"] = os.pathsep.join(sys.path)
        self.manager, self.client = start_new_kernel(env=env, cwd=str(folder))
        self.run(_SETUP.format(spill=str(self.spill)))

    def __enter__(self) -> Self:
        """Return the kernel."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the kernel and close the channels."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()

    def run(self, code: str) -> list[tuple[str, dict[str, Any]]]:
        """Run a cell and return the outputs that arrive for it."""
        arrived: list[tuple[str, dict[str, Any]]] = []
        reply = self.client.execute_interactive(
            code,
            timeout=60,
            output_hook=lambda m: arrived.append((m["msg_type"], m["content"])),
        )
        if reply["content"]["status"] != "ok":
            raise AssertionError("\n".join(reply["content"]["traceback"]))
        return [(kind, content) for kind, content in arrived if kind != "status"]

    def text(self, code: str) -> str:
        """Run a cell and return what it prints to the standard output."""
        return "".join(
            content["text"]
            for kind, content in self.run(code)
            if kind == "stream" and content["name"] == "stdout"
        )

    def value(self, expression: str) -> Any:
        """Return the value of an expression, as JSON gives it."""
        return json.loads(self.text(f"print(json.dumps({expression}))"))

    def record(self, code: str) -> list[tuple[str, dict[str, Any]]]:
        """Run a cell and return what is recorded of it."""
        self.run(f"recorder.start()\n{code}\nrecording = recorder.stop()")
        found = self.value("messages(recording)")
        return [(kind, content) for kind, content in found]

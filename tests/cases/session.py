"""One Jupyter kernel, driven cell by cell as a notebook front end does."""

from __future__ import annotations

import ast
import os
import queue
import re
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jupyter_client.manager import KernelManager

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from jupyter_client.blocking.client import BlockingKernelClient

Output = dict[str, Any]

TOKENS = "{k: v for k, v in globals().items() if k.startswith('tok_')}"
INLINE = "module://matplotlib_inline.backend_inline"


@dataclass
class Reply:
    """What came back from one cell."""

    status: str
    """``ok``, ``error``, ``aborted`` or ``dead``."""
    outputs: list[Output] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def error(self) -> Output | None:
        """The first error message, if there is one."""
        return next((out for out in self.outputs if out["t"] == "error"), None)

    @property
    def complaint(self) -> str:
        """Name and text of the error; empty if there is none."""
        error = self.error
        return f"{error['ename']}: {error['evalue']}" if error else ""

    def text(self, name: str = "stdout") -> str:
        """Return what was written to one stream."""
        return "".join(
            out["text"]
            for out in self.outputs
            if out["t"] == "stream" and out["name"] == name
        )


def kernel_env(private: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a kernel that keeps off the user's own folders.

    Parameters
    ----------
    private : Path
        Folder for what Jupyter and IPython keep for a user: it stands for the user.
    extra : mapping, optional
        Variables to set on top.

    Returns
    -------
    dict
        A whole environment.
    """
    env = dict(os.environ, MPLBACKEND=INLINE)
    for name in ("PYTHONHASHSEED", "PYTEST_CURRENT_TEST"):
        env.pop(name, None)
    for name in [name for name in env if name.startswith("NBCKPT_")]:
        del env[name]
    env["JUPYTER_DATA_DIR"] = str(private / "jupyter")
    env["IPYTHONDIR"] = str(private / "ipython")
    return {**env, **(extra or {})}


class Session:
    """One kernel; it starts at once and is waited for when it is first used."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(
            cwd=str(folder), env=dict(env), stderr=subprocess.DEVNULL
        )
        self._client: BlockingKernelClient | None = None

    @property
    def client(self) -> BlockingKernelClient:
        """The first client of the kernel, ready."""
        if self._client is None:
            self._client = self.attach()
        return self._client

    @property
    def pid(self) -> int:
        """The process id of the kernel."""
        provisioner: Any = self.manager.provisioner
        return int(provisioner.pid)

    @property
    def alive(self) -> bool:
        """Whether the kernel's process lives."""
        return bool(self.manager.is_alive())

    def attach(self) -> BlockingKernelClient:
        """Return a further client, ready, with a session id of its own."""
        client = self.manager.client()
        client.session = type(client.session)(key=self.manager.session.key)
        client.start_channels()
        client.wait_for_ready(timeout=60)
        return client

    def leave(self) -> None:
        """Close the client, as a browser that is closed; the next use opens another."""
        if self._client is not None:
            self._client.stop_channels()
        self._client = None

    def send(self, source: str) -> str:
        """Send a cell and return its message id without waiting."""
        expressions = {"t": TOKENS}
        msg_id: str = self.client.execute(
            source, user_expressions=expressions, stop_on_error=True
        )
        return msg_id

    def run(self, source: str, timeout: float = 180) -> Reply:
        """Send a cell and wait for its reply."""
        return self.collect(self.send(source), timeout)

    def collect(self, msg_id: str, timeout: float = 180) -> Reply:
        """Wait for the reply to a cell that was sent."""
        reply = Reply("dead")
        if not self._listen(msg_id, reply.outputs, time.monotonic() + timeout):
            return reply
        content = self._shell_reply(msg_id)
        reply.status = content["status"]
        found = content.get("user_expressions", {}).get("t", {})
        if found.get("status") == "ok":
            reply.tokens = ast.literal_eval(found["data"]["text/plain"])
        return reply

    def value(self, expression: str) -> str:
        """Return the text of an expression's value, or of its error after ``!``."""
        msg_id = self.client.execute(
            "", silent=True, user_expressions={"x": expression}
        )
        found = self._shell_reply(msg_id)["user_expressions"]["x"]
        if found["status"] == "ok":
            text: str = found["data"]["text/plain"]
            return text
        return f"!{found.get('ename')}: {found.get('evalue')}"

    def close(self) -> None:
        """End the kernel at once."""
        if self._client is not None:
            self._client.stop_channels()
        if self.alive:
            # A killed kernel leaves no figures of coverage.
            self.manager.shutdown_kernel(now="COVERAGE_RUN" not in os.environ)
        self.manager.cleanup_resources()

    def _listen(self, msg_id: str, outputs: list[Output], end: float) -> bool:
        """Take in what a cell sends until it is idle; False if the kernel died."""
        while time.monotonic() < end:
            try:
                message = self.client.get_iopub_msg(timeout=0.3)
            except queue.Empty:
                if not self.alive:
                    return False
                continue
            if message["parent_header"].get("msg_id") == msg_id and fold(
                outputs, message["msg_type"], message["content"]
            ):
                return True
        raise AssertionError("a cell ran past its time limit")

    def _shell_reply(self, msg_id: str) -> dict[str, Any]:
        """Return the content of the reply to a request."""
        while True:
            reply = self.client.get_shell_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == msg_id:
                content: dict[str, Any] = reply["content"]
                return content


def _stream(outputs: list[Output], content: Output) -> None:
    """Join neighbouring text of one stream."""
    last = outputs[-1] if outputs else {}
    if last.get("t") == "stream" and last["name"] == content["name"]:
        last["text"] += content["text"]
    else:
        outputs.append(
            {"t": "stream", "name": content["name"], "text": content["text"]}
        )


def _display(outputs: list[Output], content: Output) -> None:
    """Append a display or a result."""
    shown = content.get("transient", {}).get("display_id")
    outputs.append({"t": content["t"], "data": content["data"], "did": shown})


def _update(outputs: list[Output], content: Output) -> None:
    """Change a display of this cell."""
    for out in outputs:
        if out.get("did") == content["transient"]["display_id"]:
            out["data"] = content["data"]


def _clear(outputs: list[Output], content: Output) -> None:  # noqa: ARG001
    """Forget what was shown."""
    outputs.clear()


def _error(outputs: list[Output], content: Output) -> None:
    """Append an error."""
    kept = {key: content[key] for key in ("t", "ename", "evalue", "traceback")}
    outputs.append(kept)


FOLD: dict[str, Callable[[list[Output], Output], None]] = {
    "stream": _stream,
    "display_data": _display,
    "execute_result": _display,
    "update_display_data": _update,
    "clear_output": _clear,
    "error": _error,
}


def fold(outputs: list[Output], kind: str, content: Output) -> bool:
    """Take one message into the outputs as a front end does; True at the end."""
    if kind in FOLD:
        FOLD[kind](outputs, {"t": kind, **content})
    return kind == "status" and bool(content["execution_state"] == "idle")


def step_name(source: str) -> str | None:
    """Return the name of a step cell; None for another cell."""
    found = re.match(r"%%?step (\S+)", source)
    return found.group(1) if found else None

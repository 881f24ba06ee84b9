"""A Jupyter server of its own on loopback, for JupyterLab and Notebook 7 alike."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil

PAGES = {"lab": "/doc/tree/{}?reset&token={}", "notebook": "/notebooks/{}?token={}"}
"""The page of one notebook, without side bars or a saved workspace."""
FOLDERS = (
    "HOME",
    "IPYTHONDIR",
    "JUPYTERLAB_SETTINGS_DIR",
    "JUPYTERLAB_WORKSPACES_DIR",
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
)
OPTIONS = (
    "--no-browser",
    "--allow-root",
    "--ip=127.0.0.1",
    "--ServerApp.port_retries=0",
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    "--LabApp.expose_app_in_browser=True",
    "--JupyterNotebookApp.expose_app_in_browser=True",
)
SETTINGS: dict[str, dict[str, Any]] = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "docmanager-extension/plugin": {"autosave": False},
}
OLD_KERNEL = Path(sys.prefix) / "ipykernel6"
"""Folder of the ipykernel before the current one; its other needs are those of both."""
SECONDS_TO_START = 90.0


class Server:
    """A server with configuration, data and runtime folders that nobody else uses.

    Parameters
    ----------
    private : Path
        Folder for what Jupyter keeps for a user.
    root : Path
        Folder of the notebooks.
    """

    def __init__(self, private: Path, root: Path) -> None:
        self.root = root
        self._private = private
        self._token = secrets.token_hex(16)
        self._port = _free_port()
        self._log = private / "server.log"
        env = self._environment()
        self.use_theme("light")
        self._add_old_kernel()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", *self._options()],
                env=env, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._await_start()

    def url(self, app: str, notebook: str) -> str:
        """Return the address of a notebook's page, token and all."""
        page = PAGES[app].format(notebook, self._token)
        return f"http://127.0.0.1:{self._port}{page}"

    @property
    def data(self) -> Path:
        """Where Jupyter, and nbckpt in its kernels, keep what is the user's."""
        return self._private / "jupyter_data_dir"

    def use_theme(self, theme: str) -> None:
        """Make pages that are opened from now on light or dark."""
        name = f"JupyterLab {theme.capitalize()}"
        settings = {**SETTINGS, "apputils-extension/themes": {"theme": name}}
        folder = self._private / "jupyterlab_settings_dir" / "@jupyterlab"
        for plugin, values in settings.items():
            file = folder / f"{plugin}.jupyterlab-settings"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(values))

    def kernel_pid(self, notebook: str) -> int:
        """Return the process id of a notebook's kernel, as the machine knows it."""
        kernels = {
            session["path"]: session["kernel"]["id"]
            for session in self.ask("GET", "/api/sessions")
        }
        sign = f"kernel-{kernels[notebook]}.json"
        for child in psutil.Process(self._process.pid).children():
            if any(word.endswith(sign) for word in child.cmdline()):
                return child.pid
        raise LookupError(f"no process of the server runs {notebook}")

    def shut_kernels_down(self) -> None:
        """End all kernels, as the page's menu does."""
        for session in self.ask("GET", "/api/sessions"):
            self.ask("DELETE", f"/api/sessions/{session['id']}")

    def ask(self, method: str, path: str) -> Any:
        """Ask the server's own interface; return what it answers."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            method=method,
            headers={"Authorization": f"token {self._token}"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return json.loads(answer.read() or "null")

    def close(self) -> None:
        """End the server and with it all kernels."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _add_old_kernel(self) -> None:
        """Offer the kernel ``ipykernel6`` beside ``python3``."""
        path = [str(OLD_KERNEL), os.environ.get("PYTHONPATH", "")]
        spec = {
            "argv": [
                sys.executable,
                "-m",
                "ipykernel_launcher",
                "-f",
                "{connection_file}",
            ],
            "display_name": OLD_KERNEL.name,
            "language": "python",
            "env": {"PYTHONPATH": os.pathsep.join(filter(None, path))},
        }
        folder = self.data / "kernels" / OLD_KERNEL.name
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps(spec))

    def _environment(self) -> dict[str, str]:
        """Return the server's environment, which its kernels inherit."""
        env = dict(os.environ, PYTHONWARNINGS="default")
        for name in ("COVERAGE_PROCESS_CONFIG", "MPLBACKEND", "PYTEST_CURRENT_TEST"):
            env.pop(name, None)
        for name in FOLDERS:
            folder = self._private / name.lower()
            folder.mkdir(parents=True)
            env[name] = str(folder)
        return env

    def _options(self) -> list[str]:
        """Return the command line's options."""
        return [
            *OPTIONS,
            f"--port={self._port}",
            f"--IdentityProvider.token={self._token}",
            f"--ServerApp.root_dir={self.root}",
        ]

    def _await_start(self) -> None:
        """Wait until the server answers."""
        end = time.monotonic() + SECONDS_TO_START
        while True:
            try:
                self.ask("GET", "/api/status")
            except OSError:
                if self._process.poll() is not None or time.monotonic() > end:
                    self.close()
                    raise RuntimeError(self._log.read_text()) from None
                time.sleep(0.1)  # noqa: TID251 - nothing tells when a port is open
            else:
                return


def _free_port() -> int:
    """Return a port that is free now; a race for it fails loudly."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port

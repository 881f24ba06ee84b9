"""What the Jupyter server that started this kernel says of its notebook.

The environment holds the name that a notebook had when its kernel started. JupyterLab
makes each notebook as Untitled.ipynb, starts the kernel, and lets the user rename it.
"""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from jupyter_core.paths import jupyter_runtime_dir

SECONDS = 2.0
"""For an answer over loopback."""


def notebook_now() -> Path | None:
    """Return the path that the notebook of this kernel has now.

    Returns
    -------
    Path or None
        None if no server started this kernel, or if it can't be asked: over TLS or a
        socket file, or where a token is not what lets a user in.
    """
    sign = f"jpserver-{os.environ.get('JPY_PARENT_PID', '')}.json"
    try:
        server = json.loads((Path(jupyter_runtime_dir()) / sign).read_text("utf-8"))
        found = {s["kernel"]["id"]: s["path"] for s in _sessions(server)}
        return Path(server["root_dir"], found[_kernel_id()])
    except Exception:  # what it says is no ground for a notebook not to run
        return None


def _sessions(server: dict[str, Any]) -> Any:
    """Return the sessions that a server runs; none if it can't be asked plainly."""
    url = urlsplit(server["url"])
    if url.scheme != "http":
        return ()
    return _ask(url, {"Authorization": f"token {server['token']}"})


def _ask(url: SplitResult, headers: dict[str, str]) -> Any:
    """Return what a server answers, as JSON values."""
    from http.client import HTTPConnection

    with closing(HTTPConnection(str(url.hostname), url.port, timeout=SECONDS)) as line:
        line.request("GET", f"{url.path}api/sessions", headers=headers)
        return json.loads(line.getresponse().read())


def _kernel_id() -> str:
    """Return the name under which the server knows this kernel."""
    from ipykernel.connect import get_connection_file

    return Path(get_connection_file()).stem.removeprefix("kernel-")

"""The Jupyter server that started a kernel says what its notebook is called now."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import ipykernel.connect
import pytest

from nbckpt.runs import servers
from nbckpt.runs.identity import SESSION, identify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SESSIONS = [
    {"path": "b.ipynb", "kernel": {"id": "other"}},
    {"path": "nb/orders.ipynb", "kernel": {"id": "mine-1"}},
]


class Handler(BaseHTTPRequestHandler):
    """Answers as jupyter_server does: who has no token learns nothing."""

    def do_GET(self) -> None:
        let_in = self.headers["Authorization"] == "token word"
        asked = self.path == "/user/ann/api/sessions"
        self.send_response(200 if let_in else 403)
        self.end_headers()
        forbidden = {"message": "Forbidden"}
        said = SESSIONS if let_in and asked else forbidden
        self.wfile.write(json.dumps(said).encode())

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    """Run a server for the time of a test; return its address."""
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/user/ann/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def started_by(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Return what makes this kernel one of a server; it still says Untitled.ipynb."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("JPY_PARENT_PID", "4194305")
    monkeypatch.setenv(SESSION, str(tmp_path / "Untitled.ipynb"))
    (tmp_path / "nb").mkdir()
    (tmp_path / "nb/orders.ipynb").touch()
    file = tmp_path / "kernel-mine-1.json"
    monkeypatch.setattr(ipykernel.connect, "get_connection_file", lambda: str(file))

    def start(**said: Any) -> None:
        server = {"url": url, "token": "word", "root_dir": str(tmp_path), **said}
        (tmp_path / "jpserver-4194305.json").write_text(json.dumps(server))

    return start


def test_notebook_that_was_renamed_after_its_kernel_started_is_known(
    started_by: Callable[..., None], tmp_path: Path
) -> None:
    started_by()
    assert identify({}).notebook == tmp_path / "nb/orders.ipynb"


def test_new_notebook_of_the_former_name_is_not_taken_for_ones_own(
    started_by: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "Untitled.ipynb").touch()
    started_by()
    assert identify({}).stem == "orders"


@pytest.mark.parametrize(
    "said",
    [
        {"token": ""},
        {"url": "https://127.0.0.1:1/"},
        {"url": "http://127.0.0.1:1/"},
        {"url": "no address"},
        {"url": None},
        {"root_dir": None},
    ],
)
def test_server_that_can_not_be_asked_leaves_what_the_environment_tells(
    started_by: Callable[..., None], tmp_path: Path, said: dict[str, Any]
) -> None:
    (tmp_path / "Untitled.ipynb").touch()
    started_by(**said)
    assert identify({}).stem == "Untitled"


def test_kernel_that_the_server_does_not_know_has_no_notebook(
    started_by: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    started_by()
    monkeypatch.setattr(
        ipykernel.connect, "get_connection_file", lambda: "kernel-2.json"
    )
    assert servers.notebook_now() is None


def test_without_a_server_nothing_is_asked(
    started_by: Callable[..., None],
) -> None:
    del started_by  # whose file is not written
    assert servers.notebook_now() is None

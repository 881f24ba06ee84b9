"""A receiver on loopback that takes anything and remembers what it was asked."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver:
    """A server in a thread of this process."""

    def __init__(self) -> None:
        asked: list[str] = []
        bodies: list[str] = []
        statuses: list[int] = []
        gate = threading.Event()
        gate.set()

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked.append(f"{self.command} {self.path}")
                bodies.append(body.decode())
                gate.wait(60)
                self.send_response(statuses.pop(0) if statuses else 200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            do_GET = do_POST = do_PUT = answer  # noqa: N815 - as the server names them

            def log_message(self, *words: object) -> None:
                pass

        self.asked = asked
        self.bodies = bodies
        self.statuses = statuses
        """What the next answers are; 200 when there are no more."""
        self.gate = gate
        """Cleared, nobody is answered."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

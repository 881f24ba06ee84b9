"""A real PostgreSQL server for the tests that need one: on loopback, in a new folder."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.lacking import lack

if TYPE_CHECKING:
    from collections.abc import Iterator

WHERE = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


@contextmanager
def server() -> Iterator[str]:
    """Start a server; skip the test where there is none.

    Yields
    ------
    str
        What a client connects with.
    """
    pytest.importorskip("psycopg", reason="needs psycopg: pip install nbckpt[postgres]")
    if not WHERE:
        lack("needs PostgreSQL: apt install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="nbckpt-pg-"))
    user = _give_away(folder)
    port, data = _free_port(), folder / "data"
    _run("initdb", "-D", data, "-A", "trust", "-U", "tester", user=user)
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
    told = ("-D", data, "-l", folder / "log", "-o", options, "-w")
    _run("pg_ctl", *told, "start", user=user)
    try:
        yield f"host=127.0.0.1 port={port} user=tester dbname=postgres"
    finally:
        _run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop", user=user)
        shutil.rmtree(folder)


def _give_away(folder: Path) -> str | None:
    """Give a folder to the user that the server runs as; the server refuses root."""
    if os.getuid() != 0:
        return None
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        lack("PostgreSQL does not run as root, and there is no user postgres")
    shutil.chown(folder, "postgres")
    return "postgres"


def _free_port() -> int:
    """Return a port of loopback that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _run(program: str, *arguments: Any, user: str | None) -> None:
    """Run one of the server's programs."""
    subprocess.run(
        [str(WHERE[0] / program), *map(str, arguments)],
        user=user,
        cwd="/",
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=120,
    )

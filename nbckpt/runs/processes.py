"""Processes of this system: which one this is, whether another still runs."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

import psutil

from nbckpt.records import Holder


def this_process() -> Holder:
    """Return the holder that this process is.

    Returns
    -------
    Holder
        With a new nonce.
    """
    return Holder(
        host=socket.gethostname(),
        boot=_read("/proc/sys/kernel/random/boot_id"),
        namespace=_link("/proc/self/ns/pid"),
        pid=os.getpid(),
        started=psutil.Process().create_time(),
        ticks=ticks(os.getpid()),
        nonce=secrets.token_hex(8),
    )


def ticks(pid: int) -> int:
    """Return when a process was started, in clock ticks since the boot.

    Parameters
    ----------
    pid : int
        Its number.

    Returns
    -------
    int
        Never the same for two processes that had one number; 0 if nothing tells.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def _read(path: str) -> str:
    """Return a system file's text, or nothing."""
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    """Return where a system link leads, or nothing."""
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


def is_here(holder: Holder) -> bool:
    """Tell whether this system can say if a holder lives.

    Parameters
    ----------
    holder : Holder
        Whoever holds a run.

    Returns
    -------
    bool
        Same host, same boot, same process-id namespace.
    """
    me = this_process()
    ours = (me.host, me.boot, me.namespace)
    return (holder.host, holder.boot, holder.namespace) == ours


def is_alive(holder: Holder) -> bool:
    """Tell whether a holder on this host still runs.

    Parameters
    ----------
    holder : Holder
        A holder for which `is_here` is true.

    Returns
    -------
    bool
        By process id and start time; a zombie process is dead, a stopped one lives.
    """
    try:
        process = psutil.Process(holder.pid)
        same = abs(process.create_time() - holder.started) < 1
        if holder.ticks:
            # Exact, whatever becomes of the wall clock.
            same = ticks(holder.pid) == holder.ticks
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

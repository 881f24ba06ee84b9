"""Handles of the world outside: open ones are refused, spent ones are kept as spent.

A closed file, a joined thread or an unlocked lock holds nothing; it comes back just as
spent. What is open (a connection, a running process, a generator half-way) can't be
kept by anybody, and is refused with its path.
"""

from __future__ import annotations

import concurrent.futures
import io
import os
import queue
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import types
import weakref
from multiprocessing.pool import Pool
from typing import TYPE_CHECKING, Any

from nbckpt.codecs import listings, tables
from nbckpt.codecs.code import is_local

if TYPE_CHECKING:
    from collections.abc import Callable

Reduction = tuple[Any, ...] | str | None
COPYING = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")
ENDING = "its __del__ would run for each copy; define __getstate__ if it may"


def reducer(kind: type) -> Callable[[Any], Reduction] | None:
    """Return the reducer of a handle type.

    Parameters
    ----------
    kind : type
        Type of a value.

    Returns
    -------
    callable or None
        Takes the value; returns its reduction, or a str with the reason for which it
        can't be kept. None if the type is no handle.
    """
    for base in kind.__mro__:
        found = _BY_TYPE.get(base) or _BY_NAME.get(f"{base.__module__}.{base.__name__}")
        if found is not None:
            return found
    return _refused(ENDING) if _is_ending(kind) else None


def _is_ending(kind: Any) -> bool:
    """Tell whether a class of the user's does something at the end of each copy."""
    end = getattr(kind, "__del__", None)
    if not isinstance(end, types.FunctionType):
        return False
    file = end.__globals__.get("__file__")
    return (file is None or is_local(file)) and all(
        getattr(kind, name, None) is getattr(object, name, None) for name in COPYING
    )


def _file(file: Any) -> Reduction:
    """Keep a closed file, and the standard streams as what they are now."""
    for name in ("stdin", "stdout", "stderr"):
        if file is getattr(sys, name) or file is getattr(sys, f"__{name}__"):
            return getattr, (sys, name)
    if not file.closed:
        return "an open file"
    name, mode = getattr(file, "name", ""), getattr(file, "mode", "r")
    return revive_closed_file, (name, mode if isinstance(mode, str) else "rb")


def revive_closed_file(name: Any, mode: str) -> Any:
    """Return a closed file of a name; called while decoding."""
    modes = "rb" if "b" in mode else "r"
    file: Any = open(os.devnull, modes)  # noqa: SIM115, PTH123 - a closed file is the aim
    raw = getattr(file, "buffer", file)
    getattr(raw, "raw", raw).name = name
    file.close()
    return file


def _stream(stream: Any) -> Reduction:
    """Keep a kernel's standard stream as the one of the kernel that restores."""
    return getattr, (
        sys,
        stream.name if stream.name in {"stdout", "stderr"} else "stdout",
    )


def _connection(connection: sqlite3.Connection) -> Reduction:
    """Keep a closed connection."""
    try:
        connection.total_changes  # noqa: B018 - raises once closed
    except sqlite3.ProgrammingError:
        return revive_closed_connection, ()
    return "an open database connection; open it in a plain cell, or --drop it"


def revive_closed_connection() -> sqlite3.Connection:
    """Return a closed connection; called while decoding."""
    connection = sqlite3.connect(":memory:")
    connection.close()
    return connection


def _cursor(cursor: sqlite3.Cursor) -> Reduction:
    """Keep a cursor of a closed connection."""
    spent = isinstance(_connection(cursor.connection), tuple)
    return (revive_cursor, ()) if spent else "a cursor of an open database connection"


def revive_cursor() -> sqlite3.Cursor:
    """Return a cursor of a closed connection; called while decoding."""
    connection = sqlite3.connect(":memory:")
    cursor = connection.cursor()
    connection.close()
    return cursor


def _sqlalchemy_connection(connection: Any) -> Reduction:
    """Keep a closed connection, as ``with engine.begin()`` leaves it."""
    if not connection.closed:
        return "an open database connection; make it with `with`, or in a plain cell"
    return revive_sqlalchemy_connection, ()


def revive_sqlalchemy_connection() -> Any:
    """Return a closed connection; called while decoding."""
    import sqlalchemy

    connection = sqlalchemy.create_engine("sqlite://").connect()
    connection.close()
    return connection


def _socket(handle: socket.socket) -> Reduction:
    """Keep a closed socket."""
    return (revive_socket, ()) if handle.fileno() == -1 else "an open socket"


def revive_socket() -> socket.socket:
    """Return a closed socket; called while decoding."""
    handle = socket.socket()
    handle.close()
    return handle


def _lock(lock: Any) -> Reduction:
    """Keep a free lock."""
    if not lock.acquire(blocking=False):
        return "a lock that is held"
    lock.release()
    return (threading.RLock if isinstance(lock, _RLOCK) else threading.Lock), ()


def _event(event: threading.Event) -> Reduction:
    """Keep an event with its flag."""
    return revive_event, (event.is_set(),)


def revive_event(flag: bool) -> threading.Event:
    """Return an event; called while decoding."""
    event = threading.Event()
    if flag:
        event.set()
    return event


def _queue(items: queue.Queue[Any]) -> Reduction:
    """Keep a queue with what waits in it."""
    return revive_queue, (type(items), items.maxsize, list(items.queue))


def revive_queue(kind: type, maxsize: int, waiting: list[Any]) -> Any:
    """Return a queue; called while decoding."""
    items = kind(maxsize)
    for item in waiting:
        items.put_nowait(item)
    return items


def _thread(thread: threading.Thread) -> Reduction:
    """Keep a thread that has ended."""
    if thread.ident is None or thread.is_alive():
        return "a thread that has not ended"
    return revive_thread, (thread.name, thread.daemon)


def revive_thread(name: str, daemon: bool) -> threading.Thread:
    """Return a thread that has ended; called while decoding."""
    thread = threading.Thread(target=int, name=name, daemon=daemon)
    thread.start()
    thread.join()
    return thread


def _executor(executor: Any) -> Reduction:
    """Keep an executor that was shut down."""
    down = getattr(executor, "_shutdown", getattr(executor, "_shutdown_thread", False))
    if not down:
        return "a running executor; make it with `with`, or in a plain cell"
    return revive_executor, (type(executor),)


def revive_executor(kind: Any) -> Any:
    """Return an executor that was shut down; called while decoding."""
    executor = kind(1)
    executor.shutdown()
    return executor


def _future(future: Any) -> Reduction:
    """Keep a future that is done, with its outcome."""
    if not future.done() or future.cancelled():
        return "a future that is not done"
    error = future.exception()
    return revive_future, (None if error else future.result(), error)


def revive_future(result: Any, error: Any) -> Any:
    """Return a future that is done; called while decoding."""
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
    return future


def _pool(pool: Any) -> Reduction:
    """Keep a pool that was closed."""
    if pool._state == "RUN":
        return "a running pool; make it with `with`, or in a plain cell"
    return revive_pool, (type(pool),)


def revive_pool(kind: type) -> Any:
    """Return a pool that was closed; called while decoding."""
    pool: Any = object.__new__(kind)
    vars(pool).update(_state="TERMINATE", _pool=[], _cache={})
    return pool


def _process(process: subprocess.Popen[Any]) -> Reduction:
    """Keep a child process that has ended, with its exit status."""
    if process.poll() is None:
        return "a running process"
    streams = (process.stdin, process.stdout, process.stderr)
    if any(stream is not None and not stream.closed for stream in streams):
        return "an ended process whose pipes are open"
    return revive_process, (process.args, process.pid, process.returncode)


def revive_process(args: Any, pid: int, returncode: int) -> Any:
    """Return a child process that has ended; called while decoding."""
    process = object.__new__(subprocess.Popen)
    vars(process).update(
        args=args, pid=pid, returncode=returncode, _child_created=False,
        stdin=None, stdout=None, stderr=None, text_mode=None,
        _waitpid_lock=threading.Lock(), _communication_started=False,
    )  # fmt: skip
    return process


def _generator(generator: types.GeneratorType[Any, Any, Any]) -> Reduction:
    """Keep a generator that is exhausted."""
    if generator.gi_frame is not None:
        return "a generator; make it a list, or create it in a plain cell"
    return revive_generator, ()


def revive_generator() -> Any:
    """Return a generator that is exhausted; called while decoding."""
    nothing: list[Any] = []
    generator = (item for item in nothing)
    next(generator, None)
    return generator


def _exception(error: BaseException) -> Reduction:
    """Keep an exception with its arguments, whatever its own ``__init__`` takes."""
    kind: Any = type(error)
    if kind.__reduce__ is not BaseException.__reduce__ or "__reduce_ex__" in vars(kind):
        return error.__reduce_ex__(5)
    return revive_exception, (kind, error.args), vars(error) or None


def revive_exception(kind: Any, arguments: tuple[Any, ...]) -> Any:
    """Return an exception without calling its ``__init__``; called while decoding."""
    return kind.__new__(kind, *arguments)


def _match(match: re.Match[Any]) -> Reduction:
    """Keep a match as the place where its pattern matches."""
    again = match.re.match(match.string, match.start(), match.endpos)
    if again is None or again.regs != match.regs:
        return "a match that depends on where its search began"
    return revive_match, (match.re, match.string, match.start(), match.endpos)


def revive_match(pattern: re.Pattern[Any], text: Any, start: int, end: int) -> Any:
    """Match again; called while decoding."""
    return pattern.match(text, start, end)


def _refused(reason: str) -> Callable[[Any], Reduction]:
    """Return a reducer that always refuses."""
    return lambda _: reason


_RLOCK = type(threading.RLock())
_BY_TYPE: dict[type, Callable[[Any], Reduction]] = {
    BaseException: _exception,
    io.TextIOWrapper: _file,
    io.BufferedReader: _file,
    io.BufferedWriter: _file,
    io.BufferedRandom: _file,
    io.FileIO: _file,
    sqlite3.Connection: _connection,
    sqlite3.Cursor: _cursor,
    socket.socket: _socket,
    type(threading.Lock()): _lock,
    _RLOCK: _lock,
    threading.Event: _event,
    threading.Thread: _thread,
    queue.Queue: _queue,
    queue.SimpleQueue: _refused("a queue"),
    concurrent.futures.Executor: _executor,
    concurrent.futures.Future: _future,
    Pool: _pool,
    subprocess.Popen: _process,
    types.GeneratorType: _generator,
    types.CoroutineType: _refused("a coroutine"),
    types.AsyncGeneratorType: _refused("an asynchronous generator"),
    types.FrameType: _refused("a frame"),
    types.TracebackType: _refused("a traceback"),
    os.DirEntry: listings.entry,
    re.Match: _match,
    weakref.ref: _refused("a weak reference"),
    weakref.ProxyType: _refused("a weak reference"),
    weakref.CallableProxyType: _refused("a weak reference"),
    weakref.finalize: _refused("a finalizer"),
    weakref.WeakValueDictionary: _refused("a weak dictionary"),
    weakref.WeakKeyDictionary: _refused("a weak dictionary"),
    tempfile.TemporaryDirectory: _refused(
        "a temporary folder, which goes with its kernel"
    ),
    threading.local: _refused("values of a thread"),
}
_BY_NAME: dict[str, Callable[[Any], Reduction]] = {
    "ipykernel.iostream.OutStream": _stream,
    "posix.ScandirIterator": listings.listing,
    "_csv.writer": tables.csv_writer,
    "_csv.reader": tables.csv_reader,
    "pandas.ExcelWriter": tables.excel_writer,
    "pandas.io.excel._base.ExcelWriter": tables.excel_writer,
    "_asyncio.Task": _refused("an asyncio task"),
    "_asyncio.Future": _refused("an asyncio future"),
    "_ctypes._Pointer": _refused("a pointer"),
    "ctypes.CDLL": _refused("a loaded library"),
    "requests.sessions.Session": _refused(
        "a session, which can hold cookies and passwords; create it in a plain cell"
    ),
    "httpx.Client": _refused("a client with connections"),
    "logging.Handler": _refused("a logging handler"),
    "sqlalchemy.engine.base.Engine": _refused("a database engine"),
    "sqlalchemy.engine.base.Connection": _sqlalchemy_connection,
}

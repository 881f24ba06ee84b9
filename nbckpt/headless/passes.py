"""One kernel's way through a notebook, from its start to its end or death."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import io
import os
import re
import signal
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SAVE_SECONDS = 10.0
SAVE_SHARE = 20
"""Between two saves on the timer lies this many times what a save takes."""
GRACE_SECONDS = 10.0
"""How long an interrupted cell may take to end before its kernel is ended."""
START_SECONDS = 120
OUTPUT_SECONDS = 60
"""How long the last outputs of a cell that has ended may take to arrive."""
END_SECONDS = 60.0
"""How long a kernel may take to end by itself: what the notebook does at exit counts."""
NOISE = re.compile(r"\[\w+\] |\d+\.\d+s - |WARNING:|NOTE:")
"""Begins a line in which a kernel talks of itself."""
LAST_LINES = 8
TAKEN = "Address already in use"
"""What a kernel ends with whose port was given to another program before it listened."""


@dataclass(frozen=True, slots=True)
class End:
    """How a pass ended."""

    kind: Literal["completed", "failed", "died", "stopped", "unstarted"]
    cell: int = -1
    """The cell that it ended in."""
    name: str = ""
    """Name of the error's class, as the kernel tells it."""
    text: str = ""


class _Stopped(Exception):
    """Somebody asked for the end between two cells."""


class Pass:
    """One kernel that executes a notebook's cells in order.

    Parameters
    ----------
    document : nbformat.NotebookNode
        The notebook; outputs come into it while cells run.
    folder : Path
        Where the kernel works.
    environment : dict
        The kernel's environment variables.
    kernel : str
        Name of the kernel.
    keep : callable
        Saves the notebook and tells progress; called after each cell and on a timer.
    """

    def __init__(
        self,
        document: Any,
        folder: Path,
        environment: dict[str, str],
        kernel: str,
        keep: Callable[[], None],
    ) -> None:
        self._document = document
        self._folder = folder
        self._environment = environment
        self._kernel = kernel
        self._keep = keep
        self._cell = -1
        self._ran = False
        self._stops = 0
        self._manager: Any = None
        self._errors: IO[bytes] = io.BytesIO()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self) -> End:
        """Execute the notebook; return when its kernel is gone.

        Returns
        -------
        End
            How it ended; errors of cells are told, never raised.
        """
        # nbclient takes over the signals of the loop that it runs in: in a thread of
        # its own it can't, and an interrupt is ours to handle.
        outcome: list[End | BaseException] = []
        thread = threading.Thread(target=self._in_thread, args=(outcome,), daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(0.5)
        except BaseException:
            self.stop(now=True)
            thread.join()
            raise
        found = outcome[0]
        if isinstance(found, BaseException):
            raise found
        return found

    def stop(self, *, now: bool = False) -> int:
        """Interrupt the running cell; a second time, end the kernel.

        Parameters
        ----------
        now : bool, optional
            Whether to end the kernel at once. Safe in a signal handler.

        Returns
        -------
        int
            How often that was asked for.
        """
        self._stops += 2 if now else 1
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended meanwhile
                loop.call_soon_threadsafe(self._interrupt)
        return self._stops

    def _in_thread(self, outcome: list[End | BaseException]) -> None:
        """Hand over how the pass ended."""
        try:
            outcome.append(asyncio.run(self._go()))
        except BaseException as error:
            outcome.append(error)

    async def _go(self) -> End:
        """Execute, while a timer saves."""
        self._loop = asyncio.get_running_loop()
        timer = asyncio.create_task(self._save_on_time())
        with tempfile.TemporaryFile() as self._errors:
            try:
                end = await self._execute()
            finally:
                timer.cancel()
                manager = self._manager
                if manager is not None and await manager.is_alive():
                    await manager.shutdown_kernel(now=True)
        # Whatever an interrupted cell or kernel came to: it was asked for.
        asked = self._stops and end.kind != "completed"
        return replace(end, kind="stopped") if asked else end

    async def _execute(self) -> End:
        """Execute all cells; tell how it ended."""
        from jupyter_client.kernelspec import NoSuchKernel
        from nbclient.exceptions import CellExecutionError, DeadKernelError

        client = self._client()
        try:
            await client.async_execute(env=self._environment, stderr=self._errors)
        except CellExecutionError as error:
            return End("failed", self._cell, str(error.ename), str(error.evalue))
        except DeadKernelError:
            return End("died", self._cell, text=self._last_words())
        except _Stopped:
            return End("stopped", self._cell)
        except (NoSuchKernel, RuntimeError, TimeoutError, OSError) as error:
            return self._unstarted(error)
        finally:
            # A kernel that did not start leaves it behind, to fail at our own exit.
            atexit.unregister(client._cleanup_kernel)
        return End("completed", self._cell)

    def _client(self) -> Any:
        """Return what talks to the kernel."""
        from jupyter_client.manager import AsyncKernelManager
        from nbclient import NotebookClient

        self._manager = AsyncKernelManager(
            kernel_name=self._kernel, shutdown_wait_time=END_SECONDS
        )
        client = NotebookClient(
            self._document,
            km=self._manager,
            timeout=None,
            startup_timeout=START_SECONDS,
            iopub_timeout=OUTPUT_SECONDS,
            shutdown_kernel="graceful",
            coalesce_streams=True,
            store_widget_state=True,
            resources={"metadata": {"path": str(self._folder)}},
            on_cell_start=self._cell_starts,
            on_cell_executed=self._cell_ran,
        )
        # It is made here only so that it can be interrupted; nbclient ends it.
        client.owns_km = True
        return client

    def _unstarted(self, error: Exception) -> End:
        """Tell why the kernel did not start; raise what went wrong later than that."""
        if self._cell >= 0 and not self._stops:
            raise error
        words = self._last_words() or str(error)
        if TAKEN in words:
            return End("died", self._cell, text="one of its ports was taken meanwhile")
        return End("unstarted", self._cell, type(error).__name__, words)

    def _last_words(self) -> str:
        """Return what the kernel wrote to its standard error at last."""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").splitlines()
        told = [line for line in lines if line.strip() and not NOISE.match(line)]
        return "\n".join(told[-LAST_LINES:])

    def _cell_starts(self, cell: Any, cell_index: int) -> None:
        """Save what the cell before left, and stop if asked to."""
        del cell
        if self._ran:
            self._ran = False
            self._keep()
        self._cell = cell_index
        if self._stops:
            raise _Stopped

    def _cell_ran(self, cell: Any, cell_index: int, execute_reply: Any) -> None:
        """Take note that there is something to save."""
        del cell, cell_index, execute_reply
        self._ran = True

    async def _save_on_time(self) -> None:
        """Save during long cells, seldom enough to cost little."""
        pause = SAVE_SECONDS
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            self._keep()
            pause = max(SAVE_SECONDS, SAVE_SHARE * (time.monotonic() - began))

    def _interrupt(self) -> None:
        """Interrupt or end the kernel; called in the loop."""
        manager, loop = self._manager, self._loop
        if manager is None or loop is None or not manager.has_kernel:
            return
        if self._stops > 1:
            self._end_kernel()
            return
        self._interrupting = loop.create_task(manager.interrupt_kernel())
        loop.call_later(GRACE_SECONDS, self._end_kernel)

    def _end_kernel(self) -> None:
        """End the kernel without asking it."""
        manager, loop = self._manager, self._loop
        if loop is not None and manager.has_kernel:
            self._ending = loop.create_task(manager.shutdown_kernel(now=True))


@contextlib.contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Turn Ctrl-C, SIGTERM and a closed terminal into a stop while a kernel runs.

    Parameters
    ----------
    stop : callable
        Asks for the end; see `Pass.stop`.

    Notes
    -----
    A SIGHUP that is ignored already, as after ``nohup``, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def asked(_number: int, _frame: Any) -> None:
        """Ask for the end."""
        _leave_terminal()
        stop()

    ends = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        ends.remove(signal.SIGHUP)
    before = {number: signal.signal(number, asked) for number in ends}
    try:
        yield
    finally:
        for number, handler in before.items():
            with contextlib.suppress(ValueError, TypeError):
                signal.signal(number, handler)


def _leave_terminal() -> None:
    """Write to nowhere if the terminal is gone: each line would be an error."""
    for number in (1, 2):
        try:
            os.write(number, b"")
        except OSError:
            with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - no path of anybody's
                os.dup2(nowhere.fileno(), number)

"""Recording of one cell at a time."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from nbckpt.outputs.folding import Fold
from nbckpt.outputs.intake import Intake
from nbckpt.outputs.kernel import KernelTap
from nbckpt.outputs.tape import Recording, Tape
from nbckpt.outputs.terminal import TerminalTap

if TYPE_CHECKING:
    from pathlib import Path


class Recorder:
    """Records everything one cell sends to the front end, while it streams.

    Parameters
    ----------
    shell : InteractiveShell
        Of a kernel (ipykernel 6 or 7) or of a terminal. Nothing is wrapped before the
        first `start`.
    spill_folder : Path
        Where more than 1 MiB of output is kept until the recording is closed.

    Notes
    -----
    Only output for the request of the running cell is recorded; what a thread prints
    after the cell has ended belongs to the next cell or to none. In a terminal, output
    that goes past Python (subprocesses, C code) is not seen. What the pager shows and
    what ``input`` asks is no output of a cell.
    """

    def __init__(self, shell: Any, spill_folder: Path) -> None:
        kernel = getattr(shell, "kernel", None)
        is_kernel = hasattr(kernel, "session") and hasattr(shell, "get_parent")
        self._tap = KernelTap(shell) if is_kernel else TerminalTap(shell)
        self._folder = spill_folder
        self._intake: Intake | None = None

    def start(self) -> None:
        """Begin to record for the cell that is running now.

        A recording that was neither stopped nor discarded is discarded.
        """
        self.discard()
        intake = Intake(Fold(Tape(self._folder), self._tap.request))
        self._tap.open(intake)
        self._intake = intake

    def stop(self) -> Recording:
        """Show the figures that are drawn, send all that is buffered, and stop.

        Returns
        -------
        Recording
            The folded messages; empty if nothing was being recorded.

        Raises
        ------
        OSError
            If the messages could not be written, for example on a full disk.
        Exception
            Whatever else hindered the recording. The recording is lost; what the user
            saw is not affected.
        """
        if self._intake is None:
            return Recording()
        _flush_figures()
        self._tap.settle()
        self._tap.close()
        intake, self._intake = self._intake, None
        return intake.finish()

    def discard(self) -> None:
        """Forget the recording, for the step failed; never raises."""
        with contextlib.suppress(Exception):
            self._tap.close()
        intake, self._intake = self._intake, None
        with contextlib.suppress(Exception):
            if intake is not None:
                intake.drop()

    def uninstall(self) -> None:
        """Undo every wrapper; `start` would put them back."""
        self.discard()
        self._tap.remove()


def _flush_figures() -> None:
    """Show figures now, which matplotlib would show when the cell has ended."""
    inline = sys.modules.get("matplotlib_inline.backend_inline")
    if inline is not None:
        inline.flush_figures()

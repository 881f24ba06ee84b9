"""Two displays below one cell, kept true while cells run.

What changes often (how far the run is, the step at hand) stands apart from the steps: a
line that a person opened there, and the keyboard's place, last until a step ends.
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from nbckpt.outputs.patches import muted
from nbckpt.panel.html import head_html, steps_html
from nbckpt.panel.text import head_text, steps_text
from nbckpt.verbs.forms.pages import as_html, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.panel.view import RunView

INTERVAL = 0.25
"""Seconds between two updates, at least."""
Bundle = dict[str, str]


def head_bundle(view: RunView) -> Bundle:
    """Return how far a run is, in each form."""
    return {"text/plain": head_text(view), "text/html": head_html(view)}


def steps_bundle(view: RunView) -> Bundle:
    """Return the steps of a run, in each form."""
    return {"text/plain": steps_text(view), "text/html": steps_html(view)}


class Screen:
    """Shows a run below the cell that runs now.

    Parameters
    ----------
    shell : InteractiveShell
        Of a kernel.
    look : callable
        Returns the run as it is now.

    Notes
    -----
    Updates go to the front end under the request of the cell that runs, and are kept
    out of its recording: a step's outputs are its own.
    """

    def __init__(self, shell: Any, look: Callable[[], RunView]) -> None:
        self._shell = shell
        self._look = look
        # Where ``%%capture`` stands in for the publisher later, this one still sends.
        self._publisher = shell.display_pub
        self._parent: Any = {}
        # Another front end may know an id that was used before.
        self._head, self._steps = (f"nbckpt-{uuid.uuid4().hex}" for _ in range(2))
        self._shown: Any = None
        self._told: Any = None
        self._at = float("-inf")
        self._lock = threading.Lock()

    def show(self) -> None:
        """Show the run below the cell that runs now."""
        self.follow()
        view = self._look()
        self._send("display_data", self._head, head_bundle(view))
        self._send("display_data", self._steps, steps_bundle(view))
        self._shown, self._told = view.steps, _key(view)

    def follow(self) -> None:
        """Take note of the cell that runs: updates go out under its request."""
        self._parent = self._shell.get_parent()

    def refresh(self, *, at_once: bool = False) -> bool:
        """Show what is new, unless something was shown a moment ago.

        Parameters
        ----------
        at_once : bool, optional
            Whatever was shown a moment ago: nothing may follow any more.

        Returns
        -------
        bool
            Whether all that is new is shown.
        """
        with self._lock:
            now = time.monotonic()
            if not at_once and now - self._at < INTERVAL:
                return False
            view = self._look()
            if self._told != _key(view):
                self._at, self._told = now, _key(view)
                self._update(self._head, head_bundle(view))
            if self._shown is not view.steps:
                self._at, self._shown = now, view.steps
                self._update(self._steps, steps_bundle(view))
            return True

    def seal(self, line: str) -> None:
        """Put a line in place of what is shown, for good.

        Parameters
        ----------
        line : str
            Why it is not shown here any more.
        """
        said = {"text/plain": line, "text/html": f"<p>{as_html(line)}</p>"}
        self._update(self._head, said)
        self._update(self._steps, {"text/plain": "", "text/html": ""})

    def _update(self, display: str, bundle: Bundle) -> None:
        """Change a display."""
        self._send("update_display_data", display, bundle)

    def _send(self, kind: str, display: str, bundle: Bundle) -> None:
        """Send a message past the recorder, from whichever thread."""
        content = {
            "data": bundle,
            "metadata": {},
            "transient": {"display_id": display},
        }
        publisher = self._publisher
        with muted():
            publisher.session.send(
                publisher.pub_socket, kind, content, self._parent, ident=publisher.topic
            )


def _key(view: RunView) -> Any:
    """Return what the head tells; it changes once a second while nothing else does."""
    step = view.running
    going = int(view.at - step.started_at) if step is not None else None
    return view.run_id, view.done, len(view.steps), view.saved, view.items, going


def show_names(view: RunView) -> None:
    """Show the names of the steps: the same in each run of the notebook.

    Parameters
    ----------
    view : RunView
        From the notebook's file.
    """
    from IPython.display import display

    names = ", ".join(step.name for step in view.steps) or "steps as they come"
    line = f"nbckpt: {names}. To see how far they are: %nbckpt status"
    said = {"text/plain": printable(line), "text/html": f"<p>{as_html(line)}</p>"}
    display(said, raw=True)


class Ticker:
    """A thread that calls a function again and again while that says so.

    Parameters
    ----------
    tick : callable
        Returns whether to call it once more.
    """

    def __init__(self, tick: Callable[[], bool]) -> None:
        self._tick = tick
        self._awake = threading.Event()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Call the function soon."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="nbckpt-panel", daemon=True
            )
            self._thread.start()
        self._awake.set()

    def stop(self) -> None:
        """Call it no more; returns once the last call has ended."""
        self._over.set()
        self._awake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        """Call the function, at most so often."""
        while not self._over.wait(INTERVAL):
            self._awake.wait()
            self._awake.clear()
            if not self._over.is_set() and self._tick():
                self._awake.set()

"""``nbckpt.progress``: the panel as an ipywidgets widget, for those who compose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ipywidgets

from nbckpt.panel.html import head_html, steps_html
from nbckpt.panel.live import panel

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.panel.view import RunView


class Progress(ipywidgets.VBox):  # type: ignore[misc]  # it has no types
    """Shows the run of this kernel; made by `progress`.

    Notes
    -----
    Front ends don't keep widgets across a restart: what is to last is the panel below
    ``%nbckpt start``.
    """

    def __init__(self) -> None:
        self._head, self._steps = ipywidgets.HTML(), ipywidgets.HTML()
        self._shown: object = None
        super().__init__([self._head, self._steps])

    def tell(self, view: RunView) -> None:
        """Show a run.

        Parameters
        ----------
        view : RunView
            The run as it is now.
        """
        self._head.value = head_html(view)
        if self._shown is not view.steps:
            self._shown = view.steps
            self._steps.value = steps_html(view)

    def __reduce__(self) -> tuple[Callable[[], Progress], tuple[()]]:
        """Return what makes one like it: no step changes it, and it comes back alive."""
        return progress, ()

    def __repr__(self) -> str:
        """Return the same text always, for notebooks that are compared."""
        return "<nbckpt progress>"


def progress() -> Progress:
    """Return a widget that shows the run of this kernel while cells run.

    Returns
    -------
    Progress
        A box for any layout. Without a front end it holds the names of the steps.

    Raises
    ------
    BadStep
        If nbckpt is not loaded.

    Examples
    --------
    ``ipywidgets.Accordion([nbckpt.progress()], titles=["nightly"])``
    """
    widget = Progress()
    panel().join(widget)
    return widget

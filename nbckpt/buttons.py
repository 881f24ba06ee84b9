"""Buttons under a question, in a front end where somebody can click them.

A click records the answer as ``nbckpt answer`` does; then the buttons give way to a line
that says who answered what, which stays in the saved notebook.
"""

from __future__ import annotations

import html
import time
from typing import TYPE_CHECKING, Any

from nbckpt import settling
from nbckpt.answers import word_of
from nbckpt.errors import AlreadySettled, NbckptError
from nbckpt.persons import person

if TYPE_CHECKING:
    from nbckpt.records import Question
    from nbckpt.session import Session


def has_reader(shell: Any) -> bool:
    """Tell whether somebody can click: a kernel whose client takes input from a person.

    Parameters
    ----------
    shell : InteractiveShell
        The shell.

    Returns
    -------
    bool
        nbclient, nbval and papermill say with each cell that nobody is there.
    """
    if not hasattr(shell, "kernel") or not hasattr(shell, "get_parent"):
        return False
    content = (shell.get_parent() or {}).get("content") or {}
    return bool(content.get("allow_stdin"))


def offer(session: Session, asked: Question) -> None:
    """Show the buttons of a question, if somebody can click them.

    Parameters
    ----------
    session : Session
        The kernel's session; the run may be free.
    asked : Question
        Without an answer.
    """
    if not session.silent and has_reader(session.shell):
        Buttons(session, asked).show()


class Buttons:
    """One button for each option, or a field for any text.

    Parameters
    ----------
    session : Session
        The kernel's session.
    asked : Question
        Without an answer.
    """

    def __init__(self, session: Session, asked: Question) -> None:
        self._session = session
        self.asked = asked
        self.box: Any = None
        self._display: Any = None
        self._told: Any = None

    def show(self) -> None:
        """Show them below what the cell has put out."""
        import ipywidgets
        from IPython.display import display

        self._told = ipywidgets.HTML(html.escape(self.asked.text))
        parts = self._choices() if self.asked.options else self._field()
        self.box = ipywidgets.VBox([self._told, ipywidgets.HBox(parts)])
        self._display = display(self.box, display_id=True)

    def _choices(self) -> list[Any]:
        """Return one button for each option."""
        import ipywidgets

        found = []
        for option in self.asked.options:
            button = ipywidgets.Button(description=word_of(option))
            button.on_click(lambda _button, value=option: self.answer(value))
            found.append(button)
        return found

    def _field(self) -> list[Any]:
        """Return a field for any text, and the button that sends it."""
        import ipywidgets

        field = ipywidgets.Text(placeholder="answer")
        button = ipywidgets.Button(description="Answer")
        button.on_click(lambda _button: self.answer(field.value))
        return [field, button]

    def answer(self, value: Any) -> None:
        """Record an answer, then seal the buttons.

        Parameters
        ----------
        value : object
            The option or the text.
        """
        session = self._session
        store = session.store if session.is_held else session.open_store()
        try:
            change = settling.answer(self.asked, value, person(), time.time())
            done = store.transact(change)
        except AlreadySettled as first:
            self._seal(str(first))
        except NbckptError as error:
            self._told.value = html.escape(f"not recorded: {error}")
        else:
            told = f"answered {word_of(done.answer)} by {done.answered_by}"
            self._seal(f"{done.text}: {told}. Run the notebook again to go on")
        finally:
            if not session.is_held:
                store.close()

    def _seal(self, line: str) -> None:
        """Put a line in place of the buttons."""
        shown = {"text/plain": line, "text/html": f"<p>{html.escape(line)}</p>"}
        self._display.update(shown, raw=True)
        self.box.close()

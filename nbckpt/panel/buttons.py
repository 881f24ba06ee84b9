"""Buttons under what waits for a human, in a front end where somebody can click them.

A click does what its command does; then the buttons give way to a line that says who said
what, which stays in the saved notebook. Where the command was faster, the line says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbckpt import answers
from nbckpt.errors import AlreadySettled, NbckptError, StopForHuman, WaitingForAnswer
from nbckpt.panel.style import ASKED_CSS
from nbckpt.people import settling
from nbckpt.records import EffectState
from nbckpt.resume import Stop
from nbckpt.runs.history import Reader
from nbckpt.runs.persons import person
from nbckpt.verbs.forms.late import late
from nbckpt.verbs.forms.pages import as_html, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbckpt.records import EffectRecord, Question, Word
    from nbckpt.resume import Decision
    from nbckpt.session import Session
    from nbckpt.store import Store
    from nbckpt.verbs.settle import marks, resolving
else:
    # Seldom needed, and they bring half of the verbs along.
    marks = late("nbckpt.verbs.settle.marks")
    resolving = late("nbckpt.verbs.settle.resolving")

Act = Callable[["Store", str], str]
"""Records a click in a store; takes the text of the field; returns what is to be told."""
NOTHING = {"text/plain": "", "text/html": ""}
MOST_EFFECTS = 5
WORDS: tuple[tuple[Word, str], ...] = (
    ("done", "It happened"),
    ("not-done", "It did not happen"),
    ("redo", "Do it again"),
)


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


@dataclass(frozen=True, slots=True)
class Choice:
    """One button."""

    word: str
    act: Act
    command: str
    """What does the same in a shell."""
    takes_text: bool = False
    """Whether any text is taken, from a field beside the button."""


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
        Buttons(session, asked.text, answers_of(asked)).show()


def offer_settling(
    session: Session, step: str, decision: Decision | None, error: BaseException | None
) -> None:
    """Show the buttons of a step that stopped for a human, if somebody can click them.

    Parameters
    ----------
    session : Session
        The kernel's hold on its run.
    step : str
        The step whose cell ended; empty for a plain cell.
    decision : Decision or None
        What was decided where it began.
    error : BaseException or None
        What it raised.
    """
    stops = isinstance(error, StopForHuman) and not isinstance(error, WaitingForAnswer)
    if step and stops and not session.silent and has_reader(session.shell):
        for text, choices in _settling(session, step, decision):
            Buttons(session, text, choices).show()


def _settling(
    session: Session, step: str, decision: Decision | None
) -> Iterator[tuple[str, list[Choice]]]:
    """Yield what a step stopped for, each with its buttons."""
    if isinstance(decision, Stop):
        yield f"Step {step}: {decision.reason}", again_from(session.run_id, step)
    effects = session.journal.effects(session.run_id, step)
    unknown = [one for one in effects if one.state is EffectState.INTENT]
    for effect in unknown[:MOST_EFFECTS]:
        yield f"Step {step}: did the effect {effect.name} happen?", words_on(effect)


def answers_of(asked: Question) -> list[Choice]:
    """Return one button for each option of a question, or one for any text.

    Parameters
    ----------
    asked : Question
        Without an answer.

    Returns
    -------
    list of Choice
        Of two answers at once, one wins.
    """

    def choice(word: str, command: str, *option: Any) -> Choice:
        def act(store: Store, text: str) -> str:
            value = option[0] if option else text
            done = store.transact(settling.answer(asked, value, person(), time.time()))
            told = f"answered {answers.word_of(done.answer)} by {done.answered_by}"
            return f"{done.text} ({told}). Run the notebook again to go on"

        return Choice(word, act, command, takes_text=not option)

    commands = answers.commands(asked)
    if not asked.options:
        return [choice("Answer", commands[0])]
    words = map(answers.word_of, asked.options)
    return list(map(choice, words, commands, asked.options))


def words_on(effect: EffectRecord) -> list[Choice]:
    """Return the buttons that settle an effect whose outcome is not known.

    Parameters
    ----------
    effect : EffectRecord
        As it stands; settled by somebody else meanwhile, a click changes nothing.

    Returns
    -------
    list of Choice
        It happened, it did not, do it again.
    """

    def choice(word: Word, label: str) -> Choice:
        def act(store: Store, text: str) -> str:
            del text
            run = Reader(store).run(effect.run_id)
            said = resolving.Said(word, seen=effect)
            return resolving.resolve(store, run, effect.key, said)

        command = f"nbckpt resolve {effect.run_id} {effect.key} --{word}"
        return Choice(label, act, command)

    return [choice(*each) for each in WORDS]


def again_from(run_id: str, step: str) -> list[Choice]:
    """Return the buttons that have a step run again, alone or with all that follow.

    Parameters
    ----------
    run_id, step : str
        The step.

    Returns
    -------
    list of Choice
        Said twice, it is the same.
    """

    def choice(label: str, *, and_after: bool) -> Choice:
        def act(store: Store, text: str) -> str:
            del text
            run = Reader(store).run(run_id)
            return marks.rerun(store, run, step, and_after=and_after)

        flag = " --and-after" if and_after else ""
        command = f"nbckpt rerun {step} --run {run_id}{flag}"
        return Choice(label, act, command)

    return [
        choice("Run it again", and_after=False),
        choice("Run again from here on", and_after=True),
    ]


class Buttons:
    """Buttons below the running cell, and the line that takes their place.

    Parameters
    ----------
    session : Session
        The kernel's session.
    text : str
        What is asked.
    choices : sequence of Choice
        One button each.
    """

    def __init__(self, session: Session, text: str, choices: Sequence[Choice]) -> None:
        self._session = session
        self._text = text
        self._choices = choices
        self.box: Any = None
        self._words: Any = None
        self._display: Any = None
        self._told: Any = None
        self._field: Any = None

    def show(self) -> None:
        """Show them below what the cell has put out."""
        import ipywidgets
        from IPython.display import display

        parts = [self._button(choice) for choice in self._choices]
        if self._choices[0].takes_text:
            self._field = ipywidgets.Text(placeholder="answer")
            parts.insert(0, self._field)
        self._told = ipywidgets.HTML()
        self.box = ipywidgets.VBox([ipywidgets.HBox(parts), self._told])
        # The words are no widget: they outlive the kernel in the page and in the file.
        self._words = display(self._asked(), raw=True, display_id=True)
        buttons = self.box._repr_mimebundle_() | NOTHING
        self._display = display(buttons, raw=True, display_id=True)

    def _asked(self) -> dict[str, str]:
        """Return what is asked, and the commands that do what the buttons do."""
        commands = [each.command for each in self._choices]
        lines = (f"<code>{as_html(command)}</code>" for command in commands)
        told = "<br>".join(("In a shell:", *lines))
        words = f"<p>{as_html(self._text)}</p><p>{told}</p>"
        return {
            "text/plain": printable("\n".join([self._text, *commands])),
            "text/html": f"<style>{ASKED_CSS}</style>"
            f'<div class="nbckpt-asked">{words}</div>',
        }

    def _button(self, choice: Choice) -> Any:
        """Return the button of a choice; its words are shown whole."""
        import ipywidgets

        layout = ipywidgets.Layout(width="auto")
        button = ipywidgets.Button(description=choice.word, layout=layout)
        button.on_click(lambda _button: self.press(choice.act))
        return button

    def press(self, act: Act) -> None:
        """Do what a button says, then seal all of them.

        Parameters
        ----------
        act : callable
            What it does.
        """
        session = self._session
        text = self._field.value if self._field is not None else ""
        store = session.store if session.is_held else session.open_store()
        try:
            told = act(store, text)
        except AlreadySettled as first:
            self._seal(str(first))
        except NbckptError as error:
            self._told.value = as_html(f"not recorded: {error}")
        else:
            self._seal(told)
        finally:
            if not session.is_held:
                store.close()

    def _seal(self, line: str) -> None:
        """Put a line in place of the buttons, in a tab that knows only these as well."""
        shown = {"text/plain": line, "text/html": f"<p>{as_html(line)}</p>"}
        self._words.update(shown, raw=True)
        self._display.update(NOTHING, raw=True)
        self._told.value = as_html(line)
        self.box.children = (self._told,)

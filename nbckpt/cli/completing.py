"""What a shell completes: run ids, steps, questions, effects, notebooks, stores.

Completion never fails aloud and never writes: whatever is wrong completes to nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from nbckpt.records import EffectState
from nbckpt.verbs.finding.opening import looking, step_names
from nbckpt.verbs.finding.targets import folder_of, run_named

if TYPE_CHECKING:
    from nbckpt.runs.history import Reader

    Text = click.ParamType[str]
else:
    Text = click.ParamType  # generic only in newer versions


class Recorded(Text):
    """A word that a store knows."""

    name = "text"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return what the word can become.

        Parameters
        ----------
        ctx : click.Context
            The options before it tell store and run.
        param : click.Parameter
            Which word it is.
        incomplete : str
            What is written of it.

        Returns
        -------
        list of CompletionItem
            Empty if there is no store, or nothing in it begins so.
        """
        del param
        told = ctx.params
        store, target = str(told.get("store") or ""), _named(ctx)
        found: list[str] = []
        # Whatever a store holds: a traceback would stand in the middle of a command line.
        with suppress(Exception), looking(folder_of(store, target)) as reader:
            found = self.words(reader, target)
        return [CompletionItem(word) for word in found if word.startswith(incomplete)]

    def words(self, reader: Reader, target: str) -> list[str]:
        """Return all words that a store knows; `target` names the run or its notebook."""
        raise NotImplementedError


def _named(ctx: click.Context) -> str:
    """Return the run or the notebook that the words before name; empty if none."""
    told = ctx.params.get("target") or ctx.params.get("notebook")
    if told:
        return str(told)
    # click reads no argument yet where the last option still lacks its value.
    arguments = (p.name for p in ctx.command.params if isinstance(p, click.Argument))
    is_first = next(arguments, "") in {"target", "notebook"}
    return ctx.args[0] if ctx.args and is_first else ""


class RunId(Recorded):
    """A run id."""

    def words(self, reader: Reader, target: str) -> list[str]:
        """Return the run ids, those begun last first."""
        del target
        return [run.run_id for run in reversed(reader.runs())]


class Run(RunId):
    """A run id, or the notebook of a run."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return run ids, and let the shell look for files."""
        found = super().shell_complete(ctx, param, incomplete)
        # First: a file makes click's script for bash forget all that came before it.
        return [CompletionItem(incomplete, type="file"), *found]


class StepName(Recorded):
    """A step of a run."""

    def words(self, reader: Reader, target: str) -> list[str]:
        """Return the steps in the plan's order."""
        return step_names(reader, run_named(reader, target).run_id)


class Question(Recorded):
    """A question that a run waits for."""

    def words(self, reader: Reader, target: str) -> list[str]:
        """Return the questions that nobody has answered."""
        asked = reader.questions(run_named(reader, target).run_id)
        return [one.id for one in asked if not one.answered]


class Effect(Recorded):
    """An effect of a run."""

    def words(self, reader: Reader, target: str) -> list[str]:
        """Return the effects whose outcome is not known."""
        found = reader.effects(run_named(reader, target).run_id)
        return [one.name for one in found if one.state is EffectState.INTENT]


class Place(Text):
    """A file or folder, which the shell knows best.

    Parameters
    ----------
    kind : {"file", "dir"}
        Which.
    """

    name = "text"

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Let the shell look."""
        del ctx, param
        return [CompletionItem(incomplete, type=self._kind)]


KINDS: dict[str, Text] = {
    "target": Run(),
    "targets": Run(),
    "run run_id": RunId(),
    "step": StepName(),
    "accept name": StepName(),
    "question": Question(),
    "effect": Effect(),
    "notebook": Place("file"),
    "file": Place("file"),
    "output": Place("file"),
    "store": Place("dir"),
    "folder": Place("dir"),
}


def complete(command: click.Command) -> None:
    """Let a shell complete the words of a command.

    Parameters
    ----------
    command : click.Command
        Its parameters of these names that take any text.
    """
    for parameter in command.params:
        name = parameter.name or ""
        kind = KINDS.get(f"{command.name} {name}", KINDS.get(name))
        if kind is not None and parameter.type is click.STRING:
            parameter.type = kind

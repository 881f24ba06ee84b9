"""Writes the pages of reference from the code: commands, magics, names, exit codes."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import click

import nbckpt
from nbckpt.cli import EXITS, FAMILIES
from nbckpt.plan import step_parser
from nbckpt.verbs.notebook import SHELL_VERBS, VERBS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator
    from pathlib import Path

MEANINGS = {
    0: "completed",
    1: "a step failed, or what was looked for is not as recorded",
    2: "wrong usage: nothing ran",
    3: "stopped for a human",
    4: "not started: another holder has the run",
}


def write(folder: Path) -> None:
    """Write all pages of reference.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    """
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (folder / f"{name}.md").write_text("\n".join(page()) + "\n", "utf-8")


def commands() -> Iterator[str]:
    """Yield the page of the commands, as their own help tells them."""
    shell = ", ".join(f"`{verb}`" for verb in SHELL_VERBS)
    yield "# Commands\n\nThe same verbs work in a notebook as `%nbckpt VERB`, except those"
    yield f"that are of the shell alone: {shell}.\n"
    for family, members in FAMILIES.items():
        yield f"## {family}\n"
        for command in members:
            context = click.Context(command, info_name=f"nbckpt {command.name}")
            text = command.get_help(context).replace("\b\n", "")
            yield f"### {command.name}\n\n```text\n{text}\n```\n"


def exit_codes() -> Iterator[str]:
    """Yield the page of the exit codes, and which errors give them."""
    yield "# Exit codes\n\n| code | meaning | errors |\n|---|---|---|"
    kinds: dict[int, list[str]] = {}
    for found, code in EXITS:
        several = found if isinstance(found, tuple) else (found,)
        kinds.setdefault(code, []).extend(kind.__name__ for kind in several)
    for code, meaning in MEANINGS.items():
        errors = ", ".join(f"`{name}`" for name in kinds.get(code, [])) or "-"
        yield f"| {code} | {meaning} | {errors} |"


def magics() -> Iterator[str]:
    """Yield the page of the magics: the options of a step, and the verbs."""
    yield "# Magics\n\n## `%%step NAME`\n\n| option | meaning |\n|---|---|"
    for action in step_parser()._actions:
        if action.option_strings:
            yield f"| `{_option(action)}` | {_cell(action.help or '')} |"
    yield "\n## `%nbckpt VERB`\n\n| verb | what it does |\n|---|---|"
    for verb, function in VERBS.items():
        yield f"| `{verb}` | {_cell((function.__doc__ or '').partition(chr(10))[0])} |"


def _option(action: argparse.Action) -> str:
    """Return an option with what follows it."""
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    return f"{', '.join(action.option_strings)}{value}"


def _cell(text: str) -> str:
    """Return text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("%%", "%")


def names() -> Iterator[str]:
    """Yield the page of the Python names."""
    yield "# Python names\n\n`import nbckpt`; all of them are loaded when first used.\n"
    yield "```{eval-rst}"
    for name in nbckpt.HOMES:
        kind = "class" if inspect.isclass(getattr(nbckpt, name)) else "function"
        yield f".. auto{kind}:: nbckpt.{name}\n"
    yield "```"


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "magics": magics,
    "names": names,
    "exit-codes": exit_codes,
}

"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable


def store_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``--store``.

    Parameters
    ----------
    command : callable
        The command's function.

    Returns
    -------
    callable
        The same with the option.
    """
    text = "Folder of the store (default: .nbckpt beside the notebook)."
    return click.option("--store", metavar="DIR", default="", help=text)(command)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``--json``.

    Parameters
    ----------
    command : callable
        The command's function.

    Returns
    -------
    callable
        The same with the option.
    """
    text = "Print JSON, of a shape that stays the same."
    return click.option("--json", "as_json", is_flag=True, help=text)(command)


def output_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``--output``.

    Parameters
    ----------
    command : callable
        The command's function.

    Returns
    -------
    callable
        The same with the option.
    """
    text = "Write the picture there: .svg, .html with the tables, .mmd of a graph."
    return click.option("--output", metavar="FILE", default="", help=text)(command)


def run_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``--run``.

    Parameters
    ----------
    command : callable
        The command's function.

    Returns
    -------
    callable
        The same with the option.
    """
    text = "The run, or its notebook (default: the run begun last)."
    return click.option("--run", "target", metavar="RUN", default="", help=text)(
        command
    )

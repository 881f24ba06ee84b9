"""Telling somebody: a command that is run, a URL that is posted to."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nbckpt.errors import BadStep
from nbckpt.runs.pings import check_url, post

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.verbs.serve.monitoring import Report

COMMAND_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Channels:
    """Where a monitor tells what is new.

    Parameters
    ----------
    command : tuple of str
        A program and its arguments; empty: none is run.
    url : str
        Empty: nothing is posted.
    warn : callable
        Takes a line about a channel that did not take an alert.
    """

    command: tuple[str, ...]
    url: str
    warn: Callable[[str], None]

    @property
    def names(self) -> tuple[str, ...]:
        """Tells these channels from others."""
        return (*self.command, self.url)

    def deliver(self, report: Report) -> bool:
        """Tell what is new.

        Parameters
        ----------
        report : Report
            What a monitor says of a run.

        Returns
        -------
        bool
            Whether one of the channels took it, or there is none but the output.
        """
        failures = [
            self._run(report) if self.command else None,
            post(self.url, json.dumps(report), "application/json")
            if self.url
            else None,
        ]
        tried = [why for why in failures if why is not None]
        for why in filter(None, tried):
            self.warn(f"nbckpt: an alert of {report['target']} failed: {why}")
        return not tried or "" in tried

    def _run(self, report: Report) -> str:
        """Run the command; return why it failed."""
        told = {
            "NBCKPT_ALERT": report["news"],
            "NBCKPT_ALERT_RUN": report["run"] or report["target"],
            "NBCKPT_ALERT_WORD": report["word"],
        }
        try:
            done = subprocess.run(  # noqa: S603 - the user's own command
                self.command,
                input=f"{report['text']}\n".encode("utf-8", "replace"),
                env={**os.environ, **told},
                stdout=subprocess.DEVNULL,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{self.command[0]} did not end within {COMMAND_SECONDS:.0f} s"
        except OSError as error:
            return f"{self.command[0]}: {error.strerror or error}"
        code = done.returncode
        return f"{self.command[0]} ended with {code}" if code else ""


def channels(command: str, url: str, warn: Callable[[str], None]) -> Channels:
    """Return where to tell, or refuse what can't work before anything is watched.

    Parameters
    ----------
    command : str
        A command line; no shell reads it.
    url : str
        Where to post.
    warn : callable
        Takes a line about a channel that did not take an alert.

    Returns
    -------
    Channels
        Those that are given.

    Raises
    ------
    BadStep
        If one is wrong.
    """
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise BadStep(
            f"--alert-command can't be read: {error}",
            "Write for example: --alert-command 'mail -s nbckpt me@example.org'",
        ) from None
    return Channels(words, check_url(url) if url else "", warn)

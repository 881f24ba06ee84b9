"""Commands that keep watching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nbckpt.cli.options import json_option, store_option
from nbckpt.errors import BadStep
from nbckpt.plan import read_duration
from nbckpt.runs.leases import BEATS, DURATION
from nbckpt.verbs.finding.targets import folder_of
from nbckpt.verbs.forms.late import late
from nbckpt.verbs.forms.pages import as_json, printable

if TYPE_CHECKING:
    from pathlib import Path

    from nbckpt.verbs.serve import alerting, monitoring, remembering
else:
    alerting = late("nbckpt.verbs.serve.alerting")
    monitoring = late("nbckpt.verbs.serve.monitoring")
    remembering = late("nbckpt.verbs.serve.remembering")


@click.command("monitor")
@click.argument("targets", metavar="[RUN]...", nargs=-1)
@click.option(
    "--grace",
    default="5m",
    metavar="DURATION",
    help="How long a run may give no sign of life (default: 5m).",
)
@click.option(
    "--alert-command",
    default="",
    metavar="CMD",
    help="Run this; the text comes on its standard input.",
)
@click.option("--alert-url", default="", metavar="URL", help="Post it there as JSON.")
@click.option("--once", is_flag=True, help="Look once; 1 if somebody needs to look.")
@json_option
@store_option
def monitor_command(
    targets: tuple[str, ...], grace: str, store: str, **options: Any
) -> int:
    """Watch runs from another process, and alert once when one is absent.

    RUN is a run id, or a notebook whose current run is meant; without it, all runs that
    are current or held. One alert for each absence and one when the run is well again;
    it tells late (the process runs and gives no sign) from dead, failed, waiting for a
    human, never started, and from a store that can't be read. With --once, as from cron,
    what was told is remembered between calls. Ends by itself when the run ids that it
    was given are finished.

    \b
    nbckpt monitor
    nbckpt monitor nightly.ipynb --grace 10m --alert-command 'mail -s nbckpt me@host'
    nbckpt monitor etl-1 --once --json
    """
    folder = _folder(store, targets)
    channels = alerting.channels(options["alert_command"], options["alert_url"], _warn)
    watching = monitoring.Watching(folder, targets, _grace(grace))
    memory = remembering.Memory(watching.folder, repr(channels.names))

    def tell(report: monitoring.Report) -> None:
        line = as_json(report, None) if options["as_json"] else report["text"]
        click.echo(printable(line))

    watch = monitoring.Monitor(watching, memory, channels.deliver, tell)
    return watch.once() if options["once"] else watch.go_on()


def _folder(store: str, targets: tuple[str, ...]) -> Path:
    """Return the store that all targets lie in."""
    folders = {folder_of(store, target) for target in targets or ("",)}
    if len(folders) > 1:
        raise BadStep(
            "these runs lie in several stores",
            "Start one monitor for each; --store names a store",
        )
    return folders.pop()


def _grace(text: str) -> float:
    """Return the grace in seconds; refuse one in which no beat may come."""
    seconds, beat = read_duration(text), DURATION / BEATS
    if seconds <= beat:
        raise BadStep(
            f"--grace {text} is too short",
            f"A run gives a sign of life every {beat:.0f} s. Leave time for some: 1m",
        )
    return seconds


def _warn(line: str) -> None:
    """Write a line to standard error."""
    click.echo(printable(line), err=True)


COMMANDS = (monitor_command,)

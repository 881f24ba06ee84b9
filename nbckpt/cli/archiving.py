"""Commands about a run as a whole: audit, hand-over, archive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nbckpt.cli.options import json_option, store_option
from nbckpt.history import Reader
from nbckpt.verbs.late import late
from nbckpt.verbs.opening import changing, looking
from nbckpt.verbs.pages import printable
from nbckpt.verbs.targets import folder_of, run_named

if TYPE_CHECKING:
    from nbckpt.verbs import audit, audited, documents, finishing, handover
else:
    audit, audited = late("nbckpt.verbs.audit"), late("nbckpt.verbs.audited")
    documents, finishing = (
        late("nbckpt.verbs.documents"),
        late("nbckpt.verbs.finishing"),
    )
    handover = late("nbckpt.verbs.handover")

FORMS = ("text", "json", "html", "markdown")


@click.command("audit")
@click.argument("target", metavar="[RUN]", default="")
@click.option("--format", "form", type=click.Choice(FORMS), default="text")
@click.option("--output", metavar="FILE", default="", help="Write it there.")
@click.option(
    "--verify", is_flag=True, help="Read the history again; 1 if it is broken."
)
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@store_option
def audit_command(
    target: str, form: str, output: str, store: str, *, verify: bool
) -> int:
    """Say what a run did: each step, its evidence, each key sent, who said what.

    From the records alone, not from reports. --verify recomputes the digests that chain
    the lines of the history, and names the first that is missing, changed or moved.

    \b
    nbckpt audit etl-1
    nbckpt audit etl-1 --verify --format html --output audit.html
    """
    with looking(folder_of(store, target)) as reader:
        data = audit.audit(reader, run_named(reader, target), verify=verify)
    said = _formed(data, form)
    if output:
        finishing.write_whole(Path(output).absolute(), said.encode("utf-8", "replace"))
    else:
        click.echo(said, nl=False)
    broken = data["chain"]["broken"]
    if broken:
        click.echo(f"nbckpt: the history is broken: {printable(broken)}", err=True)
    return 1 if broken else 0


def _formed(data: audit.Audit, form: str) -> str:
    """Return an audit in the form that was asked for."""
    if form == "json":
        return json.dumps(data, indent=2) + "\n"
    forms = {
        "text": documents.text,
        "html": documents.page,
        "markdown": documents.markdown,
    }
    return forms[form](audited.title_of(data), audited.sections(data))


@click.command("handover")
@click.argument("target", metavar="[RUN]", default="")
@json_option
@store_option
def handover_command(target: str, store: str, *, as_json: bool) -> None:
    """Print the page from which somebody else, or a program, goes on.

    Plan, progress, evidence, decisions, unknowns, what was in flight, the next step, the
    exact command, and what must not be done twice.

    \b
    nbckpt handover etl-1 > handover.md
    """
    with looking(folder_of(store, target)) as reader:
        data = handover.handover(reader, run_named(reader, target))
    said = json.dumps(data, indent=2) if as_json else handover.handover_text(data)
    click.echo(said, nl=as_json)


@click.command("finish")
@click.argument("target", metavar="[RUN]", default="")
@store_option
def finish_command(target: str, store: str) -> None:
    """Write the summary and the audit of a run, and archive it.

    Refused as long as anything is open: a step, an effect of unknown outcome, a question.
    Afterwards the run never changes again, and the next run of its notebook is a new one.

    \b
    nbckpt finish etl-1
    """
    with changing(folder_of(store, target)) as opened:
        click.echo(finishing.finish(opened, run_named(Reader(opened), target)))


RUN = (finish_command,)
LOOK = (audit_command, handover_command)

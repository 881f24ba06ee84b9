"""Commands about a run as a whole: audit, hand-over, archive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nbckpt import places
from nbckpt.cli.options import json_option, store_option
from nbckpt.runs.history import Reader
from nbckpt.trust import load_secret
from nbckpt.verbs.finding.opening import changing, looking
from nbckpt.verbs.finding.targets import folder_of, run_named, store_folder
from nbckpt.verbs.forms import pages
from nbckpt.verbs.forms.drawing import answer, is_drawn
from nbckpt.verbs.forms.late import late
from nbckpt.verbs.forms.pages import printable

if TYPE_CHECKING:
    from nbckpt.runs import transfers
    from nbckpt.verbs.forms import documents
    from nbckpt.verbs.look import audit, audited, checkpoint, handover, picturing
    from nbckpt.verbs.settle import finishing
else:
    audit, audited = late("nbckpt.verbs.look.audit"), late("nbckpt.verbs.look.audited")
    documents, finishing = (
        late("nbckpt.verbs.forms.documents"),
        late("nbckpt.verbs.settle.finishing"),
    )
    handover, transfers = (
        late("nbckpt.verbs.look.handover"),
        late("nbckpt.runs.transfers"),
    )
    checkpoint = late("nbckpt.verbs.look.checkpoint")
    picturing = late("nbckpt.verbs.look.picturing")

FORMS = ("text", "json", "html", "markdown")


@click.command("audit")
@click.argument("target", metavar="[RUN]", default="")
@click.option("--format", "form", type=click.Choice(FORMS), default="text")
@click.option("--output", metavar="FILE", default="", help="Write it there.")
@click.option(
    "--verify", is_flag=True, help="Read all again; 1 if it is not as written."
)
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@click.option("--html", "form", flag_value="html", help="With pictures, in one file.")
@store_option
def audit_command(
    target: str, form: str, output: str, store: str, *, verify: bool
) -> int:
    """Say what a run did: each step, its evidence, each key sent, who said what.

    From the records alone, not from reports. --verify recomputes the digests that chain
    the lines of the history, and names the first that is missing, changed or moved; and
    it names a record that is not as it was written.

    \b
    nbckpt audit etl-1
    nbckpt audit etl-1 --verify --format html --output audit.html
    """
    with looking(folder_of(store, target)) as reader:
        run = run_named(reader, target)
        data = audit.audit(reader, run, verify=verify)
        more = picturing.illustrations(reader, run) if form == "html" else []
    if output:
        said = _formed(data, form, more)
        places.write_whole(Path(output).absolute(), said.encode("utf-8", "replace"))
    elif form == "text":
        answer(data, _drawn_audit, as_json=False)
    else:
        click.echo(_formed(data, form, more), nl=False)
    broken = data["chain"]["broken"]
    if broken:
        click.echo(f"nbckpt: not as it was written: {printable(broken)}", err=True)
    return 1 if broken else 0


def _drawn_audit(data: audit.Audit) -> pages.Page:
    """Return an audit as a terminal shows it."""
    return documents.outline(audited.title_of(data), audited.sections(data))


def _formed(data: audit.Audit, form: str, more: list[documents.Section]) -> str:
    """Return an audit in the form that was asked for, with more at its end."""
    if form == "json":
        return pages.as_json(data) + "\n"
    forms = {
        "text": documents.text,
        "html": documents.page,
        "markdown": documents.markdown,
    }
    return forms[form](audited.title_of(data), [*audited.sections(data), *more])


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
    if as_json or is_drawn():
        answer(data, _drawn_handover, as_json=as_json)
    else:
        click.echo(handover.handover_text(data), nl=False)


def _drawn_handover(data: handover.Handover) -> pages.Page:
    """Return a hand-over as a terminal shows it."""
    return documents.outline(*handover.handover_document(data))


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


@click.command("export")
@click.argument("target", metavar="[RUN]", default="")
@click.option(
    "--format",
    "form",
    type=click.Choice(["checkpoint", "archive"]),
    default="archive",
    help="Where it is, as JSON; or all of it (default).",
)
@click.option("--output", metavar="FILE", default="", help="Write it there.")
@store_option
def export_command(target: str, form: str, output: str, store: str) -> None:
    """Write a run into one file, for another machine or another program.

    An archive holds the run's records and packs with their digests; import reads it.
    A checkpoint is JSON: task_id, schema_version, current_step, total_steps, next_input,
    completed, errors; of items, if the current step is a loop.

    \b
    nbckpt export etl-1 --output etl-1.nbckpt
    nbckpt export etl-1 --format checkpoint
    """
    with looking(folder_of(store, target)) as reader:
        run = run_named(reader, target)
        if form == "checkpoint":
            said = json.dumps(checkpoint.checkpoint(reader, run), indent=2)
            _tell(said, output)
            return
        click.echo(checkpoint.archive(reader.store, run, output))


def _tell(said: str, output: str) -> None:
    """Print text, or write it to a file."""
    if output:
        places.write_whole(Path(output).absolute(), f"{said}\n".encode())
    else:
        click.echo(said)


@click.command("import")
@click.argument("file")
@click.option("--trust", is_flag=True, help="You would run what it holds: it is yours.")
@store_option
def import_command(file: str, store: str, *, trust: bool) -> None:
    """Bring a run from a file that export wrote.

    Without --trust it goes into a new store that can only be looked at: nothing of it is
    loaded until nbckpt trust. With --trust it joins your own store, and its values are
    unpickled when its notebook runs, which can execute anything.

    \b
    nbckpt import etl-1.nbckpt --store theirs
    nbckpt import etl-1.nbckpt --trust
    """
    folder, secret = store_folder(store), load_secret() if trust else None
    run_id, is_new = transfers.import_run(Path(file).absolute(), folder, secret)
    if not is_new:
        click.echo(f"run {run_id} is in {folder} already")
    elif trust:
        click.echo(f"run {run_id} is in {folder} now. Go on: nbckpt handover {run_id}")
    else:
        click.echo(
            f"run {run_id} is in {folder} now, to be looked at: nbckpt handover --store "
            f"{folder}. To make it yours: nbckpt trust {folder}"
        )


RUN = (finish_command,)
LOOK = (audit_command, handover_command)
STORE = (export_command, import_command)

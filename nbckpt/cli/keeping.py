"""Commands about a store as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nbckpt.cli.options import json_option, store_option
from nbckpt.runs.trusting import make_own, trusted_text
from nbckpt.trust import load_secret
from nbckpt.verbs.finding.opening import changing, looking
from nbckpt.verbs.finding.targets import folder_of, run_named, store_folder
from nbckpt.verbs.forms.drawing import answer, tracked
from nbckpt.verbs.forms.late import late
from nbckpt.verbs.forms.pages import size

if TYPE_CHECKING:
    from nbckpt.state import garbage
    from nbckpt.verbs.settle import verification
else:
    garbage = late("nbckpt.state.garbage")
    verification = late("nbckpt.verbs.settle.verification")


@click.command("verify")
@click.argument("target", metavar="[RUN]", default="")
@json_option
@store_option
def verify_command(target: str, store: str, *, as_json: bool) -> int:
    """Look at all evidence of a run again; nothing runs.

    Every file is compared with its digest and every stored byte is read back. Checks
    need the notebook's names: %nbckpt verify evaluates them in its kernel. Exit code 1
    if anything is not as recorded.

    \b
    nbckpt verify
    """
    with looking(folder_of(store, target)) as reader:
        run = run_named(reader, target)
        data = verification.verify(reader, run, follow=tracked)
        answer(data, verification.verify_page, as_json=as_json)
    return 0 if data["ok"] else 1


@click.command("gc")
@store_option
def gc_command(store: str) -> None:
    """Remove what no record needs from a store.

    Nothing that a record names is ever removed, nor what a living run is writing.

    \b
    nbckpt gc
    """
    with changing(store_folder(store)) as opened:
        swept = garbage.collect(opened)
        click.echo(f"removed {swept.files} files, {size(swept.bytes)}")


@click.command("trust")
@click.argument("folder", metavar="[STORE]", default="")
@store_option
def trust_command(folder: str, store: str) -> None:
    """Make another user's store your own.

    Until then it is read-only and nothing of it is loaded. Afterwards its values are
    unpickled when its notebook runs, which can execute anything: trust only what you
    would run.

    \b
    nbckpt trust colleague/.nbckpt
    """
    path = store_folder(folder or store)
    click.echo(trusted_text(make_own(path, load_secret()), path))


COMMANDS = (verify_command, gc_command, trust_command)

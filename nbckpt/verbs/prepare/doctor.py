"""``nbckpt doctor``: whether everything that a run rests on is in order; nothing runs."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from nbckpt import places, trust
from nbckpt.errors import NbckptError, StoreRefused
from nbckpt.plan import step_line, wrong_lines
from nbckpt.source.cells import read_sources
from nbckpt.verbs.finding.opening import looking
from nbckpt.verbs.finding.targets import notebook_named, store_folder
from nbckpt.verbs.forms.pages import Page, Table, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NEEDED = (
    "ipython", "ipykernel", "ipywidgets", "nbclient", "nbformat", "diskcache",
    "cloudpickle",
)  # fmt: skip
FRONT_ENDS = (
    "jupyterlab", "notebook", "papermill", "jupytext", "nbconvert", "nbval", "nbmake",
)  # fmt: skip
ROOM = 1_000_000_000
"""Bytes; below it a checkpoint may soon find no room."""
SECONDS = 30


class Finding(TypedDict):
    """One thing that was looked at."""

    area: str
    """``environment trust store front-end notebook``."""
    what: str
    state: str
    """``ok``, ``note`` (works, but look at it) or ``wrong``."""
    said: str
    remedy: str


class Diagnosis(TypedDict):
    """What ``nbckpt doctor --json`` prints."""

    ok: bool
    """Whether nothing is wrong; notes don't count."""
    findings: list[Finding]


def doctor(target: str = "", store: str = "") -> Diagnosis:
    """Look at everything that a run rests on.

    Parameters
    ----------
    target : str, optional
        A notebook, which is looked at as well.
    store : str, optional
        Folder of the store; without it, the one beside the notebook or here.

    Returns
    -------
    Diagnosis
        Whatever is wrong becomes a finding; nothing is raised, and nothing is made.
    """
    notebook = notebook_named(target)
    folder = store_folder(store, notebook)
    found = [*_environment(), *_trust(), *_store(folder), *_front_ends()]
    if target:
        found += _notebook(Path(target).absolute())
    return Diagnosis(ok=all(one["state"] != "wrong" for one in found), findings=found)


def _fine(area: str, what: str, said: str) -> Finding:
    """Return that a thing is in order."""
    return Finding(area=area, what=what, state="ok", said=said, remedy="")


def _guarded(area: str, what: str, look: Callable[[], str]) -> Finding:
    """Return what a look says; an error is what is wrong."""
    try:
        return _fine(area, what, look())
    except NbckptError as error:
        return _wrong(area, what, error.what, error.remedy)
    except (OSError, ValueError) as error:
        return _wrong(area, what, str(error), "")


def _wrong(area: str, what: str, said: str, remedy: str) -> Finding:
    """Return that a thing is wrong."""
    return Finding(area=area, what=what, state="wrong", said=said, remedy=remedy)


def _note(area: str, what: str, said: str, remedy: str) -> Finding:
    """Return that a thing works, but needs to be looked at."""
    return Finding(area=area, what=what, state="note", said=said, remedy=remedy)


def _environment() -> Iterator[Finding]:
    """Look at Python, the packages, and the kernel that a notebook gets."""
    area = "environment"
    yield _fine(area, "python", f"{platform.python_version()}, {sys.executable}")
    for name in ("nbckpt", *NEEDED):
        version = _version(name)
        remedy = "pip install --force-reinstall nbckpt"
        yield (
            _fine(area, name, version)
            if version
            else _wrong(area, name, "not installed", remedy)
        )
    yield _kernel()


def _version(name: str) -> str:
    """Return the version of a package; empty if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _kernel() -> Finding:
    """Look whether the kernel of notebooks can load nbckpt."""
    from jupyter_client.kernelspec import NoSuchKernel
    from jupyter_client.manager import KernelManager

    manager: Any = KernelManager(kernel_name="python3")
    what = "kernel python3"
    try:
        # Where the specification says ``python``, it is the one that this runs in.
        program = str(manager.format_kernel_cmd()[0])
    except NoSuchKernel:
        remedy = f"{sys.executable} -m ipykernel install --user"
        return _wrong("environment", what, "not installed", remedy)
    if _is_this_python(program):
        return _fine("environment", what, program)
    try:
        # A kernel is started the same way: by the program of its specification.
        command = [program, "-c", "import nbckpt"]
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, check=False, timeout=SECONDS
        )
        works = done.returncode == 0
    except (OSError, subprocess.SubprocessError):
        works = False
    if works:
        return _note("environment", what, f"another Python: {program}", "")
    return _wrong(
        "environment",
        what,
        f"it is {program}, which can't load nbckpt",
        f"{program} -m pip install nbckpt",
    )


def _is_this_python(program: str) -> bool:
    """Tell whether a kernel runs in the environment that this command runs in."""
    found = shutil.which(program) or program
    return Path(found).parent == Path(sys.executable).parent


def _trust() -> Iterator[Finding]:
    """Look at the key that seals the records."""
    path = trust.secret_path()
    if not path.exists():
        yield _fine("trust", "key", f"the first run makes it: {path}")
        return

    def look() -> str:
        trust.load_secret()
        return f"{path}, readable by you alone"

    yield _guarded("trust", "key", look)


def _store(folder: Path) -> Iterator[Finding]:
    """Look at the store, or at the place where it would be made."""
    place = _guarded("store", "place", lambda: _place(folder))
    yield place
    if place["state"] != "ok":
        return
    free = shutil.disk_usage(_standing(folder)).free
    remedy = "Make room before a long run; nbckpt gc removes what no record needs"
    yield (
        _fine("store", "room", f"{size(free)} free")
        if free >= ROOM
        else _note("store", "room", f"only {size(free)} free", remedy)
    )
    if folder.exists():
        yield from _records(folder)


def _place(folder: Path) -> str:
    """Return where the store lies; raise what is unsafe about it."""
    places.inspect(folder)
    standing = _standing(folder)
    if not os.access(standing, os.W_OK | os.X_OK):
        raise StoreRefused(f"nothing can be written to {standing}", places.ELSEWHERE)
    kind = places.file_system(standing) or "an unknown file system"
    there = "" if folder.exists() else "; the first run makes it"
    return f"{folder} on {kind}{there}"


def _standing(folder: Path) -> Path:
    """Return a folder, or the nearest one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def _records(folder: Path) -> Iterator[Finding]:
    """Look at the records of a store, and whose they are."""
    trusted = True

    def look() -> str:
        nonlocal trusted
        with looking(folder) as reader:
            trusted = reader.store.trusted or not reader.store.exists
            count = len(reader.runs())
        return f"{count} run{'' if count == 1 else 's'}, all readable"

    yield _guarded("store", "records", look)
    if not trusted:
        said = "another user's; it can be looked at, and nothing of it is loaded"
        yield _note("store", "owner", said, f"To make it yours: nbckpt trust {folder}")


def _front_ends() -> Iterator[Finding]:
    """Look at the programs that notebooks are run with, as far as they are installed."""
    for name in FRONT_ENDS:
        version = _version(name)
        if version:
            yield _fine("front-end", name, version)
    engines = metadata.entry_points(group="papermill.engine", name="nbckpt")
    if _version("papermill") and not engines:
        remedy = "pip install --force-reinstall --no-deps nbckpt"
        said = "papermill does not find --engine nbckpt"
        yield _wrong("front-end", "papermill engine", said, remedy)


def _notebook(path: Path) -> Iterator[Finding]:
    """Look at a notebook: its steps, and whether it loads the extension."""
    sources: list[str] = []

    def look() -> str:
        sources.extend(read_sources(path))
        count = sum(step_line(source) is not None for source in sources)
        return f"{count} step{'' if count == 1 else 's'} in {len(sources)} code cells"

    yield _guarded("notebook", path.name, look)
    for wrong in wrong_lines(sources):
        yield _wrong("notebook", "step line", wrong.what, wrong.remedy)
    if sources and not any("load_ext nbckpt" in source for source in sources):
        remedy = "Write %load_ext nbckpt into its first cell; or: nbckpt annotate"
        yield _note("notebook", "extension", "no cell loads nbckpt", remedy)


def doctor_page(data: Diagnosis) -> Page:
    """Return a diagnosis for people.

    Parameters
    ----------
    data : Diagnosis
        From `doctor`.

    Returns
    -------
    Page
        One table, then what to do.
    """
    found = data["findings"]
    words = {"wrong": "not ok"}
    rows = [
        (f["area"], f["what"], words.get(f["state"], f["state"]), f["said"])
        for f in found
    ]
    page: list[str | Table] = [Table(("area", "what", "state", "found"), rows)]
    todo = [f"{f['what']}: {f['remedy']}" for f in found if f["remedy"]]
    said = "all is well" if data["ok"] else "something is wrong"
    return [*page, "", said, *todo]

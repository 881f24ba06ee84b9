"""pytest options for notebooks with steps; nbval is used where it is there, never needed.

``--nbckpt-fresh`` gives each notebook a throw-away store. ``--nbckpt-twice`` executes each
notebook cold, then warm in a new kernel: the second pass must run no step and show equal
outputs; ``--nbckpt-keep`` keeps that pass. The kernels that pytest starts are told which
notebook they run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

ROOT = pytest.StashKey[Path]()
STEP = ("%%step ", "%step ")


class Differs(AssertionError):
    """The warm pass of a notebook was not like the cold one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options.

    Parameters
    ----------
    parser : pytest.Parser
        pytest's own.
    """
    group = parser.getgroup("nbckpt", "notebooks that resume")
    group.addoption(
        "--nbckpt-fresh",
        action="store_true",
        help="Give each notebook a throw-away store, so that no step is skipped.",
    )
    group.addoption(
        "--nbckpt-twice",
        action="store_true",
        help="Execute each notebook with steps cold, then warm in a new kernel: the "
        "second pass must run no step and show equal outputs.",
    )
    group.addoption(
        "--nbckpt-keep",
        type=Path,
        metavar="FOLDER",
        help="Keep each notebook in this folder as the second pass left it.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder of the throw-away stores, if one is asked for.

    Parameters
    ----------
    config : pytest.Config
        pytest's own.
    """
    if config.getoption("nbckpt_fresh"):
        folder = Path(tempfile.mkdtemp(prefix="nbckpt-"))
        config.stash[ROOT] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tell the kernel of a notebook's cells which notebook it runs.

    Parameters
    ----------
    item : pytest.Item
        Any test; those of other files are left alone.

    Yields
    ------
    None
        While the test runs.
    """
    if item.path.suffix != ".ipynb":
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NBCKPT_NOTEBOOK", str(item.path))
        root = item.config.stash.get(ROOT, None)
        if root is not None:
            # Two notebooks of one name in two folders are two.
            name = hashlib.sha256(os.fsencode(item.path)).hexdigest()[:16]
            patch.setenv("NBCKPT_STORE", str(root / name))
        return (yield)


def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> pytest.Collector | None:
    """Collect the notebooks that hold steps, if they are to be executed twice.

    Parameters
    ----------
    file_path : Path
        Any file.
    parent : pytest.Collector
        Its folder.

    Returns
    -------
    pytest.Collector or None
        Beside those of other plugins, such as nbval.
    """
    if file_path.suffix != ".ipynb" or not parent.config.getoption("nbckpt_twice"):
        return None
    text = file_path.read_text(encoding="utf-8", errors="replace")
    if not any(word in text for word in STEP):
        return None
    return NotebookFile.from_parent(parent, path=file_path)


class NotebookFile(pytest.File):
    """A notebook with steps."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield one test: both passes.

        Yields
        ------
        pytest.Item
            The test.
        """
        yield TwiceItem.from_parent(self, name="cold and warm")


class TwiceItem(pytest.Item):
    """A notebook cold, then warm in a new kernel."""

    def runtest(self) -> None:
        """Execute both passes with a throw-away store.

        Raises
        ------
        Differs
            With all that is wrong.
        """
        from nbckpt.headless.twice import cold_and_warm

        folder = self.config.getoption("nbckpt_keep")
        keep = folder / self.path.name if folder else None
        with tempfile.TemporaryDirectory(prefix="nbckpt-") as scratch:
            found = cold_and_warm(self.path, Path(scratch) / "store", keep)
        if found:
            raise Differs("\n".join(found))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None
    ) -> str:
        """Return what is wrong, without our own frames.

        Parameters
        ----------
        excinfo : pytest.ExceptionInfo
            What was raised.
        style : object, optional
            Not used.

        Returns
        -------
        str
            For the report.
        """
        del style
        if isinstance(excinfo.value, Differs):
            return str(excinfo.value)
        return str(excinfo.getrepr(style="native"))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the test lies.

        Returns
        -------
        tuple of Path, int and str
            The notebook, its first line, the test's name.
        """
        return self.path, 0, f"{self.path.name}: {self.name}"

"""A notebook in this process: a shell with the extension loaded, cell by cell."""

from __future__ import annotations

import atexit
from contextlib import chdir, contextmanager
from typing import TYPE_CHECKING, Any

import nbformat
from cloudpickle import cloudpickle
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from nbckpt import magics
from nbckpt.magics import HOOKS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nbckpt.runner import Runner
    from nbckpt.runs.journal import Journal
    from nbckpt.session import Session


def forget_classes() -> None:
    """Forget which classes were decoded, as another process would not know them."""
    cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.clear()
    cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS.clear()


@contextmanager
def opened(folder: Path) -> Iterator[Notebook]:
    """Open a notebook in a folder, for several tests; ``capsys`` is theirs to give."""
    with chdir(folder):
        found = Notebook()
        try:
            yield found
        finally:
            found.close()


def write_cells(*sources: str, file: str = "etl.ipynb") -> None:
    """Write a notebook that holds these cells into the folder that the test stands in."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), file)


class Notebook:
    """A shell with the extension loaded, in the folder that the test stands in."""

    def __init__(self, capsys: Any = None) -> None:
        self.capsys = capsys
        self.shell = self._start()

    @staticmethod
    def _start() -> Any:
        InteractiveShell.clear_instance()
        config = Config()
        config.HistoryManager.enabled = False
        shell: Any = InteractiveShell.instance(config=config)
        shell.colors = "nocolor"
        magics.load(shell)
        return shell

    def show_cell(self, cell: str) -> None:
        """Say, as a front end does, which cell runs next."""
        self.shell.get_parent = lambda: {"metadata": {"cellId": cell}}

    def run(self, source: str, *, fine: bool = True) -> Any:
        result = self.shell.run_cell(source, store_history=True)
        if fine:
            result.raise_error()
        return result

    def error(self, source: str) -> BaseException:
        result = self.run(source, fine=False)
        found: BaseException = result.error_in_exec or result.error_before_exec
        assert found is not None
        return found

    def restart(self) -> None:
        self.close()
        forget_classes()
        self.shell = self._start()

    def close(self) -> None:
        magics.unload(self.shell)
        InteractiveShell.clear_instance()
        # Each shell would stay until the end, and collect garbage once more there.
        atexit.unregister(self.shell.atexit_operations)

    @property
    def names(self) -> dict[str, Any]:
        namespace: dict[str, Any] = self.shell.user_ns
        return namespace

    @property
    def runner(self) -> Runner:
        found: Runner = self.names[HOOKS].runner
        return found

    @property
    def session(self) -> Session:
        found: Session = self.names[HOOKS].session
        return found

    @property
    def journal(self) -> Journal:
        return self.session.journal

    def decision(self, step: str) -> str:
        return type(self.runner.last[step]).__name__

    def reason(self, step: str) -> str:
        return self.runner.last[step].reason

    def shown(self) -> str:
        return self.capsys.readouterr().out

    def told(self) -> str:
        return self.capsys.readouterr().err

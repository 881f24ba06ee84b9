"""Keeps the tests away from the user's own Jupyter, IPython and nbckpt settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import coverage
import pytest

from nbckpt.state.modulestate import OWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdist.scheduler import LoadScopeScheduling

    from tests.notebook import Notebook

FOLDERS = (
    "IPYTHONDIR",
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
    "MPLCONFIGDIR",
)
WHOLE_NOTEBOOKS = tuple(
    Path(__file__).with_name(name)
    for name in (
        "browser", "cases", "scenarios", "test_demo.py", "test_notebooks.py",
        "test_rehearsal.py",
    )
)  # fmt: skip
TOGETHER = {
    "tests/browser/test_tour.py",
    "tests/outputs/test_kernel.py",
    "tests/style/test_budgets.py",
    "tests/test_codecs_types.py",
    "tests/test_outputs.py",
}
"""Files whose tests share what is long to make."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that takes a sample of a long suite."""
    text = "run each N-th test only; the others count as deselected"
    parser.addoption("--one-in", type=int, default=1, metavar="N", help=text)


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Keep each N-th test, the same ones in every process."""
    every = config.getoption("--one-in")
    left_out = [item for number, item in enumerate(items) if number % every]
    items[:] = items[::every]
    config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Any
) -> LoadScopeScheduling | None:
    """Spread tests one by one; those of a class, or that share much, on one worker."""
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path, *names = nodeid.partition("[")[0].split("::")
            if path in TOGETHER:
                return path
            return f"{path}::{names[0]}" if len(names) > 1 else nodeid

    return Scheduling(config, log)


def pytest_sessionfinish() -> None:
    """Save what this worker measured: one that is slow to end is killed by xdist."""
    if (measured := coverage.Coverage.current()) is not None:
        measured.save()


@pytest.fixture(scope="session", autouse=True)
def _own_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give this session, and the kernels that it starts, folders of its own."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("NBCKPT_")]:
            if name != "NBCKPT_KILL_ALL":
                patch.delenv(name)
        for name in FOLDERS:
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        # Each step would look through all modules of tests that this process has loaded.
        OWN.add("tests")
        yield


@pytest.fixture(autouse=True)
def _unmeasured_kernels(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Take coverage from kernels that run whole notebooks: SIGKILL leaves no data."""
    if any(request.path.is_relative_to(folder) for folder in WHOLE_NOTEBOOKS):
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Start a PostgreSQL server of Debian's on loopback; return how to connect."""
    from tests import postgresql

    with postgresql.server() as address:
        yield address


@pytest.fixture
def notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Notebook]:
    """Open a notebook in a folder of its own, in this process."""
    from tests.notebook import Notebook

    monkeypatch.chdir(tmp_path)
    found = Notebook(capsys)
    yield found
    found.close()

"""One server, one browser, and a page for each notebook that a test opens."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.browser.page import NotebookPage
from tests.browser.server import OLD_KERNEL, Server
from tests.lacking import lack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playwright.sync_api import Browser

SHOTS = Path(__file__).parents[2] / "build" / "shots"
NEEDED = ("jupyterlab", "notebook", "playwright")
FLAGS = (
    "--no-sandbox",  # root can't have one
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--force-color-profile=srgb",
)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of Chromium, if all is there that these tests need."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        lack(f"no {', '.join(missing)}: pip install --editable '.[browser]'")
    # Playwright's own needs no root; it is no package of Debian's or PyPI's.
    own = Path.home().glob(".cache/ms-playwright/chromium-*/chrome-linux*/chrome")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    return (
        found
        or next(map(str, own), "")
        or lack(
            "no Chromium: apt-get install chromium; without root: playwright install chromium",
        )
    )


@pytest.fixture(scope="session")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server for all tests; each has a folder of its own below its root."""
    del chromium  # without a browser there is no use for a server
    private = tmp_path_factory.mktemp("jupyter")
    server = Server(private, tmp_path_factory.mktemp("notebooks"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Start Chromium; it ends with the module, since its event loop is in the way."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium, headless=True, args=list(FLAGS)
        )
        yield browser
        browser.close()


@pytest.fixture
def folder(server: Server, request: pytest.FixtureRequest) -> Path:
    """Return this test's folder below the server's root; its pages begin light."""
    server.use_theme("light")
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    folder = server.root / name.strip("-")
    folder.mkdir()
    return folder


@pytest.fixture
def open_page(
    browser: Browser, server: Server, folder: Path
) -> Iterator[Callable[..., NotebookPage]]:
    """Give a function that opens a notebook of these cells, or one that is there."""
    pages: list[NotebookPage] = []
    shots = SHOTS / folder.name
    shots.mkdir(parents=True, exist_ok=True)

    def open_notebook(
        app: str,
        cells: Sequence[str] | Path,
        kernel: str = "python3",
        name: str = "job.ipynb",
    ) -> NotebookPage:
        if kernel == OLD_KERNEL.name and not OLD_KERNEL.is_dir():
            lack(
                f"no ipykernel 6: pip install --no-deps --target {OLD_KERNEL} 'ipykernel<7'",
            )
        notebook = folder / name
        if isinstance(cells, Path):
            shutil.copy(cells, notebook)
        else:
            codes = [new_code_cell(cell) for cell in cells]
            spec = {"name": kernel, "display_name": kernel, "language": "python"}
            metadata = {"kernelspec": spec}
            nbformat.write(new_notebook(cells=codes, metadata=metadata), notebook)
        path = str(notebook.relative_to(server.root))
        pages.append(NotebookPage(browser, server, app, path, shots))
        return pages[-1]

    yield open_notebook
    for page in pages:
        page.picture("end")
        page.close()
    server.shut_kernels_down()
    assert [page.complaints for page in pages] == [[] for page in pages]

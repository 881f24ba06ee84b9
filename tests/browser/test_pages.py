"""The pages that verbs write, in a browser: narrow and wide, light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from nbckpt import cli
from tests.browser.conftest import SHOTS
from tests.browser.panels import BROKEN
from tests.notebook import opened

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

CELLS = """\
%nbckpt start orders-2026-11-29 --version 3

import nbckpt
from pathlib import Path

%%step load_orders --writes orders.csv --note 'looked at 40 rows by hand'
Path("orders.csv").write_text("a")
orders = list(range(9))

%%step charge --effects payments
for order in nbckpt.items(orders):
    nbckpt.effect(f"charge-{order}", perform=lambda key: {"id": key})

%%step report
nbckpt.decide("cut-off", lambda: 120, reason="as in May")
nbckpt.unknown("is 9E the carrier that was EV?")

%%step fails
raise RuntimeError("<b>no</b> answer from " + "x" * 200)"""
PAGES = ("audit", "timeline", "graph", "size", "runs")
WIDTHS = (400, 1000, 1600)
WIDER = "() => document.documentElement.scrollWidth - window.innerWidth"


@pytest.fixture(scope="module")
def pages(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a page of each kind."""
    del chromium  # without a browser there is no use for pages
    folder = tmp_path_factory.mktemp("pages")
    with opened(folder) as notebook:
        for cell in CELLS.split("\n\n"):
            notebook.run(cell, fine="raise" not in cell)
        for verb in PAGES:
            form = ["--html"] if verb == "audit" else []
            with pytest.raises(SystemExit, match="0"):
                cli.main([verb, *form, "--output", f"{verb}.html"])
    return folder


def findings(page: Page) -> list[str]:
    """Return what axe finds in a page."""
    axe: Any = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize("name", PAGES)
def test_page_breaks_no_word_and_fits_in_light_and_dark(
    pages: Path, browser: Browser, name: str
) -> None:
    page = browser.new_page()
    page.goto((pages / f"{name}.html").as_uri())
    SHOTS.mkdir(parents=True, exist_ok=True)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(BROKEN) == []
        assert page.evaluate(WIDER) <= 0
        page.screenshot(path=SHOTS / f"{name}-{width}.png", full_page=True)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert findings(page) == []
    page.close()

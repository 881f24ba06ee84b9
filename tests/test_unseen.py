"""Files that native code opens: told when a step has done so, with what to write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

if TYPE_CHECKING:
    from tests.notebook import Notebook

TOLD = "nbckpt: step load: pd.read_parquet() opens its file unseen"


@pytest.fixture(autouse=True)
def folder(notebook: Notebook) -> None:
    """Make a file, and a folder with one."""
    frame = pd.DataFrame({"n": [1, 2]})
    Path("data").mkdir()
    for name in ("a.parquet", "data/b.parquet"):
        frame.to_parquet(name)
    notebook.run("import io\nimport pandas as pd\nfrom pathlib import Path")
    notebook.run("data, name = Path('data'), 'a'")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("'a.parquet'", "a.parquet"),
        ("f'{name}.parquet'", "a.parquet"),
        ("data / 'b.parquet'", "data/b.parquet"),
        ("data", "data/**"),
    ],
)
def test_path_that_was_read_is_told_until_the_step_names_it(
    notebook: Notebook, path: str, told: str
) -> None:
    body = f"frame = pd.read_parquet({path})"
    notebook.run(f"%%step load\n{body}")
    said = notebook.told()
    assert said.startswith(TOLD)
    assert said.endswith(f"%%step load --reads {told}\n")
    notebook.run(f"%%step load --reads {told}\n{body}\nagain = 1")
    assert notebook.told() == ""


@pytest.mark.parametrize(
    "body",
    [
        "frame = pd.read_parquet(io.BytesIO(Path('a.parquet').read_bytes()))",
        "frame = pd.read_csv(io.StringIO('n'))",
        "frame.to_parquet('own.parquet')\nagain = pd.read_parquet('own.parquet')",
        "def load(path): return pd.read_parquet(path)",
    ],
)
def test_what_is_no_file_or_its_own_is_not_told(notebook: Notebook, body: str) -> None:
    notebook.run("frame = pd.DataFrame({'n': [1]})")
    notebook.run(f"%%step load --writes own.parquet\n{body}")
    assert notebook.told() == ""


@pytest.mark.parametrize("given", ["'out.parquet'", "path='out.parquet'"])
def test_path_that_was_written_is_told_until_the_step_names_it(
    notebook: Notebook, given: str
) -> None:
    notebook.run("frame = pd.DataFrame({'n': [1]})")
    notebook.run(f"%%step save\nframe.to_parquet({given})")
    said = notebook.told()
    assert said.startswith(
        "nbckpt: step save: frame.to_parquet() opens its file unseen"
    )
    assert said.endswith("%%step save --writes out.parquet\n")
    notebook.run(f"%%step save --writes out.parquet\nframe.to_parquet({given}); a = 1")
    assert notebook.told() == ""


def test_skipped_step_tells_nothing(notebook: Notebook) -> None:
    step = "%%step load\nframe = pd.read_parquet('a.parquet')"
    notebook.run(step)
    notebook.restart()
    notebook.run("import pandas as pd")
    notebook.told()
    notebook.run(step)
    assert (notebook.decision("load"), notebook.told()) == ("Skip", "")

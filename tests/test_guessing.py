"""What the source of a plain notebook tells: setup, names and files."""

from __future__ import annotations

import pytest

from nbckpt.source.cells import parse_body
from nbckpt.verbs.prepare.guessing import Source, first_comment, last_heading, slug

IMPORTS = """
import os, pathlib, random, sqlite3, subprocess, sys, warnings, logging
from pathlib import Path
import numpy as np, pandas as pd, matplotlib.pyplot as plt, requests, polars as pl
DATA, DAY = Path("data"), 3
OUT = Path("out") / "clean"
"""


def source() -> Source:
    """Return what is known after a cell of imports."""
    found = Source()
    body = parse_body(IMPORTS)
    found.take(body)
    assert found.is_setup(body)
    return found


def is_setup(text: str) -> bool:
    found, body = source(), parse_body(text)
    found.take(body)
    return found.is_setup(body)


def files(text: str) -> tuple[list[str], list[str]]:
    found, body = source(), parse_body(text)
    found.take(body)
    return found.files(body)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Load the data", "load-the-data"),
        ("1. Load", "load"),
        ("2.1 Clean the **orders**", "clean-the-orders"),
        ("A) First", "first"),
        ("Größe & Preis", "groe-preis"),
        ("What's [new](https://example.org)?", "whats-new"),
        ("one two three four five six", "one-two-three-four-five"),
        ("日本語", ""),
        ("---", ""),
        ("x" * 99, "x" * 40),
    ],
)
def test_name_is_made_of_the_words_of_a_heading(text: str, name: str) -> None:
    assert slug(text) == name


def test_last_heading_of_a_text_counts_and_none_in_its_code() -> None:
    assert last_heading("# One\ntext\n## Two ##\nmore") == "Two"
    assert last_heading("## Two\n```\n# a comment\n```") == "Two"
    assert last_heading("#hashtag\nno heading") == ""


def test_comment_on_top_is_prose_and_no_code() -> None:
    assert first_comment("# Load orders\nx = 1") == "Load orders"
    assert first_comment("# x = f(1)\nx = 1") == ""
    assert first_comment("x = 1  # Load") == ""


@pytest.mark.parametrize(
    "text",
    [
        "import json",
        "from a import *\nimport b as c",
        "try:\n    import tqdm\nexcept ImportError:\n    tqdm = None",
        "%matplotlib inline\n%load_ext nbckpt",
        "!pip install pandas",
        "N = 3\nLIMITS = {'a': [1, 2]}\nBOTH = N * 2 + DAY",
        "def f(x):\n    return expensive(x)",
        "class C:\n    x = 1",
        "pd.set_option('display.max_rows', 5)\npd.options.mode.copy_on_write = True",
        "plt.style.use('ggplot')\nplt.rcParams['figure.dpi'] = 90",
        "warnings.filterwarnings('ignore')\nlog = logging.getLogger('x')",
        "np.random.seed(1)\nrng = np.random.default_rng(2)\nrandom.seed(3)",
        "OUT.mkdir(exist_ok=True)\nos.makedirs('out', exist_ok=True)",
        "db = sqlite3.connect('x.db')\nsession = requests.Session()",
        "path = os.path.join('data', 'x.csv')",
        "KEY = os.environ.get('KEY', '')",
        "'''only a text'''",
    ],
)
def test_setup_stays_plain(text: str) -> None:
    assert is_setup(text)


@pytest.mark.parametrize(
    "text",
    [
        "df = pd.read_csv('x.csv')",
        "b = a[a > 0]",
        "total = sum(values)",
        "for x in range(3):\n    print(x)",
        "now = datetime.now()",
        "answer = requests.get('http://localhost')",
        "%run other.ipynb",
        "!make all",
        "pathlib.Path('x').write_text('y')",
        "text = pathlib.Path('x').read_text()",
        "df.head()",
        "await thing()",
        "n = 1\nn += len(rows)",
        "if DAY > 2:\n    mode = 'late'",
    ],
)
def test_work_is_no_setup(text: str) -> None:
    assert not is_setup(text)


def test_what_is_made_of_setup_is_setup_and_of_work_is_work() -> None:
    found = source()
    for text, expected in [("a = 1", True), ("b = a", True), ("c = work(a)", False),
                           ("d = c", False), ("e = b + 1", True)]:  # fmt: skip
        body = parse_body(text)
        found.take(body)
        assert found.is_setup(body) is expected, text


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("df = pd.read_csv('a.csv')", ["a.csv"], []),
        ("df = pl.scan_parquet('data/a.parquet')", ["data/a.parquet"], []),
        ("x = np.load('a.npy')", ["a.npy"], []),
        ("with open('a.txt') as f:\n    t = f.read()", ["a.txt"], []),
        ("with open('a.txt', 'w') as f:\n    f.write('x')", [], ["a.txt"]),
        ("t = (Path('data') / 'a.txt').read_text()", ["data/a.txt"], []),
        ("df.to_parquet(OUT / 'b.parquet')", [], ["out/clean/b.parquet"]),
        ("df.to_csv(path_or_buf='b.csv')", [], ["b.csv"]),
        ("Path('b.txt').write_text('x')", [], ["b.txt"]),
        ("plt.savefig(f'out/{day}.png')", [], ["out/*.png"]),
        ("df.to_csv(os.path.join('out', 'b.csv'))", [], ["out/b.csv"]),
        ("name = 'c.csv'\ndf = pd.read_csv(name)", ["c.csv"], []),
        ("df = pd.read_csv('data/' + 'c.csv')", ["data/c.csv"], []),
        ("df = pd.read_csv('data/' + '/c.csv')", ["data/c.csv"], []),
        ("df.to_csv('b.csv'); d = pd.read_csv('b.csv')", [], ["b.csv"]),
        ("for p in paths:\n    pd.read_csv(p)", [], []),
        ("df = pd.read_csv('https://example.org/a.csv')", [], []),
        ("df.to_csv(f'{name}.csv')", [], []),
        ("df = pd.read_sql('select 1', db)", [], []),
        ("df.to_csv(unknown())", [], []),
    ],
)
def test_files_that_the_source_writes_out_are_guessed(
    text: str, reads: list[str], writes: list[str]
) -> None:
    assert files(text) == (reads, writes)

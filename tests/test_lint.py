"""The lint: each rule on code that is wrong, and on the nearest code that is right."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from nbckpt import cli
from nbckpt.lint import CODES, Report, lint, read_cell_page
from nbckpt.lint.findings import silence
from nbckpt.lint.notebook import Names, text_of
from nbckpt.runs.history import Reader
from nbckpt.source.cells import parse_body
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.forms import pages
from nbckpt.verbs.prepare import planning
from nbckpt.verbs.prepare.linting import lint_notebook, lint_page

ROOT = Path(__file__).parents[1]
IMPORTS = (
    "%load_ext nbckpt\n"
    "import nbckpt, requests, httpx, subprocess, sqlite3, smtplib, boto3, os, shutil, time\n"
    "import uuid, random, json, io, urllib.request\nimport numpy as np, pandas as pd\n"
    "from datetime import datetime\nfrom pathlib import Path\n"
    "import sqlalchemy as sa\nfrom nbckpt import items as each\n"
    "orders = [1, 2]\ndf = pd.DataFrame()\ndb = sqlite3.connect('x.db')\nurl = 'http://x'"
)


def report(*sources: str) -> Report:
    """Lint cells below one that imports what they need."""
    cells = enumerate([IMPORTS, *sources], 1)
    return lint([read_cell_page(n, source, parse_body) for n, source in cells])


def codes(*sources: str) -> list[str]:
    return [finding.code for finding in report(*sources).findings]


def a_notebook(folder: Path, *sources: str) -> Path:
    cells = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        for number, source in enumerate(sources)
    ]
    data = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = folder / "nb.ipynb"
    path.write_text(json.dumps(data))
    return path


# undeclared effects

REQUESTS = [
    "requests.post(url, json=orders)",
    "requests.request('PUT', url, json=orders)",
    "requests.Session().delete(url)",
    "s = requests.Session()\ns.patch(url)",
    "with httpx.Client() as c:\n    c.post(url)",
    "async with httpx.AsyncClient() as c:\n    await c.post(url)",
    "urllib.request.urlopen(url, b'x')",
    "urllib.request.urlopen(urllib.request.Request(url, method='POST'))",
    "with smtplib.SMTP('localhost') as m:\n    m.sendmail('a', ['b'], 'c')",
    "boto3.client('s3').put_object(Bucket='b', Key='k', Body=b'')",
    "s3 = boto3.resource('s3')\ns3.Bucket('b').upload_file('a', 'b')",
]
READS = [
    "r = requests.get(url)",
    "r = requests.request('GET', url)",
    "with httpx.Client() as c:\n    r = c.get(url)",
    "r = urllib.request.urlopen(url)",
    "r = urllib.request.urlopen(urllib.request.Request(url))",
    "r = boto3.client('s3').get_object(Bucket='b', Key='k')",
    "df2 = df.update({'post': 1})",
    "blog = {}\nblog.get('post')",
]


@pytest.mark.parametrize("body", REQUESTS)
def test_request_that_sends_is_an_undeclared_effect(body: str) -> None:
    assert codes(f"%%step a\n{body}") == ["undeclared-effect"]
    assert codes(f"%%step a --effects api\n{body}") == []


@pytest.mark.parametrize("body", READS)
def test_request_that_only_reads_is_no_effect(body: str) -> None:
    assert codes(f"%%step a\n{body}") == []


@pytest.mark.parametrize(
    "body",
    [
        "subprocess.run(['make', 'all'], check=True)",
        "subprocess.Popen('make all', shell=True)",
        "os.system('make all')",
        "!make all",
        "out = !make all",
        "!echo hi > said.txt",
        "%%bash\nmake all",
    ],
)
def test_process_is_an_undeclared_effect_until_its_files_are_named(body: str) -> None:
    assert codes(f"%%step a\n{body}") == ["undeclared-effect"]
    assert codes(f"%%step a --writes out/*\n{body}") == []


@pytest.mark.parametrize(
    "body",
    [
        "!ls -l data",
        "!pip install pandas",
        "!git rev-parse HEAD",
        "rev = subprocess.check_output(['git', 'rev-parse', 'HEAD'])",
        "%%time\nx = 1",
    ],
)
def test_process_that_only_looks_is_no_effect(body: str) -> None:
    assert codes(f"%%step a\n{body}") == []


@pytest.mark.parametrize(
    "body",
    [
        "db.execute('INSERT INTO t VALUES (1)')",
        "db.executemany('update t set a = ?', orders)",
        "db.execute(f'delete from {url}')",
        "db.cursor().execute('SELECT 1; DROP TABLE t')",
        "sql = 'insert into t values (1)'\ndb.execute(sql)",
        "db.execute(sa.text('insert into t values (1)'))",
        "db.execute(sa.insert(df).values(a=1))",
        "df.to_sql('t', db)",
    ],
)
def test_database_write_is_an_undeclared_effect_outside_a_transaction(
    body: str,
) -> None:
    inside = "\n".join(f"    {line}" for line in body.splitlines())
    assert codes(f"%%step a\n{body}") == ["undeclared-effect"]
    assert codes(f"%%step a\nwith nbckpt.transaction(db, 'rows'):\n{inside}") == []


@pytest.mark.parametrize(
    "body",
    [
        "rows = db.execute('SELECT * FROM t').fetchall()",
        "db.execute('create table if not exists t(a)')",
        "db.execute('insert or ignore into t values (1)')",
        "db.execute('insert into t values (1) on conflict (a) do nothing')",
        "db.execute('replace into t values (1)')",
        "db.execute(orders)",
    ],
)
def test_statement_that_reads_or_may_be_repeated_is_no_effect(body: str) -> None:
    assert codes(f"%%step a\n{body}") == []


@pytest.mark.parametrize(
    "body",
    [
        "with open('a', 'w') as f:\n    json.dump(orders, f)",
        "open(mode='wb', file='a').close()",
        "Path('a').open('w').close()",
        "Path('a').write_text('x')",
        "df.to_csv('a.csv')",
        "df.to_parquet(path='a')",
        "shutil.rmtree('a')",
        "os.remove('a')",
        "np.save('a.npy', orders)",
        "fig = df.plot()\nfig.savefig('a.png')",
    ],
)
def test_file_that_is_written_must_be_declared(body: str) -> None:
    assert codes(f"%%step a\n{body}") == ["undeclared-file"]
    assert codes(f"%%step a --writes a\n{body}") == []


@pytest.mark.parametrize(
    "body",
    [
        "text = open('a').read()",
        "text = open('a', 'rb').read()",
        "csv = df.to_csv()",
        "buf = io.StringIO()\ndf.to_csv(buf)",
        "np.save(io.BytesIO(), orders)",
        "if not os.path.exists('a'):\n    Path('a').write_text('x')",
        "import webbrowser\nwebbrowser.open('w')",
    ],
)
def test_reading_or_writing_to_memory_changes_no_file(body: str) -> None:
    assert "undeclared-file" not in codes(f"%%step a\n{body}")


@pytest.mark.parametrize(
    "body",
    [
        "x = pd.read_parquet('a.parquet')",
        "path = f'data/{url}.parquet'\nx = pd.read_parquet(path)",
        "import polars as pl\nx = pl.scan_csv('a.csv').collect()",
        "from pyarrow import parquet\nx = parquet.read_table('a')",
        "import xarray as xr\nwith xr.open_dataset('a.nc') as x:\n    y = x.load()",
        "import h5py\nwith h5py.File('a.h5', 'r') as f:\n    x = f['x'][:]",
    ],
)
def test_file_that_native_code_reads_must_be_declared(body: str) -> None:
    assert codes(f"%%step a\n{body}") == ["unseen-file"]
    assert codes(f"%%step a --reads a\n{body}") == []
    assert codes(body) == []


@pytest.mark.parametrize(
    "body",
    [
        "x = pd.read_csv('a.csv')",
        "x = pd.read_parquet('s3://a/b.parquet')",
        "x = pd.read_parquet(io.BytesIO(b''))",
        "import h5py\nwith h5py.File('a.h5', 'w') as f:\n    f['x'] = [1]",
        "df.to_parquet('out.parquet')\nx = pd.read_parquet('out.parquet')",
    ],
)
def test_what_is_seen_or_no_file_or_its_own_need_not_be_declared(body: str) -> None:
    assert codes(f"%%step a --writes out.*\n{body}") == []


def test_effect_inside_a_notebook_function_counts_where_it_is_called() -> None:
    charge = (
        "def charge(o):\n    return requests.post(url, o)\ndef deep(o):\n    charge(o)"
    )
    found = report(charge, "%%step a\nx = 1\ndeep(x)").findings
    assert [(f.code, f.cell, f.line) for f in found] == [("undeclared-effect", 3, 3)]
    assert "requests.post" in found[0].what
    assert codes(charge) == []


def test_effect_inside_a_method_of_a_notebook_class_counts_where_it_is_called() -> None:
    api = "class Api:\n    def pay(self):\n        requests.post(url)\napi = Api()"
    assert codes(api, "%%step a\napi.pay()") == ["undeclared-effect"]


def test_recursive_function_ends_the_search() -> None:
    assert codes("def f():\n    return f()", "%%step a\nf()") == []


def test_effect_that_nbckpt_performs_is_guarded() -> None:
    charge = "def charge(key):\n    return requests.post(url)"
    call = "nbckpt.effect('charge-1', perform=charge, lookup=requests.get)"
    lam = "nbckpt.effect('c', lambda key: requests.post(url), lambda key: None)"
    assert codes(charge, f"%%step a\n{call}\n{lam}") == []


def test_effects_that_one_option_declares_are_told_once() -> None:
    body = "requests.post(url)\nrequests.put(url)"
    assert [f.line for f in report(f"%%step a\n{body}").findings] == [2]


def test_plain_cell_with_an_effect_is_told_and_with_a_file_is_not() -> None:
    assert codes("requests.post(url)") == ["effect-in-plain-cell"]
    assert codes("db.execute('insert into t values (1)')") == ["effect-in-plain-cell"]
    assert codes("Path('conf').write_text('x')") == []


# names and keys


@pytest.mark.parametrize(
    "key",
    [
        "f'c-{time.time()}'",
        "f'c-{datetime.now():%H%M}'",
        "str(uuid.uuid4())",
        "f'c-{random.random()}'",
        "f'c-{np.random.rand()}'",
        "f'c-{id(orders)}'",
        "f'c-{hash(url)}'",
    ],
)
def test_time_or_chance_in_a_name_or_key_is_told(key: str) -> None:
    look = "lookup=requests.get"
    assert codes(f"%%step a\nnbckpt.effect({key}, perform=print, {look})") == [
        "unstable-key"
    ]
    assert codes(f"%%step a\nk = nbckpt.idempotency_key({key})") == ["unstable-key"]
    loop = f"for o in each(orders, key=lambda o: {key}):\n    print(o)"
    assert codes(f"%%step a\n{loop}") == ["unstable-key"]
    sent = f"requests.post(url, headers={{'Idempotency-Key': {key}}})"
    assert codes(f"%%step a --effects api\n{sent}") == ["unstable-key"]


def test_key_of_the_order_is_stable() -> None:
    name = "f'c-{uuid.uuid5(uuid.NAMESPACE_URL, url)}-{orders[0]}'"
    assert codes(f"%%step a\nnbckpt.effect({name}, perform=print, lookup=print)") == []


def test_moving_name_of_a_plain_cell_or_the_same_step_moves_the_key() -> None:
    use = "nbckpt.effect(f'c-{stamp}', perform=print, lookup=print)"
    assert codes("stamp = time.time()", f"%%step a\n{use}") == ["unstable-key"]
    assert codes(f"%%step a\nstamp = time.time()\n{use}") == ["unstable-key"]


def test_moving_value_that_an_earlier_step_recorded_is_stable() -> None:
    use = "nbckpt.effect(f'c-{stamp}', perform=print, lookup=print)"
    assert codes("%%step t\nstamp = time.time()", f"%%step a\n{use}") == []
    always = "%%step t --always\nstamp = time.time()"
    assert codes(always, f"%%step a\n{use}") == ["unstable-key"]


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("nbckpt.effect('a', perform=print)", ["no-lookup"]),
        ("nbckpt.effect('a', print, lookup=None)", ["no-lookup"]),
        ("nbckpt.effect('a', print, lookup=print)", []),
        ("nbckpt.effect('a', print, dedup='24h')", []),
        ("nbckpt.effect('a', print, print)", []),
        ("nbckpt.effect('a', print, **options)", []),
    ],
)
def test_effect_needs_a_way_to_find_out_its_outcome(
    call: str, found: list[str]
) -> None:
    assert codes("options = {}", f"%%step a\n{call}") == found


# files that grow


@pytest.mark.parametrize(
    "body",
    [
        "with open('log', 'a') as f:\n    f.write('x')",
        "Path('log').open('a+').write('x')",
        "df.to_csv('log', mode='a')",
    ],
)
def test_append_is_told_even_if_declared(body: str) -> None:
    assert codes(f"%%step a --writes log\n{body}") == ["append"]
    assert codes(f"%%step a\n{body}") == ["append"]


# order


def test_name_used_above_the_cell_that_makes_it_is_told() -> None:
    found = report("%%step a\ny = 1\nz = rate + y", "rate = 2").findings
    assert [(f.code, f.step, f.line) for f in found] == [("used-before-made", "a", 3)]
    assert "cell 3" in found[0].what
    assert codes("rate = 2", "%%step a\nz = rate") == []


@pytest.mark.parametrize(
    "above",
    [
        "if orders:\n    import rate",
        "try:\n    rate = 1\nexcept ValueError:\n    raise",
        "def fill():\n    global rate\n    rate = 1\nfill()",
        "from math import *",
        "%run other.py",
        "for rate in orders:\n    print(rate)",
    ],
)
def test_name_that_may_be_made_above_is_not_told(above: str) -> None:
    assert codes(above, "%%step a\nz = rate", "rate = 2") == []


def test_function_may_be_defined_above_what_it_uses() -> None:
    function = "def f():\n    return rate"
    assert codes(function, "rate = 2", "%%step a\nz = f()") == []
    assert "used-before-made" in codes("%%step a\nz = f()", "def f():\n    return 1")


def test_words_of_a_line_for_nbckpt_are_no_names() -> None:
    line = '%nbckpt answer rate yes\n%nbckpt unknown "what is the rate"?'
    assert codes(line, "%%step a\nrate = 2") == []
    assert "used-before-made" in codes("%%step a\n%timeit rate", "rate = 2")


# loops


LOOP = "for o in nbckpt.items(orders{keep}):\n    {body}"


@pytest.mark.parametrize(
    "body",
    [
        "results.append(o)",
        "table[o] = 1",
        "total += o",
        "total = max(total, o)",
        "seen.add(o)",
    ],
)
def test_loop_over_items_that_builds_something_up_needs_keep(body: str) -> None:
    setup = "results, table, total, seen = [], {}, 0, set()"
    name = next(n for n in ("results", "table", "total", "seen") if n in body)
    bare = LOOP.format(keep="", body=body)
    kept = LOOP.format(keep=f", keep=('{name}',)", body=body)
    assert codes(f"%%step a\n{setup}\n{bare}") == ["no-keep"]
    assert codes(f"%%step a\n{setup}\n{kept}") == []


@pytest.mark.parametrize(
    "body",
    [
        "row = o\n    print(row)",
        "parts = []\n    parts.append(o)",
        "n = 0\n    n += o",
        "bar.update(1)",
        "print(o)",
    ],
)
def test_loop_over_items_that_makes_its_names_anew_needs_no_keep(body: str) -> None:
    setup = "from tqdm import tqdm\nbar = tqdm()"
    assert codes(setup, f"%%step a\n{LOOP.format(keep='', body=body)}") == []


def test_plain_loop_and_computed_keep_are_not_told() -> None:
    loop = "out = []\nfor o in {}:\n    out.append(o)"
    assert codes(f"%%step a\n{loop.format('orders')}") == []
    assert codes(f"%%step a\n{loop.format('nbckpt.items(orders, keep=orders)')}") == []
    assert codes(f"%%step a\n{loop.format('enumerate(each(orders))')}") == ["no-keep"]


RETRY = (
    "for attempt in range(5):\n    try:\n        requests.post(url)\n        break\n"
    "    except requests.ConnectionError:\n        time.sleep(1)"
)


def test_retry_by_hand_around_a_request_is_told() -> None:
    assert codes(f"%%step a --effects api\n{RETRY}") == ["retry-loop"]
    forever = RETRY.replace("for attempt in range(5)", "while True")
    assert codes(f"%%step a --effects api\n{forever}") == ["retry-loop"]


@pytest.mark.parametrize(
    "change",
    [
        ("requests.post(url)", "nbckpt.effect('a', requests.post, requests.get)"),
        ("requests.post(url)", "x = int('1')"),
        ("time.sleep(1)", "raise"),
        ("        break\n", ""),
    ],
)
def test_loop_without_a_retried_effect_is_not_told(change: tuple[str, str]) -> None:
    assert "retry-loop" not in codes(
        f"%%step a --effects api\n{RETRY.replace(*change)}"
    )


@pytest.mark.parametrize(
    ("handler", "found"),
    [
        ("except:\n    print('oh')", ["swallowed"]),
        ("except BaseException:\n    x = 1", ["swallowed"]),
        ("except Exception:\n    pass", ["swallowed"]),
        ("except:\n    print('oh')\n    raise", []),
        ("except Exception as e:\n    errors = [e]", []),
        ("except ValueError:\n    pass", []),
    ],
)
def test_handler_that_hides_a_failed_effect_is_told(
    handler: str, found: list[str]
) -> None:
    tried = f"try:\n    requests.post(url)\n{handler}"
    assert codes(f"%%step a --effects api\n{tried}") == found
    ours = "nbckpt.effect('a', print, print)"
    assert codes(f"%%step a\ntry:\n    {ours}\n{handler}") == found
    assert codes(f"%%step a\ntry:\n    y = int('1')\n{handler}") == []


# steps


def test_step_that_only_prints_a_text_is_decoration() -> None:
    assert codes("%%step hello\nprint('begin')") == ["decoration"]
    assert codes("%%step hello\n# only words") == ["decoration"]


@pytest.mark.parametrize(
    "source",
    [
        "%%step a\nprint(orders)",
        "%%step a\nx = 1",
        "%%step a\nimport json",
        "%%step a --note read the report\nprint('done')",
        "%%step a --check 'len(orders)'\nprint('checked')",
        "%%step a --writes x\nprint('done')",
        "%%step a\n%matplotlib inline",
        "%%step a --effects make\n!make",
    ],
)
def test_step_that_reads_or_changes_something_is_no_decoration(source: str) -> None:
    assert codes(source) == []


def test_wrong_step_line_is_told_with_what_to_write() -> None:
    found = report("%%step a --nope\nx = 1").findings
    assert [(f.code, f.line) for f in found] == [("bad-step", 1)]
    assert "%%step clean" in found[0].remedy


def test_cell_that_is_no_python_is_passed_over() -> None:
    assert codes("%%step a\nx = (", "this is no python") == []


# places and comments


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("%%step a\nx = 1\nrequests.post(url)", 3),
        ("%%step a\n\n\nrequests.post(url)", 4),
        ("%%step a\n%%time\nx = 1\nrequests.post(url)", 4),
        ("%%step a\n%time requests.post(url)", 2),
    ],
)
def test_line_is_the_line_of_the_cell(source: str, line: int) -> None:
    found = report(source).findings
    assert [(f.line, f.cell, f.step) for f in found] == [(line, 2, "a")]


def test_comment_silences_its_code_on_its_line_and_keeps_the_reason() -> None:
    line = "open('log', 'a')  # nbckpt: ok append only a log"
    found = report(f"%%step a\n{line}\nopen('other', 'a')")
    assert [(f.code, f.line) for f in found.findings] == [("append", 3)]
    assert [f.reason for f in found.silenced] == ["only a log"]
    other = line.replace("ok append", "ok no-keep")
    assert codes(f"%%step a\n{other}") == ["append"]


def test_comment_may_silence_several_codes() -> None:
    lines = ["x()  # nbckpt: ok append, no-lookup: it is a log"]
    assert silence(lines, "no-lookup") == "it is a log"
    assert silence(lines, "retry-loop") is None


def test_silenced_line_does_not_hide_the_next_one() -> None:
    body = "requests.post(url)  # nbckpt: ok undeclared-effect test\nrequests.put(url)"
    assert [f.line for f in report(f"%%step a\n{body}").findings] == [3]


def test_comment_on_the_step_line_silences_a_step() -> None:
    assert codes("%%step a  # nbckpt: ok decoration a marker\nprint('x')") == []


# what names stand for


@pytest.mark.parametrize(
    ("source", "asked", "found"),
    [
        ("import requests", "requests.post", "requests.post"),
        ("import requests as r", "r.post", "requests.post"),
        ("import os.path", "os.remove", "os.remove"),
        ("import os.path as p", "p.join", "os.path.join"),
        ("from requests import post", "post", "requests.post"),
        ("from requests import post as send", "send", "requests.post"),
        (
            "import requests\ns = requests.Session()",
            "s.post",
            "requests.Session().post",
        ),
        ("import requests\npost = requests.post", "post", "requests.post"),
        ("import requests\nrequests = 1", "requests.post", "?requests.post"),
        (
            "import sqlite3\nwith sqlite3.connect('x') as c: pass",
            "c",
            "sqlite3.connect()",
        ),
        ("import io\nb: object = io.BytesIO()", "b", "io.BytesIO()"),
        ("from . import post", "post", "?post"),
        ("class Api: pass\napi = Api()", "api.pay", "?Api().pay"),
        ("", "open", "open"),
        ("", "df.to_csv", "?df.to_csv"),
        ("", "[1][0].post", "?.post"),
    ],
)
def test_name_stands_for_what_was_imported_or_made(
    source: str, asked: str, found: str
) -> None:
    names = Names()
    names.take(ast.parse(source).body)
    assert names.dotted(ast.parse(asked, mode="eval").body) == found


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'insert'", "insert"),
        ("sql", "select 1"),
        ("f'insert {x}'", "insert "),
        ("'insert' + x", "insert"),
        ("text('insert')", "insert"),
        ("f'{x} insert'", None),
        ("other", None),
        ("1", None),
    ],
)
def test_text_is_told_as_far_as_it_is_written_out(
    expression: str, text: str | None
) -> None:
    names = Names()
    names.take(ast.parse("sql = 'select 1'").body)
    assert text_of(ast.parse(expression, mode="eval").body, names) == text


def test_name_given_another_value_forgets_its_text() -> None:
    names = Names()
    names.take(ast.parse("sql = 'insert'\nsql = build()").body)
    assert text_of(ast.parse("sql", mode="eval").body, names) is None


# verbs


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


WRONG = ("%load_ext nbckpt\nimport requests", "%%step send\nrequests.post('http://x')")


def test_command_ends_with_1_and_says_where_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = a_notebook(tmp_path, *WRONG)
    code, out, err = run(capsys, "lint", str(notebook))
    assert (code, err) == (1, "")
    assert out.startswith(f"notebook {notebook}: 1 finding\n  step send\n    line 2: ")
    for words in ("line 2: undeclared-effect\n      ", "      do: ", "# nbckpt: ok"):
        assert words in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nb.ipynb"]


def test_command_ends_with_0_when_all_is_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = a_notebook(tmp_path, "x = 1")
    code, out, _ = run(capsys, "lint", str(notebook))
    assert (code, out.strip()) == (0, f"notebook {notebook}: 0 findings")


def test_json_holds_findings_and_silenced_ones_with_their_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = "%%step log\nopen('log', 'a').close()  # nbckpt: ok append a log"
    code, out, _ = run(
        capsys, "lint", str(a_notebook(tmp_path, *WRONG, quiet)), "--json"
    )
    data: dict[str, Any] = json.loads(out)
    assert (code, data["ok"]) == (1, False)
    assert {key: data["findings"][0][key] for key in ("code", "cell", "step", "line")} == {
        "code": "undeclared-effect", "cell": 2, "step": "send", "line": 2,
    }  # fmt: skip
    assert [(s["code"], s["reason"]) for s in data["silenced"]] == [("append", "a log")]


def test_missing_notebook_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "lint", str(tmp_path / "no.ipynb"))
    assert code == 2
    assert "there is no notebook" in err


def test_plan_shows_the_notices_of_each_step(tmp_path: Path) -> None:
    store = Store(tmp_path / ".nbckpt", load_secret())
    try:
        notebook = a_notebook(tmp_path, *WRONG, "%%step fine\nx = 1")
        found = planning.plan_notebook(Reader(store), notebook)
    finally:
        store.close()
    notices = {step["name"]: step["notices"] for step in found["steps"]}
    assert notices["fine"] == []
    assert "undeclared-effect, line 2" in notices["send"][0]
    page = pages.plain(planning.plan_page(found))
    assert "  send\n    undeclared-effect, line 2: " in page
    assert "nbckpt lint nb.ipynb" in page


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=str)
def test_own_notebooks_have_no_findings(path: Path) -> None:
    found = lint_notebook(path)
    assert found["ok"], pages.plain(lint_page(found))


def test_cases_have_only_findings_of_known_kinds() -> None:
    """Written to test other things; what is found in them was looked at one by one."""
    found = {
        path.parent.name: {line["code"] for line in lint_notebook(path)["findings"]}
        for path in (ROOT / "tests/cases/data").glob("*/case.ipynb")
    }
    assert set().union(*found.values()) <= CODES.keys()
    odd = {"used-before-made", "decoration", "retry-loop", "swallowed", "no-keep"}
    assert {name for name, seen in found.items() if seen & odd} == set()

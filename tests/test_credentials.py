"""Credentials of the environment reach no record, whichever way a text comes in."""

from __future__ import annotations

import builtins
import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from nbckpt.cli import main
from nbckpt.credentials import Secrets, join, masked
from nbckpt.errors import BadStep
from nbckpt.runs.history import Reader
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.settle.resolving import read_said
from tests.notebook import Notebook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = {"MY_TOKEN": "abcdef123", "OTHER_KEY": "abcdef", "TINY_KEY": "abc"}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("nothing", None),
        ("abc", None),
        ("abcdef123", ("", ("MY_TOKEN",), "")),
        ("x abcdef y", ("x ", ("OTHER_KEY",), " y")),
        ("abcdef123abcdef", ("", ("MY_TOKEN",), "", ("OTHER_KEY",), "")),
    ],
)
def test_text_is_split_at_its_secrets_longest_first(
    monkeypatch: pytest.MonkeyPatch, text: str, parts: tuple[object, ...] | None
) -> None:
    for name, value in TOKEN.items():
        monkeypatch.setenv(name, value)
    assert Secrets(TOKEN).split(text) == parts
    assert parts is None or join(parts) == text


@pytest.mark.parametrize(
    "secret", ["plain-secret", 'quo"te\\d', "grün-ßecret", "a\nb\tcdef"]
)
def test_secret_in_recorded_outputs_is_hidden_and_comes_back(
    monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("MY_TOKEN", secret)
    hidden = Secrets({"MY_TOKEN": secret})
    data = json.dumps({"text": f"a {secret} b"}, ensure_ascii=False).encode()
    stored = bytes(hidden.hide_bytes(data))
    assert hidden.are_in(data)
    assert not hidden.are_in(stored)
    assert hidden.reveal_bytes(stored) == data


def test_without_secrets_bytes_stay_the_same_object() -> None:
    data = b"x" * 100
    assert Secrets({}).hide_bytes(data) is data
    assert Secrets({"MY_TOKEN": "abcdefgh"}).hide_bytes(data) is data


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nothing", "nothing"),
        ("abc", "abc"),
        ("use abcdef123!", "use $MY_TOKEN!"),
        ("abcdef123abcdef", "$MY_TOKEN$OTHER_KEY"),
        ("?t=a%2Fb%26c+d&u", "?t=$WEB_KEY&u"),
        ("a/b&c d", "$WEB_KEY"),
    ],
)
def test_credentials_are_named_in_texts(
    monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    for name, value in (TOKEN | {"WEB_KEY": "a/b&c d"}).items():
        monkeypatch.setenv(name, value)
    assert masked(text) == told


def test_texts_are_masked_at_any_depth_and_the_rest_stays() -> None:
    value = {"a": ["x abcdef123", 5, None, {"b": "abcdef"}], "abcdef": True}
    assert Secrets(TOKEN).mask_all(value) == {
        "a": ["x $MY_TOKEN", 5, None, {"b": "$OTHER_KEY"}],
        "abcdef": True,
    }


# No way in

SECRETS = {
    "plain": "tok4711-" + "abcdefghij" * 6,
    "odd": 'tok4711/"\\ü+&' + "0123456789" * 6,
}
LEFT = ("tok4711", quote("tok4711/", safe=""))
"""How each of them begins, in whichever form: a part is too much as well."""
WAYS = {
    "item": "for item in nbckpt.items([url, 'other']): pass",
    "key": "for item in nbckpt.items([1, 2], key=lambda n: f'{url}{n}'): pass",
    "next input": "for item in nbckpt.items([[url[12:]]], key=lambda item: 1): 1 / 0",
    "next of its own form": """named = [Named(url[12:])]
for item in nbckpt.items(named, key=lambda item: 1): 1 / 0""",
    "item's error": "for item in nbckpt.items([1]): raise OSError(url)",
    "failed": """for item in (loop := nbckpt.items([1], on_error='continue')):
    loop.failed(OSError(url))""",
    "map's error": "nbckpt.map(failing, [1], on_error='continue')",
    "step's error": "raise OSError('x' * 1970 + url)",
    "effect's name": "nbckpt.effect(f'get {url}', lambda key: 1)",
    "effect of an item": """for item in nbckpt.items([url]):
    nbckpt.effect('get', lambda key: 1)""",
    "effect's error": "nbckpt.effect('get', failing)",
    "refusal": "nbckpt.effect('get', failing, refused=OSError)",
    "transaction": """with nbckpt.transaction(there, f'get {url}') as work: work.emit(1)
del work""",
    "decision": "nbckpt.decide('d', 1, f'for {url}')",
    "note": "nbckpt.note(url)",
    "unknown": "nbckpt.unknown(url)",
    "question": "nbckpt.ask(f'is {url} right?', options=['yes'])",
}
SETUP = """import nbckpt, os, sqlite3
class Named:
    def __init__(self, name): self.name = name
    def __repr__(self): return self.name
def failing(key): raise OSError(f'no answer from {url}')
"""


@pytest.fixture(params=SECRETS)
def notebook(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Notebook]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOP_TOKEN", secret := SECRETS[request.param])
    monkeypatch.setattr(builtins, "url", f"https://s/?t={secret}", raising=False)
    found = Notebook(capsys)
    found.run(SETUP)
    yield found
    found.close()


def left_in(folder: Path) -> list[str]:
    """Return the files that hold the beginning of a credential."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [
        path.name
        for path in files
        if any(part.encode() in path.read_bytes() for part in LEFT)
    ]


@pytest.mark.parametrize("way", WAYS)
def test_no_way_leads_a_credential_into_the_store(
    notebook: Notebook, tmp_path: Path, way: str
) -> None:
    notebook.run("there = sqlite3.connect('bank.db')")
    notebook.run(f"%%step a --ignore there\n{WAYS[way]}", fine=False)
    notebook.close()
    notebook.names["there"].close()
    assert not left_in(tmp_path)


@pytest.mark.parametrize("notebook", ["plain"], indirect=True)
@pytest.mark.parametrize("way", WAYS)
def test_each_way_would_lead_there_without_the_mask(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Negative control: the test above can fail."""
    monkeypatch.setattr(Secrets, "mask", lambda _, text: text)
    notebook.run("there = sqlite3.connect('bank.db')")
    notebook.run(f"%%step a --ignore there\n{WAYS[way]}", fine=False)
    notebook.close()
    notebook.names["there"].close()
    assert left_in(tmp_path)


def test_item_with_a_credential_is_passed_over_when_it_is_done(
    notebook: Notebook,
) -> None:
    cell = """%%step a
for item in nbckpt.items([url, 'b']):
    print('at', item[:9])
    if item == 'b' and stop: 1 / 0"""
    notebook.names["stop"] = True
    notebook.error(cell)
    (loop,) = notebook.journal.loops(notebook.session.run_id, "a")
    assert list(notebook.journal.items_done(loop)) == ["https://s/?t=$SHOP_TOKEN"]
    notebook.restart()
    notebook.shown()
    notebook.run(SETUP + "stop = False")
    notebook.run(cell)
    assert notebook.shown() == "at b\n"


def test_items_that_only_their_credential_tells_apart_are_refused(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok4711-a")
    items = "['u tok4711-a', 'u $SHOP_TOKEN']"
    error = notebook.error(f"%%step a\nfor item in nbckpt.items({items}): pass")
    assert isinstance(error, BadStep)
    assert "two items have the key 'u $SHOP_TOKEN'" in str(error)


def test_person_who_resolves_an_effect_writes_no_credential(
    notebook: Notebook, tmp_path: Path
) -> None:
    secret = notebook.names["os"].environ["SHOP_TOKEN"]
    notebook.error("%%step a\nnbckpt.effect('get', failing)")
    run_id = notebook.session.run_id
    notebook.close()
    with pytest.raises(SystemExit) as left:
        main(["resolve", run_id, "get", "--not-done", "--why", f"asked with {secret}"])
    assert left.value.code == 0
    store = Store(tmp_path / ".nbckpt", load_secret())
    (effect,) = Reader(store).effects(run_id)
    store.close()
    assert effect.answer is not None
    assert effect.answer.why == "asked with $SHOP_TOKEN"
    assert not left_in(tmp_path)


def test_outcome_that_a_person_tells_holds_no_credential(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok4711-a")
    with pytest.raises(BadStep, match="credential"):
        read_said("tok4711-a", not_done=False, redo=False)

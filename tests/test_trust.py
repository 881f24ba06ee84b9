"""Seals: what was changed, moved or sealed by somebody else is not believed."""

from __future__ import annotations

import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from nbckpt.errors import StoreDamaged, StoreRefused
from nbckpt.trust import SEAL_BYTES, Secret, load_secret, secret_path

if TYPE_CHECKING:
    from pathlib import Path

MINE, OTHER = Secret(b"m" * 32), Secret(b"o" * 32)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("body", [b"", b"x", b"{}", bytes(1000), bytes(range(64))])
def test_sealed_record_comes_back(body: bytes) -> None:
    assert MINE.unseal("k", MINE.seal("k", body)) == body


def test_seal_stands_in_front_and_is_of_fixed_size() -> None:
    sealed = MINE.seal("k", b"body")
    assert sealed[SEAL_BYTES:] == b"body"
    assert sealed == MINE.seal("k", b"body")


@pytest.mark.parametrize("place", [0, 15, 31, 32, 40, -1])
def test_one_changed_bit_anywhere_is_noticed(place: int) -> None:
    sealed = bytearray(MINE.seal("k", b"a record of some length"))
    sealed[place] ^= 1
    with pytest.raises(StoreDamaged, match="'k' is damaged or not authentic"):
        MINE.unseal("k", bytes(sealed))


@pytest.mark.parametrize(
    ("sealed", "key"),
    [
        (MINE.seal("step/r/a", b"x"), "step/r/b"),
        (MINE.seal("k", b"x"), ""),
        (MINE.seal("k", b"x"), "k\0"),
        (MINE.seal("a", b"b\0c"), "a\0b"),
        (OTHER.seal("k", b"x"), "k"),
        (MINE.seal("k", b"xy")[:-1], "k"),
        (MINE.seal("k", b"x") + b"y", "k"),
        (bytes(32) + b"x", "k"),
        (b"", "k"),
        (b"short", "k"),
        (b"x", "k"),
    ],
)
def test_record_of_another_key_user_or_length_is_refused(
    sealed: bytes, key: str
) -> None:
    with pytest.raises(StoreDamaged):
        MINE.unseal(key, sealed)


def test_identity_names_a_secret_and_does_not_tell_it() -> None:
    assert MINE.identity == Secret(b"m" * 32).identity != OTHER.identity
    assert MINE.data.hex() not in MINE.identity


def test_digest_of_a_value_can_not_be_guessed_without_the_secret() -> None:
    assert MINE.keyed_digest("pw") == MINE.keyed_digest("pw")
    assert MINE.keyed_digest("pw") != OTHER.keyed_digest("pw")
    assert MINE.keyed_digest("pw") != MINE.keyed_digest("pw2")
    assert len(MINE.keyed_digest("\ud800")) == 32


def test_secret_is_made_on_first_use_for_the_user_alone(home: Path) -> None:
    secret = load_secret()
    path = home / "nbckpt" / "secret"
    assert secret_path() == path
    assert secret.data == path.read_bytes()
    assert len(secret.data) == SEAL_BYTES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_secret_is_the_same_ever_after(home: Path) -> None:
    assert load_secret() == load_secret()
    assert [p.name for p in (home / "nbckpt").iterdir()] == ["secret"]


def test_two_users_have_different_secrets(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = load_secret()
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(home / "other"))
    assert load_secret() != mine


@pytest.mark.usefixtures("home")
def test_processes_that_start_at_once_agree_on_one_secret() -> None:
    code = "from nbckpt.trust import load_secret; print(load_secret().identity)"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    said = {child.communicate()[0].strip() for child in children}
    assert said == {load_secret().identity}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o666])
def test_secret_that_others_can_read_is_refused(home: Path, mode: int) -> None:
    load_secret()
    (home / "nbckpt" / "secret").chmod(mode)
    with pytest.raises(StoreRefused, match="read by others") as caught:
        load_secret()
    assert "chmod 600" in caught.value.remedy


@pytest.mark.parametrize("data", [b"", b"short", bytes(31), bytes(33)])
def test_secret_of_wrong_length_is_refused(home: Path, data: bytes) -> None:
    load_secret()
    (home / "nbckpt" / "secret").write_bytes(data)
    with pytest.raises(StoreRefused, match="is damaged"):
        load_secret()


def test_secret_behind_a_symbolic_link_is_refused(home: Path) -> None:
    load_secret()
    path = home / "nbckpt" / "secret"
    path.rename(home / "elsewhere")
    path.symlink_to(home / "elsewhere")
    with pytest.raises(StoreRefused):
        load_secret()

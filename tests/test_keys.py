"""Digests, run ids and fingerprints of code: equal for equal, and for nothing else."""

from __future__ import annotations

import ast

import pytest

from nbckpt.errors import BadStep
from nbckpt.keys import STEP_NAME, check_run_id, code_fingerprint, digest, next_run_id


def code_of(source: str) -> str:
    return code_fingerprint(ast.parse(source).body)


def test_digest_has_32_hexadecimal_digits() -> None:
    found = digest("a", b"b")
    assert len(found) == 32
    assert set(found) <= set("0123456789abcdef")


def test_digest_of_text_equals_the_one_of_its_utf8_bytes() -> None:
    assert digest("grün") == digest("grün".encode())


def test_digest_takes_lone_surrogates() -> None:
    assert digest("\ud800") != digest("\ud801")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab", "c"), ("a", "bc")),
        (("ab",), ("a", "b")),
        (("a", ""), ("a",)),
        ((), ("",)),
        (("a", "b"), ("b", "a")),
    ],
)
def test_digest_tells_where_each_part_ends(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert digest(*one) != digest(*other)


def test_digest_never_changes_between_versions() -> None:
    # Stored fingerprints rest on it: another value would make every step run again.
    assert digest("x = 1") == "b3671c1a21960a9672ccf6f71014eb9a"


@pytest.mark.parametrize("run_id", ["etl-1", "a", "_x", "2026-11", "a@b+c.d_e-f"])
def test_well_formed_run_id_is_returned(run_id: str) -> None:
    assert check_run_id(run_id) == run_id


@pytest.mark.parametrize(
    "run_id",
    ["", "a b", "a/b", "../a", ".a", "-a", "+a", "@a", "a\n", "ä", "a*", "a\0"],
)
def test_run_id_that_could_be_a_path_or_pattern_is_refused(run_id: str) -> None:
    with pytest.raises(BadStep, match="is no run id") as caught:
        check_run_id(run_id)
    assert "orders-2026-11" in caught.value.remedy


def test_run_id_that_would_make_too_long_a_file_name_is_refused() -> None:
    assert check_run_id("a" * 100) == "a" * 100
    with pytest.raises(BadStep, match="has 101 letters") as caught:
        check_run_id("a" * 101)
    assert "at most 100" in caught.value.remedy


def test_run_id_of_a_long_notebook_name_is_cut_and_counted() -> None:
    first = next_run_id("n" * 240, set())
    assert first == "n" * 80 + "-1"
    assert next_run_id("n" * 240, {first}) == "n" * 80 + "-2"


@pytest.mark.parametrize(
    ("stem", "taken", "expected"),
    [
        ("etl", set(), "etl-1"),
        ("etl", {"etl-1"}, "etl-2"),
        ("etl", {"etl-1", "etl-7"}, "etl-8"),
        ("etl", {"etl-10", "etl-9"}, "etl-11"),
        ("etl", {"other-5"}, "etl-1"),
        ("etl", {"etl-x", "etl", "etl-1-2"}, "etl-1"),
        ("my report", set(), "my_report-1"),
        ("a.b", {"axb-4"}, "a.b-1"),
        ("..", set(), "notebook-1"),
        ("", set(), "notebook-1"),
        ("-x", set(), "x-1"),
        ("größe", set(), "gr__e-1"),
    ],
)
def test_next_run_id_is_above_every_taken_one(
    stem: str, taken: set[str], expected: str
) -> None:
    assert next_run_id(stem, taken) == expected


@pytest.mark.parametrize("stem", ["ü", "a b", "...", "+", "notebook", "%/\\"])
def test_next_run_id_is_always_well_formed(stem: str) -> None:
    assert check_run_id(next_run_id(stem, set()))


@pytest.mark.parametrize(
    "same",
    [
        "x = 1  # why",
        "\n\nx = 1",
        "x=1",
        "x = (1)",
        "x = \\\n  1",
        "x = 0x1",
        "# above\nx = 1\n\n# below",
    ],
)
def test_comments_blanks_and_spelling_are_no_part_of_the_code(same: str) -> None:
    assert code_of(same) == code_of("x = 1")


def test_kind_of_quotes_is_no_part_of_the_code() -> None:
    assert code_of("x = 'a'") == code_of('x = "a"')
    assert code_of("x = 'a' 'b'") == code_of("x = 'ab'")


@pytest.mark.parametrize(
    "other",
    [
        "x = 2",
        "y = 1",
        "x = 1.0",
        "x = True",
        "x = '1'",
        "x = 1; x",
        "x: int = 1",
        "x += 1",
        "",
        "if True: x = 1",
    ],
)
def test_every_change_of_the_syntax_tree_is_a_change(other: str) -> None:
    assert code_of(other) != code_of("x = 1")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f('a b')", "f('a  b')"),
        ("x = b'a'", "x = 'a'"),
        ("a; b", "b; a"),
        ("x = 1\nx = 1", "x = 1"),
        ("def f(a, b): pass", "def f(b, a): pass"),
        ("'''doc'''", "'''other doc'''"),
        ("await f()", "f()"),
        ("a < b", "a <= b"),
        ("[x for x in y]", "(x for x in y)"),
        ("x = -1", "x = 1"),
        ("x = 0.0", "x = -0.0"),
    ],
)
def test_small_differences_in_meaning_count(one: str, other: str) -> None:
    assert code_of(one) != code_of(other)


@pytest.mark.parametrize("name", ["a", "A1", "_", "a.b-c_d", "1"])
def test_step_name_of_letters_digits_and_few_signs_is_fine(name: str) -> None:
    assert STEP_NAME.fullmatch(name)


@pytest.mark.parametrize("name", ["", ".a", "-a", "a b", "a/b", "ä", "a\n", "a:"])
def test_step_name_that_is_no_key_does_not_match(name: str) -> None:
    assert not STEP_NAME.fullmatch(name)

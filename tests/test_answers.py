"""Which answer a word means, and which question a name means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nbckpt.answers import as_asked, chosen, commands, named
from nbckpt.errors import BadStep, NotFound
from nbckpt.records import Question

ASKED = Question(
    "r-1", "delete", "Delete 4 rows?", "clean", "", ("yes", 3, True, "it's")
)


@pytest.mark.parametrize(("word", "value"), [("yes", "yes"), ("3", 3), ("true", True)])
def test_word_means_the_option_that_is_written_so(word: str, value: object) -> None:
    found = chosen(ASKED, word)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("word", ["", "Yes", "no", "True", "1"])
def test_word_that_is_no_option_is_refused_with_those_that_are(word: str) -> None:
    with pytest.raises(BadStep, match="yes, 3, true"):
        chosen(ASKED, word)


def test_any_text_answers_a_question_without_options() -> None:
    assert chosen(replace(ASKED, options=()), "12") == "12"


def test_command_of_each_option_can_be_pasted_into_a_shell() -> None:
    assert commands(ASKED)[-1] == """nbckpt answer r-1 delete 'it'"'"'s'"""
    assert commands(replace(ASKED, options=()), "/s t") == [
        "nbckpt answer --store '/s t' r-1 delete VALUE"
    ]


def test_passed_deadline_is_told() -> None:
    asked = replace(ASKED, deadline=10.0)
    assert "deadline" not in as_asked(asked, 9.0)
    assert "has passed without an answer" in as_asked(asked, 11.0)


def test_name_means_the_open_question_and_a_step_tells_two_apart() -> None:
    done = replace(ASKED, answered=True)
    other = replace(ASKED, step="load")
    assert named([done, other], "r-1", "delete") is other
    assert named([done], "r-1", "delete") is done
    with pytest.raises(NotFound, match="clean/delete, load/delete"):
        named([ASKED, other], "r-1", "delete")
    assert named([ASKED, other], "r-1", "load/delete") is other


def test_unknown_question_is_refused_with_those_that_are_open() -> None:
    with pytest.raises(NotFound, match="Open: delete"):
        named([ASKED], "r-1", "drop")

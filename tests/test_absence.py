"""Absent or not: each look has one meaning, and each absence one alert."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbckpt.runs.absence import OVER, SILENT, WELL, News, Seen, Watched, look, word_of

GRACE = 60.0
ALIVE = Seen("running", "alive", (3, 7))
GONE = replace(ALIVE, standing="dead", state="interrupted")
DOWN = Seen(problem="the store is gone")


class Observer:
    """Looks at one run by a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.known: Watched | None = None

    def see(self, seen: Seen, after: float = 0.0) -> tuple[str, News]:
        self.now += after
        self.known, news = look(self.known, seen, self.now, GRACE)
        return self.known.word, news


@pytest.mark.parametrize(
    ("seen", "still", "word"),
    [
        (ALIVE, 0, "alive"),
        (ALIVE, 60, "alive"),
        (ALIVE, 61, "late"),
        (replace(ALIVE, standing="late"), 0, "alive"),
        (replace(ALIVE, standing="late"), 61, "late"),
        (replace(ALIVE, standing="unknown"), 60, "alive"),
        (replace(ALIVE, standing="unknown"), 61, "dead"),
        (GONE, 0, "dead"),
        (replace(GONE, state="waiting"), 0, "waiting"),
        (replace(GONE, state="failed"), 0, "failed"),
        (replace(ALIVE, standing="free", state="open"), 0, "stopped"),
        (Seen("waiting", "free", (3, 7)), 0, "waiting"),
        (Seen("answered", "free", (3, 7)), 0, "answered"),
        (Seen("answered", "alive", (3, 7)), 0, "alive"),
        (Seen("failed", "free", (3, 7)), 0, "failed"),
        (Seen("waiting", "alive", (3, 7)), 0, "alive"),
        (Seen("open"), 0, "never started"),
        (Seen(), 0, "never started"),
        (DOWN, 0, "can't tell"),
        (replace(GONE, problem="unreadable"), 0, "can't tell"),
    ],
)
def test_each_look_has_one_meaning(seen: Seen, still: float, word: str) -> None:
    assert word_of(seen, still, GRACE) == word


@pytest.mark.parametrize("state", sorted(OVER))
@pytest.mark.parametrize("standing", ["free", "alive", "late", "dead", "unknown"])
def test_run_that_is_over_is_finished_whoever_holds_it(
    state: str, standing: str
) -> None:
    """A late beat never outweighs a completion."""
    assert word_of(Seen(state, standing, (1, 1)), 9999, GRACE) == "finished"


def test_beating_run_is_never_alerted() -> None:
    observer = Observer()
    for beat in range(100):
        seen = replace(ALIVE, beat=(3, beat), age=1.0)
        assert observer.see(seen, 10) == ("alive", "")


def test_hung_process_is_alerted_once_and_once_when_it_beats_again() -> None:
    observer = Observer()
    assert observer.see(ALIVE) == ("alive", "")
    assert observer.see(ALIVE, 60) == ("alive", "")
    assert observer.see(ALIVE, 1) == ("late", "alert")
    assert observer.see(ALIVE, 3600) == ("late", "")
    assert observer.see(replace(ALIVE, beat=(3, 8)), 10) == ("alive", "recovered")
    assert observer.see(replace(ALIVE, beat=(3, 9)), 10) == ("alive", "")


def test_late_one_that_dies_is_the_same_absence() -> None:
    observer = Observer()
    observer.see(ALIVE)
    assert observer.see(ALIVE, 61) == ("late", "alert")
    assert observer.see(GONE, 10) == ("dead", "")
    assert observer.see(replace(GONE, standing="free"), 10) == ("stopped", "")


def test_dead_one_that_comes_back_within_the_grace_is_no_absence() -> None:
    """``nbckpt run`` restarts a dead kernel within seconds."""
    observer = Observer()
    observer.see(ALIVE)
    assert observer.see(GONE, 10) == ("dead", "")
    assert observer.see(replace(ALIVE, beat=(4, 0)), 10) == ("alive", "")


def test_second_absence_is_alerted_again() -> None:
    observer = Observer()
    observer.see(ALIVE)
    assert observer.see(GONE, 61)[1] == "alert"
    assert observer.see(replace(ALIVE, beat=(4, 0)), 1)[1] == "recovered"
    assert observer.see(replace(GONE, beat=(4, 0)), 61)[1] == "alert"


def test_long_dead_holder_is_alerted_at_the_first_look() -> None:
    """``--once`` has seen nothing before."""
    assert Observer().see(replace(GONE, age=61.0)) == ("dead", "alert")


def test_holder_that_died_just_now_is_not() -> None:
    observer = Observer()
    assert observer.see(replace(GONE, age=5.0)) == ("dead", "")
    assert observer.see(replace(GONE, age=61.0), 56) == ("dead", "alert")


def test_silence_elsewhere_counts_from_the_first_look() -> None:
    """The other host's wall clock is not believed, so that its age is not given."""
    far = replace(ALIVE, standing="unknown")
    observer = Observer()
    assert observer.see(far) == ("alive", "")
    assert observer.see(far, 61) == ("dead", "alert")


@pytest.mark.parametrize("age", [0.0, 3600.0])
def test_wall_clock_counts_for_no_more_than_the_time_between_two_looks(
    age: float,
) -> None:
    """The beat moved since the last look, whatever a clock that was set says."""
    observer = Observer()
    observer.see(ALIVE)
    assert observer.see(replace(ALIVE, beat=(3, 8), age=age), 10) == ("alive", "")


def test_process_that_died_long_before_a_rare_look_is_alerted_there() -> None:
    """An hour between two looks, and a last beat soon after the first one."""
    observer = Observer()
    observer.see(ALIVE)
    late = replace(GONE, beat=(3, 9), age=3500.0)
    assert observer.see(late, 3600) == ("dead", "alert")


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        (Seen("failed", "free", (3, 7)), "failed"),
        (Seen("waiting", "free", (3, 7)), "waiting"),
    ],
)
def test_run_that_needs_a_person_is_told_at_once_and_once(
    seen: Seen, word: str
) -> None:
    observer = Observer()
    assert observer.see(seen) == (word, "alert")
    assert observer.see(seen, 999) == (word, "")


def test_run_with_its_answer_is_told_only_when_nobody_goes_on_with_it() -> None:
    observer = Observer()
    assert observer.see(Seen("waiting", "free", (4, 1)), 10) == ("waiting", "alert")
    answered = Seen("answered", "free", (4, 1))
    assert observer.see(answered, GRACE * 9) == ("answered", "")
    assert observer.see(answered, GRACE / 2) == ("answered", "")
    assert observer.see(answered, GRACE) == ("answered", "alert")
    assert observer.see(Seen("running", "alive", (5, 1)), 1) == ("alive", "recovered")


def test_question_after_an_absence_is_news_of_its_own() -> None:
    observer = Observer()
    assert observer.see(replace(GONE, age=99))[1] == "alert"
    waiting = Seen("waiting", "free", (4, 1))
    assert observer.see(waiting, 10) == ("waiting", "alert")
    assert observer.see(replace(GONE, age=99), 10) == ("dead", "")


@pytest.mark.parametrize(
    ("seen", "word"), [(DOWN, "can't tell"), (Seen(), "never started")]
)
def test_what_may_mend_itself_is_told_after_the_grace(seen: Seen, word: str) -> None:
    observer = Observer()
    assert observer.see(seen) == (word, "")
    assert observer.see(seen, 59) == (word, "")
    assert observer.see(seen, 1) == (word, "alert")
    assert observer.see(seen, 99) == (word, "")
    assert observer.see(ALIVE, 1) == ("alive", "recovered")


def test_monitor_that_could_not_read_does_not_call_the_worker_silent() -> None:
    """The beat moved while nobody could see it."""
    observer = Observer()
    observer.see(ALIVE)
    observer.see(DOWN, 30)
    assert observer.see(DOWN, 300)[0] == "can't tell"
    seen = replace(ALIVE, beat=(3, 40), age=1.0)
    assert observer.see(seen, 10) == ("alive", "recovered")


def test_finish_after_an_absence_is_a_recovery() -> None:
    observer = Observer()
    observer.see(replace(GONE, age=99))
    over = Seen("completed", "free", (4, 9))
    assert observer.see(over, 10) == ("finished", "recovered")
    assert observer.see(over, 9999) == ("finished", "")


def test_another_boot_forgets_times_and_keeps_what_was_told() -> None:
    observer = Observer()
    observer.see(replace(GONE, age=99))
    assert observer.known is not None
    observer.known = Watched(told=observer.known.told)
    observer.now = 5.0
    assert observer.see(replace(GONE, age=99)) == ("dead", "")
    assert observer.see(replace(ALIVE, beat=(4, 0)), 10) == ("alive", "recovered")


def test_what_is_known_survives_its_text() -> None:
    observer = Observer()
    observer.see(replace(GONE, age=99))
    assert observer.known is not None
    assert Watched.from_json(observer.known.to_json()) == observer.known


looks = st.lists(
    st.tuples(
        st.sampled_from(["running", "completed", "failed", "waiting", "open", ""]),
        st.sampled_from(["free", "alive", "late", "dead", "unknown"]),
        st.integers(0, 3),
        st.floats(0, 200),
        st.booleans(),
        st.floats(0, 100),
    ),
    max_size=30,
)


@given(looks)
def test_no_two_alerts_of_a_kind_without_a_recovery_between(
    seen: list[tuple[str, str, int, float, bool, float]],
) -> None:
    observer, told = Observer(), set()
    for state, standing, beat, age, down, after in seen:
        problem = "down" if down else ""
        one = Seen(state, standing, (1, beat), age, problem)
        word, news = observer.see(one, after)
        kind = "silent" if word in SILENT else word
        if news == "alert":
            assert kind not in told | WELL
            told.add(kind)
        elif word in WELL:
            assert (news == "recovered") == bool(told)
            told.clear()
        else:
            assert news == ""

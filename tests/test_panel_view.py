"""What a panel shows, as values: counts, what is left, and what folds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nbckpt.panel.view import (
    BLOCK,
    Fold,
    LoopView,
    RunView,
    State,
    StepView,
    _sums,
    blocks,
)


def a_run(*states: State) -> RunView:
    """Return a run at 100 s whose steps expect 10 s each."""
    steps = tuple(
        StepView(number, f"s{number}", state, started_at=96.0, expected=10.0)
        for number, state in enumerate(states, 1)
    )
    return RunView("r-1", steps, began=90.0, at=100.0)


def lines(steps: tuple[StepView, ...]) -> tuple[StepView | Fold, ...]:
    """Return the lines of a list of steps, whatever the blocks."""
    return tuple(line for block in blocks(steps) for line in block)


def test_every_state_has_an_icon_and_a_word_of_its_own() -> None:
    assert len({state.icon for state in State}) == len(State)
    assert len({state.word for state in State}) == len(State)
    assert all(len(state.icon) == 1 for state in State)


def test_done_counts_the_steps_with_a_checkpoint_that_stands() -> None:
    run = a_run(*State)
    assert run.done == 3


def test_run_is_done_once_all_of_its_steps_are() -> None:
    assert a_run(State.SKIPPED, State.DONE, State.AGAIN).is_done
    assert not a_run(State.SKIPPED, State.FAILED).is_done
    assert not RunView().is_done


def test_left_counts_pending_steps_and_the_rest_of_the_running_one() -> None:
    assert a_run(State.SKIPPED, State.RUNNING, State.PENDING).left == 16.0


def test_running_step_that_is_late_has_nothing_left() -> None:
    run = a_run(State.RUNNING, State.PENDING)
    assert replace(run, at=400.0).left == 10.0


def test_left_is_not_claimed_without_history_of_each_step() -> None:
    run = a_run(State.RUNNING, State.PENDING)
    assert run.put(replace(run.steps[1], expected=0.0)).left is None


@pytest.mark.parametrize("state", [State.SKIPPED, State.DONE])
def test_left_is_not_told_once_all_is_done(state: State) -> None:
    assert a_run(state, state).left is None


def test_sums_are_made_once_while_no_step_changes() -> None:
    run = a_run(State.SKIPPED, State.RUNNING, State.PENDING)
    assert (run.done, run.saved, run.left) == (1, 0.0, 16.0)
    before = _sums.cache_info().misses
    later = replace(run, at=103.0, items=(LoopView("1", 2),))
    assert (later.done, later.left) == (1, 13.0)
    assert _sums.cache_info().misses == before


def test_elapsed_begins_with_the_first_step_of_this_kernel() -> None:
    assert a_run(State.PENDING).elapsed == 10.0
    assert replace(a_run(State.PENDING), began=0.0).elapsed == 0.0


def test_step_takes_the_place_of_the_one_of_its_name() -> None:
    run = a_run(State.PENDING, State.PENDING)
    changed = run.put(replace(run.step("s2"), state=State.RUNNING))
    assert [step.state for step in changed.steps] == [State.PENDING, State.RUNNING]
    assert changed.running == changed.steps[1]
    assert run.running is None


def test_step_that_no_plan_knew_comes_last() -> None:
    run = a_run(State.DONE)
    new = run.step("new")
    assert (new.number, new.state) == (2, State.PENDING)
    assert [step.name for step in run.put(new).steps] == ["s1", "new"]


def test_few_steps_have_a_line_each() -> None:
    steps = a_run(*[State.SKIPPED] * 12).steps
    assert lines(steps) == steps


def test_long_quiet_stretches_of_many_steps_fold() -> None:
    quiet = [State.SKIPPED] * 150
    run = a_run(*quiet, State.FAILED, State.SKIPPED, *[State.PENDING] * 48)
    found = lines(run.steps)
    assert [type(line) for line in found] == [Fold, StepView, StepView, Fold]
    assert [step for line in found for step in getattr(line, "steps", [line])] == [
        *run.steps
    ]


@pytest.mark.parametrize(
    "state", sorted(set(State) - {State.SKIPPED, State.DONE, State.PENDING})
)
def test_what_needs_an_eye_never_folds(state: State) -> None:
    steps = a_run(*[state] * 20).steps
    assert lines(steps) == steps


def test_block_is_as_before_unless_a_step_of_it_changes() -> None:
    run = a_run(*[State.FAILED] * 200)
    changed = run.put(replace(run.steps[40], state=State.RUNNING))
    before, after = blocks(run.steps), blocks(changed.steps)
    assert [one == other for one, other in zip(before, after, strict=True)] == [
        n != 40 // BLOCK for n in range(len(before))
    ]


def test_fold_tells_the_sums_of_its_steps() -> None:
    step = StepView(1, "a", State.SKIPPED, seconds=2.0, saved=3.0)
    fold = Fold((step, step))
    assert (fold.state, fold.seconds) == (State.SKIPPED, 6.0)
    done = replace(step, state=State.DONE)
    assert Fold((done, done)).seconds == 4.0

"""Messages come in from any thread, and a failure never reaches who sent them."""

from __future__ import annotations

import json
import multiprocessing
import threading
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.outputs.folding import Fold
from nbckpt.outputs.intake import Intake
from nbckpt.outputs.patches import Patch, is_muted, muted
from nbckpt.outputs.tape import SPILL_LIMIT, Tape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


def display(html: Any) -> tuple[str, dict[str, Any]]:
    """Display something."""
    return "display_data", {"data": {"text/html": html}, "metadata": {}}


def shown(intake: Intake) -> list[str]:
    """Finish and return what was displayed."""
    recording = intake.finish()
    lines = bytes(recording.data()).splitlines()
    recording.close()
    return [json.loads(line)["content"]["data"]["text/html"] for line in lines]


@pytest.fixture
def fold(tmp_path: Path) -> Fold:
    """Give a fold that spills into a folder of its own."""
    return Fold(Tape(tmp_path / "spill"))


def test_messages_of_many_threads_all_arrive(fold: Fold) -> None:
    intake = Intake(fold)
    ready = threading.Barrier(8)

    def send(thread: int) -> None:
        ready.wait()
        for number in range(50):
            intake.take(*display(f"{thread} {number}"))

    threads = [threading.Thread(target=send, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    got = shown(intake)
    assert sorted(got) == sorted(f"{t} {n}" for t in range(8) for n in range(50))
    for thread in range(8):
        mine = [html for html in got if html.startswith(f"{thread} ")]
        assert mine == [f"{thread} {n}" for n in range(50)], "in order"


def test_a_message_sent_while_one_is_folded_comes_after_it(fold: Fold) -> None:
    """As of a finaliser, or of a `__repr__` that displays."""
    intake = Intake(fold)

    class Talkative:
        def __repr__(self) -> str:
            intake.take(*display("inner"))
            return "talkative"

    kind, content = display("outer")
    intake.take(kind, {"data": content["data"] | {"odd": Talkative()}})
    intake.take(*display("last"))

    assert shown(intake) == ["outer", "inner", "last"]


class BrokenFold(Fold):
    """Fails at the second message."""

    failure: BaseException = OSError(28, "No space left on device")

    def take(self, kind: str, content: Mapping[str, Any]) -> None:
        """Take one message and no more."""
        if self.has_result:
            raise self.failure
        self.has_result = True
        super().take(kind, content)


def test_a_failure_is_raised_by_finish_only(tmp_path: Path) -> None:
    intake = Intake(BrokenFold(Tape(tmp_path)))
    for _ in range(3):
        intake.take(*display("a"))

    with pytest.raises(OSError, match="No space left"):
        intake.finish()


def test_an_interrupt_reaches_the_user_and_spoils_the_recording(tmp_path: Path) -> None:
    fold = BrokenFold(Tape(tmp_path))
    fold.failure = KeyboardInterrupt()
    intake = Intake(fold)
    intake.take(*display("a"))

    with pytest.raises(KeyboardInterrupt):
        intake.take(*display("b"))
    intake.take(*display("c"))

    with pytest.raises(KeyboardInterrupt):
        intake.finish()


def test_what_comes_after_the_end_is_not_taken(fold: Fold) -> None:
    intake = Intake(fold)
    intake.take(*display("a"))
    assert shown(intake) == ["a"]

    intake.take(*display("b"))
    with pytest.raises(ValueError, match="dropped"):
        intake.finish()


def test_a_dropped_recording_cannot_be_finished(fold: Fold) -> None:
    intake = Intake(fold)
    intake.take(*display("a"))
    intake.drop()
    intake.drop()

    with pytest.raises(ValueError, match="dropped"):
        intake.finish()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_record(fold: Fold) -> None:
    """Above all not into the spill file, which it shares with its parent."""
    intake = Intake(fold)
    long = "." * 2 * SPILL_LIMIT
    intake.take(*display(long))
    child = multiprocessing.get_context("fork").Process(
        target=intake.take, args=display(long)
    )
    child.start()
    child.join()

    assert child.exitcode == 0
    assert shown(intake) == [long]


def test_a_muted_thread_is_not_recorded_and_others_are(fold: Fold) -> None:
    intake = Intake(fold)
    with muted():
        intake.take(*display("mine"))
        other = threading.Thread(target=intake.take, args=display("other"))
        other.start()
        other.join()
        with muted():
            pass
        assert is_muted()
    assert not is_muted()

    assert shown(intake) == ["other"]


class Greeter:
    """Someone else's object."""

    def greet(self) -> str:
        """Say hello."""
        return "hello"


def louder(greet: Callable[[], str]) -> Callable[[], str]:
    """Wrap a greeting."""
    return lambda: greet() + "!"


def test_a_patch_is_undone_without_a_trace() -> None:
    greeter = Greeter()
    patch = Patch(greeter, "greet", louder)
    assert greeter.greet() == "hello!"

    patch.undo()
    patch.undo()

    assert greeter.greet() == "hello"
    assert vars(greeter) == {}


def test_a_patch_gives_back_what_was_patched_before() -> None:
    greeter = Greeter()
    first = Patch(greeter, "greet", louder)
    second = Patch(greeter, "greet", louder)
    assert greeter.greet() == "hello!!"

    second.undo()
    assert greeter.greet() == "hello!"
    first.undo()
    assert vars(greeter) == {}


def test_a_patch_that_someone_wrapped_again_is_left_alone() -> None:
    greeter = Greeter()
    first = Patch(greeter, "greet", louder)
    Patch(greeter, "greet", louder)

    first.undo()

    assert greeter.greet() == "hello!!"

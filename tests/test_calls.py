"""Effects that must not happen twice: what is recorded when, and what a resume does."""

from __future__ import annotations

import builtins
import signal
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt import current
from nbckpt.effects import calls as effects
from nbckpt.effects import intents
from nbckpt.errors import BadStep, Fenced, StopForHuman, StoreFull
from nbckpt.records import EffectRecord, EffectState, Lease, StepState
from nbckpt.runs.journal import Journal
from nbckpt.session import Session
from tests.former import a_process, displace

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from tests.notebook import Notebook


@dataclass
class Receiver:
    """A service to which calls are made, and what it was asked to do."""

    calls: list[str] = field(default_factory=list)
    """Keys, one for each call that took effect."""
    asked: list[str] = field(default_factory=list)
    fails: list[BaseException] = field(default_factory=list)
    """What the next calls raise, after their effect."""
    refuses: list[BaseException] = field(default_factory=list)
    """What the next calls raise, without an effect."""
    hides: int = 0
    """How many lookups find nothing although it is there."""

    def do(self, key: str, what: Any = "done") -> Any:
        if self.refuses:
            raise self.refuses.pop(0)
        self.calls.append(key)
        if self.fails:
            raise self.fails.pop(0)
        return what

    def find(self, key: str) -> str | None:
        self.asked.append(key)
        if self.hides:
            self.hides -= 1
            return None
        return "found" if key in self.calls else None


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    found = Receiver()
    monkeypatch.setattr(builtins, "there", found, raising=False)
    return found


@pytest.fixture
def notebook(receiver: Receiver, notebook: Notebook) -> Notebook:
    del receiver
    notebook.run("import nbckpt")
    return notebook


def a_step(*lines: str, options: str = "--effects pay") -> str:
    return "\n".join([f"%%step a {options}", *lines])


def an_effect(more: str = "", perform: str = "there.do") -> str:
    return a_step(f"got = nbckpt.effect('pay', {perform}{', ' if more else ''}{more})")


def again(notebook: Notebook) -> None:
    """Restart the kernel, as after a crash."""
    notebook.restart()
    notebook.run("import nbckpt")


def effect(notebook: Notebook) -> EffectRecord:
    (found,) = notebook.journal.effects(notebook.session.run_id)
    return found


def kinds(notebook: Notebook) -> list[str]:
    wanted = {"intent", "done", "refused", "resolved"}
    lines = notebook.journal.history(notebook.session.run_id)
    return [event.kind for _, event in lines if event.kind in wanted]


def age(notebook: Notebook, seconds: float) -> None:
    """Let an effect have begun earlier."""
    found = effect(notebook)
    older = replace(found, at=found.at - seconds, first_at=found.first_at - seconds)
    path = f"effect/{found.run_id}/{found.step}/{found.key}"
    notebook.session.store.transact(lambda tx: tx.put(path, older.to_json()))


def test_intent_is_recorded_before_the_call_and_outcome_after_it(
    notebook: Notebook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    write = Journal.write

    def spy(self: Journal, change: Any, *, durable: bool = True) -> Any:
        found = write(self, change, durable=durable)
        states = [record.state for record in self.effects(self.run_id)]
        seen.append((len(receiver.calls), *states, durable))
        return found

    monkeypatch.setattr(Journal, "write", spy)
    notebook.run(an_effect())
    assert (0, EffectState.INTENT, True) in seen
    assert (1, EffectState.DONE, True) in seen
    assert (1, EffectState.INTENT, True) not in seen
    assert notebook.names["got"] == "done"
    assert kinds(notebook) == ["intent", "done"]


def test_done_effect_is_not_performed_by_a_rerun(
    notebook: Notebook, receiver: Receiver
) -> None:
    notebook.run(an_effect(perform="lambda key: there.do(key, {'id': 7})"))
    notebook.run("%nbckpt rerun a")
    again(notebook)
    notebook.run(an_effect(perform="lambda key: there.do(key, {'id': 7})"))
    assert notebook.decision("a") == "Run"
    assert notebook.names["got"] == {"id": 7}
    assert len(receiver.calls) == 1


def test_skipped_step_performs_nothing(notebook: Notebook, receiver: Receiver) -> None:
    notebook.run(an_effect())
    again(notebook)
    notebook.run(an_effect())
    assert notebook.decision("a") == "Skip"
    assert len(receiver.calls) == 1


def test_key_is_constant_over_attempts_and_differs_by_run_step_name_and_item(
    notebook: Notebook, receiver: Receiver
) -> None:
    receiver.refuses.append(ValueError("not now"))
    notebook.error(an_effect("refused=ValueError"))
    again(notebook)
    notebook.run(an_effect("refused=ValueError"))
    (key,) = receiver.calls
    notebook.run("%%step b --ignore key\nkey = nbckpt.idempotency_key('pay')")
    assert notebook.names["key"] != key
    source = "k = [nbckpt.idempotency_key(n) for n in ('pay', 'x', '')]"
    notebook.run("%nbckpt start --fresh")
    notebook.run(f"%%step a\n{source}")
    assert len({*notebook.names["k"], key}) == 4
    token = current.item.set("17")
    try:
        notebook.run(f"%%step c\n{source.replace('k =', 'i =')}")
    finally:
        current.item.reset(token)
    assert notebook.names["i"][0].startswith("c.17.pay-")


def test_key_given_to_perform_is_the_idempotency_key(
    notebook: Notebook, receiver: Receiver
) -> None:
    body = ("nbckpt.effect('pay', there.do)", "key = nbckpt.idempotency_key('pay')")
    notebook.run(a_step(*body))
    assert receiver.calls == [notebook.names["key"]]


@pytest.mark.parametrize(
    "outcome",
    ["{'a': [1, 2.5, None, True, 'x']}", "(1, 2)", "{1: 2}", "b'bytes'", "float('nan')",
     "__import__('numpy').arange(5000)", "__import__('decimal').Decimal('1.10')"],
)  # fmt: skip
def test_outcome_comes_back_with_its_type(notebook: Notebook, outcome: str) -> None:
    source = an_effect(perform=f"lambda key: there.do(key, {outcome})")
    notebook.run(source)
    first = notebook.names["got"]
    notebook.run("%nbckpt rerun a")
    again(notebook)
    notebook.run(source)
    second = notebook.names["got"]
    assert type(second) is type(first)
    assert repr(second) == repr(first)


def test_outcome_that_holds_a_credential_is_not_stored_as_text(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "s3cr3t-value")
    source = an_effect(perform="lambda key: there.do(key, ['s3cr3t-value'])")
    notebook.run(source)
    path = notebook.session.store.folder / "records" / "cache.db"
    notebook.run("%nbckpt rerun a")
    again(notebook)
    assert b"s3cr3t-value" not in path.read_bytes()
    notebook.run(source)
    assert notebook.names["got"] == ["s3cr3t-value"]


def test_outcome_that_can_not_be_kept_is_told_and_stops_later(
    notebook: Notebook, receiver: Receiver
) -> None:
    lock = an_effect(perform="lambda key: there.do(key, socket.socket())")
    notebook.run("import socket")
    notebook.run(lock.replace("--effects pay", "--effects pay --drop got"))
    notebook.run("got.close()")
    assert "Return plain data" in notebook.told()
    notebook.run("%nbckpt rerun a")
    again(notebook)
    notebook.run("import socket")
    error = notebook.error(lock)
    assert isinstance(error, StopForHuman)
    assert "its outcome was not kept" in str(error)
    assert len(receiver.calls) == 1


def test_another_request_under_one_key_stops_and_performs_nothing(
    notebook: Notebook, receiver: Receiver
) -> None:
    source = an_effect(perform="lambda key: there.do(key, amount)")
    notebook.run("amount = 5")
    notebook.run(source)
    notebook.run("%nbckpt rerun a\namount = 6")
    error = notebook.error(source)
    assert isinstance(error, StopForHuman)
    assert "differs from the one that was made under its key, in amount" in str(error)
    assert f"nbckpt resolve {notebook.session.run_id} {effect(notebook).key}" in str(
        error
    )
    assert str(error).endswith("--done [VALUE]|--redo")
    assert len(receiver.calls) == 1


def test_request_given_counts_instead_of_what_perform_reads(
    notebook: Notebook, receiver: Receiver
) -> None:
    source = an_effect("request={'id': 4}", perform="lambda key: there.do(key, amount)")
    notebook.run("amount = 5")
    notebook.run(source)
    notebook.run("amount = 6")
    notebook.run("%nbckpt rerun a")
    notebook.run(source)
    assert notebook.names["got"] == 5
    assert isinstance(notebook.error(source.replace("4", "5")), StopForHuman)
    assert len(receiver.calls) == 1


def test_lookup_without_a_record_finds_what_is_there_and_performs_nothing(
    notebook: Notebook, receiver: Receiver
) -> None:
    notebook.run("%%step z\nkey = 1")
    notebook.run(a_step("receive = there.calls.append(nbckpt.idempotency_key('pay'))"))
    notebook.run(
        a_step("got = nbckpt.effect('pay', there.do, lookup=there.find)", options="")
    )
    assert notebook.names["got"] == "found"
    assert len(receiver.calls) == 1
    assert kinds(notebook) == ["done"]
    assert effect(notebook).how == "found"


def test_lookup_that_finds_nothing_lets_the_effect_happen(
    notebook: Notebook, receiver: Receiver
) -> None:
    notebook.run(an_effect("lookup=there.find"))
    assert notebook.names["got"] == "done"
    assert len(receiver.asked) == len(receiver.calls) == 1


def test_lookup_that_fails_is_not_taken_for_not_found(
    notebook: Notebook, receiver: Receiver
) -> None:
    error = notebook.error(an_effect("lookup=lambda key: 1 / 0"))
    assert isinstance(error, ZeroDivisionError)
    assert receiver.calls == []
    assert not list(notebook.journal.effects(notebook.session.run_id))


@pytest.mark.parametrize("error", [TimeoutError("late"), KeyboardInterrupt()])
def test_call_that_raised_after_its_effect_is_found_by_lookup(
    notebook: Notebook, receiver: Receiver, error: BaseException
) -> None:
    receiver.fails.append(error)
    notebook.error(an_effect("lookup=there.find"))
    assert effect(notebook).state is EffectState.INTENT
    again(notebook)
    notebook.run(an_effect("lookup=there.find"))
    assert notebook.names["got"] == "found"
    assert len(receiver.calls) == 1


def test_unknown_outcome_without_a_contract_stops_for_a_person(
    notebook: Notebook, receiver: Receiver
) -> None:
    receiver.fails.append(TimeoutError("late"))
    notebook.error(an_effect())
    again(notebook)
    error = notebook.error(an_effect())
    assert isinstance(error, StopForHuman)
    assert "TimeoutError: late" in str(error)
    assert f"nbckpt resolve {notebook.session.run_id} a.pay-" in str(error)
    assert len(receiver.calls) == 1
    attempt = notebook.journal.attempt(notebook.session.run_id, "a")
    assert attempt is not None
    assert attempt.state is StepState.WAITING


def test_repeated_key_is_sent_within_the_time_that_the_receiver_knows_it(
    notebook: Notebook, receiver: Receiver
) -> None:
    receiver.fails.append(TimeoutError())
    notebook.error(an_effect("dedup='24h'"))
    again(notebook)
    notebook.run(an_effect("dedup='24h'"))
    assert Counter(receiver.calls) == {effect(notebook).key: 2}


@pytest.mark.parametrize("seconds", [86500.0, -50.0])
def test_repeated_key_is_not_sent_outside_of_that_time(
    notebook: Notebook, receiver: Receiver, seconds: float
) -> None:
    """Nor if the clock was set back since."""
    receiver.fails.append(TimeoutError())
    notebook.error(an_effect("dedup='24h'"))
    age(notebook, seconds)
    assert isinstance(notebook.error(an_effect("dedup='24h'")), StopForHuman)
    assert len(receiver.calls) == 1


def test_time_of_dedup_runs_from_the_first_intent(
    notebook: Notebook, receiver: Receiver
) -> None:
    receiver.fails += [TimeoutError(), TimeoutError()]
    notebook.error(an_effect("dedup='24h'"))
    age(notebook, 80000)
    notebook.error(an_effect("dedup='24h'"))
    age(notebook, 8000)
    assert isinstance(notebook.error(an_effect("dedup='24h'")), StopForHuman)
    assert len(receiver.calls) == 2


def test_repeated_key_with_another_request_is_not_sent(
    notebook: Notebook, receiver: Receiver
) -> None:
    receiver.fails.append(TimeoutError())
    notebook.error(an_effect("dedup='24h', request=1"))
    assert isinstance(notebook.error(an_effect("dedup='24h', request=2")), StopForHuman)
    assert len(receiver.calls) == 1


def test_lagging_lookup_is_believed_only_after_it_had_time_to_settle(
    notebook: Notebook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.fails.append(TimeoutError())
    notebook.error(an_effect("lookup=there.find, settle='1h'"))
    age(notebook, 1800)
    waited: list[float] = []
    monkeypatch.setattr(effects, "_wait", waited.append)
    receiver.hides = 1
    notebook.run(an_effect("lookup=there.find, settle='1h'"))
    assert notebook.names["got"] == "found"
    assert len(receiver.calls) == 1
    assert len(receiver.asked) == 3
    # All of it, though the call began long ago: it may have ended only just now.
    assert waited == [3600]


def test_lagging_lookup_without_settle_would_repeat_the_effect(
    notebook: Notebook, receiver: Receiver
) -> None:
    """Negative control: the test above can fail."""
    receiver.fails.append(TimeoutError())
    notebook.error(an_effect("lookup=there.find"))
    receiver.hides = 1
    notebook.run(an_effect("lookup=there.find"))
    assert len(receiver.calls) == 2


def test_refused_call_is_known_not_to_have_happened_and_is_made_again(
    notebook: Notebook, receiver: Receiver
) -> None:
    receiver.refuses.append(ValueError("no such card"))
    notebook.error(an_effect("refused=(ValueError, KeyError)"))
    assert effect(notebook).state is EffectState.FAILED
    assert effect(notebook).error == "ValueError: no such card"
    again(notebook)
    notebook.run(an_effect("refused=(ValueError, KeyError), request=2"))
    assert kinds(notebook) == ["intent", "refused", "intent", "done"]
    assert len(receiver.calls) == 1


def test_step_does_not_complete_while_an_outcome_is_not_known(
    notebook: Notebook, receiver: Receiver
) -> None:
    receiver.fails.append(TimeoutError())
    error = notebook.error(
        a_step("try:", "    nbckpt.effect('pay', there.do)", "except Exception: pass")
    )
    assert isinstance(error, StopForHuman)
    assert "step a can't complete: of pay it is not known" in str(error)
    assert notebook.journal.step(notebook.session.run_id, "a") is None


def test_two_threads_with_one_key_make_one_call_and_share_its_outcome(
    notebook: Notebook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, waiting = threading.Event(), threading.Event()

    def slow(key: str) -> str:
        inside.set()
        assert waiting.wait(60)
        receiver.calls.append(key)
        return "slow"

    wait_for = effects._changed.wait_for

    def noted(predicate: Callable[[], bool]) -> bool:
        if not predicate():
            waiting.set()
        return wait_for(predicate)

    monkeypatch.setattr(effects._changed, "wait_for", noted)
    monkeypatch.setattr(builtins, "slow", slow, raising=False)
    monkeypatch.setattr(builtins, "inside", inside, raising=False)
    notebook.run(
        a_step(
            "from concurrent.futures import ThreadPoolExecutor",
            "with ThreadPoolExecutor(2) as pool:",
            "    one = pool.submit(nbckpt.effect, 'pay', slow)",
            "    assert inside.wait(60)",
            "    two = pool.submit(nbckpt.effect, 'pay', slow)",
            "    got = [one.result(), two.result()]",
            "del pool, one, two",
        )
    )
    assert notebook.names["got"] == ["slow", "slow"]
    assert len(receiver.calls) == 1


def test_effect_inside_itself_is_refused_instead_of_waiting_for_ever(
    notebook: Notebook,
) -> None:
    error = notebook.error(an_effect(perform="lambda: nbckpt.effect('pay', there.do)"))
    assert isinstance(error, BadStep)


def take_over(notebook: Notebook) -> None:
    store, run_id = notebook.session.store, notebook.session.run_id
    lease = Lease.from_json(store.get(f"lease/{run_id}"))
    holder = replace(lease.holder, nonce="other")
    taken = replace(lease, token=lease.token + 1, holder=holder)
    store.transact(lambda tx: tx.put(f"lease/{run_id}", taken.to_json()))


def test_process_that_lost_the_run_performs_nothing(
    notebook: Notebook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "lose", lambda: take_over(notebook), raising=False)
    error = notebook.error(a_step("lose()", "nbckpt.effect('pay', there.do)"))
    assert isinstance(error, Fenced)
    assert receiver.calls == []


def test_without_the_fence_it_would(
    notebook: Notebook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: the test above can fail."""
    monkeypatch.setattr(builtins, "lose", lambda: take_over(notebook), raising=False)
    monkeypatch.setattr(
        Journal, "write", lambda self, change, **_: self.store.transact(change)
    )
    notebook.run(a_step("lose()", "nbckpt.effect('pay', there.do)"), fine=False)
    assert len(receiver.calls) == 1


def test_outcome_that_could_not_be_saved_is_saved_by_running_the_cell_again(
    notebook: Notebook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = intents.Intent.write_done

    def full(*_: Any, **__: Any) -> None:
        monkeypatch.setattr(intents.Intent, "write_done", done)
        raise StoreFull("no room", "make room")

    monkeypatch.setattr(intents.Intent, "write_done", full)
    assert isinstance(notebook.error(an_effect()), StoreFull)
    notebook.run(an_effect())
    assert notebook.names["got"] == "done"
    assert len(receiver.calls) == 1


@pytest.mark.parametrize(
    ("call", "part"),
    [
        ("nbckpt.effect('', there.do)", "has no name"),
        ("nbckpt.effect(3, there.do)", "3, which is no text"),
        ("nbckpt.effect('pay', 3)", "can't be called"),
        ("nbckpt.effect('pay', there.do, lambda a, b: 1)", "missing a required"),
        ("nbckpt.effect('pay', there.do, refused='Error')", "no type of errors"),
        ("nbckpt.effect('pay', there.do, settle=-1)", "-1 is no duration"),
        ("nbckpt.effect('pay', there.do, dedup='soon')", "is no duration"),
        (
            "nbckpt.effect('pay', there.do, request=(n for n in ()))",
            "can't be compared",
        ),
    ],
)
def test_wrong_call_is_refused_before_anything_happens(
    notebook: Notebook, receiver: Receiver, call: str, part: str
) -> None:
    error = notebook.error(a_step(call))
    assert isinstance(error, BadStep)
    assert part in str(error)
    assert receiver.calls == []


def test_length_of_time_may_be_a_timedelta(
    notebook: Notebook, receiver: Receiver
) -> None:
    notebook.run("from datetime import timedelta")
    receiver.fails.append(TimeoutError("late"))
    source = an_effect("dedup=timedelta(hours=1)")
    notebook.error(source)
    notebook.run(source)
    assert len(receiver.calls) == 2


def test_coroutine_that_nobody_awaits_is_known_not_to_have_happened(
    notebook: Notebook, receiver: Receiver
) -> None:
    notebook.run("async def go(key): there.do(key)")
    error = notebook.error(an_effect(perform="lambda key: go(key)"))
    assert "nobody has awaited" in str(error)
    assert effect(notebook).state is EffectState.FAILED
    notebook.run(an_effect())
    assert len(receiver.calls) == 1


def test_reply_that_is_no_outcome_leaves_it_unknown(
    notebook: Notebook, receiver: Receiver
) -> None:
    perform = "lambda key: (there.do(key), iter_later())[1]"
    notebook.run("def iter_later(): yield 1")
    assert "no outcome yet" in str(notebook.error(an_effect(perform=perform)))
    assert effect(notebook).state is EffectState.INTENT
    assert isinstance(notebook.error(an_effect(perform=perform)), StopForHuman)
    assert len(receiver.calls) == 1


def test_lookup_that_says_neither_performs_nothing(
    notebook: Notebook, receiver: Receiver
) -> None:
    error = notebook.error(an_effect("lookup=lambda key: []"))
    assert "only None means" in str(error)
    assert receiver.calls == []
    assert not list(notebook.journal.effects(notebook.session.run_id))


def test_coroutine_and_unknown_argument_are_refused(notebook: Notebook) -> None:
    notebook.run("async def go(key): ...")
    assert "coroutine" in str(notebook.error(a_step("nbckpt.effect('pay', go)")))
    error = notebook.error(an_effect("setle=3"))
    assert isinstance(error, TypeError)


def test_effect_outside_of_a_step_is_refused(notebook: Notebook) -> None:
    assert isinstance(notebook.error("nbckpt.effect('pay', there.do)"), BadStep)


def unknown(notebook: Notebook, receiver: Receiver) -> None:
    """Leave an effect whose outcome is not known."""
    receiver.fails.append(TimeoutError("late"))
    notebook.error(an_effect())


def test_person_says_done_and_the_step_has_the_value(
    notebook: Notebook, receiver: Receiver
) -> None:
    unknown(notebook, receiver)
    notebook.run("""%nbckpt resolve pay --done '{"id": 7}' --why 'seen at the bank'""")
    again(notebook)
    notebook.run(an_effect())
    assert notebook.names["got"] == {"id": 7}
    assert len(receiver.calls) == 1
    answer = effect(notebook).answer
    assert answer is not None
    assert (answer.word, answer.why) == ("done", "seen at the bank")
    assert answer.who
    assert kinds(notebook) == ["intent", "resolved"]


def test_person_says_not_done_and_it_is_performed(
    notebook: Notebook, receiver: Receiver
) -> None:
    unknown(notebook, receiver)
    notebook.run("%nbckpt resolve pay --not-done")
    notebook.run(an_effect("request=5"))
    assert notebook.names["got"] == "done"
    assert Counter(receiver.calls) == {effect(notebook).key: 2}


def test_person_says_redo_and_it_is_performed_without_being_looked_up(
    notebook: Notebook, receiver: Receiver
) -> None:
    unknown(notebook, receiver)
    notebook.run(f"%nbckpt resolve {notebook.session.run_id} pay --redo")
    assert effect(notebook).state is EffectState.INTENT
    notebook.run(an_effect("lookup=there.find"))
    assert notebook.names["got"] == "done"
    assert len(receiver.calls) == 2
    assert receiver.asked == []


def test_redo_counts_for_one_call_only(notebook: Notebook, receiver: Receiver) -> None:
    unknown(notebook, receiver)
    notebook.run("%nbckpt resolve pay --redo")
    unknown(notebook, receiver)
    assert isinstance(notebook.error(an_effect()), StopForHuman)
    assert len(receiver.calls) == 2


def test_person_keeps_a_done_outcome_for_another_request(
    notebook: Notebook, receiver: Receiver
) -> None:
    notebook.run(an_effect("request=1"))
    notebook.run("%nbckpt rerun a")
    notebook.error(an_effect("request=2"))
    notebook.run("%nbckpt resolve pay --done")
    notebook.run(an_effect("request=2"))
    assert notebook.names["got"] == "done"
    notebook.run("%nbckpt rerun a")
    assert isinstance(notebook.error(an_effect("request=3")), StopForHuman)
    assert len(receiver.calls) == 1


def test_answer_that_comes_between_look_and_intent_is_followed(
    notebook: Notebook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown(notebook, receiver)
    find = effects._find

    def answered(intent: Any, asked: Any) -> Any:
        found = find(intent, asked)
        record = replace(
            effect(notebook), state=EffectState.DONE, value="said", request=None
        )
        path = f"effect/{record.run_id}/a/{record.key}"
        notebook.session.store.transact(lambda tx: tx.put(path, record.to_json()))
        return found

    monkeypatch.setattr(effects, "_find", answered)
    notebook.run(an_effect("dedup='24h'"))
    assert notebook.names["got"] == "said"
    assert len(receiver.calls) == 1


@pytest.fixture
def replaced(notebook: Notebook) -> Iterator[subprocess.Popen[str]]:
    with a_process() as process:
        displace(notebook, process)
        yield process


def ends_seen(
    notebook: Notebook, receiver: Receiver, process: subprocess.Popen[str]
) -> list[int | None]:
    """Make an effect; return how the replaced process had ended at each call."""
    seen: list[int | None] = []

    def ask(key: str) -> str | None:
        seen.append(process.poll())
        return receiver.find(key)

    def perform(key: str) -> str:
        seen.append(process.poll())
        receiver.do(key)
        return "done"

    notebook.names.update(ask=ask, perform=perform)
    notebook.run(an_effect("ask", "perform"))
    return seen


def test_replaced_holder_has_ended_before_the_receiver_is_asked(
    notebook: Notebook, receiver: Receiver, replaced: subprocess.Popen[str]
) -> None:
    """It may be in the middle of the very call whose outcome is looked up."""
    assert ends_seen(notebook, receiver, replaced) == [-signal.SIGINT] * 2
    assert len(receiver.calls) == 1


def test_without_that_wait_the_replaced_holder_would_still_act(
    notebook: Notebook,
    receiver: Receiver,
    replaced: subprocess.Popen[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control: the test above can fail."""
    monkeypatch.setattr(Session, "alone", lambda _: None)
    assert ends_seen(notebook, receiver, replaced) == [None] * 2


def test_effect_that_is_done_waits_for_nobody(
    notebook: Notebook, receiver: Receiver, replaced: subprocess.Popen[str]
) -> None:
    notebook.session._hold._is_alone = True  # type: ignore[union-attr]
    notebook.run(an_effect())
    notebook.session._hold._is_alone = False  # type: ignore[union-attr]
    notebook.run("%nbckpt rerun a")
    notebook.run(an_effect())
    assert notebook.decision("a") == "Run"
    assert replaced.poll() is None
    assert len(receiver.calls) == 1

"""In IPython without a kernel, a replay prints what the cell printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from nbckpt.outputs import Recorder, replay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    """Give a shell that has no kernel and keeps no history."""
    settings = Config()
    settings.HistoryManager.enabled = False
    yield InteractiveShell.instance(config=settings)
    InteractiveShell.clear_instance()


@pytest.fixture
def recorder(shell: InteractiveShell, tmp_path: Path) -> Iterator[Recorder]:
    """Give a recorder of the shell."""
    recorder = Recorder(shell, tmp_path / "spill")
    yield recorder
    recorder.uninstall()


def record(recorder: Recorder, shell: InteractiveShell, code: str) -> bytes:
    """Run a cell and return what it showed."""
    recorder.start()
    shell.run_cell(code, store_history=True).raise_error()
    recording = recorder.stop()
    data = bytes(recording.data())
    recording.close()
    return data


def kinds(data: bytes) -> list[str]:
    """Return the types of recorded messages."""
    return [json.loads(line)["msg_type"] for line in data.splitlines()]


IMPORTS = "import sys; from IPython.display import display, HTML, clear_output\n"

CELLS = {
    "text": "print('a'); print('b', end='')",
    "error stream": "print('a'); print('b', file=sys.stderr)",
    "lines at once": "sys.stdout.writelines(['a', 'b'])",
    "display": "print('a'); display(HTML('<b>b</b>')); print('c')",
    "update": "h = display(HTML('1'), display_id='x'); print('a')",
    "result": "print('a'); 1 + 1",
    "result of many lines": "{n: 'x' * 60 for n in range(3)}",
    "no result": "1 + 1;",
    "thread": "import threading\n"
    "t = threading.Thread(target=print, args=('a',)); t.start(); t.join()",
    "text of a repr": "class A:\n    def __repr__(self): print('b'); return 'A'\nA()",
    "traceback": "try: 1 / 0\nexcept ZeroDivisionError: get_ipython().showtraceback()",
    "nothing": "pass",
}


@pytest.mark.parametrize("code", CELLS.values(), ids=CELLS)
def test_a_replay_prints_the_same(
    shell: InteractiveShell,
    recorder: Recorder,
    capsys: pytest.CaptureFixture[str],
    code: str,
) -> None:
    shell.run_cell(IMPORTS)
    capsys.readouterr()
    shell.execution_count = 7
    data = record(recorder, shell, code)
    printed = capsys.readouterr()

    shell.execution_count = 7
    shell.user_ns["again"] = lambda: replay(shell, data)
    shell.run_cell("again()", store_history=True)

    again = capsys.readouterr()
    if "__repr__" in code:  # printed after `Out[7]:`, but it is no part of the result
        assert sorted(again.out) == sorted(printed.out)
    else:
        assert again == printed


def test_everything_a_cell_shows_is_a_message_of_its_kind(
    shell: InteractiveShell, recorder: Recorder
) -> None:
    shell.run_cell(IMPORTS)
    data = record(
        recorder, shell, "print(1); h = display(2, display_id=True); h.update(3); 4"
    )

    assert kinds(data) == ["stream", "display_data", "execute_result"]
    assert json.loads(data.splitlines()[1])["content"]["data"] == {"text/plain": "3"}


def test_clearing_clears(shell: InteractiveShell, recorder: Recorder) -> None:
    code = "print(1); clear_output(); print(2); clear_output(wait=True); print(3)"
    shell.run_cell(IMPORTS)

    data = record(recorder, shell, code)

    assert [json.loads(line)["content"]["text"] for line in data.splitlines()] == [
        "3\n"
    ]


def test_only_results_make_a_result(
    shell: InteractiveShell, recorder: Recorder
) -> None:
    found = []
    for code in ["1", "print(1)", "1;"]:
        recorder.start()
        shell.run_cell(code, store_history=True)
        recording = recorder.stop()
        found.append(recording.has_result)
        recording.close()

    assert found == [True, False, False]


def test_recording_may_begin_and_end_within_the_cell(
    shell: InteractiveShell, recorder: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    """IPython itself wraps the streams for the time of a cell."""
    shell.user_ns["recorder"] = recorder
    code = "print(1); recorder.start(); print(2); found = recorder.stop(); print(3)"
    shell.run_cell(code).raise_error()
    shell.run_cell("print(4)")

    assert b"2\\n" in bytes(shell.user_ns["found"].data())
    assert len(shell.user_ns["found"].data().splitlines()) == 1
    assert capsys.readouterr().out == "1\n2\n3\n4\n"
    assert "write" not in vars(sys.stdout) or not hasattr(
        sys.stdout.write, "__wrapped__"
    )


def test_captured_output_is_not_shown_and_not_recorded(
    shell: InteractiveShell, recorder: Recorder
) -> None:
    code = "from IPython.utils.capture import capture_output\n"
    code += "with capture_output(): print(1); display(2)\n"
    code += "import contextlib, io\n"
    code += "with contextlib.redirect_stdout(io.StringIO()): print(3)"
    shell.run_cell(IMPORTS)

    assert record(recorder, shell, code) == b""


def test_output_between_recordings_is_not_recorded(
    shell: InteractiveShell, recorder: Recorder
) -> None:
    shell.run_cell(IMPORTS)
    assert record(recorder, shell, "pass") == b""
    shell.run_cell("print(1); display(2); 3")

    assert kinds(record(recorder, shell, "display(4)")) == ["display_data"]


def test_a_replay_is_not_recorded(shell: InteractiveShell, recorder: Recorder) -> None:
    shell.run_cell(IMPORTS)
    data = record(recorder, shell, "print(1); display(2); 3")
    recorder.start()
    replay(shell, data)
    recording = recorder.stop()

    assert recording.data() == b""
    assert not recording.has_result


def test_stopping_without_starting_gives_nothing(recorder: Recorder) -> None:
    recording = recorder.stop()

    assert recording.data() == b""
    assert not recording.has_result


def test_discarding_forgets_and_never_fails(
    shell: InteractiveShell, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.discard()
    recorder.start()
    shell.run_cell("print(1)")
    recorder.discard()
    recorder.start()
    with monkeypatch.context() as patch:
        patch.setattr(recorder, "_tap", None)
        recorder.discard()

    assert record(recorder, shell, "pass") == b""


def test_starting_twice_forgets_the_first(
    shell: InteractiveShell, recorder: Recorder
) -> None:
    recorder.start()
    shell.run_cell("print(1)")
    data = record(recorder, shell, "print(2)")

    assert json.loads(data)["content"]["text"] == "2\n"


def test_uninstalling_leaves_no_wrapper(
    shell: InteractiveShell, tmp_path: Path
) -> None:
    before = [dict(vars(o)) for o in (shell.display_pub, shell.displayhook, sys.stdout)]
    recorder = Recorder(shell, tmp_path)
    recorder.start()
    recorder.uninstall()
    recorder.uninstall()

    after = [dict(vars(o)) for o in (shell.display_pub, shell.displayhook, sys.stdout)]
    assert after == before


def test_a_missing_stream_is_passed_over(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    recorder.start()
    sys.stdout.write("a\n")
    recording = recorder.stop()

    assert b'"a\\n"' in bytes(recording.data())
    recording.close()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"msg_type": "comm_open", "content": {}}\n', "no output"),
        (b'{"msg_type": "stream", "content": {"name": "std', "break off"),
        (b"not json\n", "Expecting value"),
    ],
)
def test_a_replay_of_anything_else_is_refused(
    shell: InteractiveShell, data: bytes, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        replay(shell, data)


def test_messages_of_a_kernel_are_shown(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    """A store that a kernel filled may be read in a terminal."""
    bundle: dict[str, Any] = {"data": {"text/plain": "x"}, "metadata": {}}
    messages = [
        ("display_data", bundle | {"transient": {"display_id": "a"}}),
        ("update_display_data", bundle | {"transient": {"display_id": "b"}}),
        ("error", {"ename": "E", "evalue": "", "traceback": ["one", "two"]}),
    ]
    lines = [json.dumps({"msg_type": k, "content": c}) + "\n" for k, c in messages]

    replay(shell, memoryview("".join(lines).encode()))

    assert capsys.readouterr().out == "x\nx\none\ntwo\n"


SESSION = """\
import sys; from pathlib import Path; from nbckpt.outputs import Recorder, replay
recorder = Recorder(get_ipython(), Path("spill")); show = sys.displayhook
print("<<<"); recorder.start(); print("one"); show(6 * 7); \
recording = recorder.stop(); print(">>>")
print("<<<"); replay(get_ipython(), recording.data()); print(">>>")
"""


def test_a_real_terminal_shows_the_same_again(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner"]
    done = subprocess.run(
        [*command, "--colors=NoColor", "--no-confirm-exit"],
        input=SESSION,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    first, again = re.findall("<<<(.*?)>>>", done.stdout, re.DOTALL)
    assert first == "\none\nOut[3]: 42\n"
    assert again == "\none\nOut[4]: 42\n"

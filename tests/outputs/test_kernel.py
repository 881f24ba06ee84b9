"""In a kernel, all that is sent for the running cell is recorded, and nothing else."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.outputs.kernel import _drain, _waits_for, flush
from tests.outputs.kernels import Kernel

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """Start one kernel for all tests that leave it as it was."""
    with Kernel(tmp_path_factory.mktemp("kernel")) as kernel:
        yield kernel


def text(words: str, name: str = "stdout") -> tuple[str, dict[str, Any]]:
    """Expect a text."""
    return "stream", {"name": name, "text": words}


def test_streams_are_recorded_in_the_order_of_the_wire(kernel: Kernel) -> None:
    code = "print('a'); sys.stdout.flush(); print('b', file=sys.stderr)\n"
    code += "sys.stderr.flush(); print('c')"

    assert kernel.record(code) == [text("a\n"), text("b\n", "stderr"), text("c\n")]


def test_output_before_the_start_and_after_the_stop_is_not_recorded(
    kernel: Kernel,
) -> None:
    code = "print('a'); recorder.start(); print('b'); r = recorder.stop(); print('c')"

    assert kernel.text(code) == "a\nb\nc\n"
    assert kernel.value("messages(r)") == [list(text("b\n"))]


@pytest.mark.parametrize(
    ("ask", "shown"),
    [
        ("input('Name?')", "Name? Ada\n"),
        ("__import__('getpass').getpass('Key:')", "Key: ········\n"),
    ],
)
def test_answer_is_recorded_as_a_page_shows_it(
    ask: str, shown: str, kernel: Kernel
) -> None:
    kernel.client.execute_interactive(
        f"recorder.start()\nanswer = {ask}\nrecording = recorder.stop()",
        timeout=60,
        allow_stdin=True,
        stdin_hook=lambda _: kernel.client.input("Ada"),
    )

    assert kernel.value("messages(recording)") == [list(text(shown, "stdin"))]
    assert kernel.value("answer") == "Ada"


def test_output_for_another_request_is_not_recorded(kernel: Kernel) -> None:
    code = "k = shell.kernel\nother = {'header': {'msg_id': 'another'}}\n"
    for parent in ["other", "None", "{}"]:
        code += "k.session.send(k.iopub_socket, 'stream', "
        code += f"{{'name': 'stdout', 'text': 'x'}}, parent={parent})\n"

    assert kernel.record(f"{code}print('ours')") == [text("ours\n")]


def test_output_for_our_request_is_recorded_however_it_is_sent(kernel: Kernel) -> None:
    code = "k = shell.kernel; parent = shell.get_parent()\n"
    code += "k.session.send(k.iopub_socket, 'stream', parent=parent,"
    code += " content={'name': 'stdout', 'text': 'x'})\n"
    code += "k.session.send(k.iopub_socket, k.session.msg('stream',"
    code += " {'name': 'stdout', 'text': 'y'}, parent=parent))"

    assert kernel.record(code) == [text("xy")]


def test_what_is_sent_in_odd_ways_disturbs_nothing(kernel: Kernel) -> None:
    code = "k = shell.kernel; parent = shell.get_parent()\n"
    code += "k.session.send(k.iopub_socket, 'clear_output', parent=parent)\n"
    code += "k.session.send(k.iopub_socket, None, {}, parent,"
    code += " header=k.session.msg_header('debug_event'))\nprint('a')"

    assert kernel.record(code) == [text("a\n")]


def test_other_messages_for_our_request_are_not_recorded(kernel: Kernel) -> None:
    code = "k = shell.kernel\nk.session.send(k.iopub_socket, 'status',"
    code += " {'execution_state': 'busy'}, parent=shell.get_parent())"

    assert kernel.record(code) == []


def test_output_of_threads_is_recorded(kernel: Kernel) -> None:
    code = "def work(): print('a'); display(HTML('b')); print('c', file=sys.stderr)\n"
    code += "t = threading.Thread(target=work); t.start(); t.join()"

    kinds = [kind for kind, _ in kernel.record(code)]
    assert kinds == ["stream", "display_data", "stream"]


@pytest.mark.parametrize(
    "code",
    [
        "os.write(1, b'low')",
        "os.system('printf low')",
        "import subprocess; subprocess.run(['printf', 'low'])",
        "import ctypes; c = ctypes.CDLL(None); c.printf(b'low'); c.fflush(None)",
    ],
)
def test_what_goes_past_python_is_recorded(kernel: Kernel, code: str) -> None:
    """Each several times, as what is read from the pipe arrives a moment later."""
    for _ in range(5):
        assert kernel.record(f"{code};") == [text("low")]


@pytest.mark.skipif(sys.platform != "linux", reason="fork is the way of Linux")
def test_what_a_forked_child_prints_is_recorded_once(kernel: Kernel) -> None:
    code = "import multiprocessing, warnings; warnings.simplefilter('ignore')\n"
    code += "def work(): print('child', flush=True)\n"
    code += "child = multiprocessing.get_context('fork').Process(target=work)\n"
    code += "child.start(); child.join(); print('parent')"

    found = kernel.record(code)

    assert sorted("".join(c["text"] for _, c in found).split()) == ["child", "parent"]


def test_an_output_widget_keeps_its_output(kernel: Kernel) -> None:
    code = "import ipywidgets; out = ipywidgets.Output()\nprint('a')\n"
    code += "with out: print('within'); display(HTML('within')); clear_output()\n"
    code += "print('b')"

    assert kernel.record(code) == [text("a\nb\n")]


def test_the_value_of_the_last_line_is_a_result(kernel: Kernel) -> None:
    kernel.run("recorder.start()\nsys.displayhook(6 * 7)\nr = recorder.stop()")

    assert kernel.value("r.has_result") is True
    assert kernel.value("messages(r)") == [
        ["execute_result", {"data": {"text/plain": "42"}, "metadata": {}}]
    ]


def test_a_replay_has_the_execution_count_and_request_of_its_cell(
    kernel: Kernel,
) -> None:
    kernel.run("recorder.start()\nsys.displayhook(42)\nr = recorder.stop()")

    (given, shown) = kernel.run("replay(shell, r.data())")

    assert given[0] == "execute_input"
    assert shown[0] == "execute_result"
    assert shown[1]["execution_count"] == given[1]["execution_count"]


def test_a_replay_comes_after_what_was_printed_and_before_what_follows(
    kernel: Kernel,
) -> None:
    kernel.run("recorder.start()\nprint('b')\nr = recorder.stop()")

    assert kernel.text("print('a'); replay(shell, r.data()); print('c')") == "a\nb\nc\n"


def test_a_replay_is_not_recorded(kernel: Kernel) -> None:
    kernel.run("recorder.start()\nprint('a'); display(1)\nr = recorder.stop()")

    assert kernel.record("replay(shell, r.data()); print('b')") == [text("b\n")]


def test_a_replay_of_many_displays_and_much_text_is_complete(kernel: Kernel) -> None:
    code = "for n in range(700): display(HTML(str(n)))\n"
    code += "for n in range(90): print('x' * 99_999)"
    kernel.run(f"recorder.start()\n{code}\nr = recorder.stop()")

    shown = kernel.run("replay(shell, r.data()); r.close()")

    numbers = [c["data"]["text/html"] for k, c in shown if k == "display_data"]
    assert numbers == [str(n) for n in range(700)]
    assert sum(len(c["text"]) for k, c in shown if k == "stream") == 9_000_000


def test_a_recording_that_fails_does_not_disturb_the_cell(kernel: Kernel) -> None:
    kernel.run("Path('file').write_text(''); bad = Recorder(shell, Path('file/spill'))")
    printed = kernel.text(
        "bad.start()\nfor n in range(30): print('x' * 99_999)\nprint('end')\n"
        "try: bad.stop()\nexcept OSError as error: print(type(error).__name__)\n"
        "bad.start(); print('again'); print(len(bad.stop().data()) > 0)"
    )
    kernel.run("bad.uninstall()")

    assert printed.endswith("x\nend\nNotADirectoryError\nagain\nTrue\n")
    assert len(printed) > 3_000_000


def test_figures_are_shown_at_the_stop(kernel: Kernel) -> None:
    pytest.importorskip("matplotlib_inline")
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint('before')"
    kernel.run("%matplotlib inline")

    found = kernel.record(code)

    assert [kind for kind, _ in found] == ["stream", "display_data"]
    assert "image/png" in found[1][1]["data"]


def test_nothing_is_wrapped_before_the_start_and_after_the_uninstall(
    kernel: Kernel,
) -> None:
    wrapped = "['send' in vars(shell.kernel.session),"
    wrapped += " 'send_multipart' in vars(shell.kernel.iopub_thread)]"
    kernel.run("recorder.uninstall()")
    assert kernel.value(wrapped) == [False, False]
    assert kernel.record("print('a')") == [text("a\n")]
    assert kernel.value(wrapped) == [True, True]
    kernel.run("recorder.uninstall()")
    assert kernel.value(wrapped) == [False, False]


def test_a_killed_kernel_leaves_no_file(tmp_path: Path) -> None:
    with Kernel(tmp_path) as kernel:
        kernel.run("recorder.start()\nfor n in range(30): print('x' * 99_999)")
        kernel.run("sys.stdout.flush()")
        held = [Path(f"/proc/{kernel.value('os.getpid()')}/fd/{n}") for n in range(99)]
        spilled = [p for p in held if str(kernel.spill) in _target(p)]
        os.kill(kernel.value("os.getpid()"), signal.SIGKILL)

    assert spilled
    assert list(kernel.spill.iterdir()) == []


def _target(link: Path) -> str:
    """Return where a link points, if it is one."""
    return str(link.readlink()) if link.is_symlink() else ""


class Stream:
    """A stream as ipykernel makes it, whose pipe a thread reads."""

    def __init__(self) -> None:
        self._fid, self.end = os.pipe()
        self.read: list[bytes] = []
        self.hold = threading.Event()
        self.watch_fd_thread = threading.Thread(target=self._watch)
        self.watch_fd_thread.start()

    def _watch(self) -> None:
        """Read until the pipe is closed, but take note only when allowed."""
        while data := os.read(self._fid, 99):
            self.hold.wait()
            self.read.append(data)

    def close(self) -> None:
        """End the thread."""
        self.hold.set()
        os.close(self.end)
        self.watch_fd_thread.join()
        os.close(self._fid)


@pytest.fixture
def stream() -> Iterator[Stream]:
    """Give a stream and close it."""
    stream = Stream()
    yield stream
    stream.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_draining_waits_for_a_thread_that_holds_what_it_has_read(
    stream: Stream,
) -> None:
    os.write(stream.end, b"a")
    threading.Timer(0.1, stream.hold.set).start()

    _drain(stream, end=float("inf"))

    assert stream.read == [b"a"]


def test_draining_gives_up_in_the_end(stream: Stream) -> None:
    os.write(stream.end, b"a")

    _drain(stream, end=0)

    assert stream.read == []


def test_a_stream_without_pipe_needs_no_draining() -> None:
    _drain(sys.stdout, end=float("inf"))
    _drain(None, end=float("inf"))


def test_where_the_system_does_not_tell_a_moment_is_given(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda _: Path("/nowhere").stat())

    assert _waits_for(stream.watch_fd_thread, stream._fid)


def test_flushing_passes_over_what_cannot_be_flushed(tmp_path: Path) -> None:
    closed = (tmp_path / "file").open("w")
    closed.close()

    flush(None, closed, sys.stdout)

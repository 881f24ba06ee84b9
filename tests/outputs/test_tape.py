"""Lines lie in order, in memory or in an unnamed file, and take bounded room."""

from __future__ import annotations

import contextlib
import json
import stat
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbckpt.outputs.tape import SPILL_LIMIT, Recording, Tape, encode

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator


@pytest.fixture
def tape(tmp_path: Path) -> Iterator[Tape]:
    """Give a tape that spills into a folder that does not exist yet."""
    tape = Tape(tmp_path / "spill")
    yield tape
    tape.close()


def lines(tape: Tape) -> list[bytes]:
    """Finish a tape and return its lines."""
    recording = Recording(tape.finish())
    text = bytes(recording.data())
    recording.close()
    return text.splitlines(keepends=True)


def line(number: int, size: int = 0) -> bytes:
    """Make a line that is told from others."""
    return f"{number}{'.' * size}\n".encode()


def open_files(folder: Path) -> list[os.stat_result]:
    """Return the open files of this process that lie in a folder, unnamed ones too."""
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return [link.stat() for link in links if folder in link.readlink().parents]


@pytest.mark.parametrize("size", [0, SPILL_LIMIT // 2], ids=["memory", "file"])
def test_lines_come_out_in_order(tape: Tape, size: int) -> None:
    for number in range(5):
        tape.append(line(number, size))

    assert lines(tape) == [line(number, size) for number in range(5)]


@pytest.mark.parametrize("size", [0, SPILL_LIMIT // 2], ids=["memory", "file"])
def test_a_replaced_line_stays_in_its_place(tape: Tape, size: int) -> None:
    slots = [tape.append(line(number, size)) for number in range(5)]
    tape.replace(slots[1], line(9, size))

    assert lines(tape) == [line(number, size) for number in [0, 9, 2, 3, 4]]


@pytest.mark.parametrize("size", [0, SPILL_LIMIT // 2], ids=["memory", "file"])
def test_a_wipe_leaves_what_is_kept_in_slots_from_zero_on(
    tape: Tape, size: int
) -> None:
    for number in range(5):
        tape.append(line(number, size))
    tape.wipe([1, 3])
    tape.append(line(5))
    tape.replace(1, line(6))

    assert lines(tape) == [line(1, size), line(6), line(5)]


def test_an_empty_tape_gives_no_bytes(tape: Tape) -> None:
    assert lines(tape) == []


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_tape_is_a_list_whatever_is_done(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The tape against a plain list as its model; large lines force the file."""
    model: list[bytes] = []
    with contextlib.closing(Tape(tmp_path_factory.getbasetemp() / "model")) as tape:
        for number in range(data.draw(st.integers(0, 12))):
            size = data.draw(st.sampled_from([0, 9, SPILL_LIMIT // 3]))
            change(data, tape, model, line(number, size))

        assert lines(tape) == model


def change(data: st.DataObject, tape: Tape, model: list[bytes], new: bytes) -> None:
    """Do the same to a tape and its model."""
    what = data.draw(st.sampled_from(["append", "append", "replace", "wipe"]))
    if what == "append":
        assert tape.append(new) == len(model)
        model.append(new)
    elif what == "replace" and model:
        slot = data.draw(st.integers(0, len(model) - 1))
        tape.replace(slot, new)
        model[slot] = new
    elif what == "wipe":
        kept = data.draw(st.sets(st.sampled_from(range(len(model) or 1))))
        keep = sorted(slot for slot in kept if slot < len(model))
        tape.wipe(keep)
        model[:] = [model[slot] for slot in keep]


def test_few_lines_make_no_folder(tape: Tape, tmp_path: Path) -> None:
    tape.append(line(0, SPILL_LIMIT - 10))

    assert not (tmp_path / "spill").exists()


def test_many_lines_go_to_a_private_file_without_a_name(
    tape: Tape, tmp_path: Path
) -> None:
    for number in range(3):
        tape.append(line(number, SPILL_LIMIT // 2))

    assert list((tmp_path / "spill").iterdir()) == []
    (status,) = open_files(tmp_path / "spill")
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_size > SPILL_LIMIT


def test_a_line_replaced_again_and_again_takes_bounded_room(
    tape: Tape, tmp_path: Path
) -> None:
    slot = tape.append(line(0, SPILL_LIMIT * 2))
    sizes = []
    for number in range(20):
        tape.replace(slot, line(number, SPILL_LIMIT * 2))
        sizes += [status.st_size for status in open_files(tmp_path / "spill")]

    assert max(sizes) < 7 * SPILL_LIMIT
    assert lines(tape) == [line(19, SPILL_LIMIT * 2)]


def test_wiped_lines_give_their_room_back(tape: Tape, tmp_path: Path) -> None:
    for number in range(5):
        tape.append(line(number, SPILL_LIMIT))
    tape.wipe()

    assert open_files(tmp_path / "spill") == []


def test_closing_a_recording_gives_the_room_back(tape: Tape, tmp_path: Path) -> None:
    for number in range(3):
        tape.append(line(number, SPILL_LIMIT))
    recording = Recording(tape.finish())
    view = recording.data()
    assert isinstance(view, memoryview)
    view.release()
    recording.close()
    recording.close()

    assert open_files(tmp_path / "spill") == []


def test_a_view_outlives_the_recording_that_gave_it(tape: Tape) -> None:
    tape.append(line(7, 2 * SPILL_LIMIT))
    recording = Recording(tape.finish())
    view = recording.data()
    recording.close()

    assert bytes(view[:1]) == b"7"


def test_a_closed_recording_has_no_data() -> None:
    recording = Recording()
    assert recording.data() == b""
    recording.close()

    with pytest.raises(ValueError, match="closed"):
        recording.data()


def test_a_file_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    tape = Tape(tmp_path / "file" / "spill")

    with pytest.raises(OSError, match="Not a directory"):
        tape.append(line(0, 2 * SPILL_LIMIT))


class Oddity:
    """What JSON does not know."""

    def __repr__(self) -> str:
        """Show a constant."""
        return "<oddity>"


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("ä\u2028\n", "ä\u2028\n"),
        ("\ud800", "\ud800"),
        (b"\x89PNG", b64encode(b"\x89PNG").decode()),
        (bytearray(b"a"), b64encode(b"a").decode()),
        (float("inf"), "inf"),
        ((1, 2.5, None, True), [1, 2.5, None, True]),
        ({1: {2: b"a"}}, {"1": {"2": b64encode(b"a").decode()}}),
        ({("a", 1): {3}}, {"('a', 1)": [3]}),
        (Oddity(), "<oddity>"),
    ],
    ids=repr,
)
def test_any_content_becomes_one_line_of_json(value: Any, stored: Any) -> None:
    text = encode("display_data", {"data": {"x": value}})

    assert text.count(b"\n") == 1
    assert text.endswith(b"\n")
    assert json.loads(text.decode()) == {
        "msg_type": "display_data",
        "content": {"data": {"x": stored}},
    }

"""Names that a loop builds up stand as of the last item that is done."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.errors import BadStep, SaveFailed
from nbckpt.loops import savepoints
from nbckpt.state.checkpoints import Checkpoints
from nbckpt.state.garbage import collect
from tests.crash import tidy

if TYPE_CHECKING:
    from nbckpt.records import LoopRecord
    from tests.notebook import Notebook

LIST = """%%step a --ignore stop
import random
random.seed(5)
results, alias = [], None
for item in nbckpt.items(range(8), keep="results", every=1):
    results.append((item, random.random()))
    if item == stop:
        1 / 0
"""


@pytest.fixture
def notebook(notebook: Notebook) -> Notebook:
    prepare(notebook)
    return notebook


def prepare(notebook: Notebook, stop: object = None) -> None:
    notebook.run("import nbckpt")
    notebook.names["stop"] = stop


def fail_at(notebook: Notebook, item: object, source: str) -> None:
    """Run a cell that fails at an item, and begin a new kernel."""
    notebook.names["stop"] = item
    assert isinstance(notebook.error(source), ZeroDivisionError)
    notebook.restart()
    prepare(notebook)


def loop(notebook: Notebook) -> LoopRecord:
    (found,) = notebook.journal.loops(notebook.session.run_id, "a")
    return found


def uninterrupted() -> list[tuple[int, float]]:
    own = random.Random(5)
    return [(item, own.random()) for item in range(8)]


@pytest.mark.parametrize("item", [0, 1, 4, 7])
def test_list_and_random_stream_go_on_as_if_nothing_had_been(
    notebook: Notebook, item: int
) -> None:
    fail_at(notebook, item, LIST)
    notebook.run(LIST)
    assert notebook.names["results"] == uninterrupted()


def test_list_without_the_random_stream_would_differ(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: the stream is what makes the draws equal."""
    monkeypatch.setattr(savepoints.ambient, "streams", dict)
    fail_at(notebook, 4, LIST)
    notebook.run(LIST)
    assert notebook.names["results"] != uninterrupted()


def test_kept_names_stand_when_every_item_was_done(notebook: Notebook) -> None:
    source = LIST + "if stop == 'end': 1 / 0\n"
    fail_at(notebook, "end", source)
    notebook.run(source)
    assert notebook.names["results"] == uninterrupted()


def test_items_since_the_last_save_run_again(notebook: Notebook) -> None:
    """Done marks without what they stand for would lose work."""
    source = LIST.replace("every=1", "every=3")
    fail_at(notebook, 5, source)
    notebook.run(source)
    assert notebook.names["results"] == uninterrupted()


def test_names_that_share_objects_with_kept_ones_are_kept_with_them(
    notebook: Notebook,
) -> None:
    source = LIST.replace("alias = [], None", "alias = [], []\nalias = results")
    fail_at(notebook, 4, source)
    notebook.run(source)
    assert notebook.names["alias"] is notebook.names["results"]


def test_alias_made_in_another_cell_is_kept_too(notebook: Notebook) -> None:
    before = "results = []\nalias = results"
    source = LIST.replace("results, alias = [], None", "")
    notebook.run(before)
    notebook.names["stop"] = 4
    notebook.error(source)
    notebook.restart()
    prepare(notebook)
    notebook.run(before)
    notebook.run(source)
    assert notebook.names["alias"] is notebook.names["results"]
    assert notebook.names["results"] == uninterrupted()


def test_generator_that_the_body_names_is_kept(notebook: Notebook) -> None:
    source = LIST.replace("random.seed(5)", "draw = random.Random(5)").replace(
        "random.random()", "draw.random()"
    )
    fail_at(notebook, 4, source)
    notebook.run(source)
    assert notebook.names["results"] == uninterrupted()


def test_lazy_items_that_draw_themselves_are_passed_over(notebook: Notebook) -> None:
    """Passing over draws as the first time; then the stream stands as it was saved."""
    source = LIST.replace("range(8)", "(n for n in range(8) if random.random() >= 0)")
    notebook.run(source)
    whole = notebook.names["results"]
    notebook.run("%nbckpt rerun a")
    fail_at(notebook, 4, source)
    notebook.run(source)
    assert notebook.names["results"] == whole


TRAINING = """%%step a --ignore stop
import numpy as np
rng = np.random.default_rng(3)
weights = np.zeros(40_000)
view = weights[:10]
for epoch in nbckpt.items(range(6), keep=("weights",), every=1):
    weights[epoch * 1000 : epoch * 1000 + 3000] += rng.normal(size=3000)
    if epoch == stop:
        1 / 0
"""


def test_weights_go_on_and_views_stay_views(notebook: Notebook) -> None:
    np = pytest.importorskip("numpy")
    notebook.run(TRAINING)
    whole = notebook.names["weights"].copy()
    notebook.run("%nbckpt rerun a")
    fail_at(notebook, 3, TRAINING)
    notebook.run(TRAINING)
    assert np.array_equal(notebook.names["weights"], whole)
    assert np.shares_memory(notebook.names["view"], notebook.names["weights"])


MODEL = """%%step a --ignore stop
import torch
torch.manual_seed(1)
model = torch.nn.Linear(50, 50)
optimizer = torch.optim.Adam(model.parameters())
for epoch in nbckpt.items(range(6), keep=("model", "optimizer"), every=1):
    loss = (model(torch.randn(8, 50)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch == stop:
        1 / 0
"""


def test_model_and_optimizer_go_on_and_share_their_parameters(
    notebook: Notebook,
) -> None:
    torch = pytest.importorskip("torch")
    notebook.run(MODEL)
    whole = notebook.names["model"].weight.detach().clone()
    notebook.run("%nbckpt rerun a")
    fail_at(notebook, 3, MODEL)
    notebook.run(MODEL)
    model, optimizer = notebook.names["model"], notebook.names["optimizer"]
    assert torch.equal(model.weight.detach(), whole)
    assert optimizer.param_groups[0]["params"][0] is model.weight


LARGE = """%%step a --ignore stop
import numpy as np
table = np.random.default_rng(1).random(1_000_000)
for item in nbckpt.items(range(6), keep="table", every=1):
    table[0] = item
    if item == stop:
        1 / 0
"""


def test_only_changed_chunks_are_written_and_superseded_packs_go(
    notebook: Notebook,
) -> None:
    pytest.importorskip("numpy")
    notebook.names["stop"] = 5
    notebook.error(LARGE)
    files = sorted(Path(".nbckpt/packs").glob("*.pack"))
    size = sum(path.stat().st_size for path in files)
    assert 8_000_000 < size < 8_000_000 + 2 * 300_000
    assert len(files) == 2
    assert len(notebook.session.store.keys("pack/")) == 2


def test_packs_of_a_loop_go_when_the_step_is_complete(notebook: Notebook) -> None:
    pytest.importorskip("numpy")
    fail_at(notebook, 3, LARGE)
    notebook.run(LARGE)
    assert loop(notebook).contents is None
    record = notebook.journal.step(notebook.session.run_id, "a")
    assert record is not None
    rows = notebook.session.store.keys("pack/")
    assert rows == [f"pack/{name}" for name in record.contents.packs]
    files = {path.stem for path in Path(".nbckpt/packs").glob("*.pack")}
    assert files <= set(record.contents.packs)


def test_packs_of_a_loop_go_when_its_items_begin_anew(notebook: Notebook) -> None:
    pytest.importorskip("numpy")
    fail_at(notebook, 3, LARGE)
    notebook.run("%nbckpt rerun a")
    fail_at(notebook, 0, LARGE)
    assert list(Path(".nbckpt/packs").glob("*.pack")) == []
    assert notebook.shell is not None


def test_gc_leaves_what_a_loop_keeps(notebook: Notebook) -> None:
    pytest.importorskip("numpy")
    fail_at(notebook, 3, LARGE)
    notebook.run("%nbckpt start")
    collect(notebook.session.store)
    notebook.close()
    left = tidy.read(Path(".nbckpt"))
    assert left.dangling() == []
    assert left.stray() == []
    notebook.shell = notebook._start()
    prepare(notebook)
    notebook.run(LARGE)
    assert notebook.names["table"][0] == 5


def test_name_that_is_not_bound_is_refused(notebook: Notebook) -> None:
    error = notebook.error(LIST.replace('"results"', '"result"'))
    assert isinstance(error, BadStep)
    assert "'result'" in str(error)


def test_value_that_can_not_be_kept_is_refused_with_its_path(
    notebook: Notebook,
) -> None:
    source = LIST.replace("random.random()", "(n for n in ())")
    error = notebook.error(source)
    assert isinstance(error, SaveFailed)
    assert "results[0][1]" in str(error)


def test_name_that_was_not_kept_before_makes_the_items_begin_anew(
    notebook: Notebook,
) -> None:
    """What the done items left in it is lost: passing them over would lose work."""
    source = LIST.replace(', keep="results"', "")
    fail_at(notebook, 4, source.replace("stop", "stop --ignore results", 1))
    notebook.told()
    notebook.run(LIST)
    assert notebook.names["results"] == uninterrupted()
    assert "begin anew" in notebook.told()


def test_damaged_bytes_make_the_items_begin_anew(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_at(notebook, 4, LIST)
    notebook.told()

    def damaged(*_: object) -> Any:
        raise OSError("bad sector")

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "load", damaged)
        notebook.run(LIST)
    assert notebook.names["results"] == uninterrupted()
    assert "what was kept can't be loaded" in notebook.told()


def test_save_waits_nine_times_what_it_took(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop of fast items spends a tenth of its time on saving."""
    clock, saves = [0.0], []
    take = savepoints.Savepoint.take

    def slow(self: savepoints.Savepoint) -> savepoints.Saved:
        saves.append(notebook.names["item"])
        found = take(self)
        self._cost, self._ended = 1.0, clock[0]
        return found

    monkeypatch.setattr(savepoints.Savepoint, "take", slow)
    monkeypatch.setattr(savepoints.time, "monotonic", lambda: clock[0])

    def work() -> None:
        clock[0] += 3.0

    notebook.names["work"] = work
    source = LIST.replace(", every=1", "").replace(
        "results.append", "work()\n    results.append"
    )
    notebook.run(source.replace("--ignore stop", "--ignore stop --ignore work"))
    assert saves == [0, 3, 6, 7]


def test_done_item_whose_file_is_gone_makes_kept_items_begin_anew(
    notebook: Notebook,
) -> None:
    """Run again on top of what it left, the item would be in the list twice."""
    source = LIST.replace(
        "results.append", "open(f'{item}', 'w').close()\n    results.append"
    )
    fail_at(notebook, 4, source)
    Path("2").unlink()
    notebook.told()
    notebook.run(source)
    assert notebook.names["results"] == uninterrupted()
    assert "begin anew: item 2" in notebook.told()


def test_done_item_that_is_no_more_makes_kept_items_begin_anew(
    notebook: Notebook,
) -> None:
    fail_at(notebook, 4, LIST)
    notebook.run(LIST.replace("range(8)", "range(1, 8)"))
    assert [item for item, _ in notebook.names["results"]] == list(range(1, 8))


def test_done_item_of_an_iterator_whose_file_is_gone_stops_the_step(
    notebook: Notebook,
) -> None:
    source = LIST.replace(
        "results.append", "open(f'{item}', 'w').close()\n    results.append"
    )
    source = source.replace("range(8)", "iter(range(8))")
    fail_at(notebook, 4, source)
    Path("2").unlink()
    error = notebook.error(source)
    assert isinstance(error, BadStep)
    assert "nbckpt rerun a" in str(error)

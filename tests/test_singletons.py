"""An object that a process has one of comes back as the one that is there."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any, ClassVar

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from nbckpt.codecs import Canonical
from nbckpt.state import snapshots
from nbckpt.state.values import keep, revive

if TYPE_CHECKING:
    from tests.notebook import Notebook

LEGACY: Any = np.random.mtrand


def through(value: Any) -> Any:
    return revive(*keep("v", value, {}), {})


@pytest.mark.parametrize(
    ("value", "held"),
    [
        (random.gauss, random._inst),  # type: ignore[attr-defined]
        (random.random, random._inst),  # type: ignore[attr-defined]
        ([np.random.normal], LEGACY._rand),
        (LEGACY._rand, LEGACY._rand),
        ({"env": os.environ}, os.environ),
        (mpl.rcParams, mpl.rcParams),
    ],
    ids=["gauss", "random", "normal", "RandomState", "environ", "rcParams"],
)
def test_shared_object_comes_back_as_the_one_that_is_there(
    value: Any, held: Any
) -> None:
    found = through(value)
    while isinstance(found, (list, dict)) and found is not held:
        (found,) = found.values() if isinstance(found, dict) else found
    assert getattr(found, "__self__", found) is held


def test_generator_of_the_users_own_comes_back_with_its_state() -> None:
    own, legacy = random.Random(3), np.random.RandomState(3)
    own.random(), legacy.normal()
    found = through([own, legacy])
    assert found[0] is not own
    assert found[0].random() == own.random()
    assert found[1].normal() == legacy.normal()


def test_digest_of_a_shared_generator_is_not_its_state() -> None:
    before = Canonical({"draw": random.gauss}, {}).digest
    random.random()
    assert Canonical({"draw": random.gauss}, {}).digest == before
    assert Canonical({"draw": random.Random(3).gauss}, {}).digest != before


def test_function_imported_from_random_obeys_the_seed_after_a_skip(
    notebook: Notebook,
) -> None:
    step = "%%step draw\nfrom random import gauss, seed\nseed(3)\nx = gauss(0, 1)"
    notebook.run(step)
    notebook.restart()
    notebook.run(step)
    assert notebook.decision("draw") == "Skip"
    notebook.run("seed(5)\ny = gauss(0, 1)")
    assert notebook.names["y"] == random.Random(5).gauss(0, 1)


def together(one: Any, other: Any) -> bool:
    """Tell whether two values share something that can be changed."""
    values = {"one": one, "other": other}
    return frozenset(values) in snapshots.take(values, {}).components


class Basket:
    """A class of the user's, whose list its instances share."""

    shared: ClassVar[list[str]] = []

    def __init__(self) -> None:
        self.fruit = self.shared


def test_two_frames_have_nothing_in_common_but_what_their_class_holds() -> None:
    one = pd.DataFrame({"a": [1, 2]})
    assert not together(one, one.copy())
    assert not together(one, pd.DataFrame({"a": [1, 2]}))
    assert together(one, [one])
    assert together(Basket(), Basket())


def test_step_that_makes_a_frame_does_not_rest_on_frames_that_it_does_not_read(
    notebook: Notebook,
) -> None:
    notebook.run("import pandas as pd")
    one = "%%step one\na = pd.DataFrame({'k': [1]})"
    other = "%%step other\nb = pd.DataFrame({'k': [2]})"
    notebook.run(one)
    notebook.run(other)
    notebook.restart()
    notebook.run("import pandas as pd")
    notebook.run(one.replace("1", "3"))
    notebook.run(other)
    assert notebook.decision("other") == "Skip"
    assert (notebook.names["a"].k[0], notebook.names["b"].k[0]) == (3, 2)

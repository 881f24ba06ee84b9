"""An object that a process has one of comes back as the one that is there."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pytest

from nbckpt.codecs import Canonical
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

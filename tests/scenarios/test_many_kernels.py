"""Many kernels open one store, which does not exist yet, at the same moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.scenarios.stage import Stage, is_whole, ran

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cases.session import Reply, Session

MANY = 16
LIGHT = "import time\nwhile not os.path.exists('go'): time.sleep(0.005)"
HEAVY = "import numpy as np, pandas as pd"


def start_all(stage: Stage) -> list[Session]:
    store = str(stage.store)
    return [
        stage.kernel(
            NBCKPT_NOTEBOOK=str(stage.work / f"nb_{number}.ipynb"),
            NBCKPT_STORE=store,
            CASE_I=str(number),
        )
        for number in range(MANY)
    ]


def run_together(stage: Stage, kernels: list[Session]) -> list[list[Reply]]:
    """Send all cells to all kernels, which wait for each other before they load."""
    (stage.work / "go").unlink(missing_ok=True)
    sent = [[kernel.send(source) for source in stage.cells()] for kernel in kernels]
    (stage.work / "go").touch()
    replies = [
        [kernel.collect(msg_id) for msg_id in ids]
        for kernel, ids in zip(kernels, sent, strict=True)
    ]
    for kernel in kernels:
        kernel.close()
    return replies


def test_sixteen_kernels_make_one_store_and_each_finds_its_own_run(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("41_store_opened_by_many_at_once")
    stage.edit("%load_ext nbckpt\n", "")
    stage.edit(HEAVY, f"{LIGHT}\n%load_ext nbckpt")
    for number in range(MANY):
        (stage.work / f"nb_{number}.ipynb").write_bytes(stage.notebook.read_bytes())
    first = run_together(stage, start_all(stage))
    failed = [reply.complaint for replies in first for reply in replies if reply.error]
    assert failed == []
    kernels = start_all(stage)
    values = []
    (stage.work / "go").touch()
    for number, kernel in enumerate(kernels):
        replies = stage.run_all(kernel)
        assert is_whole(replies)
        assert ran(first[number], replies) == set()
        values.append(int(kernel.value("value")))
    assert values == [number * 11 for number in range(MANY)]
    assert stage.records().sound


def test_a_place_without_locks_is_refused(stage_of: Callable[[str], Stage]) -> None:
    stage = stage_of("41_store_opened_by_many_at_once")
    kernel = stage.kernel()
    broken = (
        "import errno, fcntl\n"
        "def lockf(*args): raise OSError(errno.ENOLCK, 'No locks available')\n"
        "fcntl.lockf = fcntl.flock = lockf"
    )
    assert kernel.run(broken).status == "ok"
    reply = stage.run_all(kernel)[-1]
    assert "lock" in reply.complaint
    assert "StoreRefused" in reply.complaint
    assert kernel.value("'value' in globals()") == "False"

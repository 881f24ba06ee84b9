"""What a module imports counts, however it does: constants, inside functions, packages."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

import pytest

from nbckpt.inputs.localmodules import sources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.notebook import Notebook

FILES = {
    "k8_top.py": "from k8_pack.inner import helper\n"
    "def f(x):\n    import k8_lazy\n    return k8_lazy.g(x)",
    "k8_lazy.py": "def g(x): return x * 2",
    "k8_pack/__init__.py": "from . import inner",
    "k8_pack/inner.py": "import json\nfrom .limits import LIMIT\nhelper = [LIMIT]",
    "k8_pack/limits.py": "LIMIT = 2",
    "k8_pack/unused.py": "",
    "k8_settings.py": "import json, os\nfrom pathlib import Path\n"
    "MODE = os.environ.get('K8_' + 'MODE')\n"
    "PLAN = json.loads(Path('plan.json').read_text())\ndef plan(): return PLAN",
    "plan.json": "1",
}  # fmt: skip


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    yield tmp_path
    forget()


def forget() -> None:
    """Forget the modules, as another kernel would not know them."""
    for name in [name for name in sys.modules if name.startswith("k8_")]:
        del sys.modules[name]
    importlib.invalidate_caches()


def edit(path: Path, text: str) -> None:
    """Write a source that the compiled form beside it is not taken for."""
    path.write_text(text)
    os.utime(path, (1, len(text)))


@pytest.mark.parametrize("is_imported", [True, False])
@pytest.mark.usefixtures("modules")
def test_all_that_a_module_may_import_counts(is_imported: bool) -> None:
    if is_imported:
        importlib.import_module("k8_top")
    found = sources(["k8_top", "json", "numpy", "k8_none", "nbckpt"])
    assert set(found) == {
        "k8_top", "k8_lazy", "k8_pack", "k8_pack.inner", "k8_pack.limits",
    }  # fmt: skip
    assert is_imported or "k8_top" not in sys.modules


@pytest.mark.parametrize(
    ("text", "is_same"),
    [
        ("# why\n\nLIMIT = (2)", True),
        ("LIMIT = 3", False),
        ("LIMIT = ", False),
    ],
)
def test_code_of_a_module_counts_and_its_layout_does_not(
    text: str, is_same: bool, modules: Path
) -> None:
    before = sources(["k8_top"])["k8_pack.limits"]
    edit(modules / "k8_pack/limits.py", text)
    assert (sources(["k8_top"])["k8_pack.limits"] == before) is is_same


def pass_over(notebook: Notebook, step: str) -> str:
    """Run a notebook of one import and one step in a new kernel; return the reason."""
    forget()
    notebook.restart()
    notebook.run("import k8_top, k8_settings")
    notebook.run(step)
    return "" if notebook.decision("a") == "Skip" else notebook.reason("a")


def test_step_runs_again_where_a_constant_two_modules_deep_changed(
    notebook: Notebook, modules: Path
) -> None:
    step = "%%step a\ny = k8_top.f(2), k8_top.helper[0]"
    assert pass_over(notebook, step)
    assert pass_over(notebook, step) == ""
    edit(modules / "k8_pack/limits.py", "LIMIT = 31")
    assert pass_over(notebook, step) == "module 'k8_pack.limits' changed"
    edit(modules / "k8_lazy.py", "def g(x): return x * 33")
    assert pass_over(notebook, step).startswith("module 'k8_lazy' changed")
    assert notebook.names["y"] == (66, 31)


def test_step_runs_again_where_its_module_read_another_world(
    notebook: Notebook, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = "%%step a\ny = k8_settings.plan(), k8_settings.MODE"
    assert pass_over(notebook, step)
    assert pass_over(notebook, step) == ""
    monkeypatch.setenv("K8_MODE", "fast")
    assert pass_over(notebook, step) == "environment variable 'K8_MODE' changed"
    (modules / "plan.json").write_text("2")
    assert pass_over(notebook, step) == "file 'plan.json' changed"
    assert notebook.names["y"] == (2, "fast")
    assert pass_over(notebook, step) == ""


def test_variable_whose_name_is_made_counts_as_it_was_before_the_step(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = (
        "%%step a\nimport os\nn = 'K8_'\ny = os.getenv(n + 'MODE')\n"
        "os.environ[n + 'OWN'] = 'x'\nz = os.environ[n + 'OWN']"
    )
    monkeypatch.setenv("K8_MODE", "fast")
    notebook.run(step)
    record = notebook.journal.steps(notebook.session.run_id)["a"]
    assert "K8_MODE" in record.fingerprint.environment
    assert "K8_OWN" not in record.fingerprint.environment
    monkeypatch.delenv("K8_OWN")
    notebook.restart()
    notebook.run(step)
    assert notebook.decision("a") == "Skip"
    monkeypatch.setenv("K8_MODE", "slow")
    notebook.restart()
    notebook.run(step)
    assert notebook.reason("a") == "environment variable 'K8_MODE' changed"

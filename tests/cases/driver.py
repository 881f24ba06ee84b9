"""Run a case: a notebook, and the phases of its life in ``case.json``.

Every step of a case sets ``tok_<step>`` to a new random value, so a token never seen
before means that the body ran, and one seen before that the step was skipped and its
variables restored. The operations of a phase:

========  ==========================================================================
run       Run All in a new kernel (or the ``same_kernel``), then compare
baseline  Run All once without interruption, keep ``digest``, start afresh
py        change the world outside with a piece of Python
edit      replace text in a cell; ``insert`` a cell; ``tag`` a cell
move      rename the folder
nbckpt    call the command line with ``words`` (``{run}`` stands for the run)
nbval     validate with nbval, ``times`` over, and see that it ``passes`` or not
========  ==========================================================================
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbclient import NotebookClient

from tests.cases.session import Output, Reply, Session, kernel_env, step_name

if TYPE_CHECKING:
    from collections.abc import Iterator

Phase = dict[str, Any]

DATA = Path(__file__).parent / "data"
STATIC = shutil.ignore_patterns("case.*", "expect.md", "scenario.md")
TRUE = ("True", "np.True_")


class CaseStopped(Exception):
    """The rest of the case makes no sense."""


@dataclass
class Pass:
    """One Run All."""

    status: str = "ok"
    outputs: dict[str, list[Output]] = field(default_factory=dict)
    """Step → what its cell showed."""
    ran: set[str] = field(default_factory=set)
    error: Output | None = None


class Case:
    """The phases of one case, one after the other, in a scratch copy of its folder.

    Parameters
    ----------
    folder : Path
        Holds ``case.ipynb`` and ``case.json``.
    root : Path
        An empty folder to work in.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root, self.work = folder, root, root / "w"
        spec = json.loads((folder / "case.json").read_text("utf-8"))
        self.phases: list[Phase] = spec["phases"]
        self.notebook = nbformat.read(folder / "case.ipynb", 4)
        self.problems: list[str] = []
        self.port = free_port()
        self._number = 0
        self._session: Session | None = None
        self._early: Session | None = None
        self._last: dict[str, str] = {}
        self._first: dict[str, list[Output]] = {}
        self._digest = ""

    def run(self) -> list[str]:
        """Run all phases and return what was not as stated."""
        self._copy()
        try:
            for number, phase in enumerate(self.phases):
                self._number = number
                getattr(self, "_do_" + phase["op"])(phase)
        except CaseStopped:
            pass
        finally:
            self._close()
            if self._early:
                self._early.close()
        return self.problems

    def _bad(self, text: str) -> None:
        """Note a problem."""
        self.problems.append(f"phase {self._number}: {text}")

    def _copy(self) -> None:
        """Make the scratch copy, without the case's own files."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.folder, self.work, ignore=STATIC)

    def _close(self) -> None:
        """End the kernel."""
        if self._session:
            self._session.close()
        self._session = None

    def _env(self, phase: Phase) -> dict[str, str]:
        """Return the environment of a phase."""
        extra = {"CASE_PORT": str(self.port), **phase.get("env", {})}
        if phase.get("hashseed"):
            extra["PYTHONHASHSEED"] = phase["hashseed"]
        return kernel_env(self.root, extra)

    def _cell(self, key: int | str) -> Any:
        """Return a cell by position or by step name."""
        if isinstance(key, int):
            return self.notebook.cells[key]
        return next(cell for cell in self._code() if step_name(cell.source) == key)

    def _code(self) -> Iterator[Any]:
        """Return the code cells."""
        return (cell for cell in self.notebook.cells if cell.cell_type == "code")

    def _next_session(self, phase: Phase) -> Session:
        """Return a new kernel, and start the one of the run to come early."""
        self._close()
        session, self._early = self._early, None
        session = session or Session(self.work, self._env(phase))
        coming = self._coming_run()
        if coming is not None:
            self._early = Session(self.work, self._env(coming))
        return session

    def _coming_run(self) -> Phase | None:
        """Return the next run whose folder and kernel are settled already."""
        for phase in self.phases[self._number + 1 :]:
            if phase["op"] == "run" and not phase.get("same_kernel"):
                return phase
            if phase["op"] in ("move", "baseline", "nbval"):
                return None
        return None

    def _run_all(self, phase: Phase) -> Pass:
        """Run the code cells in order until one fails."""
        if not phase.get("same_kernel"):
            self._session = self._next_session(phase)
        assert self._session is not None
        done = Pass()
        for cell in self._code():
            reply = self._session.run(cell.source)
            self._take(done, step_name(cell.source), reply)
            if reply.status != "ok":
                break
        return done

    def _take(self, done: Pass, step: str | None, reply: Reply) -> None:
        """Add one cell to a pass."""
        done.status, done.error = reply.status, reply.error
        done.ran |= {
            name.removeprefix("tok_")
            for name, token in reply.tokens.items()
            if self._last.get(name) != token
        }
        self._last.update(reply.tokens)
        if step:
            done.outputs[step] = reply.outputs

    def _do_run(self, phase: Phase) -> None:
        """Run All and compare."""
        done = self._run_all(phase)
        self._judge_end(phase, done)
        self._judge_steps(phase, done)
        if done.status != "dead":
            self._judge_values(phase)
        self._judge_outputs(phase, done.outputs)
        for step, outputs in done.outputs.items():
            self._first.setdefault(step, outputs)

    def _do_baseline(self, phase: Phase) -> None:
        """Keep the digest of a run without interruption; start afresh."""
        self._session = Session(self.work, self._env(phase))
        done = self._run_all({**phase, "same_kernel": True})
        if done.status != "ok":
            self._bad(f"uninterrupted run failed: {done.error or done.status}")
            raise CaseStopped
        self._digest = self._session.value("digest")
        self._close()
        self._copy()
        self._last = {}

    def _judge_end(self, phase: Phase, done: Pass) -> None:
        """See that the pass ended as stated."""
        error = done.error or {"ename": "", "evalue": ""}
        text = error["ename"] + error["evalue"]
        if phase.get("dies"):
            if done.status != "dead":
                self._bad("the kernel should have died")
        elif done.status == "dead":
            self._bad("the kernel died")
            raise CaseStopped
        if phase.get("error", "") not in text:
            self._bad(f"expected error {phase['error']}, got {text[:200] or 'none'}")
        elif done.error and "error" not in phase:
            self._bad(f"error {error['ename']}: {error['evalue'][:300]}")

    def _judge_steps(self, phase: Phase, done: Pass) -> None:
        """See which steps ran."""
        for step in phase.get("skipped", []):
            if step not in done.outputs:
                self._bad(f"{step} not reached")
            elif step in done.ran:
                self._bad(f"{step} ran, should be skipped")
        for step in phase.get("ran", []):
            if step not in done.ran and phase.get("error") != step:
                self._bad(f"{step} skipped, should run")

    def _judge_values(self, phase: Phase) -> None:
        """See that the checks hold."""
        assert self._session is not None
        for expression in phase.get("check", []):
            value = self._session.value(expression)
            if not value.startswith(TRUE):
                self._bad(f"check {expression} -> {value}")
        for name in phase.get("same", []):
            value = self._session.value(name)
            if value != self._digest:
                self._bad(f"{name} differs from the uninterrupted run ({value[:40]})")

    def _judge_outputs(self, phase: Phase, shown: dict[str, list[Output]]) -> None:
        """See what the cells showed."""
        self._judge_parts(phase.get("out", {}), shown, wanted=True)
        self._judge_parts(phase.get("notout", {}), shown, wanted=False)
        self._judge_kinds(phase, shown)
        for step in phase.get("same_out", []):
            first, now = self._first.get(step, []), shown.get(step, [])
            if plain(first) != plain(now):
                self._bad(f"output of {step} differs: {plain(first)} != {plain(now)}")

    def _judge_parts(
        self,
        stated: dict[str, list[str]],
        shown: dict[str, list[Output]],
        *,
        wanted: bool,
    ) -> None:
        """See that parts of the outputs are there, or are not."""
        for step, parts in stated.items():
            text = json.dumps(shown.get(step, []))
            for part in parts:
                if (part in text) != wanted:
                    self._bad(
                        f"output of {step} {'lacks' if wanted else 'has'} {part!r}"
                    )

    def _judge_kinds(self, phase: Phase, shown: dict[str, list[Output]]) -> None:
        """See the kinds of the outputs and the text of the streams."""
        for step, kinds in phase.get("mime", {}).items():
            seen = [kind_of(out, kinds) for out in shown.get(step, [])]
            if seen != kinds:
                self._bad(f"output kinds of {step}: {seen}")
        for step, streams in phase.get("stream", {}).items():
            reply = Reply("ok", shown.get(step, []))
            for name, text in streams.items():
                if reply.text(name) != text:
                    self._bad(f"{name} of {step}: {reply.text(name)!r}")

    def _do_py(self, phase: Phase) -> None:
        """Change the world outside."""
        command = [sys.executable, "-c", phase["code"]]
        done = subprocess.run(
            command, cwd=self.work, capture_output=True, text=True, check=False
        )
        if done.returncode:
            self._bad("outside change failed: " + done.stderr.strip().splitlines()[-1])

    def _do_edit(self, phase: Phase) -> None:
        """Replace text in a cell."""
        cell = self._cell(phase["cell"])
        assert phase["old"] in cell.source, f"nothing to edit in {phase['cell']}"
        cell.source = cell.source.replace(phase["old"], phase["new"])

    def _do_insert(self, phase: Phase) -> None:
        """Insert a plain cell."""
        self.notebook.cells.insert(phase["at"], nbformat.v4.new_code_cell(phase["src"]))

    def _do_tag(self, phase: Phase) -> None:
        """Tag a cell."""
        tags = self._cell(phase["cell"]).metadata.setdefault("tags", [])
        tags.append(phase["tag"])

    def _do_move(self, phase: Phase) -> None:
        """Rename the folder."""
        assert phase["op"] == "move"
        self._close()
        self.work = self.work.rename(self.root / "moved")

    def _do_nbckpt(self, phase: Phase) -> None:
        """Call the command line, and compare what it says and its exit code."""
        run = "{run}" in phase["words"] and self._current_run()
        words = [run if word == "{run}" else word for word in phase["words"]]
        done = self._nbckpt(*words)
        if done.returncode != phase.get("exit", 0):
            self._bad(f"nbckpt {words[0]} exit {done.returncode}: {done.stderr[-600:]}")
        for part in phase.get("out", []):
            if part not in done.stdout:
                self._bad(f"nbckpt {words[0]} lacks {part!r}: {done.stdout[-600:]}")

    def _current_run(self) -> str:
        """Return the name of the run that was begun last."""
        run: str = json.loads(self._nbckpt("runs", "--json").stdout)[-1]["run"]
        return run

    def _nbckpt(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Return what the command line says to the user of the kernels."""
        command = [sys.executable, "-c", "from nbckpt.cli import main; main()"]
        return subprocess.run(
            [*command, *words],
            cwd=self.work,
            env=kernel_env(self.root),
            capture_output=True,
            text=True,
            check=False,
        )

    def _do_nbval(self, phase: Phase) -> None:
        """Validate the notebook with nbval, several times over."""
        self._close()
        path = self.work / "nb.ipynb"
        nbformat.write(self._reference(path, passes=phase["passes"]), path)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        for _ in range(phase["times"]):
            done = subprocess.run(
                [*command, "--nbval", path.name],
                cwd=self.work,
                env=kernel_env(self.root),
                capture_output=True,
                text=True,
                check=False,
            )
            if (done.returncode == 0) != phase["passes"]:
                self._bad(f"nbval exit {done.returncode}: {done.stdout[-600:]}")
                break

    def _reference(self, path: Path, *, passes: bool) -> Any:
        """Return the notebook with outputs to compare with.

        A notebook that is to fail keeps the outputs of the code before its edit.
        """
        if passes or not path.exists():
            notebook = nbformat.reads(nbformat.writes(self.notebook), 4)
            resources = {"metadata": {"path": str(self.work)}}
            NotebookClient(notebook, resources=resources).execute(
                env=kernel_env(self.root)
            )
            return notebook
        notebook = nbformat.read(path, 4)
        for old, new in zip(notebook.cells, self.notebook.cells, strict=True):
            old.source = new.source
        return notebook


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def plain(outputs: list[Output]) -> list[tuple[str, ...]]:
    """Return outputs without object addresses, for comparison."""
    return [_plain(out) for out in outputs]


def _plain(out: Output) -> tuple[str, ...]:
    """Return one output without object addresses."""
    if out["t"] == "stream":
        return ("stream", out["name"], out["text"])
    if out["t"] == "error":
        return ("error", out["ename"])
    data = json.dumps(out["data"], sort_keys=True)
    return ("data", re.sub(r"0x[0-9a-f]+", "0x", data))


def kind_of(out: Output, wanted: list[str]) -> str:
    """Return an output's kind: ``stream``, or the mime type that was wanted."""
    if out["t"] == "stream":
        return "stream"
    found = (kind for kind in wanted if kind in out.get("data", {}))
    kind: str = next(found, out["t"])
    return kind

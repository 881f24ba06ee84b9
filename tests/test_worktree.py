"""The Git worktree is recorded at each step; another one, or another branch, stops."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from nbckpt.cli import main
from nbckpt.errors import StopForHuman
from nbckpt.records import Worktree
from nbckpt.runs import worktree
from nbckpt.runs.worktree import changed_files, compare, read
from nbckpt.verbs import in_notebook
from tests.notebook import Notebook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WHO = {
    f"GIT_{who}_{what}": "a@b"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}
STEP = "%%step a\nx = 1"


def git(folder: Path, *words: str) -> str:
    """Run git without the user's own settings."""
    clean = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", *words],
        cwd=folder, env={**os.environ, **WHO, **clean}, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with one commit."""
    top = tmp_path / "repo"
    (top / "deep").mkdir(parents=True)
    (top / "code.py").write_text("x = 1\n")
    git(top, "init", "-q")
    git(top, "add", "code.py")
    git(top, "commit", "-q", "-m", "first")
    return top


@pytest.fixture
def notebook(
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Notebook]:
    """Return a notebook in the repository, after its first step."""
    monkeypatch.chdir(repository)
    notebook = Notebook(capsys)
    notebook.run(STEP)
    notebook.told()
    yield notebook
    notebook.close()


def test_folder_outside_of_git_has_no_worktree(tmp_path: Path) -> None:
    assert read(tmp_path) is None


def test_worktree_is_read_as_git_tells_it(repository: Path) -> None:
    found = read(repository / "deep")
    assert found == Worktree(
        str(repository), "main", git(repository, "rev-parse", "HEAD")
    )


def test_branch_without_a_commit_has_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert read(tmp_path) == Worktree(str(tmp_path), "main", "")


def test_commit_in_packed_refs_is_found(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "some/topic")
    git(repository, "pack-refs", "--all")
    found = read(repository)
    assert found is not None
    assert (found.branch, found.commit) == (
        "some/topic",
        git(repository, "rev-parse", "HEAD"),
    )


def test_commit_without_a_branch_has_an_empty_one(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    found = read(repository)
    assert found is not None
    assert found.branch == ""
    assert found.commit == git(repository, "rev-parse", "HEAD")


def test_linked_worktree_has_its_own_path_and_branch(repository: Path) -> None:
    other = repository.parent / "other"
    git(repository, "worktree", "add", "-q", "-b", "side", str(other))
    assert read(other) == Worktree(
        str(other), "side", git(repository, "rev-parse", "HEAD")
    )


@pytest.mark.parametrize("text", ["", "gitdir: nowhere", "\udcff"])
def test_broken_mark_of_a_worktree_is_no_worktree(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert read(tmp_path) is None


def test_only_tracked_files_that_differ_are_listed(repository: Path) -> None:
    assert changed_files(repository) == ()
    (repository / "new.txt").write_text("untracked")
    (repository / "code.py").write_text("x = 2\n")
    (repository / "name with\nbreak.py").write_text("")
    git(repository, "add", "name with\nbreak.py")
    assert changed_files(repository) == ("code.py", "name with\nbreak.py")


def test_renamed_file_stands_under_both_names(repository: Path) -> None:
    git(repository, "mv", "code.py", "renamed.py")
    assert changed_files(repository) == ("code.py", "renamed.py")


def test_program_that_a_repository_names_does_not_run(repository: Path) -> None:
    git(repository, "config", "core.fsmonitor", "touch pwned; false")
    assert changed_files(repository) == ()
    assert not (repository / "pwned").exists()


@pytest.mark.parametrize("word", ["no-such-git", "false"])
def test_git_that_does_not_answer_fails_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setattr(worktree, "STATUS", (word,))
    assert changed_files(repository) is None


def test_git_that_takes_too_long_is_ended(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worktree, "SECONDS", 0.05)
    monkeypatch.setattr(worktree, "STATUS", ("sleep", "60"))
    assert changed_files(repository) is None


HERE = Worktree("/r", "main", "a" * 40, ("x.py",))


@pytest.mark.parametrize(
    ("now", "stop", "told"),
    [
        (HERE, "", ""),
        (None, "and this is none", ""),
        (replace(HERE, path="/other"), "worktree /r, this is /other", ""),
        (replace(HERE, branch="dev"), "on branch main, this is branch dev", ""),
        (replace(HERE, branch=""), "commit aaaaaaaaaaaa without a branch", ""),
        (replace(HERE, commit="b" * 40), "", "commit bbbbbbbbbbbb, was aaaaaaaaaaaa"),
        (replace(HERE, changed=("y.py",)), "", "since: y.py; no longer changed: x.py"),
        (replace(HERE, changed=None), "", ""),
    ],
)
def test_other_place_stops_and_other_state_is_told(
    now: Worktree | None, stop: str, told: str
) -> None:
    found = compare(HERE, now)
    assert (bool(found.stop), bool(found.told)) == (bool(stop), bool(told))
    assert stop in found.stop
    assert told in found.told


def test_path_of_another_machine_is_not_compared() -> None:
    assert compare(replace(HERE, path=""), HERE).stop == ""


def test_each_step_records_where_it_ran(notebook: Notebook, repository: Path) -> None:
    (repository / "code.py").write_text("x = 2\n")
    notebook.session.worktree._until = 0.0
    notebook.run("%%step b\ny = 1")
    attempts = notebook.journal.attempts(notebook.session.run_id)
    first, second = attempts["a"].worktree, attempts["b"].worktree
    assert first is not None
    assert second is not None
    assert (first.branch, first.changed) == ("main", ())
    assert second.changed == ("code.py",)
    assert worktree.recorded(notebook.session.store, "notebook-1") == second


def test_list_of_changed_files_is_not_made_anew_for_each_quick_step(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(worktree, "changed_files", asked.append)
    notebook.session.worktree._until = float("inf")
    notebook.session.worktree.look()
    assert asked == []
    notebook.session.worktree._until = 0.0
    notebook.session.worktree.look()
    assert len(asked) == 1


def test_other_branch_stops_until_the_user_accepts_it(
    notebook: Notebook, repository: Path
) -> None:
    git(repository, "checkout", "-q", "-b", "other")
    notebook.restart()
    error = notebook.error(STEP)
    assert isinstance(error, StopForHuman)
    assert "on branch main, this is branch other" in str(error)
    assert "x" not in notebook.names
    assert "accept --worktree" in error.remedy
    said = in_notebook(notebook.session, "accept --worktree")
    assert said.endswith(f"{repository}, branch other")
    notebook.run(STEP)
    assert notebook.decision("a") == "Skip"


def test_going_back_to_the_branch_goes_on(notebook: Notebook, repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "other")
    notebook.restart()
    notebook.error(STEP)
    git(repository, "checkout", "-q", "main")
    notebook.run(STEP)
    assert notebook.decision("a") == "Skip"


def test_other_commit_is_told_once_and_recorded(
    notebook: Notebook, repository: Path
) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    notebook.restart()
    notebook.run(STEP)
    assert notebook.decision("a") == "Skip"
    assert "commit " in notebook.told()
    lines = notebook.journal.history("notebook-1")
    assert "was " in [e for _, e in lines if e.kind == "worktree"][-1].reason
    notebook.restart()
    notebook.run(STEP)
    assert "commit" not in notebook.told()


def test_moved_worktree_stops(
    notebook: Notebook, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.close()
    moved = repository.rename(repository.with_name("moved"))
    monkeypatch.chdir(moved)
    notebook.shell = notebook._start()
    assert "worktree" in str(notebook.error(STEP))


def test_repository_that_is_gone_can_be_accepted(
    notebook: Notebook, repository: Path
) -> None:
    (repository / ".git").rename(repository / "gone")
    notebook.restart()
    assert "this is none" in str(notebook.error(STEP))
    said = in_notebook(notebook.session, "accept --worktree")
    assert "in no Git worktree" in said
    notebook.run(STEP)
    assert notebook.decision("a") == "Skip"


def test_command_line_accepts_a_worktree_for_a_run(
    notebook: Notebook, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(repository, "checkout", "-q", "-b", "other")
    notebook.restart()
    notebook.error(STEP)
    with pytest.raises(SystemExit) as ended:
        main(["accept", "notebook-1", "--worktree"])
    assert ended.value.code == 0
    assert "goes on in" in capsys.readouterr().out
    notebook.run(STEP)
    assert notebook.decision("a") == "Skip"


def test_command_line_needs_a_step_or_a_worktree(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    del notebook
    with pytest.raises(SystemExit) as ended:
        main(["accept"])
    assert ended.value.code == 2
    assert "nbckpt accept STEP" in capsys.readouterr().err

"""Files as evidence: whether those that a step touched are as it left them.

Which files a step touched `nbckpt.inputs.watch` notices. Here they have names that hold
where the project moves, and digests: content alone counts, never time stamps.
"""

from __future__ import annotations

import glob
import os
import stat
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from nbckpt.errors import CheckFailed
from nbckpt.inputs import databases, folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nbckpt.records import Attempt, StepRecord

ABSENT = ""
"""Stands in place of a digest for a file that must not exist."""


class Paths:
    """Names of files relative to the notebook, and back.

    Parameters
    ----------
    base : Path
        The notebook's folder.
    """

    def __init__(self, base: Path) -> None:
        self.base = Path(os.path.abspath(base))
        self._began = Path.cwd()

    def name(self, path: str) -> str:
        """Return how a record names a file: relative if it lies below the notebook."""
        full = os.path.abspath(path)
        if full == str(self.base):
            return "."
        inside = full.startswith(f"{self.base}{os.sep}")
        return os.path.relpath(full, self.base) if inside else full

    def locate(self, name: str) -> Path:
        """Return where a file lies that a record names."""
        return self.base / name

    def expand(self, patterns: Iterable[str]) -> list[str]:
        """Return the names of the files that globs mean now, in order."""
        found = set()
        for pattern in patterns:
            where = str(self.base / Path(pattern).expanduser())
            matches = glob.glob(where, recursive=True)
            found |= {self.name(path) for path in matches if Path(path).is_file()}
        return sorted(found)

    def digest(self, name: str) -> str:
        """Return the digest of a file's content; `ABSENT` if there is no such file.

        Of a database the rows count.
        """
        path = self.locate(name)
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                return ABSENT
            if databases.is_database(path):
                return databases.digest(path)
            total = blake3(max_threads=blake3.AUTO)
            return str(total.update_mmap(path).hexdigest()[:32])
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        except OSError as error:
            return f"unreadable: {error}"

    def elsewhere(self, patterns: Iterable[str]) -> list[str]:
        """Return the globs that mean files in the working folder only, and none here."""
        # A notebook that went into another folder by itself knows where it is.
        if self._began == self.base or Path.cwd() != self._began:
            return []
        return [
            pattern
            for pattern in patterns
            if glob.glob(pattern, recursive=True) and not self.expand([pattern])
        ]


class Writers:
    """Who wrote which file in a run.

    A file belongs to the last step that wrote it. While that one is verified, or was
    interrupted at the file, earlier writers and readers are not blamed for its content.

    Parameters
    ----------
    paths : Paths
        Names of files.
    order : sequence of str
        The steps as the plan orders them; a step above never explains one below.
    records : dict
        Completed steps of the run by name.
    attempts : dict
        Last attempt of each step by name.
    stale : set of str
        Steps that are known to run again; they explain nothing.
    """

    def __init__(
        self,
        paths: Paths,
        order: Sequence[str],
        records: dict[str, StepRecord],
        attempts: dict[str, Attempt],
        stale: frozenset[str] = frozenset(),
    ) -> None:
        self.digest = cache(paths.digest)
        self._paths = paths
        self._stale = stale
        self._place = {name: number for number, name in enumerate(order)}
        self._records = [
            record for name, record in records.items() if name in self._place
        ]
        self._open = [
            attempt
            for name, attempt in attempts.items()
            if name in self._place
            and (name not in records or records[name].attempt < attempt.attempt)
        ]

    def others(self, step: str) -> set[str]:
        """Return the files that belong to other steps than this one."""
        last: dict[str, str] = {}
        for record in sorted(self._records, key=lambda r: self._place[r.step]):
            last.update(dict.fromkeys(record.evidence.files, record.step))
        return {name for name, owner in last.items() if owner != step}

    def awaited(self, step: str) -> set[str]:
        """Return what steps above had read: the files, and as ``folder/`` what they list.

        Parameters
        ----------
        step : str
            The step that may change it.

        Returns
        -------
        set of str
            It must claim what it changes of these.
        """
        place = self._place.get(step, len(self._place))
        found: set[str] = set()
        for record in self._records:
            if self._place[record.step] < place:
                read = record.fingerprint
                where = {*read.folders, *map(folders.fixed_part, read.globs)}
                found |= read.files.keys() | {f"{folder}/" for folder in where}
        return found

    def listings(self, record: StepRecord) -> dict[str, Any]:
        """Return what the folders that a step listed hold now, but for the run's doing.

        Parameters
        ----------
        record : StepRecord
            A step that listed folders or looked for patterns.

        Returns
        -------
        dict
            The parts ``folders`` and ``globs`` of its fingerprint. Names that the step
            itself or one below made or removed stand as the step had found them.
        """
        read, paths = record.fingerprint, self._paths
        if not (read.folders or read.globs):
            return {"folders": {}, "globs": {}}
        doing = self._doing(record)
        return {
            "folders": {
                folder: doing.undone(
                    folder, names, folders.names_in(paths.locate(folder))
                )
                for folder, names in read.folders.items()
            },
            "globs": {
                pattern: doing.undone("", names, folders.matches(paths.base, pattern))
                for pattern, names in read.globs.items()
            },
        }

    def _doing(self, record: StepRecord) -> folders.Doing:
        """Return what a step and those below it wrote, made or removed."""
        place = self._place.get(record.step, 0)
        doing = folders.Doing(lambda name: self.explain(record, name))
        for other in self._records:
            if self._place[other.step] >= place:
                doing.take(other.evidence.files, other.evidence.made)
        for attempt in self._open:
            if self._place[attempt.step] >= place:
                declared = self._paths.expand(attempt.writes)
                doing.take([*attempt.writes, *declared], ())
        return doing

    def explain(self, record: StepRecord, name: str) -> bool:
        """Tell whether the run itself explains a file's content.

        Parameters
        ----------
        record : StepRecord
            A step that read or wrote the file.
        name : str
            The file.

        Returns
        -------
        bool
            Whether the step itself or one below left it so, or one was interrupted.
        """
        if record.evidence.files.get(name) == self.digest(name):
            return True
        place = self._place.get(record.step, 0)
        if any(self._place[a.step] > place and name in a.writes for a in self._open):
            return True
        below = [
            writer
            for writer in self._records
            if self._place[writer.step] > place and name in writer.evidence.files
        ]
        return any(self._accounts_for(writer, name) for writer in below)

    def _accounts_for(self, writer: StepRecord, name: str) -> bool:
        """Tell whether a step below makes up for a file that differs."""
        if name not in writer.fingerprint.files:
            # It overwrites the file unread, and needs nothing of what was there.
            return True
        # It needs what was there if it runs again.
        left_so = writer.evidence.files[name] == self.digest(name)
        return left_so and writer.step not in self._stale and not self.verify(writer)

    def verify(self, record: StepRecord) -> list[str]:
        """Return which files of a record are not as they should be.

        Parameters
        ----------
        record : StepRecord
            The step whose evidence is verified.

        Returns
        -------
        list of str
            One text for each file that differs; empty if all is well.
        """
        return [
            _finding(name, recorded, self.digest(name))
            for name, recorded in sorted(record.evidence.files.items())
            if self.digest(name) != recorded and not self.explain(record, name)
        ]


def _finding(name: str, recorded: str, now: str) -> str:
    """Return what is wrong with a file."""
    if recorded == ABSENT:
        return f"file {name!r} is back"
    if now == ABSENT:
        return f"file {name!r} is missing"
    return f"file {name!r} was changed"


def refuse_elsewhere(
    step: str, option: str, patterns: Iterable[str], paths: Paths
) -> None:
    """Raise if a step declares files that lie where the kernel works, not where it says.

    Parameters
    ----------
    step, option : str
        Who declares them, for the message.
    patterns : iterable of str
        Globs.
    paths : Paths
        Names of files.

    Raises
    ------
    CheckFailed
        Front ends start kernels in different folders; what an option names is told from
        the notebook's, so that it means the same in each of them.
    """
    wrong = paths.elsewhere(patterns)
    if wrong:
        there = os.path.relpath(wrong[0], paths.base)
        raise CheckFailed(
            f"step {step}: --{option} {wrong[0]} is told from the notebook's folder "
            f"{paths.base}, and the kernel works in {Path.cwd()}",
            f"Write --{option} {there}, or start the kernel in the notebook's folder",
        )


def evaluate_checks(checks: Iterable[str], namespace: dict[str, Any]) -> list[str]:
    """Return which completion checks are not true.

    Parameters
    ----------
    checks : iterable of str
        Expressions.
    namespace : dict
        The notebook's names.

    Returns
    -------
    list of str
        One text for each check that fails or raises.
    """
    found = []
    for check in checks:
        try:
            if not eval(check, namespace):  # noqa: S307 - the user's own expression
                found.append(f"check {check!r} is not true")
        except Exception as error:
            found.append(f"check {check!r} raised {type(error).__name__}: {error}")
    return found


def require_checks(step: str, checks: Iterable[str], namespace: dict[str, Any]) -> None:
    """Raise if a completion check of a step is not true.

    Parameters
    ----------
    step : str
        The step, for the message.
    checks : iterable of str
        Expressions.
    namespace : dict
        The notebook's names.

    Raises
    ------
    CheckFailed
        With every check that fails.
    """
    failed = evaluate_checks(checks, namespace)
    if failed:
        raise CheckFailed(
            f"step {step}: {'; '.join(failed)}",
            "The step is not recorded; mend it and run the cell again",
        )

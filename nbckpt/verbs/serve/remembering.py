"""What a monitor remembers between two looks, also when it is started anew."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nbckpt import places
from nbckpt.keys import digest
from nbckpt.records import dumps, loads
from nbckpt.runs.absence import Watched
from nbckpt.runs.processes import this_process
from nbckpt.trust import secret_path

if TYPE_CHECKING:
    from pathlib import Path


class Memory:
    """The runs that a monitor watches, and what it told of them.

    Parameters
    ----------
    folder : Path
        The store's folder.
    channels : str
        Where it tells: two monitors that tell at two places remember each for itself.

    Attributes
    ----------
    watched : dict
        Target → what is known.

    Notes
    -----
    In the user's Jupyter data folder: the store may be another's, or gone. Times are of
    the monotonic clock, so that after a restart of the machine only what was told counts.
    """

    def __init__(self, folder: Path, channels: str) -> None:
        name = digest(str(folder), channels)
        self._path = secret_path().parent / "monitor" / f"{name}.json"
        self._boot = this_process().boot
        self._warned = False
        self.watched: dict[str, Watched] = {}
        try:
            self._read(loads(self._path.read_bytes()))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            # Nothing, or nothing of ours: everything is seen for the first time.
            self.watched = {}

    def _read(self, data: dict[str, Any]) -> None:
        """Take what was written; another boot's times mean nothing."""
        same = data["boot"] == self._boot
        for target, found in data["watched"].items():
            known = Watched.from_json(found)
            self.watched[target] = known if same else Watched(told=known.told)

    def keep(self, watched: dict[str, Watched]) -> None:
        """Remember what is known now.

        Parameters
        ----------
        watched : dict
            Target → what is known; all others are forgotten.
        """
        self.watched = watched
        data = {
            "boot": self._boot,
            "watched": {name: known.to_json() for name, known in watched.items()},
        }
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            places.write_whole(self._path, dumps(data))
        except OSError as error:
            if not self._warned:
                sys.stderr.write(
                    f"nbckpt: {self._path} can't be written ({error}): a monitor that "
                    "is started anew will alert again\n"
                )
            self._warned = True

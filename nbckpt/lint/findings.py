"""What the lint finds: the codes, and the comment that silences one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

CODES = {
    "bad-step": "the %%step line is wrong",
    "decoration": "a step that reads nothing and changes nothing",
    "undeclared-effect": "a request, process or database write that nothing declares",
    "undeclared-file": "a file written that --writes does not name",
    "unseen-file": "a file read by native code that --reads does not name",
    "effect-in-plain-cell": "an effect in a cell that runs at every resume",
    "no-lookup": "an effect with neither lookup= nor dedup=",
    "unstable-key": "a time or a random value in a name or key",
    "append": "a file that grows each time the code runs",
    "used-before-made": "a name that only a cell further down makes",
    "no-keep": "a loop over items that changes names without keep=",
    "retry-loop": "a hand-written retry around a call",
    "swallowed": "an except that hides that an effect failed",
}
SILENCE = re.compile(r"#\s*nbckpt:\s*ok\s+([a-z-]+(?:\s*,\s*[a-z-]+)*)(.*)")


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that would go wrong."""

    code: str
    """A key of `CODES`."""
    cell: int
    """Number among the code cells, from 1."""
    step: str
    """Empty in a plain cell."""
    line: int
    """Line of the cell, from 1."""
    what: str
    remedy: str
    reason: str = ""
    """Why the user silenced it; only of silenced ones."""


@dataclass(slots=True)
class Report:
    """All findings of a notebook, in its order."""

    findings: list[Finding] = field(default_factory=list)
    silenced: list[Finding] = field(default_factory=list)


def silence(lines: list[str], code: str) -> str | None:
    """Return the reason with which a comment silences a finding.

    Parameters
    ----------
    lines : list of str
        The lines of the finding.
    code : str
        Its code.

    Returns
    -------
    str or None
        None if no comment does; may be empty.

    Examples
    --------
    >>> silence(["open('log', 'a')  # nbckpt: ok append only a log"], "append")
    'only a log'
    """
    for line in lines:
        found = SILENCE.search(line)
        if found and code in re.split(r"\s*,\s*", found[1]):
            return found[2].strip(" :-")
    return None

"""The verbs: functions from a store to JSON values, and their form for people.

`nbckpt.verbs.notebook` is the door for ``%nbckpt``, `nbckpt.cli` the one for a shell;
both show the same.
"""

from nbckpt.verbs.notebook import in_notebook

__all__ = ["in_notebook"]

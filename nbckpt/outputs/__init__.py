"""What a cell shows: recorded while it streams, folded, and shown again.

`Recorder` listens to a shell and gives a `Recording`; `replay` sends its messages
again. As nbclient stores them (with streams coalesced), the outputs are equal.
"""

from __future__ import annotations

from nbckpt.outputs.playback import replay
from nbckpt.outputs.recorder import Recorder
from nbckpt.outputs.tape import Recording

__all__ = ["Recorder", "Recording", "replay"]

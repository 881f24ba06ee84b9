"""Pictures of runs as plain SVG text: from values to shapes, without a library.

Nothing here knows a store, a clock or a kernel: `nbckpt.verbs` reads the records and says
what is to be drawn. Every text is escaped, whoever wrote it.
"""

from __future__ import annotations

from nbckpt.pictures.lanes import Bar, Chart, Lane, chart_picture
from nbckpt.pictures.mermaid import flowchart
from nbckpt.pictures.network import Network, Node, network_picture
from nbckpt.pictures.svg import Picture

__all__ = [
    "Bar",
    "Chart",
    "Lane",
    "Network",
    "Node",
    "Picture",
    "chart_picture",
    "flowchart",
    "network_picture",
]

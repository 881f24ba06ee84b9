"""At a run: runs, show, explain, timeline, graph, size, audit, handover."""

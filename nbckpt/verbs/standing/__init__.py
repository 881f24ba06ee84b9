"""Where a run stands, read once for all verbs."""

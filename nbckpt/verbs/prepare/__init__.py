"""Before a run: annotate, lint, doctor, plan."""

"""Which store, run, step or notebook a word means."""

"""What a step rests on and touches: its fingerprint, its files, its evidence."""

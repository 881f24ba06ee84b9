"""The values of a notebook: taken, compared, kept and brought back."""

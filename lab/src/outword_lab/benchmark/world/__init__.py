"""The questions that the small rendered world answers: what is measured there beside the tables."""

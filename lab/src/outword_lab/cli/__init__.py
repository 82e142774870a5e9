"""The verbs of the lab, and its list."""

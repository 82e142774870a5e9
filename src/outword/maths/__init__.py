"""Vectors in, numbers out: no file, no model, no device of its own."""

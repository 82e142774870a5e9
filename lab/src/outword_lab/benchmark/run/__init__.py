"""Runs a suite: sets, methods, figures."""

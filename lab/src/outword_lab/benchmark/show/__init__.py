"""Shows a run: tables, plots, a report."""

"""Benchmarks by name: a suite (one TOML file), a resumable run of it, tables, plots and a report."""

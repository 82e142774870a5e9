"""What `benchmarks/run.py` measures, one section a file."""

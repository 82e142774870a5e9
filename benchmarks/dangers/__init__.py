"""What a program that reads files of strangers must stand; `benchmarks/hostile.py` measures what it costs."""

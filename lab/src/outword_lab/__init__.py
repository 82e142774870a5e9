"""outword-lab: benchmarks by name, a small rendered world, and methods that are learned, for `outword`.

What it brings is found by its names: `outword bench world`, `outword list methods`, `outword.detectors.CoOp`.
"""

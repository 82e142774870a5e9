"""The version, which is that of outword: the two are released together."""

__version__ = "0.1.0"

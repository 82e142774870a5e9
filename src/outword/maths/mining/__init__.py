"""Miners choose the wild words: vectors in, indices out. One rule, one file."""

# An import registers: the order here is that of lists.
# isort: off
from outword.maths.mining.density import Density
from outword.maths.mining.quantile import Quantile
from outword.maths.mining.conjugated import Conjugated
from outword.maths.mining.random import Random
from outword.maths.mining.every import Every
from outword.maths.mining.base import MINERS, Miner

__all__ = ["MINERS", "Conjugated", "Density", "Every", "Miner", "Quantile", "Random"]

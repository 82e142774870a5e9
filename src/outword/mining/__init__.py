"""Miners choose the wild words: vectors in, indices out. One rule, one file."""

from outword.mining.base import Miner
from outword.mining.density import Density
from outword.mining.quantile import Quantile
from outword.mining.random import Random

__all__ = ["MINERS", "Density", "Miner", "Quantile", "Random"]

MINERS: dict[str, type[Miner]] = {"density": Density, "quantile": Quantile, "random": Random}

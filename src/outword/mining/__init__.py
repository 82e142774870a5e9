"""Miners choose the wild words: vectors in, indices out. One rule, one file."""

from outword.mining.base import Miner
from outword.mining.conjugated import Conjugated
from outword.mining.density import Density
from outword.mining.every import Every
from outword.mining.quantile import Quantile
from outword.mining.random import Random

__all__ = ["MINERS", "Conjugated", "Density", "Every", "Miner", "Quantile", "Random"]

MINERS: dict[str, type[Miner]] = {
    "density": Density,
    "quantile": Quantile,
    "conjugated": Conjugated,
    "random": Random,
    "all": Every,
}

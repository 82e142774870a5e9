"""Miners choose the wild words: vectors in, indices out. One rule, one file."""

from outword.maths.mining.base import Miner
from outword.maths.mining.conjugated import Conjugated
from outword.maths.mining.density import Density
from outword.maths.mining.every import Every
from outword.maths.mining.quantile import Quantile
from outword.maths.mining.random import Random

__all__ = ["MINERS", "Conjugated", "Density", "Every", "Miner", "Quantile", "Random"]

MINERS: dict[str, type[Miner]] = {
    "density": Density,
    "quantile": Quantile,
    "conjugated": Conjugated,
    "random": Random,
    "all": Every,
}

"""The kernels, under their public name: `from outword.kernels import grouped_logsumexp`."""

from outword.maths.kernels import chosen, grouped_logsumexp, neighbour_density, using

__all__ = ["chosen", "grouped_logsumexp", "neighbour_density", "using"]

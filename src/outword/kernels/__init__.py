"""The fast twins of `numerics`: blocks and BLAS, one door for all backends; today there is one, numpy."""

from outword.kernels.numpy_blas import grouped_logsumexp, neighbour_density

__all__ = ["grouped_logsumexp", "neighbour_density"]

"""The kernels, under their public name: `from outword.kernels import grouped_logsumexp`."""

from outword.maths.kernels import *  # noqa: F403
from outword.maths.kernels import __all__  # noqa: F401

"""The miners, under their public name: `from outword.mining import Density`."""

from outword.maths.mining import *  # noqa: F403
from outword.maths.mining import __all__  # noqa: F401

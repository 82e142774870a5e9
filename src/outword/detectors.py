"""The methods, under their public name: `from outword.detectors import Debiased`."""

from outword.maths.methods import *  # noqa: F403
from outword.maths.methods import __all__  # noqa: F401

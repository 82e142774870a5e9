"""The metrics, under their public name: `from outword.metrics import auroc`."""

from outword.maths.metrics import *  # noqa: F403
from outword.maths.metrics import __all__  # noqa: F401

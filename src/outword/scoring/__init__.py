"""Any number of photos to rows: here or on a cluster, in one file or in parts."""

from outword.scoring.filtering import filter
from outword.scoring.runs import run

__all__ = ["filter", "run"]

"""Which share of a label's photos `mini` lets in, by how it knows the name: measured, see docs/mini.md.

`benchmarks/odds.py` counts it on what people sort, on names that were left out of `mini`, and on known names, with
photos that its tower has not learned from, and prints these numbers.
"""

from outword.base.odds import MeasuredOdds

ODDS = MeasuredOdds(
    {
        "known": (2.73, 0.0, 0.148),
        "through": (-3.21, 4.78, 0.238),
        "head noun only": (-3.64, 4.78, 0.238),
        "unknown": (-4.21, 4.78, 0.238),
    }
)

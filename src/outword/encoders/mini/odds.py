"""Which share of a label's photos `mini` lets in, by how it knows the name: measured, see docs/mini.md.

`benchmarks/odds.py` counts it on what people sort, on names that were left out of `mini`, and on known names, with
photos that its tower has not learned from, and prints these numbers.
"""

from outword.base.odds import MeasuredOdds

ODDS = MeasuredOdds(
    {
        "known": (2.74, 0.0, 0.146),
        "through": (-3.23, 4.83, 0.241),
        "head noun only": (-3.69, 4.83, 0.241),
        "unknown": (-4.25, 4.83, 0.241),
    }
)

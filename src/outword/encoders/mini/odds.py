"""Which share of a label's photos `mini` lets in, by how it knows the name: measured, see docs/mini.md.

`benchmarks/odds.py` counts it on what people sort, on names that were left out of `mini`, and on known names, all with
photos that its tower has not learned from.
"""

from outword.base.odds import MeasuredOdds

ODDS = MeasuredOdds(
    rows=(
        ("known", -1.0, 0.93),
        ("through", 0.8, 0.7),
        ("through", -1.0, 0.5),
        ("head noun only", -1.0, 0.5),
        ("unknown", -1.0, 0.3),
    ),
    longer=((50, 0.95), (200, 0.92)),
)

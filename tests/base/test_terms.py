"""The fixed words of answers."""

import pytest

from outword.base.terms import is_known, read_flag, through
from outword.encoders import Coverage


def test_flags_of_coverage():
    flags = ["known", through("bird"), "head noun only", "unknown"]
    assert [Coverage("crane", flag).familiarity for flag in flags] == ["known", "through", "head noun only", "unknown"]
    assert [is_known(flag) for flag in flags] == [True, True, False, False]
    with pytest.raises(ValueError, match="a flag must be one of known, through, head noun only, unknown, got 'well'"):
        read_flag("well")

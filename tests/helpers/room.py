"""The room that an image asks for before it is decoded."""

import pytest

from outword.errors import ImageError
from outword.photos import decode


def asked_room(monkeypatch, data):
    """The bytes of memory that an image asks of the budget first; it gets none."""
    asked = []

    class Full:
        def room(self, cost):
            asked.append(cost)
            raise ImageError("too large: decoding it takes more")

    monkeypatch.setattr(decode, "decoding", Full)
    with pytest.raises(ImageError, match="too large"):
        decode.open_image(data)
    return asked[0]

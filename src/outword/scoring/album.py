"""A self-contained page of photos in sections (album.html), each with a thumbnail and lines about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from outword.base.files import whole_file
from outword.base.html import render
from outword.detector.thumbnails import ON_PAGE, thumbnails
from outword.photos.sources import read_items


@dataclass(frozen=True)
class Card:
    """A photo on the page, and what is said of it: pairs of what it is about and what it is."""

    path: str
    lines: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Section:
    """Photos under one heading."""

    title: str
    remark: str
    cards: Sequence[Card]


def write_album(
    path: Path, title: str, facts: Mapping[str, str], sections: Sequence[Section], *, column: str | None = None
) -> None:
    """Write the page to `path`, whole or not at all; the photos are read for their thumbnails.

    `column` is that of tables which has the photos.
    """
    shown = dict.fromkeys(card.path for section in sections for card in section.cards)
    views = dict(thumbnails(read_items(shown, column=column), ON_PAGE))
    filled = [section for section in sections if section.cards]
    page = render("scoring/album.html", title=title, facts=facts, sections=filled, views=views)
    with whole_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")

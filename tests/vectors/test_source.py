"""Sources and their reader: listed once, in flat memory, by whoever reads; photos and stores as vectors."""

import gc
import os
import pickle
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from test_store import Tiny, photo

from helpers.archives import photo as data_of
from helpers.archives import write_tar
from outword.errors import ImageError, InputError
from outword.photos import sources
from outword.photos.sources.base import Files
from outword.vectors.embed import embed
from outword.vectors.id_images import read_id_images
from outword.vectors.listing import Listing
from outword.vectors.reader import vectors_of
from outword.vectors.source import Identity, Source, find_source

ANY = Identity("ab" * 32, "tiny")


@pytest.fixture
def mixed(tmp_path):
    """A folder, a tar, a list and a store, each with photos of two classes, and a photo that is none."""
    for shade, name in enumerate(("a/dog/0.png", "a/cat/1.png", "b/dog/2.png", "c/cat/3.png")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        photo(tmp_path / name, 40 * shade)
    write_tar(tmp_path / "t.tar", {"dog/4.png": data_of(4), "x/cat/5.png": data_of(5), "cat/bad.png": b"junk"})
    (tmp_path / "l.txt").write_text(f"{tmp_path}/b/dog/2.png\n")
    embed(Tiny(), [tmp_path / "c/cat/3.png"], tmp_path / "s")
    return [tmp_path / name for name in ("a", "t.tar", "l.txt", "s")]


def test_vectors_of_all_that_a_source_may_be(mixed, tmp_path):
    encoder = Tiny()
    found = list(vectors_of(encoder, find_source(mixed, encoder)))
    paths = [os.path.relpath(path, tmp_path) for some in found for path in (photo.name for photo in some.good)]
    assert paths == ["a/cat/1.png", "a/dog/0.png", "t.tar/dog/4.png", "t.tar/x/cat/5.png", "b/dog/2.png", "c/cat/3.png"]
    assert sum(len(some.values) for some in found) == len({photo.digest for some in found for photo in some.good}) == 6
    assert [pair for some in found for pair in some.unreadable] == [(f"{tmp_path}/t.tar/cat/bad.png", "not an image")]
    assert encoder.encoded == 5


def test_some_photos_only(mixed):
    source = find_source(mixed[:2], ANY, only=lambda name: "cat" in name)
    assert [Path(item).name for item in source.items()] == ["1.png", "5.png", "bad.png"]
    good = [photo for some in vectors_of(Tiny(), source) for photo in some.good]
    assert [photo.name[-5:] for photo in good] == ["1.png", "5.png"]


@pytest.mark.filterwarnings("ignore:1 of 7 ID images")
def test_id_images_from_all_that_a_source_may_be(mixed):
    found = read_id_images(Tiny(), mixed, ["dog", "cat"], with_classes=True)
    assert found.counts == {"dog": 3, "cat": 3} and len(found.digests) == 6
    with pytest.raises(InputError, match=r"t\.tar/x/cat/5\.png' is in none"):
        read_id_images(Tiny(), mixed[1], ["dog"], with_classes=True)
    again = read_id_images(Tiny(), mixed[::-1], ["dog", "cat"], with_classes=True)
    assert again.fingerprint == found.fingerprint


def test_a_source_is_listed_once(mixed, monkeypatch):
    listed, real = [], sources.find_pieces
    monkeypatch.setattr(
        sources, "find_pieces", lambda *given, **options: listed.append(given) or real(*given, **options)
    )
    source = find_source([mixed[0], mixed[2]], ANY)
    for _ in range(3):
        assert len(list(source.items())) == 3
    assert (source.n_pieces(), source.total(), len(listed)) == (1, 3, 1)
    assert find_source([mixed[1]], ANY).total() is None  # a tar does not say how many
    assert len(list(pickle.loads(pickle.dumps(source)).items())) == 3 and len(listed) == 3


def test_what_is_wrong_is_said_where_it_is():
    def values():
        yield 1, 1
        raise ImageError("gone")

    listing = Listing(values())
    for _ in range(2):
        found = iter(listing)
        assert next(found) == 1
        with pytest.raises(ImageError, match="gone"):
            next(found)
    with pytest.raises(ImageError, match="gone"):
        listing.wait()
    assert listing.total() is None


def test_millions_of_names_are_not_in_memory():
    def values():
        for number in range(300):
            yield Files(tuple(f"/photos/of/a/long/path/{number}/{n}.jpg" for n in range(4096))), 4096

    tracemalloc.start()
    listing = Listing(values())
    assert (listing.wait(), listing.total()) == (300, 300 * 4096)
    assert sum(piece.count() for piece in listing) == 300 * 4096
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 << 20


def test_a_listing_that_nobody_reads_ends():
    begun, go, seen = threading.Event(), threading.Event(), []

    def values():
        for number in range(1000):
            seen.append(number)
            yield number, 1
            begun.set()
            go.wait(30)

    listing = Listing(values())
    begun.wait(30)
    thread = next(one for one in threading.enumerate() if one.name == "outword-listing" and one.is_alive())
    del listing
    gc.collect()
    go.set()
    thread.join(30)
    assert not thread.is_alive() and len(seen) < 1000


def test_stores_stay_open(mixed):
    source = Source(find_source([mixed[3]], ANY).groups)
    first, second = (next(source.pieces()) for _ in range(2))
    assert first is second and isinstance(next(first.photos())[1], np.ndarray)

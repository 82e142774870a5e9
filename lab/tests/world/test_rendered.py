"""Sets of the world as a source of photos: `world:near`."""

import os
import pickle

import pytest

from helpers.archives import write_photos
from outword.errors import ImageError, InputError
from outword.photos.decode import open_image
from outword.photos.sources import find_items, find_names, find_pieces, read_items
from outword.photos.sources.patterns import is_there
from outword.vectors.source import Identity, find_source
from outword_lab import rendered
from outword_lab.world.sets import world_sets


def names(*paths):
    return [os.fspath(item) for item in find_items(paths)]


def test_a_set_of_the_world():
    [piece] = find_pieces(["world:near"])
    assert pickle.loads(pickle.dumps(piece)) == piece
    assert (piece.name, piece.count()) == ("world:near", 400)
    every = list(piece.names())
    assert every == list(find_names(["world:near"])) == [f"world:near/{name}" for name in world_sets()["near"].names]
    assert list(piece.names(398)) == every[398:] == [os.fspath(item) for item in piece.items(398)]
    assert piece.version() != next(find_pieces(["world:far"])).version()
    photos = world_sets()["near"].photos(398)
    for item, pixels in zip(piece.items(398), photos, strict=True):
        assert open_image(item).tobytes() == pixels.tobytes()


def test_names_are_told_without_drawing(monkeypatch):
    monkeypatch.setattr("outword_lab.world.sets.render", lambda scenes: pytest.fail("drawn"))
    assert len(list(find_names(["world:id/"]))) == 1000
    assert len(next(find_pieces(["world:id"])).version()) == 64


def test_a_thing_and_a_photo_of_the_world():
    assert len(list(find_names(["world:near/turtle"]))) == 80
    assert len(list(find_names(["world:{near,far}"]))) == 808
    assert names("world:near/turtle/003.png", "world:far/bow/000.png") == [
        "world:near/turtle/003.png",
        "world:far/bow/000.png",
    ]
    [alone] = find_items(["world:near/turtle/003.png"])
    assert (
        alone.data
        == list(find_items(["world:near/turtle"]))[3].data
        == dict(read_items(["world:near/turtle/003.png"]))["world:near/turtle/003.png"]
    )


def test_photos_of_the_world_by_their_names(monkeypatch):
    drawn = []
    whole = rendered._png
    monkeypatch.setattr(rendered, "_png", lambda pixels: drawn.append(1) or whole(pixels))
    wanted = ["world:far/bow/001.png", "world:near/turtle/003.png", "world:near/turtle/999.png"]
    found = dict(read_items(wanted))
    assert isinstance(found[wanted[2]], ImageError)
    assert len(drawn) == 2
    assert {name: data for name, data in found.items() if name != wanted[2]} == {
        name: next(find_items([name])).data for name in wanted[:2]
    }


def test_what_is_not_in_the_world(tmp_path):
    for path in ("world:nera", "world:"):
        for ask in (is_there, lambda path: list(find_pieces([path]))):
            with pytest.raises(InputError, match=r"unknown set of the world .*, which has id, train, other, near"):
                ask(path)
    with pytest.raises(InputError, match='did you mean "near"'):
        is_there("world:nera")
    with pytest.raises(InputError, match=r'unknown thing in world:near "turtl".* did you mean "turtle"'):
        is_there("world:near/turtl")
    (tmp_path / "list.txt").write_text("world:near/turtle/000.png\nworld:nera\n")
    good, bad = find_items([tmp_path / "list.txt"])
    assert os.fspath(good) == "world:near/turtle/000.png"
    assert "unknown set of the world" in bad.data.message


def test_a_file_called_like_a_set_does_not_matter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_photos(tmp_path / "world:near", ["a.png"])
    assert is_there("world:near")
    assert len(list(find_names(["world:near"]))) == 400
    assert names(tmp_path / "world:near") == [str(tmp_path / "world:near" / "a.png")]
    source = find_source(["world:near"], Identity("ab" * 32, "any"))
    assert not source.is_relative
    assert find_source(["a.png"], Identity("ab" * 32, "any")).is_relative
    assert (source.n_pieces(), source.total()) == (1, 400)

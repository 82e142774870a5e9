"""The store of embeddings: nothing twice, nothing lost, nothing believed."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import outword
from conftest import PHOTOS, call
from helpers.bad_images import encoded, make_bad_images, picture
from outword.base.extras import install
from outword.base.files import _machine, sha256_bytes
from outword.encoders import Encoder, get_encoder
from outword.errors import ArtifactError, ImageError, InputError, MissingExtraError
from outword.photos.decode import MAX_BYTES, open_image, read_bytes, with_image
from outword.photos.walk import find_images
from outword.scoring.stream import open_source, score_source
from outword.vectors import shards
from outword.vectors.embed import embed
from outword.vectors.shards import LIST, UNREADABLE, DamagedShard, Shard, listed, read_shard, shard_files, write_shard
from outword.vectors.store import Store, is_store, make_store, open_store

KINDS = ["safetensors", "parquet"]


class Tiny(Encoder):
    """Eight pixels to a vector; counts what it decodes and what it encodes."""

    name, dim, temperature, prompts, licence, source = "tiny", 8, 0.1, "paper", "none", "this file"
    min_side, batch_size, chunk = 0, 1, 2

    def __init__(self, fingerprint="ab" * 32, pause=0.0):
        self.fingerprint, self.pause = fingerprint, pause
        self.decoded = self.encoded = 0

    def preprocess(self, image):
        self.decoded += 1
        return np.asarray(image.convert("RGB").resize((4, 2)))

    def encode_pixels(self, pixels):
        time.sleep(self.pause)
        self.encoded += len(pixels)
        rows = pixels[..., 0].reshape(len(pixels), -1).astype(np.float32) + 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def encode_texts(self, texts):
        raise NotImplementedError


def photo(path, shade):
    image = Image.new("RGB", (8, 8), (shade, 0, 0))
    image.paste((200, 0, 0), (0, 0, 4, 4))
    image.save(path)
    return path


@pytest.fixture
def photos(tmp_path):
    """Seven different photos."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for shade in range(7):
        image = picture()
        image.putpixel((0, 0), (shade, 0, 0))
        image.save(folder / f"{shade}.png")
    return folder


@pytest.fixture
def place(tmp_path):
    return tmp_path / "photos.store"


def fill(place, *paths, encoder=None, **options):
    return embed(encoder or Tiny(), find_images(paths), place, **options)


def rows_of(place, encoder=None):
    encoder = encoder or Tiny()
    return dict(open_store(place, encoder.fingerprint, encoder.name).rows())


def shards_of(place, encoder=None):
    return shard_files(place / (encoder or Tiny()).fingerprint[:16])


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


# what comes back


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_the_encoders_vectors_in_the_order_of_their_paths(photos, place, kind):
    paths = sorted(map(str, photos.iterdir()))
    done = embed(Tiny(), paths[::-1], place, kind=kind, shard_rows=3)
    assert (done.encoded, done.reused, done.errors, done.rows, done.damaged) == (7, 0, 0, 7, [])
    assert {file.suffix for file in shards_of(place)} == {f".{kind}"}
    assert len(shards_of(place)) == 2
    found = rows_of(place)
    assert list(found) == paths
    np.testing.assert_array_equal(list(found.values()), Tiny().encode_images(paths))


@pytest.mark.parametrize("kind", KINDS)
def test_scores_from_a_store_are_those_of_the_images(detector, tmp_path, kind):
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"")
    paths = [*sorted(PHOTOS.glob("*.jpg"))[:5], bad]
    embed(detector.encoder, paths, tmp_path / "s", kind=kind)
    from_images = [row for row, _ in score_source(detector, open_source(detector, sorted(paths)))]
    from_store = [row for row, _ in score_source(detector, open_source(detector, [tmp_path / "s"]))]
    assert [(r.path, r.verdict, r.label, r.error) for r in from_store] == [
        (r.path, r.verdict, r.label, r.error) for r in from_images
    ]
    assert [r.error for r in from_store].count("empty file") == 1
    for stored, direct in zip(from_store, from_images, strict=True):
        assert stored.score == direct.score


def test_a_store_holds_several_encoders_and_both_formats(photos, place):
    one, other = Tiny(), Tiny("cd" * 32)
    fill(place, photos / "0.png", encoder=one)
    fill(place, photos, encoder=one, kind="parquet")
    fill(place, photos / "1.png", encoder=other)
    assert {file.suffix for file in shards_of(place)} == {".safetensors", ".parquet"}
    assert [len(rows_of(place, encoder)) for encoder in (one, other)] == [7, 1]


def test_odd_names_come_back_as_they_were(photos, tmp_path, place):
    names = [b"caf\xe9.png", "ünïcödé 猫 🐈.png".encode(), b"new\nline.png", b" .png"]
    for name in names:
        shutil.copy(photos / "0.png", bytes(tmp_path) + b"/" + name)
    odd = [os.fsdecode(bytes(tmp_path) + b"/" + name) for name in names]
    for kind in KINDS:
        shutil.rmtree(place, ignore_errors=True)
        embed(Tiny(), [*odd, "null\0character.png"], place, kind=kind)
        assert set(rows_of(place)) == {*odd, "null\0character.png"}
        assert str(rows_of(place)["null\0character.png"]) == "no such file"
        assert all(Path(path).exists() for path in rows_of(place) if "\0" not in path)


def test_order_does_not_depend_on_the_runs(photos, tmp_path, monkeypatch):
    monkeypatch.setattr("outword.vectors.store.READ_ROWS", 2)  # and rows are put together from several shards
    paths = sorted(photos.iterdir())
    embed(Tiny(), paths, tmp_path / "one", shard_rows=100)
    for path in [paths[3], *paths[::-1]]:
        embed(Tiny(), [path], tmp_path / "many")
    one, many = rows_of(tmp_path / "one"), rows_of(tmp_path / "many")
    assert list(one) == list(many) == [str(path) for path in paths]
    np.testing.assert_array_equal(list(one.values()), list(many.values()))


# only what is new


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_run_encodes_nothing_and_writes_nothing(photos, place, kind):
    fill(place, photos, kind=kind)
    before, again = shards_of(place), Tiny()
    done = fill(place, photos, encoder=again, kind=kind)
    assert (done.encoded, done.reused, done.errors, done.rows) == (0, 7, 0, 7)
    assert (again.decoded, again.encoded) == (0, 0)
    assert shards_of(place) == before


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_content_under_a_new_path_is_not_encoded_again(photos, place, tmp_path, kind):
    fill(place, photos)
    shutil.copytree(photos, tmp_path / "copy")
    (tmp_path / "copy" / "6.png").write_bytes(encoded(Image.new("RGB", (5, 5), "red"), "PNG"))
    again = Tiny()
    done = fill(place, tmp_path / "copy", encoder=again, kind=kind)
    assert (done.encoded, done.reused, done.rows) == (1, 6, 14)
    assert (again.decoded, again.encoded) == (1, 1)
    found = rows_of(place)
    for n in range(6):
        np.testing.assert_array_equal(found[str(tmp_path / "copy" / f"{n}.png")], found[str(photos / f"{n}.png")])
    np.testing.assert_array_equal(
        found[str(tmp_path / "copy" / "6.png")], Tiny().encode_images([tmp_path / "copy" / "6.png"])[0]
    )


def test_the_newest_row_of_a_path_wins(place, tmp_path):
    path = photo(tmp_path / "a.png", 10)
    fill(place, path)
    old = rows_of(place)[str(path)]
    photo(path, 250)
    assert fill(place, path).encoded == 1
    new = rows_of(place)[str(path)]
    assert not np.allclose(old, new)
    np.testing.assert_array_equal(new, Tiny().encode_images([path])[0])
    photo(path, 10)  # back to what it was: known content, but a row is needed to say so
    assert fill(place, path).reused == 1
    np.testing.assert_array_equal(rows_of(place)[str(path)], old)
    assert len(open_store(place, Tiny().fingerprint, "tiny")) == 1


def test_another_fingerprint_is_another_encoder(photos, place):
    fill(place, photos)
    assert fill(place, photos, encoder=Tiny("ef" * 32)).encoded == 7


def test_files_that_are_gone_stay_in_the_store(photos, place):
    fill(place, photos)
    (photos / "0.png").unlink()
    assert fill(place, photos).rows == 7
    assert str(photos / "0.png") in rows_of(place)


def test_an_empty_source(place, tmp_path):
    (tmp_path / "nothing").mkdir()
    done = fill(place, tmp_path / "nothing")
    assert (done.encoded, done.rows) == (0, 0)
    assert is_store(place)
    assert rows_of(place) == {}
    assert fill(place, photo(tmp_path / "a.png", 1)).rows == 1


# bad images


@pytest.mark.parametrize("kind", KINDS)
def test_bad_images_are_rows(place, tmp_path, kind):
    folder = tmp_path / "bad"
    folder.mkdir()
    expected = make_bad_images(folder)
    done = embed(Tiny(), expected, place, kind=kind, shard_rows=4)
    found = rows_of(place)
    assert set(found) == {str(path) for path in expected}
    for path, words in expected.items():
        if words is None:
            assert isinstance(found[str(path)], np.ndarray), path
        else:
            assert words in str(found[str(path)]), path
    n_bad = sum(words is not None for words in expected.values())
    contents = {path.read_bytes() for path, words in expected.items() if words is None}
    assert (done.errors, done.encoded, done.encoded + done.reused) == (n_bad, len(contents), len(expected) - n_bad)
    direct = {path: _direct_error(path) for path in expected}
    assert {Path(p): e.message for p, e in found.items() if isinstance(e, ImageError)} == {
        path: error for path, error in direct.items() if error
    }


def _direct_error(path):
    try:
        open_image(path)
    except ImageError as error:
        return error.message
    return ""


def test_a_bad_image_is_tried_again_only_when_its_content_changes(place, tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    path.write_bytes(b"junk")
    assert fill(place, path).errors == 1
    before, tried = shards_of(place), []
    monkeypatch.setattr("outword.encoders.loader.with_image", lambda *a, **k: tried.append(a) or with_image(*a, **k))
    assert fill(place, path).errors == 1
    assert (tried, shards_of(place)) == ([], before)
    shutil.copy(path, tmp_path / "b.png")  # the error holds for the content, under any name
    assert fill(place, tmp_path / "b.png").errors == 1
    assert tried == []
    assert str(rows_of(place)[str(tmp_path / "b.png")]) == "not an image"
    photo(path, 5)
    assert fill(place, path).encoded == 1
    assert len(tried) == 1


def test_an_unreadable_file_is_tried_again(place, tmp_path):
    path = tmp_path / "a.png"
    assert fill(place, path).errors == 1
    before = shards_of(place)
    assert fill(place, path).errors == 1
    assert shards_of(place) == before
    photo(path, 5)
    assert fill(place, path).encoded == 1
    path.unlink()  # what is newest counts, also where it is an error; the vector is not forgotten
    assert fill(place, path).errors == 1
    assert str(rows_of(place)[str(path)]) == "no such file"
    photo(path, 5)
    again = Tiny()
    assert fill(place, path, encoder=again).reused == 1
    assert again.decoded == 0


def test_read_bytes_says_what_open_image_says(tmp_path):
    path = photo(tmp_path / "a.png", 3)
    assert read_bytes(path) == path.read_bytes()
    with pytest.raises(ImageError, match="no such file"):
        read_bytes(tmp_path / "missing")
    with pytest.raises(ImageError, match="is a directory"):
        read_bytes(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ImageError, match="not a regular file"):
        read_bytes(tmp_path / "pipe")
    with (tmp_path / "huge.png").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ImageError, match="too large"):
        read_bytes(tmp_path / "huge.png")
    with pytest.raises(ImageError, match="input/output error"):
        read_bytes("/proc/self/mem")


# killed, and several at once

SCRIPT = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = {tests!r}, {tests!r} + '/vectors'
from test_store import Tiny, fill
"""
TWO = "fill(Path(sys.argv[1]), *sys.argv[2:], encoder=Tiny(pause=0.02), shard_rows=2)"
AT_EVERY_STEP = """
CALLS = {"mkdir", "open", "write", "flush", "fsync", "close", "replace", "unlink"}
def run_and_die(place, photos, step):
    left = step
    def hook(frame, event, call):
        nonlocal left
        if event == "c_call" and call.__name__ in CALLS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.setprofile(hook)
    fill(place, photos, shard_rows=2)
    sys.setprofile(None)

for step in range(1, 1000):
    if not (child := os.fork()):
        run_and_die(Path(sys.argv[1]) / str(step), sys.argv[2], step)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != -signal.SIGKILL:
        break
print(step)
"""


def start(code, *args):
    """Run a script in a process of its own."""
    text = SCRIPT.format(tests=str(Path(__file__).parents[1])) + code
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", text, *map(str, args)], **pipes)


def test_killed_at_every_step_it_goes_on(photos, tmp_path):
    """Killed before its first call that touches the disk, before its second one, and so on until there are no more."""
    (tmp_path / "runs").mkdir()
    with start(AT_EVERY_STEP, tmp_path / "runs", photos) as run:
        steps = int(run.communicate()[0])
    expected, seen = Tiny().encode_images(sorted(photos.iterdir())), []
    for step in range(1, steps + 1):
        place = tmp_path / "runs" / str(step)
        kept = len(rows_of(place)) if is_store(place) else 0
        again = Tiny()
        done = fill(place, photos, encoder=again)
        assert (again.encoded, done.reused, done.rows, done.damaged) == (7 - kept, kept, 7, []), step
        np.testing.assert_array_equal(list(rows_of(place).values()), expected)
        seen.append(kept)
    assert seen == sorted(seen)
    assert set(seen) == {0, 2, 4, 6, 7}
    assert min(seen.count(kept) for kept in (0, 2, 4)) > 4


def test_leftovers_are_swept_and_never_read(photos, place):
    fill(place, photos)
    folder = shards_of(place)[0].parent
    left, mine = folder / f".outword-{_machine()}-{16 * 'a'}", folder / ".notes"
    left.mkdir()
    (left / "new").write_bytes(b"half a sha")
    mine.write_bytes(b"to do")
    assert len(rows_of(place)) == 7
    fill(place, photos)
    assert [left.exists(), mine.exists()] == [False, True]


def test_two_processes_at_once(photos, place, tmp_path):
    own = [tmp_path / "1", tmp_path / "2"]
    for n, folder in enumerate(own):
        folder.mkdir()
        for shade in range(6):
            photo(folder / f"{shade}.png", 10 * shade + n)
    code = "print('ready', flush=True); input(); " + TWO
    with start(code, place, photos, own[0]) as one, start(code, place, photos, own[1]) as two:
        assert [one.stdout.readline(), two.stdout.readline()] == ["ready\n"] * 2
        for run in (one, two):
            run.stdin.write("go\n")
            run.stdin.flush()
    assert (one.returncode, two.returncode) == (0, 0)
    found = rows_of(place)
    assert list(found) == sorted(str(path) for folder in (photos, *own) for path in folder.iterdir())
    np.testing.assert_array_equal(list(found.values()), Tiny().encode_images(list(found)))
    assert fill(place, photos, *own).encoded == 0
    assert {file.suffix for file in shards_of(place)[0].parent.iterdir()} == {".safetensors", ".json", ".sha256"}


def test_the_same_number_twice_is_two_files(place):
    place.mkdir()
    unit = np.eye(8, dtype=np.float32)
    first = write_shard(place, Shard([b"a"], [b"1" * 32], [""], unit[:1]), "safetensors")
    moved = first.rename(place / "elsewhere")
    second = write_shard(place, Shard([b"b"], [b"2" * 32], [""], unit[1:2]), "safetensors")
    moved.rename(first)
    assert first.name.partition("-")[0] == second.name.partition("-")[0] == "000000"
    assert set(dict(Store(place, 8).rows())) == {"a", "b"}


def test_ctrl_c_keeps_what_is_encoded(photos, place):
    def stop(done):
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(place, photos, report=stop)
    assert len(rows_of(place)) == 4


def test_vectors_of_another_decoder_are_kept_apart(photos, place):
    fill(place, photos)
    other = Tiny()
    other.decoder = "nvjpeg"
    with pytest.raises(InputError, match="pillow decoded, and here it would be nvjpeg") as told:
        fill(place, photos, encoder=other)
    assert "OUTWORD_DECODER=pillow" in told.value.hint


def test_other_errors_end_the_run(photos, place):
    broken = Tiny()
    broken.preprocess = lambda image: (_ for _ in ()).throw(InputError("no such model"))
    with pytest.raises(InputError, match="no such model"):
        fill(place, photos, encoder=broken)


# nothing is believed


def test_a_damaged_shard_is_an_error_to_read_and_is_done_again_by_embed(photos, place):
    for kind in KINDS:
        shutil.rmtree(place, ignore_errors=True)
        fill(place, photos, kind=kind, shard_rows=2)
        files = shards_of(place)
        for file, damage in zip(files, ("cut", "empty", "flip"), strict=False):
            data = bytearray(file.read_bytes())
            data[-40] ^= 1
            file.write_bytes({"cut": data[:-10], "empty": b"", "flip": data}[damage])
            with pytest.raises(ArtifactError, match=f"{file.name} is damaged: its content is not what") as error:
                rows_of(place)
            assert f"outword embed SOURCE -o {place}" in error.value.hint
            done = fill(place, photos)
            assert (done.damaged, done.encoded, done.rows) == ([str(file)], 2, 7)
            assert file.with_name(f"{file.name}.damaged").exists()
            assert len(rows_of(place)) == 7


def test_a_lost_shard_is_missed_and_done_again_by_embed(photos, place):
    fill(place, photos, shard_rows=2)
    first, second, *_ = shards_of(place)
    names = [file.name for file in shards_of(place)]
    assert list(listed(first.parent)) == names
    assert listed(first.parent)[first.name] == sha256_bytes(first.read_bytes())
    first.unlink()
    second.unlink()
    with pytest.raises(
        ArtifactError, match=f"{first.name} is in shards.sha256 and not there any more, nor are 1 more"
    ) as error:
        rows_of(place)
    assert f"outword embed SOURCE -o {place}" in error.value.hint
    done = fill(place, photos, shard_rows=2)
    assert (done.lost, done.damaged, done.encoded, done.rows) == ([str(first), str(second)], [], 4, 7)
    assert list(listed(first.parent)) == [file.name for file in shards_of(place)]
    assert len(rows_of(place)) == 7


def test_a_store_without_a_list_is_read_and_gets_one(photos, place):
    fill(place, photos, shard_rows=2)
    *_, last = files = shards_of(place)
    file_of_list = last.parent / LIST
    whole = file_of_list.read_bytes()
    for text in (None, b"", whole[:-1], whole[: -len(last.name)], b"\xff junk\n" + whole[:200]):
        file_of_list.unlink() if text is None else file_of_list.write_bytes(text)
        assert len(rows_of(place)) == 7
        assert fill(place, photos).lost == []
        assert file_of_list.read_bytes() == whole
    assert files == shards_of(place)


def named(place, data, kind):
    path = place / f"000000-{sha256_bytes(data)[:16]}.{kind}"
    path.write_bytes(data)
    return path


def hostile_safetensors():
    from safetensors.numpy import save

    n, unit = 2, np.eye(2, 8, dtype=np.float32)
    good = {
        "paths": np.frombuffer(b"ab", np.uint8),
        "path_ends": np.array([1, 2]),
        "sha256": np.ones((n, 32), np.uint8),
        "errors": np.zeros(0, np.uint8),
        "error_ends": np.zeros(n, np.int64),
        "vectors": unit,
    }
    yield "good", save(good)
    yield "not safetensors", b"junk" * 100
    yield "header of 2^60 bytes", (1 << 60).to_bytes(8, "little") + b"{}"
    yield "without a column", save({k: v for k, v in good.items() if k != "sha256"})
    for what, changes in {
        "dim": {"vectors": np.eye(2, 9, dtype=np.float32)},
        "flat": {"vectors": unit.ravel()},
        "half": {"vectors": unit.astype(np.float16)},
        "zero": {"vectors": 0 * unit},
        "nan": {"vectors": np.nan * unit},
        "more vectors": {"vectors": np.eye(3, 8, dtype=np.float32)},
        "no rows": {"path_ends": np.zeros(0, np.int64), "vectors": unit[:0], "error_ends": np.zeros(0, np.int64)},
        "ends": {"path_ends": np.array([0.5, 2])},
        "short digests": {"sha256": np.ones((n, 31), np.uint8)},
        "errors": {"errors": np.frombuffer(b"\xff", np.uint8), "error_ends": np.array([0, 1])},
    }.items():
        yield what, save({**good, **changes})


def test_hostile_safetensors(place):
    place.mkdir()
    for what, data in hostile_safetensors():
        path = named(place, data, "safetensors")
        if what == "good":
            assert read_shard(path, 8).paths == [b"a", b"b"]
        else:
            with pytest.raises(DamagedShard, match=f"{path.name} is damaged"):
                pytest.fail(f"{what} was read: {read_shard(path, 8)}")
        path.unlink()


def test_hostile_parquet(place, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def packed(**changes):
        columns = {
            "path": pa.array([b"a", b"b"]),
            "sha256": pa.array([b"1" * 32] * 2),
            "error": ["", ""],
            "vector": pa.array(np.eye(2, 8, dtype=np.float32).tolist(), pa.list_(pa.float32())),
        }
        out = io.BytesIO()
        parquet.write_table(pa.table({k: v for k, v in {**columns, **changes}.items() if v is not None}), out)
        return out.getvalue()

    place.mkdir()
    assert read_shard(named(place, packed(), "parquet"), 8).paths == [b"a", b"b"]
    for data in (
        b"PAR1junkPAR1",
        packed(vector=None),
        packed(vector=pa.array([[1.0], None], pa.list_(pa.float32()))),
        packed(vector=pa.array(np.eye(2, 8).tolist())),
        packed(path=pa.array(["a", "b"])),
        packed(path=pa.array([b"a", None])),
        packed(sha256=pa.array([b"1"] * 2)),
        packed(error=pa.array([None, ""], pa.string())),
    ):
        with pytest.raises(DamagedShard):
            read_shard(named(place, data, "parquet"), 8)
    monkeypatch.setattr(shards, "MAX_BYTES", 2000)
    bomb = pa.array(np.ones((2, 4096), np.float32).tolist(), pa.list_(pa.float32()))
    out = io.BytesIO()
    parquet.write_table(pa.table({"vector": bomb}), out, use_dictionary=False, compression="zstd")
    assert len(out.getvalue()) < 2000
    with pytest.raises(DamagedShard, match="unpacks to more than"):
        read_shard(named(place, out.getvalue(), "parquet"), 8)


def test_a_shard_that_is_too_large_is_not_read(place, monkeypatch):
    place.mkdir()
    path = named(place, b"x" * 1001, "safetensors")
    monkeypatch.setattr(shards, "MAX_BYTES", 1000)
    with pytest.raises(DamagedShard, match="more than 1000 bytes"):
        read_shard(path, 8)


def test_an_error_of_the_disk_is_no_damage(photos, place):
    fill(place, photos)
    file = shards_of(place)[0]
    file.unlink()
    file.mkdir()  # reading a folder is an OSError, as a broken disk is
    with pytest.raises(IsADirectoryError):
        fill(place, photos)
    assert file.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "has schema 2, newer than 1"),
        ({"schema": "1"}, "cannot be used: schema"),
        ({"dim": 0}, "cannot be used"),
        ({"dim": "8"}, "cannot be used"),
        ({"dim": 10**9}, "cannot be used"),
        ({"fingerprint": "ab" * 8 + "00" * 24}, "fingerprint must be abab"),
        ({"fingerprint": None}, "cannot be used"),
        (None, "KeyError"),
        ("{", "JSONDecodeError"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "TypeError"),
    ],
)
def test_a_bad_card_is_one_line(photos, place, change, message):
    fill(place, photos)
    card = shards_of(place)[0].parent / "encoder.json"
    known = json.loads(card.read_text())
    text = change if isinstance(change, str) else json.dumps({**known, **change} if change else {})
    card.write_text(text)
    for use in (rows_of, lambda place: fill(place, photos)):
        with pytest.raises(ArtifactError, match=message) as error:
            use(place)
        assert str(card) in error.value.message
        assert error.value.hint


def test_the_card_says_what_the_encoder_is(photos, place):
    fill(place, photos)
    card = json.loads((shards_of(place)[0].parent / "encoder.json").read_text())
    assert card == {
        "schema": 1,
        "name": "tiny",
        "options": {},
        "fingerprint": Tiny().fingerprint,
        "dim": 8,
        "temperature": 0.1,
        "decoder": "pillow",
        "licence": "none",
        "source": "this file",
    }


def test_a_dim_that_is_not_the_encoders(photos, place):
    fill(place, photos)
    wide = Tiny()
    wide.dim = 9
    with pytest.raises(ArtifactError, match="dim must be 9"):
        fill(place, photos, encoder=wide)


def test_folders_that_are_no_store(photos, tmp_path):
    for place, message in [
        (photos, "is there and is no store"),
        (photos / "0.png", "is there and is no store"),
        (tmp_path / "no" / "such", "is not a folder"),
    ]:
        before = sorted(photos.iterdir())
        with pytest.raises(InputError, match=message):
            fill(place, photos)
        assert sorted(photos.iterdir()) == before
    for odd in (photos, photos / "0.png", tmp_path / "missing", "null\0"):
        assert not is_store(odd)
    (tmp_path / "empty").mkdir()
    assert fill(tmp_path / "empty", photos).rows == 7
    (tmp_path / "empty" / "README").write_text("mine")  # a store may hold files of its owner's
    assert fill(tmp_path / "empty", photos).reused == 7


def test_parquet_without_pyarrow_is_said_before_any_work(photos, place, monkeypatch):
    fill(place, photos, kind="parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="Parquet needs pyarrow"):
        rows_of(place)
    encoder = Tiny("12" * 32)
    with pytest.raises(MissingExtraError):
        fill(place, photos, encoder=encoder, kind="parquet")
    assert encoder.encoded == 0


# the command line


@pytest.fixture(scope="module")
def demo_store(tmp_path_factory):
    """The demo photos as a store, made by the command."""
    place = tmp_path_factory.mktemp("demo") / "demo.store"
    result = call("embed", PHOTOS, "-o", place)
    assert result.stdout == f"{place}\n"
    return place


def test_embed_says_what_it_did(demo_store):
    n = len(list(PHOTOS.glob("*.jpg")))
    told = call("embed", PHOTOS, "-o", demo_store, "--json")
    assert json.loads(told.stdout) == {
        "path": str(demo_store), "encoded": 0, "reused": n, "errors": 0, "rows": n,
        "damaged": [], "lost": [], "failed": []
    }  # fmt: skip
    assert f"{n} images: 0 encoded, {n} reused, 0 errors; the store has {n}" in " ".join(told.stderr.split())


def test_embed_of_nothing_and_of_damage(tmp_path, demo_store):
    (tmp_path / "empty").mkdir()
    result = call("embed", tmp_path / "empty", "-o", tmp_path / "s", "--format", "parquet", code=1)
    assert "no images found" in result.stderr
    copy = shutil.copytree(demo_store, tmp_path / "copy")
    (file,) = shards_of(copy, get_encoder("mini"))
    file.write_bytes(b"")
    result = call("embed", PHOTOS / "cat.jpg", "-o", copy)
    assert f"warning: {file} was damaged and is set aside" in result.stderr
    assert "1 encoded" in result.stderr
    (file,) = shards_of(copy, get_encoder("mini"))
    file.unlink()
    assert f"warning: {file} is gone" in call("embed", PHOTOS / "cat.jpg", "-o", copy).stderr


def test_score_takes_a_store_and_never_loads_the_encoder(saved, demo_store):
    direct = [{**row, "notes": ""} for row in table(call("score", saved, PHOTOS).stdout)]  # a store has no photos
    code = (
        "import sys; from outword.cli import main; main(['score', *sys.argv[1:]], standalone_mode=False);"
        "assert 'onnxruntime' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code, saved, demo_store], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    stored = table(run.stdout)
    assert stored == direct


def test_stores_and_images_are_mixed_in_order(saved, demo_store):
    n = len(list(PHOTOS.glob("*.jpg")))
    missing = PHOTOS / "missing.jpg"
    result = call("score", saved, PHOTOS / "rocket.jpg", demo_store, PHOTOS / "cat.jpg", missing, code=1)
    rows = table(result.stdout)
    assert len(rows) == n + 3
    assert [Path(rows[i]["path"]).name for i in (0, -2, -1)] == ["rocket.jpg", "cat.jpg", "missing.jpg"]
    assert rows[-1]["error"] == "no such file"


def test_progress_counts_the_rows_of_a_store(saved, demo_store, monkeypatch):
    monkeypatch.setattr("outword.cli.progress.EVERY", -1.0)
    monkeypatch.setattr("outword.vectors.reader.STORED", 2)
    n = len(list(PHOTOS.glob("*.jpg")))
    assert f"score: {n} of {n}" in call("score", saved, demo_store).stderr


def test_a_page_from_a_store_has_the_thumbnails_of_files_that_are_there(saved, tmp_path):
    for name in ("cat.jpg", "rocket.jpg", "gravel.jpg"):
        shutil.copy(PHOTOS / name, tmp_path / name)
    (tmp_path / "bad.jpg").write_bytes(b"")
    call("embed", *sorted(tmp_path.glob("*.jpg")), "-o", tmp_path / "s")
    (tmp_path / "rocket.jpg").unlink()
    call("score", saved, tmp_path / "s", PHOTOS / "coffee.jpg", "--html", tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 3
    assert "rocket.jpg" in page
    assert "empty file" in page


def test_calibrate_takes_a_store(saved, demo_store, tmp_path):
    direct = call("calibrate", saved, PHOTOS, "-o", tmp_path / "a").stdout
    stored = call("calibrate", saved, demo_store, "-o", tmp_path / "b").stdout
    assert float(stored) == float(direct)
    assert outword.load(tmp_path / "b").calibration_.n_photos == len(list(PHOTOS.glob("*.jpg")))


def test_a_store_of_another_encoder_is_one_line(saved, photos, place):
    fill(place, photos)
    for verb in ("score", "calibrate"):
        result = call(verb, saved, place, code=2)
        assert f"{place} has no embeddings of mini" in result.stderr
        assert "it has those of tiny" in result.stderr
        assert f"hint: outword embed SOURCE -o {place} --encoder mini" in result.stderr
        assert result.stdout == ""


def test_bad_stores_on_the_command_line(saved, demo_store, tmp_path):
    copy = shutil.copytree(demo_store, tmp_path / "copy")
    (file,) = shards_of(copy, get_encoder("mini"))
    file.write_bytes(file.read_bytes()[:-1])
    result = call("score", saved, copy, code=2)
    assert f"error: {file} is damaged" in result.stderr
    assert result.stdout == ""
    assert "is there and is no store" in call("embed", PHOTOS, "-o", PHOTOS, code=2).stderr
    assert "unknown encoder" in call("embed", PHOTOS, "-o", tmp_path / "s", "--encoder", "minni", code=2).stderr
    assert not (tmp_path / "s").exists()


def test_embed_to_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = call("embed", PHOTOS, "-o", tmp_path / "s", "--format", "parquet", code=2)
    assert f"hint: {install('parquet')}" in result.stderr


def test_make_store_is_what_embed_writes_to(place):
    store = make_store(place, Tiny())
    store.append(Shard([b"x"], [UNREADABLE], ["no such file"], np.full((1, 8), np.nan, np.float32)), "safetensors")
    assert store.contents() == {}
    assert [(path, str(error)) for path, error in store.rows()] == [("x", "no such file")]

"""Photos in folders, lists, archives and tables: order, names, pieces, damage, and what a store makes of them."""

import bz2
import errno
import gzip
import io
import json
import lzma
import os
import pickle
import random
import re
import sys
import tarfile
import tracemalloc
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.archives import photo, write_arrow, write_dataset, write_parquet, write_photos, write_tar
from outword.encoders import get_encoder
from outword.errors import ImageError, InputError, MissingExtraError
from outword.photos import decode, walk
from outword.photos.decode import MAX_BYTES, Blob, check_bytes, open_image, read_bytes
from outword.photos.sources import (
    PART,
    Files,
    UnreadableSource,
    filesystems,
    find_items,
    find_names,
    find_pieces,
    huggingface,
    listing,
    read_items,
    tables,
)
from outword.photos.sources import tar as tars
from outword.photos.sources.tar import LONGEST, Tar
from outword.vectors.embed import embed
from outword.vectors.store import open_store


def read_item(name):
    """The content of one photo, or its error."""
    [(_, data)] = read_items([name])
    if isinstance(data, ImageError):
        raise data
    return data


def names(*paths):
    return [os.fspath(item) for item in find_items(paths)]


def wrong(item):
    with pytest.raises(ImageError) as caught:
        read_bytes(item)
    return caught.value.message


@pytest.fixture
def tar(tmp_path):
    path = tmp_path / "SUN.tar"
    write_tar(path, {f"SUN/images/{n}.png": photo(n) for n in (3, 1, 2)})
    return path


def test_blob_goes_where_a_path_goes(tmp_path):
    blob = Blob("a.tar/b.png", photo(7))
    assert os.fspath(blob) == str(blob) == "a.tar/b.png"
    assert read_bytes(blob) == photo(7)
    assert open_image(blob).getpixel((0, 0)) == (7, 0, 128)
    assert photo(7)[:20] not in repr(blob).encode()
    assert get_encoder("mini").encode_images([blob]).shape == (1, get_encoder("mini").dim)


def test_blob_that_cannot_be_read():
    blob = Blob("a.tar", ImageError("damaged archive"))
    assert wrong(blob) == "damaged archive"
    with pytest.raises(ImageError, match="damaged archive"):
        open_image(blob)
    with pytest.raises(ImageError, match="too large"):
        check_bytes(MAX_BYTES + 1)


def test_files_and_folders_are_those_of_find_images(tmp_path):
    write_photos(tmp_path, ["b.png", "a/x.jpg", "a/.hidden.jpg", "a/notes.txt"])
    assert names(tmp_path) == [str(tmp_path / "b.png"), str(tmp_path / "a" / "x.jpg")]
    assert names(tmp_path / "none.jpg") == [str(tmp_path / "none.jpg")]


@pytest.mark.parametrize(("suffix", "mode"), [(".tar", "w"), (".tar.gz", "w:gz"), (".tgz", "w:gz")])
def test_tar_in_its_own_order(tmp_path, suffix, mode):
    path = tmp_path / f"SUN{suffix}"
    write_tar(path, {f"SUN/images/{n}.png": photo(n) for n in (3, 1, 2)}, mode)
    items = list(find_items([path]))
    assert [item.name for item in items] == [f"{path}/SUN/images/{n}.png" for n in (3, 1, 2)]
    assert [read_bytes(item) for item in items] == [photo(n) for n in (3, 1, 2)]
    assert list(find_names([path])) == [item.name for item in items]
    assert list(tmp_path.iterdir()) == [path]


def test_tar_gives_regular_images_only(tmp_path):
    link, pipe, folder = tarfile.TarInfo("link.jpg"), tarfile.TarInfo("pipe.jpg"), tarfile.TarInfo("folder.jpg")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    pipe.type, folder.type = tarfile.FIFOTYPE, tarfile.DIRTYPE
    path = tmp_path / "a.tar"
    others = {"notes.txt": b"x", "._mac.jpg": b"x", "a/.git/b.jpg": b"x"}
    write_tar(path, {"link": link, "pipe": pipe, "folder": folder, **others, "./good.JPEG": photo(1)})
    assert names(path) == [f"{path}/good.JPEG"]


def test_hostile_member_names_stay_names(tmp_path):
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    path = tmp_path / "in" / "a.tar"
    told = ["../../secret.jpg", "/etc/x.jpg", "a\nb\x7f.jpg", "c\\..\\d.jpg", "e/../../../f.jpg", "\udce9.jpg"]
    write_tar(path, {name: photo(n) for n, name in enumerate(told)})
    expected = ["_/_/secret.jpg", "etc/x.jpg", "a_b_.jpg", "c\\..\\d.jpg", "e/_/_/_/f.jpg", "\udce9.jpg"]
    assert names(path) == [f"{path}/{name}" for name in expected]
    assert [read_item(f"{path}/{name}") for name in expected] == [photo(n) for n in range(6)]
    for name in (f"{path}/../../secret.jpg", f"{path}/../../../../../../etc/passwd", f"{path}/none.jpg"):
        with pytest.raises(ImageError, match="no such file in the archive"):
            read_item(name)


def test_name_with_nul_is_no_file(tmp_path):
    with pytest.raises(ImageError, match="no such file"):
        read_item(f"{tmp_path}/a\0.jpg")
    with pytest.raises(ImageError, match="no such file"):
        read_item(f"{tmp_path}\0.tar/a.jpg")


@pytest.mark.parametrize("cut", [0, 100, 512, 560, 1024, 1500, 2048, 2600])
def test_truncated_tar_gives_what_is_before_the_end(tar, cut):
    data = tar.read_bytes()  # a header and a photo take 1024 bytes
    tar.write_bytes(data[:cut])
    *good, last = find_items([tar])
    assert [item.name for item in good] == [f"{tar}/SUN/images/{n}.png" for n in (3, 1, 2)][: cut // 1024]
    assert last.name == str(tar) and wrong(last) == f"damaged at byte {cut // 1024 * 1024}"
    assert list(find_names([tar])) == [item.name for item in good]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("wrong_bytes", [b"\xff" * 76, bytes(512)])
@pytest.mark.parametrize(
    ("broken", "at"), [((0,), [0]), ((1,), [1024]), ((2,), [2048]), ((0, 2), [0, 2048]), ((1, 2), [1024])]
)
def test_corrupt_headers_are_passed_over(tar, packed, wrong_bytes, broken, at):
    data = bytearray(tar.read_bytes())
    for number in broken:
        data[1024 * number : 1024 * number + len(wrong_bytes)] = wrong_bytes
    tar.write_bytes(gzip.compress(data) if packed else data)
    items = list(find_items([tar]))
    assert [wrong(item) for item in items if item.name == str(tar)] == [f"damaged at byte {n}" for n in at]
    kept = [(f"{tar}/SUN/images/{n}.png", photo(n)) for number, n in enumerate((3, 1, 2)) if number not in broken]
    assert [(item.name, item.data) for item in items if item.name != str(tar)] == kept
    assert list(find_names([tar])) == [name for name, _ in kept]
    assert dict(read_items([name for name, _ in kept])) == dict(kept)


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_no_damage_makes_a_tar_be_decompressed_again(tmp_path, monkeypatch, mode):
    path = tmp_path / "a.tar.gz"
    write_tar(path, {f"{n:03}.png": random.Random(n).randbytes(3000) for n in range(40)}, mode)
    with tarfile.open(path) as file:
        headers = [member.offset for member in file if int(member.name[:3]) % 10 == 4]
    opener = {"w:gz": gzip, "w:bz2": bz2, "w:xz": lzma}[mode]
    data = bytearray(opener.decompress(path.read_bytes()))
    for at in headers:
        data[at : at + 76] = b"\xff" * 76
    path.write_bytes(opener.compress(data))
    backwards = []

    class Watched(io.BytesIO):
        def seek(self, at, whence=0):
            if whence == 0 and at < self.tell():
                backwards.append(at)
            return super().seek(at, whence)

    monkeypatch.setattr(filesystems, "open_file", lambda path, buffer=0: Watched(Path(path).read_bytes()))
    items = list(find_items([path]))
    assert [wrong(item) for item in items if item.name == str(path)] == [f"damaged at byte {at}" for at in headers]
    kept = [n for n in range(40) if n % 10 != 4]
    assert [(item.name, item.data) for item in items if item.name != str(path)] == [
        (f"{path}/{n:03}.png", random.Random(n).randbytes(3000)) for n in kept
    ]
    assert backwards == [0]  # when it was asked what it is


@pytest.mark.parametrize("packed", [False, True])
def test_what_follows_the_end_of_a_tar(tar, packed):
    def told_of(data):
        tar.write_bytes(gzip.compress(data) if packed else data)
        return [item.data if isinstance(item.data, bytes) else wrong(item) for item in find_items([tar])]

    data, good = tar.read_bytes(), [photo(n) for n in (3, 1, 2)]
    assert told_of(data + bytes(5000)) == told_of(data[: 3 * 1024 + 512]) == good  # any number of zeros
    assert told_of(data + data) == [*good, "damaged at byte 3072", *good]
    assert told_of(data + b"x") == [*good, "damaged at byte 3072"]


def test_damaged_end_of_gzip(tmp_path):
    path = tmp_path / "a.tgz"
    write_tar(path, {"0.png": photo(0)}, "w:gz")
    data = bytearray(path.read_bytes())
    data[-6] ^= 1  # of the checksum
    path.write_bytes(data)
    good, last = find_items([path])
    assert good.data == photo(0) and wrong(last) == "damaged at byte 1024"


def test_long_name_that_is_lost(tmp_path):
    path, long = tmp_path / "a.tar", "/".join(["folder"] * 30) + "/x.png"
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as file:
        file.addfile(tarfile.TarInfo(long))
        file.addfile(tarfile.TarInfo("y.png"))
    path.write_bytes(path.read_bytes().replace(long.encode(), bytes(len(long))))
    bad, good = find_items([path])
    assert wrong(bad) == "damaged at byte 0" and good == Blob(f"{path}/y.png", b"")


def test_member_larger_than_its_tar_hides_nothing(tar):
    data = bytearray(tar.read_bytes())
    header = tarfile.TarInfo("huge.jpg")
    header.size = 1 << 30
    data[1024:1536] = header.tobuf()
    tar.write_bytes(data)
    first, bad, last = find_items([tar])
    assert (first.data, wrong(bad), last.data) == (photo(3), "damaged at byte 1024", photo(2))


@pytest.mark.parametrize("size", [-512, -1])
def test_negative_sizes_do_not_go_in_circles(tmp_path, size):
    path = tmp_path / "a.tar"
    header = tarfile.TarInfo("a.jpg")
    header.size = size
    pax = tarfile.TarInfo("b.jpg")
    pax.pax_headers = {"size": str(size)}
    with path.open("wb") as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT) + pax.tobuf(tarfile.PAX_FORMAT) + bytes(1024))
    *bad, rest = find_items([path])
    assert [wrong(item) for item in bad] == ["damaged at byte 0", "damaged at byte 512"]
    assert rest == Blob(f"{path}/b.jpg", b"")  # its own header says 0


def test_truncated_gzip(tmp_path):
    path = tmp_path / "a.tar.gz"
    write_tar(path, {f"{n}.png": os.urandom(50_000) for n in range(4)}, "w:gz")
    path.write_bytes(path.read_bytes()[:120_000])
    *good, last = find_items([path])
    assert [item.name for item in good] == [f"{path}/0.png", f"{path}/1.png"]
    assert last.name == str(path) and wrong(last) == "damaged at byte 101376"
    assert list(find_names([path])) == [item.name for item in good]


def test_tar_with_endless_name_is_refused(tmp_path):
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, LONGEST + 1
    path = tmp_path / "a.tar"
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(4096))
    [only] = find_items([path])
    assert wrong(only) == "damaged at byte 0"


def test_long_names_are_fine(tmp_path):
    path, long = tmp_path / "a.tar", "/".join(["folder" * 8] * 8) + "/x.png"
    write_tar(path, {long: photo(1)})
    assert names(path) == [f"{path}/{long}"] and read_item(f"{path}/{long}") == photo(1)


# tars that cost more than they are


def header(name, kind=tarfile.REGTYPE, size=0):
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def extended(payload, kind=tarfile.XHDTYPE):
    return header("@", kind, len(payload)) + payload + bytes(-len(payload) % 512)


def told_of(path, data, packed=False):
    path.write_bytes(gzip.compress(data) if packed else data)
    return [
        (item.name.removeprefix(str(path)), wrong(item) if item.name == str(path) else item.data)
        for item in find_items([path])
    ]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "one",
    [extended(b"a.jpg\0", tarfile.GNUTYPE_LONGNAME), extended(b"14 path=a.jpg\n"), extended(b"", tarfile.XGLTYPE)],
)
def test_extended_headers_in_a_row(tmp_path, packed, one):
    end = header("own.jpg") + bytes(512)
    name = "/own.jpg" if b"a.jpg" not in one else "/a.jpg"
    assert told_of(tmp_path / "a.tar", one * tars.CHAIN + end, packed) == [(name, b"")]
    last = header("b.jpg", size=1) + b"x" + bytes(1023)
    told = told_of(tmp_path / "a.tar", header("0.jpg") + one * 1100 + end[:512] + last, packed)
    chained = f"over {tars.CHAIN} extended headers in a row at byte 512"
    assert told == [("/0.jpg", b""), ("", chained), ("/own.jpg", b""), ("/b.jpg", b"x")]
    assert told_of(tmp_path / "a.tar", one * 1100, packed)[0] == ("", chained.replace("512", "0"))


@pytest.fixture
def small_bombs(monkeypatch):
    monkeypatch.setattr(tars, "FREE", 1 << 20)
    monkeypatch.setattr(tars, "BUFFER", 1 << 16)


@pytest.mark.parametrize("opener", [gzip, bz2])
@pytest.mark.parametrize(
    "start", [b"", header("a.txt"), header("a.jpg", size=16 << 20), header("a.txt", size=16 << 20)]
)
def test_what_decompresses_out_of_proportion_is_not_read_on(tmp_path, small_bombs, opener, start):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(opener.compress(header("0.jpg") + start + bytes(16 << 20)))
    tracemalloc.start()
    try:
        first, only = find_items([path])
        assert tracemalloc.get_traced_memory()[1] < 14 << 20
    finally:
        tracemalloc.stop()
    assert first.name == f"{path}/0.jpg"
    assert wrong(only).startswith(f"decompresses to over 1 MiB and {tars.RATIO} times its size at byte ")
    assert list(find_names([path])) == [first.name]


def test_member_over_the_limit_of_bytes_is_passed_over(tmp_path, small_bombs, monkeypatch):
    monkeypatch.setattr(decode, "MAX_BYTES", 1 << 20)
    path = tmp_path / "a.tar.gz"
    noise = random.Random(0).randbytes(4096) * 500
    write_tar(path, {"a.jpg": noise, "b.png": photo(1)}, "w:gz")
    large, good = find_items([path])
    assert wrong(large) == f"too large: {len(noise)} bytes is over {1 << 20}" and good.data == photo(1)


def test_zeros_behind_the_end_are_fine(tmp_path, small_bombs):
    data = header("a.jpg", size=512) + photo(1).ljust(512, b"\0") + bytes(900 << 10)
    assert [name for name, _ in told_of(tmp_path / "a.tar", data, True)] == ["/a.jpg"]
    with (tmp_path / "b.tar").open("wb") as file:
        file.write(data)
        file.truncate(1 << 26)
    assert names(tmp_path / "b.tar") == [f"{tmp_path}/b.tar/a.jpg"]


def test_damage_without_end(tmp_path):
    lost, good = header("a.txt") + bytes(512), header("a.jpg")
    told = told_of(tmp_path / "a.tar", (lost * (tars.PLACES - 1) + good) * 2 + lost * 100 + good)
    assert [name for name, _ in told].count("/a.jpg") == 2 and len(told) == 3 * tars.PLACES
    assert told[0] == ("", "damaged at byte 512") and told[-1][1].endswith(
        f", the {tars.PLACES}th place without a photo between: the rest is not read"
    )


@pytest.mark.parametrize(
    "records", [b"1" * 20_000, b"2 " * 10_000 + b"=\n", b"14 path=a.jpg!", b"99 path=a.jpg\n", b"3 =\n"]
)
@pytest.mark.parametrize("packed", [False, True])
def test_attributes_that_overlap_are_damage(tmp_path, records, packed):
    told = told_of(tmp_path / "a.tar", extended(records) + header("own.jpg") + bytes(1024), packed)
    assert told == [("", "damaged at byte 0"), ("/own.jpg", b"")]


def test_attributes_for_all_members_are_few(tmp_path):
    many = extended(b"".join(b"10 %05d=\n" % n for n in range(tars.GLOBALS + 1)), tarfile.XGLTYPE)
    attributes = extended(b"14 path=a.jpg\n")
    told = told_of(
        tmp_path / "a.tar",
        many + header("0.jpg") + attributes + header("x.jpg") + attributes + header("y.jpg") + bytes(512),
    )
    assert told == [("/0.jpg", b""), ("", "damaged at byte 11264"), ("/x.jpg", b""), ("/a.jpg", b"")]


def test_map_of_a_sparse_member_is_not_kept(tmp_path):
    info = bytearray(header("a.jpg", tarfile.GNUTYPE_SPARSE))
    info[482] = 1  # more of the map follows
    info[148:156] = b" " * 8
    info[148:156] = b"%06o\0 " % sum(info)
    block = b"%011o\0" % 1 * 42
    old = bytes(info) + (block + b"\1" + bytes(7)) * 5000 + block + bytes(8)
    new = (
        extended(b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n")
        + header("b.jpg", size=1 << 20)
        + b"500000\n"
        + b"1\n" * 524_284
        + b"\n"
    )
    tracemalloc.start()
    try:
        told = told_of(tmp_path / "a.tar", old + new + header("c.jpg") + bytes(1024))
        assert tracemalloc.get_traced_memory()[1] - len(old + new) < 4 << 20
    finally:
        tracemalloc.stop()
    assert told == [("/c.jpg", b"")]


@pytest.mark.parametrize("name", ["none.tar", "none.tgz", "none.parquet", "none.arrow", "none.txt"])
def test_missing_archive_is_one_bad_item(tmp_path, name):
    [only] = find_items([tmp_path / name])
    assert only.name == str(tmp_path / name) and wrong(only) == "no such file"


@pytest.mark.parametrize("head", [b"PAR1", b"\x1f\x8b", b"ARROW1", b""])
@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.parquet", "a.arrow"])
def test_no_archive_at_all(tmp_path, name, head):
    (tmp_path / name).write_bytes(head + b" this is none of them" * 100)
    [only] = find_items([tmp_path / name])
    assert wrong(only) == ("damaged at byte 0" if "tar" in name else "damaged archive")
    assert list(find_names([tmp_path / name])) == []


def test_parquet_as_hugging_face_writes_it(tmp_path):
    path = tmp_path / "validation-0.parquet"
    images = [
        (photo(0), "x/ILSVRC_1.JPEG"),
        (photo(1), None),
        (photo(2), "../../..\\up\n.jpg"),
        (photo(3), "a"),
        (photo(4), "a"),
    ]
    write_parquet(path, images, [7, 999, -1, 7, None])
    expected = ["7/0-ILSVRC_1.JPEG", "999/1", "-1/2-up_.jpg", "7/3-a", "4-a"]
    items = list(find_items([path]))
    assert [item.name for item in items] == [f"{path}/{name}" for name in expected]
    assert [item.data for item in items] == [photo(n) for n in range(5)]
    assert list(find_names([path])) == [item.name for item in items]
    assert [read_item(item.name) for item in items] == [photo(n) for n in range(5)]


def test_parquet_with_plain_bytes_and_holes(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path, [photo(0), None, photo(2)])
    assert names(path) == list(find_names([path])) == [f"{path}/0", f"{path}/1", f"{path}/2"]
    assert read_item(f"{path}/2") == photo(2)
    [_, hole, _] = find_items([path])
    with pytest.raises(ImageError, match="empty file"):
        open_image(hole)


def test_rows_beyond_the_first_batch_and_group(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path, [photo(n) for n in range(150)], [n % 3 for n in range(150)], rows=100)
    assert names(path) == [f"{path}/{n % 3}/{n}" for n in range(150)]
    assert dict(read_items([f"{path}/2/149", f"{path}/0/0"])) == {f"{path}/2/149": photo(149), f"{path}/0/0": photo(0)}
    for name in (f"{path}/2/150", f"{path}/1/149", f"{path}/x"):
        with pytest.raises(ImageError, match="no such file in the archive"):
            read_item(name)


# columns


def write_table(path, columns):
    """A table of any columns, Parquet or Arrow by its suffix."""
    table = pa.table(columns)
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    else:
        with pa.ipc.new_stream(str(path), table.schema) as file:
            file.write_table(table)


@pytest.fixture(params=["a.parquet", "a.arrow"])
def table(tmp_path, request):
    return tmp_path / request.param


@pytest.mark.parametrize("kind", [pa.large_binary(), pa.binary(len(photo(0))), pa.binary_view(), None])
def test_every_kind_of_binary(table, kind):
    column = pa.array([photo(0), photo(1)])
    write_table(table, {"image": column.cast(kind) if kind else column.dictionary_encode()})
    assert [item.data for item in find_items([table])] == [photo(0), photo(1)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), None])
def test_column_of_paths(table, kind, monkeypatch):
    monkeypatch.chdir(table.parent)
    write_photos(table.parent, ["in/a.png", "in/b.png"])
    column = pa.array(["in/b.png", "in/a.png", None, "none.png"])
    write_table(table, {"path": column.cast(kind) if kind else column.dictionary_encode(), "label": [1, 2, 3, 4]})
    first, second, hole, missing = find_items([table])
    assert (first, second, missing) == (Path("in/b.png"), Path("in/a.png"), Path("none.png"))
    assert hole == Blob(f"{table}/3/2", b"")
    assert read_item(str(first)) == photo(1)
    assert list(find_names([table])) == ["in/b.png", "in/a.png", f"{table}/3/2", "none.png"]


def test_struct_without_bytes_is_read_where_its_path_says(table):
    write_photos(table.parent, ["a.png"])
    elsewhere = str(table.parent / "a.png")
    write_table(table, {"image": [{"bytes": None, "path": elsewhere}, {"bytes": None, "path": "none.png"}, None]})
    good, bad, empty = find_items([table])
    assert good == Blob(f"{table}/0-a.png", photo(0)) and empty == Blob(f"{table}/2", b"")
    assert bad.name == f"{table}/1-none.png" and wrong(bad) == "no such file"
    assert list(find_names([table])) == [good.name, bad.name, empty.name]
    assert read_item(good.name) == photo(0)


@pytest.mark.parametrize("data", ["text", 5, [b"x"]])
def test_struct_whose_bytes_are_none(table, data):
    write_table(table, {"image": [{"bytes": data, "path": "x.png"}], "a": [1]})
    with pytest.raises(InputError, match=r'column "image" of .* has struct<.*>, not images.* it has: image, a$'):
        list(find_items([table]))
    write_table(table, {"other": [{"bytes": data, "path": "x.png"}], "path": ["y.png"]})
    assert list(find_items([table])) == [Path("y.png")]


@pytest.mark.parametrize("path", [5, b"x.png", ["x.png"]])
def test_struct_whose_path_is_none(table, path):
    write_table(table, {"image": [{"bytes": photo(0), "path": path}]})
    assert list(find_items([table])) == [Blob(f"{table}/0", photo(0))]
    assert list(find_names([table])) == [f"{table}/0"]


def test_column_that_is_called_like_a_field(table):
    write_table(table, {"image": [{"bytes": photo(0), "path": "x.png"}], "image.bytes": [b"x"], "image.path": ["y"]})
    assert list(find_items([table])) == [Blob(f"{table}/0-x.png", photo(0))]
    assert list(find_names([table])) == [f"{table}/0-x.png"]
    assert list(find_items([table], column="image.bytes")) == [Blob(f"{table}/0", b"x")]


def test_which_column_has_the_images(table):
    struct = [{"bytes": photo(1), "path": None}]
    write_table(table, {"path": ["x.png"], "image": [photo(0)], "other": struct})
    assert [item.data for item in find_items([table])] == [photo(0)]
    assert [item.data for item in find_items([table], column="other")] == [photo(1)]
    write_table(table, {"path": ["x.png"], "image": [5], "other": struct})
    assert [item.data for item in find_items([table])] == [photo(1)]
    assert list(read_items([f"{table}/0"])) == [(f"{table}/0", photo(1))]
    write_table(table, {"path": ["x.png"], "one": struct, "two": struct})
    assert list(find_items([table])) == [Path("x.png")]
    assert list(read_items([f"{table}/0"], column="two")) == [(f"{table}/0", photo(1))]


def test_missing_column_names_those_that_exist(table):
    write_table(table, {"a": [1], "b": [photo(0)], "c": ["x"]})
    told = f'{table} has no column "img", it has: a, b, c'
    with pytest.raises(InputError) as caught:
        list(find_items([table], column="img"))
    assert (caught.value.message, caught.value.hint) == (told, "name one of them with --column")
    with pytest.raises(InputError, match='has no column "image"'):
        list(find_items([table]))
    with pytest.raises(InputError, match=r'column "a" of .* has int64, not images'):
        list(find_items([table], column="a"))
    assert list(find_names([table])) == []
    listed = table.parent / "all.txt"
    listed.write_text(str(table))
    [only] = find_items([listed], column="img")
    assert only.name == str(table) and wrong(only) == told


def test_missing_column_in_a_folder_is_an_item(tmp_path):
    write_table(tmp_path / "a.parquet", {"a": [1]})
    write_parquet(tmp_path / "b.parquet", [photo(1)])
    bad, good = find_items([tmp_path])
    assert wrong(bad) == f'{tmp_path / "a.parquet"} has no column "image", it has: a' and good.data == photo(1)


# damage in tables


def spoiled(path, group, column=0):
    """Overwrite the pages of a column of a row group."""
    place = pa.parquet.read_metadata(path).row_group(group).column(column)
    data = bytearray(path.read_bytes())
    start = place.dictionary_page_offset or place.data_page_offset
    data[start : start + place.total_compressed_size] = b"\xff" * place.total_compressed_size
    path.write_bytes(data)


def test_damaged_row_group_is_passed_over(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path, [photo(n) for n in range(9)])
    spoiled(path, 1)
    items = list(find_items([path]))
    assert [item.name for item in items] == [f"{path}/{n}" for n in (0, 1, 2)] + [str(path)] + [
        f"{path}/{n}" for n in (6, 7, 8)
    ]
    assert wrong(items[3]) == "damaged row group 1 (rows 3 to 5)"
    assert [item.data for item in items if item is not items[3]] == [photo(n) for n in (0, 1, 2, 6, 7, 8)]
    with pytest.raises(ImageError, match="no such file in the archive"):
        read_item(f"{path}/4")
    assert read_item(f"{path}/8") == photo(8)


def test_damage_behind_the_first_rows_of_a_group(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(
        path, [photo(n) for n in range(200)], rows=200, use_dictionary=False, data_page_size=1, write_batch_size=8
    )
    data = bytearray(path.read_bytes())
    place = pa.parquet.read_metadata(path).row_group(0).column(0)
    end = place.data_page_offset + place.total_compressed_size
    data[end - 100 : end] = bytes(100)
    path.write_bytes(data)
    *good, last = find_items([path])
    assert wrong(last) == "damaged row group 0 (rows 0 to 199)"
    assert [item.data for item in good] == [photo(n) for n in range(len(good))] and 64 <= len(good) < 200


def test_text_that_is_none_counts_the_same_when_skipped(tmp_path):
    path = tmp_path / "a.parquet"
    texts = pa.array([b"a.png"] * 70 + [b"\xff"] + [b"a.png"] * 79)
    column = pa.Array.from_buffers(pa.string(), len(texts), texts.buffers())
    pa.parquet.write_table(pa.table({"path": column}), path, row_group_size=100)
    [piece] = find_pieces([path])
    every = list(map(told, piece.items()))
    assert len(every) == 64 + 1 + 50 and every[64] == (
        str(path),
        str(ImageError("damaged row group 0 (rows 0 to 99)", hint="fetch or copy it again")),
    )
    for skip in (64, 65, 80, 115):
        assert list(map(told, piece.items(skip))) == every[skip:]


def test_what_is_skipped_is_not_made_into_items(tmp_path, monkeypatch):
    write_parquet(tmp_path / "a.parquet", [photo(n) for n in range(150)], rows=100)
    [piece] = find_pieces([tmp_path / "a.parquet"])
    made, inner = [], tables.rows_of
    monkeypatch.setattr(tables, "rows_of", lambda *args: made.append(args[2].num_rows) or inner(*args))
    assert [item.data for item in piece.items(120)] == [photo(n) for n in range(120, 150)]
    assert sum(made) == 30


class Failing(io.BytesIO):
    """A file on a disk that fails in the middle."""

    error: Exception
    filesystems: range

    def read(self, size=-1):
        if self.tell() in self.filesystems:
            raise self.error
        return super().read(size)


@pytest.mark.parametrize(
    ("name", "filesystems", "error"),
    [
        ("a.tar", range(200_000, 260_000), "input/output error at byte 204800"),
        ("a.parquet", range(200_000, 260_000), "input/output error in row group 2 (rows 6 to 8)"),
        ("a.parquet", range(400_000), "input/output error"),
        ("a.arrow", range(1), "input/output error, row 0"),
    ],
)
def test_failing_disk_is_no_damage(tmp_path, monkeypatch, name, filesystems, error):
    path = tmp_path / name
    large = [photo(n) + bytes(40_000) for n in range(9)]
    if name == "a.tar":
        write_tar(path, {f"{n}.png": data for n, data in enumerate(large)})
    elif name == "a.parquet":
        write_parquet(path, large, compression="none", use_dictionary=False)
    else:
        write_arrow(path, large)
    [piece] = find_pieces([path])
    file = Failing(path.read_bytes())
    file.filesystems = filesystems
    monkeypatch.setattr("outword.photos.sources.filesystems.open_file", lambda path, buffer=0: file)
    monkeypatch.setattr(file, "close", lambda: file.seek(0))
    file.error = OSError(errno.EIO, "Input/output error")
    *_, last = piece.items()
    assert wrong(last) == error
    file.seek(0)
    file.error = MemoryError()
    *_, last = piece.items()
    assert wrong(last) == error.replace("input/output error", "not enough memory to read it")


def test_member_that_memory_does_not_hold_hides_no_other(tar, monkeypatch):
    def full(file, size, member, wanted, inner=tars._content):
        if member.name.endswith("1.png"):
            raise MemoryError
        return inner(file, size, member, wanted)

    monkeypatch.setattr(tars, "_content", full)
    first, bad, last = find_items([tar])
    assert (first.data, last.data) == (photo(3), photo(2))
    assert wrong(bad) == "not enough memory to read it at byte 1024"


@pytest.mark.parametrize("writer", [pa.ipc.new_stream, pa.ipc.new_file])
def test_arrow_files(tmp_path, writer):
    path = tmp_path / "a.arrow"
    write_arrow(path, [(photo(n), f"{n}.png") for n in range(150)], [n % 3 for n in range(150)], 100, writer=writer)
    items = list(find_items([path]))
    assert [item.name for item in items] == [f"{path}/{n % 3}/{n}-{n}.png" for n in range(150)]
    assert [item.data for item in items] == [photo(n) for n in range(150)]
    assert list(find_names([path])) == [item.name for item in items]
    assert read_item(items[120].name) == photo(120)


def test_truncated_arrow_file(tmp_path):
    path = tmp_path / "a.arrow"
    write_arrow(path, [photo(n) for n in range(9)])
    path.write_bytes(path.read_bytes()[:-400])
    *good, last = find_items([path])
    assert [item.data for item in good] == [photo(n) for n in range(6)]
    assert last.name == str(path) and wrong(last) == "damaged archive, row 6"


def test_arrow_offsets_that_point_elsewhere(tmp_path):
    path = tmp_path / "a.arrow"
    write_arrow(path, [photo(n) for n in range(3)])
    size = len(photo(0))
    offsets = b"".join((n * size).to_bytes(4, "little") for n in range(4))
    data = path.read_bytes()
    assert data.count(offsets) == 1
    path.write_bytes(data.replace(offsets, offsets[:12] + b"\xff\xff\xff\x7f"))
    [only] = find_items([path])
    assert wrong(only) == "damaged archive, row 0"


# datasets on disk


def test_dataset_of_hugging_face(tmp_path):
    top = tmp_path / "pets"
    write_dataset(top, [(photo(1), "x.png"), (photo(2), None)], [(photo(3), None)], column="img")
    one, two = (top / f"data-0000{n}-of-00002.arrow" for n in (0, 1))
    assert names(top) == [f"{one}/0-x.png", f"{one}/1", f"{two}/0"]
    assert [item.data for item in find_items([f"{top}/"])] == [photo(1), photo(2), photo(3)]
    assert read_item(f"{two}/0") == photo(3)
    with pytest.raises(InputError, match='no column "x", it has: img'):
        list(find_items([top], column="x"))


def test_dataset_with_splits(tmp_path):
    for number, split in enumerate(("test", "train")):
        write_dataset(tmp_path / split, [photo(number)])
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    assert [item.data for item in find_items([tmp_path])] == [photo(1), photo(0)]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"_data_files": [3]}', '{"_data_files": [{"filename": 3}]}', "[" * 9999]
)
def test_damaged_list_of_a_dataset(tmp_path, text):
    write_dataset(tmp_path, [photo(1)])
    (tmp_path / "state.json").write_text(text)
    [only] = find_items([tmp_path])
    assert only.name == str(tmp_path / "state.json") and wrong(only) == "damaged list of the files of a dataset"


@pytest.mark.parametrize("name", [".", "", "/", "link"])
def test_dataset_that_names_itself(tmp_path, name):
    (tmp_path / "link").symlink_to(".")
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": [name, name, "link"]}))
    for item in find_items([tmp_path]):
        assert item.name.endswith("state.json") and wrong(item) == "no such file"


def test_dataset_reads_a_split_once(tmp_path):
    write_dataset(tmp_path / "train", [photo(1)])
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": ["train"] * 9}))
    assert [item.data for item in find_items([tmp_path])] == [photo(1)]


def test_list_of_a_dataset_is_small(tmp_path, monkeypatch):
    write_dataset(tmp_path, [photo(1)])
    monkeypatch.setattr(huggingface, "LONGEST", 20)
    [only] = find_items([tmp_path])
    assert only.name == str(tmp_path / "state.json") and wrong(only) == "too large: over 20 bytes"


def test_dataset_does_not_lead_elsewhere(tmp_path):
    write_arrow(tmp_path / "secret.arrow", [photo(1)])
    write_dataset(tmp_path / "data", [photo(2)])
    (tmp_path / "data" / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../secret.arrow"}]}))
    [only] = find_items([tmp_path / "data"])
    assert only.name == str(tmp_path / "data" / "secret.arrow") and wrong(only) == "no such file"


def test_dataset_with_a_name_that_no_file_can_have(tmp_path):
    write_dataset(tmp_path, [photo(1)])
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "\\udc7f\\udd00\\udce9\\ud800.arrow"}]}')
    [only] = find_items([tmp_path])
    assert only.name == f"{tmp_path}/__\udce9_.arrow" and wrong(only) == "no such file"


# lists, patterns, folders


def test_list_of_paths(tmp_path, monkeypatch, tar):
    monkeypatch.chdir(tmp_path)
    write_photos(tmp_path, ["a.png", "in/ b .png"])
    odd = os.fsdecode(b"caf\xe9.jpg")
    lines = ["a.png", "", "in/ b .png", "  ", "SUN.tar", odd, "*.png", "in", "none.txt"]
    for name, head, end in (("l.txt", b"", b"\n"), ("l.LST", b"\xef\xbb\xbf", b"\r\n"), ("in/l.list", b"", b"\n")):
        Path(name).write_bytes(head + end.join(map(os.fsencode, lines)))
        inside = [f"SUN.tar/SUN/images/{n}.png" for n in (3, 1, 2)]
        assert names(name) == ["a.png", "in/ b .png", *inside, odd, "*.png", "in", "none.txt"]
    assert [wrong(item) for item in list(find_items(["l.txt"]))[-4:]] == ["no such file"] * 2 + [
        "is a directory",
        "no such file",
    ]


def test_list_that_is_none(tmp_path):
    path = tmp_path / "a.txt"
    longest = b"x" * (listing.LONGEST - 1) + b"\n"
    path.write_bytes(b"a.png\n" + b"x" * 3 * listing.LONGEST + b"\nb.png\n" + longest + b"y" + longest + b"c.png")
    first, bad, second, long, worse, last = find_items([path])
    assert (first, second, last) == (Path("a.png"), Path("b.png"), Path("c.png"))
    assert len(str(long)) == listing.LONGEST - 1
    assert bad.name == worse.name == str(path) and wrong(bad) == "the line at byte 6 is no path"
    assert wrong(worse) == f"the line at byte {4 * listing.LONGEST + 13} is no path"


def test_braces(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for n in (8, 9, 10):
        write_tar(tmp_path / f"s-{n:03}.tar", {f"{n}.png": photo(n)})
    assert names("s-{008..010}.tar") == [f"s-{n:03}.tar/{n}.png" for n in (8, 9, 10)]
    assert names("s-{010..008..2}.tar") == [f"s-{n:03}.tar/{n}.png" for n in (10, 8)]
    assert names("s-0{08,10}.tar", "s-0{1,0}*.tar") == [f"s-{n:03}.tar/{n}.png" for n in (8, 10, 10, 8, 9)]
    assert names("{1..3}.jpg", "{x}.jpg") == ["1.jpg", "2.jpg", "3.jpg", "{x}.jpg"]
    write_tar(tmp_path / "s-{008..010}.tar", {"only.png": photo(1)})
    assert names("s-{008..010}.tar") == ["s-{008..010}.tar/only.png"]


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("{0..999999999999}.jpg", "stand for 1,000,000,000,000 paths, and may for 1,000,000"),
        ("{a,b}" * 2000, "stand for about 10^602 paths"),
        ("{a,b}" * 20_000, "stand for about 10^6021 paths"),
        (f"{{{',' * 100_000}}}" * 2, "stand for 10,000,200,001 paths"),
        (f"{{0..{'9' * 5000}}}", "a number in braces may have 18 digits, got 5000"),
        ("*/" * 300, "a glob pattern may have at most 256 parts, got 300"),
        ("**/a/**/a/**", 'a glob pattern may have at most 2 "**", got 3'),
    ],
)
def test_patterns_are_counted_before_they_are_expanded(tmp_path, monkeypatch, pattern, told):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=re.escape(told)):
        next(find_items([pattern]))


def test_braces_that_are_not_closed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text in ("{" + "a," * 100_000, "{" * 100_000, "{a{b,c", "{a,{b,c}}"):
        assert len(names(text)) == 1 + ("{b,c}" in text)


def test_many_stars_for_any_depth_are_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_photos(tmp_path, ["/".join(["d"] * 30) + "/a.jpg", "b.jpg"])
    assert names("**/" * 20 + "*.jpg") == names("**/*.jpg") == ["b.jpg", "d/" * 30 + "a.jpg"]


def test_links_that_lead_back_on_a_server(monkeypatch):
    monkeypatch.setattr(filesystems, "scan", lambda folder: iter([("a.jpg", False), ("loop", True)]))
    monkeypatch.setattr(filesystems, "exists", lambda path: False)
    monkeypatch.setattr(filesystems, "is_file", lambda path: False)
    monkeypatch.setattr(filesystems, "check_packages", lambda path: None)
    for given in ("s3://host/top/", "s3://host/top/**/*.jpg"):
        *photos, last = find_pieces([given])
        assert sum(piece.count() for piece in photos) == filesystems.DEPTH + 1
        assert last == UnreadableSource("s3://host/top" + "/loop" * (filesystems.DEPTH + 1), "over 64 folders deep")


def test_patterns_stand_for_every_kind(tmp_path, monkeypatch, tar):
    monkeypatch.chdir(tmp_path)
    write_photos(tmp_path, ["data/a/x.png", "data/b.png"])
    write_dataset(tmp_path / "data" / "c", [photo(1)])
    Path("data/d.txt").write_text("data/b.png\n")
    inside = [f"SUN.tar/SUN/images/{n}.png" for n in (3, 1, 2)]
    expected = ["data/a/x.png", "data/b.png", "data/c/data-00000-of-00001.arrow/0", "data/b.png"]
    assert names("data/*") == expected and names("*.tar", "data/*/x*") == [*inside, "data/a/x.png"]
    assert names("data/*.gif") == ["data/*.gif"]


def test_folder_larger_than_memory(tmp_path, monkeypatch):
    odd = [os.fsdecode(b"caf\xe9.jpg"), "new\nline.jpg", "\U0001f600.jpg", "\uffee.jpg", "dir.jpg/no.jpg"]
    write_photos(
        tmp_path, [f"{a}/{b}{c}.png" for a, b, c in product("zax", "yb", "213")] + [f"a/q/{one}" for one in odd]
    )
    expected = names(tmp_path), names(tmp_path / "*" / "*1*"), names(tmp_path / "**" / "?.jpg")
    assert len(expected[0]) == 23 and len(expected[1]) == 6 and len(expected[2]) == 2
    for most in (1, 2, 5):
        monkeypatch.setattr(walk, "NAMES", most)
        assert (names(tmp_path), names(tmp_path / "*" / "*1*"), names(tmp_path / "**" / "?.jpg")) == expected
    next(find_items([tmp_path]))  # leaves nothing open


# pieces


@pytest.fixture
def sources(tmp_path, tar):
    """One of each kind, all of them damaged that can be."""
    write_photos(tmp_path, [f"f/{n}.png" for n in range(5)])
    data = bytearray(tar.read_bytes())
    data[1024:1100] = b"\xff" * 76
    tar.write_bytes(data)
    (tmp_path / "b.tgz").write_bytes(gzip.compress(data)[:-100])
    write_parquet(tmp_path / "c.parquet", [photo(n) for n in range(150)], [3] * 150, rows=40)
    spoiled(tmp_path / "c.parquet", 1)
    write_arrow(tmp_path / "d.arrow", [(photo(n), f"{n}.png") for n in range(150)], rows=50)
    (tmp_path / "d.arrow").write_bytes((tmp_path / "d.arrow").read_bytes()[:-400])
    (tmp_path / "e.txt").write_text(f"{tmp_path / 'f' / '3.png'}\nnone.png\n{tmp_path / 'none.tar'}\n")
    (tmp_path / "g.parquet").write_bytes(b"no table")
    return [tmp_path / name for name in ("f", "SUN.tar", "b.tgz", "c.parquet", "d.arrow", "e.txt", "g.parquet")]


def told(item):
    """All that there is to an item."""
    return os.fspath(item), item.data if isinstance(item, Blob) and isinstance(item.data, bytes) else str(
        getattr(item, "data", "")
    )


def test_pieces_begin_anywhere(sources):
    for piece in find_pieces(sources):
        every = list(map(told, piece.items()))
        assert every and every == list(map(told, piece.items()))
        for skip in {0, 1, 2, 3, 40, 41, 42, 70, 100, 129, len(every) - 1, len(every), len(every) + 1}:
            assert list(map(told, piece.items(skip))) == every[skip:]


def test_names_do_not_depend_on_contents(sources):
    for piece in find_pieces(sources):
        if not piece.name.startswith(str(sources[3])):  # damage in the photos of a table is not seen without them
            without = [os.fspath(item) for item in piece.items(contents=False)]
            assert without == [os.fspath(item) for item in piece.items()]
            assert [os.fspath(item) for item in piece.items(2, contents=False)] == without[2:]


def test_pieces_travel_and_are_counted(sources):
    pieces = list(find_pieces(sources))
    copies = pickle.loads(pickle.dumps(pieces))
    assert copies == pieces and [copy.version() for copy in copies] == [piece.version() for piece in pieces]
    assert len({piece.version() for piece in pieces}) == len({piece.name for piece in pieces}) == len(pieces)
    assert [piece.count() for piece in pieces] == [5, None, None, 150, None, 2, None, 1]
    assert [len(list(piece.items())) for piece in pieces if piece.count()] == [5, 111, 2, 1]


def test_marks_show_changes(sources):
    before = {piece.name: piece.version() for piece in find_pieces(sources)}
    for path in sources:
        if path.is_file() and path.suffix != ".txt":
            os.utime(path, ns=(1, 1))
    sources[0].joinpath("0.png").unlink()
    changed = {piece.name for piece in find_pieces(sources) if before.get(piece.name) != piece.version()}
    kept = [piece for piece in find_pieces(sources) if piece.name not in changed]
    assert [type(piece) for piece in kept] == [Files, Tar, UnreadableSource]


def test_sizes_of_pieces(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("x.png\n" * (PART + 1) + "a.tar\n" + "x.png\n")
    first, second, tar, last = find_pieces([path])
    assert [len(piece.paths) for piece in (first, second, last)] == [PART, 1, 1] and tar.name == "a.tar"
    assert [piece.paths for piece in find_pieces(["a.jpg", "b.jpg"])] == [("a.jpg", "b.jpg")]
    write_parquet(tmp_path / "b.parquet", [photo(n) for n in range(20)])
    monkeypatch.setattr(tables.base, "PART", 7)
    pieces = list(find_pieces([tmp_path / "b.parquet"]))
    assert [piece.rows for piece in pieces] == [6, 6, 6, 2]
    assert [item.data for piece in pieces for item in piece.items()] == [photo(n) for n in range(20)]
    monkeypatch.setattr(tables.base, "PART", 1)
    assert [piece.rows for piece in find_pieces([tmp_path / "b.parquet"])] == [3, 3, 3, 3, 3, 3, 2]


# folders and stores


def test_folder_gives_parquet_but_no_tar(tmp_path, tar):
    write_parquet(tmp_path / "data" / "b.parquet", [photo(1)])
    write_photos(tmp_path, ["data/a.png", "data/c.png"])
    expected = ["data/a.png", "data/b.parquet/0", "data/c.png"]
    assert names(tmp_path) == [str(tmp_path / name) for name in expected]


def test_read_items_reads_files_too(tmp_path, tar):
    write_photos(tmp_path, ["a.png"])
    inside = f"{tar}/SUN/images/2.png"
    found = dict(read_items([str(tmp_path / "a.png"), inside, str(tmp_path / "none.png"), inside]))
    assert len(found) == 3 and found[str(tmp_path / "a.png")] == photo(0) and found[inside] == photo(2)
    assert isinstance(found[str(tmp_path / "none.png")], ImageError)


def test_read_items_leaves_an_archive_when_all_is_found(tmp_path, monkeypatch):
    write_tar(tmp_path / "a.tar", {f"{n}.png": photo(n) for n in range(9)})
    write_parquet(tmp_path / "b.parquet", [photo(n) for n in range(9)])
    seen, walk = [], tars._photo
    monkeypatch.setattr(tars, "_photo", lambda member: seen.append(member.name) or walk(member))
    wanted = [f"{tmp_path}/a.tar/{n}.png" for n in (3, 1)] + [f"{tmp_path}/b.parquet/4"]
    found = read_items(wanted)
    assert next(found) == (wanted[1], photo(1)) and seen == ["0.png", "1.png"]  # one is in memory at a time
    assert list(found) == [(wanted[0], photo(3)), (wanted[2], photo(4))] and seen[-1] == "3.png"


def test_read_items_fetches_only_what_is_asked_for(table, monkeypatch):
    write_photos(table.parent, [f"{n}.png" for n in range(9)])
    write_table(table, {"image": [{"bytes": None, "path": str(table.parent / f"{n}.png")} for n in range(9)]})
    read, fetched = [], filesystems.read_file
    monkeypatch.setattr(filesystems, "read_file", lambda path: read.append(path) or fetched(path))
    assert read_item(f"{table}/5-5.png") == photo(5) and read == [str(table.parent / "5.png")]


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"\[parquet\]"):
        list(find_items([tmp_path / "a.parquet"]))


def test_store_of_archives_encodes_nothing_twice(tmp_path, tar):
    table = tmp_path / "v.parquet"
    write_parquet(table, [(photo(1), "same.png"), (b"no image", None), (photo(9), "new.png")], [0, 1, 0])
    broken = tmp_path / "broken.tar"
    broken.write_bytes(tar.read_bytes()[:1500])
    encoder, store = get_encoder("mini"), tmp_path / "store"
    first = embed(encoder, find_items([tar, table, broken]), store)
    assert (first.encoded, first.reused, first.errors) == (4, 2, 2)
    again = embed(encoder, find_items([tar, table, broken]), store)
    assert (again.encoded, again.errors, again.rows) == (0, 2, 8)
    rows = dict(open_store(store, encoder.fingerprint, encoder.name).rows())
    assert set(rows) == set(names(tar, table, broken))
    assert rows[str(broken)].message == "damaged at byte 1024" and rows[f"{table}/1/1"].message == "not an image"


def test_float_maps_are_taken_from_folders(tmp_path):
    (tmp_path / "a.pfm").write_bytes(b"Pf\n1 1\n-1.0\n" + bytes(4))
    [only] = find_items([tmp_path])
    assert open_image(only).size == (1, 1)


def test_rows_that_share_a_large_value_are_read_few_at_a_time(tmp_path, monkeypatch):
    """A dictionary has it once, in a file of 1 kB; in memory it would be there for each row."""
    path, asked = tmp_path / "a.parquet", []
    write_parquet(path, [bytes(100_000)] * 64, rows=64)
    monkeypatch.setattr(tables, "UNPACKED", 300_000)
    plain = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda self, n, **k: asked.append(n) or plain(self, n, **k))
    assert [item.data for item in find_items([path])] == [bytes(100_000)] * 64
    assert asked == [2]

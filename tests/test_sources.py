"""Photos inside archives: order, names, damage, and what a store makes of them."""

import os
import sys
import tarfile

import pytest

from archives import photo, write_parquet, write_photos, write_tar
from outword.embed import embed
from outword.encoders import get_encoder
from outword.errors import ImageError, MissingExtraError
from outword.images import MAX_BYTES, Blob, check_bytes, open_image, read_bytes
from outword.sources import LONGEST, find_items, find_names, read_items
from outword.store import open_store


def read_item(name):
    """The content of one photo, or its error."""
    data = read_items([name])[name]
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
    [(given, pixels)] = get_encoder("mini").pixels_ahead([blob])
    assert given is blob and not isinstance(pixels, Exception)


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
    assert last.name == str(tar) and wrong(last) == "damaged archive"


def test_corrupt_header_is_not_the_end_of_a_tar(tar):
    data = bytearray(tar.read_bytes())
    data[1024:1100] = b"\xff" * 76
    tar.write_bytes(data)
    good, last = find_items([tar])
    assert good.name.endswith("3.png") and wrong(last) == "damaged archive"
    assert list(find_names([tar])) == [good.name]


def test_truncated_gzip(tmp_path):
    path = tmp_path / "a.tar.gz"
    write_tar(path, {f"{n}.png": os.urandom(50_000) for n in range(4)}, "w:gz")
    path.write_bytes(path.read_bytes()[:120_000])
    *good, last = find_items([path])
    assert [item.name for item in good] == [f"{path}/0.png", f"{path}/1.png"]
    assert last.name == str(path) and wrong(last) == "damaged archive"


def test_tar_with_endless_name_is_refused(tmp_path):
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, LONGEST + 1
    path = tmp_path / "a.tar"
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(4096))
    [only] = find_items([path])
    assert wrong(only) == "damaged archive"


def test_long_names_are_fine(tmp_path):
    path, long = tmp_path / "a.tar", "/".join(["folder" * 8] * 8) + "/x.png"
    write_tar(path, {long: photo(1)})
    assert names(path) == [f"{path}/{long}"] and read_item(f"{path}/{long}") == photo(1)


@pytest.mark.parametrize("name", ["none.tar", "none.tgz", "none.parquet"])
def test_missing_archive_is_one_bad_item(tmp_path, name):
    [only] = find_items([tmp_path / name])
    assert only.name == str(tmp_path / name) and wrong(only) == "no such file or directory"


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.parquet"])
def test_no_archive_at_all(tmp_path, name):
    (tmp_path / name).write_bytes(b"PAR1 this is none of them" * 100)
    [only] = find_items([tmp_path / name])
    assert wrong(only) == "damaged archive"
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


def test_parquet_without_images(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path, ["text", "more"])
    [only] = find_items([path])
    assert wrong(only) == 'no column "image" with the bytes of images'


def test_rows_beyond_the_first_batch_and_group(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path, [photo(n) for n in range(150)], [n % 3 for n in range(150)], rows=100)
    assert names(path) == [f"{path}/{n % 3}/{n}" for n in range(150)]
    assert read_items([f"{path}/2/149", f"{path}/0/0"]) == {f"{path}/2/149": photo(149), f"{path}/0/0": photo(0)}
    for name in (f"{path}/2/150", f"{path}/1/149", f"{path}/x"):
        with pytest.raises(ImageError, match="no such file in the archive"):
            read_item(name)


def test_folder_gives_parquet_but_no_tar(tmp_path, tar):
    write_parquet(tmp_path / "data" / "b.parquet", [photo(1)])
    write_photos(tmp_path, ["data/a.png", "data/c.png"])
    expected = ["data/a.png", "data/b.parquet/0", "data/c.png"]
    assert names(tmp_path) == [str(tmp_path / name) for name in expected]


def test_read_items_reads_files_too(tmp_path, tar):
    write_photos(tmp_path, ["a.png"])
    inside = f"{tar}/SUN/images/2.png"
    found = read_items([str(tmp_path / "a.png"), inside, str(tmp_path / "none.png")])
    assert list(found.values())[:2] == [photo(0), photo(2)]
    assert isinstance(found[str(tmp_path / "none.png")], ImageError)


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"outword\[parquet\]"):
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
    assert rows[str(broken)].message == "damaged archive" and rows[f"{table}/1/1"].message == "not an image"

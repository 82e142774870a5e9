"""Sources behind URLs: a bucket on a real S3 server that fails now and then, web servers, and what is not there."""

import http.client
import os
import pickle
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import fsspec
import pytest

from helpers.archives import photo, write_arrow, write_dataset, write_parquet, write_photos, write_tar
from helpers.faulty import faulty
from outword.base.extras import install
from outword.errors import ImageError, MissingExtraError, UnreachableError
from outword.photos.decode import read_bytes
from outword.photos.sources import Files, filesystems, find_items, find_names, find_pieces, read_items

BUCKET = "s3://photos"
PAGE = 5  # names that the server gives at a time


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """What is in the bucket, on disk."""
    top = tmp_path_factory.mktemp("tree")
    write_photos(top, [f"folder/{n:02}.png" for n in range(10)])
    write_photos(
        top, ["folder/sub/b.jpg", "folder/sub/a.JPG", "folder/.hidden.png", "folder/a-b.png", "folder/été/?.png"]
    )
    write_photos(top, [f"folder/{name}/{n}.png" for name in ("s", "s-t", "s.t") for n in range(2)])
    (top / "folder" / "empty.png").touch()
    (top / "folder" / "notes.md").write_text("no photo")
    write_parquet(top / "folder" / "sub" / "c.parquet", [photo(n) for n in range(8)], [1] * 8)
    write_parquet(top / "large.parquet", [photo(n) + bytes(40_000) for n in range(9)], compression="none")
    write_tar(top / "a.tar", {f"{n}.png": photo(n) for n in range(30)})
    write_tar(top / "b.tar.gz", {f"{n}.png": photo(n) for n in range(30)}, "w:gz")
    write_arrow(top / "d.arrow", [(photo(n), f"{n}.png") for n in range(9)])
    write_dataset(top / "pets", [photo(1), photo(2)], [photo(3)])
    write_parquet(top / "paths.parquet", [f"{BUCKET}/folder/{n:02}.png" for n in range(9)], column="path")
    listed = [
        f"{BUCKET}/folder/05.png",
        f"{BUCKET}/a.tar",
        f"{BUCKET}/folder/sub/b.jpg",
        str(top / "folder" / "03.png"),
    ]
    (top / "list.txt").write_text("\n".join(listed))
    return top


@pytest.fixture(scope="module")
def server(tree):
    """moto's S3 server in a process of its own, the tree in it, and a proxy before it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"MOTO_S3_DEFAULT_MAX_KEYS": str(PAGE)}
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            _wait(port)
            connection = http.client.HTTPConnection("127.0.0.1", port)
            _put(connection, "/photos")
            for path in sorted(tree.rglob("*")):
                if path.is_file():
                    _put(connection, f"/photos/{path.relative_to(tree)}", path.read_bytes())
            connection.close()
            filesystems._made.cache_clear()
            with faulty(port) as proxy:
                yield proxy
        finally:
            filesystems._made.cache_clear()
            process.terminate()


def _wait(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise TimeoutError("the server does not start")


def _put(connection, path, data=b""):
    connection.request(
        "PUT", "".join(c if c.isascii() and c != "?" else "".join(f"%{b:02x}" for b in c.encode()) for c in path), data
    )
    with connection.getresponse() as answer:
        assert answer.status == 200, answer.read()
        answer.read()


@pytest.fixture
def s3(server, monkeypatch):
    """The proxy, with the environment that leads to it; waits are short."""
    for name, value in {
        "ENDPOINT_URL": server.url,
        "ACCESS_KEY_ID": "x",
        "SECRET_ACCESS_KEY": "x",
        "DEFAULT_REGION": "eu-west-1",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setattr(filesystems, "WAITS", (0.01,) * 4)
    server.expect()
    return server


def told(items):
    """Names, and contents or errors."""
    return [(os.fspath(item), content(item)) for item in items]


def content(item):
    try:
        return read_bytes(item)
    except ImageError as error:
        return error.message


def often(request, number):
    """Each request fails at first, those for files also break off, and then are slow."""
    faults = [500, 0.02] if "list-type" in request or number > 2 else [500, "cut", 0.02]
    return faults[number] if number < len(faults) else None


KINDS = [
    "folder",
    "folder/0*.png",
    "folder/**/?.*",
    "folder/*/[ab].*",
    "folder/{03..05}.png",
    "a.tar",
    "{a.tar,b.tar.gz}",
]
KINDS += ["folder/sub/c.parquet", "d.arrow", "pets", "list.txt", "paths.parquet", "f*/sub"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_as_on_disk_in_spite_of_faults(s3, tree, kind):
    s3.expect(often)
    found = told(find_items([f"{BUCKET}/{kind}"]))
    assert min(s3.seen.values()) >= 2
    s3.expect()
    expected = told(find_items([f"{tree}/{kind}"]))
    assert [(name.replace(BUCKET, str(tree)), data) for name, data in found] == [
        (name.replace(BUCKET, str(tree)), data) for name, data in expected
    ]
    assert len(found) > 1 and all(isinstance(data, bytes) for _, data in found)


def test_names_and_single_photos(s3, tree):
    given = [f"{BUCKET}/{name}" for name in ("folder", "a.tar", "d.arrow", "list.txt")]
    found = dict(told(find_items(given)))
    s3.expect()
    assert list(dict.fromkeys(find_names(given))) == list(found)
    assert not [request for request in s3.seen if request.endswith((".png", ".jpg", ".JPG"))]
    some = list(found)[::4]
    s3.expect()
    assert dict(read_items(some)) == {name: found[name] for name in some}
    assert s3.seen["HEAD /photos/a.tar"] <= 3  # not one for each photo
    [(_, error)] = read_items([f"{BUCKET}/a.tar/none.png"])
    assert error.message == "no such file in the archive"


def test_a_server_that_hangs_is_asked_again(s3, monkeypatch):
    monkeypatch.setitem(fsspec.config.conf, "s3", {"config_kwargs": {"read_timeout": 1}})
    filesystems._made.cache_clear()
    s3.expect(lambda request, number: 3.0 if number == 0 else None)
    try:
        assert told(find_items([f"{BUCKET}/folder/03.png"])) == [(f"{BUCKET}/folder/03.png", photo(3))]
    finally:
        filesystems._made.cache_clear()
    assert s3.seen["GET /photos/folder/03.png"] >= 2


def test_an_object_that_never_works_is_one_item(s3):
    s3.expect(lambda request, number: 500 if request.endswith("/03.png") else None)
    found = dict(told(find_items([f"{BUCKET}/folder/0*.png"])))
    assert found.pop(f"{BUCKET}/folder/03.png").startswith("cannot be read, after 5 attempts: ")
    assert list(found.values()) == [photo(n) for n in range(10) if n != 3]
    assert s3.seen["GET /photos/folder/03.png"] == 5


@pytest.mark.parametrize(
    "name", ["a.tar", "folder/sub/c.parquet", "d.arrow", "list.txt", "folder", "folder/*.png", "pets"]
)
def test_a_source_that_does_not_answer_ends_the_run(s3, name):
    s3.expect(lambda request, number: 503)
    with pytest.raises(UnreachableError, match=rf"^{BUCKET}/.* cannot be read, after 5 attempts: ") as caught:
        list(find_items([f"{BUCKET}/{name}"]))
    assert caught.value.hint == "run the same command again, it goes on where it was"
    assert max(s3.seen.values()) == 5


@pytest.mark.parametrize("name", ["a.tar", "folder/sub/c.parquet", "d.arrow", "list.txt", "pets"])
def test_a_source_that_stops_answering_ends_the_run(s3, name):
    s3.expect(lambda request, number: 503 if request.startswith("GET") and "list-type" not in request else None)
    with pytest.raises(UnreachableError, match="after 5 attempts"):
        list(find_items([f"{BUCKET}/{name}"]))


def test_a_mark_is_never_taken_of_what_does_not_answer(s3):
    [piece] = find_pieces([f"{BUCKET}/a.tar"])
    mark = piece.version()
    s3.expect(lambda request, number: 503)
    with pytest.raises(UnreachableError):
        piece.version()
    s3.expect()
    assert piece.version() == mark


def test_an_outage_is_told_from_bad_photos(s3, monkeypatch):
    monkeypatch.setattr(filesystems, "OUTAGE", 4)
    names = [f"{BUCKET}/folder/{n:02}.png" for n in range(10)]
    down = {2, 3, 4, 6, 7, 8}  # never more than three in a row
    s3.expect(lambda request, number: 503 if any(f"/{n:02}.png" in request for n in down) else None)
    found = [data for _, data in told(Files(tuple(names)).items())]
    assert [n for n, data in enumerate(found) if data != photo(n)] == sorted(down)
    down.add(5)
    items = Files(tuple(names)).items()
    assert [next(items).data for _ in range(2)] == [photo(0), photo(1)]
    with pytest.raises(UnreachableError, match="after 5 attempts"):
        next(items)  # none of them has become a row
    missing = [f"{BUCKET}/folder/none.png", *names[4:7], f"{BUCKET}/folder/none.png", *names[6:9]]
    found = [data for _, data in told(Files(tuple(missing)).items())]
    assert found[0] == found[4] == "no such file"  # which is an answer


def break_off(monkeypatch, block, size=1024, error=OSError):
    """Let one block of every remote file fail, and blocks be small; gives the blocks that are asked for."""
    calls = []

    def broken(self, start, inner=filesystems._Blocks._range):
        calls.append(start // size)
        if start == block * size:
            raise error("broken off")
        return inner(self, start)

    monkeypatch.setattr(filesystems, "BLOCK", size)
    monkeypatch.setattr(filesystems._Blocks, "_range", broken)
    return calls


@pytest.mark.parametrize(
    ("name", "block", "size", "good"),
    [("a.tar", 4, 1024, 4), ("b.tar.gz", 1, 512, 0), ("large.parquet", 12, 1 << 14, 3), ("d.arrow", 1, 1024, 0)],
)
def test_an_archive_that_breaks_off_is_read_on_later(s3, monkeypatch, name, block, size, good):
    monkeypatch.setattr("outword.photos.sources.tar.BUFFER", 512)
    [piece] = find_pieces([f"{BUCKET}/{name}"])
    every, done = told(piece.items()), []
    with monkeypatch.context() as patch:
        calls = break_off(patch, block, size)
        with pytest.raises(UnreachableError, match=f"^{BUCKET}/{name} .* after 5 attempts: broken off"):
            done.extend(piece.items())  # keeps what came before the break
    assert calls.count(block) == 5
    assert told(done) == every[: len(done)] and len(done) >= good
    assert told(piece.items(len(done))) == every[len(done) :]


def test_a_tar_that_breaks_off_behind_damage(tree, monkeypatch):
    data = bytearray((tree / "a.tar").read_bytes())
    data[1024:1100] = data[2048:2124] = b"\xff" * 76
    fsspec.filesystem("memory").pipe_file("/damaged.tar", bytes(data))
    monkeypatch.setattr(filesystems, "WAITS", (0.01,) * 4)
    monkeypatch.setattr("outword.photos.sources.tar.BUFFER", 512)
    break_off(monkeypatch, 2)  # where it looks for the next header
    items = find_items(["memory://damaged.tar"])
    assert [content(next(items)) for _ in range(2)] == [photo(0), "damaged at byte 1024"]
    with pytest.raises(UnreachableError):
        next(items)
    fsspec.filesystem("memory").rm("/damaged.tar")


def test_a_tar_that_is_refused_halfway(s3, monkeypatch):
    monkeypatch.setattr("outword.photos.sources.tar.BUFFER", 512)
    calls = break_off(monkeypatch, 4, error=PermissionError)  # each is a header and a photo
    *good, last = told(find_items([f"{BUCKET}/a.tar"]))
    assert [data for _, data in good] == [photo(n) for n in range(4)]
    assert last == (f"{BUCKET}/a.tar", "permission denied at byte 4096") and calls.count(4) == 1


def test_a_table_that_is_refused_halfway(s3, monkeypatch):
    break_off(monkeypatch, 0, size=1 << 14, error=PermissionError)
    first, *good = told(find_items([f"{BUCKET}/large.parquet"]))
    assert first == (f"{BUCKET}/large.parquet", "permission denied in row group 0 (rows 0 to 2)")
    assert [data.rstrip(b"\0") for _, data in good] == [photo(n) for n in range(3, 9)]


@pytest.mark.parametrize("kind", ["folder", "folder/**/*.*"])
def test_a_folder_that_may_not_be_listed_hides_no_other(s3, kind):
    every = told(find_items([f"{BUCKET}/{kind}"]))
    s3.expect(lambda request, number: 403 if "prefix=folder%2Fsub%2F" in request else None)
    found = told(find_items([f"{BUCKET}/{kind}"]))
    errors = [(name, data) for name, data in found if isinstance(data, str)]
    assert set(errors) == {(f"{BUCKET}/folder/sub", "permission denied")}
    assert [one for one in found if one not in errors] == [one for one in every if "/sub/" not in one[0]]
    s3.expect(lambda request, number: 500 if "prefix=folder%2Fsub%2F" in request else None)
    with pytest.raises(UnreachableError, match=rf"^{BUCKET}/folder/sub cannot be read"):
        list(find_items([f"{BUCKET}/{kind}"]))


def test_what_is_not_there(s3):
    given = {
        "s3://none/a.tar": "bucket",
        "s3://none/x": "bucket",
        "s3://none/*.png": "bucket",
        "s3://none/x.png": "bucket",
    }
    given |= {
        f"{BUCKET}/{name}": "file" for name in ("none", "none.png", "none.tar", "none/*.png", "none.txt", "q.parquet")
    }
    assert told(find_items(list(given))) == [(name, f"no such {what}") for name, what in given.items()]
    assert told(find_items(["s3://none"])) == [("s3://none", "no such bucket")]
    assert max(s3.seen.values()) <= 4  # none was tried again
    s3.expect()
    [(_, error)] = told(find_items(["s3://no bucket/a.png"]))
    assert error.startswith("cannot be read: ") and "no bucket" in error and not s3.seen


def test_what_may_not_be_read(s3):
    s3.expect(lambda request, number: 403)
    found = told(find_items([f"{BUCKET}/{name}" for name in ("a.png", "a.tar", "folder")]))
    assert [error for _, error in found] == ["permission denied"] * 3
    assert max(s3.seen.values()) == 1


def test_listings_do_not_pile_up(s3):
    list(find_pieces([f"{BUCKET}/folder", f"{BUCKET}/*"]))
    assert not filesystems._system(BUCKET)[0].dircache
    assert sum("continuation-token" in request for request in s3.seen) >= 2


def test_photos_and_folders_of_the_same_name(s3):
    connection = http.client.HTTPConnection("127.0.0.1", s3.port)
    _put(connection, "/odd")
    for key in ("f/a.jpg", "f/a.jpg-b.jpg", "f/dir.jpg/inner.jpg", "f/dir.jpg/sub.png/x.png"):
        _put(connection, f"/odd/{key}", photo(1))
    _put(connection, "/odd/f/a.jpg/")
    connection.close()
    expected = [f"s3://odd/f/{name}" for name in ("a.jpg", "a.jpg-b.jpg", "dir.jpg/inner.jpg", "dir.jpg/sub.png/x.png")]
    given = dict.fromkeys(("f", "f/", "*", "f/*"), expected) | {"f/dir.jpg/": expected[2:], "f/*.jpg": expected[:2]}
    given |= {"f/**/*.jpg": expected[:3], "f/**/x*": expected[3:], "f/*/*.jpg": expected[2:3]}
    for kind, names in given.items():
        assert told(find_items([f"s3://odd/{kind}"])) == [(name, photo(1)) for name in names]


def test_pieces_of_a_bucket(s3):
    given = [f"{BUCKET}/{name}" for name in ("a.tar", "d.arrow", "folder")]
    pieces = list(find_pieces(given))
    assert pickle.loads(pickle.dumps(pieces)) == pieces
    marks = [piece.version() for piece in pieces]
    assert len(set(marks)) == len(pieces) and [piece.version() for piece in find_pieces(given)] == marks
    for piece in pieces:
        assert told(piece.items(7)) == told(piece.items())[7:]


# other filesystems


@pytest.fixture(params=["ranges", "no ranges"])
def web(tree, request):
    """A web server with the tree, as Python has it, or one that gives parts of files too."""
    handler = Ranges if request.param == "ranges" else Quiet
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(tree))) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        with faulty(server.server_address[1]) as proxy:
            yield proxy
        server.shutdown()
        thread.join()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Ranges(Quiet):
    def do_GET(self):
        asked = self.headers.get("Range")
        path = Path(self.translate_path(self.path))
        if not asked or not path.is_file():
            super().do_GET()
            return
        data = path.read_bytes()
        start, end = map(int, asked.removeprefix("bytes=").split("-"))
        part = data[start : end + 1]
        self.send_response(206 if part else 416)
        self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)


@pytest.mark.parametrize("name", ["a.tar", "b.tar.gz", "folder/sub/c.parquet", "d.arrow", "folder/empty.png"])
def test_web_servers(web, tree, monkeypatch, name):
    monkeypatch.setattr(filesystems, "WAITS", (0.01,) * 4)
    monkeypatch.setattr(filesystems, "BLOCK", 4096)
    web.expect(lambda request, number: [500, "cut"][number] if number < 2 else None)
    found = told(find_items([f"{web.url}/{name}"]))
    assert found == [(one.replace(str(tree), web.url), data) for one, data in told(find_items([tree / name]))]


def test_pages_and_addresses(web, tree):
    assert told(find_items([f"{web.url}/folder/03.png?size=3"])) == [(f"{web.url}/folder/03.png?size=3", photo(3))]
    found = told(find_items([f"{web.url}/folder/sub/"]))
    assert found == [
        (one.replace(str(tree), web.url), data) for one, data in told(find_items([tree / "folder" / "sub"]))
    ]
    assert told(find_items([f"{web.url}/none.png", f"{web.url}/none.tar"])) == [
        (f"{web.url}/{name}", "no such file") for name in ("none.png", "none.tar")
    ]


class Endless(Quiet):
    sent = 0

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        with suppress(ConnectionError):
            for _ in range(512):
                self.wfile.write(bytes(1 << 18))
                Endless.sent += 1 << 18


def test_a_body_without_end_is_not_read_to_it(monkeypatch):
    monkeypatch.setattr("outword.photos.decode.MAX_BYTES", 1 << 20)
    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        [(_, error)] = told(find_items([f"http://127.0.0.1:{server.server_address[1]}/a.png"]))
        server.shutdown()
    assert error.startswith("too large: ") and Endless.sent < 64 << 20


def test_other_file_systems(tree):
    memory = fsspec.filesystem("memory")
    memory.put(f"{tree}/folder", "/tree/folder", recursive=True)
    try:
        for kind in ("folder", "folder/*/?.*", "folder/sub/c.parquet", "folder/**/a*"):
            for url in ("memory://tree", f"file://{tree}"):
                expected = told(find_items([f"{tree}/{kind}"]))
                assert expected == [
                    (one.replace(url, str(tree)), data) for one, data in told(find_items([f"{url}/{kind}"]))
                ]
        assert told(find_items(["memory://tree/none.tar"])) == [("memory://tree/none.tar", "no such file")]
    finally:
        memory.rm("/tree", recursive=True)


def test_large_photos_are_read_in_two_steps(monkeypatch):
    monkeypatch.setattr(filesystems, "FIRST", 10)
    for size in (0, 9, 10, 11, 30):
        fsspec.filesystem("memory").pipe_file("/large.png", bytes(range(size)))
        assert told(find_items(["memory://large.png"])) == [("memory://large.png", bytes(range(size)))]
    monkeypatch.setattr("outword.photos.decode.MAX_BYTES", 29)
    [(_, error)] = told(find_items(["memory://large.png"]))
    assert error == "too large: 30 bytes is over 29"
    fsspec.filesystem("memory").rm("/large.png")


def test_without_the_packages(tmp_path, monkeypatch):
    def refuse(protocol):
        raise ImportError("Install the package for it")

    monkeypatch.setattr(fsspec, "get_filesystem_class", refuse)
    lines = ["gs://b/a.png", "gs://b/a.tar", "gs://b/a.parquet", "gs://b/a.arrow"]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    assert told(find_items([tmp_path / "a.txt"])) == [(line, "gs:// needs one more package") for line in lines]
    for url, hint in (("s3://b/a.png", install("s3")), ("gs://b/a.png", "Install the package for it")):
        with pytest.raises(MissingExtraError) as caught:
            list(find_items([url]))
        assert caught.value.hint == hint
    monkeypatch.setitem(sys.modules, "fsspec", None)
    for url, extra in (("s3://b/a.tar", "s3"), ("http://b/a.png", "remote")):
        with pytest.raises(MissingExtraError) as caught:
            list(find_items([url]))
        assert caught.value.hint == install(extra)


def test_unknown_protocols():
    assert told(find_items(["foo://b/a.png"])) == [("foo://b/a.png", "foo:// is not known to fsspec")]


def test_file_systems_that_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr(filesystems, "WAITS", (0.01,) * 4)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        refused = f"ftp://127.0.0.1:{free.getsockname()[1]}/a.png"  # nobody listens
        urls = [f"{name}://b/a.png" for name in ("zip", "tar", "reference", "dir", "cached", "github")]
        urls += ["ftp://host:x/a.png", "zip://a.tar"]
        write_photos(tmp_path, ["a.png"])
        good = str(tmp_path / "a.png")
        (tmp_path / "a.txt").write_text("\n".join([good, *urls, refused, good]))
        found = told(find_items([tmp_path / "a.txt"]))
    assert [name for name, _ in found] == [good, *urls, refused, good]
    assert found[0] == found[-1] == (good, photo(0))
    assert all(f"{filesystems.protocol(url)}:// cannot be used: " in error for url, error in found[1:-2])
    assert found[-2][1].startswith("cannot be read, after 5 attempts: ")
    assert told(find_items(urls)) == found[1:-2]

"""The service among clients that mean it no good: it refuses them, goes on, and nothing of them stays."""

import io
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from conftest import PHOTOS
from helpers.bad_images import png_header
from helpers.served import ask, form, process, soon

if not Path("/proc/self/fd").exists():
    pytest.skip("memory and open files are read from /proc", allow_module_level=True)

TOKEN = "s3cret-token"
SECRET = "holiday-at-the-lake"  # a file name, a label and a query that must not be in the log
MOST = 1 << 20  # bytes of a body
HOST = b"Host: localhost\r\n"
OPEN = HOST + b"Authorization: Bearer " + TOKEN.encode() + b"\r\n"
FORM = "multipart/form-data; boundary=xYz"
PART = b'--xYz\r\nContent-Disposition: form-data; name="images"; filename="a.jpg"\r\n\r\nno image\r\n'


class Server:
    """A process of the service, and what can be seen of it from outside."""

    def __init__(self, running, address, log):
        self.process, self.address, self.log = running, address, log
        self.headers = {"authorization": f"Bearer {TOKEN}"}

    def ask(self, method, path, body=None, kind=None, **headers):
        return ask(self.address, method, path, body, {**self.headers, **headers}, kind)

    def connect(self):
        place = urlsplit(self.address)
        return socket.create_connection((place.hostname, place.port), timeout=30)

    def say(self, sent):
        """What comes back, until the server hangs up, for bytes that may be no HTTP at all."""
        said = b""
        with self.connect() as client, suppress(ConnectionError):  # what it sends after the end makes a reset
            with suppress(ConnectionError):
                client.sendall(sent)
            while piece := client.recv(1 << 16):
                said += piece
        return said

    def figures(self):
        status, _, text = self.ask("GET", "/metrics")
        assert status == 200
        lines = [line.rpartition(" ") for line in text.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def memory(self, kind="VmRSS"):
        """Bytes in memory; the most that there ever were as `VmHWM`."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{kind}:\s+(\d+) kB", text)[1]) << 10


def statuses(said):
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", said)]


def post(path, body=b"", head=b"", more=OPEN):
    """The bytes of a POST whose connection ends with its answer."""
    length = b"Content-Length: %d\r\n" % len(body)
    return b"POST %s HTTP/1.1\r\n%s%s%sConnection: close\r\n\r\n%s" % (path.encode(), more, length, head, body)


@pytest.fixture(scope="module")
def kept(detector, tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "pets.outword"
    detector.save(path)
    return path


@pytest.fixture(scope="module")
def server(kept, tmp_path_factory):
    folder = tmp_path_factory.mktemp("empty")
    log = kept.parent / "log.txt"
    env = {"TMPDIR": str(folder), "OUTWORD_TOKEN": TOKEN}
    with (
        log.open("w") as stderr,
        process(kept, "--limit", "seconds=6", "--limit", f"body_bytes={MOST}", env=env, stderr=stderr) as (
            running,
            address,
        ),
    ):
        there = list(folder.iterdir())  # what a library leaves when it is loaded
        yield Server(running, address, log)
        assert list(folder.iterdir()) == there


@pytest.fixture(scope="module")
def own(server):
    return json.loads(server.ask("GET", "/v1/detector")[2])["id"]


SLOW = {  # what a client sends, what it goes on sending, and the statuses that it gets before it is let go
    "silent": (b"", b"", []),
    "an endless head": (b"GET / HTTP/1.1\r\n", b"X: y\r\n", []),
    "a body that does not come": (b"POST /v1/score HTTP/1.1\r\n" + OPEN + b"Content-Length: 9\r\n\r\n", b"", [408]),
    "a body in drips": (b"POST /v1/score HTTP/1.1\r\n" + OPEN + b"Content-Length: 999\r\n\r\n", b"x", [408]),
    "endless chunks": (
        b"POST /v1/score HTTP/1.1\r\n" + OPEN + b"Transfer-Encoding: chunked\r\n\r\n",
        b"1\r\nx\r\n",
        [408],
    ),
    "silent after an answer": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n", b"", [200]),
    "drips after an answer": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\nGET / HTTP/1.1\r\n", b"X: y\r\n", [200]),
}


def drip(client, drops):
    """All that comes back while a client goes on sending drops."""
    said = b""
    client.settimeout(0.2)
    with suppress(ConnectionError):  # what it sends when it was let go is answered by a reset
        while True:
            try:
                piece = client.recv(1 << 16)
            except TimeoutError:
                client.sendall(drops)
                continue
            if not piece:
                break
            said += piece
    return statuses(said)


@pytest.fixture(scope="module", autouse=True)
def before(server, own):
    """Slow clients begin here, and are looked at in the last tests: they wait while the others run."""
    server.ask("POST", f"/v1/detectors/{own}/artifact", {})
    server.ask("POST", "/v1/score", *form(("cat.jpg", (PHOTOS / "cat.jpg").read_bytes())))
    begun = {"files": server.open_files()}
    clients = [server.connect() for _ in SLOW]
    deaf = [server.connect() for _ in range(5)]  # one more than may download at a time
    download = post(f"/v1/detectors/{own}/artifact", b"{}", b"Content-Type: application/json\r\n")
    for client in deaf:
        client.sendall(download.replace(b"Connection: close\r\n", b"") * 2)
    with ThreadPoolExecutor(len(SLOW)) as pool:
        for client, (name, (first, drops, _)) in zip(clients, SLOW.items(), strict=True):
            client.sendall(first)
            begun[name] = pool.submit(drip, client, drops)
        yield begun
    for client in clients + deaf:
        client.close()


def small(name, kind, **options):
    image = Image.open(PHOTOS / f"{name}.jpg").convert("RGB").resize((48, 32))
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def mutated(rng, files):
    """One of the files with flipped bits, cut off, or going on as another one does."""
    data = bytearray(files[rng.integers(len(files))])
    other = files[rng.integers(len(files))]
    match rng.integers(3):
        case 0:
            for place in rng.integers(len(data), size=rng.integers(1, 30)):
                data[place] ^= 1 << int(rng.integers(8))
        case 1:
            del data[rng.integers(len(data)) :]
        case _:
            data[rng.integers(len(data)) :] = other[rng.integers(len(other)) :]
    return bytes(data)


@pytest.fixture(scope="module")
def mutants():
    kinds = [("JPEG", {}), ("JPEG", {"progressive": True}), ("PNG", {}), ("WEBP", {}), ("GIF", {}), ("BMP", {})]
    kinds += [("TIFF", {"compression": "tiff_lzw"}), ("TIFF", {"compression": "tiff_deflate"})]
    files = [small(name, kind, **options) for name in ("cat", "coffee") for kind, options in kinds]
    rng = np.random.default_rng(7)
    return [mutated(rng, files) for _ in range(1000)]


def score_all(server, images, size):
    for start in range(0, len(images), size):
        some = images[start : start + size]
        status, _, body = server.ask("POST", "/v1/score", *form(*((f"{SECRET}.jpg", data) for data in some)))
        if status == 422:
            assert json.loads(body)["error"]["code"] == "unreadable_image"
            continue
        assert status == 200, body
        results = json.loads(body)["results"]
        assert len(results) == len(some)
        assert all((found["score"] is None) == bool(found["error"]) == (not found["verdict"]) for found in results)


def test_a_thousand_mutated_images(server, mutants):
    score_all(server, mutants[:960], 32)
    score_all(server, mutants[960:], 1)
    memory = server.memory()
    score_all(server, mutants[:192], 32)
    assert server.memory() < memory + (64 << 20)


def many_scans():
    data = small("cat", "JPEG", progressive=True)
    scan = data[data.rindex(b"\xff\xda") : -2]
    return data[:-2] + 200 * scan + data[-2:]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (png_header(60_000, 60_000), "too many pixels"),
        (png_header(2**31 - 1, 1), "too many pixels"),
        (many_scans(), "too many scans"),
        (small("cat", "TIFF")[:8], "damaged image"),
        (b"BM" + bytes(100), "damaged image"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG or XML is not read"),
        (b"%!PS\nshowpage", "PostScript is not read"),
        (b"GIF89a", "truncated image"),
        (b"\xff\xd8\xff" + b"\xff\xda" * 99, "truncated image"),
        (zlib.compress(bytes(1 << 20)), "not an image"),
    ],
)
def test_images_that_are_traps(server, image, words):
    status, _, body = server.ask("POST", "/v1/score", *form(("a.png", image)))
    assert status == 422
    assert json.loads(body)["error"]["message"].startswith(words)


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (400, "multipart/form-data", PART + b"--xYz--"),
        (400, "multipart/form-data; boundary=", PART + b"--xYz--"),
        (400, "multipart/form-data; boundary=other", PART + b"--xYz--"),
        (400, f"multipart/form-data; boundary={'x' * 9000}", PART + b"--xYz--"),
        (400, "multipart/form-data; boundary*=utf-8''%E2%82%AC", PART + b"--xYz--"),
        (400, FORM, b""),
        (400, FORM, b"\r\n" * 1000),
        (400, FORM, PART),
        (400, FORM, PART + b"--xYz"),
        (400, FORM, PART[:30]),
        (400, FORM, b"--xYz\r\n\xff\0: b\r\n\r\nno image\r\n--xYz--"),
        (400, FORM, b"--xYz\r\n" + b"a: b\r\n" * 1000 + b"\r\nno image\r\n--xYz--"),
        (400, FORM, b"--xYz\r\na: " + b"b" * 100_000 + b"\r\n\r\nno image\r\n--xYz--"),
        (400, FORM, b'{"images": []}'),
        (422, FORM, PART + b"--xYz--"),
        (422, FORM, PART + b"--xYz--\r\nand more" * 1000),
        (422, FORM, b"--xYz\r\n\r\nno image\r\n--xYz--"),
        (422, FORM, PART.replace(b'"images"', b'"other"') + b"--xYz--"),
        (422, FORM, PART.replace(b'; filename="a.jpg"', b"") + b"--xYz--"),
        (422, FORM, PART.replace(b'"a.jpg"', b'"\xff\0\\"\xe2\x80\xae../../etc/passwd"') + b"--xYz--"),
        (422, FORM, PART.replace(b"filename=", b"filename*=utf-9''%ff;x=") + b"--xYz--"),
        (413, FORM, PART * 65 + b"--xYz--"),
        (413, FORM, PART * 10_000 + b"--xYz--"),
        (415, "", PART + b"--xYz--"),
        (415, "text/plain", b'{"images": []}'),
        (415, ';;;="\\', PART + b"--xYz--"),
        (400, "application/json", PART + b"--xYz--"),
        (400, "application/json", b""),
        (400, "application/json", b"\xff\xfe{}"),
        (400, "application/json", b'{"images": ["\xff"]}'),
        (400, "application/json", b'{"images": ["\\ud800"]}'),
        (413, "application/json", b'{"images": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        (413, "application/json", b'{"a": ' * 50_000 + b"1" + b"}" * 50_000),
        (422, "application/json", b"[]"),
        (422, "application/json", b"{}"),
        (422, "application/json", b'{"images": {}, "embeddings": 1}'),
        (422, "application/json", b'{"images": [], "embeddings": []}'),
        (422, "application/json", b'{"images": [null, true, 1, []]}'),
        (422, "application/json", b'{"images": ["no base64"]}'),
        (422, "application/json", b'{"images": [""]}'),
        (422, "application/json", b'{"embeddings": [[]]}'),
        (422, "application/json", b'{"embeddings": [[1, 2]]}'),
        (422, "application/json", b'{"embeddings": [[NaN]]}'),
        (422, "application/json", b'{"embeddings": [[%s]]}' % b",".join([b"1e999"] * 512)),
        (422, "application/json", b'{"embeddings": [[%s]]}' % b",".join([b"9" * 400] * 512)),
        (422, "application/json", b'{"embeddings": [[%s]]}' % b",".join([b"1e300"] * 512)),
        (422, "application/json", b'{"embeddings": [[%s]]}' % b",".join([b"0"] * 512)),
    ],
)
def test_bodies_that_are_malformed(server, status, kind, body):
    got, headers, answer = server.ask("POST", "/v1/score", body, kind)
    assert (got, headers["content-type"]) == (status, "application/json")
    assert json.loads(answer)["error"]["message"]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b"{"),
        (400, b'{"labels": ' + b"[" * 100_000),
        (400, b'{"labels": ["\xff", "cat"]}'),
        (422, b"null"),
        (422, b'{"labels": true}'),
        (422, b'{"labels": []}'),
        (200, b'{"labels": ["cat"]}'),
        (422, b'{"labels": ["cat", "CAT "]}'),
        (422, b'{"labels": ["cat", "d\\u0000g"]}'),
        (422, b'{"labels": ["cat", "\\ud800"]}'),
        (422, b'{"labels": ["cat", "\\u202edog"]}'),
        (422, b'{"labels": {"cat": "\\ud800", "dog": 1}}'),
        (422, b'{"labels": {"\\ud800": 1}}'),
        (422, b'{"\\ud800": 1}'),
        (422, json.dumps({"labels": ["cat", "d" * 201]}).encode()),
        (422, json.dumps({"labels": {"cat": "c" * 1001, "dog": ""}}).encode()),
        (413, json.dumps({"labels": [f"label {i}" for i in range(10_000)]}).encode()),
        (413, json.dumps({"labels": ["pet > " + " | ".join(f"kind{i}" for i in range(70_000))]}).encode()),
        (413, json.dumps({"labels": ["pet | " + " | ".join(f"name{i}" for i in range(1000))]}).encode()),
        (
            200,
            json.dumps(
                {"labels": [SECRET, "🐈" * 100, "a" + "\u0301" * 99, "<script>", "../..", "%s{}\\'\""]}
            ).encode(),
        ),
    ],
)
def test_labels_that_are_odd(server, status, body):
    for _ in range(5):  # where a fit takes longer than a request may, it goes on, and a later request finds it done
        got, _, answer = server.ask("POST", "/v1/detectors", body, "application/json")
        if got != 503:
            break
    assert got == status, answer


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/score", b'{"images": [' + b"1," * (MOST // 2 - 20) + b"1]}"),
        ("/v1/score", b'{"embeddings": [[' + b'"",' * (MOST // 3 - 20) + b'""]]}'),
        ("/v1/score", b"{" + b",".join(b'"%x":1' % i for i in range(MOST // 10)) + b"}"),
        ("/v1/detectors", b'{"labels": [' + b"1," * (MOST // 2 - 20) + b"1]}"),
        ("/v1/detectors", b'{"labels": {' + b",".join(b'"%x":1' % i for i in range(MOST // 10)) + b"}}"),
        ("/v1/detectors", b"{" + b",".join(b'"%x":1' % i for i in range(MOST // 10)) + b"}"),
    ],
)
def test_a_body_with_a_mistake_in_every_place_takes_no_more_memory_than_others(server, path, body):
    """Half a million mistakes in one request; they are not all written down."""
    most = max(server.memory("VmHWM"), server.memory() + (200 << 20))
    assert server.ask("POST", path, body, "application/json")[0] in (413, 422)
    assert server.memory("VmHWM") <= most


@pytest.mark.parametrize("sent", [b"1e400", b"NaN", b"-Infinity", b"9" * 400, b"9" * 9000, b'"x"', b"null", b"[1]"])
def test_scores_that_are_no_numbers(server, own, sent):
    for what in ("threshold", "artifact"):
        body = b'{"inside": [%s]}' % sent
        assert server.ask("POST", f"/v1/detectors/{own}/{what}", body, "application/json")[0] in (400, 422)


def test_the_largest_numbers_do_not_turn_a_threshold_into_its_opposite(server, own):
    """A threshold of infinity accepts nothing; null, as JSON would have it, accepts everything."""
    body = b'{"outside": [1.7976931348623157e308]}'
    status, _, answer = server.ask("POST", f"/v1/detectors/{own}/threshold", body, "application/json")
    assert status == 422 or json.loads(answer)["threshold"] is not None


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        ([400], bytes(range(256)) * 10),
        ([400], b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(90) + b"\r\n\r\n"),
        ([400], b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n"),
        ([400], b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"),
        ([400], b"GET / HTTP/1.1\r\n" + HOST + b"X : y\r\n\r\n"),
        ([400], b"GET /healthz?" + b"q" * 1_000_000 + b" HTTP/1.1\r\n" + HOST),
        ([400], b"POST /v1/score HTTP/1.1\r\n" + OPEN + b"Content-Length: -1\r\n\r\n"),
        ([400], b"POST /v1/score HTTP/1.1\r\n" + OPEN + b"Content-Length: %s\r\n\r\n" % (b"9" * 5000)),
        ([400], b"POST /v1/score HTTP/1.1\r\n" + OPEN + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n12"),
        ([400], b"POST /v1/score HTTP/1.1\r\n" + OPEN + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        ([400], b"POST /v1/score HTTP/1.1\r\n" + OPEN + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\nxx\r\n"),
        (
            [400],
            b"POST /v1/score HTTP/1.1\r\n" + OPEN + b"Transfer-Encoding: chunked\r\n\r\n" + b"F" * 30 + b"\r\nxx\r\n",
        ),
        ([413], post("/v1/score").replace(b"Content-Length: 0", b"Content-Length: 99999999999999999999")),
        ([401], b"TRACE /metrics HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"),
        ([404], b"OPTIONS * HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"),
        ([404], b"CONNECT evil.example:80 HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"),
        ([404], b"GET http://evil.example/healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"),
        ([405], b"TRACE / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"),
        ([405], b"HEAD /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"),
        ([405], b"OPTIONS /v1/score HTTP/1.1\r\n" + OPEN + b"Connection: close\r\n\r\n"),
        ([405], b"BREW / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"),
        (
            [200, 404, 200],
            (b"GET /healthz HTTP/1.1\r\n%s\r\nGET /no HTTP/1.1\r\n%s\r\n" % (HOST, HOST))
            + b"GET /readyz HTTP/1.0\r\n\r\n",
        ),
        ([100, 415], post("/v1/score", b"{}", b"Expect: 100-continue\r\n")),
        (
            [413],
            b"POST /v1/score HTTP/1.1\r\n"
            + OPEN
            + b"Expect: 100-continue\r\nContent-Length: 9999999\r\nConnection: close\r\n\r\n",
        ),
    ],
)
def test_what_is_odd_http_or_none(server, wanted, sent):
    assert statuses(server.say(sent)) == wanted


def test_two_lengths_do_not_smuggle_a_request(server):
    """A server that goes by the other length would see one request fewer or more."""
    inner = b"GET /no HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    head = b"POST /v1/score HTTP/1.1\r\n" + OPEN + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n"
    said = server.say(head % (5 + len(inner)) + b"0\r\n\r\n" + inner)
    assert statuses(said) in ([415, 404], [400])


@pytest.mark.parametrize("path", ["/static/", "/demo/", "/v1/detectors/"])
@pytest.mark.parametrize(
    "name", ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "..%5capp.py", "/etc/passwd", "%00", "%ff"]
)
def test_paths_lead_nowhere(server, path, name):
    status, _, body = server.ask("GET", path + name)
    assert status == 404
    assert json.loads(body)["error"]["code"] in ("not_found", "unknown_detector")


@pytest.mark.parametrize(
    "shown",
    [
        b"",
        b"Bearer",
        b"Bearer ",
        b"Bearer wrong",
        b"Basic " + TOKEN.encode(),
        b"Bearer \xff\xfe\x80",
        b"Bearer " + b"x" * 9000,
    ],
)
def test_a_wrong_token_is_a_wrong_token(server, shown):
    said = server.say(post("/v1/score", b"{}", b"Authorization: " + shown + b"\r\n", HOST))
    assert statuses(said) == [401]
    assert b"www-authenticate: Bearer" in said


@pytest.mark.parametrize("head", [b"", b"Connection: close\r\n", b"Expect: 100-continue\r\n"])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("more", [HOST, OPEN])
def test_who_sends_too_much_is_told_so(server, head, chunked, more):
    """The answer comes in one piece, though the client goes on sending for a while."""
    size, block = 4 * MOST, bytes(1 << 16)
    length = b"Transfer-Encoding: chunked\r\n" if chunked else b"Content-Length: %d\r\n" % size
    with server.connect() as client:
        client.sendall(b"POST /v1/score HTTP/1.1\r\n" + more + length + head + b"\r\n")
        for _ in range(size // len(block)):
            client.sendall(b"10000\r\n" + block + b"\r\n" if chunked else block)
        said = b""
        while not said.endswith(b"}}"):
            piece = client.recv(1 << 16)
            assert piece
            said += piece
    assert statuses(said)[-1] == (413 if more == OPEN else 401)


@pytest.mark.parametrize("reset", [False, True])
def test_uploads_that_break_off(server, own, reset):
    body, kind = form(("cat.jpg", (PHOTOS / "cat.jpg").read_bytes()))
    whole = post("/v1/score", body, b"Content-Type: %s\r\n" % kind.encode())
    download = post(f"/v1/detectors/{own}/artifact", b"{}", b"Content-Type: application/json\r\n")
    for sent in [whole[: len(whole) // 2], whole[:-1], whole, whole[:50], download, whole + whole]:
        client = server.connect()
        client.sendall(sent)
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    figures = server.figures
    assert soon(lambda: figures()["outword_held_bytes"] == 0 and figures()["outword_queue_images"] == 0)


def test_slow_clients_are_let_go(before):
    assert {name: before[name].result(60) for name in SLOW} == {name: wanted for name, (_, _, wanted) in SLOW.items()}


def test_clients_that_ask_and_never_read_are_let_go(server, own, before):
    """They are still connected on their side; the places for downloads are free again."""
    assert soon(lambda: server.ask("POST", f"/v1/detectors/{own}/artifact", {})[0] == 200)
    assert soon(lambda: server.open_files() <= before["files"] + 1)


def test_nothing_is_left_of_them(server):
    assert server.ask("GET", "/readyz")[0] == 200
    figures = server.figures()
    assert figures["outword_held_bytes"] == figures["outword_queue_images"] == 0
    assert not any(' status="5' in name or 'status="500"' in name for name in figures)
    log = server.log.read_text()
    assert "Traceback" not in log
    assert SECRET not in log
    assert TOKEN not in log
    assert "IHDR" not in log


@pytest.fixture(scope="module")
def small_server(kept):
    """A server without a token, with a short queue."""
    arguments = [kept, "--limit", "queue=4", "--limit", "images=4"]
    with process(*arguments) as (running, address):
        yield Server(running, address, None)


@pytest.mark.parametrize(
    ("status", "host"),
    [
        (200, "localhost"),
        (200, "127.0.0.1:80"),
        (200, "[::1]:80"),
        (403, ""),
        (403, "evil.example"),
        (403, "localhost.evil.example"),
        (403, "127.0.0.1.evil.example"),
        (403, "[::1]evil.example"),
        (403, "localhost:80@evil.example"),
    ],
)
def test_without_a_token_the_name_must_be_that_of_this_machine(small_server, status, host):
    """Else a web site could point its own name here, and its script would be of the same origin."""
    assert small_server.ask("GET", "/v1/detector", host=host)[0] == status
    assert small_server.ask("POST", "/v1/detectors", {"labels": []}, host=host)[0] == (422 if status == 200 else 403)


@pytest.mark.parametrize(
    ("status", "site"), [(403, "cross-site"), (403, "same-site"), (403, "?"), (422, "same-origin")]
)
def test_pages_of_other_sites_cannot_post(small_server, status, site):
    headers = {"sec-fetch-site": site}
    assert small_server.ask("POST", "/v1/detectors", {"labels": []}, **headers)[0] == status
    assert small_server.ask("OPTIONS", "/v1/detectors", **headers)[0] == (403 if status == 403 else 405)


@pytest.mark.parametrize(
    ("status", "host", "origin"),
    [
        (422, "localhost:8000", "http://localhost:8000"),
        (422, "LOCALHOST:8000", "http://localhost:8000"),
        (422, "[::1]:8000", "http://[::1]:8000"),
        (422, "localhost:80", "http://localhost"),
        (422, "localhost:443", "https://localhost"),  # behind a proxy that ends TLS
        (403, "localhost:8000", "http://localhost"),
        (403, "localhost:8000", "http://localhost:3000"),
        (403, "localhost:8000", "http://127.0.0.1:8000"),
        (403, "localhost:443", "http://localhost"),
        (403, "localhost", "http://evil.example"),
        (403, "localhost", "http://localhost.evil.example"),
        (403, "localhost", "http://evil.example/://localhost"),
        (403, "localhost", "localhost"),
        (403, "localhost", "null"),
    ],
)
def test_where_a_browser_does_not_tell_the_site_its_origin_counts(small_server, status, host, origin):
    """Every call but GET: there, nothing is changed, and a page of another site cannot read the answer."""
    headers = {"host": host, "origin": origin}
    for path in ("/v1/score", "/v1/detectors", "/v1/detectors/none/threshold", "/v1/detectors/none/artifact"):
        assert small_server.ask("POST", path, {"more": 1}, **headers)[0] == status
    assert small_server.ask("OPTIONS", "/v1/detectors", **headers)[0] == (403 if status == 403 else 405)
    assert small_server.ask("GET", "/v1/detector", **headers)[0] == 200
    same = {**headers, "sec-fetch-site": "same-origin"}  # a proxy may give another Host
    assert small_server.ask("POST", "/v1/detectors", {"labels": []}, **same)[0] == 422


def test_with_a_token_another_origin_is_refused_too(server):
    headers = {"host": "example.org", "origin": "https://evil.example"}
    assert server.ask("POST", "/v1/detectors", {"labels": []}, **headers)[0] == 403
    headers["origin"] = "https://example.org"
    assert server.ask("POST", "/v1/detectors", {"labels": []}, **headers)[0] == 422


def test_overload_is_shed_and_survived(small_server):
    photo = (PHOTOS / "cat.jpg").read_bytes()
    with ThreadPoolExecutor(12) as pool:
        asked = [pool.submit(small_server.ask, "POST", "/v1/score", *form(*[("a", photo)] * 3)) for _ in range(36)]
        answers = [one.result() for one in asked]
    assert {status for status, _, _ in answers} == {200, 503}
    assert all(int(headers["retry-after"]) >= 1 for status, headers, _ in answers if status == 503)
    assert small_server.ask("GET", "/readyz")[0] == 200


def test_a_second_server_does_not_take_the_port(small_server, kept):
    port = str(urlsplit(small_server.address).port)
    command = [Path(sys.executable).parent / "outword", "serve", kept, "--port", port]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (second.returncode, second.stdout) == (2, "")
    assert "cannot be used: address already in use" in second.stderr


def test_killed_and_started_again_it_ends_when_what_it_accepted_is_answered(small_server, kept):
    with small_server.connect() as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
        assert statuses(client.recv(1 << 16)) == [200]
        small_server.process.kill()  # while a client is connected: its side of the port is not free at once
        small_server.process.wait()
    photos = form(*[("a", (PHOTOS / "cat.jpg").read_bytes())] * 20)
    port = urlsplit(small_server.address).port
    with process(kept, "--port", port) as (running, address), ThreadPoolExecutor(3) as pool:
        assert address == small_server.address
        again = Server(running, address, None)
        asked = [pool.submit(again.ask, "POST", "/v1/score", *photos) for _ in range(3)]
        assert soon(lambda: again.figures()["outword_queue_images"] == 60)
        running.send_signal(signal.SIGTERM)
        running.send_signal(signal.SIGTERM)
        assert [len(json.loads(one.result()[2])["results"]) for one in asked] == [20] * 3
        assert running.wait(30) == 0

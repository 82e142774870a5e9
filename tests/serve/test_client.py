"""The client of the service, against a small server that records what it is asked and plays what it is told."""

import io
import json
import pickle
import shutil
import ssl
import subprocess
import sys
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from outword import client as module
from outword.client import Client, Info, LabelOdds, Limits, Result, Scores, ServiceError, ThresholdInfo
from outword.errors import InputError, OutwordError, ParameterError

LIMITS = {"body_bytes": 33554432, "images": 64, "pixels": 67108864, "labels": 1000}
DETECTOR = {
    "id": "0123456789abcdef",
    "labels": ["tabby cat", "espresso"],
    "typed": ["tabby cat", "espresso"],
    "kinds": {"espresso": ["ristretto"]},
    "prompts": {},
    "coverage": {"tabby cat": "known", "espresso": "known"},
    "method": "debiased",
    "encoder": "mini",
    "dim": 512,
    "wild_words": 11998,
    "threshold": 1.58,
    "basis": "formula",
    "calibration": "",
    "ladder": [[1.0, -5.0], [0.01, 2.0]],
    "takes_embeddings": True,
    "limits": LIMITS,
}
THRESHOLD = {
    "threshold": 1.2,
    "method": "marks",
    "calibration": "from 2 marks",
    "tpr": 1.0,
    "low": 0.2,
    "high": 1.0,
    "mistakes": 0,
    "warning": "few marks",
}


def result(name, score=6.5, **more):
    return {
        "path": name,
        "nearest": "tabby cat",
        "score": score,
        "verdict": "in",
        "basis": "reference",
        "threshold": 1.58,
        "p": 0.008,
        "needed": 0.021,
        "fits": "fits better than 99.2 % of unrelated photos",
        "kind": "tabby",
        "looks_like": ["tabby", "cat"],
        "label": "tabby cat",
        "labels": [{"label": "tabby cat", "share": 0.9}],
        "words": [{"word": "coffee", "share": 0.26}],
        "notes": ["blurred"],
        "error": "",
        "embedding": None,
        **more,
    }


def scores(*results):
    return {"detector": DETECTOR["id"], "threshold": 1.58, "basis": "formula", "results": list(results)}


def trouble(code, message="no", hint="do this"):
    return {"error": {"code": code, "message": message, "hint": hint}}


class Request:
    """What came: method, path without its query, query, headers, body."""

    def __init__(self, handler):
        parts = urlsplit(handler.path)
        self.method, self.path, self.query = handler.command, parts.path, parse_qs(parts.query)
        self.headers = handler.headers
        self.body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))

    @property
    def json(self):
        assert self.headers["Content-Type"] == "application/json"
        return json.loads(self.body)

    @property
    def files(self):
        """File names and contents of the field "images", read by the parser of the standard library."""
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        form = BytesParser(policy=HTTP).parsebytes(head + self.body)
        assert not form.defects
        assert [part.get_param("name", header="Content-Disposition") for part in form.iter_parts()] == [
            "images" for _ in form.get_payload()
        ]
        return [(part.get_filename(), part.get_payload(decode=True)) for part in form.iter_parts()]


class Stage(BaseHTTPRequestHandler):
    """Records each request and gives the next answer of the script: status, headers, body."""

    def do_GET(self):
        self.server.asked.append(Request(self))
        status, headers, body = self.server.script.pop(0)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET

    def log_message(self, *args):
        pass


class Service(ThreadingHTTPServer):
    """The server: `script` is what it will answer, `asked` what it was asked."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Stage)
        self.script, self.asked = [], []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def plays(self, *answers, status=200, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.script += [(status, named, answer) for answer in answers]


@pytest.fixture
def service():
    with Service() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
        assert not server.script, "an answer was never asked for"


@pytest.fixture
def client(service):
    return Client(service.url, timeout=5)


@pytest.fixture
def slept(monkeypatch):
    waits = []
    monkeypatch.setattr(module.time, "sleep", waits.append)
    return waits


def test_detector_follows_the_contract(client, service):
    service.plays(DETECTOR, {**DETECTOR, "threshold": None, "coverage": {}})
    info = client.detector()
    lists = {
        "labels": ("tabby cat", "espresso"),
        "typed": ("tabby cat", "espresso"),
        "ladder": ((1.0, -5.0), (0.01, 2.0)),
    }
    assert info == Info(**{**DETECTOR, **lists, "kinds": {"espresso": ("ristretto",)}, "limits": Limits(**LIMITS)})
    assert client.detector(info).threshold is None
    assert info.odds == ()  # of an older service
    assert [(r.method, r.path) for r in service.asked] == [
        ("GET", "/v1/detector"),
        ("GET", "/v1/detectors/0123456789abcdef"),
    ]


def test_odds_of_labels_come_as_records(client, service):
    odds = {"label": "espresso", "share": 0.9, "word": "good", "expected": "about 9 of 10 of its photos will be in"}
    service.plays({**DETECTOR, "odds": [odds]})
    assert client.detector().odds == (LabelOdds(**odds),)


def test_fields_of_a_newer_service_are_passed_over(client, service):
    newer = {**DETECTOR, "colour": "red", "limits": {**LIMITS, "frames": 3}}
    service.plays(newer, {**scores(result("a.jpg", mood="good")), "took": 3}, {**THRESHOLD, "more": [1]})
    assert client.detector().limits == Limits(**LIMITS)
    assert client.score([b"a"]).results[0].score == 6.5
    assert client.threshold(inside=[1.0], detector="x").mistakes == 0


def test_fit_takes_a_list_or_a_mapping(client, service):
    service.plays(DETECTOR, DETECTOR, DETECTOR)
    assert client.fit(["tabby cat", "café"]).id == DETECTOR["id"]
    client.fit({"crane": "a crane, the bird", "cat": ""})
    client.fit(name for name in ("a", "b"))
    assert [r.json["labels"] for r in service.asked] == [
        ["tabby cat", "café"],
        {"crane": "a crane, the bird", "cat": ""},
        ["a", "b"],
    ]
    assert {(r.method, r.path) for r in service.asked} == {("POST", "/v1/detectors")}


def test_score_sends_files_and_bytes_in_order(client, service, tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8 one")
    (tmp_path / "b.png").write_bytes(b"two\r\n--\r\n")
    empty = dict.fromkeys(("verdict", "basis", "fits", "label", "kind", "nearest"), "")
    empty |= dict.fromkeys(("threshold", "p", "needed"))
    bad = result("images[1]", None, **empty, looks_like=[], labels=[], words=[], notes=[], error="not an image")
    service.plays(scores(result("b.png", 1.0), bad, result("a.jpg", 3.0, embedding=[0.6, 0.8])))
    told = client.score([tmp_path / "b.png", b"\x00\xff\r\n", str(tmp_path / "a.jpg")])
    assert service.asked[0].files == [
        ("b.png", b"two\r\n--\r\n"),
        ("images[1]", b"\x00\xff\r\n"),
        ("a.jpg", b"\xff\xd8 one"),
    ]
    assert isinstance(told, Scores)
    assert (told.detector, told.threshold, told.basis) == (DETECTOR["id"], 1.58, "formula")
    assert [(r.path, r.score) for r in told.results] == [("b.png", 1.0), ("images[1]", None), ("a.jpg", 3.0)]
    assert told.results[1] == Result("images[1]", error="not an image")
    assert (told.results[0].fits, told.results[1].fits) == (
        "fits better than 99.2 % of unrelated photos; 97.9 % are needed",
        "",
    )
    assert told.results[2].labels == (("tabby cat", 0.9),) and told.results[2].notes == ("blurred",)
    assert told.results[2].words == (("coffee", 0.26),)
    assert told.results[2].embedding == (0.6, 0.8)


def test_score_says_which_detector_how_many_words_and_whether_embeddings(client, service):
    service.plays(*[scores(result("x"))] * 4)
    client.score([b"x"])
    client.score([b"x"], detector="a&b=c", embeddings=True, top=7)
    client.score_embeddings([[1.0]], fixed=True)
    client.score([b"x"], detector=Info(**{**DETECTOR, "limits": Limits(**LIMITS)}))
    assert [r.query for r in service.asked] == [
        {"top": ["3"]},
        {"detector": ["a&b=c"], "top": ["7"], "embeddings": ["true"]},
        {"top": ["3"], "fixed": ["true"]},
        {"detector": [DETECTOR["id"]], "top": ["3"]},
    ]
    assert {(r.method, r.path) for r in service.asked} == {("POST", "/v1/score")}


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ('a "b".jpg', 'filename="a %22b%22.jpg"'),
        ("a\r\nX-Evil: 1.jpg", 'filename="a%0D%0AX-Evil: 1.jpg"'),
        ("смотри 猫.jpg", 'filename="смотри 猫.jpg"'),
        ("100%22.jpg", 'filename="100%22.jpg"'),
        ("latin-\udce9.jpg", 'filename="latin-?.jpg"'),
    ],
)
def test_file_names_are_escaped_as_browsers_do(name, sent):
    body, _ = module._form([(name, b"x")])
    lines = body.split(b"\r\n")
    assert lines[1].decode() == f'Content-Disposition: form-data; name="images"; {sent}'
    assert lines[2:5] == [b"Content-Type: application/octet-stream", b"", b"x"]


def test_a_form_is_read_by_the_parser_of_the_service():
    multipart = pytest.importorskip("python_multipart")
    files = [("猫.jpg", bytes(range(256)) * 400), ("empty", b""), ("images[2]", b"\r\n--x--\r\n")]
    body, kind = module._form(files)
    assert kind != module._form(files)[1], "a boundary is used once"
    parts = []
    headers = {"Content-Type": kind.encode(), "Content-Length": str(len(body)).encode()}
    multipart.parse_form(headers, io.BytesIO(body), None, parts.append)
    for part, (name, data) in zip(parts, files, strict=True):
        assert (part.field_name, part.file_name) == (b"images", name.encode())
        part.file_object.seek(0)
        assert part.file_object.read() == data
        part.close()


def test_a_file_that_cannot_be_read_is_named_before_anything_is_sent(client, service, tmp_path):
    gone = tmp_path / "gone.jpg"
    for image in (gone, str(gone), tmp_path, "nul\0.jpg"):
        with pytest.raises(InputError, match=r"images\[1\] cannot be read") as caught:
            client.score([b"x", image])
        assert repr(image) in caught.value.message
    with pytest.raises(InputError, match=r"images\[0\] cannot be read: 3"):
        client.score([3])
    assert service.asked == []


@pytest.mark.parametrize("images", [[], "a.jpg", b"x", Path("a.jpg")])
def test_images_must_be_a_list_with_something_in_it(client, service, images):
    with pytest.raises(InputError, match="images must"):
        client.score(images)
    assert service.asked == []


def test_labels_must_be_a_list(client, service):
    with pytest.raises(InputError, match="labels must be a list"):
        client.fit("cat")
    assert service.asked == []


@pytest.mark.parametrize(
    "rows",
    [
        [[0.25, 0.5], [1, -1]],
        np.array([[0.25, 0.5], [1, -1]], np.float32),
        [np.array([0.25, 0.5]), (np.float16(1), np.int64(-1))],
        (iter(row) for row in [[0.25, 0.5], [1, -1]]),
    ],
)
def test_embeddings_are_sent_from_lists_and_arrays(client, service, rows):
    service.plays(scores(result("embeddings[0]"), result("embeddings[1]")))
    assert len(client.score_embeddings(rows, detector="abc", top=1).results) == 2
    (request,) = service.asked
    assert (request.path, request.query) == ("/v1/score", {"detector": ["abc"], "top": ["1"]})
    assert request.json == {"embeddings": [[0.25, 0.5], [1, -1]]}


def test_numbers_that_json_has_not_are_refused_here(client, service):
    with pytest.raises(InputError, match="embeddings cannot be sent"):
        client.score_embeddings([[0.0, float("nan")]])
    with pytest.raises(InputError, match="inside and outside cannot be sent"):
        client.threshold(inside=[float("inf")])
    with pytest.raises(InputError, match="threshold cannot be sent"):
        client.download(threshold=float("nan"))
    with pytest.raises(InputError, match="embeddings cannot be sent"):
        client.score_embeddings([object()])
    assert service.asked == []


def test_threshold_from_marks(client, service):
    service.plays(DETECTOR, THRESHOLD, THRESHOLD)
    told = client.threshold(inside=[3.0, np.float64(2.5)], outside=np.array([0.5]))
    assert told == ThresholdInfo(**THRESHOLD)
    client.threshold(outside=[0.5], detector="../x y")
    assert [r.path for r in service.asked] == [
        "/v1/detector",
        f"/v1/detectors/{DETECTOR['id']}/threshold",
        "/v1/detectors/..%2Fx%20y/threshold",
    ]
    assert [r.json for r in service.asked[1:]] == [
        {"inside": [3.0, 2.5], "outside": [0.5]},
        {"inside": [], "outside": [0.5]},
    ]


def test_download_gives_the_zip_as_it_came(client, service):
    service.plays(b"PK\x03\x04 as it is", DETECTOR, b"PK marks", b"PK by hand")
    assert client.download(detector="abc") == b"PK\x03\x04 as it is"
    assert client.download(inside=[2.0]) == b"PK marks"
    assert client.download(detector="abc", threshold=0.0) == b"PK by hand"
    posts = [r for r in service.asked if r.method == "POST"]
    assert [r.json for r in posts] == [{}, {"inside": [2.0]}, {"threshold": 0.0}]
    assert [r.path.rsplit("/", 2)[1:] for r in posts] == [
        ["abc", "artifact"],
        [DETECTOR["id"], "artifact"],
        ["abc", "artifact"],
    ]


def test_ready_is_yes_no_or_an_error(client, service, slept):
    service.plays({"status": "ready"})
    service.plays(trouble("not_ready"), status=503, Retry_After="1")
    service.plays(b"<html>Bad Gateway", status=502)
    service.plays(trouble("not_found"), status=404)
    assert [client.ready(), client.ready(), client.ready()] == [True, False, False]
    with pytest.raises(ServiceError, match="no"):
        client.ready()
    assert [r.path for r in service.asked] == ["/readyz"] * 4
    assert slept == []


def test_an_overloaded_service_is_asked_again_after_the_time_it_names(client, service, slept):
    service.plays(trouble("overloaded"), status=503, Retry_After="2")
    service.plays(trouble("overloaded"), status=503)
    service.plays(scores(result("images[0]")))
    assert client.score([b"x"]).results[0].path == "images[0]"
    assert slept == [2, 1]
    assert [r.files for r in service.asked] == [[("images[0]", b"x")]] * 3


def test_retries_end(service, slept):
    service.plays(*[trouble("overloaded", "too many")] * 3, status=503, Retry_After="1")
    with pytest.raises(ServiceError) as caught:
        Client(service.url, retries=2).detector()
    error = caught.value
    assert (error.code, error.status, error.message, error.retry_after) == ("overloaded", 503, "too many", 1)
    assert slept == [1, 1]
    service.plays(trouble("overloaded"), status=503, Retry_After="1")
    with pytest.raises(ServiceError):
        Client(service.url, retries=0).detector()
    assert slept == [1, 1]


def test_a_wait_longer_than_the_timeout_is_left_to_the_caller(client, service, slept):
    service.plays(trouble("overloaded"), status=503, Retry_After="3600")
    with pytest.raises(ServiceError) as caught:
        client.detector()
    assert caught.value.retry_after == 3600
    assert slept == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 413, 415, 422, 500])
def test_an_error_of_the_service_is_raised_at_once(client, service, slept, status):
    service.plays(trouble("some_code", "the rule", "the next step"), status=status)
    with pytest.raises(OutwordError) as caught:
        client.detector()
    error = caught.value
    assert isinstance(error, ServiceError)
    assert (error.code, error.status, error.message, error.hint) == ("some_code", status, "the rule", "the next step")
    assert str(error) == "the rule. hint: the next step"
    assert error.retry_after is None
    assert slept == []
    assert vars(pickle.loads(pickle.dumps(error))) == vars(error)


@pytest.mark.parametrize(
    "body", [b"<html>502 Bad Gateway</html>", b"", b"\xff\xfe", b"[]", {"error": "no"}, {"detail": "Not Found"}]
)
def test_an_error_that_is_not_the_services_is_told_apart(client, service, body):
    service.plays(body, status=502)
    with pytest.raises(ServiceError, match="answered 502") as caught:
        client.detector()
    assert (caught.value.code, caught.value.status) == ("bad_answer", 502)


def test_an_error_without_a_hint_keeps_its_message(client, service):
    service.plays({"error": {"code": "teapot", "message": "short and stout"}}, status=418)
    with pytest.raises(ServiceError) as caught:
        client.detector()
    assert (caught.value.code, str(caught.value)) == ("teapot", "short and stout")


def test_a_proxys_503_is_retried_too(client, service, slept):
    service.plays(b"<html>", status=503, Retry_After="Wed, 21 Oct 2026 07:28:00 GMT")
    service.plays(DETECTOR)
    assert client.detector().id == DETECTOR["id"]
    assert slept == [1]


@pytest.mark.parametrize("body", [b"<html>welcome</html>", b"[]", b"null", {}, {**DETECTOR, "limits": None}])
def test_a_good_status_with_another_body_is_an_error(client, service, body):
    service.plays(body)
    with pytest.raises(ServiceError, match="not outword's") as caught:
        client.detector()
    assert (caught.value.code, caught.value.status) == ("bad_answer", 200)


def test_as_many_results_as_images(client, service):
    service.plays(scores(result("a")))
    with pytest.raises(ServiceError, match="not outword's"):
        client.score([b"a", b"b"])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(service, status):
    with Service() as other:
        service.plays(b"", status=status, Location=f"{other.url}/v1/detector")
        with pytest.raises(ServiceError, match=other.url) as caught:
            Client(service.url, token="secret").detector()
        other.socket.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has come to the door
            other.socket.accept()
    assert (caught.value.code, caught.value.status) == ("redirect", status)


def test_the_token_is_sent_when_there_is_one(service):
    service.plays(DETECTOR, DETECTOR, DETECTOR, scores(result("x")))
    Client(service.url).detector()
    Client(service.url, token="").detector()
    named = Client(service.url, token="s3cret-~.+/=")
    named.detector()
    named.score([b"x"])
    sent = "Bearer s3cret-~.+/="
    assert [r.headers["Authorization"] for r in service.asked] == [None, None, sent, sent]


def test_the_environment_sends_it_nowhere_else(service, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("OUTWORD_TOKEN", "of another place")
    service.plays(DETECTOR)
    Client(service.url).detector()
    assert service.asked[0].headers["Authorization"] is None


@pytest.mark.parametrize("token", ["a b", "a\n", "a\r\nX: 1", "clé"])
def test_a_token_that_no_header_can_hold_is_not_shown(token):
    with pytest.raises(ParameterError, match="token must be") as caught:
        Client("http://localhost", token=token)
    assert token not in str(caught.value)


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ("", "/v1/detector"),
        ("/", "/v1/detector"),
        ("/a/b/", "/a/b/v1/detector"),
        ("/é%20x y", "/%C3%A9%20x%20y/v1/detector"),
    ],
)
def test_the_path_of_the_address_comes_first(service, more, path):
    service.plays(DETECTOR)
    Client(service.url + more).detector()
    assert service.asked[0].path == path


def test_host_names_and_ports():
    def place(url):
        connection = Client(url)._connection()
        return connection.host, connection.port, type(connection).__name__

    assert place("http://localhost") == ("localhost", 80, "HTTPConnection")
    assert place("HTTPS://Example.org/x") == ("example.org", 443, "HTTPSConnection")
    assert place("https://example.org:8443") == ("example.org", 8443, "HTTPSConnection")
    assert place("http://[::1]:8000/") == ("::1", 8000, "HTTPConnection")
    assert place("http://[::1]") == ("::1", 80, "HTTPConnection")
    assert place("http://bücher.example") == ("xn--bcher-kva.example", 80, "HTTPConnection")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://localhost",
        "file:///etc/passwd",
        "localhost:8000",
        "127.0.0.1",
        "",
        "http://",
        "http://:8000",
        "http://localhost:port",
        "http://localhost:99999",
        "http://[::1",
        "http://a b/",
        "http://a..b/",
        "http://localhost/?q=1",
        "http://localhost/#top",
    ],
)
def test_a_wrong_address_is_a_parameter_error(url):
    with pytest.raises(ParameterError, match="url must be"):
        Client(url)


@pytest.mark.parametrize(
    "url", ["http://me:s3cret@localhost", "http://me:s3cret@localhost:port", "me:s3cret@localhost"]
)
def test_a_password_in_the_address_is_not_shown(url):
    with pytest.raises(ParameterError, match="no password") as caught:
        Client(url)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("wrong", [{"timeout": 0}, {"timeout": "1"}, {"retries": -1}, {"retries": 1.5}])
def test_timeout_and_retries_have_rules(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        Client("http://localhost", **wrong)


def test_nobody_there(slept):
    with Service() as server:
        url = server.url
    client = Client(url)
    with pytest.raises(ServiceError, match=url) as caught:
        client.detector()
    error = caught.value
    assert (error.code, error.status, error.hint) == ("unreachable", None, 'is "outword serve" running?')
    assert not client.ready()
    assert slept == []


def test_a_service_that_does_not_answer():
    with Service() as silent:  # it listens, and nothing takes the connection
        client = Client(silent.url, timeout=0.05)
        with pytest.raises(ServiceError, match=r"did not answer within 0\.05 s") as caught:
            client.detector()
    assert (caught.value.code, caught.value.status) == ("timeout", None)


def test_an_answer_that_breaks_off(client, service):
    service.plays(b"{", Content_Length="100")
    with pytest.raises(ServiceError, match="cannot be reached") as caught:
        client.detector()
    assert caught.value.code == "unreachable"


def test_a_refusal_is_read_even_if_the_body_was_not(monkeypatch, client, service):
    monkeypatch.setattr(Request, "__init__", lambda self, handler: None)  # answers without reading, then closes
    service.plays(trouble("too_large", "the body is too large"), status=413, Connection="close")
    with pytest.raises(ServiceError, match="the body is too large"):
        client.score([bytes(20_000_000)])


def test_https_checks_the_certificate(service, tmp_path, monkeypatch):
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate, and it is not installed")
    key, own = tmp_path / "key.pem", tmp_path / "own.pem"
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*make.split(), *names, "-keyout", key, "-out", own], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own, key)
    service.socket = context.wrap_socket(service.socket, server_side=True)
    service.handle_error = lambda *args: None  # a client that hangs up
    url = service.url.replace("http", "https")
    with pytest.raises(ServiceError, match="certificate"):
        Client(url).detector()
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    service.plays(DETECTOR)
    assert Client(url, token="secret").detector().id == DETECTOR["id"]
    assert service.asked[0].headers["Authorization"] == "Bearer secret"


def test_importing_it_imports_nothing_heavy():
    code = "import sys, outword.client; print(*{'numpy', 'fastapi', 'PIL', 'click', 'torch'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []

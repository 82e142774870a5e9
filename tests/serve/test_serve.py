"""The service as its clients see it: every call, every refusal, and what it costs to be told the same twice."""

import asyncio
import base64
import doctest
import html
import http.client
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

import outword
from conftest import LABELS, PHOTOS, call
from helpers.bad_images import encoded
from helpers.contrastive import Contrastive, photo
from helpers.served import ask, form, in_thread, process, soon
from outword.base.extras import install
from outword.base.processors import usable_cpus
from outword.cli.serve_verb import check_token
from outword.errors import ParameterError
from outword.photos import decode as decoding
from outword.serve.batching import Batcher
from outword.serve.detector_cache import footprint
from outword.serve.limits import FEWEST_TOGETHER, Limits
from outword.serve.pools import Pool
from outword.serve.refusals import Refusal
from outword.serve.server import is_local, most_connections
from outword.serve.service import judge_jobs

CAT, RACCOON = (PHOTOS / f"{name}.jpg" for name in ("cat", "raccoon"))
DOCS = Path(__file__).parents[2] / "docs" / "serving.md"


@pytest.fixture(scope="module")
def address(detector):
    with in_thread(detector, Limits(images=20, labels=50, detectors=2)) as address:
        yield address


def told(answer):
    """The JSON of an answer with status 200."""
    status, _, body = answer
    assert status == 200, body
    return json.loads(body)


def refused(answer):
    """Status and code of a refusal, whose shape is checked."""
    status, headers, body = answer
    assert headers["content-type"] == "application/json"
    problem = json.loads(body)["error"]
    assert sorted(problem) == ["code", "hint", "message"]
    assert problem["message"]
    return status, problem["code"]


def score(address, *paths, query=""):
    body, kind = form(*((path.name, path.read_bytes()) for path in paths))
    return ask(address, "POST", f"/v1/score{query}", body, kind=kind)


def test_scores_are_those_of_the_library(address, detector):
    photos = sorted(PHOTOS.glob("*.jpg"))
    answer = told(score(address, *photos))
    assert [r["path"] for r in answer["results"]] == [path.name for path in photos]
    assert [r["score"] for r in answer["results"]] == detector.score(photos).tolist()
    assert (answer["threshold"], answer["basis"]) == (detector.threshold, "reference")
    explained = detector.explain(RACCOON, top=3)
    got = next(r for r in answer["results"] if r["path"] == RACCOON.name)
    assert (got["verdict"], got["nearest"], got["error"]) == (explained.verdict, explained.labels[0][0], "")
    assert [share["label"] for share in got["labels"]] == [label for label, _ in explained.labels]
    assert [share["word"] for share in got["words"]] == [word for word, _ in explained.words]
    np.testing.assert_allclose([s["share"] for s in got["words"]], [s for _, s in explained.words], rtol=1e-3)


def test_form_json_and_embeddings_give_the_same(address):
    formed = told(score(address, CAT, RACCOON, query="?embeddings=true&top=1"))["results"]
    encoded = [base64.b64encode(path.read_bytes()).decode() for path in (CAT, RACCOON)]
    from_json = told(ask(address, "POST", "/v1/score?top=1", {"images": encoded}))["results"]
    vectors = [result["embedding"] for result in formed]
    again = told(ask(address, "POST", "/v1/score?top=1", {"embeddings": vectors}))["results"]
    for one, two, three in zip(formed, from_json, again, strict=True):
        assert len(one["labels"]) == 1
        assert len(one["embedding"]) == 512
        assert two["embedding"] is three["embedding"] is None
        assert two["score"] == one["score"]
        assert three["score"] == pytest.approx(one["score"], abs=1e-6)  # a vector is brought to length 1 once more
        for other in (two, three):
            assert (other["nearest"], other["verdict"]) == (one["nearest"], one["verdict"])
    assert [r["path"] for r in from_json] == ["images[0]", "images[1]"]
    assert [r["path"] for r in again] == ["embeddings[0]", "embeddings[1]"]


def test_notes_on_the_photos_of_a_request(address):
    copy, small = encoded(Image.open(CAT), "PNG"), encoded(Image.open(PHOTOS / "tripod.jpg").resize((40, 40)), "PNG")
    files = [("cat.jpg", CAT.read_bytes()), ("no.jpg", b"no image"), ("copy.png", copy), ("small.jpg", small)]
    body, kind = form(*files)
    results = told(ask(address, "POST", "/v1/score?embeddings=true", body, kind=kind))["results"]
    wanted = [[], [], ["the same as cat.jpg"], ["only 40 x 40 pixels"]]
    assert [result["notes"] for result in results] == wanted
    alone = told(ask(address, "POST", "/v1/score", {"embeddings": [results[2]["embedding"]] * 2}))["results"]
    assert [result["notes"] for result in alone] == [[], []]


def test_one_bad_image_among_several_is_a_result_with_an_error(address):
    body, kind = form(("no.jpg", b"no image"), ("cat.jpg", CAT.read_bytes()))
    bad, good = told(ask(address, "POST", "/v1/score", body, kind=kind))["results"]
    assert (bad["error"], bad["score"], bad["verdict"]) == ("not an image", None, "")
    assert good["label"] == "tabby cat"
    body, kind = form(("no.jpg", b"no image"), ("none.jpg", b""))
    assert refused(ask(address, "POST", "/v1/score", body, kind=kind)) == (422, "unreadable_image")


def test_the_detector_tells_of_itself(address, detector):
    answer = told(ask(address, "GET", "/v1/detector"))
    assert answer == told(ask(address, "GET", f"/v1/detectors/{answer['id']}"))
    assert (answer["labels"], answer["encoder"], answer["method"]) == (LABELS, "mini", "grounded")
    assert (answer["threshold"], answer["basis"]) == (detector.threshold, "reference")
    assert answer["calibration"] == detector.cut.told
    assert answer["limits"]["images"] == 20
    assert answer["coverage"]["pizza"] == "known"
    assert answer["typed"] == LABELS
    p, scores = zip(*answer["ladder"], strict=True)
    assert list(p) == detector.thresholds.p_values(scores).tolist() == sorted(p, reverse=True)
    assert len(p) > 20


def test_labels_come_with_their_kinds_and_can_be_without_some(address):
    made = told(ask(address, "POST", "/v1/detectors", {"labels": ["animal > -dog", "sofa | couch"]}))
    assert (made["labels"], made["typed"]) == (["animal", "sofa"], ["animal > -dog", "sofa | couch"])
    assert "cat" in made["kinds"]["animal"] and "dog" not in made["kinds"]["animal"]
    asked = ask(address, "POST", "/v1/detectors", {"labels": ["animal > -chair"]})
    assert refused(asked) == (422, "invalid")


def test_labels_in_a_detector_out(address):
    made = told(ask(address, "POST", "/v1/detectors", {"labels": ["raccoon", "espresso"]}))
    assert (made["labels"], made["prompts"]) == (["raccoon", "espresso"], {})
    prompted = told(ask(address, "POST", "/v1/detectors", {"labels": {"raccoon": "a raccoon", "espresso": ""}}))
    assert (prompted["labels"], prompted["prompts"]) == (made["labels"], {"raccoon": "a raccoon"})
    assert prompted["id"] != made["id"]
    assert made == told(ask(address, "POST", "/v1/detectors", {"labels": {"raccoon": "", "espresso": ""}}))
    scored = told(score(address, RACCOON, query=f"?detector={made['id']}"))
    assert (scored["detector"], scored["results"][0]["nearest"]) == (made["id"], "raccoon")
    wanted = outword.fit(["raccoon", "espresso"]).score([RACCOON])[0]
    assert scored["results"][0]["score"] == pytest.approx(wanted, rel=1e-4)


@pytest.fixture(scope="module")
def imagined(own_cache):
    """A detector of an encoder that has no reference."""
    return outword.fit(["car", "boat", "lamp"], encoder=Contrastive())


def shots(*shown):
    """Files of photos, of one (name, chance) each, for the made-up encoder."""
    return [(f"{place}.png", encoded(Image.fromarray(photo(*one)), "PNG")) for place, one in enumerate(shown)]


def asked_together(address, *requests, query=""):
    """The thresholds of the answers to several requests that come at the same time."""

    def threshold(files):
        body, kind = form(*files)
        answer = told(ask(address, "POST", f"/v1/score{query}", body, kind=kind))
        (found,) = {(one["basis"], one["threshold"]) for one in answer["results"] if not one["error"]}
        assert found == (answer["basis"], answer["threshold"]) and answer["basis"] == "imagined"
        return answer["threshold"]

    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(threshold, requests))


def test_the_photos_of_a_request_refine_an_imagined_threshold_and_those_of_others_do_not(imagined):
    cars, cats = ([(name, chance) for chance in range(6)] for name in ("sports car", "tabby"))
    wanted = [imagined.predict([photo(*one) for one in some])[0].threshold for some in (cars, cats)]
    assert len({*wanted, imagined.threshold}) == 3
    with in_thread(imagined, Limits(wait_ms=200)) as address:
        assert asked_together(address, shots(*cars), shots(*cats)) == wanted
        assert asked_together(address, shots(*cats[::-1]), [*shots(*cats), ("bad.png", b"")]) == [wanted[1]] * 2
        assert asked_together(address, shots(*cars), shots(*cats), query="?fixed=true") == [imagined.threshold] * 2
        body, kind = form(*shots(*cats))
        found = told(ask(address, "POST", "/v1/score?embeddings=true", body, kind=kind))["results"]
        vectors = [one["embedding"] for one in found]
        again = told(ask(address, "POST", "/v1/score", {"embeddings": vectors}))
        assert again["threshold"] == pytest.approx(wanted[1], abs=1e-6)
        records = imagined.predict([photo(*one) for one in cats])
        assert [one["p"] for one in found] == [one.p for one in records]
        assert [one["verdict"] for one in found] == [one.verdict for one in records]
    with in_thread(imagined.fixed()) as address:
        assert asked_together(address, shots(*cars), shots(*cats)) == [imagined.threshold] * 2


def test_the_detector_tells_the_odds_of_its_labels(imagined):
    with in_thread(imagined) as address:
        answer = told(ask(address, "GET", "/v1/detector"))
        odds = [
            {
                "label": one.label,
                "share": one.odds.share,
                "word": one.word,
                "expected": one.odds.expected,
                "why": one.why,
                "next_step": one.next_step,
            }
            for one in imagined.labels_report
        ]
        assert (answer["basis"], answer["odds"]) == ("imagined", odds)
        assert answer["ladder"] and answer["calibration"] == imagined.how_cut
        other = told(ask(address, "POST", "/v1/detectors", {"labels": ["dog"]}))
        assert [one["label"] for one in other["odds"]] == ["dog"]


def test_the_same_labels_are_not_fitted_twice(detector, monkeypatch):
    fits = []
    relabel = type(detector).relabel
    monkeypatch.setattr(type(detector), "relabel", lambda self, labels: (fits.append(1), relabel(self, labels))[1])
    with in_thread(detector) as address:
        question = address, "POST", "/v1/detectors", {"labels": ["pen", "cup"]}
        together = [threading.Thread(target=ask, args=question) for _ in range(3)]
        for thread in together:
            thread.start()
        for thread in together:
            thread.join()
        told(ask(*question))
        assert len(fits) == 1
        told(ask(address, "POST", "/v1/detectors", {"labels": ["cup", "pen"]}))
        assert len(fits) == 2


def test_a_fit_that_takes_too_long_goes_on(detector, monkeypatch):
    go, relabel = threading.Event(), type(detector).relabel
    monkeypatch.setattr(type(detector), "relabel", lambda self, labels: (go.wait(30), relabel(self, labels))[1])
    with in_thread(detector, Limits(seconds=0.2)) as address:
        assert refused(ask(address, "POST", "/v1/detectors", {"labels": ["pen", "cup"]})) == (503, "overloaded")
        for i in range(3):
            ask(address, "POST", "/v1/detectors", {"labels": ["pen", f"cup {i}"]})
        status, _, body = ask(address, "POST", "/v1/detectors", {"labels": ["pen", "hat"]})
        assert (status, "4 label lists are being fitted already" in body.decode()) == (503, True)
        go.set()
        while ask(address, "POST", "/v1/detectors", {"labels": ["pen", "cup"]})[0] == 503:
            pass


def test_a_fit_that_takes_too_long_is_in_nobodys_way(detector, monkeypatch):
    begun, go, made = threading.Event(), threading.Event(), detector.relabel(["hat", "cup"])

    def relabel(self, labels):
        if "pen" in labels:
            begun.set()
            assert go.wait(30)
        return made

    monkeypatch.setattr(type(detector), "relabel", relabel)
    with in_thread(detector, Limits(seconds=2.0)) as address:
        late = threading.Thread(target=ask, args=(address, "POST", "/v1/detectors", {"labels": ["pen", "cup"]}))
        late.start()
        assert begun.wait(30)
        assert told(ask(address, "POST", "/v1/detectors", {"labels": ["hat", "cup"]}))["labels"] == ["hat", "cup"]
        go.set()
        late.join()


def test_the_least_recently_used_detector_goes_first(address):
    first, second, third = (
        told(ask(address, "POST", "/v1/detectors", {"labels": ["lamp", name]}))["id"] for name in ("pen", "cup", "hat")
    )
    assert refused(ask(address, "GET", f"/v1/detectors/{first}")) == (404, "unknown_detector")
    assert {told(ask(address, "GET", f"/v1/detectors/{key}"))["id"] for key in (second, third)} == {second, third}
    told(ask(address, "GET", f"/v1/detectors/{second}"))
    told(ask(address, "POST", "/v1/detectors", {"labels": ["lamp", "pen"]}))
    assert refused(ask(address, "GET", f"/v1/detectors/{third}")) == (404, "unknown_detector")
    told(ask(address, "GET", "/v1/detector"))


def test_detectors_are_bounded_by_memory_too(detector):
    with in_thread(detector, Limits(detector_bytes=int(1.5 * footprint(detector)))) as address:
        first = told(ask(address, "POST", "/v1/detectors", {"labels": ["lamp", "pen"]}))["id"]
        told(ask(address, "POST", "/v1/detectors", {"labels": ["lamp", "cup"]}))
        assert refused(ask(address, "GET", f"/v1/detectors/{first}")) == (404, "unknown_detector")
    with in_thread(detector, Limits(detector_bytes=1000)) as address:
        assert refused(ask(address, "POST", "/v1/detectors", {"labels": ["lamp", "pen"]})) == (413, "too_large")


def test_marks_move_the_threshold_and_the_download_has_it(address, detector, tmp_path):
    key = told(ask(address, "GET", "/v1/detector"))["id"]
    marks = {"inside": [6.5, 0.9], "outside": [0.3]}
    found = told(ask(address, "POST", f"/v1/detectors/{key}/threshold", marks))
    assert (found["threshold"], found["mistakes"], found["method"]) == (pytest.approx(0.6), 0, "marks")
    assert found["tpr"] == 1
    assert "uncertain" in found["warning"]
    for body, wanted in ((marks, found["threshold"]), ({"threshold": 2.5}, 2.5), ({}, None)):
        status, headers, data = ask(address, "POST", f"/v1/detectors/{key}/artifact", body)
        assert (status, headers["content-type"]) == (200, "application/zip")
        zipfile.ZipFile(io.BytesIO(data)).extractall(tmp_path)
        loaded = outword.load(tmp_path / "detector.outword")
        assert loaded.threshold_ == pytest.approx(wanted) if wanted else loaded.threshold_ is None
        assert loaded.labels == detector.labels
    assert detector.threshold_ is None


def test_marks_that_let_much_in_are_said_to(address, detector, tmp_path):
    key, known = told(ask(address, "GET", "/v1/detector"))["id"], detector.thresholds.reference_scores
    marks = {"inside": [float(np.median(known))], "outside": [-99.0]}
    found = told(ask(address, "POST", f"/v1/detectors/{key}/threshold", marks))
    share = (known >= found["threshold"]).mean()
    assert share > 0.5 and found["warning"].endswith(f"it lets in {share:.0%} of {len(known):,} unrelated photos")
    for body in (marks, {"threshold": found["threshold"]}):
        zipfile.ZipFile(io.BytesIO(ask(address, "POST", f"/v1/detectors/{key}/artifact", body)[2])).extractall(tmp_path)
        assert outword.load(tmp_path / "detector.outword").calibration_.fpr == pytest.approx(share)


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "wanted"),
    [
        ("POST", "/v1/score", b"{", "application/json", (400, "bad_request")),
        ("POST", "/v1/score", b"[]", "application/json", (422, "invalid")),
        ("POST", "/v1/score", b"{}", "application/json", (422, "invalid")),
        ("POST", "/v1/score", {"images": []}, None, (422, "invalid")),
        ("POST", "/v1/score", {"images": ["%"]}, None, (422, "invalid")),
        ("POST", "/v1/score", {"images": ["é"]}, None, (422, "invalid")),
        ("POST", "/v1/score", {"images": ["aGk="], "embeddings": [[1.0]]}, None, (422, "invalid")),
        ("POST", "/v1/score", {"images": ["aGk="], "more": 1}, None, (422, "invalid")),
        ("POST", "/v1/score", {"images": ["aGk="] * 21}, None, (413, "too_large")),
        ("POST", "/v1/score", {"embeddings": [[1.0, 2.0]]}, None, (422, "invalid")),
        ("POST", "/v1/score", {"embeddings": [[0.0] * 512]}, None, (422, "invalid")),
        ("POST", "/v1/score", {"embeddings": [[1e300] * 512]}, None, (422, "invalid")),
        ("POST", "/v1/score", b"x", "image/jpeg", (415, "unsupported_media_type")),
        ("POST", "/v1/score", b"x", None, (415, "unsupported_media_type")),
        ("POST", "/v1/score", b"x", "multipart/form-data", (400, "bad_request")),
        ("POST", "/v1/score", b"x", "multipart/form-data; boundary=a", (400, "bad_request")),
        ("POST", "/v1/score", form(("a", b"a"))[0][:-9], form()[1], (400, "bad_request")),
        ("POST", "/v1/score", *form(("a", b"a"), field="photos"), (422, "invalid")),
        ("POST", "/v1/score", *form(*[("a", b"a")] * 21), (413, "too_large")),
        ("POST", "/v1/score", *form(*[("a", b"a")] * 100), (413, "too_large")),
        ("POST", "/v1/score?top=0", {"images": ["aGk="]}, None, (422, "invalid")),
        ("POST", "/v1/score?detector=../x", {"images": ["aGk="]}, None, (404, "unknown_detector")),
        ("POST", "/v1/detectors", b"{", "application/json", (400, "bad_request")),
        ("POST", "/v1/detectors", b'{"labels": ["a", "b"]}', "text/plain", (415, "unsupported_media_type")),
        ("POST", "/v1/detectors", {"labels": "cat"}, None, (422, "invalid")),
        ("POST", "/v1/detectors", {"labels": ["cat |"]}, None, (422, "invalid")),
        ("POST", "/v1/detectors", {"labels": ["cat", "cat"]}, None, (422, "invalid")),
        ("POST", "/v1/detectors", {"labels": [f"thing {i}" for i in range(51)]}, None, (413, "too_large")),
        ("POST", "/v1/detectors", {"labels": ["x" * 20_000] * 60}, None, (413, "too_large")),
        ("POST", "/v1/detectors/none/threshold", {"inside": [1]}, None, (404, "unknown_detector")),
        ("POST", "/v1/detectors/OWN/threshold", {}, None, (422, "invalid")),
        ("POST", "/v1/detectors/OWN/threshold", b'{"inside": [NaN]}', "application/json", (422, "invalid")),
        ("POST", "/v1/detectors/OWN/artifact", {"inside": [1], "threshold": 1}, None, (422, "invalid")),
        ("GET", "/v1/detectors/%2e%2e%2fsecret", None, None, (404, "not_found")),
        ("GET", "/v2/score", None, None, (404, "not_found")),
        ("GET", "/static/..%2f..%2fpipeline.py", None, None, (404, "not_found")),
        ("GET", "/demo/..%2flabels.txt", None, None, (404, "not_found")),
        ("DELETE", "/v1/score", None, None, (405, "method_not_allowed")),
    ],
)
def test_what_is_wrong_is_refused(address, method, path, body, kind, wanted):
    path = path.replace("OWN", told(ask(address, "GET", "/v1/detector"))["id"])
    assert refused(ask(address, method, path, body, kind=kind)) == wanted


def test_bodies_are_bounded_one_by_one_and_together(detector):
    with in_thread(detector, Limits(body_bytes=100_000, held_bytes=100_000)) as address:
        body, kind = form(("a", bytes(200_000)))
        assert refused(ask(address, "POST", "/v1/score", body, kind=kind)) == (413, "too_large")
        place = urlsplit(address)
        with socket.create_connection((place.hostname, place.port)) as slow:
            head = (
                f"POST /v1/score HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: 90000\r\n\r\n"
            )
            slow.sendall(head.encode() + body[:80_000])
            while "outword_held_bytes 80000.0" not in ask(address, "GET", "/metrics")[2].decode():
                pass
            body, kind = form(("a", bytes(50_000)))
            assert refused(ask(address, "POST", "/v1/score", body, kind=kind)) == (503, "overloaded")
        while "outword_held_bytes 0.0" not in (text := ask(address, "GET", "/metrics")[2].decode()):
            pass
        assert 'outword_requests_total{path="/v1/score",status="413"} 1.0' in text
        assert 'outword_requests_total{path="/v1/score",status="503"} 1.0' in text
    with pytest.raises(ParameterError, match="held_bytes must be a whole number of at least 1000, got 999"):
        Limits(body_bytes=1000, held_bytes=999)


def test_large_images_are_refused_before_they_are_decoded(detector):
    with in_thread(detector, Limits(pixels=1000)) as address:
        status, _, body = score(address, CAT)
        assert status == 422
        assert "too many pixels" in json.loads(body)["error"]["message"]


def test_small_images_pass_large_ones(detector, monkeypatch):
    leave, entered = threading.Event(), threading.Event()

    def slow(*given, large, **more):
        if large:
            entered.set()
            assert leave.wait(30)
        return decoding.with_image(*given, large=large, **more)

    monkeypatch.setattr("outword.encoders.loader.with_image", slow)
    monkeypatch.setattr(decoding, "LARGE", 451 * 300)  # pixels, those of the cat
    with in_thread(detector) as address, ThreadPoolExecutor() as clients:
        body, kind = form(("a.jpg", encoded(Image.open(CAT).resize((452, 300)), "JPEG")))
        waiting = [clients.submit(ask, address, "POST", "/v1/score", body, kind=kind) for _ in range(4)]
        assert entered.wait(30)
        assert score(address, CAT)[0] == 200
        assert not any(request.done() for request in waiting)
        leave.set()
        assert [request.result()[0] for request in waiting] == [200] * 4


def test_a_token_is_asked_for_where_it_matters(detector):
    with in_thread(detector, token="sesame") as address:
        for shown in (
            {},
            {"authorization": "Bearer no"},
            {"authorization": "Basic sesame"},
            {"authorization": "sesame"},
        ):
            for path in ("/v1/detector", "/metrics", "/v1/none"):
                answer = ask(address, "GET", path, headers=shown)
                assert refused(answer) == (401, "unauthorized")
                assert answer[1]["www-authenticate"] == "Bearer"
        told(ask(address, "GET", "/v1/detector", headers={"authorization": "Bearer sesame"}))
        told(ask(address, "GET", "/v1/detector", headers={"authorization": "bearer sesame", "host": "example.org"}))
        for path in ("/", "/healthz", "/readyz", "/docs", "/openapi.json", "/demo", "/demo/cat.jpg", "/static/app.js"):
            assert ask(address, "GET", path)[0] == 200


def test_other_sites_are_kept_out(address, detector):
    for host in ("example.org", "127.0.0.1.example.org", "[::2]:8000", "[::1]example.org", "localhost:80@example.org"):
        assert refused(ask(address, "GET", "/v1/detector", headers={"host": host})) == (403, "forbidden")
    for host in ("localhost", "LOCALHOST", "127.0.0.1:1", "127.1.2.3", "[::1]:8000"):
        told(ask(address, "GET", "/v1/detector", headers={"host": host}))
    with in_thread(detector, local=False) as open_to_all:
        told(ask(open_to_all, "GET", "/v1/detector", headers={"host": "example.org"}))
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 422), ("none", 422)):
        assert ask(address, "POST", "/v1/detectors", {"labels": []}, {"sec-fetch-site": site})[0] == status


def test_every_answer_has_the_headers(address):
    for path in ("/", "/v1/detector", "/nothing", "/metrics"):
        headers = ask(address, "GET", path)[1]
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


def test_figures_for_prometheus(detector):
    with in_thread(detector) as address:
        score(address, CAT, RACCOON)
        text = ask(address, "GET", "/metrics")[2].decode()
    assert 'outword_requests_total{path="/v1/score",status="200"} 1.0' in text
    assert 'outword_images_total{verdict="in"} 1.0' in text
    assert "outword_batch_images_sum 2.0" in text
    assert "outword_queue_images 0.0" in text
    assert "outword_held_bytes 0.0" in text
    assert "process_resident_memory_bytes" in text


def test_a_full_queue_sheds(detector, monkeypatch):
    held, go = threading.Event(), threading.Event()
    monkeypatch.setattr("outword.serve.service.judge_jobs", lambda jobs: (held.set(), go.wait(30), [])[2])
    with in_thread(detector, Limits(queue=2, images=2)) as address:
        waiting = threading.Thread(target=score, args=(address, CAT, RACCOON))
        waiting.start()
        assert held.wait(30)
        answer = score(address, CAT)
        assert refused(answer) == (503, "overloaded")
        assert int(answer[1]["retry-after"]) >= 1
        assert refused(ask(address, "GET", "/readyz")) == (503, "overloaded")
        told(ask(address, "GET", "/healthz"))
        go.set()
        waiting.join()


@pytest.fixture
def full(detector, monkeypatch):
    """The address of a service whose queue is full, and what lets it go on."""
    held, go = threading.Event(), threading.Event()
    monkeypatch.setattr("outword.serve.service.judge_jobs", lambda jobs: (held.set(), go.wait(30), judge_jobs(jobs))[2])
    with in_thread(detector, Limits(queue=1, images=1)) as address:
        waiting = threading.Thread(target=score, args=(address, CAT))
        waiting.start()
        assert held.wait(30)
        yield address, lambda: (go.set(), waiting.join())
        go.set()


def answers(connection, count):
    """So many answers, in order: status, headers, body."""
    found = []
    for _ in range(count):
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        found.append((answer.status, dict(answer.getheaders()), answer.read()))
    return found


def held_bytes(address):
    return re.search(r"^outword_held_bytes (\S+)", ask(address, "GET", "/metrics")[2].decode(), re.MULTILINE)[1]


def test_with_a_full_queue_a_request_is_refused_before_its_body_comes_and_the_connection_goes_on(full):
    (address, let_go), (body, kind) = full, form(("cat.jpg", CAT.read_bytes()))
    place = urlsplit(address)
    head = f"POST /v1/score?top=2 HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    held = held_bytes(address)
    with socket.create_connection((place.hostname, place.port), timeout=30) as client:
        client.sendall(head.encode())
        answer = answers(client, 1)[0]
        assert refused(answer) == (503, "overloaded")
        assert int(answer[1]["retry-after"]) >= 1 and "content-security-policy" in answer[1] and "date" in answer[1]
        client.sendall(body[:1000])
        assert held_bytes(address) == held  # of the request that waits
        client.sendall(body[1000:] + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answers(client, 1)[0][0] == 200  # the rest of the body was dropped, and is no request
        let_go()
        client.sendall(head.encode() + body)
        assert told(answers(client, 1)[0])["results"][0]["verdict"] == "in"


def test_requests_one_after_the_other_without_waiting_are_all_refused(full):
    (address, _), (body, kind) = full, form(("cat.jpg", CAT.read_bytes()))
    place, n = urlsplit(address), 5
    one = f"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((place.hostname, place.port), timeout=30) as client:
        client.sendall(n * (one.encode() + body) + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        reader = client.makefile("rb")
        statuses = []
        for _ in range(n + 1):
            statuses.append(int(reader.readline().split()[1]))
            headers = dict(line.strip().split(b": ", 1) for line in iter(reader.readline, b"\r\n"))
            reader.read(int(headers[b"content-length"]))
        assert statuses == [503] * n + [200]
    text = ask(address, "GET", "/metrics")[2].decode()
    assert f'outword_requests_total{{path="/v1/score",status="503"}} {n}.0' in text


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("Host: example.org", (403, "forbidden")),
        ("Host: localhost\r\nOrigin: http://example.org", (403, "forbidden")),
        ("Host: localhost\r\nExpect: 100-continue", (503, "overloaded")),
        ("Host: localhost\r\nConnection: close", (503, "overloaded")),
    ],
)
def test_a_full_queue_lets_nobody_past_the_other_rules(full, lines, wanted):
    place = urlsplit(full[0])
    with socket.create_connection((place.hostname, place.port), timeout=30) as client:
        client.sendall(f"POST /v1/score HTTP/1.1\r\n{lines}\r\nContent-Length: 0\r\n\r\n".encode())
        assert refused(answers(client, 1)[0]) == wanted


def test_several_threads_work_at_once_and_a_late_item_does_not_wait_for_those_at_work():
    both = threading.Barrier(2, timeout=30)

    def work(items):
        both.wait()
        return items

    async def main():
        batcher = Batcher(work, most=4, wait=30, queue=8, threads=2)
        async with batcher.running():
            with batcher.room(1):
                first = asyncio.create_task(batcher.submit(1))
                while not both.n_waiting:
                    await asyncio.sleep(0.001)
                with batcher.room(1):
                    return await asyncio.wait_for(asyncio.gather(first, batcher.submit(2)), 20)

    assert asyncio.run(main()) == [1, 2]


def test_decoders_that_hang_are_reported_and_images_refused_at_once(detector, monkeypatch):
    go = threading.Event()
    monkeypatch.setattr("outword.encoders.base.Loader.load_one", lambda *args, **named: go.wait(30))
    with in_thread(detector, Limits(seconds=0.1)) as address:
        told(ask(address, "GET", "/healthz"))
        assert refused(score(address, *[CAT] * usable_cpus())) == (503, "overloaded")
        assert soon(lambda: ask(address, "GET", "/healthz")[0] == 503)
        assert refused(ask(address, "GET", "/healthz")) == (503, "stuck")
        assert refused(ask(address, "GET", "/readyz")) == (503, "overloaded")
        answer = score(address, CAT)
        assert refused(answer) == (503, "overloaded")
        assert b"no thread is left to decode images: each hangs at an image" in answer[2]
        go.set()
        assert soon(lambda: ask(address, "GET", "/healthz")[0] == 200)
        told(ask(address, "GET", "/readyz"))


def test_threads_are_stuck_when_all_of_them_are():
    go, begun = threading.Event(), threading.Semaphore(0)

    def hang():
        begun.release()
        return go.wait(30)

    async def main():
        pool = Pool(2, "outword-test")
        seen, works = [], []
        for _ in range(2):
            works.append(asyncio.create_task(pool.run(hang)))
            while not begun.acquire(blocking=False):
                await asyncio.sleep(0.001)
            seen.append(pool.is_stuck(-1))
        assert (seen, pool.is_stuck(60)) == ([False, True], False)
        pool.close()  # which does not wait
        go.set()
        assert await asyncio.gather(*works) == [True, True]
        assert not pool.is_stuck(-1)

    asyncio.run(main())


def test_what_takes_too_long_is_given_up(detector, monkeypatch):
    go = threading.Event()
    monkeypatch.setattr("outword.serve.service.judge_jobs", lambda jobs: (go.wait(30), [])[1])
    with in_thread(detector, Limits(seconds=0.2)) as address:
        assert refused(score(address, CAT)) == (503, "overloaded")
        go.set()


def test_a_mistake_of_the_service_is_told_and_survived(detector, monkeypatch):
    monkeypatch.setattr("outword.serve.service.judge_jobs", lambda jobs: 1 / 0)
    with in_thread(detector) as address:
        assert refused(score(address, CAT)) == (500, "internal")
        told(ask(address, "GET", "/readyz"))


def test_batches_gather_while_the_thread_works_and_keep_order():
    seen, go = [], threading.Event()

    def work(items):
        seen.append(len(items))
        go.wait(30)
        return [item * 10 for item in items]

    async def main():
        batcher = Batcher(work, most=4, wait=0.001, queue=20)
        async with batcher.running():
            await gather(batcher)
        assert not batcher.alive
        assert batcher.on_their_way == 0

    async def gather(batcher):
        with batcher.room(11):
            first = asyncio.create_task(batcher.submit(0))
            while not seen:
                await asyncio.sleep(0.001)
            rest = [asyncio.create_task(batcher.submit(i)) for i in range(1, 11)]
            await asyncio.sleep(0)
            with pytest.raises(Refusal, match="11 images are waiting"), batcher.room(10):
                pass
            rest[0].cancel()
            await asyncio.sleep(0)
            go.set()
            assert await first == 0
            assert await asyncio.gather(*rest[1:]) == [10 * i for i in range(2, 11)]

    asyncio.run(main())
    assert seen == [1, 3, 4, 2]  # the one that was cancelled is left out


def test_an_item_that_fails_does_not_spoil_its_batch():
    async def main():
        batcher = Batcher(lambda items: [1 // item for item in items], most=8, wait=1, queue=8)
        async with batcher.running():
            with batcher.room(3):
                return await asyncio.gather(*(batcher.submit(i) for i in (1, 0, -1)), return_exceptions=True)

    one, error, minus = asyncio.run(main())
    assert (one, minus) == (1, -1)
    assert isinstance(error, ZeroDivisionError)


def test_the_log_holds_nothing_that_a_client_sent(address, caplog):
    with caplog.at_level("INFO", logger="outword.serve"):
        ask(address, "X" * 50, "/secret?token=secret")
        ask(address, "GET", "/v1/detectors/secret")
        while len(caplog.records) < 2:  # the line is written when the answer is out
            pass
    said = [re.sub(r" \d+ ms", "", record.getMessage()) for record in caplog.records]
    assert said == ["other other 404", "GET /v1/detectors/{key} 404"]
    assert "secret" not in caplog.text
    assert "XX" not in caplog.text


def examples(page):
    """The commands of the page /docs."""
    return re.findall("<pre>(curl .*?)</pre>", html.unescape(page))


def test_the_api_page_shows_every_call(address):
    page = ask(address, "GET", "/docs")[2].decode()
    schema = told(ask(address, "GET", "/openapi.json"))
    calls = [(method.upper(), path) for path, methods in schema["paths"].items() for method in methods]
    assert [tuple(shown.split()) for shown in re.findall("<h2><code>(.*?)</code>", page)] == calls
    assert len(examples(page)) == len(calls)
    assert "<script" not in page
    assert "\\n" not in page
    assert '"embeddings"' in html.unescape(page)
    assert "style=" not in page
    assert not re.search(r'(src|href)="(https?:)?//', page)


def test_the_demo_photos_are_there(address):
    photos = told(ask(address, "GET", "/demo"))["photos"]
    assert photos == sorted(path.name for path in PHOTOS.glob("*.jpg"))
    status, headers, body = ask(address, "GET", "/demo/cat.jpg")
    assert (status, headers["content-type"], body) == (200, "image/jpeg", CAT.read_bytes())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "serve takes a DETECTOR or --labels"),
        (["missing.outword", "--port", "0"], "is not a saved detector"),
        (["--labels", "missing.txt", "--port", "0"], "there is no label list"),
        (["SAVED", "--labels", "x"], "serve takes a DETECTOR or --labels, got both"),
        ([CAT], "cat.jpg is not a saved detector, and serve takes a DETECTOR or --labels"),
        (["SAVED", "--host", "0.0.0.0", "--port", "0"], "a token is needed"),
        (["SAVED", "--host", "no.such.host.invalid", "--insecure"], "cannot be used"),
        (["SAVED", "--port", "0", "--token", ""], "the token must be"),
        (["SAVED", "--token", "a b"], "the token must be"),
        (["SAVED", "--limit", "queue=3"], "queue must be a whole number of at least 64, got 3"),
        (["SAVED", "--limit", "images=none"], "images must be a whole number of at least 1, got 'none'"),
        (["SAVED", "--limit", "seconds=0"], "seconds must be a number of at least 0.01 and at most 3600, got 0"),
        (["SAVED", "--limit", "photos=3"], "--limit knows no limit 'photos'"),
        (["SAVED", "--limit", "images"], "--limit takes NAME=VALUE, got 'images'"),
    ],
)
def test_wrong_options(saved, arguments, message):
    assert message in call("serve", *[saved if a == "SAVED" else a for a in arguments], code=2).stderr


def test_who_may_listen_without_a_token():
    check_token(None, open_to_all=False, insecure=False)
    check_token("sesame", open_to_all=True, insecure=False)
    check_token(None, open_to_all=True, insecure=True)
    with pytest.raises(ParameterError, match="a token is needed"):
        check_token(None, open_to_all=True, insecure=False)
    assert all(map(is_local, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_local, ("0.0.0.0", "::", "192.168.1.2", "example.org")))


def test_a_method_that_learns_from_what_it_scores_is_not_served(words_file, tmp_path):
    outword.fit(LABELS, method="adaneg", corpus=words_file, n_groups=1).save(tmp_path / "learns")
    assert "clients would change each other's scores" in call("serve", tmp_path / "learns", "--port", 0, code=2).stderr


def test_without_the_extra_one_line_says_what_to_install(saved, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "outword.serve.server")
    monkeypatch.delattr("outword.serve.server")
    assert install("serve") in call("serve", saved, code=2).stderr


@pytest.fixture(scope="module")
def documented(tmp_path_factory):
    """The service that the page of docs speaks of, and a folder with its photos."""
    folder = tmp_path_factory.mktemp("serving")
    shutil.copytree(PHOTOS, folder / "photos")
    with in_thread(outword.fit(["tabby cat", "espresso", "space shuttle"])) as address:
        yield address, folder


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_curl_commands_of_the_docs(documented):
    address, folder = documented
    blocks = re.findall(r"```console\n(.*?)```", DOCS.read_text(), flags=re.DOTALL)
    parts = [part.partition("\n") for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    python = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    before = []
    for command, _, wanted in parts:
        script = "; ".join([*before, command]).replace("http://127.0.0.1:8000", address)
        run = subprocess.run(
            ["bash", "-c", script], cwd=folder, env={**os.environ, "PATH": python}, capture_output=True, text=True
        )
        got = run.stdout if run.stdout.endswith("\n") else f"{run.stdout}\n"
        same = doctest.OutputChecker().check_output(wanted or "\n", got, doctest.ELLIPSIS)
        assert same, f"{command}\n{got}{run.stderr}"
        before += [command] if re.match("[A-Z]+=", command) else []
    commands = [command for command, _, _ in parts]
    for example in examples(ask(address, "GET", "/docs")[2].decode()):
        assert example.replace("ADDRESS", "http://127.0.0.1:8000").replace("ID", "$ID") in commands


def test_the_python_of_the_docs(documented, monkeypatch):
    address, folder = documented
    monkeypatch.chdir(folder)
    found = re.findall(r"```pycon\n(.*?)```", DOCS.read_text(), flags=re.DOTALL)
    assert found
    text = "\n".join(found).replace("http://127.0.0.1:8000", address)
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTestParser().get_doctest(text, {}, "serving", "serving.md", 0))
    assert runner.summarize(verbose=False).failed == 0


def test_the_limits_of_the_docs_are_the_defaults():
    told = dict(re.findall(r"`([a-z_]+)` \| (\d+)", DOCS.read_text()))
    scale = {"body_bytes": 1 << 20, "held_bytes": 1 << 20, "pixels": 1 << 20, "detector_bytes": 1 << 30}
    defaults = {field.name: field.default for field in fields(Limits)} | {"batch": FEWEST_TOGETHER}
    assert {name: float(value) * scale.get(name, 1) for name, value in told.items()} == defaults


def test_the_process_says_where_it_is_and_ends_in_peace(saved):
    with process(saved, stderr=subprocess.PIPE) as (running, address):
        told(score(address, CAT))
        taken = call("serve", saved, "--port", address.rpartition(":")[2], code=2).stderr
        assert "cannot be used: address already in use" in taken
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
        assert running.returncode == 0
    assert re.search(r"POST /v1/score 200 \d+ ms", said)
    assert said.endswith("stopped\n")


@pytest.mark.parametrize(
    ("allowed", "hard", "asked", "most"),
    [(1024, 4096, 4096, 3996), (1024, -1, 10_100, 10_000), (-1, -1, None, 10_000), (50_000, 50_000, None, 10_000)],
)
def test_connections_leave_file_descriptors_to_spare(monkeypatch, allowed, hard, asked, most):
    import resource

    got = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (allowed, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: got.append(limits[0]))
    assert most_connections.__wrapped__() == most
    assert got == ([asked] if asked else [])


def test_methods_that_look_at_more_than_vectors(tmp_path):
    tiny = pytest.importorskip("helpers.tiny", reason="a small CLIP needs torch")
    tiny.open_clip_folder("vit", tmp_path / "vit")
    fitted = outword.fit(LABELS, method="glmcm", encoder=f"hf:{tmp_path / 'vit'}")
    with in_thread(fitted) as address:
        assert told(ask(address, "GET", "/v1/detector"))["takes_embeddings"] is False
        found = told(score(address, CAT, RACCOON, query="?embeddings=true"))["results"]
        np.testing.assert_allclose([r["score"] for r in found], fitted.score([CAT, RACCOON]), rtol=1e-5)
        again = ask(address, "POST", "/v1/score", {"embeddings": [found[0]["embedding"]]})
        assert refused(again) == (422, "invalid")

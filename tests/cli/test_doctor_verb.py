"""`outword doctor`: each part by itself, also where half of it is broken, and an encoder that must prove itself."""

import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import numpy as np
import pytest

from conftest import call
from outword import doctor as doctoring
from outword.base.extras import EXTRAS, install
from outword.doctor import doctor, self_check
from outword.encoders.mini.encoder import Mini
from outword.maths.imagined import FAMILIES


def test_what_is_told():
    result = call("doctor")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("outword ") and "numpy " in lines[0] and "onnxruntime " in lines[0]
    assert all(any(line.startswith(f"{extra} ") for line in lines) for extra in ("clip", "serve", "parquet"))
    for part in ("processors: ", "NVIDIA devices: ", "decoders of JPEGs: pillow ", "cache of outword: ", "hub: "):
        assert any(line.startswith(part) for line in lines), part
    assert (
        "mini on cpu, JPEGs decoded by pillow: 7 of 9 right: weights, tokens and preprocessing fit together"
        in lines[-2]
    )
    assert "camera is taken for tripod" in lines[-2]
    assert lines[-1].startswith("sight: gain 0.2") and lines[-1].endswith("measured on the demo photos")
    assert not result.stderr


def test_a_sight_that_is_far_from_the_constants_is_a_warning(monkeypatch):
    monkeypatch.setattr(Mini, "sight", FAMILIES["clip"])
    result = call("doctor")
    assert result.stdout.splitlines()[-1].endswith("gain 0.2, noise 1, level 18.7 are used")
    assert "WARNING: level measured on the demo photos is far from what is used" in result.stderr


def test_an_encoder_that_knows_few_names_has_no_sight():
    last = call("doctor", "--encoder", "world-s").stdout.splitlines()[-1]
    assert last == "sight: not measured: it knows too few names of things"


def test_all_of_it_as_json():
    found = json.loads(call("doctor", "--json").stdout)
    assert [*found] == ["versions", "extras", "devices", "caches", "encoder", "hub"]
    assert {package for extra in found["extras"] for package in extra["packages"]} == {*EXTRAS}
    assert found["encoder"]["ok"] and found["encoder"]["asked"] == 9
    assert found["hub"]["told"] == "not asked: HF_HUB_OFFLINE is set"


def test_nothing_heavy_is_imported():
    code = "import sys; from outword.doctor import doctor; print(doctor()['encoder']['ok'], 'torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "True False\n"


def test_an_extra_that_is_missing_or_broken(tmp_path, monkeypatch):
    (tmp_path / "broken_extra.py").write_text("raise RuntimeError('out of order')")
    monkeypatch.syspath_prepend(tmp_path)
    own = {"absent_extra": ("fit", "what is not there"), "broken_extra": ("bench", "what is broken")}
    monkeypatch.setattr(doctoring, "EXTRAS", own)
    monkeypatch.setattr("outword.base.extras.EXTRAS", own)
    absent, broken = doctor()["extras"]
    assert absent["packages"] == {"absent_extra": None} and absent["for"] == ["what is not there"]
    assert absent["command"] == install("fit")
    assert broken["packages"] == {"broken_extra": "?"} and broken["command"] == ""
    told = call("doctor", "--imports").stdout
    assert "no absent_extra" in told
    assert "broken_extra fails" in told and "\nbroken_extra: error: RuntimeError: out of order\n" in told
    assert "7 of 9 right" in told


def test_even_without_numpy(tmp_path):
    (tmp_path / "numpy.py").write_text("raise RuntimeError('out of order')")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run([sys.executable, "-m", "outword", "doctor"], env=env, capture_output=True, text=True)
    assert run.returncode == 1 and "cache of outword: " in run.stdout
    assert run.stdout.splitlines()[-1] == "encoder: mini: error: RuntimeError: out of order"


def test_a_cache_that_cannot_be_written_or_is_not_there(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "some").write_bytes(bytes(2_500_000))
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "kept"))
    told = call("doctor").stdout
    assert f"cache of outword: {tmp_path / 'file' / 'cache'}, 0.0 MB, not there yet, cannot be written" in told
    assert f"cache of hub: {tmp_path / 'kept'}, 2.5 MB\n" in told
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    assert doctor()["caches"]["hub"] == {
        "path": str(tmp_path / "home" / "hub"), "exists": False, "bytes": 0, "writable": True
    }  # fmt: skip


def test_encoders_that_cannot_be_loaded(tmp_path):
    (tmp_path / "card.json").write_text("{")
    told = call("doctor", "--encoder", f"onnx:{tmp_path}", code=1).stdout
    assert told.splitlines()[-1].startswith(f"encoder: onnx:{tmp_path}: error: ") and "cache of outword: " in told
    told = call("doctor", "--encoder", "minni", code=1).stdout
    assert 'unknown encoder "minni" (hint: did you mean "mini"?' in told.splitlines()[-1]
    assert json.loads(call("doctor", "--encoder", "minni", "--json", code=1).stdout)["encoder"]["name"] == "minni"


def test_an_encoder_whose_parts_do_not_fit_together(monkeypatch):
    encode = Mini.encode_texts
    monkeypatch.setattr(Mini, "encode_texts", lambda self, texts: np.roll(encode(self, texts), 1, axis=0))
    told = call("doctor", code=1).stdout.splitlines()[-2]
    assert "1 of 9 right: weights, tokens and preprocessing do not fit together" in told
    monkeypatch.setattr(Mini, "encode_texts", lambda self, texts: np.full((len(texts), self.dim), np.nan, np.float32))
    assert "vectors must be finite" in call("doctor", code=1).stdout.splitlines()[-1]


def test_an_encoder_that_knows_none_of_the_photos_is_not_judged():
    found = self_check("world-s")
    assert found["ok"] and found["told"].startswith("not checked: it knows the names of")


# the hub


@pytest.fixture
def served(monkeypatch):
    """A hub of ours, and what it answers with: a status, or seconds of silence."""
    status = [200]

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self):
            if status[0] < 1:
                time.sleep(status[0])
            self.send_response(max(status[0], 200))
            self.end_headers()

        def log_message(self, *args):
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Hub)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.delenv("HF_HUB_OFFLINE")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield status
    server.shutdown()
    server.server_close()


def hub():
    return doctoring._heard(doctoring._ask_hub())


def test_whether_the_hub_answers(served, monkeypatch):
    assert hub()["answers"] and hub()["told"] == "answers"
    served[0] = 503
    assert not hub()["answers"] and hub()["told"] == "out of order: HTTP 503"
    served[0] = 0.5
    monkeypatch.setattr(doctoring, "PATIENCE", 0.1)
    assert not hub()["answers"] and "answer" in hub()["told"]


def test_to_be_offline_is_no_failure(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    told = call("doctor").stdout
    assert "hub: http://127.0.0.1:9 does not answer" in told
    for address in ("file:///etc/passwd", "http://[broken"):
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert hub()["address"] == address and not hub()["answers"]


# the driver


@pytest.mark.skipif(sys.platform == "win32", reason="a script stands in for the driver's tool")
@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'H200, 143771 MiB, 580.1'", "NVIDIA devices: H200, 143771 MiB, 580.1"),
        ("echo no driver >&2; exit 9", "NVIDIA devices: error: nvidia-smi says: no driver (hint: see to the driver)"),
    ],
)
def test_devices_as_the_driver_tells_them(script, told, tmp_path, monkeypatch):
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert told in call("doctor").stdout

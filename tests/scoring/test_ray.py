"""The same rows from Ray: two nodes, all kinds of sources and encoders, processes that are killed."""

import os
import pickle
import signal
import socket
import subprocess
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import outword
from conftest import LABELS, PHOTOS, call, contents, rows_of
from helpers.archives import photo, write_parquet, write_tar
from helpers.stopped import stopped
from helpers.uncut import imagined, uncut, write_store
from outword.detector import batches
from outword.detector.cuts import with_cut
from outword.detector.saving import zipped
from outword.encoders.packed import VARIABLE, Packed, Packer
from outword.maths.thresholds import fit_reference
from outword.scoring import parts
from outword.vectors.embed import embed
from outword.vectors.source import Identity, find_source
from outword_lab.encoders.world import DATA

ray = pytest.importorskip("ray")
KINDS = ("hammer", "cat", "car")
pytestmark = pytest.mark.filterwarnings("default")  # Ray warns of itself


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one processor each; this process is on it, so what it runs is too."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 150 << 20})
    cluster.add_node(num_cpus=1, object_store_memory=150 << 20)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def fitted(encoder, path):
    """A detector of three things of the rendered world, calibrated on photos of them."""
    outword.fit(KINDS, encoder=encoder, corpus="world-nouns", method="debiased", n_groups=3).save(path)
    call("calibrate", path, *(f"world:train/{kind}" for kind in KINDS), "--tpr", "0.9")
    return path


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    """A detector whose encoder takes no time: a small CLIP, exported."""
    return fitted(f"onnx:{DATA / 's'}", tmp_path_factory.mktemp("light") / "light.outword")


@pytest.fixture
def shards(tmp_path):
    """Tars of 20 photos, one of them empty, and one tar cut off."""
    for number in range(30):
        inside = {f"{n}.png": photo(20 * number + n) for n in range(20)}
        write_tar(tmp_path / "shards" / f"{number:06}.tar", {**inside, "7.png": b""})
    cut = tmp_path / "shards" / "000005.tar"
    cut.write_bytes(cut.read_bytes()[:5000])
    return tmp_path / "shards"


def same(saved, tmp_path, *given):
    """Score here and on the cluster, into parts; the files must be the same, the manifest too."""
    call("score", saved, *given, "-o", f"{tmp_path}/here/")
    result = call("score", saved, *given, "-o", f"{tmp_path}/there/", "--engine", "ray")
    assert contents(tmp_path / "here") == contents(tmp_path / "there")
    assert result.stdout == ""
    return contents(tmp_path / "here")


def scorers():
    """Processes that come from this one, and that Ray calls so."""
    named, parents = set(), {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if "MapBatches(_Score)" in (entry / "cmdline").read_text():
                named.add(int(entry.name))
        except OSError:
            pass
    return [pid for pid in named if parents.get(parents.get(pid)) == os.getpid()]  # raylet, and its workers


def strike(monkeypatch):
    """kill -9 of a scorer when the third part is written into a folder called there."""
    write, done, struck = parts.write_synced, count(), []

    def killing(path, blocks):
        if path.match("there/part-*") and next(done) == 2:
            for pid in scorers()[:1]:
                os.kill(pid, signal.SIGKILL)
                struck.append(pid)
        write(path, blocks)

    monkeypatch.setattr(parts, "write_synced", killing)
    return struck


def test_all_kinds_of_sources_and_a_scorer_that_is_killed(cluster, light, shards, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_parquet(tmp_path / "t.parquet", [photo(n) for n in range(30)], rows=7)
    Path("list.txt").write_text(f"{PHOTOS}/cat.jpg\nnone.jpg\nt.parquet\n")
    embed(outword.load(light).encoder, [PHOTOS / "cat.jpg", tmp_path / "list.txt"], tmp_path / "s")
    struck = strike(monkeypatch)
    found = same(light, tmp_path, f"{shards}/*.tar", "t.parquet", "s", "list.txt", PHOTOS, "t.parquet")
    assert len(found) == 30 + 7 and struck


@pytest.mark.parametrize("without", [uncut, imagined])
def test_photos_that_cut_themselves(cluster, detector, tmp_path, without):
    bare = without(detector)
    bare.save(tmp_path / "d")
    stores = [write_store(tmp_path / f"s{n}", bare, 70, seed=n) for n in range(3)]
    found = same(tmp_path / "d", tmp_path, *stores)
    chosen = batches.Smallest(batches.MOST if without is uncut else batches.REFINING)
    for name in sorted(found):
        for row in rows_of(found[name].decode()) if name.startswith("part-") else ():
            chosen.add(row["path"], row["error"])
    looked_at = sum(not error for _, error in chosen.items())  # photos that cannot be read are chosen as any other
    assert len(chosen) >= batches.REFINING
    assert b'"batch": {"n_photos": %d, ' % looked_at in found[parts.MANIFEST]


def test_embedded_encoder_and_rows_on_stdout(cluster, saved, tmp_path):
    here = call("score", saved, PHOTOS, PHOTOS / "none.jpg", code=1)
    there = call("score", saved, PHOTOS, PHOTOS / "none.jpg", "--engine", "ray", code=1)
    assert here.stdout == there.stdout and here.stdout.count("\n") == 20
    assert here.stderr.splitlines()[-1] == there.stderr.splitlines()[-1]


def test_clip_on_torch_and_rows_that_are_right(cluster, tmp_path):
    made = fitted(f"hf:{DATA / 's'}", tmp_path / "d")
    found = same(made, tmp_path, "world:id/hammer", "world:other/house", "--batch-size", "4")
    own, others = (rows_of(found[name].decode()) for name in sorted(found) if name.startswith("part-"))
    assert sum((row["verdict"], row["label"]) == ("in", "hammer") for row in own) >= 28 and len(own) == 40
    assert sum(row["verdict"] == "out" for row in others) >= 13 and len(others) == 16


def test_driver_that_is_killed(cluster, light, shards, tmp_path):
    call("score", light, f"{shards}/*.tar", "-o", f"{tmp_path}/here/")
    there = ("score", light, f"{shards}/*.tar", "-o", f"{tmp_path}/there/", "--engine", "ray")
    with stopped("outword.scoring.parts:write_synced", 4, *there, "--address", cluster.address) as process:
        process.kill()
    assert len(list((tmp_path / "there").glob("part-*"))) == 3
    call(*there)
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


def test_no_cluster_at_the_address(light, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        command = [sys.executable, "-m", "outword", "score", light, PHOTOS, "--engine", "ray", "--address", address]
        run = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert run.returncode == 2 and run.stdout == ""
    assert f"error: no Ray cluster can be joined at {address}" in run.stderr and "Traceback" not in run.stderr


def test_what_is_wrong_is_one_line(cluster, light, tmp_path, words_file):
    pa.parquet.write_table(pa.table({"url": ["a"], "width": [1]}), tmp_path / "t.parquet")
    told = call("score", light, tmp_path / "t.parquet", "--engine", "ray", code=2).stderr
    assert "url, width" in told and "hint: " in told and "Traceback" not in told
    (tmp_path / "l.txt").write_text("\n".join(LABELS))
    options = ["--method", "adaneg", "--corpus", words_file, "--miner", "density", "--set", "n_groups=3"]
    call("fit", tmp_path / "l.txt", "-o", tmp_path / "d", *options)
    told = call("score", tmp_path / "d", PHOTOS, "--engine", "ray", code=2).stderr
    assert "adaneg learns from the images that it scores" in told and "hint: " in told


def test_a_cut_from_the_batch_goes_along(detector, monkeypatch):
    from outword.scoring.ray import FOLDER, Model

    monkeypatch.setenv(VARIABLE, "pillow")  # which the model sets for its process

    scores = [0.3, 0.1, 0.2]
    here = with_cut(detector, fit_reference(scores, method="batch"))
    there = Model(zipped(here, FOLDER), {}, "pillow").load()
    assert (there.basis, there.cut, there.fingerprint) == ("batch", here.cut, here.fingerprint)
    assert there.thresholds.p_values([0.25]) is None


def test_files_that_a_device_is_to_decode_stay_packed_on_the_way(tmp_path, monkeypatch):
    from outword.scoring.ray import _Read, _Score

    class Elsewhere(Packer):
        def gather(self, loaded):
            return [("packed", len(one.data)) if isinstance(one, Packed) else "pixels" for one in loaded], [None] * 2

    (tmp_path / "a.jpg").write_bytes((PHOTOS / "cat.jpg").read_bytes())
    (tmp_path / "b.png").write_bytes(photo(0))
    (tmp_path / "c.jpg").write_bytes(b"no photo")
    source = find_source([tmp_path], Identity("", ""))
    loader = Packer(lambda image: np.asarray(image.resize((8, 8))), 8)
    (job,) = source.jobs()
    (table,) = _Read(loader, 4, source, tmp_path)(pa.table({"job": [pickle.dumps(job)]}))
    seen = []
    keep = lambda detector, chunks: [seen.extend(chunks) or (seen[0], [])]  # noqa: E731
    monkeypatch.setattr("outword.scoring.ray.judge_chunks", keep)
    scorer = object.__new__(_Score)
    scorer._detector = SimpleNamespace(encoder=SimpleNamespace(loader=Elsewhere(None, 8)))
    scorer(table)
    assert seen[0].values == [("packed", (tmp_path / "a.jpg").stat().st_size), "pixels"]
    assert seen[0].unreadable == [(str(tmp_path / "c.jpg"), "not an image")]


def test_a_run_that_is_spread_has_a_decoder_that_all_nodes_have(cluster, light, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "simplejpeg")
    told = call("score", light, PHOTOS, "--engine", "ray", code=2).stderr
    assert "OUTWORD_DECODER must be pillow or nvjpeg for a run that is spread, got 'simplejpeg'" in told

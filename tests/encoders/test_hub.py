"""`outword pull` and models by repository, against a small hub on this machine, and against none."""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from conftest import PHOTOS
from helpers.tiny import clip_folder, open_clip_folder, transformers
from outword.encoders.hub import licence
from outword.errors import InputError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """Serves the folders `root/ORG/NAME` as repositories, in the way that huggingface_hub asks for them."""

    root = None
    asked = None

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, body):
        path = self.path.partition("?")[0].strip("/")
        self.asked.append(f"{self.command} {path}")
        if path.startswith("api/models/"):
            org, name = path.split("/")[2:4]
            folder = self.root / org / name
            if not folder.is_dir():
                return self.refuse("RepoNotFound", 404)
            if name == "gated":
                return self.refuse("GatedRepo", 403)
            if "/tree/" in path:
                files = [
                    {"type": "file", "path": p.name, "size": p.stat().st_size, "oid": "0"} for p in folder.iterdir()
                ]
                return self.reply(json.dumps(files).encode(), {"Content-Type": "application/json"}, body)
            about = {
                "id": f"{org}/{name}",
                "sha": COMMIT,
                "siblings": [{"rfilename": p.name} for p in folder.iterdir()],
            }
            return self.reply(json.dumps(about).encode(), {"Content-Type": "application/json"}, body)
        org, name, _, _, file = path.split("/")
        found = self.root / org / name / file
        if not found.parent.is_dir():
            return self.refuse("RepoNotFound", 404)
        if not found.is_file():
            return self.refuse("EntryNotFound", 404)
        data = found.read_bytes()
        return self.reply(data, {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": COMMIT}, body)

    def refuse(self, code, status):
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", f"{code}: you may not have this")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def reply(self, data, headers, body):
        self.send_response(200)
        for key, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def repositories(tmp_path_factory):
    root = tmp_path_factory.mktemp("hub")
    clip_folder(root / "org" / "clip")
    (root / "org" / "clip" / "README.md").write_text("---\ntags:\n- clip\nlicense: cc-by-4.0\n---\n# A model\n")
    open_clip_folder("vit", root / "org" / "open-clip")
    open_clip_folder("vit", root / "timm" / "vit_base_patch32_clip_224.openai")
    open_clip_folder("siglip", root / "timm" / "ViT-B-16-SigLIP")  # of another size, but with the files of the true one
    (root / "org" / "empty").mkdir()
    (root / "org" / "empty" / "config.json").write_text('{"model_type": "clip"}')
    shutil.copytree(root / "org" / "empty", root / "org" / "gated")
    shutil.copytree(root / "org" / "clip", root / "org" / "parts", ignore=shutil.ignore_patterns("model.safetensors"))
    transformers.AutoModel.from_pretrained(root / "org" / "clip").save_pretrained(
        root / "org" / "parts", max_shard_size="300KB"
    )
    laion = root / "laion" / "CLIP-ViT-B-32-laion2B-s34B-b79K"
    open_clip_folder("vit", laion)
    (laion / "README.md").write_text("---\nlicense: mit\n---\n")
    return root


@pytest.fixture
def hub(repositories, tmp_path):
    """A function that runs the command with this hub; `.asked` are the requests so far."""
    kind = type("OneHub", (Hub,), {"root": repositories, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"

    def run(*args, **env):
        return command(*args, HF_ENDPOINT=endpoint, HF_HOME=str(tmp_path / "hf"), **env)

    run.asked = kind.asked
    run.home = tmp_path / "hf"
    yield run
    server.shutdown()
    server.server_close()


def command(*args, **env):
    """Run the command line in a process of its own: the hub's settings are read once, at import."""
    kept = {k: v for k, v in os.environ.items() if "proxy" not in k.lower() and k != "HF_HUB_OFFLINE"}
    full = {**kept, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", **env}
    python = [sys.executable] if args[0] == "-c" else [sys.executable, "-m", "outword"]
    return subprocess.run([*python, *args], capture_output=True, text=True, env=full)


def test_pull_says_where_how_large_and_sha256_and_fetches_once(hub, repositories):
    done = hub("pull", "hf:org/clip", "--json")
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout)
    weights = next(f for f in files if f["path"].endswith("model.safetensors"))
    original = (repositories / "org" / "clip" / "model.safetensors").read_bytes()
    assert weights["bytes"] == len(original)
    assert weights["sha256"] == hashlib.sha256(original).hexdigest()
    assert weights["path"].startswith(str(hub.home))
    assert any(f["path"].endswith("tokenizer.json") for f in files)
    before = len(hub.asked)
    again = hub("pull", "hf:org/clip")
    assert again.stdout.split()[0] in {f["sha256"] for f in files}
    assert len(hub.asked) == before


def test_a_pulled_model_works_offline_and_its_licence_is_in_the_artifact(hub, tmp_path, words_file):
    assert hub("pull", "hf:org/clip").returncode == 0
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    target = tmp_path / "pets.outword"
    fit = (
        "fit",
        str(tmp_path / "labels.txt"),
        "-o",
        str(target),
        "--encoder",
        "hf:org/clip",
        "--corpus",
        str(words_file),
    )
    done = hub(
        *fit, "--method", "debiased", "--set", "n_groups=3", HF_HUB_OFFLINE="1", OUTWORD_CACHE=str(tmp_path / "cache")
    )
    assert done.returncode == 0, done.stderr
    card = json.loads((target / "detector.json").read_text())["encoder"]
    assert (card["licence"], card["source"]) == ("cc-by-4.0", "org/clip on the hub")


def test_a_repository_of_open_clip(hub):
    done = hub("pull", "hf:org/open-clip")
    assert done.returncode == 0, done.stderr
    assert "open_clip_model.safetensors" in done.stdout
    assert "open_clip_config.json" in done.stdout


def test_a_tokenizer_of_its_own_is_fetched_too(hub):
    done = hub("pull", "open_clip:ViT-B-16-SigLIP/webli")
    assert done.returncode == 0, done.stderr
    names = [line.rsplit("/", 1)[1] for line in done.stdout.splitlines()]
    assert names[0] == "open_clip_model.safetensors"
    assert "tokenizer.json" in names
    code = (
        "from outword.encoders.torch import open_clip as o; from outword.base.extras import require;"
        "n = require('open_clip', ''); a = 'ViT-B-16-SigLIP';"
        "t, _ = o._tokenizer(n, a, n.get_model_config(a)['text_cfg']); print(t(['ab']).shape)"
    )
    asked = len(hub.asked)
    assert "torch.Size([1, 64])" in hub("-c", code).stdout  # online, and yet nothing is asked
    assert len(hub.asked) == asked
    assert "torch.Size([1, 64])" in hub("-c", code, HF_HUB_OFFLINE="1").stdout


def test_short_names_and_the_list(hub):
    listed = json.loads(hub("list", "encoders", "--json").stdout)
    assert {row["name"]: row["on this machine"] for row in listed}["clip-vit-b-32"] == "no"
    done = hub("pull", "clip-vit-b-32")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[2].endswith("open_clip_model.safetensors")
    listed = json.loads(hub("list", "encoders", "--json").stdout)
    assert {row["name"]: row["on this machine"] for row in listed}["clip-vit-b-32"] == "yes"


@pytest.mark.parametrize(
    "name, words",
    [
        ("hf:org/nothing", ["cannot fetch", "org/nothing"]),
        ("hf:org/gated", ["cannot fetch", "org/gated"]),
        ("hf:org/empty", ["org/empty on the hub has no weights"]),
        ("clip-vit-b-16", ["cannot fetch open_clip_model.safetensors of timm/vit_base_patch16_clip_224.openai"]),
    ],
)
def test_refused_by_the_hub(hub, name, words):
    done = hub("pull", name)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    error, hint = [line for line in done.stderr.splitlines() if line.startswith(("error: ", "hint: "))]
    assert all(word in error for word in words)
    assert "hf download" in hint


@pytest.mark.parametrize(
    "name, missing, by_hand",
    [
        (
            "clip-vit-b-16",
            "cannot fetch open_clip_model.safetensors of timm/vit_base_patch16_clip_224.openai from the hub",
            "--encoder open_clip:ViT-B-16/openai@/path/to/it",
        ),
        ("hf:org/clip", "cannot fetch config.json of org/clip", "--encoder hf:/path/to/FOLDER"),
        ("open_clip:ViT-B-16-SigLIP/webli", "cannot fetch open_clip_model.safetensors", "hf:/path/to/FOLDER"),
    ],
)
def test_offline_says_what_is_missing_and_how_to_bring_it(tmp_path, name, missing, by_hand):
    done = command("pull", name, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))
    assert done.returncode == 2
    assert missing in done.stderr
    assert by_hand in done.stderr
    assert "Traceback" not in done.stderr


def test_what_another_tool_left_half_fetched_is_completed(hub, tmp_path):
    """A cache with configuration and weights only, as a library's own loading of the model leaves it."""
    code = (
        "from huggingface_hub import hf_hub_download as get; get('org/clip', 'config.json');"
        "get('org/clip', 'model.safetensors')"
    )
    assert hub("-c", code).returncode == 0
    done = hub("pull", "hf:org/clip")
    assert done.returncode == 0, done.stderr
    assert "tokenizer.json" in done.stdout
    assert "preprocessor_config.json" in done.stdout


def test_a_part_that_is_missing_is_fetched(hub):
    code = (
        "from huggingface_hub import snapshot_download as get;"
        "get('org/parts', allow_patterns=['*.json', '*.txt', 'model-00001-*'])"
    )
    assert hub("-c", code).returncode == 0
    done = hub("pull", "hf:org/parts")
    assert done.returncode == 0, done.stderr
    assert "model-00002-of-" in done.stdout


def test_the_licence_of_a_tag_is_that_of_its_card(hub, repositories):
    assert hub("pull", "open_clip:ViT-B-32/laion2b_s34b_b79k").returncode == 0
    code = (
        "from outword.encoders.torch.open_clip import find; from outword.encoders.names import parse;"
        "print(find(parse('open_clip:ViT-B-32/laion2b_s34b_b79k')).licence)"
    )
    assert hub("-c", code, HF_HUB_OFFLINE="1").stdout.strip() == "mit"


@pytest.mark.parametrize(
    "card, said",
    [
        ("---\nlicense: apache-2.0\n---\n", "apache-2.0"),
        ("---\ntags:\n- x\nlicense: 'mit'\n---\n", "mit"),
        ("---\nlicense:\n- cc-by-4.0\n---\n", "cc-by-4.0"),
        ("---\ntags: x\n---\nlicense: cc0\n", "not stated"),
        ("# A model\nlicense: cc0\n", "not stated"),
        ("", "not stated"),
    ],
)
def test_licences(card, said, tmp_path):
    (tmp_path / "README.md").write_text(card)
    assert licence(tmp_path / "README.md") == said
    assert licence(tmp_path / "nothing.md") == "not stated"


def test_pull_of_what_is_not_there():
    done = command("pull", "onnx:/no/such/folder")
    assert done.returncode == 2
    assert "there is no folder /no/such/folder" in done.stderr
    assert command("pull", "onnx:.").returncode == 2


# a name that the user did not type


def test_what_only_a_detector_names_is_fetched_when_the_user_says_so(hub, tmp_path):
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    path, photo = tmp_path / "d", PHOTOS / "cat.jpg"
    made = hub("fit", tmp_path / "labels.txt", "--encoder", "hf:org/clip", "--method", "mcm", "-o", path)
    assert made.returncode == 0, made.stderr
    shutil.rmtree(hub.home)
    hub.asked.clear()
    done = hub("score", path, photo)
    assert (done.returncode, done.stdout, hub.asked) == (2, "", [])
    assert "error: the encoder hf:org/clip is not on this machine and would be fetched" in done.stderr
    done = hub("score", path, photo, "--trust-encoder")
    assert done.returncode == 0 and hub.asked != [], done.stderr
    hub.asked.clear()
    again = hub("score", path, photo)  # it is here now
    assert (again.stdout, hub.asked) == (done.stdout, [])


@pytest.fixture(params=["refused", "silent", "no such host"])
def unreachable(request, monkeypatch, tmp_path):
    """A hub that refuses, or is silent, or has no name, and whose library must not be left to try on its own."""
    import huggingface_hub

    from outword.encoders import hub

    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"127.0.0.1:{server.getsockname()[1]}" if request.param != "no such host" else "no-such-host.invalid"
        if request.param == "refused":
            server.close()
        monkeypatch.setattr(hub, "PATIENCE", 0.5)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
        monkeypatch.setattr(huggingface_hub, "hf_hub_url", lambda repo, name: f"http://{where}/{repo}/{name}")
        monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *args: pytest.fail("its library was asked"))
        yield hub


def test_a_hub_that_does_not_answer_is_told_without_its_library_trying(unreachable, monkeypatch):
    shown = []
    monkeypatch.setattr(unreachable, "waiting", lambda what: nullcontext(shown.append(what)))
    with pytest.raises(InputError, match=r"cannot fetch a\.json of org/x from the hub: .*cannot be reached") as told:
        unreachable.fetch("org/x", ["a.json"], "put it there by hand")
    assert told.value.hint == "put it there by hand" and shown == ["asking huggingface.co for org/x"]
    with pytest.raises(InputError, match=r"cannot fetch config\.json of org/x from the hub: .*cannot be reached"):
        unreachable.snapshot("org/x", lambda folder: ["*"], "put it there by hand")

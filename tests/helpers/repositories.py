"""A hub on this machine, with repositories of ONNX exports in each layout, and with faults."""

import hashlib
import json
import shutil
import warnings
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote

import numpy as np
import torch

from helpers.tiny import clip_folder, siglip_folder
from outword.base.extras import quiet_logs

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Repositories(BaseHTTPRequestHandler):
    """Serves the folders `root/ORG/NAME`, as the hub does; `fault` of the server changes how."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server, path = self.server, unquote(self.path.partition("?")[0]).strip("/")
        server.asked.append((path, self.headers.get("Range"), self.headers.get("Authorization")))
        if path.startswith("api/models/"):
            folder = server.root / "/".join(path.split("/")[2:4])
            return self.reply(json.dumps(self.about(folder)).encode()) if folder.is_dir() else self.reply(b"", 404)
        org, name, _, _, file = path.split("/", 4)
        data = (server.root / org / name / file).read_bytes()
        if server.fault == "redirect":
            return self.reply(b"", 302, {"Location": f"http://example.invalid/{path}"})
        if not path.endswith(".onnx"):
            return self.reply(data)
        if server.fault == "other":
            data = data[:-1] + bytes([data[-1] ^ 1])
        if server.fault == "long":
            data += b"more"
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if server.fault == "cut" and len(server.asked) < server.cut_until:
            return self.reply(data, 200, {}, data[: len(data) // 2])
        if start:
            ranged = {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
            return self.reply(data[start:], 206, ranged)
        return self.reply(data)

    def about(self, folder):
        files = []
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            data = path.read_bytes()
            git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            entry = {"rfilename": path.relative_to(folder).as_posix(), "size": len(data), "blobId": git}
            if path.suffix == ".onnx":
                entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
            files.append(entry)
        bad = {"rfilename": "../../../escaped.json", "size": 2, "blobId": "0" * 40}
        return {"sha": COMMIT, "siblings": [*files, bad], "cardData": {"license": "mit"}}

    def reply(self, data, status=200, headers=None, sent=None):
        self.send_response(status)
        for key, value in {**(headers or {}), "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data if sent is None else sent)
        if sent is not None:
            self.close_connection = True

    def log_message(self, *args):
        pass


@contextmanager
def serving(root):
    """The hub: `.address`, `.asked`, `.fault`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Repositories)
    server.root, server.asked, server.fault, server.cut_until = root, [], "", 0
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def write_repositories(root, original):
    """Repositories of one small CLIP in each layout, and of a SigLIP; `original` is the CLIP's folder for torch."""
    model, _ = clip_folder(original)
    xenova = root / "Xenova" / "clip-vit-base-patch32"
    (xenova / "onnx").mkdir(parents=True)
    (xenova / "README.md").write_text("---\nlicense: mit\n---\n")
    for name in ("config.json", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(original / name, xenova / name)
    _towers(model, xenova / "onnx" / "vision_model.onnx", xenova / "onnx" / "text_model.onnx")
    from onnxruntime.quantization import quantize_dynamic

    for tower in ("vision_model", "text_model"):
        with quiet_logs(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quantize_dynamic(
                xenova / "onnx" / f"{tower}.onnx",
                xenova / "onnx" / f"{tower}_quantized.onnx",
                op_types_to_quantize=["MatMul"],
            )
    images, texts = root / "org" / "vision", root / "org" / "text"
    for folder, tower in ((images, "vision_model"), (texts, "text_model")):
        folder.mkdir(parents=True)
        shutil.copy(xenova / "onnx" / f"{tower}.onnx", folder / "model.onnx")
    shutil.copy(xenova / "preprocessor_config.json", images)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(xenova / name, texts)
    immich = root / "immich-app" / "ViT-B-32__openai"
    (immich / "visual").mkdir(parents=True)
    (immich / "textual").mkdir()
    _renamed(xenova / "onnx" / "vision_model.onnx", immich / "visual" / "model.onnx", "image")
    _renamed(xenova / "onnx" / "text_model.onnx", immich / "textual" / "model.onnx", "text", length=77)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(xenova / name, immich / "textual")
    own = json.loads((xenova / "preprocessor_config.json").read_text())
    way = {"size": [32, 32], "mode": "RGB", "mean": own["image_mean"], "std": own["image_std"]}
    (immich / "visual" / "preprocess_cfg.json").write_text(
        json.dumps({**way, "interpolation": "bicubic", "resize_mode": "shortest", "fill_color": 0})
    )
    config = {"embed_dim": model.config.projection_dim, "vision_cfg": {}, "text_cfg": {"context_length": 77}}
    (immich / "config.json").write_text(json.dumps(config))


def write_siglip(root, original):
    """A small SigLIP under the name of the true one, whose tokens need a library."""
    model, _ = siglip_folder(original)
    target = root / "onnx-community" / "siglip2-base-patch16-224-ONNX"
    (target / "onnx").mkdir(parents=True)
    for name in ("config.json", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(original / name, target / name)
    _towers(model, target / "onnx" / "vision_model.onnx", target / "onnx" / "text_model.onnx", length=16)


class _Images(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixels):
        return self.model.get_image_features(pixels).pooler_output


class _Texts(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model.get_text_features(ids.long()).pooler_output


def _towers(model, image, text, length=None):
    """Both towers as ONNX: of any batch, and of any length unless it is fixed."""
    rng = torch.Generator().manual_seed(0)
    ids = torch.randint(1, 50, (2, length or 9), generator=rng)
    dynamic = torch.export.Dim.DYNAMIC
    axes = {0: dynamic} if length else {0: dynamic, 1: dynamic}
    ends = ("pooler_output", "pooler_output") if length else ("image_embeds", "text_embeds")
    _write(_Images(model), torch.zeros(2, 3, 32, 32), image, ("pixel_values", ends[0]), {0: dynamic})
    _write(_Texts(model), ids, text, ("input_ids", ends[1]), axes)


def _renamed(source, target, given, length=None):
    """The same tower with the names that immich has, and ids in 32 bits of a fixed number."""
    import onnx

    model = onnx.load(source)
    graph = model.graph
    old, out = graph.input[0], graph.output[0]
    kind, shape = (onnx.TensorProto.INT32, ["n", length]) if length else (onnx.TensorProto.FLOAT, ["n", 3, 32, 32])
    cast = onnx.TensorProto.INT64 if length else onnx.TensorProto.FLOAT
    nodes = [onnx.helper.make_node("Cast", [given], [old.name], to=cast), *graph.node]
    nodes.append(onnx.helper.make_node("Identity", [out.name], ["the_embedding"]))
    del graph.node[:], graph.input[:], graph.output[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.input.append(onnx.helper.make_tensor_value_info(given, kind, shape))
    graph.output.append(onnx.helper.make_tensor_value_info("the_embedding", onnx.TensorProto.FLOAT, ["n", None]))
    target.write_bytes(model.SerializeToString())


def _write(module, example, path, names, axes):
    with quiet_logs(), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module.eval(), (example,), dynamo=True, opset_version=18, dynamic_shapes=(axes,), input_names=[names[0]],
            output_names=[names[1]], verbose=False,
        )  # fmt: skip
    model = program.model_proto
    del model.graph.value_info[:]  # shapes that the quantiser would disagree with
    path.write_bytes(model.SerializeToString())


def near(one, other, least):
    """Whether rows of unit vectors point the same way."""
    return float((np.asarray(one, np.float64) * other).sum(axis=1).min()) > least

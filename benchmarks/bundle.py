"""What a bundle weighs, how fast it is, and how near it is to the detector that it was made of.

    python benchmarks/bundle.py --photos FOLDER [--part 1000] [--web FOLDER]

A detector of `mini` for ten broad names is bundled in each precision. Both judge a part of the photos, drawn by a seed,
decoded in full: the product as it always does, the bundle with the resizing that it has inside, on one thread, one
photo at a time. "same pixels" is a bundle without resizing, on what the encoder's own preprocessing gives. With --web,
or OUTWORD_ONNX_WEB, the folder where `npm install onnxruntime-web@1.30.0` was run, 20 of the photos are judged by
onnxruntime-web under Node, too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

import outword
from common import table
from first_fit import LABELS

NODE = Path(__file__).parent / "onnx_web" / "node.mjs"
SEED, IN_NODE = 0, 20


def opened(path: Path) -> onnxruntime.InferenceSession:
    """A session with one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options)


def judged(path: Path, photos: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, float]:
    """Scores and verdicts of photos, one at a time, and the median of the milliseconds of one."""
    session, scores, verdicts, seconds = opened(path), [], [], []
    for pixels in photos:
        start = time.perf_counter()
        score, verdict = session.run(["score", "verdict"], {"pixels": pixels[None]})
        seconds.append(time.perf_counter() - start)
        scores.append(score[0])
        verdicts.append(verdict[0])
    return np.array(scores), np.array(verdicts), 1000 * float(np.median(seconds))


def in_node(web: Path, path: Path, photos: list[np.ndarray]) -> list[dict[str, object]]:
    """What onnxruntime-web under Node makes of photos."""
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for place, pixels in enumerate(photos):
            data = Path(folder) / f"{place}.raw"
            data.write_bytes(pixels.tobytes())
            rows.append({"height": pixels.shape[0], "width": pixels.shape[1], "data": str(data)})
        listed = Path(folder) / "photos.json"
        listed.write_text(json.dumps(rows))
        command = ["node", str(NODE), str(web), str(path), str(listed)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--part", type=int, default=1000)
    parser.add_argument("--web", type=Path, default=os.environ.get("OUTWORD_ONNX_WEB"))
    args = parser.parse_args()
    paths = sorted(args.photos.glob("*.jpg"))
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(paths))[: args.part])
    photos = [np.asarray(Image.open(paths[place]).convert("RGB")) for place in chosen]
    detector = outword.fit(LABELS)
    prepared = [np.asarray(detector.encoder.preprocess(Image.fromarray(pixels))) for pixels in photos]
    scores = detector.score(photos)
    verdicts = scores >= detector.threshold
    columns = [
        "precision",
        "MB",
        "ms a photo",
        "verdicts the same, %",
        "of the same pixels, %",
        "scores off by, at most",
    ]
    columns += ["ms in Node", "verdicts the same in Node, %"] if args.web else []
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for precision in ("fp32", "fp16", "int8"):
            path, raw = (Path(folder) / f"{precision}{name}.onnx" for name in ("", "-raw"))
            outword.bundle(detector, path, precision=precision)
            outword.bundle(detector, raw, precision=precision, resize=False)
            _, whole, ms = judged(path, photos)
            near, same, _ = judged(raw, prepared)
            row = [
                precision,
                f"{path.stat().st_size / 1e6:.1f}",
                f"{ms:.0f}",
                f"{100 * (whole == verdicts).mean():.1f}",
            ]
            row += [f"{100 * (same == verdicts).mean():.1f}", f"{np.abs(near - scores).max():.1g}"]
            if args.web:
                found = in_node(args.web, path, photos[:IN_NODE])
                alike = np.mean([one["verdict"] == bool(other) for one, other in zip(found, whole, strict=False)])
                row += [f"{np.median([one['ms'] for one in found]):.0f}", f"{100 * alike:.1f}"]
            rows.append(row)
    print(table(columns, rows))
    print(f"{len(photos)} photos, {int(verdicts.sum())} of them in")


if __name__ == "__main__":
    main()

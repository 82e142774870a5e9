"""The wild words of an (encoder, corpus, prompts, miner): encoded and ranked once, then kept, or shipped."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from outword.base.arrays import Arrays, read_arrays, write_arrays
from outword.base.cache import cache_dir
from outword.base.files import sha256_bytes
from outword.base.reports import Report, quiet
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.encoders.texts import one_warning
from outword.maths.mining import Density, Miner
from outword.maths.mining.base import Indices
from outword.words.corpora import Corpus
from outword.words.prompts import Prompts

SHIPPED = Path(str(files("outword"))) / "encoders" / "data" / "wild"
CHUNK = 512  # words between two reports of progress
PART = 8192  # sentences between two files: what a killed run loses at most


@dataclass(frozen=True)
class Wild:
    """Mined words, best first, and their vectors (n_words, dim) in float16; those that are shipped were int8 before."""

    words: tuple[str, ...]
    vectors: NDArray[np.float16]
    fingerprint: str


def mine(
    encoder: Encoder, corpus: Corpus, prompts: Prompts, miner: Miner, labels: Vectors, report: Report = quiet
) -> Wild:
    """Mine the wild words of a corpus. A rule that does not look at the labels is computed once and then read back."""
    key = wild_key(encoder, corpus, prompts, miner)
    kept = cache_dir() / "mined" / f"{key}.safetensors"
    found = None if miner.needs_labels else _read_shipped(key) or read_arrays(kept)
    if found is None:
        found = rank(encoder, corpus, prompts, miner, labels, report)
        if not miner.needs_labels:
            write_arrays(kept, found)
    return Wild(tuple(found["words"].tobytes().decode().split("\n")), found["vectors"], key)


def rank(
    encoder: Encoder, corpus: Corpus, prompts: Prompts, miner: Miner, labels: Vectors | None, report: Report = quiet
) -> Arrays:
    """Encode a corpus and apply the rule: `words`, best first, a line each in UTF-8, and `vectors` in float16."""
    vectors = encoded_corpus(encoder, corpus, prompts, report)

    def select(rule: Miner) -> Indices:
        adjectives = [kind == "adj" for kind in corpus.kinds]
        return rule.select(vectors, labels=labels, adjectives=adjectives, progress=partial(report, "mining"))

    if isinstance(miner, Density) and miner.preset == "paper":  # all words are ranked anyway: keep that for other sizes
        whole = replace(miner, size=len(corpus))
        path = cache_dir() / "ranking" / f"{wild_key(encoder, corpus, prompts, whole)}.safetensors"
        order = (read_arrays(path) or {}).get("index")
        if order is None or len(order) != len(corpus):
            order = select(whole)
            write_arrays(path, {"index": order})
        chosen = miner.first(order)
    else:
        chosen = select(miner)
    words = "\n".join(corpus.words[i] for i in chosen).encode()
    return {"words": np.frombuffer(words, np.uint8), "vectors": vectors[chosen].astype(np.float16)}


def encoded_corpus(encoder: Encoder, corpus: Corpus, prompts: Prompts, report: Report = quiet) -> Vectors:
    """Vectors of every word of a corpus, (n_words, dim), unit rows; kept on disk after the first time.

    They are written part by part, so that a run that was killed goes on where it was.
    """
    path = cache_dir() / "corpus" / f"{wild_key(encoder, corpus, prompts, None)}.safetensors"
    sentences = prompts.render(corpus.words, corpus.kinds)
    vectors = _kept(path, len(sentences), encoder.dim)
    if vectors is None:
        parts, size = [], max(CHUNK, PART // max(map(len, sentences)))
        for start in range(0, len(sentences), size):
            file, here = path.with_suffix(f".{start}-{size}.part"), sentences[start : start + size]
            part = _kept(file, len(here), encoder.dim)
            if part is None:
                part = encode_words(encoder, here, _from(f"words of {corpus.name}", start, len(sentences), report))
                write_arrays(file, {"vectors": part})
            parts.append(part)
        vectors = np.concatenate(parts)
        write_arrays(path, {"vectors": vectors})
    for file in path.parent.glob(f"{path.stem}.*.part") if path.exists() else ():
        file.unlink(missing_ok=True)
    return vectors


def _kept(path: Path, rows: int, dim: int) -> Vectors | None:
    """The vectors of a file, if it is there, whole, and of this many rows."""
    found = (read_arrays(path) or {}).get("vectors")
    return found if found is not None and found.shape == (rows, dim) else None


def _from(task: str, start: int, total: int, report: Report) -> Report:
    """The report of a part of the work, as a report of the whole."""
    return lambda _, done, __: report(task, start + done, total)


def encode_words(
    encoder: Encoder,
    sentences: Sequence[Sequence[str]],
    report: Report = quiet,
    *,
    encode: Callable[[Sequence[str]], Vectors] | None = None,
) -> Vectors:
    """One unit vector a word: the vectors of its sentences are averaged, then normalised.

    Texts are encoded by `encode`, by default the encoder's `encode_texts`.
    """
    encode = encode or encoder.encode_texts
    out = np.empty((len(sentences), encoder.dim), np.float32)
    with one_warning():
        for start in range(0, len(sentences), CHUNK):
            part = sentences[start : start + CHUNK]
            vectors = encode([text for texts in part for text in texts])
            begins = np.cumsum([0] + [len(texts) for texts in part[:-1]])
            sums = np.add.reduceat(vectors, begins, axis=0)
            out[start : start + len(part)] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
            report("encoding words", min(start + CHUNK, len(sentences)), len(sentences))
    return out


def wild_key(encoder: Encoder, corpus: Corpus, prompts: Prompts, miner: Miner | None) -> str:
    """sha256 of all that the words and their vectors depend on."""
    rule = None if miner is None else [type(miner).__name__, asdict(miner)]  # type: ignore[call-overload]
    parts = [encoder.text_fingerprint or encoder.fingerprint, corpus.fingerprint, prompts.noun, prompts.adjective, rule]
    return sha256_bytes(json.dumps(parts, sort_keys=True).encode())


def shipped_path(key: str) -> Path:
    """Where the package keeps the ranking of a key, if it has it."""
    return SHIPPED / f"{key[:16]}.safetensors"


def is_shipped(encoder: Encoder, corpus: Corpus, prompts: Prompts, miner: Miner) -> bool:
    """Whether the mined words come with the package."""
    return not miner.needs_labels and shipped_path(wild_key(encoder, corpus, prompts, miner)).exists()


def _read_shipped(key: str) -> Arrays | None:
    """A ranking that comes with the package; its vectors are int8 with a scale a row, to keep the install small."""
    path = shipped_path(key)
    if not path.exists():
        return None
    found = load_file(path)
    return {**found, "vectors": (found["vectors"] * found["scale"][:, None]).astype(np.float16)}

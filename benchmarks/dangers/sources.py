"""Hostile archives, data sets and patterns: each function writes one below `work`, and gives what a user would name."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

Case = Callable[[Path], str]
BLOCK = 512


def header(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> bytes:
    """One block: a header of a tar."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def extended(payload: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    """An extended header with its payload, padded."""
    return header("././@PaxHeader", kind, len(payload)) + payload + bytes(-len(payload) % BLOCK)


def record(key: bytes, value: bytes) -> bytes:
    """A record of a pax header: its own length, the key, the value."""
    length = len(key) + len(value) + 3
    while len(str(length)) + len(key) + len(value) + 3 != length:
        length = len(str(length)) + len(key) + len(value) + 3
    return b"%d %s=%s\n" % (length, key, value)


def compressed(path: Path, opener, data: bytes, times: int, start: bytes = b"") -> str:
    """A compressed file of `data` again and again."""
    with opener(path, "wb") as file:
        file.write(start)
        for _ in range(times):
            file.write(data)
    return str(path)


def tar_extended_headers(work: Path) -> str:
    """1,500 long names in 1.5 MB, one on top of the other."""
    path = work / "chain.tar"
    path.write_bytes(extended(b"a.jpg\0", tarfile.GNUTYPE_LONGNAME) * 1500 + header("x.jpg") + bytes(1024))
    return str(path)


def tar_pax_headers(work: Path) -> str:
    """1,500 pax headers in 1.5 MB."""
    path = work / "pax.tar"
    path.write_bytes(extended(record(b"path", b"a.jpg")) * 1500 + header("x.jpg") + bytes(1024))
    return str(path)


def tar_gz_of_zeros(work: Path) -> str:
    """1 GB of zeros in 1 MB."""
    return compressed(work / "zeros.tar.gz", gzip.open, bytes(1 << 20), 1024)


def tar_bz2_of_zeros(work: Path) -> str:
    """1 GB of zeros in 1 kB."""
    return compressed(work / "zeros-bz2.tar.gz", bz2.open, bytes(1 << 20), 1024)


def tar_xz_of_zeros(work: Path) -> str:
    """1 GB of zeros in 150 kB."""
    return compressed(work / "zeros-xz.tar.gz", lzma.open, bytes(1 << 20), 1024)


def tar_gz_member(work: Path) -> str:
    """A photo of 2 GB in 2 MB."""
    return compressed(work / "member.tar.gz", gzip.open, bytes(1 << 20), 2048, header("a.jpg", size=1 << 31))


def tar_gz_large_member(work: Path) -> str:
    """A photo of 4 GB in 4 MB, over the limit of bytes."""
    return compressed(work / "large.tar.gz", gzip.open, bytes(1 << 20), 4096, header("a.jpg", size=1 << 32))


def tar_bz2_of_headers(work: Path) -> str:
    """Half a million empty files that are no photos, in 200 bytes or so."""
    return compressed(work / "headers.tar.gz", bz2.open, header("a.txt") * 2048, 256)


def tar_of_damage(work: Path) -> str:
    """10,000 times a header and a block of zeros, 10 MB."""
    path = work / "damage.tar"
    path.write_bytes((header("a.txt") + bytes(BLOCK)) * 10_000)
    return str(path)


def tar_of_noise(work: Path) -> str:
    """100 MB in which no header is."""
    path = work / "noise.tar"
    path.write_bytes(os.urandom(1 << 20) * 100)
    return str(path)


def tar_digits(work: Path) -> str:
    """A pax header of 200 kB of digits, at which some versions of tarfile look once for each digit."""
    path = work / "digits.tar"
    path.write_bytes(extended(b"1" * 200_000) + header("x.jpg") + bytes(1024))
    return str(path)


def tar_overlapping_records(work: Path) -> str:
    """A pax header of 200 kB whose records overlap: each keyword goes on to the end."""
    path = work / "overlap.tar"
    path.write_bytes(extended(b"2 " * 100_000 + b"=\n") + header("x.jpg") + bytes(1024))
    return str(path)


def tar_global_records(work: Path) -> str:
    """A global header of 60,000 records before 2,000 headers, for each of which they are copied; 3 MB."""
    path = work / "global.tar"
    many = extended(b"".join(record(b"k%d" % n, b"") for n in range(60_000)), tarfile.XGLTYPE)
    path.write_bytes(many + (extended(record(b"mtime", b"1")) + header("a.txt")) * 2000 + bytes(1024))
    return str(path)


def tar_sparse_map(work: Path) -> str:
    """A member whose sparse map has 100 MB."""
    info = bytearray(header("a.jpg", tarfile.GNUTYPE_SPARSE))
    info[482] = 1  # is extended
    info[148:156] = b" " * 8
    info[148:156] = b"%06o\0 " % sum(info)
    block = b"%011o\0" % 1 * 42
    path = work / "sparse.tar"
    path.write_bytes(bytes(info) + (block + b"\1" + bytes(7)) * 200_000 + block + bytes(8 + 1024))
    return str(path)


def dataset_that_names_itself(work: Path) -> str:
    """A list of splits that names the folder where it lies, twice."""
    (work / "itself").mkdir()
    (work / "itself" / "dataset_dict.json").write_text(json.dumps({"splits": [".", "."]}))
    return str(work / "itself")


def dataset_of_links(work: Path) -> str:
    """A split that is a link to the folder itself, named three times."""
    (work / "links").mkdir()
    (work / "links" / "dataset_dict.json").write_text(json.dumps({"splits": ["a", "b", "c"]}))
    for name in "abc":
        (work / "links" / name).symlink_to(".")
    return str(work / "links")


def dataset_of_splits(work: Path) -> str:
    """One split, named a hundred thousand times."""
    (work / "splits").mkdir()
    (work / "splits" / "dataset_dict.json").write_text(json.dumps({"splits": ["a"] * 100_000}))
    return str(work / "splits")


def dataset_of_brackets(work: Path) -> str:
    """A list of splits of 60 MB of brackets."""
    (work / "brackets").mkdir()
    with (work / "brackets" / "dataset_dict.json").open("wb") as file:
        file.write(b"[" + b"[]," * 20_000_000 + b"[]]")
    return str(work / "brackets")


def braces_range(work: Path) -> str:
    """A range of a million million paths."""
    return f"{work}/{{0..999999999999}}.jpg"


def braces_many(work: Path) -> str:
    """2,000 braces, one behind the other."""
    return f"{work}/{'{a,b}' * 2000}.jpg"


def braces_commas(work: Path) -> str:
    """100,000 commas behind a brace that is not closed."""
    return f"{work}/{{{'a,' * 100_000}"


def braces_commas_squared(work: Path) -> str:
    """Two lists of 100,000 words."""
    return f"{work}/{{{',' * 100_000}}}{{{',' * 100_000}}}"


def braces_digits(work: Path) -> str:
    """A range to a number of 5,000 digits."""
    return f"{work}/{{0..{'9' * 5000}}}.jpg"


def globs_deep(work: Path) -> str:
    """`**` ten times, over a tree of 40 folders, one in the other."""
    (work / "deep" / "/".join("d" * 40)).mkdir(parents=True)
    return f"{work}/deep/{'**/' * 10}*.jpg"


def globs_many(work: Path) -> str:
    """A pattern of 2,000 parts."""
    (work / "many" / "a").mkdir(parents=True)
    return f"{work}/many/{'**/' * 2000}*.jpg"


def globs_stars(work: Path) -> str:
    """A name with 10,000 stars, and a long name that nearly fits."""
    (work / "stars").mkdir()
    (work / "stars" / ("a" * 250)).touch()
    return f"{work}/stars/{'*a' * 10_000}*b"


CASES: list[Case] = [
    value for key, value in list(globals().items()) if key.startswith(("tar_", "dataset_", "braces_", "globs_"))
]

READ = """
import sys, time
from pathlib import Path
from outword.errors import OutwordError
from outword.photos.decode import Blob
from outword.photos.sources import find_items
def memory(key):
    return int(Path("/proc/self/status").read_text().split(key + ":")[1].split()[0]) / 1000
Path("/proc/self/clear_refs").write_text("5")
idle, began, rows, told = memory("VmRSS"), time.perf_counter(), 0, ""
try:
    for item in find_items([sys.stdin.read()]):
        rows += 1
        if isinstance(item, Blob) and isinstance(item.data, Exception):
            told = item.data.message
except OutwordError as error:
    told = str(error)
print(time.perf_counter() - began, memory("VmHWM") - idle, f"{rows:,} rows; {told[:150]}", sep="\\t")
"""

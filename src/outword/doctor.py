"""What there is on this machine, and whether an encoder works: for a first run, and for a report of a fault.

Each part is looked at by itself, and what goes wrong there is a line of that part. Versions are read from what is
installed, without an import: a library that is broken, or takes seconds to load, is not touched unless one asks.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outword._version import __version__
from outword.base import hub_settings
from outword.base.cache import cache_dir
from outword.base.extras import EXTRAS, missing, require
from outword.base.processors import usable_cpus
from outword.base.terms import is_known, read_flag
from outword.base.waiting import Asked
from outword.errors import InputError, OutwordError

if TYPE_CHECKING:
    from outword.encoders import Encoder

CORE = ("numpy", "pillow", "onnxruntime", "safetensors", "click", "jinja2", "threadpoolctl")
INSTALLED_AS = {
    "open_clip": "open_clip_torch",
    "sklearn": "scikit-learn",
}  # what brings a package, where it is called otherwise
NVJPEG = ("nvidia-nvjpeg", "nvidia-nvjpeg-cu12")
PATIENCE = 1.5  # seconds until the hub is given up
DRIVER = 10  # seconds for nvidia-smi, which may have to wake a driver
SHOWN = {"cell": "cell under the microscope", "shuttle": "space shuttle"}  # where a demo photo's name says too little
NAMES_APART = 7  # of the names of things every seventh, some 300, is enough to see how an encoder sees
FACTOR, SPREADS = 2.0, 5.0  # how far gain and noise, and the level, may be from the constants, before it is a warning
FEWEST = 5  # demo photos whose names an encoder must know to be judged by them


def doctor(encoder: str = "mini", *, imports: bool = False) -> dict[str, Any]:
    """Versions, extras, devices, caches, whether the hub answers, and the encoder on the demo photos, ready for JSON.

    A part that cannot be told is `{"error": ...}`, perhaps with a "hint"; nothing is raised. `imports` also imports
    every extra, which takes seconds, and says what is wrong with it. An encoder that is not on this machine is fetched.
    """
    hub = _ask_hub()
    return {
        "versions": _told(_versions),
        "extras": _told(lambda: [*_extras(imports)]),
        "devices": {"processors": _told(_processors), "gpus": _told(_gpus), "decoders": _told(_decoders)},
        "caches": {"outword": _told(lambda: _cache(cache_dir())), "hub": _told(lambda: _cache(hub_settings.cache()))},
        "encoder": {"name": encoder, **_told(lambda: self_check(encoder))},
        "hub": _heard(hub),
    }


def self_check(name: str) -> dict[str, Any]:
    """Let an encoder name the demo photos among their names, as it does with all photos and words.

    Only names that it says it knows are asked, where it can tell. Half of them right, or more, speaks for weights,
    tokens and preprocessing that belong together; by chance it would be one or two.
    """
    from outword.encoders import get_encoder

    started = time.perf_counter()
    encoder = get_encoder(name)
    photos = _known_photos(encoder)
    facts = {"setting": encoder.setting, "asked": len(photos), "sight": _told(lambda: measured_sight(encoder))}
    if len(photos) < FEWEST:
        told = f"not checked: it knows the names of {len(photos)} of the demo photos"
        return {**facts, "ok": True, "told": told, "wrong": {}, "seconds": time.perf_counter() - started}
    pairs = zip(photos.items(), _named(encoder, photos), strict=True)
    wrong = {path.stem: named for (path, shown), named in pairs if named != shown}
    right = len(photos) - len(wrong)
    ok = 2 * right >= len(photos)
    meant = "fit together" if ok else "do not fit together, or it does not know photos"
    told = f"{right} of {len(photos)} right: weights, tokens and preprocessing {meant}"
    return {**facts, "ok": ok, "told": told, "wrong": wrong, "seconds": time.perf_counter() - started}


def measured_sight(encoder: Encoder) -> dict[str, Any]:
    """How an encoder sees the demo photos (docs/imagined.md), beside the constants that `fit` uses for it, if any.

    What is far from them speaks for wrong weights or preprocessing, or for an encoder that is not of that family.
    Nothing is measured where it knows few names of things.
    """
    from outword.detector.imagining import FEWEST_NAMES, demo_vectors
    from outword.maths.imagined import Imagination, family_of
    from outword.vectors.names import name_vectors, rival_names
    from outword.words.prompts import get_prompts

    names = rival_names(encoder)[::NAMES_APART]
    if len(names) < FEWEST_NAMES:
        return {"measured": None, "constants": None, "far_off": []}
    texts = name_vectors(encoder, get_prompts(encoder.prompts), names)
    measured = Imagination(texts[:1], texts[1:], encoder.temperature).sight_of(demo_vectors(encoder))
    constants = encoder.sight or family_of(encoder.temperature)
    if constants is None:
        return {"measured": asdict(measured), "constants": None, "far_off": []}
    ratios = {"gain": measured.gain / constants.gain, "noise": measured.noise / constants.noise}
    far_off = [name for name, ratio in ratios.items() if not 1 / FACTOR <= ratio <= FACTOR]
    if abs(measured.level - constants.level) > SPREADS * constants.spread:
        far_off.append("level")
    return {"measured": asdict(measured), "constants": asdict(constants), "far_off": far_off}


def _known_photos(encoder: Encoder) -> dict[Path, str]:
    """The demo photos with what they show, as far as the encoder knows it."""
    paths = sorted((Path(str(files("outword"))) / "demo" / "photos").glob("*.jpg"))
    names = [SHOWN.get(path.stem, path.stem) for path in paths]
    known = [is_known(read_flag(one.flag)) for one in encoder.coverage(names)] or [True] * len(names)
    return {path: name for path, name, one in zip(paths, names, known, strict=True) if one}


def _named(encoder: Encoder, photos: dict[Path, str]) -> list[str]:
    """The nearest of the names to each photo."""
    import numpy as np

    from outword.vectors.wild import encode_words
    from outword.words.prompts import get_prompts

    names = [*photos.values()]
    texts = encode_words(encoder, get_prompts(encoder.prompts).render(names, ["label"] * len(names)))
    images = encoder.encode_images([*photos])
    if not (np.isfinite(texts).all() and np.isfinite(images).all()):
        raise InputError(
            "vectors must be finite, got NaN or infinity", hint="its weights are damaged: fetch them again"
        )
    return [names[place] for place in (images @ texts.T).argmax(axis=1)]


def _told(look: Callable[[], Any]) -> Any:
    """What a part finds, or what is wrong with it."""
    try:
        return look()
    except OutwordError as error:
        return {"error": error.message, "hint": error.hint}
    except (Exception, SystemExit) as error:  # a broken library may raise anything
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}


def _versions() -> dict[str, str | None]:
    machine = f"{platform.system()} {platform.machine()}"
    return {"outword": __version__, "python": platform.python_version(), "machine": machine} | {
        name: _version(name) for name in CORE
    }


def _version(name: str) -> str | None:
    """The version of what is installed under a name; None where nothing is, or where that cannot be told."""
    try:
        return version(INSTALLED_AS.get(name, name)) or None
    except Exception:  # not there, or its metadata is damaged
        return None


def _extras(imports: bool) -> Iterator[dict[str, Any]]:
    """The extras: what each is for, the packages that it brings, and the command for those that lack some."""
    for extra in dict.fromkeys(extra for extra, _ in EXTRAS.values()):
        uses = {package: use for package, (own, use) in EXTRAS.items() if own == extra}
        found = {package: _told(partial(_package, package, imports)) for package in uses}
        lacking = [package for package, here in found.items() if here is None or isinstance(here, dict)]
        yield {
            "extra": extra,
            "for": [*dict.fromkeys(uses.values())],
            "packages": found,
            "command": missing(lacking[0], ImportError()).hint if lacking else "",
        }


def _package(package: str, imports: bool) -> str | None:
    """The version of a package, "?" where it does not tell one, None if it is not there; imported where one asks."""
    if find_spec(package) is None:
        return None
    if imports:
        require(package)
    return _version(package) or "?"


def _processors() -> dict[str, int | None]:
    return {"usable": usable_cpus(), "all": os.cpu_count()}


def _gpus() -> list[str]:
    """NVIDIA's devices, as its driver tells them."""
    if (tool := shutil.which("nvidia-smi")) is None:
        return []
    asked = [tool, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=DRIVER, check=False)
    if done.returncode:
        raise InputError(f"nvidia-smi says: {(done.stderr or done.stdout).strip()}", hint="see to the driver")
    return done.stdout.strip().splitlines()


def _decoders() -> dict[str, str | None]:
    """What can decode JPEGs; all but Pillow work beside a CUDA device alone."""
    nvjpeg = next(filter(None, map(_version, NVJPEG)), None)
    return {"pillow": _version("pillow"), "simplejpeg": _version("simplejpeg"), "nvjpeg": nvjpeg}


def _cache(folder: Path) -> dict[str, Any]:
    """Where a cache is, how large, and whether it can be written, or made."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    size = sum(_size(Path(top, name)) for top, _, names in os.walk(folder) for name in names)
    writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    return {"path": str(folder), "exists": folder.exists(), "bytes": size, "writable": writable}


def _size(path: Path) -> int:
    """Of a file, or of a link itself; another process may be removing it."""
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _ask_hub() -> Asked[dict[str, Any]]:
    """Whether the hub answers, asked while the rest is looked at."""
    return Asked(lambda: _told(_hub), PATIENCE)


def _heard(hub: Asked[dict[str, Any]]) -> dict[str, Any]:
    late = {"answers": False, "told": f"does not answer within {PATIENCE} s"}
    return hub.answer() or {"address": hub_settings.endpoint(), **late}


def _hub() -> dict[str, Any]:
    """Whether the hub answers; to be offline is no fault."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    address = hub_settings.endpoint()
    if hub_settings.offline():
        return {"address": address, "answers": False, "told": "not asked: HF_HUB_OFFLINE is set"}
    if not address.startswith(("http://", "https://")):
        return {"address": address, "answers": False, "told": "not asked: HF_ENDPOINT is no http address"}
    try:
        with urlopen(Request(address, method="HEAD"), timeout=PATIENCE):
            return {"address": address, "answers": True, "told": "answers"}
    except HTTPError as error:
        return {"address": address, "answers": False, "told": f"out of order: HTTP {error.code}"}
    except (OSError, ValueError) as error:  # ValueError: no address at all
        return {"address": address, "answers": False, "told": f"does not answer: {getattr(error, 'reason', error)}"}

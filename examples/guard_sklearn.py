"""A scikit-learn classifier with a guard before it.

python examples/guard_sklearn.py        (offline; needs pip install "outword[sklearn]")
"""

from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.linear_model import LogisticRegression

import outword

PHOTOS = Path(outword.__file__).parent / "demo" / "photos"
CLASSES = {"cat": "cat.jpg", "coffee": "coffee.jpg", "helmet": "helmet.jpg"}

detector = outword.fit(list(CLASSES))  # all that the guard needs: the names of the classes


def pieces(path: Path, n: int = 20) -> list[Image.Image]:
    """Random parts of a photo, as training data: you have more photos than this example has."""
    photo, rng = Image.open(path).convert("RGB"), np.random.default_rng(0)
    width, height = (int(0.7 * side) for side in photo.size)
    corners = rng.integers(0, [photo.width - width, photo.height - height], (n, 2)).tolist()
    return [photo.crop((x, y, x + width, y + height)) for x, y in corners]


training = {name: pieces(PHOTOS / file) for name, file in CLASSES.items()}
vectors = np.concatenate([detector.encoder.encode_images(parts) for parts in training.values()])
model = LogisticRegression(max_iter=1000).fit(vectors, np.repeat(list(training), [*map(len, training.values())]))


def classify(photo: Path) -> str:
    """What the classifier says: one of its classes, whatever it is shown."""
    return str(model.predict(detector.encoder.encode_images([photo]))[0])


guard = outword.Guard(classify, detector)
for name in ("cat.jpg", "coffee.jpg", "helmet.jpg", "brick.jpg", "leaves.jpg", "LICENSES.md"):
    checked = guard.check(PHOTOS / name)
    alone = "cannot read it" if checked.prediction.error else classify(PHOTOS / name)
    print(f"{name:12} alone: {alone:14} guarded: {checked.answer or f'None ({checked.reason})'}")

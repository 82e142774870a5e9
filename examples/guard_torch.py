"""A torch network with a guard before it, that gets the photos it is asked about in one batch.

python examples/guard_torch.py          (offline; needs torch)
"""

from pathlib import Path

import torch
from PIL import Image

import outword

PHOTOS = Path(outword.__file__).parent / "demo" / "photos"
CLASSES = {"cat": "cat.jpg", "coffee": "coffee.jpg", "helmet": "helmet.jpg"}


def tensor(paths: list[Path]) -> torch.Tensor:
    """Photos as the network wants them: (n, 3, 32, 32), from 0 to 1."""
    small = [Image.open(path).convert("RGB").resize((32, 32)) for path in paths]
    pixels = torch.stack([torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8) for image in small])
    return pixels.reshape(-1, 32, 32, 3).permute(0, 3, 1, 2) / 255


torch.manual_seed(0)
network = torch.nn.Sequential(
    torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3)
)
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
known, truth = tensor([PHOTOS / file for file in CLASSES.values()]), torch.arange(len(CLASSES))
for _ in range(50):  # on noisy copies: you have more photos than this example has
    loss = torch.nn.functional.cross_entropy(network(known + 0.1 * torch.randn(known.shape)), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@torch.no_grad()
def classify(paths: list[Path]) -> list[tuple[str, float]]:
    """The network's class of each photo, and how sure it is: of anything that it is shown."""
    sure, best = network(tensor(paths)).softmax(dim=1).max(dim=1)
    return [([*CLASSES][place], share) for place, share in zip(best.tolist(), sure.tolist(), strict=True)]


photos = [PHOTOS / name for name in ("cat.jpg", "coffee.jpg", "helmet.jpg", "brick.jpg", "leaves.jpg")]
guard = outword.Guard(classify, outword.fit(list(CLASSES)), batch=True)
for photo, (name, share), checked in zip(photos, classify(photos), guard.check(photos), strict=True):
    answer = checked.answer[0] if checked.answer else f"None ({checked.reason})"
    print(f"{photo.name:12} alone: {name} ({share:.0%} sure)  guarded: {answer}")

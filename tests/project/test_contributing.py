"""CONTRIBUTING's "add a method in four steps", tried: its code block is a method, and the public checks pass."""

import re
import textwrap
from pathlib import Path

import numpy as np

from outword.detectors import MaxLogit
from outword.testing import check_detector, planted_world


def test_the_method_of_the_guide_passes_the_public_checks(tmp_path, monkeypatch):
    text = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text()
    code = textwrap.dedent(re.search(r"   ```python\n(.*?)   ```", text, flags=re.DOTALL).group(1))
    (tmp_path / "topk.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    from topk import TopK

    check_detector(TopK())
    world = planted_world()
    one, top = TopK(k=1).fit(world.labels), MaxLogit().fit(world.labels)
    np.testing.assert_array_equal(one.score(world.id_images), top.score(world.id_images))

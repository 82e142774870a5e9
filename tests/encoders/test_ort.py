"""onnxruntime without enough memory says so as numpy does; other errors stay as they are."""

import pytest

from conftest import PHOTOS, call
from outword.encoders import ort
from outword.encoders.ort import Session

TOLD = "[ONNXRuntimeError] : 1 : FAIL : bfc_arena.cc:360 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool)"


class Fail(Exception):
    """As onnxruntime has one of its own for each kind of failure."""


class Inner:
    def __init__(self, error):
        self.error = error

    def run(self, outputs, inputs):
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind"),
    [(Fail(TOLD), MemoryError), (MemoryError("std::bad_alloc"), MemoryError), (Fail("a shape"), Fail)],
)
def test_errors(error, kind):
    with pytest.raises(kind, match=r"AllocateRaw|bad_alloc|a shape"):
        Session(lambda: Inner(error)).run(None, {})


def test_a_line_on_the_command_line(saved, monkeypatch):
    monkeypatch.setattr(ort.Session, "run", lambda *args: (_ for _ in ()).throw(MemoryError(TOLD)))
    error = call("score", saved, PHOTOS / "cat.jpg", code=2).stderr
    assert error.endswith("error: there is not enough memory\nhint: close other programs\n")


def test_a_library_that_does_not_fit_into_memory(monkeypatch):
    lacks = ImportError("onnxruntime_pybind11_state.so: failed to map segment from shared object")
    monkeypatch.setattr("outword.base.cache.cache_dir", lambda: (_ for _ in ()).throw(lacks))
    assert "error: there is not enough memory" in call("cache", "--clear", code=2).stderr

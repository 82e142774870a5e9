"""Every backend of the kernels against the float64 reference; Triton is interpreted where there is no CUDA device."""

import pickle
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")
CUDA = torch.cuda.is_available()

from helpers.reference import neighbour_distance_sums  # noqa: E402
from outword.detectors import Debiased, Grounded, NegLabel  # noqa: E402
from outword.errors import InputError, MissingExtraError, ParameterError  # noqa: E402
from outword.kernels import chosen, grouped_logsumexp, neighbour_density, using  # noqa: E402
from outword.maths.kernels import make_bank, to_numpy  # noqa: E402
from outword.maths.methods import grouped  # noqa: E402
from outword.maths.numerics import grouped_log_sum_exp, unit_rows  # noqa: E402

CHOICES = [("numpy", "float64"), ("numpy", "float32"), ("torch-cpu", "float64"), ("torch-cpu", "float32")]
CHOICES += [("triton", "float32"), ("triton", "float16")] if find_spec("triton") else []
CHOICES += [("torch-cuda", p) for p in ("float64", "float32", "float16")] if CUDA else []
COSINE_ERROR = {"float64": 1e-15, "float32": 1e-6, "float16": 2.0**-10}  # stated in docs/performance.md
LOG_ERROR = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-5}
choices = pytest.mark.parametrize("backend, precision", CHOICES)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def cases(rng):
    """Images, bank, sizes of groups, temperature."""
    x, u = unit_rows(rng.standard_normal((130, 20))), unit_rows(rng.standard_normal((141, 20)))
    return {
        "random, ragged": (x[:40], u, [3, 130, 1, 7], 0.01),
        "equal rows": (x[:3], np.repeat(u[:1], 9, axis=0), [4, 5], 0.01),
        "cos is 1 and -1": (np.concatenate([u[:3], -u[:3]]), u[:3], [1, 2], 0.01),
        "cold": (x[:3], u[:30], [29, 1], 1e-3),
        "one image, one group, more than a tile of rows": (x[:1], u, [141], 0.01),
        "more images than a tile": (x, u[:5], [2, 3], 1.0),
    }


@choices
@pytest.mark.parametrize("case", cases(np.random.default_rng(0)))
def test_masses_are_those_of_the_reference(backend, precision, case, rng):
    images, bank, sizes, temperature = cases(rng)[case]
    offsets = np.cumsum([0, *sizes])
    want = grouped_log_sum_exp(images @ bank.T / temperature, [slice(a, b) for a, b in pairwise(offsets)])
    found = grouped_logsumexp(images, bank, offsets, temperature=temperature, backend=backend, precision=precision)
    assert found.dtype == np.float64
    atol = COSINE_ERROR[precision] / temperature + LOG_ERROR[precision]
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=atol)


@choices
@pytest.mark.parametrize("case", cases(np.random.default_rng(0)))
def test_the_peak_of_the_labels_comes_with_the_masses(backend, precision, case, rng):
    images, bank, sizes, temperature = cases(rng)[case]
    offsets = np.cumsum([0, *sizes])
    plain, told = (
        make_bank(bank, offsets, temperature, chosen(backend, precision), peak=peak) for peak in (False, True)
    )
    found = to_numpy(told.log_masses(images))
    np.testing.assert_array_equal(found[:, :-1], to_numpy(plain.log_masses(images)))
    atol = COSINE_ERROR[precision] / temperature + LOG_ERROR[precision]
    want = (images @ bank[: sizes[0]].T).max(axis=1) / temperature
    np.testing.assert_allclose(found[:, -1], want, rtol=1e-12, atol=atol)
    masses, evidence = told.evidence(images, 2)
    np.testing.assert_array_equal(to_numpy(masses), found)
    for part, same in zip(evidence, plain.evidence(images, 2)[1], strict=True):
        np.testing.assert_array_equal(to_numpy(part), to_numpy(same))


def evidence_of(images, bank, offsets, first, temperature, top, owners=None):
    """Labels, their shares, their best rows, words and their shares of each image, from the definition."""
    logits = images @ bank.T / temperature
    masses = grouped_log_sum_exp(logits, [slice(a, b) for a, b in pairwise(offsets)])
    log_sums = np.logaddexp(masses[:, :1], masses[:, first:]) if first < masses.shape[1] else masses[:, :1]
    group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    words = np.flatnonzero(group >= first)
    logs = logits[:, words] - log_sums[:, group[words] - first] if len(words) else logits[:, :0]
    owners = np.arange(offsets[1]) if owners is None else owners
    own = [np.flatnonzero(owners == label) for label in range(owners[-1] + 1)]
    of_rows = np.exp(logits[:, : offsets[1], None] - log_sums[:, None]).mean(axis=2)
    shares = np.stack([of_rows[:, rows].sum(axis=1) for rows in own], axis=1)
    kinds = np.stack([rows[logits[:, rows].argmax(axis=1)] for rows in own], axis=1)
    labels = np.argsort(-shares, axis=1, kind="stable")[:, :top]
    order = np.argsort(-logs, axis=1, kind="stable")[:, :top]
    shares, kinds = (np.take_along_axis(part, labels, 1) for part in (shares, kinds))
    return labels, shares, kinds, order, np.exp(np.take_along_axis(logs, order, 1))


def check_evidence(found, want, precision):
    """Shares agree, and places do, but for near ties."""
    error = {"float64": 1e-6, "float32": 1e-5, "float16": 2e-2}[precision]  # float32 images are not quite unit
    assert [to_numpy(part).shape for part in found] == [part.shape for part in want]
    for place in (1, 4):
        np.testing.assert_allclose(to_numpy(found[place]), want[place], atol=error)
        if precision != "float16":
            apart = -np.diff(want[place], axis=1, prepend=2.0, append=-1.0)
            sure = (apart[:, :-1] > 2 * error) & (apart[:, 1:] > 2 * error)
            places = (0, 2) if place == 1 else (3,)
            for named in places:
                np.testing.assert_array_equal(to_numpy(found[named])[sure], want[named][sure])


@choices
@pytest.mark.parametrize("sizes, first", [([3, 130, 1, 7], 1), ([150, 3, 40, 140], 2), ([140], 1), ([2, 5], 1)])
@pytest.mark.parametrize("n, top", [(0, 3), (1, 200), (9, 1), (130, 3)])
@pytest.mark.parametrize("owned", [False, True])
def test_labels_and_words_are_those_of_the_reference(backend, precision, sizes, first, n, top, owned, rng):
    images, bank = rng.standard_normal((n, 20)), unit_rows(rng.standard_normal((sum(sizes), 20)))
    images = (images / np.linalg.norm(images, axis=1, keepdims=True)).astype(np.float32).astype(np.float64)
    offsets = np.cumsum([0, *sizes])
    owners = np.cumsum(np.arange(sizes[0]) ** 2 % 7 == 1) if owned else None  # runs of one to five rows
    made = make_bank(bank, offsets, 0.05, chosen(backend, precision), first, owners=owners)
    masses, found = made.evidence(images, top)
    np.testing.assert_array_equal(to_numpy(masses), to_numpy(made.log_masses(images)))
    check_evidence(found, evidence_of(images, bank, offsets, first, 0.05, top, owners), precision)


@choices
def test_equal_shares_come_in_order(backend, precision):
    bank = np.repeat(np.eye(2), [4, 6], axis=0)
    made = make_bank(bank, np.array([0, 4, 7, 10]), 1.0, chosen(backend, precision))
    _, found = made.evidence(np.eye(2)[:1], 5)
    assert to_numpy(found.labels).tolist() == to_numpy(found.kinds).tolist() == [[0, 1, 2, 3]]
    assert to_numpy(found.words).tolist() == [[0, 1, 2, 3, 4]]


@choices
def test_rows_of_a_label_are_added_up_and_ties_come_in_order(backend, precision):
    # logits 1, 1 | 0, 1 | 1, 0 | 1, 1, and no words: e^h of labels in order 2e, 1 + e, e + 1, 2e
    bank = np.eye(2)[[0, 0, 1, 0, 0, 1, 0, 0]]
    choice, owners = chosen(backend, precision), np.repeat(np.arange(4), 2)
    _, found = make_bank(bank, np.array([0, 8]), 1.0, choice, owners=owners).evidence(np.eye(2)[:1], 9)
    assert to_numpy(found.labels).tolist() == [[0, 3, 1, 2]]
    assert to_numpy(found.kinds).tolist() == [[0, 6, 3, 4]]
    parts = np.array([2 * np.e, 2 * np.e, 1 + np.e, 1 + np.e])
    np.testing.assert_allclose(to_numpy(found.label_shares)[0], parts / parts.sum(), atol=1e-6)


def test_groups_may_be_offsets_indices_or_slices(rng):
    x, u = rng.standard_normal((4, 6)), rng.standard_normal((5, 6))
    found = grouped_logsumexp(x, u, [0, 2, 5])
    np.testing.assert_array_equal(grouped_logsumexp(x, u, [slice(0, 2), slice(2, 5)]), found)
    np.testing.assert_array_equal(
        grouped_logsumexp(3 * x, 2 * u, [[0, 1], np.array([2, 3, 4])]).round(9), found.round(9)
    )
    one = unit_rows(x) @ unit_rows(u)[3]
    np.testing.assert_allclose(grouped_logsumexp(x, u, [[3], [3, 3]]).T, [one, one + np.log(2)])  # e^c + e^c
    bad = {
        "rise from 0 to": [0, 2],
        r"\[0, 3, 3, 5\]": [0, 3, 3, 5],
        "none empty": [[0], []],
        "one or": [],
        "to 4": [[5]],
    }
    for message, groups in bad.items():
        with pytest.raises(InputError, match=message):
            grouped_logsumexp(x, u, groups)


@choices
def test_scores_of_every_backend_and_their_order(backend, precision, rng):
    y, u, x = (rng.standard_normal((n, 24)) for n in (120, 210, 60))
    x[:30] += 2 * y[:30]
    kinds = Debiased(n_groups=7), Debiased(n_groups=7, sigma=0.0), NegLabel(n_groups=7), Grounded()
    for detector in kinds:
        detector.temperature = 0.05
        with using("numpy"):
            want = detector.fit(y, u).score(x)
        with using(backend, precision):
            found = detector.score(x)
        error = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-2}[precision]
        np.testing.assert_allclose(found, want, atol=error)
        apart = want[:, None] - want > (0.02 if precision == "float16" else 1e-4)
        assert (found[:, None] > found)[apart].all()  # ranks differ between near ties only


@pytest.mark.parametrize("backend, precision", [choice for choice in CHOICES if choice[0] != "numpy"])
def test_a_device_takes_tensors_and_says_which_image_is_bad(backend, precision, rng):
    detector = NegLabel(n_groups=2).fit(rng.standard_normal((3, 8)), rng.standard_normal((4, 8)))
    x = rng.standard_normal((5, 8)).astype(np.float32)
    device = "cuda" if CUDA and backend != "torch-cpu" else "cpu"
    with using(backend, precision):
        np.testing.assert_array_equal(detector.score(torch.tensor(x, device=device)), detector.score(x))
        assert detector.score(x[:0]).shape == (0,)
        turned = torch.tensor(x.T.copy(), device=device).T  # not contiguous
        np.testing.assert_allclose(detector.score(turned), detector.score(x), rtol=1e-4)
        for wrong, message in ((turned[:, :7], "must have 8 columns"), (turned[None], "two-dimensional tensor")):
            with pytest.raises(InputError, match=message):
                detector.score(wrong)
        x[3] = 0
        with pytest.raises(InputError, match="row 3 is not"):
            detector.score(x)
        x[3, 0] = np.inf
        with pytest.raises(InputError, match="row 3 is not"):
            detector.score(torch.tensor(x, device=device))


@pytest.mark.parametrize("backend", sorted({backend for backend, _ in CHOICES}))
@pytest.mark.parametrize(
    "n_words, alpha, kind",
    [
        (2, 1, "random"),
        (300, 10, "random"),
        (40, 39, "random"),
        (300, 5, "equal"),
        (300, 10, "twins"),
        (50, 3, "signs"),
    ],
)
def test_density_is_that_of_the_reference(backend, n_words, alpha, kind, rng):
    words = rng.standard_normal((n_words, 12))
    if kind == "equal":
        words[:] = words[0]
    if kind == "twins":
        words[n_words // 2 :] = words[: n_words // 2]
    if kind == "signs":
        words[n_words // 2 :] = -words[: n_words // 2]
    steps = []
    found = neighbour_density(
        7 * words, alpha, backend=backend, progress=lambda done, total: steps.append((done, total))
    )
    np.testing.assert_allclose(found, neighbour_distance_sums(unit_rows(words), alpha), rtol=1e-12, atol=1e-12)
    assert steps[-1] == (n_words, n_words)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)


@pytest.mark.parametrize("alpha", [0, 3, 1.5])
def test_alpha_must_leave_another_word(alpha):
    with pytest.raises((InputError, ParameterError), match="alpha must be"):
        neighbour_density(np.eye(3), alpha)


def test_the_choice(monkeypatch):
    monkeypatch.delenv("OUTWORD_KERNELS", raising=False)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert chosen() == ("numpy", "float64")
    monkeypatch.setenv("OUTWORD_KERNELS", "numpy:float32")
    assert chosen() == ("numpy", "float32")
    with using("torch-cpu"):
        assert chosen() == ("torch-cpu", "float64")
        assert chosen("numpy") == ("numpy", "float64")
        assert chosen(precision="float32") == ("torch-cpu", "float32")
    monkeypatch.setenv("OUTWORD_KERNELS", "numpi")
    with pytest.raises(
        ParameterError, match="backend must be one of numpy, torch-cpu, torch-cuda, triton, got 'numpi'"
    ):
        chosen()
    monkeypatch.delenv("OUTWORD_KERNELS")
    with pytest.raises(ParameterError, match="precision must be one of float64, float32 with numpy, got 'float16'"):
        chosen("numpy", "float16")
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert chosen().backend == ("triton" if find_spec("triton") else "torch-cuda")
    monkeypatch.setattr("outword.maths.kernels.choice.find_spec", lambda name: None if "." in name else name)
    assert chosen() == ("torch-cuda", "float64")
    with pytest.raises(MissingExtraError, match=r"needs Triton 3.6 or later"):
        chosen("triton")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(ParameterError, match="the backend torch-cuda needs a CUDA device, torch sees none"):
        chosen("torch-cuda")


def test_parameters_changed_after_fit_mean_what_they_meant(rng):
    y, u, x = (rng.standard_normal((n, 12)) for n in (40, 60, 9))
    detector = Debiased(n_groups=3, temperature=0.1).fit(y, u)
    want = detector.score(x)
    detector.sigma = 0.0  # the positives were drawn at fit
    np.testing.assert_array_equal(detector.score(x), want)
    detector.temperature = 0.2
    np.testing.assert_allclose(detector.score(x), Debiased(n_groups=3, temperature=0.2).fit(y, u).score(x), rtol=1e-12)


def test_a_cold_score_without_tau_is_that_of_neglabel(rng):
    y, u, x = (rng.standard_normal((n, 12)) for n in (4, 6, 9))
    theirs = NegLabel(n_groups=2, temperature=1e-6).fit(y, u).score(x)
    np.testing.assert_allclose(Debiased(n_groups=2, temperature=1e-6, tau=0.0).fit(y, u).score(x), theirs)


def test_a_detector_travels_without_its_banks(rng):
    detector = NegLabel(n_groups=2).fit(rng.standard_normal((3, 8)), rng.standard_normal((4, 8)))
    x = rng.standard_normal((5, 8))
    fresh = len(pickle.dumps(detector))
    scores = detector.score(x)
    assert len(pickle.dumps(detector)) == fresh
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(detector)).score(x), scores)


def test_many_groups_do_not_take_memory_for_all_images_at_once(monkeypatch, rng):
    detector = NegLabel(n_groups=600).fit(rng.standard_normal((3, 8)), rng.standard_normal((600, 8)))
    x, seen = rng.standard_normal((12, 8)), []
    with using("numpy"):
        want = detector.score(x)
        bank = detector._bank(chosen())
        monkeypatch.setattr(grouped, "HOST_CELLS", 5 * 600)
        monkeypatch.setattr(
            bank, "log_masses", lambda rows, whole=bank.log_masses: seen.append(len(rows)) or whole(rows)
        )
        np.testing.assert_allclose(detector.score(x), want)
    assert seen == [5, 5, 2]


@pytest.mark.parametrize("kind", ["autocast", "grad", "reversed", "read-only", "other bytes", "float16", "very long"])
def test_torch_takes_what_numpy_takes(kind, rng):
    detector = NegLabel(n_groups=2, temperature=0.1).fit(rng.standard_normal((3, 8)), rng.standard_normal((4, 8)))
    x = rng.standard_normal((5, 8)).astype(np.float16)
    given = {
        "autocast": x.astype(np.float32),
        "grad": torch.tensor(x.astype(np.float32), requires_grad=True),
        "reversed": np.ascontiguousarray(x[::-1], np.float64)[::-1],
        "read-only": x.astype(np.float32),
        "other bytes": x.astype(">f8"),
        "float16": x,
        "very long": x * np.float32(1e38),
    }
    given["read-only"].flags.writeable = False
    with using("numpy"):
        want = detector.score(x)
    with using("torch-cpu"), torch.autocast("cpu", enabled=kind == "autocast"):
        np.testing.assert_allclose(detector.score(given[kind]), want, rtol=1e-5)

"""A photo's vector, score, evidence and verdict are the same bits alone, in any list, and beside damaged files."""

from dataclasses import replace

import numpy as np
import pytest

from conftest import PHOTOS
from helpers.bad_images import make_bad_images
from outword.detector.judge import judge
from outword.detectors import ODIN
from outword.encoders import ort
from outword.encoders.mini.encoder import Mini
from outword.encoders.texts import TOGETHER, batches
from outword.maths.kernels.evidence import owners_in
from outword.maths.kernels.numpy_blas import Bank
from outword.maths.kernels.rows import BLOCK, in_blocks, product, whole_width
from outword.maths.numerics import unit_rows
from outword.maths.thresholds import fit_threshold
from outword.scoring.stream import open_source, score_source
from outword.testing import planted_world
from outword.vectors.embed import embed

NAMES = ["cat", "coffee", "raccoon", "rocket", "shuttle", "clock", "grass", "helmet"]
FILES = [PHOTOS / f"{name}.jpg" for name in NAMES]
LABELS = [f"a photo of a {name}" for name in (*NAMES, "very old locomotive", "x")]


@pytest.fixture(scope="module")
def pixels(detector):
    return np.concatenate(list(detector.encoder.pixel_chunks(FILES)))


@pytest.fixture(scope="module")
def alone(detector):
    """The score of each photo in a call of its own."""
    return np.concatenate([detector.score([path]) for path in FILES])


def some_of(n_items, *, count=8, seed=0):
    """Lists of indices: one, two, many; some twice, in any order."""
    rng = np.random.default_rng(seed)
    return [rng.integers(n_items, size=size) for size in (1, 1, 2, 3, 5, 9, 24, 25)[:count]]


@pytest.mark.parametrize(("n_columns", "dim"), [(16, 2), (48, 30), (112, 512), (1008, 77), (3008, 64)])
def test_rows_of_a_product_do_not_feel_their_company(n_columns, dim):
    rng = np.random.default_rng(0)
    rows, columns = rng.standard_normal((70, dim)), rng.standard_normal((n_columns, dim)).T
    whole = product(rows, columns)
    np.testing.assert_allclose(whole, rows @ columns, rtol=1e-10, atol=1e-12)
    for some in (*some_of(70), np.arange(64)):
        np.testing.assert_array_equal(product(rows[some], columns), whole[some])
    assert product(rows[:0], columns).shape == (0, n_columns)


def test_blocks_are_always_full():
    sizes, rows = [], np.arange(2 * BLOCK + 1.0)[:, None]
    found = in_blocks(lambda part: sizes.append(len(part)) or part[:, 0] ** 2, rows, np.empty(len(rows)))
    assert sizes == [BLOCK] * 3
    np.testing.assert_array_equal(found, rows[:, 0] ** 2)
    assert whole_width(16) == 16


@pytest.mark.parametrize("sizes", [[3, *[120] * 100], [2, *[77] * 7], [40, 9001], [5]])
@pytest.mark.parametrize("rows_a_label", [1, 2])
def test_evidence_does_not_feel_its_company(sizes, rows_a_label):
    rng = np.random.default_rng(0)
    texts, images = (unit_rows(rng.standard_normal((n, 32))) for n in (sum(sizes), 40))
    owners = owners_in(np.arange(sizes[0]) // rows_a_label)
    bank = Bank(texts, np.cumsum([0, *sizes]), temperature=0.01, owners=owners, peak=True)
    masses, whole = bank.evidence(images, 5)
    np.testing.assert_array_equal(masses, bank.log_masses(images))
    for some in some_of(40):
        for part, all_of_it in zip(bank.evidence(images[some], 5, cells=10_000)[1], whole, strict=True):
            np.testing.assert_array_equal(part, all_of_it[some])


def test_mini_images_and_texts(detector, pixels):
    mini = detector.encoder
    vectors, texts = mini.encode_pixels(pixels), mini.encode_texts(LABELS)
    for some in some_of(len(pixels), count=6):
        np.testing.assert_array_equal(mini.encode_pixels(pixels[some]), vectors[some])
    for some in some_of(len(LABELS)):
        np.testing.assert_array_equal(mini.encode_texts([LABELS[i] for i in some]), texts[some])


def test_mini_does_not_feel_the_number_of_threads(detector, pixels, monkeypatch):
    for count in (1, 2):
        monkeypatch.setattr(ort, "threads", lambda count=count: count)
        other = Mini()
        np.testing.assert_array_equal(other.encode_pixels(pixels[:3]), detector.encoder.encode_pixels(pixels[:3]))
        np.testing.assert_array_equal(other.encode_texts(LABELS), detector.encoder.encode_texts(LABELS))


def test_a_row_goes_in_twice_where_it_is_alone():
    assert ort.never_alone(lambda rows: rows + len(rows), np.zeros((1, 2))).tolist() == [[2, 2]]


def test_texts_of_another_length_are_another_batch_and_all_batches_are_full():
    ids = np.zeros((40, 9), np.int64)
    ids[np.arange(40), np.arange(40) % 3 + 4] = 7  # the end
    found = list(batches(ids, 7))
    assert [(len(rows), length) for rows, length in found] == [(TOGETHER, 5), (TOGETHER, 6), (TOGETHER, 7)]
    assert sorted({int(row) for rows, _ in found for row in rows}) == list(range(40))
    assert [len(rows) for rows, _ in batches(ids, 7, fill=False)] == [14, 13, 13]


def test_scores_and_evidence_of_any_list(detector, pixels, alone):
    vectors = detector.encoder.encode_pixels(pixels)
    shown = [one for row in vectors for one in judge(detector, row[None], 5)]
    for some in some_of(len(FILES), count=6):
        np.testing.assert_array_equal(judge(detector, pixels[some], 0).scores, alone[some])
        assert list(judge(detector, vectors[some], 5)) == [shown[i] for i in some]
    told = detector.explain(FILES[2])
    assert (told.score, told.labels, told.words) == (alone[2], shown[2].labels, shown[2].words)


def test_the_gradient_of_odin():
    world = planted_world()
    odin = ODIN().fit(world.labels)
    uphill = odin.gradient(world.id_images)
    for some in some_of(len(world.id_images)):
        np.testing.assert_array_equal(odin.gradient(world.id_images[some]), uphill[some])


def test_damaged_neighbours_and_stores(detector, alone, tmp_path):
    (tmp_path / "bad").mkdir()
    make_bad_images(tmp_path / "bad")
    damaged = sorted(path for path in (tmp_path / "bad").iterdir() if path.suffix in (".jpg", ".png"))[:5]
    mixed = [path for pair in zip(FILES[:5], damaged, strict=True) for path in pair]
    rows = {row.path: row for row, _ in score_source(detector, open_source(detector, mixed))}
    assert [rows[str(path)].score for path in FILES[:5]] == alone[:5].tolist()
    embed(detector.encoder, FILES[:5], tmp_path / "store")
    stored = {row.path: row for row, _ in score_source(detector, open_source(detector, [tmp_path / "store"]))}
    wanted = [replace(rows[str(path)], notes=()) for path in FILES[:5]]  # a store has no pixels to note anything of
    assert [stored[str(path)] for path in FILES[:5]] == wanted


def test_twelve_calibrations_accept_the_photo_that_they_were_set_at(detector, pixels, alone):
    rng, vectors = np.random.default_rng(0), detector.encoder.encode_pixels(pixels)
    for number in range(12):
        some = rng.permutation(len(FILES))[: 5 + number % 4]
        scores = judge(detector, vectors[some], 0).scores
        threshold = fit_threshold(scores, 0.8 if number % 2 else 1.0)
        exact = threshold.value + threshold.margin
        assert exact in scores
        np.testing.assert_array_equal(alone[some] >= exact, scores >= exact)
        strict = detector.with_threshold(threshold)
        assert [strict.verdict(score) for score in alone[some]] == [strict.verdict(score) for score in scores]

"""The prompt learner: what it learns, from what, that it is the same each time, and what stops it."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from threadpoolctl import threadpool_limits

import outword
from helpers.cards import changed
from helpers.tiny import clip_folder, open_clip_folder
from outword.base.cache import cache_dir
from outword.detector.fitting import prepare
from outword.detector.recipe import resolve
from outword.detectors import DETECTORS, LAPT, CoOp, NegPrompt
from outword.encoders import get_encoder
from outword.errors import InputError, OutwordError, ParameterError
from outword.testing import check_detector
from outword.vectors.id_images import IdImages, read_id_images
from outword_lab.encoders.driven import text_tower
from outword_lab.learning import names as in_names
from outword_lab.learning import prompts as learner
from outword_lab.learning.methods.prompted import Stage
from outword_lab.learning.names import Names
from outword_lab.learning.needs import PROMPTS
from outword_lab.learning.photos import Crops, crop_box
from outword_lab.learning.prompting import few_shots
from outword_lab.learning.prompts import Task, learn, vectors_of
from outword_lab.world.sets import world_sets
from outword_lab.world.things import ID_FAMILIES, seen

LABELS = ["hammer", "saw", "cat"]
QUICK = {"epochs": 2, "context": 3}
LEARNED = [name for name, kind in DETECTORS.items() if PROMPTS in kind.needs]


@pytest.fixture(scope="module")
def encoder():
    return get_encoder("world-s")


@pytest.fixture(scope="module")
def photos(encoder):
    """Four sketches of each label, as vectors."""
    return sketches(encoder, "train", 4)


def sketches(encoder, of, each, labels=LABELS):
    sets = world_sets()
    drawn = replace(sets["sketch"], name=f"test-{of}", things=tuple(labels), each=each)
    vectors = encoder.encode_images(list(drawn.photos()))
    classes = np.repeat(np.arange(len(labels)), each)
    return IdImages(vectors, classes, dict.fromkeys(labels, each), [])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two photos of each label in folders, and of two other things."""
    top = tmp_path_factory.mktemp("photos")
    shown = {"train": LABELS, "words": ["apple", "sailboat"]}
    for place, things in shown.items():
        drawn = replace(world_sets()["train"], things=tuple(things), each=2)
        for name, pixels in zip(drawn.names, drawn.photos(), strict=True):
            (top / place / name).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(top / place / name)
    return top


def recipe_of(encoder, method, **params):
    if method == "lapt":
        return resolve(encoder, method, {"n_groups": 3, **params}, corpus="world-nouns", miner="all")
    return resolve(encoder, method, params)


def fitted(encoder, method, photos, **params):
    return prepare(recipe_of(encoder, method, **params), LABELS, id_images=photos).fit()


@pytest.mark.parametrize("library", ["open_clip", "transformers"])
def test_without_a_step_coop_is_mcm_with_the_hand_written_prompt(library, tmp_path):
    open_clip_folder("vit", tmp_path) if library == "open_clip" else clip_folder(tmp_path)
    encoder = get_encoder(f"hf:{tmp_path}", device="cpu")
    rng = np.random.default_rng(0)
    images = rng.standard_normal((6, encoder.dim)).astype(np.float32)
    given = IdImages(images, np.arange(6) % 3, dict.fromkeys(LABELS, 2), [])
    learned = fitted(encoder, "coop", given, epochs=0, start="a photo of a")
    by_hand = prepare(resolve(encoder, "mcm", {}, prompts="a photo of a {}."), LABELS).fit()
    np.testing.assert_allclose(learned.scorer.labels_, by_hand.scorer.labels_, atol=2e-6)
    np.testing.assert_allclose(learned.scorer.score(images), by_hand.scorer.score(images), rtol=1e-6)


def test_it_learns_what_the_photos_show(encoder):
    labels = seen(ID_FAMILIES)[:10]
    train, test = (sketches(encoder, of, 10, labels) for of in ("train", "test"))
    right = {}
    for epochs in (0, 60):
        recipe = recipe_of(encoder, "coop", epochs=epochs, start="a photo of a")
        rows = prepare(recipe, labels, id_images=train).fit().scorer.labels_
        right[epochs] = ((test.vectors @ rows.T).argmax(1) == test.classes).mean()
    assert right[60] > right[0] + 0.1


@pytest.mark.parametrize("method", LEARNED)
def test_each_method_learns_and_comes_back_from_disk(method, encoder, folder, tmp_path):
    made = prepare(recipe_of(encoder, method, **QUICK), LABELS, id_images=folder / "train").finish()
    assert made.card.learned["photos"] == 6
    assert made.card.learned["shots"] == 2
    assert all(np.isfinite(loss) for loss in made.card.learned["losses"])
    made.save(tmp_path / "made.outword")
    back = outword.load(tmp_path / "made.outword")
    assert set(back.scorer.learned_contexts) == set(DETECTORS[method]().contexts())
    images = [Image.new("RGB", (64, 64), colour) for colour in ("red", "blue")]
    np.testing.assert_array_equal(back.score(images), made.score(images))


def test_an_fa_detector_saved_before_scores_as_it_did(encoder, folder, tmp_path):
    params = {**QUICK, "competitor": 1.0, "learned_only": True}
    made = prepare(recipe_of(encoder, "fa", **params), LABELS, id_images=folder / "train").finish()
    before = {name: value for name, value in made.card.method.parameters.items() if name != "learned_only"}
    made.card = changed(made.card, "method", parameters=before)
    made.save(tmp_path / "old.outword")
    back = outword.load(tmp_path / "old.outword")
    assert back.scorer == made.scorer and not DETECTORS["fa"]().learned_only
    assert back.relabel([*LABELS, "bus"]).scorer.learned_only
    images = encoder.encode_texts(["red", "blue"])
    np.testing.assert_array_equal(back.scorer.score(images), made.scorer.score(images))


@pytest.mark.parametrize("method", ["coop", "lsn", "negprompt", "lapt"])
def test_the_same_seed_gives_the_same_bits_and_leaves_the_global_generators_alone(method, encoder, photos):
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    first = fitted(encoder, method, photos, **QUICK, seed=3)
    drawn = torch.rand(1), np.random.random()  # noqa: NPY002
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    assert drawn == (torch.rand(1), np.random.random())  # noqa: NPY002
    again, other = (fitted(encoder, method, photos, **QUICK, seed=seed) for seed in (3, 4))
    for name, context in first.scorer.learned_contexts.items():
        np.testing.assert_array_equal(again.scorer.learned_contexts[name], context)
        assert (other.scorer.learned_contexts[name] != context).any()


def test_threads_and_pieces_change_next_to_nothing(encoder, photos, monkeypatch):
    contexts = []
    for threads, free in ((1, in_names.FREE), (2, in_names.FREE), (1, 0)):  # the last one text at a time, read twice
        monkeypatch.setattr(in_names, "FREE", free)
        with threadpool_limits(threads):
            contexts.append(fitted(encoder, "coop", photos, **QUICK).scorer.learned_contexts["labels"])
    for other in contexts[1:]:
        np.testing.assert_allclose(other, contexts[0], atol=1e-6)


@pytest.mark.parametrize(("method", "stop"), [("coop", 3), ("coop", 5), ("lsn", 3), ("lsn", 9), ("negprompt", 8)])
def test_a_run_that_was_killed_goes_on_where_it_was(method, stop, encoder, photos, monkeypatch):
    options = {"epochs": 4, "context": 3, "batch": 12, "seed": 8}
    whole = fitted(encoder, method, photos, **options)
    monkeypatch.setattr(learner, "KEEP", -1.0)
    kind = DETECTORS[method](**options)
    task, steps = Task([[label] for label in LABELS], [], [photos]), []

    def killed(name, done, total):
        steps.append(done)
        if len(steps) == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(kind, encoder, task, killed)
    rest = []
    again = learn(kind, encoder, task, lambda *told: rest.append(told[1]))
    assert rest[0] > 0  # it does not begin anew
    for name, context in whole.scorer.learned_contexts.items():
        np.testing.assert_array_equal(again.contexts[name], context)


def test_what_is_kept_of_a_run_is_gone_when_it_is_over(encoder, photos, tmp_path, monkeypatch):
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path))
    monkeypatch.setattr(learner, "KEEP", -1.0)
    fitted(encoder, "coop", photos, **QUICK)
    assert not list((tmp_path / "learning").iterdir())


def test_a_few_shots_are_drawn_by_the_seed_and_every_label_must_have_one(photos):
    some = few_shots(photos, LABELS, 2, 0)
    assert some.counts == dict.fromkeys(LABELS, 2)
    assert np.bincount(some.classes).tolist() == [2, 2, 2]
    np.testing.assert_array_equal(few_shots(photos, LABELS, 2, 0).vectors, some.vectors)
    assert (few_shots(photos, LABELS, 2, 1).vectors != some.vectors).any()
    assert few_shots(photos, LABELS, 99, 0).counts == photos.counts
    with pytest.raises(InputError, match="none shows dog"):
        few_shots(photos, [*LABELS, "dog"], 2, 0)


def test_one_shot_is_enough(encoder, photos):
    made = fitted(encoder, "coop", photos, **QUICK, shots=1)
    assert made.card.learned["photos"] == 3


def test_a_loss_that_is_no_number_says_what_to_do(encoder, photos):
    with pytest.raises(InputError, match="the loss of labels is nan") as caught:
        fitted(encoder, "coop", photos, context=3, epochs=20, rate=1e30, batch=1)
    assert "lower the rate" in caught.value.hint
    assert not list((cache_dir() / "learning").glob("*/*"))


def test_a_context_must_leave_room_for_the_names(encoder, photos):
    with pytest.raises(ParameterError, match="leaves no room for") as caught:
        fitted(encoder, "coop", photos, context=22)
    assert "set context=" in caught.value.hint


def test_an_encoder_that_cannot_be_driven_is_said_first(folder):
    with pytest.raises(InputError, match="mini cannot be driven from token embeddings"):
        outword.fit(LABELS, method="coop", id_images=folder / "train")


def test_a_wrong_parameter_is_said_before_anything_is_learned(encoder, photos):
    told = []
    with pytest.raises(ParameterError, match="n_groups must be between"):
        recipe = recipe_of(encoder, "lapt", n_groups=10_000)
        prepare(recipe, LABELS, id_images=photos, report=lambda task, *_: told.append(task))
    assert not any(task.startswith("learning") for task in told)


def test_patches_and_crops_need_photos_and_have_a_budget(encoder, photos, folder):
    with pytest.raises(OutwordError, match="no photos"):
        fitted(encoder, "coop", photos, **QUICK, crops=2)
    given = read_id_images(encoder, folder / "train", LABELS, with_classes=True)
    with pytest.raises(ParameterError, match="the budget is 1e-06") as caught:
        fitted(encoder, "locoop", given, **QUICK, budget=1e-6)
    assert "set budget=" in caught.value.hint
    assert fitted(encoder, "coop", given, **QUICK, crops=2).card.learned["photos"] == 6


def test_crops_depend_on_the_photo_alone():
    image = Image.fromarray(np.random.default_rng(0).integers(256, size=(40, 60, 3), dtype=np.uint8))
    crops = Crops(np.asarray, 16, 3, 0)
    first = crops(image)
    assert first.shape == (3, 16, 16, 3)
    np.testing.assert_array_equal(crops(image), first)
    assert (replace(crops, seed=1)(image) != first).any()
    rng = np.random.default_rng(0)
    for width, height in ((60, 40), (1, 500)):
        for _ in range(50):
            left, top, right, bottom = crop_box(width, height, rng)
            assert 0 <= left < right <= width
            assert 0 <= top < bottom <= height


def test_several_names_of_a_label_are_averaged_and_a_prompt_takes_their_place(encoder):
    tower = text_tower(encoder).to(torch.float64)
    context = torch.randn(1, 3, tower.width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    one, two, both = (
        Names(tower, rows, 3).vectors(context)[0] for rows in ([["cat"]], [["dog"]], [["cat", "dog"], ["cow"]])
    )
    mean = (one[0] + two[0]) / 2
    np.testing.assert_allclose(both[0], mean / mean.norm(), atol=1e-12)


def test_long_lists_are_read_in_parts_of_similar_length(encoder, monkeypatch):
    tower = text_tower(encoder).to(torch.float64)
    rows = [[name] for name in ("cat", "very small old wooden sailboat", "dog", "tape measure", "saw")]
    context = torch.randn(2, 3, tower.width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole = Names(tower, rows, 3).vectors(context)
    monkeypatch.setattr(in_names, "SMALL", 0.0)
    parted = Names(tower, rows, 3)
    assert len(parted._parts) == 2
    np.testing.assert_allclose(parted.vectors(context), whole, atol=1e-12)


def test_contexts_move_to_other_labels_unless_they_belong_to_each(encoder, photos, tmp_path):
    made = fitted(encoder, "negprompt", photos, **QUICK)
    made.save(tmp_path / "made.outword")
    moved = outword.load(tmp_path / "made.outword").relabel(["apple", "sailboat"])
    assert moved.card.learned == {**made.card.learned, "moved": True}
    np.testing.assert_array_equal(moved.fitted_on, made.fitted_on)  # so that it is not calibrated on these
    assert not made.relabel(LABELS).card.learned["moved"]
    expected = vectors_of(made.scorer.learned_contexts, encoder, [["apple"], ["sailboat"]], [])
    np.testing.assert_array_equal(moved.scorer.labels_, expected["labels"])
    np.testing.assert_array_equal(moved.scorer.negatives_, expected["negatives"])
    for method, params in (("lsn", {}), ("coop", {"by_class": True})):
        with pytest.raises(InputError, match="each label has learned tokens of its own"):
            fitted(encoder, method, photos, **QUICK, **params).relabel(["apple"])


def test_contexts_of_another_encoder_are_refused(encoder):
    with pytest.raises(InputError, match="has tokens of 7 numbers"):
        vectors_of({"labels": np.zeros((1, 3, 7), np.float32)}, encoder, [["apple"]], [])


def test_photos_of_words_are_learned_from(encoder, folder):
    made = outword.fit(
        LABELS,
        encoder=encoder,
        method="lapt",
        corpus="world-nouns",
        id_images=folder / "train",
        word_images=folder / "words",
        n_groups=3,
        **QUICK,
    )
    assert made.wild[:2] == ["apple", "sailboat"]
    assert made.card.learned["photos_of_words"] == 4
    few = {"method": "lapt", "corpus": "world-nouns", "n_groups": 3, "words": 1}  # photos count all the same
    given = {"id_images": folder / "train", "word_images": folder / "words"}
    assert outword.fit(LABELS, encoder=encoder, **few, **given, **QUICK).card.learned["words"] == 2
    with pytest.raises(InputError, match=r"other things than the labels, and .* has cat, hammer, saw"):
        outword.fit(LABELS, encoder=encoder, method="lapt", id_images=folder / "train", word_images=folder / "train")
    with pytest.raises(ParameterError, match="learns nothing from photos of words"):
        outword.fit(LABELS, encoder=encoder, method="mcm", word_images=folder / "words")
    with pytest.raises(InputError, match="folders that are named after them"):
        outword.fit(LABELS, encoder=encoder, method="lapt", id_images=folder / "train", word_images=folder / "x")


def test_the_rate_begins_slowly_and_falls_by_a_cosine():
    stage = Stage(("labels",), CoOp().loss, 10, 0.1, 1)
    assert learner.rate_of(stage, 0) == 1e-5
    # a warm-up of torch's own before the cosine of torch, stepped as Dassl does: once behind every epoch
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for epoch in range(1, 10):
        assert learner.rate_of(stage, epoch, 0.7) == pytest.approx(cosine.get_last_lr()[0]), epoch
        optimizer.step()
        cosine.step()
    assert learner.rate_of(replace(stage, warm_up=0), 0) == 0.1
    assert learner.rate_of(replace(stage, warm_up=0), 5, 0.7) == pytest.approx(0.05)


def test_the_rate_can_fall_with_every_step(encoder, photos, monkeypatch):
    stage = Stage(("labels",), CoOp().loss, 10, 0.1, 1, warm_up=0, every_step=True)
    assert learner.rate_of(stage, 5, 0.5) == pytest.approx(0.05 * (1 + np.cos(np.pi * 0.55)))
    rates, own = [], torch.optim.SGD.step

    def step(optimizer, *args):
        rates.append(optimizer.param_groups[0]["lr"])
        return own(optimizer, *args)

    monkeypatch.setattr(torch.optim.SGD, "step", step)
    fitted(encoder, "fa", photos, epochs=2, batch=4)  # 12 photos
    np.testing.assert_allclose(rates, [0.001 * (1 + np.cos(np.pi * n / 6)) for n in range(6)])


def test_words_with_photos_are_read_in_the_templates_too(encoder, photos):
    shown = replace(photos, classes=photos.classes % 2)  # as if of two words
    seen = []

    def loss(self, batch):
        seen.append(batch)
        return LAPT.loss(self, batch)

    kind = type("Watched", (LAPT,), {"loss": loss})
    task = Task([[label] for label in LABELS], ["owl", "bus", "elm"], [photos, shown])
    learn(kind(epochs=1, context=3), encoder, task)
    texts = [template.replace("{}", name) for template in LAPT.templates for name in (*LABELS, "owl", "bus")]
    np.testing.assert_array_equal(seen[0].plain, encoder.encode_texts(texts).reshape(7, 5, -1))


def test_negatives_begin_where_the_positive_prompt_ended(encoder, photos):
    made = fitted(encoder, "negprompt", photos, epochs=1, rate=1e-9)
    found = made.scorer.learned_contexts
    np.testing.assert_allclose(found["negatives"], np.repeat(found["labels"], 2, 0), atol=2e-5)
    assert (found["negatives"][0] != found["negatives"][1]).any()
    assert NegPrompt().contexts()["negatives"].start == "labels"


def test_the_loss_in_the_docs_is_a_method(encoder, photos):
    page = (Path(__file__).parents[2] / "docs/learned.md").read_text()
    found = {}
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], found)
    smooth = found["Smooth"](context=3, epochs=2)
    check_detector(smooth)
    task = Task([[label] for label in LABELS], [], [photos])
    plain = learn(replace(smooth, smoothing=0.0), encoder, task)
    coop = learn(CoOp(context=3, epochs=2), encoder, task)
    np.testing.assert_allclose(plain.contexts["labels"], coop.contexts["labels"], atol=1e-8)
    assert (learn(smooth, encoder, task).contexts["labels"] != plain.contexts["labels"]).any()

"""Encoders of open_clip and transformers: equal to the libraries' own forward, however they are saved and batched."""

import json
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import SafetensorError
from safetensors.torch import save_file

import outword
from helpers.tiny import (
    OPEN_CLIP,
    RELATIVES,
    TEXTS,
    clip_folder,
    open_clip,
    open_clip_folder,
    open_clip_model,
    photos,
    pixels_of,
    relative_folder,
    siglip_folder,
    unit,
)
from outword.base import arrays
from outword.base.extras import install
from outword.encoders import get_encoder
from outword.encoders.names import parse
from outword.encoders.onnx.fuse import fuse_quick_gelu
from outword.encoders.torch.open_clip import find
from outword.errors import ArtifactError, InputError, MissingExtraError, OutwordError, ParameterError
from outword.testing import check_encoder
from outword.vectors import wild

KINDS = list(OPEN_CLIP)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One folder a model; the architectures are known to open_clip by name too."""
    root = tmp_path_factory.mktemp("models")
    for kind, config in OPEN_CLIP.items():
        open_clip_folder(kind, root / f"open_clip-{kind}")
        (root / f"tiny-{kind}.json").write_text(json.dumps(config))
        open_clip.add_model_config(root / f"tiny-{kind}.json")
    clip_folder(root / "clip")
    siglip_folder(root / "siglip")
    return root


def reference(name, folders):
    """(image features, text features, the encoder), the features by the library's own forward on padded ids."""
    encoder = get_encoder(f"hf:{folders / name}")
    if name.startswith("open_clip"):
        model = open_clip_model(name.partition("-")[2])
        ids = open_clip.get_tokenizer(f"local-dir:{folders / name}")(TEXTS)
        with torch.no_grad():
            return unit(model.encode_image(pixels_of(encoder, photos()))), unit(model.encode_text(ids)), encoder
    model, tokenizer = encoder_parts(name, folders)
    ids = tokenizer(
        TEXTS, padding="max_length", truncation=True, max_length=77 if name == "clip" else 16, return_tensors="pt"
    )
    with torch.no_grad():
        images = model.get_image_features(pixels_of(encoder, photos())).pooler_output
        return unit(images), unit(model.get_text_features(ids["input_ids"]).pooler_output), encoder


def encoder_parts(name, folders):
    from helpers.tiny import transformers

    model = transformers.AutoModel.from_pretrained(folders / name).eval()
    return model, transformers.AutoTokenizer.from_pretrained(folders / name)


ALL = [*(f"open_clip-{kind}" for kind in KINDS), "clip", "siglip"]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.filterwarnings("ignore:.*were cut")
def test_equals_the_librarys_own_forward(name, folders):
    images, texts, encoder = reference(name, folders)
    np.testing.assert_allclose(encoder.encode_images(photos()), images, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_texts(TEXTS), texts, atol=1e-5)
    assert encoder.dim == images.shape[1]


def test_known_tokens(folders):
    for name in ("open_clip-vit", "clip"):
        ids = get_encoder(f"hf:{folders / name}").model.tokenize(["a photo of a cat", "The nice DOG."])
        assert ids.shape == (2, 77)
        assert ids[0, :7].tolist() == [49406, 320, 1125, 539, 320, 2368, 49407]
        assert ids[1, :6].tolist() == [49406, 518, 1805, 1929, 269, 49407]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_weights_gives_what_the_folder_gives(kind, folders, tmp_path):
    model = open_clip_model(kind)
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    whole = get_encoder(f"hf:{folders}/open_clip-{kind}")
    named = [f"open_clip:tiny-{kind}@{folders}/open_clip-{kind}/open_clip_model.safetensors"]
    named.append(f"open_clip:tiny-{kind}@{tmp_path}/weights.pt")
    if kind == "siglip":  # its tokenizer is in the folder, and nowhere on a hub
        with pytest.raises(InputError, match=r"cannot fetch config\.json of words"):
            get_encoder(named[0])
        return
    for name in named:
        encoder = get_encoder(name)
        np.testing.assert_array_equal(encoder.encode_texts(TEXTS), whole.encode_texts(TEXTS))
        np.testing.assert_array_equal(encoder.encode_images(photos()), whole.encode_images(photos()))
    assert get_encoder(named[0]).fingerprint == whole.fingerprint
    assert get_encoder(named[1]).fingerprint != whole.fingerprint  # other bytes


@pytest.mark.filterwarnings("ignore:.*were cut")
@pytest.mark.parametrize("name", ["clip", "siglip"])
def test_weights_of_older_folders(name, folders, tmp_path):
    shutil.copytree(folders / name, tmp_path / name)
    (tmp_path / name / "model.safetensors").unlink()
    torch.save(encoder_parts(name, folders)[0].state_dict(), tmp_path / name / "pytorch_model.bin")
    old, new = get_encoder(f"hf:{tmp_path / name}"), get_encoder(f"hf:{folders / name}")
    np.testing.assert_array_equal(old.encode_texts(TEXTS), new.encode_texts(TEXTS))


@pytest.mark.filterwarnings("ignore:.*were cut")
@pytest.mark.parametrize("name", ALL)
def test_public_checks(name, folders):
    encoder = get_encoder(f"hf:{folders / name}")
    check_encoder(encoder)
    assert encoder.temperature == pytest.approx(float(np.exp(-encoder.model.module.logit_scale.item())))


@pytest.mark.parametrize("name", ALL)
def test_causal_towers_run_at_the_length_of_the_batch_and_others_do_not(name, folders, monkeypatch):
    encoder = get_encoder(f"hf:{folders / name}")
    lengths = []
    text = encoder.model.text
    object.__setattr__(encoder.model, "text", lambda ids: lengths.append(ids.shape[1]) or text(ids))
    encoder.encode_texts(["x", "ab"])
    encoder.encode_texts(["x"] * 64 + ["x y z"])
    object.__setattr__(encoder.model, "text", text)
    assert lengths == ([16] * 6 if "siglip" in name else [3, 3, 3, 3, 3, 5])


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("name", ["open_clip-vit", "open_clip-resnet", "clip", "siglip"])
def test_results_do_not_depend_on_the_batch(name, precision, folders):
    images = photos(9)
    sizes = [get_encoder(f"hf:{folders / name}", precision=precision, batch_size=size) for size in (1, 4, 9)]
    first, *rest = [encoder.encode_images(images) for encoder in sizes]
    for vectors in rest:
        np.testing.assert_array_equal(vectors, first)
    exact = get_encoder(f"hf:{folders / name}").encode_images(images)
    np.testing.assert_allclose(first, exact, atol=2e-2 if precision == "bf16" else 5e-3)
    short = ["a", "bc", "def"] * 30
    texts = sizes[0].encode_texts(short)
    np.testing.assert_array_equal(np.concatenate([sizes[0].encode_texts([text]) for text in short[:3]]), texts[:3])
    assert {encoder.fingerprint for encoder in sizes} == {get_encoder(f"hf:{folders / name}").fingerprint}


def test_out_of_memory_halves_the_batch(folders, monkeypatch):
    encoder = get_encoder(f"hf:{folders}/clip", batch_size=8)
    monkeypatch.setattr(encoder, "feels_batch", True)  # as on a GPU
    expected = encoder.encode_images(photos(9))
    image, seen = encoder.model.image, []

    def short_of_memory(pixels):
        seen.append(len(pixels))
        if len(pixels) > 2:
            raise torch.OutOfMemoryError("no more")
        return image(pixels)

    object.__setattr__(encoder.model, "image", short_of_memory)
    np.testing.assert_allclose(encoder.encode_images(photos(9)), expected, atol=1e-5)
    assert seen == [8, 4, 2, 2, 2, 2, 1]
    object.__setattr__(encoder.model, "image", lambda pixels: (_ for _ in ()).throw(torch.OutOfMemoryError()))
    with pytest.raises(ParameterError, match="not enough memory for one image"):
        encoder.encode_images(photos(1))
    object.__setattr__(encoder.model, "image", image)


@pytest.mark.parametrize("name", ["open_clip-vit", "clip"])
def test_an_image_is_the_same_with_its_patches(name, folders):
    encoder = get_encoder(f"hf:{folders / name}")
    vectors, patches = encoder.encode_images(photos(3), patches=True)
    assert patches.shape == (3, 16, encoder.dim)
    np.testing.assert_allclose(vectors, encoder.encode_images(photos(3)), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(patches, axis=2), 1, atol=1e-5)


def test_patches_of_a_resnet_equal_the_whole_where_the_map_is_constant(folders):
    encoder = get_encoder(f"hf:{folders}/open_clip-resnet", batch_size=3)
    visual = encoder.model.module.visual
    constant = visual.layer4.register_forward_hook(lambda *args: args[2].mean((2, 3), keepdim=True).expand_as(args[2]))
    kept = visual.attnpool.positional_embedding.data.clone()
    visual.attnpool.positional_embedding.data.zero_()
    vectors, patches = encoder.encode_images(photos(2), patches=True)
    constant.remove()
    visual.attnpool.positional_embedding.data.copy_(kept)
    assert patches.shape == (2, 4, encoder.dim)
    np.testing.assert_allclose(patches, np.repeat(vectors[:, None], 4, axis=1), atol=1e-5)


def test_other_towers_say_that_they_have_no_patches(folders):
    for name in ("mini", f"hf:{folders}/siglip", f"hf:{folders}/open_clip-siglip"):
        with pytest.raises(ParameterError, match="no patch vectors"):
            get_encoder(name).encode_images(photos(1), patches=True)
    vectors, patches = get_encoder(f"hf:{folders}/clip").encode_images([], patches=True)
    assert len(vectors) == len(patches) == 0


def test_bilinear_is_another_encoder(folders):
    own, other = (get_encoder(f"hf:{folders}/clip", resize=resize) for resize in (None, "bilinear"))
    assert (own.options, other.options) == ({}, {"resize": "bilinear"})
    assert own.fingerprint != other.fingerprint
    assert np.abs(own.preprocess(photos(1)[0]).astype(int) - other.preprocess(photos(1)[0])).max() > 1
    assert get_encoder(f"hf:{folders}/clip", resize="bicubic").fingerprint == own.fingerprint


@pytest.mark.parametrize(
    "name, words", [("open_clip-vit", 200), ("clip", 200), ("siglip", 17), ("open_clip-siglip", 17)]
)
def test_a_text_longer_than_the_context_is_cut_with_a_warning(name, words, folders):
    encoder = get_encoder(f"hf:{folders / name}")
    long, longer = "a " * words, "a " * (words + 50)
    with pytest.warns(UserWarning, match="1 of 2 texts are longer than the (77|16) tokens"):
        vectors = encoder.encode_texts([long, "a cat"])
    with pytest.warns(UserWarning, match="cut"):
        np.testing.assert_allclose(encoder.encode_texts([longer]), vectors[:1], atol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode_texts(["a " * 6, "a cat"])


def test_a_text_that_just_fits_is_not_said_to_be_cut(folders):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        get_encoder(f"hf:{folders}/clip").encode_texts(["a " * 75])
        get_encoder(f"hf:{folders}/open_clip-vit").encode_texts(["a " * 75])
        get_encoder(f"hf:{folders}/siglip").encode_texts(["abcdefghijklmno"])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"device": "cuda:99"}, "device 'cuda:99' cannot be used"),
        ({"device": "gpu"}, "device 'gpu' cannot be used"),
        ({"precision": "fp8"}, "precision must be"),
        ({"batch_size": -1}, "batch_size must be at least 1, got -1"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"resize": "nearest"}, "resize must be"),
    ],
)
def test_wrong_options(options, message, folders):
    with pytest.raises(ParameterError, match=message):
        get_encoder(f"hf:{folders}/clip", **options)


@pytest.mark.parametrize(
    "options", [{"device": "cuda"}, {"resize": "bilinear"}, {"precision": "fp16"}, {"batch_size": 2}]
)
def test_the_embedded_encoder_has_no_options(options):
    with pytest.raises(ParameterError, match="mini runs on the CPU as it is"):
        get_encoder("mini", **options)


def spoil(folder, name, change):
    """Write a changed JSON file."""
    values = json.loads((folder / name).read_text())
    change(values)
    (folder / name).write_text(json.dumps(values))


class Boom:
    """Unpickling this would run code."""

    def __reduce__(self):
        return (print, ("unpickled",))


def cut_short(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


BROKEN = {
    "truncated open_clip": ("open_clip-vit", lambda f: cut_short(f / "open_clip_model.safetensors"), "cannot be read"),
    "garbage open_clip": (
        "open_clip-vit",
        lambda f: (f / "open_clip_model.safetensors").write_bytes(b"junk"),
        "cannot be read",
    ),
    "empty open_clip": (
        "open_clip-vit",
        lambda f: (f / "open_clip_model.safetensors").write_bytes(b""),
        "cannot be read",
    ),
    "no projection in open_clip": (
        "open_clip-vit",
        lambda f: spoil(f, "open_clip_config.json", lambda c: c["model_cfg"].pop("embed_dim")),
        "has no embed_dim",
    ),
    "other width in open_clip": (
        "open_clip-vit",
        lambda f: spoil(f, "open_clip_config.json", lambda c: c["model_cfg"].update(embed_dim=12)),
        "does not fit",
    ),
    "unknown key in open_clip": (
        "open_clip-vit",
        lambda f: spoil(f, "open_clip_config.json", lambda c: c["model_cfg"].update(surprise=1)),
        "cannot be built",
    ),
    "config of open_clip is no JSON": (
        "open_clip-vit",
        lambda f: (f / "open_clip_config.json").write_text("{"),
        "open_clip_config.json cannot be read",
    ),
    "no weights in open_clip": (
        "open_clip-vit",
        lambda f: (f / "open_clip_model.safetensors").unlink(),
        "has no weights",
    ),
    "truncated hf": ("clip", lambda f: cut_short(f / "model.safetensors"), "cannot be loaded"),
    "no weights hf": ("clip", lambda f: (f / "model.safetensors").unlink(), "has no weights"),
    "no config": ("clip", lambda f: (f / "config.json").unlink(), "is no model"),
    "config is no JSON": ("clip", lambda f: (f / "config.json").write_text("{"), "config.json cannot be read"),
    "config is a list": ("clip", lambda f: (f / "config.json").write_text("[]"), "should hold a table"),
    "unknown type": (
        "clip",
        lambda f: spoil(f, "config.json", lambda c: c.update(model_type="nothing")),
        "cannot be loaded",
    ),
    "not an image-text model": (
        "clip",
        lambda f: spoil(f, "config.json", lambda c: (c.clear(), c.update(model_type="vit"))),
        "does not project",
    ),
    "other width": (
        "clip",
        lambda f: spoil(f, "config.json", lambda c: c.update(projection_dim=12)),
        "(do not fit|cannot be loaded)",
    ),
    "no preprocessing": ("clip", lambda f: (f / "preprocessor_config.json").unlink(), "no preprocessor_config.json"),
    "preprocessing is no JSON": (
        "clip",
        lambda f: (f / "preprocessor_config.json").write_text("["),
        "preprocessor_config.json cannot be read",
    ),
    "odd preprocessing": (
        "clip",
        lambda f: spoil(f, "preprocessor_config.json", lambda c: c.update(resample=0)),
        "is not supported",
    ),
    "no tokenizer": (
        "clip",
        lambda f: [
            (f / n).unlink()
            for n in ("tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json")
            if (f / n).exists()
        ],
        "has no tokenizer",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_folders_are_one_clear_line(case, folders, tmp_path):
    name, spoiler, message = BROKEN[case]
    shutil.copytree(folders / name, tmp_path / name)
    spoiler(tmp_path / name)
    with pytest.raises(OutwordError, match=message) as caught:
        get_encoder(f"hf:{tmp_path / name}")
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_pickles_are_not_unpickled(folders, tmp_path, capsys):
    torch.save({"state_dict": Boom()}, tmp_path / "evil.pt")
    with pytest.raises(InputError, match="holds more than weights, and is not unpickled"):
        get_encoder(f"open_clip:tiny-vit@{tmp_path}/evil.pt")
    shutil.copytree(folders / "clip", tmp_path / "clip")
    (tmp_path / "clip" / "model.safetensors").unlink()
    torch.save(Boom(), tmp_path / "clip" / "pytorch_model.bin")
    with pytest.raises(InputError, match="hold more than weights, and are not unpickled"):
        get_encoder(f"hf:{tmp_path}/clip")
    assert "unpickled\n" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "name, message, hint",
    [
        ("clip-vit-b16", 'unknown encoder "clip-vit-b16"', "clip-vit-b-16"),
        ("CLIP", "unknown encoder", "outword list encoders"),
        ("", "unknown encoder", "outword list encoders"),
        (None, "named by a string", "outword list"),
        ("open_clip:", "not whole", "open_clip:ARCH/TAG"),
        ("open_clip:ViT-B-16", "not whole", "open_clip:ARCH/TAG"),
        ("open_clip:ViT-B-16@", "not whole", "open_clip:ARCH/TAG"),
        ("open_clip:ViT-B-61/openai", "unknown architecture", "ViT-B-16"),
        ("open_clip:ViT-B-16/opnai", 'unknown weights of ViT-B-16 "opnai"', 'did you mean "openai"?'),
        ("open_clip:ViT-B-16@/no/such/file.safetensors", "is not a file", "open_clip:ARCH@"),
        ("open_clip:ViT-B-61@/dev/null", "unknown architecture", "ViT-B-16"),
        ("hf:", "not whole", "hf:ORG/NAME"),
        ("hf:/no/such/folder", "is not a folder", "hf:ORG/NAME"),
        ("onnx:", "not whole", "onnx:/path"),
    ],
)
def test_wrong_names(name, message, hint):
    with pytest.raises(OutwordError, match=message) as caught:
        get_encoder(name)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "name, module, extra",
    [
        ("open_clip:ViT-B-16/openai", "open_clip", "clip"),
        ("hf:{clip}", "transformers", "hf"),
        ("hf:{clip}", "torch", "hf"),
    ],
)
def test_a_missing_extra_is_one_line(name, module, extra, folders, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # import raises ImportError
    with pytest.raises(MissingExtraError, match=f"needs {module}") as caught:
        get_encoder(name.format(clip=folders / "clip"), batch_size=77)
    assert caught.value.hint == install(extra)


def test_torchvision_of_another_build_is_let_in():
    """A new process: the import of torchvision's own operators fails or not, the libraries must load."""
    code = "from outword.base.extras import require; require('open_clip'), require('transformers'); print('in')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "in\n", done.stderr


@pytest.fixture
def fitted(folders, tmp_path, words_file):
    detector = outword.fit(
        ["cat", "dog"],
        encoder=get_encoder(f"hf:{folders}/clip", resize="bilinear"),
        corpus=words_file,
        method="debiased",
        n_groups=3,
    )
    detector.save(tmp_path / "pets.outword")
    return detector


def test_a_detector_keeps_what_its_encoder_was(fitted, folders, tmp_path):
    path = tmp_path / "pets.outword"
    card = json.loads((path / "detector.json").read_text())["encoder"]
    assert card["name"] == f"hf:{folders}/clip"
    assert card["options"] == {"resize": "bilinear"}
    assert card["source"] == "a local folder"
    assert card["temperature"] == pytest.approx(0.07, abs=1e-3)
    loaded = outword.load(path, batch_size=2)
    assert loaded.encoder.batch_size == 2
    np.testing.assert_allclose(loaded.score(photos()), fitted.score(photos()), rtol=1e-4)


def test_a_detector_whose_encoder_has_moved(fitted, folders, tmp_path):
    shutil.copytree(folders / "clip", tmp_path / "moved")
    moved = outword.load(tmp_path / "pets.outword", encoder=f"hf:{tmp_path}/moved")
    np.testing.assert_allclose(moved.score(photos()), fitted.score(photos()), rtol=1e-5)
    other = outword.load(tmp_path / "pets.outword", encoder=f"hf:{folders}/open_clip-vit")
    with pytest.raises(ArtifactError, match="is another one"):
        other.score(photos())
    with pytest.raises(ParameterError, match="unknown encoder"):
        outword.load(tmp_path / "pets.outword", encoder="clipp")


def test_a_relative_path_means_the_same_elsewhere(folders, monkeypatch):
    monkeypatch.chdir(folders)
    assert get_encoder("hf:clip").name == f"hf:{folders}/clip"
    weights = "open_clip-vit/open_clip_model.safetensors"
    assert get_encoder(f"open_clip:tiny-vit@{weights}").name == f"open_clip:tiny-vit@{folders}/{weights}"


@pytest.mark.parametrize("name", RELATIVES)
def test_relatives_of_clip_equal_the_librarys_own_forward(name, folders, tmp_path):
    model, tokenizer = relative_folder(name, tmp_path, folders / "clip")
    encoder = get_encoder(f"hf:{tmp_path}")
    texts = ["the nice cat", "a dog", "abc"]
    given = tokenizer(texts, padding=True, return_tensors="pt")
    given.pop("token_type_ids", None)
    with torch.no_grad():
        wanted = [model.get_image_features(pixels_of(encoder, photos())), model.get_text_features(**given)]
    images, text = (unit(out if torch.is_tensor(out) else out.pooler_output) for out in wanted)
    np.testing.assert_allclose(encoder.encode_texts(texts), text, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_images(photos()), images, atol=1e-5)
    assert (encoder.model.end is not None) == RELATIVES[name][1]


@pytest.mark.parametrize("name", ["open_clip-vit", "clip"])
def test_threads_do_not_disturb_each_other(name, folders):
    encoder = get_encoder(f"hf:{folders / name}")
    texts = ["a", "a photo of a very old locomotive at the end of the line"]
    alone = [encoder.encode_texts([text]) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: encoder.encode_texts([texts[i % 2]]), range(200)))
    for i, vectors in enumerate(found):
        np.testing.assert_allclose(vectors, alone[i % 2], atol=1e-5)


def test_a_folder_never_runs_code_of_its_own(folders, tmp_path):
    shutil.copytree(folders / "clip", tmp_path / "clip")
    marker = tmp_path / "ran"
    (tmp_path / "clip" / "evil.py").write_text(f"open({str(marker)!r}, 'w')\nclass Config: pass\nclass Model: pass\n")
    spoil(
        tmp_path / "clip",
        "config.json",
        lambda c: c.update(model_type="evil", auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}),
    )
    code = f"from outword.encoders import get_encoder; get_encoder('hf:{tmp_path}/clip')"
    done = subprocess.run([sys.executable, "-c", code], input="y\ny\n", capture_output=True, text=True)
    assert "InputError" in done.stderr
    assert not marker.exists()


@pytest.mark.parametrize("size", [(640, 427), (451, 224), (227, 224), (500, 333), (90, 70)])
@pytest.mark.parametrize("name", ["clip", "siglip"])
def test_images_are_prepared_as_the_librarys_processor_does(name, size, folders):
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    kind = CLIPImageProcessorPil if name == "clip" else SiglipImageProcessorPil
    image = Image.fromarray(np.random.default_rng(0).integers(256, size=(*size[::-1], 3), dtype=np.uint8))
    encoder = get_encoder(f"hf:{folders / name}")
    theirs = np.asarray(kind.from_pretrained(folders / name)(image, return_tensors="np")["pixel_values"][0])
    assert np.abs(pixels_of(encoder, [image])[0].numpy() - theirs).max() < 3 / 255 / 0.25  # two levels


def test_the_newer_file_of_preprocessing_counts(folders, tmp_path):
    shutil.copytree(folders / "clip", tmp_path / "clip")
    old = json.loads((folders / "clip" / "preprocessor_config.json").read_text())
    (tmp_path / "clip" / "processor_config.json").write_text(json.dumps({"image_processor": {**old, "resample": 2}}))
    assert get_encoder(f"hf:{tmp_path}/clip").model.preprocess.interpolation == "bilinear"
    (tmp_path / "clip" / "processor_config.json").write_text(json.dumps({"processor_class": "CLIPProcessor"}))
    assert get_encoder(f"hf:{tmp_path}/clip", batch_size=1).model.preprocess.interpolation == "bicubic"


@pytest.mark.parametrize(
    "sizes", [{"size": 36, "crop_size": 32}, {"size": 36, "crop_size": {"height": 32, "width": 32}}]
)
def test_older_forms_of_sizes(sizes, folders, tmp_path):
    shutil.copytree(folders / "clip", tmp_path / "clip")
    spoil(tmp_path / "clip", "preprocessor_config.json", lambda c: c.update(sizes))
    assert get_encoder(f"hf:{tmp_path}/clip").model.preprocess == get_encoder(f"hf:{folders}/clip").model.preprocess


@pytest.mark.parametrize(
    "change",
    [
        {"do_resize": False},
        {"do_rescale": False},
        {"size": {"shortest_edge": 36, "longest_edge": 99}},
        {"size": {"shortest_edge": 30}},
        {"size": None},
        {"crop_size": {"height": 32, "width": 30}},
        {"do_center_crop": False},
        {"resample": "bicubic"},
        {"rescale_factor": None},
        {"rescale_factor": 1.0},
        {"image_std": [0, 0, 0]},
        {"image_std": [0.2, 0.2]},
        {"image_mean": None},
        {"image_mean": ["a", "b", "c"]},
        {"size": {"shortest_edge": 48}, "crop_size": {"height": 48, "width": 48}},
    ],
)
def test_preprocessing_that_cannot_be_followed_is_refused(change, folders, tmp_path):
    shutil.copytree(folders / "clip", tmp_path / "clip")
    spoil(tmp_path / "clip", "preprocessor_config.json", lambda c: c.update(change))
    with pytest.raises(OutwordError, match=r"not supported|three numbers|does not run") as caught:
        get_encoder(f"hf:{tmp_path}/clip")
    assert "\n" not in caught.value.message


def changed_vectors(folder):
    encoder = get_encoder(f"hf:{folder}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return encoder.fingerprint, encoder.encode_texts(["abcdefghijkl", "XYZ"])


@pytest.mark.parametrize(
    "name, file, change",
    [
        ("siglip", "tokenizer_config.json", lambda c: c.update(model_max_length=8)),
        ("siglip", "tokenizer.json", lambda c: c["model"]["vocab"].update(a=4, b=3)),
        ("open_clip-siglip", "tokenizer.json", lambda c: c["model"]["vocab"].update(a=4, b=3)),
    ],
)
def test_what_changes_vectors_changes_the_fingerprint(name, file, change, folders, tmp_path):
    shutil.copytree(folders / name, tmp_path / name)
    spoil(tmp_path / name, file, change)
    (before, old), (after, new) = changed_vectors(folders / name), changed_vectors(tmp_path / name)
    assert np.abs(old - new).max() > 1e-3
    assert before != after


def test_what_does_not_change_vectors_does_not_change_the_fingerprint(folders, tmp_path):
    shutil.copytree(folders / "clip", tmp_path / "clip")
    spoil(tmp_path / "clip", "config.json", lambda c: c.update(transformers_version="99", _name_or_path="there"))
    shutil.copy(folders / "clip" / "model.safetensors", tmp_path / "clip" / "model.fp16.safetensors")
    assert get_encoder(f"hf:{tmp_path}/clip").fingerprint == get_encoder(f"hf:{folders}/clip").fingerprint


def test_weights_in_parts(folders, tmp_path):
    model, tokenizer = encoder_parts("clip", folders)
    model.save_pretrained(tmp_path, max_shard_size="300KB")
    tokenizer.save_pretrained(tmp_path)
    shutil.copy(folders / "clip" / "preprocessor_config.json", tmp_path)
    parts = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(parts) > 1
    whole = get_encoder(f"hf:{folders}/clip").encode_texts(TEXTS)
    np.testing.assert_array_equal(get_encoder(f"hf:{tmp_path}").encode_texts(TEXTS), whole)
    parts[0].unlink()
    with pytest.raises(InputError, match="which its index names"):
        get_encoder(f"hf:{tmp_path}", batch_size=1)


def test_only_what_is_exact_is_fused(folders, tmp_path):
    """A norm between the activation and the second product stands in the way of folding factors into weights."""
    config = json.loads((folders / "open_clip-vit" / "open_clip_config.json").read_text())
    config["model_cfg"]["vision_cfg"].update(scale_fc=True, block_type="custom")
    plain = {k: v for k, v in config["model_cfg"].items() if k != "custom_text"}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = open_clip.CLIP(**json.loads(json.dumps(plain))).eval()
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, tmp_path / "open_clip_model.safetensors")
    encoder = get_encoder(f"hf:{tmp_path}")
    with torch.no_grad():
        wanted = unit(model.encode_image(pixels_of(encoder, photos())))
    np.testing.assert_allclose(encoder.encode_images(photos()), wanted, atol=1e-5)
    silu = [
        m for m in get_encoder(f"hf:{folders}/open_clip-vit").model.module.modules() if isinstance(m, torch.nn.SiLU)
    ]
    assert len(silu) == 4


def test_shared_weights_are_not_scaled_twice():
    class Block(torch.nn.Module):
        def __init__(self, shared=None):
            super().__init__()
            self.fc1, self.activation_fn, self.fc2 = torch.nn.Linear(4, 8), QuickGELU(), torch.nn.Linear(8, 4)
            self.fc1.weight = shared.fc1.weight if shared else self.fc1.weight

        def forward(self, x):
            return self.fc2(self.activation_fn(self.fc1(x)))

    class QuickGELU(torch.nn.Module):
        def forward(self, x):
            return x * torch.sigmoid(1.702 * x)

    first = Block()
    whole = torch.nn.Sequential(first, Block(first), Block())
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    before = whole(x)
    fuse_quick_gelu(whole)
    torch.testing.assert_close(whole(x), before, atol=1e-5, rtol=1e-5)
    assert [type(block.activation_fn).__name__ for block in whole] == ["QuickGELU", "QuickGELU", "SiLU"]


@pytest.mark.parametrize(
    "content, message",
    [
        ({}, "no weights by name"),
        ([1, 2], "cannot be read"),
        ({"state_dict": {}}, "no weights by name"),
        ({"a": torch.zeros(2)}, "does not fit"),
        ({"logit_scale": torch.zeros(())}, "does not fit"),
    ],
)
def test_odd_files_of_weights(content, message, folders, tmp_path):
    torch.save(content, tmp_path / "w.pt")
    with pytest.raises(InputError, match=message):
        get_encoder(f"open_clip:tiny-vit@{tmp_path}/w.pt")


def test_a_tag_whose_file_lies_elsewhere_keeps_what_the_tag_says(folders, tmp_path):
    """The file is of another size, which is said; the place is that of the tag."""
    parsed = parse("open_clip:ViT-H-14-quickgelu/dfn5b@/tmp/w.safetensors")
    assert (parsed.what, parsed.tag, parsed.file) == ("ViT-H-14-quickgelu", "dfn5b", "/tmp/w.safetensors")
    weights = folders / "open_clip-vit" / "open_clip_model.safetensors"
    place = find(parse(f"open_clip:ViT-B-16/openai@{weights}"))
    assert (place.quick_gelu, place.licence, place.weights) == (True, "MIT", weights)
    assert place.way["resize_mode"] == "shortest"
    with pytest.warns(UserWarning, match="differ in how images are prepared"):
        find(parse(f"open_clip:ViT-L-14@{weights}"))


def test_punctuation_that_is_cleaned_away_is_not_counted(folders):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        get_encoder(f"hf:{folders}/open_clip-siglip").encode_texts(["abcdefghijklmn" + " " * 9])


def test_settings_of_cudnn_are_left_alone(folders, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    encoder = get_encoder(f"hf:{folders}/clip")
    seen, image = [], encoder.model.image
    watch = lambda x: seen.append((torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32)) or image(x)  # noqa: E731
    object.__setattr__(encoder.model, "image", watch)
    encoder.encode_images(photos(1))
    object.__setattr__(encoder.model, "image", image)
    assert seen == [(True, False)]
    assert torch.backends.cudnn.deterministic


def test_cut_texts_of_a_corpus_are_said_once(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(wild, "CHUNK", 10)
    sentences = [["a" * 30] if i % 3 else ["ab"] for i in range(40)]
    with pytest.warns(UserWarning, match="26 of 40 texts are longer than the 16 tokens") as caught:
        wild.encode_words(get_encoder(f"hf:{folders}/siglip"), sentences)
    assert len(caught) == 1


@pytest.mark.parametrize(
    "images", ["photo.jpg", b"x", None, 3, np.zeros((4, 4, 3), np.uint8), Image.new("RGB", (4, 4))]
)
def test_a_single_image_is_a_slip(images):
    with pytest.raises(InputError, match="images must be a list"):
        get_encoder("mini").encode_images(images)


@pytest.mark.parametrize("texts", ["cat", None, 3, [None], [3], [b"cat"]])
@pytest.mark.parametrize("name", ["mini", "clip"])
def test_texts_are_a_list_of_strings(name, texts, folders):
    with pytest.raises(InputError, match=r"texts must be a list|a text must be a string"):
        get_encoder(name if name == "mini" else f"hf:{folders}/clip").encode_texts(texts)


@pytest.mark.parametrize("option", ["resize", "device", "precision", "batch_size"])
@pytest.mark.parametrize("value", [[], 2.5, True])
def test_options_of_a_wrong_type(option, value, folders):
    with pytest.raises(ParameterError, match=f"{option} must be"):
        get_encoder(f"hf:{folders}/clip", **{option: value})


def test_a_cache_that_is_full_costs_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "save_file", lambda *args: (_ for _ in ()).throw(SafetensorError("No space left")))
    with pytest.warns(UserWarning, match="the cache cannot be written"):
        arrays.write_arrays(tmp_path / "x.safetensors", {"vectors": np.zeros((1, 2), np.float32)})

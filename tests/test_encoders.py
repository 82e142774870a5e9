"""Encoders of open_clip and transformers: equal to the libraries' own forward, however they are saved and batched."""

import json
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

import outword
from outword.encoders import get_encoder
from outword.errors import ArtifactError, InputError, MissingExtraError, OutwordError, ParameterError
from outword.testing import check_encoder
from tiny import (
    OPEN_CLIP,
    TEXTS,
    clip_folder,
    open_clip,
    open_clip_folder,
    open_clip_model,
    photos,
    pixels_of,
    siglip_folder,
    unit,
)

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
    from tiny import transformers

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
        with pytest.raises(InputError, match="the tokenizer of tiny-siglip cannot be loaded"):
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
    assert lengths == ([16, 16, 16] if "siglip" in name else [3, 3, 5])


@pytest.mark.parametrize("precision, atol", [("fp32", 1e-5), ("fp16", 1e-3), ("bf16", 1e-2)])
@pytest.mark.parametrize("name", ["open_clip-vit", "open_clip-resnet", "clip", "siglip"])
def test_results_do_not_depend_on_the_batch(name, precision, atol, folders):
    images = photos(9)
    sizes = [get_encoder(f"hf:{folders / name}", precision=precision, batch_size=size) for size in (1, 4, 9)]
    first, *rest = [encoder.encode_images(images) for encoder in sizes]
    for vectors in rest:
        np.testing.assert_allclose(vectors, first, atol=atol)
    exact = get_encoder(f"hf:{folders / name}").encode_images(images)
    np.testing.assert_allclose(first, exact, atol=2e-2 if precision == "bf16" else 5e-3)
    short = ["a", "bc", "def"] * 30
    texts = sizes[0].encode_texts(short)
    np.testing.assert_allclose(
        np.concatenate([sizes[0].encode_texts([text]) for text in short[:3]]), texts[:3], atol=atol
    )
    assert {encoder.fingerprint for encoder in sizes} == {get_encoder(f"hf:{folders / name}").fingerprint}


def test_out_of_memory_halves_the_batch(folders, monkeypatch):
    encoder = get_encoder(f"hf:{folders}/clip", batch_size=8)
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


def test_patches_of_transformers_are_the_projected_tokens(folders):
    for name in ("open_clip-vit", "clip"):
        encoder = get_encoder(f"hf:{folders / name}")
        vectors, patches = encoder.encode_images(photos(3), patches=True)
        assert patches.shape == (3, 16, encoder.dim)
        np.testing.assert_allclose(vectors, encoder.encode_images(photos(3)), atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(patches, axis=2), 1, atol=1e-5)
        with torch.no_grad():
            x = pixels_of(encoder, photos(3))
            if name == "clip":
                model = encoder_parts(name, folders)[0]
                tokens = model.visual_projection(model.vision_model.post_layernorm(model.vision_model(x)[0]))[:, 1:]
            else:
                visual = open_clip_model("vit").visual
                grid = visual.forward_intermediates(x, indices=1, normalize_intermediates=True)["image_intermediates"][
                    0
                ]
                tokens = grid.flatten(2).transpose(1, 2) @ visual.proj
        np.testing.assert_allclose(patches, unit(tokens), atol=1e-5)


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
    "config is a list": ("clip", lambda f: (f / "config.json").write_text("[]"), "is no model"),
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
    with pytest.raises(InputError, match="cannot be loaded"):
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
    [("clip-vit-b-16", "open_clip", "clip"), ("hf:{clip}", "transformers", "hf"), ("hf:{clip}", "torch", "clip")],
)
def test_a_missing_extra_is_one_line(name, module, extra, folders, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # import raises ImportError
    with pytest.raises(MissingExtraError, match=f"needs {module}") as caught:
        get_encoder(name.format(clip=folders / "clip"), batch_size=77)
    assert caught.value.hint == f'pip install "outword[{extra}]"'


def test_torchvision_of_another_build_is_let_in():
    """A new process: the import of torchvision's own operators fails or not, the libraries must load."""
    code = "from outword.encoders.doors import need; need('open_clip', 'x'), need('transformers', 'x'); print('in')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "in\n", done.stderr


@pytest.fixture
def fitted(folders, tmp_path, words_file):
    detector = outword.fit(
        ["cat", "dog"], encoder=get_encoder(f"hf:{folders}/clip", resize="bilinear"), corpus=words_file, n_groups=3
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

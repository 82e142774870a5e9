"""The decoder of ZOC, on a small random network in the layout of the authors' checkpoint."""

from types import SimpleNamespace

import numpy as np
import pytest

import outword
from conftest import LABELS, PHOTOS
from helpers.tiny import word_tokenizer
from outword.base.extras import require
from outword.encoders import zoc_decoder
from outword.errors import InputError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
transformers = require("transformers")
LETTERS = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ.,"


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    config = transformers.BertGenerationConfig(
        vocab_size=60,
        hidden_size=1024,
        num_hidden_layers=1,
        num_attention_heads=16,
        intermediate_size=32,
        max_position_embeddings=16,
        is_decoder=True,
        add_cross_attention=True,
        initializer_range=0.2,  # so that captions differ
    )
    return transformers.BertGenerationDecoder(config).eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens")
    tokenizer = word_tokenizer()
    tokenizer.add_special_tokens({"bos_token": "<s>"})
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def file(network, tmp_path_factory):
    path = tmp_path_factory.mktemp("zoc") / "model.pt"
    table = {**network.state_dict(), "bert.embeddings.position_ids": torch.arange(16)[None]}
    del table["lm_head.decoder.bias"]
    torch.save({"net": table, "epoch": 3, "validation loss": torch.tensor(1.0)}, path)
    return path


def photos(n, dim=512):
    rng = np.random.default_rng(0)
    return [SimpleNamespace(vector=row) for row in rng.standard_normal((n, dim)).astype(np.float32)]


def slowly(network, tokenizer, vector, steps=9):
    """A photo and a token at a time, with positions written out, from a vector that is 10 long."""
    tokens, found = [tokenizer.bos_token_id], []
    raw = (10 * vector / np.linalg.norm(vector)).astype(np.float32)
    seen = torch.from_numpy(np.concatenate([raw, raw]))[None, None]
    while len(tokens) <= steps:
        with torch.no_grad():
            given = {"position_ids": torch.arange(len(tokens))[None], "attention_mask": torch.ones(1, len(tokens))}
            logits = network(input_ids=torch.tensor([tokens]), encoder_hidden_states=seen, **given).logits[0, -1]
        found += logits.argsort(descending=True)[:35].tolist()
        tokens.append(int(logits.argmax()))
    words = [tokenizer.decode([token], skip_special_tokens=True).strip() for token in found]
    return [*dict.fromkeys(filter(None, words))]


def test_words_are_those_of_the_greedy_caption(network, file, folder):
    some = photos(5)
    found = zoc_decoder(file, folder)(some)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert found == [slowly(network, tokenizer, photo.vector) for photo in some]
    assert len({tuple(words) for words in found}) == 5
    assert all(set(words) <= set(LETTERS) - {" "} for words in found)
    assert zoc_decoder(file, folder)([]) == []


def test_vectors_of_any_length_are_read_ten_long(file, folder):
    decoder, some = zoc_decoder(file, folder), photos(3)
    unit = [SimpleNamespace(vector=photo.vector / np.linalg.norm(photo.vector)) for photo in some]
    assert decoder(unit) == decoder(some)
    read = []
    decoder._network.register_forward_pre_hook(
        lambda module, args, given: read.append(given["encoder_hidden_states"]), with_kwargs=True
    )
    decoder(unit)
    np.testing.assert_allclose(read[0].norm(dim=-1), 10 * np.sqrt(2), rtol=1e-6)  # twice over


def test_words_go_on_behind_the_end_of_a_caption(file, folder, tmp_path):
    table = torch.load(file, weights_only=True)
    table["net"] = {name: value.clone() for name, value in table["net"].items()}
    end = transformers.AutoTokenizer.from_pretrained(folder).eos_token_id
    table["net"]["lm_head.bias"][end] = 1e4
    torch.save(table, tmp_path / "ends.pt")
    decoder, some = zoc_decoder(tmp_path / "ends.pt", folder), photos(5)
    read = []
    decoder._network.register_forward_pre_hook(
        lambda module, args, given: read.append(given["input_ids"].tolist()), with_kwargs=True
    )
    found = decoder(some)
    assert [tokens[1:] for tokens in read[-1]] == [[end] * 8] * 5
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert found == [slowly(decoder._network, tokenizer, photo.vector) for photo in some]
    assert found != [slowly(decoder._network, tokenizer, photo.vector, steps=1) for photo in some]


def test_a_detector_takes_its_words(file, folder):
    made = outword.fit(LABELS, method="zoc").with_words(zoc_decoder(file, folder))
    told = made.explain(PHOTOS / "cat.jpg", top=50)
    assert -1 <= told.score < 0
    assert {word for word, _ in told.words} <= set(LETTERS)


def test_what_cannot_be_a_decoder(file, folder, tmp_path):
    with pytest.raises(InputError, match=r"reads vectors of 512 numbers, got 768. hint: .*ViT-B/32"):
        zoc_decoder(file, folder)(photos(1, 768))
    with pytest.raises(InputError, match="nowhere is no folder"):
        zoc_decoder(file, tmp_path / "nowhere")
    with pytest.raises(InputError, match="cannot be read"):
        zoc_decoder(tmp_path / "none.pt", folder)
    table = torch.load(file, weights_only=True)["net"]
    for net, message in [
        (None, "has no weights under net"),
        ({"a": torch.zeros(1)}, "is no BertGenerationDecoder"),
        ({name: value[..., :128] for name, value in table.items()}, r"must be 1024 numbers wide, .* got 128"),
        ({name: value for name, value in table.items() if "crossattention" not in name}, "does not fit its own shapes"),
    ]:
        torch.save({"net": net}, tmp_path / "wrong.pt")
        with pytest.raises(InputError, match=message) as error:
            zoc_decoder(tmp_path / "wrong.pt", folder)
        assert "\n" not in str(error.value)
    torch.save({"net": slowly}, tmp_path / "code.pt")
    with pytest.raises(InputError, match="holds more than weights, and is not unpickled"):
        zoc_decoder(tmp_path / "code.pt", folder)
    plain = tmp_path / "plain"
    word_tokenizer().save_pretrained(plain)
    with pytest.raises(InputError, match="has no token for the beginning"):
        zoc_decoder(file, plain)

"""CIRPLANT and TIRG as networks and as methods: arithmetic, words, first weights of a BERT or an OSCAR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from submissions.errors import CheckpointError

pytest.importorskip("torch", reason="needs the extra `retrieval`")
pytest.importorskip("transformers", reason="needs the extra `retrieval`")

import torch
from benchmark_world.encoders import DIMENSIONS, PlainEncoder
from benchmark_world.heads import context, turn
from retrieval_models import save_bert
from torch import nn

from submissions.methods.cirplant import Cirplant, Tirg
from submissions.methods.heads.bert_folders import read_bert_folder
from submissions.methods.heads.checkpoints import save_head
from submissions.methods.heads.composition import CirplantNetwork, TirgNetwork, composed_vectors, trimmed
from submissions.methods.heads.wordpieces import (
    POSITIONS,
    TOKENIZER,
    read_captions,
    tokenizer_of,
    vocabulary,
)

pytestmark = pytest.mark.usefixtures("one_thread")

CAPTIONS = ["a red star", "a red star and a moon", "a moon"]
WORDS = vocabulary(CAPTIONS)
BERT = {
    "vocab_size": len(WORDS),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": POSITIONS,
}


def network(**options: Any) -> CirplantNetwork:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return CirplantNetwork(DIMENSIONS, BERT, **options).eval()


def images(count: int) -> Any:
    return np.random.default_rng(2).standard_normal((count, DIMENSIONS)).astype(np.float32)


def test_words_said_twice_are_the_vocabulary_in_any_order() -> None:
    assert list(WORDS) == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "moon", "red", "star"]
    assert vocabulary(CAPTIONS[::-1]) == WORDS
    read = read_captions(tokenizer_of(WORDS), ["A red MOON, and", "star " * 60])
    assert read.shape == (2, 40)
    assert read[0, :8].tolist() == [2, 5, 7, 6, 1, 1, 3, 0]
    assert read[1].tolist() == [2, *[8] * 38, 3]  # cut at 40, the last one kept


@pytest.mark.parametrize("normalised", [False, True])
def test_the_image_is_one_token_without_position_or_segment(normalised: bool) -> None:
    """Against BertModel itself, given embeddings from which position and segment were taken off before."""
    from transformers import BertModel

    net = network(normalised_input=normalised)
    tokens = torch.from_numpy(read_captions(tokenizer_of(WORDS), CAPTIONS))
    read, seen = tokens != 0, torch.from_numpy(images(3))
    with torch.inference_mode():
        found = net(seen, tokens, read)
        whole = BertModel(net.bert.config, add_pooling_layer=False).eval()
        whole.load_state_dict(net.bert.state_dict())
        image = nn.functional.linear(
            torch.cat([seen, torch.zeros(3, 6)], 1), net.projection.weight, net.projection.bias
        )
        if normalised:
            image = image / image.norm(dim=1, keepdim=True)
        states = torch.cat([whole.embeddings(tokens), image[:, None]], 1)
        attended = torch.cat([read, torch.ones(3, 1, dtype=torch.bool)], 1)
        mask = torch.zeros(3, 1, 41, 41).masked_fill(~attended[:, None, None], -1e30)
        wanted = whole.encoder(states, attention_mask=mask).last_hidden_state[:, 40]
    assert found.shape == (3, 16)
    assert torch.allclose(found, wanted, atol=1e-5)


def test_columns_of_padding_change_nothing() -> None:
    net, tokens = network(), read_captions(tokenizer_of(WORDS), CAPTIONS)
    short, read = trimmed(tokens, 0, torch.device("cpu"))
    assert short.shape == (3, 8)
    with torch.inference_mode():
        padded = net(torch.from_numpy(images(3)), torch.from_numpy(tokens), torch.from_numpy(tokens != 0))
        assert torch.allclose(net(torch.from_numpy(images(3)), short, read), padded, atol=1e-5)


def test_the_reference_has_dropout_and_the_gallery_has_none() -> None:
    net = network().train()
    for module in net.bert.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    net.bert.config.attention_probs_dropout_prob = 0.0
    for layer in net.bert.encoder.layer:
        layer.attention.self.dropout.p = 0.0
    tokens = torch.from_numpy(read_captions(tokenizer_of(WORDS), CAPTIONS[:1])[:, :5])
    seen = torch.from_numpy(images(1))
    made = [net(seen, tokens, tokens != 0) for _ in range(2)]
    assert not torch.equal(*made)
    assert torch.equal(net.project(seen), net.project(seen))
    assert net.dropout.p == 0.3
    assert float(net.scale.detach()) == 4.0


def test_tirg_is_its_formula() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        net = TirgNetwork(DIMENSIONS, len(WORDS), 8).eval()
    tokens = torch.tensor([[2, 5, 7, 3, 0, 0], [2, 6, 3, 0, 0, 0]])
    seen = torch.from_numpy(images(2))
    with torch.inference_mode():
        found = net(seen, tokens, tokens != 0)
        x = net.projection(seen)
        # The states at the last words: what stands behind these is not read.
        last = [
            net.lstm(net.words(tokens[row : row + 1, :length]))[0][0, -1] for row, length in ((0, 4), (1, 3))
        ]
        t = net.text[1](torch.stack(last))
        both = torch.cat([x, t], 1)
        gate = 1 / (1 + torch.exp(-net.gate[2](torch.relu(net.gate[0](both)))))
        inner = torch.relu(net.residual[2](torch.relu(net.residual[0](both))))
        wanted = 1.0 * gate * x + 10.0 * net.residual[4](inner)
    assert torch.allclose(found, wanted, atol=1e-5)


def test_a_bert_of_transformers_is_what_it_begins_with(tmp_path: Path) -> None:
    tensors = save_bert(tmp_path / "bert", BERT, WORDS)
    begun, net = read_bert_folder(tmp_path / "bert"), network()
    before = net.projection.weight.clone()
    assert "it has no layer for images" in begun.fill(net)
    assert torch.equal(net.projection.weight, before)
    for name, value in net.bert.state_dict().items():
        assert torch.equal(value, tensors[f"bert.{name}"])
    assert {name: begun.settings[name] for name in BERT} == BERT


def test_an_oscar_brings_its_layer_for_images(tmp_path: Path) -> None:
    tensors = save_bert(tmp_path / "oscar", BERT, WORDS, image_size=DIMENSIONS + 6)
    net = network()
    assert "begins with its layer for images" in read_bert_folder(tmp_path / "oscar").fill(net)
    assert torch.equal(net.projection.weight, tensors["bert.img_embedding.weight"])
    norm = net.bert.state_dict()["embeddings.LayerNorm.weight"]
    assert torch.equal(norm, tensors["bert.embeddings.LayerNorm.weight"])


def test_an_oscar_of_other_regions_leaves_the_projection_and_says_so(tmp_path: Path) -> None:
    save_bert(tmp_path / "oscar", BERT, WORDS, image_size=2054)
    said = read_bert_folder(tmp_path / "oscar").fill(network())
    assert "takes 2,054 numbers and this encoder gives 18" in said


@pytest.mark.parametrize("name", ["cirplant", "tirg"])
@pytest.mark.parametrize("damage", ["other words", "no words"])
def test_weights_with_the_words_of_another_training_are_refused(
    tmp_path: Path, damage: str, name: str
) -> None:
    """The same words in another order would rank, and otherwise."""
    encoder, sizes = PlainEncoder(), {"vector_size": DIMENSIONS, "bert": BERT}
    tokenizer_of(WORDS).save_pretrained(tmp_path)
    net: Any = network()
    if name == "tirg":
        sizes = {"vector_size": DIMENSIONS, "vocabulary": len(WORDS), "hidden_size": 8}
        net = TirgNetwork(**sizes)
    training = {"init": None}
    save_head(tmp_path, name, net, sizes=sizes, encoder=encoder.identity, training=training, beside=TOKENIZER)
    method = {"cirplant": Cirplant, "tirg": Tirg}[name](tmp_path)
    assert "head" in str(method.method(encoder).backbone)
    words = {word: number for number, word in enumerate(reversed(WORDS))}
    if damage == "no words":
        (tmp_path / "tokenizer.json").unlink()
    else:
        tokenizer_of(words).save_pretrained(tmp_path)
    expected = (
        "no such file. Fix: get the whole" if damage == "no words" else "so that it is of another training"
    )
    with pytest.raises(CheckpointError, match=expected):
        type(method)(tmp_path).method(encoder)


@pytest.mark.parametrize("damage", ["config", "weights", "tokenizer", "layer", "code"])
def test_folders_that_cannot_be_used_are_refused(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "bert"
    save_bert(folder, BERT, WORDS, image_size=DIMENSIONS + 6)
    weights = folder / "pytorch_model.bin"
    if damage == "config":
        (folder / "config.json").write_text("{}", encoding="utf-8")
    elif damage == "weights":
        weights.unlink()
    elif damage == "tokenizer":
        (folder / "vocab.txt").unlink()
    elif damage == "layer":
        held = torch.load(weights, weights_only=True)
        torch.save({name: value for name, value in held.items() if "layer.1." not in name}, weights)
    else:
        torch.save({"bert": Path("code")}, weights)
    words = {
        "config": "lacks vocab_size",
        "weights": "holds neither model.safetensors nor pytorch_model.bin",
        "tokenizer": "no tokenizer is in it",
        "layer": "weights of its BERT are missing or of another shape",
        "code": "not a file of weights alone",
    }
    with pytest.raises(CheckpointError) as refused:
        read_bert_folder(folder).fill(network())
    assert words[damage] in str(refused.value)
    assert "Fix:" in str(refused.value)


def test_the_method_ranks_in_the_networks_space(tmp_path: Path) -> None:
    net, encoder = network(), PlainEncoder()
    sizes = {"vector_size": DIMENSIONS, "bert": BERT}
    tokenizer_of(WORDS).save_pretrained(tmp_path / "head")
    made_by: dict[str, Any] = {"sizes": sizes, "encoder": encoder.identity, "training": {"init": None}}
    save_head(tmp_path / "head", "cirplant", net, beside=TOKENIZER, **made_by)
    method = Cirplant(tmp_path / "head")
    world = context(encoder, tmp_path / "store")
    world.project = method.project
    ids = list(world.gallery.ids)
    asked = [turn(ids[0], "a red star"), turn(ids[1]), turn(None, "a moon"), turn(None)]
    made = method.compose(asked, world)
    assert made.shape == (4, 16)
    assert world.dimensions == 16
    vectors = np.stack([world.gallery.vectors[0], world.gallery.vectors[1], np.zeros(DIMENSIONS, np.float32)])
    tokens = read_captions(tokenizer_of(WORDS), ["a red star", "", "a moon"])
    assert np.allclose(made[:3], composed_vectors(net, vectors, tokens, 0, 8), atol=1e-5)
    assert not made[3].any()
    assert np.allclose(np.linalg.norm(world.ranked, axis=1), 1.0, atol=1e-5)
    zeros = np.zeros((1, DIMENSIONS), dtype=np.float32)
    assert not world.projected(zeros).any()  # a skipped image stays nothing

"""Concat, Pic2Word and MagicLens with tiny random weights: what they compute, by plain readings of it."""

from __future__ import annotations

import json
import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cir_datasets
from cir_datasets.rows.benchmark import Benchmark
from submissions.errors import CheckpointError, EncoderError, MethodError, TruncationWarning
from submissions.methods.composing import Context

pytest.importorskip("torch", reason="needs the extra `retrieval`")
pytest.importorskip("transformers", reason="needs the extra `retrieval`")

import benchmark_world
import torch
from benchmark_world import heads as worlds
from benchmark_world.embeddings import shapes_pictures
from retrieval_models import save_clip, save_siglip
from torch import Tensor, nn
from transformers import CLIPImageProcessorPil, PreTrainedTokenizerFast

from submissions import make_rank_file
from submissions.encoders.loading import load_encoder
from submissions.encoders.magiclens import MagicLensConfig, MagicLensModel
from submissions.encoders.magiclens_fusion import Fusion
from submissions.methods import composer
from submissions.methods.concat import Concat
from submissions.methods.heads.checkpoints import file_sha256, save_head
from submissions.methods.heads.concat import ConcatHead, batch_softmax_loss, soft_triplet_loss
from submissions.methods.heads.features import features_of, text_features
from submissions.methods.heads.mapping_network import MappingNetwork
from submissions.methods.heads.pseudo_words import PseudoWords
from submissions.methods.magiclens import MagicLens
from submissions.methods.pic2word import Pic2Word
from submissions.training.triplets import load_triplets

NEAR: Any = {"atol": 2e-6, "rtol": 0.0}
CAPTION = "a red circle on sand"
DIMENSIONS, TOKEN = 24, 32


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("heads")


@pytest.fixture(scope="module")
def clip(root: Path) -> Any:
    return load_encoder(save_clip(root / "clip"))


@pytest.fixture(scope="module")
def context(root: Path, clip: Any) -> Context:
    return worlds.context(clip, root / "store")


def ids(context: Context) -> list[str]:
    return list(context.gallery.ids)


# Concat


@pytest.fixture(scope="module")
def concat(root: Path, clip: Any) -> Path:
    torch.manual_seed(4)
    sizes = {"vector_size": DIMENSIONS, "hidden_size": 7}
    return save_head(
        root / "concat",
        "concat",
        ConcatHead(**sizes),
        sizes=sizes,
        encoder=clip.identity,
        training={"benchmark": "cirr/train"},
    )


def test_a_colleague_can_read_what_was_saved(tmp_path: Path, clip: Any) -> None:
    sizes = {"vector_size": DIMENSIONS, "hidden_size": 7}
    before = os.umask(0o022)
    try:
        saved = save_head(
            tmp_path / "head", "concat", ConcatHead(**sizes), sizes=sizes, encoder=clip.identity, training={}
        )
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in saved.iterdir()}
    assert modes == {"config.json": 0o644, "model.safetensors": 0o644}


def perceptron(folder: Path, image: Any, text: Any) -> list[float]:
    """W2 relu(W1 [image; text] + b1) + b2, sum by sum."""
    from safetensors.numpy import load_file

    weights = {name: value.tolist() for name, value in load_file(folder / "model.safetensors").items()}
    values = [*image.tolist(), *text.tolist()]
    for number, last in ((0, False), (2, True)):
        rows, bias = weights[f"layers.{number}.weight"], weights[f"layers.{number}.bias"]
        values = [
            sum(weight * value for weight, value in zip(row, values, strict=True)) + add
            for row, add in zip(rows, bias, strict=True)
        ]
        values = values if last else [max(0.0, value) for value in values]
    return values


def test_concat_is_the_perceptron_of_both_vectors(context: Context, clip: Any, concat: Path) -> None:
    first = ids(context)[0]
    text = clip.encode_texts([CAPTION])[0]
    nothing = np.zeros(DIMENSIONS, dtype=np.float32)
    turns = [worlds.turn(first, CAPTION), worlds.turn(first), worlds.turn(None, CAPTION), worlds.turn(None)]
    made = composer("concat", checkpoint=str(concat)).compose(turns, context)
    image = context.gallery.vectors[0]
    wanted = worlds.length_1(
        [perceptron(concat, *pair) for pair in ((image, text), (image, nothing), (nothing, text))]
    )
    np.testing.assert_allclose(made[:3], wanted, **NEAR)
    assert made.dtype == np.float32
    assert not made[3].any()


def test_concat_says_which_head_answers(clip: Any, concat: Path) -> None:
    method = Concat(concat).method(clip)
    assert method.backbone is not None
    assert file_sha256(concat / "model.safetensors")[:12] in method.backbone
    assert clip.identity.text() in method.backbone
    assert method.zero_shot is False
    assert method.trained_on == ["cirr/train"]


def test_a_head_of_another_encoder_is_refused(root: Path, context: Context, concat: Path) -> None:
    other = load_encoder(save_clip(root / "other", seed=9))
    with pytest.raises(CheckpointError, match=r"trained on the encoder 'clip', and asked for with 'other'"):
        Concat(concat).method(other)


def test_losses_are_those_of_the_paper() -> None:
    generator = torch.Generator().manual_seed(0)
    alike = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    rivals = ~torch.eye(5, dtype=torch.bool)
    rivals[0, 3] = rivals[2, 1] = False
    triplet, softmax = [], []
    for row in range(5):
        others = [column for column in range(5) if rivals[row, column]]
        own = float(alike[row, row])
        triplet.append(
            sum(math.log(1 + math.exp(float(alike[row, other]) - own)) for other in others) / len(others)
        )
        whole = math.exp(own) + sum(math.exp(float(alike[row, other])) for other in others)
        softmax.append(-math.log(math.exp(own) / whole))
    assert float(soft_triplet_loss(alike, rivals)) == pytest.approx(sum(triplet) / 5, abs=1e-12)
    assert float(batch_softmax_loss(alike, rivals)) == pytest.approx(sum(softmax) / 5, abs=1e-12)


def test_rivals_are_the_targets_that_are_not_positives() -> None:
    examples = load_triplets("shapes/val")
    positives = {
        row["query_id"]: set(row["positive_image_ids"]) for row in cir_datasets.load("shapes/val").rows()
    }
    names = sorted(positives)
    rows = np.arange(0, len(examples.targets), 7)
    shown = [examples.picture_ids[target] for target in examples.targets[rows]]
    wanted = [[image not in positives[names[query]] for image in shown] for query in examples.queries[rows]]
    assert examples.rivals(rows).tolist() == wanted
    first = cir_datasets.load("shapes/val").rows()[0]
    assert examples.picture_ids[examples.references[0]] == first["reference_image_id"]
    assert examples.captions[examples.texts[0]] == first["relative_caption"]


# Pic2Word


@pytest.fixture(scope="module")
def mapping(root: Path, clip: Any) -> Path:
    torch.manual_seed(5)
    sizes = {"vector_size": DIMENSIONS, "token_size": TOKEN, "hidden_size": 9, "dropout": 0.4}
    return save_head(
        root / "pic2word",
        "pic2word",
        MappingNetwork(**sizes),  # type: ignore[arg-type]  # sizes are of two kinds
        sizes=sizes,
        encoder=clip.identity,
        training={"pictures": "a few shapes"},
    )


def mapped(network: MappingNetwork, vectors: Any) -> Tensor:
    with torch.inference_mode():
        return network.eval()(torch.from_numpy(np.array(vectors)))


def network_of(folder: Path) -> MappingNetwork:
    from safetensors.torch import load_file

    network = MappingNetwork(DIMENSIONS, TOKEN, 9)
    network.load_state_dict(load_file(folder / "model.safetensors"))
    return network


@pytest.mark.parametrize(
    ("captions", "texts"),
    [
        ([""], ["a photo of red"]),
        (["a blue circle", "sand"], ["a photo of red, a blue circle", "a photo of red, sand"]),
    ],
)
def test_the_embedding_of_a_word_as_pseudo_word_is_that_word(
    clip: Any, captions: list[str], texts: list[str]
) -> None:
    words = PseudoWords(clip)
    red = clip.tokenizer("red", add_special_tokens=False)["input_ids"]
    pseudo = words.token_embedding[red].expand(len(captions), -1)
    with torch.inference_mode():
        found = words.encode(pseudo, captions).numpy()
    np.testing.assert_allclose(found, clip.encode_texts(texts), **NEAR)


def test_a_caption_that_is_too_long_is_cut_and_told(clip: Any) -> None:
    words = PseudoWords(clip)
    pseudo = torch.zeros(2, TOKEN)
    with pytest.warns(TruncationWarning, match="1 of 2 texts are longer than the 16 tokens that clip reads"):
        words.warn_of_cuts(["sand", "red " * 30])
    words.warn_of_cuts(["sand"])
    found = words.encode(pseudo, ["sand", "red " * 30])
    again = words.encode(pseudo[:1], ["red " * 40])
    torch.testing.assert_close(found[1:], again)


@pytest.mark.parametrize("method", ["text_only", "pic2word"])
@pytest.mark.parametrize("sessions", [False, True], ids=["queries", "sessions"])
def test_a_run_tells_once_how_many_texts_were_cut(
    sessions: bool, method: str, clip: Any, mapping: Path, tmp_path: Path
) -> None:
    """Texts come in batches of two, and of sessions at each turn; the same text counts once."""
    captions = ["red " * 20, "a star", "blue " * 20, "red " * 20, "a moon", "green " * 30]
    small = benchmark_world.small_shapes()
    if sessions:
        gallery = list(small.gallery or ())
        turns = [[(image, said) for said in captions[place:]] for place, image in enumerate(gallery[:3])]
        benchmark = benchmark_world.sessions(turns, gallery)
    else:
        rows = [
            {**row, "captions": [said], "relative_caption": said}
            for row, said in zip(small.rows(), captions, strict=True)
        ]
        benchmark = Benchmark.from_rows(small.spec, rows, small.gallery)
    options: dict[str, Any] = {"checkpoint": mapping} if method == "pic2word" else {}
    if sessions:
        options["aggregation"] = "weighted"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_rank_file(
            benchmark, method, encoder=clip, store=tmp_path, batch_size=2, workers=0, k=5, **options
        )
    said = [str(each.message) for each in caught if each.category is TruncationWarning]
    assert said == ["3 of 5 texts are longer than the 16 tokens that clip reads, and were cut off there."]
    assert [each.filename for each in caught if each.category is TruncationWarning] == [__file__]


def test_pic2word_reads_the_reference_as_a_word(context: Context, clip: Any, mapping: Path) -> None:
    names = ids(context)
    turns = [
        worlds.turn(names[2], CAPTION),
        worlds.turn(names[3]),
        worlds.turn(None, CAPTION),
        worlds.turn(None),
        worlds.turn(names[2], "sand"),
    ]
    made = Pic2Word(mapping).compose(turns, context)
    pseudo = mapped(network_of(mapping), context.gallery.vectors[[2, 3, 2]])
    with torch.inference_mode():
        read = PseudoWords(clip).encode(pseudo, [CAPTION, "", "sand"]).numpy()
    np.testing.assert_allclose(made[[0, 1, 4]], read, **NEAR)
    np.testing.assert_allclose(made[2], clip.encode_texts([CAPTION])[0], **NEAR)
    assert not made[3].any()
    assert np.abs(read[0] - read[2]).max() > 1e-3


def test_pic2word_takes_the_mean_of_several_texts(
    root: Path, clip: Any, context: Context, mapping: Path
) -> None:
    both = worlds.context(clip, root / "store", rule="separate")
    reference = ids(both)[1]
    method = Pic2Word(mapping)
    mean = method.compose([worlds.turn(reference, "red", "sand")], both)[0]
    parts = method.compose([worlds.turn(reference, "red"), worlds.turn(reference, "sand")], context)
    np.testing.assert_allclose(mean, worlds.mean_of(parts), **NEAR)


def test_pic2word_needs_a_clip(root: Path, mapping: Path) -> None:
    siglip = load_encoder(save_siglip(root / "siglip"))
    with pytest.raises(EncoderError, match=r"siglip is of the family siglip\. Fix: use an encoder"):
        PseudoWords(siglip)


def published(clip: Any, network: MappingNetwork) -> dict[str, Any]:
    """A file in the layout of Pic2Word's authors: names after "module.", numbers of numpy inside."""
    places = {"0": "layers.0.0", "3": "layers.1.0", "6": "fc_out"}
    names = {
        f"module.{places[name.split('.')[1]]}.{name.split('.')[2]}": value
        for name, value in network.state_dict().items()
    }
    table = clip.model.text_model.embeddings.token_embedding.weight
    return {
        "epoch": 30,
        "name": "pic2word",
        "state_dict": {"module.token_embedding.weight": table.half()},
        "state_dict_img2text": names,
        "optimizer": {"param_groups": [{"lr": np.float64(1e-4)}]},
    }


def test_pic2word_reads_a_checkpoint_of_its_authors(root: Path, context: Context, clip: Any) -> None:
    torch.manual_seed(6)
    network = MappingNetwork(DIMENSIONS, TOKEN, 9)
    path = root / "pic2word.pt"
    torch.save(published(clip, network), path)
    method = Pic2Word(path)
    made = method.compose([worlds.turn(ids(context)[4], CAPTION), worlds.turn(None, "sand")], context)
    # Their network reads features as they come out of the image encoder.
    features = features_of(clip, shapes_pictures(), 5)
    assert abs(float(np.linalg.norm(features[4])) - 1.0) > 0.01
    with torch.inference_mode():
        read = PseudoWords(clip).encode(mapped(network, features[4:5]), [CAPTION]).numpy()
    np.testing.assert_allclose(made[:1], read, **NEAR)
    np.testing.assert_allclose(made[1], clip.encode_texts(["sand"])[0], **NEAR)
    backbone = method.method(clip).backbone
    assert backbone is not None
    assert f"mapping network {file_sha256(path)[:12]}" in backbone


class Harmful:
    """What must not be run when a file is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("was-run"),))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"state_dict_img2text": None}, "holds no state_dict_img2text"),
        (
            {"state_dict_img2text": {"module.fc_out.weight": torch.zeros(2, 2)}},
            "three fully connected layers",
        ),
        ({"state_dict": {"token_embedding.weight": torch.ones(45, TOKEN)}}, "other embeddings of words"),
        ({"name": Harmful()}, "not a file of weights alone"),
    ],
)
def test_other_files_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clip: Any,
    change: dict[str, Any],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "other.pt"
    torch.save({**published(clip, MappingNetwork(DIMENSIONS, TOKEN, 9)), **change}, path)
    with pytest.raises(CheckpointError, match=words):
        Pic2Word(path).method(clip)
    assert not (tmp_path / "was-run").exists()


def test_a_published_network_of_other_sizes_is_refused(tmp_path: Path, clip: Any) -> None:
    path = tmp_path / "large.pt"
    torch.save(published(clip, MappingNetwork(768, 768, 9)), path)
    with pytest.raises(
        CheckpointError, match=r"maps 768 dimensions to words of 768; this encoder has 24 and 32"
    ):
        Pic2Word(path).method(clip)


# MagicLens


@pytest.fixture(scope="module")
def lens_folder(root: Path, clip: Any) -> Path:
    folder = root / "lens"
    described = clip.model.config.to_dict()
    torch.manual_seed(7)
    config = MagicLensConfig(
        text_config=described["text_config"],
        vision_config=described["vision_config"],
        projection_dim=DIMENSIONS,
        fusion_layers=2,
        fusion_heads=4,
        fusion_feed_forward=20,
        empty_text_ids=list(clip.tokenizer("")["input_ids"]),
    )
    model = MagicLensModel(config)
    for name, weight in model.fusion.named_parameters():
        if weight.ndim > 1 or name.endswith("scale"):
            nn.init.normal_(weight, std=0.3)
    model.save_pretrained(folder)
    tokenizer: PreTrainedTokenizerFast = clip.tokenizer
    tokenizer.save_pretrained(folder)
    processor: CLIPImageProcessorPil = clip.image_processor
    processor.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def lens(lens_folder: Path) -> Any:
    return load_encoder(lens_folder)


@pytest.fixture(scope="module")
def lens_context(root: Path, lens: Any) -> Context:
    return worlds.context(lens, root / "store")


def attention(weights: dict[str, Any], name: str, turns: Any, tokens: Any, heads: int, factor: Any) -> Any:
    """Attention head by head, logits squashed into (-50, 50)."""

    def linear(part: str, rows: Any) -> Any:
        return rows @ weights[f"{name}.{part}.weight"].T + weights[f"{name}.{part}.bias"]

    asked, keys, values = linear("ask", turns), linear("key", tokens), linear("value", tokens)
    width = asked.shape[1] // heads
    parts = []
    for head in range(heads):
        columns = slice(head * width, (head + 1) * width)
        logits = (asked[:, columns] * factor / math.sqrt(width)) @ keys[:, columns].T
        capped = np.exp(50.0 * np.tanh(logits / 50.0))
        parts.append(capped / capped.sum(axis=1, keepdims=True) @ values[:, columns])
    return linear("out", np.concatenate(parts, axis=1))


def normed(weights: dict[str, Any], name: str, rows: Any) -> Any:
    middle, spread = rows.mean(axis=1, keepdims=True), rows.var(axis=1, keepdims=True)
    scaled = (rows - middle) / np.sqrt(spread + 1e-6)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def fused(model: Any, tokens: Any) -> Any:
    """The fusion of a query's tokens, layer by layer, in numpy."""
    weights = {name: value.double().numpy() for name, value in model.fusion.state_dict().items()}
    for layer in (f"layers.{number}" for number in range(2)):
        inside = normed(weights, f"{layer}.norm", tokens)
        tokens = tokens + attention(weights, f"{layer}.attention", inside, inside, 4, 1.0)
        hidden = normed(weights, f"{layer}.feed_forward.0", tokens)
        for number, last in ((1, False), (3, True)):
            name = f"{layer}.feed_forward.{number}"
            hidden = hidden @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
            hidden = hidden if last else np.maximum(hidden, 0.0)
        tokens = tokens + hidden
    factor = np.log1p(np.exp(weights["pool.scale"])) / math.log(2.0)
    pooled = attention(weights, "pool", weights["question"][0], tokens, 4, factor)
    return worlds.length_1(normed(weights, "pool_norm", pooled))[0]


def test_magiclens_fuses_reference_and_caption(lens_context: Context, lens: Any) -> None:
    names = ids(lens_context)
    turns = [
        worlds.turn(names[0], CAPTION),
        worlds.turn(None, CAPTION),
        worlds.turn(names[5]),
        worlds.turn(None),
    ]
    made = MagicLens("lens").compose(turns, lens_context)
    images = features_of(lens, shapes_pictures(), 5)
    texts = text_features(lens, [CAPTION, ""], 5)
    np.testing.assert_allclose(made[0], fused(lens.model, np.stack([images[0], texts[0]])), atol=1e-5)
    np.testing.assert_allclose(made[1], fused(lens.model, texts[:1]), atol=1e-5)
    np.testing.assert_allclose(made[1], lens.encode_texts([CAPTION])[0], **NEAR)
    # A question without a caption is the reference as the gallery has it.
    np.testing.assert_allclose(made[2], lens_context.gallery.vectors[5], **NEAR)
    np.testing.assert_allclose(made[2], fused(lens.model, np.stack([images[5], texts[1]])), atol=1e-5)
    assert not made[3].any()
    assert np.abs(made[0] - made[1]).max() > 1e-3


def test_magiclens_takes_the_mean_of_several_texts(root: Path, lens: Any, lens_context: Context) -> None:
    both = worlds.context(lens, root / "store", rule="separate")
    reference = ids(both)[1]
    method = MagicLens("lens")
    mean = method.compose([worlds.turn(reference, "red", "sand")], both)[0]
    parts = method.compose([worlds.turn(reference, "red"), worlds.turn(reference, "sand")], lens_context)
    np.testing.assert_allclose(mean, worlds.mean_of(parts), **NEAR)


def test_magiclens_folder_is_an_encoder_named_by_its_hash(lens: Any, lens_folder: Path) -> None:
    assert lens.identity.family == "magiclens"
    assert lens.identity.dimensions == DIMENSIONS
    method = MagicLens(str(lens_folder)).method(lens)
    assert (method.zero_shot, method.trained_on, method.backbone) == (True, [], "")
    assert lens.identity.revision[:12] in lens.identity.text()


def test_a_folder_without_the_fusion_is_refused(tmp_path: Path, lens_folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    for path in lens_folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    kept = {name: value for name, value in weights.items() if not name.startswith("fusion.pool")}
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EncoderError, match=r"weights of the model are not in its files, 'fusion\.pool"):
        load_encoder(tmp_path)


def test_magiclens_refuses_the_gallery_of_another_encoder(
    context: Context, clip: Any, lens_folder: Path
) -> None:
    method = MagicLens(str(lens_folder))
    with pytest.raises(CheckpointError, match=r"clip is of the family clip\. Fix: name a folder"):
        method.compose([worlds.turn(None, CAPTION)], context)
    with pytest.raises(MethodError, match=r"brings its own encoder, .*lens\. Fix: leave --encoder out"):
        make_rank_file("shapes/val", "magiclens", checkpoint=lens_folder, encoder="shapes")


def test_a_token_that_is_left_out_changes_nothing() -> None:
    torch.manual_seed(0)
    fusion = Fusion(8, layers=2, heads=2, feed_forward=12).eval()
    texts = torch.randn(3, 8)
    shown = torch.tensor([False, True, False])
    first, second = (fusion(torch.randn(3, 8), texts, shown) for _ in range(2))
    torch.testing.assert_close(first[~shown], second[~shown], rtol=0, atol=0)
    assert (first[shown] - second[shown]).abs().max() > 1e-3


# All three


@pytest.mark.parametrize("name", ["concat", "pic2word", "magiclens"])
def test_without_a_checkpoint_the_call_is_told_what_to_add(name: str) -> None:
    with pytest.raises(MethodError, match="Fix: add --checkpoint PATH"):
        composer(name)


def test_the_same_call_gives_the_same_vectors(
    context: Context, lens_context: Context, concat: Path, mapping: Path
) -> None:
    for method, where in (
        (Concat(concat), context),
        (Pic2Word(mapping), context),
        (MagicLens("lens"), lens_context),
    ):
        turns = [worlds.turn(image, CAPTION) for image in ids(where)]
        first, second = (method.compose(turns, where) for _ in range(2))
        assert first.shape == (len(turns), DIMENSIONS)
        assert first.tobytes() == second.tobytes()
        np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1.0, atol=1e-6)


def test_a_magiclens_folder_says_what_it_is(lens_folder: Path) -> None:
    described = json.loads((lens_folder / "config.json").read_text())
    assert described["model_type"] == "magiclens"
    assert described["fusion_heads"] == 4


@pytest.mark.parametrize("name", ["pic2word", "magiclens"])
def test_captions_that_are_cut_are_told_once(
    context: Context, lens_context: Context, mapping: Path, name: str
) -> None:
    method, where = (Pic2Word(mapping), context) if name == "pic2word" else (MagicLens("lens"), lens_context)
    long = ["red " * 20 + word for word in ("sand", "sky", "red", "blue", "large")]  # of several batches
    turns = [worlds.turn(ids(where)[0], text) for text in [*long, "sand"]]
    with pytest.warns(TruncationWarning) as caught:
        made = method.compose(turns, where)
    assert [str(each.message).split(" texts")[0] for each in caught] == ["5 of 6"]
    np.testing.assert_allclose(made[0], made[1], **NEAR)

"""Training CIRPLANT and TIRG: losses by hand, which negatives there are, the schedule, what is written."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cir_metrics.errors import CallError, UnknownNameError
from submissions.errors import CheckpointError

pytest.importorskip("torch", reason="needs the extra `retrieval`")
pytest.importorskip("transformers", reason="needs the extra `retrieval`")

import datasets_publishers as made
import torch
from benchmark_world.encoders import DIMENSIONS, PlainEncoder
from datasets_pictures import write_nlvr2
from retrieval_models import save_bert

from submissions.embeddings.store import EmbeddingStore
from submissions.methods.heads.checkpoints import load_head
from submissions.methods.heads.composition import CirplantNetwork, TirgNetwork
from submissions.methods.heads.wordpieces import TOKENIZER, load_tokenizer
from submissions.training import triplet_examples
from submissions.training.composition_training import train_composition, undecayed
from submissions.training.training_options import CirplantTraining, TirgTraining
from submissions.training.triplet_examples import TripletData
from submissions.training.triplet_loss import drawn_negatives, triplet_loss
from submissions.training.triplets import Examples
from submissions.training.validation import BestEpoch, Validation, main_recall

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning"),
]

QUERIES = [[3.0, 0.0], [0.0, 1.0]]
TARGETS = [[3.0, 4.0], [2.0, 1.0]]


@pytest.mark.parametrize(("squared", "power"), [(True, 2), (False, 1)])
def test_the_loss_is_the_mean_of_the_triplets_by_hand(squared: bool, power: int) -> None:
    """Distances on paper: own targets 4 and 2; query 0 to query 1 sqrt(10), query 1 to target 0 sqrt(18)."""
    queries, targets = torch.tensor(QUERIES), torch.tensor(TARGETS)
    pairs = (torch.tensor([0, 1]), torch.tensor([3, 0]))
    found = float(triplet_loss(queries, targets, torch.cat([targets, queries]), pairs, squared=squared))
    first = math.log(1 + math.exp(4**power - math.sqrt(10) ** power))
    second = math.log(1 + math.exp(2**power - math.sqrt(18) ** power))
    assert found == pytest.approx((first + second) / 2, rel=1e-5)


def test_a_batch_without_negatives_has_no_loss_and_a_gradient() -> None:
    queries = torch.tensor(QUERIES, requires_grad=True)
    pairs = drawn_negatives(torch.zeros(2, 2, dtype=torch.bool), 6)
    loss = triplet_loss(queries, torch.tensor(TARGETS), queries, pairs, squared=True)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss) == 0.0
    assert not queries.grad.any()


def test_equal_vectors_leave_the_plain_distance_a_finite_gradient() -> None:
    queries = torch.tensor(QUERIES, requires_grad=True)
    pairs = (torch.tensor([0]), torch.tensor([1]))
    triplet_loss(queries, queries.detach().clone(), queries, pairs, squared=False).backward()  # type: ignore[no-untyped-call]
    assert queries.grad is not None
    assert torch.isfinite(queries.grad).all()


images = st.integers(0, 9)


@given(
    st.lists(st.tuples(images, images, st.sets(images, max_size=5)), min_size=2, max_size=8),
    st.integers(0, 7),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_a_negative_is_never_of_the_own_subset(
    rows: list[tuple[int, int, set[int]]], triplets: int, composed: bool, seed: int
) -> None:
    """Neither as a target, nor as reference or target of another's composed query; and never a positive."""
    count = len(rows)
    pictures: Any = SimpleNamespace(ids=tuple(f"i{number}" for number in range(10)))
    numbers = np.arange(count, dtype=np.int64)
    examples = Examples(
        (pictures,),
        ["x"],
        np.array([reference for reference, _, _ in rows], dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.array([target for _, target, _ in rows], dtype=np.int64),
        numbers,
        tuple(f"q{number:02d}" for number in range(count)),
    )
    subsets = np.array([(n, image) for n, row in enumerate(rows) for image in row[2]], dtype=np.int64)
    data = TripletData(examples, numbers, subsets.reshape(-1, 2), 10)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        allowed = torch.from_numpy(data.allowed(numbers, composed=composed))
        queries, columns = drawn_negatives(allowed, triplets)
    for query, column in zip(queries.tolist(), columns.tolist(), strict=True):
        reference, target, _ = rows[column % count]
        own = rows[query][2] | {rows[query][1]}
        assert target not in own
        assert column % count != query
        if column >= count:
            assert composed
            assert reference not in own
    free = [row for row in range(count) if allowed[row].any()]
    if triplets:
        assert len(queries) == triplets * len(free)
    else:
        assert len(queries) == int(allowed.sum())


def test_the_two_decays_of_the_learning_rate() -> None:
    """529 batches and 300 epochs, as on CIRR: the code's ends at 1 - 299 / 158,700, the paper's near 0."""
    plans = {
        decay: CirplantTraining(benchmark="cirr/train", out=Path("head"), decay=decay).resolved(16_939)
        for decay in ("epoch", "step")
    }
    last = 300 * 529 - 1
    assert plans["epoch"].rate(last) == pytest.approx(1e-5 * (1 - 299 / 158_700))
    assert plans["epoch"].rate(528) == 1e-5
    assert plans["step"].rate(last) == pytest.approx(1e-5 / 158_700)
    assert "as the released code does" in plans["epoch"].log()
    assert "after every step, as the paper says" in plans["step"].log()
    rows = plans["step"].rows(7, 20)
    assert rows.shape == (32,)  # more than there are rows: drawn with replacement
    assert (plans["epoch"].rows(7, 20) == rows).all()


def test_recalls_of_a_tiny_world_by_hand() -> None:
    images = np.eye(4, dtype=np.float32)
    queries = np.array([[0.9, 0.5, 0.1, 0.0], [0.0, 0.1, 0.2, 0.9]], dtype=np.float32)
    one = np.array([1], dtype=np.int64)
    world = Validation(np.array([0, 3]), [one, one], [np.array([1, 2]), np.array([1, 2])], excluded=True)
    found = world.recalls(queries, images)
    assert found == {"recall@1": 0.5, "recall@10": 1.0, "recall_subset@1": 0.5}
    assert main_recall([world, world]) == "recall_subset@1"
    kept = Validation(np.array([0, 3]), [one, one], [one[:0], one[:0]], excluded=False)
    assert kept.recalls(queries, images) == {"recall@1": 0.0, "recall@10": 1.0}
    assert main_recall([world, kept]) == "recall@10"


@pytest.mark.parametrize("name", ["cirplant", "tirg"])
def test_biases_and_norms_have_no_weight_decay(name: str) -> None:
    """The rest are the weights of linear layers, of the LSTM and of the words."""
    bert = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    network: Any = CirplantNetwork(24, bert) if name == "cirplant" else TirgNetwork(24, 9, 8)
    free = set(undecayed(network))
    names = {each for each, _ in network.named_parameters()}
    assert free <= names
    flat = {each for each, value in network.named_parameters() if value.dim() < 2}
    assert free == flat  # biases, norms and scales; matrices are decayed
    assert {value.dim() for each, value in network.named_parameters() if each not in free} == {2}


def test_patience_ends_a_training_and_the_best_weights_stay() -> None:
    module, values = torch.nn.Linear(1, 1), iter([0.1, 0.4, 0.2, 0.4])
    watch = BestEpoch(lambda _: {"recall@10": next(values)}, "recall@10", patience=2)
    for step in range(1, 5):
        assert not watch.stopped
        module.weight.data.fill_(float(step))
        watch.look(module, step)
    assert watch.stopped
    assert (watch.best, watch.seen, float(watch.weights["weight"])) == (1, 4, 2.0)
    again = BestEpoch(lambda _: {}, "recall@10", patience=2)
    again.take_up(watch.state())
    assert (again.stopped, again.best, again.seen) == (True, 1, 4)


class ImagesOnly(PlainEncoder):
    """An encoder of images, as a ResNet is."""

    def encode_texts(self, texts: Any) -> Any:
        raise AssertionError("CIRPLANT reads the words itself")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A made-up CIRR, train and validation, and what a small training on it is called with."""
    for split in ("train", "val"):
        made.write_cirr_of_two_subsets(tmp_path / "home", split)
        write_nlvr2(tmp_path / "nlvr2", split, made.cirr_images(split))
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "home"))
    # Pictures are found by the paths of the CIRR that was prepared last, by another test's process, too.
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    return {
        "encoder": ImagesOnly(),
        "benchmark": "cirr/train",
        "hidden_size": 16,
        "epochs": 3,
        "epoch_steps": 2,
        "batch_size": 6,
        "learning_rate": 0.01,
        "device": "cpu",
        "images": tmp_path / "nlvr2",
        "store": EmbeddingStore(tmp_path / "store"),
    }


def run(folder: Path, world: dict[str, Any], composition: str = "cirplant", **options: Any) -> Any:
    options = world | options
    call = {name: options.pop(name) for name in ("store", "say", "save_seconds") if name in options}
    if composition == "tirg":
        return train_composition(TirgTraining(out=folder, **options), **call)
    sizes = {} if "init" in options else {"layers": 1, "heads": 2}
    return train_composition(CirplantTraining(out=folder, **(sizes | options)), **call)


def config(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["cirplant", "tirg"])
@pytest.mark.parametrize("recipe", ["code", "paper"])
def test_a_training_is_written_with_words_and_log(
    world: dict[str, Any], tmp_path: Path, name: str, recipe: str
) -> None:
    said: list[str] = []
    done = run(tmp_path / "a", world, composition=name, recipe=recipe, say=said.append)
    assert done.steps == 6
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    how = {"code": "as the released code does", "paper": "as the paper says"}[recipe]
    assert how in said[0]
    written = config(tmp_path / "a")
    assert (written["model_type"], written["training"]["decay"]) == (
        name,
        {"code": "epoch", "paper": "step"}[recipe],
    )
    head = load_head(tmp_path / "a", name, encoder=ImagesOnly().identity)
    scale = float(head.tensors["scale"])
    assert (scale == 1.0) == (recipe == "paper")
    assert run(tmp_path / "a", world, composition=name, recipe=recipe).resumed_at == 6
    with pytest.raises(CheckpointError, match="holds a training with other settings"):
        run(tmp_path / "a", world, composition=name, recipe=recipe, learning_rate=0.1)


def test_a_training_begins_with_an_oscars_weights_and_words(world: dict[str, Any], tmp_path: Path) -> None:
    words = {
        word: number
        for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "made", "up", "1", "2"])
    }
    sizes = {"vocab_size": len(words), "hidden_size": 8, "num_hidden_layers": 1}
    sizes |= {"num_attention_heads": 2, "intermediate_size": 8}
    tensors = save_bert(tmp_path / "oscar", sizes, words, image_size=DIMENSIONS + 6)
    said: list[str] = []
    options = {"hidden_size": None, "init": tmp_path / "oscar", "epochs": 1, "learning_rate": 1e-12}
    run(tmp_path / "a", world, say=said.append, **options)
    assert any("the projection begins with its layer for images" in line for line in said)
    head = load_head(tmp_path / "a", "cirplant", encoder=ImagesOnly().identity, beside=TOKENIZER)
    assert torch.allclose(head.tensors["projection.weight"], tensors["bert.img_embedding.weight"])
    for name in ("embeddings.word_embeddings.weight", "encoder.layer.0.output.dense.weight"):
        assert torch.allclose(head.tensors[f"bert.{name}"], tensors[f"bert.{name}"])
    assert load_tokenizer(tmp_path / "a").get_vocab() == words


def test_a_training_on_other_annotations_is_another_training(world: dict[str, Any], tmp_path: Path) -> None:
    run(tmp_path / "a", world, validation="cirr/val")

    def reworded(queries: list[dict[str, Any]]) -> None:
        queries[0]["caption"] = "made up anew"

    made.edit(tmp_path / "home/cirr/captions/cap.rc2.val.json", reworded)
    with pytest.raises(CheckpointError, match=r"holds a training with other settings .validation_data_hash"):
        run(tmp_path / "a", world, validation="cirr/val")
    made.edit(tmp_path / "home/cirr/captions/cap.rc2.train.json", reworded)
    with pytest.raises(CheckpointError, match=r"holds a training with other settings .data_hash"):
        run(tmp_path / "a", world, validation="cirr/val")


@pytest.mark.parametrize("name", ["cirplant", "tirg"])
def test_validation_keeps_the_best_epoch_and_may_end_early(
    world: dict[str, Any], tmp_path: Path, name: str
) -> None:
    said: list[str] = []
    options = {"composition": name, "validation": "cirr/val", "patience": 1, "epochs": 40}
    options |= {"together": 2}
    done = run(tmp_path / "a", world, say=said.append, **options)
    training = config(tmp_path / "a")["training"]
    values = [each["recall_subset@1"] for each in training["history"]]
    assert len(values) == len(said) - 1
    assert len(values) < 40  # of three queries none gets better for ever
    assert training["best"] == training["history"][values.index(max(values))]
    assert values[-1] <= max(values[:-1])
    assert done.steps == training["history"][-1]["step"] < training["steps"]
    again = run(tmp_path / "a", world, **options)
    assert (again.steps, again.resumed_at) == (done.steps, done.steps)


def test_what_is_held_out_is_not_trained_on(world: dict[str, Any]) -> None:
    data = triplet_examples.load_triplet_data("cirr/train", hold_out=0.34, images=world["images"])
    (measured,) = data.measured
    asked = measured.rows
    assert measured.examples is data.examples
    assert len(asked) == 1
    assert set(data.examples.queries[asked]).isdisjoint(data.examples.queries[data.rows])
    assert len(data.rows) == 2
    assert set(measured.captions).isdisjoint(data.said)


def test_triplets_of_a_reference_are_drawn_together(world: dict[str, Any]) -> None:
    data = triplet_examples.load_triplet_data("shapes/val", hold_out=0.5)
    places = np.arange(len(data.rows))
    found = data.beside(places, np.random.default_rng(0).integers(99, size=(len(places), 4)))
    assert found.shape == (len(places), 4)
    references = data.examples.references
    assert (references[found] == references[data.rows][:, None]).all()
    assert set(found.ravel()) <= set(data.rows)
    every = data.beside(places[:1], np.arange(50)[None])
    assert set(every.ravel()) == set(data.rows[references[data.rows] == references[data.rows[0]]])


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_trains_too(world: dict[str, Any], tmp_path: Path, precision: str) -> None:
    """By the CPU's autocast; there was no GPU to try."""
    done = run(tmp_path / "a", world, precision=precision)
    assert math.isfinite(done.last_loss)
    head = load_head(tmp_path / "a", "cirplant", encoder=ImagesOnly().identity)
    assert {value.dtype for value in head.tensors.values()} == {torch.float32}
    run(tmp_path / "b", world)
    assert (tmp_path / "a/model.safetensors").read_bytes() != (tmp_path / "b/model.safetensors").read_bytes()


@pytest.mark.parametrize("precision", [None, "float16"])
def test_a_training_that_was_stopped_ends_with_the_same_weights(
    world: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str | None
) -> None:
    options = {"validation": "cirr/val", "precision": precision, "save_seconds": 0.0}
    run(tmp_path / "whole", world, **options)
    looked = BestEpoch.look

    def stopped(watch: BestEpoch, module: Any, step: int) -> None:
        if step == 4:
            raise KeyboardInterrupt
        looked(watch, module, step)

    monkeypatch.setattr(BestEpoch, "look", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "again", world, **options)
    monkeypatch.setattr(BestEpoch, "look", looked)
    assert run(tmp_path / "again", world, **options).resumed_at == 4
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_triplets_without_a_negative_are_refused(world: dict[str, Any], tmp_path: Path) -> None:
    """All of one subset: the loss would be 0 at every step, and nothing learnt."""
    made.write_cirr(tmp_path / "home", "train")
    with pytest.raises(CallError, match="cirr/train: no query has a negative to learn from"):
        run(tmp_path / "a", world)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"decay": "never"}, UnknownNameError, "decay='never' is not a choice. Fix: use epoch or step."),
        ({"patience": 2}, CallError, "patience=2 and nothing to measure on"),
        ({"hold_out": 1.0}, CallError, "hold_out=1.0"),
        ({"validation": "cirr/train"}, CallError, "validation=cirr/train is trained on as well"),
        ({"hold_out": 0.5, "validation": "cirr/val"}, CallError, "hold_out and validation are both given"),
        ({"precision": "float64"}, CallError, "precision='float64' is not known"),
        ({"epochs": 0}, CallError, "epochs=0"),
        ({"triplets": -1}, CallError, "triplets=-1 is out of range"),
        ({"together": 0}, CallError, "together=0 is out of range"),
        ({"together": 4}, CallError, "together=4 and batch_size=6"),
        ({"hold_out": 0.01}, CallError, "hold_out=0.01 of 3 references is none"),
        ({"clip": -1.0}, CallError, "clip=-1.0; it is above 0"),
        ({"clip": float("nan")}, CallError, "clip=nan; it is above 0"),
        ({"heads": 5}, CallError, "heads divide hidden_size"),
    ],
)
def test_calls_that_train_nothing_are_refused(
    world: dict[str, Any], tmp_path: Path, options: dict[str, Any], error: type, words: str
) -> None:
    with pytest.raises(error) as refused:
        run(tmp_path / "a", world, **options)
    assert words in str(refused.value)
    assert not (tmp_path / "a").exists()

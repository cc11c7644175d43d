"""Every method that is registered: a card that is true of it, and valid rank files that never change."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmark_world import sessions, small_shapes
from benchmark_world.encoders import PlainEncoder
from retrieval_models import save_clip
from typer.main import get_command

import submissions
from cir_datasets import caption_rule_names
from leaderboard.cli import build
from submissions import make_rank_file
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.loading import load_encoder
from submissions.methods import method_names
from submissions.methods.card import MethodCard, method_card, method_cards, reranker_names
from submissions.methods.registry import class_of, composer_names, kind_of_class, scorer_names
from submissions.rank_file.model import RankFile

CARDS = Path(submissions.__file__).parent / "methods" / "cards"
KINDS = [*((name, "scorer") for name in scorer_names()), *((name, "composer") for name in composer_names())]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A checkpoint folder in Hugging Face format, with random weights."""
    torch = pytest.importorskip("torch", reason="needs the extra `retrieval`")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield save_clip(tmp_path_factory.mktemp("methods") / "clip")
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> EmbeddingStore:
    return EmbeddingStore(tmp_path_factory.mktemp("store"))


def concat(clip: Path, folder: Path) -> Path:
    from submissions.methods.heads.checkpoints import save_head
    from submissions.methods.heads.concat import ConcatHead

    sizes = {"vector_size": 24, "hidden_size": 64}
    identity = load_encoder(clip, device="cpu").identity
    return save_head(folder, "concat", ConcatHead(**sizes), sizes=sizes, encoder=identity, training={})


def pic2word(clip: Path, folder: Path) -> Path:
    from submissions.methods.heads.checkpoints import save_head
    from submissions.methods.heads.mapping_network import MappingNetwork

    sizes = {"vector_size": 24, "token_size": 32, "hidden_size": 8}
    identity = load_encoder(clip, device="cpu").identity
    network = MappingNetwork(**sizes)
    for weights in network.parameters():  # as torch starts them, all pictures become nearly the same word
        weights.data *= 20
    return save_head(folder, "pic2word", network, sizes=sizes, encoder=identity, training={})


def composition(name: str) -> Callable[[Path, Path], Path]:
    """A folder of CIRPLANT or TIRG, with the words of shapes."""

    def save(clip: Path, folder: Path) -> Path:
        from submissions.methods.heads.checkpoints import save_head
        from submissions.methods.heads.composition import COMPOSITIONS
        from submissions.methods.heads.wordpieces import POSITIONS, TOKENIZER, tokenizer_of, vocabulary

        words = vocabulary(["a red star and a large blue square"] * 2)
        bert = {"vocab_size": len(words), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
        own: dict[str, Any] = {
            "cirplant": {"bert": {**bert, "intermediate_size": 16, "max_position_embeddings": POSITIONS}},
            "tirg": {"vocabulary": len(words), "hidden_size": 16},
        }[name]
        sizes = {"vector_size": 24, **own}
        network = COMPOSITIONS[name](**sizes)
        for weights in network.parameters():  # as they start, the words hardly move the image
            weights.data *= 5
        tokenizer_of(words).save_pretrained(folder)
        identity = load_encoder(clip, device="cpu").identity
        return save_head(folder, name, network, sizes=sizes, encoder=identity, training={}, beside=TOKENIZER)

    return save


def magiclens(clip: Path, folder: Path) -> Path:
    from transformers import CLIPModel

    from submissions.encoders.magiclens import MagicLensConfig, MagicLensModel

    encoder: Any = load_encoder(clip, device="cpu")
    described = CLIPModel.from_pretrained(clip).config.to_dict()
    parts = {name: described[name] for name in ("text_config", "vision_config", "projection_dim")}
    config = MagicLensConfig(
        **parts,
        fusion_layers=1,
        fusion_heads=2,
        fusion_feed_forward=16,
        empty_text_ids=list(encoder.tokenizer("")["input_ids"]),
    )
    MagicLensModel(config).save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
    encoder.image_processor.save_pretrained(folder)
    return folder


CHECKPOINTS: dict[str, Callable[[Path, Path], Path]] = {
    "concat": concat,
    "pic2word": pic2word,
    "magiclens": magiclens,
    "cirplant": composition("cirplant"),
    "tirg": composition("tirg"),
}
"""How a checkpoint with random weights is made, for every method that needs one."""


@pytest.fixture(scope="module")
def options(clip: Path, store: EmbeddingStore, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What `make_rank_file` is given to run a method here."""
    made: dict[str, dict[str, Any]] = {}

    def given(name: str, kind: str) -> dict[str, Any]:
        if kind == "scorer":
            return {}
        if name not in made:
            needs = class_of(name, "composer").needs
            own = {"store": store, "workers": 0, "encoder": PlainEncoder()}
            if "language" in needs:
                own["language"] = "oracle"
            if "checkpoint" in needs:
                own["checkpoint"] = CHECKPOINTS[name](clip, tmp_path_factory.mktemp(name))
                own |= {"encoder": None if name == "magiclens" else str(clip), "device": "cpu"}
            made[name] = own
        return made[name]

    return given


@pytest.mark.parametrize("config", ["val", "multiturn_val"])
@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_a_method_hands_in_a_valid_file_and_the_same_one_again(
    options: Any, name: str, kind: str, config: str
) -> None:
    benchmark = small_shapes(config, rows=4)
    made: RankFile = make_rank_file(benchmark, name, **options(name, kind))
    assert submissions.validate(made, benchmark).findings == ()
    read = submissions.read(made.to_json())
    assert isinstance(read, RankFile)
    assert (read.method, dict(read.rankings)) == (made.method, dict(made.rankings))
    report = submissions.score(made, benchmark)
    assert report.submittable
    assert make_rank_file(benchmark, name, **options(name, kind)).to_json() == made.to_json()


@pytest.mark.parametrize("config", ["val", "multiturn_val"])
@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_a_method_is_ranked_anew(options: Any, name: str, kind: str, config: str) -> None:
    benchmark, given = small_shapes(config, rows=3), options(name, kind)
    again = {
        "rerank": "sc4cir",
        "rerank_top": 4,
        "rerank_encoder": PlainEncoder("words"),
        "language": "oracle",
    }
    before, made = (make_rank_file(benchmark, name, **given | more) for more in ({}, again))
    assert submissions.validate(made, benchmark).findings == ()
    assert made.method.reranking.endswith("; 3 of 3 ranked anew")
    for key, whole in made.rankings.items():
        last, was = (
            (whole[-1], before.rankings[key][-1]) if "multi" in config else (whole, before.rankings[key])
        )
        assert (sorted(last[:4]), last[4:]) == (sorted(was[:4]), was[4:])


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_a_method_says_who_it_is(options: Any, name: str, kind: str) -> None:
    card, benchmark = method_card(name), small_shapes("multiturn_val", rows=2)
    described = make_rank_file(benchmark, name, **options(name, kind)).method
    assert described.name.split(" (")[0] == card.title
    assert described.backbone
    assert described.zero_shot is not None
    assert described.notes
    assert described.aggregation
    assert described.paper == card.paper
    reads_words = "captions" in card.reads
    assert bool(described.text_fields) == reads_words
    assert (described.caption_rule in caption_rule_names()) == reads_words


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_turns_without_reference_or_caption_are_legal(options: Any, name: str, kind: str) -> None:
    gallery = [f"val-{number:06d}" for number in range(20)]
    turns = [[(None, "a red star"), (gallery[0], None)], [(None, None), (gallery[1], "a blue moon")]]
    benchmark = sessions(turns, gallery)
    made = make_rank_file(benchmark, name, **options(name, kind))
    assert submissions.validate(made, benchmark).findings == ()


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_a_method_reads_what_its_card_says(options: Any, name: str, kind: str) -> None:
    """Other references, or other captions, change the answers of those that read them and of no others."""
    gallery = [f"val-{number:06d}" for number in range(20)]
    asked = [(gallery[0], "a red star"), (gallery[5], "a red star"), (gallery[0], "a large blue square")]
    first, other_reference, other_words = (
        make_rank_file(
            sessions([[turn]], gallery), name, aggregation="latest", **options(name, kind)
        ).rankings["s0"][0]
        for turn in asked
    )
    reads = method_card(name).reads
    assert (first != other_reference) == ("reference" in reads)
    assert (first != other_words) == ("captions" in reads)


@pytest.mark.parametrize("card", method_cards(), ids=lambda card: card.name)
def test_a_card_is_true_of_its_class(card: MethodCard) -> None:
    kinds = {kind for name, kind in KINDS if name == card.name}
    assert ("none" in card.encoders) == ("scorer" in kinds)
    assert bool(set(card.encoders) - {"none"}) == ("composer" in kinds)
    for kind in kinds:
        cls = class_of(card.name, "scorer" if kind == "scorer" else "composer")
        assert kind_of_class(cls) == kind
        assert inspect.getdoc(cls)
        if kind == "composer":
            assert cls.name == card.name
            assert set(cls.needs) == set(card.needs)
    assert ("checkpoint" in card.needs) == (card.name in CHECKPOINTS)


RERANKERS = [method_card(name) for name in reranker_names()]


@pytest.mark.parametrize("card", [*method_cards(), *RERANKERS], ids=lambda card: card.name)
def test_a_card_is_whole_and_its_command_exists(card: MethodCard) -> None:
    for field in ("title", "summary", "query", "trained", "sessions", "example", "limits"):
        text = getattr(card, field)
        assert text, field
        if field not in ("title", "example"):
            assert text.endswith("."), field
    if card.paper:
        assert re.fullmatch(r"https://arxiv\.org/abs/\d{4}\.\d{5}", card.paper)
    words = shlex.split(card.example)
    assert words[:2] == ["cir", "run"]
    run = get_command(build()).commands["run"]  # type: ignore[attr-defined]
    parsed = run.make_context("run", words[2:]).params
    assert card.name in (parsed["method"], parsed["rerank"])
    assert (parsed["checkpoint"] is not None) == ("checkpoint" in card.needs)
    assert (parsed["language"] is not None) == ("language" in card.needs)


def test_every_card_has_a_method_and_every_method_a_card() -> None:
    known = sorted([*method_names(), *reranker_names()])
    assert sorted(path.stem for path in CARDS.glob("*.yaml")) == known

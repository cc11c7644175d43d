"""How much of a multi-round evaluation's time goes into search and bookkeeping.

    python perf/multiround.py              # 1,000 sessions x 5 rounds x 20,000 images, ViT-B/32's text tower
    python perf/multiround.py --quick      # a small one, in seconds; its share says nothing

Sessions start at random on pictures of shapes/train, and the oracle, which costs next to nothing, plays the
user. The encoder is a CLIP with random weights and the text tower of ViT-B/32; the gallery's vectors are
independent and normal, which is the dearest case for ranks, so that nothing waits for pictures to be encoded.
What is left of a real run is the least that can be left of it: a simulator that is a language model and a
gallery that is still to be encoded only add to the time that search and bookkeeping are a share of.

    encoder      queries composed: one pass over the words of all sessions a round
    user         the oracle's feedback
    search       blocked products, best 50 images and the targets' exact ranks
    bookkeeping  the rest: candidates, rounds, the journal on disk, the transcript
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from fresh import Verdict, add_bound_option, at_most

import cir_datasets
from cir_datasets.rows.benchmark import Benchmark
from cir_datasets.shapes import describe, scene
from submissions.embeddings.folder import Embeddings
from submissions.embeddings.pictures import pictures_of
from submissions.encoders.loading import load_encoder
from submissions.language import load_language
from submissions.methods.composing import Context, unit
from submissions.methods.image_text_sum import ImageTextSum
from submissions.methods.turns import gallery_of
from submissions.multiround.dialogue import drawn_sessions, play
from submissions.multiround.journal import Journal
from submissions.multiround.making import empty_transcript
from submissions.multiround.models import VectorModel
from submissions.multiround.users import SimulatedUser
from submissions.rank_file.model import Method
from submissions.transcripts.settings import RoundSettings
from submissions.transcripts.transcript import write_transcript

SHARE = "search and bookkeeping / wall time"
BOUNDS = {SHARE: at_most(0.10)}
TOWERS = {
    "tiny": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2},
    "vit-b-32": {
        "hidden_size": 512,
        "intermediate_size": 2048,
        "num_hidden_layers": 12,
        "num_attention_heads": 8,
    },
}
"""Text towers; the image tower is tiny."""
ROUNDS = 5

_Given = TypeVar("_Given", bound=Callable[..., Any])


class Parts:
    """Seconds by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def timed(self, part: str, function: _Given) -> _Given:
        """The function, whose time is added to a part."""

        def call(*given: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - started

        return call  # type: ignore[return-value]


def random_clip(tower: str, words: Sequence[str], folder: Path) -> Path:
    """A CLIP with random weights that reads words of shapes."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, PreTrainedTokenizerFast
    from transformers.utils import logging

    logging.disable_progress_bar()
    known = {word: place for place, word in enumerate(("unknown", "end", *words))}
    tokens = Tokenizer(models.WordLevel(known, unk_token="unknown"))
    tokens.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokens, eos_token="end", pad_token="end", model_max_length=77
    ).save_pretrained(folder)
    torch.manual_seed(0)
    text = {**TOWERS[tower], "vocab_size": len(known), "bos_token_id": 0, "eos_token_id": 1}
    vision = {**TOWERS["tiny"], "image_size": 32, "patch_size": 8}
    dimensions = TOWERS[tower]["hidden_size"]
    CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=dimensions)).save_pretrained(
        folder
    )
    CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(
        folder
    )
    return folder


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--sessions", type=int, default=1_000)
    options.add_argument("--images", type=int, default=20_000, help="of the gallery, at most 22,392")
    options.add_argument("--quick", action="store_true", help="60 sessions, 500 images, a tiny text tower")
    add_bound_option(options)
    given = options.parse_args()
    sessions, images, tower = given.sessions, given.images, "vit-b-32"
    if given.quick:
        sessions, images, tower = 60, 500, "tiny"
    verdict = Verdict(BOUNDS, given.bound)
    whole = cir_datasets.load("shapes/train")
    ids = list(whole.gallery or ())[:images]
    benchmark = Benchmark.from_rows(whole.spec, whole.rows()[:1], ids)
    words = sorted({word.strip(",") for image in ids[:2_000] for word in describe(scene(image)).split()})
    parts = Parts()
    with tempfile.TemporaryDirectory() as folder:
        encoder: Any = load_encoder(str(random_clip(tower, words, Path(folder) / tower)), device="cpu")
        vectors = np.random.default_rng(0).standard_normal((images, encoder.identity.dimensions))
        embedded = Embeddings(ids, unit(vectors), frozenset(), encoder.identity)
        encoder.encode_texts = parts.timed("encoder", encoder.encode_texts)
        settings = RoundSettings(start="random", k=1, max_rounds=ROUNDS)
        pictures = pictures_of(benchmark)
        context = Context(encoder, embedded, pictures, None, benchmark, "single")
        gallery = gallery_of(benchmark)
        user: Any = SimulatedUser(load_language("oracle"), pictures)
        user.say = parts.timed("user", user.say)
        started = time.perf_counter()
        drawn = drawn_sessions(benchmark, settings, sessions)
        model: Any = VectorModel(
            "image_text_sum", ImageTextSum(), context, gallery, settings, sessions, Method(name="Sum")
        )
        model.rank = parts.timed("search", model.rank)
        transcript = empty_transcript(benchmark, model, user, settings, {})
        played = [session.id for session in drawn]
        journal = Journal(Path(folder) / "journal", transcript.header(), played, model.memory.shape)
        rounds = play(drawn, model, user, gallery, settings, journal)
        write_transcript(transcript.model_copy(update={"rounds": rounds}), Path(folder) / "made.jsonl")
        wall = time.perf_counter() - started
    taken = {**parts.seconds, "bookkeeping": wall - sum(parts.seconds.values())}
    print(
        f"{sessions:,} sessions, {len(rounds):,} rounds of at most {sessions * ROUNDS:,}, {images:,} images, "
        f"{encoder.identity.dimensions} dimensions, text tower {tower}"
    )
    for name, seconds in taken.items():
        print(f"{name:12} {seconds:8.2f} s {seconds / wall:7.1%}")
    print(f"{'all':12} {wall:8.2f} s")
    verdict.head()
    verdict.show(SHARE, (taken["search"] + taken["bookkeeping"]) / wall)
    verdict.end()


if __name__ == "__main__":
    main()

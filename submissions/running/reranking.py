"""SC4CIR on the rankings of a run: what each kind of method gives it, and what the rank file says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from cir_metrics.gallery import pair_scores
from submissions.encoders.check import checked_vectors
from submissions.methods.composing import Composer, Context, unit
from submissions.methods.own import composed, scored
from submissions.methods.protocols import Ranker, Scorer
from submissions.methods.reverse_processes import Reranker
from submissions.methods.sc4cir import SC4CIR, Cost, Firsts, by_rank
from submissions.methods.turns import Candidates, Turn
from submissions.rank_file.model import Method
from submissions.running.by_lists import checked_lists
from submissions.running.describing import (
    LONGEST_NAME,
    asks_scene_graphs,
    encoder_label,
    labelled,
    language_label,
    trained_by_encoder,
)

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.embeddings.pictures import Pictures
    from submissions.encoders.protocol import Encoder
    from submissions.language.protocol import FormLanguage
    from submissions.running.options import RunOptions

Backward = Callable[[Sequence[Turn], Sequence[str]], Sequence[float]]
"""The similarity of each turn and the image beside it, by the method of the run."""

_CAPTION_RULE = "trim_and"
"""How SC4CIR reads several captions of a turn: as `Turn.text` has them."""
_LONGEST, _LONGEST_NOTES = 300, 2000
"""Characters of a field of the rank file."""
_CELLS = 8_000_000
"""Scores held at once."""


def backward_by_embeddings(name: str, method: Composer, context: Context) -> Backward:
    """S2 of a method on embeddings: the cosine of what it composes of (c, T') and the reference's vector."""

    def similar(turns: Sequence[Turn], references: Sequence[str]) -> list[float]:
        queries = unit(composed(name, method, turns, context))
        wanted = context.projected(context.image_vectors(references))
        return list(map(float, pair_scores(queries, wanted)))

    return similar


def backward_by_scores(name: str, method: Scorer, gallery: Candidates) -> Backward:
    """S2 of a method that scores: its score of the reference for (c, T'), among the whole gallery."""

    def similar(turns: Sequence[Turn], references: Sequence[str]) -> list[float]:
        wider = _with(gallery, references)
        step = max(1, _CELLS // len(wider.ids))
        found: list[float] = []
        for start in range(0, len(turns), step):
            scores = scored(name, method, turns[start : start + step], wider)
            columns = [wider.place[image] for image in references[start : start + step]]
            found += scores[np.arange(len(columns)), columns].tolist()
        return found

    return similar


def backward_by_lists(name: str, method: Ranker, gallery: Candidates, top: int) -> Backward:
    """S2 of a method that ranks by itself: `by_rank` of the reference in its list for (c, T'); 0 behind N."""

    def similar(turns: Sequence[Turn], references: Sequence[str]) -> list[float]:
        lists = checked_lists(name, method, turns, _with(gallery, references), top)
        scored_lists = (dict(zip(ranking, by_rank(top, ranking), strict=True)) for ranking in lists)
        return [own.get(image, 0.0) for own, image in zip(scored_lists, references, strict=True)]

    return similar


def _with(gallery: Candidates, references: Sequence[str]) -> Candidates:
    outside = dict.fromkeys(image for image in references if image not in gallery.place)
    return Candidates(gallery.benchmark, [*gallery.ids, *outside]) if outside else gallery


def check_source(how: SC4CIR, benchmark: Benchmark, options: RunOptions) -> None:
    """Say before the work that the pictures are not there, which the language backend is to see.

    Raises:
        SourceError: the folder is missing, or none is named.
    """
    if how.asks:
        _pictures(benchmark, options, ())


def rerank(
    name: str,
    firsts: Firsts,
    backward: Backward,
    options: RunOptions,
    encoder: Encoder | None,
    described: Method,
) -> tuple[Method, Cost]:
    """Put the first images of all rankings in the order of SC4CIR, in place.

    Args:
        name: the method's, for messages.
        firsts: the rankings.
        backward: of the run's method.
        options: of the run; what they name is loaded already, but the text encoder of S3.
        encoder: the run's own, or None where its method has none.
        described: what the rank file says of the method.

    Returns:
        What the rank file says of both, and what re-ranking took.

    Raises:
        EncoderError: the text encoder cannot be loaded, or encodes no texts.
        SourceError: the pictures are not available.
    """
    benchmark, how = firsts.benchmark, firsts.how
    texts = _text_encoder(options, benchmark, encoder) if "s3" in how.used else None
    speaker = cast("FormLanguage | None", options.language) if how.asks else None

    def encode(words: Sequence[str]) -> NDArray[np.float32]:
        own = cast("Encoder", texts)
        parts = [words[at : at + options.batch_size] for at in range(0, len(words), options.batch_size)]
        return np.concatenate(
            [checked_vectors(own, own.encode_texts(part), len(part), "texts") for part in parts]
        )

    said = next((each.turn.text for each in firsts.lists if each.turn.text.strip()), None)
    if texts is not None and said is not None:
        encode([said])  # an encoder without words is found out before anybody is asked
    work = Reranker(
        how,
        speaker,
        lambda ids: _pictures(benchmark, options, ids),
        encode,
        backward,
        f"{name}: SC4CIR on {benchmark.id}",
    )
    work.rerank(firsts.lists)
    return _described(described, how, speaker, texts, encoder, work.cost, benchmark), work.cost


def _pictures(benchmark: Benchmark, options: RunOptions, ids: Sequence[str]) -> Pictures:
    from submissions.embeddings.pictures import pictures_of

    return pictures_of(benchmark, images=options.images, ids=ids)


def _text_encoder(options: RunOptions, benchmark: Benchmark, own: Encoder | None) -> Encoder:
    """The text encoder of S3: the one that is named, else the run's own, else the one of shapes."""
    from submissions.encoders.loading import load_encoder

    if options.rerank_encoder is None and own is not None:
        return own
    chosen = options.rerank_encoder_for(benchmark)
    return load_encoder(chosen, device=options.device) if isinstance(chosen, str) else chosen


def _described(
    described: Method,
    how: SC4CIR,
    speaker: FormLanguage | None,
    texts: Encoder | None,
    own: Encoder | None,
    cost: Cost,
    benchmark: Benchmark,
) -> Method:
    """What the rank file says of a method whose rankings were ranked anew."""
    parts = [f"top {how.top}", " + ".join(each.upper() for each in how.used)]
    if benchmark.multi_turn:
        parts.append("the last turn" if how.turns == "last" else "each turn")
    notes = [described.notes, f"Ranked anew by SC4CIR ({how.paper})."]
    labels = []
    if speaker is not None:
        labels.append(language_label(speaker.identity))
        parts.append(f"words by {labels[-1]}")
        said = f"Language: {speaker.identity.text()}."
        notes += [said] if said not in described.notes else []
    if texts is not None:
        label = encoder_label(texts.identity)
        parts.append(f"S3 by {label}")
        labels += [label] if own is None or texts.identity != own.identity else []
        notes.append(f"Text encoder of S3: {texts.identity.text()}.")
    change: dict[str, Any] = {
        "name": renamed(described.name, how.label, labels),
        "reranking": f"SC4CIR ({', '.join(parts)}); {cost.counts}"[:_LONGEST],
        "notes": " ".join(part for part in notes if part)[:_LONGEST_NOTES],
    }
    if how.asks:
        change["text_fields"] = described.text_fields or ["relative_caption"]
        change["caption_rule"] = described.caption_rule or _CAPTION_RULE
    if texts is not None:
        change |= trained_by_encoder(described, texts.identity, benchmark)
    if speaker is not None and asks_scene_graphs(speaker.identity):
        change["oracle"] = "scene_graphs"
    return Method.model_validate(described.to_dict() | change)


def renamed(name: str, reranker: str, labels: Sequence[str]) -> str:
    """A method's name with the re-ranker in it, before what stands in brackets, which the labels join.

    Example:
        >>> renamed("Image + text, sum (shapes encoder)", "SC4CIR", ["oracle"])
        'Image + text, sum + SC4CIR (shapes encoder, oracle)'
        >>> renamed("Random", "SC4CIR s1", [])
        'Random + SC4CIR s1'
    """
    method, bracket, rest = name.removesuffix(")").partition(" (")
    listed = [part for part in (rest if bracket else "").split(", ") if part]
    inside = ", ".join([*listed, *(label for label in labels if label not in listed)])
    whole = f"{method[: LONGEST_NAME - len(reranker) - len(' + ')]} + {reranker}"
    return labelled(whole, inside) if inside else whole

"""SC4CIR on the rankings of one benchmark, and what the rank file says of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.terminal import counted
from submissions.embeddings.embed import check_gallery, check_pictures
from submissions.encoders.check import encoded_texts
from submissions.methods.reverse_processes import Reranker
from submissions.methods.sc4cir import SC4CIR, Cost, Forward, turns_to_rerank
from submissions.rank_file.model import Method, RankFile
from submissions.running.describing import (
    LONGEST_NAME,
    LONGEST_NOTES,
    asks_scene_graphs,
    encoder_label,
    labelled,
    language_label,
    trained_by_encoder,
    with_skipped,
)
from submissions.running.options import RunOptions

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.embeddings.pictures import Pictures
    from submissions.encoders.protocol import Encoder
    from submissions.language.protocol import FormLanguage
    from submissions.methods.turns import Turn
    from submissions.running.answers import ByRank

_CAPTION_RULE = "trim_and"
"""How SC4CIR reads several captions of a turn: as `Turn.text` has them."""
_LONGEST = 300
"""Characters of a field of the rank file."""


def rankings_to_rerank(run: RankFile, benchmark: Benchmark, how: SC4CIR) -> Iterator[tuple[Turn, list[str]]]:
    """The rankings that are ranked anew, with what each answers: the first one of a turn, then the second."""
    for row, place, turn in turns_to_rerank(benchmark, how):
        key = row["session_id"] if benchmark.multi_turn else row["query_id"]
        if key in run.rankings:
            yield turn, run.rankings[key][place] if benchmark.multi_turn else run.rankings[key]
        if key in (run.subset_rankings or {}):
            yield turn, cast("dict[str, list[str]]", run.subset_rankings)[key]


def unseen_pictures(
    benchmark: Benchmark,
    how: SC4CIR,
    options: RunOptions,
    candidates: Sequence[str] | None = None,
    *,
    encoded: bool,
) -> frozenset[str]:
    """Look before the work at the pictures that the language backend may be asked about.

    Args:
        benchmark: what is ranked.
        how: says which turns are ranked anew.
        options: of the run.
        candidates: the images that are ranked anew; None where they are not known yet, and may be any.
        encoded: whether those of the gallery are encoded, and so looked at, by the method itself.

    Returns:
        The images without a picture, which are skipped.

    Raises:
        MissingImagesError: pictures are missing or cannot be read, and may not be skipped.
        SourceError: the folder is missing, or none is named.
    """
    if not how.asks:
        return frozenset()
    references = dict.fromkeys(turn.reference for _, _, turn in turns_to_rerank(benchmark, how))
    if encoded or candidates is None:
        known = set(benchmark.gallery or ())
        asked = [image for image in references if image and image not in known]
    else:
        asked = [image for image in dict.fromkeys((*references, *candidates)) if image]
    missing = check_pictures(_pictures(benchmark, options, asked), skip_missing=options.skip_missing)
    if candidates is None and not encoded:
        missing |= check_gallery(_pictures(benchmark, options, None), skip_missing=options.skip_missing)
    return missing


def reranked(
    name: str,
    run: RankFile,
    benchmark: Benchmark,
    similarity: ByRank,
    options: RunOptions,
    unseen: frozenset[str],
    costs: list[Cost] | None = None,
) -> RankFile:
    """A rank file with the first images of its rankings in the order of SC4CIR.

    Args:
        name: the method's, for messages.
        run: whose lists are put in order, in place.
        benchmark: what it answers.
        similarity: S1 and S2.
        options: of the run; what they name is loaded already, but the text encoder of S3.
        unseen: images without a picture, which are skipped.
        costs: filled with what re-ranking took.

    Raises:
        EncoderError: the text encoder cannot be loaded, or encodes no texts.
        LanguageError: not one query has the answers that it needs.
        MissingImagesError: a picture turns out to be unreadable, and may not be skipped.
        SourceError: the pictures are not available.
    """
    how = cast("SC4CIR", options.reranker)
    lists = list(rankings_to_rerank(run, benchmark, how))
    firsts = [(turn, ranking[: how.top]) for turn, ranking in lists]
    scores: Sequence[Sequence[float]] = [[0.0] * len(images) for _, images in firsts]
    if "s1" in how.used:
        scores = similarity.similarities(firsts)
    texts = _text_encoder(options, benchmark, similarity.encoder) if "s3" in how.used else None
    speaker = cast("FormLanguage | None", options.language) if how.asks else None

    def encode(words: Sequence[str]) -> NDArray[np.float32]:
        return encoded_texts(cast("Encoder", texts), words, options.batch_size)

    said = next((turn.text for turn, _ in lists if turn.text.strip()), None)
    if texts is not None and said is not None:
        encode([said])  # an encoder without words is found out before anybody is asked
    work = Reranker(
        how,
        speaker,
        lambda ids: _pictures(benchmark, options, ids),
        encode,
        similarity.ways,
        f"{name}: SC4CIR on {benchmark.id}",
        unseen=unseen | similarity.missing,
        skip_missing=options.skip_missing,
    )
    work.rerank([Forward(*each, first) for each, first in zip(lists, scores, strict=True)])
    if costs is not None:
        costs.append(work.cost)
    method = _described(run.method, how, speaker, texts, similarity.encoder, work.cost, benchmark)
    return replace(run, method=_with_unseen(method, sorted(work.unseen)))


def _with_unseen(described: Method, unseen: Sequence[str]) -> Method:
    """A method block that counts the images without a picture, which were not candidates, too."""
    if len(unseen) <= (described.skipped_images or 0):
        return described
    sentence = f"{counted(len(unseen), 'picture')} missing or unreadable, not ranked anew"
    return with_skipped(described, len(unseen), sentence, unseen)


def _pictures(benchmark: Benchmark, options: RunOptions, ids: Sequence[str] | None) -> Pictures:
    from submissions.embeddings.pictures import pictures_of

    return pictures_of(benchmark, images=options.images, ids=ids)


def _text_encoder(options: RunOptions, benchmark: Benchmark, own: Encoder | None) -> Encoder:
    """The text encoder of S3: the one that is named, else the run's own, else the one of shapes."""
    from submissions.encoders.loading import load_encoder

    if options.rerank_encoder is None and own is not None:
        return own
    chosen = options.rerank_encoder_for(benchmark)
    if not isinstance(chosen, str):
        return chosen
    return load_encoder(chosen, **options.rerank_loading(has_encoder=own is not None))


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
        "reranking": _with_counts(", ".join(parts), cost.counts),
        "notes": " ".join(part for part in notes if part)[:LONGEST_NOTES],
    }
    if how.asks:
        change["text_fields"] = described.text_fields or ["relative_caption"]
        change["caption_rule"] = described.caption_rule or _CAPTION_RULE
    if texts is not None:
        change |= trained_by_encoder(described, texts.identity, benchmark)
    if speaker is not None and asks_scene_graphs(speaker.identity):
        change["oracle"] = "scene_graphs"
    return Method.model_validate(described.to_dict() | change)


def _with_counts(settings: str, counts: str) -> str:
    """Settings and counts in one field; where there is no room for both, the settings are cut off."""
    room = _LONGEST - len(f"SC4CIR (); {counts}")
    return f"SC4CIR ({settings[:room]}); {counts}"


def renamed(name: str, reranker: str, labels: Sequence[str]) -> str:
    """A method's name with the re-ranker in it, before what stands in brackets, which the labels join.

    Example:
        >>> renamed("Image + text, sum (shapes encoder)", "SC4CIR", ["oracle"])
        'Image + text, sum + SC4CIR (shapes encoder, oracle)'
        >>> renamed("Random", "SC4CIR s1", [])
        'Random + SC4CIR s1'
    """
    method, _, rest = name.partition(" (")
    listed = [part for part in rest.removesuffix(")").split(", ") if part]
    inside = ", ".join([*listed, *(label for label in labels if label not in listed)])
    whole = f"{method[: LONGEST_NAME - len(reranker) - len(' + ')]} + {reranker}"
    return labelled(whole, inside) if inside else whole

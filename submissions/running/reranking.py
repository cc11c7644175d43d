"""SC4CIR on the rankings of a run: what each kind of method gives it, and what the rank file says of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.terminal import counted
from cir_metrics.gallery import pair_scores
from submissions.embeddings.embed import check_gallery, check_pictures
from submissions.encoders.check import checked_vectors
from submissions.language.protocol import known_only
from submissions.methods.composing import Composer, Context, unit
from submissions.methods.protocols import Ranker, Scorer
from submissions.methods.registry import needs_of
from submissions.methods.reverse_processes import Backward, Reranker, Ways
from submissions.methods.sc4cir import SC4CIR, Cost, Firsts, by_rank
from submissions.methods.turns import Candidates, Turn, turns_of
from submissions.methods.user_methods import composed, scored
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

_CAPTION_RULE = "trim_and"
"""How SC4CIR reads several captions of a turn: as `Turn.text` has them."""
_LONGEST, _LONGEST_NOTES = 300, 2000
"""Characters of a field of the rank file."""
_CELLS = 8_000_000
"""Scores held at once."""


def ways_by_embeddings(name: str, method: Composer, context: Context) -> Ways:
    """S2 of a method on embeddings: the cosine of what it composes of (c, T') and the reference's vector."""
    way = _by_embeddings(name, method, context)
    if "language" not in needs_of(method):
        return Ways(way, way)
    known = known_only(context.language)
    quiet = None if known is None else _by_embeddings(name, method, replace(context, language=known))
    return Ways(way, quiet)


def _by_embeddings(name: str, method: Composer, context: Context) -> Backward:
    def similar(turns: Sequence[Turn], references: Sequence[str]) -> list[float]:
        queries = unit(composed(name, method, turns, context))
        wanted = context.projected(context.image_vectors(references))
        return list(map(float, pair_scores(queries, wanted)))

    return similar


def ways_by_scores(name: str, method: Scorer, gallery: Candidates) -> Ways:
    """S2 of a method that scores: its score of the reference for (c, T'), among the whole gallery."""

    def similar(turns: Sequence[Turn], references: Sequence[str]) -> list[float]:
        found = np.zeros(len(turns))
        for wider, places in _galleries(gallery, references):
            step = max(1, _CELLS // len(wider.ids))
            for start in range(0, len(places), step):
                some = places[start : start + step]
                scores = scored(name, method, [turns[place] for place in some], wider)
                columns = [wider.place[references[place]] for place in some]
                found[some] = scores[np.arange(len(columns)), columns]
        return list(map(float, found))

    return Ways(similar, similar)


def ways_by_lists(name: str, method: Ranker, gallery: Candidates, top: int) -> Ways:
    """S2 of a method that ranks by itself: `by_rank` of the reference in its list for (c, T'); 0 behind N."""

    def similar(turns: Sequence[Turn], references: Sequence[str]) -> list[float]:
        found = [0.0] * len(turns)
        for wider, places in _galleries(gallery, references):
            lists = checked_lists(name, method, [turns[place] for place in places], wider, top)
            for place, ranking in zip(places, lists, strict=True):
                own = dict(zip(ranking, by_rank(top, ranking), strict=True))
                found[place] = own.get(references[place], 0.0)
        return found

    return Ways(similar, similar)


def _galleries(gallery: Candidates, references: Sequence[str]) -> Iterator[tuple[Candidates, list[int]]]:
    """The gallery, widened by the one reference that it lacks, and the places of its turns.

    References of others are left out, so that no turn's scores depend on which turns stand beside it.
    """
    places: dict[str | None, list[int]] = {}
    for place, image in enumerate(references):
        places.setdefault(None if image in gallery.place else image, []).append(place)
    for outside, own in places.items():
        yield (
            gallery if outside is None else Candidates(gallery.benchmark, [*gallery.ids, outside]),
            own,
        )


def unseen_pictures(firsts: Firsts, options: RunOptions, *, encoded: bool) -> frozenset[str]:
    """Look before the work at the pictures that the language backend may be asked about.

    Args:
        firsts: says which turns are ranked anew.
        options: of the run.
        encoded: whether those of the gallery are encoded, and so looked at, by the method itself.

    Returns:
        The images without a picture, which are skipped.

    Raises:
        MissingImagesError: pictures are missing or cannot be read, and may not be skipped.
        SourceError: the folder is missing, or none is named.
    """
    benchmark = firsts.benchmark
    if not firsts.how.asks:
        return frozenset()
    turns = (turn for row in benchmark.rows() for turn in turns_of(row) if firsts.wants(turn))
    known = set(benchmark.gallery or ())
    outside = dict.fromkeys(
        each.reference for each in turns if each.reference and each.reference not in known
    )
    beside = _pictures(benchmark, options, [image for image in outside if image])
    missing = check_pictures(beside, skip_missing=options.skip_missing)
    if not encoded:
        whole = _pictures(benchmark, options, None)
        missing |= check_gallery(whole, skip_missing=options.skip_missing)
    return missing


def rerank(
    name: str,
    firsts: Firsts,
    ways: Ways,
    options: RunOptions,
    encoder: Encoder | None,
    described: Method,
    unseen: Collection[str] = (),
) -> tuple[Method, Cost]:
    """Put the first images of all rankings in the order of SC4CIR, in place.

    Args:
        name: the method's, for messages.
        firsts: the rankings.
        ways: how the run's method computes S2.
        options: of the run; what they name is loaded already, but the text encoder of S3.
        encoder: the run's own, or None where its method has none.
        described: what the rank file says of the method.
        unseen: images without a picture, which are skipped.

    Returns:
        What the rank file says of both, and what re-ranking took.

    Raises:
        EncoderError: the text encoder cannot be loaded, or encodes no texts.
        LanguageError: not one query has the answers that it needs.
        MissingImagesError: a picture turns out to be unreadable, and may not be skipped.
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
        ways,
        f"{name}: SC4CIR on {benchmark.id}",
        unseen=unseen,
        skip_missing=options.skip_missing,
    )
    work.rerank(firsts.lists)
    anew = _described(described, how, speaker, texts, encoder, work.cost, benchmark)
    return _with_unseen(anew, sorted(work.unseen)), work.cost


def _with_unseen(described: Method, unseen: Sequence[str]) -> Method:
    """A method block that counts the images without a picture, which were not candidates, too."""
    if len(unseen) <= (described.skipped_images or 0):
        return described
    named = ", ".join(unseen[:3]) + (", ..." if len(unseen) > 3 else "")
    words = f"{counted(len(unseen), 'picture')} missing or unreadable, not ranked anew: {named}."
    change = {"skipped_images": len(unseen), "notes": f"{described.notes} {words}"[:_LONGEST_NOTES]}
    return Method.model_validate(described.to_dict() | change)


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
    method, bracket, rest = name.removesuffix(")").partition(" (")
    listed = [part for part in (rest if bracket else "").split(", ") if part]
    inside = ", ".join([*listed, *(label for label in labels if label not in listed)])
    whole = f"{method[: LONGEST_NAME - len(reranker) - len(' + ')]} + {reranker}"
    return labelled(whole, inside) if inside else whole

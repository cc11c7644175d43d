"""One method on embeddings over a whole benchmark: compose, aggregate turns, search, describe."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from cir_datasets.common.progress import step_progress
from cir_metrics.errors import MissingExtraError
from cir_metrics.gallery import pair_scores
from submissions.embeddings.embed import check_pictures, embed_gallery
from submissions.embeddings.pictures import pictures_of
from submissions.methods.card import method_card
from submissions.methods.composing import Composer, Context, Vectors, unit
from submissions.methods.registry import composer_names, methods_for, needs_of
from submissions.methods.turns import Candidates, Turn, excluded_columns, turns_of
from submissions.methods.user_methods import bound_encoder, composed, describe_method
from submissions.running.aggregation import Aggregation, aggregate, aggregate_feedback, feedback_weights
from submissions.running.answers import Answers, ByRank, declaring_reference
from submissions.running.describing import describe, with_skipped
from submissions.running.search import Searcher

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.encoders.protocol import Encoder
    from submissions.language.protocol import Language
    from submissions.methods.reverse_processes import Ways
    from submissions.rank_file.model import Method, RankFile
    from submissions.running.options import RunOptions


class ByEmbeddings(ByRank):
    """A method on embeddings, its encoder loaded and the gallery embedded.

    Args:
        name: the method's, for messages.
        method: who composes.
        gallery: what is ranked.
        options: of the run.

    Raises:
        CirError: as for `make_rank_file`.
    """

    def __init__(self, name: str, method: Composer, gallery: Candidates, options: RunOptions) -> None:
        """See the class."""
        self._name, self._method, self._gallery = name, method, gallery
        self._how, self._search = options.aggregated(), options.search
        self._turns = [turn for row in gallery.benchmark.rows() for turn in turns_of(row)]
        self._context = context_of(name, method, gallery, self._turns, options)
        self.encoder = self._context.encoder

    @property
    def missing(self) -> frozenset[str]:
        """The images without a picture, which were skipped."""
        return self._context.gallery.missing | self._context.missing_outside

    def rank(self, k: int, *, whole: bool, how: Aggregation | None = None) -> RankFile:
        """The rank file of its rankings.

        Args:
            k: images a ranking.
            whole: whether second rankings hold all that they rank, instead of what a board asks for.
            how: the aggregation of a session's turns; None is the one of the run's options.

        Raises:
            MethodError: what the method composes is not a query vector a turn.
        """
        benchmark, context, turns = self._context.benchmark, self._context, self._turns
        answers = Answers(benchmark)
        queries = self._queries if how is None else self._aggregated(how)
        with step_progress(f"{self._name}: ranking {benchmark.id}", len(turns)) as advance:
            order = VectorOrder(turns, queries, self._searcher, self._gallery, advance)
            answers.take(order, benchmark.rows(), k, whole=whole)
        described = describe(self._method, context, turns, how or self._how, order.note)
        return answers.rank_file(declaring_reference(_with_skipped(described, context), benchmark))

    def rank_by_each(self, each: Sequence[RunOptions], k: int) -> list[RankFile]:
        """A rank file for each of some aggregations; every turn is composed once.

        Args:
            each: options of a run, which name the aggregations.
            k: images a ranking.

        Raises:
            MethodError: as for `rank`.
        """
        return [self.rank(k, whole=False, how=one.aggregated()) for one in each]

    def similarities(self, asked: Sequence[tuple[Turn, Sequence[str]]]) -> list[list[float]]:
        """S1: the cosine of the query's vector and the vector of each image, up to the first skipped one."""
        place = {turn.key: number for number, turn in enumerate(self._turns)}
        return [self._searcher.scores(self._queries[place[turn.key]], images) for turn, images in asked]

    @property
    def ways(self) -> Ways:
        """S2: the cosine of what the method composes of (c, T') and the reference's vector."""
        from submissions.language.protocol import known_only
        from submissions.methods.reverse_processes import Ways

        way = functools.partial(self._back, self._context)
        if "language" not in needs_of(self._method):
            return Ways(way, way)
        known = known_only(self._context.language)
        if known is None:
            return Ways(way, None)
        return Ways(way, functools.partial(self._back, replace(self._context, language=known)))

    def _back(self, context: Context, turns: Sequence[Turn], references: Sequence[str]) -> list[float]:
        queries = unit(composed(self._name, self._method, turns, context))
        wanted = context.projected(context.image_vectors(references))
        return list(map(float, pair_scores(queries, wanted)))

    @functools.cached_property
    def _searcher(self) -> Searcher:
        missing = self._context.gallery.missing
        return Searcher(self._context.ranked, self._gallery.ids, self._search, missing=missing)

    @functools.cached_property
    def _composed(self) -> Vectors:
        """What the method composes of each turn alone, of length 1."""
        return unit(composed(self._name, self._method, self._turns, self._context))

    @functools.cached_property
    def _queries(self) -> Vectors:
        return self._aggregated(self._how)

    def _aggregated(self, how: Aggregation) -> Vectors:
        """A query vector a turn, of length 1: of a session for the turns so far."""
        context, turns, vectors = self._context, self._turns, self._composed
        if not context.benchmark.multi_turn:
            return vectors
        lengths = [len(each) for each in context.benchmark.column("turns")]
        if how.name != "feedback":
            return aggregate(how, vectors, lengths)
        shown, keys = feedback_weights().shown, [turn.key for turn in turns]
        return aggregate_feedback(
            vectors,
            lengths,
            context.projected(context.image_vectors([turn.reference for turn in turns])),
            np.array([self._gallery.place.get(turn.reference or "", -1) for turn in turns], dtype=np.int64),
            context.ranked,
            lambda queries, left_out, rows: self._searcher.best_rows(
                queries, shown, left_out, query_ids=[keys[row] for row in rows]
            ),
            removed=context.benchmark.excludes_reference,
        )


@dataclass
class VectorOrder:
    """Images in the order of the products of their vectors and a query's.

    Args:
        turns: who asks.
        queries: a vector a turn.
        searcher: the vectors of the gallery.
        gallery: its images.
        advance: called with the number of turns that were ranked, as it goes.
        note: how the gallery was searched, or "" where that was exact.
    """

    turns: Sequence[Turn]
    queries: Vectors
    searcher: Searcher
    gallery: Candidates
    advance: Callable[[int], object]
    note: str = ""

    def best(self, k: int) -> list[list[str]]:
        """The k best images of the gallery for each turn, without removed references."""
        keys, excluded = [turn.key for turn in self.turns], excluded_columns(self.turns, self.gallery)
        ranked = self.searcher.search(
            self.queries, k, query_ids=keys, excluded=excluded, advance=self.advance
        )
        self.note = ranked.note(k)
        return ranked.rankings

    def few(self, place: int, images: Sequence[str], k: int) -> list[str]:
        """The k best of a few images for the turn at that place."""
        return self.searcher.order(self.queries[place], images, k, self.turns[place].key)


def context_of(
    name: str, method: Composer, gallery: Candidates, turns: Sequence[Turn], options: RunOptions
) -> Context:
    """What a method on embeddings works with: its encoder, loaded, and the gallery, embedded.

    Args:
        name: the method's, for messages.
        method: who composes.
        gallery: what is ranked, and of which benchmark.
        turns: what is asked, which says which caption rule is usual and which references are needed.
        options: all options.

    Raises:
        CirError: as for `make_rank_file`.
    """
    benchmark = gallery.benchmark
    needed = "language" in needs_of(method)
    speaker = cast("Language | None", options.with_language().language) if needed else None
    chosen = options.encoder_for(benchmark, name, bound_encoder(method))
    pictures = pictures_of(benchmark, images=options.images)
    encoder = _encoder(name, chosen, benchmark, options)
    rule = options.caption_rule_for(turns, name, describe_method(name, method, encoder).text_fields)
    _check_references(name, turns, gallery, benchmark, options)
    embedded = embed_gallery(
        encoder,
        pictures,
        store=options.store,
        batch_size=options.batch_size,
        workers=options.workers,
        skip_missing=options.skip_missing,
    )
    return Context(
        encoder,
        embedded,
        pictures,
        speaker,
        benchmark,
        rule,
        options.images,
        options.batch_size,
        options.skip_missing,
        project=getattr(method, "project", None),
    )


def _encoder(name: str, chosen: str | Encoder, benchmark: Benchmark, options: RunOptions) -> Encoder:
    if not isinstance(chosen, str):
        return chosen
    from submissions.encoders.loading import load_encoder

    try:
        return load_encoder(chosen, **options.loading)
    except MissingExtraError as error:
        weightless = f"{name}_pixels"
        if options.encoder is None and weightless in methods_for(benchmark):
            raise MissingExtraError(f"{error}, or use --method {weightless}, which needs no torch") from error
        raise


def _check_references(
    name: str, turns: Sequence[Turn], gallery: Candidates, benchmark: Benchmark, options: RunOptions
) -> None:
    """Find missing references outside the gallery before it is encoded; a user's own method may read none."""
    outside = [turn.reference for turn in turns if turn.reference and turn.reference not in gallery.place]
    if outside and name in composer_names() and "reference" in method_card(name).reads:
        pictures = pictures_of(benchmark, images=options.images, ids=list(dict.fromkeys(outside)))
        check_pictures(pictures, skip_missing=options.skip_missing)


def _with_skipped(described: Method, context: Context) -> Method:
    """A method block that counts the references outside the gallery that were skipped, too."""
    missing = sorted(context.missing_outside)
    if not missing:
        return described
    count = (described.skipped_images or 0) + len(missing)
    sentence = f"{len(missing):,} references outside the gallery were missing or unreadable"
    return with_skipped(described, count, sentence, missing)

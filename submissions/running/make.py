"""From a benchmark and a method to a rank file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cir_datasets.registry import members_of
from cir_metrics.errors import MissingExtraError
from submissions.embeddings.embed import check_pictures, embed_gallery
from submissions.embeddings.pictures import pictures_of
from submissions.encoders.truncation import one_truncation_warning
from submissions.errors import MethodError
from submissions.methods.card import method_card
from submissions.methods.composing import Composer, Context
from submissions.methods.protocols import Ranker, Scorer
from submissions.methods.registry import composer_names, kind_of_class, method_of, methods_for, needs_of
from submissions.methods.sc4cir import Cost, Firsts
from submissions.methods.turns import Candidates, Turn, gallery_of, turns_of
from submissions.methods.user_methods import describe_method
from submissions.rank_file.benchmarks import board_depth
from submissions.rank_file.model import RankBundle, RankFile, answer_of
from submissions.running.by_embeddings import rank_by_embeddings
from submissions.running.by_lists import rank_by_lists
from submissions.running.by_scores import rank_by_scores
from submissions.running.describing import declaring_reference
from submissions.running.options import RunOptions, also_by_name, options_from, shows_options
from submissions.running.reranking import (
    rerank,
    unseen_pictures,
    ways_by_embeddings,
    ways_by_lists,
    ways_by_scores,
)

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.encoders.protocol import Encoder
    from submissions.language.protocol import Language
    from submissions.methods.reverse_processes import Ways


@one_truncation_warning()
@also_by_name(RunOptions)
def make_rank_file(
    benchmark: str | Benchmark, method: str | Composer | Scorer | Ranker, options: RunOptions
) -> RankFile:
    """Rank a benchmark by a method.

    Args:
        benchmark: an id or a benchmark.
        method: a name of `method_names()`, `module:Class`, or a `Composer`, `Scorer` or `Ranker`
            of your own.
        options: a `RunOptions`, which says what each option is. Its fields may be given by name instead, or
            beside it, where they go before its own.

    Returns:
        A valid rank file; the same call gives the same bytes on the same machine.

    Raises:
        UnknownNameError: no benchmark, method, option, aggregation, caption rule or search has that name.
        MethodError: the method cannot rank this benchmark, an option does not fit it, or is out of range.
        SourceError: the benchmark's data or images are missing.
        EncoderError: the encoder cannot be loaded.
        MissingExtraError: torch, transformers or FAISS is needed and not installed.

    Example:
        >>> made = make_rank_file("shapes/val", "image_text_sum_pixels", k=10)
        >>> made.method.name, len(made.rankings)
        ('Image + text, sum', 300)
        >>> make_rank_file("shapes/val", "image_text_sum_pixels", RunOptions(k=10)) == made
        True
    """
    return cast("RankFile", prepare(benchmark, method, options)())


def prepare(
    benchmark: str | Benchmark,
    method: str | Composer | Scorer | Ranker,
    options: RunOptions,
    *,
    costs: list[Cost] | None = None,
) -> Callable[[], RankFile | RankBundle]:
    """What `make_rank_file` and `make_bundle` do, with the call checked and nothing ranked yet.

    Args:
        benchmark: as for `make_rank_file`; or a suite's id.
        method: as for `make_rank_file`.
        options: all options.
        costs: filled with what re-ranking took, once that is done.

    Returns:
        What ranks the benchmark, or each member of the suite: the encoder is loaded once for all of them.

    Raises:
        CirError: as for `make_rank_file`.
    """
    asked = members_of(benchmark) if isinstance(benchmark, str) else (benchmark,)
    several = len(asked) > 1
    name, who = named_method(method, options)
    loads = several and isinstance(options.encoder, str | Path) and kind_of_class(who) == "composer"
    if loads:
        options.check_loading(str(options.encoder))
    benchmarks = [loaded_benchmark(member) for member in asked]
    for member in benchmarks:
        options.check(member, name, who)

    def make() -> RankFile | RankBundle:
        used = options
        if loads:
            from submissions.encoders.loading import load_encoder

            used = options.with_encoder(load_encoder(str(options.encoder), **options.loading))
            if isinstance(options.rerank_encoder, str | Path):
                loading = options.rerank_loading(has_encoder=True)
                used = used.changed(rerank_encoder=load_encoder(str(options.rerank_encoder), **loading))
        took: list[Cost] = [] if costs is None else costs
        runs = [_ranked(name, who, member, used, took) for member in benchmarks]
        return answer_of(benchmark if isinstance(benchmark, str) else runs[0].benchmark, runs)

    return make


def loaded_benchmark(benchmark: str | Benchmark) -> Benchmark:
    """A benchmark by its id, or as it is given.

    Raises:
        UnknownNameError: none has that id.
        MethodError: it is something else.
        SourceError: its data is not available.
    """
    if isinstance(benchmark, str):
        import cir_datasets

        return cir_datasets.load(benchmark)
    if not hasattr(benchmark, "spec"):
        raise MethodError(
            f"benchmark= is of type {type(benchmark).__name__}. "
            "Fix: pass an id, or what cir_datasets.load gives."
        )
    return benchmark


def _ranked(
    name: str,
    who: Composer | Scorer | Ranker,
    benchmark: Benchmark,
    options: RunOptions,
    costs: list[Cost],
) -> RankFile:
    kind, gallery, how = kind_of_class(who), gallery_of(benchmark), options.reranker
    options = options.with_language()
    wanted = board_depth(benchmark).used if options.k is None else options.k
    firsts = None if how is None else Firsts(how, benchmark)
    unseen = frozenset[str]()
    if firsts is not None:
        unseen = unseen_pictures(firsts, options, encoded=kind == "composer")
    depth = wanted if how is None else max(wanted, how.top)
    ways: Ways
    own: Encoder | None = None
    if kind == "composer":
        method = cast("Composer", who)
        turns = [turn for row in benchmark.rows() for turn in turns_of(row)]
        context = context_of(name, method, gallery, turns, options)
        described, answers = rank_by_embeddings(
            name, method, context, gallery, turns, options.aggregated(), depth, options.search, firsts
        )
        own, ways = context.encoder, ways_by_embeddings(name, method, context)
        unseen |= context.gallery.missing | context.missing_outside
    elif kind == "ranker":
        ranker = cast("Ranker", who)
        described = describe_method(name, ranker)
        answers = rank_by_lists(name, ranker, gallery, depth, firsts)
        ways = ways_by_lists(name, ranker, gallery, options.rerank_top)
    else:
        scorer = cast("Scorer", who)
        described = describe_method(name, scorer)
        turns_as = options.aggregated(getattr(scorer, "aggregation", "latest"))
        answers = rank_by_scores(name, scorer, gallery, turns_as, depth, firsts)
        ways = ways_by_scores(name, scorer, gallery)
        if benchmark.multi_turn:
            described = described.model_copy(update={"aggregation": turns_as.text})
    if kind != "ranker":  # whose lists may lack what was ranked
        described = declaring_reference(described, benchmark)
    if firsts is not None:
        described, cost = rerank(name, firsts, ways, options, own, described, unseen)
        costs.append(cost)
        answers.cut(wanted)
    return answers.rank_file(described)


@one_truncation_warning()
@shows_options
def make_bundle(
    suite: str,
    method: str | Composer | Scorer | Ranker,
    options: RunOptions | None = None,
    **by_name: Any,
) -> RankBundle:
    """Rank every benchmark of a suite by a method; an encoder is loaded once.

    Args:
        suite: the suite's id, such as `fashioniq/val`.
        method: as for `make_rank_file`.
        options: as for `make_rank_file`.
        by_name: fields of `RunOptions`, as for `make_rank_file`.

    Raises:
        UnknownNameError: no suite has that id, and as for `make_rank_file`.
        MethodError: as for `make_rank_file`.
    """
    from cir_datasets.registry.suites import suite as suite_of

    return cast("RankBundle", prepare(suite_of(suite).id, method, options_from(options, by_name))())


def named_method(
    method: str | Composer | Scorer | Ranker, options: RunOptions
) -> tuple[str, Composer | Scorer | Ranker]:
    """A method, and what it is called in messages."""
    name = method if isinstance(method, str) else type(method).__name__
    return name, _method(method, options)


def _method(method: str | Composer | Scorer | Ranker, options: RunOptions) -> Composer | Scorer | Ranker:
    if isinstance(method, type):
        raise MethodError(f"{method.__name__} is a class. Fix: pass a method made of it, or its name.")
    if isinstance(method, str):
        return method_of(method, checkpoint=None if options.checkpoint is None else str(options.checkpoint))
    if kind_of_class(method) is None:
        raise MethodError(
            f"{type(method).__name__} has none of compose, scores and rank. Fix: see docs/running.md."
        )
    return method


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
    chosen = options.encoder_for(benchmark, name, getattr(method, "bound_encoder", None))
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

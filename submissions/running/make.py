"""From a benchmark and a method to a rank file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cir_datasets.registry import members_of
from submissions.errors import MethodError
from submissions.methods.registry import kind_of_class, method_of
from submissions.methods.turns import gallery_of
from submissions.rank_file.benchmarks import SUBSET_DEPTH, board_depth
from submissions.rank_file.model import RankBundle, RankFile, answer_of
from submissions.running.options import RunOptions, options_from, takes_run_options
from submissions.truncation import one_truncation_warning

if TYPE_CHECKING:
    from typing import Unpack

    from cir_datasets.rows.benchmark import Benchmark
    from submissions.methods.composing import Composer
    from submissions.methods.protocols import Ranker, Scorer
    from submissions.methods.sc4cir import Cost
    from submissions.methods.turns import Candidates
    from submissions.running.by_embeddings import ByEmbeddings
    from submissions.running.by_lists import ByLists
    from submissions.running.by_scores import ByScores
    from submissions.running.options import RunFields


@one_truncation_warning()
@takes_run_options
def make_rank_file(
    benchmark: str | Benchmark,
    method: str | Composer | Scorer | Ranker,
    options: RunOptions | None = None,
    **by_name: Unpack[RunFields],
) -> RankFile:
    """Rank a benchmark by a method.

    Args:
        benchmark: an id or a benchmark.
        method: a name of `method_names()`, `module:Class`, or a `Composer`, `Scorer` or `Ranker`
            of your own.
        options: a `RunOptions`, which says what each option is.
        by_name: its fields, given instead or beside it, where they go before its own; what follows is one.
        encoder: a name or folder for `load_encoder`, or an encoder. Default: the shipped encoder on
            benchmarks of shapes; elsewhere a method that needs one must be given it.
        images: folder of the images; default: below `CIR_IMAGES`, and shapes are drawn.
        aggregation: how a session's turns become one ranking: latest, average, weighted or feedback;
            default: weighted, without weights what the method says.
        alpha: of weighted, from 0 (excluded) to 1; default 0.8.
        k: images a ranking, from 1 to 1,000; default: what the board's metrics use. Where the gallery holds
            fewer, all of them are ranked.
        caption_rule: name of the rule that makes text of captions; default: `strip_capitalize_and` where a
            query or turn has several captions, else `single`.
        search: exact, or by an index of FAISS: flat, hnsw or ivfpq.
        language: a name for `load_language`, or a language backend, for methods that caption or merge.
        prompts: folder of prompts that replace ours, where `language` is a name; default: `CIR_PROMPTS`.
        checkpoint: a method's own trained weights, a file or folder.
        revision: the encoder's commit, branch or tag on the Hub; of a method without one it is that of
            `rerank_encoder`.
        device: where the encoder and the one of `rerank_encoder` run: auto, cpu, cuda, cuda:1, mps.
        dtype: type of their numbers: float32, float16, bfloat16 or auto.
        batch_size: images or texts that are encoded at once, 1 or more.
        workers: processes that read images, 0 or more; 0 reads them in this process.
        skip_missing: keep images that are missing or unreadable as members of the gallery, behind all that
            were seen, instead of refusing to start.
        store: where embeddings are kept, a store or its folder; default: below `CIR_CACHE_HOME`.
        rerank: the re-ranker that puts the best images of each ranking in another order: `sc4cir`, which
            asks `language`.
        rerank_top: how many images of a ranking, from 1 to 1,000.
        rerank_processes: what is added up: s1, s2, s3, or several with + between them.
        rerank_encoder: the text encoder of s3, as for `encoder`; default: the run's own, or, where its method
            has none, the shipped one on benchmarks of shapes.
        rerank_turns: of a session `last` or `each`.

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
    return cast("RankFile", _one(benchmark, method, options_from(options, by_name)))


def _one(
    benchmark: str | Benchmark, method: str | Composer | Scorer | Ranker, options: RunOptions
) -> RankFile | RankBundle:
    if options.aggregation is not None:
        options.aggregated()  # refuses all
    (made,) = prepare(benchmark, method, options)()
    return made


def prepare(
    benchmark: str | Benchmark,
    method: str | Composer | Scorer | Ranker,
    options: RunOptions,
    *,
    costs: list[Cost] | None = None,
) -> Callable[[], list[RankFile | RankBundle]]:
    """What `make_rank_file` and `make_bundle` do, with the call checked and nothing ranked yet.

    Args:
        benchmark: as for `make_rank_file`; or a suite's id.
        method: as for `make_rank_file`.
        options: all options.
        costs: filled with what re-ranking took, once that is done.

    Returns:
        What ranks the benchmark, or each member of the suite: the encoder is loaded once for all of them. It
        makes a rank file or bundle, with `aggregation="all"` one of each in `RunOptions.each_aggregation`.

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

    def make() -> list[RankFile | RankBundle]:
        used = options
        if loads:
            from submissions.encoders.loading import load_encoder

            used = options.with_encoder(load_encoder(str(options.encoder), **options.loading))
            if isinstance(options.rerank_encoder, str | Path):
                loading = options.rerank_loading(has_encoder=True)
                used = used.changed(rerank_encoder=load_encoder(str(options.rerank_encoder), **loading))
        took: list[Cost] = [] if costs is None else costs
        runs = [_ranked(name, who, member, used, took) for member in benchmarks]
        return [
            answer_of(benchmark if isinstance(benchmark, str) else answers[0].benchmark, answers)
            for answers in map(list, zip(*runs, strict=True))
        ]

    return make


def _ranked(
    name: str,
    who: Composer | Scorer | Ranker,
    benchmark: Benchmark,
    options: RunOptions,
    costs: list[Cost],
) -> list[RankFile]:
    gallery, how = gallery_of(benchmark), options.reranker
    options = options.with_language()
    k = board_depth(benchmark).used if options.k is None else options.k
    if how is None:
        first, *others = options.each_aggregation(vectors=kind_of_class(who) == "composer")
        process = process_of(name, who, gallery, first)
        if not others:
            return [process.rank(k, whole=False)]
        # Only what aggregates turns has others.
        return cast("ByEmbeddings | ByScores", process).rank_by_each([first, *others], k)
    from submissions.running.reranking import reranked, unseen_pictures

    unseen = unseen_pictures(benchmark, how, options, encoded=kind_of_class(who) == "composer")
    process = process_of(name, who, gallery, options)
    made = process.rank(max(k, how.top), whole=True)
    made = reranked(name, made, benchmark, process, options, unseen, costs)
    for answer in made.rankings.values():
        for ranking in answer if benchmark.multi_turn else [answer]:
            del ranking[k:]
    for ranking in (made.subset_rankings or {}).values():
        del ranking[SUBSET_DEPTH:]
    return [made]


@one_truncation_warning()
@takes_run_options
def make_bundle(
    suite: str,
    method: str | Composer | Scorer | Ranker,
    options: RunOptions | None = None,
    **by_name: Unpack[RunFields],
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

    return cast("RankBundle", _one(suite_of(suite).id, method, options_from(options, by_name)))


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


def named_method(
    method: str | Composer | Scorer | Ranker, options: RunOptions
) -> tuple[str, Composer | Scorer | Ranker]:
    """A method, and what it is called in messages."""
    if isinstance(method, type):
        raise MethodError(f"{method.__name__} is a class. Fix: pass a method made of it, or its name.")
    if isinstance(method, str):
        checkpoint = None if options.checkpoint is None else str(options.checkpoint)
        return method, method_of(method, checkpoint=checkpoint)
    name = type(method).__name__
    if kind_of_class(method) is None:
        raise MethodError(f"{name} has none of compose, scores and rank. Fix: see docs/running.md.")
    return name, method


def process_of(
    name: str, who: Composer | Scorer | Ranker, gallery: Candidates, options: RunOptions
) -> ByEmbeddings | ByScores | ByLists:
    """A method with what it ranks, its models loaded; only what its kind needs is imported.

    Args:
        name: the method's, for messages.
        who: the method.
        gallery: what is ranked.
        options: of the run.

    Raises:
        CirError: as for `make_rank_file`.
    """
    kind = kind_of_class(who)
    if kind == "composer":
        from submissions.running.by_embeddings import ByEmbeddings

        return ByEmbeddings(name, cast("Composer", who), gallery, options)
    if kind == "ranker":
        from submissions.running.by_lists import ByLists

        return ByLists(name, cast("Ranker", who), gallery, options)
    from submissions.running.by_scores import ByScores

    return ByScores(name, cast("Scorer", who), gallery, options)

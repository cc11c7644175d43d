"""`rerank`: a rank file of any origin, checked, its method found again, and ranked anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from submissions.errors import MethodError
from submissions.methods.registry import kind_of, kind_of_class
from submissions.methods.sc4cir import SC4CIR, Cost
from submissions.methods.turns import gallery_of
from submissions.rank_file.benchmarks import Benchmarks
from submissions.rank_file.findings import RefusedError
from submissions.rank_file.model import RankBundle, RankFile, answer_of, runs_of
from submissions.running.answers import ByRank
from submissions.running.make import named_method, process_of
from submissions.running.options import RunOptions, option_words
from submissions.running.reranking import rankings_to_rerank, reranked, unseen_pictures
from submissions.validation import validate

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.encoders.protocol import Encoder
    from submissions.language.protocol import Language
    from submissions.methods.composing import Composer
    from submissions.methods.protocols import Ranker, Scorer
    from submissions.methods.turns import Candidates
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike


def rerank(
    rank_file: FileLike,
    benchmark: BenchmarkLike = None,
    *,
    language: str | Language | None = None,
    top: int | None = None,
    processes: str | None = None,
    turns: str | None = None,
    encoder: str | Path | Encoder | None = None,
    method: str | Composer | Scorer | Ranker | None = None,
    images: str | Path | None = None,
    options: RunOptions | None = None,
) -> RankFile | RankBundle:
    """Put the best images of each ranking in the order of SC4CIR; what stands behind them stays.

    Second rankings (CIRR's subsets) are ranked anew as well, bundles member by member. `make_rank_file` with
    `rerank="sc4cir"` is the method's rank file and then this.

    Args:
        rank_file: a valid rank file, or bundle, in any format, of whatever method.
        benchmark: what it answers, as in `validate`.
        language: who writes T' and T'': a name for `load_language`, or a backend; not needed for s1 alone.
        top: N, how many images of a ranking are ranked anew, 1 to 1,000; default: that of `options`, else 30.
        processes: what is added up: s1, s2, s3, or several with + between them; default: all three with a
            `method`, s1+s3 without one, and those of `options` where it has a re-ranker.
        turns: of a session `last` or `each`; default: that of `options`, else `last`.
        encoder: the method's, where it has one, which s3 compares words by as well; else that of s3 alone.
        method: the method that made the rank file, by which s1 and s2 are computed. Without it s1 is by rank,
            1 - (rank - 1) / N, and there is no s2.
        images: folder of the images; default: below `CIR_IMAGES`, and shapes are drawn.
        options: further ones, of pictures, encoders and the method, as for `make_rank_file`.

    Returns:
        A rank file or bundle whose method block says how it was ranked anew.

    Raises:
        RefusedError: validation found errors in the file.
        MethodError: an option does not fit, or the file was ranked anew before.
        LanguageError: not one query has the answers that it needs.
        CirError: as for `make_rank_file`.

    Example:
        >>> from submissions import make_rank_file
        >>> made = make_rank_file("shapes/val", "random")
        >>> rerank(made, top=10, processes="s1").rankings == made.rankings
        True
    """
    settings = rerank_options(
        method,
        options,
        language=language,
        top=top,
        processes=processes,
        turns=turns,
        encoder=encoder,
        images=images,
    )
    return rerank_file(rank_file, benchmark, method, settings)


def rerank_options(
    method: str | Composer | Scorer | Ranker | None,
    options: RunOptions | None = None,
    *,
    top: int | None = None,
    processes: str | None = None,
    turns: str | None = None,
    encoder: str | Path | Encoder | None = None,
    **others: Any,
) -> RunOptions:
    """What `rerank` is given, as the options of a run.

    Args:
        method: as for `rerank`.
        options: likewise, and so are the others.
        top: N.
        processes: what is added up.
        turns: which of a session.
        encoder: the method's or that of s3.
        others: further fields of `RunOptions`; None: as in `options`.
    """
    kind = kind_of(method) if isinstance(method, str) else kind_of_class(method)
    if processes is None and (options is None or options.rerank is None):
        processes = SC4CIR.processes if method is not None else "s1+s3"
    changes: dict[str, Any] = {
        "rerank_top": top,
        "rerank_processes": processes,
        "rerank_turns": turns,
        "encoder" if kind == "composer" else "rerank_encoder": encoder,
        **others,
    }
    return (options or RunOptions()).changed(
        rerank=SC4CIR.name, **{name: value for name, value in changes.items() if value is not None}
    )


def rerank_file(
    rank_file: FileLike,
    benchmark: BenchmarkLike,
    method: str | Composer | Scorer | Ranker | None,
    options: RunOptions,
    costs: list[Cost] | None = None,
) -> RankFile | RankBundle:
    """What `rerank` does, by the options of a run.

    Args:
        rank_file: as for `rerank`.
        benchmark: likewise.
        method: likewise.
        options: with a re-ranker.
        costs: filled with what re-ranking took.

    Raises:
        CirError: as for `rerank`.
    """
    how = cast("SC4CIR", options.reranker)
    asked, runs = files_to_rerank(rank_file, benchmark, method, options)
    options = options.with_language()
    made = []
    for run, member in runs:
        name, who = (run.method.name, None) if method is None else named_method(method, options)
        candidates = [
            image for _, ranking in rankings_to_rerank(run, member, how) for image in ranking[: how.top]
        ]
        encoded = kind_of_class(who) == "composer"
        unseen = unseen_pictures(member, how, options, candidates, encoded=encoded)
        similarity = ByRank(how.top)
        if who is not None:
            gallery = gallery_of(member)
            _check_known(candidates, gallery, name)
            similarity = process_of(name, who, gallery, options)
        made.append(reranked(name, run, member, similarity, options, unseen, costs))
    return answer_of(asked, made)


def _check_known(images: Sequence[str], gallery: Candidates, name: str) -> None:
    strange = next((image for image in images if image not in gallery.place), None)
    if strange is not None:
        raise MethodError(
            f"{strange!r:.100} is not in the gallery of {gallery.benchmark.id}, which {name} ranks. "
            "Fix: leave the method out (--method): s1 is then by rank."
        )


def files_to_rerank(
    rank_file: FileLike,
    benchmark: BenchmarkLike,
    method: str | Composer | Scorer | Ranker | None,
    options: RunOptions,
) -> tuple[str, list[tuple[RankFile, Benchmark]]]:
    """The benchmark or suite that a file answers, and its rank files with the benchmark of each, checked.

    Args:
        rank_file: as for `rerank`.
        benchmark: likewise.
        method: likewise.
        options: with a re-ranker.

    Raises:
        RefusedError: validation found errors in the file.
        MethodError: an option does not fit, or the file was ranked anew before.
    """
    if method is None and "s2" in cast("SC4CIR", options.reranker).used:
        raise MethodError(
            "the process s2 asks the method that made the rank file, and none is named. "
            "Fix: name it (--method), or leave s2 out: s1+s3."
        )
    unused = [name for name in options.given if name in ("k", "search")]
    if unused:
        raise MethodError(
            f"a rank file's rankings keep their length and images, and rerank has no use for "
            f"{option_words(unused)}. Fix: leave it out."
        )
    benchmarks = Benchmarks(benchmark)
    report = validate(rank_file, benchmarks, part=True)
    if not report.ok or report.rank_file is None:
        raise RefusedError(f"{report.file} cannot be ranked anew.", report)
    answer, checked = report.rank_file, []
    for run in runs_of(answer):
        if run.method.reranking:
            raise MethodError(
                f"{report.file}: {run.method.name} was ranked anew before ({run.method.reranking}). "
                "Fix: take the rank file that was made without the re-ranker."
            )
        member = benchmarks.load(run.benchmark)
        options.check(member, *((run.method.name, None) if method is None else named_method(method, options)))
        checked.append((_as_lists(run, by_turn=member.multi_turn), member))
    return answer.suite if isinstance(answer, RankBundle) else answer.benchmark, checked


def _as_lists(run: RankFile, *, by_turn: bool) -> RankFile:
    """A copy whose rankings are lists, which may be put in another order."""

    def lists(answer: Sequence[Any]) -> list[Any]:
        return [list(turn) for turn in answer] if by_turn else list(answer)

    return RankFile(
        run.benchmark,
        run.benchmark_version,
        run.method,
        {key: lists(answer) for key, answer in run.rankings.items()},
        {key: list(answer) for key, answer in run.subset_rankings.items()} if run.subset_rankings else None,
    )

"""What a call names: a benchmark, a method, and the process that ranks the one by the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from submissions.errors import MethodError
from submissions.methods.registry import kind_of_class, method_of

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.methods.composing import Composer
    from submissions.methods.protocols import Ranker, Scorer
    from submissions.methods.turns import Candidates
    from submissions.running.by_embeddings import ByEmbeddings
    from submissions.running.by_lists import ByLists
    from submissions.running.by_scores import ByScores
    from submissions.running.options import RunOptions


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

"""The evaluator of a training loop: a board's numbers each epoch, of what a model has, batch by batch."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import cir_datasets
from cir_datasets.registry.suites import find_suite
from cir_datasets.rows.benchmark import second_on_board
from cir_metrics.catalogue import METRICS
from submissions.errors import MethodError, WithheldError
from submissions.evaluator.held import all_or_nothing
from submissions.evaluator.member import MemberRanker, Similarity
from submissions.evaluator.processes import of_each
from submissions.rank_file.benchmarks import Benchmarks
from submissions.rank_file.findings import ValidationReport
from submissions.rank_file.model import (
    Method,
    RankBundle,
    RankFile,
    answer_of,
    checked_method,
    runs_of,
    write,
)
from submissions.running.make import loaded_benchmark
from submissions.running.user_ids import Names, by_member
from submissions.scoring import score_checked
from submissions.scoring.further_metrics import metric_names, parse_further
from submissions.scoring.score_report import ScoreReport, is_rank

if TYPE_CHECKING:
    import os

    from cir_datasets.rows.benchmark import Benchmark

_ARGUMENTS = {"lists": "ranked_ids", "subset_lists": "subset_ids"}
"""What `rank_file_from_lists` calls these arguments, and what `update` does."""


@dataclass(frozen=True)
class Best:
    """The best step so far.

    Args:
        metric: by which it is the best.
        value: the metric's value, as `compute` gave it.
        step: the step's number.
        rankings: the rank file or bundle of that step.
        notes: what a reader of its numbers must know.
        whole: whether all queries, images and second rankings were there.
    """

    metric: str
    value: float
    step: int
    rankings: RankFile | RankBundle
    notes: tuple[str, ...] = ()
    whole: bool = True


class Evaluator:
    """A benchmark's numbers from embeddings, scores or rankings in batches; made once, used each epoch.

    The numbers are those of `rank_file_from_embeddings` and `score`: gallery, reference, second lists, depth
    and ties follow the benchmark's definition. Vectors stay where they are; only rankings leave the device,
    and where several processes share the work, the vectors that they send each other.

    Args:
        benchmark: id of a benchmark or a suite, or a loaded benchmark.
        similarity: `cosine`, `dot`, or a function of some queries (B, ...) and all images (N, ...), as they
            were given, that returns scores (B, N), higher is better.
        over_vectors: `max` or `mean` of the similarities where a row is several vectors, (rows, vectors,
            dimensions).
        metrics: printed names, such as `recall@10`; None: the benchmark's.
        partial: whether queries and images may be missing; the numbers are then of what is there.
        block_size: queries that are compared at once; None: as many as some megabytes of scores hold.
        data_dir: the publisher's folder, as for `cir_datasets.load`.

    Raises:
        UnknownNameError: no benchmark, suite or metric has that name.
        MethodError: an argument is none of its values.
        WithheldError: the ground truth is not public.
        SourceError: the benchmark's data is not available.

    Example:
        >>> import numpy as np
        >>> evaluator = Evaluator("shapes/val")
        >>> values = evaluator(queries=np.eye(300, 8) + 1, images=np.ones((3940, 8)))
        >>> sorted(values)[0], evaluator.best("recall@10").step
        ('shapes/val/map@10', 1)
    """

    def __init__(
        self,
        benchmark: str | Benchmark,
        *,
        similarity: Similarity = "cosine",
        over_vectors: Literal["max", "mean"] = "max",
        metrics: Sequence[str] | None = None,
        partial: bool = False,
        block_size: int | None = None,
        data_dir: str | Path | None = None,
    ) -> None:
        """See the class."""
        if not callable(similarity) and similarity not in ("cosine", "dot"):
            raise MethodError(f"similarity={similarity!r}. Fix: pass 'cosine', 'dot' or a function.")
        if over_vectors not in ("max", "mean"):
            raise MethodError(f"over_vectors={over_vectors!r}. Fix: pass 'max' or 'mean'.")
        if block_size is not None and (not isinstance(block_size, int) or block_size < 1):
            raise MethodError(f"block_size={block_size!r}. Fix: pass a whole number from 1, or leave it out.")
        if metrics is not None and not metrics:
            raise MethodError(f"metrics={metrics!r}. Fix: name some, or leave it out for the benchmark's.")
        self._further = () if metrics is None else parse_further(metric_names(metrics))
        self._names = None if metrics is None else [entry.name for entry in self._further]
        ranks_second = metrics is None or any(METRICS[entry.module].reads_subset for entry in self._further)
        self._suite = find_suite(benchmark) if isinstance(benchmark, str) else None
        asked = (benchmark,) if self._suite is None else self._suite.benchmarks
        self._members: dict[str, MemberRanker] = {}
        for name in asked:
            loaded = _loaded(name, data_dir)
            self._members[loaded.id] = MemberRanker(
                loaded,
                Names(options=_ARGUMENTS, member=self._suite.short_name(loaded.id) if self._suite else ""),
                similarity=similarity,
                over_vectors=over_vectors,
                partial=partial,
                block_size=block_size,
                ranks_second=ranks_second,
            )
        self.id: str = next(iter(self._members)) if self._suite is None else self._suite.id
        self._report: ScoreReport | None = None
        self._values: dict[str, float] | None = None
        self._best: dict[str, Best] = {}
        self._step = 0
        self.notes: tuple[str, ...] = ()
        """What a reader of the last numbers must know, a sentence each."""

    def update(
        self,
        *,
        queries: Any = None,
        query_ids: Sequence[str] | None = None,
        images: Any = None,
        image_ids: Sequence[str] | None = None,
        scores: Any = None,
        ranked_ids: Sequence[Sequence[str]] | None = None,
        subset_ids: Sequence[Sequence[str]] | None = None,
        member: str | None = None,
    ) -> None:
        """Take a batch of one kind: embeddings of queries, of images or both; or scores; or rankings.

        Args:
            queries: shape (queries, dimensions) or (queries, vectors, dimensions); a tensor on any device or
                an array, float16, bfloat16, float32 or float64. Of a suite without `member` this and
                all others are given by member, as in `{"dress": ..., "shirt": ..., "toptee": ...}`.
            query_ids: id of each row, of a session's turn `SESSION#TURN`; None: the benchmark's order, which
                batches go on with.
            images: likewise, of the gallery.
            image_ids: id of each image's row, or of each column of `scores`; None: the gallery's order.
            scores: shape (queries, images), higher is better, over the whole gallery.
            ranked_ids: of each query its image ids, best first.
            subset_ids: of each query the images of its second list (CIRR's six), best first; where `metrics`
                names one that reads it, or `ranked_ids` hold too few of them.
            member: of a suite the category, such as `dress`.

        Raises:
            MethodError: of what was given one does not fit the other, or the benchmark.
        """
        given = {
            "queries": queries,
            "query_ids": query_ids,
            "images": images,
            "image_ids": image_ids,
            "scores": scores,
            "ranked_ids": ranked_ids,
            "subset_ids": subset_ids,
        }
        given = {argument: value for argument, value in given.items() if value is not None}
        by_name = [isinstance(value, Mapping) for value in given.values()]
        if self._suite is not None and member is None and all(by_name):
            parts = {name: by_member(self._suite, name, value, Names()) for name, value in given.items()}
            batches = [
                (ranker, {argument: part[name] for argument, part in parts.items()})
                for name, ranker in self._members.items()
            ]
        else:
            batches = [(self._member(member), given)]
        with all_or_nothing(rows for ranker, _ in batches for rows in ranker.held.values()):
            for ranker, batch in batches:
                ranker.take(batch)
        self._values = None

    def compute(self, *, step: int | None = None) -> dict[str, float]:
        """The numbers of what all processes were given since the last reset; each of them has to call this.

        Args:
            step: what `best` calls this evaluation; None: the number of evaluations so far.

        Returns:
            By name the values, such as `fashioniq/val/recall@10` and `fashioniq/val/dress/recall@10`:
            fractions, and mean and median ranks; a mean of metrics that ranks is `fashioniq/val/main`.

        Raises:
            MethodError: queries or images are missing, and `partial` is False; a row is not finite.
        """
        # One process may have been given more since then, and would wait for the others.
        if all(of_each(self._values is not None)) and self._values is not None:
            return dict(self._values)
        members = self._members.values()
        answers = [member.answer() for member in members]
        answer = answer_of(self.id, [each.rankings for each in answers])
        checked = ValidationReport("evaluator", self.id, (), answer, sum(len(a.benchmark) for a in answers))
        benchmarks = Benchmarks({each.benchmark.id: each.benchmark for each in answers})
        self._report = score_checked(checked, benchmarks, self._further)
        self.notes = tuple(note for each in answers for note in each.notes)
        whole = [each.benchmark for each in answers] == [member.benchmark for member in members]
        if not whole:
            warnings.warn(" ".join(self.notes), stacklevel=2)
        # Without second rankings no board takes the file, though some metrics do not read them.
        whole &= all(
            each.rankings.subset_rankings or not second_on_board(each.benchmark.spec) for each in answers
        )
        self._values = self._flat(self._report)
        self._step = self._step + 1 if step is None else step
        better = [metric for metric in self._values if self._is_better(metric)]
        if better:
            final = answer_of(self.id, [each.settle() for each in answers])
            for metric in better:
                value = self._values[metric]
                self._best[metric] = Best(metric, value, self._step, final, self.notes, whole)
        return dict(self._values)

    def reset(self) -> None:
        """Forget what was given; the best step stays."""
        for member in self._members.values():
            member.reset()
        self._values = None

    def __call__(self, **given: Any) -> dict[str, float]:
        """The numbers of what is given here alone; what `update` was given before stays as it is."""
        held = [member.held for member in self._members.values()]
        self.reset()
        try:
            self.update(**given)
            return self.compute()
        finally:
            for member, before in zip(self._members.values(), held, strict=True):
                member.held = before
            self._values = None

    def best(self, metric: str | None = None) -> Best:
        """The best step so far.

        Args:
            metric: such as `recall@10` or `dress/recall@10`; None: what ranks on the board.

        Raises:
            MethodError: nothing was computed yet, or no such metric.
        """
        name = self._key(metric)
        if name not in self._best:
            there = f"pass metric=, one of {', '.join(self._best)}" if self._best else "call compute() first"
            raise MethodError(f"{metric or 'main'}: no step has it. Fix: {there}.")
        return self._best[name]

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        method: str | Mapping[str, Any] | Method,
        metric: str | None = None,
    ) -> Path:
        """Write the rank file of the best step, as `cir score` and boards take it.

        Args:
            path: where, as for `submissions.write`.
            method: its name, or fields of `Method`.
            metric: by which the step is the best, as for `best`.

        Raises:
            MethodError: nothing was computed, or only a part of the benchmark was; `method` is refused.
        """
        best = self.best(metric)
        if not best.whole:
            raise MethodError(
                f"step {best.step} holds a part of {self.id} only. Fix: evaluate all of it, "
                "second lists too (subset_ids=) where it has them."
            )
        given = {"name": method} if isinstance(method, str) else method
        fix = f"give a name, or of {', '.join(Method.model_fields)}"
        described = checked_method(given, MethodError, fix)
        notes = " ".join(filter(None, (described.notes, *best.notes, self._chosen(best))))
        written = []
        for run in runs_of(best.rankings):
            change = {
                "notes": notes,
                "own_gallery": described.own_gallery or run.method.own_gallery,
                "reference": described.reference or run.method.reference,
            }
            written.append(replace(run, method=Method.model_validate(described.to_dict() | change)))
        return write(answer_of(self.id, written), path)

    def signature(self, metric: str | None = None) -> str:
        """What a number of the last evaluation depends on, as it is printed beside it.

        Args:
            metric: as for `best`.

        Raises:
            MethodError: nothing was computed yet, or no such metric.
        """
        wanted = self._key(metric)
        texts = {
            f"{prefix}/{name}": part.signature_text(name)
            for prefix, part in self._parts()
            for name in part.signatures
        }
        if wanted in texts:
            return texts[wanted]
        fix = f"pass metric=, one of {', '.join(texts)}" if texts else "call compute() first"
        raise MethodError(f"{metric or 'main'}: the last evaluation has no signature of it. Fix: {fix}.")

    def beside(
        self, text: str | Path | RankFile | RankBundle, image: str | Path | RankFile | RankBundle
    ) -> dict[str, float]:
        """What the last numbers are made of: queries by which single modality solves them.

        Args:
            text: rank file of a method that reads the text alone.
            image: of one that sees the reference image alone.

        Returns:
            By name the share and our number of each group of `submissions.beside`, both as fractions with the
            ends of their intervals: `shapes/val/recall@10/neither`, `shapes/val/recall@10/neither/low` and
            `high`; `shapes/val/recall@10/neither/share`, `share_low` and `share_high` likewise. A group
            without queries has its share alone.

        Raises:
            MethodError: nothing was computed yet.
            ComparisonError: the three answer different questions.
            CallError: queries are missing, or no metric is a hit.
        """
        from submissions.comparison.beside import beside
        from submissions.report import full_report
        from submissions.scoring import score

        if self._report is None:
            raise MethodError(f"{self.id}: nothing was computed yet. Fix: call compute() first.")
        names = [entry.name for entry in self._further]
        answered = None if self._suite else self._members[self.id].benchmark
        others = (score(file, answered, metrics=names) for file in (text, image))
        split = beside(full_report(self._report), *others)
        values: dict[str, float] = {}
        parts = self._parts()[1:] if split.members else self._parts()
        for (prefix, _), member in zip(parts, split.members or (split,), strict=True):
            for key, grouping in member.groupings.items():
                before, _, metric = key.partition(":")
                if before != "beside" or (self._names is not None and metric not in self._names):
                    continue
                for group in grouping.groups:
                    for name, value in group.values.items():
                        ending = "" if name == metric else f"/{name.replace(' ', '_')}"
                        if value is not None:
                            values[f"{prefix}/{metric}/{group.key}{ending}"] = value
        return values

    def _member(self, name: str | None) -> MemberRanker:
        if self._suite is None:
            if name not in (None, self.id):
                raise MethodError(f"member={name!r}: {self.id} is no suite. Fix: leave it out.")
            return self._members[self.id]
        found = self._suite.member(name)
        if found is None:
            short = ", ".join(map(self._suite.short_name, self._members))
            said = f"{self.id} is a suite" if name is None else f"member={name!r} is none of {self.id}"
            raise MethodError(f"{said}. Fix: pass member=, one of {short}; or give each argument by member.")
        return self._members[found]

    def _parts(self) -> list[tuple[str, ScoreReport]]:
        """The last report by what stands before its metrics: of a suite itself and its members."""
        if self._report is None:
            return []
        runs, whole = self._report.runs, [(self.id, self._report)]
        if self._suite is None:
            return whole
        return [*whole, *((f"{self.id}/{self._suite.short_name(run.benchmark)}", run) for run in runs)]

    def _flat(self, report: ScoreReport) -> dict[str, float]:
        values: dict[str, float] = {}
        for prefix, part in self._parts():
            for name, value in {**part.metrics, **part.extra}.items():
                if self._names is None or name.removesuffix("@micro") in self._names:
                    values[f"{prefix}/{name}"] = float(value)
        if report.main is not None and report.main_metric not in report.metrics:
            values[f"{self.id}/main"] = float(report.main)
        return values

    def _is_better(self, metric: str) -> bool:
        """Whether the last value is the best so far."""
        value, best = (self._values or {})[metric], self._best.get(metric)
        if best is None:
            return True
        return value < best.value if is_rank(metric.rpartition("/")[2]) else value > best.value

    def _key(self, metric: str | None) -> str:
        """A metric's name among the values."""
        if metric is None:
            report = self._report
            metric = report.main_metric if report and report.main_metric in report.metrics else "main"
        return metric if metric.startswith(f"{self.id}/") else f"{self.id}/{metric}"

    def _chosen(self, best: Best) -> str:
        """That the step was chosen on the split that papers report, where they report it; else nothing."""
        from cir_datasets.registry.published import published

        known = {self.id, *self._members}
        if not any(known & row.table.columns.keys() for row in published()):
            return ""
        metric = best.metric.removeprefix(f"{self.id}/")
        return f"Step {best.step} was chosen by {metric} on {self.id} itself, the split that papers report."


def _loaded(benchmark: str | Benchmark, data_dir: str | Path | None) -> Benchmark:
    if isinstance(benchmark, str) and data_dir is not None:
        benchmark = cir_datasets.load(benchmark, data_dir=data_dir)
    loaded = loaded_benchmark(benchmark)
    if loaded.ground_truth_withheld:
        raise WithheldError(
            f"{loaded.id}: its ground truth is withheld by its publisher. Fix: evaluate a split whose ground "
            "truth is public; rank_file_from_embeddings makes the file that the publisher's server scores."
        )
    return loaded

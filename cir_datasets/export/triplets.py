"""Training triplets: reference, caption and target out of a benchmark's rows, one for each positive.

This is how ZeroSight trains CIR methods: a query with several positives gives several triplets. Rows are read
from the prepared Parquet a batch at a time, so that memory does not grow with the benchmark.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pyarrow.parquet as pq

from cir_datasets.errors import CaptionRuleError, missing_extra
from cir_datasets.prepared import Prepared, ensure
from cir_datasets.registry.caption_rules import CaptionRule, caption_rule_names
from cir_datasets.registry.caption_rules import caption_rule as rule_of
from cir_datasets.rows.right import right_answers
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from cir_datasets.export.torch_triplets import TorchTriplets
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.records import Row

_BATCH_ROWS = 1_000
_QUERY_COLUMNS = ("query_id", "reference_image_id", "captions", "positive_image_ids")
_SESSION_COLUMNS = ("session_id", "turns", "ground_truth_ids")
_ONE_CAPTION = "single"


class _Three(NamedTuple):
    reference_image_id: str | None
    caption: str
    target_image_id: str


class Triplet(_Three):
    """One training example: a tuple of three, with the query that it comes from as an attribute.

    Two triplets are equal when the three are, whichever queries they come from.

    Args:
        reference_image_id: the image that the caption starts from; None in a turn without one.
        caption: what the caption rule makes of the captions; "" where there is none.
        target_image_id: one positive.
        query_id: the query; for a turn of a session `<session_id>#<turn>`. Empty in a batch that torch's
            default collate function makes of triplets.

    Example:
        >>> reference, caption, target = triplet = Triplet("a", "is red", "b", query_id="7")
        >>> triplet.caption, triplet.query_id
        ('is red', '7')
    """

    query_id: str = ""

    def __new__(
        cls, reference_image_id: str | None, caption: str, target_image_id: str, *, query_id: str = ""
    ) -> Self:
        """Put the query beside the three."""
        triplet = super().__new__(cls, reference_image_id, caption, target_image_id)
        triplet.query_id = query_id
        return triplet


class Triplets:
    """Training triplets of a benchmark, read anew from disk at every iteration.

    Inside a worker of torch's DataLoader an iteration gives that worker's share, so that all workers
    together give every triplet once; `to_torch` makes a DataLoader take it for a stream.

    Args:
        file: Parquet of the rows.
        spec: the benchmark.
        rule: how captions become text.
        share: `(number of shares, number of this one)`; rows are dealt out in turn.
    """

    def __init__(
        self, file: Path, spec: BenchmarkSpec, rule: CaptionRule, share: tuple[int, int] = (1, 0)
    ) -> None:
        """Keep them; nothing is read before the first iteration."""
        self.file = file
        self.spec = spec
        self.rule = rule
        self._share = share

    def __iter__(self) -> Iterator[Triplet]:
        """Triplets in the order of the rows."""
        return self._triplets(_worker_share(self._share))

    def __len__(self) -> int:
        """Number of triplets, of this share; counted once."""
        return self._length

    @functools.cached_property
    def _length(self) -> int:
        return sum(1 for _ in self._triplets(self._share))

    def __repr__(self) -> str:
        """What it holds, without reading it."""
        shares, number = self._share
        part = "" if shares == 1 else f", share {number} of {shares}"
        return f"Triplets({self.spec.id}, caption_rule={self.rule.name!r}{part})"

    def shard(self, num_shards: int, index: int) -> Triplets:
        """One of several disjoint shares, for a process of distributed training.

        Args:
            num_shards: number of shares, 1 or more.
            index: which of them, from 0.

        Raises:
            CallError: `index` is not below `num_shards`, or is negative.
        """
        if not 0 <= index < num_shards:
            raise CallError(f"share {index} of {num_shards}: it is from 0 to {num_shards - 1}.")
        shares, number = self._share
        return Triplets(self.file, self.spec, self.rule, (shares * num_shards, number + shares * index))

    def to_torch(self) -> TorchTriplets[Triplet]:
        """These triplets as a `torch.utils.data.IterableDataset`, for a DataLoader with any workers.

        Raises:
            MissingExtraError: torch is not installed.
        """
        try:
            from cir_datasets.export.torch_triplets import TorchTriplets
        except ImportError as error:
            raise missing_extra("to_torch", "torch", "retrieval") from error
        return TorchTriplets(self)

    def _triplets(self, share: tuple[int, int]) -> Iterator[Triplet]:
        shares, number = share
        multi_turn = self.spec.kind == "multi_turn"
        for place, row in enumerate(_rows(self.file, _SESSION_COLUMNS if multi_turn else _QUERY_COLUMNS)):
            if place % shares == number:
                yield from _of_session(row, self.rule) if multi_turn else _of_query(row, self.rule)


def triplets(
    benchmark_id: str,
    *,
    caption_rule: str | None = None,
    data_dir: str | Path | None = None,
    verification_mode: str | None = None,
) -> Triplets:
    """Training triplets of a benchmark: reference, caption and target, one for each positive.

    A turn of a session gives one for its own target, else for each ground truth. A rule that makes several
    texts of a query's captions gives as many triplets a positive. Hard negatives are not used.

    Args:
        benchmark_id: such as `fashioniq/dress_train`.
        caption_rule: how several captions become text, by name (see `caption_rule_names`); None is `single`,
            which suits benchmarks with one caption a query.
        data_dir: the publisher's folder or its parent; None looks below `CIR_DATA_HOME`, then downloads.
        verification_mode: `all_checks`, or `no_checks` to skip the counts; None takes
            `CIR_VERIFICATION_MODE`, else `all_checks`.

    Raises:
        CaptionRuleError: a query has several captions and no rule was given that says how they become text.
        CallError: the publisher withholds the ground truth.
        UnknownNameError: there is no such benchmark or rule.

    Example:
        >>> for reference, caption, target in triplets("shapes/val"):
        ...     break
        >>> next(iter(triplets("shapes/val"))).query_id
        'shapes_val_00000'
    """
    rule = rule_of(caption_rule or _ONE_CAPTION)
    prepared = ensure(benchmark_id, data_dir=data_dir, verification_mode=verification_mode)
    spec = prepared.spec
    if spec.config.ground_truth == "withheld":
        raise CallError(
            f"{spec.id}: its publisher withholds the ground truth, so that there are no targets to train on. "
            f"Fix: use a train split; `cir datasets list` shows all."
        )
    if rule.take == "only":
        _check_single(prepared, given=caption_rule is not None)
    return Triplets(prepared.rows_file, spec, rule)


def _check_single(prepared: Prepared, *, given: bool) -> None:
    """Refuse a benchmark with several captions before anything is trained on it."""
    multi_turn = prepared.spec.kind == "multi_turn"
    for row in _rows(prepared.rows_file, ("session_id", "turns") if multi_turn else ("query_id", "captions")):
        asked = (
            [(f"{row['session_id']}#{turn['turn']}", _captions(turn)) for turn in row["turns"]]
            if multi_turn
            else [(row["query_id"], row["captions"])]
        )
        for query_id, captions in asked:
            if len(captions) > 1:
                why = (
                    f"the caption rule {_ONE_CAPTION!r} is for one" if given else "no caption rule was given"
                )
                names = [name for name in caption_rule_names() if name != _ONE_CAPTION]
                raise CaptionRuleError(
                    f"{prepared.spec.id}: query {query_id} has {len(captions)} captions, and {why}; papers "
                    f"differ in how they make text of them. Fix: caption_rule= one of {', '.join(names)}."
                )


def _rows(file: Path, columns: tuple[str, ...]) -> Iterator[Row]:
    with pq.ParquetFile(file) as opened:
        for batch in opened.iter_batches(_BATCH_ROWS, columns=list(columns)):
            yield from batch.to_pylist()


def _of_query(row: Row, rule: CaptionRule) -> Iterator[Triplet]:
    for caption in rule.texts(row["captions"]):
        for target in row["positive_image_ids"]:
            yield Triplet(row["reference_image_id"], caption, target, query_id=row["query_id"])


def _of_session(row: Row, rule: CaptionRule) -> Iterator[Triplet]:
    for turn in row["turns"]:
        query_id = f"{row['session_id']}#{turn['turn']}"
        for caption in rule.texts(_captions(turn)):
            for target in right_answers(row, (), turn["turn"] - 1):
                yield Triplet(turn["reference_image_id"], caption, target, query_id=query_id)


def _captions(turn: Row) -> list[str]:
    """The captions of a turn: as published where there are several, else the one, if any."""
    one = turn["relative_caption"]
    captions: list[str] = turn.get("captions") or ([] if one is None else [one])
    return captions


def _worker_share(share: tuple[int, int]) -> tuple[int, int]:
    """A share dealt out again among the workers of torch's DataLoader, where this is one of them."""
    data: Any = sys.modules.get("torch.utils.data")  # torch that nobody imported has no workers
    worker = None if data is None else data.get_worker_info()
    if worker is None:
        return share
    shares, number = share
    return shares * worker.num_workers, number + shares * worker.id

"""One benchmark of an evaluator: what is asked, and the rank file of what was given since the last reset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cir_datasets.rows import id_array
from cir_datasets.rows.benchmark import Benchmark, first_ranking, second_on_board
from cir_metrics.catalogue import INCOMPLETE
from cir_metrics.sums import IntArray
from submissions.errors import MethodError
from submissions.evaluator.held import EpochRows, checked
from submissions.evaluator.processes import of_each
from submissions.evaluator.ranking import (
    SCORES,
    Block,
    Products,
    RankedColumns,
    TurnPlaces,
    as_numbers,
    exact_products,
    ranked,
)
from submissions.methods.turns import Candidates, Turn, excluded_columns, turns_of
from submissions.rank_file.benchmarks import Spelling, board_depth, image_family
from submissions.rank_file.columns import Columns
from submissions.rank_file.model import Method, RankFile
from submissions.running.answers import declaring_reference
from submissions.running.user_arrays import is_tensor, numbers
from submissions.running.user_embeddings import joined_vectors
from submissions.running.user_ids import (
    Names,
    RankSettings,
    check_keys,
    described,
    given_ids,
    own_gallery,
    rows_and_turns,
)
from submissions.running.user_lists import ranked_by_lists

Similarity = Literal["cosine", "dot"] | Callable[[Any, Any], Any]
"""How a query and an image are compared; or a function of a block of queries and all images."""

_KINDS = {"vectors": "queries= and images=", "scores": "scores=", "ranked_ids": "ranked_ids="}
"""What a batch may hold, one of these."""

SHOWN = 3
"""Ids that a message names."""


@dataclass(frozen=True)
class RankedMember:
    """What was ranked.

    Args:
        benchmark: as far as its queries and images were given.
        rankings: in which the images that metrics ask for have their final places.
        notes: what a reader must know, a sentence each.
        settle: gives the rankings in their final order.
    """

    benchmark: Benchmark
    rankings: RankFile
    notes: list[str]
    settle: Callable[[], RankFile]


@dataclass(eq=False)
class MemberRanker:
    """One benchmark, and what was given for it.

    Args:
        benchmark: what is ranked.
        names: what messages call the arguments.
        similarity: as for `Evaluator`.
        over_vectors: likewise.
        partial: likewise.
        block_size: likewise.
        ranks_second: whether a metric that is wanted reads second rankings; then lists have to hold them.
    """

    benchmark: Benchmark
    names: Names
    similarity: Similarity
    over_vectors: str
    partial: bool
    block_size: int | None
    ranks_second: bool

    def __post_init__(self) -> None:
        """Nothing is held yet."""
        self._rows, self._turns = rows_and_turns(self.benchmark)
        self._keys = list(self._turns)
        self._depth = board_depth(self.benchmark).used
        gallery = self.benchmark.gallery or ()
        self._spelling, self._images = Spelling(image_family(self.benchmark.spec), gallery), set(gallery)
        self._places: TurnPlaces | None = None
        # The images that `_places` is of, as they were given, where none is missing.
        self._whole: list[str] = []
        self.reset()

    def reset(self) -> None:
        """Forget what was given."""
        arguments = ("queries", "images", "ranked_ids", "subset_ids")
        self.held = {argument: EpochRows(argument, self.names) for argument in arguments}

    def take(self, given: Mapping[str, Any]) -> None:
        """Take a batch, as `Evaluator.update` is given it.

        Raises:
            MethodError: of what was given one does not fit the other, or the benchmark.
        """
        kinds = {"vectors" if name in ("queries", "images") else name for name in given} & set(_KINDS)
        if len(kinds) != 1:
            fix = "leave the others out" if kinds else "give one of them"
            raise MethodError(f"update takes {', or '.join(_KINDS.values())}. Fix: {fix}.")
        self.check_ids(given.get("query_ids"), given.get("image_ids"))
        if "scores" in given:
            self.add_scores(given["scores"], given.get("query_ids"), given.get("image_ids"))
        for argument, rows in self.held.items():
            if argument in given:
                rows.add(given[argument], given.get(rows.ids_argument))

    def check_ids(self, query_ids: Any, image_ids: Any) -> None:
        """Refuse ids that the benchmark does not have, before an epoch was spent on their rows."""
        if query_ids is not None:
            self._check_known(given_ids(query_ids, self.names.of("query_ids"), "row", "a query"))
        if image_ids is not None and self.benchmark.gallery is not None:
            ids = self._spelling.all(given_ids(image_ids, self.names.of("image_ids"), "row"))
            if not self._images.issuperset(ids):
                own_gallery(ids, self.benchmark, self.names)

    def answer(self) -> RankedMember:
        """What was given since the last reset, ranked."""
        # All processes go the same way, also one that holds nothing.
        held = of_each({argument for argument, rows in self.held.items() if len(rows)})
        arguments = set().union(*held) - {"subset_ids"}
        if not arguments:
            member = f"member={self.names.member!r}" if self.names.member else ""
            raise MethodError(
                f"{self.benchmark.id}: nothing was given. Fix: call update({member}) before compute()."
            )
        if "ranked_ids" in arguments and len(arguments) > 1:
            raise MethodError(
                f"{self.benchmark.id}: rankings and embeddings were given. Fix: give one of them."
            )
        return self._of_lists() if "ranked_ids" in arguments else self._of_vectors()

    def _of_vectors(self) -> RankedMember:
        keys, queries = self.held["queries"].whole(self._keys)
        written, images = self.held["images"].whole(list(self.benchmark.gallery or ()))
        notes = self._order_notes("queries", "images")
        left_out = self._missing(keys, self._keys, "queries")
        if self._places is not None and written == self._whole:
            ids, missing = self._places.ids, []  # As in the epoch before.
        else:
            ids = self._spelling.all(written)
            missing = self._missing(ids, self.benchmark.gallery, "images")
            if not missing:
                own_gallery(ids, self.benchmark, self.names)
        left_out += missing
        benchmark = self._part(keys, ids) if left_out else self.benchmark
        places = self._placed(ids, benchmark)
        self._whole = [] if missing else written
        turns = as_numbers(keys, self._keys)
        with exact_products():
            if callable(self.similarity):
                blocks = self._own_blocks(self.similarity, queries, images, ids)
                first, second = ranked(blocks, places, turns, self._depth)
            else:
                products = self._products(queries, images, keys, ids)
                blocks = products.blocks(self.block_size or max(1, SCORES // len(ids)))
                first, second = ranked(blocks, places, turns, self._depth, products.exact)

        def settle() -> RankFile:
            if callable(self.similarity):
                return self._rank_file(benchmark, keys, ids, first, second)
            # Made once more: kept until here they would be as large as what was given.
            exact = self._products(queries, images, keys, ids).exact
            best = first.settled(exact, places, turns)
            others = second and second.settled(exact, places, turns)
            return self._rank_file(benchmark, keys, ids, best, others)

        rankings = self._rank_file(benchmark, keys, ids, first, second)
        return RankedMember(benchmark, rankings, [*notes, *left_out], settle)

    def _rank_file(
        self,
        benchmark: Benchmark,
        keys: Sequence[str],
        ids: Sequence[str],
        first: RankedColumns,
        second: RankedColumns | None,
    ) -> RankFile:
        images, offsets = id_array(ids), None
        asked = self._keys if benchmark is self.benchmark else list(rows_and_turns(benchmark)[1])
        if benchmark.multi_turn:
            offsets = np.concatenate([[0], np.cumsum(benchmark.column("num_turns"))])
        called = benchmark.query_ids
        return RankFile(
            benchmark.id,
            benchmark.version,
            self._method(ids),
            _ranked(keys, first.columns, images).picked(asked, called=called, turn_offsets=offsets),
            None if second is None else _ranked(keys, second.columns, images).picked(called),
        )

    def _own_blocks(
        self, similarity: Callable[[Any, Any], Any], queries: Any, images: Any, ids: list[str]
    ) -> Iterator[Block]:
        step = self.block_size or max(1, SCORES // len(ids))
        for start in range(0, len(queries), step):
            asked = queries[start : start + step]
            block = score_block(similarity(asked, images), ids, "similarity")
            if len(block.near) != len(asked):
                raise MethodError(
                    f"similarity: {len(block.near):,} rows of scores for {len(asked):,} queries. "
                    "Fix: return shape (queries, images)."
                )
            yield block

    def _products(self, queries: Any, images: Any, keys: list[str], ids: list[str]) -> Products:
        questions, of_query = self._vectors(queries, "queries", keys, "query")
        gallery, of_image = self._vectors(images, "images", ids, "image")
        device = next((rows.device for rows in (gallery, questions) if is_tensor(rows)), None)
        if device is not None:
            import torch

            questions, gallery = (torch.as_tensor(rows, device=device) for rows in (questions, gallery))
        if questions.shape[1] != gallery.shape[1]:
            raise MethodError(
                f"queries have {questions.shape[1]:,} dimensions, images {gallery.shape[1]:,}. "
                "Fix: give both in the space in which they are compared."
            )
        return Products(questions, gallery, of_query, of_image)

    def _vectors(self, given: Any, argument: str, ids: Sequence[str], of: str) -> tuple[Any, int]:
        """Rows to be compared, as float32, and how many there are of each id."""
        each = given.shape[1] if len(given.shape) == 3 else 1
        flat = given.reshape(-1, given.shape[-1])
        named = [name for name in ids for _ in range(each)] if each > 1 else ids
        normalise = self.similarity == "cosine"
        if is_tensor(given) and given.device.type == "cuda":
            wide = flat.double()
            rows = (wide / wide.norm(dim=1, keepdim=True) if normalise else wide).float()
            if not bool(rows.isfinite().all()):
                raise MethodError(f"{argument}: a row is not finite, or all zeros. Fix: find where it arose.")
        else:
            rows = joined_vectors(
                {argument: flat}, argument, named, of, names=self.names, normalise=normalise
            )
        if each > 1 and self.over_vectors == "mean":
            # The mean over all pairs is the product of the means.
            parts = rows.reshape(-1, each, rows.shape[1])
            rows, each = sum(parts[:, number] for number in range(each)) / each, 1
        return rows, each

    def _placed(self, ids: list[str], benchmark: Benchmark) -> TurnPlaces:
        """Where all turns' images stand among those given; kept until other images are."""
        if self._places is not None and self._places.ids == ids:
            return self._places
        self._whole = []
        gallery = Candidates(benchmark, ids)
        first, second = first_ranking(benchmark.spec), second_on_board(benchmark.spec)
        self._places = TurnPlaces(
            list(ids),
            self._keys,
            excluded_columns(list(self._turns.values()), gallery),
            _columns([_judged(row, turn) for row in self._rows for turn in turns_of(row)], gallery),
            _columns([first.images(row) for row in self._rows], gallery) if first.column else None,
            None if second is None else _columns([second.images(row) for row in self._rows], gallery),
        )
        return self._places

    def _method(self, ids: Sequence[str] | None) -> Method:
        """Who answers, with what was ranked and what became of the reference."""
        return declaring_reference(described("Evaluator", self.benchmark, ids), self.benchmark)

    def add_scores(
        self, scores: Any, query_ids: Sequence[str] | None, image_ids: Sequence[str] | None
    ) -> None:
        """Rank a block of scores, of which only the rankings are kept.

        Raises:
            MethodError: not a row a query and a column an image; an id is unknown or missing; a score is NaN.
        """
        gallery = list(self.benchmark.gallery or ()) if image_ids is None else image_ids
        ids = own_gallery(gallery, self.benchmark, self.names)
        block = score_block(scores, ids, self.names.of("scores"))
        rows, lists = len(block.near), self.held["ranked_ids"]
        if query_ids is None:
            keys = self._keys[len(lists) : len(lists) + rows]
        else:
            keys = given_ids(query_ids, "query_ids", "row")
        if len(keys) != rows:
            raise MethodError(f"scores: {rows:,} rows for {len(keys):,} queries. Fix: name each row.")
        places = self._placed(ids, self.benchmark)
        first, second = ranked(iter([block]), places, as_numbers(keys, self._keys), self._depth)
        lists.add(_named(first.columns, ids), query_ids)
        lists.scored = True
        if second is not None:
            self.held["subset_ids"].add(_named(second.columns, ids), query_ids)

    def _of_lists(self) -> RankedMember:
        held, seconds = self.held["ranked_ids"], self.held["subset_ids"]
        keys, lists = held.whole(self._keys)
        left_out = self._missing(keys, self._keys, "ranked_ids")
        benchmark = self._part(keys, list(self.benchmark.gallery or ())) if left_out else self.benchmark
        rankings = {"lists": dict(zip(keys, lists, strict=True))}
        if any(of_each(len(seconds))):
            rankings["subset_lists"] = dict(zip(*seconds.whole(self._keys), strict=True))
        name: str | Method = "Evaluator"
        # Where the protocol keeps references and no list of scores holds one, a caller took them out before.
        if any(of_each(held.scored)) and (
            self.benchmark.excludes_reference
            or any(self._turns[key].reference in ranking for key, ranking in zip(keys, lists, strict=True))
        ):
            name = self._method(None)
        answer = ranked_by_lists(
            benchmark,
            rankings,
            self.names,
            RankSettings(name, ranks_second=self.ranks_second or "subset_lists" in rankings),
        )
        return RankedMember(benchmark, answer, [*self._order_notes("ranked_ids"), *left_out], lambda: answer)

    def _order_notes(self, *arguments: str) -> list[str]:
        unnamed = [argument for argument in arguments if self.held[argument].by_position]
        if not unnamed:
            return []
        return [
            f"{self.benchmark.id}: {' and '.join(unnamed)} came without ids, taken in the publisher's order."
        ]

    def _missing(self, ids: Sequence[str], known: Sequence[str] | None, of: str) -> list[str]:
        """What of the benchmark's was not given, in words.

        Raises:
            MethodError: something was not given, and `partial` is False.
        """
        if known is None:
            return []
        held = set(ids)
        missing = [known_id for known_id in known if known_id not in held]
        if not missing:
            return []
        sentence = (
            f"{self.names.of(of)}: {len(missing):,} of {len(known):,} of {self.benchmark.id} are missing, "
            f"{', '.join(map(repr, missing[:SHOWN]))} first."
        )
        if len(missing) == len(known):
            raise MethodError(f"{self.names.of(of)}: none of {self.benchmark.id} was given. Fix: give some.")
        if not self.partial:
            raise MethodError(
                f"{sentence} Fix: give every row (drop_last=False, no limit on validation batches); "
                "Evaluator(..., partial=True) computes what is there."
            )
        return [f"{sentence} The numbers are of the others alone."]

    def _check_known(self, keys: Sequence[str]) -> None:
        if not self._turns.keys() >= set(keys):
            check_keys(keys, self._keys, self.benchmark, self.names, "query_ids")

    def _part(self, keys: Sequence[str], ids: list[str]) -> Benchmark:
        """The benchmark as far as its queries and images were given, for a number that says so."""
        held = set(keys)
        rows = [row for row in self._rows if all(turn.key in held for turn in turns_of(row))]
        if not rows:
            raise MethodError(f"{self.benchmark.id}: no session is whole. Fix: give all turns of each.")
        own = self.benchmark
        return Benchmark.from_rows(
            own.spec, rows, ids, pinned=own.pinned, checks_skipped=(*own.checks_skipped, INCOMPLETE)
        )


def score_block(scores: Any, ids: Sequence[str], called: str) -> Block:
    """Scores that somebody else has computed, a row a query and a column an image.

    Raises:
        MethodError: they are of another shape or type, or one is NaN.
    """
    scores = checked(scores, called, (2,))
    if scores.shape[1] != len(ids):
        raise MethodError(
            f"{called}: shape {tuple(scores.shape)}; there are {len(ids):,} images. "
            "Fix: give a column for each, and no other."
        )
    whole: Any = scores
    if not (is_tensor(scores) and scores.device.type != "cpu" and scores.is_floating_point()):
        whole = numbers(scores, called, "scores")
    elif scores.element_size() < 4:
        whole = scores.float()
    if bool((whole != whole).any()):
        raise MethodError(f"{called} holds NaN. Fix: find where it arose; -inf puts an image last.")
    return Block(whole, np.zeros(len(scores)))


def _judged(row: Mapping[str, Any], turn: Turn) -> list[str]:
    """The images whose places a metric or a signature asks for."""
    several = ("positive_image_ids", "negative_image_ids", "ground_truth_ids")
    images = {image for name in several for image in row.get(name) or ()}
    return [image for image in {*images, row.get("target_image_id"), turn.reference} if image is not None]


def _columns(lists: Sequence[Sequence[str]], gallery: Candidates) -> IntArray:
    """Columns of lists of images, -1 behind the end of each; of an image that was not given none."""
    columns = np.full((len(lists), max(map(len, lists))), -1, dtype=np.int64)
    for row, images in zip(columns, lists, strict=True):
        places = [gallery.place[image] for image in images if image in gallery.place]
        row[: len(places)] = places
    return columns


def _named(columns: IntArray, ids: Sequence[str]) -> list[list[str]]:
    return [[ids[column] for column in row if column >= 0] for row in columns.tolist()]


def _ranked(keys: Sequence[str], columns: IntArray, images: Any) -> Columns:
    """Rankings of columns, -1 behind the last, by the keys of turns."""
    there = columns >= 0
    offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return Columns(keys, columns[there].astype(np.int32), offsets, images)

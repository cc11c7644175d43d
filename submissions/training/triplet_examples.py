"""Triplets with their subsets: which images may be negatives of a query, and which queries are held out."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.rows.right import right_answers
from cir_metrics.errors import CallError
from submissions.training.triplets import Examples, joined, joint_hash, load_triplets, offsets
from submissions.training.validation import Validation

if TYPE_CHECKING:
    from submissions.embeddings.store import EmbeddingStore
    from submissions.encoders.protocol import Encoder

Rows = NDArray[np.int64]
Vectors = NDArray[np.float32]

_MEASURED_AT_ONCE = 256


@dataclass(frozen=True)
class Truth:
    """What is known of a query beside its triplets.

    Args:
        targets: the images that its recall is measured by.
        subset: the images of its subset, the reference among them; empty where there is none.
    """

    targets: tuple[str, ...]
    subset: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Measured:
    """What is measured on after each epoch.

    Args:
        examples: those of the training, or of another benchmark.
        rows: one of `examples` for each query.
        answers: to these queries.
    """

    examples: Examples
    rows: Rows
    answers: Validation

    @property
    def captions(self) -> list[str]:
        """Of the queries."""
        return [self.examples.captions[text] for text in self.examples.texts[self.rows]]

    def recalls(self, network: Any, vectors: Vectors, tokens: Rows, padding: int) -> dict[str, float]:
        """Recalls of a network, by name.

        Args:
            network: a composition, in evaluation.
            vectors: of the images of `examples`, with a row of zeros more.
            tokens: of the captions of the queries.
            padding: number of the padding token.
        """
        from submissions.methods.heads.composition import composed_vectors, projected_vectors

        references = vectors[self.examples.references[self.rows]]
        queries = composed_vectors(network, references, tokens, padding, _MEASURED_AT_ONCE)
        images = projected_vectors(network, vectors[:-1], _MEASURED_AT_ONCE)
        return self.answers.recalls(queries, images)


@dataclass(frozen=True, eq=False)
class TripletData:
    """What is trained on and what is measured on.

    Args:
        examples: all triplets of the benchmark, or of a suite's members.
        rows: those that are trained on, as rows of `examples`.
        subsets: pairs of a query and an image of its subset, as numbers of `examples`, shape (m, 2).
        gallery_size: images of the galleries of all members.
        measured: of each benchmark that is measured on; empty where none is.
        members: what was joined; empty where there is one benchmark.
    """

    examples: Examples
    rows: Rows
    subsets: Rows
    gallery_size: int
    measured: tuple[Measured, ...] = ()
    members: tuple[TripletData, ...] = ()

    @property
    def counts(self) -> list[int]:
        """Triplets of each member that are trained on."""
        return [int(count) for count in np.bincount(self.examples.members[self.rows])]

    @property
    def measured_hash(self) -> str:
        """sha256 (hex) of the rows that are measured on."""
        return joint_hash([measured.examples.data_hash for measured in self.measured])

    @functools.cached_property
    def said(self) -> list[str]:
        """The captions that are trained on, each as often as it is said."""
        return [self.examples.captions[text] for text in self.examples.texts[self.rows]]

    @functools.cached_property
    def _own(self) -> NDArray[np.int64]:
        """Pairs of a query and an image that is never its negative, as sorted numbers."""
        examples = self.examples
        width = len(examples.picture_ids) + 1
        positives = examples.queries * width + examples.targets
        return np.unique(np.concatenate([positives, self.subsets[:, 0] * width + self.subsets[:, 1]]))

    def allowed(self, rows: Rows, *, composed: bool) -> NDArray[np.bool_]:
        """Which of a batch may be negatives of a query: never positives, never members of its own subset.

        A composed query of another is left out where its reference or its target is such a member.

        Args:
            rows: of `examples`, shape (n,).
            composed: whether composed queries are negatives, too.

        Returns:
            Shape (n, n), or (n, 2 n) where the second half stands for composed queries.
        """
        width = len(self.examples.picture_ids) + 1
        queries = self.examples.queries[rows][:, None] * width

        def foreign(images: Rows) -> NDArray[np.bool_]:
            pairs = queries + images[None, :]
            found = np.minimum(np.searchsorted(self._own, pairs), len(self._own) - 1)
            return np.asarray(self._own[found] != pairs)

        targets = foreign(self.examples.targets[rows])
        if not composed:
            return targets
        return np.concatenate([targets, targets & foreign(self.examples.references[rows])], axis=1)

    @functools.cached_property
    def has_negatives(self) -> bool:
        """Whether any query (of each member) has a negative among the targets that are trained on."""
        if self.members:
            return all(member.has_negatives for member in self.members)
        examples = self.examples
        targets = np.unique(examples.targets[self.rows])
        width = len(examples.picture_ids) + 1
        own = self._own[np.isin(self._own % width, targets)] // width
        counts = np.bincount(own, minlength=len(examples.query_ids))
        return bool((counts[examples.queries[self.rows]] < len(targets)).any())

    @functools.cached_property
    def _by_reference(self) -> tuple[Rows, Rows]:
        """Places in `rows` in the order of their references; for each place where its reference's begin."""
        examples = self.examples
        # What has no reference is together with what has none of its own member.
        nothing = examples.references == len(examples.picture_ids)
        references = np.where(nothing, examples.references + examples.members, examples.references)[self.rows]
        order = np.argsort(references, kind="stable")
        return order, np.searchsorted(references[order], references)

    def beside(self, places: Rows, numbers: Rows) -> Rows:
        """Triplets of the same references.

        Args:
            places: in `rows`, shape (n,).
            numbers: any numbers from 0, which choose among a reference's triplets, shape (n, m).

        Returns:
            Rows of `examples`, shape (n, m).
        """
        order, begins = self._by_reference
        counts = np.bincount(begins, minlength=len(begins))[begins[places]]
        return self.rows[order[begins[places][:, None] + numbers % counts[:, None]]]

    def vectors(self, encoder: Encoder, store: EmbeddingStore | None) -> tuple[Vectors, list[Vectors]]:
        """Vectors of the images trained on and of those measured on, each with zeros behind the last."""
        from submissions.embeddings.embed import embed_gallery

        def of(examples: Examples) -> Vectors:
            return examples.vectors(lambda part: embed_gallery(encoder, part, store=store).vectors)

        trained = of(self.examples)
        return trained, [
            trained if each.examples is self.examples else of(each.examples) for each in self.measured
        ]


def load_triplet_data(
    benchmark_id: str,
    *,
    validation: str | None = None,
    hold_out: float = 0.0,
    caption_rule: str | None = None,
    images: str | Path | None = None,
) -> TripletData:
    """The triplets of a benchmark, or of a suite's members, and what is measured on after each epoch.

    Args:
        benchmark_id: such as `cirr/train`, or a suite such as `fashioniq/train`.
        validation: id of a benchmark or suite that is measured on; None: none.
        hold_out: share of the references whose queries are measured on, and not trained on.
        caption_rule: how several captions become text, by name; None suits benchmarks with one caption.
        images: folder of the benchmarks' images; None looks below `CIR_IMAGES`, and draws shapes.

    Raises:
        CallError: the ground truth is withheld, or `hold_out` leaves no reference on one of the two sides.
        UnknownNameError: no benchmark or rule has that name.
        CaptionRuleError: a query has several captions and no rule was given.
        SourceError: the data or the folder of images is not available.
    """
    from cir_datasets.registry import members_of

    of_member = functools.partial(_of_benchmark, hold_out=hold_out, caption_rule=caption_rule, images=images)
    data = _joined([of_member(member) for member in members_of(benchmark_id)])
    if validation is None:
        return data
    members = members_of(validation)
    measured = tuple(_validation(member, caption_rule=caption_rule, images=images) for member in members)
    return replace(data, measured=measured)


def _of_benchmark(
    benchmark_id: str, *, hold_out: float, caption_rule: str | None, images: str | Path | None
) -> TripletData:
    """What is trained on of one benchmark, and what is held out of it."""
    import cir_datasets

    benchmark = cir_datasets.load(benchmark_id)
    answers, references = _answers(benchmark.rows())
    held = _held_out(references, hold_out) if hold_out else frozenset()
    if hold_out and not held:
        raise CallError(
            f"{benchmark_id}: hold_out={hold_out} of {len(set(references.values())):,} references is none. "
            "Fix: hold more out (hold_out: 0.1 is a usual one)."
        )
    # The whole gallery: what is held out is ranked against it, and its vectors serve `cir run` as well.
    also = benchmark.gallery or {image for query in held for image in answers[query].subset}
    examples = load_triplets(benchmark_id, caption_rule=caption_rule, images=images, also=also)
    is_held = np.array([query in held for query in examples.query_ids])[examples.queries]
    rows = np.flatnonzero(~is_held)
    if held and not len(rows):
        raise CallError(f"{benchmark_id}: hold_out={hold_out} leaves no triplet. Fix: hold less out.")
    place = {image: row for row, image in enumerate(examples.picture_ids)}
    of_subsets = [
        (number, place[image])
        for number, query in enumerate(examples.query_ids)
        for image in answers[query].subset
        if image in place
    ]
    subsets = np.array(of_subsets, dtype=np.int64).reshape(-1, 2)
    size = len(benchmark.gallery or examples.picture_ids)
    if not held:
        return TripletData(examples, rows, subsets, size)
    measured = _measured(examples, np.flatnonzero(is_held), answers, benchmark.excludes_reference)
    return TripletData(examples, rows, subsets, size, (measured,))


def _validation(benchmark_id: str, *, caption_rule: str | None, images: str | Path | None) -> Measured:
    """What of one benchmark is measured on: all of it."""
    import cir_datasets

    other = cir_datasets.load(benchmark_id)
    answers, _ = _answers(other.rows())
    also = other.gallery or ()
    examples = load_triplets(benchmark_id, caption_rule=caption_rule, images=images, also=also)
    return _measured(examples, np.arange(len(examples.targets)), answers, other.excludes_reference)


def _joined(parts: Sequence[TripletData]) -> TripletData:
    """The data of several members behind each other; of one, this."""
    if len(parts) == 1:
        return parts[0]
    all_examples = [part.examples for part in parts]
    triplets, queries, pictures = (
        offsets([len(getattr(examples, name)) for examples in all_examples])
        for name in ("targets", "query_ids", "picture_ids")
    )
    return TripletData(
        joined(all_examples),
        np.concatenate([part.rows + first for part, first in zip(parts, triplets, strict=True)]),
        np.concatenate([part.subsets + first for part, *first in zip(parts, queries, pictures, strict=True)]),
        sum(part.gallery_size for part in parts),
        tuple(measured for part in parts for measured in part.measured),
        tuple(parts),
    )


def _measured(examples: Examples, rows: Rows, answers: Mapping[str, Truth], excluded: bool) -> Measured:
    """What is measured on: the first row of each query among these."""
    _, firsts = np.unique(examples.queries[rows], return_index=True)
    asked = rows[firsts]
    place = {image: row for row, image in enumerate(examples.picture_ids)}
    references = examples.references[asked]
    known = [answers[examples.query_ids[number]] for number in examples.queries[asked]]
    reference_ids = [examples.picture_ids[row] if row < len(place) else None for row in references]
    validation = Validation(
        np.where(references < len(place), references, -1),
        [_places(each.targets, place) for each in known],
        [
            _places([image for image in each.subset if image != reference], place)
            for each, reference in zip(known, reference_ids, strict=True)
        ],
        excluded,
    )
    return Measured(examples, asked, validation)


def _places(images: Sequence[str], place: Mapping[str, int]) -> Rows:
    return np.array([place[image] for image in images if image in place], dtype=np.int64)


def _answers(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Truth], dict[str, str]]:
    """Of each query, or turn of a session, its answer and its reference; "" where it has none."""
    answers, references = {}, {}
    for row in rows:
        if "session_id" in row:
            for turn in row["turns"]:
                query = f"{row['session_id']}#{turn['turn']}"
                answers[query] = Truth(tuple(right_answers(row, (), turn["turn"] - 1)), ())
                references[query] = row["session_id"]  # a session's turns stay together
        else:
            target = row.get("target_image_id")
            targets = (target,) if target is not None else tuple(row["positive_image_ids"])
            answers[row["query_id"]] = Truth(targets, tuple(row.get("subset_image_ids") or ()))
            references[row["query_id"]] = row["reference_image_id"] or ""
    return answers, references


def _held_out(references: Mapping[str, str], share: float) -> frozenset[str]:
    """Queries of the last references of a fixed shuffle: those of one reference stay together."""
    each = sorted(set(references.values()))
    chosen = np.random.default_rng(0).permutation(len(each))[: round(share * len(each))]
    held = {each[number] for number in chosen}
    return frozenset(query for query, reference in references.items() if reference in held)

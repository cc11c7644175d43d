"""Training triplets as arrays of rows: which picture, which caption, which picture."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from submissions.embeddings.pictures import Pictures
    from submissions.encoders.protocol import Identity
    from submissions.training.training_options import TrainsOnQueries


@dataclass(frozen=True, eq=False)
class Examples:
    """Triplets of a benchmark or of a suite: a row for each query and positive.

    The pictures of a suite's members stand behind each other, so that an id that two members have is two.

    Args:
        pictures: of each member those that are references or targets, and no others.
        captions: the texts, each once a member.
        references: row of the pictures, shape (n,); the number of pictures where there is no reference.
        texts: row of `captions`, shape (n,).
        targets: row of the pictures, shape (n,).
        queries: number of the query, shape (n,).
        query_ids: id of each query, by its number.
        data_hash: sha256 of the benchmark's rows; of a suite, over those of its members.
        counts: triplets of each member, in their order; empty: there is one.
    """

    pictures: tuple[Pictures, ...]
    captions: list[str]
    references: NDArray[np.int64]
    texts: NDArray[np.int64]
    targets: NDArray[np.int64]
    queries: NDArray[np.int64]
    query_ids: tuple[str, ...] = ()
    data_hash: str = ""
    counts: tuple[int, ...] = ()

    @functools.cached_property
    def picture_ids(self) -> list[str]:
        """Ids of the pictures of all members."""
        return [image for part in self.pictures for image in part.ids]

    @property
    def pictures_digest(self) -> str:
        """sha256 (hex) over ids and content of the pictures."""
        return joint_hash([part.digest for part in self.pictures])

    @functools.cached_property
    def members(self) -> NDArray[np.int64]:
        """Number of each triplet's member, shape (n,)."""
        counts = self.counts or (len(self.queries),)
        return np.repeat(np.arange(len(counts)), counts)

    def vectors(self, encode: Callable[[Pictures], NDArray[np.float32]]) -> NDArray[np.float32]:
        """Vectors of all pictures, and zeros behind the last: a turn without a reference.

        Args:
            encode: gives the vectors of a member's pictures, shape (pictures, dimensions).
        """
        parts = [encode(part) for part in self.pictures]
        return np.concatenate([*parts, np.zeros((1, parts[0].shape[1]), dtype=np.float32)])

    @functools.cached_property
    def _positives(self) -> NDArray[np.int64]:
        """Pairs of a query and a positive of it, as sorted numbers."""
        return np.unique(self._pair(self.queries, self.targets))

    def _pair(self, queries: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.int64]:
        return queries * len(self.picture_ids) + targets

    def rivals(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which targets of a batch a query must beat: all that are not positives of it.

        Args:
            rows: of the batch, shape (m,).

        Returns:
            Shape (m, m): at row i and column j whether row j has a target that is not a positive of row i.
        """
        pairs = self._pair(self.queries[rows][:, None], self.targets[rows][None, :])
        return ~np.isin(pairs, self._positives)


def joined(parts: Sequence[Examples]) -> Examples:
    """The triplets of several members behind each other; of one, these."""
    if len(parts) == 1:
        return parts[0]
    pictures, texts, queries = (
        offsets([len(getattr(part, name)) for part in parts])
        for name in ("picture_ids", "captions", "query_ids")
    )
    nothing = sum(len(part.picture_ids) for part in parts)
    references = [
        np.where(part.references == len(part.picture_ids), nothing, part.references + first)
        for part, first in zip(parts, pictures, strict=True)
    ]
    return Examples(
        tuple(shown for part in parts for shown in part.pictures),
        [caption for part in parts for caption in part.captions],
        np.concatenate(references),
        np.concatenate([part.texts + first for part, first in zip(parts, texts, strict=True)]),
        np.concatenate([part.targets + first for part, first in zip(parts, pictures, strict=True)]),
        np.concatenate([part.queries + first for part, first in zip(parts, queries, strict=True)]),
        tuple(query for part in parts for query in part.query_ids),
        joint_hash([part.data_hash for part in parts]),
        tuple(len(part.queries) for part in parts),
    )


def offsets(counts: Sequence[int]) -> list[int]:
    """Where each of several tables begins once they stand behind each other.

    Example:
        >>> offsets([3, 2, 4])
        [0, 3, 5]
    """
    return [sum(counts[:number]) for number in range(len(counts))]


def joint_hash(hashes: Sequence[str]) -> str:
    """One of a suite's members' hashes; of one benchmark its hash."""
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def load_triplets(
    benchmark_id: str,
    *,
    caption_rule: str | None = None,
    images: str | Path | None = None,
    also: Collection[str] = (),
) -> Examples:
    """The triplets of a benchmark, or of a suite's members, and their pictures.

    Args:
        benchmark_id: such as `cirr/train`, or a suite such as `fashioniq/train`.
        caption_rule: how several captions become text, by name; None suits benchmarks with one caption.
        images: folder of the benchmark's images; None looks below `CIR_IMAGES`, and draws shapes.
        also: ids of further images that `pictures` holds.

    Raises:
        UnknownNameError: no benchmark or rule has that name.
        CaptionRuleError: a query has several captions and no rule was given.
        CallError: the publisher withholds the ground truth.
        SourceError: the data or the folder of images is not available.
    """
    import cir_datasets
    from cir_datasets.export.triplets import triplets
    from cir_datasets.registry import members_of
    from submissions.embeddings.pictures import pictures_of

    if (members := members_of(benchmark_id)) != (benchmark_id,):
        load = functools.partial(load_triplets, caption_rule=caption_rule, images=images)
        return joined([load(member) for member in members])
    rows = list(triplets(benchmark_id, caption_rule=caption_rule))
    shown = {row.reference_image_id for row in rows} | {row.target_image_id for row in rows} | {*also}
    benchmark = cir_datasets.load(benchmark_id)
    ids = sorted(image for image in shown if image is not None)
    # The vectors of a whole gallery are in the store already, where `cir embed` or `cir run` was there.
    whole = bool(also) and benchmark.gallery_set == frozenset(ids)
    pictures = pictures_of(benchmark, images=images, ids=None if whole else ids)
    place = {image: number for number, image in enumerate(pictures.ids)}
    captions = list(dict.fromkeys(row.caption for row in rows))
    text = {caption: number for number, caption in enumerate(captions)}
    queries, numbers = np.unique([row.query_id for row in rows], return_inverse=True)
    return Examples(
        (pictures,),
        captions,
        np.array([place.get(row.reference_image_id or "", len(place)) for row in rows], dtype=np.int64),
        np.array([text[row.caption] for row in rows], dtype=np.int64),
        np.array([place[row.target_image_id] for row in rows], dtype=np.int64),
        numbers.astype(np.int64),
        tuple(map(str, queries)),
        benchmark.data_hash,
    )


def depends_on(training: TrainsOnQueries, examples: Examples, encoder: Identity) -> dict[str, Any]:
    """What the result of every training on triplets depends on, as JSON."""
    from cir_datasets.registry import members_of

    members = members_of(training.benchmark)
    return {
        "benchmark": training.benchmark,
        **({"members": list(members)} if members != (training.benchmark,) else {}),
        "data_hash": examples.data_hash,
        "pictures_digest": examples.pictures_digest,
        "encoder": asdict(encoder),
        "caption_rule": training.caption_rule,
    }

"""Training triplets as arrays of rows: which picture, which caption, which picture."""

from __future__ import annotations

import functools
from collections.abc import Collection
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
    """Triplets of a benchmark: a row for each query and positive.

    Args:
        pictures: those that are references or targets, and no others.
        captions: the texts, each once.
        references: row of `pictures`, shape (n,); the number of pictures where there is no reference.
        texts: row of `captions`, shape (n,).
        targets: row of `pictures`, shape (n,).
        queries: number of the query, shape (n,).
        query_ids: id of each query, by its number.
        data_hash: sha256 of the benchmark's rows.
    """

    pictures: Pictures
    captions: list[str]
    references: NDArray[np.int64]
    texts: NDArray[np.int64]
    targets: NDArray[np.int64]
    queries: NDArray[np.int64]
    query_ids: tuple[str, ...] = ()
    data_hash: str = ""

    @functools.cached_property
    def _positives(self) -> NDArray[np.int64]:
        """Pairs of a query and a positive of it, as sorted numbers."""
        return np.unique(self._pair(self.queries, self.targets))

    def _pair(self, queries: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.int64]:
        return queries * len(self.pictures.ids) + targets

    def rivals(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which targets of a batch a query must beat: all that are not positives of it.

        Args:
            rows: of the batch, shape (m,).

        Returns:
            Shape (m, m): at row i and column j whether row j has a target that is not a positive of row i.
        """
        pairs = self._pair(self.queries[rows][:, None], self.targets[rows][None, :])
        return ~np.isin(pairs, self._positives)


def load_triplets(
    benchmark_id: str,
    *,
    caption_rule: str | None = None,
    images: str | Path | None = None,
    also: Collection[str] = (),
) -> Examples:
    """The triplets of a benchmark and their pictures.

    Args:
        benchmark_id: such as `cirr/train`.
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
    from submissions.embeddings.pictures import pictures_of

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
        pictures,
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
    return {
        "benchmark": training.benchmark,
        "data_hash": examples.data_hash,
        "pictures_digest": examples.pictures.digest,
        "encoder": asdict(encoder),
        "caption_rule": training.caption_rule,
    }


def with_nothing(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors of pictures in memory, and zeros behind the last: a turn without a reference."""
    return np.concatenate([vectors, np.zeros((1, vectors.shape[1]), dtype=np.float32)])

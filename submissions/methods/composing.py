"""What a method on embeddings is: it turns references and captions into query vectors, and nothing else.

Which turns count how much (`submissions.running.aggregation`), how the gallery is searched
(`submissions.running.search`) and what is ranked (`cir_metrics.ranking`) is the same for all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.progress import step_progress
from submissions.encoders.check import checked_vectors, encoded_texts

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.embeddings.pictures import Pictures
    from submissions.embeddings.store import Embeddings
    from submissions.encoders.protocol import Encoder
    from submissions.language.protocol import Language
    from submissions.methods.turns import Turn
    from submissions.rank_file.model import Method

Vectors = NDArray[np.float32]


class Composer(Protocol):
    """A retrieval method on the embeddings of an encoder.

    A class whose `needs` holds "checkpoint" is made as `Class(checkpoint=...)`, every other as `Class()`.
    Where the checkpoint is an encoder itself, the method has `bound_encoder`, its name or folder; gallery and
    queries are then encoded by that. Where it ranks in a space of its own on an encoder's vectors, it has
    `project(vectors, encoder)`, which brings images there: rows of length 1.
    """

    name: ClassVar[str]
    """The name of `--method`."""

    needs: ClassVar[frozenset[str]]
    """What it cannot do without beside an encoder and pictures: "language", "checkpoint", or nothing."""

    def method(self, encoder: Encoder) -> Method:
        """Who answers: what the rank file says.

        `make_rank_file` adds the encoder's name to `name`, and says caption rule, aggregation, search and
        skipped images itself; the method says `name`, `paper`, `zero_shot`, `trained_on`, `text_fields`,
        `notes` and, where it differs from the encoder's own line, `backbone`.
        """

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        """A query vector for each turn, float32, shape (turns, dimensions), rows of length 1.

        The dimensions are the encoder's, or those of `project`.

        A row of zeros says nothing about the target: a turn without what the method reads.
        """


@dataclass
class Context:
    """What a method may look at while it composes.

    Args:
        encoder: the encoder of gallery and queries.
        gallery: embeddings of the gallery's images.
        pictures: the pictures themselves.
        language: what writes captions and merges them, where the method needs it.
        benchmark: whose queries or sessions are ranked.
        caption_rule: name of the rule that makes text of captions.
        images: folder of the images, as for `pictures_of`: references may lie outside the gallery.
        batch_size: texts, or images outside the gallery, that are encoded at once.
        skip_missing: whether references outside the gallery may lack a picture; they are then nothing.
        missing_outside: the references outside the gallery that were found to lack one.
        project: of a method that ranks in a space of its own, what brings images there; None: the encoder's.
    """

    encoder: Encoder
    gallery: Embeddings
    pictures: Pictures
    language: Language | None
    benchmark: Benchmark
    caption_rule: str
    images: str | Path | None = None
    batch_size: int = 64
    skip_missing: bool = False
    missing_outside: set[str] = field(default_factory=set)
    project: Callable[[Vectors, Encoder], Vectors] | None = None

    @functools.cached_property
    def ranked(self) -> Vectors:
        """The gallery's vectors in the space of the queries, shape (images, dimensions)."""
        return self.projected(self.gallery.vectors)

    @property
    def dimensions(self) -> int:
        """Of a query's vector."""
        return self.encoder.identity.dimensions if self.project is None else int(self.ranked.shape[1])

    def projected(self, vectors: Vectors) -> Vectors:
        """Images' vectors in the space of the queries; zeros stay zeros."""
        if self.project is None:
            return vectors
        found = self.project(vectors, self.encoder)
        found[~vectors.any(axis=1)] = 0.0
        return found

    @functools.cached_property
    def _row(self) -> dict[str, int]:
        return {image: row for row, image in enumerate(self.gallery.ids)}

    def pictures_outside(self, ids: Sequence[str]) -> Pictures:
        """Pictures of images that the gallery lacks; those that cannot be read are found before one is used.

        Raises:
            MissingImagesError: some cannot be read and may not be skipped; the message lists them.
        """
        from submissions.embeddings.embed import check_pictures
        from submissions.embeddings.pictures import pictures_of

        pictures = pictures_of(self.benchmark, images=self.images, ids=ids)
        self.missing_outside |= check_pictures(pictures, skip_missing=self.skip_missing)
        return pictures

    def image_vectors(self, ids: Sequence[str | None]) -> Vectors:
        """Vectors of reference images, shape (ids, dimensions); zeros for None and for skipped images.

        Raises:
            MissingImagesError: images outside the gallery have no picture, and may not be skipped.
            EncoderError: the encoder gives no vectors of length 1, a row an image.
        """
        found = np.zeros((len(ids), self.encoder.identity.dimensions), dtype=np.float32)
        outside: dict[str, list[int]] = {}
        for place, image in enumerate(ids):
            if image is None:
                continue
            if image in self._row:
                found[place] = self.gallery.vectors[self._row[image]]
            else:
                outside.setdefault(image, []).append(place)
        if outside:
            for image, vector in self._encoded_images(list(outside)):
                found[outside[image]] = vector
        return found

    def texts(self, turns: Iterable[Turn]) -> list[list[str]]:
        """The texts of each turn by the caption rule; none where it has no words.

        Raises:
            CaptionRuleError: the rule is for one caption, and a turn has several.
        """
        return texts_of(turns, self.caption_rule)

    def text_vectors(self, texts: Sequence[Sequence[str]]) -> Vectors:
        """Vectors of texts, shape (turns, dimensions): of several the mean, of length 1.

        Args:
            texts: the texts of each turn, such as `texts` gives; of none the row is zeros.

        Raises:
            EncoderError: the encoder gives no vectors of length 1, a row a text.
        """
        each = list(dict.fromkeys(text for own in texts for text in own))
        with step_progress(f"{self.benchmark.id}: encoding texts", len(each)) as advance:
            encoded = encoded_texts(self.encoder, each, self.batch_size, advance)
        vector = dict(zip(each, encoded, strict=True))
        found = np.zeros((len(texts), self.encoder.identity.dimensions), dtype=np.float32)
        for place, own in enumerate(texts):
            if own:
                found[place] = np.mean([vector[text] for text in own], axis=0)
        return unit(found)

    def _encoded_images(self, ids: list[str]) -> Iterator[tuple[str, Vectors]]:
        """Vectors of images that are not in the gallery, but for the skipped."""
        pictures = self.pictures_outside(ids)
        there = [place for place, image in enumerate(ids) if image not in self.missing_outside]
        for start in range(0, len(there), self.batch_size):
            part = there[start : start + self.batch_size]
            found = self.encoder.encode_images([pictures.open(place) for place in part])
            vectors = checked_vectors(self.encoder, found, len(part), "images")
            yield from ((ids[place], vector) for place, vector in zip(part, vectors, strict=True))


def texts_of(turns: Iterable[Turn], rule: str) -> list[list[str]]:
    """The texts of each turn by a caption rule; none where it has no words.

    Raises:
        CaptionRuleError: the rule is for one caption, and a turn has several.
    """
    from cir_datasets.registry.caption_rules import caption_rule

    made = caption_rule(rule)
    # A rule makes " and " of two empty captions, which nobody wrote.
    return [
        [text for text in made.texts(turn.captions) if text.strip()]
        if any(caption.strip() for caption in turn.captions)
        else []
        for turn in turns
    ]


Pairs = list[tuple[int, str]]
"""Texts that are read, each with the place of its turn."""


def text_pairs(texts: Sequence[Sequence[str]], shown: NDArray[np.bool_]) -> Pairs:
    """The texts of each turn; an empty one where there is a reference alone, and none without either.

    Args:
        texts: of each turn.
        shown: whether there is a reference, shape (turns,).

    Example:
        >>> text_pairs([["red", "big"], [], []], np.array([False, True, False]))
        [(0, 'red'), (0, 'big'), (1, '')]
    """
    return [(row, text) for row, own in enumerate(texts) for text in own or ([""] if shown[row] else [])]


def mean_of_pairs(
    pairs: Pairs,
    turns: NDArray[np.float64],
    batch_size: int,
    encode: Callable[[NDArray[np.int64], list[str]], NDArray[np.floating]],
) -> Vectors:
    """The mean of what the texts of a turn give, of length 1.

    Args:
        pairs: texts, each with the place of its turn.
        turns: what there is already, shape (turns, dimensions); it is added to.
        batch_size: texts at once.
        encode: vectors of texts, beside the place of each turn.
    """
    for start in range(0, len(pairs), batch_size):
        part = pairs[start : start + batch_size]
        rows = np.array([row for row, _ in part], dtype=np.int64)
        np.add.at(turns, rows, encode(rows, [text for _, text in part]))
    return unit(turns)


def unit(vectors: NDArray[np.floating]) -> Vectors:
    """Rows brought to length 1, as float32; a row of zeros stays one, and one that is not finite becomes NaN.

    Args:
        vectors: shape (n, dimensions).

    Example:
        >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    wide = np.array(vectors, dtype=np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    lengths[lengths == 0] = 1
    wide /= lengths[:, None]
    return wide.astype(np.float32)

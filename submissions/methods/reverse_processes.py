"""The reverse processes of SC4CIR on the rankings of a run: what is asked, compared and added up."""

from __future__ import annotations

import functools
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cir_datasets.common.progress import step_progress
from cir_metrics.gallery import pair_scores
from cir_metrics.ranking import best_of
from cir_metrics.terminal import visible
from submissions.errors import LanguageError
from submissions.language.forms import Instruction
from submissions.language.protocol import FormLanguage, Item, pictures_by_id
from submissions.methods.sc4cir import NO_ANSWER, NOTHING_TO_REVERSE, SC4CIR, Cost, Forward
from submissions.methods.turns import Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from submissions.embeddings.pictures import Pictures
    from submissions.language.protocol import Picture

_log = logging.getLogger(__name__)

REVERSE_PROMPT, CANDIDATE_PROMPT = "reverse", "candidate"
"""The paper's p1 and p2."""

_TOGETHER = 64
"""Queries whose questions are asked at once."""


Pair = tuple[str, str]
"""Key of a turn, and a candidate."""


@dataclass(frozen=True)
class _Query:
    """A turn, its rankings (of the gallery, and perhaps of its subset) and the candidates of all of them."""

    turn: Turn
    lists: Sequence[Forward]

    @property
    def reference(self) -> str:
        return self.turn.reference or ""

    @property
    def reversible(self) -> bool:
        return bool(self.turn.reference is not None and self.turn.text.strip())

    @functools.cached_property
    def candidates(self) -> list[str]:
        return list(dict.fromkeys(image for each in self.lists for image in each.candidates))

    def is_in(self, parts: Sequence[dict[Pair, float]]) -> bool:
        """Whether every candidate has every part of the sum."""
        return all((self.turn.key, image) in part for part in parts for image in self.candidates)


class Reranker:
    """SC4CIR at work on the rankings of one run.

    Args:
        how: the settings.
        language: what writes T' and T''; None where `how` asks nothing.
        pictures: gives the pictures of image ids.
        encode: vectors of texts, of length 1, for S3.
        backward: similarity of each turn and the image beside it by the run's own method, for S2.
        label: of the progress.
    """

    def __init__(
        self,
        how: SC4CIR,
        language: FormLanguage | None,
        pictures: Callable[[Sequence[str]], Pictures],
        encode: Callable[[Sequence[str]], NDArray[np.float32]],
        backward: Callable[[Sequence[Turn], Sequence[str]], Sequence[float]],
        label: str,
    ) -> None:
        """See the class."""
        self._how = how
        self._language = language
        self._pictures = pictures
        self._encode = encode
        self._backward = backward
        self._label = label
        self._over = False
        self.cost = Cost()

    def rerank(self, lists: Sequence[Forward]) -> None:
        """Put the candidates of each ranking in the order of S, in place.

        A query of which a question has no answer keeps its rankings as they were, and is counted.
        """
        started = time.monotonic()
        by_turn: dict[str, list[Forward]] = {}
        for each in lists:
            by_turn.setdefault(each.turn.key, []).append(each)
        queries = [_Query(own[0].turn, own) for own in by_turn.values()]
        with step_progress(self._label, len(queries)) as advance:
            for start in range(0, len(queries), _TOGETHER):
                block = queries[start : start + _TOGETHER]
                self._block(block)
                advance(len(block))
        self.cost.seconds += time.monotonic() - started
        if self.cost.why:
            _log.warning("%s: %s. The first failure: %s", self._label, self.cost.counts, self.cost.why)

    def _block(self, block: Sequence[_Query]) -> None:
        left = [each for each in block if not self._how.asks or each.reversible]
        self.cost.left += Counter({NOTHING_TO_REVERSE: len(block) - len(left)})
        parts: list[dict[Pair, float]] = []
        if "s2" in self._how.used:
            parts.append(self._way_back(left))
        if "s3" in self._how.used:
            # Of a query without S2 nothing more is asked.
            parts.append(self._consistency([each for each in left if each.is_in(parts)]))
        whole = [each for each in left if each.is_in(parts)]
        self.cost.left += Counter({NO_ANSWER: len(left) - len(whole)})
        self.cost.queries += len(whole)
        for each in (forward for query in whole for forward in query.lists):
            own = each.scores if "s1" in self._how.used else [0.0] * len(each.scores)
            sums = {
                image: math.fsum((first, *(part[each.turn.key, image] for part in parts)))
                for image, first in zip(each.candidates, own, strict=True)
            }
            each.ranking[: len(sums)] = best_of(sums, max(1, len(sums)), each.turn.key)

    def _way_back(self, queries: Sequence[_Query]) -> dict[Pair, float]:
        """S2 of the pairs that have one."""
        references = self._opened(query.reference for query in queries)
        items = [Item({"change": query.turn.text}, (references[query.reference],)) for query in queries]
        said = self._asked(REVERSE_PROMPT, items)
        self.cost.instructions += len(items)
        back = [
            [
                (query, image, Turn(f"{query.turn.key}|{image}", image, text, (text,)))
                for image in query.candidates
            ]
            for query, text in zip(queries, said, strict=True)
            if text is not None
        ]
        found = self._similar([way for own in back for way in own])
        if found is None:
            # The method asks the backend itself: a query whose questions fail takes no other with it.
            each_alone = (self._similar(own) or {} for own in back)
            found = {pair: score for own in each_alone for pair, score in own.items()}
        return found

    def _similar(self, back: Sequence[tuple[_Query, str, Turn]]) -> dict[Pair, float] | None:
        """S2 of turns that lead back; None where the method has asked the backend in vain."""
        if not back or self._over:
            return {}
        try:
            found = self._backward([turn for _, _, turn in back], [query.reference for query, _, _ in back])
        except LanguageError as error:
            self._failed(error)
            return None
        return {(query.turn.key, image): score for (query, image, _), score in zip(back, found, strict=True)}

    def _consistency(self, queries: Sequence[_Query]) -> dict[Pair, float]:
        """S3 of the pairs that have one."""
        pairs = [(query, image) for query in queries for image in query.candidates]
        opened = self._opened(image for query, other in pairs for image in (query.reference, other))
        items = [Item({}, (opened[query.reference], opened[image])) for query, image in pairs]
        said = self._asked(CANDIDATE_PROMPT, items)
        self.cost.captions += len(items)
        known = [
            (query.turn, image, text)
            for (query, image), text in zip(pairs, said, strict=True)
            if text is not None
        ]
        if not known:
            return {}
        # A text has one vector, whoever asks for it, so that equal texts tie.
        texts = sorted({text for turn, _, own in known for text in (turn.text, own)})
        vectors, row = self._encode(texts), {text: place for place, text in enumerate(texts)}
        wanted = vectors[[row[turn.text] for turn, _, _ in known]]
        cosines = pair_scores(wanted, vectors[[row[text] for _, _, text in known]]).tolist()
        return {(turn.key, image): cosine for (turn, image, _), cosine in zip(known, cosines, strict=True)}

    def _opened(self, ids: Iterable[str]) -> dict[str, Picture]:
        unique = tuple(dict.fromkeys(ids))
        return (
            dict(zip(unique, pictures_by_id(self._pictures(unique), unique), strict=True)) if unique else {}
        )

    def _asked(self, prompt: str, items: Sequence[Item]) -> list[str | None]:
        """The answers, None where there is none; after a failure that ends all, nothing more is asked."""
        if not items or self._over or self._language is None:
            return [None] * len(items)
        try:
            return [answer.instruction for answer in self._language.ask(prompt, items, Instruction)]
        except (LanguageError, OSError) as error:
            self._failed(error)
            answers = getattr(error, "answers", ())
            if len(answers) != len(items):
                return [None] * len(items)
            return [None if answer is None else answer.instruction for answer in answers]

    def _failed(self, error: LanguageError | OSError) -> None:
        self._over = self._over or (isinstance(error, LanguageError) and error.final)
        self.cost.why = self.cost.why or visible(str(error))

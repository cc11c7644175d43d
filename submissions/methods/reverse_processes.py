"""The reverse processes of SC4CIR on the rankings of a run: what is asked, compared and added up."""

from __future__ import annotations

import functools
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from cir_datasets.common.progress import step_progress
from cir_datasets.common.terminal import visible
from cir_datasets.errors import MissingImagesError
from cir_metrics.errors import CirError
from cir_metrics.gallery import pair_scores
from cir_metrics.ranking import best_of
from submissions.errors import LanguageError
from submissions.language.answers import is_text
from submissions.language.asking import UNREADABLE
from submissions.language.forms import Instruction
from submissions.language.protocol import FormLanguage, Item, Picture, known_only, pictures_by_id
from submissions.methods.sc4cir import NO_ANSWER, NOTHING_TO_REVERSE, SC4CIR, Cost, Forward
from submissions.methods.turns import Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    from submissions.embeddings.pictures import Pictures

_log = logging.getLogger(__name__)

REVERSE_PROMPT, CANDIDATE_PROMPT = "reverse", "candidate"
"""The paper's p1 and p2."""

_TOGETHER = 64
"""Queries whose questions are asked at once."""


Pair = tuple[str, str]
"""Key of a turn, and a candidate."""
Backward = Callable[[Sequence[Turn], Sequence[str]], Sequence[float]]
"""The similarity of each turn and the image beside it, by the method of the run."""


class Ways(NamedTuple):
    """How S2 is computed.

    Args:
        similar: by the method of the run.
        known: the same where nobody is asked any more; None where the method cannot do without.
    """

    similar: Backward
    known: Backward | None


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


class Reranker:
    """SC4CIR at work on the rankings of one run.

    Args:
        how: the settings.
        language: what writes T' and T''; None where `how` asks nothing.
        pictures: gives the pictures of image ids.
        encode: vectors of texts, of length 1, for S3.
        ways: how S2 is computed; None where it is not added.
        label: of the progress.
        unseen: images without a picture, which are not candidates; a reference of these has no way back.
        skip_missing: whether pictures that turn out to be unreadable join them, instead of ending the work.
    """

    def __init__(
        self,
        how: SC4CIR,
        language: FormLanguage | None,
        pictures: Callable[[Sequence[str]], Pictures],
        encode: Callable[[Sequence[str]], NDArray[np.float32]],
        ways: Ways | None,
        label: str,
        *,
        unseen: Iterable[str] = (),
        skip_missing: bool = False,
    ) -> None:
        """See the class."""
        self._how = how
        self._language = language
        self._pictures = pictures
        self._encode = encode
        self._ways = ways
        self._label = label
        self._skip_missing = skip_missing
        self._over = False
        self._unreadable: Exception | None = None
        self.unseen = set(unseen)
        self.cost = Cost()

    def rerank(self, lists: Sequence[Forward]) -> None:
        """Put the candidates of each ranking in the order of S, in place.

        A query of which a question has no answer keeps its rankings as they were, and is counted.

        Raises:
            LanguageError: not one query has the answers that it needs.
            MissingImagesError: a picture cannot be read, and may not be skipped.
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
        lost = self.cost.left[NO_ANSWER]
        if lost and not self.cost.queries:
            raise LanguageError(
                f"{self._label}: not one of {lost:,} queries could be ranked anew, so that nothing "
                "is written. Fix: mend what the language backend says below, and run the same again; the "
                f"answers that came are kept. It said: {self.cost.why}",
                final=self._over,
            )
        if self.cost.why:
            _log.warning("%s: %s. The first failure: %s", self._label, self.cost.counts, self.cost.why)

    def _block(self, block: Sequence[_Query]) -> None:
        left = self._reversible(block)
        parts: list[dict[Pair, float]] = []
        if "s2" in self._how.used:
            parts.append(self._way_back(left))
        if "s3" in self._how.used:
            # Of a query without S2 nothing more is asked.
            parts.append(self._consistency([each for each in left if self._has(each, parts)]))
        left = self._reversible(left)  # a reference may have turned out to be unreadable
        self.cost.left += Counter({NOTHING_TO_REVERSE: len(block) - len(left)})
        whole = [each for each in left if self._has(each, parts)]
        self.cost.left += Counter({NO_ANSWER: len(left) - len(whole)})
        self.cost.queries += len(whole)
        for each in (forward for query in whole for forward in query.lists):
            sums = {
                image: math.fsum((first, *(part[each.turn.key, image] for part in parts)))
                for image, first in zip(each.candidates, each.scores, strict=True)
                if image not in self.unseen
            }
            unseen = [image for image in each.candidates if image in self.unseen]
            each.ranking[: len(each.scores)] = best_of(sums, max(1, len(sums)), each.turn.key) + unseen

    def _reversible(self, queries: Sequence[_Query]) -> list[_Query]:
        """The queries that have a way back; all of them where none is asked for."""
        return [
            each
            for each in queries
            if not self._how.asks or (each.reversible and each.reference not in self.unseen)
        ]

    def _candidates(self, query: _Query) -> list[str]:
        return [image for image in query.candidates if image not in self.unseen]

    def _has(self, query: _Query, parts: Sequence[dict[Pair, float]]) -> bool:
        """Whether every candidate has every part of the sum."""
        return all((query.turn.key, image) in part for part in parts for image in self._candidates(query))

    def _way_back(self, queries: Sequence[_Query]) -> dict[Pair, float]:
        """S2 of the pairs that have one."""
        references = self._opened(query.reference for query in queries)
        items = [Item({"change": query.turn.text}, (references[query.reference],)) for query in queries]
        said = self._asked(REVERSE_PROMPT, items)
        self.cost.instructions += len(said) - said.count(None)
        back = [
            [
                (query, image, Turn(f"{query.turn.key}|{image}", image, text, (text,)))
                for image in self._candidates(query)
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
        similar = self._ways and (self._ways.known if self._over else self._ways.similar)
        if not back or similar is None:
            return {}
        try:
            found = similar([turn for _, _, turn in back], [query.reference for query, _, _ in back])
        except LanguageError as error:
            unreadable = [why for _, why in error.failed if why.startswith(UNREADABLE)]
            if unreadable and not self._skip_missing:
                raise MissingImagesError(unreadable[0]) from error
            self._failed(error)
            return None
        return {(query.turn.key, image): score for (query, image, _), score in zip(back, found, strict=True)}

    def _consistency(self, queries: Sequence[_Query]) -> dict[Pair, float]:
        """S3 of the pairs that have one."""
        pairs = [(query, image) for query in queries for image in self._candidates(query)]
        opened = self._opened(image for query, other in pairs for image in (query.reference, other))
        items = [Item({}, (opened[query.reference], opened[image])) for query, image in pairs]
        said = self._asked(CANDIDATE_PROMPT, items)
        self.cost.captions += len(said) - said.count(None)
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
        found = pictures_by_id(self._pictures(unique), unique) if unique else []
        return {each.id: Picture(each.id, functools.partial(self._open, each)) for each in found}

    def _open(self, picture: Picture) -> Image:
        """A picture; one that cannot be read is remembered, and not counted as a failure of the backend."""
        try:
            return picture.open()
        except (OSError, CirError) as error:
            self._unreadable = self._unreadable or error
            self.unseen.add(picture.id)
            raise

    def _asked(self, prompt: str, items: Sequence[Item]) -> list[str | None]:
        """The answers, None where there is none; after a failure that ends all, those that are known.

        Raises:
            MissingImagesError: a picture cannot be read, and may not be skipped.
        """
        places = [place for place, item in enumerate(items) if not self._is_unseen(item)]
        found: list[str | None] = [None] * len(items)
        speaker = known_only(self._language) if self._over else self._language
        if not places or speaker is None:
            return found
        unseen = len(self.unseen)
        answers: Sequence[Instruction | None]
        try:
            answers = speaker.ask(prompt, [items[place] for place in places], Instruction)
        except (LanguageError, OSError, MissingImagesError) as error:
            if len(self.unseen) > unseen:
                if not self._skip_missing:
                    raise MissingImagesError(str(self._unreadable)) from error
                return self._asked(prompt, items)
            if isinstance(error, MissingImagesError):
                raise
            self._failed(error)
            answers = getattr(error, "answers", ())
            if len(answers) != len(places):
                return found
        for place, answer in zip(places, self._checked(prompt, answers, len(places)), strict=True):
            found[place] = answer
        return found

    def _checked(self, prompt: str, answers: object, asked: int) -> list[str | None]:
        """The words of answers, None where there are none: the backend may be a stranger's.

        Raises:
            LanguageError: they are not one `Instruction` a question, in order.
        """
        who = cast("FormLanguage", self._language).identity.text()
        if not isinstance(answers, Sequence) or len(answers) != asked:
            given = f"{len(answers):,} answers" if isinstance(answers, Sequence) else type(answers).__name__
            raise LanguageError(
                f"{who}, {prompt}: ask() gave {given} to {asked:,} questions. "
                "Fix: give one for each, in their order; None for a question without one."
            )
        words: list[str | None] = []
        for answer in answers:
            if answer is not None and not isinstance(answer, Instruction):
                raise LanguageError(
                    f"{who}, {prompt}: ask() gave {type(answer).__name__} as an answer. "
                    "Fix: give the form that was asked for, form(instruction=...)."
                )
            said = "" if answer is None else answer.instruction
            words.append(said if said.strip() and is_text(said) else None)
        if None in words:
            lost = words.count(None)
            self.cost.why = self.cost.why or visible(
                f"{who}, {prompt}: {lost:,} of {asked:,} answers are missing, empty or not text"
            )
        return words

    def _is_unseen(self, item: Item) -> bool:
        return any(picture.id in self.unseen for picture in item.pictures)

    def _failed(self, error: LanguageError | OSError) -> None:
        self._over = self._over or (isinstance(error, LanguageError) and error.final)
        self.cost.why = self.cost.why or visible(str(error))

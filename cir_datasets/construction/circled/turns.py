"""The dialogues, turn by turn, all sessions side by side; each turn is five stages of the folder.

A turn captions the images that it needs and nobody has captioned, finds the words of each user, moves the
queries on, and searches: one blocked product for all sessions (`cir_metrics.gallery`), whose ranks do not
depend on the machine. A session ends when a target is among the images shown, or when a model gave no answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.stages import FAILED, Engine
from cir_datasets.construction.backends import Failed, Features, Question, Words
from cir_datasets.construction.circled.queries import searched_as
from cir_datasets.construction.circled.settings import CircledSettings
from cir_datasets.construction.circled.steps import Vectors, moved_on, picks, similarities
from cir_datasets.construction.workspace import Workspace
from cir_metrics.gallery import Gallery

Row = dict[str, Any]

_CHUNK = 256
_COMPARED = 16_384
"""Pairs of vectors that are compared at once."""
NO_IMAGE = "no image among those shown may be the next reference"


@dataclass(frozen=True)
class CircledModels:
    """What is asked of models.

    Args:
        features: the encoder E of the search.
        diversity: the encoder whose text vectors tell captions apart.
        words: captions, merges and differences.
        engine: where words are asked for; None is this process.
    """

    features: Features
    diversity: Features
    words: Words
    engine: Engine | None = None


@dataclass
class PlayedSession:
    """A dialogue as far as it has come.

    Args:
        query: the row that it begins with.
        targets: the searched images that show its targets.
        turns: rows of the stages `words` and `turn`, as one dictionary a turn.
        ended: why no further turn follows, or "".
        failed: whether that is since a model gave no answer.
    """

    query: Row
    targets: list[str]
    turns: list[Row] = field(default_factory=list)
    ended: str = ""
    failed: bool = False

    @property
    def captions(self) -> list[str]:
        """T_1 to T_l."""
        return [turn["caption"] for turn in self.turns]

    @property
    def references(self) -> list[str]:
        """I_1 to I_l."""
        return [turn["reference"] for turn in self.turns]

    @property
    def ranks(self) -> list[int]:
        """r_1 to r_l."""
        return [turn["rank"] for turn in self.turns]


class Dialogues:
    """All sessions of a run.

    Args:
        workspace: where stages are kept.
        sessions: in order.
        searched: ids of the images that are searched.
        vectors: of these, rows of length 1.
        twins: by an image that is not searched the one that it is the same as.
        models: what is asked of models.
        settings: the choices.
    """

    def __init__(
        self,
        workspace: Workspace,
        sessions: Sequence[PlayedSession],
        searched: Sequence[str],
        vectors: Vectors,
        twins: Mapping[str, str],
        models: CircledModels,
        settings: CircledSettings,
    ) -> None:
        """See the class."""
        self._workspace = workspace
        self._sessions = sessions
        self._ids = list(searched)
        self._row = {image: row for row, image in enumerate(self._ids)}
        self._vectors = vectors
        self._gallery = Gallery(vectors, self._ids)
        self._twins = twins
        self._models = models
        self._settings = settings
        self._captions: dict[str, str | None] = {}
        self._number_of_row = np.full(len(self._ids), -1, np.int64)
        self._known = np.zeros((0, vectors.shape[1]), np.float32)

    def play(self) -> None:
        """Play every session to its end."""
        live = [session for session in self._sessions if not session.ended]
        before = np.zeros((0, self._vectors.shape[1]), np.float32)
        for turn in range(1, self._settings.max_turns + 1):
            aims = self._aims(live, before) if turn > 1 else []
            self._caption(turn, live, aims)
            rows = self._first_words(live) if turn == 1 else self._words(turn, live, aims)
            answered = [place for place, row in enumerate(rows) if FAILED not in row]
            for session, row in zip(live, rows, strict=True):
                if FAILED in row:
                    session.ended = f"turn {turn}: {row[FAILED]}"
                    session.failed = row[FAILED] != NO_IMAGE
            live = [live[place] for place in answered]
            rows = [rows[place] for place in answered]
            before = self._queries(turn, live, rows, before[answered] if turn > 1 else before)
            self._search(turn, live, rows, before)
            left = [place for place, session in enumerate(live) if not session.ended]
            live, before = [live[place] for place in left], before[left]

    def _caption(self, turn: int, live: Sequence[PlayedSession], aims: Sequence[str]) -> None:
        """Caption what the turn needs and earlier ones did not, and encode the captions."""
        wanted = [session.query["reference"] for session in live] if turn == 1 else [*aims]
        if turn > 1:
            wanted += [image for session in live for image in session.turns[-1]["shown"]]
        new = [image for image in dict.fromkeys(wanted) if image not in self._captions]
        describe = partial(_described, self._models.words, self._settings.captions)
        rows = self._asked_of_models(f"captions-{turn}", new, describe)
        said = [row for row in rows if FAILED not in row]
        vectors = self._workspace.vectors(
            f"caption-vectors-{turn}",
            lambda: self._models.features.texts([row["caption"] for row in said]) if said else self._none(),
        )
        self._captions |= {row["image"]: row.get("caption") for row in rows}
        start = len(self._known)
        for place, row in enumerate(said, start=start):
            if row["image"] in self._row:
                self._number_of_row[self._row[row["image"]]] = place
        self._known = np.concatenate([self._known, vectors])

    def _none(self) -> Vectors:
        return np.zeros((0, self._vectors.shape[1]), np.float32)

    def _first_words(self, live: Sequence[PlayedSession]) -> list[Row]:
        """Turn 1: the reference's caption merged with the published one, as CIReVL does."""
        items = [
            {**session.query, "described": self._captions[session.query["reference"]]} for session in live
        ]
        return self._asked_of_models("words-1", items, partial(first_words, self._models.words))

    def _asked_of_models(
        self, stage: str, items: Sequence[Any], make: Callable[[Sequence[Any]], list[Row]]
    ) -> list[Row]:
        return self._workspace.rows_in_chunks(stage, items, make, size=_CHUNK, engine=self._models.engine)

    def _words(self, turn: int, live: Sequence[PlayedSession], aims: Sequence[str]) -> list[Row]:
        items = [
            self._asked(session, aim, pick)
            for session, aim, pick in zip(live, aims, self._picked(live, aims), strict=True)
        ]
        made = partial(further_words, self._models.words, self._models.diversity, self._settings)
        return self._asked_of_models(f"words-{turn}", items, made)

    def _asked(self, session: PlayedSession, aim: str, pick: tuple[int, float] | None) -> Row:
        """What the words of a session's next turn depend on."""
        about = session.query["annotated"] if self._settings.circo_target == "annotated" else aim
        item: Row = {"query": session.query["query"], "aim": about}
        if self._captions[aim] is None:
            return {**item, FAILED: f"the target {aim} has no caption"}
        if pick is None:
            return {**item, FAILED: NO_IMAGE}
        reference = session.turns[-1]["shown"][pick[0]]
        history = session.captions[1:] if self._settings.history == "released" else session.captions
        return {
            **item,
            "reference": reference,
            "similarity": pick[1],
            "described": self._captions[reference],
            "history": history,
        }

    def _aims(self, live: Sequence[PlayedSession], queries: Vectors) -> list[str]:
        """Of each session the target nearest to its query; of one target that."""
        counts = [len(session.targets) for session in live]
        rows = [self._row[target] for session in live for target in session.targets]
        near: list[float] = []
        of = np.repeat(np.arange(len(live)), counts)
        for at in range(0, len(rows), _COMPARED):
            part = slice(at, at + _COMPARED)
            near += similarities(self._vectors[rows[part]], queries[of[part]]).tolist()
        found, start = [], 0
        for session, count in zip(live, counts, strict=True):
            own = near[start : start + count]
            found.append(session.targets[own.index(max(own))])
            start += count
        return found

    def _picked(self, live: Sequence[PlayedSession], aims: Sequence[str]) -> list[tuple[int, float] | None]:
        if not live:
            return []
        shown = self._shown(live)
        numbers = self._number_of_row[shown]
        allowed = numbers >= 0
        for place, session in enumerate(live):
            for image in session.references:
                row = self._row.get(self._twins.get(image, image))
                if row is not None:
                    allowed[place, shown[place] == row] = False
        wanted = self._number_of_row[[self._row[aim] for aim in aims]]
        allowed[wanted < 0] = False
        known = self._known if len(self._known) else np.zeros((1, self._vectors.shape[1]), np.float32)
        return picks(numbers, allowed, known[np.maximum(wanted, 0)], known)

    def _shown(self, live: Sequence[PlayedSession]) -> NDArray[np.int64]:
        """Rows of the images that each session showed last."""
        return np.array([[self._row[image] for image in one.turns[-1]["shown"]] for one in live], np.int64)

    def _queries(
        self, turn: int, live: Sequence[PlayedSession], rows: Sequence[Row], before: Vectors
    ) -> Vectors:
        def made() -> Vectors:
            if not rows:
                return self._none()
            said = self._models.features.texts([row["merged"] for row in rows])
            if turn == 1:
                return said
            picked = np.array([self._row[row["reference"]] for row in rows])
            return moved_on(before, picked, self._shown(live), said, self._vectors, self._settings)

        return np.asarray(self._workspace.vectors(f"query-{turn}", made))

    def _search(
        self, turn: int, live: Sequence[PlayedSession], rows: Sequence[Row], queries: Vectors
    ) -> None:
        """Search once for all sessions, and end those that succeed."""
        found = self._workspace.rows(f"turn-{turn}", lambda: self._found(live, queries))
        for session, row, said in zip(live, found, rows, strict=True):
            session.turns.append({**said, **row})
            if row["rank"] <= self._settings.k:
                session.ended = f"turn {turn}: a target is at rank {row['rank']}"

    def _found(self, live: Sequence[PlayedSession], queries: Vectors) -> list[Row]:
        if not live:
            return []
        names = [session.query["query"] for session in live]
        targets = [np.array([self._row[target] for target in session.targets]) for session in live]
        found = self._gallery.search(
            queries, self._settings.k, query_ids=names, targets=targets, best_only=True
        )
        ranks = [] if found.best_ranks is None else found.best_ranks.tolist()
        return [
            {"query": name, "shown": shown, "rank": rank}
            for name, shown, rank in zip(names, found.rankings or [], ranks, strict=True)
        ]


def begun(
    queries: Sequence[Row], twins: Mapping[str, str], searched: Mapping[str, int]
) -> list[PlayedSession]:
    """The sessions before their first turn; those that cannot be played have ended."""
    sessions = []
    for query in queries:
        session = PlayedSession(query, searched_as(query["targets"], twins, searched))
        if not query["caption"]:
            session.ended = "its caption is empty"
        elif not session.targets:
            session.ended = "no target is among the images that are searched"
        sessions.append(session)
    return sessions


def _described(words: Words, prompt: str, images: Sequence[str]) -> list[Row]:
    """Captions of images, without a full stop at the end."""
    return [
        {"image": image, FAILED: said.why}
        if isinstance(said, Failed)
        else {"image": image, "caption": said.strip().rstrip(".")}
        for image, said in zip(images, words.caption(images, prompt), strict=True)
    ]


def first_words(words: Words, items: Sequence[Row]) -> list[Row]:
    """The merged caption of each published query."""
    rows: list[Row] = []
    for item in items:
        row = {name: item[name] for name in ("query", "reference", "caption")}
        rows.append(row if item["described"] is not None else {**row, FAILED: "the reference has no caption"})
    _merge(words, rows, items)
    return rows


def further_words(
    words: Words, diversity: Features, settings: CircledSettings, items: Sequence[Row]
) -> list[Row]:
    """A relative caption that differs from the earlier ones, and the merged caption, for each session.

    A caption that is too similar to an earlier one is asked for again, up to the number of attempts; the
    last one is used as it is.
    """
    rows: list[Row] = [
        {name: item[name] for name in ("query", "aim", "reference", "similarity", FAILED) if name in item}
        for item in items
    ]
    refused: list[list[str]] = [[] for _ in items]
    pending = [place for place, row in enumerate(rows) if FAILED not in row]
    for attempt in range(1, settings.attempts + 1):
        questions = [_question(items[place], refused[place]) for place in pending]
        near = []
        for place, said in zip(pending, words.ask("next_difference", questions), strict=True):
            if isinstance(said, Failed):
                rows[place][FAILED] = said.why
            else:
                rows[place] |= {"caption": str(said["instruction"]).strip(), "attempts": attempt}
                near.append(place)
        captions = [[rows[place]["caption"], *items[place]["history"]] for place in near]
        behind = [[(0, other) for other in range(1, len(own))] for own in captions]
        close = _closest(diversity, captions, behind)
        pending = []
        for place, similar in zip(near, close, strict=True):
            rows[place]["nearest"] = similar
            if similar >= settings.tau:
                refused[place].append(rows[place]["caption"])
                pending.append(place)
    for row, others in zip(rows, refused, strict=True):
        row["refused"] = [caption for caption in others if caption != row.get("caption")]
    _merge(words, rows, items)
    return rows


def _question(item: Row, refused: Sequence[str]) -> Question:
    history = "\n".join(f"- {caption}" for caption in item["history"]) or "- (none)"
    again = "".join(f"\n- {caption}" for caption in refused)
    retry = (
        f"These answers were too close to an earlier request; name something quite different:{again}\n"
        if refused
        else ""
    )
    return Question({"history": history, "retry": retry}, (item["reference"], item["aim"]))


def _merge(words: Words, rows: list[Row], items: Sequence[Row]) -> None:
    """Add the merged caption, h, to the rows that have words."""
    able = [place for place, row in enumerate(rows) if FAILED not in row]
    merged = words.merge(
        [items[place]["described"] for place in able], [rows[place]["caption"] for place in able]
    )
    for place, said in zip(able, merged, strict=True):
        if isinstance(said, Failed):
            rows[place][FAILED] = said.why
        else:
            rows[place]["merged"] = said


def nearest_pair(diversity: Features, captions: Sequence[Sequence[str]]) -> list[float]:
    """The highest similarity of two captions of each session, equation 4; -1 where there is one alone."""
    return _closest(diversity, captions, [[*itertools.combinations(range(len(own)), 2)] for own in captions])


def _closest(
    diversity: Features, captions: Sequence[Sequence[str]], pairs: Sequence[Sequence[tuple[int, int]]]
) -> list[float]:
    """The highest similarity of some pairs of each session's captions; -1 where there are none."""
    flat = [caption for own in captions for caption in own]
    found = np.full(len(captions), -1.0)
    counts = np.array([len(own) for own in pairs], np.int64)
    if not counts.any():
        return found.tolist()
    vectors = diversity.texts(flat)
    starts = np.cumsum([0, *map(len, captions)])[:-1]
    sessions = np.flatnonzero(counts)
    for at in range(0, len(sessions), _CHUNK):
        some = sessions[at : at + _CHUNK]
        of = np.repeat(starts[some], counts[some])
        first, second = np.array([pair for one in some for pair in pairs[one]]).T + of
        near = similarities(vectors[first], vectors[second])
        found[some] = np.maximum.reduceat(near, np.cumsum(counts[some]) - counts[some])
    return found.tolist()

"""Rankings as columns: every image id once, and whole numbers for the places.

A rank file of ZeroSight's size names three million images. As Python lists they cost a second to look at
once; as codes every check and every measure is a numpy expression, and the file takes a tenth of the memory.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.rows import id_array, int32_array, list_lengths, numbers

if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.int32]
Offsets = NDArray[np.int64]

_BLOCK = 2**18
"""Ids that are joined, or places that are sorted, at a time."""
_GATHERED = 2**24
"""Bytes of text that are gathered before they become codes."""
_SHOWN = 5
"""Names that a repr spells out at most."""


class Columns(Mapping[str, Any]):
    """Rankings by query id, or by session id one a turn; reads like a dictionary of lists.

    Args:
        names: query or session ids, distinct, in the file's order.
        codes: places in `images`, all rankings one after the other, shape (n_places,).
        offsets: where each ranking starts in `codes`, and the end, shape (n_rankings + 1,).
        images: the image ids that occur, distinct, an Arrow array of strings.
        turn_offsets: where each session's rankings start, and the end, shape (n_sessions + 1,); None where
            every name has one ranking.
        unreadable: names whose answer is of a wrong type, which was said; here it is empty.

    Example:
        >>> columns = Columns.of_lists({"q1": ["a", "b"], "q2": ["b"]}, by_turn=False)
        >>> columns["q1"], columns.codes.tolist(), columns.offsets.tolist()
        (['a', 'b'], [0, 1, 1], [0, 2, 3])
    """

    def __init__(
        self,
        names: Sequence[str],
        codes: Codes,
        offsets: Offsets,
        images: pa.Array,
        turn_offsets: Offsets | None = None,
        unreadable: Iterable[str] = (),
    ) -> None:
        """See the class."""
        self.names, self.codes, self.offsets = list(names), codes, offsets
        self.images, self.turn_offsets = images, turn_offsets
        self.unreadable = frozenset(unreadable)
        self._looked_up: tuple[pa.Array, Codes] | None = None
        self._coded: tuple[pa.Array, Codes] | None = None

    @classmethod
    def of_lists(cls, answers: Mapping[Any, Any], *, by_turn: bool) -> Columns:
        """The columns of lists of ids.

        Args:
            answers: by name a list of image ids, or a list of such lists.
            by_turn: whether the answers are lists of rankings.

        Raises:
            TypeError: a name or an id is not a string, or an answer no list.
            ValueError: an id is empty, or no text that UTF-8 can hold.
        """
        _only(answers, (str,))
        _only(answers.values(), (list, tuple))
        rankings: Iterable[Sequence[str]] = answers.values()
        if by_turn:
            _only(chain.from_iterable(answers.values()), (list, tuple))
            rankings = list(chain.from_iterable(answers.values()))
        gathering = Gathering(by_turn=by_turn)
        # Copies of the names: the given ones lie scattered among the ids, and each would keep the memory
        # around it from being given back.
        gathering.take_lengths([name.encode().decode() for name in answers], answers.values(), rankings)
        for part in _parts(chain.from_iterable(rankings)):
            gathering.take_ids(_strings(part))
        return gathering.columns()

    @classmethod
    def of_arrow(cls, names: Sequence[str], column: pa.ChunkedArray, *, by_turn: bool) -> Columns | None:
        """The columns of an Arrow column of lists, or None where it holds a null or an empty id.

        Args:
            names: query or session ids, distinct, one a row.
            column: `list<dictionary<string>>`, or `list<list<dictionary<string>>>` with `by_turn`.
            by_turn: whether a row is a list of rankings.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        levels: list[NDArray[Any]] = []
        for _ in range(2 if by_turn else 1):
            if column.null_count:
                return None
            levels.append(list_lengths(column))
            inner = column.type.value_type
            column = pa.chunked_array([chunk.flatten() for chunk in column.chunks], inner)
        column = column.unify_dictionaries()
        if column.null_count or not column.num_chunks:
            return None
        # A file's dictionary may name an image twice, or not at all.
        images = column.chunk(0).dictionary.dictionary_encode()
        if images.null_count or not numbers(pc.binary_length(images.dictionary)).min(initial=1):
            return None
        places = np.concatenate([numbers(chunk.indices) for chunk in column.chunks])
        if len(images) != len(images.dictionary):
            places = numbers(images.indices)[places]
        return cls(
            names,
            places.astype(np.int32, copy=False),
            _offsets(levels[-1], len(levels[-1])),
            images.dictionary,
            _offsets(levels[0], len(names)) if by_turn else None,
        )

    @functools.cached_property
    def position(self) -> dict[str, int]:
        """By name its place in `names`."""
        return dict(zip(self.names, range(len(self.names)), strict=True))

    @functools.cached_property
    def lengths(self) -> Offsets:
        """Images in each ranking, shape (n_rankings,)."""
        return np.diff(self.offsets)

    @functools.cached_property
    def turns(self) -> Offsets:
        """Rankings of each name, shape (n_names,)."""
        return np.ones_like(self.lengths) if self.turn_offsets is None else np.diff(self.turn_offsets)

    def places(self, positions: NDArray[np.int64], depth: int) -> Codes:
        """The first places of some rankings as a rectangle.

        Args:
            positions: numbers of rankings, -1 for one that is missing, shape (n,).
            depth: places of each.

        Returns:
            Codes, -1 where a ranking ends early or is missing, shape (n, depth).
        """
        wide = int(self.lengths[0]) if len(self.lengths) else 0
        if 0 < wide >= depth and len(positions) and positions.min() >= 0 and (self.lengths == wide).all():
            even = self.codes.reshape(-1, wide)[:, :depth]
            in_order = len(positions) == len(even) and (np.diff(positions, prepend=-1) == 1).all()
            return even if in_order else even[positions]
        starts = np.where(positions < 0, 0, self.offsets[positions])
        lengths = np.where(positions < 0, 0, self.lengths[positions] if len(self.lengths) else 0)
        columns = np.arange(depth)
        if not len(self.codes):
            return np.full((len(positions), depth), -1, dtype=np.int32)
        if len(lengths) and lengths.min() >= depth:
            return self.codes[starts[:, None] + columns]
        last = len(self.codes) - 1
        found: Codes = self.codes[np.minimum(starts[:, None] + columns, last)]
        found[columns >= lengths[:, None]] = -1
        return found

    def in_gallery(self, gallery: pa.Array) -> Codes:
        """Where each of `images` stands in a gallery; the last gallery's answer is kept.

        Args:
            gallery: ids, distinct, an Arrow array of strings.

        Returns:
            Places in the gallery, -1 for an image that it has not, shape (n_images,).

        Example:
            >>> import pyarrow as pa
            >>> Columns.of_lists({"q": ["b", "x"]}, by_turn=False).in_gallery(pa.array(["a", "b"])).tolist()
            [1, -1]
        """
        import pyarrow.compute as pc

        if self._looked_up is None or self._looked_up[0] is not gallery:
            found = pc.index_in(self.images, value_set=gallery.cast(self.images.type))
            self._looked_up = gallery, numbers(found, null=-1)
        return self._looked_up[1]

    def codes_of(self, ids: pa.Array) -> Codes:
        """Where each of some ids stands in `images`, -1 for a null and for one that no ranking holds.

        Args:
            ids: texts, shape (n,); the answer to the last is kept.
        """
        import pyarrow.compute as pc

        if self._coded is None or self._coded[0] is not ids:
            found = pc.index_in(ids.cast(self.images.type), value_set=self.images)
            self._coded = ids, numbers(found, null=-1)
        return self._coded[1]

    @functools.cached_property
    def repeated(self) -> NDArray[np.bool_]:
        """Which places name an image that stands further up in the same ranking, shape (n_places,).

        Example:
            >>> Columns.of_lists({"q1": ["a", "b", "a"], "q2": ["b"]}, by_turn=False).repeated.tolist()
            [False, False, True, False]
        """
        repeated = np.zeros(len(self.codes), dtype=np.bool_)
        starts = np.searchsorted(self.offsets, range(0, len(self.codes), _BLOCK)).tolist()
        for first, last in pairwise([*starts, len(self.lengths)]):
            part = slice(self.offsets[first], self.offsets[last])
            owners = np.repeat(np.arange(first, last), self.lengths[first:last])
            named = owners * len(self.images) + self.codes[part]
            # Nearly no ranking names an image twice: to sort is quicker than to look for first places.
            ordered = np.sort(named)
            if (ordered[1:] == ordered[:-1]).any():
                repeated[part] = True
                repeated[part][np.unique(named, return_index=True)[1]] = False
        return repeated

    def holding(self, wanted: Codes) -> NDArray[np.bool_]:
        """Which rankings hold the one image that is wanted of each, wherever it stands.

        Args:
            wanted: places in `images`, -1 where nothing is wanted, shape (n_rankings,).

        Example:
            >>> columns = Columns.of_lists({"q1": ["a", "b"], "q2": ["b"]}, by_turn=False)
            >>> columns.holding(np.array([1, 0], dtype=np.int32)).tolist()
            [True, False]
        """
        places = np.flatnonzero(self.codes == np.repeat(wanted, self.lengths))
        found = np.zeros(len(self.lengths), dtype=np.bool_)
        found[np.searchsorted(self.offsets, places, side="right") - 1] = True
        return found

    def respelled(self, images: Sequence[Any]) -> Columns:
        """The same rankings with other spellings of the image ids.

        Args:
            images: the new spelling of each of `self.images`, strings that may now coincide.
        """
        encoded = id_array(list(images)).dictionary_encode()
        codes, offsets = numbers(encoded.indices)[self.codes], self.offsets
        return Columns(self.names, codes, offsets, encoded.dictionary, self.turn_offsets, self.unreadable)

    def with_codes(self, codes: Codes, offsets: Offsets) -> Columns:
        """The same names and images with other rankings; arguments as of the class."""
        return Columns(self.names, codes, offsets, self.images, self.turn_offsets, self.unreadable)

    def without(self, names: Iterable[str]) -> Columns:
        """The same rankings but for some names."""
        dropped = set(names)
        return self.picked([name for name in self.names if name not in dropped])

    def picked(
        self, names: Sequence[str], *, called: Sequence[str] = (), turn_offsets: Offsets | None = None
    ) -> Columns:
        """The answers of some names; of a query without an answer an empty ranking.

        Args:
            names: query or session ids.
            called: what they are called then, where it is not the same.
            turn_offsets: where each session starts among the names, which are turns, and the end.

        Example:
            >>> columns = Columns.of_lists({"s#1": ["a"], "s#2": ["b"]}, by_turn=False)
            >>> dict(columns.picked(["s#2", "s#1"], called=["s"], turn_offsets=np.array([0, 2])))
            {'s': [['b'], ['a']]}
        """
        codes, offsets, turns = self._picked(names)
        turns, odd = turns if turn_offsets is None else turn_offsets, self.unreadable.intersection(names)
        return Columns(called or names, codes, offsets, self.images, turns, odd)

    def to_arrow(self, names: Sequence[str]) -> pa.Array:
        """The answers of some names as an Arrow array of lists, every image once in its dictionary.

        Args:
            names: query or session ids, one a row; the row of one without an answer is null.

        Returns:
            `list<dictionary<string>>`, or of sessions a list of such lists a row; the dictionary holds the
            images in the order in which they are first named.

        Example:
            >>> Columns.of_lists({"q": ["b", "a"]}, by_turn=False).to_arrow(["q", "r"]).to_pylist()
            [['b', 'a'], None]
        """
        import pyarrow as pa

        codes, offsets, turns = self._picked(names)
        used, first, places = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        ranks = np.empty(len(order), dtype=np.int32)
        ranks[order] = np.arange(len(order), dtype=np.int32)
        images = self.images.take(int32_array(used[order])).cast(pa.string())
        made = pa.DictionaryArray.from_arrays(int32_array(ranks[places.reshape(-1)]), images)
        gone = int32_array(np.array([name not in self.position for name in names])).cast(pa.bool_())
        for ends, mask in [(offsets, gone if turns is None else None), (turns, gone)]:
            if ends is not None:
                made = pa.ListArray.from_arrays(int32_array(ends), made, mask=mask)
        return made

    def _picked(self, names: Sequence[str]) -> tuple[Codes, Offsets, Offsets | None]:
        """Codes, offsets and turn offsets of some names; of one without an answer, no rankings."""
        rankings = np.fromiter(map(self.position.get, names, repeat(-1)), np.int64, len(names))
        turns = None
        if self.turn_offsets is not None:
            turns, rankings = _ranges(self.turn_offsets, rankings)
        offsets, codes = _ranges(self.offsets, rankings)
        return self.codes[codes], offsets, turns

    def __getitem__(self, name: str) -> list[Any]:
        """The ranking of a query, or the rankings of a session, as lists of ids."""
        place = self.position[name]
        if self.turn_offsets is None:
            return self._ranking(place)
        return [self._ranking(turn) for turn in range(self.turn_offsets[place], self.turn_offsets[place + 1])]

    def __iter__(self) -> Iterator[str]:
        """The names, in the file's order."""
        return iter(self.names)

    def __len__(self) -> int:
        """Number of queries or sessions."""
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        """Whether a query or session is answered."""
        return name in self.position

    def __repr__(self) -> str:
        """Like a dictionary where there are few names, else their number."""
        if len(self) <= _SHOWN:
            return repr(dict(self))
        return f"<rankings of {len(self):,} names, {len(self.images):,} distinct images>"

    def _ranking(self, number: int) -> list[str]:
        codes = self.codes[self.offsets[number] : self.offsets[number + 1]].tolist()
        return list(map(self.image_ids.__getitem__, codes))

    @functools.cached_property
    def image_ids(self) -> list[str]:
        """`images` as Python strings."""
        named: list[str] = self.images.to_pylist()
        return named


class Gathering:
    """Columns in the making: of what was taken only codes and distinct ids stay in the memory.

    Args:
        by_turn: whether an answer is a list of rankings.

    Example:
        >>> gathering = Gathering(by_turn=False)
        >>> gathering.take(["q1", "q2"], [["a", "b"], ["b"]])
        >>> dict(gathering.columns())
        {'q1': ['a', 'b'], 'q2': ['b']}
    """

    def __init__(self, *, by_turn: bool) -> None:
        """See the class."""
        self.by_turn = by_turn
        self.names: list[str] = []
        self._lengths, self._turns = array("q"), array("q")
        self._texts: list[pa.Array] = []
        self._encoded: list[pa.Array] = []
        self._bytes = 0

    def take(self, names: Sequence[str], answers: Sequence[Any]) -> None:
        """Take some answers.

        Args:
            names: their query or session ids, none of which was taken before.
            answers: lists of image ids, or of such lists.

        Raises:
            ValueError: an id is empty, or no text that UTF-8 can hold; nothing was taken then.
        """
        rankings = list(chain.from_iterable(answers)) if self.by_turn else answers
        texts = _strings(list(chain.from_iterable(rankings)))
        self.take_lengths(names, answers, rankings)
        self.take_ids(texts)

    def take_lengths(
        self, names: Sequence[str], answers: Iterable[Sequence[Any]], rankings: Iterable[Sequence[str]]
    ) -> None:
        """Take how long some answers are, whose ids come in the same order by `take_ids`."""
        self.names.extend(names)
        self._lengths.extend(map(len, rankings))
        if self.by_turn:
            self._turns.extend(map(len, answers))

    def take_ids(self, texts: pa.Array) -> None:
        """Take the ids of rankings, all of them one after the other."""
        self._texts.append(texts)
        self._bytes += texts.nbytes
        if self._bytes >= _GATHERED:
            self._encode()

    def columns(self) -> Columns:
        """The columns of all that was taken."""
        import pyarrow as pa

        self._encode()
        encoded = pa.chunked_array(self._encoded, pa.dictionary(pa.int32(), pa.string())).unify_dictionaries()
        codes = [numbers(chunk.indices) for chunk in encoded.chunks]
        return Columns(
            self.names,
            np.concatenate([np.zeros(0, dtype=np.int32), *codes]),
            _offsets(self._lengths, len(self._lengths)),
            encoded.chunks[0].dictionary if encoded.num_chunks else pa.array([], pa.string()),
            _offsets(self._turns, len(self._turns)) if self.by_turn else None,
        )

    def _encode(self) -> None:
        import pyarrow as pa

        encoded = pa.chunked_array(self._texts, pa.string()).dictionary_encode()
        if encoded.num_chunks:
            # The parts share the dictionary, which is whole in the last.
            codes = np.concatenate([numbers(chunk.indices) for chunk in encoded.chunks])
            whole = encoded.chunks[-1].dictionary
            self._encoded.append(pa.DictionaryArray.from_arrays(int32_array(codes), whole))
        self._texts, self._bytes = [], 0


def _ranges(offsets: Offsets, places: NDArray[np.int64]) -> tuple[Offsets, NDArray[np.int64]]:
    """Where some ranges, -1 for an empty one, start once they lie one behind the other, and their parts."""
    lengths = np.where(places < 0, 0, np.diff(offsets, append=0)[places])
    found = _offsets(lengths, len(lengths))
    return found, np.arange(found[-1]) + np.repeat(offsets[places] - found[:-1], lengths)


def _only(values: Iterable[Any], kinds: tuple[type, ...]) -> None:
    found = set(map(type, values)) - set(kinds)
    if found:
        raise TypeError(f"a {min(kind.__name__ for kind in found)}")


def _offsets(lengths: Iterable[int], count: int) -> Offsets:
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, count), out=offsets[1:])
    return offsets


def _parts(ids: Iterator[str]) -> Iterator[list[str]]:
    """The ids in parts of bounded length: one string may stand at all places, and each gets a copy."""
    while block := list(islice(ids, _BLOCK)):
        try:
            ends = np.cumsum(np.fromiter(map(len, block), np.int64, len(block)))
        except TypeError:
            # Joining them says which one is not a string, before it takes any memory.
            yield block
            continue
        start = before = 0
        while start < len(block):
            end = max(start + 1, int(np.searchsorted(ends, before + _GATHERED, side="right")))
            yield block[start:end]
            start, before = end, int(ends[end - 1])


def _strings(ids: list[str]) -> pa.Array:
    texts = id_array(ids)
    if not all(ids):
        raise ValueError("an empty id")
    return texts

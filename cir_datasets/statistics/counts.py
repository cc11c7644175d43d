"""The numbers of one benchmark, counted from its rows: words, and parts of speech.

Parts of speech are HanTa's, whose English model is in its wheel (no download), as coarse classes.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.common.progress import step_progress
from cir_datasets.common.row_files import VIDEO_CATEGORIES
from cir_datasets.common.tables import TOTAL
from cir_datasets.errors import missing_extra
from cir_datasets.rows.benchmark import GALLERY, SUBSET, Benchmark
from cir_datasets.rows.caption_aspects import aspect_table, caption_aspects
from cir_datasets.rows.closed_loops import closed_loop
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from cir_datasets.rows.records import Row

_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_TAGGED = 64
"""Characters of a word that the tagger sees, the last ones, which tell its class; the longest word of the
packaged benchmarks has 20, and the tagger's time grows with the square of a word."""
_CONTRACTED = re.compile(r"(?<=[a-z])(n't|'(?:s|re|ve|ll|d|m))$")


def words(caption: str) -> list[str]:
    """The words of a caption, in small letters; punctuation is none, `t-shirt` and `isn't` are one each.

    Example:
        >>> words("Is a T-shirt, and isn't blue.")
        ['is', 'a', 't-shirt', 'and', "isn't", 'blue']
    """
    return [found.replace("’", "'") for found in _WORD.findall(caption.lower())]


def tokens(caption_words: list[str]) -> list[str]:
    """Words as a tagger wants them: contractions in two.

    Example:
        >>> tokens(["isn't", "the", "dog's", "it"])
        ['is', "n't", 'the', 'dog', "'s", 'it']
    """
    found = []
    for word in caption_words:
        match = _CONTRACTED.search(word)
        found += [word[: match.start()], match.group()] if match else [word]
    return found


@functools.cache
def stop_words() -> frozenset[str]:
    """Words that are left out of the most frequent terms (`stop_words.yaml`).

    Example:
        >>> "the" in stop_words(), "longer" in stop_words()
        (True, False)
    """
    from cir_datasets.common.yaml import package_yaml

    groups = package_yaml("cir_datasets", "statistics/stop_words.yaml").values()
    return frozenset(word for group in groups for word in group)


OTHER = "other"


@functools.cache
def classes() -> dict[str, str]:
    """The coarse class of each tag of the model (`tagset.yaml`).

    Example:
        >>> classes()["NN1"], classes()["AJC"]
        ('noun', 'adjective')
    """
    from cir_datasets.common.yaml import package_yaml

    tagset = package_yaml("cir_datasets", "statistics/tagset.yaml")
    return {tag: name for name, tags in tagset.items() for tag in tags}


def class_names() -> tuple[str, ...]:
    """The coarse classes, `other` last.

    Example:
        >>> class_names()[:4], class_names()[-1]
        (('noun', 'verb', 'adjective', 'adverb'), 'other')
    """
    return (*dict.fromkeys(classes().values()), OTHER)


def count_classes(captions: Mapping[str, int], label: str) -> Counter[str]:
    """How many words of each class captions hold; a caption is tagged once, however often it occurs.

    Args:
        captions: by caption how often it occurs.
        label: what is tagged, for the progress bar.

    Raises:
        MissingExtraError: HanTa is not installed.

    Example:
        >>> counts = count_classes({"replace the blue shirt with a black shirt": 2}, "one caption")
        >>> counts["noun"], counts["adjective"], counts["verb"]
        (4, 4, 2)
    """
    found: Counter[str] = Counter()
    with step_progress(f"tagging {label}", len(captions)) as advance:
        for caption, times in captions.items():
            for _, _, name in tagged(caption):
                found[name] += times
            advance(1)
    return found


def tagged(caption: str) -> list[tuple[str, str, str]]:
    """Each word of a caption with its lemma and its coarse class.

    Raises:
        MissingExtraError: HanTa is not installed.

    Example:
        >>> tagged("Two dogs ran.")
        [('two', 'two', 'number'), ('dogs', 'dog', 'noun'), ('ran', 'run', 'verb')]
    """
    known = classes()
    found = _tagger().tag_sent([token[-_TAGGED:] for token in tokens(words(caption))])
    return [(word, lemma, known.get(tag, OTHER)) for word, lemma, tag in found]


@functools.cache
def _tagger() -> Any:
    try:
        module = importlib.import_module("HanTa.HanoverTagger")  # has no type hints
    except ImportError as error:
        raise missing_extra(
            "the tagging of parts of speech",
            "HanTa",
            "statistics",
            "leave them out of cir datasets stats with --no-tags",
        ) from error
    # By its whole path: a bare name would be looked for in the working directory first.
    return module.HanoverTagger(str(Path(str(module.__file__)).parent / "morphmodel_en.pgz"))


@dataclass(frozen=True)
class Statistics:
    """What was counted; averages and shares are properties.

    Args:
        id: the benchmark's id, or `total`, or of a dataset's benchmarks together its name.
        multi_turn: whether rows are sessions.
        queries: number of queries or sessions.
        gallery: images in the gallery, by the card where the list is not available; None where neither says.
        gallery_listed: whether that was counted from the list.
        lists: by number of images the queries that rank so many of their own; empty where none does.
        subsets: distinct second lists of queries (CIRR's subsets of six); None where the benchmark has none.
        turns: by number of turns the sessions that have so many; a query has one.
        lengths: by number of words the captions that have so many; empty captions are under 0.
        captions: distinct captions that are not empty.
        words: by word (in small letters) how often it occurs.
        classes: by part of speech how many words have it; None where that was not asked for.
        positives: positives of all queries together; None where the ground truth is withheld.
        negatives: hard negatives of all queries together; None where the benchmark has none.
        videos: by category and subcategory of their videos the queries; empty where no row has one.
        aspects: by aspect of CIRR's Table 1 the captions that have it.
        subset_loops: of the subsets, those with a closed loop through all images; None where targets are
            withheld or there are no subsets.
        auxiliary: by auxiliary question, from 0, the queries that have an answer to it; None without such.
        asked: a hash of each row's id, references and captions, which tells rows that benchmarks share.
    """

    id: str
    multi_turn: bool
    queries: int
    gallery: int | None
    gallery_listed: bool
    lists: Counter[int]
    subsets: int | None
    turns: Counter[int]
    lengths: Counter[int]
    captions: int
    words: Counter[str]
    classes: Counter[str] | None
    positives: int | None
    negatives: int | None
    videos: Counter[tuple[str, ...]] = field(default_factory=Counter)
    aspects: Counter[str] = field(default_factory=Counter)
    subset_loops: int | None = None
    auxiliary: Counter[int] | None = None
    asked: frozenset[int] = field(default=frozenset(), repr=False)

    @property
    def dataset(self) -> str:
        """The dataset that the benchmark belongs to.

        Example:
            >>> measure("shapes/val", tags=False).dataset
            'shapes'
        """
        return self.id.partition("/")[0]

    @property
    def average_turns(self) -> float:
        """Turns a session."""
        return sum(turns * count for turns, count in self.turns.items()) / self.queries

    @property
    def caption_count(self) -> int:
        """Captions that are not empty."""
        return self.lengths.total() - self.lengths[0]

    @property
    def mean_length(self) -> float | None:
        """Words a caption, empty ones left out; None where there are no captions."""
        return self.words.total() / self.caption_count if self.caption_count else None

    @property
    def median_length(self) -> float | None:
        """Median of the words a caption, empty ones left out."""
        if not self.caption_count:
            return None
        return (self._at((self.caption_count - 1) // 2) + self._at(self.caption_count // 2)) / 2

    @property
    def longest(self) -> int | None:
        """Words of the longest caption."""
        return max(self.lengths) if self.caption_count else None

    @property
    def type_token_ratio(self) -> float | None:
        """Distinct words divided by words (Richards, 1987); it falls as a text grows."""
        return len(self.words) / self.words.total() if self.words else None

    @property
    def class_shares(self) -> dict[str, float] | None:
        """By part of speech its share of all words that the tagger was given: a contraction is two."""
        if self.classes is None or not self.classes:
            return None
        total = self.classes.total()
        return {name: count / total for name, count in self.classes.items()}

    @property
    def aspect_shares(self) -> dict[str, float]:
        """By aspect its share of the captions that have a word."""
        return {key: self.aspects[key] / self.caption_count for key in aspect_table() if self.caption_count}

    @property
    def auxiliary_shares(self) -> list[float] | None:
        """Of each auxiliary question the share of queries that have an answer."""
        if self.auxiliary is None:
            return None
        return [self.auxiliary[number] / self.queries for number in sorted(self.auxiliary)]

    def frequent_terms(self, top: int) -> list[tuple[str, int]]:
        """The most frequent words that are not stop words and no numbers; equal counts by alphabet."""
        left = [item for item in self.words.items() if item[0] not in stop_words() and not item[0].isdigit()]
        return sorted(left, key=lambda item: (-item[1], item[0]))[:top]

    def to_dict(self, top: int) -> dict[str, Any]:
        """The numbers as JSON values; `top` frequent terms."""
        return {
            "id": self.id,
            "queries": self.queries,
            "gallery": self.gallery,
            "gallery_listed": self.gallery_listed,
            "gallery_lists": {str(length): self.lists[length] for length in sorted(self.lists)},
            "subsets": self.subsets,
            "queries_per_subset": self.queries / self.subsets if self.subsets else None,
            "subsets_with_closed_loop": self.subset_loops,
            "auxiliary_answers": self.auxiliary_shares,
            "turns": {str(turns): self.turns[turns] for turns in sorted(self.turns)},
            "average_turns": self.average_turns,
            "captions": self.caption_count,
            "distinct_captions": self.captions,
            "empty_captions": self.lengths[0],
            "caption_words": {
                "mean": self.mean_length,
                "median": self.median_length,
                "max": self.longest,
                "histogram": {str(length): self.lengths[length] for length in sorted(self.lengths)},
            },
            "words": self.words.total(),
            "distinct_words": len(self.words),
            "type_token_ratio": self.type_token_ratio,
            "parts_of_speech": self.class_shares,
            "aspects": self.aspect_shares,
            "frequent_terms": dict(self.frequent_terms(top)),
            "positives_per_query": None if self.positives is None else self.positives / self.queries,
            "negatives_per_query": None if self.negatives is None else self.negatives / self.queries,
            **(
                {"video_categories": {" / ".join(kind): n for kind, n in self.ranked_videos()}}
                if self.videos
                else {}
            ),
        }

    def ranked_videos(self) -> list[tuple[tuple[str, ...], int]]:
        """Categories and subcategories of videos with their queries, by alphabet."""
        return sorted(self.videos.items())

    def _at(self, place: int) -> int:
        """The length of the caption at a place when captions are sorted by length."""
        for length in sorted(self.lengths):
            place -= self.lengths[length] if length else 0
            if place < 0:
                return length
        raise IndexError(place)


def measure(benchmark: str | Benchmark, *, tags: bool = True) -> Statistics:
    """Count a benchmark's rows and captions.

    Every caption of a row counts as one of its own (FashionIQ has two a query). The length of a caption is
    its number of words; an empty caption has none and stays out of averages.

    Args:
        benchmark: from `cir_datasets.load`, or its id.
        tags: whether to count parts of speech, which needs HanTa.

    Raises:
        CallError: it is neither.
        UnknownNameError: no benchmark has that id.
        SourceError: its data is not available.
        MissingExtraError: `tags` is asked for and HanTa is not installed.

    Example:
        >>> from cir_datasets import load
        >>> found = measure(load("shapes/multiturn_val"), tags=False)
        >>> found.queries, dict(sorted(found.turns.items()))
        (200, {2: 92, 3: 56, 4: 28, 5: 15, 6: 9})
    """
    if isinstance(benchmark, str):
        from cir_datasets.prepared import load

        benchmark = load(benchmark)
    if not isinstance(benchmark, Benchmark):
        raise CallError(
            f"benchmark is of type {type(benchmark).__name__}. "
            "Fix: pass an id such as 'circo/val', or a Benchmark."
        )
    spec = benchmark.spec
    return measure_rows(
        spec.id,
        benchmark.rows(),
        multi_turn=benchmark.multi_turn,
        gallery=spec.config.gallery if benchmark.gallery is None else len(benchmark.gallery),
        gallery_listed=benchmark.gallery is not None,
        positives=None if benchmark.ground_truth_withheld else sum(map(len, benchmark.positives)),
        tags=tags,
    )


def measure_rows(
    name: str,
    rows: Sequence[Row],
    *,
    multi_turn: bool,
    gallery: int | None = None,
    gallery_listed: bool = True,
    positives: int | None = None,
    tags: bool = True,
) -> Statistics:
    """Count rows that belong to no benchmark yet; as `measure`.

    Args:
        name: what to call them.
        rows: queries, or sessions.
        multi_turn: whether they are sessions.
        gallery: images in their gallery.
        gallery_listed: whether that was counted.
        positives: of all rows together.
        tags: whether to count parts of speech, which needs HanTa.

    Raises:
        MissingExtraError: `tags` is asked for and HanTa is not installed.
    """
    captions = Counter(caption for row in rows for caption in captions_of(row))
    lengths: Counter[int] = Counter()
    counted: Counter[str] = Counter()
    for caption, times in captions.items():
        found = words(caption)
        lengths[len(found)] += times
        for word in found:
            counted[word] += times
    filled = {caption: times for caption, times in captions.items() if words(caption)}
    classes = count_classes(filled, name) if tags else None
    negatives = sum(len(row.get("negative_image_ids") or ()) for row in rows)
    subsets = {tuple(sorted(row[SUBSET])) for row in rows if row.get(SUBSET)}
    id_field = "session_id" if multi_turn else "query_id"
    return Statistics(
        id=name,
        multi_turn=multi_turn,
        queries=len(rows),
        gallery=gallery,
        gallery_listed=gallery_listed,
        lists=Counter(len(row[GALLERY]) for row in rows if row.get(GALLERY)),
        subsets=len(subsets) or None,
        turns=Counter(len(row["turns"]) if multi_turn else 1 for row in rows),
        lengths=lengths,
        captions=len(filled),
        words=counted,
        classes=classes,
        positives=positives,
        negatives=negatives or None,
        videos=Counter(
            kind for row in rows if any(kind := tuple(row.get(name) or "" for name in VIDEO_CATEGORIES))
        ),
        aspects=_aspects(filled),
        subset_loops=_closed_loops(rows),
        auxiliary=_answered(rows),
        asked=frozenset(hash(asked) for row in rows for asked in _asked(row, id_field)),
    )


def _aspects(captions: Mapping[str, int]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for caption, times in captions.items():
        for aspect in caption_aspects([caption]):
            counted[aspect] += times
    return counted


def _closed_loops(rows: Sequence[Row]) -> int | None:
    """How many subsets have a closed loop of pairs."""
    subsets: dict[tuple[Any, ...], dict[str, list[str]]] = {}
    for row in rows:
        if not row.get(SUBSET) or row.get("target_image_id") is None:
            return None
        pairs = subsets.setdefault((row.get("subset_id"), *sorted(row[SUBSET])), {})
        pairs.setdefault(row["reference_image_id"], []).append(row["target_image_id"])
    return sum(closed_loop(pairs, members) is not None for (_, *members), pairs in subsets.items())


def _answered(rows: Sequence[Row]) -> Counter[int] | None:
    """By auxiliary question the queries with an answer, which no mark of "not applicable" begins."""
    if not rows or not rows[0].get("auxiliary_captions"):
        return None
    counted = Counter(dict.fromkeys(range(len(rows[0]["auxiliary_captions"])), 0))
    for row in rows:
        answers = enumerate(row["auxiliary_captions"])
        counted.update(number for number, answer in answers if answer.strip() and not answer.startswith("["))
    return counted


def counted_once(parts: Sequence[Statistics]) -> list[Statistics] | None:
    """Those of several benchmarks that a total adds up, so that no query of a dataset is counted twice.

    A benchmark whose queries are all in another one of the same dataset is left out: the same queries over
    another gallery (`fashioniq/dress_val_union`), a part of a split that is there too, an overlay.

    Args:
        parts: statistics of the benchmarks.

    Returns:
        the benchmarks to add up, in the same order; None where two share some of their queries but neither
        holds all of the other's.
    """
    seen: dict[str, set[int]] = {}
    kept = []
    for part in sorted(parts, key=lambda part: -len(part.asked)):  # the whole comes before its parts
        before = seen.setdefault(part.dataset, set())
        if part.asked and part.asked <= before:
            continue
        if part.asked & before:
            return None
        before |= part.asked
        kept.append(part)
    return [part for part in parts if any(part is one for one in kept)]


def total(parts: Sequence[Statistics], name: str = TOTAL) -> Statistics:
    """Several benchmarks as one: rows, captions and (as in CIRCLED's Table 4) galleries are added up.

    Args:
        parts: at least one; `counted_once` picks those that share no queries.
        name: what the sum is called.
    """
    merged = {
        entry.name: _together([getattr(part, entry.name) for part in parts])
        for entry in dataclasses.fields(Statistics)
        if entry.name not in ("id", "multi_turn", "gallery_listed")
    }
    return Statistics(
        id=name,
        multi_turn=any(part.multi_turn for part in parts),
        gallery_listed=all(part.gallery_listed for part in parts),
        **merged,
    )


def _together(values: Sequence[Any]) -> Any:
    """Numbers are added, counts and sets united; None where one is not known."""
    if any(value is None for value in values):
        return None
    if isinstance(values[0], frozenset):
        return frozenset().union(*values)
    if not isinstance(values[0], Counter):
        return sum(values)
    merged: Counter[Any] = Counter()
    for counter in values:
        merged.update(counter)
    return merged


def captions_of(row: Row) -> Iterator[str]:
    """Every caption of a query, or of a session's turns, empty ones included."""
    for part in row.get("turns") or [row]:
        several = part.get("captions")
        if several:
            yield from several
        elif part["relative_caption"] is not None:
            yield part["relative_caption"]


def _asked(row: Row, id_field: str) -> Iterator[tuple[Any, ...]]:
    """What a row asks: its references and captions, turn by turn; of a dialogue made of queries, these."""
    parts = row.get("turns") or [row]
    asked = [
        (part["reference_image_id"], part["relative_caption"], *(part.get("captions") or ()))
        for part in parts
    ]
    if parts[0].get("source_query_id") is None:
        yield (row[id_field], *chain.from_iterable(asked))
    else:
        yield from (
            (part["source_query_id"], *words, words[1]) for part, words in zip(parts, asked, strict=True)
        )

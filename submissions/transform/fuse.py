"""Fusing rank files: one ranking a query from several methods' rankings, by places alone.

Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009) needs no scores and no training, which is
why it fits rank files: score(d) = sum over rankings r that list d of 1 / (k + rank_r(d)).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cir_metrics.errors import CallError, UnknownNameError, did_you_mean
from cir_metrics.ranking import best_of
from submissions.errors import FusionError
from submissions.rank_file.benchmarks import MAX_DEPTH, Benchmarks, board_depth
from submissions.rank_file.content import MAX_BYTES
from submissions.rank_file.findings import RefusedError, shown
from submissions.rank_file.model import (
    Method,
    RankBundle,
    RankFile,
    answer_of,
    checked_method,
    runs_of,
    turn_key,
)
from submissions.rank_file.texts import LONGEST_WORD, is_oracle, of_several
from submissions.validation import validate

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike

K = 60
"""The constant of reciprocal rank fusion; Cormack et al. fixed it in a pilot and found it hardly matters."""
_PAPER = "https://doi.org/10.1145/1571941.1572114"
_NAME, _WORD, _NOTES, _LISTED = 80, 300, 2000, 20
"""Longest texts and lists of a method block."""


def fuse(
    files: Sequence[FileLike],
    benchmark: BenchmarkLike = None,
    *,
    by: str | None = None,
    constant: int = K,
    k: int | None = None,
    name: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> RankFile | RankBundle:
    """Fuse the rankings of several methods, query by query and turn by turn.

    Rankings of CIRR's subsets are fused among themselves, bundles member by member. Images with equal scores
    are ordered by a hash of query and image; the scores are exact fractions, so that neither rounding nor the
    order of the files decides. No ground truth is read: what a server holds back can be fused, too.

    Args:
        files: two or more valid rank files, or bundles of one suite.
        benchmark: what they answer, as in `validate`.
        by: deprecated, goes with 0.2: there is one way to fuse, `rrf`.
        constant: of reciprocal rank fusion, 0 or more; the larger, the less the first places stand out.
        k: first images of each fused ranking that are kept, up to 1,000; default: what the board uses. All
            that the files rank are fused, and a ranking of fewer images is kept whole.
        name: the method's name in the result; default: made of the names of what is fused.
        max_bytes: bytes that are read of each file at most.

    Returns:
        A rank file or bundle whose method block says what was fused; `zero_shot` holds where it does for all
        (unknown where it is unknown for one and false for none), and `trained_on` is all of theirs.

    Raises:
        CallError: no list of two files or more; constant or k is not a whole number, or out of range.
        UnknownNameError: no way to fuse has that name.
        RefusedError: validation found errors in a file.
        FusionError: the files answer different benchmarks or queries, or the name is refused.
        MissingFileError: no file has that name.

    Example:
        >>> from submissions import make_rank_file
        >>> names = ("image_only_pixels", "text_only_pixels")
        >>> files = [make_rank_file("shapes/val", name) for name in names]
        >>> fuse(files).method.name
        'RRF: Image only + Text only'
    """
    if by is not None:
        _warn_of_by(by)
    if not isinstance(files, Sequence) or isinstance(files, str | bytes):
        raise CallError(f"files is of type {type(files).__name__}. Fix: pass a list of rank files.")
    if len(files) < 2:
        raise CallError("a fusion needs two rank files or more. Fix: name another one.")
    if not _is_whole(constant) or constant < 0:
        raise CallError(f"constant={constant!r}; it is a whole number, 0 or more. Fix: use {K}.")
    if k is not None and not _is_whole(k):
        raise CallError(f"k={k!r}; it is a whole number of images. Fix: use 50, say.")
    benchmarks = Benchmarks(benchmark)
    read = [_read(file, benchmarks, max_bytes) for file in files]
    labels, answers = [label for label, _ in read], [answer for _, answer in read]
    suites = [each.suite if isinstance(each, RankBundle) else each.benchmark for each in answers]
    other = next((place for place, each in enumerate(suites) if each != suites[0]), None)
    if other is not None:
        raise FusionError(
            f"{labels[0]} answers {suites[0]} and {labels[other]} answers {suites[other]}. "
            "Fix: fuse rank files of one benchmark, or bundles of one suite."
        )
    members = [{run.benchmark: run for run in runs_of(answer)} for answer in answers]
    runs = [[own[member] for own in members] for member in members[0]]
    return answer_of(suites[0], [_fuse_runs(labels, each, benchmarks, constant, k, name) for each in runs])


def _warn_of_by(by: str) -> None:
    if by != "rrf":
        raise UnknownNameError(
            f"by={by!r} is not a way to fuse.{did_you_mean(by, ['rrf'])} Fix: leave it out."
        )
    warnings.warn(
        "by='rrf' is deprecated and goes with 0.2: reciprocal rank fusion is the one way to fuse. "
        "Fix: leave it out.",
        DeprecationWarning,
        stacklevel=3,
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _read(file: FileLike, benchmarks: Benchmarks, max_bytes: int) -> tuple[str, RankFile | RankBundle]:
    """The file's name and what it holds."""
    report = validate(file, benchmarks, part=True, max_bytes=max_bytes)
    if not report.ok or report.rank_file is None:
        raise RefusedError(f"{report.file} cannot be fused.", report)
    return report.file, report.rank_file


def _fuse_runs(
    labels: Sequence[str],
    runs: Sequence[RankFile],
    benchmarks: Benchmarks,
    constant: int,
    k: int | None,
    name: str | None,
) -> RankFile:
    benchmark = benchmarks.load(runs[0].benchmark)
    kept = _depth(k, board_depth(benchmark).used, board_depth(benchmark).required)
    if any(not run.rankings for run in runs):
        label = labels[[bool(run.rankings) for run in runs].index(False)]
        raise FusionError(
            f"{label} ranks the subsets only. "
            "Fix: join the CIRR server's two files with  "
            f"cir convert RECALL SUBSET --benchmark {benchmark.id} --to native"
        )
    _check_same_queries(labels, [run.rankings for run in runs], "")
    subsets = [run.subset_rankings for run in runs if run.subset_rankings is not None]
    if subsets:
        _check_same_queries(labels, [run.subset_rankings or {} for run in runs], " of the subset")
    gallery = _same_gallery(labels, runs, benchmark)
    units = _reciprocals(_deepest(runs, by_turn=benchmark.multi_turn), constant)
    rankings: dict[str, list[Any]] = {}
    for query in benchmark.query_ids:
        answers = [run.rankings[query] for run in runs]
        if benchmark.multi_turn:
            rankings[query] = [
                _rrf(turn, units, kept, turn_key(query, number))
                for number, turn in enumerate(zip(*answers, strict=True), start=1)
            ]
        else:
            rankings[query] = _rrf(answers, units, kept, query)
    fused_subsets = None
    if subsets:
        fused_subsets = {}
        for query in subsets[0]:
            answers = [each[query] for each in subsets]
            fused_subsets[query] = _rrf(answers, units, max(map(len, answers)), query)
    return RankFile(
        benchmark=runs[0].benchmark,
        benchmark_version=runs[0].benchmark_version,
        method=_method([run.method for run in runs], constant, name).model_copy(
            update={"own_gallery": gallery}
        ),
        rankings=rankings,
        subset_rankings=fused_subsets,
    )


def _same_gallery(labels: Sequence[str], runs: Sequence[RankFile], benchmark: Benchmark) -> str:
    """The gallery of their own that the files ranked; empty where one does not say what it ranked."""
    known = "" if benchmark.gallery is None else f"{len(benchmark.gallery)}:{benchmark.gallery_hash}"
    ranked = [run.method.own_gallery or known for run in runs]
    said = [(label, each) for label, each in zip(labels, ranked, strict=True) if each]
    for label, each in said:
        if each != said[0][1]:
            sizes = [f"{int(gallery.partition(':')[0]):,} images" for gallery in (said[0][1], each)]
            raise FusionError(
                f"{said[0][0]} ranked a gallery of {sizes[0]} and {label} another one, of {sizes[1]}. "
                "Fix: fuse files that ranked the same gallery."
            )
    return "" if "" in ranked or ranked[0] == known else ranked[0]


def _check_same_queries(labels: Sequence[str], answers: Sequence[Mapping[str, Any]], kind: str) -> None:
    for label, each in zip(labels, answers, strict=True):
        odd = sorted(each.keys() ^ answers[0].keys())
        if odd:
            has, lacks = (labels[0], label) if odd[0] in answers[0] else (label, labels[0])
            raise FusionError(
                f"{has} has a ranking{kind} for query {shown(odd[0])} and {lacks} has none "
                f"({len(odd):,} such queries). Fix: fuse files that answer the same queries."
            )


def _depth(wanted: int | None, used: int, required: int) -> int:
    if wanted is None:
        return used
    if not required <= wanted <= MAX_DEPTH:
        raise CallError(
            f"k={wanted}; this board takes {required} to {MAX_DEPTH:,} images a ranking. "
            f"Fix: choose one of these, or leave it out for {used}."
        )
    return wanted


def _reciprocals(deepest: int, constant: int) -> list[int]:
    """1 / (constant + rank) for the ranks from 1, as whole numbers over one common denominator."""
    common = math.lcm(*range(constant + 1, constant + deepest + 1))
    return [common // (constant + rank) for rank in range(1, deepest + 1)]


def _deepest(runs: Iterable[RankFile], *, by_turn: bool) -> int:
    """Images in the longest ranking."""
    deepest = 0
    for run in runs:
        answers = [answer for part in run.sections().values() for answer in part.values()]
        rankings = (turn for turns in answers for turn in turns) if by_turn else answers
        deepest = max(deepest, *map(len, rankings))
    return deepest


def _rrf(rankings: Iterable[Sequence[str]], units: Sequence[int], depth: int, query: str) -> list[str]:
    scores: dict[str, int] = {}
    for ranking in rankings:
        for image, unit in zip(ranking, units, strict=False):
            scores[image] = scores.get(image, 0) + unit
    return best_of(scores, depth, query)


def _method(methods: Sequence[Method], constant: int, name: str | None) -> Method:
    names = [method.name for method in methods]
    removing = [method.name for method in methods if method.reference == "removed"]
    if 0 < len(removing) < len(names):
        warnings.warn(
            f"{', '.join(removing)}: declared without the reference image, which others of these files may "
            "rank. The fusion declares nothing. Fix: fuse files that treat it alike.",
            stacklevel=2,
        )
    full = f"RRF: {' + '.join(names)}"
    zero_shot = [method.zero_shot for method in methods]
    fields = {
        "name": name or (full if len(full) <= _NAME else f"RRF of {len(names)} methods"),
        "paper": _PAPER,
        "backbone": _one_word(method.backbone for method in methods),
        "zero_shot": False if False in zero_shot else None if None in zero_shot else True,
        "trained_on": _union(method.trained_on for method in methods),
        "oracle": _one_word(method.oracle for method in methods if is_oracle(method.to_dict())),
        "caption_rule": _one_word(method.caption_rule for method in methods),
        "text_fields": _union(method.text_fields for method in methods)[:_LISTED],
        "aggregation": _joined(method.aggregation for method in methods),
        "reference": methods[0].reference if len({method.reference for method in methods}) == 1 else "",
        "notes": f"Reciprocal rank fusion, k = {constant}, of: {'; '.join(names)}"[:_NOTES],
    }
    return checked_method(fields, FusionError, "choose another")


def _joined(texts: Iterable[str]) -> str:
    """What the methods say, each once; nothing where that would be too long for the field."""
    joined = " + ".join(dict.fromkeys(text for text in texts if text))
    return joined if len(joined) <= _WORD else ""


def _one_word(said: Iterable[str]) -> str:
    """What the methods say in a field that is a list of words; nothing where that would be too long."""
    text = of_several(list(said))
    return text if len(text) <= LONGEST_WORD else ""


def _union(lists: Iterable[Sequence[str]]) -> list[str]:
    found = list(dict.fromkeys(each for names in lists for each in names))
    if len(found) <= _LISTED:
        return found
    return [*found[: _LISTED - 1], f"and {len(found) - _LISTED + 1} more"]

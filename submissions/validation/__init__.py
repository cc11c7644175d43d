"""`validate`: everything that is wrong with a rank file, found without any ground truth.

The same code runs in `cir validate`, in the browser's upload and on the server. It may be as chatty as it
likes, because it knows only what is public: query ids, turns, references, subsets and the gallery.

Nearly every answer of nearly every file has nothing wrong with it. So all of them are looked at at once,
which finds who may break a rule (`suspects`); what is wrong with these, one place after the other, says
`faults`, which is imported for them.

Words of a method block may contradict each other (`contradictions.yaml`), which no board should show:
zero-shot and trained on the benchmark's own data cannot both be so, and a method that reads what only the
ground truth knows has to say it in `oracle`.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.rows import id_array, list_lengths
from submissions.formats import Parsed, parse_file
from submissions.formats.native import UncheckedFile
from submissions.rank_file.benchmarks import MAX_DEPTH, Benchmarks, image_family, queries, well_formed
from submissions.rank_file.columns import Columns
from submissions.rank_file.content import MAX_BYTES
from submissions.rank_file.findings import Findings, RefusedError, ValidationReport, shown
from submissions.rank_file.model import CIRR_SERVER, LISTS
from submissions.rank_file.texts import is_oracle, words_of

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.benchmarks import AskedLists, BenchmarkLike, FileLike, Queries
    from submissions.rank_file.model import Method, RankBundle, RankFile

CODE = "contradiction"
_NAMED = ("name", "backbone", "caption_rule", "aggregation")
"""The fields whose texts may say that a method is an oracle."""

_PLACES = 1_000
"""Places that are not excused, at least, where another gallery is evident."""
_LESS_LIKELY = 10
"""How many times less likely an image outside the smaller list may be."""
_BOUND = 1e-12
"""Chance, at most, that a ranking of the whole gallery leaves out all that the smaller list lacks."""


def validate(
    file: FileLike,
    benchmark: BenchmarkLike | Benchmarks = None,
    *,
    part: bool | None = None,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
    form: Mapping[str, Any] | None = None,
) -> ValidationReport:
    """Check a rank file or a bundle and return every finding.

    Args:
        file: a path, the file's bytes, a `RankFile` or a `RankBundle`.
        benchmark: what it must answer: an id of a benchmark or suite, a `Benchmark`, a mapping of benchmarks
            by id (for a bundle of benchmarks made in memory), `Benchmarks`, which keep what they loaded, or
            None for what the file says itself. The CIRR and CIRCO servers' formats do not say it.
        part: whether one of the CIRR server's two files alone is enough. None: only where the ground truth is
            withheld, so that the server and no board of ours will read it.
        max_bytes: bytes that are read at most.
        name: the file's name in messages, where `file` is bytes.
        form: fields of the method block that came beside the file. A file that names no method is checked as
            if its own block said them; any that declares nothing of the reference, as if it declared this.

    Returns:
        The report. Wrong content never raises.

    Raises:
        CallError: `file` or `benchmark` is of none of these types.
        MissingFileError: no file has that name.
        UnknownNameError: `benchmark` is neither a benchmark nor a suite.
        SourceError: the benchmark's own data is not available.

    Example:
        >>> report = validate(b'{"format": "cir-rank-file"', name="run.json")
        >>> print(report.text())
        malformed: run.json: line 1, column 27: unexpected end of data.
          Fix: write it with a JSON library, never by hand, then run  cir validate run.json
        run.json: refused, 1 error
    """
    benchmarks = benchmark if isinstance(benchmark, Benchmarks) else Benchmarks(benchmark)
    parsed = parse_file(file, benchmarks, max_bytes=max_bytes, name=name, form=form)
    for unchecked, findings in parsed.files:
        if unchecked is not None:
            check_rankings(unchecked, benchmarks, findings, form or {}, part=part)
    return report_of(parsed)


def report_of(parsed: Parsed) -> ValidationReport:
    """The report of what was found so far."""
    found = [finding for collector in parsed.collectors() for finding in collector.listed()]
    files = [unchecked for unchecked, _ in parsed.files if unchecked is not None]
    parts = [file.rankings if file.rankings is not None else file.subset_rankings for file in files]
    answered = sum(len(part) for part in parts if part is not None)
    return ValidationReport.of(parsed.findings.file, found, parsed.benchmark, parsed.finished(), answered)


def check_rankings(
    unchecked: UncheckedFile,
    benchmarks: Benchmarks,
    findings: Findings,
    form: Mapping[str, Any],
    *,
    part: bool | None = None,
    queries_of: Callable[[Benchmark, str], Queries] = queries,
) -> None:
    """Check rankings that have been read, of a rank file or of a dialogue's rounds.

    Args:
        unchecked: what was read.
        benchmarks: resolves the benchmark.
        findings: collects what is wrong.
        form: fields of the method that came beside the file.
        part: as in `validate`.
        queries_of: makes of the benchmark, and of what is declared of the reference, what has to be ranked.
    """
    method, spec = unchecked.method, unchecked.spec
    if method is not None:
        check_words(method.to_dict(), spec, findings)
    benchmark = benchmarks.load(spec.id)
    in_file, in_form = "" if method is None else method.reference, form.get("reference", "")
    declared = in_file or in_form
    odd_data = benchmark.gallery is None or not benchmark.pinned or benchmark.left_out
    against_protocol = declared == "kept" and benchmark.reference_use == "removed"
    if odd_data or against_protocol or in_form not in ("", declared):
        from submissions.validation import faults

        faults.note_data(benchmark, findings)
        faults.leave_out(unchecked, benchmark, findings)
        faults.note_reference(in_file, in_form, benchmark, findings)
    alone = benchmark.ground_truth_withheld if part is None else part
    alone = alone and unchecked.format in (CIRR_SERVER, LISTS)
    check_content(unchecked, queries_of(benchmark, declared), findings, part=alone)
    if method is not None and method.repaired:
        from submissions.validation import faults

        faults.note_repaired(method.repaired, findings)
    if unchecked.rankings is not None and not unchecked.rankings.unreadable:
        note_ranked_gallery(unchecked.rankings, benchmark, method, findings)


def read(
    file: str | os.PathLike[str] | bytes,
    *,
    benchmark: BenchmarkLike = None,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
) -> RankFile | RankBundle:
    """Read a rank file or bundle, checking its structure only; `validate` checks the content.

    Args:
        file: a path, or the file's bytes.
        benchmark: what it answers; needed for the formats of others, which do not say it.
        max_bytes: bytes that are read at most.
        name: the file's name in messages, where `file` is bytes.

    Raises:
        MissingFileError: no file has that name.
        UnknownNameError: `benchmark` is neither a benchmark nor a suite.
        RefusedError: the structure is broken; its `report` holds the findings.

    Example:
        >>> content = b'{"version": "rc2", "metric": "recall", "12060": ["dev-0-0-img0.png"]}'
        >>> read(content, benchmark="cirr/val").rankings
        {'12060': ['dev-0-0-img0']}
    """
    benchmarks = Benchmarks(benchmark)
    benchmarks.only_here = True
    parsed = parse_file(file, benchmarks, max_bytes=max_bytes, name=name)
    report = report_of(parsed)
    if report.rank_file is None or report.errors:
        raise RefusedError(f"{report.file} cannot be read.", report)
    return report.rank_file


def check_content(unchecked: UncheckedFile, queries: Queries, findings: Findings, *, part: bool) -> None:
    """Check a file against its benchmark, without ground truth.

    Args:
        unchecked: structure checked already; entries of a wrong type are None and are skipped.
        queries: the benchmark, without its ground truth.
        findings: collects what is wrong.
        part: whether one of the CIRR server's two files alone will do.
    """
    near: dict[str, set[str]] = {}
    complete = unchecked.subset_rankings is None or len(queries.asked) > 1
    for asked in queries.asked:
        columns: Columns | None = getattr(unchecked, asked.section)
        if columns is None:
            complete = complete and not asked.needed
        else:
            near[asked.section] = suspects(columns, asked, queries, image_family(unchecked.spec))
            complete = complete and columns.position.keys() == queries.num_turns.keys()
    if any(near.values()) or not complete:
        from submissions.validation.faults import note_faults

        note_faults(unchecked, queries, findings, near, part=part)


def suspects(columns: Columns, asked: AskedLists, queries: Queries, family: str) -> set[str]:
    """The queries or sessions of the benchmark whose answers may break a rule.

    Args:
        columns: the answers.
        asked: what they have to be.
        queries: the benchmark, without its ground truth.
        family: the image family (`benchmarks.image_family`).
    """
    wanted = np.array([queries.num_turns.get(name, 0) for name in columns.names], dtype=np.int64)
    suspect = columns.turns != wanted
    owners = np.repeat(np.arange(len(columns.names)), columns.turns)
    marks = strange_places(columns, asked, family) | columns.repeated
    if asked.removes:
        marks |= columns.codes == np.repeat(asked.references.codes(columns), columns.lengths)
    before = np.concatenate([[0], np.cumsum(marks)])
    suspect[owners[before[columns.offsets[1:]] > before[columns.offsets[:-1]]]] = True
    suspect[owners[_odd_lengths(columns, asked)]] = True
    places = np.flatnonzero(suspect & (wanted > 0)).tolist()
    return {columns.names[place] for place in places} - columns.unreadable


def _odd_lengths(columns: Columns, asked: AskedLists) -> NDArray[np.bool_]:
    lengths = columns.lengths
    least: int | NDArray[np.int64] = asked.depth.required
    most: int | NDArray[np.int64] = asked.depth.used
    if asked.own is not None:
        held = asked.own.lengths[asked.own.places(columns.names)]
        least, most = np.minimum(asked.depth.used, held), held if asked.whole else most
    odd: NDArray[np.bool_] = (lengths == 0) | (lengths < least) | (lengths > most)
    return odd | (lengths > MAX_DEPTH)


def strange_places(columns: Columns, asked: AskedLists, family: str) -> NDArray[np.bool_]:
    """Which places hold an image from outside the gallery, or that the query does not rank.

    Args:
        columns: the answers.
        asked: what they have to be.
        family: the image family (`benchmarks.image_family`).

    Returns:
        Shape (n_places,).
    """
    if asked.gallery_ids is not None:
        outside = columns.in_gallery(id_array(asked.gallery_ids)) < 0
    elif asked.own is None:
        odd = [not well_formed(family, image) for image in columns.image_ids]
        outside = np.array(odd, dtype=np.bool_)
    else:
        outside = np.zeros(len(columns.images), dtype=np.bool_)
    strange: NDArray[np.bool_] = outside[columns.codes]
    if asked.own is not None:
        asking = np.repeat(asked.own.places(columns.names), columns.lengths)
        strange |= ~asked.own.holds(asking, columns.in_gallery(asked.own.images)[columns.codes])
    return strange


def note_ranked_gallery(
    columns: Columns, benchmark: Benchmark, method: Method | None, findings: Findings
) -> None:
    """Warn of rankings that were evidently made over another known list than the benchmark's gallery.

    Args:
        columns: the rankings.
        benchmark: what they answer.
        method: who ranked; a gallery of its own, or images left out, that it declares are believed.
        findings: collects the warning, whose value is the benchmark of that list.
    """
    counts = np.bincount(columns.codes, minlength=len(columns.images))
    size, places, used = len(benchmark.gallery or ()), len(columns.codes), int((counts > 0).sum())
    if benchmark.per_query or used >= size or places < _PLACES or _declared(method, benchmark):
        return
    lists = len(columns.lengths)
    turns = np.array(benchmark.column("num_turns")) if benchmark.multi_turn else 1
    name = "ground_truth_ids" if benchmark.multi_turn else "positive_image_ids"
    targets = benchmark.places(name)
    num_targets = list_lengths(benchmark.table.column(name) if targets is None else targets)
    excused = lists + max(lists, int((num_targets * turns).sum()))
    free = used - int(np.searchsorted(np.cumsum(np.sort(counts[counts > 0])), excused, side="right"))
    # Any list that holds what was ranked leaves out less: where even this much says nothing, no card is read.
    if places - excused < _PLACES or _chance(size, used, free) >= _BOUND:
        return
    from submissions.validation.faults import note_other_gallery

    note_other_gallery(columns, benchmark, lambda known: _chance(size, known, free) < _BOUND, findings)


def _chance(size: int, known: int, free: int) -> float:
    """That rankings of a gallery of some size leave out, in so many free places, all but `known` images."""
    chance: float = (1 + (size - known) / (_LESS_LIKELY * known)) ** -free
    return chance


def _declared(method: Method | None, benchmark: Benchmark) -> bool:
    """Whether the file says itself that it ranked something else."""
    if method is None:
        return False
    own = method.own_gallery.partition(":")[2]
    return bool(method.skipped_images) or own not in ("", benchmark.gallery_hash)


def _contradictions() -> Any:
    from cir_datasets.common.yaml import package_yaml

    return package_yaml("submissions", "validation/contradictions.yaml")


def check_words(method: Mapping[str, Any], spec: BenchmarkSpec, findings: Findings) -> None:
    """Note what a method block says and contradicts.

    Args:
        method: its fields.
        spec: the benchmark that the method answers.
        findings: collects what is wrong.
    """
    own = next((text for text in method.get("trained_on") or () if _is_own_data(str(text), spec)), None)
    if method.get("zero_shot") is True and own is not None:
        findings.add(
            CODE,
            f'"zero_shot" is true, and "trained_on" names {shown(own)}, which is data of {spec.id} itself.',
            cause="zero-shot",
            value=own,
            # No value of the file: a fix is a template.
            fix='write "zero_shot": false, on a leaderboard without another file; or, if that data was not '
            'used, send a file whose "trained_on" leaves it out',
        )
    named = None if is_oracle(method) else _oracle_words(method)
    if named is not None:
        field, said = named
        words = ", ".join(word for word in words_of("oracle") if word != "none")
        findings.add(
            CODE,
            f'"{field}" says {shown(said)}, and "oracle" does not say that the method reads what only the '
            "ground truth knows.",
            cause="oracle",
            value=said,
            fix=f'write "oracle": one of {words}; or, if it reads no such thing, other words into "{field}"; '
            "on a leaderboard correct these words, without another file",
        )


def _is_own_data(text: str, spec: BenchmarkSpec) -> bool:
    """Whether a text of `trained_on` names the benchmark's data, or that of the one whose images it ranks."""
    families = {spec.card.name, (spec.config.gallery_from or spec.id).partition("/")[0]}
    known: dict[str, list[str]] = _contradictions()["users_data"]
    spellings = (spelling for name in families for spelling in known.get(name, [re.escape(name)]))
    return _says(
        text, (rf"(?<![a-z0-9])(?:{spelling}){_contradictions()['follows']}" for spelling in spellings)
    )


def _oracle_words(method: Mapping[str, Any]) -> tuple[str, str] | None:
    """The field, and what it says, by which a method is an oracle; None where no field says so."""
    for field in _NAMED:
        text = str(method.get(field) or "")
        patterns = list(_contradictions()["oracle_words"])
        if not re.search(_contradictions()["made"], text.casefold()):
            patterns += _contradictions()["oracle_words_unless_made"]
        if _says(text, patterns):
            return field, text
    for column in method.get("text_fields") or ():
        if re.search(_contradictions()["oracle_fields"], str(column)):
            return "text_fields", str(column)
    return None


def _says(text: str, patterns: Iterable[str]) -> bool:
    """Whether a text says one of these, and does not deny it."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return any(
        not re.search(_contradictions()["denied"], text[: found.start()])
        and not re.search(_contradictions()["denied_behind"], text[found.end() :])
        for pattern in patterns
        for found in re.finditer(pattern, text)
    )

"""`validate`: everything that is wrong with a rank file, found without any ground truth.

The same code runs in `cir validate`, in the browser's upload and on the server. It may be as chatty as it
likes, because it knows only what is public: query ids, turns, references, subsets and the gallery.

Words of a method block may contradict each other (`contradictions.yaml`), which no board should show:
zero-shot and trained on the benchmark's own data cannot both be so, and a method that reads what only the
ground truth knows has to say it in `oracle`. What is declared of the reference contradicts neither the form
beside the file nor the protocol.
"""

from __future__ import annotations

import functools
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from submissions.formats import Parsed, parse_file
from submissions.formats.content import MAX_BYTES
from submissions.formats.native import UncheckedFile
from submissions.rank_file.benchmarks import Benchmarks, queries, warn_of_data
from submissions.rank_file.findings import Findings, RefusedError, ValidationReport, shown
from submissions.rank_file.model import CIRR_SERVER, LISTS
from submissions.rank_file.texts import is_oracle, words_of

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike, Queries
    from submissions.rank_file.model import RankBundle, RankFile

CODE = "contradiction"
_NAMED = ("name", "backbone", "caption_rule", "aggregation")
"""The fields whose texts may say that a method is an oracle."""


def validate(
    file: FileLike,
    benchmark: BenchmarkLike = None,
    *,
    part: bool | None = None,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
) -> ValidationReport:
    """Check a rank file or a bundle and return every finding.

    Args:
        file: a path, the file's bytes, a `RankFile` or a `RankBundle`.
        benchmark: what it must answer: an id of a benchmark or suite, a `Benchmark`, a mapping of benchmarks
            by id (for a bundle of benchmarks made in memory), or None for what the file says itself. The CIRR
            and CIRCO servers' formats do not say it.
        part: whether one of the CIRR server's two files alone is enough. None: only where the ground truth is
            withheld, so that the server and no board of ours will read it.
        max_bytes: bytes that are read at most.
        name: the file's name in messages, where `file` is bytes.

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
    return validate_with(file, Benchmarks(benchmark), part=part, max_bytes=max_bytes, name=name)


def validate_with(
    file: FileLike,
    benchmarks: Benchmarks,
    *,
    part: bool | None,
    max_bytes: int,
    name: str | None,
    form: Mapping[str, Any] | None = None,
) -> ValidationReport:
    """`validate` for a caller that needs the benchmarks again afterwards: `benchmarks` keeps what it loaded.

    With `form`, fields of the method block, a file that names no method is checked as if its own block said
    them; and any file that declares nothing of the reference, as if it declared what the form does.
    """
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
    from submissions.validation.rules import check_content, note_ranked_gallery

    if unchecked.method is not None:
        check_words(unchecked.method.to_dict(), unchecked.spec, findings)
    benchmark = benchmarks.load(unchecked.spec.id)
    warn_of_data(benchmark, findings)
    if benchmark.left_out:
        _leave_out(unchecked, benchmark, findings)
    parts = unchecked.format in (CIRR_SERVER, LISTS)
    alone = parts and (benchmark.ground_truth_withheld if part is None else part)
    declared = "" if unchecked.method is None else unchecked.method.reference
    check_reference_of_form(declared, form.get("reference", ""), findings)
    declared = declared or form.get("reference", "")
    check_reference_of_protocol(declared, benchmark, findings)
    check_content(unchecked, queries_of(benchmark, declared), findings, part=alone)
    if unchecked.rankings is not None and not unchecked.rankings.unreadable:
        note_ranked_gallery(unchecked.rankings, benchmark, unchecked.method, findings)


def _leave_out(unchecked: UncheckedFile, benchmark: Benchmark, findings: Findings) -> None:
    """Drop the answers to queries of the base that the overlay leaves out, and say how many there were."""
    outside = {
        query
        for answers in (unchecked.rankings, unchecked.subset_rankings)
        for query in answers or ()
        if query in benchmark.left_out
    }
    if outside:
        for part in ("rankings", "subset_rankings"):
            answers = getattr(unchecked, part)
            setattr(unchecked, part, None if answers is None else answers.without(outside))
        findings.add(
            "outside-overlay",
            f"queries that {benchmark.id} leaves out are answered, too; those answers are not counted.",
            count=len(outside),
        )


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


@functools.cache
def _contradictions() -> dict[str, Any]:
    from cir_datasets.common.yaml import own_yaml

    found: dict[str, Any] = own_yaml("submissions", "validation/contradictions.yaml")
    return found


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


def check_reference_of_form(in_file: str, in_form: str, findings: Findings) -> None:
    """Refuse a file and a form beside it that declare different things of the reference.

    Args:
        in_file: what the file's method block declares; empty where nothing.
        in_form: what the form declares; empty where nothing.
        findings: collects `reference-contradiction`.
    """
    if in_file and in_form and in_file != in_form:
        findings.add(
            "reference-contradiction",
            f'"reference" in the method block is "{in_file}", and the form beside the file says "{in_form}".',
            cause="form",
            value=in_form,
            fix='leave one of them out: "reference" of the form (--reference of  cir submit), or the one in '
            "the method block",
        )


def check_reference_of_protocol(declared: str, benchmark: Benchmark, findings: Findings) -> None:
    """Refuse a method that declares to have kept the reference where the protocol ranks without it.

    Args:
        declared: `Method.reference`.
        benchmark: what was ranked.
        findings: collects `reference-contradiction`.
    """
    if declared == "kept" and benchmark.reference_use == "removed":
        findings.add(
            "reference-contradiction",
            f'"reference" in the method block is "kept"; {benchmark.id} ranks the gallery without it.',
            value=declared,
            fix='write "reference": "removed" if it was left out, else rank the gallery without it',
        )


def contradictions(method: Mapping[str, Any], spec: BenchmarkSpec, file: str) -> list[dict[str, Any]]:
    """The findings of `check_words` as JSON values; empty where nothing contradicts.

    Args:
        method: the method's fields.
        spec: the benchmark that it answers.
        file: the file's name.
    """
    findings = Findings(file, spec.id)
    check_words(method, spec, findings)
    return [finding.to_dict() for finding in findings.listed()]


def _is_own_data(text: str, spec: BenchmarkSpec) -> bool:
    """Whether a text of `trained_on` names the benchmark's data, or that of the one whose images it ranks."""
    families = {spec.card.name, (spec.config.gallery_from or spec.id).partition("/")[0]}
    known: dict[str, list[str]] = _contradictions()["own_data"]
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

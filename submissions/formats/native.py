"""The native format: one JSON object with header, method and rankings (and the bundle of several)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cir_datasets.errors import OverlayError
from cir_metrics.errors import UnknownNameError, did_you_mean
from submissions.formats.unchecked import Answers, ReaderContext, UncheckedFile, read_rankings
from submissions.rank_file.findings import MAX_EXAMPLES, Findings, json_type, shown
from submissions.rank_file.model import BUNDLE, FORMAT_VERSION, NATIVE, RANK_FILE
from submissions.rank_file.words import FIELDS, is_kept_as_other, words_of

if TYPE_CHECKING:
    from cir_datasets.registry.cards import BenchmarkSpec
    from submissions.rank_file.model import Method

NAME = NATIVE
_KEYS = (
    "format",
    "format_version",
    "benchmark",
    "benchmark_version",
    "method",
    "rankings",
    "subset_rankings",
)
_BUNDLE_KEYS = ("format", "format_version", "suite", "runs")


def parse(document: Mapping[str, Any], context: ReaderContext) -> UncheckedFile | None:
    """Read a native rank file.

    Args:
        document: the JSON object.
        context: findings, benchmarks, and what was asked for.

    Returns:
        What could be read, or None where it is not a rank file of this version, or answers another benchmark.
    """
    findings = context.findings
    if not _is_format(document, findings) or not _is_version(document, findings):
        return None
    _unknown_names([key for key in document if key not in _KEYS], _KEYS, _NO_KEY, "keys", findings)
    spec = read_benchmark(document, context)
    method = _method(document, context)
    if spec is None:
        return None
    version = read_benchmark_version(document, spec, findings)
    rankings = document.get("rankings")
    if "rankings" not in document:
        findings.add("bad-type", 'the key "rankings" is missing; it holds the ranked image ids by query id.')
    subset = None
    if document.get("subset_rankings") is not None:
        subset = read_rankings(
            document["subset_rankings"], spec, context, section="subset_rankings", budget=context.budget
        )
    answers: Answers = {}
    if "rankings" in document:
        answers = read_rankings(rankings, spec, context, budget=context.budget)
    readable = isinstance(rankings, Mapping) and (
        subset is None or isinstance(document["subset_rankings"], Mapping)
    )
    if not readable:
        return None
    return UncheckedFile(spec, version, method, answers, subset, NAME)


def parse_bundle_header(
    document: dict[str, Any], findings: Findings
) -> tuple[str, list[dict[str, Any]]] | None:
    """The suite's id and the runs of a bundle, or None with findings.

    Args:
        document: the JSON object.
        findings: collects what is wrong.
    """
    if "format_version" in document and not _is_version(document, findings):
        return None
    unknown = [key for key in document if key not in _BUNDLE_KEYS]
    _unknown_names(unknown, _BUNDLE_KEYS, _NO_KEY, "keys", findings)
    suite, runs = document.get("suite"), document.get("runs")
    if "suite" not in document:
        findings.add("wrong-benchmark", 'the key "suite" is missing; a bundle answers a suite.')
    elif not isinstance(suite, str):
        findings.add("bad-type", f'"suite" is {json_type(suite)}; it must be a suite\'s id.')
    if not isinstance(runs, list):
        findings.add("bad-type", f'"runs" is {json_type(runs)}; it must be a list of rank files.')
    elif not all(isinstance(run, dict) for run in runs):
        place = next(place for place, run in enumerate(runs) if not isinstance(run, dict))
        findings.add("bad-type", f"runs[{place}] is {json_type(runs[place])}; it must be a rank file.")
    else:
        return (suite, runs) if isinstance(suite, str) else None
    return None


def completed(block: Mapping[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    """A method block, completed by a form's fields where it says nothing.

    Example:
        >>> completed({"name": "", "code": "https://x.org"}, {"name": "Ours", "code": "https://y.org"})
        {'name': 'Ours', 'code': 'https://x.org'}
    """
    return {**form, **{key: value for key, value in block.items() if value not in ("", [], None)}}


def _method(document: Mapping[str, Any], context: ReaderContext) -> Method | None:
    """The method of a header, completed by the form where it names none."""
    raw = document.get("method", {} if context.form else None)
    present = "method" in document
    if "name" in context.form and isinstance(raw, dict) and not raw.get("name"):
        raw, present = completed(raw, context.form), True
    return read_method(raw, present, context.findings)


def read_method(raw: Any, present: bool, findings: Findings) -> Method | None:
    """The method block, or None with findings of code `bad-metadata`.

    Args:
        raw: what the file holds there.
        present: whether it holds anything.
        findings: collects what is wrong.
    """
    from pydantic import ValidationError

    from submissions.rank_file.model import Method

    if not present:
        findings.add(
            "bad-metadata", 'the key "method" is missing; a board must say who answers.', fix=_METHOD_FIX
        )
        return None
    if not isinstance(raw, dict):
        findings.add(
            "bad-metadata",
            f'"method" is {json_type(raw)}; it must be an object with a name.',
            fix=_METHOD_FIX,
        )
        return None
    fields = Method.model_fields
    unknown = [key for key in raw if key not in fields]
    _unknown_names(unknown, fields, _NO_FIELD, "method", findings)
    try:
        method = Method.model_validate({key: value for key, value in raw.items() if key in fields})
    except ValidationError as error:
        for entry in error.errors(include_url=False):
            place = ".".join(str(step) for step in ("method", *entry["loc"]))
            findings.add("bad-metadata", f"{place}: {_reason(entry)}.", cause=f"method.{entry['loc'][0]}")
        return None
    for field in FIELDS:
        if is_kept_as_other(raw.get(field), getattr(method, field)):
            _note_free_text(field, raw[field], findings)
    return None if unknown else method


def _note_free_text(field: str, text: str, findings: Findings) -> None:
    listed = list(words_of(field))
    findings.add(
        "unlisted-word",
        f"method.{field} is {shown(text)}, which its list does not have; it is kept as other."
        + did_you_mean(text, listed),
        cause=field,
        value=text,
        fix=f'write one of {", ".join(listed[:-1])}, or "other: ..."',
    )


_NO_FIELD = "method.{}: there is no such field."
_NO_KEY = 'the top level has no key "{}".'
_METHOD_FIX = 'add "method": {{"name": "..."}}, then run  cir validate {file}'


def _reason(entry: Any) -> str:
    kind = entry["type"]
    if kind == "missing":
        return "it is missing"
    if kind == "string_too_long":
        return (
            f"it has {len(entry['input']):,} characters; at most {entry['ctx']['max_length']:,} are accepted"
        )
    if kind == "string_too_short":
        return "it is empty"
    if kind == "string_type":
        return f"it is {json_type(entry['input'])}; it must be a string"
    if kind == "list_type":
        return f"it is {json_type(entry['input'])}; it must be a list of strings"
    if kind in ("bool_type", "bool_parsing"):
        return f"it is {json_type(entry['input'])}; it must be true, false or null"
    if kind == "value_error":
        return str(entry["ctx"]["error"])
    return str(entry["msg"]).rstrip(".")


def _is_format(document: Mapping[str, Any], findings: Findings) -> bool:
    found = document["format"]
    if found == RANK_FILE:
        return True
    hint = did_you_mean(found, [RANK_FILE, BUNDLE])
    findings.add("wrong-format", f'"format" is {shown(found)}; a rank file says "{RANK_FILE}".{hint}')
    return False


def _is_version(document: Mapping[str, Any], findings: Findings) -> bool:
    version = document.get("format_version")
    if "format_version" not in document:
        message = f'the key "format_version" is missing; this version of the format is {FORMAT_VERSION}.'
    elif type(version) is not int:
        findings.add("bad-type", f'"format_version" is {json_type(version)}; it must be the whole number 1.')
        return False
    elif version != FORMAT_VERSION:
        message = f'"format_version" is {shown(version)}; version {FORMAT_VERSION} is read here.'
    else:
        return True
    findings.add("wrong-version", message, fix=f'write "format_version": {FORMAT_VERSION} and what it means')
    return False


def _unknown_names(
    unknown: list[str], names: Iterable[str], words: str, cause: str, findings: Findings
) -> None:
    """Note names that do not exist: a hostile file has a hundred thousand, so that five are looked at."""
    for name in unknown[:MAX_EXAMPLES]:
        findings.add(
            "bad-metadata",
            words.format(shown(name)[1:-1]) + did_you_mean(name, names),
            cause=f"{cause}, unknown",
            value=name,
            fix="drop it (remarks go to method.notes), then run  cir validate {file}",
        )
    if len(unknown) > MAX_EXAMPLES:
        findings.add("bad-metadata", "", cause=f"{cause}, unknown", count=len(unknown) - MAX_EXAMPLES)


def read_benchmark(document: Mapping[str, Any], context: ReaderContext) -> BenchmarkSpec | None:
    """The benchmark that a header names, or None with a finding.

    Args:
        document: holds `benchmark`.
        context: findings, benchmarks, and what was asked for.
    """
    found, findings = document.get("benchmark"), context.findings
    if "benchmark" not in document:
        findings.add("wrong-benchmark", 'the key "benchmark" is missing; a ranking means nothing without it.')
        return None
    if not isinstance(found, str):
        findings.add("bad-type", f'"benchmark" is {json_type(found)}; it must be an id such as "cirr/val".')
        return None
    if context.expected is not None and found != context.expected:
        wanted = context.benchmarks.spec(context.expected) if context.benchmarks.suite is None else None
        if wanted is not None and wanted.overlay is not None and found == wanted.base.id:
            return wanted  # a file for the whole benchmark answers each of its overlays, too
        findings.add(
            "wrong-benchmark",
            f"the file answers {shown(found)}, but was checked against {shown(context.expected)}.",
            value=found,
        )
        return None
    try:
        return context.benchmarks.spec(found)
    except OverlayError:
        # Its message names a file of this machine, and the reader may be somebody else's.
        findings.add("wrong-benchmark", f"the overlay of {shown(found)} is broken here.", value=found)
        return None
    except UnknownNameError as error:
        findings.add(
            "wrong-benchmark",
            f"{error}" if len(found) <= 80 else f"no benchmark {shown(found)}.",
            value=found,
        )
        return None


def read_benchmark_version(
    document: Mapping[str, Any], spec: BenchmarkSpec, findings: Findings
) -> int | None:
    """The benchmark's version that a header names, or None with a finding where it is not the one in use.

    Args:
        document: holds `benchmark_version`.
        spec: the benchmark.
        findings: collects what is wrong.
    """
    found, wanted = document.get("benchmark_version"), spec.card.version
    if "benchmark_version" not in document:
        message = f'the key "benchmark_version" is missing; {spec.id} is at version {wanted}.'
        findings.add(
            "wrong-version", message, fix=f'add "benchmark_version": {wanted} if you ranked that version'
        )
        return None
    if type(found) is not int:
        findings.add("bad-type", f'"benchmark_version" is {json_type(found)}; it must be a whole number.')
        return None
    if found != wanted:
        findings.add(
            "wrong-version",
            f"the file answers version {shown(found)} of {spec.id}; it is at version {wanted}.",
        )
        return None
    return found

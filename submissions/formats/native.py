"""The native format, one JSON object with header, method and rankings: from its text to an `UncheckedFile`,
whose content is not checked yet. Rankings of a plain text become columns a few at a time
(`columns.Gathering`); any other text is read by `odd_files`.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from cir_datasets.errors import OverlayError
from cir_datasets.rows import id_array, int32_array, numbers
from cir_metrics.errors import UnknownNameError, did_you_mean
from submissions.rank_file.benchmarks import Spelling, image_family
from submissions.rank_file.columns import Columns, Gathering
from submissions.rank_file.content import Budget, is_whole, strings_in
from submissions.rank_file.findings import MAX_EXAMPLES, Findings, json_type, shown
from submissions.rank_file.model import BUNDLE, FORMAT_VERSION, NATIVE, RANK_FILE, SECTIONS, Method, RankFile
from submissions.rank_file.texts import LISTED_FIELDS, is_kept_as_other, words_of

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from submissions.rank_file.benchmarks import Benchmarks

_BLOCK, _BLOCK_BYTES = 512, 2**20
"""Rankings, and bytes of them, that are Python lists at a time."""
_RANKING_BYTES = 2**22
"""A longer ranking is not plainly one: 1,000 images have paths of 4,000 bytes then."""
_HEADER_BYTES = 2**16

_NO_KEY = 'the top level has no key "{}".'
_KEYS = ("format", "format_version", "benchmark", "benchmark_version", "method", *SECTIONS)


@dataclass
class ReaderContext:
    """What a format's reader gets besides the JSON value.

    Args:
        findings: collects what is wrong.
        benchmarks: resolves benchmark ids.
        expected: the benchmark id that the file must answer, or None where the file says.
        label: name of the file without ending: the method's name where a format has none.
        budget: what reading the file may cost.
        form: fields of the method block for a file whose own names no method.
    """

    findings: Findings
    benchmarks: Benchmarks
    expected: str | None
    label: str
    budget: Budget = field(default_factory=lambda: Budget(0))
    form: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class UncheckedFile:
    """What could be read of a rank file.

    Args:
        spec: the benchmark that it answers.
        version: the benchmark's version that it names, or None where that is wrong.
        method: who answers, or None where the description is refused.
        rankings: the answers; None where there are none at all (the CIRR server's subset file).
        subset_rankings: rankings of the queries' subsets, or None.
        format: the format's name.
        kind: a name of `submissions.rank_file.model.FORMATS` where the format has several: JSON, JSON Lines,
            Parquet.
    """

    spec: BenchmarkSpec
    version: int | None
    method: Method | None
    rankings: Columns | None
    subset_rankings: Columns | None
    format: str
    kind: str = ""

    def finished(self) -> RankFile | None:
        """The rank file, or None where a part could not be read."""
        parts = [part for part in (self.rankings, self.subset_rankings) if part is not None]
        if self.version is None or self.method is None or any(part.unreadable for part in parts):
            return None
        return RankFile(
            benchmark=self.spec.id,
            benchmark_version=self.version,
            method=self.method,
            rankings={} if self.rankings is None else self.rankings,
            subset_rankings=self.subset_rankings,
            format=self.format,
        )


def parse_json(content: bytes, findings: Findings, budget: Budget | None = None) -> Any:
    """The JSON value of a file's bytes, or None with a finding (`unreadable`, `malformed`, `repeated-key`).

    After `repeated-key` the value is still returned, so that the other findings can be shown as well.

    Args:
        content: the file's bytes.
        findings: collects what is wrong.
        budget: what reading them may cost; None where they are few.

    Returns:
        The value. Rankings may be `Columns`, under their key or, in the formats that have no other keys, as
        the value itself. A file that holds just `null` is reported as `wrong-format`, since None means
        failure.

    Raises:
        OverBudgetError: the value takes more than the budget.
    """
    if not content.isascii() or not content or content.isspace():
        from submissions.formats import odd_files

        if not odd_files.is_utf8(content, findings):
            return None
    if budget is not None:
        values = budget.spend_text(content)
        plain = _plain(content, budget)
        if plain is not None:
            return plain
        budget.spend("odd_bytes", len(content))
        budget.spend("odd_values", values)
    from submissions.formats import odd_files

    return odd_files.careful_json(content, findings)


def _plain(content: bytes, budget: Budget) -> Any:
    """The value of a text that is plainly a rank file, or rankings by query and nothing else; else None."""
    import msgspec

    if b"\\" in content or not content.isascii() or not content[:_HEADER_BYTES].lstrip().startswith(b"{"):
        return None
    objects, _, _ = _decoders()
    try:
        parts = objects.decode(content)
        budget.check("id_bytes", sum(map(len, parts)))
        if "rankings" not in parts:
            columns, strings = gathered(parts, budget)
            return columns if is_whole(content, strings) else None
        document: dict[str, Any] = {}
        strings = len(parts)
        for key, raw in parts.items():
            if key in SECTIONS:
                document[key], inside = gathered(objects.decode(raw), budget)
            elif len(memoryview(raw)) <= _HEADER_BYTES:
                document[key] = orjson.loads(memoryview(raw))
                inside = strings_in(document[key])
            else:
                return None
            strings += inside
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None  # Something is odd: what, is said by those who look closer.
    return document if is_whole(content, strings) else None


@functools.cache
def _decoders() -> tuple[Any, Any, Any]:
    """Readers of an object's parts, of rankings, and of rankings by turn."""
    from msgspec import Raw
    from msgspec.json import Decoder

    return Decoder(dict[str, Raw]), Decoder(list[list[str]]), Decoder(list[list[list[str]]])


def gathered(parts: dict[str, Any], budget: Budget) -> tuple[Columns, int]:
    """Rankings by query or session from the text of each, and the strings in all of it.

    Raises:
        msgspec.MsgspecError: a part is not a list of texts, or of such lists.
        ValueError: an id is empty, or one ranking alone is too long to be plain.
    """
    _, flat, by_turn = _decoders()
    names, raws = list(parts), [memoryview(raw) for raw in parts.values()]
    budget.check("id_bytes", sum(map(len, names)))
    turns = bool(raws) and bytes(raws[0][:_BLOCK_BYTES]).replace(b" ", b"").startswith(b"[[")
    decoder, gathering = by_turn if turns else flat, Gathering(by_turn=turns)
    start = size = 0
    for end, raw in enumerate([*raws, None]):
        length = 0 if raw is None else len(raw)
        if length > _RANKING_BYTES:
            raise ValueError("a long ranking")
        # So many at a time are Python lists: more of them do not fit into a processor's cache.
        if end > start and (raw is None or end - start == _BLOCK or size + length > _BLOCK_BYTES):
            gathering.take(names[start:end], decoder.decode(b"[" + b",".join(raws[start:end]) + b"]"))
            start, size = end, 0
        size += length
    columns = gathering.columns()
    return columns, len(names) + len(columns.codes)


def read_rankings(
    raw: Any,
    spec: BenchmarkSpec,
    context: ReaderContext,
    *,
    section: str = "rankings",
    budget: Budget | None = None,
) -> Columns:
    """The rankings, or those of subsets, as columns, with the ids in the benchmark's spelling.

    Args:
        raw: what the file holds there.
        spec: the benchmark; sessions want one list a turn.
        context: findings, of which some are `bad-type`, and benchmarks.
        section: the key in the file.
        budget: what reading the file may cost; None for rankings of no file.

    Returns:
        The answers; empty where `raw` is not an object, and those of a wrong type `Columns.unreadable`.

    Raises:
        OverBudgetError: there are more queries, or more different ids, than are read.
    """
    by_turn = spec.kind == "multi_turn" and section == "rankings"
    if not isinstance(raw, Mapping):
        message = f'"{section}" is {json_type(raw)}; it must be an object of rankings by query id.'
        context.findings.add("bad-type", message)
        raw = {}
    if budget is not None:
        budget.check("lists", len(raw), where=f'"{section}": ')
        named = raw.names if isinstance(raw, Columns) else [each for each in raw if isinstance(each, str)]
        budget.check("id", max(map(len, named), default=0))
    gallery = context.benchmarks.gallery(spec) or []
    spelling = Spelling(image_family(spec), gallery)
    try:
        columns = raw if isinstance(raw, Columns) else Columns.of_lists(raw, by_turn=by_turn)
    except (TypeError, ValueError):
        columns = None  # Something is wrong with an id or a list: what, is said by those who look closer.
    if columns is None or (columns.turn_offsets is not None) != by_turn:
        from submissions.formats.odd_files import CarefulRankings

        columns = CarefulRankings(section, by_turn, spelling, context.findings).columns(raw)
    if budget is not None:
        check_images(columns, budget)
    outside = np.flatnonzero(columns.in_gallery(id_array(gallery)) < 0)
    changed = spelling.changes(columns.images.take(int32_array(outside)).to_pylist())
    return columns.respelled([changed.get(each, each) for each in columns.image_ids]) if changed else columns


def check_images(columns: Columns, budget: Budget) -> None:
    """Refuse more different image ids, or longer ones, than are read.

    Raises:
        OverBudgetError: there are.
    """
    import pyarrow.compute as pc

    budget.check("ids", len(columns.images))
    budget.check("id_bytes", columns.images.nbytes)
    budget.check("id", int(numbers(pc.binary_length(columns.images)).max(initial=0)))


def parse(document: Mapping[str, Any], context: ReaderContext) -> UncheckedFile | None:
    """Read a native rank file.

    Args:
        document: the JSON object.
        context: findings, benchmarks, and what was asked for.

    Returns:
        What could be read, or None where it is not a rank file of this version, or answers another benchmark.
    """
    findings = context.findings
    if document["format"] != RANK_FILE:
        hint = did_you_mean(document["format"], [RANK_FILE, BUNDLE])
        said = f'"format" is {shown(document["format"])}; a rank file says "{RANK_FILE}".{hint}'
        findings.add("wrong-format", said)
        return None
    if not is_version(document, findings):
        return None
    note_unknown(document, _KEYS, findings)
    spec = read_benchmark(document, context)
    if spec is None and (inferred := context.benchmarks.inferred(document.get("rankings"))):
        spec = context.benchmarks.spec(inferred)
    method = _method(document, context)
    if spec is None:
        return None
    version = read_benchmark_version(document, spec, findings)
    if "rankings" not in document:
        findings.add("bad-type", 'the key "rankings" is missing; it holds the ranked image ids by query id.')
    answers: dict[str, Columns] = {}
    for section in reversed(SECTIONS):
        if (section == "rankings" and section in document) or document.get(section) is not None:
            answers[section] = read_rankings(
                document[section], spec, context, section=section, budget=context.budget
            )
    if "rankings" not in answers or not all(isinstance(document[section], Mapping) for section in answers):
        return None
    return UncheckedFile(spec, version, method, answers["rankings"], answers.get("subset_rankings"), NATIVE)


def completed(block: Mapping[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    """A method block, completed by a form's fields where it says nothing.

    Example:
        >>> completed({"name": "", "code": "https://x.org"}, {"name": "Ours", "code": "https://y.org"})
        {'name': 'Ours', 'code': 'https://x.org'}
    """
    return {**form, **{key: value for key, value in block.items() if value not in ("", [], None)}}


def _method(document: Mapping[str, Any], context: ReaderContext) -> Method | None:
    """The method of a header, completed by the form where it names none; None with `bad-metadata`."""
    from pydantic import ValidationError

    findings, named = context.findings, "name" in context.form
    raw = document.get("method", {} if named else None)
    if named and isinstance(raw, dict) and not raw.get("name"):
        raw = completed(raw, context.form)
    if not isinstance(raw, dict):
        message = f'"method" is {json_type(raw)}; it must be an object with a name.'
        if "method" not in document:
            message = 'the key "method" is missing; a board must say who answers.'
        findings.add("bad-metadata", message, fix=_METHOD_FIX)
        return None
    fields = Method.model_fields
    note_unknown(raw, fields, findings, "method.{}: there is no such field.", "method")
    try:
        method = Method.model_validate({key: value for key, value in raw.items() if key in fields})
    except ValidationError as error:
        from submissions.formats.odd_files import reason

        for entry in error.errors(include_url=False):
            place = ".".join(str(step) for step in ("method", *entry["loc"]))
            findings.add("bad-metadata", f"{place}: {reason(entry)}.", cause=f"method.{entry['loc'][0]}")
        return None
    for name in LISTED_FIELDS:
        if is_kept_as_other(raw.get(name), getattr(method, name)):
            text, listed = raw[name], list(words_of(name))
            message = f"method.{name} is {shown(text)}, which its list does not have; it is kept as other."
            fix = f'write one of {", ".join(listed[:-1])}, or "other: ..."'
            message += did_you_mean(text, listed)
            findings.add("unlisted-word", message, cause=name, value=text, fix=fix)
    return method if raw.keys() <= fields.keys() else None


def nameless_method(label: str) -> Method:
    """A method that is known by its file's name only.

    Example:
        >>> nameless_method("sum-clip.test1").name
        'sum-clip.test1'
    """
    # A name has eighty characters; bringing a million combining marks to NFC would take half an hour.
    start = unicodedata.normalize("NFC", label[:1_000])
    kept = [c for c in start if c in " -_." or unicodedata.category(c)[0] in "LN"]
    name = "".join(kept).strip(" -_.")[:80].strip()
    return Method(name=name or "unnamed")


_METHOD_FIX = 'add "method": {{"name": "..."}}, then run  cir validate {file}'


def is_version(document: Mapping[str, Any], findings: Findings) -> bool:
    """Whether a document is of this version of the format, with a finding where it is not."""
    fix, what = f'write "format_version": {FORMAT_VERSION} and what it means', "the format read here"
    return _version(document, "format_version", FORMAT_VERSION, what, (fix, fix), findings) is not None


def note_unknown(
    given: Iterable[str], names: Iterable[str], findings: Findings, words: str = _NO_KEY, cause: str = "keys"
) -> None:
    """Note names that do not exist: a hostile file has a hundred thousand, so that five are looked at."""
    unknown, cause = [name for name in given if name not in names], f"{cause}, unknown"
    for name in unknown[:MAX_EXAMPLES]:
        message = words.format(shown(name)[1:-1]) + did_you_mean(name, names)
        fix = "drop it (remarks go to method.notes), then run  cir validate {file}"
        findings.add("bad-metadata", message, cause=cause, value=name, fix=fix)
    if len(unknown) > MAX_EXAMPLES:
        findings.add("bad-metadata", "", cause=cause, count=len(unknown) - MAX_EXAMPLES)


def read_benchmark(document: Mapping[str, Any], context: ReaderContext) -> BenchmarkSpec | None:
    """The benchmark that a header names, or None with a finding.

    Args:
        document: holds `benchmark`.
        context: findings, benchmarks, and what was asked for.
    """
    name, findings = document.get("benchmark"), context.findings
    if "benchmark" not in document:
        findings.add("wrong-benchmark", 'the key "benchmark" is missing; a ranking means nothing without it.')
        return None
    if not isinstance(name, str):
        findings.add("bad-type", f'"benchmark" is {json_type(name)}; it must be an id such as "cirr/val".')
        return None
    if context.expected is None or name == context.expected:
        try:
            return context.benchmarks.spec(name)
        except OverlayError:
            # Its message names a file of this machine, and the reader may be somebody else's.
            message = f"the overlay of {shown(name)} is broken here."
        except UnknownNameError as error:
            if len(name) <= 80 and " " not in name:  # Else the name could bring a fix of its own.
                findings.add_error("wrong-benchmark", error, value=name)
                return None
            message = f"no benchmark {shown(name)}."
    else:
        wanted = context.benchmarks.spec(context.expected) if context.benchmarks.suite is None else None
        if wanted is not None and wanted.overlay is not None and name == wanted.base.id:
            return wanted  # a file for the whole benchmark answers each of its overlays, too
        message = f"the file answers {shown(name)}, but was checked against {shown(context.expected)}."
    findings.add("wrong-benchmark", message, value=name)
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
    wanted = spec.card.version
    fixes = f'add "benchmark_version": {wanted} if you ranked that version', None
    return _version(document, "benchmark_version", wanted, spec.id, fixes, findings)


def _version(
    document: Mapping[str, Any],
    key: str,
    wanted: int,
    what: str,
    fixes: tuple[str, str | None],
    findings: Findings,
) -> int | None:
    """A version that a header names, or None with a finding: it is missing, no number, or another one."""
    version = document.get(key)
    if type(version) is int and version == wanted:
        return version
    if key in document and type(version) is not int:
        findings.add("bad-type", f'"{key}" is {json_type(version)}; it must be a whole number.')
    else:
        said, fix = f'"{key}" is {shown(version)}', fixes[1]
        if key not in document:
            said, fix = f'the key "{key}" is missing', fixes[0]
        findings.add("wrong-version", f"{said}; {what} is at version {wanted}.", fix=fix)
    return None

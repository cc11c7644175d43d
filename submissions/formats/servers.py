"""Files of test servers and evaluators: rankings and little else, which name no method and no benchmark.

    CIRR server   {"version": "rc2", "metric": "recall", "<pairid>": [50 names], ...}, and a second file with
                  "recall_subset" and three names of the query's subset; the server takes at most 5 MB
    CIRCO server  {"0": [50 ids], ..., "799": [...]}, ids as integers; the server checks no length, so that
                  a short list costs points silently
    ZeroSight     {"<id>": [50 image paths], ...}; its evaluator misses no query, here every one must be there
    FashionIQ     the starter kit's caption items in the publisher's order, each with a "ranking"
    plain lists   {"<query id>": [image ids], ...}; of sessions a list of rankings each, or a list for each
                  SESSION#TURN; read, and not written

The benchmark that the caller names tells CIRCO's and ZeroSight's apart; of plain lists it may also be the
only one whose query ids are those of the file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from cir_datasets.prepared import is_here
from cir_datasets.registry import benchmark_ids
from submissions.errors import ConversionError
from submissions.formats.native import ReaderContext, UncheckedFile, nameless_method, read_rankings
from submissions.rank_file.benchmarks import Benchmarks
from submissions.rank_file.columns import Columns
from submissions.rank_file.findings import Findings, json_type, shown
from submissions.rank_file.model import (
    CIRCO_SERVER,
    CIRR_SERVER,
    FASHIONIQ,
    LISTS,
    TURN,
    ZEROSIGHT,
    compact,
    turn_key,
)
from submissions.rank_file.owners import owner_of

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark
    from cir_datasets.rows.records import Row
    from submissions.rank_file.model import RankFile


@dataclass(frozen=True)
class AskedForm:
    """One of these formats.

    Args:
        name: what `convert` calls it.
        title: the format in words.
        datasets: the datasets that it belongs to; empty where it can answer all.
        example: a benchmark id for the fix.
        asker: who reads the file, in words.
        judges: the benchmark whose withheld truth a server holds, or nothing.
    """

    name: str
    title: str
    datasets: tuple[str, ...]
    example: str
    asker: str = ""
    judges: str = ""


_CIRR = AskedForm(CIRR_SERVER, "a CIRR server file", ("cirr",), "cirr/test1", "the CIRR server", "cirr/test1")
_CIRCO = AskedForm(
    CIRCO_SERVER, "a CIRCO server file", ("circo",), "circo/test", "the CIRCO server", "circo/test"
)
_ZEROSIGHT = AskedForm(
    ZEROSIGHT, "a ZeroSight results file", ("zerosight",), "zerosight/test", "the ZeroSight evaluator"
)
_FASHIONIQ = AskedForm(FASHIONIQ, "a FashionIQ starter kit file", ("fashioniq",), "fashioniq/dress_val")
_LISTS = AskedForm(LISTS, "a plain file of rankings", (), "cirr/val")
SERVERS = {each.name: each for each in (_CIRR, _CIRCO, _ZEROSIGHT, _FASHIONIQ)}
"""By name those that are written."""

DEPTH = 50
"""Images a query in the files of CIRR, CIRCO and ZeroSight."""
SUBSET_DEPTH = 3
"""Names a query in CIRR's second file."""
CIRR_VERSION, CIRR_BYTES = "rc2", 5_000_000
"""What the CIRR server takes: the release, and bytes at most."""

_REFERENCE, _CAPTIONS, _TARGET, _RANKING = "candidate", "captions", "target", "ranking"
_DIGITS = 3
"""Of a turn's number at most."""
_SHOWN = 4
"""Benchmarks that a fix names."""
_EXAMPLES = ("cirr/val", "circo/test", "zerosight/test")


def server_format(dataset: str) -> str | None:
    """The format of the server that holds a dataset's withheld ground truth, or None where there is none.

    Example:
        >>> server_format("cirr"), server_format("fashioniq")
        ('cirr-server', None)
    """
    return next((each.name for each in SERVERS.values() if each.judges and dataset in each.datasets), None)


def parse(document: Any, context: ReaderContext) -> UncheckedFile | None:
    """Read a JSON value that is no native rank file: which form it has, its keys and its benchmark say.

    Args:
        document: the JSON value.
        context: findings, benchmarks, and what was asked for.

    Raises:
        SourceError: it is FashionIQ's, and the benchmark's own data is not available.
    """
    dataset = "" if context.expected is None else context.expected.partition("/")[0]
    if isinstance(document, list):
        from submissions.formats.odd_files import by_query

        named = by_query(document, _RANKING, _REFERENCE)
        if named is None and (dataset in _FASHIONIQ.datasets or any(map(_is_item, document))):
            return _parse_fashioniq(document, context)
        document = document if named is None else named
    if not isinstance(document, Mapping):
        context.findings.add(
            "wrong-format", f"the file holds {json_type(document)}; a rank file is an object."
        )
        return None
    if "version" in document and "metric" in document:
        return _parse_cirr(document, context)
    lists = "rankings" not in document and _holds_lists(document)
    if lists and not dataset:
        benchmarks, findings = context.benchmarks, context.findings
        only = benchmarks.inferred(document) or _benchmark_of(document, benchmarks, findings)
        return None if only is None else parse(document, replace(context, expected=only))
    if dataset in _ZEROSIGHT.datasets:
        return _parse_lists(document, context, _ZEROSIGHT)
    if dataset in _CIRCO.datasets and _is_numbered(document):
        return _parse_lists(document, context, _CIRCO)
    if lists:
        return _parse_lists(document, context, _LISTS)
    keys = ", ".join(shown(key) for key in list(document)[:3])
    holds = f"an object with the keys {keys}" if keys else "an empty object"
    message = (
        f"the file holds {holds}, which is neither a rank file, nor a file of the CIRR or CIRCO server, nor "
        "ZeroSight results, nor lists of image ids by query id."
    )
    if "rankings" in document:
        message = 'the key "format" is missing, so that the file does not say how it is to be read.'
    context.findings.add("wrong-format", message)
    return None


def dump(rank_file: RankFile, to: str, benchmarks: Benchmarks) -> dict[str, bytes]:
    """The files of a server or evaluator by part: CIRR's two by metric, else one under "".

    Args:
        rank_file: rankings of the format's dataset, checked.
        to: a name of `SERVERS`.
        benchmarks: resolves FashionIQ's, whose items are written with the rankings.

    Raises:
        ConversionError: a list is too short, an id is none of CIRCO's, a query of FashionIQ is not ranked, or
            a file would be larger than the server takes.
    """
    if to == CIRR_SERVER:
        return _dump_cirr(rank_file)
    if to == FASHIONIQ:
        return {"": _dump_fashioniq(rank_file, whole_benchmark(rank_file.benchmark, benchmarks))}
    cut: Mapping[str, list[Any]] = _cut(rank_file.rankings, DEPTH, SERVERS[to].asker)
    return {"": compact(dict(cut) if to == ZEROSIGHT else _numbered(cut))}


def asked_benchmark(
    context: ReaderContext, form: AskedForm, *, ids: Collection[str] = ()
) -> BenchmarkSpec | None:
    """The benchmark that the caller named, or None with a finding where it is missing or of another dataset.

    Args:
        context: findings, benchmarks, and what was asked for.
        form: the file's.
        ids: of the queries that are answered, which may tell it.
    """
    named = context.expected or context.benchmarks.inferred(ids, form.datasets)
    if not named:
        owner = owner_of(ids, datasets=form.datasets or None) if ids else None
        name, hint = (form.example, "") if owner is None else (owner[0], f" {owner[1]}")
        context.findings.add(
            "wrong-benchmark",
            f"{form.title} does not name its benchmark.{hint}",
            fix=f"say which it answers, for example  --benchmark {name}",
        )
        return None
    spec = context.benchmarks.spec(named)
    if form.datasets and spec.card.name not in form.datasets:
        context.findings.add(
            "wrong-benchmark",
            f"{form.title} cannot answer {spec.id}.",
            fix=f"hand in a file in the native format, or check it against  --benchmark {form.example}",
        )
        return None
    return spec


def _unchecked(
    form: AskedForm, spec: BenchmarkSpec, rankings: Any, context: ReaderContext, *, subset: bool = False
) -> UncheckedFile:
    section = "subset_rankings" if subset else "rankings"
    answers = read_rankings(rankings, spec, context, section=section, budget=context.budget)
    method, whole = nameless_method(context.label), None if subset else answers
    return UncheckedFile(spec, spec.card.version, method, whole, answers if subset else None, form.name)


def _cut(rankings: Mapping[str, Any], depth: int, asker: str, what: str = "") -> dict[str, list[Any]]:
    """The first `depth` images of every ranking.

    Raises:
        ConversionError: a list is too short.
    """
    for query, ids in rankings.items():
        if len(ids) < depth:
            raise ConversionError(
                f"query {shown(query)}: {len(ids)} images; {asker} wants {depth}{what}. "
                f"Fix: rank at least {depth} images a query."
            )
    return {query: list(ids[:depth]) for query, ids in rankings.items()}


def _parse_cirr(document: Mapping[str, Any], context: ReaderContext) -> UncheckedFile | None:
    findings = context.findings
    version, metric = document["version"], document["metric"]
    for key, value in (("version", version), ("metric", metric)):
        if not isinstance(value, str):
            findings.add("bad-type", f'"{key}" is {json_type(value)}; it must be a string.', cause=key)
            return None
    if metric not in ("recall", "recall_subset"):
        findings.add(
            "wrong-format",
            f'"metric" is {shown(metric)}; the CIRR server knows "recall" and "recall_subset".',
            fix='write "metric": "recall" or "metric": "recall_subset"',
        )
        return None
    entries = {key: value for key, value in document.items() if key not in ("version", "metric")}
    spec = asked_benchmark(context, _CIRR, ids=entries.keys())
    if spec is None:
        return None
    if version != CIRR_VERSION:
        findings.add(
            "wrong-version",
            f'"version" is {shown(version)}; the CIRR server takes "{CIRR_VERSION}".',
            fix=f'rank release {CIRR_VERSION} of CIRR and write "version": "{CIRR_VERSION}"',
        )
    return _unchecked(_CIRR, spec, entries, context, subset=metric == "recall_subset")


def _dump_cirr(rank_file: RankFile) -> dict[str, bytes]:
    """The server's files by metric; only those that the rank file has rankings for."""
    parts = {
        "recall": (rank_file.rankings or None, DEPTH),
        "recall_subset": (rank_file.subset_rankings, SUBSET_DEPTH),
    }
    written: dict[str, bytes] = {}
    for metric, (rankings, depth) in parts.items():
        if rankings is None:
            continue
        cut = _cut(rankings, depth, _CIRR.asker, f' for "{metric}"')
        content = compact({"version": CIRR_VERSION, "metric": metric, **cut})
        if len(content) > CIRR_BYTES:
            raise ConversionError(
                f"the {metric} file would have {len(content):,} bytes; the CIRR server takes {CIRR_BYTES:,}. "
                "Fix: check that the image ids are CIRR's short names."
            )
        written[metric] = content
    return written


def _numbered(rankings: Mapping[str, list[str]]) -> dict[str, list[Any]]:
    """CIRCO's rankings with the numbers of COCO as ids.

    Raises:
        ConversionError: an id is not a number.
    """
    for query, ids in rankings.items():
        wrong = next((image for image in ids if not (image.isascii() and image.isdigit())), None)
        if wrong is not None:
            raise ConversionError(
                f"query {shown(query)}: {shown(wrong)} is not a COCO id. Fix: use CIRCO's 12 digits."
            )
    return {query: list(map(int, ids)) for query, ids in rankings.items()}


def _is_numbered(document: Mapping[str, Any]) -> bool:
    numbers = sum(key.isascii() and key.isdigit() for key in document)
    return numbers > 0 and 2 * numbers >= len(document)


def _parse_lists(
    document: Mapping[str, Any], context: ReaderContext, form: AskedForm
) -> UncheckedFile | None:
    spec = asked_benchmark(context, form)
    answers: Mapping[str, Any] | None = document
    if spec is not None and form is _LISTS and spec.kind == "multi_turn" and any(map(_is_turn, document)):
        answers = _by_session(document, context.findings)
    return None if spec is None or answers is None else _unchecked(form, spec, answers, context)


def _holds_lists(document: Mapping[str, Any]) -> bool:
    """Whether nearly everything is a list, as in results that are nothing but rankings."""
    if isinstance(document, Columns):
        return len(document) > 0
    lists = sum(isinstance(value, list) for value in document.values())
    return lists > 0 and 2 * lists >= len(document)


def _by_session(document: Mapping[str, Any], findings: Findings) -> Mapping[str, Any] | None:
    """The rankings by session where they stand by turn; None, with findings, where a turn is left out."""
    sessions: dict[str, dict[int, Any]] = {}
    for key, ranking in document.items():
        if not _is_turn(key):
            message = f"the key {shown(key)} names no turn of a session, where others do."
            findings.add("bad-type", message, query=key, fix="write SESSION#TURN everywhere, turns from 1")
            return None
        session, _, number = key.rpartition(TURN)
        sessions.setdefault(session, {})[int(number)] = ranking
    for session, turns in sessions.items():
        gone = next((number for number in range(1, len(turns) + 1) if number not in turns), None)
        if gone is not None:
            findings.add("missing-turn", f"there is no key {shown(turn_key(session, gone))}.", query=session)
            return None
    return {session: [turns[number] for number in sorted(turns)] for session, turns in sessions.items()}


def _is_turn(key: object) -> bool:
    session, mark, number = key.rpartition(TURN) if isinstance(key, str) else ("", "", "")
    return bool(session and mark) and number.isascii() and number.isdecimal() and len(number) <= _DIGITS


def _benchmark_of(document: Mapping[str, Any], benchmarks: Benchmarks, findings: Findings) -> str | None:
    """The benchmark whose query ids are those of the file, or None with a finding that names what is meant.

    Only benchmarks whose data is on this machine are looked at: nothing is downloaded for a guess.
    """
    sessions = {key.rpartition(TURN)[0] if _is_turn(key) else key for key in document}
    counts = {len(document), len(sessions)}
    fit, unread = [], []
    for name in benchmark_ids():
        spec = benchmarks.spec(name)
        known = spec.config.queries
        if known is not None and known not in counts:
            continue
        wanted = sessions if spec.kind == "multi_turn" else set(document)
        loaded = benchmarks.available(spec) if is_here(spec) else None
        if loaded is not None and set(loaded.query_ids) == wanted:
            fit.append(name)
        elif loaded is None and known is not None:
            unread.append(name)
    # Of one dataset several benchmarks may have the same queries; and numbers are anybody's ids.
    datasets = {name.partition("/")[0] for name in fit}
    if fit and not all(key.isascii() and key.isdecimal() for key in sessions):
        unread = [name for name in unread if name.partition("/")[0] in datasets]
    if len(fit) == 1 and not unread:
        return fit[0]
    message, named = "the file holds lists by query id and does not name its benchmark.", [*fit, *unread]
    if fit:
        message += f" Its query ids are those of {' and of '.join(fit)}."
    if unread:
        message += f" Of as many queries, and not prepared here: {', '.join(unread)}."
    if not named and (owner := owner_of(sessions)) is not None:
        message, named = f"{message} {owner[1]}", [owner[0]]
    options = [f"--benchmark {name}" for name in (named or _EXAMPLES)[:_SHOWN]]
    which = "say which it answers:" if named else "say which it answers, for example"
    findings.add("wrong-benchmark", message, fix=f"{which}  {'  or  '.join(options)}")
    return None


def whole_benchmark(benchmark_id: str, benchmarks: Benchmarks) -> Benchmark:
    """The benchmark in whose order FashionIQ's items are: an overlay's base, which leaves no query out."""
    spec = benchmarks.spec(benchmark_id)
    return benchmarks.load(benchmark_id if spec.overlay is None else spec.base.id)


def _is_item(value: Any) -> bool:
    # A ranking with the id of its query is a line of JSON Lines.
    ranked = isinstance(value, dict) and _RANKING in value and "query_id" not in value
    return ranked or (isinstance(value, dict) and _REFERENCE in value)


def _parse_fashioniq(document: list[Any], context: ReaderContext) -> UncheckedFile | None:
    """Read the starter kit's file: each item must be the query at its place; no message names a target."""
    findings, benchmarks = context.findings, context.benchmarks
    if context.expected is None and benchmarks.infers:
        # Its items have no ids: the benchmark is meant whose items they are.
        trials = {name: replace(context, expected=name, findings=Findings("")) for name in benchmark_ids()}
        here = (name for name in trials if name.startswith("fashioniq/") and is_here(benchmarks.spec(name)))
        fit = next((name for name in here if _parse_fashioniq(document, trials[name])), None)
        context = replace(context, expected=fit)
    spec = asked_benchmark(context, _FASHIONIQ)
    if spec is None:
        return None
    benchmark = whole_benchmark(spec.id, context.benchmarks)
    if len(document) != len(benchmark):
        message = f"the file has {len(document):,} items; {benchmark.id} has {len(benchmark):,} queries."
        findings.add("item-mismatch", message, cause="count")
        return None
    rankings: dict[str, Any] = {}
    agree = True
    for number, (item, row) in enumerate(zip(document, benchmark.rows(), strict=True), start=1):
        what, place = _mismatch(item, row, withheld=benchmark.ground_truth_withheld), f"item {number:,}"
        if what is not None:
            query = row["query_id"]
            findings.add("item-mismatch", f"{place}: {what}", query=query, cause="items", value=place)
            agree = False
        elif _RANKING in item:
            rankings[row["query_id"]] = item[_RANKING]
    if agree and not rankings:
        fix = f'add to each item "{_RANKING}": image ids, best first'
        findings.add("wrong-format", f'no item holds a "{_RANKING}".', fix=fix)
    return _unchecked(_FASHIONIQ, spec, rankings, context) if agree and rankings else None


def _mismatch(item: Any, row: Row, *, withheld: bool) -> str | None:
    """Why an item is not the query, or None."""
    if not isinstance(item, dict):
        return f"it is {json_type(item)}; an item is an object."
    said = {key: shown(item[key]) if key in item else "missing" for key in (_REFERENCE, _TARGET)}
    if item.get(_REFERENCE) != row["reference_image_id"]:
        return f'"{_REFERENCE}" is {said[_REFERENCE]}; the query\'s is {shown(row["reference_image_id"])}.'
    if item.get(_CAPTIONS) != row["captions"]:
        return f'"{_CAPTIONS}" is not what the query\'s captions are.'
    if not withheld and item.get(_TARGET) not in (None, row["target_image_id"]):
        return f'"{_TARGET}" is {said[_TARGET]}, which is not the query\'s target.'
    return None


def _dump_fashioniq(rank_file: RankFile, benchmark: Benchmark) -> bytes:
    items = []
    for row in benchmark.rows():
        query = row["query_id"]
        if query not in rank_file.rankings:
            raise ConversionError(
                f"query {shown(query)} has no ranking; the starter kit's file ranks every item. "
                f"Fix: rank all queries of {benchmark.id}."
            )
        item = {_REFERENCE: row["reference_image_id"], _CAPTIONS: row["captions"]}
        if row["target_image_id"] is not None:
            item = {_TARGET: row["target_image_id"], **item}
        items.append({**item, _RANKING: rank_file.rankings[query]})
    return orjson.dumps(items, option=orjson.OPT_APPEND_NEWLINE)

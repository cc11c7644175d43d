"""A plain file of rankings, `{"<query id>": [image ids, best first], ...}`, which names no benchmark.

Sessions are `{"<session id>": [[ids of turn 1], [ids of turn 2], ...]}`, or a list for each `SESSION#TURN`.
The benchmark is the one that the caller names, or else the only one whose query ids are those of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cir_metrics.errors import CirError
from submissions.formats.unchecked import ReaderContext
from submissions.rank_file.benchmarks import is_here as _is_here
from submissions.rank_file.findings import shown
from submissions.rank_file.model import LISTS, turn_key
from submissions.rank_file.owners import owner_of

if TYPE_CHECKING:
    from submissions.formats.unchecked import UncheckedFile
    from submissions.rank_file.benchmarks import Benchmarks
    from submissions.rank_file.findings import Findings

NAME = LISTS
_MARK = turn_key("", 0)[:-1]
"""Between a session and the number of its turn."""
_SHOWN = 4
"""Benchmarks that a fix names."""
_DIGITS = 3
"""Of a turn's number at most."""
_NAMELESS = "the file holds lists by query id and does not name its benchmark."
_EXAMPLES = ("cirr/val", "circo/test", "zerosight/test")


def parse(document: Mapping[str, Any], context: ReaderContext) -> UncheckedFile | None:
    """Read a plain file of rankings.

    Args:
        document: the JSON object.
        context: findings, benchmarks, and what was asked for.
    """
    from submissions.formats.foreign import asked_benchmark, parse_rankings

    title, example = "a plain file of rankings", _EXAMPLES[0]
    spec = asked_benchmark(context, format_title=title, datasets=None, example=example)
    if spec is not None and spec.kind == "multi_turn":
        joined = _by_session(document, context.findings)
        if joined is None:
            return None
        document = joined
    return parse_rankings(document, context, format_title=title, datasets=None, example=example, name=NAME)


def _by_session(document: Mapping[str, Any], findings: Findings) -> Mapping[str, Any] | None:
    """The rankings by session where they stand by turn; None, with findings, where a turn is left out."""
    if not any(_is_turn(key) for key in document):
        return document
    sessions: dict[str, dict[int, Any]] = {}
    for key, ranking in document.items():
        if not _is_turn(key):
            message = f"the key {shown(key)} names no turn of a session, where others do."
            findings.add("bad-type", message, query=key, fix="write SESSION#TURN everywhere, turns from 1")
            return None
        session, _, number = key.rpartition(_MARK)
        sessions.setdefault(session, {})[int(number)] = ranking
    for session, turns in sessions.items():
        gone = next((number for number in range(1, len(turns) + 1) if number not in turns), None)
        if gone is not None:
            findings.add("missing-turn", f"there is no key {shown(turn_key(session, gone))}.", query=session)
            return None
    return {session: [turns[number] for number in sorted(turns)] for session, turns in sessions.items()}


def _is_turn(key: object) -> bool:
    session, mark, number = key.rpartition(_MARK) if isinstance(key, str) else ("", "", "")
    return bool(session and mark) and number.isascii() and number.isdecimal() and len(number) <= _DIGITS


def benchmark_of(document: Mapping[str, Any], benchmarks: Benchmarks, findings: Findings) -> str | None:
    """The benchmark whose query ids are those of the file, or None with a finding that names what is meant.

    Only benchmarks whose data is on this machine are looked at: nothing is downloaded for a guess.

    Args:
        document: the JSON object.
        benchmarks: resolves benchmark ids.
        findings: collects what is wrong.
    """
    from cir_datasets.registry import benchmark_ids

    sessions = {key.rpartition(_MARK)[0] if _is_turn(key) else key for key in document}
    counts = {len(document), len(sessions)}
    fit, unread = [], []
    for name in benchmark_ids():
        spec = benchmarks.spec(name)
        known = spec.config.queries
        if known is not None and known not in counts:
            continue
        wanted = sessions if spec.kind == "multi_turn" else set(document)
        found = _query_ids(name, benchmarks) if _is_here(spec) else None
        if found == wanted:
            fit.append(name)
        elif found is None and known is not None:
            unread.append(name)
    # Of one dataset several benchmarks may have the same queries; and numbers are anybody's ids.
    datasets = {name.partition("/")[0] for name in fit}
    if fit and not all(key.isascii() and key.isdecimal() for key in sessions):
        unread = [name for name in unread if name.partition("/")[0] in datasets]
    if len(fit) == 1 and not unread:
        return fit[0]
    message, named = _NAMELESS, [*fit, *unread]
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


def _query_ids(name: str, benchmarks: Benchmarks) -> set[str] | None:
    """A benchmark's query or session ids; None where its data is broken, which says nothing of the file."""
    try:
        return set(benchmarks.load(name).query_ids)
    except CirError:
        return None

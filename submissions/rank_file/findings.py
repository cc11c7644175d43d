"""Findings: what validation says about a rank file, a code at a time (`findings.yaml`), and their report."""

from __future__ import annotations

import functools
import json
import shlex
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from cir_datasets.common.terminal import counted
from submissions.errors import SubmissionError

if TYPE_CHECKING:
    from submissions.rank_file.model import RankBundle, RankFile

Severity = Literal["error", "warning"]

MAX_EXAMPLES = 5
"""A finding shows at most so many places; `count` says how many there are."""

MAX_FINDINGS = 100
"""A report lists at most so many findings, errors first; `left_out` says how many more there are."""

OTHER_GALLERY = "other-gallery"
"""The code whose value is the known gallery that was evidently ranked."""

REPAIRED = "repaired"
"""The code of a file that says that it was repaired: `cir score` takes it, a board does not."""

_SHOWN = 80
_MESSAGE = 600
"""Characters of a message at most: one that quotes a few shortened names stays far below."""
_WIDTH = 88


@dataclass(frozen=True)
class Code:
    """One entry of `findings.yaml`."""

    severity: Severity
    meaning: str
    fix: str


@functools.cache
def codes() -> dict[str, Code]:
    """All finding codes in their documented order.

    Example:
        >>> codes()["duplicate-image"].severity
        'error'
    """
    from cir_datasets.common.yaml import package_yaml

    found = package_yaml("submissions", "rank_file/findings.yaml")
    return {name: Code(**entry) for name, entry in found.items()}


@dataclass(frozen=True)
class Finding:
    """One thing that validation found, with all the places where it found it.

    Args:
        code: a name of `findings.yaml`.
        severity: `error` (the file is refused) or `warning` (it is accepted).
        message: what is wrong at the first place, and why that matters.
        fix: what to do about it.
        count: number of places.
        query: the first place's query or session.
        turn: the first place's turn, from 1.
        benchmark: the member of a bundle that the finding is about.
        examples: up to five of them: `query_id`, `turn`, `position` (1-based), `value`, as far as they apply.
    """

    code: str
    severity: Severity
    message: str
    fix: str
    count: int = 1
    query: str | None = None
    turn: int | None = None
    benchmark: str | None = None
    examples: tuple[dict[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return {**vars(self), "examples": [dict(example) for example in self.examples]}

    def text(self, file: str) -> str:
        """The finding as a terminal shows it: code, file, query, what and why; then the fix."""
        where = [file, self.benchmark] if self.benchmark else [file]
        if self.query is not None:
            where.append(
                f"query {shown(self.query)}" + (f", turn {self.turn}" if self.turn is not None else "")
            )
        line = f"{self.code}: {': '.join(where)}: {self.message}"
        if self.count > 1:
            line += f" ({self._others()})"
        wrapped = textwrap.wrap(
            line, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        return "\n".join([*wrapped, f"  Fix: {self.fix}"])

    def _others(self) -> str:
        others = []
        for example in self.examples[1:]:
            if "query_id" not in example:
                continue
            turn = f" turn {example['turn']}" if "turn" in example else ""
            name = shown(example["query_id"]) + turn
            if name not in others:
                others.append(name)
        tail = f"; also {', '.join(others)}" if others else ""
        more = ", ..." if others and self.count > len(self.examples) else ""
        return f"{self.count:,} in all{tail}{more}"


def shown(value: object) -> str:
    """A value from an untrusted file, quoted, cut to 80 characters, and with nothing that a terminal obeys.

    Example:
        >>> shown("dev-0")
        '"dev-0"'
        >>> print(shown("a" + chr(27) + "[31m"))
        "a\\u001b[31m"
    """
    if isinstance(value, str):
        text = json.dumps(value[: _SHOWN + 1], ensure_ascii=not value[: _SHOWN + 1].isprintable())
        return text if len(value) <= _SHOWN else text[: _SHOWN + 1] + '..."'
    if isinstance(value, bool | int | float) or value is None:
        return json.dumps(value) if not isinstance(value, int) or abs(value) < 10**18 else "a huge number"
    return json_type(value)


def shortened(name: str | None) -> str | None:
    """A query's id cut to 80 characters: longer ones belong to no benchmark, and would fill a report.

    Example:
        >>> len(shortened("q" * 1_000_000))
        83
    """
    return name if name is None or len(name) <= _SHOWN else name[:_SHOWN] + "..."


def json_type(value: object) -> str:
    """What JSON calls a value's type, with an article.

    Example:
        >>> json_type([]), json_type(True), json_type(3)
        ('a list', 'a boolean', 'a number')
    """
    if isinstance(value, bool):
        return "a boolean"
    names = {
        dict: "an object",
        list: "a list",
        str: "a string",
        int: "a number",
        float: "a number",
        type(None): "null",
    }
    return names.get(type(value), f"a Python {type(value).__name__}")


def ordinal(position: int) -> str:
    """A 1-based position in words.

    Example:
        >>> ordinal(1), ordinal(12), ordinal(22)
        ('1st', '12th', '22nd')
    """
    ending = (
        {1: "st", 2: "nd", 3: "rd"}.get(position % 10, "th") if position % 100 not in (11, 12, 13) else "th"
    )
    return f"{position}{ending}"


def evident_gallery(findings: Iterable[Finding], benchmark: str) -> str:
    """The known gallery that was evidently ranked in place of a benchmark's; empty where none was."""
    evident = (each for each in findings if each.code == OTHER_GALLERY)
    return next(
        (str(each.examples[0]["value"]) for each in evident if each.benchmark in (None, benchmark)), ""
    )


class _Blanks(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return key.upper()


class Findings:
    """Collects findings while a file is read and checked; the places of one cause become one finding.

    Args:
        file: the file's name in messages and commands.
        benchmark: the benchmark's id in commands.
        member: the bundle's member that is being checked, or None.
    """

    def __init__(self, file: str, benchmark: str | None = None, *, member: str | None = None) -> None:
        """See the class."""
        # A server passes names that others chose: nothing in them may steer a terminal.
        self.file = "".join(character if character.isprintable() else "?" for character in file)
        self.benchmark = benchmark
        self.member = member
        self.places: dict[tuple[str | None, int | None], str] = {}
        """Where a session's round stands in the file, which goes before a message about it."""
        self._causes: dict[tuple[str, str], Finding] = {}

    def add(
        self,
        code: str,
        message: str | Callable[[], str],
        *,
        cause: str = "",
        query: str | None = None,
        turn: int | None = None,
        value: object = None,
        position: int | None = None,
        count: int = 1,
        fix: str | None = None,
        **blanks: object,
    ) -> None:
        """Note one place (or `count` places) of a cause.

        Args:
            code: a name of `findings.yaml`.
            message: what is wrong here and why, or what makes that text; the first place's is kept, and no
                other is made.
            cause: distinguishes the causes of one code.
            query: id of the query or session.
            turn: turn, from 1.
            value: the offending value.
            position: its place in the ranking, from 1.
            count: places that this call stands for.
            fix: what to do, where `findings.yaml` does not say it well enough.
            blanks: further blanks of the fix, such as `depth`.
        """
        entry = self._causes.get((code, cause))
        if entry is None:
            filled = _Blanks(file=shlex.quote(self.file), benchmark=self.benchmark or "BENCHMARK")
            filled.update({name: str(blank) for name, blank in blanks.items()})
            text = (fix or codes()[code].fix).format_map(filled)
            explained = message if isinstance(message, str) else message()
            place = self.places.get((query, turn))
            explained = explained if place is None else f"{place}: {explained}"
            severity, first = codes()[code].severity, shortened(query)
            entry = Finding(code, severity, explained[:_MESSAGE], text, 0, first, turn, self.member)
        examples = entry.examples
        if len(examples) < MAX_EXAMPLES:
            if value is not None and not (isinstance(value, str) and len(value) <= _SHOWN):
                value = shown(value)
            facts = {"query_id": shortened(query), "turn": turn, "position": position, "value": value}
            if example := {key: fact for key, fact in facts.items() if fact is not None}:
                examples = (*examples, example)
        self._causes[code, cause] = replace(entry, count=entry.count + count, examples=examples)

    def add_error(self, code: str, error: Exception, *, where: str = "", value: object = None) -> None:
        """Note an error whose message ends with its own fix, which becomes the finding's.

        Args:
            code: a name of `findings.yaml`, which says the fix of a message that has none.
            error: what was raised.
            where: what stands before its message.
            value: the offending value.
        """
        said, _, own = str(error).partition(" Fix: ")
        # What it reads as: its braces are not blanks.
        own = own.removesuffix(".").replace("{", "{{").replace("}", "}}")
        fix = f"{own}, then run  cir validate {{file}}" if own else None
        self.add(code, f"{where}{said}", value=value, fix=fix)

    @property
    def errors(self) -> int:
        """Number of findings that are errors."""
        return sum(finding.severity == "error" for finding in self._causes.values())

    def listed(self) -> list[Finding]:
        """The findings, errors first, in the order in which they were met."""
        return _errors_first(self._causes.values())


def _errors_first(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: finding.severity != "error")


@dataclass(frozen=True)
class ValidationReport:
    """What validation found.

    Args:
        file: the file's name.
        benchmark: id of the benchmark or suite that it answers, or None where that is unknown.
        findings: errors first.
        rank_file: what was read, or None where the structure is broken.
        queries: number of queries (or sessions) answered.
        left_out: findings beyond the first 100, which are counted only.
    """

    file: str
    benchmark: str | None
    findings: tuple[Finding, ...]
    rank_file: RankFile | RankBundle | None
    queries: int = 0
    left_out: int = 0

    @classmethod
    def of(
        cls,
        file: str,
        listed: Iterable[Finding],
        benchmark: str | None = None,
        rank_file: RankFile | RankBundle | None = None,
        queries: int = 0,
    ) -> ValidationReport:
        """The report of findings in any order and number."""
        ordered = _errors_first(listed)
        kept = tuple(ordered[:MAX_FINDINGS])
        return cls(file, benchmark, kept, rank_file, queries, left_out=len(ordered) - len(kept))

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that refuse the file."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that do not."""
        return tuple(finding for finding in self.findings if finding.severity == "warning")

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not self.errors

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "file": self.file,
            "benchmark": self.benchmark,
            "ok": self.ok,
            "queries": self.queries,
            "findings_left_out": self.left_out,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def text(self) -> str:
        """The report as a terminal shows it: the findings, then one line that sums up."""
        lines = [finding.text(self.file) for finding in self.findings]
        if self.left_out:
            lines.append(f"... and {counted(self.left_out, 'finding')} more.")
        target = f" for {self.benchmark}" if self.benchmark else ""
        counts = [counted(len(self.errors), "error")] if self.errors else []
        counts += [counted(len(self.warnings), "warning")] if self.warnings else []
        if self.ok:
            tail = f", {', '.join(counts)}" if counts else ""
            lines.append(f"{self.file}: valid{target}, {self.queries:,} answered{tail}")
        else:
            lines.append(f"{self.file}: refused{target}, {', '.join(counts)}")
        return "\n".join(lines)


class RefusedError(SubmissionError, ValueError):
    """A rank file has findings that are errors; `report` holds them all.

    Args:
        what: what was refused, and why in a few words.
        report: the findings.
    """

    def __init__(self, what: str, report: ValidationReport) -> None:
        """See the class."""
        super().__init__(f"{what}\n{report.text()}")
        self.report = report

"""What was found out about a file, as a record and as one screen of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from cir_datasets.common.terminal import aligned, counted, printable
from submissions.scoring.score_report import shown_value

if TYPE_CHECKING:
    from submissions.explaining.near import NearRow
    from submissions.explaining.readings import FileReading
    from submissions.rank_file.findings import ValidationReport

_WIDTH = 100
_LABEL = 12
_COLUMNS = 7
"""Metrics of a table."""
_LINES = 2
"""Of what a published row claims of its protocol."""


@dataclass(frozen=True)
class Rankings:
    """What was counted in the rankings of one benchmark.

    Args:
        benchmark: the benchmark's id.
        section: `rankings`, or `subset_rankings`.
        protocol: `kept` or `removed`, what the benchmark says of references; `none` where there are none.
        withheld: whether its ground truth is not public.
        counts: of queries or sessions those of the benchmark (`queries`), those that the file answers
            (`answered`), and those of the file that the benchmark does not have (`unknown`). Of lists, one a
            turn, all (`lists`), the images of the `shortest` and the `longest`, and how many are `short` for
            the board, rank an image twice (`doubled`), have a reference (`references`), hold it
            (`reference_held`), begin with it (`reference_first`), hold an image that the query does not rank
            (`outside_held`), begin with one (`outside_first`). Of images, those that are ranked (`images`),
            of these those from outside (`outside`), and those of the list `listed_in` (`listed`).
        reference_ranks: by range of ranks, such as `2-5`, how many references stand there.
        outside_of: what is known of the images from outside.
        listed_in: the smallest known list that has all images; empty where none has.
        readings: the numbers.
    """

    benchmark: str
    section: str
    protocol: str
    withheld: bool
    counts: dict[str, int]
    reference_ranks: dict[str, int]
    outside_of: str
    listed_in: str
    readings: tuple[FileReading, ...]


@dataclass(frozen=True)
class Explanation:
    """What a file says; `text` is one screen of it, `to_dict` all.

    Args:
        file: the file's name.
        format: its format; empty where it could not be told.
        benchmark: the benchmark or suite that it answers, or None.
        asked: what the caller took it for; empty where nothing.
        ids: by benchmark how many of its queries or sessions are there, most first.
        report: what validation says.
        rankings: what was counted, a benchmark and section each.
        readings: of a suite the numbers over its members.
        near: published rows that come near.
    """

    file: str
    format: str
    benchmark: str | None
    asked: str
    ids: dict[str, int]
    report: ValidationReport
    rankings: tuple[Rankings, ...] = ()
    readings: tuple[FileReading, ...] = ()
    near: tuple[NearRow, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The whole record as JSON values; numbers are fractions."""
        return {**asdict(replace(self, report=None)), "report": self.report.to_dict()}  # type: ignore[arg-type]

    def text(self) -> str:
        """One screen: what was counted, the numbers in per cent, and published rows that come near."""
        return _screen(self)


def _screen(explanation: Explanation) -> str:
    """An explanation as a terminal shows it: at most 100 characters wide, and about 40 lines long."""
    report, parts = explanation.report, explanation.rankings
    if not parts:
        return report.text()
    codes = ", ".join(f"{each.code} {each.count:,}" for each in report.findings)
    said = "valid" if report.ok else "refused"
    lines = [f"{printable(explanation.file)}: a {explanation.format} file, {said}{codes and f': {codes}'}"]
    lines += _labelled("answers", _answers(explanation))
    for part in parts:
        lines += [part.benchmark] if len(parts) > 1 else []
        lines += _facts(part)
        if part.withheld:
            lines += _labelled("numbers", f"none: the ground truth of {part.benchmark} is not public")
        lines += _numbers(part.readings)
    if explanation.readings:
        lines += ["", f"{explanation.benchmark}, mean over the members", *_numbers(explanation.readings)]
    if explanation.near:
        lines += ["", "Published rows that come near"]
    for row in explanation.near:
        values = ", ".join(f"{metric} {text}" for metric, text in row.values.items())
        lines.append(
            f"  {row.method}, {row.benchmark}: {values}; {row.difference:.2f} points from: {row.reading}"
        )
        claimed = textwrap.wrap(
            f"{row.source}. {row.protocol}", _WIDTH - 4, max_lines=_LINES, placeholder=" ..."
        )
        lines += [f"    {line}" for line in claimed]
    return "\n".join(lines)


def _labelled(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        f"{f'  {label}':{_LABEL}}{text}", _WIDTH, subsequent_indent=" " * _LABEL, break_on_hyphens=False
    )


def _answers(explanation: Explanation) -> str:
    ids = [f"{name} ({held:,} of its queries)" for name, held in explanation.ids.items()]
    asked = explanation.asked
    other = f", not {asked}, which it was taken for" if asked not in ("", explanation.benchmark) else ""
    others = f"; also queries of {', '.join(ids[1:])}" if len(ids) > 1 else ""
    return f"{explanation.benchmark}{other}, by its ids{others}"


def _facts(part: Rankings) -> Iterator[str]:
    n, what = part.counts, "subsets" if part.section.startswith("subset") else "lists"
    depth = f"{n['longest']}" if n["shortest"] == n["longest"] else f"{n['shortest']} to {n['longest']}"
    odd = [f"{n['queries'] - n['answered']:,} queries missing"] if n["answered"] < n["queries"] else []
    odd += [f"{counted(n['unknown'], 'query', 'queries')} that it does not have"] if n["unknown"] else []
    odd += [f"{n['short']:,} shorter than the board reads"] if n["short"] else []
    odd += [f"{n['doubled']:,} name an image twice"] if n["doubled"] else []
    said = "; ".join(odd or ["none missing, none doubled"])
    yield from _labelled(
        what, f"{n['lists']:,} of {depth} images, for {n['answered']:,} of {n['queries']:,}; {said}"
    )
    where = f"all in the list of {part.listed_in} ({n['listed']:,})" if part.listed_in else ""
    if n["outside"]:
        where = (
            f"{n['outside']:,} from outside the list of {part.benchmark}, in {n['outside_held']:,} lists, "
            f"first in {n['outside_first']:,}{where and f'; {where}'}. {part.outside_of}"
        )
    yield from _labelled("images", f"{n['images']:,} different{where and f', {where}'}")
    ranks = ", ".join(f"{_places(name)} in {count:,}" for name, count in part.reference_ranks.items())
    protocol = {"removed": "ranks without it", "kept": "keeps it"}.get(
        part.protocol, f"has it {part.protocol}"
    )
    held = f"in {n['reference_held']:,} of {n['references']:,} lists{ranks and f': {ranks}'}"
    yield from _labelled("reference", f"{held}. {part.benchmark} {protocol}.")


def _places(ranks: str) -> str:
    first, _, last = ranks.partition("-")
    return "first" if last == "1" else f"{first} to {last}" if int(last) <= 50 else f"behind {int(first) - 1}"


def _numbers(readings: Sequence[FileReading]) -> list[str]:
    names = list(dict.fromkeys(name for reading in readings for name in reading.values))[:_COLUMNS]
    rows = [["in per cent", *names]]
    for reading in readings:
        cells = [shown_value(name, reading.values.get(name)).strip() for name in names]
        marks = [">=" if name in reading.at_least else "" for name in names]
        rows.append([reading.label, *(mark + cell for mark, cell in zip(marks, cells, strict=True))])
    table = aligned(rows, right=range(1, len(names) + 1)) if readings else ""
    return [f"  {line}" for line in table.splitlines()]

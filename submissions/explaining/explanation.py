"""What was found out about a file, as a record and as one screen of text."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from cir_datasets.common.terminal import aligned, counted, printable
from cir_datasets.registry.schema import is_micro
from submissions.rank_file.model import SECTIONS
from submissions.scoring.score_report import shown_value

if TYPE_CHECKING:
    from submissions.explaining.readings import FileReading, NearRow
    from submissions.rank_file.findings import ValidationReport

_WIDTH = 100
_LABEL = 12
_PARTS = 2
"""Rankings that are told in words; of more there is a table."""
_PROTOCOLS = {
    "removed": "ranks without it",
    "kept": "keeps it",
    "outside": "has it outside the images that are ranked",
    "none": "has none",
}
_TOLD = ("answered", "shortest", "doubled", "outside", "outside_first", "reference_held", "reference_first")


@dataclass(frozen=True)
class Rankings:
    """What was counted in the rankings of one benchmark.

    Args:
        benchmark: the benchmark's id.
        section: `rankings`, or `subset_rankings`.
        protocol: `kept` or `removed`, what the benchmark says of references; `none` where there are none.
        withheld: whether its ground truth is not public.
        counts: of queries or sessions those of the benchmark (`queries`), those that the file answers
            (`answered`), those of the file that the benchmark does not have (`unknown`), and of sessions the
            turns of all (`turns`, else 0). Of lists, one a
            turn, all (`lists`), the images of the `shortest` and the `longest`, and how many are `short` for
            the board, rank an image twice (`doubled`), have a reference (`references`), hold it
            (`reference_held`), begin with it (`reference_first`), hold an image that the query does not rank
            (`outside_held`), begin with one (`outside_first`). Of images, those that are ranked (`images`),
            of these those from outside (`outside`), those of the benchmark's own list (`gallery`, 0 where it
            is not here), and those of the list `listed_in` (`listed`).
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
        """One screen, 100 characters wide: counts, numbers in per cent, and published rows that come near."""
        report, parts = self.report, self.rankings
        if not parts:
            return report.text()
        found, judged = Counter[str](), "valid" if report.ok else "refused"
        for each in report.findings:
            found[each.code] += each.count
        said = ", ".join(f"{code} {count:,}" for code, count in found.items()) or "no finding"
        lines = [f"{printable(self.file)}: a {self.format} file, {judged}: {said}"]
        lines += _labelled("answers", _answers(self))
        if not any(part.counts["lists"] for part in parts):
            lines += [finding.text(printable(self.file)) for finding in report.errors[:1]]
        if len(parts) > _PARTS:
            rows = [[_head(part), *(f"{part.counts[name]:,}" for name in _TOLD)] for part in parts]
            lines += _table([["", *(name.replace("_", " ") for name in _TOLD)], *rows])
        for part in parts:
            lines += [_head(part)] if len({one.benchmark for one in parts}) > 1 else []
            lines += _facts(part) if len(parts) <= _PARTS else []
            if part.withheld:
                lines += _labelled("numbers", f"none: the ground truth of {part.benchmark} is not public")
            lines += _numbers(part.readings)
        if self.readings:
            lines += ["", f"{self.benchmark}, mean over the members", *_numbers(self.readings)]
        readings = [reading for part in parts for reading in part.readings]
        if any(reading.at_least for reading in readings):
            lines += ["  >= the least that it can be: lists of the file end before it"]
        if readings:
            lines += ["", "Published rows that come near" if self.near else "No published row comes near."]
        for row in self.near:
            values = ", ".join(f"{metric} {text}" for metric, text in row.values.items())
            near = f"{row.method}, {row.benchmark}: {values}; {row.difference:.2f} points from: {row.reading}"
            lines += _wrapped("  " + near, 4)
            lines += _wrapped(f"    {row.source}. {row.protocol}", 4, max_lines=2, placeholder=" ...")
        return "\n".join(lines)


def _wrapped(text: str, indent: int, **options: Any) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False, **options)


def _labelled(label: str, text: str) -> list[str]:
    return _wrapped(f"{f'  {label}':{_LABEL}}{text}", _LABEL)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"  {line}" for line in aligned(rows, right=range(1, len(rows[0]))).splitlines()]


def _head(part: Rankings) -> str:
    return part.benchmark + (", subsets" if part.section == SECTIONS[1] else "")


def _answers(explanation: Explanation) -> str:
    answered = {part.benchmark for part in explanation.rankings}
    others = ", ".join(f"{name} ({held:,})" for name, held in explanation.ids.items() if name not in answered)
    asked = explanation.asked
    other = f", not {asked}, which it was taken for" if asked not in ("", explanation.benchmark) else ""
    fits = "queries of the same ids" if asked else "it may be meant, with --benchmark, for"
    others = f"; {fits}: {others}" if others and len(answered) == 1 else ""
    return f"{explanation.benchmark}{other}{others}"


def _facts(part: Rankings) -> Iterator[str]:
    n, what = part.counts, "subsets" if part.section == SECTIONS[1] else "lists"
    depth = f"{n['longest']:,}" if n["shortest"] == n["longest"] else f"{n['shortest']:,} to {n['longest']:,}"
    missing = n["queries"] - n["answered"]
    odd = [f"{counted(missing, 'query', 'queries')} missing"] if missing > 0 else []
    silent = n["turns"] - n["lists"]
    odd += [f"{counted(silent, 'turn', 'turns')} missing"] if silent > 0 else []
    odd += [f"{counted(n['unknown'], 'query', 'queries')} that it does not have"] if n["unknown"] else []
    odd += [f"{n['short']:,} shorter than the board reads"] if n["short"] else []
    odd += [f"{n['doubled']:,} name an image twice"] if n["doubled"] else []
    said = "; ".join(odd or ["none missing, none doubled"])
    yield from _labelled(
        what, f"{n['lists']:,} of {depth} images, for {n['answered']:,} of {n['queries']:,}; {said}"
    )
    where = f"all in the list of {part.listed_in} ({n['listed']:,})" if part.listed_in else ""
    where = where if n["gallery"] else f"the list of {part.benchmark} is not on this machine"
    if n["outside"]:
        by_query = what == "subsets" or part.listed_in == part.benchmark
        whose = "their query's own list" if by_query else f"the list of {part.benchmark}"
        where = (
            f"{n['outside']:,} from outside {whose}, in {n['outside_held']:,} lists, "
            f"first in {n['outside_first']:,}{where and f'; {where}'}"
            f"{part.outside_of and f'. {part.outside_of}'}"
        )
    yield from _labelled("images", f"{n['images']:,} different{where and f', {where}'}")
    ranks = ", ".join(f"{_places(name)} in {count:,}" for name, count in part.reference_ranks.items())
    protocol = _PROTOCOLS[part.protocol]
    held = f"in {n['reference_held']:,} of {n['references']:,} lists{ranks and f': {ranks}'}"
    yield from _labelled("reference", f"{held}. {part.benchmark} {protocol}.")


def _places(ranks: str) -> str:
    first, _, last = ranks.partition("-")
    return "first" if last == "1" else f"{first} to {last}" if int(last) <= 50 else f"behind {int(first) - 1}"


def _numbers(readings: Sequence[FileReading]) -> list[str]:
    names = list(dict.fromkeys(name for reading in readings for name in reading.values if not is_micro(name)))
    # The numbers of single turns come last, and means.
    names.sort(key=lambda name: name.count("@"))
    # The gallery without the name of its data set: the last metrics would have no room beside it.
    labels = [each.label.replace(each.gallery, each.gallery.rpartition("/")[2]) for each in readings]
    room = _WIDTH - 2 - max(map(len, labels), default=0)
    ends = accumulate(len(name) + 2 for name in names)
    names = [name for name, end in zip(names, ends, strict=True) if end <= room]

    def shown(reading: FileReading, name: str) -> str:
        return ">=" * (name in reading.at_least) + shown_value(name, reading.values.get(name)).strip()

    cells = ([shown(reading, name) for name in names] for reading in readings)
    rows = [[label, *own] for label, own in zip(labels, cells, strict=True)]
    return _table([["in per cent", *names], *rows]) if readings else []

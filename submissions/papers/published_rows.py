"""Which published rows stand below a paper's table: those that words choose and that have numbers for it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cir_datasets.registry.published import Reported, published, published_file
from cir_metrics.errors import CallError, UnknownNameError, did_you_mean
from submissions.papers.layout import Layout, TableLayout

_FILES = (".yaml", ".yml")
_LISTED = 12
"""How many names a message lists."""


def rows_below(layout: Layout, words: Sequence[str]) -> tuple[list[Reported], list[str]]:
    """The published rows that words choose, those of one method together; notes on rows of the same names.

    A method has one row a table; the notes name its other rows.

    Args:
        layout: the tables.
        words: as `choose` takes them, or YAML files of one's own.

    Raises:
        CallError: a file cannot be read, or none of its rows has a number for such a table.
        UnknownNameError: a word chooses nothing.
    """
    files = [word for word in words if word.lower().endswith(_FILES)]
    own = [row for file in files for row in published_file(file) if _fits(row, layout)]
    if files and not own:
        raise CallError(
            f"no row of {', '.join(files)} has a number for a table for {layout.name}. "
            f"Fix: name its benchmarks and metrics, such as {layout.answers[0]}."
        )
    fitting = [row for row in published() if _fits(row, layout)]
    see_all = f"cir table --for {layout.name} --published all"
    by_word = {word: choose([word], fitting, see_all) for word in words if word not in files}
    whole = {"all", *(name.casefold() for row in fitting for name in (row.source, row.id))}
    picked = {
        row.id
        for word, rows in by_word.items()
        for row in (rows if word.casefold() in whole else _one_a_table(word, rows, layout))
    }
    rows = [*own, *(row for row in fitting if row.id in picked)]
    first = {_plain_name(row): place for place, row in reversed(list(enumerate(rows)))}
    notes = []
    for word, same in by_word.items():
        others = [f"{row.label} in {row.where} ({row.id})" for row in same if row.id not in picked]
        if others:
            notes.append(f"Further rows of {word}, each to be asked for by its id: {', '.join(others)}.")
    return sorted(rows, key=lambda row: first[_plain_name(row)]), notes


def slots_of(row: Reported, table: TableLayout) -> dict[str, dict[tuple[str, str], str]]:
    """By benchmark or suite that a table may be of, the row's numbers by member name and metric.

    A table by aspect takes rows with a number of an aspect, and not those that have the mean alone.
    """
    by_target = {}
    of_aspects = any(group.by_aspect for group in table.columns)
    for target in table.answers:
        slots = {
            (group.of, metric): row.values.get((table.benchmark_of(target, group.of), metric))
            for group in table.columns
            for metric in group.by_metric
        }
        own = {slot: text for slot, text in slots.items() if text is not None}
        if own and (not of_aspects or any(" of " in metric for _, metric in own)):
            by_target[target] = own
    return by_target


def target_of(row: Reported, layout: Layout) -> str:
    """The benchmark or suite that most of a row's numbers are of."""
    sizes: dict[str, int] = {}
    for table in layout.tables:
        for target, values in slots_of(row, table).items():
            sizes[target] = sizes.get(target, 0) + len(values)
    return max(sizes, key=lambda target: sizes[target])


def choose(words: Sequence[str], among: Sequence[Reported], see_all: str = "") -> list[Reported]:
    """The rows that words choose: `all`, a source such as `cirr`, a method such as `TIRG`, `cirr:TIRG`; ids.

    A method is found in every spelling: `SPRC` chooses `SPRC (retrained)` too, and that alone chooses itself.

    Args:
        words: letters are taken without case.
        among: rows to choose from.
        see_all: the command that shows them all; an error's long list ends with it.

    Returns:
        The rows in the order of `among`, each once.

    Raises:
        UnknownNameError: a word chooses nothing; the message names the nearest.
    """
    picked: set[int] = set()
    for word in words:
        same = {place for place, row in enumerate(among) if _is_chosen(row, word)}
        if not same:
            raise UnknownNameError(_nothing(word, among, see_all))
        picked |= same
    return [among[place] for place in sorted(picked)]


def _is_chosen(row: Reported, word: str) -> bool:
    if word.casefold() in ("all", row.source.casefold(), row.id.casefold()):
        return True
    source, _, method = word.partition(":")
    return _is_named(row, word) or (source.casefold() == row.source.casefold() and _is_named(row, method))


def _is_named(row: Reported, method: str) -> bool:
    return method.casefold() in map(str.casefold, (*row.names, row.label))


def _nothing(word: str, among: Sequence[Reported], see_all: str) -> str:
    elsewhere = [row for row in published() if _is_chosen(row, word)]
    if elsewhere:
        there = ", ".join(dict.fromkeys(name for row in elsewhere for name, _ in row.values))
        return (
            f"the published numbers of {word!r} are of {there}, not of this table's benchmarks and metrics. "
            "Fix: leave it out, or name another row."
        )
    if ":" in word:
        spellings = [f"{row.source}:{name}" for row in among for name in row.names]
    else:
        spellings = [*(row.source for row in among), *(name for row in among for name in row.names)]
    names = list(dict.fromkeys(spellings))
    listed = ", ".join(names[:_LISTED]) or "none for this table"
    if len(names) > _LISTED:
        listed += f" and {len(names) - _LISTED} more" + (f"; {see_all} shows all" if see_all else "")
    return f"no published row {word!r}.{did_you_mean(word, names)} There are: {listed}."


def _one_a_table(word: str, rows: Sequence[Reported], layout: Layout) -> list[Reported]:
    """Of a method's rows the one that each table shows: of that very name first, then with most numbers."""
    name = word.rpartition(":")[2].casefold()
    fitting = ([row for row in rows if slots_of(row, table)] for table in layout.tables)
    return [
        min(
            those,
            key=lambda row: (name not in (row.method.casefold(), row.label.casefold()), -len(row.values)),
        )
        for those in fitting
        if those
    ]


def _plain_name(row: Reported) -> str:
    return re.sub(r"[^0-9a-z]+", "", f"{row.method} {row.backbone}".casefold())


def _fits(row: Reported, layout: Layout) -> bool:
    return any(slots_of(row, table) for table in layout.tables)

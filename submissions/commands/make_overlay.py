"""`cir make overlay`: queries or sessions of a kind, as a filter list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import LoadsBenchmarks, argument, benchmark_values, command, option
from cir_datasets.common.terminal import counted, echo
from cir_metrics.errors import CallError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark


class MakeOverlayOptions(LoadsBenchmarks):
    """What `cir make overlay` takes."""

    benchmark: str = argument(..., "Id of the benchmark.", autocompletion=benchmark_values)
    out: Path = option(..., "Where to write: the overlay's file, named after it.", "-o")
    aspect: str | None = option(None, "This aspect alone, of those that queries have.")
    pattern: str | None = option(
        None, "Regular expression, whatever the case, that is in a caption, of sessions of any turn."
    )
    hardest: int | None = option(None, "So many of these whose best target ranks last in --by.", min=1)
    by: Path | None = option(None, "Rank file that --hardest goes by; of sessions their last turn counts.")


@command
def overlay_command(options: MakeOverlayOptions) -> None:
    """Choose queries or sessions by aspect, caption or rank, and write them as an overlay.

    Of equal ranks, as of targets that are not listed, the benchmark's order decides.

    \b
    Example:
        cir make overlay cirr/val --hardest 50 --by run.json --out hard.json
        cir make overlay cirr/val --pattern "\\b(no|not|without|remove\\w*)\\b" --out negation.json
    """
    import orjson

    from cir_datasets.common.atomic import write_errors, write_whole
    from cir_datasets.common.paths import NAME_RULE, is_name
    from cir_datasets.errors import OverlayError
    from cir_datasets.registry.overlays import Overlay
    from submissions.running.make import loaded_benchmark

    if (options.hardest is None) != (options.by is None):
        raise CallError("--hardest goes by the rank file --by. Fix: give both, or neither.")
    if options.hardest is None and options.aspect is None and options.pattern is None:
        raise CallError("nothing says what is chosen. Fix: add --hardest and --by, --aspect or --pattern.")
    if options.out.suffix != ".json" or not is_name(options.out.stem):
        raise CallError(
            f"--out {options.out}: the overlay is called as its file. Fix: use {NAME_RULE}, and .json."
        )
    loaded = loaded_benchmark(options.benchmark)
    chosen = _matching(loaded, options.aspect, options.pattern)
    said = [f"{name} {value}" for name, value in options.by_option("aspect", "pattern").items()]
    if options.by is not None and options.hardest is not None:
        ranks = _ranks(loaded, options.by)
        chosen = sorted(chosen, key=lambda query: -ranks[query])
        chosen, others = chosen[: options.hardest], chosen[options.hardest :]
        tied = [query for query in others if ranks[query] == ranks[chosen[-1]]]
        if tied:
            note = f"{len(tied):,} more share the last one's rank, {ranks[chosen[-1]]:,}"
            echo(f"cir: {note}; those that come first in {loaded.id} were taken", err=True)
        said.append(f"{options.hardest} hardest by {options.by.name}")
    if not chosen:
        raise CallError(
            f"{loaded.id}: no caption has {' and '.join(said)}. Fix: choose another aspect or pattern."
        )
    kept = set(chosen)
    labels = {query: None for query in loaded.query_ids if query in kept}
    base = loaded.id.partition("+")[0]
    unit = ("session", "sessions") if loaded.multi_turn else ("query", "queries")
    overlay = Overlay(options.out.stem, base, loaded.version, "; ".join(said), labels)
    with write_errors(options.out.parent, OverlayError):
        write_whole(options.out, orjson.dumps(overlay.to_dict(), option=orjson.OPT_INDENT_2))
    echo(f"cir: {len(labels):,} of {counted(len(loaded), *unit)}; use them as {overlay.id} after", err=True)
    echo(f"cir:   cir datasets overlay add {options.out}", err=True)
    echo(str(options.out))


def _matching(benchmark: Benchmark, aspect: str | None, pattern: str | None) -> list[str]:
    from cir_datasets.rows.caption_aspects import query_aspects
    from cir_datasets.statistics.counts import captions_of

    try:
        found = re.compile(pattern or "", re.IGNORECASE)
    except re.error as error:
        raise CallError(f"--pattern {pattern}: {error}. Fix: correct the expression.") from error
    rows, names = benchmark.rows(), benchmark.spec.card.report.aspect_names
    aspects = [query_aspects(row, names) if aspect is not None else [] for row in rows]
    known = sorted({one for of_row in aspects for one in of_row})
    if aspect is not None and aspect not in known:
        has = f"use one of {', '.join(known)}" if known else "its rows have none; take --pattern"
        raise UnknownNameError(
            f"--aspect {aspect}: no query of {benchmark.id} has it.{did_you_mean(aspect, known)} Fix: {has}."
        )
    return [
        query
        for query, row, of_row in zip(benchmark.query_ids, rows, aspects, strict=True)
        if (aspect is None or aspect in of_row)
        and (pattern is None or any(map(found.search, captions_of(row))))
    ]


def _ranks(benchmark: Benchmark, file: Path) -> dict[str, int]:
    """By query or session the rank of its best target, at the last turn."""
    from submissions.scoring import score

    evidence = score(file, benchmark).evidence
    if evidence is None or evidence.ranks is None:
        raise CallError(
            f"--by {file}: it ranks subsets alone. Fix: name a file with rankings of the gallery."
        )
    ranks = evidence.ranks
    if evidence.num_turns is not None:
        ranks = ranks[range(len(ranks)), evidence.num_turns - 1]
    return dict(zip(evidence.query_ids, ranks.tolist(), strict=True))

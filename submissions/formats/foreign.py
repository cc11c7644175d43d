"""What the readers of other people's formats share: those files name neither benchmark nor method."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from submissions.errors import ConversionError
from submissions.formats.unchecked import ReaderContext, UncheckedFile, read_rankings
from submissions.rank_file.findings import shown

if TYPE_CHECKING:
    from cir_datasets.registry.cards import BenchmarkSpec
    from submissions.rank_file.model import Method, RankFile


_LABEL = 1_000
"""Characters of a label that a name is made of."""


def asked_benchmark(
    context: ReaderContext,
    *,
    format_title: str,
    datasets: tuple[str, ...] | None,
    example: str,
    ids: Collection[str] = (),
) -> BenchmarkSpec | None:
    """The benchmark that the caller named, or None with a finding where it is missing or of another dataset.

    Args:
        context: findings, benchmarks, and what was asked for.
        format_title: the format in words.
        datasets: names of the datasets that the format belongs to, or None where it can answer all.
        example: a benchmark id for the fix, where nothing is known of the ids.
        ids: of the queries that are answered, which may tell it.
    """
    if context.expected is None:
        owner = None
        if ids:
            from submissions.rank_file.owners import owner_of

            owner = owner_of(ids, datasets=datasets)
        context.findings.add(
            "wrong-benchmark",
            f"{format_title} does not name its benchmark.{'' if owner is None else f' {owner[1]}'}",
            fix=f"say which it answers, for example  --benchmark {example if owner is None else owner[0]}",
        )
        return None
    spec = context.benchmarks.spec(context.expected)
    if datasets is not None and spec.card.name not in datasets:
        context.findings.add(
            "wrong-benchmark",
            f"{format_title} cannot answer {spec.id}.",
            fix=f"hand in a file in the native format, or check it against  --benchmark {example}",
        )
        return None
    return spec


def parse_rankings(
    document: Mapping[str, Any],
    context: ReaderContext,
    *,
    format_title: str,
    datasets: tuple[str, ...] | None,
    example: str,
    name: str,
) -> UncheckedFile | None:
    """Read a file that is nothing but rankings, `{"<query id>": [image ids], ...}`.

    Args:
        document: the JSON object.
        context: findings, benchmarks, and what was asked for.
        format_title: the format in words.
        datasets: names of the datasets that the format belongs to, or None where it can answer all.
        example: a benchmark id for the fix.
        name: the format's name.
    """
    spec = asked_benchmark(context, format_title=format_title, datasets=datasets, example=example)
    if spec is None:
        return None
    answers = read_rankings(document, spec, context, budget=context.budget)
    return UncheckedFile(spec, spec.card.version, nameless_method(context.label), answers, None, name)


def cut_rankings(rank_file: RankFile, depth: int, asker: str) -> dict[str, list[str]]:
    """The first `depth` images of every ranking.

    Args:
        rank_file: rankings of queries, checked.
        depth: images that `asker` wants.
        asker: who reads the file, in words.

    Raises:
        ConversionError: a list is too short.
    """
    for query, ids in rank_file.rankings.items():
        if len(ids) < depth:
            raise ConversionError(
                f"query {shown(query)}: {len(ids)} images; {asker} wants {depth}. "
                f"Fix: rank at least {depth} images a query."
            )
    return {query: list(ids[:depth]) for query, ids in rank_file.rankings.items()}


def nameless_method(label: str) -> Method:
    """A method that is known by its file's name only.

    Example:
        >>> nameless_method("sum-clip.test1").name
        'sum-clip.test1'
    """
    from submissions.rank_file.model import Method

    # A name has eighty characters; bringing a million combining marks to NFC would take half an hour.
    start = unicodedata.normalize("NFC", label[:_LABEL])
    kept = [c for c in start if c in " -_." or unicodedata.category(c)[0] in "LN"]
    name = "".join(kept).strip(" -_.")[:80].strip()
    return Method(name=name or "unnamed")

"""What the readers of other people's formats share: those files name neither benchmark nor method."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from submissions.formats import Context

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from submissions.rank_file import Method


def asked_benchmark(
    context: Context, *, format_title: str, datasets: tuple[str, ...], example: str
) -> BenchmarkSpec | None:
    """The benchmark that the caller named, or None with a finding where it is missing or of another dataset.

    Args:
        context: findings, benchmarks, and what was asked for.
        format_title: the format in words.
        datasets: names of the datasets that the format belongs to.
        example: a benchmark id for the fix.
    """
    if context.expected is None:
        context.findings.add(
            "wrong-benchmark",
            f"{format_title} does not name its benchmark.",
            fix=f"say which it answers, for example  --benchmark {example}",
        )
        return None
    spec = context.known.spec(context.expected)
    if spec.card.name not in datasets:
        context.findings.add(
            "wrong-benchmark",
            f"{format_title} cannot answer {spec.id}.",
            fix=f"hand in a file in the native format, or check it against  --benchmark {example}",
        )
        return None
    return spec


def nameless_method(label: str) -> Method:
    """A method that is known by its file's name only.

    Example:
        >>> nameless_method("sum-clip.test1").name
        'sum-clip.test1'
    """
    from submissions.rank_file import Method

    kept = [
        c for c in unicodedata.normalize("NFC", label) if c in " -_." or unicodedata.category(c)[0] in "LN"
    ]
    name = "".join(kept).strip(" -_.")[:80].strip()
    return Method(name=name or "unnamed")

"""The CIRR test server's two files: `{"version": "rc2", "metric": "recall", "<pairid>": [50 names], ...}`.

The same with `"metric": "recall_subset"` and three names of the query's subset. Names have no ".png", the
reference is left out, and the server takes at most 5 MB, so that the JSON is compact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from submissions.errors import ConversionError
from submissions.formats.unchecked import ReaderContext, UncheckedFile, read_rankings
from submissions.rank_file.findings import json_type, shown
from submissions.rank_file.model import CIRR_SERVER

if TYPE_CHECKING:
    from submissions.rank_file.model import RankFile

NAME = CIRR_SERVER
BENCHMARKS = ("cirr",)
VERSION = "rc2"
DEPTHS = {"recall": 50, "recall_subset": 3}
"""Names a query in each of the two files."""

MAX_BYTES = 5_000_000
_TITLE = "a CIRR server file"


def parse(document: Mapping[str, Any], context: ReaderContext) -> UncheckedFile | None:
    """Read one of the two files; the one for `recall_subset` holds no whole-gallery rankings.

    Args:
        document: the JSON object.
        context: findings, benchmarks, and what was asked for.
    """
    from submissions.formats.foreign import asked_benchmark, nameless_method

    findings = context.findings
    version, metric = document["version"], document["metric"]
    for key, value in (("version", version), ("metric", metric)):
        if not isinstance(value, str):
            findings.add("bad-type", f'"{key}" is {json_type(value)}; it must be a string.', cause=key)
            return None
    if metric not in DEPTHS:
        findings.add(
            "wrong-format",
            f'"metric" is {shown(metric)}; the CIRR server knows "recall" and "recall_subset".',
            fix='write "metric": "recall" or "metric": "recall_subset"',
        )
        return None
    entries = {key: value for key, value in document.items() if key not in ("version", "metric")}
    spec = asked_benchmark(
        context, format_title=_TITLE, datasets=BENCHMARKS, example="cirr/test1", ids=entries.keys()
    )
    if spec is None:
        return None
    if version != VERSION:
        findings.add(
            "wrong-version",
            f'"version" is {shown(version)}; the CIRR server takes "{VERSION}".',
            fix=f'rank release {VERSION} of CIRR and write "version": "{VERSION}"',
        )
    method = nameless_method(context.label)
    if metric == "recall":
        answers = read_rankings(entries, spec, context, budget=context.budget)
        return UncheckedFile(spec, spec.card.version, method, answers, None, NAME)
    answers = read_rankings(entries, spec, context, section="subset_rankings", budget=context.budget)
    return UncheckedFile(spec, spec.card.version, method, None, answers, NAME)


def dump(rank_file: RankFile) -> dict[str, bytes]:
    """The server's files by metric; only those that the rank file has rankings for.

    Args:
        rank_file: rankings of CIRR, checked.

    Raises:
        ConversionError: a list is too short, or a file would be larger than the server takes.
    """
    from submissions.rank_file.model import compact

    parts = {"recall": rank_file.rankings or None, "recall_subset": rank_file.subset_rankings}
    written: dict[str, bytes] = {}
    for metric, rankings in parts.items():
        if rankings is None:
            continue
        depth = DEPTHS[metric]
        document: dict[str, Any] = {"version": VERSION, "metric": metric}
        for query, ids in rankings.items():
            if len(ids) < depth:
                raise ConversionError(
                    f'query {shown(query)}: {len(ids)} images; the CIRR server wants {depth} for "{metric}". '
                    f"Fix: rank at least {depth} images a query."
                )
            document[query] = list(ids[:depth])
        content = compact(document)
        if len(content) > MAX_BYTES:
            raise ConversionError(
                f"the {metric} file would have {len(content):,} bytes; the CIRR server takes {MAX_BYTES:,}. "
                "Fix: check that the image ids are CIRR's short names."
            )
        written[metric] = content
    return written

"""Benchmarks and suites in words: what `cir datasets list` and `cir datasets show` print."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from cir_datasets import registry, sources
from cir_datasets.builders import builder_class
from cir_datasets.common.terminal import aligned, fitted
from cir_datasets.errors import OverlayError
from cir_datasets.hook import first_lines
from cir_datasets.prepared import last_prepared
from cir_datasets.registry import broken
from cir_datasets.registry.overlays import overlay_ids
from cir_datasets.registry.schema import MICRO_SUFFIX, main_metric_terms
from cir_datasets.registry.suites import Suite, find_suite, suite, suite_ids, suites_of
from cir_datasets.rows import read_table
from cir_datasets.rows.benchmark import GALLERY
from cir_datasets.rows.records import references_of
from cir_metrics.errors import UnknownNameError

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.registry.schema import ExampleIds, StrictModel
    from cir_datasets.rows.records import Row

LIST_COLUMNS = ("id", "queries", "gallery", "turns", "reference", "main_metric", "license", "status")


def listed() -> list[dict[str, Any]]:
    """One row a benchmark, a registered overlay and a suite, with `LIST_COLUMNS` and `benchmarks` as keys.

    Counts that are not published are None, and so is a suite's gallery: each member has its own. `benchmarks`
    are a suite's members, and None otherwise. An overlay whose file cannot be used is listed as broken.
    """
    rows = [_row(registry.spec(benchmark_id)) for benchmark_id in registry.benchmark_ids()]
    rows += [_broken_row(name, "folder that cannot be used, see `cir datasets show`") for name in broken()]
    rows += [_overlay_row(found) for found in overlay_ids()]
    return rows + [_suite_row(found) for found in suite_ids()]


def list_text(rows: Sequence[dict[str, Any]]) -> str:
    """The rows of `listed` as two aligned tables with a head line: the suites have one of their own."""
    cells = [[column.upper().replace("_", " ") for column in LIST_COLUMNS]]
    cells += [
        [_cell(row[column]).replace("_", " " if column == "status" else "_") for column in LIST_COLUMNS]
        for row in rows
        if row["benchmarks"] is None
    ]
    suites = [["SUITE", "QUERIES", "TURNS", "MAIN METRIC", "MEMBERS"]]
    suites += [
        [row["id"], _cell(row["queries"]), row["turns"], row["main_metric"], _members(row)]
        for row in rows
        if row["benchmarks"] is not None
    ]
    return f"{fitted(cells)}\n\n{fitted(suites)}"


def _members(row: dict[str, Any]) -> str:
    """How many members a suite has, and as many of their names as a line has room for."""
    configs = [member.partition("/")[2] for member in row["benchmarks"]]
    shown = ", ".join(configs[:_SHOWN_MEMBERS])
    more = ", ..." if len(configs) > _SHOWN_MEMBERS else ""
    return f"{len(configs)}: {shown}{more}"


_SHOWN_MEMBERS = 6


def _row(spec: BenchmarkSpec) -> dict[str, Any]:
    return {
        "id": spec.id,
        "queries": spec.config.queries,
        "gallery": spec.config.gallery,
        "turns": spec.turns,
        "reference": spec.config.reference,
        "main_metric": spec.main_metric,
        "license": spec.card.license.annotations,
        "status": spec.card.status,
        "benchmarks": None,
    }


def _overlay_row(overlay_id: str) -> dict[str, Any]:
    try:
        return _row(registry.spec(overlay_id)) | {"status": "overlay"}
    except (OverlayError, UnknownNameError):
        return _broken_row(overlay_id, "broken overlay, see `cir datasets show`")


def _broken_row(name_or_id: str, status: str) -> dict[str, Any]:
    blank: dict[str, Any] = dict.fromkeys((*LIST_COLUMNS, "benchmarks"))
    return blank | {"id": name_or_id, "status": status}


def _suite_row(suite_id: str) -> dict[str, Any]:
    found = suite(suite_id)
    specs = [registry.spec(member) for member in found.benchmarks]
    lengths = [int(part) for spec in specs for part in spec.turns.split("-") if part]
    shortest, longest = min(lengths, default="-"), max(lengths, default="-")
    return {
        "id": found.id,
        "queries": registry.queries_of(suite_id),
        "gallery": None,
        "turns": str(longest) if shortest == longest else f"{shortest}-{longest}",
        "reference": _common(spec.config.reference for spec in specs),
        "main_metric": found.main_metric,
        "license": _common(spec.card.license.annotations for spec in specs),
        "status": "suite",
        "benchmarks": list(found.benchmarks),
    }


def _common(values: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(values))


_SHOWN_IMAGES = 3
"""Images in each list of an example."""
_SHOWN_DIGITS = 12


def described(name_or_id: str) -> dict[str, Any]:
    """Everything about a benchmark, all configurations of a name, or a suite, that is not a row.

    A name may be a suite's as well, as `circled` is: then the suite stands under the key `suite`.

    Raises:
        UnknownNameError: there is no such name or id.
    """
    suite = find_suite(name_or_id)
    if suite is not None and name_or_id not in registry.names():
        return _suite(suite)
    specs = _specs(name_or_id)
    card = specs[0].card
    return {
        **_fields(card, "name", "title", "version", "status", "summary"),
        "paper": card.paper.model_dump() if card.paper.known else None,
        "license": card.license.model_dump(),
        **_fields(card, "images", "ids", "traps"),
        "source": _fields(
            card.source, "publisher", "repository", "revision", "folder", "instructions", "pages"
        ),
        "folder_schema": card.folder_schema,
        "benchmarks": [_protocol(spec) for spec in specs],
        "suites": list(suites_of(spec.base.id for spec in specs)),
        "suite": None if suite is None else _suite(suite),
    }


def _fields(part: StrictModel, *names: str) -> dict[str, Any]:
    """Some fields of a card or of a part of it, in this order."""
    values = {name: getattr(part, name) for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def described_text(name_or_id: str) -> str:
    """`described` for people."""
    found, suite = described(name_or_id), find_suite(name_or_id)
    heads = [] if suite is None else aligned(_suite_facts(suite)).splitlines()
    if suite is not None and name_or_id not in registry.names():
        title = f"{found['title']} (suite, version {found['version']})"
        return "\n".join([title, "", found["summary"], "", *heads, *_protocol_lines(found["benchmarks"])])
    spec = _specs(name_or_id)[0]
    card = spec.card
    lines = [f"{card.title} (version {card.version}, {card.status.replace('_', ' ')})", "", card.summary, ""]
    lines += aligned(_facts(spec)).splitlines()
    if found["suites"]:
        lines.append(f"suites     {', '.join(found['suites'])}")
    lines += _protocol_lines(found["benchmarks"])
    if suite is not None:
        lines += [
            "",
            f"{name_or_id}, the suite: {found['suite']['summary']}",
            *(f"  {line}" for line in heads),
        ]
    if card.folder_schema:
        lines += ["", "What the folder holds", *(f"  {line}" for line in card.folder_schema.splitlines())]
    if card.traps:
        lines += ["", "What users get wrong", *(f"  - {trap}" for trap in card.traps)]
    return "\n".join(lines)


def example_rank_file(name_or_id: str) -> str:
    """A small rank file for a benchmark, or bundle for a suite, as JSON.

    Each rank file has a row of its benchmark, with images in an order that means nothing.

    The row is the publisher's first where the data is here or was prepared before (nothing is downloaded);
    else the card's example. `method.notes` says which of the two it is.

    Raises:
        UnknownNameError: there is no such name or id.
        RecordError: the publisher's file is here and its first record breaks the format.

    Example:
        >>> json.loads(example_rank_file("shapes/val"))["rankings"]
        {'shapes_val_00000': ['val-000000', 'val-000001', 'val-000002']}
    """
    if find_suite(name_or_id) is not None:
        runs = [_example_run(registry.spec(member)) for member in registry.members_of(name_or_id)]
        return json.dumps({"format": "cir-rank-bundle", "suite": name_or_id, "runs": runs}, indent=2)
    return json.dumps(_example_run(_specs(name_or_id)[0]), indent=2)


def _example_run(spec: BenchmarkSpec) -> dict[str, Any]:
    found = _row_here(spec) or _row_of_card(spec)
    rankings = [found.images[turn:] + found.images[:turn] for turn in range(found.turns)]
    content: dict[str, Any] = {
        "format": "cir-rank-file",
        "format_version": 1,
        "benchmark": spec.id,
        "benchmark_version": spec.card.version,
        "method": {
            "name": "my method",
            "zero_shot": True,
            "text_fields": [builder_class(spec.card.name).captions_field],
            "notes": f"An example. {found.notes}",
        },
        "rankings": {found.query: rankings if spec.kind == "multi_turn" else rankings[0]},
    }
    if spec.config.subset is not None:
        content["subset_rankings"] = {found.query: found.subset}
    return content


@dataclass(frozen=True)
class _ExampleRow:
    """What an example of a rank file shows of one row; the images are not its answer."""

    query: str
    images: list[str]
    subset: list[str]
    turns: int
    notes: str


def _example(spec: BenchmarkSpec) -> ExampleIds:
    """The card's example of a configuration; where an overlay leaves its query out, one that it has."""
    example = spec.card.examples[spec.config_name]
    if spec.overlay is None or example.query in spec.overlay.labels:
        return example
    return example.model_copy(update={"query": next(iter(spec.overlay.labels))})


def _row_of_card(spec: BenchmarkSpec) -> _ExampleRow:
    example = _example(spec)
    images = list(example.images)
    notes = "The ids are the benchmark's own; the order of the images means nothing."
    if example.invented:
        notes = "The ids have the benchmark's form and were not checked: its data could not be had."
    lengths = spec.base.config.turns or {example.turns: 0}
    turns = 1 if spec.kind == "single_turn" else 2 if 2 in lengths else min(lengths)
    return _ExampleRow(example.query, images, images, turns, notes)


def _row_here(spec: BenchmarkSpec) -> _ExampleRow | None:
    """The first row of the data that is here, or None where none is."""
    rows, gallery = _data_here(spec)
    id_name = "session_id" if spec.kind == "multi_turn" else "query_id"
    kept = None if spec.overlay is None else spec.overlay.labels
    row = next((row for row in rows if kept is None or row[id_name] in kept), None)
    if row is None:
        return None
    references = references_of(row)
    removed = references if spec.config.reference == "removed" else []
    images: list[str] = []
    for image in (
        row.get(GALLERY) or gallery or (image for each in chain([row], rows) for image in references_of(each))
    ):
        if image not in removed and image not in images:
            images.append(image)
        if len(images) == _SHOWN_IMAGES:
            break
    subset = [image for image in row.get("subset_image_ids", ()) if image not in references]
    notes = "Query and images are the benchmark's own; the order of the images means nothing."
    return _ExampleRow(row[id_name], images, subset[:_SHOWN_IMAGES], len(row.get("turns", [row])), notes)


def _data_here(spec: BenchmarkSpec) -> tuple[Iterator[Row], Iterator[str] | None]:
    """Rows and gallery that can be had without a download, as far as they are read; nothing is prepared."""
    files = sources.local_files(spec.base)
    if files is not None:
        builder = builder_class(spec.card.name)(spec.base, files)
        images = builder.images()
        return builder.rows(), None if images is None else (image["image_id"] for image in images)
    last = last_prepared(spec.base)
    if last is None:
        return iter(()), None
    rows = iter(read_table(last.rows_file).to_pylist())
    if last.images_file is None:
        return rows, None
    return rows, iter(read_table(last.images_file, ["image_id"]).column(0).to_pylist())


def _suite(found: Suite) -> dict[str, Any]:
    return {
        **found.model_dump(mode="json"),
        "queries": registry.queries_of(found.id),
        "benchmarks": [_protocol(registry.spec(member)) for member in found.benchmarks],
    }


def _suite_facts(found: Suite) -> list[list[str]]:
    main = ", ".join(main_metric_terms(found.main_metric))
    rows = [
        ["members", ", ".join(found.benchmarks)],
        ["queries", _cell(registry.queries_of(found.id))],
        ["metrics", ", ".join(found.metrics)],
        ["main", found.main_metric],
        ["macro", f"mean of the members' values, each member weighs the same; printed as {main}"],
    ]
    if "micro" in found.averages:
        micro = ", ".join(name + MICRO_SUFFIX for name in main_metric_terms(found.main_metric))
        rows.append(["micro", f"the mean weighted by the members' queries; printed as {micro}"])
    return [
        *rows,
        ["answer", f"a bundle, one rank file a member; an example: cir datasets show {found.id} --format"],
        ["source", found.source],
    ]


def _specs(name_or_id: str) -> list[BenchmarkSpec]:
    if name_or_id in registry.names():
        return [registry.spec(f"{name_or_id}/{config}") for config in registry.card(name_or_id).configs]
    return [registry.spec(name_or_id)]


def _overlay(spec: BenchmarkSpec) -> dict[str, Any] | None:
    if spec.overlay is None:
        return None
    labels = Counter(label for label in spec.overlay.labels.values() if label is not None)
    return {"name": spec.overlay.name, "source": spec.overlay.source, "labels": dict(labels.most_common())}


def _protocol(spec: BenchmarkSpec) -> dict[str, Any]:
    config = spec.config
    return {
        "id": spec.id,
        "kind": spec.kind,
        **_fields(config, "split", "queries", "gallery"),
        "gallery_kind": spec.card.gallery,
        **_fields(config, "gallery_from", "gallery_optional", "reference", "ground_truth", "subset", "turns"),
        "metrics": list(spec.metrics),
        "main_metric": spec.main_metric,
        "example": _example(spec).model_dump(exclude={"turns"}),
        "overlay": _overlay(spec),
        "files": _files(spec),
        "note": config.note,
    }


def _files(spec: BenchmarkSpec) -> list[dict[str, Any]]:
    """The publisher's files: what the card pins, and what was found when the benchmark was last prepared."""
    last = last_prepared(spec)
    got = {} if last is None else last.meta["sources"]
    pins = sources.pins(spec.card.name)
    rows = []
    for name in (*spec.config.files, *spec.config.gallery_files):
        pin = pins.get(name)
        rows.append(
            {
                "name": name,
                "pinned": None if pin is None else {"sha256": pin.sha256, "num_bytes": pin.bytes},
                "got": got.get(name),
            }
        )
    return rows


def _facts(spec: BenchmarkSpec) -> list[list[str]]:
    card, source = spec.card, spec.card.source
    lines = first_lines(card.name, spec.config_id, spec.config.split)
    where = "embedded" if source.publisher == "embedded" else f"{source.repository} ({source.publisher})"
    at = "" if source.publisher == "embedded" else f", {source.revision or 'unpinned: no revision is known'}"
    if source.publisher == "unpublished":
        where, at = "pending publication, see ", ", ".join(source.pages)
    return [
        ["load", lines[0]],
        *(["", line] for line in lines[1:]),
        ["paper", f"{card.paper.text} {card.paper.url}" if card.paper.known else "none stated"],
        ["licence", f"annotations: {card.license.annotations}; images: {card.license.images}"],
        ["publisher", where + at],
        ["by hand", source.instructions],
        ["images", card.images],
        ["ids", card.ids],
        ["metrics", ", ".join((*card.metrics, *card.multi_turn_metrics))],
    ]


def _protocol_facts(protocol: dict[str, Any]) -> list[list[str]]:
    gallery = (
        _cell(protocol["gallery"])
        + registry.GALLERY_NOTES[protocol["gallery_kind"]]
        + (f" (of {protocol['gallery_from']})" if protocol["gallery_from"] else "")
    )
    noun = "sessions" if protocol["kind"] == "multi_turn" else "queries"
    rows = [
        [noun, f"{_cell(protocol['queries'])} ({protocol['split']})"],
        ["gallery", gallery + (", optional" if protocol["gallery_optional"] else "")],
        ["reference", f"{protocol['reference']} in the ranking".replace("removed in", "removed from")],
        ["truth", protocol["ground_truth"]],
        ["main", protocol["main_metric"]],
        ["example", _example_ids(noun, protocol["example"])],
    ]
    if protocol["overlay"]:
        laid = protocol["overlay"]
        labels = ", ".join(f"{count:,} {label}" for label, count in laid["labels"].items())
        said = "; ".join(filter(None, (laid["source"], labels))) or "no source and no labels given"
        rows.append(["overlay", f"{laid['name']}: {said}"])
    if protocol["turns"]:
        rows.append(
            ["turns", ", ".join(f"{count:,} of {turns}" for turns, count in protocol["turns"].items())]
        )
    return rows


def _protocol_lines(protocols: Sequence[dict[str, Any]]) -> list[str]:
    lines = []
    for protocol in protocols:
        facts = aligned(_protocol_facts(protocol)).splitlines()
        lines += ["", protocol["id"], *(f"  {line}" for line in facts)]
        lines += [f"  file       {line}" for line in map(_file_line, protocol["files"])]
        if protocol["note"]:
            lines.append(f"  note       {protocol['note']}")
    return lines


def _example_ids(noun: str, example: dict[str, Any]) -> str:
    ids = f"{'session' if noun == 'sessions' else 'query'} {example['query']}, image {example['images'][0]}"
    return f"{ids} (not checked: the data could not be had)" if example["invented"] else ids


def _file_line(file: dict[str, Any]) -> str:
    pin, got = file["pinned"], file["got"]
    state = f"pinned {pin['sha256'][:_SHOWN_DIGITS]}, {pin['num_bytes']:,} bytes" if pin else "unpinned"
    if got is not None and not got["pinned"]:
        revision = f", revision {got['revision']}" if got["revision"] else ""
        digits, size = got["sha256"][:_SHOWN_DIGITS], got["num_bytes"]
        state += f"; got {digits}, {size:,} bytes, from {got['origin']}{revision}"
    return f"{file['name']}  {state}"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)

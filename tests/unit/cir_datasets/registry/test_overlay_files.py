"""Overlays: filter lists over a benchmark, from a file to a score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets_publishers as made
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmark_world import rank_file_of
from typer.testing import CliRunner, Result

import cir_datasets
import submissions
from cir_datasets.errors import OverlayError
from cir_datasets.registry import read_overlay
from cir_metrics.errors import CallError, UnknownNameError
from leaderboard.cli import build

SHORT = {
    "overlay": "short",
    "benchmark": "cirr/val",
    "benchmark_version": 1,
    "source": "a made-up audit",
    "queries": {"902": "kept", "900": None},
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three queries of CIRR, 900 to 902, and empty folders for everything else."""
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CIR_OVERLAYS", str(tmp_path / "overlays"))
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr("cir_datasets.sources._warn_if_changed", lambda file: None)
    made.write_cirr(tmp_path / "home", "val")
    return tmp_path


def write(folder: Path, **changes: Any) -> Path:
    content = {key: value for key, value in {**SHORT, **changes}.items() if value != "absent"}
    return made.write(folder / "short.json", content)


def place(home: Path) -> Path:
    """Put the overlay where registered ones lie, without a check of its ids: the counts here are invented."""
    return made.write(home / "overlays/cirr/val/short.json", SHORT)


def load(benchmark_id: str, **options: Any) -> Any:
    return cir_datasets.load(benchmark_id, verification_mode="no_checks", **options)


def rank_file(benchmark: str, queries: list[str]) -> bytes:
    rankings = {}
    for number, query in enumerate(queries):
        images = made.cirr_images("val")
        reference = images[int(query) - 900] if query.isdigit() and int(query) < 908 else None
        others = [image for image in images if image != reference]
        rankings[query] = others[number:] + others[:number]
    subsets = {
        query: [image for image in images[:6] if image != images[int(query) - 900]][:3] for query in queries
    }
    return json.dumps(rank_file_of(benchmark, rankings, subset_rankings=subsets)).encode()


def test_an_overlay_filters_rows_in_their_order_and_keeps_gallery_and_protocol(home: Path) -> None:
    place(home)
    base, overlay = load("cirr/val"), load("cirr/val+short")
    assert (overlay.id, overlay.version, overlay.query_ids) == ("cirr/val+short", 1, ["900", "902"])
    assert overlay.column("overlay_label") == [None, "kept"]
    assert overlay.left_out == {"901"}
    assert (overlay.gallery, overlay.gallery_hash) == (base.gallery, base.gallery_hash)
    assert overlay.excludes_reference
    assert overlay.spec.config.queries == 2
    kept = [row for row in base.rows() if row["query_id"] != "901"]
    assert overlay.data_hash == cir_datasets.Benchmark.from_rows(base.spec, kept, None).data_hash
    assert overlay.data_hash != base.data_hash
    assert overlay.checks_skipped == base.checks_skipped == ("counts",)


def test_an_overlay_need_not_be_registered(home: Path) -> None:
    path = write(home)
    assert load("cirr/val", overlay=path).query_ids == ["900", "902"]
    assert load("cirr/val", overlay=read_overlay(path)).id == "cirr/val+short"
    with pytest.raises(UnknownNameError, match=r"no benchmark 'cirr/val\+short'.*overlay add"):
        load("cirr/val+short")
    with pytest.raises(CallError, match="made for cirr/val#1, not for circo/val#1"):
        load("circo/val", overlay=read_overlay(path))


def test_a_changed_list_is_another_benchmark_under_the_same_name(home: Path) -> None:
    place(home)
    first = load("cirr/val+short")
    made.write(home / "overlays/cirr/val/short.json", {**SHORT, "queries": ["901"]})
    second = load("cirr/val+short")
    assert second.query_ids == ["901"]
    assert first.data_hash != second.data_hash


def test_a_file_for_the_whole_benchmark_answers_the_overlay(home: Path) -> None:
    place(home)
    overlay = load("cirr/val+short")
    report = submissions.score(rank_file("cirr/val", ["900", "901", "902"]), overlay)
    assert (report.benchmark, report.n) == ("cirr/val+short", 2)
    assert {f.code: f.count for f in report.warnings}["outside-overlay"] == 1
    signature = str(report.signatures["recall@1"])
    assert signature.startswith(f"cirr/val+short#1 | data:{overlay.data_hash[:7]} | ")
    alone = submissions.score(rank_file("cirr/val+short", ["900", "902"]), overlay)
    assert "outside-overlay" not in {found.code for found in alone.warnings}
    assert alone.signatures["recall@1"].key == report.signatures["recall@1"].key


def test_the_score_on_an_overlay_is_the_mean_over_its_queries(home: Path) -> None:
    place(home)
    content = rank_file("cirr/val", ["900", "901", "902"])
    whole = submissions.score(content, load("cirr/val"), per_query=True)
    part = submissions.score(content, load("cirr/val+short"), per_query=True)
    kept = [row for row in whole.per_query or [] if row["query_id"] != "901"]
    assert part.per_query == kept
    assert part.metrics["recall@5"] == sum(row["recall@5"] for row in kept) / 2


def test_servers_files_answer_an_overlay_too(home: Path) -> None:
    place(home)
    native = json.loads(rank_file("cirr/val", ["900", "901", "902"]))
    server = {"version": "rc2", "metric": "recall", **native["rankings"]}
    report = submissions.validate(json.dumps(server).encode(), load("cirr/val+short"), part=True)
    assert report.ok, report.text()
    assert report.queries == 2


@pytest.mark.parametrize(
    ("benchmark", "queries", "code"),
    [
        ("cirr/val", ["900", "902", "907"], "unknown-query"),
        ("cirr/val", ["900"], "missing-query"),
        ("cirr/train", ["900", "902"], "wrong-benchmark"),
    ],
)
def test_an_overlay_forgives_nothing_else(benchmark: str, queries: list[str], code: str, home: Path) -> None:
    place(home)
    report = submissions.validate(rank_file(benchmark, queries), load("cirr/val+short"))
    assert code in {finding.code for finding in report.errors}


def test_a_file_for_an_overlay_does_not_answer_the_whole(home: Path) -> None:
    place(home)
    report = submissions.validate(rank_file("cirr/val+short", ["900", "902"]), load("cirr/val"))
    assert [finding.code for finding in report.errors] == ["wrong-benchmark"]


def test_parquet_lists_labels_in_a_column(home: Path) -> None:
    table = pa.table({"query_id": ["902", "901"], "label": ["a", None]})
    pq.write_table(table, home / "audit.parquet")
    overlay = read_overlay(home / "audit.parquet", benchmark="cirr/val")
    assert (overlay.id, overlay.labels) == ("cirr/val+audit", {"902": "a", "901": None})
    said = table.replace_schema_metadata(
        {"overlay": "told", "benchmark": "cirr/val", "benchmark_version": "1", "source": "an audit"}
    )
    pq.write_table(said, home / "audit.parquet")
    read = read_overlay(home / "audit.parquet")
    assert (read.id, read.source) == ("cirr/val+told", "an audit")
    pq.write_table(said.replace_schema_metadata({"benchmark_version": "2"}), home / "audit.parquet")
    with pytest.raises(OverlayError, match=r"made for version 2; cirr/val is at version 1"):
        read_overlay(home / "audit.parquet", benchmark="cirr/val")
    pq.write_table(pa.table({"id": ["902"]}), home / "audit.parquet")
    with pytest.raises(OverlayError, match=r"its columns are id\. Fix: name the column of ids query_id"):
        read_overlay(home / "audit.parquet", benchmark="cirr/val")


def test_whole_numbers_are_ids_too(home: Path) -> None:
    assert list(read_overlay(write(home, queries=[902, "900"])).labels) == ["902", "900"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"queries": []}, "it lists no queries"),
        ({"queries": "absent"}, 'it lists no "queries"'),
        ({"queries": ["900", "901", "900"]}, "entry 3: query '900' is listed twice"),
        ({"queries": ["900", None]}, "entry 2: None is not a query id"),
        ({"queries": [True]}, "entry 1: True is not a query id"),
        ({"queries": {"900": 3}}, "entry 1 .query '900'.: its label is 3"),
        ({"benchmark_version": 2}, "made for version 2; cirr/val is at version 1"),
        ({"benchmark_version": "absent"}, "does not say a benchmark_version"),
        ({"benchmark": "absent"}, "does not say which benchmark"),
        ({"benchmark": "cirr/val+other"}, "is an overlay itself"),
        ({"overlay": "../escape"}, r"its name is '\.\./escape'"),
        ({"overlay": "val_images"}, "its name is 'val_images'"),
        ({"labels": {}}, "'labels' is not a key of an overlay"),
        ({"overlay": "short\n"}, r"its name is 'short\\n'"),
        ({"queries": {"900": "a\x1b[2J"}}, r"entry 1 .query '900'.: its label 'a\\x1b\[2J' holds a control"),
        ({"queries": {"900": "a\ud800"}}, "holds a control character"),
        ({"queries": ["900\n"]}, r"entry 1: '900\\n' is not a query id"),
        ({"source": "an audit\nof mine"}, "its source .* holds a control character"),
        ({"source": 3}, "its source is 3"),
    ],
)
def test_what_is_wrong_with_a_list_is_said(changes: dict[str, Any], words: str, home: Path) -> None:
    path = write(home, **changes)
    with pytest.raises(OverlayError, match=words) as raised:
        read_overlay(path)
    assert str(path) in str(raised.value)
    assert "Fix: " in str(raised.value)


def test_broken_json_is_located(home: Path) -> None:
    path = home / "broken.json"
    path.write_text('{"overlay": "short",\n "queries": [}', encoding="utf-8")
    with pytest.raises(OverlayError, match="line 2, column 14: not JSON"):
        read_overlay(path)
    path.write_text('{"queries": {"900": null, "900": "a"}}', encoding="utf-8")
    with pytest.raises(OverlayError, match="the key '900' occurs twice in one object"):
        read_overlay(path)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(OverlayError, match="holds no JSON object"):
        read_overlay(path)
    with pytest.raises(OverlayError, match="cannot be read: No such file"):
        read_overlay(home / "nothing.json")


def test_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_overlay(path).labels == SHORT["queries"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"benchmark_version": ' + b"1" * 5000 + b"}", "an integer of 5,000 digits"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"source": "\xff"}', "not UTF-8 text"),
        (b'{"benchmark": "cirr/val", "benchmark_version": ' + b"[" * 900 + b"]" * 900 + b"}", "for version"),
    ],
)
def test_json_that_python_cannot_read_is_refused(content: bytes, words: str, home: Path) -> None:
    path = home / "broken.json"
    path.write_bytes(content)
    with pytest.raises(OverlayError, match=words) as raised:
        read_overlay(path)
    assert str(path) in str(raised.value)
    assert "Fix: " in str(raised.value)


@pytest.mark.parametrize("version", ["\u00b2", "\u0661", "9" * 5000, "-1", ""])
def test_a_version_in_parquet_is_plain_digits(version: str, home: Path) -> None:
    said = pa.table({"query_id": ["902"]}).replace_schema_metadata({"benchmark_version": version})
    pq.write_table(said, home / "audit.parquet")
    with pytest.raises(OverlayError, match=r"audit\.parquet: it was made for version .*Fix: "):
        read_overlay(home / "audit.parquet", benchmark="cirr/val")


@pytest.mark.parametrize("dictionary", [True, False])
def test_whole_numbers_in_parquet_are_ids_too(dictionary: bool, home: Path) -> None:
    table = pa.table({"query_id": pa.array([2**40 + 1, 902]), "label": ["kept", None], "x": [[0.5], []]})
    pq.write_table(table, home / "short.parquet", use_dictionary=dictionary)
    found = read_overlay(home / "short.parquet", benchmark="cirr/val")
    assert dict(found.labels) == {str(2**40 + 1): "kept", "902": None}


UNFOLDED: dict[str, tuple[dict[str, Any], str]] = {
    "rows": ({"query_id": (3_000_000, "x")}, "it has 3,000,000 rows; at most 1,000,000 are read"),
    "long ids": (
        {"query_id": (100_000, "x" * 2_000)},
        "its ids and labels unfold to more than 67,108,864 bytes",
    ),
    "long labels": (
        {"query_id": (100_000, "x"), "label": (100_000, "y" * 2_000)},
        "its ids and labels unfold to more than 67,108,864 bytes",
    ),
}


@pytest.mark.parametrize(("columns", "words"), UNFOLDED.values(), ids=UNFOLDED)
def test_parquet_that_unfolds_is_refused_before_it_is_decoded(
    columns: dict[str, tuple[int, str]], words: str, home: Path
) -> None:
    path = home / "short.parquet"
    arrays = {
        name: pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), [text])
        for name, (count, text) in columns.items()
    }
    pq.write_table(pa.table(arrays), path, compression="zstd")
    assert path.stat().st_size < 100_000
    with pytest.raises(OverlayError, match=words):
        read_overlay(path, benchmark="cirr/val")


def test_other_columns_of_parquet_are_not_decoded(home: Path) -> None:
    path = home / "short.parquet"
    # Half a gigabyte where it is decoded.
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(5_000, np.int32)), ["y" * 100_000])
    wide = pa.ListArray.from_arrays([0, 5_000], texts)
    pq.write_table(pa.table({"query_id": ["902"], "x": wide}), path, compression="zstd")
    assert list(read_overlay(path, benchmark="cirr/val").labels) == ["902"]


def test_a_file_of_more_bytes_than_a_list_has_is_refused(home: Path) -> None:
    for name in ("short.json", "short.parquet"):
        with (home / name).open("wb") as handle:
            handle.truncate(2**26 + 1)
        with pytest.raises(OverlayError, match="it has more than 67,108,864 bytes"):
            read_overlay(home / name, benchmark="cirr/val")


def test_metadata_of_others_is_left_alone_and_ours_must_be_text(home: Path) -> None:
    table = pa.table({"query_id": ["902"]})
    pq.write_table(table.replace_schema_metadata({b"\xff": b"\xfe"}), home / "audit.parquet")
    assert read_overlay(home / "audit.parquet", benchmark="cirr/val").id == "cirr/val+audit"
    pq.write_table(table.replace_schema_metadata({b"source": b"\xff"}), home / "audit.parquet")
    with pytest.raises(OverlayError, match=r"audit\.parquet: the source in its metadata is not UTF-8.*Fix: "):
        read_overlay(home / "audit.parquet", benchmark="cirr/val")
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"], pa.binary()).buffers())
    pq.write_table(pa.table({"query_id": broken}), home / "audit.parquet")
    with pytest.raises(OverlayError, match=r"the Parquet file is damaged: .*UTF8.*Fix: "):
        read_overlay(home / "audit.parquet", benchmark="cirr/val")


def test_unknown_queries_are_named_when_rows_are_at_hand(home: Path) -> None:
    load("cirr/val")
    path = write(home, queries=["900", "x", "y"])
    with pytest.raises(OverlayError, match=r"2 of its 3 queries are unknown to cirr/val: 'x', 'y'\."):
        load("cirr/val", overlay=path)


def test_add_puts_it_where_it_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CIR_DATA_HOME")  # nothing to check the ids against yet
    added = cir_datasets.add_overlay(write(home))
    assert added.id == "cirr/val+short"
    assert cir_datasets.overlay_ids() == ("cirr/val+short",)
    assert cir_datasets.spec("cirr/val+short").overlay == added
    assert "cirr/val+short" not in cir_datasets.benchmark_ids()


def test_an_existing_name_is_replaced_only_on_demand(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CIR_DATA_HOME")
    cir_datasets.add_overlay(write(home))
    registered = home / "overlays/cirr/val/short.json"
    before = registered.read_bytes()
    other = write(home, queries=["901"])
    with pytest.raises(OverlayError, match=r"short\.json: cirr/val\+short is registered already .*--replace"):
        cir_datasets.add_overlay(other)
    assert registered.read_bytes() == before
    assert list(registered.parent.iterdir()) == [registered]
    assert list(cir_datasets.add_overlay(other, replace=True).labels) == ["901"]
    assert list(cir_datasets.spec("cirr/val+short").overlay.labels) == ["901"]  # type: ignore[union-attr]


def test_the_example_of_an_overlay_is_a_query_that_it_has(home: Path) -> None:
    from cir_datasets.audit.describe import described, example_rank_file

    made.write(home / "overlays/cirr/val/short.json", {**SHORT, "queries": ["902"]})
    (protocol,) = described("cirr/val+short")["benchmarks"]
    assert protocol["example"]["query"] == "902"
    assert list(json.loads(example_rank_file("cirr/val+short"))["rankings"]) == ["902"]
    (home / "home/cirr/captions/cap.rc2.val.json").unlink()  # nothing here: the card's example
    assert list(json.loads(example_rank_file("cirr/val+short"))["rankings"]) == ["902"]


def test_add_checks_the_ids_where_it_can(home: Path) -> None:
    queries = [f"shapes_val_{number:04d}" for number in range(2)]
    known = cir_datasets.load("shapes/val").query_ids[:2]
    version = cir_datasets.spec("shapes/val").card.version
    bad = write(home, benchmark="shapes/val", benchmark_version=version, queries=["nothing", *queries])
    with pytest.raises(OverlayError, match="unknown to shapes/val"):
        cir_datasets.add_overlay(bad)
    assert cir_datasets.overlay_ids() == ()
    good = write(home, benchmark="shapes/val", benchmark_version=version, queries=known)
    assert cir_datasets.add_overlay(good).id == "shapes/val+short"
    assert cir_datasets.load("shapes/val+short").query_ids == known


def test_sessions_have_overlays_too(home: Path) -> None:
    whole = cir_datasets.load("shapes/multiturn_val")
    sessions, version = whole.query_ids[3:6], whole.spec.card.version
    cir_datasets.add_overlay(
        write(home, benchmark="shapes/multiturn_val", benchmark_version=version, queries=sessions)
    )
    overlay = cir_datasets.load("shapes/multiturn_val+short")
    assert overlay.query_ids == sessions
    assert overlay.multi_turn
    assert overlay.spec.turns == "2-6"


@pytest.mark.parametrize("name", ["../../etc/passwd", "Short", "", "sh ort", "short/../short", "short\n"])
def test_a_name_never_leaves_the_folder(name: str, home: Path) -> None:
    place(home)
    with pytest.raises(UnknownNameError, match="no benchmark"):
        cir_datasets.spec(f"cirr/val+{name}")


def test_a_broken_overlay_is_listed_as_such(home: Path) -> None:
    from cir_datasets.audit.describe import described, listed

    place(home)
    made.write(home / "overlays/cirr/val/bad.json", {**SHORT, "overlay": "bad", "queries": []})
    rows = {row["id"]: row for row in listed()}
    assert (rows["cirr/val+short"]["queries"], rows["cirr/val+short"]["status"]) == (2, "overlay")
    assert rows["cirr/val+bad"]["status"].startswith("broken overlay")
    (protocol,) = described("cirr/val+short")["benchmarks"]
    assert protocol["overlay"] == {"name": "short", "source": "a made-up audit", "labels": {"kept": 1}}
    with pytest.raises(OverlayError, match="it lists no queries"):
        described("cirr/val+bad")


def test_load_dataset_knows_registered_overlays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import get_dataset_config_names, load_dataset

    place(home)
    rows = load_dataset("cirr", "val+short", verification_mode="no_checks", cache_dir=str(home / "hf"))
    assert rows["validation"]["query_id"][:] == ["900", "902"]
    assert rows["validation"]["overlay_label"][:] == [None, "kept"]
    assert "val+short" in get_dataset_config_names("cirr")


def test_a_file_that_names_a_broken_overlay_is_refused_without_naming_ours(home: Path) -> None:
    made.write(home / "overlays/cirr/val/bad.json", {**SHORT, "overlay": "bad", "queries": []})
    content = rank_file("cirr/val+bad", ["900"])
    (finding,) = submissions.validate(content).findings
    assert (finding.code, finding.message) == (
        "wrong-benchmark",
        'the overlay of "cirr/val+bad" is broken here.',
    )
    bundle = {"format": "cir-rank-bundle", "suite": "fashioniq/val", "runs": [json.loads(content)]}
    report = submissions.validate(json.dumps(bundle).encode())
    assert {found.code for found in report.findings} == {"wrong-benchmark"}
    assert str(home) not in report.text()


def overlay(*arguments: str) -> Result:
    return CliRunner().invoke(build(), ["datasets", "overlay", *arguments])


def test_the_command_line_registers_lists_and_refuses(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", "")
    added = overlay("add", str(write(home)))
    assert (added.exit_code, added.stdout) == (0, "cirr/val+short: 2 queries\n")
    listed = CliRunner().invoke(build(), ["datasets", "list"])
    assert "cirr/val+short 2 " in " ".join(listed.stdout.split())
    again = overlay("add", str(write(home, queries=["901"])))
    assert (again.exit_code, again.stdout) == (1, "")
    assert "is registered already" in str(again.exception)
    replaced = overlay("add", str(write(home, queries=["901"])), "--replace")
    assert (replaced.exit_code, replaced.stdout) == (0, "cirr/val+short: 1 query\n")
    refused = overlay("add", str(write(home, queries=[])))
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "it lists no queries. Fix: list at least one query id." in str(refused.exception)


def test_overlays_are_listed_with_what_they_leave_and_where_they_lie(home: Path) -> None:
    assert "No overlay is registered in " in overlay("list").output
    labelled = place(home)
    broken = made.write(home / "overlays/circo/val/odd.json", {**SHORT, "overlay": "odd"})
    plain = made.write(
        home / "overlays/cirr/val/plain.json", {**SHORT, "overlay": "plain", "queries": ["901"]}
    )
    listed = json.loads(overlay("list", "--json").output)
    assert [(row["id"], row["kind"], row["queries"], row["file"]) for row in listed] == [
        ("circo/val+odd", "", "", str(broken)),
        ("cirr/val+plain", "filter", "1 of 4,181", str(plain)),
        ("cirr/val+short", "filter with labels", "2 of 4,181", str(labelled)),
    ]
    assert "it is laid over 'cirr/val', not 'circo/val'" in listed[0]["error"]
    lines = overlay("list").output.splitlines()
    assert lines[0].split() == ["NAME", "BENCHMARK", "KIND", "QUERIES", "FILE"]
    assert lines[3].split("  ")[0] == "short"
    assert lines[3].endswith(str(labelled))


@pytest.mark.parametrize("name", ["short", "cirr/val+short"])
def test_an_overlay_is_removed_by_its_name_or_id(name: str, home: Path) -> None:
    file = place(home)
    assert overlay("remove", name).output == f"cirr/val+short: removed ({file} is deleted)\n"
    assert not file.exists()
    with pytest.raises(UnknownNameError):
        load("cirr/val+short")


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("cirr/val", CallError, "cirr/val is a benchmark or a suite, not an overlay; nothing was removed."),
        ("cirr", CallError, "cirr is a benchmark or a suite, not an overlay"),
        ("fashioniq/val", CallError, "fashioniq/val is a benchmark or a suite, not an overlay"),
        ("cirr/val+shart", UnknownNameError, "Did you mean 'cirr/val+short'? Fix: choose one of circo/val+"),
        ("../cirr/val+x", UnknownNameError, "choose one of circo/val+twice, cirr/val+short, cirr/val+twice."),
        ("", UnknownNameError, "no overlay ''."),
        ("twice", CallError, "lies over several benchmarks. Fix: name one: circo/val+twice, cirr/val+twice."),
    ],
)
def test_what_cannot_be_removed_says_what_can(
    name: str, error: type[Exception], words: str, home: Path
) -> None:
    place(home)
    for base in ("cirr", "circo"):
        made.write(home / f"overlays/{base}/val/twice.json", {**SHORT, "overlay": "twice"})
    refused = overlay("remove", name)
    assert isinstance(refused.exception, error)
    assert words in str(refused.exception)
    assert len(list((home / "overlays").rglob("*.json"))) == 3


def test_with_no_overlay_there_is_nothing_to_remove() -> None:
    assert "none is registered; there is nothing to remove." in str(overlay("remove", "short").exception)

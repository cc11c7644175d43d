"""`cir convert` and what it says about what a format cannot hold."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import pytest
from cir_here import cir
from says import refusal, says

import submissions
from cir_metrics.errors import CallError
from submissions import ConversionError, RankFile

CIRR = worlds.cirr()
FASHIONIQ = [worlds.fashioniq(category) for category in ("dress", "shirt", "toptee")]
BY_ID = {benchmark.id: benchmark for benchmark in FASHIONIQ}
BUNDLE = json.dumps(worlds.fashioniq_bundle(FASHIONIQ)).encode()


def document(**method: Any) -> dict[str, Any]:
    return {**worlds.cirr_document(CIRR), "method": {"name": "CLIP sum", **method}}


NATIVE = json.dumps(document()).encode()


def notes(content: Any, to: str, benchmark: Any = CIRR) -> list[str]:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return [note for made in submissions.convert([raw], to, benchmark=benchmark) for note in made.notes]


@pytest.mark.parametrize("to", ["native", "lines", "parquet"])
@pytest.mark.parametrize(
    "rankings",
    [{"s0": [], "s1": [["im1"], []]}, {"s1": [[], ["im1"]], "s0": []}, {"s0": [], "s1": []}],
    ids=["first", "last", "all"],
)
def test_a_session_without_turns_is_read_back(to: str, rankings: dict[str, Any]) -> None:
    benchmark = worlds.circled()
    content = json.dumps({**worlds.circled_document(benchmark), "rankings": rankings}).encode()
    (made,) = submissions.convert([content], to, benchmark=benchmark)
    found = submissions.read(made.content, benchmark=benchmark)
    assert dict(found.rankings) == rankings


CIRCO, DRESS, HIDDEN = worlds.circo(), FASHIONIQ[0], worlds.cirr("test1")
DRESSES = worlds.fashioniq_bundle([DRESS])["runs"][0]
SERVED = submissions.convert([worlds.as_bytes(DRESSES)], "fashioniq", benchmark=DRESS)[0].content
EMPTY = {"100": [], "101": ["im1"]}
LONGER = document() | worlds.cirr_document(CIRR, 55) | {"method": {"name": "CLIP sum"}}
LONGER["subset_rankings"]["100"].append("im4")


@pytest.mark.parametrize(
    ("content", "to", "benchmark", "count", "text"),
    [
        (document(backbone="ViT", notes="x"), "trec", CIRR, 3, 'backbone, notes are ... tag "CLIP_sum"'),
        (document(name="toy") | {"rankings": EMPTY}, "trec", CIRR, 2, "cirr/val, ... 1 ranking without"),
        (b"q Q0 a 1 0.5 toy\n", "native", CIRR, 1, "the scores of the TREC run are left out"),
        (
            LONGER,
            "cirr-server",
            CIRR,
            5,
            'judges cirr/test1 ... "CLIP sum" ... 6 rankings ... 1 ranking of a',
        ),
        (worlds.circo_document(CIRCO), "circo-server", CIRCO, 3, 'judges circo/test alone ... method "toy"'),
        # A split that its server judges goes there without that warning; what never had a method loses none.
        (worlds.cirr_document(HIDDEN), "cirr-server", HIDDEN, 2, 'cirr/test1, version 1, ... method "toy"'),
        (DRESSES, "fashioniq", DRESS, 2, 'fashioniq/dress_val, version 1, ... method "toy"'),
        (SERVED, "fashioniq", DRESS, 0, ""),
    ],
)
def test_what_a_format_cannot_hold_is_named(
    content: Any, to: str, benchmark: Any, count: int, text: str
) -> None:
    found = notes(content, to, benchmark)
    assert len(found) == count, found
    says("\n".join(found), text)


@pytest.mark.parametrize(("to", "times"), [("native", 1), ("lines", 1), ("trec", 2)])
def test_what_would_not_be_read_again_is_not_written(
    to: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = submissions.convert([NATIVE], "parquet", benchmark=CIRR)[0].content
    size = len(submissions.convert([packed], to, benchmark=CIRR)[0].content)
    monkeypatch.setattr("submissions.transform.convert.MAX_BYTES", 0)
    limit = (size + times - 1) // times
    # Parquet of the same rankings unfolds to less, so that it is read where the text is not.
    (made,) = submissions.convert([packed], to, benchmark=CIRR, max_bytes=limit)
    assert isinstance(submissions.read(made.content, benchmark=CIRR, max_bytes=limit), RankFile)
    with pytest.raises(ConversionError) as caught:
        submissions.convert([packed], to, benchmark=CIRR, compress=True, max_bytes=limit - 1)
    says(caught, f"the {to} file would have {size:,} bytes ... at most {times * (limit - 1):,} are read")
    says(caught, "Fix: choose --to parquet, or rank fewer images")


@pytest.mark.parametrize("to", ["lines", "parquet"])
def test_subsets_alone_are_not_a_rank_file(to: str) -> None:
    parts = submissions.convert([NATIVE], "cirr-server", benchmark=CIRR)
    alone = parts[1].content
    with pytest.raises(ConversionError, match=f"a {to} rank file also ranks the gallery"):
        submissions.convert([alone], to, benchmark=CIRR)
    (run,) = submissions.convert([alone], "trec", benchmark=CIRR)
    assert run.content.startswith(b"100#subset Q0 im1 1 3 ")
    (joined,) = submissions.convert([run.content, parts[0].content], "lines", benchmark=CIRR)
    found = submissions.read(joined.content)
    assert (len(found.rankings), len(found.subset_rankings)) == (6, 6)


def test_a_bundle_becomes_one_file_a_member() -> None:
    made = submissions.convert([BUNDLE], "parquet", benchmark=BY_ID)
    assert [each.part for each in made] == [
        "fashioniq-dress_val",
        "fashioniq-shirt_val",
        "fashioniq-toptee_val",
    ]
    found = [submissions.read(each.content) for each in made]
    assert [each.benchmark for each in found if isinstance(each, RankFile)] == list(BY_ID)
    kits = submissions.convert([BUNDLE], "fashioniq", benchmark=BY_ID)
    assert [len(json.loads(each.content)) for each in kits] == [4, 4, 4]
    (whole,) = submissions.convert([BUNDLE], "native", name="other", compress=True)
    bundle = submissions.read(whole.content)
    assert {run.method.name for run in bundle.runs} == {"other"}
    with refusal("a bundle is converted alone. Fix: name one bundle", ConversionError):
        submissions.convert([BUNDLE, BUNDLE], "lines")


@pytest.mark.parametrize(
    ("to", "why"), [("parquet", "is compressed already"), ("cirr-server", "is read by others as plain JSON")]
)
def test_a_format_that_is_compressed_or_read_plain_is_not_compressed(to: str, why: str) -> None:
    with pytest.raises(CallError, match=rf"^{to} {why}\. Fix: drop --gzip and the ending \.gz, or choose"):
        submissions.convert([NATIVE], to, benchmark=CIRR, compress=True)


@pytest.mark.parametrize("files", ["run.json", b"{}", Path("x")])
def test_what_is_not_a_list_of_files_is_named(files: Any) -> None:
    for call in (lambda: submissions.convert(files, "trec"), lambda: submissions.fuse(files)):
        with refusal(f"files is of type {type(files).__name__} ... pass a list", CallError):
            call()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("converted")
    submissions.write(submissions.make_rank_file("shapes/val", "random"), folder / "run.json")
    submissions.write(submissions.make_rank_file("shapes/multiturn_val", "random"), folder / "turns.json")
    return folder


@pytest.mark.parametrize(
    ("to", "name"), [("lines", "run.jsonl"), ("parquet", "run.parquet"), ("trec", "run.trec")]
)
def test_the_name_ends_as_the_format_does(folder: Path, to: str, name: str) -> None:
    done = cir("convert", "run.json", "--to", to, folder=folder)
    assert (done.returncode, done.stdout) == (0, f"{folder / name}\n")
    scored = cir("score", name, "--json", "--benchmark", "shapes/val", folder=folder)
    wanted = submissions.score(folder / "run.json")
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)["metrics"] == wanted.metrics
    lost = done.stderr.splitlines()
    assert all(line.startswith(f"{folder / name}: ") for line in lost)
    assert bool(lost) is (to == "trec")


def test_large_files_are_compressed_quickly() -> None:
    images = [f"folder-image_{number:06d}-jpg" for number in range(50)]
    for queries, level in ((20, 9), (14_000, 2)):
        rankings = {f"{number}": images for number in range(queries)}
        content = json.dumps({**document(), "rankings": rankings}).encode()
        (plain,) = submissions.convert([content], "lines", benchmark=CIRR)
        (packed,) = submissions.convert([content], "lines", benchmark=CIRR, compress=True)
        assert (len(plain.content) > 2**24) == (level == 2)
        assert packed.content == gzip.compress(plain.content, level, mtime=0)


def test_gzip_by_option_or_by_name(folder: Path) -> None:
    done = cir("convert", "run.json", "--to", "lines", "--gzip", folder=folder)
    assert done.stdout == f"{folder / 'run.jsonl.gz'}\n"
    packed = (folder / "run.jsonl.gz").read_bytes()
    done = cir("convert", "run.json", "--to", "lines", "--out", "named.gz", folder=folder)
    assert (done.returncode, (folder / "named.gz").read_bytes()) == (0, packed)
    assert gzip.decompress(packed).startswith(b'{"format":"cir-rank-file-lines"')
    done = cir("validate", "run.jsonl.gz", folder=folder)
    assert done.stdout == "run.jsonl.gz: valid for shapes/val, 300 answered\n"
    done = cir("convert", "run.json", "--to", "parquet", "--gzip", folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    says(done.stderr, "cir: parquet is compressed already", "Fix: drop --gzip", "native, lines, trec")


def test_an_input_is_replaced_only_where_it_is_named(folder: Path) -> None:
    done = cir("convert", "run.json", "--to", "lines", "--out", "again.jsonl", folder=folder, code=0)
    done = cir("convert", "again.jsonl", "--to", "lines", folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cir: again.jsonl would be replaced. Fix: name another file with --out.\n"
    done = cir("convert", "again.jsonl", "--to", "lines", "--out", "again.jsonl", folder=folder, code=0)


def test_parts_of_a_bundle_get_names_of_their_own(folder: Path) -> None:
    (folder / "bundle.json").write_bytes(BUNDLE)
    done = cir("convert", "bundle.json", "--to", "lines", "--gzip", folder=folder, code=0)
    members = [f"fashioniq-{category}_val" for category in ("dress", "shirt", "toptee")]
    assert done.stdout.splitlines() == [str(folder / f"bundle.{member}.jsonl.gz") for member in members]
    done = cir("convert", "bundle.json", "--to", "parquet", "--out", "made/b.parquet", folder=folder)
    assert done.stdout.splitlines() == [str(folder / "made" / f"b.{member}.parquet") for member in members]


def test_an_unknown_format_names_all(folder: Path) -> None:
    done = cir("convert", "run.json", "--to", "parket", folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    says(
        done.stderr,
        "no format 'parket'",
        "Did you mean 'parquet'?",
        "native, lines, parquet, trec, json-run, cirr-server, circo-server, zerosight, fashioniq",
    )


def members(*order: int, **changes: Any) -> list[bytes]:
    """Rank files of the suite's members by their places."""
    runs = json.loads(BUNDLE)["runs"]
    return [json.dumps({**runs[place], **changes}).encode() for place in order]


def test_one_file_for_each_member_becomes_a_bundle() -> None:
    (made,) = submissions.convert(members(2, 0, 1), "native", benchmark="fashioniq/val", name="Joined")
    report = submissions.validate(made.content, BY_ID)
    assert report.ok, report.text()
    bundle = report.rank_file
    assert [run.benchmark for run in bundle.runs] == list(BY_ID)
    assert {run.method.name for run in bundle.runs} == {"Joined"}


@pytest.mark.parametrize(
    ("files", "to", "text"),
    [
        (members(0, 1), "native", "no file answers fashioniq/toptee_val. Fix: name one file for each member"),
        (members(0, 1, 1), "native", "two files answer fashioniq/shirt_val. Fix: name one of them"),
        ([*members(0, 1), NATIVE], "native", "answers cirr/val, which is not a member"),
        (members(0, 1, 2), "trec", "only a native file holds a bundle. Fix: choose --to native"),
        ([*members(0), BUNDLE], "native", "a bundle is converted alone. Fix: name one bundle"),
        (
            [*members(0, 1), *members(2, method={"name": "b"})],
            "native",
            'name 2 methods: "toy", "b" ... --name',
        ),
    ],
)
def test_files_that_are_not_a_suites_members_make_no_bundle(files: list[bytes], to: str, text: str) -> None:
    with refusal(text, ConversionError):
        submissions.convert(files, to, benchmark="fashioniq/val")

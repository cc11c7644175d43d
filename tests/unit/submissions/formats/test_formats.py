"""The CIRR and CIRCO servers' formats, read, written and converted; and bundles."""

from __future__ import annotations

import json
from typing import Any

import benchmark_world as worlds
import pytest
from says import says

import submissions
from cir_datasets.registry.suites import suite
from cir_metrics.errors import UnknownNameError
from submissions import ConversionError, RefusedError
from submissions.formats import servers

HIDDEN = worlds.cirr("test1")
NATIVE = json.dumps(worlds.cirr_document(HIDDEN, 55)).encode()
CIRCO_TEST = worlds.circo("test")
CIRCO_NATIVE = json.dumps(worlds.circo_document(CIRCO_TEST)).encode()


def split() -> dict[str, bytes]:
    return {
        made.part: made.content for made in submissions.convert([NATIVE], "cirr-server", benchmark=HIDDEN)
    }


def test_the_servers_two_files_are_joined_in_either_order() -> None:
    files = split()
    joined = [
        submissions.convert([files[part] for part in order], "native", benchmark=HIDDEN, name="toy")[0]
        for order in (["recall", "recall_subset"], ["recall_subset", "recall"])
    ]
    assert joined[0] == joined[1]
    again = submissions.convert([joined[0].content], "cirr-server", benchmark=HIDDEN)
    assert {made.part: made.content for made in again} == files


@pytest.mark.parametrize(
    "spelling", ["{0}", '"{0}"', '"{0:06d}"', '"{0:012d}"', '"{0:012d}.jpg"', '"{0}.jpg"']
)
def test_every_spelling_of_a_coco_id_is_the_same_image(spelling: str) -> None:
    rankings = ",".join(f'"{q}":[{",".join(spelling.format(n) for n in range(1, 51))}]' for q in range(4))
    found = submissions.read(f"{{{rankings}}}".encode(), benchmark=CIRCO_TEST)
    assert found.rankings["3"][:2] == ["000000000001", "000000000002"]


@pytest.mark.parametrize("value", ["true", "1.0", "-1", '"-1"', '"1e3"', '"１"', "1000000000000"])
def test_what_is_not_a_coco_id_is_not_taken_for_one(value: str) -> None:
    document = json.loads(CIRCO_NATIVE)
    document["rankings"]["0"][4] = json.loads(value)
    report = submissions.validate(json.dumps(document).encode(), CIRCO_TEST)
    assert [finding.code for finding in report.findings] in (["bad-type"], ["unknown-image"])


def test_a_list_too_short_for_the_server_is_refused_though_the_gallery_is_small() -> None:
    small = worlds.cirr("test1", gallery=40)
    document = worlds.cirr_document(small)
    with pytest.raises(
        ConversionError, match='query "100": 39 images; the CIRR server wants 50 for "recall"'
    ):
        submissions.convert([json.dumps(document).encode()], "cirr-server", benchmark=small)
    few = worlds.circo("test", gallery=31)
    document = worlds.circo_document(few, 30)
    for ids in document["rankings"].values():
        ids.append(worlds.coco(0))
    with pytest.raises(ConversionError, match='query "0": 31 images; the CIRCO server wants 50'):
        submissions.convert([json.dumps(document).encode()], "circo-server", benchmark=few)


def test_a_file_that_the_server_would_refuse_is_refused_here() -> None:
    document = json.loads(NATIVE)
    document["rankings"]["103"][0] = "im3"
    with pytest.raises(RefusedError, match=r"would be refused by the server") as caught:
        submissions.convert([json.dumps(document).encode()], "cirr-server", benchmark=HIDDEN)
    assert [finding.code for finding in caught.value.report.errors] == ["reference-ranked"]


def test_a_file_over_the_servers_limit_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "CIRR_BYTES", 1000)
    with pytest.raises(ConversionError, match=r"would have [\d,]+ bytes; the CIRR server takes 1,000"):
        split()


SUBSET = split()["recall_subset"]


@pytest.mark.parametrize(
    ("files", "to", "name", "error", "text"),
    [
        ([NATIVE], "cirr", None, UnknownNameError, "no format 'cirr'. Did you mean 'cirr-server'?"),
        ([NATIVE], "circo-server", None, ConversionError, "rankings of circo, and this file answers"),
        ([NATIVE], "zerosight", None, ConversionError, "rankings of zerosight, and this file answers"),
        ([NATIVE], "fashioniq", None, ConversionError, "rankings of fashioniq, and this file answers"),
        ([NATIVE, NATIVE], "native", None, ConversionError, "two files rank the gallery"),
        ([SUBSET, SUBSET], "native", None, ConversionError, "two files rank the subsets"),
        ([SUBSET], "native", None, ConversionError, 'give the CIRR server\'s "recall" file as well'),
        ([], "native", None, ConversionError, "there is no file to convert"),
        ([b"[]"], "native", None, RefusedError, "wrong-format"),
        ([NATIVE], "native", "<script>", ConversionError, "the method's name ... is refused"),
    ],
)
def test_conversions_that_do_not_fit_the_files_are_refused(
    files: list[bytes], to: str, name: str | None, error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        submissions.convert(files, to, benchmark=HIDDEN, name=name)
    says(caught, text)


FASHIONIQ = [worlds.fashioniq(category) for category in ("dress", "shirt", "toptee")]
BY_ID = {benchmark.id: benchmark for benchmark in FASHIONIQ}


def bundle() -> dict[str, Any]:
    return worlds.fashioniq_bundle(FASHIONIQ)


def codes_of(document: dict[str, Any], benchmark: Any = BY_ID) -> list[str]:
    return [
        finding.code for finding in submissions.validate(json.dumps(document).encode(), benchmark).findings
    ]


def test_a_bundle_is_read_and_written_back() -> None:
    found = submissions.read(json.dumps(bundle()).encode())
    assert [run.benchmark for run in found.runs] == list(suite("fashioniq/val").benchmarks)
    assert submissions.read(found.to_json()) == found
    assert codes_of(bundle()) == []
    assert submissions.validate(found, BY_ID).queries == 12


def test_a_bundles_findings_name_their_benchmark() -> None:
    document = bundle()
    document["runs"][1]["rankings"]["shirt_val_00000"].pop()
    (finding,) = submissions.validate(json.dumps(document).encode(), BY_ID, name="b.json").findings
    assert (finding.code, finding.benchmark) == ("short-ranking", "fashioniq/shirt_val")
    assert finding.text("b.json").startswith(
        'short-ranking: b.json: fashioniq/shirt_val: query "shirt_val_00000": 49'
    )


RUNS: list[Any] = bundle()["runs"]


def third(**changes: Any) -> dict[str, Any]:
    """The bundle's last run, changed; where no benchmark fits, rankings are not looked at."""
    return {"runs": [*RUNS[:2], {**RUNS[2], **changes}]}


def second(run: object) -> dict[str, Any]:
    return {"runs": [RUNS[0], run, RUNS[2]]}


@pytest.mark.parametrize(
    ("change", "code", "place"),
    [
        ({"suite": "fashioniq"}, "wrong-benchmark", '"fashioniq"'),
        ({"suite": None}, "bad-type", "suite"),
        ({"runs": {}}, "bad-type", "runs"),
        ({"runs": [1]}, "bad-type", "runs[0] is a number"),
        ({"format_version": 3}, "wrong-version", "format_version"),
        ({"method": {}}, "bad-metadata", '"method"'),
        ({"runs": RUNS[:2]}, "wrong-benchmark", '"fashioniq/toptee_val" has no run'),
        ({"runs": [*RUNS, RUNS[0]]}, "wrong-benchmark", "4 runs"),
        ({"runs": [{}] * 20_000}, "wrong-benchmark", "20,000 runs"),
        (third(benchmark="fashioniq/dress_val", rankings=5), "wrong-benchmark", "is answered 2 times"),
        (third(benchmark="cirr/val", rankings=5), "wrong-benchmark", '"cirr/val" is not a member'),
        (third(benchmark="fashioniq/toptee_vall"), "wrong-benchmark", "mean 'fashioniq/toptee_val'?"),
        (third(benchmark="\x1b[31m"), "wrong-benchmark", "\\u001b"),
        (second({**bundle(), "benchmark": "fashioniq/shirt_val"}), "wrong-format", "another bundle"),
        (second({}), "wrong-benchmark", "runs[1] names no benchmark"),
        (second({"benchmark": 5}), "wrong-benchmark", "runs[1] names no benchmark"),
        (second(7), "bad-type", "runs[1] is a number"),
        (second({**RUNS[1], "method": {"name": "another"}}), "bad-metadata", '2 methods: "toy", "another"'),
    ],
)
def test_a_broken_bundle_has_one_finding(change: dict[str, Any], code: str, place: str) -> None:
    report = submissions.validate(json.dumps({**bundle(), **change}).encode(), BY_ID, name="b.json")
    (finding,) = report.findings
    assert finding.code == code
    assert place in finding.message
    assert "\x1b" not in report.text()
    assert len(json.dumps(report.to_dict())) + len(report.text()) < 2000


def test_a_suite_wants_a_bundle_and_a_benchmark_wants_none() -> None:
    single = {**bundle()["runs"][0]}
    assert codes_of(single, "fashioniq/val") == ["wrong-benchmark"]
    assert codes_of(bundle(), FASHIONIQ[0]) == ["wrong-benchmark"]
    rank_file = submissions.read(json.dumps(single).encode())
    assert [f.code for f in submissions.validate(rank_file, "fashioniq/val").findings] == ["wrong-benchmark"]


def test_a_repeated_key_in_a_run_is_located() -> None:
    content = (
        json.dumps(bundle())
        .encode()
        .replace(b'"shirt_val_00000":', b'"shirt_val_00001": [], "shirt_val_00000":')
    )
    (finding,) = submissions.validate(content, BY_ID).findings
    assert finding.code == "repeated-key"
    assert finding.message == 'the key "shirt_val_00001" is there twice in run 2, "rankings".'

"""Each finding code has a malformed file that gives exactly it; and findings say where and how to fix it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import pytest
from says import says
from transcript_mutations import MUTATIONS

import submissions
from cir_datasets.rows.benchmark import Benchmark
from submissions.rank_file.findings import codes

Document = dict[str, Any]
CIRR = worlds.cirr()
CIRCLED = worlds.circled()
CIRCO = worlds.circo()


def cirr(change: Callable[[Document], Any] = lambda document: None, *, depth: int = 50) -> bytes:
    document = worlds.cirr_document(CIRR, depth)
    change(document)
    return json.dumps(document).encode()


def circled(change: Callable[[Document], Any]) -> bytes:
    document = worlds.circled_document(CIRCLED)
    change(document)
    return json.dumps(document).encode()


def put(document: Document, path: str, value: Any) -> None:
    *parents, last = path.split("/")
    for key in parents:
        document = document[int(key) if isinstance(document, list) else key]
    document[int(last) if isinstance(document, list) else last] = value


def drop(document: Document, path: str) -> None:
    *parents, last = path.split("/")
    for key in parents:
        document = document[key]
    del document[last]


def server(metric: str, rankings: Document, version: Any = "rc2") -> bytes:
    return json.dumps({"version": version, "metric": metric, **rankings}).encode()


GOOD = worlds.cirr_document(CIRR)
IMAGES, RANKINGS = GOOD["rankings"]["100"], worlds.as_bytes({"rankings": GOOD["rankings"]})

HEADER, *ANSWERS = submissions.convert([cirr()], "lines", benchmark=CIRR)[0].content.splitlines(keepends=True)
TWICE = b"".join([HEADER, *ANSWERS, ANSWERS[0]])
"""Its first query is answered again, alike."""
OVERLAID = replace(CIRR, left_out=frozenset({"998", "999"}))


def one_more(document: Document) -> None:
    put(document, "rankings/999", IMAGES)
    put(document, "subset_rankings/999", ["im1", "im2", "im3"])


Case = tuple[str, str, bytes, Benchmark]
CASES: list[Case] = [
    ("unreadable", "not UTF-8", b'{"format": "\xff"}', CIRR),
    ("unreadable", "gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00", CIRR),
    ("unreadable", "UTF-16", '{"format": 1}'.encode("utf-16"), CIRR),
    ("malformed", "empty", b"", CIRR),
    ("malformed", "blank", b" \n\t ", CIRR),
    ("malformed", "cut off", cirr()[:-9], CIRR),
    ("malformed", "NaN", cirr().replace(b'"im1"', b"NaN", 1), CIRR),
    ("malformed", "Infinity", cirr().replace(b'"im1"', b"-Infinity", 1), CIRR),
    ("malformed", "lone surrogate", cirr().replace(b'"im1"', b'"\\ud800"', 1), CIRR),
    ("malformed", "nested without end", b"[" * 100_000, CIRR),
    ("malformed", "nested too deeply", b"[" * 17 + b"]" * 17, CIRR),
    ("malformed", "5,000 digits", cirr().replace(b'"im1"', b"1" * 5000, 1), CIRR),
    ("malformed", "two documents", cirr() + cirr(), CIRR),
    ("malformed", "control character", cirr().replace(b"im1", b"im\x01", 1), CIRR),
    ("repeated-key", "rankings twice", cirr()[:-1] + b"," + RANKINGS[1:], CIRR),
    ("repeated-key", "a query twice", cirr().replace(b'"100":', b'"101": [], "100":', 1), CIRR),
    ("repeated-query", "a line twice", TWICE, CIRR),
    ("wrong-format", "a list", b"[]", CIRR),
    ("wrong-format", "nameless objects in a list", b'[{"query": "100", "images": ["im1"]}]', CIRR),
    ("wrong-format", "null", b"null", CIRR),
    ("wrong-format", "a number", b"12", CIRR),
    ("wrong-format", "a string", b'"rank file"', CIRR),
    ("wrong-format", "an empty object", b"{}", CIRR),
    ("wrong-format", "another format", cirr(lambda d: put(d, "format", "cir-rankfile")), CIRR),
    ("wrong-format", "no format", cirr(lambda d: drop(d, "format")), CIRR),
    ("wrong-format", "format is not a string", cirr(lambda d: put(d, "format", [1])), CIRR),
    ("wrong-format", "unknown metric", server("map", {}), CIRR),
    ("wrong-benchmark", "another", cirr(lambda d: put(d, "benchmark", "cirr/test1")), CIRR),
    ("wrong-benchmark", "unknown", cirr(lambda d: put(d, "benchmark", "cir/val")), None),
    ("wrong-benchmark", "one of several", cirr(lambda d: put(d, "benchmark", "cirr")), None),
    ("wrong-benchmark", "a suite", cirr(lambda d: put(d, "benchmark", "fashioniq/val")), None),
    ("wrong-benchmark", "with a fix of its own", cirr(lambda d: put(d, "benchmark", "cirr Fix: {x}")), None),
    ("wrong-benchmark", "missing", cirr(lambda d: drop(d, "benchmark")), CIRR),
    ("wrong-benchmark", "CIRR's format for CIRCO", b'{"version": "rc2", "metric": "recall"}', worlds.circo()),
    ("wrong-benchmark", "a server's file alone", b'{"0": [1]}', None),
    ("wrong-version", "of the benchmark", cirr(lambda d: put(d, "benchmark_version", 2)), CIRR),
    ("wrong-version", "of the benchmark, missing", cirr(lambda d: drop(d, "benchmark_version")), CIRR),
    ("wrong-version", "of the format", cirr(lambda d: put(d, "format_version", 2)), CIRR),
    ("wrong-version", "of the format, missing", cirr(lambda d: drop(d, "format_version")), CIRR),
    ("bad-type", "a true version", cirr(lambda d: put(d, "format_version", True)), CIRR),
    ("bad-type", "a true version of the benchmark", cirr(lambda d: put(d, "benchmark_version", True)), CIRR),
    ("bad-type", "a benchmark that is a list", cirr(lambda d: put(d, "benchmark", ["cirr/val"])), CIRR),
    ("bad-type", "a number as an id", cirr(lambda d: put(d, "rankings/100/3", 7.5)), CIRR),
    ("bad-type", "a boolean as an id", cirr(lambda d: put(d, "rankings/100/3", True)), CIRR),
    ("bad-type", "null as an id", cirr(lambda d: put(d, "rankings/100/3", None)), CIRR),
    ("bad-type", "an empty id", cirr(lambda d: put(d, "rankings/100/3", "")), CIRR),
    ("bad-type", "a list as an id", cirr(lambda d: put(d, "rankings/100/3", ["im4"])), CIRR),
    ("bad-type", "a huge integer", cirr(lambda d: put(d, "rankings/100/3", 10**300)), CIRR),
    ("bad-type", "a ranking that is null", cirr(lambda d: put(d, "rankings/100", None)), CIRR),
    ("bad-type", "a ranking that is an object", cirr(lambda d: put(d, "rankings/100", {"im1": 0.5})), CIRR),
    ("bad-type", "rankings that are a list", cirr(lambda d: put(d, "rankings", [IMAGES])), CIRR),
    ("bad-type", "no rankings", cirr(lambda d: drop(d, "rankings")), CIRR),
    ("bad-type", "subset rankings that are a list", cirr(lambda d: put(d, "subset_rankings", [])), CIRR),
    ("bad-type", "turns where there are none", cirr(lambda d: put(d, "rankings/100", [IMAGES])), CIRR),
    ("bad-type", "CIRR server's version", server("recall", GOOD["rankings"], version=2), CIRR),
    ("unknown-query", "one more", cirr(lambda d: put(d, "rankings/999", IMAGES)), CIRR),
    ("missing-query", "one less", cirr(lambda d: drop(d, "rankings/100")), CIRR),
    ("missing-query", "the subset file alone", server("recall_subset", GOOD["subset_rankings"]), CIRR),
    ("empty-ranking", "of a query", cirr(lambda d: put(d, "rankings/100", [])), CIRR),
    ("empty-ranking", "of a subset", cirr(lambda d: put(d, "subset_rankings/100", [])), CIRR),
    ("short-ranking", "of a query", cirr(lambda d: d["rankings"]["100"].pop()), CIRR),
    ("short-ranking", "of a subset", cirr(lambda d: d["subset_rankings"]["100"].pop()), CIRR),
    ("duplicate-image", "in a ranking", cirr(lambda d: put(d, "rankings/100/3", IMAGES[0])), CIRR),
    ("duplicate-image", "in a subset", cirr(lambda d: put(d, "subset_rankings/100/1", "im1")), CIRR),
    ("unknown-image", "of another gallery", cirr(lambda d: put(d, "rankings/100/3", "elsewhere")), CIRR),
    ("reference-ranked", "in a ranking", cirr(lambda d: put(d, "rankings/100/3", "im0")), CIRR),
    ("reference-ranked", "in a subset", cirr(lambda d: put(d, "subset_rankings/100/0", "im0")), CIRR),
    ("missing-subset", "all", cirr(lambda d: drop(d, "subset_rankings")), CIRR),
    ("missing-subset", "null", cirr(lambda d: put(d, "subset_rankings", None)), CIRR),
    ("missing-subset", "one", cirr(lambda d: drop(d, "subset_rankings/100")), CIRR),
    ("missing-subset", "CIRR's recall file alone", server("recall", GOOD["rankings"]), CIRR),
    ("not-in-subset", "a stranger", cirr(lambda d: put(d, "subset_rankings/100/1", "im60")), CIRR),
    ("bad-metadata", "no method", cirr(lambda d: drop(d, "method")), CIRR),
    ("bad-metadata", "a method that is a string", cirr(lambda d: put(d, "method", "CLIP")), CIRR),
    ("bad-metadata", "no name", cirr(lambda d: put(d, "method", {})), CIRR),
    ("bad-metadata", "an unknown field", cirr(lambda d: put(d, "method/zeroshot", True)), CIRR),
    ("bad-metadata", "an unknown key", cirr(lambda d: put(d, "scores", {})), CIRR),
    ("bad-metadata", "a repair that is none", cirr(lambda d: put(d, "method/repaired", {"turns": 1})), CIRR),
    ("repaired", "references", cirr(lambda d: put(d, "method/repaired", {"references": 1})), CIRR),
    ("deep-ranking", "more than the board uses", cirr(depth=60), CIRR),
    ("unpinned-data", "no hash", cirr(), worlds.cirr(pinned=False)),
    ("outside-overlay", "a query of the base in both parts", cirr(one_more), OVERLAID),
]
QUERIES: list[tuple[str, str, Callable[[Document], Any]]] = [
    ("unknown-query", "one more subset", lambda d: put(d, "subset_rankings/999", ["im1", "im2", "im3"])),
    ("missing-query", "less in both", lambda d: (drop(d, "rankings/100"), drop(d, "subset_rankings/100"))),
    ("duplicate-image", "in two spellings", lambda d: put(d, "rankings/100/3", IMAGES[0] + ".png")),
    ("reference-contradiction", "by the protocol", lambda d: put(d, "method/reference", "kept")),
]
SESSIONS: list[tuple[str, str, Callable[[Document], Any]]] = [
    ("bad-type", "no turns where there are some", lambda d: put(d, "rankings/s0", ["im1"] * 10)),
    ("bad-type", "a session that is null", lambda d: put(d, "rankings/s0", None)),
    ("bad-type", "a turn that is null", lambda d: put(d, "rankings/s0/1", None)),
    ("unknown-query", "one more session", lambda d: put(d, "rankings/s9", [["im1"]])),
    ("missing-query", "one session less", lambda d: drop(d, "rankings/s1")),
    ("missing-turn", "one less", lambda d: d["rankings"]["s1"].pop()),
    ("missing-turn", "all", lambda d: put(d, "rankings/s1", [])),
    ("extra-turn", "one more", lambda d: d["rankings"]["s0"].append(d["rankings"]["s0"][0])),
    ("empty-ranking", "of a turn", lambda d: put(d, "rankings/s0/1", [])),
    ("short-ranking", "of a turn", lambda d: put(d, "rankings/s0/1", ["im1"])),
    ("unknown-image", "in a turn", lambda d: put(d, "rankings/s1/2", [f"no{n}" for n in range(10)])),
    ("not-in-subset", "no subsets there", lambda d: put(d, "subset_rankings", {})),
]
CASES += [(code, what, cirr(change), CIRR) for code, what, change in QUERIES]
CASES += [(code, what, circled(change), CIRCLED) for code, what, change in SESSIONS]


def many(count: int) -> bytes:
    """A gallery of 1,100 and rankings of `count`."""
    return json.dumps(worlds.cirr_document(LARGE, count)).encode()


def trec(rank: Callable[[int], int]) -> bytes:
    """The valid file as a TREC run, whose rank column is made from the place of the image."""
    subsets = {f"{query}#subset": ids for query, ids in GOOD["subset_rankings"].items()}
    lines = [
        f"{qid} Q0 {image} {rank(place)} {-place} toy"
        for qid, ids in {**GOOD["rankings"], **subsets}.items()
        for place, image in enumerate(ids, start=1)
    ]
    return "\n".join(lines).encode()


def method(**fields: Any) -> bytes:
    """The valid file with fields of the method."""
    return json.dumps({**GOOD, "method": {**GOOD["method"], **fields}}).encode()


DRESS = worlds.fashioniq("dress")
ITEMS = [
    {
        "candidate": row["reference_image_id"],
        "captions": row["captions"],
        "ranking": list(DRESS.gallery or ())[:50],
    }
    for row in DRESS.rows()
]
LARGE = worlds.cirr(gallery=1100)
NO_GALLERY = worlds.circled(gallery=None)
CASES += [
    ("long-ranking", "more than a thousand", many(1001), LARGE),
    ("deep-ranking", "a thousand", many(1000), LARGE),
    ("rank-score-disagree", "the worst first", trec(lambda place: 100 - place), CIRR),
    ("item-mismatch", "two items in the other order", json.dumps(ITEMS[1::-1] + ITEMS[2:]).encode(), DRESS),
    ("unlisted-word", "a free text", method(backbone="my tower"), CIRR),
    ("contradiction", "zero-shot", method(zero_shot=True, trained_on=["CIRR"]), CIRR),
    ("contradiction", "an oracle", method(text_fields=["target_caption"]), CIRR),
    ("gallery-unavailable", "no list", json.dumps(worlds.circled_document(CIRCLED)).encode(), NO_GALLERY),
]


@pytest.mark.parametrize(
    ("code", "content", "benchmark"),
    [
        pytest.param(code, content, benchmark, id=f"{code}: {what}")
        for code, what, content, benchmark in CASES
    ],
)
def test_a_malformed_file_gives_exactly_its_code(
    code: str, content: bytes, benchmark: Benchmark | None
) -> None:
    report = submissions.validate(content, benchmark, name="run.json")
    assert [finding.code for finding in report.findings] == [code]
    finding = report.findings[0]
    assert finding.severity == codes()[code].severity
    assert report.ok is (finding.severity == "warning")
    assert finding.message.endswith((".", "?"))
    assert finding.fix
    assert "Fix: " not in finding.fix
    assert "Fix: " not in finding.message.replace("cirr Fix: {x}", "")
    assert "Traceback" not in report.text()
    json.dumps(report.to_dict(), allow_nan=False).encode()


def test_every_code_has_a_case() -> None:
    # `too-costly` and `wrong-settings` are said by a server; what only transcripts have is tested with them.
    of_server = {"too-costly", "wrong-settings"}
    # `other-gallery` needs galleries of real size: test_ranked_gallery. `not-in-gallery`: test_own_galleries.
    covered = (
        {code for code, *_ in CASES}
        | {"too-large", "other-gallery", "not-in-gallery"}
        | of_server
        | {code for code, *_ in MUTATIONS}
    )
    assert covered == set(codes())


def test_too_large_is_found_in_bytes_and_in_files(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(cirr())
    for source in (path, cirr()):
        report = submissions.validate(source, CIRR, max_bytes=1000)
        assert [finding.code for finding in report.findings] == ["too-large"]
        assert f"{len(cirr()):,} bytes; at most 1,000 are read" in report.findings[0].message


def test_a_folder_is_unreadable(tmp_path: Path) -> None:
    assert [finding.code for finding in submissions.validate(tmp_path, CIRR).findings] == ["unreadable"]


def test_a_valid_file_has_no_findings() -> None:
    for content, benchmark in (
        (cirr(), CIRR),
        (circled(lambda d: None), CIRCLED),
        (json.dumps(worlds.circo_document(CIRCO)).encode(), CIRCO),
    ):
        report = submissions.validate(content, benchmark)
        assert report.findings == ()
        assert report.ok
        assert report.benchmark == benchmark.id
        assert report.queries == len(benchmark)


def test_a_gallery_smaller_than_the_board_wants_is_ranked_whole() -> None:
    small = worlds.cirr(gallery=20)
    assert submissions.validate(json.dumps(worlds.cirr_document(small)).encode(), small).findings == ()
    short = json.dumps(worlds.cirr_document(small, 18)).encode()
    report = submissions.validate(short, small)
    assert [finding.code for finding in report.findings] == ["short-ranking"]
    assert report.findings[0].message == "18 images; the board's metrics use 19."


def test_all_findings_are_returned_errors_first() -> None:
    def spoil(document: Document) -> None:
        put(document, "rankings/100/0", "im0")
        put(document, "rankings/101/0", "elsewhere")
        put(document, "rankings/102", [f"im{n}" for n in range(10, 70)])
        drop(document, "rankings/103")
        put(document, "method/paper", "http://example.org")

    report = submissions.validate(cirr(spoil), CIRR)
    found = [(finding.code, finding.severity) for finding in report.findings]
    assert set(found) == {
        ("reference-ranked", "error"),
        ("unknown-image", "error"),
        ("missing-query", "error"),
        ("bad-metadata", "error"),
        ("deep-ranking", "warning"),
    }
    assert found[-1] == ("deep-ranking", "warning")
    assert report.rank_file is None


def test_a_finding_counts_all_places_and_shows_five() -> None:
    def spoil(document: Document) -> None:
        for query_id, ranking in document["rankings"].items():
            ranking[1] = f"x{query_id}"

    (finding,) = submissions.validate(cirr(spoil), CIRR).findings
    assert finding.count == 6
    assert [example["query_id"] for example in finding.examples] == ["100", "101", "102", "103", "104"]
    assert finding.examples[0] == {"query_id": "100", "position": 2, "value": "x100"}


def test_the_text_says_what_where_why_and_the_next_command() -> None:
    report = submissions.validate(cirr(lambda d: put(d, "rankings/103/0", "im3")), CIRR, name="my run.json")
    says(report.text(), 'reference-ranked: my run.json: query "103": ... "im3" is ranked 1st ... CIRR ranks')
    says(report.text(), "Fix: drop it ... cir validate 'my run.json'\n ... refused for cirr/val, 1 error")


def test_the_text_names_the_turn() -> None:
    content = circled(lambda d: put(d, "rankings/s1/2/4", "im3"))
    report = submissions.validate(content, CIRCLED, name="run.json")
    says(report.text(), 'duplicate-image: run.json: query "s1", turn 3: "im3" is ranked 4th and 5th')
    assert report.findings[0].turn == 3


@pytest.mark.parametrize("spelling", ["./dev/IM7.jpg", "IM7", " im7", "a\\b\\IM7"])
def test_a_near_miss_is_named(spelling: str) -> None:
    report = submissions.validate(cirr(lambda d: put(d, "rankings/100/6", spelling)), CIRR)
    assert report.findings[0].message.endswith('is not in the gallery. Did you mean "im7"?')


def test_nothing_of_the_file_or_its_name_reaches_the_terminal_unescaped() -> None:
    evil = "\u202e\x1b[31m" + "a" * 500
    content = cirr(lambda d: put(d, "rankings/100/6", evil))
    report = submissions.validate(content, CIRR)
    assert report.text().isascii()
    assert "\x1b" not in report.text()
    assert len(report.text()) < 700
    report = submissions.validate(b"", CIRR, name="run\x1b[31m\u202e.json")
    assert report.file == "run?[31m?.json"
    assert report.text().replace("\n", "").isprintable()


def test_ground_truth_is_never_read() -> None:
    rows = [row | {"target_image_id": "poison", "positive_image_ids": ["poison"]} for row in CIRR.rows()]
    poisoned = Benchmark.from_rows(CIRR.spec, rows, CIRR.gallery)
    spoiled = cirr(lambda d: (put(d, "rankings/100/0", "im0"), put(d, "rankings/101/0", "nowhere")))
    assert (
        submissions.validate(spoiled, poisoned, name="x").to_dict()
        == submissions.validate(spoiled, CIRR, name="x").to_dict()
    )
    assert "poison" not in submissions.validate(spoiled, poisoned).text()


def test_one_of_the_servers_files_alone_will_do_where_no_board_can_score_it() -> None:
    hidden = worlds.cirr("test1")
    recall = server("recall", worlds.cirr_document(hidden)["rankings"])
    assert submissions.validate(recall, hidden).ok
    assert not submissions.validate(recall, hidden, part=False).ok
    assert submissions.validate(server("recall", GOOD["rankings"]), CIRR, part=True).ok


def test_a_coco_id_is_checked_by_its_form_where_the_gallery_is_not_at_hand() -> None:
    unlisted = worlds.circo(gallery=None)
    document = worlds.circo_document(CIRCO)
    document["rankings"]["0"][2] = "cat.jpg"
    report = submissions.validate(json.dumps(document).encode(), unlisted)
    assert [finding.code for finding in report.findings] == ["unknown-image", "gallery-unavailable"]
    assert report.findings[0].message == 'the 3rd image "cat.jpg" is not a COCO id (12 digits).'


def test_unknown_queries_are_counted_but_not_all_examined() -> None:
    document = {**GOOD, "rankings": {**GOOD["rankings"], **{f"q{n}": [] for n in range(1000)}}}
    (finding,) = submissions.validate(json.dumps(document).encode(), CIRR).findings
    assert (finding.code, finding.count, len(finding.examples)) == ("unknown-query", 1000, 5)


@pytest.mark.parametrize(("query", "image"), [("999", None), ("100", "elsewhere")])
def test_an_unknown_id_names_the_command_that_says_what_ids_are(query: str, image: str | None) -> None:
    from cir_datasets.audit.describe import described_text

    ranking = IMAGES if image is None else [image, *IMAGES[1:]]
    report = submissions.validate(cirr(lambda d: put(d, f"rankings/{query}", ranking)), CIRR)
    (finding,) = report.findings
    assert f'`cir datasets show {CIRR.id}` says in its line "ids" what they are' in finding.fix
    assert any(line.startswith("ids ") for line in described_text(CIRR.id).splitlines())

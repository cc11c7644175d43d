"""A challenge made of rows of one's own: what is handed out, what stays secret, what is refused."""

from __future__ import annotations

import gzip
import json
import shutil
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from leaderboard_world import challenges as world

import cir_datasets
import submissions
from cir_datasets.errors import RecordError
from cir_metrics.errors import CallError, CirError
from leaderboard import boards
from leaderboard.boards import Phase
from leaderboard.challenge.checking import faults
from leaderboard.challenge.making import Made, Rules, default_phase, make
from leaderboard.challenge.material import Material, from_benchmark, from_files
from leaderboard.errors import BoardError, GroundTruthError
from leaderboard.queue.ground_truth import as_bytes, laid_over, read

TRUTH = ("target_image_id", "positive_image_ids")


def rules(places: world.Places, **change: Any) -> Rules:
    return Rules(
        world.NAME,
        "Autumn",
        **{"ground_truth": str(places.ground_truth), "phases": (default_phase(),)} | change,
    )


@pytest.fixture
def made(places: world.Places, material: Material) -> Made:
    return make(material, rules(places))


def test_the_public_part_holds_queries_and_gallery_and_no_truth(places: world.Places, made: Made) -> None:
    benchmark = cir_datasets.load(world.ID)
    assert len(benchmark) == world.QUERIES
    assert benchmark.ground_truth_withheld
    assert benchmark.gallery_set == {world.image(number) for number in range(world.IMAGES)}
    assert benchmark.pinned
    for row in benchmark.rows():
        assert (row["target_image_id"], row["positive_image_ids"], row["negative_image_ids"]) == (
            None,
            [],
            [],
        )
    public = json.loads((made.public / "queries.json").read_bytes())
    assert {name for row in public for name in row} == {
        "query_id",
        "reference_image_id",
        "captions",
        "relative_caption",
        "subset_image_ids",
    }


def test_the_public_part_does_not_depend_on_the_order_of_the_files(
    places: world.Places, material: Material, made: Made
) -> None:
    before = {path.name: path.read_bytes() for path in made.public.iterdir()}
    shutil.rmtree(made.public)
    (places.home / "boards" / "autumn.yaml").unlink()
    targets = {row["target_image_id"] for row in material.rows}
    rows = [{**row, "positive_image_ids": row["positive_image_ids"][::-1]} for row in reversed(material.rows)]
    images = sorted(material.images, key=lambda image: image[0] not in targets)
    again = make(
        replace(material, rows=rows, images=images),
        rules(places, ground_truth=str(places.secret / "again.jsonl")),
    )
    assert {path.name: path.read_bytes() for path in again.public.iterdir()} == before


def test_the_ground_truth_is_whole_and_for_its_owner_alone(places: world.Places, made: Made) -> None:
    assert stat.S_IMODE(places.ground_truth.stat().st_mode) == 0o600
    assert stat.S_IMODE(places.secret.stat().st_mode) == 0o700
    head, *lines = [json.loads(line) for line in read(str(places.ground_truth)).splitlines()]
    assert head["benchmark"] == world.ID
    assert {line["id"]: line["positives"] for line in lines} == {
        row["query_id"]: row["positive_image_ids"] for row in world.rows()
    }


def test_the_board_is_sealed_open_now_and_ranked_by_the_usual_metric(
    places: world.Places, made: Made
) -> None:
    board = boards.board(world.ID)
    assert (board.track, board.primary, board.ground_truth) == ("sealed", "map@5", str(places.ground_truth))
    assert board.closed(datetime.now(UTC)) is None


def test_the_sample_is_a_valid_rank_file(made: Made) -> None:
    report = submissions.validate(made.sample)
    assert (report.ok, [finding.code for finding in report.findings]) == (True, [])


def test_what_is_there_already_is_left_alone(places: world.Places, material: Material, made: Made) -> None:
    before = places.ground_truth.read_bytes()
    with pytest.raises(CallError, match="is there already"):
        make(material, rules(places))
    other = replace(rules(places), name="winter")
    with pytest.raises(CallError, match=r"truth\.jsonl: is there already"):
        make(material, other)
    assert places.ground_truth.read_bytes() == before
    assert "winter/test" not in boards.ids()
    assert sorted(path.name for path in places.challenges.iterdir()) == [world.NAME]


@pytest.mark.parametrize("inside", ["home/truth.jsonl", "challenges/truth.jsonl", "cache/a/truth.jsonl"])
def test_a_ground_truth_below_a_place_of_the_server_is_refused(
    places: world.Places, material: Material, tmp_path: Path, inside: str
) -> None:
    with pytest.raises(BoardError, match="its ground truth lies below"):
        make(material, rules(places, ground_truth=str(tmp_path / inside)))
    assert not (tmp_path / inside).exists()
    assert not (places.challenges / world.NAME).exists()


@pytest.mark.parametrize(
    "address",
    ["memory://truth", "https://example.org/t", "s3://key:secret@b/t", "simplecache::s3://b/t", "t.jsonl"],
)
def test_other_places_for_a_ground_truth_are_refused(
    places: world.Places, material: Material, address: str
) -> None:
    with pytest.raises(BoardError, match="a ground truth lies at an absolute path"):
        make(material, rules(places, ground_truth=address))


def test_too_few_queries_are_refused(places: world.Places, material: Material) -> None:
    with pytest.raises(CallError, match="29 queries are too few"):
        make(replace(material, rows=material.rows[:29]), rules(places))


def test_rows_that_break_a_rule_or_tell_their_answer_are_refused(
    places: world.Places, material: Material
) -> None:
    row = material.rows[0]
    for change, words in (
        ({"target_image_id": "nowhere", "positive_image_ids": ["nowhere"]}, "not in the gallery"),
        ({"query_id": f"to-{row['target_image_id']}"}, "would know the answer"),
        ({"query_id": material.rows[1]["query_id"]}, "a second time"),
    ):
        with pytest.raises(RecordError, match=words):
            make(replace(material, rows=[{**row, **change}, *material.rows[1:]]), rules(places))
    assert not places.secret.exists()


def test_lines_that_are_not_rows_are_named(tmp_path: Path) -> None:
    queries, gallery = world.write_rows(tmp_path)
    lines = queries.read_text(encoding="utf-8").splitlines()
    queries.write_text("\n".join([lines[0], '{"query_id": "x"}']), encoding="utf-8")
    with pytest.raises(RecordError, match=r"own\.jsonl: line 2 \(query_id x\): reference_image_id"):
        from_files(queries, gallery, None, "removed")
    queries.write_text("not JSON", encoding="utf-8")
    with pytest.raises(RecordError, match="line 1: it is not JSON"):
        from_files(queries, gallery, None, "removed")


def test_rows_of_a_folder_can_be_sealed_in_any_of_its_formats(tmp_path: Path) -> None:
    queries, gallery = world.write_rows(tmp_path)
    lines = [{**row, "relative_caption": row["caption"], "caption": None} for row in world.rows()]
    table = tmp_path / "own.parquet"
    pq.write_table(pa.Table.from_pylist(lines), table)
    gallery.write_text(gallery.read_text().replace(f"{world.image(0)}\n", f"{world.image(0)}\tdeep/0.png\n"))
    found = from_files(table, gallery, None, "removed")
    assert found.rows == from_files(queries, gallery, None, "removed").rows
    assert found.images[0] == (world.image(0), "deep/0.png")
    several = {**world.rows()[0], "caption": None, "captions": ["in red", "larger"]}
    queries.write_text(json.dumps(several), encoding="utf-8")
    with pytest.raises(RecordError, match=r"query-000\): it has several captions\. Fix: write one"):
        from_files(queries, gallery, None, "removed")


def test_errors_of_own_data_say_what_its_organiser_can_do(
    places: world.Places, material: Material, tmp_path: Path
) -> None:
    queries, gallery = world.write_rows(tmp_path)
    queries.write_text('{"query_id": "x"}', encoding="utf-8")
    with pytest.raises(RecordError, match=r"Fix: add it\.$"):
        from_files(queries, gallery, None, "removed")
    rows = [{**material.rows[0], "target_image_id": "x", "positive_image_ids": ["x"]}, *material.rows[1:]]
    with pytest.raises(RecordError, match=r"not in the gallery.*Fix: correct that record\.$"):
        make(replace(material, rows=rows), rules(places))


def test_sessions_are_sealed_likewise(places: world.Places, tmp_path: Path) -> None:
    turns = [{"reference_image_id": world.image(0), "caption": "a"}, {"caption": "b"}]
    lines = [
        {"session_id": f"s{number}", "turns": turns, "ground_truth_ids": [world.image(number + 1)]}
        for number in range(30)
    ]
    queries, gallery = world.write_rows(tmp_path)
    queries.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    made = make(from_files(queries, gallery, None, "kept"), rules(places))
    benchmark = cir_datasets.load(world.ID)
    assert benchmark.multi_turn
    assert benchmark.positives == [[]] * 30
    assert boards.board(world.ID).primary == "hits_auc@10"
    assert submissions.validate(made.sample).ok
    assert list(faults(boards.board(world.ID))) == []


@pytest.mark.parametrize("sessions", [False, True])
def test_a_benchmark_with_several_captions_is_sealed_with_all_of_them(
    places: world.Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sessions: bool
) -> None:
    from cir_datasets.construction.folder import write_benchmark

    galleries = [world.image(number) for number in range(world.IMAGES)]
    several = {"captions": ["in red", "larger"], "relative_caption": None}
    turns = [{"turn": 1, "reference_image_id": galleries[0], **several}]
    rows = [
        {"session_id": row["query_id"], "ground_truth_ids": row["positive_image_ids"], "turns": turns}
        if sessions
        else {
            "query_id": row["query_id"],
            **several,
            **{key: row[key] for key in ("reference_image_id", *TRUTH)},
        }
        for row in world.rows()
    ]
    folder = write_benchmark(
        tmp_path / "own", name="own", title="Own", configs={"test": rows}, galleries=galleries
    )
    monkeypatch.setenv("CIR_BENCHMARKS", str(folder))
    made = make(from_benchmark("own/test", None), rules(places))
    for row in cir_datasets.load(world.ID).rows():
        (asked,) = row.get("turns", (row,))
        assert (asked["captions"], asked["relative_caption"]) == (several["captions"], None)
    assert submissions.validate(made.sample).ok


def test_a_mean_of_metrics_ranks_too(places: world.Places, material: Material) -> None:
    make(replace(material, main="mean(recall@1, recall@5)"), rules(places))
    board = boards.board(world.ID)
    assert (board.primary_terms, board.primary_label) == (("recall@1", "recall@5"), "Mean")
    assert board.primary_value({"recall@1": 0.3, "recall@5": 0.41111}) == 0.3556


def test_a_benchmark_without_its_truth_cannot_be_sealed(made: Made) -> None:
    with pytest.raises(CallError, match="its ground truth or its gallery is not here"):
        from_benchmark(world.ID, None)


def test_a_withheld_split_is_sealed_with_its_answers(
    places: world.Places, made: Made, tmp_path: Path
) -> None:
    """The split of a publisher is here without its truth, and somebody has that in a file."""
    lines = [
        {name: row[name] for name in ("query_id", "target_image_id", "positive_image_ids")}
        for row in world.rows()
    ]
    answers = tmp_path / "answers.jsonl"

    def written(lines: list[dict[str, Any]]) -> Path:
        answers.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return answers

    material = from_benchmark(world.ID, None, written(lines[::-1]))
    truth = str(places.secret / "winter.jsonl")
    make(material, replace(rules(places, ground_truth=truth), name="winter"))
    sealed = laid_over(cir_datasets.load("winter/test"), read(truth))
    assert {row["query_id"]: row["positive_image_ids"] for row in sealed.rows()} == {
        row["query_id"]: row["positive_image_ids"] for row in world.rows()
    }
    assert list(faults(boards.board("winter/test"))) == []
    for wrong, words in (
        (lines[1:], "1 of 60 queries of autumn/test have no line, 'query-000' first"),
        ([*lines, lines[0]], "line 61: 'query-000' is there twice"),
        ([*lines, {**lines[0], "query_id": "x"}], "line 61: 'x' is not of autumn/test"),
        ([{"query_id": "query-000"}], "target_image_id"),
    ):
        with pytest.raises(RecordError, match=words):
            from_benchmark(world.ID, None, written(wrong))
    with pytest.raises(CallError, match=r"is public\. Fix: leave --answers out"):
        from_benchmark("shapes/val", None, written(lines))


def test_a_board_of_a_public_truth_is_not_sealed() -> None:
    board = boards.board("shapes/val").model_dump() | {"track": "sealed", "ground_truth": "/secret/truth"}
    with pytest.raises(BoardError, match="is public, so that no board of it is sealed"):
        boards.parse(board, "x.yaml")
    with pytest.raises(BoardError, match="says where its `ground_truth` lies"):
        boards.parse(board | {"track": "open"}, "x.yaml")


def test_the_check_finds_a_truth_that_others_read_or_that_lies_about(
    places: world.Places, made: Made
) -> None:
    board = boards.board(world.ID)
    assert list(faults(board)) == []
    content = places.ground_truth.read_bytes()
    (places.home / "copy").write_bytes(b"x" * 5_000_000 + content.splitlines()[7])
    (made.public / "sample.json").write_bytes(content)
    places.ground_truth.chmod(0o644)
    said = list(faults(board))
    assert [str(places.ground_truth) in said[0], "home/copy" in said[1], "sample.json" in said[2]] == [
        True
    ] * 3
    assert len(said) == 3


def test_the_check_finds_what_else_lies_in_the_folder_to_hand_out(
    places: world.Places, made: Made, tmp_path: Path
) -> None:
    own = (tmp_path / "own.jsonl").read_bytes()
    (made.public / "notes.jsonl").write_bytes(own)
    (made.public / "deeper").mkdir()
    (made.public / "deeper" / "queries.json").write_bytes(gzip.compress(own))
    said = list(faults(boards.board(world.ID)))
    assert [words.partition(": ")[0] for words in said] == [
        str(made.public / "deeper"),
        str(made.public / "deeper" / "queries.json"),
        str(made.public / "notes.jsonl"),
    ]
    assert "did not write it" in said[0]


def test_the_check_finds_a_truth_that_does_not_fit(
    places: world.Places, made: Made, material: Material
) -> None:
    board = boards.board(world.ID)
    places.ground_truth.write_bytes(as_bytes(world.ID, material.rows[:-1]))
    assert "does not answer each query of autumn/test once: no line answers 'query-059'" in next(
        faults(board)
    )
    places.ground_truth.unlink()
    assert "cannot be read (FileNotFoundError)" in next(faults(board))


@pytest.mark.parametrize(
    ("line", "change", "words"),
    [
        (
            7,
            {"target": "nowhere", "positives": ["nowhere"]},
            "line 7 (query_id query-005): its target 'nowhere'",
        ),
        (8, {"positives": "picture-100"}, "line 8: the field 'positives' is missing or of another kind"),
        (9, {"id": "query-001"}, "line 9 answers 'query-001' again, after line 3"),
        (10, {"id": "other"}, "no line answers 'query-008'"),
        (1, {"salt": "short"}, "the salt in line 1"),
        (1, {"benchmark": "winter/test"}, "line 1 must be the head"),
        (5, None, "line 5 is not JSON"),
    ],
)
def test_the_check_names_the_line_that_is_wrong_and_logs_do_not(
    places: world.Places, made: Made, line: int, change: dict[str, Any] | None, words: str
) -> None:
    lines = places.ground_truth.read_text(encoding="utf-8").splitlines()
    changed = "{" if change is None else json.dumps(json.loads(lines[line - 1]) | change)
    content = "\n".join([*lines[: line - 1], changed, *lines[line:]])
    places.ground_truth.write_text(content, encoding="utf-8")
    (said,) = faults(boards.board(world.ID))
    assert words in said
    assert "challenge check" not in said
    with pytest.raises(GroundTruthError, match="`cir challenge check` says what is wrong") as raised:
        laid_over(cir_datasets.load(world.ID), content.encode())
    for word in ("nowhere", "query-0", "line"):
        assert word not in str(raised.value)


def test_a_truth_that_does_not_fit_is_refused_without_a_word_of_it(
    places: world.Places, made: Made, material: Material
) -> None:
    rows = [{**material.rows[0], "target_image_id": "marker", "positive_image_ids": ["marker"]}]
    benchmark = cir_datasets.load(world.ID)
    with pytest.raises(CirError) as raised:
        laid_over(benchmark, as_bytes(world.ID, [*rows, *material.rows[1:]]))
    assert "does not fit the benchmark" in str(raised.value)
    assert "marker" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_phases_come_one_after_the_other() -> None:
    start = datetime(2026, 12, 1, tzinfo=UTC)
    board = boards.board("shapes/val").model_dump()
    phases = [
        {"name": "dev", "opens": "2026-12-01", "closes": "2026-12-11T12:00"},
        {
            "name": "test",
            "opens": "2026-12-12T01:00+01:00",
            "closes": "2026-12-20",
            "a_day": 2,
            "results": "at_end",
        },
    ]
    found = boards.parse(board | {"phases": phases}, "x.yaml")
    assert found.phases[1].opens == start + timedelta(days=11)
    assert found.closed(start - timedelta(seconds=1)) == (
        "its next phase, dev, opens on 2026-12-01 at 00:00 UTC."
    )
    assert found.closed(start) is None
    assert "test, opens on 2026-12-12" in str(found.closed(start + timedelta(days=10, hours=12)))
    end = start + timedelta(days=20, seconds=-1)
    assert found.closed(end - timedelta(seconds=1)) is None
    assert "its last phase, test, closed on 2026-12-20 at 23:59" in str(found.closed(end))
    assert found.shown_from(start) is None
    assert found.shown_from(start + timedelta(days=12)) == end
    for change, words in (
        ({"opens": "2026-12-11"}, "opens before 'dev' has closed"),
        ({"closes": "2026-12-11"}, "closes before it opens"),
        ({"name": "dev"}, "one name"),
        ({"a_day": 0}, "a_day"),
        ({"opens": "soon"}, "opens"),
    ):
        with pytest.raises(BoardError, match=words):
            boards.parse(board | {"phases": [phases[0], phases[1] | change]}, "x.yaml")


def test_phases_as_dates_of_yaml_are_utc() -> None:
    found = Phase.model_validate(
        {"name": "a", "opens": datetime(2026, 1, 1).date(), "closes": datetime(2026, 1, 2)}
    )
    assert (found.opens.tzinfo, found.closes - found.opens) == (UTC, timedelta(days=1))

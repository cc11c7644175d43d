"""Contradictions in transcripts: every single change gives its code, and sound transcripts give none."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmark_world import dialogues as world
from transcript_mutations import MUTATIONS, SAYS, Lines, lines
from transcript_twins import random_dialogue

from submissions.formats import is_transcript
from submissions.rank_file.findings import RefusedError, ValidationReport, codes
from submissions.transcripts.checking import check_transcript
from submissions.transcripts.sessions import CheckedTranscript
from submissions.transcripts.settings import RoundSettings
from submissions.transcripts.transcript import write_transcript
from submissions.validation import validate


def content(rows: Lines) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def checked(rows: Lines, **more: Any) -> CheckedTranscript:
    return check_transcript(content(rows), world.small_benchmark(), name="talk.jsonl", **more)


def found(report: ValidationReport) -> list[str]:
    return [finding.code for finding in report.findings]


def test_the_dialogue_by_hand_is_sound() -> None:
    report = checked(lines()).report
    assert report.ok, report.text()
    assert report.queries == 3


@pytest.mark.parametrize(
    ("code", "change"), [pytest.param(code, change, id=f"{code}: {what}") for code, what, change in MUTATIONS]
)
def test_every_single_change_gives_its_code(code: str, change: Any) -> None:
    rows = lines()
    change(rows)
    report = checked(rows).report
    assert code in found(report), report.text()
    assert not report.ok
    [first, *_] = [finding for finding in report.findings if finding.code == code]
    assert first.severity == codes()[code].severity == "error"
    assert first.message.endswith((".", "?"))
    assert first.fix
    with pytest.raises(RefusedError):
        checked(rows).score()


@pytest.mark.parametrize(("code", "part", "change"), SAYS)
def test_a_finding_says_where_what_is_wrong_and_one_fix(code: str, part: str, change: Any) -> None:
    rows = lines()
    change(rows)
    report = checked(rows).report
    [finding] = [each for each in report.findings if each.code == code]
    assert part in f"{finding.message} {finding.fix}"
    assert code != "bad-metadata" or finding.fix.endswith(", then run  cir validate talk.jsonl")
    assert report.text().count("Fix:") == len(report.findings)


def test_a_rank_within_the_list_needs_its_image(tmp_path: Path) -> None:
    """However short the list is by images that could not be read."""
    benchmark, transcript = random_dialogue(5, RoundSettings(max_rounds=1, k=10), sessions=4)
    size = len(benchmark.gallery or ())
    assert size > 50
    method = transcript.method.model_copy(update={"skipped_images": size - 2})
    first = transcript.rounds[0]
    wrong = next(image for image in first.top if image not in benchmark.rows()[0]["positive_image_ids"])
    forged = first.model_copy(update={"top": [wrong], "rank": 2, "end": "solved"})
    path = write_transcript(
        transcript.model_copy(update={"method": method, "rounds": [forged, *transcript.rounds[1:]]}),
        tmp_path / "forged.jsonl",
    )
    assert "wrong-rank" in found(check_transcript(path, benchmark).report)


def test_blank_lines_count(tmp_path: Path) -> None:
    rows = content(lines()).splitlines(keepends=True)
    rows.insert(1, b"\n")
    rows[5] = rows[5].replace(b'"rank": 7', b'"rank": 3')
    report = check_transcript(b"".join(rows), world.small_benchmark()).report
    assert report.findings[0].message.startswith("line 6: ")


@pytest.mark.parametrize("after_success", ["stop", "continue"])
@pytest.mark.parametrize("candidate", ["unseen", "top1", "random-top10"])
@pytest.mark.parametrize("start", ["published", "random"])
@pytest.mark.parametrize("card", ["shapes/val", "circo/val"])
def test_dialogues_by_the_rules_are_sound(after_success: str, candidate: str, start: str, card: str) -> None:
    for seed, (aim, feedback) in enumerate([("target", "fresh"), ("best", "unchanged"), ("best", "fresh")]):
        choices = {"after_success": after_success, "candidate": candidate, "start": start}
        settings = RoundSettings(k=3, aim=aim, feedback=feedback, seed=seed, **choices)
        benchmark, transcript = random_dialogue(seed, settings, card=card)
        rows = [transcript.header(), *(each.model_dump() for each in transcript.rounds)]
        report = check_transcript(content(rows), benchmark).report
        assert report.ok, report.text()


def test_random_starts_are_those_of_the_seed() -> None:
    settings = RoundSettings(start="random", seed=4)
    benchmark, transcript = random_dialogue(0, settings)
    rows = [transcript.header(), *(each.model_dump() for each in transcript.rounds)]
    rows[0]["settings"]["seed"] = 5
    assert {"unknown-query", "missing-query"} <= set(found(check_transcript(content(rows), benchmark).report))
    renamed = [{**row, "session": row["session"].replace("-4-", "-5-")} for row in rows[1:]]
    assert "wrong-start" in found(check_transcript(content([rows[0], *renamed]), benchmark).report)


def test_a_rank_beyond_the_gallery_is_refused() -> None:
    settings = RoundSettings(k=1, max_rounds=1)
    benchmark, transcript = random_dialogue(3, settings, sessions=20)
    rows = [transcript.header(), *(each.model_dump() for each in transcript.rounds)]
    behind = next(row for row in rows[1:] if row["rank"] > 50)
    behind["rank"] = 70
    [finding] = check_transcript(content(rows), benchmark).report.findings
    assert finding.code == "wrong-rank"
    assert "69 images are ranked" in finding.message
    behind["rank"] = 49
    [finding] = check_transcript(content(rows), benchmark).report.findings
    assert "none of the list's 50 images is a positive" in finding.message


def test_changing_any_rank_of_a_listed_target_is_found() -> None:
    benchmark, transcript = random_dialogue(8, RoundSettings(k=1))
    sound = [transcript.header(), *(each.model_dump() for each in transcript.rounds)]
    for place, row in enumerate(sound[1:], start=1):
        for rank in {1, 2, 25, 50, 51, 69} - {row["rank"]}:
            rows = [dict(each) for each in sound]
            rows[place]["rank"] = rank
            report = check_transcript(content(rows), benchmark).report
            # A rank behind the list may be any, as nothing says which.
            assert report.ok is (row["rank"] > 50 and rank > 50)


def test_missing_sessions_are_forgiven_only_if_asked() -> None:
    rows = lines()
    del rows[3:6]
    with pytest.raises(RefusedError, match="--allow-missing"):
        checked(rows).score()
    report = checked(rows).score(allow_missing=True)
    assert (report.n, report.missing, report.submittable) == (2, 1, False)
    assert "skipped:complete" in report.signature_text(report.main_metric)


@pytest.mark.parametrize("start", ["published", "random"])
@pytest.mark.parametrize("allow_missing", [False, True])
def test_a_transcript_without_sessions_is_refused(start: str, allow_missing: bool) -> None:
    header = lines()[0]
    header["settings"]["start"] = start
    without = checked([header])
    assert found(without.report) == ["missing-query"]
    with pytest.raises(RefusedError):
        without.score(allow_missing=allow_missing)


def test_a_limit_leaves_the_first_sessions_of_the_draw_and_no_others() -> None:
    # The draw of seed 0: by the first eight bytes of sha256("0/finds") and so on.
    order = sorted(("finds", "never", "silent"), key=lambda name: sha256(f"0/{name}".encode()).digest()[:8])
    for number in (1, 2):
        rows = [row for row in lines() if row.get("session") in (None, *order[:number])]
        report = checked(rows)
        assert report.report.ok, report.report.text()
        signature = report.score().signature_text("hits@1@turn1")
        assert f"sessions:{number} seed:0 " in signature
    rows = [row for row in lines() if row.get("session") in (None, order[1])]
    assert found(checked(rows).report) == ["missing-query"]


def test_another_benchmark_is_refused() -> None:
    report = check_transcript(content(lines()), "circo/val").report
    assert found(report) == ["wrong-benchmark"]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_both_forms_are_read_and_give_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    path = write_transcript(world.transcript(), tmp_path / f"talk{suffix}")
    read = check_transcript(path, world.small_benchmark())
    assert read.report.ok, read.report.text()
    assert read.transcript == world.transcript()
    again = write_transcript(world.transcript(), tmp_path / f"again{suffix}")
    assert again.read_bytes() == path.read_bytes()


def test_parquet_of_other_writers_is_read(tmp_path: Path) -> None:
    path = write_transcript(world.transcript(), tmp_path / "talk.parquet")
    table = pq.read_table(path)
    kinds = {"round": pa.int64(), "rank": pa.int32(), "session": pa.dictionary(pa.int32(), pa.string())}
    kinds |= {"caption": pa.large_string(), "top": pa.large_list(pa.large_string())}
    fields = [pa.field(each.name, kinds.get(each.name, each.type)) for each in table.schema]
    pq.write_table(table.cast(pa.schema(fields, metadata=table.schema.metadata)), path)
    read = check_transcript(path, world.small_benchmark())
    assert read.report.ok, read.report.text()
    assert read.transcript == world.transcript()


@pytest.mark.parametrize("change", ["drop", "rename", "more", "type"])
def test_parquet_with_other_columns_is_refused(tmp_path: Path, change: str) -> None:
    path = write_transcript(world.transcript(), tmp_path / "talk.parquet")
    table = pq.read_table(path)
    changed = {
        "drop": lambda: table.drop_columns(["end"]),
        "rename": lambda: table.rename_columns({"end": "ending"}),
        "more": lambda: table.append_column("score", pa.array([0.5] * len(table))),
        "type": lambda: table.set_column(2, "round", pa.array([1.5] * len(table))),
    }[change]()
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    assert found(check_transcript(path, world.small_benchmark()).report) == ["wrong-format"]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_file_says_that_it_is_a_transcript(tmp_path: Path, suffix: str) -> None:
    path = write_transcript(world.transcript(), tmp_path / f"talk{suffix}")
    packed = gzip.compress(path.read_bytes())
    assert is_transcript(path)
    assert is_transcript(path.read_bytes())
    assert is_transcript(packed) is (suffix == ".jsonl")
    other = tmp_path / "run.parquet"
    pq.write_table(pa.table({"query_id": ["1"]}).replace_schema_metadata({"cir-rank-file": "{}"}), other)
    assert not is_transcript(other)
    assert not is_transcript(tmp_path / "nowhere")


def whole(rows: Lines) -> dict[str, Any]:
    return {**rows[0], "rounds": rows[1:]}


def indented(value: Any) -> str:
    return json.dumps(value, indent=2)


SHAPES = {
    "indented": ("\n".join(map(indented, lines())), "wrong-format", "jq -c '.' "),
    "a list": (json.dumps(lines()), "wrong-format", "jq -c '.[]' "),
    "an indented list": (indented(lines()), "wrong-format", "jq -c '.[]' "),
    "one object": (json.dumps(whole(lines())), "bad-type", "jq -c 'del(.rounds), .rounds[]' "),
    "one indented object": (indented(whole(lines())), "wrong-format", "jq -c 'del(.rounds), .rounds[]' "),
    "without header": (content(lines()[1:]).decode(), "wrong-format", "put back its first line"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("start", ["", "\ufeff", "\n"])
def test_transcripts_of_other_shapes_are_named_with_what_makes_lines_of_them(shape: str, start: str) -> None:
    text, code, fix = SHAPES[shape]
    file = (start + text).encode()
    assert is_transcript(file)
    [finding] = check_transcript(file, world.small_benchmark(), name="talk.json").report.findings
    assert finding.code == code
    assert fix in finding.fix
    assert found(validate(file)) == ["wrong-kind"]


def test_a_transcript_in_parquet_without_its_header_is_named(tmp_path: Path) -> None:
    path = write_transcript(world.transcript(), tmp_path / "talk.parquet")
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({}), path)
    assert is_transcript(path)
    [finding] = check_transcript(path, world.small_benchmark()).report.findings
    assert finding.code == "wrong-format"
    assert "its header" in finding.message
    assert "keep the schema's metadata" in finding.fix
    assert found(validate(path)) == ["wrong-kind"]


OTHERS = {
    "native": b'{"format": "cir-rank-file", "format_version": 1, "benchmark": "shapes/val"}',
    "indented": b'{\n  "format": "cir-rank-file",\n  "benchmark": "shapes/val"\n}',
    "a bundle": b'{"format": "cir-rank-bundle", "suite": "x", "runs": []}',
    "lines": b'{"format": "cir-rank-file-lines"}\n{"query_id": "1", "ranking": ["a"]}\n',
    "trec": b"q1 Q0 image1 1 0.97 clip\n",
    "empty": b"",
    "blank": b" \n",
}


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_rank_file_among_transcripts_and_an_empty_file_are_named(kind: str, packed: bool) -> None:
    file = gzip.compress(OTHERS[kind]) if packed else OTHERS[kind]
    assert not is_transcript(file)
    [finding] = check_transcript(file, name="run").report.findings
    if OTHERS[kind].strip():
        assert finding.code == "wrong-kind"
        assert "cir score run " in finding.fix
    else:
        [other] = validate(file).findings
        assert finding.message == other.message == "the file is empty."


def test_a_method_that_quotes_a_transcript_is_still_a_rank_file() -> None:
    notes = json.dumps({"format": "cir-rank-file", "notes": '"format": "cir-transcript"'}).encode()
    assert not is_transcript(notes)
    assert not is_transcript(b'{"format": "cir-rank-file",\n"method": {"format": "cir-transcript"}}')


def test_a_benchmark_that_cannot_be_played_has_one_fix() -> None:
    for benchmark in ("shapes/multiturn_val", "shapes/vall"):
        rows = lines()
        rows[0].update(benchmark=benchmark)
        report = check_transcript(content(rows), name="talk.jsonl").report
        assert report.text().count("Fix:") == 1, report.text()


@pytest.mark.parametrize("where", ["file", "form"])
def test_lists_that_hold_what_is_declared_to_be_removed_are_refused_with_their_line(where: str) -> None:
    benchmark, transcript = random_dialogue(5, RoundSettings(max_rounds=1), card="fashioniq/dress_val")
    rows = [transcript.header(), *(each.model_dump() for each in transcript.rounds)]
    held = [row["reference"] in row["top"] for row in rows[1:]]
    assert any(held)
    form = {"reference": "removed"} if where == "form" else {}
    rows[0]["method"].update({"reference": "removed"} if where == "file" else {})
    report = check_transcript(content(rows), benchmark, form=form).report
    [finding] = [each for each in report.findings if each.code == "reference-contradiction"]
    assert finding.count == sum(held)
    assert finding.message.startswith(f"line {held.index(True) + 2}: ")
    assert check_transcript(content([transcript.header(), *rows[1:]]), benchmark).report.ok

"""Reviews: what people may say, what is refused and why, what becomes of triplets; nothing is lost."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from fisd_runs import OPTIONS, content, run, shapes_captions

from cir_datasets.construction.fisd.making import MadeFisd
from cir_datasets.construction.fisd.outcome import write_outcome
from cir_datasets.construction.fisd.review import review_form, write_review
from cir_datasets.construction.fisd.triplets import ReviewedTriplet
from cir_datasets.construction.folder_check import check_folder
from cir_datasets.errors import ConstructionError

MOST = 4
COLUMNS = review_form(MOST).table_columns


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    return shapes_captions(tmp_path)


def exported(made: MadeFisd) -> dict[str, dict[str, str]]:
    """The rows of review.csv by id."""
    write_review(made.workspace.folder, made.triplets, MOST, "Review")
    file = made.workspace.folder / "review.csv"
    return {row["id"]: row for row in csv.DictReader(io.StringIO(file.read_text("utf-8"), newline=""))}


def filled(made: MadeFisd, folder: Path, *changes: dict[str, str], delimiter: str = ",") -> Path:
    """review.csv with some rows changed, or added where their id is not there."""
    rows = exported(made)
    for change in changes:
        rows[change["id"]] = {**rows.get(change["id"], {}), **change}
    text = io.StringIO(newline="")
    lines = csv.DictWriter(text, COLUMNS, delimiter=delimiter)
    lines.writeheader()
    lines.writerows(rows.values())
    file = folder / "filled.csv"
    file.write_text(text.getvalue(), encoding="utf-8", newline="")
    return file


def by_id(made: MadeFisd) -> dict[str, ReviewedTriplet]:
    return {each.id: each for each in made.triplets}


def test_where_people_drop_everything_there_is_no_benchmark(tmp_path: Path, captions: Path) -> None:
    made = run(tmp_path / "out", captions)
    folder = write_outcome(made, name="mine", title="Mine", settings={})
    file = filled(made, tmp_path, *({"id": each, "verdict": "drop"} for each in exported(made)))
    now = run(tmp_path / "out", captions, review=file)
    with pytest.raises(ConstructionError, match="no triplet is left"):
        write_outcome(now, name="mine", title="Mine", settings={})
    assert not check_folder(folder).ok


def test_verdicts_and_corrections_reach_the_queries_and_the_originals_are_kept(
    tmp_path: Path, captions: Path
) -> None:
    made = run(tmp_path / "out", captions)
    before = {query["query_id"]: query for query in made.queries}
    file = filled(
        made,
        tmp_path,
        {"id": "change_000", "verdict": "Keep", "relative_caption": "a better  wording"},
        {"id": "change_001", "verdict": "drop", "note": "a cartoon"},
    )
    now = run(tmp_path / "out", captions, review=file)
    after = {query["query_id"]: query for query in now.queries}
    assert after["change_000"]["relative_caption"] == "a better wording"
    assert by_id(now)["change_000"].original == {
        "captions": list(by_id(made)["change_000"].captions),
        "relative_caption": before["change_000"]["relative_caption"],
        "numbers": [],
    }
    assert "change_001" not in after
    assert by_id(now)["change_001"].failed == "review: a cartoon"
    assert "change_003" in after, "a spare one takes its place"
    assert (tmp_path / "out" / "reviews" / "0001.csv").read_bytes() == file.read_bytes()
    stored = content(tmp_path / "out")
    run(tmp_path / "out", captions, review=file)
    run(tmp_path / "out", captions)
    assert content(tmp_path / "out") == stored, "the same file again, or none, changes nothing"


def test_corrected_counts_make_new_words_and_equal_ones_drop_the_triplet(
    tmp_path: Path, captions: Path
) -> None:
    made = run(tmp_path / "out", captions)
    first, second = (by_id(made)[f"cardinality_00{place}"] for place in (0, 1))
    missing = next(number for number in range(1, MOST + 1) if number not in first.numbers)
    file = filled(
        made,
        tmp_path,
        {"id": first.id, "verdict": "keep", "target_count": str(missing)},
        {"id": second.id, "verdict": "keep", "negative_count": str(second.numbers[0])},
    )
    now = by_id(run(tmp_path / "out", captions, review=file))
    corrected = now[first.id]
    assert corrected.numbers == (first.numbers[0], missing, first.numbers[2])
    word = ("one", "two", "three", "four")[missing - 1]
    assert corrected.relative_caption.startswith(word)
    assert corrected.failed is None
    assert corrected.images == first.images, "nothing is drawn anew"
    assert corrected.original["numbers"] == list(first.numbers)
    assert (now[second.id].failed or "").endswith("and two of them are the same")


def test_pictures_are_drawn_anew_with_another_seed_and_looked_at_again(
    tmp_path: Path, captions: Path
) -> None:
    made = run(tmp_path / "out", captions)
    old = by_id(made)["addition_001"]
    file = filled(made, tmp_path, {"id": old.id, "verdict": "redraw"})
    again = run(tmp_path / "out", captions, review=file)
    new = by_id(again)[old.id]
    assert new.seed != old.seed
    assert new.decision.verdict == ""
    assert not set(new.images) & set(old.images), "the earlier pictures stay under their names"
    assert all((tmp_path / "out" / "benchmark" / "images" / image).is_file() for image in old.images)
    assert exported(again)[old.id]["seed"] == str(new.seed)
    third = filled(again, tmp_path, {"id": old.id, "verdict": "drop"})
    last = by_id(run(tmp_path / "out", captions, review=third))
    assert last[old.id].failed == "review: dropped"
    assert last[old.id].decision.attempt == 1
    assert len(last[old.id].decision.said) == 2


def test_words_on_earlier_pictures_are_refused(tmp_path: Path, captions: Path) -> None:
    made = run(tmp_path / "out", captions)
    again = run(
        tmp_path / "out", captions, review=filled(made, tmp_path, {"id": "addition_001", "verdict": "redraw"})
    )
    stale = {"id": "addition_001", "seed": str(by_id(made)["addition_001"].seed), "verdict": "keep"}
    with pytest.raises(ConstructionError, match=r"'addition_001': its pictures were drawn anew since"):
        run(tmp_path / "out", captions, review=filled(again, tmp_path, stale))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"id": "change_999"}, "there is no such triplet"),
        ({"id": "change_000", "verdict": "kep"}, "verdict 'kep' is not known. Did you mean 'keep'?"),
        ({"id": "change_000", "target_count": "2"}, "target_count is not asked of this triplet"),
        (
            {"id": "cardinality_000", "target_count": "0"},
            "target_count '0' is not a whole number from 1 to 4",
        ),
        (
            {"id": "cardinality_000", "target_count": "two"},
            "target_count 'two' is not a whole number from 1 to 4",
        ),
        (
            {"id": "cardinality_000", "target_count": "5"},
            "target_count '5' is not a whole number from 1 to 4",
        ),
        (
            {"id": "change_000", "verdict": "redraw", "relative_caption": "x"},
            "relative_caption is answered, and verdict is 'redraw', which does without it",
        ),
    ],
)
def test_a_row_that_cannot_be_taken_in_is_named_and_nothing_is(
    tmp_path: Path, captions: Path, change: dict[str, str], why: str
) -> None:
    made = run(tmp_path / "out", captions)
    file = filled(made, tmp_path, {"id": "addition_000", "verdict": "drop"}, change)
    stored = content(tmp_path / "out")
    with pytest.raises(ConstructionError) as caught:
        run(tmp_path / "out", captions, review=file)
    assert why in str(caught.value)
    assert f"{change['id']!r}: " in str(caught.value)
    assert "1 faults in " in str(caught.value)
    assert content(tmp_path / "out") == stored


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"id,verdict\nchange_000,keep\n", "line 1 does not name the columns seed"),
        (b"\xff", "byte 0 is not UTF-8"),
        (b"id,seed,verdict\n", "it has no rows"),
    ],
)
def test_a_file_that_is_no_review_explains_itself(
    tmp_path: Path, captions: Path, text: bytes, why: str
) -> None:
    (tmp_path / "filled.csv").write_bytes(text)
    with pytest.raises(ConstructionError, match=why):
        run(tmp_path / "out", captions, review=tmp_path / "filled.csv")


def test_an_id_that_is_there_twice_is_refused(tmp_path: Path, captions: Path) -> None:
    made = run(tmp_path / "out", captions)
    file = filled(made, tmp_path, {"id": "change_000", "verdict": "keep"})
    lines = file.read_bytes().splitlines(keepends=True)
    twice = next(line for line in lines if line.startswith(b"change_000,"))
    file.write_bytes(b"".join([*lines, twice]))
    with pytest.raises(ConstructionError, match=r"'change_000': it is there twice\."):
        run(tmp_path / "out", captions, review=file)


def test_a_file_with_semicolons_is_read(tmp_path: Path, captions: Path) -> None:
    made = run(tmp_path / "out", captions)
    file = filled(made, tmp_path, {"id": "change_000", "verdict": "drop"}, delimiter=";")
    assert by_id(run(tmp_path / "out", captions, review=file))["change_000"].failed == "review: dropped"


def test_what_the_page_saves_as_json_is_taken_in_and_kept_as_it_came(tmp_path: Path, captions: Path) -> None:
    made = run(tmp_path / "out", captions)
    seeds = {each.id: each.seed for each in made.triplets}
    answers = [
        {"id": "change_000", "seed": str(seeds["change_000"]), "verdict": "drop", "note": "a cartoon"},
        {"id": "change_001", "seed": seeds["change_001"], "verdict": "keep", "seconds": 4.5},
    ]
    file = tmp_path / "answers-1.json"
    file.write_text(json.dumps({"form": "fisd", "run": "", "annotator": "Ann", "answers": answers}))
    now = by_id(run(tmp_path / "out", captions, review=file))
    assert now["change_000"].failed == "review: a cartoon"
    assert now["change_001"].decision.verdict == "keep"
    assert (tmp_path / "out" / "reviews" / "0001.json").read_bytes() == file.read_bytes()
    later = filled(made, tmp_path, {"id": "change_001", "verdict": "drop"})
    last = by_id(run(tmp_path / "out", captions, review=later))
    assert [last[id].decision.verdict for id in ("change_000", "change_001")] == ["drop", "drop"]


def test_only_what_people_keep_is_left_where_that_is_asked(tmp_path: Path, captions: Path) -> None:
    import dataclasses

    given: dict[str, Any] = {"options": dataclasses.replace(OPTIONS, reviewed_only=True)}
    made = run(tmp_path / "out", captions, **given)
    assert not made.queries
    file = filled(made, tmp_path, {"id": "change_000", "verdict": "keep"})
    kept = run(tmp_path / "out", captions, review=file, **given).queries
    assert [query["query_id"] for query in kept] == ["change_000"]


@pytest.mark.parametrize("write", [0, 1, 2])
def test_a_run_that_ends_while_a_review_is_taken_in_goes_on_with_it(
    tmp_path: Path, captions: Path, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    from cir_datasets.common import stages
    from cir_datasets.common.atomic import write_whole
    from cir_datasets.construction.review import answers

    made = run(tmp_path / "out", captions)
    file = filled(made, tmp_path, {"id": "change_000", "verdict": "drop"})
    left = [write]

    def ending(path: Path, data: bytes, **options: Any) -> None:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        write_whole(path, data, **options)

    with monkeypatch.context() as patch:
        patch.setattr(stages, "write_whole", ending)
        patch.setattr(answers, "write_whole", ending)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "out", captions, review=file)
    assert by_id(run(tmp_path / "out", captions, review=file))["change_000"].failed == "review: dropped"
    assert [path.name for path in (tmp_path / "out" / "reviews").iterdir()] == ["0001.csv"]


def saved(made: MadeFisd, *changes: dict[str, str]) -> Path:
    """review.csv in the run's folder, as somebody who fills it in there leaves it."""
    file = filled(made, made.workspace.folder, *changes)
    return file.rename(made.workspace.folder / "review.csv")


def written(made: MadeFisd, given: Path | None = None) -> bool:
    return write_review(made.workspace.folder, made.triplets, MOST, "Review", taken_in=given)


def test_what_people_wrote_into_the_file_is_not_written_over(tmp_path: Path, captions: Path) -> None:
    made = run(tmp_path / "out", captions)
    file = saved(made, {"id": "change_000", "verdict": "drop", "note": "a cartoon"})
    content = file.read_bytes()
    assert written(made) is True
    assert written(run(tmp_path / "out", captions)) is True
    assert file.read_bytes() == content
    # Taken in, it is left as it is, too, and what it says is known.
    now = run(tmp_path / "out", captions, review=file)
    assert written(now, file) is False
    assert written(now) is False
    assert file.read_bytes() == content
    second = filled_anew(now, tmp_path, {"id": "change_001", "verdict": "keep"})
    later = run(tmp_path / "out", captions, review=second)
    assert written(later) is False
    assert [by_id(later)[f"change_00{place}"].decision.verdict for place in (0, 1)] == ["drop", "keep"]


def filled_anew(made: MadeFisd, folder: Path, change: dict[str, str]) -> Path:
    """A file with one row alone."""
    file = folder / "second.csv"
    seed = by_id(made)[change["id"]].seed
    file.write_text(f"id,seed,verdict\n{change['id']},{seed},{change['verdict']}\n")
    return file


def test_a_file_that_nobody_touched_is_written_anew_with_past_decisions(
    tmp_path: Path, captions: Path
) -> None:
    made = run(tmp_path / "out", captions)
    assert written(made) is False
    file = filled_anew(made, tmp_path, {"id": "change_001", "verdict": "keep"})
    content = file.read_bytes()
    now = run(tmp_path / "out", captions, review=file)
    assert written(now, file) is False
    assert exported(now)["change_001"]["verdict"] == "keep"
    assert file.read_bytes() == content


def test_the_file_that_is_taken_in_is_not_touched_even_where_it_is_ours(
    tmp_path: Path, captions: Path
) -> None:
    made = run(tmp_path / "out", captions)
    first = filled_anew(made, tmp_path, {"id": "change_001", "verdict": "keep"})
    now = run(tmp_path / "out", captions, review=first)
    written(now)
    table = tmp_path / "out" / "review.csv"
    content = table.read_bytes()
    other = run(
        tmp_path / "out",
        captions,
        review=filled_anew(now, tmp_path, {"id": "change_002", "verdict": "drop"}),
    )
    written(other, table)
    assert table.read_bytes() == content
    written(other)
    assert table.read_bytes() != content


@pytest.mark.parametrize("text", ["=1+1", "+a star", "-1", "@star", "'=1", "＝1"])
def test_what_a_spreadsheet_would_compute_is_harmless_and_comes_back(
    tmp_path: Path, captions: Path, text: str
) -> None:
    made = run(tmp_path / "out", captions)
    file = filled(made, tmp_path, {"id": "change_000", "verdict": "keep", "relative_caption": f"'{text}"})
    now = run(tmp_path / "out", captions, review=file)
    assert by_id(now)["change_000"].relative_caption == text
    written(now)
    with (tmp_path / "out" / "review.csv").open(newline="") as table:
        cells = [cell for row in csv.reader(table) for cell in row]
    assert f"'{text}" in cells
    assert not [cell for cell in cells if cell.startswith(tuple("=+-@＝"))]
    again = run(tmp_path / "again", captions)
    taken = run(tmp_path / "again", captions, review=tmp_path / "out" / "review.csv")
    assert by_id(again)["change_000"].relative_caption != text
    assert by_id(taken)["change_000"].relative_caption == text

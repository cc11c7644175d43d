"""`cir make review` and `cir make review-import`: what is given out, and what answers come to."""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from cir_here import invoked
from datasets_publishers import cirr_images, write_cirr
from PIL import Image

import cir_datasets
from cir_datasets.construction.review.form import load_form
from cir_datasets.construction.review.queries import drawn_items
from cir_datasets.errors import ConstructionError

cir = functools.partial(invoked, code=0)
Answer = dict[str, str]


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CIR_OVERLAYS", str(tmp_path / "overlays"))
    monkeypatch.setenv("CIR_BENCHMARKS", "")


def items_of(folder: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(Path(folder, "review.json").read_text())["items"]
    return items


def other(name: str) -> str:
    """A second benchmark: the last half of the queries."""
    queries = cir_datasets.load("shapes/val").query_ids[150:]
    Path(f"{name}.json").write_text(
        json.dumps({"overlay": name, "benchmark": "shapes/val", "benchmark_version": 2, "queries": queries})
    )
    cir("datasets", "overlay", "add", f"{name}.json")
    return f"shapes/val+{name}"


def handed_in(folder: str, people: int, say: Callable[[int, dict[str, Any]], Answer]) -> list[Path]:
    """Files of that many people, as the page saves them."""
    given = json.loads(Path(folder, "review.json").read_text())
    files = []
    for person in range(people):
        answers = [{"id": item["id"], **say(person, item)} for item in given["items"]]
        common = {"form": given["form"]["name"], "run": given["run"], "annotator": f"p{person}"}
        files.append(Path(folder, f"p{person}.json"))
        files[-1].write_text(json.dumps({**common, "answers": answers}))
    return files


def cells(text: str) -> dict[tuple[str, str], list[float]]:
    """By source and question the numbers of a row."""
    rows = [line.split() for line in text.splitlines() if line.startswith(("shapes/", "cirr/"))]
    return {(row[0], row[1]): [float(one) for one in row[2:]] for row in rows if row[1] != "(paper)"}


def noisy(person: int, item: dict[str, Any]) -> Answer:
    number = int(item["id"])
    return {
        "inconsistent": "yes" if number % 3 == 0 or (number + person) % 5 == 0 else "no",
        "irrelevant": "yes" if (number * (person + 2)) % 7 == 0 else "no",
    }


def test_an_audit_has_shares_with_intervals_and_an_overlay_of_clean_queries() -> None:
    cir("make", "review", "noise", "shapes/val", "--sample", 60, "--out", "audit")
    items = items_of("audit")
    assert len({(item["query"], item["target"]) for item in items}) == 60
    made = cir("make", "review-import", "audit", *handed_in("audit", 3, noisy))
    found = cells(made.stdout)
    clean: dict[str, bool] = defaultdict(lambda: True)
    for item in items:
        for name in ("inconsistent", "irrelevant"):
            clean[item["query"]] &= sum(noisy(one, item)[name] == "yes" for one in range(3)) < 2
    for name in ("inconsistent", "irrelevant"):
        cases, share, low, high, _ = found["shapes/val", name]
        assert (cases, low < share < high) == (60, True)
        assert share == pytest.approx(
            mean(noisy(one, item)[name] == "yes" for item in items for one in range(3)), abs=1e-4
        )
    cir("datasets", "overlay", "add", "audit/shapes_val+noise_clean.json")
    kept = cir_datasets.load("shapes/val+noise_clean").query_ids
    assert sorted(kept) == sorted(query for query, is_clean in clean.items() if is_clean)
    assert 0 < len(kept) < len(clean)


def test_cases_that_fewer_people_answered_are_counted_and_other_runs_refused() -> None:
    for seed in (0, 1):
        cir("make", "review", "noise", "shapes/val", "--sample", 8, "--seed", seed, "--out", f"audit-{seed}")
    two = handed_in("audit-0", 2, noisy)
    made = cir("make", "review-import", "audit-0", *two, *handed_in("audit-1", 1, noisy))
    assert "8 of 8 cases have fewer than 3 answers." in made.stdout
    assert "it answers cases of another run" in made.stderr
    again = invoked("make", "review", "noise", "shapes/val", "--sample", 9, "--out", "audit-0")
    assert "it holds another review" in str(again.exception)


def test_targets_are_cases_and_members_of_a_suite_share_its_sample_evenly() -> None:
    members = [cir_datasets.load(name) for name in ("shapes/val", other("second"), "shapes/val")]
    form = load_form("noise")
    drawn = drawn_items(form, {"three": members[:2], "one": members[2:]}, sample=21, seed=3)
    numbers = [
        sum(one["benchmark"] == name for one in drawn if one["source"] == "three")
        for name in ("shapes/val", "shapes/val+second")
    ]
    assert numbers == [11, 10]
    whole = drawn_items(form, {"one": members[:1]}, sample=0)
    assert len(whole) == sum(map(len, members[0].positives)) > len(members[0])
    assert drawn_items(form, {"one": members[:1]}, sample=0) == whole
    assert [one["query"] for one in whole] != sorted(one["query"] for one in whole)


def test_what_a_form_shows_must_be_there() -> None:
    with pytest.raises(ConstructionError, match="it has sessions"):
        drawn_items(load_form("noise"), {"one": [cir_datasets.load("shapes/multiturn_val")]})


def test_auxiliary_answers_become_a_field_of_a_benchmark() -> None:
    def say(person: int, item: dict[str, Any]) -> Answer:
        there = int(item["id"]) % 2
        texts = {name: f"of {item['query']}" for name in ("preserved", "background") if there}
        return texts | {
            "changed_none": "c",
            "camera_none": "cr1",
            **({} if there else {"preserved_none": "c", "background_none": "cr0"}),
        }

    cir("make", "review", "auxiliary", "shapes/val", "--out", "asked", "--sample", 40)
    made = cir("make", "review-import", "asked", *handed_in("asked", 1, say))
    shares = {question: row[1] for (_, question), row in cells(made.stdout).items()}
    assert shares == {"preserved": 0.5, "changed": 0.0, "camera": 0.0, "background": 0.5}
    cir("datasets", "check", "asked/shapes_val")
    written = Path("asked/shapes_val/val.jsonl").read_text()
    rows = {row["query_id"]: row for row in map(json.loads, written.splitlines())}
    assert len(rows) == 300
    for item in items_of("asked"):
        there = int(item["id"]) % 2
        assert rows[item["query"]]["auxiliary_captions"] == [
            f"of {item['query']}" if there else "[c] None existed",
            "[c] None existed",
            "[cr1] Covered in query",
            f"of {item['query']}" if there else "[cr0] Nothing worth mentioning",
        ]
    assert sum("auxiliary_captions" in row and bool(row["auxiliary_captions"]) for row in rows.values()) == 40


def test_peoples_choices_are_a_rank_file_and_a_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    write_cirr(tmp_path, "val")
    for image in cirr_images("val"):
        (tmp_path / "images" / "val").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20, 20)).save(tmp_path / "images" / "val" / f"{image}.png")
    cir("make", "review", "performance", "cirr/val", "--images", "images", "--out", "people")
    items = items_of("people")
    assert {tuple(sorted(item["candidates"])) for item in items} != {tuple(items[0]["candidates"])}

    def say(person: int, item: dict[str, Any]) -> Answer:
        wrong = next(image for image in item["candidates"] if image != item["target"])
        # All are right of the first, two of the second, one of the third.
        return {"chosen": item["target"] if person < 4 - int(item["id"]) else wrong}

    made = cir("make", "review-import", "people", *handed_in("people", 3, say))
    (row,) = cells(made.stdout).values()
    assert (row[0], row[1], row[-1]) == (3, round(2 / 3, 4), 0.8609)
    scored = json.loads(cir("score", "people/cirr_val-people.json", "-b", "cirr/val", "--json").stdout)
    assert scored["metrics"]["recall_subset@1"] == pytest.approx(2 / 3)
    assert scored["metrics"]["recall_subset@2"] == 1
    two = {"chosen": " ".join(items[0]["candidates"][:2])}
    made = cir("make", "review-import", "people", *handed_in("people", 1, lambda person, item: two))
    assert "chosen names more than 1" in made.stderr


def test_runs_are_reviewed_side_by_side_without_their_names() -> None:
    cir("make", "review", "quality", "shapes/val", other("second"), "--sample", 10, "--out", "runs")
    page = Path("runs/review.html").read_text()
    assert "shapes/" not in page
    assert len(items_of("runs")) == 20
    scales = ("moderation", "abundance", "consistency", "conciseness")

    def say(person: int, item: dict[str, Any]) -> Answer:
        better = item["source"] == "shapes/val"
        return {name: str(3 + better + (at == person)) for at, name in enumerate(scales)}

    made = cir("make", "review-import", "runs", *handed_in("runs", 2, say))
    found = {key: row[1] for key, row in cells(made.stdout).items()}
    assert [found["shapes/val", name] for name in (*scales, "average")] == [4.5, 4.5, 4, 4, 4.25]
    assert [found["shapes/val+second", name] for name in (*scales, "average")] == [3.5, 3.5, 3, 3, 3.25]
    assert "GPT-4o (paper)" in made.stdout

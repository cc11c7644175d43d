"""`cir make overlay`: which queries and sessions are chosen, and that other commands take them."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
from cir_here import invoked

import cir_datasets
from submissions import RankFile, RunOptions, make_rank_file, read
from submissions.rank_file.model import write

cir = functools.partial(invoked, code=0)


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CIR_OVERLAYS", str(tmp_path / "overlays"))


def chosen(name: str) -> list[str]:
    queries: list[str] = json.loads(Path(name).read_text())["queries"]
    return queries


def run_of(benchmark: str) -> RankFile:
    method = "random" if "multiturn" in benchmark else "image_text_sum_pixels"
    made = make_rank_file(benchmark, method, RunOptions(k=50))
    write(made, "run.json")
    return made


def test_the_hardest_queries_are_those_whose_targets_rank_last_and_commands_take_them() -> None:
    run, benchmark = run_of("shapes/val"), cir_datasets.load("shapes/val")

    def rank(query: str, targets: list[str]) -> int:
        listed = run.rankings[query]
        return min((listed.index(image) for image in targets if image in listed), default=10**9)

    ranks = {
        query: rank(query, right)
        for query, right in zip(benchmark.query_ids, benchmark.positives, strict=True)
    }
    done = cir("make", "overlay", "shapes/val", "--hardest", 20, "--by", "run.json", "--out", "hard.json")
    found = chosen("hard.json")
    assert len(found) == 20
    last = min(ranks[query] for query in found)
    tied = sum(rank == last for query, rank in ranks.items() if query not in found)
    assert (f"{tied} more share the last one's rank" in done.stderr) == bool(tied)
    assert min(ranks[query] for query in found) >= max(
        rank for query, rank in ranks.items() if query not in found
    )
    assert found == [query for query in benchmark.query_ids if query in found]
    cir("datasets", "overlay", "add", "hard.json")
    cir("run", "--method", "random", "-b", "shapes/val+hard", "--out", "other.json")
    for command in (("score", "other.json"), ("score", "run.json", "-b", "shapes/val+hard")):
        assert "shapes/val+hard" in cir(*command).stdout
    assert set(read("other.json").rankings) == set(found)  # type: ignore[union-attr]


def test_of_sessions_the_last_turn_counts() -> None:
    run, benchmark = run_of("shapes/multiturn_val"), cir_datasets.load("shapes/multiturn_val")
    last = {
        row["session_id"]: min(
            [
                run.rankings[row["session_id"]][-1].index(image)
                for image in row["ground_truth_ids"]
                if image in run.rankings[row["session_id"]][-1]
            ]
            or [10**9]
        )
        for row in benchmark.rows()
    }
    cir("make", "overlay", "shapes/multiturn_val", "--hardest", 9, "--by", "run.json", "--out", "hard.json")
    best_left = max(rank for name, rank in last.items() if name not in chosen("hard.json"))
    assert min(last[name] for name in chosen("hard.json")) >= best_left


@pytest.mark.parametrize("benchmark", ["shapes/val", "shapes/multiturn_val"])
def test_a_pattern_is_looked_for_in_every_caption_whatever_its_case(benchmark: str) -> None:
    cir("make", "overlay", benchmark, "--pattern", r"\bRED\b", "--out", "red.json")
    parts = {
        row.get("session_id", row.get("query_id")): " ".join(
            turn["relative_caption"] for turn in row.get("turns") or [row]
        )
        for row in cir_datasets.load(benchmark).rows()
    }
    found = chosen("red.json")
    assert found == [name for name, text in parts.items() if "red" in text.split()]
    assert 0 < len(found) < len(parts)


def test_an_aspect_and_the_hardest_of_it() -> None:
    rows = cir_datasets.load("shapes/val").rows()
    aspect = rows[0]["aspects"][0]
    of_aspect = [row["query_id"] for row in rows if aspect in row["aspects"]]
    cir("make", "overlay", "shapes/val", "--aspect", aspect, "--out", "some.json")
    assert chosen("some.json") == of_aspect
    run_of("shapes/val")
    asked = ("make", "overlay", "shapes/val", "--aspect", aspect, "--hardest", 3, "--by", "run.json")
    cir(*asked, "--out", "few.json")
    assert len(chosen("few.json")) == 3
    assert set(chosen("few.json")) < set(of_aspect)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "nothing says what is chosen"),
        (("--hardest", 3), "--hardest goes by the rank file"),
        (("--pattern", "("), "correct the expression"),
        (("--pattern", "zebra"), "no caption has --pattern zebra"),
        (("--aspect", "colour"), "no query of shapes/val has it"),
        (("--pattern", "red", "--out", "Red Ones.json"), "the overlay is called as its file"),
    ],
)
def test_what_chooses_nothing_is_refused(words: tuple[object, ...], why: str) -> None:
    out = () if "--out" in words else ("--out", "some.json")
    assert why in str(invoked("make", "overlay", "shapes/val", *words, *out).exception)
    assert not list(Path().glob("*.json"))

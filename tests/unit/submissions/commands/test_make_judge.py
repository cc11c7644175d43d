"""`cir make comparison`, `cir make judge`, and `cir datasets verify --encoder`, as they are called."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
from pathlib import Path
from typing import Any

import datasets_publishers as made
import pytest
from cir_here import invoked
from language_server import Asked, Fault, LanguageServer
from typer.testing import CliRunner

import cir_datasets
from cir_datasets.construction.circled.judging import SCALES
from cir_datasets.construction.folder import write_benchmark
from cir_datasets.construction.folder_check import check_folder
from cir_datasets.shapes import difference, scene
from leaderboard.cli import build
from submissions.making.circled import aims_of

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-for-tests")
    # `cir make judge` adds the folders that it is given.
    monkeypatch.setenv("CIR_BENCHMARKS", "")


cir = functools.partial(invoked, code=0)


def refused(*arguments: object) -> str:
    done = CliRunner().invoke(build(), list(map(str, arguments)))
    assert done.exit_code
    return " ".join(f"{done.output} {done.exception}".split())


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def marks(asked: Asked) -> str:
    """Numbers that depend on the question and its pictures, as a model's do."""
    drawn = hashlib.sha256("".join((asked.prompt, *asked.images)).encode()).digest()
    return json.dumps({scale: 1 + drawn[place] % 5 for place, scale in enumerate(SCALES)})


@pytest.mark.parametrize("way", ["concatenation", "chains"])
def test_a_comparison_is_a_benchmark_of_the_seed(tmp_path: Path, way: str) -> None:
    asked = ("make", "comparison", "--benchmark", "shapes/val", "--way", way, "--limit", 12)
    for out in ("one", "same"):
        assert cir(*asked, "--out", out).stdout.strip() == str(tmp_path / out)
    cir(*asked, "--out", "other", "--seed", 1)
    assert check_folder(tmp_path / "one", registered=False).errors == []
    one, same, other = ((tmp_path / out / "queries.jsonl").read_bytes() for out in ("one", "same", "other"))
    assert one == same != other
    assert len(one.splitlines()) == 12


def test_a_comparison_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    asked = ("make", "comparison", "--out", "made", "--benchmark")
    assert "Did you mean 'chains'" in refused(*asked, "shapes/val", "--way", "chain")
    assert "its rows are sessions already" in refused(*asked, "shapes/multiturn_val")
    assert not (tmp_path / "made").exists()


def test_the_oracle_judges_a_folder_beside_a_benchmark(tmp_path: Path) -> None:
    cir("make", "comparison", "--benchmark", "shapes/val", "--limit", 9, "--out", "mixed", "--name", "mixed")
    sources = ("shapes/multiturn_val", tmp_path / "mixed")
    done = cir(
        "make", "judge", *sources, "--judge", "oracle", "--sessions", 5, "--out", "judged", "--format", "json"
    )
    assert {"mixed/test", "shapes/multiturn_val"} <= set(re.findall(r"[a-z]+/\w+", done.stdout))
    found = lines(tmp_path / "judged/judgements.jsonl")
    assert [row["source"] for row in found] == ["shapes/multiturn_val"] * 5 + ["mixed/test"] * 5
    assert all(1 <= row[scale] <= 5 for row in found for scale in SCALES)
    assert sum(row["overall"] for row in found[:5]) > sum(row["overall"] for row in found[5:])
    assert "Sessions judged" in (tmp_path / "judged/judgements.md").read_text()
    assert (tmp_path / "judged/judgements.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.usefixtures("plain_language")
def test_a_server_with_faults_judges_all_and_is_asked_nothing_twice(tmp_path: Path) -> None:
    faults = [Fault("status", 429, {"Retry-After": "0"}), Fault("empty"), Fault("cut"), Fault("not_json")]
    judge = ("make", "judge", "shapes/multiturn_val", "--sessions", 8, "--out", "judged", "--judge")

    def fault(prompt: str, times: int) -> Fault | None:
        return faults[len(prompt) % len(faults)] if times == 1 else None

    with LanguageServer(fault, look=marks) as server:
        name = f"openai:tiny,url={server.url},timeout=20"
        cir(*judge, name)
        first = lines(tmp_path / "judged/judgements.jsonl")
        assert len(first) == 8
        assert not [row for row in first if "failed" in row]
        asked = len(server.requests)
        assert asked > 8
        cir(*judge, name)
        assert len(server.requests) == asked
        assert lines(tmp_path / "judged/judgements.jsonl") == first


@pytest.mark.usefixtures("plain_language")
def test_a_session_that_a_model_refuses_keeps_its_reason_and_costs_nothing_else(tmp_path: Path) -> None:
    refusing: list[str] = []

    def fault(prompt: str, times: int) -> Fault | None:
        refusing.extend([] if refusing else [prompt])
        return Fault("refusal") if prompt == refusing[0] else None

    with LanguageServer(fault, look=marks) as server:
        name = f"openai:tiny,url={server.url},concurrency=1"
        done = cir(
            "make", "judge", "shapes/multiturn_val", "--sessions", 6, "--out", "judged", "--judge", name
        )
    found = lines(tmp_path / "judged/judgements.jsonl")
    failed = [row for row in found if "failed" in row]
    assert 1 <= len(failed) < len(found) == 6
    assert all("refus" in row["failed"] for row in failed)
    assert "Sessions judged" in done.stdout


@pytest.mark.usefixtures("plain_language")
def test_a_model_that_never_keeps_to_the_form_is_given_up_and_the_same_call_goes_on_later(
    tmp_path: Path,
) -> None:
    wrong = [True]
    with LanguageServer(look=lambda asked: '{"marks": "good"}' if wrong else marks(asked)) as server:
        name = f"openai:tiny,url={server.url},concurrency=1,attempts=1"
        call = ("make", "judge", "shapes/multiturn_val", "--sessions", 40, "--out", "judged", "--judge", name)
        error = str(invoked(*call, code=1).exception)
        assert "so were the 29 before it" in error
        assert "Fix: change the prompt or the model and run the same again" in error
        assert len(server.requests) == 30
        wrong.clear()
        cir(*call)
        assert len(server.requests) == 70
    assert not [row for row in lines(tmp_path / "judged/judgements.jsonl") if "failed" in row]


@pytest.mark.usefixtures("plain_language")
def test_two_judges_and_two_runs_give_their_agreement(tmp_path: Path) -> None:
    pytest.importorskip("krippendorff", reason="needs the extra `construction`")
    judge = ("make", "judge", "shapes/multiturn_val", "--sessions", 6)
    with LanguageServer(look=marks) as server:
        name = f"openai:tiny,url={server.url}"
        done = cir(*judge, "--out", "two", "--judge", "oracle", "--judge", name)
        assert "Agreement of judges" in done.stdout
        asked = len(server.requests)
        cir(*judge, "--out", "runs", "--judge", name, "--runs", 2)
        assert len(server.requests) == asked + 12, "a second run is not read out of the first one's answers"
    assert {row["judge"] for row in lines(tmp_path / "two/judgements.jsonl")} == {"oracle", "openai:tiny"}
    rows = lines(tmp_path / "runs/judgements.jsonl")
    assert {row["judge"] for row in rows} == {"openai:tiny, run 1", "openai:tiny, run 2"}


def test_what_cannot_be_judged_is_refused(tmp_path: Path) -> None:
    judge = ("make", "judge", "--out", "judged")
    assert "a judge reads sessions" in refused(*judge, "shapes/val", "--judge", "oracle")
    assert "no language backend 'gpt'" in refused(*judge, "shapes/multiturn_val", "--judge", "gpt")
    sound = (*judge, "shapes/multiturn_val", "--judge", "oracle")
    assert "no format 'xml'" in refused(*sound, "--format", "xml")
    assert not (tmp_path / "judged").exists()


def session(name: str, *images: str, said: tuple[str, ...] = ()) -> dict[str, Any]:
    """A session along images of shapes; each turn says what the next one has."""
    steps = list(itertools.pairwise(images))
    words = said or tuple(difference(scene(one), scene(other), viewpoint=True) for one, other in steps)
    return {
        "session_id": name,
        "subset": "s",
        "ground_truth_ids": [images[-1]],
        "num_turns": len(steps),
        "turns": [
            {"turn": turn, "reference_image_id": one, "relative_caption": text}
            for turn, ((one, _), text) in enumerate(zip(steps, words, strict=True), start=1)
        ],
    }


@pytest.mark.slow
def test_verify_replays_made_sessions_with_their_own_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ("make", "circled", "--benchmark", "shapes/val", "--language", "oracle", "--limit", 60)
    cir(*made, "--k", 3, "--out", "made", "--name", "mine")
    folder = tmp_path / "made/benchmark"
    monkeypatch.setenv("CIR_BENCHMARKS", str(folder))
    verify = ("datasets", "verify", "mine/test", "--encoder", "shapes")
    (document,) = json.loads(cir(*verify, "--json").stdout)
    (found,) = (one for one in document["results"] if one["kind"] == "sessions")
    assert found["verdict"] == "ok"
    ranks = {row["session_id"]: row["ranks"] for row in lines(folder / "ranks.jsonl")}
    assert ranks
    assert {name: one["ranks"] for name, one in found["details"].items()} == ranks
    assert "sessions are epsilon-consistent (30)" in cir(*verify).stdout
    told = {row["session_id"]: row["aim"] for row in lines(folder / "ranks.jsonl")}
    assert aims_of(cir_datasets.load("mine/test")) == told
    # A caption that is said again breaks tau under the run's encoder, which is no property but a fault.
    sound = (folder / "queries.jsonl").read_text()
    rows = [json.loads(line) for line in sound.splitlines()]
    rows[0]["turns"][1]["relative_caption"] = rows[0]["turns"][0]["relative_caption"]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    card = (folder / "card.yaml").read_text()
    (folder / "card.yaml").write_text(card.partition("hashes:")[0])
    assert "They were made with this encoder and obeyed it" in " ".join(
        invoked(*verify, code=1).stdout.split()
    )
    (folder / "card.yaml").write_text(
        card.partition("hashes:")[0].replace("name: mine\n", "name: mine_unfiltered\n")
    )
    cir("datasets", "verify", "mine_unfiltered/test", "--encoder", "shapes")
    (folder / "card.yaml").write_text(card.partition("hashes:")[0])
    (folder / "queries.jsonl").write_text(sound)
    (folder / "ranks.jsonl").write_text("{}\n")
    assert "ranks.jsonl: it is damaged. Fix: run `cir make circled` again" in refused(*verify)


def test_verify_names_sessions_that_repeat_themselves_and_refuses_what_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = [f"val-{number:06d}" for number in range(60)]
    rows = [
        session(
            "good", *images[:3], said=("put a red star in the middle", "three small blue moons at night")
        ),
        session("bad", *images[3:6], said=("make it larger", "make it larger")),
    ]
    write_benchmark(
        tmp_path / "mine",
        name="mine",
        title="Mine",
        configs={"test": rows},
        galleries=images,
        reference="kept",
        made={"benchmark": "shapes/val"},
    )
    monkeypatch.setenv("CIR_BENCHMARKS", str(tmp_path / "mine"))
    verify = ("datasets", "verify", "mine/test", "--encoder", "shapes")
    (document,) = json.loads(cir(*verify, "--json").stdout)
    (found,) = (one for one in document["results"] if one["kind"] == "sessions")
    assert found["verdict"] == "note"
    assert found["details"]["bad"]["nearest"] == 1.0
    assert (found["details"]["bad"]["diverse"], found["details"]["good"]["diverse"]) == (False, True)
    assert "1 are tau-diverse (0.8); repeat: bad" in " ".join(cir(*verify).stdout.split())
    said = refused("datasets", "verify", "shapes/val", "--encoder", "shapes")
    assert "both definitions are about sessions" in said


def test_of_several_targets_of_circled_a_judge_sees_the_annotated_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    root = made.write_circled(tmp_path, "circo_val")
    loaded = made.load_unchecked("circled/circo_val", tmp_path)
    assert aims_of(loaded) == {}, "the source is not here"
    made.write_circo(tmp_path, "val")
    query = next(row for row in made.load_unchecked("circo/val", tmp_path).rows() if row["target_image_id"])
    targets = list(dict.fromkeys((*query["positive_image_ids"][::-1], "000000234567")))
    assert targets[0] != query["target_image_id"]

    def begin(sessions: Any) -> None:
        first = {
            "reference_image_id": query["reference_image_id"],
            "relative_caption": query["relative_caption"],
        }
        for turn in sessions[0]["turns"]:
            turn |= first
        sessions[0]["ground_truth_ids"] = targets

    made.edit(root / "data/circo_val.json", begin)
    joined = made.load_unchecked("circled/circo_val", tmp_path)
    assert aims_of(joined) == {"circo_val_0000": query["target_image_id"]}

"""Judging on a sealed board: the child alone reads the truth, and what leaves it is coarse."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from http_hub import TOKEN, Hub
from leaderboard_world import challenges as world
from s3_server import BUCKET, KEY, S3, SECRET

import leaderboard
from leaderboard.challenge.making import Rules, default_phase, make
from leaderboard.challenge.material import Material, from_files
from leaderboard.errors import PassingError
from leaderboard.queue.child import Judged, judge
from leaderboard.queue.ground_truth import as_bytes
from leaderboard.queue.worker import Worker
from leaderboard.standings.views import submission_view
from leaderboard.store import Store
from leaderboard.store.files import FolderFiles
from leaderboard.store.submission import Submission


@pytest.fixture(autouse=True)
def made(places: world.Places, material: Material) -> None:
    make(material, Rules(world.NAME, "Autumn", str(places.ground_truth), (default_phase(),)))


def judged(tmp_path: Path, document: dict[str, Any], address: str | Path) -> Judged:
    run = tmp_path / "run.json"
    run.write_text(json.dumps(document), encoding="utf-8")
    return judge(
        run,
        world.ID,
        file_name="run.json",
        form={},
        values_to=tmp_path / "values.npz",
        ground_truth=str(address),
    )


def test_numbers_have_two_decimals_and_values_a_query_are_not_kept(
    tmp_path: Path, places: world.Places
) -> None:
    found = judged(tmp_path, world.rank_file(hits=7), places.ground_truth)
    report = found.report or {}
    assert report["metrics"]["recall@1"] == 0.1167
    assert all(round(value, 4) == value for value in report["metrics"].values())
    assert report["main"] == report["metrics"]["map@5"]
    assert 0 < report["metrics"]["map@5"] < 1
    assert found.values is None
    assert not (tmp_path / "values.npz").exists()


def test_nothing_but_numbers_and_signatures_depends_on_the_truth(
    tmp_path: Path, places: world.Places
) -> None:
    # The same rankings against another truth: only numbers and their signatures may change.
    first = judged(tmp_path, world.rank_file(hits=7), places.ground_truth)
    (tmp_path / "other").mkdir()
    other = from_files(*world.write_rows(tmp_path / "other", seed=1), None, "removed")
    places.ground_truth.write_bytes(as_bytes(world.ID, other.rows))
    second = judged(tmp_path, world.rank_file(hits=7), places.ground_truth)
    reports = [first.report or {}, second.report or {}]
    assert reports[0].keys() == reports[1].keys()
    differ = {name for name in reports[0] if reports[0][name] != reports[1][name]}
    assert differ == {"metrics", "main", "signatures"}
    assert (first.findings, first.canonical, first.method) == (
        second.findings,
        second.canonical,
        second.method,
    )


def test_a_signature_changes_with_the_truth_and_tells_nothing_of_it(
    tmp_path: Path, places: world.Places, material: Material
) -> None:
    document = world.rank_file()
    keys = []
    for _ in range(2):
        # The same truth with another salt: no hash of the truth alone stands in the signature.
        places.ground_truth.write_bytes(as_bytes(world.ID, material.rows))
        report = judged(tmp_path, document, places.ground_truth).report or {}
        keys.append(report["signatures"]["map@5"]["key"])
        again = judged(tmp_path, document, places.ground_truth).report or {}
        assert again["signatures"]["map@5"]["key"] == keys[-1]
    assert keys[0] != keys[1]


def test_findings_come_before_the_truth_and_never_from_it(tmp_path: Path, places: world.Places) -> None:
    document = world.rank_file()
    first = next(iter(document["rankings"]))
    document["rankings"][first][0] = "no-such-picture"
    found = judged(tmp_path, document, places.ground_truth)
    assert (found.outcome, [one["code"] for one in found.findings]) == ("rejected", ["unknown-image"])


def test_turns_of_few_sessions_are_left_out(tmp_path: Path, places: world.Places) -> None:
    turns = [{"reference_image_id": world.image(0), "caption": "a"}, {"caption": "b"}]
    lines = [
        {
            "session_id": f"s{number:02d}",
            "turns": turns[: 1 + (number < 29)],
            "ground_truth_ids": [world.image(number + 1)],
        }
        for number in range(40)
    ]
    queries, gallery = world.write_rows(tmp_path)
    queries.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    material = from_files(queries, gallery, None, "kept")
    rules = Rules("winter", "Winter", str(places.secret / "winter.jsonl"), (default_phase(),))
    sample = make(material, rules).sample
    found = judge(sample, rules.id, file_name="x", form={}, ground_truth=rules.ground_truth)
    metrics = (found.report or {})["metrics"]
    assert "hits@10@turn1" in metrics
    assert "hits@10@turn2" not in metrics
    assert "hits_auc@10" in metrics


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b'{"format": "x"}\n', b"[]\n[]"])
def test_a_truth_that_is_not_there_lets_the_file_wait_and_says_nothing_of_it(
    tmp_path: Path, places: world.Places, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    places.ground_truth.unlink()
    if content is not None:
        places.ground_truth.write_bytes(content)
    with caplog.at_level(logging.DEBUG), pytest.raises(PassingError, match="ground truth") as raised:
        judged(tmp_path, world.rank_file(), places.ground_truth)
    assert str(places.secret) not in str(raised.value) + caplog.text


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_truth_in_a_bucket_is_read_with_keys_of_its_own(
    tmp_path: Path, places: world.Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    with S3() as server:
        server.objects["secret/truth.jsonl"] = places.ground_truth.read_bytes()
        address = f"s3://{BUCKET}/secret/truth.jsonl"
        with pytest.raises(PassingError) as raised:
            judged(tmp_path, world.rank_file(), address)
        assert SECRET not in str(raised.value)
        for name, value in (
            ("AWS_ACCESS_KEY_ID", KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
            ("AWS_ENDPOINT_URL", server.url),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(f"CIR_LEADERBOARD_TRUTH_{name}", value)
        found = judged(tmp_path, world.rank_file(hits=7), address)
    assert (found.report or {})["metrics"]["recall@1"] == 0.1167


@pytest.mark.usefixtures("processes")
def test_a_truth_on_the_hub_is_read_with_a_token_of_its_own(
    tmp_path: Path, places: world.Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Hub() as hub:
        hub.repository("me/secret").commit({"truth.jsonl": places.ground_truth.read_bytes()})
        monkeypatch.setenv("CIR_LEADERBOARD_TRUTH_HF_ENDPOINT", hub.url)
        monkeypatch.setenv("CIR_LEADERBOARD_TRUTH_HF_TOKEN", TOKEN)
        found = judged(tmp_path, world.rank_file(hits=7), "hf://datasets/me/secret/truth.jsonl")
        assert f"Bearer {TOKEN}" in hub.authorizations
    assert (found.report or {})["metrics"]["recall@1"] == 0.1167
    written = [path for path in (*places.cache.rglob("*"), *places.home.rglob("*")) if path.is_file()]
    assert all(b"cir-ground-truth" not in path.read_bytes() for path in written)


@pytest.fixture
def sent(places: world.Places) -> Iterator[Callable[[dict[str, Any]], Submission]]:
    store = Store(f"sqlite:///{places.home / 'board.sqlite'}")
    files = FolderFiles(places.home / "files")
    worker = Worker(files, store)

    def send(document: dict[str, Any]) -> Submission:
        incoming = files.incoming()
        incoming.write(json.dumps(document).encode())
        incoming.keep()
        one, _ = store.receive(
            board=document["benchmark"],
            sha256=incoming.sha256,
            size=incoming.size,
            file_name="a.json",
            owner="token:ada",
        )
        return worker.process(one)

    yield send
    store.close()


def test_an_event_of_before_with_near_copies_is_read_and_shows_none(
    sent: Callable[[dict[str, Any]], Submission], places: world.Places
) -> None:
    fresh = sent(world.rank_file(name="one"))
    assert fresh.state == "published"
    store = Store(f"sqlite:///{places.home / 'board.sqlite'}")
    assert store.kept_values(fresh.id) is None
    one, _ = store.receive(board=world.ID, sha256="0" * 64, size=1, file_name="a", owner="token:ada")
    scored = {"report": fresh.scores, "near_copies": [{"submission": fresh.id, "differ": 1, "of": 60}]}
    older = store.append(one, [("scored", scored), ("private", {})])
    store.close()
    view = submission_view(older, organiser=True)
    assert view["scores"] == fresh.scores
    assert fresh.id not in json.dumps(view)


def test_nothing_but_the_judging_process_and_the_organisers_commands_can_read_a_truth() -> None:
    package = Path(leaderboard.__file__).parent
    readers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "queue.ground_truth import" in path.read_text(encoding="utf-8")
    }
    assert readers == {"queue/child.py", "challenge/making.py", "challenge/checking.py"}

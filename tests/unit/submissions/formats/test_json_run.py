"""JSON runs of other tools: the score decides, and every mistake is said with its query."""

from __future__ import annotations

import gzip
import json
from typing import Any

import benchmark_world as worlds
import pytest
import pytrec_eval
from metrics_twins import best_first

import submissions
from submissions import ConversionError, Method, RankFile
from submissions.formats import json_run

CIRR, CIRCLED = worlds.cirr(), worlds.circled()
META = {"model_name": "org/model", "revision": None}


def written(document: dict[str, Any], benchmark: Any) -> bytes:
    (made,) = submissions.convert([json.dumps(document).encode()], "json-run", benchmark=benchmark)
    return made.content


RUN = written(worlds.cirr_document(CIRR), CIRR)


def read(run: Any, benchmark: str = "cirr/val") -> RankFile:
    content = run if isinstance(run, bytes) else json.dumps(run).encode()
    found = submissions.read(content, benchmark=benchmark, name="clip.json")
    assert isinstance(found, RankFile)
    return found


def codes(run: Any, benchmark: Any = CIRR) -> set[str]:
    content = run if isinstance(run, bytes) else json.dumps(run).encode()
    return {found.code for found in submissions.validate(content, benchmark).errors}


def test_scores_order_images_and_ties_follow_the_hash_of_the_benchmarks_own_ids() -> None:
    assert read({"q": {"a": 1, "b": 3.5, "c": -2e3}}).rankings["q"] == ["b", "a", "c"]
    for qid in "0123":
        found = read({qid: {"100": 1, "99": 1}}, "circo/val")
        assert found.rankings[qid] == best_first({"000000000099": 1, "000000000100": 1}, qid)


def test_what_is_written_is_a_run_of_pytrec_eval_with_our_recall() -> None:
    run = {query: scores for query, scores in json.loads(RUN).items() if "#" not in query}
    truth = {row["query_id"]: {row["target_image_id"]: 1} for row in CIRR.rows()}
    theirs = pytrec_eval.RelevanceEvaluator(truth, {"recall_5"}).evaluate(run)
    ours = submissions.score(RUN, CIRR).metrics["recall@5"]
    assert sum(each["recall_5"] for each in theirs.values()) / len(theirs) == pytest.approx(ours)


@pytest.mark.parametrize("change", [b"\xef\xbb\xbf%s", b"\n %s"])
def test_the_same_run_is_read_in_other_clothes(change: bytes) -> None:
    wanted = read(RUN)
    meta = {"mteb_model_meta": META, "default": {"test": json.loads(RUN)}}
    odd = RUN.replace(b'"im1"', b'"\\u0069m1"')
    for content in (change % RUN, gzip.compress(RUN), json.dumps(meta, indent=1).encode(), odd):
        found = read(content)
        assert found.rankings == wanted.rankings
        assert found.subset_rankings == wanted.subset_rankings
    assert (
        read(json.dumps(meta).encode()).method.name == submissions.formats.trec.named_method("org/model").name
    )
    assert codes(RUN) == set()


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (b'{"q": {"a": NaN}}', "malformed"),
        (b'{"q": {"a": -Infinity}}', "malformed"),
        (b'{"q": {"a": 1e999}}', "malformed"),
        (b'{"q": {"\\u0061": 1' + b"0" * 400 + b"}}", "malformed"),
        ({"q": {"a": True}}, "bad-type"),
        ({"q": {"a": "0.5"}}, "bad-type"),
        ({"q": {"a": None}}, "bad-type"),
        ({"q": {"a": [1]}}, "bad-type"),
        ({"q": {"": 1}}, "bad-type"),
        (b'{"q": {"\\ud800": 1}}', "malformed"),
        ({"q": {"a": 1}, "r": ["a"]}, "bad-type"),
        (b'{"q": {"a": 1, "a": 2}}', "repeated-key"),
        (b'{"q": {"a": 1}, "q": {"b": 1}}', "repeated-key"),
        ({"q": {"im1": 1}}, "unknown-query"),
        ({"100": {}}, "empty-ranking"),
        ({"100": {"nobody": 1}}, "unknown-image"),
        ({"mteb_model_meta": META}, "wrong-format"),
        ({"mteb_model_meta": META, "default": {"test": {}, "val": {}}}, "wrong-format"),
    ],
)
def test_what_is_wrong_is_named(run: Any, code: str) -> None:
    assert code in codes(run)


def test_a_run_does_not_name_its_benchmark() -> None:
    assert codes(RUN, None) == {"wrong-benchmark"}


def test_a_turn_that_is_left_out_is_missing() -> None:
    run = json.loads(written(worlds.circled_document(CIRCLED), CIRCLED))
    assert codes(run, CIRCLED) == set()
    assert codes({**run, "s1#2": {}}, CIRCLED) == {"missing-turn"}
    assert codes({query: scores for query, scores in run.items() if query != "s1#2"}, CIRCLED) == {
        "missing-turn"
    }


def test_what_an_object_of_scores_cannot_hold_is_refused() -> None:
    method = Method(name="toy")
    for rankings in ({"q": ["a", "a"]}, {"q": ["\ud800"]}, {"method": ["a"]}, {"q#subset": ["a"]}, {}):
        with pytest.raises(ConversionError):
            json_run.dump(RankFile("cirr/val", 1, method, rankings))

"""A plain file `{query id: [image ids]}`: read as what it is, whatever its query ids look like."""

from __future__ import annotations

import json

import benchmark_world as worlds
import pytest

import cir_datasets
import submissions
from submissions import RefusedError
from submissions.formats import servers

CIRR, CIRCLED = worlds.cirr("val"), worlds.circled()


def test_a_plain_file_for_cirr_scores_as_a_rank_file_and_lacks_the_subsets_alone() -> None:
    document = worlds.cirr_document(CIRR)
    content = worlds.as_bytes(document["rankings"])
    found = submissions.score(content, CIRR)
    native = submissions.score(json.dumps(document).encode(), CIRR)
    assert found.metrics == {name: native.metrics[name] for name in found.metrics}
    assert set(found.missing_metrics) == {f"recall_subset@{k}" for k in (1, 2, 3)}
    (finding,) = submissions.validate(content, CIRR, name="mine.json").errors
    assert finding.code == "missing-subset"
    said = finding.text("mine.json")
    assert "cir rank --benchmark cirr/val --lists mine.json --subset-lists FILE" in said
    (recall,) = submissions.convert([content], "cirr-server", benchmark=CIRR)
    assert json.loads(recall.content) == {"version": "rc2", "metric": "recall", **document["rankings"]}


def test_sessions_are_lists_of_lists_or_a_list_a_turn() -> None:
    document = worlds.circled_document(CIRCLED)
    by_session = document["rankings"]
    by_turn = {
        f"{session}#{number}": ids
        for session, turns in by_session.items()
        for number, ids in enumerate(turns, start=1)
    }
    for each in (by_session, by_turn):
        found = submissions.read(json.dumps(each).encode(), benchmark=CIRCLED)
        assert found.rankings == by_session
    del by_turn["s1#2"]
    (finding,) = submissions.validate(json.dumps(by_turn).encode(), CIRCLED).errors
    assert (finding.code, finding.query) == ("missing-turn", "s1")
    assert 'no key "s1#2"' in finding.message
    with pytest.raises(RefusedError) as caught:
        submissions.score(json.dumps(by_turn).encode(), CIRCLED)
    assert "--allow-missing" not in str(caught.value)  # which would be refused as well: nothing was read
    by_turn["s1"] = by_session["s1"]
    (finding,) = submissions.validate(json.dumps(by_turn).encode(), CIRCLED).errors
    assert finding.code == "bad-type"
    assert "write SESSION#TURN everywhere" in str(finding.fix)


def test_query_ids_tell_the_benchmark_where_only_one_has_them() -> None:
    shapes, sessions = cir_datasets.load("shapes/val"), cir_datasets.load("shapes/multiturn_val")
    images = list(shapes.gallery or ())[:50]
    found = submissions.read(json.dumps(dict.fromkeys(shapes.query_ids, images)).encode())
    assert (found.benchmark, found.format) == ("shapes/val", "plain-lists")
    turns = {
        f"{row['session_id']}#{turn['turn']}": images for row in sessions.rows() for turn in row["turns"]
    }
    found = submissions.read(json.dumps(turns).encode())
    assert found.benchmark == "shapes/multiturn_val"
    assert {len(ranked) for ranked in found.rankings.values()} == {2, 3, 4, 5, 6}


def test_where_several_may_be_meant_the_message_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    # FashionIQ's validation queries are ranked in two galleries; 2,017 is the number of dresses.
    content = json.dumps({f"dress_val_{number:05d}": ["B0"] for number in range(2017)}).encode()
    monkeypatch.setattr(servers, "is_here", lambda spec: False)
    (finding,) = submissions.validate(content).errors
    assert finding.code == "wrong-benchmark"
    assert "--benchmark fashioniq/dress_val  or  --benchmark fashioniq/dress_val_union" in str(finding.fix)

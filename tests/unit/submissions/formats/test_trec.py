"""TREC runs: the score decides, and every mistake is said with its line."""

from __future__ import annotations

import json

import benchmark_world as worlds
import pytest
from metrics_twins import best_first

import submissions
from submissions import ConversionError, Method, RankFile
from submissions.formats import trec
from submissions.rank_file.findings import Finding

CIRR, CIRCLED = worlds.cirr(), worlds.circled()


def read(run: str, benchmark: str = "cirr/val") -> RankFile:
    found = submissions.read(run.encode(), benchmark=benchmark, name="clip.trec")
    assert isinstance(found, RankFile)
    return found


def refused(run: bytes, benchmark: str = "cirr/val") -> list[tuple[str, str, int]]:
    return [(found.code, found.message, found.count) for found in findings(run, benchmark)]


def findings(run: bytes, benchmark: str = "cirr/val") -> tuple[Finding, ...]:
    with pytest.raises(submissions.RefusedError) as caught:
        submissions.read(run, benchmark=benchmark, name="run.trec")
    return caught.value.report.findings


def warnings(run: str) -> list[tuple[str, int]]:
    found = submissions.validate(run.encode(), CIRR).findings
    return [(finding.message, finding.count) for finding in found if finding.code == "rank-score-disagree"]


def test_the_spelling_of_the_benchmark_comes_before_the_tie_rule() -> None:
    for qid in "0123":
        found = read(f"{qid} Q0 100 1 1 t\n{qid} Q0 99 2 1 t\n", "circo/val")
        assert found.rankings[qid] == best_first({"000000000099": 1, "000000000100": 1}, qid)


def test_turns_and_subsets_are_read_from_their_query_ids() -> None:
    found = read("s0#2 Q0 a 1 1 t\ns0#1 Q0 b 1 1 t\ns#9#1 Q0 c 1 1 t\n", "circled/cirr_val")
    assert dict(found.rankings) == {"s0": [["b"], ["a"]], "s#9": [["c"]]}
    found = read("q Q0 a 1 1 t\nq#subset Q0 b 1 1 t\n")
    assert (dict(found.rankings), dict(found.subset_rankings)) == ({"q": ["a"]}, {"q": ["b"]})
    # A benchmark without subsets has no such rule.
    assert dict(read("q#subset Q0 7 1 1 t\n", "circo/val").rankings) == {"q#subset": ["000000000007"]}


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_a_turn_without_a_line_is_missing_whichever_it_is(gone: int) -> None:
    document = worlds.circled_document(CIRCLED)
    (made,) = submissions.convert([json.dumps(document).encode()], "trec", benchmark=CIRCLED)
    lines = made.content.splitlines(keepends=True)
    run = b"".join(line for line in lines if not line.startswith(f"s1#{gone} ".encode()))
    (finding,) = submissions.validate(run, CIRCLED).findings
    assert (finding.code, finding.query, finding.count) == ("missing-turn", "s1", 1)
    score = submissions.score(run, CIRCLED, allow_missing=True)
    assert (score.missing, score.answered) == (1, 2)
    # Targets stand at ranks 8, 9 and 10 at every turn that is there.
    found = [score.metrics[name] for name in ("hits@10@turn1", "hits@10@turn3", "final_recall@10")]
    assert found == pytest.approx([2 / 3 if gone == 1 else 1, 1, 2 / 3 if gone == 3 else 1])
    assert all("skipped:complete" in str(each) for each in score.signatures.values())


BROKEN: list[tuple[bytes, str, str, str]] = [
    (b"q Q0 b 2 0.5", "malformed", "5 columns; ", "write six columns a line"),
    (b"q", "malformed", "1 column; ", "write six columns a line"),
    (b"q Q0 b 2 0.5 t x", "malformed", "7 columns; ", "write six columns a line"),
    (b"q Q0 b 2 nan t", "malformed", "the score is NaN", "give the image a number as its score"),
    (b"q Q0 b 2 -NaN t", "malformed", "the score is NaN", "give the image a number as its score"),
    (b"q Q0 b 2 high t", "malformed", 'the score is "high"; ', "write a decimal number"),
    (b"q Q0 b 2 1_0 t", "malformed", 'the score is "1_0"; ', "write a decimal number"),
    (b"q Q0 b 2 0x1 t", "malformed", 'the score is "0x1"; ', "write a decimal number"),
    (b"q Q0 b -2 1 t", "malformed", 'the rank is "-2"; ', "write the image's place"),
    (b"q Q0 b 1.0 1 t", "malformed", 'the rank is "1.0"; ', "write the image's place"),
    (b"q Q0 b 9999999999 1 t", "malformed", 'the rank is "9999999999"; ', "write the image's place"),
    (b"q Q0 b 2 0.5 u", "bad-metadata", 'the tag is "u", before it was "t"; ', ""),
    (b"q Q0 \xff 2 0.5 t", "unreadable", '"\ufffd" is not UTF-8 text.', ""),
]


@pytest.mark.parametrize(("line", "code", "message", "fix"), BROKEN, ids=[str(line) for line, *_ in BROKEN])
def test_a_broken_line_is_named_with_its_fix(line: bytes, code: str, message: str, fix: str) -> None:
    (finding,) = findings(b"q Q0 a 1 1 t\n" + line + b"\n")
    assert (finding.code, finding.count) == (code, 1)
    assert finding.message.startswith(f"line 2: {message}")
    assert finding.fix.startswith(fix)


def test_broken_lines_are_counted() -> None:
    assert refused(b"q Q0 a 1 1 t\n" + b"q Q0\n" * 9) == [
        ("malformed", "line 2: 2 columns; a TREC run has six: qid Q0 docid rank score tag.", 9)
    ]


def test_an_image_twice_is_found_with_its_lines() -> None:
    run = b"q Q0 a 1 3 t\n\nq Q0 b 2 2 t\nq Q0 a 3 1 t\n"
    assert refused(run) == [("duplicate-image", '"a" stands in line 1 and in line 4.', 1)]
    spellings = b"q Q0 a 1 3 t\nq Q0 a.png 2 2 t\n"
    assert refused(spellings) == [("duplicate-image", '"a" stands in line 1 and in line 2.', 1)]


@pytest.mark.parametrize("qid", ["s0", "s0#", "s0#0", "s0#01", "s0#-1", "s0#x", "s0#101", "s0#1000000000"])
def test_a_session_without_turn_is_named(qid: str) -> None:
    assert refused(f"{qid} Q0 a 1 1 t\n".encode(), "circled/cirr_val") == [
        ("bad-type", f'the qid "{qid}" names no turn of a session.', 1)
    ]


def test_ranks_that_say_otherwise_are_warned_of() -> None:
    assert warnings("q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 c 3 1 t\n") == []
    # Ranks from 0, with gaps, or all the same say nothing against the scores.
    assert warnings("q Q0 a 0 3 t\nq Q0 b 5 2 t\nr Q0 c 0 3 t\nr Q0 d 0 2 t\n") == []
    assert warnings("q Q0 a 2 0.9 t\nq Q0 b 1 0.5 t\nr Q0 c 2 7 t\nr Q0 d 1 6 t\n") == [
        ('"a" has the score 0.9 and "b" 0.5, but their ranks are 2 and 1; the rank column is not used.', 2)
    ]
    message = (
        '"b" and "a" both have the score 0.5, which a hash of qid and docid orders, but their ranks are 2 '
        "and 1; the rank column is not used."
    )
    assert best_first({"a": 0, "b": 0}, "q") == ["b", "a"]
    assert warnings("q Q0 a 1 0.5 t\nq Q0 b 2 0.5 t\n") == [(message, 1)]


def test_the_tag_is_the_method_or_else_what_is_left_of_it() -> None:
    assert read("q Q0 a 1 1 CLIP_sum\n").method.name == "CLIP_sum"
    assert read("q Q0 a 1 1 <b>x</b>\n").method.name == "bxb"


def test_what_a_run_cannot_hold_is_refused() -> None:
    method = Method(name="toy")
    with pytest.raises(ConversionError, match=r'query "q": "a b" holds a blank, which ends a column'):
        trec.dump(RankFile("fisd/change", 1, method, {"q": ["a b"]}))
    with pytest.raises(ConversionError, match=r'query "q r": "q r" holds a blank'):
        trec.dump(RankFile("fisd/change", 1, method, {"q r": ["a"]}))
    with pytest.raises(ConversionError, match=r'query "": "" is not a column of a TREC run'):
        trec.dump(RankFile("fisd/change", 1, method, {"": ["a"]}))
    with pytest.raises(ConversionError, match="a TREC run cannot start with a byte order mark"):
        trec.dump(RankFile("fisd/change", 1, method, {"\ufeffq": ["a"]}))
    with pytest.raises(ConversionError, match=r"takes the ending #subset for a subset's ranking"):
        trec.dump(RankFile("fisd/change", 1, method, {"q#subset": ["a"]}))

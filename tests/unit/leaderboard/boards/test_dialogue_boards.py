"""Boards of dialogues: the transcript is the submission, judged in its own process like any other file."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmark_world.dialogues import BOARD, ORACLE, as_lines, shapes_dialogue
from leaderboard_world import as_bytes, rank_file
from pydantic import ValidationError
from read_pages import submission_html
from says import says

from leaderboard import boards
from leaderboard.dialogues import BoardDialogue
from leaderboard.errors import BoardError, UploadRefusedError
from leaderboard.intake import Cover
from leaderboard.intake.destination import board_of_head
from leaderboard.server import Server
from leaderboard.server.rescoring import rescore, switch
from leaderboard.settings import Settings
from leaderboard.standings.views import submission_view
from leaderboard.store.submission import Submission
from submissions.scoring.score_report import SKIPPED_IMAGES
from submissions.transcripts.settings import RoundSettings


def handed_in(server: Server, content: bytes, board: str = BOARD) -> Submission:
    submission, _ = server.intake.take(board, [content], Cover(file_name="talk.jsonl"))
    return server.worker.process(submission)


def codes(submission: Submission) -> list[str]:
    return [finding["code"] for finding in submission_view(submission)["findings"]]


def test_the_beginning_of_a_transcript_names_its_board() -> None:
    head = as_lines(shapes_dialogue(sessions=1))[:5000]
    assert board_of_head(head).id == BOARD
    rank_files = b'{"format": "cir-rank-file", "benchmark": "shapes/val", "rankings": {'
    assert board_of_head(rank_files).id == "shapes/val"
    with pytest.raises(UploadRefusedError, match="no board here ranks transcripts of 'circo/test'"):
        board_of_head(b'{"format": "cir-transcript", "benchmark": "circo/test"}')


def test_a_form_that_contradicts_a_transcript_on_the_reference_is_refused_with_both(host: Server) -> None:
    made = shapes_dialogue(sessions=2)
    made = made.model_copy(update={"method": made.method.model_copy(update={"reference": "kept"})})
    cover = Cover(file_name="talk.jsonl", method={"reference": "removed"})
    submission, _ = host.intake.take(BOARD, [as_lines(made)], cover)
    judged = host.worker.process(submission)
    assert judged.state == "rejected"
    (both,) = (one for one in judged.findings if "the form" in one["message"])
    assert both["code"] == "reference-contradiction"
    says(both["message"] + both["fix"], 'is "kept"', 'says "removed"', "leave one of them out")


def test_transcripts_are_scored_ranked_and_kept(host: Server) -> None:
    better, worse = (
        handed_in(host, as_lines(shapes_dialogue(seed=seed, hits=hits, name=name)))
        for seed, hits, name in ((1, 0.6, "Better"), (2, 0.05, "Worse"))
    )
    assert (better.state, worse.state) == ("published", "published")
    rows = host.tables.refresh(boards.board(BOARD)).view["rows"]
    assert [row["method"]["name"] for row in rows] == ["Better", "Worse"]
    assert [row["rank"] for row in rows] == [1, 2]
    assert rows[0]["main"] == rows[0]["metrics"]["hits@10@turn5"] > rows[1]["main"]
    assert "dialogue:rounds:5 k:10" in rows[0]["signature"]
    results = list(rescore(host, boards.board(BOARD)))
    assert [result.changed(boards.board(BOARD)) for result in results] == [False, False]


def ranks(server: Server) -> dict[str, int | None]:
    rows = server.tables.refresh(boards.board(BOARD)).view["rows"]
    return {row["method"]["name"]: row["rank"] for row in rows}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Server]:
    opened = Server.open(Settings(tmp_path / "home"))
    for seed, hits, name in ((1, 0.6, "First"), (2, 0.05, "Second")):
        handed_in(opened, as_lines(shapes_dialogue(seed=seed, hits=hits, name=name)))
    yield opened
    opened.close()


@pytest.mark.parametrize("here", [True, False])
def test_a_header_takes_nobodys_rank(two: Server, monkeypatch: pytest.MonkeyPatch, here: bool) -> None:
    if not here:
        monkeypatch.setattr("leaderboard.boards.data.current_keys", lambda board: None)
    strange = shapes_dialogue(seed=3, hits=0.3, name="Strange", user={"x": "y", **ORACLE})
    handed_in(two, as_lines(strange.model_copy(update={"prompts": {"feedback": "2 (cd34)"}})))
    skipping = shapes_dialogue(seed=4, name="Skipping")
    method = skipping.method.model_copy(update={"skipped_images": 1})
    assert handed_in(two, as_lines(skipping.model_copy(update={"method": method}))).state == "published"
    assert ranks(two) == {"First": 1, "Strange": 2, "Second": 3, "Skipping": None}


@pytest.mark.slow
def test_an_entry_of_an_earlier_metric_has_its_rank_again_when_it_is_scored_again(two: Server) -> None:
    board = boards.board(BOARD)
    strange = shapes_dialogue(seed=3, hits=0.3, name="Strange", user={**ORACLE, "x": "y"})
    old = handed_in(two, as_lines(strange))
    report = copy.deepcopy(old.scores or {})
    signature = report["signatures"][board.primary]
    signature["key"] = signature["key"].replace(f"metric:{board.primary}:", f"metric:{board.primary}:0")
    two.store.append(old, [("rescored", {"report": report})])
    assert ranks(two) == {"First": 1, "Second": 2, "Strange": None}
    results = list(rescore(two, board))
    assert [result.changed(board) for result in results] == [False, False, True]
    assert switch(two, board, results) == 1
    assert ranks(two) == {"First": 1, "Strange": 2, "Second": 3}


def test_what_the_form_says_of_the_method_counts_as_if_the_transcript_said_it(host: Server) -> None:
    content = as_lines(shapes_dialogue(seed=11, name="Skipping"))
    cover = Cover(file_name="talk.jsonl", method={"skipped_images": 2, "notes": "by hand"})
    submission, _ = host.intake.take(BOARD, [content], cover)
    done = host.worker.process(submission)
    assert (done.method or {})["skipped_images"] == 2
    signature = (done.scores or {})["signatures"][boards.board(BOARD).primary]
    assert signature["checks_skipped"] == [SKIPPED_IMAGES]


def test_the_same_dialogue_again_is_no_entry_of_its_own(host: Server) -> None:
    transcript = shapes_dialogue(seed=7, name="Once")
    first = handed_in(host, as_lines(transcript))
    again = handed_in(host, as_lines(transcript.model_copy(update={"prompts": {"feedback": "2"}})))
    assert first.state == "published"
    assert submission_view(again)["same_as"] == first.id


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"settings": RoundSettings(k=5)}, "k is 5, and the board asks for 10"),
        ({"settings": RoundSettings(history="none")}, 'history is "none", and the board asks for "average"'),
        ({"user": {**ORACLE, "kind": "person"}}, 'user.kind is "person"'),
        ({"user": {"kind": "simulated", "way": "captions"}}, "user.language.backend is null"),
        ({"sessions": 5}, "the number of sessions is 5"),
    ],
)
def test_other_dialogues_than_the_boards_are_refused(host: Server, changed: Any, words: str) -> None:
    submission = handed_in(host, as_lines(shapes_dialogue(**changed)))
    assert submission.state == "rejected"
    assert codes(submission) == ["wrong-settings"]
    assert words in submission_view(submission)["findings"][0]["message"]


def test_contradictions_are_refused_with_their_code_and_line(host: Server) -> None:
    transcript = shapes_dialogue()
    place = next(n for n, each in enumerate(transcript.rounds) if each.rank > 50)
    rounds = list(transcript.rounds)
    rounds[place] = rounds[place].model_copy(update={"rank": 50})
    submission = handed_in(host, as_lines(transcript.model_copy(update={"rounds": rounds})))
    assert submission.state == "rejected"
    assert codes(submission) == ["wrong-rank"]
    message = submission_view(submission)["findings"][0]["message"]
    assert message == f"line {place + 2}: rank 50; none of the list's 50 images is a positive."


def test_rank_files_and_transcripts_do_not_stand_on_each_others_boards(host: Server) -> None:
    transcript = as_lines(shapes_dialogue(sessions=2))
    sent = {"shapes/val": transcript, BOARD: as_bytes(rank_file(1))}
    for (board, content), right in zip(sent.items(), reversed(sent), strict=True):
        submission = handed_in(host, content, board)
        view = submission_view(submission)
        assert (codes(submission), view["board_offered"]) == (["wrong-kind"], right)
        says(view["findings_text"], "not a ", f"send it to the board {right}:")


def test_a_transcript_of_another_benchmark_is_offered_its_board_of_dialogues(host: Server) -> None:
    transcript = shapes_dialogue(sessions=2).model_copy(update={"benchmark": "cirr/val"})
    submission = handed_in(host, as_lines(transcript))
    assert codes(submission) == ["wrong-benchmark"]
    assert submission_view(submission)["board_offered"] == "cirr/dialogue_val"


@pytest.mark.parametrize(
    ("board", "kind"),
    [("shapes/val", "rank file"), (BOARD, "transcript"), (None, "rank file or the transcript")],
)
def test_an_empty_file_is_to_be_written_again_as_what_its_board_takes(
    host: Server, board: str | None, kind: str
) -> None:
    with pytest.raises(UploadRefusedError) as refused:
        host.intake.take(board, [], Cover())
    assert refused.value.to_dict()["fix"] == f"write the {kind} again, then send it"


def test_texts_of_strangers_come_out_escaped(host: Server) -> None:
    evil = '<script>alert("x")</script>'
    transcript = shapes_dialogue(seed=9, words=evil, name="Named")
    rounds = list(transcript.rounds)
    rounds[0] = rounds[0].model_copy(update={"end": evil, "target": evil})
    submission = handed_in(host, as_lines(transcript.model_copy(update={"rounds": rounds})))
    assert submission.state == "rejected"
    view = submission_view(submission)
    assert "wrong-target" in [finding["code"] for finding in view["findings"]]
    page = submission_html(host, submission, "owner")
    assert "alert" in page
    assert "<script>alert" not in page


@pytest.mark.parametrize(
    ("dialogue", "words"),
    [
        ({"settings": {"k": 0}}, "k=0"),
        ({"settings": {"speed": 3}}, "no setting 'speed'"),
        ({"settings": {"start": "random"}}, "how many `sessions`"),
    ],
)
def test_a_board_of_dialogues_that_cannot_be_is_refused(dialogue: Any, words: str) -> None:
    with pytest.raises((ValidationError, BoardError, ValueError), match=words):
        BoardDialogue.model_validate(dialogue)


def test_a_board_of_dialogues_names_metrics_of_transcripts() -> None:
    data = boards.board(BOARD).model_dump(exclude={"ground_truth", "phases"})
    assert boards.parse(data, "here").id == BOARD
    with pytest.raises(BoardError, match="no metric 'hits@10@turn6'"):
        boards.parse({**data, "primary": "hits@10@turn6"}, "here")
    with pytest.raises(BoardError, match="cannot be played as a dialogue"):
        boards.parse({**data, "benchmark": "shapes/multiturn_val"}, "here")

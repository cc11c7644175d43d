"""Dialogues: the loop, and what each choice of `RoundSettings` changes in it."""

from __future__ import annotations

import io
import itertools
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from benchmark_world import dialogues as world
from benchmark_world import query
from benchmark_world.dialogues import Always, another_program, image
from pydantic import ValidationError

import cir_datasets
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import CallError, UnknownNameError
from submissions.embeddings.store import EmbeddingStore
from submissions.errors import MethodError, SubmissionError
from submissions.methods.turns import Candidates, Turn
from submissions.multiround.making import make_transcript
from submissions.multiround.users import LONGEST, Silence
from submissions.rank_file.model import Method
from submissions.running.options import RunOptions
from submissions.transcripts.checking import check_transcript
from submissions.transcripts.settings import RoundSettings
from submissions.transcripts.transcript import Round, Transcript, write_transcript


@pytest.fixture
def play(tmp_path: Path) -> Any:
    """`make_transcript` in the world of directions; what is not named is as worked out by hand."""

    def played(user: Any = None, benchmark: Any = None, method: Any = None, **more: Any) -> Transcript:
        choices = {
            name: more.pop(name) for name in list(more) if name not in ("limit", "journal", "after_round")
        }
        options = RunOptions(
            encoder=world.DegreesEncoder(), store=EmbeddingStore(tmp_path / "store"), workers=0
        )
        return make_transcript(
            benchmark or world.small_benchmark(),
            method or world.Degrees(),
            user or world.ScriptedUser(),
            replace(world.SETTINGS, **choices),
            RunOptions() if isinstance(method, Nearness | Lists) else options,
            **more,
        )

    return played


def of(transcript: Transcript, session: str) -> list[Round]:
    return transcript.sessions()[session]


def ranks(transcript: Transcript, session: str) -> list[int]:
    return [each.rank for each in of(transcript, session)]


class Nearness:
    """A method that scores every image, by its direction; without vectors."""

    name: ClassVar[str] = "nearness"

    def method(self) -> Method:
        return Method(name="Nearness")

    def scores(self, turns: Sequence[Turn], gallery: Candidates) -> Any:
        directions = np.stack([world.direction(10 * place) for place in range(len(gallery.ids))])
        return np.stack([world.direction(float(turn.text)) for turn in turns]) @ directions.T


def test_three_dialogues_are_what_they_are_by_hand(play: Any) -> None:
    assert play().rounds == world.rounds()


def test_a_method_that_scores_is_summed_as_vectors_are(play: Any) -> None:
    """The cosine of a sum of vectors orders as the sum of their products does."""
    assert play(method=Nearness()).rounds == world.rounds()


def test_scores_whose_sum_is_not_finite_are_refused(play: Any) -> None:
    """Each round's scores are finite."""

    class Vast(Nearness):
        def scores(self, turns: Sequence[Turn], gallery: Candidates) -> Any:
            return np.full((len(turns), len(gallery.ids)), 1.7e308)

    with pytest.raises(
        MethodError, match=r"the method Vast, turn .* too large .* Fix: give scores of ordinary size\."
    ):
        play(method=Vast())


def test_a_user_is_shown_the_best_image_the_target_and_what_was_said(play: Any) -> None:
    user = world.ScriptedUser()
    play(user)
    shown = [(each.session, each.candidate, each.target, each.said) for each in user.shown]
    assert shown == [
        ("finds", image(10), image(40), ("12",)),
        ("never", image(100), image(20), ("97",)),
        ("silent", image(60), image(90), ("58",)),
        ("never", image(50), image(20), ("97", "7")),
    ]
    assert {each.style.words for each in user.shown} == {15}, "what is usual on shapes"


def test_no_history_ranks_by_the_last_words_alone(play: Any) -> None:
    # 66 degrees: 70, 60, 80, 50, 90, 40.
    assert ranks(play(history="none"), "finds")[:2] == [4, 6]


def test_weighted_history_counts_earlier_words_less(play: Any) -> None:
    # 0.8 at 97 and 1 at 7 degrees stand across each other: 7 + atan(0.8) = 45.66 degrees.
    top = of(play(history="weighted"), "never")[1].top
    assert top[:4] == [image(50), image(40), image(60), image(30)]


@pytest.mark.parametrize(("normalise", "second"), [(True, 40), (False, 10)])
def test_queries_count_alike_only_where_they_are_normalised(play: Any, normalise: bool, second: int) -> None:
    """A method whose first query is nine times as long: 12 and 66 degrees are at 16.6 then, not at 39."""

    class Loud(world.Degrees):
        def compose(self, turns: Sequence[Turn], context: Any) -> Any:
            composed = super().compose(turns, context)
            return composed * np.array([[9.0 if turn.text == "12" else 1.0] for turn in turns], np.float32)

    top = of(play(method=Loud(), normalise=normalise, k=1), "finds")[1].top
    # Image 10 is the reference of this round, and removed.
    assert top[0] == image(second if normalise else 20)


def test_unchanged_feedback_says_the_published_words_again_and_asks_nobody(play: Any) -> None:
    user = world.ScriptedUser()
    made = play(user, feedback="unchanged")
    assert user.shown == []
    assert [each.caption for each in of(made, "never")] == ["97"] * 3
    assert [each.end for each in of(made, "silent")] == ["", "", "last round"]


@pytest.mark.parametrize(("candidate", "expected"), [("unseen", [110, 100, 90]), ("top1", [110, 100, 110])])
def test_the_next_reference_was_none_before_unless_the_very_first_is_taken(
    play: Any, candidate: str, expected: list[int]
) -> None:
    # At 108 degrees the first two images are 110 and 100, and the reference is removed.
    made = play(Always("119"), candidate=candidate)
    assert [each.reference for each in of(made, "never")] == [image(degrees) for degrees in expected]


def test_random_candidates_come_from_the_first_m_by_the_seed(play: Any) -> None:
    drawn = set()
    for seed in range(12):
        made = play(candidate="random-top3", seed=seed)
        assert made.rounds == play(candidate="random-top3", seed=seed).rounds
        drawn.add(of(made, "silent")[1].reference)
    assert drawn == {image(60), image(70), image(40)}


def test_rounds_go_on_after_success_where_that_is_chosen(play: Any) -> None:
    made = play(Always("66", "40"), after_success="continue")
    found = of(made, "finds")
    assert [each.end for each in found] == ["", "", "last round"]
    # What was found is the next reference, and is ranked: nothing is left out after round 1.
    assert found[2].reference == image(40)
    assert image(40) in found[2].top
    assert image(0) not in found[0].top


def test_a_session_is_solved_when_a_target_is_among_the_first_k(play: Any) -> None:
    made = play(k=4)
    assert [(each.rank, each.end) for each in of(made, "finds")] == [(4, "solved")]


def test_the_last_round_ends_a_session(play: Any) -> None:
    assert [each.end for each in of(play(max_rounds=1), "never")] == ["last round"]


def several() -> Benchmark:
    """A query with three right answers; the annotated one is the farthest."""
    right = [image(degrees) for degrees in (110, 60, 70)]
    row = query("one", image(0), right[0], captions=["20"], relative_caption="20", positive_image_ids=right)
    return Benchmark.from_rows(cir_datasets.load("shapes/val").spec, [row], world.GALLERY)


@pytest.mark.parametrize(("aim", "targets"), [("target", [110, 110]), ("best", [60, 60])])
def test_of_several_targets_the_user_aims_at_the_annotated_one_or_the_best(
    play: Any, aim: str, targets: list[int]
) -> None:
    user = Always("30")
    made = play(user, benchmark=several(), aim=aim, max_rounds=2)
    # The rank is that of the best one: 20, 10, 30, 40, 50, 60.
    assert made.rounds[0].rank == 6
    assert [each.target for each in made.rounds] == [image(degrees) for degrees in targets]
    assert user.shown[0].target == image(targets[0])


def with_aspects() -> Benchmark:
    rows = world.small_benchmark().rows()
    for row, aspects in zip(rows, (["colour"], ["size", "colour"], ["size"]), strict=True):
        row["aspects"] = aspects
    return Benchmark.from_rows(cir_datasets.load("shapes/val").spec, rows, world.GALLERY)


def test_an_aspect_chooses_queries_and_limits_feedback(play: Any) -> None:
    user = world.ScriptedUser()
    made = play(user, benchmark=with_aspects(), aspect="colour")
    assert list(made.sessions()) == ["finds", "never"]
    assert {(each.style.aspect, each.style.words) for each in user.shown} == {("colour", 10)}
    assert "one kind alone: colour" in user.shown[0].style.limits


def test_own_aspects_limit_each_session_to_its_own(play: Any) -> None:
    user = world.ScriptedUser()
    play(user, benchmark=with_aspects(), aspect="own")
    aspects = {each.session: each.style.aspect for each in user.shown}
    assert aspects == {"finds": "colour", "never": "size", "silent": "size"}


def test_an_aspect_that_no_query_has_is_refused(play: Any) -> None:
    for start in ("published", "random"):
        with pytest.raises(
            MethodError, match=r"no query of the aspect 'colr'\. Fix: use one of colour, size"
        ):
            play(benchmark=with_aspects(), aspect="colr", start=start)
    with pytest.raises(MethodError, match="Fix: leave --aspect out"):
        play(aspect="colour")


def test_own_aspects_are_of_published_queries(play: Any) -> None:
    with pytest.raises(MethodError, match=r"aspect='own' is of published queries.* Fix: start with the"):
        play(benchmark=with_aspects(), aspect="own", start="random")


def test_words_are_said_to_the_user(play: Any) -> None:
    user = world.ScriptedUser()
    play(user, words=7)
    assert {each.style.words for each in user.shown} == {7}


def test_sessions_that_start_at_random_have_their_first_words_from_the_user(play: Any) -> None:
    user = Always("5", "5", "25")
    made = play(user, start="random", seed=3, limit=20)
    again = play(Always("5", "5", "25"), start="random", seed=3, limit=20)
    assert made == again
    assert len(made.sessions()) == 20
    assert all(each.reference != each.target for each in made.rounds)
    assert {each.said for each in user.shown[:20]} == {()}
    other = play(user, start="random", seed=4, limit=20)
    assert [each.target for each in other.rounds] != [each.target for each in made.rounds]


def test_of_sessions_that_start_at_random_unchanged_feedback_is_the_users_first_words(play: Any) -> None:
    user = Always("5", "25")
    made = play(user, start="random", feedback="unchanged", limit=5)
    assert {each.caption for each in made.rounds} == {"25"}
    assert len(user.shown) == 5


def test_a_user_without_first_words_ends_the_session_and_no_other(play: Any) -> None:
    """Nothing was ranked: the target stands behind all images."""
    sessions = [f"random-0-{number:05d}" for number in range(4)]
    script = {(session, number): "40" for session in sessions[1:] for number in (1, 2, 3)}
    made = play(world.ScriptedUser(script), start="random", limit=4)
    assert list(made.sessions()) == sessions
    (first,) = of(made, sessions[0])
    assert (first.rank, first.top, first.caption) == (11, [], "")
    assert first.end == f"silent: {world.WHY}"
    assert all(each.top for each in made.rounds if each.session != sessions[0])


def test_a_limit_draws_sessions_by_the_seed(play: Any) -> None:
    drawn = {frozenset(play(limit=2, seed=seed, max_rounds=1).sessions()) for seed in range(10)}
    assert drawn == {frozenset(pair) for pair in itertools.combinations(world.RANKS, 2)}


@pytest.mark.parametrize("start", ["published", "random"])
@pytest.mark.parametrize("limit", [0, -3, True, 2.0, "2"])
def test_a_limit_is_a_whole_number_from_1_on(play: Any, start: str, limit: Any) -> None:
    with pytest.raises(MethodError, match=rf"limit={limit!r} is out of range\. Fix: use a whole number"):
        play(start=start, limit=limit)


def test_images_that_tie_rank_as_the_list_shows_them(play: Any) -> None:
    """Duplicates of the target count against it nowhere but where they stand before it."""

    class Deaf(world.Degrees):
        def compose(self, turns: Sequence[Turn], context: Any) -> Any:
            return np.zeros((len(turns), 2), dtype=np.float32)

    for each in play(method=Deaf(), max_rounds=1).rounds:
        assert each.top[each.rank - 1] == each.target


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        ({"history": "averag"}, UnknownNameError, "Did you mean 'average'"),
        ({"candidate": "random-top0"}, UnknownNameError, "M from 1 to 50"),
        ({"candidate": "random-top51"}, UnknownNameError, "M from 1 to 50"),
        ({"k": 51}, MethodError, "k=51 is out of range. Fix: use a whole number from 1 to 50"),
        (
            {"max_rounds": 0},
            MethodError,
            "max_rounds=0 is out of range. Fix: use a whole number from 1 to 50",
        ),
        ({"words": 0}, MethodError, "use a whole number from 1 to 200"),
        ({"seed": -1}, MethodError, "seed=-1"),
        ({"max_rounds": True}, MethodError, "max_rounds=True"),
        ({"normalise": 1}, MethodError, "normalise=1 is out of range. Fix: use True or False"),
    ],
)
def test_what_is_not_a_choice_is_refused(choices: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        RoundSettings(**choices)


def test_what_cannot_be_played_is_refused(play: Any) -> None:
    with pytest.raises(MethodError, match="has recorded sessions"):
        play(benchmark="shapes/multiturn_val")
    with pytest.raises(MethodError, match="gives lists, from which no history"):
        play(method=Lists())
    anew = RunOptions(encoder=world.DegreesEncoder(), rerank="sc4cir", rerank_processes="s1")
    with pytest.raises(MethodError, match=r"ranked by the method alone\. Fix: leave rerank= out"):
        make_transcript(world.small_benchmark(), world.Degrees(), world.ScriptedUser(), world.SETTINGS, anew)


class Gives:
    """A user of one's own whose answers are what a function makes of the exchanges."""

    description: ClassVar[dict[str, Any]] = {"kind": "own"}

    def __init__(self, say: Any) -> None:
        self.say = say


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda _: None, r"the user Gives gave NoneType as answers\. Fix: say\(\) gives a list"),
        (lambda _: "abc", "the user Gives gave str as answers"),
        (lambda _: ["40"], r"gave 1 answer to 3 exchanges\. Fix: say\(\) gives one for each"),
        (lambda _: ["40", None, "40"], "Gives, session never, round 2: the answer is NoneType. Fix: "),
        (lambda _: ["40", Silence(None), "40"], "never, .* is Silence of NoneType"),  # type: ignore[arg-type]
        (lambda _: ["40", "a \ud800", "40"], r"session never, .* U\+D800, half of a character, at 2\. Fix"),
        (lambda _: ["40", Silence("\ud800"), "40"], r"session never, round 2: the answer holds U\+D800"),
        (lambda _: ["40", "a" * 2001, "40"], r"session never, .* 2,001 characters; .* 2,000\. Fix: "),
    ],
)
def test_what_a_user_of_ones_own_gives_is_checked(play: Any, given: Any, message: str) -> None:
    with pytest.raises(MethodError, match=message):
        play(Gives(given))


def test_words_as_long_as_a_transcript_holds_are_taken(play: Any) -> None:
    words = "40".rjust(LONGEST, "0")
    made = play(Gives(lambda shown: (words for _ in shown)), max_rounds=2)
    assert of(made, "never")[1].caption == words
    with pytest.raises(ValidationError):
        Round(**{**made.rounds[0].model_dump(), "caption": words + "0"})


@pytest.mark.parametrize("words", ["", " \n"])
def test_words_without_any_are_silence(play: Any, tmp_path: Path, words: str) -> None:
    made = play(Gives(lambda shown: [words for _ in shown]))
    assert of(made, "never")[1].end == "silent: it says nothing"
    path = write_transcript(made, tmp_path / "made.jsonl")
    assert not check_transcript(path, world.small_benchmark()).report.errors


class Lists:
    """Gives lists alone."""

    name: ClassVar[str] = "lists"

    def method(self) -> Method:
        return Method(name="Lists")

    def rank(self, turns: Sequence[Turn], gallery: Candidates, k: int) -> list[list[str]]:
        return [list(gallery.ids[:k]) for _ in turns]


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_run_that_ends_after_any_round_goes_on_with_the_next(play: Any, tmp_path: Path, at: int) -> None:
    def end(number: int, solved: int, going: int) -> None:
        if number == at:
            raise Killed

    with pytest.raises(Killed):
        play(journal=tmp_path / "journal", after_round=end)
    user = world.ScriptedUser()
    said: list[tuple[int, int, int]] = []
    made = play(user, journal=tmp_path / "journal", after_round=lambda *each: said.append(each))
    assert made.rounds == world.rounds()
    assert [number for number, *_ in said] == list(range(at + 1, 4))
    assert len(user.shown) == (4, 1, 0)[at - 1], "what was said is not asked again"


def test_rounds_of_another_run_are_not_gone_on_with(play: Any, tmp_path: Path) -> None:
    play(journal=tmp_path / "journal")
    with pytest.raises(CallError, match=r"other settings \(history 'average', not 'none'\)\. Fix: call"):
        play(journal=tmp_path / "journal", history="none")
    with pytest.raises(CallError, match=r"other settings \((limit, )?sessions\)"):
        play(journal=tmp_path / "journal", limit=2)


def test_a_journal_that_another_program_writes_is_left_alone(play: Any, tmp_path: Path) -> None:
    with another_program(tmp_path / "journal"):
        with pytest.raises(CallError, match=r"journal: another program writes it\. Fix: wait until"):
            play(journal=tmp_path / "journal")
        assert not (tmp_path / "journal").exists()
    assert play(journal=tmp_path / "journal").rounds == world.rounds()
    assert not list(tmp_path.glob(".*.lock"))


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        *(("make.json", content, "it is damaged") for content in (b"{", b"[]", b"", None)),
        ("02-round-2.jsonl", b"[", "it was changed"),
        ("02-round-2.jsonl", None, "it is gone"),
        *(("02-round-2.part", content, "it is damaged") for content in (b"[", b"", None)),
        *(
            ("02-round-2.part", _npy(array), "it is damaged")
            for array in (np.zeros((3, 3)), np.float64(0), np.zeros((3, 2), dtype=np.float32))
        ),
    ],
)
def test_a_damaged_journal_names_the_file_and_its_removal_mends_it(
    play: Any, tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    """None is a file that is missing."""
    journal = tmp_path / "journal"

    def end(number: int, solved: int, going: int) -> None:
        if number == 2:
            raise Killed

    with pytest.raises(Killed):
        play(journal=journal, after_round=end)
    if content is None:
        (journal / name).unlink()
    else:
        (journal / name).write_bytes(content)
    with pytest.raises(SubmissionError, match=rf"{name}: {said}.* Fix: .*remove .*journal"):
        play(journal=journal)
    shutil.rmtree(journal)
    assert play(journal=journal).rounds == world.rounds()


def test_a_journal_of_version_0_1_is_refused_with_what_to_do(play: Any, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    (journal / "header.json").write_text("{}")
    (journal / "round-1.json").write_text("[]")
    with pytest.raises(CallError, match=r"as versions up to 0\.1 kept it, .* Fix: end it with 0"):
        play(journal=journal)

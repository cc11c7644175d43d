"""Simulated users: what they are asked, and what becomes of answers that are of no use."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmark_world import dialogues as world
from benchmark_world.dialogues import image
from language_server import Asked, Fault, LanguageServer

import cir_datasets
from cir_datasets.registry.caption_rules import published_text
from cir_metrics.errors import UnknownNameError
from submissions.embeddings.pictures import FilePictures, ShapesPictures
from submissions.embeddings.store import EmbeddingStore
from submissions.errors import LanguageError, MethodError
from submissions.language import load_language
from submissions.language.answers import bare_words
from submissions.language.loading import PairedLanguage
from submissions.language.server import ServerLanguage
from submissions.multiround.making import make_transcript
from submissions.multiround.users import Exchange, Silence, SimulatedUser, checked_words, style_of
from submissions.running.options import RunOptions
from submissions.transcripts.transcript import Transcript

PICTURES = ShapesPictures("shapes/val", tuple(world.GALLERY))


pytestmark = pytest.mark.usefixtures("plain_language")


def instruction(words: str) -> str:
    return json.dumps({"instruction": words})


def speaks(asked: Asked) -> str:
    """A caption for a picture alone, an instruction otherwise."""
    return "a picture" if asked.image and "JSON" not in asked.prompt else instruction("40")


@pytest.fixture
def server() -> Iterator[LanguageServer]:
    with LanguageServer(look=speaks) as running:
        yield running


def asking(server: LanguageServer, **options: Any) -> ServerLanguage:
    return ServerLanguage("tiny", url=server.url, sleep=lambda seconds: None, **{"attempts": 2, **options})


def exchange(candidate: int, target: int, *said: str, benchmark: str = "shapes") -> Exchange:
    return Exchange("one", image(candidate), image(target), style_of(benchmark, None, None), said or ("1",))


def dialogue(language: Any, folder: Path, **more: Any) -> Transcript:
    store = EmbeddingStore(folder / "store")
    options = RunOptions(encoder=world.DegreesEncoder(), store=store, workers=0)
    return make_transcript(
        world.small_benchmark(), world.Degrees(), language, world.SETTINGS, options, **more
    )


def ends(made: Transcript) -> dict[str, str]:
    return {session: rounds[-1].end for session, rounds in made.sessions().items()}


def test_by_captions_each_picture_is_captioned_once_and_then_asked_about(server: LanguageServer) -> None:
    user = SimulatedUser(asking(server), PICTURES)
    assert user.say([exchange(0, 10), exchange(20, 10)]) == ["40", "40"]
    assert user.say([exchange(0, 20)]) == ["40"]
    assert sum(bool(asked.images) for asked in server.requests) == 3
    # Both captions are the same here, and so is the question about them.
    (question,) = {asked.prompt for asked in server.requests if not asked.images}
    assert "What was found shows: a picture" in question
    assert "about 15 words" in question


def test_by_pictures_both_are_looked_at_the_candidate_first(server: LanguageServer) -> None:
    user = SimulatedUser(asking(server), PICTURES, "pictures")
    assert user.say([exchange(0, 10), exchange(10, 0)]) == ["40", "40"]
    first, second = (asked.images for asked in server.requests)
    assert len(first) == 2
    assert first == second[::-1]


def test_clothes_have_a_prompt_of_their_own(server: LanguageServer) -> None:
    server.look = lambda asked: json.dumps({"caption": "a dress", "instruction": "longer"})
    user = SimulatedUser(asking(server), PICTURES)
    assert user.say([exchange(0, 10, benchmark="fashioniq")]) == ["longer"]
    assert any("clothes" in asked.prompt or "garment" in asked.prompt for asked in server.requests)
    assert list(user.prompts("caption_clothes")) == ["caption_clothes", "feedback"]


@pytest.mark.parametrize(
    ("aspect", "words"),
    [
        ("background", Silence("no change of the aspect background is left")),
        (None, "none"),
    ],
)
def test_a_model_says_that_nothing_of_the_aspect_is_left(
    server: LanguageServer, aspect: str | None, words: object
) -> None:
    server.look = lambda asked: json.dumps({"caption": "a picture", "instruction": "none"})
    shown = replace(exchange(0, 10), style=style_of("fisd", aspect, None))
    assert SimulatedUser(asking(server), PICTURES).say([shown]) == [words]


def test_every_prompt_in_use_stands_in_the_header_with_its_version(
    server: LanguageServer, tmp_path: Path
) -> None:
    made = dialogue(asking(server), tmp_path)
    assert list(made.prompts) == ["caption", "feedback"]
    assert made.prompts["feedback"].startswith("feedback 1 (")
    assert list(dialogue(asking(server), tmp_path, way="pictures").prompts) == ["feedback_pictures"]
    both = PairedLanguage(asking(server), load_language("oracle"))
    assert list(SimulatedUser(both, PICTURES).prompts("caption")) == ["caption"]


def test_prompts_of_ones_own_are_asked_by_and_named(server: LanguageServer, tmp_path: Path) -> None:
    (tmp_path / "feedback.md").write_text("{first} {second} {words} {limits} Be kind.")
    made = dialogue(asking(server, prompts=tmp_path), tmp_path)
    assert made.prompts["feedback"].startswith("feedback (")
    assert any("Be kind." in asked.prompt for asked in server.requests)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (instruction("  "), "the answer is not of the form that was asked for"),
        ("", "the answer is empty"),
        ("Instruction:", "it is a label without an answer (asked 2 times)"),
        (instruction("I'm sorry, I cannot help."), "it refuses to answer (asked 2 times)"),
        ("the most visible ones first", "it gives the prompt's own words back (asked 2 times)"),
        (instruction("сделай красным"), "it answers in another script than Latin"),
        (instruction("赤くして"), "it answers in another script than Latin"),
        (
            instruction("una falda roja con flores y sin mangas"),
            "it answers in another language than English",
        ),
        (instruction("ein rotes Kleid mit Blumen und ohne Muster"), "it answers in another language"),
        (instruction("vestido largo de color azul"), "it answers in another language"),
        (instruction("zwei Hunde statt einem"), "it answers in another language"),
        (instruction("…"), "it says nothing"),
        (instruction("👍 ?"), "it says nothing"),
        (instruction("backwards \u202e star"), "its words are not plain text: the character U+202E"),
        (instruction("red\x1b[31m star"), "its words are not plain text: the character U+001B"),
    ],
)
def test_a_simulator_of_no_use_ends_every_session_with_its_reason(
    tmp_path: Path, said: str, why: str
) -> None:
    def answers(asked: Asked) -> str:
        return "a picture" if asked.images else said

    with LanguageServer(look=answers) as server:
        made = dialogue(asking(server), tmp_path)
    assert list(made.sessions()) == list(world.RANKS)
    for rounds in made.sessions().values():
        assert [each.round for each in rounds] == [1, 2]
        assert rounds[1].end.startswith(f"silent: {why}")
        assert (rounds[1].rank, rounds[1].top, rounds[1].caption) == (rounds[0].rank, rounds[0].top, "")


@pytest.mark.parametrize(
    "words",
    [
        "in red",
        "une",
        "SPF 50+",
        "a la carte dress with a más label",
        "40",
        "hide what I cannot see",
        "de la renta dress",
        "die cut la croix",
        "red avec, avec",
        "has zig zag pink print",
        "is open toed heel",
        "has einstein",
    ],
)
def test_english_words_and_those_of_any_language_are_taken(server: LanguageServer, words: str) -> None:
    server.look = lambda asked: "a picture" if asked.images else instruction(words)
    assert SimulatedUser(asking(server), PICTURES).say([exchange(0, 10)]) == [words]


@pytest.mark.skipif(not os.environ.get("CIR_DATA_HOME"), reason="no real annotations: CIR_DATA_HOME")
@pytest.mark.parametrize("name", ["cirr/val", "fashioniq/dress_val", "fashioniq/toptee_val", "circo/val"])
def test_no_real_caption_is_called_foreign_empty_or_a_refusal(name: str) -> None:
    captions = {text for row in cir_datasets.load(name).rows() for text in published_text(row)[1]}
    captions = {text for text in captions if any(map(str.isalnum, text))}
    assert captions
    first = replace(exchange(0, 10), said=())
    assert [text for text in captions if isinstance(checked_words(bare_words(text), first), Silence)] == []


def test_a_bare_sentence_goes_on_with_every_session(tmp_path: Path) -> None:
    """As models end the paper's prompts."""
    with LanguageServer(look=lambda asked: "a picture" if asked.images else "Instruction: 40") as server:
        made = dialogue(asking(server), tmp_path)
    assert {each.caption for each in made.rounds if each.round > 1} == {"40"}
    assert not any(end.startswith("silent") for end in ends(made).values())


def test_a_caption_that_refuses_is_silence_with_its_name(server: LanguageServer) -> None:
    server.look = lambda asked: "Sorry, I can't see it." if asked.images else instruction("40")
    assert SimulatedUser(asking(server), PICTURES).say([exchange(0, 10)]) == [Silence("it refuses to answer")]
    assert all(asked.images for asked in server.requests)


def test_a_simulator_that_repeats_itself_ends_the_session(tmp_path: Path) -> None:
    with LanguageServer(look=speaks) as server:
        made = make_transcript(
            world.small_benchmark(),
            world.Degrees(),
            asking(server),
            world.RoundSettings(max_rounds=5, k=1),
            RunOptions(encoder=world.DegreesEncoder(), store=EmbeddingStore(tmp_path), workers=0),
        )
    rounds = made.sessions()["silent"]
    assert [each.caption for each in rounds] == ["58", "40", "40", ""]
    assert rounds[-1].end == "silent: it says the same for the third time in a row"


@pytest.mark.parametrize(
    ("words", "said", "repeats"),
    [
        ("A star!", ("a star", "a star."), True),
        ("2 stars", ("1 star", "1 star"), False),
        ("a star", ("a star!", "a red star"), False),
    ],
)
def test_only_letters_and_digits_make_words_other_ones(
    words: str, said: tuple[str, ...], repeats: bool
) -> None:
    expected = Silence("it says the same for the third time in a row") if repeats else words
    assert checked_words(words, exchange(0, 10, *said)) == expected


@pytest.mark.parametrize(
    ("repeats", "captions", "end"),
    [
        ("2", ["58", "40", ""], "silent: it says the same 2 times in a row"),
        ("4", ["58", "40", "40", "40", ""], "silent: it says the same 4 times in a row"),
        ("off", ["58", "40", "40", "40", "40"], "last round"),
    ],
)
def test_how_often_words_may_come_back_is_a_choice_that_the_transcript_names(
    tmp_path: Path, server: LanguageServer, repeats: str, captions: list[str], end: str
) -> None:
    settings = world.RoundSettings(max_rounds=5, k=1, repeats=repeats)
    options = RunOptions(encoder=world.DegreesEncoder(), store=EmbeddingStore(tmp_path), workers=0)
    made = make_transcript(world.small_benchmark(), world.Degrees(), asking(server), settings, options)
    rounds = made.sessions()["silent"]
    assert ([each.caption for each in rounds], rounds[-1].end) == (captions, end)
    assert made.choices == settings
    assert f"repeats:{repeats}" in made.choices.text_of()


def test_the_usual_repeats_are_in_no_header_and_no_signature() -> None:
    """Transcripts from before it was a choice have the same ones."""
    usual = world.RoundSettings()
    assert "repeats" not in usual.header()
    assert "repeats" not in usual.text_of()
    assert world.RoundSettings.of(usual.header()) == usual


@pytest.mark.parametrize("repeats", ["1", "51", "never", "", 4])
def test_other_repeats_are_refused(repeats: Any) -> None:
    with pytest.raises(MethodError, match="`off` or a whole number from 2 to 50"):
        world.RoundSettings(repeats=repeats)


def test_a_picture_that_cannot_be_read_ends_the_sessions_that_need_it(
    server: LanguageServer, tmp_path: Path
) -> None:
    """Its path is this machine's, and stands in no transcript."""
    pictures = FilePictures("x", tuple(world.GALLERY), (None,) * 12, str(tmp_path))
    (said,) = SimulatedUser(asking(server), pictures).say([exchange(0, 10)])
    assert said == Silence("the picture cannot be read")


def test_what_a_server_says_of_a_failure_is_written_out(server: LanguageServer) -> None:
    """It stands in the transcript as the reason of a session's end."""
    server.fault = lambda prompt, times: Fault("echo", 400, code="\u202e") if "JSON" in prompt else None
    (said,) = SimulatedUser(asking(server), PICTURES).say([exchange(0, 10)])
    assert isinstance(said, Silence)
    assert r"\u202e" in said.why


def test_a_question_that_fails_for_good_ends_its_session_alone(tmp_path: Path) -> None:
    """Whatever else goes wrong with it: it is asked again first."""
    bad: list[str] = []

    def fault(prompt: str, times: int) -> Fault | None:
        return Fault("status", 400) if "picture 20" in prompt else None

    def answers(asked: Asked) -> str:
        if not asked.images:
            return instruction("40")
        # Captions tell pictures apart by their order of arrival.
        if asked.images[0] not in bad:
            bad.append(asked.images[0])
        return f"picture {10 * bad.index(asked.images[0])}"

    with LanguageServer(fault, look=answers) as server:
        made = dialogue(asking(server, concurrency=1), tmp_path)
    reasons = [end for end in ends(made).values() if end.startswith("silent: the server answered 400")]
    assert len(reasons) == 1
    assert len(made.sessions()) == 3


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault("status", 401), "the server refuses the key"),
        (Fault("status", 503, {"Retry-After": "0"}), "the server answered 503"),
        (Fault("cut"), "the connection broke off"),
    ],
)
def test_a_backend_that_answers_nothing_more_stops_the_run_and_the_journal_keeps_the_rounds(
    tmp_path: Path, fault: Fault, message: str
) -> None:
    down = True
    with LanguageServer(lambda *_: fault if down else None, look=speaks) as server:
        with pytest.raises(LanguageError, match=message):
            dialogue(asking(server), tmp_path, journal=tmp_path / "journal")
        assert (tmp_path / "journal" / "01-round-1.jsonl").is_file()
        down = False
        again = dialogue(asking(server), tmp_path, journal=tmp_path / "journal")
        whole = dialogue(asking(server, cache=False), tmp_path)
    assert again == whole


def test_a_server_that_is_gone_stops_the_run_though_one_question_is_left(tmp_path: Path) -> None:
    with LanguageServer() as gone:
        pass
    with pytest.raises(LanguageError, match="no connection to") as caught:
        SimulatedUser(asking(gone), PICTURES).say([exchange(0, 0)])
    assert caught.value.final


def test_a_caption_that_failed_is_asked_for_again_in_the_next_round(server: LanguageServer) -> None:
    """As it is when a run that was killed goes on."""
    server.fault = lambda prompt, times: Fault("empty") if times < 3 and "JSON" not in prompt else None
    user = SimulatedUser(asking(server, concurrency=1), PICTURES)
    (first,) = user.say([exchange(0, 0)])
    assert isinstance(first, Silence)
    assert user.say([exchange(0, 0)]) == ["40"]


def test_what_is_no_simulator_is_refused() -> None:
    oracle = load_language("oracle")
    with pytest.raises(UnknownNameError, match=r"no simulator 'picture'\. Did you mean 'pictures'"):
        SimulatedUser(oracle, PICTURES, "picture")

    class Mute:
        identity = oracle.identity
        caption = merge = difference = judge = staticmethod(lambda *_: [])

    with pytest.raises(MethodError, match="has no ask, which a simulated user needs"):
        SimulatedUser(Mute(), PICTURES)

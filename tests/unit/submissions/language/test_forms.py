"""Questions over pictures whose answers fill in forms: a chat server, a local model, the oracle."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from language_server import Fault, LanguageServer
from PIL import Image

from cir_datasets.shapes import changes, describe, scene
from cir_datasets.shapes.language import relative_caption
from submissions.errors import LanguageError
from submissions.language import Picture, load_language
from submissions.language.answers import WrongFormError
from submissions.language.forms import Edit, Form, FrameChoice, Instruction, SessionScores
from submissions.language.loading import PairedLanguage
from submissions.language.protocol import FormLanguage, Item, Language
from submissions.language.server import ServerLanguage

ORACLE = load_language("oracle")


def picture(name: str) -> Picture:
    """A plain picture of shapes' gallery by name; its colour tells it from others."""
    return Picture(name, lambda: Image.new("RGB", (8, 8), (int(name[-3:]) % 256, 0, 0)))


PAIR = (picture("val-000618"), picture("val-000967"))
ASKED = Item({"words": "10", "limits": ""}, PAIR)


pytestmark = pytest.mark.usefixtures("plain_language")


@pytest.fixture
def server() -> Iterator[LanguageServer]:
    with LanguageServer(answer=lambda prompt: json.dumps({"instruction": "make it red"})) as running:
        yield running


def asking(server: LanguageServer, **options: object) -> ServerLanguage:
    return ServerLanguage("tiny", url=server.url, sleep=lambda seconds: None, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("a red star\n\nor a blue one", "it holds no JSON object"),
        ("} {", "it holds no JSON object"),
        ('{"instruction": "a"', "it holds no JSON object"),
        ('{"instruction": ', "it holds no JSON object"),
        ('{"wish": "a red star"}', '"instruction": Field required'),
        ('{"instruction": "  "}', '"instruction": String should have at least 1 character'),
        ('{"instruction": ["a"]}', '"instruction": Input should be a valid string'),
        ("{instruction: a}", "Invalid JSON"),
    ],
)
def test_what_is_not_of_the_form_says_why_without_the_answers_words(said: str, why: str) -> None:
    with pytest.raises(WrongFormError) as caught:
        Instruction.read(said)
    assert why in caught.value.why
    assert why in caught.value.correction
    assert "red star" not in caught.value.correction


@pytest.mark.parametrize(
    "said",
    [
        '{"instruction": "a red star"}',
        'Sure!\n```json\n{"instruction": " a red star "}\n```\nAnything else?',
        'Here it is: {"instruction": "a red star", "confidence": 1}.',
    ],
)
def test_a_form_is_found_among_other_words(said: str) -> None:
    assert Instruction.read(said) == Instruction(instruction="a red star")


@pytest.mark.parametrize(
    "said",
    [
        "Make it red.",
        "Instruction: Make it red.",
        "**Instruction:** Make it red.",
        'Sure! Here is the instruction: "Make it red."',
        "```\nMake it\nred.\n```",
        '"instruction": "Make it red."',
    ],
)
def test_one_paragraph_is_the_only_text_of_a_form(said: str) -> None:
    """As the paper's prompts end, which invite no JSON."""
    assert " ".join(Instruction.read(said).instruction.split()) == "Make it red."


@pytest.mark.parametrize("words", ["Make it red.", "Choice: 2", "```\n1\n```"])
def test_words_are_no_form_of_numbers_or_of_several_fields(words: str) -> None:
    for form in (FrameChoice, SessionScores, Edit):
        with pytest.raises(WrongFormError, match="it holds no JSON object"):
            form.read(words)


EMPTY = {
    "I'm sorry, I cannot see any pictures.": "it refuses to answer",
    "I\u2019m sorry, but I can\u2019t assist with that.": "it refuses to answer",
    "Instruction: As an AI language model, I have no eyes.": "it refuses to answer",
    "Instruction:": "it is a label without an answer",
    "**Target image caption:**": "it is a label without an answer",
    "```\n```": "it is a code fence without an answer",
    "```json```": "it is a code fence without an answer",
}


@pytest.mark.parametrize("inside_json", [False, True])
@pytest.mark.parametrize("said", EMPTY)
def test_what_answers_nothing_has_a_name_and_is_asked_again(
    server: LanguageServer, said: str, inside_json: bool
) -> None:
    server.look = lambda asked: json.dumps({"instruction": said}) if inside_json else said
    with pytest.raises(LanguageError) as caught:
        asking(server, attempts=2).ask("feedback_pictures", [ASKED], Instruction)
    assert [why for _, why in caught.value.failed] == [f"{EMPTY[said]} (asked 2 times)"]
    assert EMPTY[said] in (server.requests[1].correction or "")


@pytest.mark.parametrize(
    "said",
    [
        "most visible ones first",
        "The request, as text",
        "Picture 1 is what a search has found. I say: red.",
    ],
)
def test_the_prompts_words_are_no_answer_and_those_of_its_pictures_are(
    server: LanguageServer, said: str
) -> None:
    server.look = lambda asked: said
    with pytest.raises(LanguageError, match="it gives the prompt's own words back"):
        asking(server, attempts=1).ask("feedback_pictures", [ASKED], Instruction)
    server.look = lambda asked: "a very red dress"
    item = Item({"first": "a very red dress", "second": "a hat", "words": "5", "limits": ""})
    assert asking(server).ask("feedback", [item], Instruction)[0].instruction == "a very red dress"


def test_scales_have_ends() -> None:
    five = dict.fromkeys(SessionScores.model_fields, 5)
    assert SessionScores.read(json.dumps(five)).overall == 5
    for wrong in (0, 6, 2.5):
        with pytest.raises(WrongFormError, match="progress"):
            SessionScores.read(json.dumps({**five, "progress": wrong}))
    with pytest.raises(WrongFormError, match="choice"):
        FrameChoice.read('{"choice": -1}')


def test_all_pictures_of_a_question_reach_the_server_in_order(server: LanguageServer) -> None:
    language = asking(server)
    assert isinstance(language, FormLanguage)
    assert language.ask("feedback_pictures", [ASKED], Instruction) == [Instruction(instruction="make it red")]
    (asked,) = server.requests
    content = asked.body["messages"][0]["content"]
    assert [part["type"] for part in content] == ["text", "image_url", "text", "image_url", "text"]
    assert [content[0]["text"], content[2]["text"]] == ["Picture 1:", "Picture 2:"]
    assert len(set(asked.images)) == 2
    assert asked.prompt.endswith(Instruction.request())
    swapped = Item(ASKED.words, PAIR[::-1])
    language.ask("feedback_pictures", [ASKED, swapped], Instruction)
    assert len(server.requests) == 2
    assert server.requests[1].images == asked.images[::-1]


def test_nonsense_is_corrected_once_and_the_good_answer_is_kept(server: LanguageServer) -> None:
    server.fault = lambda prompt, times: Fault("nonsense") if times == 1 else None
    assert asking(server).ask("feedback_pictures", [ASKED], Instruction)[0].instruction == "make it red"
    first, second = server.requests
    assert first.correction is None
    assert "it holds no JSON object" in (second.correction or "")
    assert second.body["messages"][1] == {"role": "assistant", "content": '{"at last"'}
    assert second.images == first.images
    assert asking(server).ask("feedback_pictures", [ASKED], Instruction)[0].instruction == "make it red"
    assert len(server.requests) == 2


def test_what_stays_nonsense_is_listed_and_the_rest_is_kept(server: LanguageServer) -> None:
    other = Item({"words": "30", "limits": ""}, PAIR)
    server.fault = lambda prompt, times: Fault("nonsense") if "30 words" in prompt else None
    with pytest.raises(LanguageError, match="not of the form that was asked for") as caught:
        asking(server, attempts=3).ask("feedback_pictures", [other, ASKED], Instruction)
    assert [why for _, why in caught.value.failed] == [
        "the answer is not of the form that was asked for: it holds no JSON object (asked 3 times)"
    ]
    assert caught.value.answers == (None, Instruction(instruction="make it red"))
    asking(server).ask("feedback_pictures", [ASKED], Instruction)
    assert len(server.requests) == 4


def test_a_server_is_held_to_the_schema_of_the_form(server: LanguageServer) -> None:
    asking(server).ask("feedback_pictures", [ASKED], Instruction)
    asking(server, cache=False).judge("{word}", [{"word": "star"}])
    form, free = server.requests
    assert form.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {
            "name": "Instruction",
            "strict": True,
            "schema": {
                "type": "object",
                "description": "One relative caption.",
                "properties": {"instruction": {"type": "string", "description": "the request, as text"}},
                "required": ["instruction"],
                "additionalProperties": False,
            },
        },
    }
    assert "response_format" not in free.body
    scales = SessionScores.response_format()["json_schema"]["schema"]["properties"]
    assert scales["redundancy"]["type"] == "integer"


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_refuses_schemas_is_asked_without_them_from_then_on(
    server: LanguageServer, status: int
) -> None:
    """And what it answered is known to one that takes them: the question is the same."""
    server.fault_of_body = lambda body: Fault("status", status) if "response_format" in body else None
    language = asking(server, concurrency=1)
    items = [Item({"words": str(number), "limits": ""}, PAIR) for number in range(3)]
    assert len(language.ask("feedback_pictures", items, Instruction)) == 3
    assert ["response_format" in asked.body for asked in server.requests] == [True, False, False, False]
    server.fault_of_body = lambda body: None
    asking(server).ask("feedback_pictures", items, Instruction)
    assert len(server.requests) == 4


def test_another_bad_request_says_nothing_about_schemas(server: LanguageServer) -> None:
    other = Item({"words": "30", "limits": ""}, PAIR)
    server.fault = lambda prompt, times: Fault("status", 400) if "30 words" in prompt else None
    with pytest.raises(LanguageError, match="the server answered 400"):
        asking(server, concurrency=1).ask("feedback_pictures", [other, ASKED], Instruction)
    assert ["response_format" in asked.body for asked in server.requests] == [True, False, True]


@pytest.mark.parametrize("chosen", [None, {"type": "json_object"}])
def test_a_response_format_of_ones_own_goes_before(server: LanguageServer, chosen: object) -> None:
    language = asking(server, parameters={"response_format": chosen})
    language.ask("feedback_pictures", [ASKED], Instruction)
    assert server.requests[0].body.get("response_format") == chosen


class Chosen(Form):
    """Another form for the same words."""

    instruction: str


def test_another_form_is_another_question(server: LanguageServer) -> None:
    asking(server).ask("feedback_pictures", [ASKED], Instruction)
    asking(server).ask("feedback_pictures", [ASKED], Chosen)
    assert len(server.requests) == 2


def test_the_oracle_answers_every_question_about_scenes() -> None:
    assert isinstance(ORACLE, FormLanguage)
    first, second = ORACLE.caption(PAIR)
    by_pictures = ORACLE.ask("feedback_pictures", [ASKED], Instruction)
    by_words = ORACLE.ask("feedback", [Item({"first": first, "second": second})], Instruction)
    assert by_pictures == by_words == [Instruction(instruction="a small star")]
    back = ORACLE.ask("reverse", [Item({"change": "a small star"}, PAIR[:1])], Instruction)
    assert back == [Instruction(instruction="a large star")]
    assert ORACLE.ask("frame", [Item({"number": "2"}, PAIR)], FrameChoice)[0].choice in (1, 2)
    perfect = ORACLE.ask("session", [Item({"utterances": "a small star"}, PAIR)], SessionScores)[0]
    assert set(perfect.model_dump().values()) == {5}
    wrong = ORACLE.ask("session", [Item({"utterances": "no star"}, PAIR)], SessionScores)[0]
    assert wrong.coherence == 1


def test_the_next_difference_names_what_was_not_named_before() -> None:
    far = (picture("val-000618"), picture("val-000001"))
    said: list[str] = []
    for _ in range(4):
        (found,) = ORACLE.ask(
            "next_difference", [Item({"history": "\n".join(said), "retry": ""}, far)], Instruction
        )
        said.append(found.instruction)
    assert len(set(said)) == 4


def test_a_pair_is_told_apart_from_the_other_pictures_by_few_changes() -> None:
    pictures = [picture(image) for image in ("val-000618", "val-000001", "val-000002", "val-000003")]
    (alone,) = ORACLE.ask("pair", [Item({}, tuple(pictures[:2]))], Instruction)
    (apart,) = ORACLE.ask("pair", [Item({}, tuple(pictures))], Instruction)
    (back,) = ORACLE.ask("pair", [Item({}, (pictures[1], pictures[1]))], Instruction)
    first, second, *others = (scene(one.id) for one in pictures)
    found = changes(first, second, viewpoint=True)
    assert alone.instruction == relative_caption(found[:1])
    assert back.instruction == describe(second)
    fewest = next(
        some
        for number in range(1, len(found) + 1)
        for some in itertools.combinations(found, number)
        if all(set(some) - set(changes(first, other, viewpoint=True)) for other in others)
    )
    assert apart.instruction == relative_caption(fewest)


@pytest.mark.parametrize("aspect", ["background", "change", "addition"])
def test_feedback_of_an_aspect_names_changes_of_that_kind_where_there_are_some(aspect: str) -> None:
    far = (picture("val-000618"), picture("val-000001"))
    whole = ORACLE.ask("feedback_pictures", [Item({}, far)], Instruction)[0].instruction
    part = ORACLE.ask("feedback_pictures", [Item({"aspect": aspect}, far)], Instruction)[0].instruction
    assert 0 < len(part) <= len(whole)


def test_feedback_of_few_words_names_the_most_visible_changes_and_others_where_it_was_said_before() -> None:
    """The background covers most of a picture; what is to go comes last."""
    captions = {
        "first": "a small red star and a large blue circle on a sandy background",
        "second": "two large green hearts and a small white moon on a snowy background",
    }

    def feedback(words: int, said: str = "") -> str:
        item = Item({**captions, "words": str(words), "said": said})
        return str(ORACLE.ask("feedback", [item], Instruction)[0].instruction)  # type: ignore[attr-defined]

    assert feedback(1) == "a snowy background"
    whole = feedback(1000)
    assert "no " in whole
    assert all("snowy background" in feedback(words) for words in range(3, 30))
    assert "no " not in feedback(12)
    assert len({feedback(9, f"{number}") for number in range(9)}) > 1


def test_what_the_oracle_could_answer_is_in_its_error_as_forms() -> None:
    good = {
        "first": "a small red star on a sandy background",
        "second": "a small red star on a snowy background",
    }
    with pytest.raises(LanguageError) as caught:
        ORACLE.ask(  # type: ignore[attr-defined]
            "feedback", [Item(good), Item({**good, "second": "a lamp"})], Instruction
        )
    assert caught.value.answers == (Instruction(instruction="a snowy background"), None)
    assert not caught.value.final


def test_the_oracle_says_what_it_cannot_answer() -> None:
    with pytest.raises(LanguageError, match="is asked by caption_clothes, feedback"):
        ORACLE.ask("Is {a} nice?", [Item({"a": "b"})], Instruction)  # type: ignore[attr-defined]
    with pytest.raises(LanguageError, match="the question has 1 pictures, and needs 2"):
        ORACLE.ask("feedback_pictures", [Item({}, PAIR[:1])], Instruction)  # type: ignore[attr-defined]


def test_of_two_backends_the_one_that_sees_is_asked_about_pictures(server: LanguageServer) -> None:
    both = PairedLanguage(asking(server), ORACLE)
    assert both.ask("feedback_pictures", [ASKED], Instruction)[0].instruction == "make it red"
    captions = dict(zip(("first", "second"), ORACLE.caption(PAIR), strict=True))
    assert both.ask("feedback", [Item(captions)], Instruction)[0].instruction == "a small star"
    assert len(server.requests) == 1


class WithoutAsk:
    """A backend of one's own from before there were forms."""

    identity = ORACLE.identity
    caption = staticmethod(ORACLE.caption)
    merge = staticmethod(ORACLE.merge)
    difference = staticmethod(ORACLE.difference)
    judge = staticmethod(ORACLE.judge)


def test_a_backend_without_forms_is_still_a_language() -> None:
    mute = WithoutAsk()
    assert isinstance(mute, Language)
    assert not isinstance(mute, FormLanguage)
    with pytest.raises(LanguageError, match="has no ask"):
        PairedLanguage(mute, mute).ask("feedback_pictures", [ASKED], Instruction)


class Said(Form):
    """Takes any words, so that a model without JSON can fill it in."""

    said: str

    @classmethod
    def read(cls, said: str) -> Self:
        return cls(said=said)


def test_a_local_model_sees_several_pictures_and_is_corrected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    import language_models as models

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    models.save_image_text_model(tmp_path / "both")
    language = load_language(f"transformers:{tmp_path / 'both'}", device="cpu", max_tokens=8)
    assert isinstance(language, FormLanguage)
    pictures = tuple(
        Picture(colour, lambda colour=colour: Image.new("RGB", (40, 50), colour)) for colour in models.COLOURS
    )
    (answer,) = language.ask("{word}", [Item({"word": "star"}, pictures[:2])], Said)
    assert answer.said
    before = language.usage.requests  # type: ignore[attr-defined]
    with pytest.raises(LanguageError, match="it holds no JSON object"):
        language.ask("{word}", [Item({"word": "star"}, pictures[:2])], Edit)
    assert language.usage.requests == before + 3  # type: ignore[attr-defined]

"""A chat server asked through real HTTP: nothing is lost and nothing asked twice, whatever goes wrong."""

from __future__ import annotations

import base64
import email.utils
import io
import json
import os
import sqlite3
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from language_server import Fault, LanguageServer
from says import says
from waiting import wait_for

from cir_datasets import shapes
from cir_metrics.errors import CallError
from submissions.errors import LanguageError
from submissions.language.prompts import load_prompts
from submissions.language.protocol import Picture
from submissions.language.server import ServerLanguage

KEY = "sk-made-up-for-tests"


class FakeTime:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self._lock = threading.Lock()

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.now += seconds
            self.slept.append(seconds)


@pytest.fixture(autouse=True)
def surroundings(plain_language: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def server() -> Iterator[LanguageServer]:
    with LanguageServer() as running:
        yield running


def asking(server: LanguageServer, **options: Any) -> ServerLanguage:
    fake = FakeTime()
    return ServerLanguage("tiny", **{"url": server.url, "clock": fake.clock, "sleep": fake.sleep, **options})


def judging(language: ServerLanguage, texts: list[str]) -> list[str]:
    """The answers of the server above: each text in capitals."""
    return language.judge("Say in capitals:\n{text}", [{"text": text} for text in texts])


def test_answers_come_in_order_and_repeats_are_asked_once(server: LanguageServer) -> None:
    language = asking(server, concurrency=3)
    texts = [f"text {number % 7}" for number in range(40)]
    assert judging(language, texts) == [text.upper() for text in texts]
    assert len(server.requests) == 7
    assert judging(asking(server), texts) == [text.upper() for text in texts]
    assert len(server.requests) == 7


def test_nothing_is_asked_where_there_is_no_question(server: LanguageServer) -> None:
    assert judging(asking(server), []) == []
    assert asking(server).caption([]) == []
    assert server.requests == []


FAULTS = [
    Fault("status", 429, {"Retry-After": "3"}),
    Fault("status", 429),
    Fault("status", 500),
    Fault("status", 503, {"Retry-After": "2"}),
    Fault("status", 408),
    Fault("late", seconds=0.9),
    Fault("cut"),
    Fault("length"),
    Fault("empty"),
    Fault("null"),
    Fault("refusal"),
    Fault("surrogate"),
    Fault("thought"),
    Fault("not_json"),
    Fault("html"),
    Fault("no_choices"),
]


def test_a_server_that_does_not_answer_is_named_at_the_first_attempt(
    server: LanguageServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Its pauses are long: who does not answer is said when they begin, once whatever the questions."""
    fake, said = FakeTime(), []

    def sleep(seconds: float) -> None:
        said.append(len(caplog.records))
        fake.sleep(seconds)

    server.fault = lambda prompt, times: Fault("status", 503) if times <= 2 else None
    texts = ["one", "two", "three"]
    assert judging(asking(server, sleep=sleep, concurrency=1), texts) == ["ONE", "TWO", "THREE"]
    assert said == [1] * 6
    words = "The question is asked again after a pause, 6 times in all; Ctrl-C stops the run."
    assert caplog.messages == [f"openai:tiny: the server answered 503. {words}"]
    caplog.clear()
    with pytest.raises(LanguageError):
        judging(asking(server, url="http://127.0.0.1:9/v1"), texts)
    assert caplog.messages == [f"openai:tiny: no connection to http://127.0.0.1:9/v1. {words}"]


def test_whatever_passes_is_asked_again_and_each_question_is_answered_once() -> None:
    """Every question meets three faults, one after the other, and all of them meet all faults."""

    def fault(prompt: str, times: int) -> Fault | None:
        number = int(prompt.rsplit(" ", 1)[1])
        return FAULTS[(number * 3 + times) % len(FAULTS)] if times <= 3 else None

    texts = [f"text {number}" for number in range(28)]
    with LanguageServer(fault) as server:
        language = asking(server, concurrency=6, timeout=0.5)
        assert judging(language, texts) == [text.upper() for text in texts]
        assert len(server.requests) == 4 * len(texts)
        assert set(server.answered.values()) == {1}
        assert len(server.answered) == len(texts)
        assert language.usage.requests == len(server.requests)
        assert judging(asking(server), texts) == [text.upper() for text in texts]
        assert len(server.requests) == 4 * len(texts)


@pytest.mark.parametrize("kind", ["trickle", "trickling head"])
def test_the_time_out_is_a_deadline_for_the_whole_reply(kind: str) -> None:
    with LanguageServer(lambda prompt, times: Fault(kind, seconds=0.005) if times == 1 else None) as server:
        language = asking(server, timeout=0.3)
        assert judging(language, ["a star"]) == ["A STAR"]
        assert len(server.requests) == 2
        with pytest.raises(LanguageError) as caught:
            judging(asking(server, attempts=1, timeout=0.3), ["a moon"])
        assert caught.value.failed[0][1].startswith("no reply in time")
        assert server.trickled_out == 0
        # One that comes slowly, but in time, is an answer.
        assert judging(asking(server, timeout=60), ["a sun"]) == ["at last"]
        # The server counts after its last byte, which the client may have read before.
        wait_for(lambda: server.trickled_out == 1)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (Fault("status", 500), "the server answered 500"),
        (Fault("status", 429), "the server answered 429"),
        (Fault("late", seconds=0.6), "no reply in time"),
        (Fault("cut"), "the connection broke off"),
        (Fault("length"), "the answer was cut off"),
        (Fault("empty"), "the answer is empty"),
        (Fault("null"), "the answer is empty"),
        (Fault("refusal"), "the model refused to answer"),
        (Fault("surrogate"), "the answer is not text: it holds half a character"),
        (Fault("thought"), "the answer ends in the model's thoughts"),
        (Fault("not_json"), "the reply is not JSON of the chat API"),
        (Fault("html"), "a page of HTML comes"),
        (Fault("no_choices"), "the reply is not JSON of the chat API"),
    ],
    ids=lambda value: f"{value.kind}{value.status}" if isinstance(value, Fault) else "",
)
def test_what_stays_is_listed_and_only_that_is_asked_again(fault: Fault, why: str) -> None:
    broken = True
    with LanguageServer(lambda prompt, _: fault if broken and prompt.endswith("3") else None) as server:
        texts = [f"text {number}" for number in range(6)]
        with pytest.raises(LanguageError) as caught:
            judging(asking(server, attempts=2, timeout=0.3), texts)
        [(about, said)] = caught.value.failed
        assert about == "text 3"
        assert why in said
        assert said.endswith("(asked 2 times)")
        assert caught.value.answers == ("TEXT 0", "TEXT 1", "TEXT 2", None, "TEXT 4", "TEXT 5")
        assert "openai:tiny, judge: 1 of 6 questions have no answer" in str(caught.value)
        assert "The 5 answers that came are in the cache; only the others are asked again." in str(
            caught.value
        )
        assert KEY not in str(caught.value)
        broken = False
        before = len(server.requests)
        assert judging(asking(server), texts) == [text.upper() for text in texts]
        assert len(server.requests) == before + 1


def test_pauses_double_within_chance_and_obey_the_server() -> None:
    later = email.utils.formatdate(time.time() + 90, usegmt=True)
    headers = [{}, {}, {}, {"Retry-After": "7"}, {"Retry-After": later}, {"Retry-After": "soon"}]
    with LanguageServer(
        lambda _, times: Fault("status", 429, headers[times - 1]) if times <= len(headers) else None
    ) as server:
        fake = FakeTime()
        language = asking(server, clock=fake.clock, sleep=fake.sleep, attempts=7)
        assert judging(language, ["a"]) == ["A"]
    first, second, third, named, dated, unreadable = fake.slept
    assert 0 <= first <= 1
    assert 0 <= second <= 2
    assert 0 <= third <= 4
    assert named == 7
    assert 80 < dated <= 90
    assert 0 <= unreadable <= 32


def test_a_pause_that_the_server_names_holds_for_all_threads() -> None:
    with LanguageServer(
        lambda prompt, times: (
            Fault("status", 429, {"Retry-After": "30"}) if prompt.endswith("0") and times == 1 else None
        )
    ) as server:
        fake = FakeTime()
        language = asking(server, clock=fake.clock, sleep=fake.sleep, concurrency=1)
        judging(language, ["text 0", "text 1"])
    assert fake.slept == [30.0]


def test_an_answer_that_is_cut_off_gets_more_room_up_to_eight_times() -> None:
    with LanguageServer(lambda _, times: Fault("length") if times < 6 else None) as server:
        judging(asking(server, max_tokens=20), ["a"])
        assert [asked.body["max_tokens"] for asked in server.requests] == [20, 40, 80, 160, 160, 160]
        other = {"max_tokens": None, "max_completion_tokens": 5}
        judging(asking(server, parameters=other, cache=False), ["b"])
        assert [asked.body.get("max_completion_tokens") for asked in server.requests[6:8]] == [5, 10]
        assert "max_tokens" not in server.requests[6].body


@pytest.mark.parametrize(
    ("fault", "why", "fix"),
    [
        (Fault("status", 401), "the server refuses the key (401)", "set OPENAI_API_KEY"),
        (Fault("status", 403), "the server refuses the key this model (403)", "use a model"),
        (Fault("status", 404), "the server has no such model or address (404)", "OPENAI_BASE_URL"),
        (Fault("status", 429, code="insufficient_quota"), "no credit left (429)", "add credit"),
        (Fault("status", 503, {"Retry-After": "3600"}), "closed for 3,600 seconds (503)", "run it again"),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Fault) else "",
)
def test_what_no_question_could_get_over_ends_the_work_at_once(fault: Fault, why: str, fix: str) -> None:
    with LanguageServer(lambda *_: fault) as server:
        with pytest.raises(LanguageError) as caught:
            judging(asking(server, concurrency=2), [f"text {number}" for number in range(50)])
        assert len(server.requests) <= 2
        assert len(caught.value.failed) == 50
        assert why in str(caught.value)
        assert fix in str(caught.value)
        assert "and 45 more" in str(caught.value)


def test_a_request_that_the_server_cannot_take_is_not_repeated_and_says_why() -> None:
    with LanguageServer(lambda prompt, _: Fault("status", 400) if "0" in prompt else None) as server:
        with pytest.raises(LanguageError, match=r"the server answered 400: something is wrong") as caught:
            judging(asking(server), ["text 0", "text 1"])
        assert caught.value.answers == (None, "TEXT 1")
        assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 429, 500])
def test_a_server_that_tells_the_key_again_does_not_bring_it_onto_the_screen(status: int) -> None:
    with LanguageServer(lambda *_: Fault("echo", status)) as server:
        with pytest.raises(LanguageError) as caught:
            judging(asking(server, attempts=1, concurrency=1), ["a"])
        assert server.requests[0].key == KEY
    shown = "".join(traceback.format_exception(caught.value)) + str(caught.value.failed)
    assert str(status) in shown
    assert KEY[:10] not in shown
    assert ("Bearer [the key]" in shown) == (status in (400, 422))


def test_a_key_at_the_end_of_what_is_shown_is_not_shown_in_part() -> None:
    """The server's reason is cut to 200 characters, which may be in the middle of the key."""
    for length in (170, 180, 187, 190):
        fault = Fault("echo", 400, code="x" * length)
        with LanguageServer(lambda *_, fault=fault: fault) as server, pytest.raises(LanguageError) as caught:
            judging(asking(server), ["a"])
        assert KEY[:4] not in str(caught.value)


@pytest.mark.parametrize("written", [f"{KEY}\n", f" {KEY}", f"{KEY}\r\n"])
def test_blanks_around_a_key_go(
    server: LanguageServer, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", written)
    assert judging(asking(server), ["a"]) == ["A"]
    assert judging(asking(server, key=written, cache=False), ["a"]) == ["A"]
    assert {asked.key for asked in server.requests} == {KEY}


@pytest.mark.parametrize(
    "key", ["sk-ma\nde-up", "sk-made up", "sk-mäde-up", "sk-made-up\u2026", "sk\x00made"]
)
def test_a_key_that_no_request_can_carry_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    with pytest.raises(CallError) as caught:
        ServerLanguage("tiny", key=key)
    says(
        caught,
        "the key of the language server",
        "a blank, a line break or a character outside ASCII",
        "Fix: copy the key anew",
        "OPENAI_API_KEY",
    )


def test_a_blank_key_is_none(server: LanguageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " \n")
    judging(asking(server), ["a"])
    assert server.requests[0].key == "none"
    with pytest.raises(CallError, match="there is no key for OpenAI's server"):
        ServerLanguage("tiny")


def test_thoughts_before_an_answer_are_not_part_of_it() -> None:
    with LanguageServer(answer=lambda _: "<think>\nred? Or blue?\n</think>\n\nA red star.") as server:
        assert asking(server).merge(["a star"], ["red"]) == ["A red star."]


def test_words_that_are_not_text_are_named_before_they_are_sent(server: LanguageServer) -> None:
    with pytest.raises(LanguageError, match="the words are not text: they hold half a character") as caught:
        asking(server).merge(["a star", "a \ud800 star"], ["red", "red"])
    assert caught.value.answers[0] is not None
    assert caught.value.answers[1] is None
    assert len(server.requests) == 1


def test_a_picture_whose_name_is_not_text_is_captioned_and_kept(server: LanguageServer) -> None:
    """Such as a file's name in Latin-1, which Python holds with half characters."""
    picture = Picture(os.fsdecode(b"sch\xf6n.png"), lambda: shapes.picture("val-000005"))
    first = asking(server).caption([picture])
    assert asking(server).caption([picture]) == first
    assert len(server.requests) == 1


def test_no_server_is_told_in_a_line() -> None:
    with LanguageServer() as gone:
        pass
    with pytest.raises(LanguageError, match=rf"no connection to {gone.url} \(asked 2 times\)"):
        judging(asking(gone, attempts=2), ["a"])


@pytest.mark.parametrize(("broken", "final"), [(1, False), (3, False), (4, True), (6, True)])
def test_where_most_questions_have_no_reply_the_backend_is_gone(broken: int, final: bool) -> None:
    """So that a dialogue stops, and ends no session for what is the server's fault."""
    fault = Fault("status", 503)
    with LanguageServer(lambda prompt, _: fault if int(prompt[-1]) < broken else None) as server:
        with pytest.raises(LanguageError) as caught:
            judging(asking(server, attempts=1), [f"text {number}" for number in range(6)])
        assert len(caught.value.failed) == broken
        assert caught.value.final is final
        # What is in the cache counts, so that a run that was killed goes on alike.
        with pytest.raises(LanguageError) as again:
            judging(asking(server, attempts=1), [f"text {number}" for number in range(6)])
        assert again.value.final is final


def test_answers_of_no_use_are_no_sign_that_the_backend_is_gone() -> None:
    with LanguageServer(lambda *_: Fault("empty")) as server, pytest.raises(LanguageError) as caught:
        judging(asking(server, attempts=1), ["a", "b", "c"])
    assert not caught.value.final


def test_the_pictures_pixels_reach_the_server(server: LanguageServer) -> None:
    def opened() -> Any:
        return shapes.picture("val-000005")

    [said] = asking(server).caption([Picture("val-000005", opened)])
    assert said == load_prompts()["caption"].text.splitlines()[-1].upper()
    [asked] = server.requests
    assert asked.prompt == load_prompts()["caption"].text
    kind, _, data = asked.image.partition(";base64,")
    assert kind == "data:image/jpeg"
    from PIL import Image

    seen = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"), dtype=int)
    drawn = np.asarray(opened(), dtype=int)
    assert seen.shape == drawn.shape
    assert np.abs(seen - drawn).mean() < 4


def test_large_pictures_are_sent_small_and_keep_their_shape(server: LanguageServer) -> None:
    from PIL import Image

    asking(server).caption([Picture("wide", lambda: Image.new("RGB", (3000, 1500), "red"))])
    data = str(server.requests[0].image).partition(";base64,")[2]
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (1024, 512)


def test_the_same_pixels_are_asked_once_whatever_the_picture_is_called(server: LanguageServer) -> None:
    first, second = (Picture(name, lambda: shapes.picture("val-000005")) for name in ("a", "b"))
    asking(server).caption([first, second, Picture("c", lambda: shapes.picture("val-000006"))])
    assert len(server.requests) == 2


def test_a_picture_that_cannot_be_read_is_named_and_the_others_are_captioned(
    server: LanguageServer, tmp_path: Path
) -> None:
    from PIL import Image

    damaged = tmp_path / "damaged.png"
    damaged.write_bytes(b"\x89PNG\r\n\x1a\n")
    pictures = [
        Picture("good", lambda: shapes.picture("val-000005")),
        Picture("damaged", lambda: Image.open(damaged)),
    ]
    with pytest.raises(LanguageError, match="'damaged': the picture cannot be read") as caught:
        asking(server).caption(pictures)
    assert caught.value.answers[0] is not None
    assert caught.value.answers[1] is None


def test_key_and_address_come_from_the_environment_and_are_written_nowhere(
    server: LanguageServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    language = ServerLanguage("tiny")
    language.merge(["a red star"], ["a blue one"])
    assert server.requests[0].key == KEY
    written = [path.read_text("latin-1") for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert written
    for text in (*written, language.identity.text(), json.dumps(language.identity.to_dict()), repr(language)):
        assert KEY not in text
        assert server.url not in text


def test_a_server_without_key_is_asked_without_one(
    server: LanguageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    judging(asking(server), ["a"])
    assert server.requests[0].key == "none"
    with pytest.raises(CallError, match="there is no key for OpenAI's server"):
        ServerLanguage("tiny")


@pytest.mark.parametrize(
    "url",
    ["localhost:8000", "https://me:secret@example.org/v1", "https://example.org/v1?key=secret", "ftp://x"],
)
def test_an_address_that_could_hold_a_secret_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(CallError, match="the address of the language server cannot be used") as caught:
        ServerLanguage("tiny", url=url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"concurrency": 0}, "concurrency=0; it is above 0"),
        ({"attempts": 0}, "attempts=0; it is above 0"),
        ({"max_tokens": -1}, "max_tokens=-1; it is above 0"),
        ({"timeout": 0}, "timeout=0; it is above 0"),
        ({"requests_per_minute": 0}, "requests_per_minute=0; it is above 0"),
        ({"parameters": {"stream": True}}, "'stream' is not for you to set"),
        ({"parameters": {"seed": {1, 2}}}, "parameters: they are not JSON"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(CallError, match=words):
        ServerLanguage("tiny", **options)


def test_the_answer_depends_on_model_server_options_prompt_words_and_picture(server: LanguageServer) -> None:
    judging(asking(server), ["a"])
    for options in ({"parameters": {"seed": 7}}, {"max_tokens": 9}, {"parameters": {"temperature": 1}}):
        judging(asking(server, **options), ["a"])
    judging(ServerLanguage("other", url=server.url), ["a"])
    assert len(server.requests) == 5
    assert [asked.body.get("seed") for asked in server.requests[:2]] == [None, 7]
    assert server.requests[0].body["temperature"] == 0
    asking(server).judge("Please say in capitals:\n{text}", [{"text": "a"}])
    assert len(server.requests) == 6
    judging(asking(server, timeout=5, concurrency=1, attempts=1), ["a"])
    assert len(server.requests) == 6


def test_tokens_and_cost_count_what_was_paid_and_no_price_is_invented(server: LanguageServer) -> None:
    server.fault = lambda prompt, times: Fault("empty") if prompt.endswith("0") and times == 1 else None
    prices = {"tiny": {"input": 2.0, "output": 10.0}}
    language = asking(server, prices=prices, concurrency=1)
    judging(language, ["text 0", "text 1"])
    shown = language.usage.to_dict()
    assert shown == {
        "requests": 3,
        "answered": 2,
        "cached": 0,
        "prompt_tokens": 300,
        "completion_tokens": 30,
        "cost": pytest.approx((300 * 2 + 30 * 10) / 1e6, abs=1e-15),
    }
    again = asking(server, prices=prices)
    judging(again, ["text 0", "text 1"])
    assert again.usage.text() == "0 answered (0 requests, 0 + 0 tokens, cost 0), 2 from the cache"
    unknown = asking(server, prices={"another": {"input": 1, "output": 1}})
    assert unknown.usage.cost is None


def test_as_many_questions_as_said_are_open_at_once() -> None:
    with LanguageServer(seconds=0.05) as server:
        judging(asking(server, concurrency=3), [f"text {number}" for number in range(12)])
        assert 2 <= server.beside_each_other <= 3


def test_requests_keep_their_distance(server: LanguageServer) -> None:
    fake = FakeTime()
    language = asking(server, requests_per_minute=20, clock=fake.clock, sleep=fake.sleep, concurrency=1)
    judging(language, [f"text {number}" for number in range(5)])
    assert fake.now == pytest.approx(4 * 3.0)


def test_an_answer_without_cache_is_in_the_error(server: LanguageServer, tmp_path: Path) -> None:
    server.fault = lambda prompt, _: Fault("status", 500) if prompt.endswith("1") else None
    with pytest.raises(LanguageError, match="The 1 answers that came are in the error's `answers`") as caught:
        judging(asking(server, cache=False, attempts=1), ["text 0", "text 1"])
    assert caught.value.answers == ("TEXT 0", None)
    assert not (tmp_path / "cache").exists()


def test_a_damaged_answer_on_disk_is_asked_again(
    server: LanguageServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    judging(asking(server), ["a"])
    with sqlite3.connect(tmp_path / "cache" / "language" / "answers.sqlite") as file:
        file.execute("UPDATE entries SET value = substr(value, 1, 20)")
    assert judging(asking(server), ["a"]) == ["A"]
    assert "no answer in it, so that it is asked again" in caplog.text
    assert len(server.requests) == 2
    assert judging(asking(server), ["a"]) == ["A"]
    assert len(server.requests) == 2

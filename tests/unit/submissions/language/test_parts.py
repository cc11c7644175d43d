"""Prompts, prices, pace and the answers on disk."""

from __future__ import annotations

import hashlib
import itertools
import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cir_datasets.common.key_values import KeyValues
from cir_metrics.errors import CallError
from submissions.errors import LanguageError
from submissions.language.answers import Answer, NoAnswerError, usable
from submissions.language.cache import AnswerCache, answer_cache, cache_key, picture_digest
from submissions.language.pacing import Pace
from submissions.language.prompts import PLACEHOLDERS, Template, load_prompts
from submissions.language.protocol import LanguageIdentity
from submissions.language.usage import Price, Usage, price_of

pytestmark = pytest.mark.usefixtures("plain_language")


def folder_of(root: Path, **texts: str) -> Path:
    root.mkdir(exist_ok=True)
    for name, text in texts.items():
        (root / f"{name}.md").write_text(text, encoding="utf-8")
    return root


def test_our_prompts_have_the_placeholders_of_their_tasks() -> None:
    prompts = load_prompts()
    for name, words in PLACEHOLDERS.items():
        assert prompts[name].placeholders == set(words)
        assert prompts[name].text == prompts[name].text.strip() != ""


def test_a_folder_replaces_some_prompts_and_adds_others(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "mine", merge="{change}: {caption}\n", nicer="Is {a} nicer than {b}?")
    mine, ours = load_prompts(folder), load_prompts()
    assert mine["merge"].text == "{change}: {caption}"
    assert mine["nicer"].placeholders == {"a", "b"}
    assert mine["caption"] == ours["caption"]
    assert mine.sha256 != ours.sha256 == load_prompts().sha256


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_PROMPTS", str(folder_of(tmp_path / "mine", caption="What is this?")))
    assert load_prompts()["caption"].text == "What is this?"


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"merge": "{caption}"}, r"merge.md: it lacks \{change\}. Fix: put it where"),
        ({"merge": "{caption} {change} {x}"}, r"nothing fills \{x\}. Fix: use \{caption\}, \{change\} only"),
        ({"caption": "{x}"}, r"nothing fills \{x\}. Fix: this prompt has no placeholders"),
        ({"caption": "  \n"}, "the prompt is empty"),
        ({"My-Prompt": "x"}, "'My-Prompt' is not a name of a prompt"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_named(tmp_path: Path, texts: dict[str, str], words: str) -> None:
    with pytest.raises(LanguageError, match=words):
        load_prompts(folder_of(tmp_path / "mine", **texts))


def test_folders_and_files_that_hold_no_prompts(tmp_path: Path) -> None:
    with pytest.raises(CallError, match="no such folder of prompts"):
        load_prompts(tmp_path / "nowhere")
    with pytest.raises(CallError, match="no prompt in it"):
        load_prompts(folder_of(tmp_path / "empty"))
    folder_of(tmp_path / "latin")
    (tmp_path / "latin" / "caption.md").write_bytes("schön".encode("latin-1"))
    with pytest.raises(LanguageError, match=r"caption\.md: it is not UTF-8"):
        load_prompts(tmp_path / "latin")


def test_a_prompt_is_found_by_its_name_or_is_a_text_with_a_placeholder() -> None:
    prompts = load_prompts()
    assert prompts["Is {a} red?"] == Template("judge", "Is {a} red?")
    with pytest.raises(LanguageError, match=r"no prompt 'marge'\. Did you mean 'merge'\?"):
        prompts["marge"]
    with pytest.raises(
        LanguageError, match="it has no placeholder, so that every item would be asked the same"
    ):
        prompts["Is it red?"]


def test_missing_words_are_named() -> None:
    with pytest.raises(LanguageError, match=r"prompt merge: no words for \{change\}"):
        load_prompts()["merge"].filled({"caption": "a"})


@given(st.text(), st.text())
def test_words_are_put_in_as_they_are(caption: str, change: str) -> None:
    filled = Template("merge", "<{caption}|{change}>").filled({"caption": caption, "change": change})
    assert filled == f"<{caption}|{change}>"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("a star", "a star"),
        ("\n a star \n", "a star"),
        ('"a star"', "a star"),
        ('"a" or "b"', '"a" or "b"'),
        ('"', '"'),
        ("<think>a star?</think>a star", "a star"),
        ('<think>\na "moon"?\n</think>\n\n"a star"', "a star"),
        ("<thinking>hm</thinking> a star", "a star"),
        ("the prompt had the opening tag</think> a star", "a star"),
        ("<think></think><think>again</think>a star", "a star"),
        ("a star to think of", "a star to think of"),
        ("a <think> star", "a <think> star"),
    ],
)
def test_blanks_quotation_marks_and_thoughts_around_an_answer_go(said: str, text: str) -> None:
    assert usable(said) == text


@pytest.mark.parametrize("said", [None, "", " \n", '""', '" "', "<think>a star</think>", "hm</think>\n"])
def test_an_answer_without_words_is_refused(said: str | None) -> None:
    with pytest.raises(NoAnswerError, match="the answer is empty"):
        usable(said)


@pytest.mark.parametrize("said", ["<think>a star, or a", "<thinking>", "<think>a</think> <think>b"])
def test_thoughts_without_an_end_are_not_an_answer(said: str) -> None:
    with pytest.raises(NoAnswerError, match="the answer ends in the model's thoughts") as caught:
        usable(said)
    assert caught.value.fix == "raise max_tokens"


@pytest.mark.parametrize("said", ["a \ud800 star", "\udcff"])
def test_half_a_character_is_not_an_answer(said: str) -> None:
    with pytest.raises(NoAnswerError, match="the answer is not text: it holds half a character"):
        usable(said)


def test_an_identity_reads_as_one_line() -> None:
    revision = "0123456789abcdef" * 4
    one = LanguageIdentity("transformers", "tiny", revision, "ab" * 32, "float32")
    assert one.text() == "transformers:tiny (revision 0123456789ab, prompts abababababab, float32)"
    assert LanguageIdentity("mine", "mine").text() == "mine"
    assert one.to_dict()["revision"] == revision


def test_answers_lie_on_disk_under_what_was_asked(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path / "answers")
    asked = {"model": "tiny", "words": {"caption": "ä star"}}
    key = cache_key(asked)
    canonical = '{"format":1,"model":"tiny","words":{"caption":"\\u00e4 star"}}'
    assert key == hashlib.sha256(canonical.encode()).hexdigest()
    assert cache.get(key) is None
    cache.put({key: (Answer("ein Stern", 7, 3), asked)})
    assert AnswerCache(tmp_path / "answers").get(key) == Answer("ein Stern", 7, 3)
    with sqlite3.connect(tmp_path / "answers" / "answers.sqlite") as file:
        [(value,)] = file.execute("SELECT value FROM entries WHERE key = ?", (key.encode(),))
    assert json.loads(value)["asked"] == asked


def test_answers_of_version_0_1_are_read(tmp_path: Path) -> None:
    key = "ab" * 32
    (tmp_path / "ab").mkdir()
    document = {"answer": "a star", "prompt_tokens": 7, "completion_tokens": 3, "asked": {"model": "tiny"}}
    (tmp_path / "ab" / f"{key}.json").write_text(json.dumps(document))
    cache = AnswerCache(tmp_path)
    assert cache.get(key) == Answer("a star", 7, 3)
    cache.put({key: (Answer("a moon"), {})})
    assert cache.get(key) == Answer("a moon")


def test_the_cache_option_takes_true_false_or_a_folder(tmp_path: Path) -> None:
    usual = answer_cache(None)
    assert usual.root == tmp_path / "cache" / "language"
    assert answer_cache(True) is not None
    assert answer_cache(False) is None
    other = answer_cache(str(tmp_path / "other"))
    assert other.root == tmp_path / "other"


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b'{"answer": "a"}', b'{"answer": "a", "prompt_tokens": "x"}']
)
def test_what_is_not_an_answer_counts_as_none(tmp_path: Path, content: bytes) -> None:
    KeyValues(tmp_path / "answers.sqlite", LanguageError).put({"ab" * 32: content})
    assert AnswerCache(tmp_path).get("ab" * 32) is None


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = AnswerCache(tmp_path / "file")
    with pytest.raises(LanguageError, match="set CIR_CACHE_HOME to a folder of yours"):
        cache.put({"ab" * 32: (Answer("a"), {})})


def test_pictures_are_known_by_their_pixels(tmp_path: Path) -> None:
    from PIL import Image

    image = Image.new("RGB", (4, 2), (1, 2, 3))
    image.save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as saved:
        assert picture_digest(saved) == picture_digest(image)
    assert picture_digest(image.convert("RGBA")) == picture_digest(image)
    assert picture_digest(image.resize((2, 4))) != picture_digest(image)
    assert picture_digest(image) == hashlib.sha256(b"4x2:" + b"\x01\x02\x03" * 8).hexdigest()


@given(st.floats(0.1, 6000), st.lists(st.floats(0, 30), max_size=20))
def test_starts_are_never_closer_than_the_pace_allows(per_minute: float, idle: list[float]) -> None:
    now = [0.0]
    starts = []

    def sleep(seconds: float) -> None:
        now[0] += seconds

    pace = Pace(per_minute, clock=lambda: now[0], sleep=sleep)
    for seconds in idle:
        pace.wait()
        starts.append(now[0])
        now[0] += seconds
    for first, second in itertools.pairwise(starts):
        assert second - first >= 60 / per_minute * (1 - 1e-9)


def test_threads_share_one_pace() -> None:
    lock, now, starts = threading.Lock(), [0.0], []

    def sleep(seconds: float) -> None:
        with lock:
            now[0] += seconds

    pace = Pace(30, clock=lambda: now[0], sleep=sleep)

    def work() -> None:
        for _ in range(20):
            pace.wait()
            starts.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(starts) == 80
    assert now[0] >= 79 * 2.0


def test_a_pause_holds_off_the_next_start() -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    pace = Pace(clock=lambda: now[0], sleep=sleep)
    pace.wait()
    pace.pause(12)
    pace.pause(3)
    pace.wait()
    assert now[0] == 12


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
def test_a_pace_that_is_none_is_refused(limit: float) -> None:
    with pytest.raises(CallError, match="it is above 0"):
        Pace(limit)


def test_prices_come_from_a_file_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert price_of("tiny") is None
    prices = tmp_path / "prices.yaml"
    prices.write_text("tiny: {input: 0.15, output: 0.6}\n")
    assert price_of("tiny", prices) == Price(0.15, 0.6)
    assert price_of("other", prices) is None
    monkeypatch.setenv("CIR_LANGUAGE_PRICES", str(prices))
    assert price_of("tiny") == Price(0.15, 0.6)


@pytest.mark.parametrize(
    "prices",
    [
        {"tiny": 3},
        {"tiny": {"input": 1}},
        {"tiny": {"input": 1, "output": -1}},
        {"tiny": {"input": 1, "output": "2"}},
        {"tiny": {"input": True, "output": 2}},
    ],
)
def test_prices_that_are_none_are_shown(prices: dict[str, Any]) -> None:
    with pytest.raises(CallError, match=r"the price of 'tiny' is .* Fix: write `MODEL: \{input: 0.15"):
        price_of("tiny", prices)


def test_files_of_prices_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CallError, match="the prices cannot be read"):
        price_of("tiny", tmp_path / "nowhere.yaml")
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: [")
    with pytest.raises(CallError, match=r"bad\.yaml: line \d: .*Fix: correct it there"):
        price_of("tiny", bad)
    bad.write_text("- a")
    with pytest.raises(CallError, match="it is not a mapping"):
        price_of("tiny", bad)


def test_a_price_is_for_a_million_tokens() -> None:
    usage = Usage(Price(0.15, 0.6))
    usage.sent()
    usage.paid(1_000, 500)
    usage.came(cached=False)
    assert usage.cost == pytest.approx(0.00015 + 0.0003, abs=1e-15)
    assert usage.text() == "1 answered (1 requests, 1,000 + 500 tokens, cost 0.00045), 0 from the cache"

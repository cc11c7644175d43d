"""SC4CIR: the sum by hand and by a slow twin, every kind of method, ties, sessions, failures, options."""

from __future__ import annotations

import functools
import itertools
import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import benchmark_world
import numpy as np
import pytest
from benchmark_world import sessions
from benchmark_world.embeddings import fashioniq_pictures
from benchmark_world.encoders import PlainEncoder
from language_server import Fault, LanguageServer
from PIL.Image import Image
from says import says
from sc4cir_twin import ordered, sums_of

import submissions
from cir_datasets.errors import MissingImagesError, SourceError
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import CallError, CirError, UnknownNameError
from submissions import Method, RunOptions, make_rank_file
from submissions.embeddings.pictures import pictures_of
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.protocol import Identity
from submissions.errors import EncoderError, LanguageError, MethodError
from submissions.language import load_language
from submissions.language.forms import Instruction
from submissions.language.oracle import OracleLanguage
from submissions.language.protocol import Item, LanguageIdentity, Picture, pictures_by_id
from submissions.methods.sc4cir import Cost, turns_to_rerank
from submissions.methods.turns import Candidates, Turn, turns_of
from submissions.running.by_scores import ByScores
from submissions.running.make import prepare
from submissions.running.reranking import renamed

ORACLE = OracleLanguage()
small_shapes = functools.cache(benchmark_world.small_shapes)
GALLERY = [f"val-{number:06d}" for number in range(20)]
PROCESSES = ("s1", "s2", "s3")
SUMS = ["+".join(some) for size in (1, 2, 3) for some in itertools.combinations(PROCESSES, size)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> EmbeddingStore:
    return EmbeddingStore(tmp_path_factory.mktemp("store"))


@pytest.fixture
def run(store: EmbeddingStore) -> Callable[..., Any]:
    """A run with the small encoder; `rerank=None` is one without the re-ranker."""

    def made(benchmark: Benchmark, method: Any = "image_text_sum", **options: Any) -> Any:
        usual: dict[str, Any] = {"encoder": PlainEncoder(), "store": store, "workers": 0, "rerank": "sc4cir"}
        if options.get("rerank", "sc4cir") and options.get("rerank_processes") != "s1":
            usual["language"] = ORACLE
        return make_rank_file(benchmark, method, **usual | options)

    return made


class HandEncoder:
    """Vectors in two dimensions, those of the hand computation."""

    identity = Identity("hand", "1", "plain", "none", "float32", 2)
    words: ClassVar = {
        "make it red": (1.0, 0.0),
        "make it blue": (0.0, 1.0),
        "it is red": (0.8, 0.6),
        "it is green": (-0.6, 0.8),
        "it is round": (0.6, 0.8),
    }

    def encode_images(self, images: Sequence[Image]) -> Any:
        raise AssertionError("the pictures are in the store")

    def encode_texts(self, texts: Sequence[str]) -> Any:
        return np.array([self.words[text] for text in texts], dtype=np.float32)


class Scripted:
    """A language backend that knows its answers, and is asked nothing else.

    Args:
        answers: by prompt and the pictures' ids; an error is raised.
    """

    identity = LanguageIdentity("mine", "scripted")

    def __init__(self, answers: dict[tuple[str, ...], str | None]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, ...]] = []

    def caption(self, images: Sequence[Picture]) -> list[str]:
        raise NotImplementedError

    def merge(self, captions: Sequence[str], changes: Sequence[str]) -> list[str]:
        raise NotImplementedError

    def difference(self, first: Sequence[str], second: Sequence[str]) -> list[str]:
        raise NotImplementedError

    def judge(self, prompt: str, items: Sequence[Any]) -> list[str]:
        raise NotImplementedError

    def ask(self, prompt: str, items: Sequence[Item], form: type[Any]) -> list[Any]:
        asked = [(prompt, *(picture.id for picture in item.pictures)) for item in items]
        self.asked += asked
        found = [self.answers[one] for one in asked]
        answers = [None if text is None else form(instruction=text) for text in found]
        failed = [("|".join(one), "no reply") for one, text in zip(asked, found, strict=True) if text is None]
        if failed:
            raise LanguageError(f"{len(failed)} have no answer", failed, answers)
        return answers


class Table:
    """A method whose scores stand in a table, by reference and text."""

    needs_pictures = False
    aggregation = "latest"

    def __init__(self, table: dict[tuple[str | None, str], dict[str, float]]) -> None:
        self.table = table

    def method(self) -> Method:
        return Method(name="Table", backbone="none", zero_shot=True)

    def scores(self, turns: Sequence[Turn], gallery: Candidates) -> Any:
        rows = [self.table[turn.reference, turn.text] for turn in turns]
        return np.array([[row.get(image, -9.0) for image in gallery.ids] for row in rows])


REF, A, B, C, D = GALLERY[:5]
FORWARD = {A: 0.9, B: 0.8, C: 0.7, D: 0.6, REF: 0.95}
BACK = {A: 0.1, B: 0.25, C: 0.4}
SAID = {A: "it is green", B: "it is red", C: "it is round"}
"""Cosines to `make it red`: -0.6, 0.8, 0.6."""


def hand_world() -> tuple[Benchmark, Table, Scripted]:
    benchmark = sessions([[(REF, "make it red")]], [REF, A, B, C, D])
    table: dict[tuple[str | None, str], dict[str, float]] = {(REF, "make it red"): FORWARD | {REF: -1.0}}
    table |= {(image, "make it blue"): {REF: score} for image, score in BACK.items()}
    answers: dict[tuple[str, ...], str | None] = {("reverse", REF): "make it blue"}
    answers |= {("candidate", REF, image): text for image, text in SAID.items()}
    return benchmark, Table(table), Scripted(answers)


@pytest.mark.parametrize(
    ("processes", "order"),
    [
        # S1: 0.9, 0.8, 0.7; S2: 0.1, 0.25, 0.4; S3: -0.6, 0.8, 0.6 for A, B, C.
        ("s1", [A, B, C]),
        ("s2", [C, B, A]),
        ("s3", [B, C, A]),
        ("s1+s2", [C, B, A]),  # 1.0, 1.05, 1.1
        ("s1+s3", [B, C, A]),  # 0.3, 1.6, 1.3
        ("s2+s3", [B, C, A]),  # -0.5, 1.05, 1.0
        ("s1+s2+s3", [B, C, A]),  # 0.4, 1.85, 1.7
    ],
)
def test_the_sum_is_the_one_that_is_computed_by_hand(processes: str, order: list[str]) -> None:
    benchmark, table, speaker = hand_world()
    options: dict[str, Any] = {"rerank": "sc4cir", "rerank_top": 3, "rerank_processes": processes}
    options |= {} if processes == "s1" else {"language": speaker}
    options |= {"rerank_encoder": HandEncoder()} if "s3" in processes else {}
    made = make_rank_file(benchmark, table, **options)
    assert made.rankings["s0"] == [[*order, D, REF]], "the tail is unchanged"
    wanted = [("reverse", REF)] * ("s2" in processes)
    wanted += [("candidate", REF, image) for image in (A, B, C)] if "s3" in processes else []
    assert speaker.asked == wanted, "T' once a query, T'' once a candidate"


@pytest.mark.parametrize("processes", SUMS)
@pytest.mark.parametrize("top", [4, 1000])
def test_rankings_are_those_of_the_slow_twin(run: Any, processes: str, top: int) -> None:
    benchmark, encoder = small_shapes(), PlainEncoder()
    before = run(benchmark, rerank=None, k=1000)
    made = run(benchmark, rerank_processes=processes, rerank_top=top, k=1000)
    pictures = pictures_of(benchmark)
    place = {image: number for number, image in enumerate(pictures.ids)}

    def vector(image: str) -> Any:
        return encoder.encode_images([pictures.open(place[image])])[0]

    def text(words: str) -> Any:
        return encoder.encode_texts([words])[0]

    def composed(image: str, words: str) -> Any:
        both = np.float64(vector(image)) + np.float64(text(words))
        return both / np.linalg.norm(both)

    def picture(image: str) -> Picture:
        return pictures_by_id(pictures, [image])[0]

    for row in benchmark.rows():
        (turn,) = turns_of(row)
        query, reference = composed(turn.reference or "", turn.text), vector(turn.reference or "")
        listed = before.rankings[row["query_id"]]
        first = listed[:top]
        sums = sums_of(
            turn,
            first,
            [float(query @ vector(image)) for image in first],
            processes.split("+"),
            ORACLE,
            picture,
            text,
            lambda image, words, reference=reference: float(composed(image, words) @ reference),
        )
        # Vectors are rounded to float32, so that the twin's sums differ in the eighth digit.
        found = made.rankings[row["query_id"]]
        assert sorted(found[: len(first)]) == sorted(first)
        assert all(sums[a] >= sums[b] - 1e-6 for a, b in itertools.pairwise(found[: len(first)]))
        if min(np.diff(sorted(sums.values())), default=1.0) > 1e-6:
            assert found[: len(first)] == ordered(sums, row["query_id"])
        assert found[top:] == listed[top:]


def test_s1_alone_changes_nothing_but_the_name(run: Any) -> None:
    benchmark = small_shapes()
    before, made = run(benchmark, rerank=None), run(benchmark, rerank_processes="s1")
    assert made.rankings == before.rankings
    assert made.subset_rankings == before.subset_rankings
    assert made.method.name == "Image + text, sum + SC4CIR s1 (plain)"


def test_the_subset_is_ranked_anew_as_well(run: Any) -> None:
    benchmark = small_shapes()
    before, made = run(benchmark, rerank=None), run(benchmark, rerank_processes="s3")
    assert made.subset_rankings != before.subset_rankings
    assert submissions.validate(made, benchmark).findings == ()
    for row in benchmark.rows():
        own, change = made.subset_rankings[row["query_id"]], row["relative_caption"]
        members = [image for image in row["subset_image_ids"] if image != row["reference_image_id"]]
        pair = [Item({}, tuple(Picture(i, Image) for i in (row["reference_image_id"], m))) for m in members]
        said = [answer.instruction for answer in ORACLE.ask("candidate", pair, Instruction)]
        vectors = PlainEncoder().encode_texts([change, *said]).astype(np.float64)
        sums = dict(zip(members, (vectors[1:] @ vectors[0]).tolist(), strict=True))
        assert own == ordered(sums, row["query_id"])[:3]


def test_more_are_ranked_anew_than_are_handed_in(run: Any) -> None:
    benchmark = small_shapes()
    whole, few = run(benchmark, k=40, rerank_top=20), run(benchmark, k=5, rerank_top=20)
    assert few.rankings == {query: ranking[:5] for query, ranking in whole.rankings.items()}


@pytest.mark.parametrize("method", ["random", "image_text_sum_pixels", "text_only_pixels"])
def test_methods_without_weights_are_ranked_anew(run: Any, method: str) -> None:
    benchmark = small_shapes()
    before = make_rank_file(benchmark, method)
    made = make_rank_file(
        benchmark, method, rerank="sc4cir", language=ORACLE, rerank_encoder=PlainEncoder(), rerank_top=8
    )
    assert submissions.validate(made, benchmark).findings == ()
    for query, ranking in made.rankings.items():
        assert ranking[8:] == before.rankings[query][8:]
        assert sorted(ranking[:8]) == sorted(before.rankings[query][:8])
    assert made.rankings != before.rankings
    assert made.method.name == f"{before.method.name} + SC4CIR top 8 (oracle, plain)"


class Ranks:
    """A method that ranks by itself: the gallery in an order that reference and text decide."""

    def __init__(self, orders: dict[tuple[str | None, str], list[str]]) -> None:
        self.orders = orders

    def method(self) -> Method:
        return Method(name="Ranks", backbone="none", zero_shot=True)

    def rank(self, turns: Sequence[Turn], gallery: Candidates, k: int) -> list[list[str]]:
        return [self.orders[turn.reference, turn.text][:k] for turn in turns]


def test_a_method_that_ranks_by_itself_has_similarities_by_rank() -> None:
    benchmark, _, speaker = hand_world()
    orders: dict[tuple[str | None, str], list[str]] = {
        (REF, "make it red"): [A, B, C, D, REF],
        (A, "make it blue"): [B, C, D, REF, A],  # the reference at rank 4: behind N
        (B, "make it blue"): [A, REF, C, D, B],
        (C, "make it blue"): [REF, A, B, D, C],
    }
    given: dict[str, Any] = {"rerank": "sc4cir", "rerank_top": 3, "language": speaker}
    made = make_rank_file(benchmark, Ranks(orders), rerank_processes="s1+s2", **given)
    # S1: 1, 2/3, 1/3; S2: 0, 2/3, 1.
    keys_of_ties = [[B, C], [C, B]]
    assert made.rankings["s0"][0][3:] == [D, REF]
    assert made.rankings["s0"][0][:2] in keys_of_ties
    assert made.rankings["s0"][0][2] == A
    whole = make_rank_file(benchmark, Ranks(orders), rerank_encoder=HandEncoder(), **given)
    # S3: -0.6, 0.8, 0.6; S: 0.4, 2.13, 1.93.
    assert whole.rankings["s0"][0] == [B, C, A, D, REF]


class Deaf:
    """A method of a user's own on embeddings: words are not read, and the caption is counted twice."""

    name = "deaf"
    needs: frozenset[str] = frozenset()

    def method(self, encoder: Any) -> Method:
        return Method(name="Deaf", zero_shot=True)

    def compose(self, turns: Sequence[Turn], context: Any) -> Any:
        return context.image_vectors([turn.reference for turn in turns])


def test_a_users_own_composer_is_wrapped(run: Any) -> None:
    benchmark = small_shapes()
    made = run(benchmark, Deaf())
    assert submissions.validate(made, benchmark).findings == ()
    assert made.method.text_fields == ["relative_caption"], "the re-ranker reads captions"
    assert made.method.caption_rule == "trim_and"


def test_ties_are_broken_by_the_hash_of_query_and_image() -> None:
    benchmark, _, speaker = hand_world()
    speaker.answers |= {("candidate", REF, image): "it is red" for image in (A, B, C)}
    flat = Table({(REF, "make it red"): dict.fromkeys((A, B, C, D), 0.5)})
    given: dict[str, Any] = {"rerank": "sc4cir", "rerank_encoder": HandEncoder(), "rerank_processes": "s3"}
    before = make_rank_file(benchmark, flat)
    speaker.answers[("candidate", REF, D)] = "it is red"
    made = make_rank_file(benchmark, flat, language=speaker, rerank_top=4, **given)
    assert made.rankings == before.rankings


def test_fewer_candidates_than_n_are_all_ranked_anew() -> None:
    benchmark, table, speaker = hand_world()
    speaker.answers |= {("candidate", REF, image): "it is green" for image in (D, REF)}
    given: dict[str, Any] = {"rerank_processes": "s3", "rerank_encoder": HandEncoder()}
    made = make_rank_file(benchmark, table, rerank="sc4cir", language=speaker, **given)
    (ranking,) = made.rankings["s0"]
    assert ranking[:2] == [B, C]
    assert sorted(ranking) == sorted([REF, A, B, C, D])


TURNS = [(GALLERY[0], "a red star"), (GALLERY[3], "a blue moon"), (GALLERY[5], "a large green circle")]


@pytest.mark.parametrize("which", ["last", "each"])
def test_of_a_session_the_last_turn_or_each_is_ranked_anew(run: Any, which: str) -> None:
    benchmark = sessions([TURNS, TURNS[:1]], GALLERY)
    before = run(benchmark, rerank=None, k=20)
    made = run(benchmark, rerank_top=12, rerank_processes="s3", rerank_turns=which, k=20)
    assert submissions.validate(made, benchmark).ok
    for session, count in (("s0", 3), ("s1", 1)):
        for turn in range(count):
            old, new = before.rankings[session][turn], made.rankings[session][turn]
            assert sorted(old[:12]) == sorted(new[:12])
            assert old[12:] == new[12:]
            assert (old != new) == (which == "each" or turn == count - 1)
    assert f"{'the last turn' if which == 'last' else 'each turn'}" in made.method.reranking


def test_s1_of_a_session_is_that_of_the_turns_so_far(run: Any) -> None:
    """With S1 alone the order stays that of the aggregated vector, whose scores they are."""
    benchmark = sessions([TURNS], GALLERY)
    for aggregation in ("latest", "average", "weighted", "feedback"):
        before = run(benchmark, rerank=None, aggregation=aggregation)
        made = run(benchmark, rerank_processes="s1", rerank_turns="each", aggregation=aggregation)
        assert made.rankings == before.rankings


def test_turns_without_reference_or_words_stay_as_they_were(run: Any) -> None:
    turns = [(None, "a red star"), (GALLERY[0], None), (GALLERY[1], "a small blue moon")]
    benchmark = sessions([turns], GALLERY)
    before, made = run(benchmark, rerank=None), run(benchmark, rerank_turns="each")
    assert made.rankings["s0"][:2] == before.rankings["s0"][:2]
    assert made.rankings["s0"][2] != before.rankings["s0"][2]
    assert made.method.reranking.endswith(
        "; 1 of 3 ranked anew; left as before: 2 without a reference image or words"
    )


class Failing(OracleLanguage):
    """The oracle, which has no answer to some questions.

    Args:
        prompt: to which prompt.
        about: of questions about this reference; None are all.
        error: what is raised; None is one that names the questions and keeps the others.
    """

    def __init__(self, prompt: str, about: str | None = None, error: Exception | None = None) -> None:
        super().__init__()
        self.prompt, self.about, self.error, self.times = prompt, about, error, 0

    def ask(self, prompt: str, items: Sequence[Item], form: type[Any]) -> list[Any]:
        self.times += 1
        bad = [prompt == self.prompt and self.about in (None, item.pictures[0].id) for item in items]
        if not any(bad):
            return super().ask(prompt, items, form)
        if self.error is not None:
            raise self.error
        good = iter(super().ask(prompt, [item for item, no in zip(items, bad, strict=True) if not no], form))
        answers = [None if no else next(good) for no in bad]
        raise LanguageError("the server is down", [("a picture", "no reply")], answers)


@pytest.mark.parametrize("prompt", ["reverse", "candidate"])
def test_a_query_without_an_answer_stays_as_it_was_and_is_counted(
    run: Any, prompt: str, caplog: pytest.LogCaptureFixture
) -> None:
    benchmark = small_shapes()
    before, whole = run(benchmark, rerank=None), run(benchmark)
    row = benchmark.rows()[0]
    hurt = [each for each in benchmark.rows() if each["reference_image_id"] == row["reference_image_id"]]
    with caplog.at_level(logging.WARNING):
        made = run(benchmark, language=Failing(prompt, row["reference_image_id"]))
    lost = {each["query_id"] for each in hurt}
    for query, ranking in made.rankings.items():
        assert ranking == (before if query in lost else whole).rankings[query]
        subset = (before if query in lost else whole).subset_rankings[query]
        assert made.subset_rankings[query] == subset
    said = f"{len(lost)} without an answer of the language backend"
    assert said in made.method.reranking
    assert said in str(submissions.score(made, benchmark).signatures["recall@1"])
    assert said in caplog.text
    assert "the server is down" in caplog.text


@pytest.mark.parametrize(
    "error",
    [LanguageError("down"), LanguageError("no credit", final=True), ConnectionResetError("the line broke")],
)
def test_a_run_of_which_nothing_could_be_ranked_anew_fails(run: Any, error: Exception) -> None:
    with pytest.raises(LanguageError) as caught:
        run(small_shapes(), language=Failing("candidate", error=error))
    words = "SC4CIR on shapes/val: not one of 6 queries could be ranked anew, so that nothing is written."
    says(caught.value, words, "Fix: ", str(error))


class Stranger(OracleLanguage):
    """A backend of a user's own, whose answers are changed before they are handed over."""

    def __init__(self, changed: Callable[[Any, list[Any]], Any]) -> None:
        super().__init__()
        self.changed = changed

    def ask(self, prompt: str, items: Sequence[Item], form: type[Any]) -> Any:
        return self.changed(form, super().ask(prompt, items, form))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param(
            lambda form, good: good[:-1], "ask() gave 5 answers to 6 questions. Fix: give one", id="few"
        ),
        pytest.param(lambda form, good: None, "ask() gave NoneType to 6 questions. Fix: ", id="none"),
        pytest.param(
            lambda form, good: [answer.instruction for answer in good],
            "ask() gave str as an answer. Fix: give the form",
            id="texts",
        ),
    ],
)
def test_answers_that_fit_no_question_are_a_fault_of_the_backend(run: Any, changed: Any, words: str) -> None:
    with pytest.raises(LanguageError) as caught:
        run(small_shapes(), language=Stranger(changed))
    says(caught.value, "reverse: ", words)


@pytest.mark.parametrize("said", [None, "  ", "\ud800"], ids=["none", "blank", "half a character"])
def test_an_answer_without_words_is_none(
    run: Any, said: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    benchmark = small_shapes()
    before = run(benchmark, rerank=None)

    def changed(form: Any, good: list[Any]) -> list[Any]:
        return [None if said is None else form.model_construct(instruction=said), *good[1:]]

    with caplog.at_level(logging.WARNING):
        made = run(benchmark, rerank_processes="s2", language=Stranger(changed))
    first = benchmark.rows()[0]["query_id"]
    assert made.rankings[first] == before.rankings[first]
    assert made.method.reranking.endswith("1 without an answer of the language backend")
    assert "reverse: 1 of 6 answers are missing, empty or not text" in caplog.text


def test_after_a_failure_that_ends_all_nobody_is_asked_again(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("submissions.methods.reverse_processes._TOGETHER", 2)
    speaker = Failing("reverse", error=LanguageError("no credit", final=True))
    with pytest.raises(LanguageError):
        run(small_shapes(), language=speaker)
    assert speaker.times == 1


class Closing(Scripted):
    """A backend whose first error ends all; what it answered stands in the error."""

    def ask(self, prompt: str, items: Sequence[Item], form: type[Any]) -> list[Any]:
        try:
            return super().ask(prompt, items, form)
        except LanguageError as error:
            raise LanguageError(str(error), error.failed, error.answers, final=True) from error


def test_what_was_answered_before_the_error_that_ends_all_is_used(run: Any) -> None:
    turns = [(REF, "make it red"), (A, "make it blue")]
    benchmark = sessions([turns[:1], turns[1:]], GALLERY[:8])
    before = run(benchmark, rerank=None)
    answers: dict[tuple[str, ...], str | None] = {
        ("reverse", REF): "a blue moon",
        ("reverse", A): "a red star",
    }
    whole = run(benchmark, rerank_processes="s1+s2", language=Scripted(dict(answers)))
    costs: list[Cost] = []
    answers["reverse", A] = None
    options = RunOptions(
        encoder=PlainEncoder(),
        workers=0,
        rerank="sc4cir",
        rerank_processes="s1+s2",
        language=Closing(answers),
    )
    (made,) = prepare(benchmark, "image_text_sum", options, costs=costs)()
    assert made.rankings["s0"] == whole.rankings["s0"] != before.rankings["s0"]
    assert made.rankings["s1"] == before.rankings["s1"] != whole.rankings["s1"]
    assert costs[0].instructions == 1, "questions without an answer are not counted"
    assert "1 of 2 ranked anew; left as before: 1 without an answer" in made.method.reranking


@pytest.mark.parametrize("method", ["image_text_sum", "captioning"])
def test_after_the_error_that_ends_all_the_cache_still_answers(
    run: Any, plain_language: None, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """One process, one thread, one query a block: the first fails for good, the others are on disk."""
    monkeypatch.setattr("submissions.methods.reverse_processes._TOGETHER", 1)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-for-tests")
    turns = [(GALLERY[1], "a blue circle"), (REF, "a red star"), (GALLERY[2], "a large square")]
    given: dict[str, Any] = {"rerank_top": 3, "k": 8}
    gallery = GALLERY[:8]

    def answer(asked: Any) -> str:
        place = sum(map(ord, asked.images[0])) % 9 if asked.images else 0
        return json.dumps({"instruction": f"{place} stars"}) if "JSON" in asked.prompt else f"{place} stars"

    with LanguageServer(look=answer) as server:
        speaker = load_language("openai:tiny,concurrency=1", url=server.url)
        known = run(sessions([[turn] for turn in turns[1:]], gallery), method, language=speaker, **given)
        if method == "captioning":
            speaker.caption(pictures_by_id(pictures_of(sessions([turns], gallery)), [GALLERY[1]]))
        asked = len(server.requests)
        server.fault = lambda *_: Fault("status", 401)
        made = run(sessions([[turn] for turn in turns], gallery), method, language=speaker, **given)
        assert len(server.requests) == asked + 1, "nobody is asked again"
    assert "2 of 3 ranked anew; left as before: 1 without an answer" in made.method.reranking
    ranked = {query: sorted(own[0][:3]) for query, own in made.rankings.items()}
    assert ranked["s1"] == sorted(known.rankings["s0"][0][:3])
    assert ranked["s2"] == sorted(known.rankings["s1"][0][:3])


class Merging(OracleLanguage):
    """The oracle, whose merges fail where a word occurs."""

    word = "moon"

    def merge(self, captions: Sequence[str], changes: Sequence[str]) -> list[str]:
        if any(self.word in change for change in changes):
            raise LanguageError("no merge", [("a merge", "no reply")], [])
        return super().merge(captions, changes)


def test_a_method_that_asks_in_vain_on_the_way_back_takes_no_other_query_with_it(run: Any) -> None:
    """CIReVL merges the candidate's caption with T': where that fails, S2 is missing for that query alone."""
    gallery = GALLERY[:8]
    turns = [(GALLERY[0], "a red star"), (GALLERY[1], "a blue circle")]
    benchmark = sessions([turns[:1], turns[1:]], gallery)
    before = run(benchmark, "cirevl", rerank=None, language=ORACLE)
    whole = run(benchmark, "cirevl")
    said = [
        ORACLE.ask("reverse", [Item({"change": words}, (Picture(image, Image),))], Instruction)[0].instruction
        for image, words in turns
    ]
    speaker = Merging()
    elsewhere = f"{said[1]} {turns[0][1]} {turns[1][1]}"
    speaker.word = next(word for word in said[0].split() if word not in elsewhere)
    made = run(benchmark, "cirevl", language=speaker)
    assert made.rankings["s0"] == before.rankings["s0"]
    assert made.rankings["s1"] == whole.rankings["s1"]
    assert "1 of 2 ranked anew; left as before: 1 without an answer" in made.method.reranking


def test_the_rank_file_and_the_signature_name_the_re_ranker_with_its_settings(run: Any) -> None:
    benchmark = small_shapes()
    method = run(benchmark, rerank_top=10, rerank_encoder=PlainEncoder("other")).method
    assert method.name == "Image + text, sum + SC4CIR top 10 (plain, oracle, other)"
    assert method.reranking == (
        "SC4CIR (top 10, S1 + S2 + S3, words by oracle, S3 by other); 6 of 6 ranked anew"
    )
    assert method.oracle == "scene_graphs"
    assert "https://arxiv.org/abs/2606.07032" in method.notes
    assert "Language: oracle (scene graphs of shapes)." in method.notes
    made = run(benchmark)
    text = str(submissions.score(made, benchmark).signatures["recall@1"])
    assert f" | rerank:{made.method.reranking} | " in text
    read = submissions.read(made.to_json())
    assert read.method == made.method
    assert run(benchmark).to_json() == made.to_json(), "the same call gives the same bytes"


def test_what_it_took_is_counted(store: EmbeddingStore) -> None:
    costs: list[Cost] = []
    benchmark = small_shapes()
    options = RunOptions(
        encoder=PlainEncoder(), store=store, workers=0, rerank="sc4cir", rerank_top=4, language=ORACLE
    )
    (made,) = prepare(benchmark, "image_text_sum", options, costs=costs)()
    (cost,) = costs
    pairs = {
        (row["query_id"], image)
        for row in benchmark.rows()
        for image in row["subset_image_ids"]
        if image != row["reference_image_id"]
    }
    assert (cost.queries, cost.instructions, cost.left.total()) == (6, 6, 0)
    # Four of the gallery and four of the subset's five, some of them the same.
    assert 6 * 4 <= cost.captions <= 6 * 8
    assert cost.captions >= len(pairs) - 6
    assert cost.seconds > 0
    assert made.method.reranking.endswith(cost.counts)


def test_the_last_turns_alone_are_ranked_anew() -> None:
    benchmark = sessions([TURNS], GALLERY)
    how = RunOptions(rerank="sc4cir").reranker
    assert how is not None
    last = turns_of(benchmark.rows()[0])[-1]
    assert [(place, turn) for _, place, turn in turns_to_rerank(benchmark, how)] == [(2, last)]


REFUSED: list[tuple[dict[str, Any], type[CirError], str]] = [
    ({"rerank": "sc4cr"}, UnknownNameError, "no re-ranker 'sc4cr'. Did you mean 'sc4cir'?"),
    ({"rerank_top": 10}, MethodError, "--rerank-top: only beside --rerank"),
    ({"rerank": "sc4cir", "rerank_top": 0}, MethodError, "top=0 is out of range"),
    ({"rerank": "sc4cir", "rerank_processes": "s1+s4"}, UnknownNameError, "no process 's4'"),
    ({"rerank": "sc4cir", "rerank_processes": "s1+s1"}, MethodError, "one is named twice"),
    (
        {"rerank": "sc4cir", "rerank_turns": "all"},
        UnknownNameError,
        "turns='all' is not a choice",
    ),
    ({"rerank": "sc4cir"}, MethodError, "SC4CIR needs a language backend"),
    (
        {"rerank": "sc4cir", "rerank_processes": "s1", "language": "oracle"},
        MethodError,
        "SC4CIR with s1 alone asks nobody, and image_text_sum uses no language backend",
    ),
    (
        {
            "rerank": "sc4cir",
            "rerank_processes": "s1+s2",
            "rerank_encoder": "shapes",
            "language": "oracle",
        },
        MethodError,
        "--rerank-encoder (cir rerank: --encoder) is of s3",
    ),
    (
        {"rerank": "sc4cir", "rerank_turns": "each", "language": "oracle"},
        MethodError,
        "shapes/val has no turns to choose",
    ),
    ({"rerank": "sc4cir", "prompts": "mine", "language": ORACLE}, CallError, "come too late"),
]


@pytest.mark.parametrize(("options", "error", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_options_that_do_not_fit_are_refused(options: Any, error: type[CirError], words: str) -> None:
    with pytest.raises(error) as caught:
        make_rank_file(small_shapes(), "image_text_sum", encoder=PlainEncoder(), **options)
    says(caught.value, words, "Fix: ") if error is not UnknownNameError else says(caught.value, words)


NOT_OF_A_PROCESS = [
    ("s1", {"images": "folder"}, "no use for --images"),
    ("s1", {"skip_missing": True}, "no use for --skip-missing"),
    ("s1+s2", {"dtype": "float16", "batch_size": 3}, "no use for --batch-size, --dtype"),
    ("s3", {"revision": "main"}, "--revision main: the encoder shapes comes with this package"),
    ("s3", {"dtype": "float16", "rerank_encoder": PlainEncoder()}, "is loaded already, and dtype= would"),
    ("s3", {"workers": 1}, "no use for --workers"),
]


@pytest.mark.parametrize(("processes", "options", "words"), NOT_OF_A_PROCESS)
def test_a_process_refuses_what_it_would_ignore(processes: str, options: Any, words: str) -> None:
    language = {} if processes == "s1" else {"language": ORACLE}
    given: dict[str, Any] = {"rerank": "sc4cir", "rerank_processes": processes, **language, **options}
    with pytest.raises(MethodError) as caught:
        make_rank_file(small_shapes(), "random", **given)
    says(caught.value, words, "Fix: ")


@pytest.mark.parametrize(("method", "revision"), [("random", "v1"), ("image_text_sum", None)])
def test_the_text_encoder_is_loaded_as_the_options_say(
    run: Any, monkeypatch: pytest.MonkeyPatch, method: str, revision: str | None
) -> None:
    """A revision is that of the run's encoder, and of the text encoder where the method has none."""
    import submissions.encoders.loading as loading

    asked: list[tuple[str, dict[str, Any]]] = []

    def load(name: str, **given: Any) -> PlainEncoder:
        asked.append((name, given))
        return PlainEncoder(name)

    monkeypatch.setattr(loading, "load_encoder", load)
    given: dict[str, Any] = {
        "dtype": "float16",
        "device": "cpu",
        "revision": "v1",
        "rerank_encoder": "my/words",
    }
    given |= {} if method == "random" else {"encoder": "my/pictures"}
    options = RunOptions(rerank="sc4cir", rerank_processes="s3", language=ORACLE, **given)
    make_rank_file(small_shapes(), method, options)
    wanted: dict[str, Any] = {"device": "cpu", "dtype": "float16"}
    assert asked[-1] == ("my/words", wanted | ({} if revision is None else {"revision": revision}))


def test_a_method_without_an_encoder_is_given_one_for_words_elsewhere(tmp_path: Path) -> None:
    benchmark, images = fashioniq_pictures(tmp_path / "dress")
    with pytest.raises(MethodError, match=r"the process s3 compares words.*Fix: add rerank_encoder: NAME"):
        make_rank_file(benchmark, "random", rerank="sc4cir", language=ORACLE, images=images)


class Looking(OracleLanguage):
    """A backend that looks at every picture, and says how light it is.

    Args:
        before: is done before each question.
    """

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.before, self.times = before, 0

    def ask(self, prompt: str, items: Sequence[Item], form: type[Any]) -> list[Any]:
        self.times += 1
        self.before()
        seen = [[np.asarray(picture.open()).mean() for picture in item.pictures] for item in items]
        return [form(instruction=f"{sum(own):.1f} more") for own in seen]


def looking(benchmark: Benchmark, images: Path, **options: Any) -> Any:
    usual: dict[str, Any] = {"rerank": "sc4cir", "rerank_encoder": PlainEncoder(), "rerank_top": 5}
    return make_rank_file(benchmark, "random", images=images, **usual | {"language": Looking()} | options)


def test_a_picture_that_is_missing_is_found_before_anybody_is_asked(tmp_path: Path) -> None:
    benchmark, images = fashioniq_pictures(tmp_path / "dress")
    gone = (benchmark.gallery or ())[3]
    (images / f"{gone}.png").unlink()
    speaker = Looking()
    with pytest.raises(MissingImagesError, match=rf"1 of 80 images are missing(.|\n)*{gone}(.|\n)*Fix: "):
        looking(benchmark, images, language=speaker)
    assert speaker.times == 0


def test_pictures_that_are_skipped_stand_behind_the_other_candidates(tmp_path: Path) -> None:
    benchmark, images = fashioniq_pictures(tmp_path / "dress")
    whole = looking(benchmark, images)
    row, other = benchmark.rows()[:2]
    gone = sorted(set(whole.rankings[row["query_id"]][:5]) - {other["reference_image_id"]})[0]
    (images / f"{gone}.png").unlink()
    made = looking(benchmark, images, skip_missing=True)
    assert made.rankings[row["query_id"]][4] == gone
    assert made.method.skipped_images == 1
    assert gone in made.method.notes
    lost = [each for each in benchmark.rows() if each["reference_image_id"] == gone]
    anew = len(benchmark.rows()) - len(lost)
    assert f"; {anew} of {len(benchmark.rows())} ranked anew" in made.method.reranking
    assert "without an answer" not in made.method.reranking


@pytest.mark.parametrize("skip", [False, True])
def test_a_picture_that_is_damaged_under_way_is_no_failure_of_the_backend(tmp_path: Path, skip: bool) -> None:
    benchmark, images = fashioniq_pictures(tmp_path / "dress")
    gone = benchmark.rows()[0]["reference_image_id"]
    lost = [row for row in benchmark.rows() if row["reference_image_id"] == gone]
    speaker = Looking(lambda: (images / f"{gone}.png").write_bytes(b"not a picture"))
    if not skip:
        with pytest.raises(MissingImagesError, match=f"image '{gone}': .* cannot be decoded.*Fix: "):
            looking(benchmark, images, language=speaker)
        return
    made = looking(benchmark, images, language=speaker, skip_missing=True)
    assert made.method.reranking.endswith(f"left as before: {len(lost)} without a reference image or words")
    assert made.method.skipped_images == 1


def test_a_picture_that_the_method_itself_asks_about_is_no_failure_of_the_backend(
    run: Any, plain_language: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Captioning sees the candidates on the way back; one of them is damaged after the ranking."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-for-tests")
    benchmark, images = fashioniq_pictures(tmp_path / "dress")
    shown = {row["reference_image_id"] for row in benchmark.rows()}
    damaged = next(image for image in benchmark.gallery or () if image not in shown)

    def answer(prompt: str) -> str:
        if "JSON" not in prompt:
            return "a dress"
        (images / f"{damaged}.png").write_bytes(b"not a picture")
        return json.dumps({"instruction": "longer"})

    with LanguageServer(answer=answer) as server:
        speaker = load_language("openai:tiny", url=server.url)
        given: dict[str, Any] = {"language": speaker, "images": images, "rerank_processes": "s1+s2"}
        with pytest.raises(MissingImagesError, match=f"image '{damaged}': .* cannot be decoded.*Fix: "):
            run(benchmark, "captioning", rerank_top=80, **given)


def test_the_other_references_of_a_block_change_no_score_of_a_way_back() -> None:
    """Scores may be brought to the gallery's mean: a reference outside it is there for its own turns."""

    class Centred:
        needs_pictures = False

        def method(self) -> Method:
            return Method(name="Centred", zero_shot=True)

        def scores(self, turns: Sequence[Turn], gallery: Candidates) -> Any:
            own = np.array([float(int(image[4:]) ** 2) for image in gallery.ids])
            return np.tile(own - own.mean(), (len(turns), 1))

    gallery = Candidates(sessions([TURNS], GALLERY[:4]), GALLERY[:4])
    references = [GALLERY[10], GALLERY[2], GALLERY[15], GALLERY[10]]
    turns = [Turn(str(place), GALLERY[0], "red") for place in range(4)]
    ways = ByScores("centred", Centred(), gallery, RunOptions()).ways
    together = ways.similar(turns, references)
    alone = [ways.similar([turn], [reference])[0] for turn, reference in zip(turns, references, strict=True)]
    assert together == alone


def test_counts_are_never_cut_off(run: Any) -> None:
    class Wordy(OracleLanguage):
        identity = LanguageIdentity("mine", "m" * 280)

    made = run(small_shapes(), rerank_top=2, language=Wordy())
    assert len(made.method.reranking) == 300
    assert made.method.reranking.endswith("mmm); 6 of 6 ranked anew")


def test_pictures_that_are_not_there_are_missed_before_the_work(tmp_path: Path) -> None:
    benchmark, _ = fashioniq_pictures(tmp_path / "dress")
    given: dict[str, Any] = {"rerank": "sc4cir", "language": ORACLE, "rerank_encoder": PlainEncoder()}
    with pytest.raises(SourceError):
        make_rank_file(benchmark, Ranks({}), images=tmp_path / "nowhere", **given)


class Wordless(PlainEncoder):
    """An encoder of images alone."""

    def encode_texts(self, texts: Sequence[str]) -> Any:
        raise EncoderError("the encoder plain knows images alone")


def test_a_text_encoder_without_words_is_refused_before_anybody_is_asked() -> None:
    benchmark, table, speaker = hand_world()
    with pytest.raises(EncoderError, match="knows images alone"):
        make_rank_file(benchmark, table, rerank="sc4cir", language=speaker, rerank_encoder=Wordless())
    assert speaker.asked == []


def test_a_long_name_has_room_for_the_re_ranker() -> None:
    made = renamed("x" * 80, "SC4CIR s1+s3", ["oracle"])
    assert (len(made), made[-15:]) == (80, " + SC4CIR s1+s3")
    assert renamed("Mine (a, b)", "SC4CIR", ["b", "oracle"]) == "Mine + SC4CIR (a, b, oracle)"


class Mute(Scripted):
    """A backend that fills in no forms."""

    ask = None  # type: ignore[assignment]


def test_a_backend_without_forms_is_refused_before_the_work() -> None:
    with pytest.raises(MethodError, match="has no ask, which SC4CIR needs"):
        make_rank_file(
            small_shapes(), "image_text_sum", encoder=PlainEncoder(), rerank="sc4cir", language=Mute({})
        )

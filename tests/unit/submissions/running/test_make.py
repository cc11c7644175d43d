"""`make_rank_file` with an encoder: what goes in comes out in rankings, and in the words about them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import benchmark_world as worlds
import numpy as np
import pytest
from benchmark_world import sessions, small_shapes
from benchmark_world.embeddings import fashioniq_pictures
from benchmark_world.encoders import DIMENSIONS, PlainEncoder
from metrics_twins import best_first
from PIL import Image

import cir_datasets
import submissions
from cir_datasets.errors import CaptionRuleError, MissingImagesError
from cir_datasets.registry.suites import suite
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import UnknownNameError
from submissions import RunOptions, make_bundle, make_rank_file
from submissions.embeddings.store import EmbeddingStore
from submissions.errors import EncoderError, MethodError
from submissions.methods.composing import Context, Vectors
from submissions.methods.random import Random
from submissions.methods.registry import scorer_names
from submissions.methods.turns import Turn
from submissions.rank_file.model import Method, RankBundle, RankFile
from submissions.running.aggregation import AGGREGATIONS
from submissions.running.make import prepare

GALLERY = [f"val-{number:06d}" for number in range(30)]


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """`make_rank_file` with the plain encoder, a store of its own and no further processes."""
    return functools.partial(
        make_rank_file, encoder=PlainEncoder(), store=EmbeddingStore(tmp_path / "store"), workers=0
    )


class TestWhatItSays:
    def test_a_file_of_queries_says_encoder_captions_and_method(self, run: Any) -> None:
        made: RankFile = run(small_shapes(), "image_text_sum")
        assert made.method == Method(
            name="Image + text, sum (plain)",
            backbone="plain (plain, 12 dimensions, float32, revision 1)",
            zero_shot=True,
            caption_rule="single",
            text_fields=["relative_caption"],
            reference="removed",
            notes="The vectors of reference image and relative caption, added with equal weight.",
        )
        assert run(small_shapes(), "image_only").method.caption_rule == ""

    def test_a_file_of_sessions_says_its_aggregation(self, run: Any) -> None:
        made = run(small_shapes("multiturn_val"), "text_only", aggregation="weighted", alpha=0.5)
        assert made.method.name == "Text only (plain, weighted 0.5)"
        assert made.method.aggregation == "weighted (alpha 0.5)"
        assert run(small_shapes("multiturn_val"), "text_only").method.aggregation == "weighted (alpha 0.8)"

    def test_the_recall_of_an_approximate_search_stands_in_file_and_signature(self, run: Any) -> None:
        """How much the index finds stands in the rank file and in the score's signature, beside its key."""
        benchmark = small_shapes(gallery=300)
        made, exact = run(benchmark, "image_only", search="ivfpq"), run(benchmark, "image_only")
        described = (
            r"ivfpq \(FAISS, 7 lists, 7 probed, 1 codes of 8 bits\), recall@50 [01]\.\d{4} over 6 queries"
        )
        assert re.fullmatch(described, made.method.search)
        score = submissions.score(made, benchmark)
        assert f" | search:{made.method.search} | declared:removed | n:6" in score.signature_text("recall@10")
        signature = score.to_dict()["signatures"]["recall@10"]
        assert signature["search"] == made.method.search
        other = submissions.score(exact, benchmark)
        assert "search" not in other.signature_text("recall@10")
        assert score.signature_key("recall@10") == other.signature_key("recall@10")

    def test_skipped_images_stay_in_the_gallery_and_stand_in_the_signature(
        self, run: Any, tmp_path: Path
    ) -> None:
        """They stay in the gallery; the signature sets the number apart from those with all images."""
        benchmark, folder = fashioniq_pictures(tmp_path, leave_out=["D005", "D060"])
        with pytest.raises(
            MissingImagesError, match="2 of 80 images are missing or cannot be read"
        ) as caught:
            run(benchmark, "image_only", images=folder)
        assert "D005" in str(caught.value)
        made = run(benchmark, "image_only", images=folder, skip_missing=True, k=80)
        assert made.method.skipped_images == 2
        assert "2 images missing or unreadable" in made.method.notes
        assert all(sorted(ranking) == sorted(benchmark.gallery or ()) for ranking in made.rankings.values())
        whole = run(*fashioniq_pictures(tmp_path / "whole")[:1], "image_only", images=tmp_path / "whole")
        assert whole.method.skipped_images is None
        keys = [submissions.score(each, benchmark).signatures["recall@10"] for each in (made, whole)]
        assert [key.checks_skipped for key in keys] == [("images",), ()]
        assert keys[0].key != keys[1].key
        assert json.loads(made.to_json())["method"]["skipped_images"] == 2
        assert submissions.read(made.to_json()).method.skipped_images == 2  # type: ignore[union-attr]

    def test_a_skipped_target_is_last_whatever_the_others_score(self, run: Any, tmp_path: Path) -> None:
        """Of an encoder whose cosines of texts and pictures are all below zero, as SigLIP's may be."""

        class Below(PlainEncoder):
            def encode_images(self, images: Sequence[Any]) -> Any:
                return np.abs(super().encode_images(images))

            def encode_texts(self, texts: Sequence[str]) -> Any:
                return -np.abs(super().encode_texts(texts))

        benchmark, folder = fashioniq_pictures(tmp_path)
        whole = run(benchmark, "text_only", encoder=Below("whole"), images=folder, k=80)
        row = benchmark.rows()[0]
        target = row["target_image_id"]
        (folder / f"{target}.png").unlink()
        made = run(
            benchmark, "text_only", encoder=Below("less"), images=folder, skip_missing=True, k=80
        ).rankings[row["query_id"]]
        assert made[-1] == target
        assert made[:-1] == [image for image in whole.rankings[row["query_id"]] if image != target]


class TestQuestions:
    def test_turns_without_reference_or_caption_are_ranked_by_what_they_have(self, run: Any) -> None:
        """Chat-based retrieval has captions only, relevance feedback references only; both mix."""
        chat = [(None, "a red star"), (None, "a blue one"), (None, "on sand")]
        shown = [(GALLERY[0], None), (GALLERY[1], None)]
        mixed = [(None, "a red star"), (GALLERY[2], None), (GALLERY[3], "smaller"), (None, None)]
        benchmark = sessions([chat, shown, mixed], GALLERY)
        for how in AGGREGATIONS:
            for method in ("image_only", "text_only", "image_text_sum"):
                made = run(benchmark, method, aggregation=how)
                assert submissions.validate(made, benchmark).ok, (how, method)
                assert [len(turns) for turns in made.rankings.values()] == [3, 2, 4]
        both = run(benchmark, "image_text_sum", aggregation="latest")
        assert both.rankings["s0"] == run(benchmark, "text_only", aggregation="latest").rankings["s0"]
        assert both.rankings["s1"] == run(benchmark, "image_only", aggregation="latest").rankings["s1"]
        # The last turn of the third session says nothing: the one before it still stands.
        assert both.rankings["s2"][3] == both.rankings["s2"][2]
        average = run(benchmark, "text_only", aggregation="average").rankings["s0"]
        assert average[0] == both.rankings["s0"][0]
        assert average[2] != both.rankings["s0"][2]

    def test_weight_free_methods_take_them_too(self) -> None:
        benchmark = sessions([[(None, "red")], [(GALLERY[0], None), (None, None)]], GALLERY)
        for method in scorer_names():
            made = make_rank_file(benchmark, method, aggregation="weighted")
            assert submissions.validate(made, benchmark).ok, method

    def test_a_question_of_nothing_gets_nothing(self, run: Any) -> None:
        """Every image ties: none is preferred, wherever the target is."""
        benchmark = sessions([[(None, None)]], GALLERY)
        assert (
            run(benchmark, "image_text_sum", k=5).rankings["s0"][0]
            == best_first(dict.fromkeys(GALLERY, 0), "s0#1")[:5]
        )

    @pytest.mark.parametrize(
        ("rule", "texts"),
        [
            (None, ["Is red and shorter"]),
            ("strip_capitalize_and", ["Is red and shorter"]),
            ("reversed", ["Shorter and is red"]),
            ("both_orders_mean", ["Is red and shorter", "Shorter and is red"]),
            ("separate", ["is red.", " shorter"]),
            ("comma", ["is red, shorter"]),
            ("first", ["is red."]),
            ("last", [" shorter"]),
        ],
    )
    def test_captions_become_text_by_the_rule(
        self, run: Any, tmp_path: Path, rule: str | None, texts: list[str]
    ) -> None:
        whole, folder = fashioniq_pictures(tmp_path)
        row = {**whole.rows()[0], "relative_caption": None, "captions": ["is red.", " shorter"]}
        benchmark = Benchmark.from_rows(whole.spec, [row], list(whole.gallery or ()))
        encoder = PlainEncoder()
        made = run(benchmark, "text_only", encoder=encoder, images=folder, caption_rule=rule)
        assert encoder.texts == texts
        assert made.method.caption_rule == (rule or "strip_capitalize_and")
        assert made.method.text_fields == ["captions"]
        # Of several texts the mean of their vectors is the query.
        mean = encoder.encode_texts(texts).mean(axis=0)
        pixels = [Image.open(folder / f"{image}.png") for image in benchmark.gallery or ()]
        scores = encoder.encode_images(pixels) @ mean
        best = sorted(zip(-scores, benchmark.gallery or (), strict=True))[0][1]
        assert made.rankings[row["query_id"]][0] == best

    def test_one_caption_only_where_the_rule_says_so(self, run: Any, tmp_path: Path) -> None:
        whole, folder = fashioniq_pictures(tmp_path)
        row = {**whole.rows()[0], "relative_caption": None, "captions": ["is red", "shorter"]}
        benchmark = Benchmark.from_rows(whole.spec, [row], list(whole.gallery or ()))
        with pytest.raises(CaptionRuleError, match="'single' is for one caption"):
            run(benchmark, "text_only", images=folder, caption_rule="single")

    def test_references_outside_the_gallery_are_encoded(self, run: Any) -> None:
        inside = small_shapes(rows=2)
        references = [row["reference_image_id"] for row in inside.rows()]
        fewer = [image for image in inside.gallery or () if image not in references]
        row = {**inside.rows()[0], "subset_image_ids": [*inside.rows()[0]["subset_image_ids"]]}
        row["subset_image_ids"] = [image for image in row["subset_image_ids"] if image in fewer] + references[
            :1
        ]
        made = run(Benchmark.from_rows(inside.spec, [row], fewer), "image_only", k=5)
        wanted = run(Benchmark.from_rows(inside.spec, [row], [*fewer, references[0]]), "image_only", k=5)
        assert made.rankings == wanted.rankings

    @pytest.mark.parametrize("broken", [False, True])
    def test_missing_references_outside_the_gallery_are_refused_or_skipped(
        self, run: Any, tmp_path: Path, broken: bool
    ) -> None:
        """They are found before the gallery is encoded, and may be skipped like those in it."""
        whole, folder = fashioniq_pictures(tmp_path)
        rows = whole.rows()[:3]
        references = [row["reference_image_id"] for row in rows]
        gallery = [image for image in whole.gallery or () if image not in references]
        benchmark = Benchmark.from_rows(whole.spec, rows, gallery)
        for reference in references[:2]:
            if broken:
                (folder / f"{reference}.png").write_bytes(b"no picture")
            else:
                (folder / f"{reference}.png").unlink()
        encoder = PlainEncoder()
        with pytest.raises(MissingImagesError, match="2 of 3 images are missing or cannot be read") as caught:
            run(benchmark, "image_text_sum", encoder=encoder, images=folder)
        assert all(reference in str(caught.value) for reference in references[:2])
        assert encoder.images == 0
        made = run(benchmark, "image_text_sum", encoder=encoder, images=folder, skip_missing=True)
        words = run(benchmark, "text_only", encoder=encoder, images=folder)
        first, _, third = (row["query_id"] for row in rows)
        assert made.rankings[first] == words.rankings[first]
        assert made.rankings[third] != words.rankings[third]
        assert words.method.skipped_images is None
        assert made.method.skipped_images == 2
        assert "2 references outside the gallery were missing or unreadable" in made.method.notes
        own = run(benchmark, Backwards(), encoder=encoder, images=folder, skip_missing=True)
        assert own.method.skipped_images == 2
        with pytest.raises(MissingImagesError, match="2 of 3 images are missing or cannot be read"):
            run(benchmark, Backwards(), encoder=encoder, images=folder)

    @pytest.mark.parametrize("rule", ["strip_capitalize_and", "trim_and", "comma", "separate"])
    def test_empty_captions_say_nothing(self, run: Any, tmp_path: Path, rule: str) -> None:
        whole, folder = fashioniq_pictures(tmp_path)
        row = {**whole.rows()[0], "relative_caption": None, "captions": ["", " "]}
        benchmark = Benchmark.from_rows(whole.spec, [row], list(whole.gallery or ()))
        encoder = PlainEncoder()
        made = run(benchmark, "text_only", encoder=encoder, images=folder, caption_rule=rule, k=80)
        assert encoder.texts == []
        ((query, ranking),) = made.rankings.items()
        assert ranking == best_first(dict.fromkeys(ranking, 0), query)

    def test_references_are_removed_where_the_protocol_removes_them(self, run: Any) -> None:
        for search in ("exact", "hnsw"):
            benchmark = small_shapes()
            made = run(benchmark, "image_only", k=60, search=search)
            for row in benchmark.rows():
                assert row["reference_image_id"] not in made.rankings[row["query_id"]]
                assert len(made.rankings[row["query_id"]]) == 59
                assert row["reference_image_id"] not in made.subset_rankings[row["query_id"]]
        kept = small_shapes("multiturn_val")
        first = run(kept, "image_only", aggregation="latest").rankings
        for row in kept.rows():
            assert [turn[0] for turn in first[row["session_id"]]] == [
                turn["reference_image_id"] for turn in row["turns"]
            ]


def test_the_same_call_gives_the_same_bytes(run: Any) -> None:
    benchmark = small_shapes("multiturn_val")
    for how in ("exact", "hnsw"):
        one = run(benchmark, "image_text_sum", search=how, aggregation="feedback")
        again = run(benchmark, "image_text_sum", search=how, aggregation="feedback")
        assert one.to_json() == again.to_json()


def test_a_gallery_is_encoded_once(run: Any) -> None:
    encoder = PlainEncoder()
    for method in ("image_only", "text_only", "image_text_sum"):
        run(small_shapes(), method, encoder=encoder)
    assert encoder.images == 60


class Backwards:
    """A method of a user's own: what the reference is not."""

    name: ClassVar[str] = "backwards"
    needs: ClassVar[frozenset[str]] = frozenset()

    def method(self, encoder: Any) -> Method:
        return Method(name="Backwards")

    def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
        return -context.image_vectors([turn.reference for turn in turns])


class TestYourOwn:
    def test_an_object_with_a_method_ranks_like_a_named_one(self, run: Any) -> None:
        benchmark = small_shapes("multiturn_val")
        made = run(benchmark, Backwards(), aggregation="latest", k=60)
        forth = run(benchmark, "image_only", aggregation="latest", k=60)
        assert made.method.name == "Backwards (plain, latest)"
        session = next(iter(made.rankings))
        assert made.rankings[session][0][-1] == forth.rankings[session][0][0]

    @pytest.mark.parametrize(
        ("composed", "said"),
        [
            (np.zeros((1, DIMENSIONS), np.float32), "composed an array of shape (1, 12) and type float32."),
            (np.zeros((6, DIMENSIONS)), "of shape (6, 12) and type float64."),
            (np.full((6, DIMENSIONS), np.nan, np.float32), "type float32 with values that are not finite."),
            (np.array([None] * 6), "of shape (6,) and type object."),
        ],
    )
    def test_what_it_composes_is_checked(self, run: Any, composed: Any, said: str) -> None:
        class Wrong(Backwards):
            def compose(self, turns: Sequence[Turn], context: Context) -> Vectors:
                return composed  # type: ignore[no-any-return]

        with pytest.raises(MethodError) as caught:
            run(small_shapes(), Wrong())
        assert said in str(caught.value)
        assert "Fix: compose() gives finite float32 of shape (6, 12)" in str(caught.value)

    def test_an_object_without_a_method_is_refused(self, run: Any) -> None:
        with pytest.raises(MethodError, match="dict has none of compose, scores and rank"):
            run(small_shapes(), {})


@pytest.mark.parametrize(
    ("method", "options", "error", "said"),
    [
        (
            "image_only",
            {},
            MethodError,
            "image_only needs an encoder for fashioniq/dress_val. Fix: add --encoder",
        ),
        ("random", {"search": "hnsw"}, MethodError, "random uses no encoder, and has no use for --search."),
        ("random", {"caption_rule": "comma"}, MethodError, "has no use for --caption-rule"),
        ("random", {"language": "oracle"}, MethodError, "has no use for --language"),
        ("image_only", {"search": "hsnw"}, UnknownNameError, "no search 'hsnw'. Did you mean 'hnsw'?"),
        ("image_only", {"caption_rule": "comme"}, UnknownNameError, "no caption rule 'comme'"),
        (
            "image_only",
            {"aggregation": "latest"},
            MethodError,
            "fashioniq/dress_val has no turns to aggregate.",
        ),
        ("image_only", {"language": "oracle"}, MethodError, "image_only uses no language backend."),
        ("image_only", {"checkpoint": "x"}, MethodError, "image_only takes no checkpoint."),
        ("cirevl", {}, MethodError, "cirevl needs a language backend. Fix: add --language NAME: oracle"),
        ("concat", {}, MethodError, "concat needs weights of its own. Fix: add --checkpoint PATH"),
        ("image_only", {"encoder": "pixels"}, EncoderError, "there is no encoder 'pixels'"),
        ("image_only", {"encoder": "none"}, EncoderError, "there is no encoder 'none'. Fix: name one"),
        ("image_onyl", {}, UnknownNameError, "no method 'image_onyl'. Did you mean 'image_only'?"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused_with_its_fix(
    method: str, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as caught:
        make_rank_file(worlds.fashioniq("dress"), method, **options)
    assert said in str(caught.value)
    assert "Fix: " in str(caught.value)


def test_all_aggregations_are_the_files_of_each_and_what_is_composed_is_composed_once() -> None:
    benchmark, encoder = small_shapes("multiturn_val"), PlainEncoder()
    options = RunOptions(aggregation="all", alpha=0.5, encoder=encoder, workers=0)
    made = prepare(benchmark, "image_text_sum", options)()
    once = len(encoder.texts)
    assert once > 0
    alone = [
        make_rank_file(benchmark, "image_text_sum", encoder=encoder, workers=0, aggregation=how, alpha=alpha)
        for how, alpha in zip(AGGREGATIONS, (None, None, 0.5, None), strict=True)
    ]
    assert made == alone
    assert len({str(each.rankings) for each in alone}) == len(AGGREGATIONS)
    assert len(encoder.texts) == 5 * once


def test_a_method_that_scores_is_asked_once_for_all_aggregations() -> None:
    asked: list[str] = []

    class Counting(Random):
        def scores(self, turns: Sequence[Turn], gallery: Any) -> Any:
            asked.extend(turn.key for turn in turns)
            return super().scores(turns, gallery)

    benchmark = small_shapes("multiturn_val")
    made = prepare(benchmark, Counting(), RunOptions(aggregation="all"))()
    assert len(asked) == len(set(asked)) == sum(benchmark.column("num_turns"))
    alone = [make_rank_file(benchmark, Random(), aggregation=how) for how in AGGREGATIONS[:3]]
    assert made == alone


def test_all_aggregations_of_a_suite_are_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    members = suite("circled/val").benchmarks
    rows = [worlds.session("s0", 2, "im7"), worlds.session("s1", 3, "im8")]
    images = [f"im{number}" for number in range(12)]
    made_up = {each: Benchmark.from_rows(cir_datasets.spec(each), rows, images) for each in members}
    monkeypatch.setattr(cir_datasets, "load", made_up.__getitem__)
    bundles = prepare("circled/val", "random", RunOptions(aggregation="all"))()
    assert [type(each) for each in bundles] == [RankBundle] * 3
    said = [{run.method.aggregation for run in each.runs} for each in bundles if isinstance(each, RankBundle)]
    assert said == [{"latest"}, {"average"}, {"weighted (alpha 0.8)"}]
    assert bundles[0] == make_bundle("circled/val", "random", aggregation="latest")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "aggregation=all makes several rank files. Fix: name one, or use cir run --aggregation all."),
        ({"alpha": 2.0}, "more than 0 and at most 1"),
    ],
)
def test_one_rank_file_has_one_aggregation(options: dict[str, Any], said: str) -> None:
    with pytest.raises(MethodError, match=re.escape(said)):
        make_rank_file("shapes/multiturn_val", "image_text_sum", aggregation="all", **options)


def test_what_ranks_again_takes_one_aggregation() -> None:
    options = RunOptions(aggregation="all", rerank="sc4cir", language="oracle")
    with pytest.raises(MethodError, match=r"--rerank is for one --aggregation\. Fix: name one"):
        prepare("shapes/multiturn_val", "image_text_sum", options)


def test_a_session_without_weights_refuses_feedback() -> None:
    with pytest.raises(MethodError, match="feedback adds vectors, and a method without weights has none"):
        make_rank_file("shapes/multiturn_val", "text_only_pixels", aggregation="feedback")

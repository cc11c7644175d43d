"""The weight-free methods: valid files, the same bytes everywhere, and numbers that mean what they should."""

from __future__ import annotations

import hashlib
import math

import benchmark_world as worlds
import numpy as np
import pytest
from numpy.typing import NDArray

import cir_datasets
import submissions
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import UnknownNameError
from submissions import make_rank_file
from submissions.errors import MethodError
from submissions.methods import methods_for, scorer
from submissions.methods.pixels.image_only import picture_features
from submissions.methods.pixels.text_only import word_presence, word_weights
from submissions.methods.registry import scorer_names
from submissions.methods.turns import Candidates, Turn, turns_of

SHAPES = ["shapes/val", "shapes/multiturn_val"]


@pytest.fixture(scope="module", params=SHAPES)
def shapes(request: pytest.FixtureRequest) -> Benchmark:
    return cir_datasets.load(request.param)


@pytest.mark.parametrize("name", scorer_names())
def test_each_method_hands_in_a_valid_file(shapes: Benchmark, name: str) -> None:
    rank_file = make_rank_file(shapes, name)
    assert submissions.validate(rank_file, shapes).findings == ()
    assert submissions.validate(rank_file.to_json(), shapes).findings == ()
    report = submissions.score(rank_file, shapes)
    assert report.submittable
    assert "Needs no weights." in rank_file.method.notes
    assert rank_file.method.aggregation == (scorer(name).aggregation if shapes.multi_turn else "")


@pytest.mark.slow
def test_the_floors_stand_in_the_order_that_they_should() -> None:
    benchmark = cir_datasets.load("shapes/val")
    scores = {
        name: submissions.score(make_rank_file(benchmark, name), benchmark).metrics for name in scorer_names()
    }
    assert (
        scores["random"]["recall@10"]
        < scores["text_only_pixels"]["recall@50"]
        < scores["image_only_pixels"]["recall@50"]
    )
    # Inside the subset all pictures look like the reference, so that only words tell them apart.
    assert scores["image_text_sum_pixels"]["recall_subset@1"] > scores["image_only_pixels"]["recall_subset@1"]
    assert scores["image_text_sum_pixels"]["map@10"] > scores["random"]["map@10"] + 0.05


def test_random_is_chance_on_shapes() -> None:
    benchmark = cir_datasets.load("shapes/val")
    report = submissions.score(make_rank_file(benchmark, "random"), benchmark)
    for metric, chance in (
        ("recall@50", 50 / (len(benchmark.gallery) - benchmark.excludes_reference)),
        ("recall_subset@1", 1 / 5),
        ("recall_subset@3", 3 / 5),
    ):
        sigma = math.sqrt(chance * (1 - chance) / report.n)
        assert abs(report.metrics[metric] - chance) <= 3 * sigma + 1 / report.n, metric


def plain_random(question: str, image: str) -> float:
    """The same hash in whole numbers of Python, without numpy."""
    mask = 2**64 - 1

    def hashed(text: str) -> int:
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")

    state = hashed(question) ^ (hashed(image) * 0x9E3779B97F4A7C15 & mask)
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & mask
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB & mask
    return ((state ^ (state >> 31)) >> 11) / 2**53


def test_random_is_the_same_on_every_machine() -> None:
    benchmark = worlds.cirr()
    rank_file = make_rank_file(benchmark, "random")
    for row in benchmark.rows():
        query_id, reference = row["query_id"], row["reference_image_id"]
        candidates = [image for image in benchmark.gallery or () if image != reference]
        wanted = sorted(candidates, key=lambda image: -plain_random(query_id, image))
        assert rank_file.rankings[query_id] == wanted[:50]
        members = [image for image in wanted if image in row["subset_image_ids"]]
        assert rank_file.subset_rankings[query_id] == members[:3]


def test_random_does_not_depend_on_the_order_of_queries_or_images() -> None:
    one = worlds.cirr()
    other = Benchmark.from_rows(one.spec, one.rows()[::-1], list(one.gallery or ())[::-1])
    assert make_rank_file(one, "random").rankings == make_rank_file(other, "random").rankings


def test_references_are_removed_where_the_protocol_removes_them() -> None:
    benchmark = worlds.cirr()
    rank_file = make_rank_file(benchmark, "random", k=1000)
    for row in benchmark.rows():
        assert row["reference_image_id"] not in rank_file.rankings[row["query_id"]]
        assert len(rank_file.rankings[row["query_id"]]) == 69
    assert submissions.validate(rank_file, benchmark).ok


def test_sessions_get_one_ranking_a_turn() -> None:
    benchmark = worlds.circled()
    rank_file = make_rank_file(benchmark, "random")
    assert [len(turns) for turns in rank_file.rankings.values()] == [2, 3, 2]
    assert rank_file.rankings["s0"][0] != rank_file.rankings["s0"][1]


@pytest.mark.parametrize(
    ("benchmark", "method", "k", "error", "text"),
    [
        (worlds.cirr(), "randon", None, UnknownNameError, "no method 'randon'. Did you mean 'random'?"),
        (worlds.cirr(), "random", 0, MethodError, "k=0 is out of range. Fix: use a whole number"),
        (worlds.cirr(), "random", 1001, MethodError, "k=1001 is out of range. Fix: use a whole number"),
        (
            worlds.cirr(),
            "image_only_pixels",
            None,
            MethodError,
            "the pictures of cirr/val are not part of this package",
        ),
        (
            worlds.circo(gallery=None),
            "random",
            None,
            MethodError,
            "the gallery list of circo/val is not available",
        ),
    ],
)
def test_what_cannot_be_ranked_is_refused_with_its_fix(
    benchmark: Benchmark, method: str, k: int | None, error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        make_rank_file(benchmark, method, k=k)
    assert text in str(caught.value)
    assert "Fix:" in str(caught.value)


def test_only_methods_that_can_rank_are_offered() -> None:
    assert methods_for("shapes/val") == list(scorer_names())
    assert methods_for("cirr/val") == ["random"]
    assert methods_for(worlds.circled()) == ["random"]


def test_captions_are_joined_as_the_method_says() -> None:
    row = {
        "query_id": "1",
        "reference_image_id": "a",
        "relative_caption": None,
        "captions": [" is red ", "", "longer"],
    }
    assert turns_of(row) == [Turn("1", "a", "is red and longer", (" is red ", "", "longer"))]
    assert turns_of({**row, "relative_caption": "as it stands"})[0].text == "as it stands"
    turn = {"turn": 1, "reference_image_id": None, "relative_caption": None}
    assert turns_of({"session_id": "s", "turns": [turn]}) == [Turn("s#1", None, "")]


def test_words_are_weighed_with_their_refusals() -> None:
    plain, refused = (
        word_weights("a red star and a sandy background"),
        word_weights("a star without red, no sandy beach"),
    )
    assert sum(plain) == 2
    assert [-weight for weight in refused] == plain
    assert sum(word_weights("reddish sand")) == 0


def test_a_plain_picture_shows_its_own_colour_only() -> None:
    pictures = np.zeros((2, 24, 24, 3), dtype=np.uint8)
    pictures[0] = (214, 40, 40)
    pictures[1, :12] = (36, 92, 214)
    pictures[1, 12:] = (228, 234, 244)
    shown = word_presence(pictures)
    assert shown[0].tolist() == [24.0**2] + [0.0] * 15
    blue, snowy = 4, 8 + 2
    assert (shown[1, blue], shown[1, snowy], shown[1].sum()) == (576, 288, 864)


def test_picture_features_are_unit_vectors_that_tell_pictures_apart() -> None:
    pictures = np.random.default_rng(1).integers(0, 256, (3, 24, 24, 3)).astype(np.uint8)
    pictures[2] = pictures[0]
    features = picture_features(pictures)
    assert (features == np.rint(features)).all()
    assert np.allclose(np.linalg.norm(features, axis=1), 2.0**25)
    likeness = features @ features.T / 2.0**50
    assert likeness[0, 2] == pytest.approx(1.0)
    assert likeness[0, 1] < 0.99


def test_pictures_are_looked_at_once_for_all_rounds() -> None:
    benchmark = cir_datasets.load("shapes/val")
    gallery = Candidates(benchmark, list(benchmark.gallery or ())[:5])
    looked = []

    def look(pictures: NDArray[np.uint8]) -> NDArray[np.float64]:
        looked.append(len(pictures))
        return word_presence(pictures)

    assert (gallery.seen(look) == gallery.seen(look)).all()
    assert looked == [5]


def test_a_question_without_reference_or_words_scores_all_images_alike() -> None:
    benchmark = cir_datasets.load("shapes/val")
    gallery = Candidates(benchmark, list(benchmark.gallery or ())[:50])
    for name in scorer_names()[1:]:
        scores = scorer(name).scores([Turn("q", None, "")], gallery)
        assert scores.shape == (1, 50)
        assert np.ptp(scores) == 0.0

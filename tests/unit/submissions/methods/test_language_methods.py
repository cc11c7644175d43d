"""Captioning and CIReVL: the texts that search, questions that lack something, and interrupted runs."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

import benchmark_world
import numpy as np
import pytest
from benchmark_world import sessions
from benchmark_world.encoders import PlainEncoder
from language_server import Fault, LanguageServer

import submissions
from cir_datasets.rows.benchmark import Benchmark
from cir_datasets.shapes import describe, scene
from submissions import make_rank_file
from submissions.embeddings.embed import embed_gallery
from submissions.embeddings.pictures import pictures_of
from submissions.embeddings.store import Embeddings
from submissions.errors import LanguageError, MethodError
from submissions.language.loading import PairedLanguage
from submissions.language.oracle import OracleLanguage
from submissions.language.server import ServerLanguage
from submissions.methods import composer
from submissions.methods.composing import Context
from submissions.methods.turns import Turn

ORACLE = OracleLanguage()
small_shapes = functools.cache(benchmark_world.small_shapes)


@pytest.fixture(autouse=True)
def surroundings(plain_language: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "made-up")


def context_of(
    benchmark: Benchmark, *, rule: str = "single", missing: frozenset[str] = frozenset()
) -> Context:
    encoder, pictures = PlainEncoder(), pictures_of(benchmark)
    found = embed_gallery(encoder, pictures, workers=0, progress=False)
    gallery = Embeddings(found.ids, found.vectors, missing, encoder.identity)
    encoder.texts.clear()
    return Context(encoder, gallery, pictures, ORACLE, benchmark, rule)


def texts_of(method: str, row: dict[str, str]) -> str:
    """What a method searches with, by hand."""
    caption, change = describe(scene(row["reference_image_id"])), row["relative_caption"]
    return f"{caption}, {change}" if method == "captioning" else ORACLE.merge([caption], [change])[0]


@pytest.mark.parametrize("method", ["captioning", "cirevl"])
def test_rankings_are_those_of_the_texts_vector(method: str) -> None:
    benchmark, encoder = small_shapes(), PlainEncoder()
    made = make_rank_file(benchmark, method, encoder=encoder, language="oracle", k=5, workers=0)
    gallery = list(benchmark.gallery or ())
    pictures = pictures_of(benchmark)
    vectors = encoder.encode_images([pictures.open(place) for place in range(len(gallery))])
    for row in benchmark.rows():
        scores = vectors @ encoder.encode_texts([texts_of(method, row)])[0]
        best = [
            gallery[place] for place in np.argsort(-scores) if gallery[place] != row["reference_image_id"]
        ]
        assert made.rankings[row["query_id"]] == best[:5]
    again = make_rank_file(benchmark, method, encoder=PlainEncoder(), language=ORACLE, k=5, workers=0)
    assert again.to_json() == made.to_json()


def test_the_rank_file_says_who_spoke() -> None:
    benchmark = small_shapes()
    made = make_rank_file(benchmark, "cirevl", encoder=PlainEncoder(), language="oracle", k=5, workers=0)
    assert made.method.name == "CIReVL (plain, oracle)"
    assert made.method.paper == "https://arxiv.org/abs/2310.09291"
    assert "Language: oracle (scene graphs of shapes)." in made.method.notes
    assert made.method.text_fields == ["relative_caption"]
    assert made.method.caption_rule == "single"


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        ("captioning", ["{0}, {change}", "{change}", "{0}", "{1}, {change}"]),
        ("cirevl", ["{merged0}", "{change}", "{0}", "{merged1}"]),
    ],
)
def test_questions_may_lack_reference_or_words(method: str, wanted: list[str]) -> None:
    gallery = list(small_shapes().gallery or ())
    change = "a brick background"
    benchmark = sessions(
        [[(gallery[0], change), (None, change)], [(gallery[0], None), (gallery[1], change)]], gallery
    )
    context = context_of(benchmark)
    turns = [
        Turn("a", gallery[0], change, (change,)),
        Turn("b", None, change, (change,)),
        Turn("c", gallery[0], ""),
        Turn("d", gallery[1], change, (change,)),
        Turn("e", None, ""),
    ]
    vectors = composer(method).compose(turns, context)
    assert vectors.shape == (5, context.encoder.identity.dimensions)
    assert vectors.dtype == np.float32
    captions = [describe(scene(image)) for image in gallery[:2]]
    merged = ORACLE.merge(captions, [change] * 2)
    texts = [text.format(*captions, change=change, merged0=merged[0], merged1=merged[1]) for text in wanted]
    np.testing.assert_array_equal(vectors[:4], context.text_vectors([[text] for text in texts]))
    assert not vectors[4].any()
    made = make_rank_file(benchmark, method, encoder=PlainEncoder(), language="oracle", k=5, workers=0)
    assert [len(turns) for turns in made.rankings.values()] == [2, 2]


@pytest.mark.parametrize("method", ["captioning", "cirevl"])
def test_several_texts_of_a_rule_are_averaged(method: str) -> None:
    benchmark = small_shapes()
    context = context_of(benchmark, rule="separate")
    image = next(iter(benchmark.gallery or ()))
    captions = ("a brick background", "seen from far away")
    [vector] = composer(method).compose([Turn("a", image, "", captions)], context)
    rows = [{"reference_image_id": image, "relative_caption": caption} for caption in captions]
    mean = context.text_vectors([[texts_of(method, row) for row in rows]])[0]
    np.testing.assert_array_equal(vector, mean)


@pytest.mark.parametrize("method", ["captioning", "cirevl"])
def test_a_skipped_picture_is_not_captioned(method: str) -> None:
    benchmark = small_shapes()
    image = next(iter(benchmark.gallery or ()))
    context = context_of(benchmark, missing=frozenset({image}))
    [vector] = composer(method).compose([Turn("a", image, "", ("a star",))], context)
    np.testing.assert_array_equal(vector, context.text_vectors([["a star"]])[0])


def test_references_outside_the_gallery_are_captioned_too() -> None:
    whole = small_shapes()
    gallery = list(whole.gallery or ())
    inside, outside = gallery[0], gallery[-1]
    benchmark = Benchmark.from_rows(whole.spec, whole.rows(), gallery[:-1])
    context = context_of(benchmark)
    turns = [Turn("a", outside, ""), Turn("b", inside, ""), Turn("c", outside, "")]
    composer("captioning").compose(turns, context)
    assert context.encoder.texts == [describe(scene(outside)), describe(scene(inside))]  # type: ignore[attr-defined]


def test_without_a_language_backend_there_is_no_ranking() -> None:
    with pytest.raises(MethodError, match="cirevl needs a language backend"):
        make_rank_file(small_shapes(), "cirevl", encoder=PlainEncoder())
    context = context_of(small_shapes())
    context.language = None
    with pytest.raises(MethodError, match="the method needs a language backend"):
        composer("captioning").compose([Turn("a", None, "", ("x",))], context)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[tuple[LanguageServer, Path]]:
    """A server that merges as the oracle does, and the prompts that let it."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "merge.md").write_text("{caption}\n{change}")

    def merged(prompt: str) -> str:
        caption, change = prompt.split("\n")
        return ORACLE.merge([caption], [change])[0]

    with LanguageServer(answer=merged) as server:
        yield server, tmp_path / "prompts"


def test_a_run_that_failed_goes_on_where_it_was(writer: tuple[LanguageServer, Path]) -> None:
    server, prompts = writer
    benchmark = small_shapes()
    broken = benchmark.rows()[2]["relative_caption"]
    server.fault = lambda prompt, _: Fault("status", 500) if prompt.endswith(broken) else None

    def speaker() -> PairedLanguage:
        return PairedLanguage(
            ORACLE, ServerLanguage("tiny", url=server.url, prompts=prompts, attempts=1, concurrency=2)
        )

    def made() -> bytes:
        found = make_rank_file(
            benchmark, "cirevl", encoder=PlainEncoder(), language=speaker(), k=5, workers=0
        )
        return found.to_json()

    with pytest.raises(LanguageError, match="merge: 1 of 6 questions have no answer"):
        made()
    server.fault = lambda *_: None
    first = made()
    assert len(server.requests) == 7
    assert made() == first
    assert len(server.requests) == 7
    by_oracle = make_rank_file(benchmark, "cirevl", encoder=PlainEncoder(), language="oracle", k=5, workers=0)
    with_server = submissions.read(first)
    assert with_server.rankings == by_oracle.rankings
    address = hashlib.sha256(server.url.encode()).hexdigest()
    assert f"openai:tiny (server {address[:12]}, prompts " in with_server.method.notes


@pytest.mark.filterwarnings("ignore::submissions.errors.TruncationWarning")
@pytest.mark.parametrize("method", ["captioning", "cirevl"])
@pytest.mark.parametrize("config", ["val", "multiturn_val"])
def test_a_tiny_clip_of_random_weights_ranks_the_same_every_time(
    method: str, config: str, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    pytest.importorskip("transformers", reason="needs the extra `retrieval`")
    from retrieval_models import save_clip

    folder = str(save_clip(tmp_path / "clip"))
    benchmark = small_shapes(config)
    files = [
        make_rank_file(benchmark, method, encoder=folder, language="oracle", workers=0, device="cpu")
        for _ in range(2)
    ]
    assert files[0].to_json() == files[1].to_json()
    assert submissions.validate(files[0], benchmark).ok
    assert "clip" in files[0].method.backbone

"""Whatever can be ranked goes through every format and back unchanged, as far as the format can hold it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import benchmark_world as worlds
import pytest
from hypothesis import given
from hypothesis import strategies as st

import submissions
from cir_metrics.ranking import top_k
from submissions.rank_file.content import kind_of, unpack
from submissions.rank_file.findings import Findings
from submissions.rank_file.model import RankFile

CIRR, CIRCLED, CIRCO = worlds.cirr(), worlds.circled(), worlds.circo()
DRESS = worlds.fashioniq("dress")


@pytest.fixture(scope="module", autouse=True)
def empty_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Not what other tests prepared of these benchmarks: its sources would be asked for each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CIR_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
WORD = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=6)
METHODS = st.fixed_dictionaries(
    {"name": st.sampled_from(["toy", "CLIP sum", "é+ü (large)"])},
    optional={"backbone": st.just("ViT"), "zero_shot": st.booleans(), "trained_on": st.just(["a", "b"])},
)


def rankings(words: st.SearchStrategy[str], least: int = 0) -> st.SearchStrategy[list[str]]:
    return st.lists(words, min_size=least, max_size=5, unique=True)


def documents(words: st.SearchStrategy[str], least: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    """Native rank files of single queries, some with rankings of subsets, and of sessions."""
    header = {"format": "cir-rank-file", "format_version": 1, "benchmark_version": 1}
    # "#" has a meaning in a qid of a TREC run.
    names = words.filter(lambda word: "#" not in word)
    own = st.dictionaries(names, rankings(words, least), min_size=1, max_size=4)
    turns = st.lists(rankings(words, least), min_size=1, max_size=3)
    single = st.fixed_dictionaries(
        {"benchmark": st.just("cirr/val"), "method": METHODS, "rankings": own},
        optional={"subset_rankings": own},
    )
    sessions = st.fixed_dictionaries(
        {
            "benchmark": st.just("circled/cirr_val"),
            "method": METHODS,
            "rankings": st.dictionaries(names, turns, min_size=1, max_size=4),
        }
    )
    return (single | sessions).map(lambda drawn: {**header, **drawn})


def read(content: bytes, benchmark: str | None = None) -> RankFile:
    found = submissions.read(content, benchmark=benchmark)
    assert isinstance(found, RankFile)
    return found


def as_values(rank_file: RankFile) -> dict[str, Any]:
    return json.loads(rank_file.to_json())


@pytest.mark.parametrize("to", ["native", "lines", "parquet"])
@pytest.mark.parametrize("compress", [False, True])
@given(document=documents(TEXT))
def test_our_own_forms_hold_everything(to: str, compress: bool, document: dict[str, Any]) -> None:
    if to == "parquet" and compress:
        compress = False
    content = json.dumps(document).encode()
    wanted = as_values(read(content))
    (made,) = submissions.convert([content], to, compress=compress)
    assert made.notes == ()
    found = as_values(read(made.content))
    assert found == wanted
    # Equal content gives equal bytes, and what was written converts to the same again.
    (again,) = submissions.convert([made.content], to, compress=compress)
    assert again.content == made.content


@given(document=documents(WORD, least=1))
def test_a_trec_run_holds_the_rankings_and_the_name(document: dict[str, Any]) -> None:
    content = json.dumps(document).encode()
    wanted = as_values(read(content))
    (made,) = submissions.convert([content], "trec")
    found = as_values(read(made.content, document["benchmark"]))
    assert found["rankings"] == wanted["rankings"]
    assert found.get("subset_rankings") == wanted.get("subset_rankings")
    assert found["method"] == {"name": document["method"]["name"].replace(" ", "_")}
    others = (
        set(document["method"])
        - {"name"}
        - {key for key, value in document["method"].items() if value in ("", [])}
    )
    assert any("holds the name only" in note for note in made.notes) is bool(others)


@given(document=documents(TEXT))
def test_a_json_run_holds_the_rankings_of_any_ids(document: dict[str, Any]) -> None:
    content = json.dumps(document).encode()
    wanted = as_values(read(content))
    (made,) = submissions.convert([content], "json-run")
    found = as_values(read(made.content, document["benchmark"]))
    assert found["rankings"] == wanted["rankings"]
    assert found.get("subset_rankings") == wanted.get("subset_rankings")


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.integers(-3, 3) | st.floats(allow_nan=False)),
        min_size=1,
        max_size=8,
        unique_by=lambda line: line[0],
    )
)
def test_a_trec_run_is_ordered_as_scores_are_everywhere(lines: list[tuple[str, float]]) -> None:
    run = "".join(f"q Q0 {image} 0 {score!r} toy\n" for image, score in lines)
    scores, images = [float(score) for _, score in lines], [image for image, _ in lines]
    (wanted,) = top_k([scores], images, k=len(lines), query_ids=["q"])
    assert read(run.encode(), "cirr/val").rankings["q"] == wanted
    backwards = "".join(reversed(run.splitlines(keepends=True)))
    assert read(backwards.encode(), "cirr/val").rankings["q"] == wanted
    if all(map(math.isfinite, scores)):
        as_json = json.dumps({"q": dict(zip(images, scores, strict=True))})
        assert read(as_json.encode(), "cirr/val").rankings["q"] == wanted


IMAGES = [f"im{number}" for number in range(10, 70)]


@given(st.lists(st.permutations(IMAGES), min_size=6, max_size=6))
def test_the_servers_formats_hold_what_they_take(orders: list[list[str]]) -> None:
    ranked = dict(zip(CIRR.query_ids, orders, strict=True))
    document = {**worlds.cirr_document(CIRR), "rankings": {query: ids[:50] for query, ids in ranked.items()}}
    parts = submissions.convert([json.dumps(document).encode()], "cirr-server", benchmark=CIRR)
    (back,) = submissions.convert([part.content for part in parts], "lines", benchmark=CIRR, name="toy")
    assert as_values(read(back.content)) == document


@given(st.lists(st.permutations([f"D{number:03d}" for number in range(60)]), min_size=4, max_size=4))
def test_the_starter_kit_holds_every_ranking(orders: list[list[str]]) -> None:
    wanted = dict(zip(DRESS.query_ids, orders, strict=True))
    document = {**worlds.fashioniq_bundle([DRESS])["runs"][0], "rankings": wanted}
    (made,) = submissions.convert([json.dumps(document).encode()], "fashioniq", benchmark=DRESS)
    (back,) = submissions.convert([made.content], "parquet", benchmark=DRESS, name="toy")
    assert as_values(read(back.content)) == document


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"PAR1", b"\x1f\x8b\x08\x00", b'{"query_id":', b"q Q0 a 1 "]),
)
def test_any_bytes_are_told_apart_and_answered(tail: bytes, start: bytes) -> None:
    content = start + tail
    unpacked = unpack(content, Findings("run.json"), max_bytes=1000)
    assert unpacked is None or kind_of(unpacked.content) == unpacked.kind
    report = submissions.validate(content, CIRR, name="run.json")
    assert all(character.isprintable() or character == "\n" for character in report.text())
    assert not report.ok

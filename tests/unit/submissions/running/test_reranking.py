"""`rerank`, from a rank file to a rank file: any origin, with and without its method, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import pytest
from benchmark_world import sessions, small_shapes
from benchmark_world.embeddings import fashioniq_pictures
from benchmark_world.encoders import PlainEncoder
from cir_here import invoked as cir
from says import says

import submissions
from cir_metrics.errors import CirError, UnknownNameError
from submissions import Method, RankBundle, RankFile, RunOptions, make_rank_file, rerank
from submissions.errors import MethodError
from submissions.language.oracle import OracleLanguage
from submissions.rank_file.findings import RefusedError
from submissions.running.reranking import renamed

ORACLE, WORDS = OracleLanguage(), PlainEncoder()
GALLERY = [f"val-{number:06d}" for number in range(12)]
TURNS = [(GALLERY[0], "a red star"), (GALLERY[3], "a blue moon")]


@pytest.mark.parametrize("method", ["image_text_sum", "image_text_sum_pixels"])
@pytest.mark.parametrize("processes", ["s1", "s1+s2+s3"])
def test_with_its_method_a_file_is_ranked_anew_as_the_run_does_it(method: str, processes: str) -> None:
    benchmark = small_shapes()
    given: dict[str, Any] = {"encoder": WORDS, "workers": 0} if method == "image_text_sum" else {}
    language: dict[str, Any] = {} if processes == "s1" else {"language": ORACLE}
    settings: dict[str, Any] = {"rerank": "sc4cir", "rerank_top": 8, "rerank_processes": processes}
    if method != "image_text_sum" and processes != "s1":
        settings["rerank_encoder"] = WORDS
    whole = make_rank_file(benchmark, method, **given, **language, **settings)
    before = make_rank_file(benchmark, method, **given)
    text = before.to_json()
    encoder = None if processes == "s1" and method != "image_text_sum" else WORDS
    made = rerank(before, benchmark, top=8, processes=processes, method=method, encoder=encoder, **language)
    assert isinstance(made, RankFile)
    assert made.rankings == whole.rankings
    assert made.method == whole.method
    assert before.to_json() == text, "what was handed in stays as it was"


@pytest.mark.parametrize("turns", ["last", "each"])
def test_sessions_are_ranked_anew_as_the_run_does_it(turns: str) -> None:
    benchmark = sessions([TURNS, TURNS[:1]], GALLERY)
    options = RunOptions(encoder=WORDS, workers=0, aggregation="feedback")
    before = make_rank_file(benchmark, "image_text_sum", options)
    given: dict[str, Any] = {"language": ORACLE, "rerank_top": 5, "rerank_turns": turns}
    whole = make_rank_file(benchmark, "image_text_sum", options, rerank="sc4cir", **given)
    made = rerank(
        before, benchmark, language=ORACLE, top=5, turns=turns, method="image_text_sum", options=options
    )
    assert made == whole


def test_without_its_method_a_file_is_ranked_anew_by_rank_and_words(tmp_path: Path) -> None:
    """A TREC run knows the order alone, and says the same as the rank file that it was made of."""
    benchmark = small_shapes()
    before = make_rank_file(benchmark, "image_only_pixels")
    given: dict[str, Any] = {"language": ORACLE, "encoder": WORDS, "top": 6}
    made, words = (rerank(before, benchmark, processes=chosen, **given) for chosen in (None, "s3"))
    assert isinstance(made, RankFile)
    assert isinstance(words, RankFile)
    assert made.method.reranking.startswith("SC4CIR (top 6, S1 + S3, ")
    assert submissions.validate(made, benchmark).findings == ()
    assert made.rankings != words.rankings, "s1 by rank counts"
    path = tmp_path / "run.trec"
    (trec,) = submissions.convert([before.to_json()], to="trec", benchmark=benchmark)
    path.write_bytes(trec.content)
    again = rerank(path, benchmark, **given)
    assert isinstance(again, RankFile)
    assert again.rankings == made.rankings


def test_s1_of_a_file_is_its_order() -> None:
    benchmark = sessions([TURNS[:1]], GALLERY)
    before = make_rank_file(benchmark, "random")
    made = rerank(before, benchmark, top=7, processes="s1")
    assert isinstance(made, RankFile)
    assert made.rankings == before.rankings
    assert made.method.name == "Random + SC4CIR s1 top 7"


def test_a_bundle_is_ranked_anew_member_by_member() -> None:
    members = {name: worlds.fashioniq(name) for name in ("dress", "shirt", "toptee")}
    by_id = {benchmark.id: benchmark for benchmark in members.values()}
    bundle = RankBundle("fashioniq/val", tuple(make_rank_file(each, "random") for each in by_id.values()))
    made = rerank(bundle, by_id, processes="s1", top=3)
    assert isinstance(made, RankBundle)
    assert [run.method.name for run in made.runs] == ["Random + SC4CIR s1 top 3"] * 3
    assert [run.rankings for run in made.runs] == [run.rankings for run in bundle.runs]


def test_only_pictures_of_candidates_and_references_are_needed(tmp_path: Path) -> None:
    benchmark, images = fashioniq_pictures(tmp_path / "dress")
    before = make_rank_file(benchmark, "random")
    shown = {row["reference_image_id"] for row in benchmark.rows()}
    shown.update(image for ranking in before.rankings.values() for image in ranking[:2])
    for image in set(benchmark.gallery or ()) - shown:
        (images / f"{image}.png").unlink()
    with pytest.raises(CirError, match="images are missing"):
        rerank(before, benchmark, language=ORACLE, encoder=WORDS, images=images, top=50)

    class Looking(OracleLanguage):
        def ask(self, prompt: str, items: Any, form: Any) -> list[Any]:
            seen = [[picture.open().size for picture in item.pictures] for item in items]
            return [form(instruction=f"{sizes} more") for sizes in seen]

    made = rerank(before, benchmark, language=Looking(), encoder=WORDS, images=images, top=2)
    assert isinstance(made, RankFile)
    assert made.method.reranking.endswith(f"; {len(benchmark.rows())} of {len(benchmark.rows())} ranked anew")


REFUSED: list[tuple[dict[str, Any], type[CirError], str]] = [
    ({"processes": "s1+s2"}, MethodError, "s2 asks the method that made the rank file, and none is named"),
    ({"top": 0}, MethodError, "top=0 is out of range"),
    ({"processes": "s4"}, UnknownNameError, "no process 's4'"),
    ({"language": None}, MethodError, "SC4CIR needs a language backend"),
    ({"turns": "each"}, MethodError, "shapes/val has no turns to choose"),
    ({"options": RunOptions(k=5)}, MethodError, "no use for --k"),
    ({"options": RunOptions(aggregation="latest")}, MethodError, "has no turns to aggregate"),
    ({"method": "nobody"}, UnknownNameError, "no method 'nobody'"),
]


@pytest.mark.parametrize(("options", "error", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_options_that_do_not_fit_are_refused(options: Any, error: type[CirError], words: str) -> None:
    benchmark = small_shapes()
    before = make_rank_file(benchmark, "random")
    with pytest.raises(error) as caught:
        rerank(before, benchmark, **{"language": ORACLE, "encoder": WORDS} | options)
    says(caught.value, words, "Fix: ")


def test_what_is_no_rank_file_of_the_forward_process_is_refused(tmp_path: Path) -> None:
    benchmark = small_shapes()
    before = make_rank_file(benchmark, "random")
    once = rerank(before, benchmark, processes="s1")
    with pytest.raises(MethodError, match=r"was ranked anew before \(SC4CIR .*Fix: take the rank file"):
        rerank(once, benchmark, processes="s1")
    short = RankFile("shapes/val", 2, Method(name="Mine"), {"nobody": ["x"]})
    with pytest.raises(RefusedError, match="cannot be ranked anew"):
        rerank(short, benchmark, processes="s1")
    talk = tmp_path / "talk.jsonl"
    talk.write_text('{"format": "cir-transcript", "format_version": 1}\n', encoding="utf-8")
    with pytest.raises(RefusedError) as caught:
        rerank(talk, benchmark, processes="s1")
    says(caught.value, "transcript")


def test_a_name_that_only_ends_in_a_bracket_keeps_it() -> None:
    assert renamed("Mine_(x)", "SC4CIR", []) == "Mine_(x) + SC4CIR"


def test_the_command_writes_beside_where_one_stands_and_says_what_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    submissions.write(make_rank_file("shapes/val", "random"), tmp_path / "base.json")
    says(cir("rerank", "base.json", "--processes", "s1").exception, "--processes is not taken", "Fix: write")
    Path("own.yaml").write_text("processes: s1\n", encoding="utf-8")
    done = cir("rerank", "base.json", "--config", "own.yaml", "--top", "3", "--json", code=0)
    out = tmp_path / "base-sc4cir.json"
    name = "Random + SC4CIR s1 top 3"
    assert json.loads(done.stdout) == {"file": str(out), "benchmark": "shapes/val", "method": name}
    assert "SC4CIR: 300 of 300 ranked anew" in done.stderr
    assert submissions.read(out).rankings == submissions.read(tmp_path / "base.json").rankings


def test_a_dry_run_counts_the_candidates_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = make_rank_file("shapes/val", "random")
    submissions.write(before, tmp_path / "base.json")
    asked = ["rerank", "base.json", "--language", "openai:tiny", "--top", "2", "--dry-run", "--json"]
    done = cir(*asked, code=0)
    candidates = [
        {*ranking[:2], *(before.subset_rankings or {})[query][:2]}
        for query, ranking in before.rankings.items()
    ]
    rows = json.loads(done.stdout)
    assert [(row["benchmark"], row["what"], row["calls"]) for row in rows] == [
        ("shapes/val", "T'', once a candidate", sum(map(len, candidates)))
    ]
    assert [file.name for file in tmp_path.iterdir()] == ["base.json"]
    says(cir(*asked, "--out", "x.json").exception, "--dry-run writes no file", "Fix: ")

"""Statistics of benchmarks, against numbers worked out by hand on a few rows."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from cir_here import cir
from PIL import Image
from typer.testing import CliRunner

from cir_datasets import registry
from cir_datasets.errors import DatasetError, install_lines
from cir_datasets.rows.benchmark import Benchmark
from cir_datasets.statistics import counts, report
from cir_datasets.statistics.counts import Statistics, counted_once, measure, stop_words, tokens, total, words
from cir_datasets.statistics.report import rows_table, tables
from cir_metrics.errors import MissingExtraError
from leaderboard.cli import build

ROOT = Path(__file__).resolve().parents[4]


def query(number: int, captions: list[str], **more: Any) -> dict[str, Any]:
    return {
        "query_id": f"q{number}",
        "reference_image_id": f"im{number}",
        "captions": captions,
        "relative_caption": captions[0] if len(captions) == 1 else None,
        "target_image_id": f"im{number + 1}",
        "positive_image_ids": [f"im{number + 1}"],
        "negative_image_ids": [],
        "subset_image_ids": [],
        "aspects": [],
        **more,
    }


def session(number: int, captions: list[str]) -> dict[str, Any]:
    return {
        "session_id": f"s{number}",
        "subset": "cirr_val",
        "ground_truth_ids": ["im9"],
        "num_turns": len(captions),
        "turns": [
            {"turn": turn, "reference_image_id": f"im{turn}", "relative_caption": caption}
            for turn, caption in enumerate(captions, start=1)
        ],
    }


def fashioniq(*rows: dict[str, Any], config: str = "dress_val") -> Benchmark:
    return Benchmark.from_rows(registry.spec(f"fashioniq/{config}"), rows, [f"im{n}" for n in range(10)])


TWO = fashioniq(
    query(0, ["is longer, and red", "has a longer sleeve"]),
    query(1, ["is longer, and red", " "], negative_image_ids=["im5", "im6", "im7"]),
)


def test_captions_are_counted_one_by_one() -> None:
    found = measure(TWO, tags=False)
    # Lengths 4, 4, 4 and one empty; words: is 2, longer 3, and 2, red 2, has 1, a 1, sleeve 1.
    assert (found.queries, found.gallery, found.gallery_listed) == (2, 10, True)
    assert (found.caption_count, found.captions, found.lengths[0]) == (3, 2, 1)
    assert (found.mean_length, found.median_length, found.longest) == (4.0, 4.0, 4)
    assert found.words == {"is": 2, "longer": 3, "and": 2, "red": 2, "has": 1, "a": 1, "sleeve": 1}
    assert found.type_token_ratio == pytest.approx(7 / 12)
    assert found.frequent_terms(2) == [("longer", 3), ("red", 2)]
    assert (found.positives, found.negatives) == (2, 3)
    assert found.classes is None
    json.dumps(found.to_dict(5))


def test_equal_counts_are_in_alphabetical_order() -> None:
    found = measure(fashioniq(query(0, ["zebra apple", "12 apple zebra"])), tags=False)
    assert found.frequent_terms(9) == [("apple", 2), ("zebra", 2)]


@pytest.mark.parametrize(
    ("lengths", "median"), [([1, 2, 9], 2.0), ([1, 2, 4, 9], 3.0), ([5], 5.0), ([1, 1, 1, 8], 1.0)]
)
def test_the_median_length_is_the_middle_one_or_the_mean_of_two(lengths: list[int], median: float) -> None:
    captions = [" ".join(["word"] * length) for length in lengths]
    assert measure(fashioniq(query(0, captions)), tags=False).median_length == median


def test_statistics_of_empty_captions_are_none_and_shown_as_a_dash() -> None:
    found = measure(fashioniq(query(0, ["", " . "])), tags=False)
    assert (found.mean_length, found.median_length, found.longest, found.type_token_ratio) == (None,) * 4
    assert "-" in tables([found], 5)


def test_sessions_have_turns_and_a_caption_a_turn() -> None:
    rows = [session(0, ["add a lamp", "make it red"]), session(1, ["add a cup", "two cups", "and a plate"])]
    found = measure(Benchmark.from_rows(registry.spec("circled/cirr_val"), rows, None), tags=False)
    assert (found.turns, found.average_turns) == ({2: 1, 3: 1}, 2.5)
    assert found.caption_count == 5
    assert (found.gallery, found.gallery_listed) == (2297, False)
    lines = rows_table([found]).splitlines()
    assert lines[0].split() == [
        "BENCHMARK",
        "SESSIONS",
        "GALLERY",
        "AVG",
        "TURNS",
        "2",
        "TURNS",
        "3",
        "TURNS",
    ]
    assert lines[1].split() == ["circled/cirr_val", "2", "2,297*", "2.50", "1", "1"]
    assert lines[2].startswith("* the card's count")


def test_captions_of_a_turn_are_each_counted() -> None:
    row = session(0, ["", ""])
    for turn in row["turns"]:
        turn |= {"captions": ["is red", "is long"], "relative_caption": None}
    found = measure(Benchmark.from_rows(registry.spec("circled/cirr_val"), [row], None), tags=False)
    assert (found.caption_count, found.lengths[0]) == (4, 0)


def test_withheld_answers_are_unknown_not_none() -> None:
    row = query(0, ["red"], target_image_id=None, positive_image_ids=[])
    found = measure(fashioniq(row, config="dress_test"), tags=False)
    assert found.positives is None
    assert found.to_dict(1)["positives_per_query"] is None


def test_subsets_are_counted_once_each() -> None:
    six = [f"im{number}" for number in range(6)]
    rows = [query(0, ["red"], subset_image_ids=six), query(1, ["blue"], subset_image_ids=six[::-1])]
    rows.append(query(2, ["green"], subset_image_ids=[f"im{number}" for number in range(2, 8)]))
    found = measure(
        Benchmark.from_rows(registry.spec("cirr/val"), rows, [f"im{n}" for n in range(9)]), tags=False
    )
    assert found.subsets == 2
    assert rows_table([found]).splitlines()[1].split() == ["cirr/val", "2", "3", "1.50", "9"]


def test_a_total_adds_up_and_counts_types_over_all() -> None:
    one, other = measure(TWO, tags=False), measure(fashioniq(query(0, ["red is red"])), tags=False)
    both = total([one, other])
    assert (both.queries, both.gallery, both.positives, both.caption_count) == (3, 20, 3, 4)
    assert both.type_token_ratio == pytest.approx(7 / 15)
    assert both.mean_length == pytest.approx(15 / 4)
    assert one.words["red"] == 2, "the parts must stay as they were"
    assert tables([one, other], 3).count("\ntotal") == 4
    assert "total" not in tables([one], 3)


def test_datasets_of_several_benchmarks_have_a_row_and_all_have_one() -> None:
    several = Benchmark.from_rows(registry.spec("circled/cirr_val"), [session(0, ["one two", "red"])], None)
    parts = [
        measure(fashioniq(query(0, ["red is red"])), tags=False),
        measure(several, tags=False),
        measure(fashioniq(query(0, ["red"]), query(1, ["blue"]), config="shirt_val"), tags=False),
        measure(fashioniq(query(0, ["red is red"]), config="dress_val_union"), tags=False),
    ]
    first, _, captions, _, terms = tables(parts, 3).split("\n\n")
    names = ["fashioniq/dress_val", "circled/cirr_val", "fashioniq/shirt_val", "fashioniq/dress_val_union^"]
    counts = ["1", "1", "2", "1", "3", "4"]
    rows = list(zip([*names, "fashioniq", "total"], counts, strict=True))
    assert [tuple(line.split()[:2]) for line in first.splitlines()[1:7]] == rows
    # Of the dataset 5 words, 3 of them distinct; of all 8 and 5.
    assert [line.split()[3:5] + line.split()[-1:] for line in captions.splitlines()[5:7]] == [
        ["5", "1.67", "0.6000"],
        ["8", "1.60", "0.6250"],
    ]
    assert [line.split()[0] for line in terms.splitlines()[1:]] == [*names, "fashioniq"]


def test_a_total_counts_no_query_twice() -> None:
    rows = [query(0, ["red"]), query(1, ["blue"]), query(2, ["green"])]
    val, union = (
        measure(fashioniq(*rows, config=name), tags=False) for name in ("dress_val", "dress_val_union")
    )
    first = measure(fashioniq(rows[0], config="shirt_val"), tags=False)
    last = measure(fashioniq(*rows[1:], config="shirt_test"), tags=False)
    assert counted_once([val, union]) == [val]
    assert counted_once([union, val]) == [union]
    assert counted_once([first, last, val]) == [val], "the parts come before the whole here"
    assert counted_once([first, last]) == [first, last]
    lines = tables([first, val, last], 3).splitlines()
    assert [line.split()[:2] for line in lines[1:5]] == [
        ["fashioniq/shirt_val^", "1"],
        ["fashioniq/dress_val", "3"],
        ["fashioniq/shirt_test^", "2"],
        ["total", "3"],
    ]
    assert lines[5] == "^ not in the total: its queries are those of another row"


def test_queries_of_the_same_id_are_not_the_same_where_they_ask_something_else() -> None:
    one, other = (measure(fashioniq(query(0, [caption])), tags=False) for caption in ("red", "blue"))
    assert counted_once([one, other]) == [one, other]


def test_there_is_no_total_where_benchmarks_overlap() -> None:
    rows = [query(0, ["red"]), query(1, ["blue"]), query(2, ["green"])]
    one, other = measure(fashioniq(*rows[:2]), tags=False), measure(fashioniq(*rows[1:]), tags=False)
    assert counted_once([one, other]) is None
    text = tables([one, other], 3)
    assert "\ntotal" not in text
    assert "no total: some of these benchmarks share a part of their queries" in text


def test_parts_of_speech_are_counted_once_a_caption_and_weighted(monkeypatch: pytest.MonkeyPatch) -> None:
    real, seen = counts._tagger(), []

    class Counting:
        def tag_sent(self, sentence: list[str]) -> Any:
            seen.append(sentence)
            return real.tag_sent(sentence)

    monkeypatch.setattr(counts, "_tagger", Counting)
    found = measure(TWO)
    assert sorted(seen) == [["has", "a", "longer", "sleeve"], ["is", "longer", "and", "red"]]
    # Twice is (verb), longer (adjective), and (conjunction), red (adjective); once has, a, longer, sleeve.
    assert found.classes == Counter(verb=3, adjective=5, conjunction=2, determiner=1, noun=1)
    shares = found.class_shares
    assert sum(shares.values()) == pytest.approx(1)
    assert "NOUN %" in tables([found], 3)


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("replace the blue shirt with a black shirt", ["verb", "determiner", "adjective", "noun"]),
        ("it isn't blue", ["pronoun", "verb", "other", "adjective"]),
        ("two dogs instead of one", ["number", "noun", "adverb"]),
    ],
)
def test_the_tagger_knows_plain_captions(caption: str, expected: list[str]) -> None:
    tagged = counts._tagger().tag_sent(tokens(words(caption)))
    assert [counts.classes().get(tag, "other") for _, _, tag in tagged][: len(expected)] == expected


def test_a_word_of_any_length_is_tagged_by_its_ending() -> None:
    # The tagger alone takes half a minute for 3,000 characters, and hours for these.
    assert counts.count_classes({"x" * 100_000: 1, "y" * 100_000 + " is red": 1}, "x").total() == 4


def test_every_listed_tag_is_one_of_the_models() -> None:
    tagger = counts._tagger()
    known = {tagger.int2tag[-number] for number in tagger.int2tag if number < 0}
    # PNX (reflexive pronouns) is of the C5 tagset and the model has folded it into others.
    assert set(counts.classes()) - known <= {"PNX"}
    assert counts.class_names() == (*dict.fromkeys(counts.classes().values()), "other")


def test_stop_words_are_words() -> None:
    content = (resources.files("cir_datasets.statistics") / "stop_words.yaml").read_text(encoding="utf-8")
    listed = [word for group in yaml.safe_load(content).values() for word in group]
    assert all(isinstance(word, str) and words(word) == [word] for word in listed)
    assert {"on", "off"} <= stop_words()
    assert not {"no", "more", "longer", "same", "without"} & stop_words()


def test_a_missing_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hint = re.escape(install_lines("statistics"))
    counts._tagger.cache_clear()
    monkeypatch.setitem(sys.modules, "HanTa.HanoverTagger", None)
    with pytest.raises(MissingExtraError, match=hint):
        measure(TWO)
    found = measure(TWO, tags=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=hint):
        report.write_plots([found], tmp_path, 5)


def drawn(parts: list[Statistics], folder: Path, top: int = 5) -> list[str]:
    written = report.write_plots(parts, folder, top)
    for path in written:
        with Image.open(path) as picture:
            picture.load()
            assert picture.format == "PNG"
    return [path.name for path in written]


def test_plots_are_drawn_for_anything_that_can_be_counted(tmp_path: Path) -> None:
    one = measure(TWO, tags=False)
    empty = measure(fashioniq(query(0, [""])), tags=False)
    assert drawn([one], tmp_path / "new") == ["caption_length.png", "frequent_terms.png"]
    assert drawn([one, empty, one, empty], tmp_path) == ["caption_length.png", "frequent_terms.png"]
    assert drawn([one], tmp_path / "no_terms", 0) == ["caption_length.png"]
    (tmp_path / "file").touch()
    with pytest.raises(DatasetError, match=r"cannot be written.*Fix:"):
        report.write_plots([one], tmp_path / "file", 5)


def test_the_command_prints_json_and_draws(tmp_path: Path) -> None:
    options = ["--no-tags", "--json", "--top", "3", "--plots", str(tmp_path)]
    done = cir("datasets", "stats", "shapes/multiturn_val", "shapes/val", *options)
    first, second = json.loads(done.stdout)
    assert first["turns"] == {"2": 92, "3": 56, "4": 28, "5": 15, "6": 9}
    assert (second["queries"], second["gallery"], len(second["frequent_terms"])) == (300, 3940, 3)
    assert second["parts_of_speech"] is None
    assert {path.name for path in tmp_path.iterdir()} == {
        "turns.png",
        "caption_length.png",
        "frequent_terms.png",
    }
    assert str(tmp_path / "turns.png") in done.stderr


def test_an_unknown_id_is_a_wrong_call() -> None:
    done = cir("datasets", "stats", "shapes/vall")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean 'shapes/val'?" in done.stderr


PAGE = ROOT / "docs" / "your_benchmark.md"


def test_the_page_explains_every_column_that_is_printed() -> None:
    rows = [session(0, ["add a lamp", "make it red"]), session(1, ["add a cup", "two cups"])]
    sixes = [query(0, ["is red"], subset_image_ids=["im0", "im1"], negative_image_ids=["im3"])]
    several = Benchmark.from_rows(registry.spec("circled/cirr_val"), rows, None)
    text = tables([measure(several), measure(fashioniq(*sixes))], 3)
    heads = {cell for line in text.splitlines() if line.startswith("BENCHMARK") for cell in line.split("  ")}
    heads = {head.strip() for head in heads if head.strip()} - {"BENCHMARK"}
    assert {"CAPTIONS", "EMPTY", "NOUN %", "OTHER %", "SUBSETS", "2 TURNS"} <= heads
    explained = {
        word
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
        for word in re.findall(r"`([^`]+)`", line.split("|")[1])
    }
    assert {head for head in heads if not head.endswith(" %")} <= explained
    assert {"NOUN %", "OTHER %"} <= explained


def test_what_is_printed_says_what_captions_empty_and_shares_are() -> None:
    text = tables([measure(TWO)], 3)
    row = next(line for line in text.splitlines() if "  12  " in line)
    assert row.split()[1:4] == ["3", "1", "12"], "three captions with words, one without, twelve words"
    assert (
        "CAPTIONS: every caption of every query or turn that has a word; those without one are EMPTY" in text
    )
    assert "per cent of all words" in text
    assert "HanTa's English model" in text
    assert "HanTa" not in tables([measure(TWO, tags=False)], 3)


def test_a_share_is_of_all_words_that_were_tagged() -> None:
    found = measure(fashioniq(query(0, ["it isn't blue", "it isn't blue"])))
    # Twice it (pronoun), is (verb), n't (other), blue (adjective): four for the tagger, three of WORDS.
    assert found.words.total() == 6
    assert found.class_shares == {"pronoun": 0.25, "verb": 0.25, "other": 0.25, "adjective": 0.25}


@pytest.mark.slow
@pytest.mark.real_data
def test_the_output_on_the_page_is_what_is_printed(data_home: Path, tmp_path: Path) -> None:
    assert data_home.is_dir()
    shown = re.search(
        r"```console\n\$ cir (datasets stats .+?)\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.S
    )
    done = CliRunner().invoke(build(), shown[1].split(), env={"CIR_CACHE_HOME": str(tmp_path)})
    assert done.stdout.rstrip() == shown[2]

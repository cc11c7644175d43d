"""Every metric of the catalogue has a module, a card, an example that runs and a golden case."""

from __future__ import annotations

import doctest
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import pytest
from metric_rows import random_rows, results_of

import cir_metrics.hook as hook
import submissions
from cir_metrics import measures
from cir_metrics.catalogue import METRICS, parse_metric

ROOM = Path(hook.__file__).parent
ENTRIES = Path(submissions.__file__).parent / "entries"
SECTIONS = (
    "Definition",
    "Equation",
    "Source",
    "Inputs",
    "Range",
    "Published values",
    "Example",
    "Other names, other definitions",
    "Limits",
)
PAPERS = ("CIRR", "FISD", "ZeroSight", "CIRCLED")
DOCSTRING = ("Args:", "Returns:", "Raises:", "Example:")


def sections(name: str) -> dict[str, str]:
    """The text under each heading of a metric's card."""
    text = (ROOM / name / "README.md").read_text(encoding="utf-8")
    return dict(part.partition("\n")[::2] for part in text.split("\n## ")[1:])


def test_catalogue_and_folders_agree() -> None:
    scripts = {folder.name for folder in ROOM.iterdir() if (folder / f"{folder.name}.py").is_file()}
    assert scripts == set(METRICS)
    assert {path.parent.name for path in ROOM.glob("*/README.md")} == set(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_card_has_every_section_with_something_in_it(name: str) -> None:
    found = sections(name)
    # pnr_map's equation names its variant behind the heading.
    own = [next((heading for heading in found if heading.startswith(each)), None) for each in SECTIONS]
    assert None not in own
    assert own == [heading for heading in found if heading in own], "the sections stand in this order"
    assert [heading for heading, text in found.items() if len(text.strip()) < 20] == []


@pytest.mark.parametrize("name", METRICS)
def test_card_begins_with_the_lines_that_load_the_metric(name: str) -> None:
    text = (ROOM / name / "README.md").read_text(encoding="utf-8")
    begin = text.split("\n## ")[0]
    assert "import cir_metrics  # makes the names known; not needed after  cir setup\n" in begin
    assert f'{name} = evaluate.load("{name}")' in begin


@pytest.mark.parametrize("name", METRICS)
def test_card_says_what_the_catalogue_says(name: str) -> None:
    found, entry = sections(name), METRICS[name]
    text = (ROOM / name / "README.md").read_text(encoding="utf-8")
    assert f'evaluate.load("{name}")' in found["Example"]
    assert any(paper in found["Published values"] for paper in PAPERS)
    assert "trec_eval" in found["Other names, other definitions"]
    assert "ranx" in found["Other names, other definitions"]
    assert f"`{entry.printed}" in found["Range"]
    for field in entry.fields:
        assert f'"{field}": ' in found["Inputs"]
    for variant in entry.variants[1:]:
        assert f'variant="{variant}"' in text
    if entry.default_ks:
        shown = ", ".join(map(str, entry.default_ks)) + ("," if len(entry.default_ks) == 1 else "")
        assert f"`({shown})`" in found["Inputs"]


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_a_plain_function_that_says_how_to_call_it(name: str) -> None:
    text = inspect.getdoc(getattr(measures, name))
    places = [text.find(f"\n{heading}\n") for heading in DOCSTRING]
    assert -1 not in places
    assert places == sorted(places)
    assert ">>>" in text
    own = METRICS[name].source.partition(",")[0].split()[0]
    assert own in text, "the docstring names the paper"
    assert " = " in text[: places[0]], "the docstring holds the equation"


def documented_functions_run_by(call: Callable[[], object]) -> set[str]:
    """The metrics whose function in `cir_metrics.measures`, the one with the equation, runs in a call."""
    ran: set[CodeType] = set()
    sys.setprofile(lambda frame, event, _: ran.add(frame.f_code) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {name for name in METRICS if inspect.unwrap(getattr(measures, name)).__code__ in ran}


@pytest.mark.parametrize("name", METRICS)
def test_lists_of_ids_are_computed_by_the_documented_function(name: str) -> None:
    rows = random_rows(name, 5, seed=1)
    # The area under Hits@K is that of another metric.
    beside = {"hits_at_k"} if name == "hits_auc" else set()
    assert documented_functions_run_by(lambda: results_of(name, rows, (1, 5))) == {name, *beside}


@pytest.mark.parametrize("benchmark", ["shapes-val", "shapes-multiturn_val"])
def test_a_board_is_computed_by_the_documented_functions(benchmark: str) -> None:
    entry = ENTRIES / f"image_only-pixels.{benchmark}.json.gz"
    shown = {parse_metric(printed)[0] for printed in submissions.score(entry).metrics}
    assert documented_functions_run_by(lambda: submissions.score(entry)) == shown


def test_published_subset_values_are_what_the_card_says_of_them() -> None:
    recalls = {}
    for name in ("recall_subset", "map_subset"):
        rows = re.findall(r"^\| (.+?) \|((?: [\d.]+ \|){3})", sections(name)["Published values"], flags=re.M)
        recalls[name] = {method: [float(x) for x in re.findall(r"[\d.]+", cells)] for method, cells in rows}
    shown = re.findall(r"([\d.]+) and ([\d.]+) \(row \d+\)", sections("map_subset")["Published values"])
    worked_out = []
    for method in recalls["map_subset"]:
        first, second, third = recalls["recall_subset"][method]
        assert recalls["map_subset"][method][0] == first
        at_2 = first + (second - first) / 2
        worked_out.append([at_2, at_2 + (third - second) / 3])
        assert all(
            abs(ours - theirs) > 0.3
            for ours, theirs in zip(worked_out[-1], recalls["map_subset"][method][1:], strict=True)
        )
    assert [[float(each) for each in pair] for pair in shown] == [
        pytest.approx(pair, abs=0.0051) for pair in worked_out
    ]


@pytest.mark.parametrize("name", METRICS)
def test_example_of_the_card_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testfile(str(ROOM / name / "README.md"), module_relative=False)
    assert outcome.attempted >= 4
    assert outcome.failed == 0


@pytest.mark.parametrize("name", METRICS)
def test_folder_is_not_a_package(name: str) -> None:
    # With an __init__.py a folder would hide the function of its name.
    assert sorted(path.name for path in (ROOM / name).iterdir() if path.name != "__pycache__") == [
        "README.md",
        f"{name}.py",
    ]


def test_pnr_map_card_tells_what_its_reader_must_know() -> None:
    text = (ROOM / "pnr_map" / "README.md").read_text(encoding="utf-8")
    for words in ("Not monotone", "NPNP has 0.25", "NPPN 0.2361", "fit the code", "released_code"):
        assert words in text

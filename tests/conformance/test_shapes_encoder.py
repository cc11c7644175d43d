"""The encoder that comes with the package: it is what its recipe says, and its results make sense."""

from __future__ import annotations

import hashlib
import itertools
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import submissions
import submissions.encoders
from cir_datasets.common.yaml import parse_yaml
from examples.shapes_encoder import __main__ as training
from examples.shapes_encoder.learning import TrainingSettings
from submissions.entries import BaselineEntry, entries
from submissions.rank_file.model import RankFile
from submissions.scoring.intervals import Interval, intervals
from submissions.training import Plan

FOLDER = Path(submissions.encoders.__file__).with_name("shapes_encoder")
DOCS = Path(__file__).parents[2] / "docs" / "encoders.md"
# Those that SC4CIR ranked anew are on a page of their own: test_sc4cir_page.py.
ORACLES = [
    entry for entry in entries() if "--language oracle" in entry.command and "--rerank" not in entry.command
]

PIXELS = "image_only-pixels.shapes-val.json.gz"

MOST_BYTES = 8_000_000
MOST_CPU_SECONDS = 15 * 60 * 2
TOLERANCE = 0.015
"""Other processors and versions of torch round otherwise, which may move some of 300 queries by a rank."""


@cache
def recipe() -> dict[str, Any]:
    return parse_yaml((FOLDER / training.RECIPE).read_text(encoding="utf-8"))


def apart(better: Interval, worse: Interval) -> bool:
    return worse.high < better.low


def interval(found: list[float]) -> Interval:
    return Interval(*found[1:])


def test_weights_are_the_recipes() -> None:
    data = (FOLDER / "model.safetensors").read_bytes()
    recorded = recipe()["weights"]
    assert hashlib.sha256(data).hexdigest() == recorded["sha256"]
    assert len(data) == recorded["bytes"] < MOST_BYTES


def test_the_folder_holds_what_is_needed_and_nothing_else() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == [
        "config.json",
        "model.safetensors",
        "preprocessor_config.json",
        "recipe.yaml",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_the_recipe_says_how_it_was_made() -> None:
    found = recipe()
    order = training.Order(found["steps"], found["seed"], found["threads"])
    assert found["command"] == order.command
    assert found["data"]["benchmark"] == "shapes/train"
    assert re.fullmatch(r"[0-9a-f]{64}", found["data"]["pixel_sha256"])
    assert found["cost"]["from_step"] == 0
    assert found["cost"]["cpu_seconds"] <= MOST_CPU_SECONDS
    assert {"python", "torch", "transformers", "tokenizers", "numpy"} <= set(found["versions"])


def test_the_recipe_is_the_codes() -> None:
    found = recipe()
    order = training.Order(found["steps"], found["seed"], found["threads"])
    assert found["settings"] == TrainingSettings().to_dict()
    assert Plan(**found["plan"]) == order.plan
    assert found["steps"] == training.STEPS


def test_transformers_load_it_without_this_package() -> None:
    import torch
    from transformers import AutoImageProcessor, AutoTokenizer, CLIPModel

    model, report = CLIPModel.from_pretrained(FOLDER, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert sum(each.numel() for each in model.parameters()) == recipe()["weights"]["parameters"]
    tokens = AutoTokenizer.from_pretrained(FOLDER)(["a blue star"], return_tensors="pt")
    assert AutoImageProcessor.from_pretrained(FOLDER).size["height"] == 96
    with torch.inference_mode():
        assert model.get_text_features(**tokens).pooler_output.shape == (1, model.config.projection_dim)


def test_the_shipped_encoder_sets_a_star_apart_from_a_heart() -> None:
    from cir_datasets import shapes
    from submissions.encoders.loading import load_encoder

    encoder = load_encoder("shapes", device="cpu")
    things = {
        name: shapes.Scene((shapes.Thing(*name.split()[::-1], "large", "plain", (4,)),), "snowy")
        for name in ("blue star", "red heart", "green cross")
    }
    from PIL import Image

    images = encoder.encode_images([Image.fromarray(shapes.pixels(scene)) for scene in things.values()])
    texts = encoder.encode_texts([f"a {name}" for name in things])
    assert np.argmax(texts @ images.T, axis=1).tolist() == [0, 1, 2]
    assert np.argmax(images @ texts.T, axis=1).tolist() == [0, 1, 2]


def of_pixels() -> Interval:
    """Recall@10 of the strongest baseline that knows the image alone: the pixels' image only."""
    (entry,) = [entry for entry in entries() if entry.file == PIXELS]
    return intervals(submissions.score(entry.path)).values["recall@10"]


@pytest.mark.slow
def test_results_are_found_again() -> None:
    from examples.shapes_encoder.results import measured
    from submissions.encoders.loading import load_encoder

    again, recorded = measured(load_encoder("shapes", device="cpu")), recipe()["results"]
    assert again["intervals"] == recorded["intervals"]
    for benchmark in ("shapes/val", "shapes/multiturn_val"):
        assert list(again[benchmark]) == list(recorded[benchmark])
        for name, values in recorded[benchmark].items():
            for metric, numbers in values.items():
                tolerance = {"abs": TOLERANCE}
                assert again[benchmark][name][metric] == pytest.approx(numbers, **tolerance), (name, metric)
    recall = {name: interval(each["recall@10"]) for name, each in again["shapes/val"].items()}
    assert apart(recall["image_text_sum"], of_pixels())
    assert apart(recall["image_text_sum"], recall["image_only"])
    assert apart(recall["image_text_sum"], recall["text_only"])


def shown(number: list[float]) -> str:
    return "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * each for each in number))


QUERY_METRICS = ("recall@1", "recall@10", "map@10")
SESSION_METRICS = ("hits@10@turn1", "final_recall@10", "hits_auc@10")


@pytest.mark.parametrize(
    ("page", "benchmark", "metrics"),
    [("training.md", "shapes/val", QUERY_METRICS), ("encoders.md", "shapes/multiturn_val", SESSION_METRICS)],
)
def test_a_page_shows_the_recipes_numbers(page: str, benchmark: str, metrics: tuple[str, ...]) -> None:
    text = DOCS.with_name(page).read_text(encoding="utf-8")
    for name, found in recipe()["results"][benchmark].items():
        assert f"| `{name}` | " + " | ".join(shown(found[metric]) for metric in metrics) + " |" in text


@pytest.mark.parametrize("entry", ORACLES, ids=lambda entry: entry.file)
def test_the_page_shows_what_the_entries_with_the_oracle_score(entry: BaselineEntry) -> None:
    rank_file = submissions.read(entry.path)
    assert isinstance(rank_file, RankFile)
    report = submissions.score(rank_file)
    ends = intervals(report)
    metrics = QUERY_METRICS if entry.benchmark == "shapes/val" else SESSION_METRICS
    numbers = [
        shown([report.metrics[name], ends.values[name].low, ends.values[name].high]) for name in metrics
    ]
    words = shlex.split(entry.command)
    method = words[words.index("--method") + 1]
    aggregation = [] if entry.benchmark == "shapes/val" else [f"`{rank_file.method.aggregation.split()[0]}`"]
    row = " | ".join([f"| `{method}`", *aggregation, *numbers]) + " |\n"
    assert row in DOCS.read_text(encoding="utf-8")
    if method == "cirevl":
        recorded = recipe()["results"][entry.benchmark]
        rival = recorded["image_text_sum" if entry.benchmark == "shapes/val" else aggregation[0].strip("`")]
        assert all(report.metrics[name] >= rival[name][0] for name in metrics[-2:])
        main = report.main_metric
        assert apart(ends.values[main], interval(rival[main])) == (entry.benchmark == "shapes/val")


def test_the_page_has_a_row_for_each_entry_with_the_oracle_and_no_other() -> None:
    assert len(ORACLES) == 6
    rows = re.findall(
        r"^\| `(?:captioning|cirevl)` \|(?: `\w+` \|)? \d", DOCS.read_text(encoding="utf-8"), re.M
    )
    assert len(rows) == 6


def test_the_page_says_in_words_what_its_paired_tests_found() -> None:
    """Who beats the strongest baseline that knows the image alone or the text alone, and who does not."""
    page = DOCS.read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \| [<.\d]+ \| (better|worse|not significant) \|$", page, re.M
    )
    verdicts: dict[str, dict[str, list[str]]] = {}
    for method, rival, verdict in rows:
        verdicts.setdefault(rival.replace("`", ""), {}).setdefault(verdict, []).append(
            method.replace("`", "")
        )
    assert verdicts == {
        "image_only_pixels": {"better": ["cirevl"], "worse": ["captioning"]},
        "image_text_sum": {"better": ["cirevl"]},
    }
    assert "Only `latest` beats the image of pixels. `average`, `feedback` and `weighted`" in page


def test_what_the_page_says_of_sessions_is_what_paired_tests_find() -> None:
    """Of one comparison of all entries at the board's main metric, corrected for all its tests."""
    names = [f"image_text_sum-shapes-{name}" for name in ("latest", "average", "weighted", "feedback")]
    paths = {entry.file: entry.path for entry in entries("shapes/multiturn_val")}
    files = [paths[f"{name}.shapes-multiturn_val.json.gz"] for name in (*names, "image_only-pixels")]
    pairs = submissions.compare(files, metrics=["hits_auc@10"]).pairs
    places = itertools.combinations(range(len(files)), 2)
    against = [
        pair.differences["hits_auc@10"]
        for (_, other), pair in zip(places, pairs, strict=True)
        if other == len(names)
    ]
    assert [each.significant and each.difference > 0 for each in against] == [True, False, False, False]


def test_the_page_shows_the_recipe() -> None:
    page, found = DOCS.read_text(encoding="utf-8"), recipe()
    for fact in (
        found["command"],
        found["weights"]["sha256"],
        found["data"]["pixel_sha256"],
        f"{found['weights']['parameters']:,}",
        f"{found['cost']['cpu_seconds']:,} s",
    ):
        assert fact in page

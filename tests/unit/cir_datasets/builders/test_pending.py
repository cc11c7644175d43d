"""Multi-turn FashionIQ, FISD and ZeroSight: exact rows, every fault by name, and what is pending."""

from __future__ import annotations

import json
from pathlib import Path

import datasets_publishers as made
import pytest
from datasets_publishers import load_unchecked
from typer.testing import CliRunner

import cir_datasets
from cir_datasets import registry
from cir_datasets.errors import RecordError, SourceError
from cir_datasets.export.template import template_names, write_template
from cir_datasets.registry.schema import Card
from cir_metrics.errors import CallError, UnknownNameError
from leaderboard.cli import build

ROOT = Path(__file__).resolve().parents[4]


PENDING = [name for name in registry.names() if registry.card(name).status == "pending_publication"]


pytestmark = [
    pytest.mark.usefixtures("no_publishers"),
    pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning"),
]


def test_a_session_of_multiturn_fashioniq_keeps_its_captions_as_published(tmp_path: Path) -> None:
    made.write_multiturn_fashioniq(tmp_path, "toptee", "train")
    images = made.fashioniq_images("toptee", "train")
    benchmark = load_unchecked("multiturn_fashioniq/toptee_train", tmp_path)
    assert benchmark.rows()[0] == {
        "session_id": "toptee_train_0000",
        "subset": "toptee_train",
        "ground_truth_ids": [images[0]],
        "num_turns": 2,
        "turns": [
            {
                "turn": 1,
                "reference_image_id": images[1],
                "relative_caption": "only one",
                "captions": ["only one"],
            },
            {
                "turn": 2,
                "reference_image_id": images[2],
                "relative_caption": None,
                "captions": ["a", "", "c"],
            },
        ],
    }
    assert [row["num_turns"] for row in benchmark.rows()] == [2, 3, 1]
    assert benchmark.query_ids[2] == "toptee_train_0002"
    assert benchmark.gallery == images


def test_a_fisd_query_has_one_target_one_hard_negative_and_its_aspect(tmp_path: Path) -> None:
    root = made.write_template(tmp_path, "fisd")
    record = json.loads((root / "negation/queries.json").read_text())[1]
    benchmark = load_unchecked("fisd/negation", tmp_path)
    assert benchmark.rows()[1] == {
        "query_id": "negation_001",
        "reference_image_id": "negation/001_reference.png",
        "captions": [record["relative_caption"]],
        "relative_caption": record["relative_caption"],
        "target_image_id": "negation/001_target.png",
        "positive_image_ids": ["negation/001_target.png"],
        "negative_image_ids": ["negation/001_negative.png"],
        "subset_image_ids": [],
        "aspects": ["negation"],
    }
    manifest = cir_datasets.image_manifest("fisd/negation", data_dir=root, verification_mode="no_checks")
    assert len(manifest) == 9
    assert manifest[0]["relative_path"] == manifest[0]["image_id"] == "negation/000_reference.png"


def test_a_zerosight_query_has_positives_and_hard_negatives_and_no_single_target(tmp_path: Path) -> None:
    root = made.write_template(tmp_path, "zerosight")
    record = json.loads((root / "train.json").read_text())[2]
    benchmark = load_unchecked("zerosight/all", tmp_path)
    assert benchmark.query_ids == ["0", "1", "2", "3", "4", "5"]
    assert benchmark.rows()[2] == {
        "query_id": "2",
        "reference_image_id": record["reference"],
        "captions": [record["caption"]],
        "relative_caption": record["caption"],
        "target_image_id": None,
        "positive_image_ids": record["groundtruths"],
        "negative_image_ids": record["negativeInstances"],
        "subset_image_ids": [],
        "aspects": ["viewpoint"],
    }
    assert benchmark.rows()[0]["negative_image_ids"] == []
    assert load_unchecked("zerosight/train", tmp_path).query_ids + load_unchecked(
        "zerosight/test", tmp_path
    ).query_ids == (benchmark.query_ids)


def test_zerosight_takes_integers_as_ids(tmp_path: Path) -> None:
    root = made.write_template(tmp_path, "zerosight")
    made.edit(root / "test.json", lambda rows: rows[0].update(id=17))
    assert load_unchecked("zerosight/test", tmp_path).query_ids[0] == "17"


@pytest.mark.parametrize("name", PENDING)
def test_what_is_pending_says_so_and_names_pages_and_template(name: str) -> None:
    with pytest.raises(SourceError) as error:
        cir_datasets.load(f"{name}/{next(iter(registry.card(name).configs))}")
    words = str(error.value)
    assert "pending publication" in words
    assert all(page in words for page in registry.card(name).source.pages)
    assert f"cir datasets template {name} DIR" in words


def test_a_folder_without_the_files_names_them_the_pages_and_the_template(tmp_path: Path) -> None:
    root = made.write_template(tmp_path, "fisd")
    (root / "change/images.json").unlink()
    with pytest.raises(SourceError) as error:
        load_unchecked("fisd/change", root)
    assert f"{root / 'change/images.json'} does not exist" in str(error.value)
    assert "https://code-kunkun.github.io/SanityCIR/" in str(error.value)
    assert "cir datasets template fisd DIR" in str(error.value)


@pytest.mark.parametrize("name", PENDING)
def test_the_template_command_writes_a_folder_that_loads(name: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(build(), ["datasets", "template", name, str(tmp_path / "here")])
    assert done.exit_code == 0
    assert all(Path(line).is_file() for line in done.stdout.splitlines())
    about = (tmp_path / "here/README.txt").read_text()
    assert registry.card(name).folder_schema in about
    assert registry.card(name).ids in about
    for config in registry.card(name).configs:
        assert len(load_unchecked(f"{name}/{config}", tmp_path / "here")) >= 3


def test_a_template_overwrites_nothing_and_knows_its_names(tmp_path: Path) -> None:
    assert set(template_names()) == set(PENDING)
    write_template("fisd", tmp_path, ["addition"])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    assert {path.parent.name for path in before} == {"addition"}
    with pytest.raises(CallError, match=r"README.txt: is there already. Fix: choose an empty folder"):
        write_template("fisd", tmp_path, ["change"])
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == before
    with pytest.raises(UnknownNameError, match=r"'cirr' has no template\. Fix: name one of fisd, zerosight"):
        write_template("cirr", tmp_path / "new")
    with pytest.raises(
        UnknownNameError, match="fisd has no configuration 'colour'; it has cardinality, addition"
    ):
        write_template("fisd", tmp_path / "new", ["colour"])


def test_the_registry_says_pending_publication() -> None:
    listed = CliRunner().invoke(build(), ["datasets", "list"]).stdout
    lines = [line for line in listed.splitlines() if line.startswith(("fisd/", "zerosight/"))]
    assert len(lines) == 9
    assert all(line.endswith("pending publication") for line in lines)
    shown = CliRunner().invoke(build(), ["datasets", "show", "zerosight/test"]).stdout
    assert "negativeInstances   the hard negatives" in shown


def test_a_card_that_is_pending_must_explain_itself() -> None:
    fields = registry.card("fisd").model_dump()
    with pytest.raises(ValueError, match=r"needs source\.pages and folder_schema"):
        Card.model_validate(fields | {"folder_schema": ""})
    with pytest.raises(ValueError, match="pending_publication and publisher unpublished go together"):
        Card.model_validate(fields | {"status": "published"})


def test_export_writes_what_the_released_evaluator_reads(tmp_path: Path) -> None:
    root = made.write_template(tmp_path, "zerosight")
    out = tmp_path / "queries.json"
    arguments = ["datasets", "export", "zerosight/test", "--out", str(out), "--data-dir", str(root)]
    assert CliRunner().invoke(build(), [*arguments, "--no-checks"]).exit_code == 0
    published = json.loads((root / "test.json").read_text())
    assert json.loads(out.read_text()) == [
        {name: record[name] for name in ("id", "groundtruths", "negativeInstances")} for record in published
    ]
    whole = load_unchecked("zerosight/test", root)
    out.replace(root / "test.json")
    read_back = load_unchecked("zerosight/test", root)
    assert (read_back.query_ids, read_back.positives) == (whole.query_ids, whole.positives)
    assert read_back.column("negative_image_ids") == whole.column("negative_image_ids")
    assert set(read_back.column("relative_caption")) == {None}


def test_a_query_of_the_evaluators_form_among_whole_ones_is_an_error(tmp_path: Path) -> None:
    root = made.write_template(tmp_path, "zerosight")
    made.edit(root / "test.json", lambda r: [r[1].pop(name) for name in ("reference", "caption", "category")])
    with pytest.raises(RecordError, match="it has none of the fields caption, category, reference, unlike"):
        load_unchecked("zerosight/test", root)


def test_export_refuses_sessions_and_withheld_truth(tmp_path: Path) -> None:
    from cir_datasets.export.ground_truth import evaluator_queries

    made.write_circo(tmp_path, "test")
    with pytest.raises(CallError, match="circo/test keeps its ground truth withheld"):
        evaluator_queries(load_unchecked("circo/test", tmp_path))
    made.write_multiturn_fashioniq(tmp_path, "dress", "val")
    with pytest.raises(CallError, match="multiturn_fashioniq/dress_val asks for sessions"):
        evaluator_queries(load_unchecked("multiturn_fashioniq/dress_val", tmp_path))

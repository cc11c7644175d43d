"""Published folders: what is in them, that they load anywhere, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import cir_here
import datasets_publishers as made
import forked
import pyarrow.parquet as pq
import pytest
import yaml

import cir_datasets
from cir_datasets import registry
from cir_datasets.builders import builder_class
from cir_datasets.errors import CardError, CountError, PublishError, SourceError
from cir_datasets.export.template import write_template
from cir_datasets.prepared import ensure
from cir_datasets.publishing import croissant
from cir_datasets.publishing.card_text import card_text
from cir_datasets.publishing.layout import write_config
from cir_datasets.publishing.publication import Publication, documents
from cir_datasets.publishing.publish import publish
from cir_metrics.errors import CallError, UnknownNameError

ROOT = Path(__file__).resolve().parents[4]
NAMES = registry.names()


pytestmark = [
    pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning"),
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),  # mlcroissant's
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # mlcroissant's
]


@pytest.fixture(scope="module", autouse=True)
def _no_network() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
        patch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
        patch.delenv("CIR_DATA_HOME", raising=False)
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of made-up publishers' folders, for every benchmark that reads one."""
    folder = tmp_path_factory.mktemp("publishers")
    for name in NAMES:
        card = registry.card(name)
        if card.status == "pending_publication":
            write_template(name, folder / card.source.folder, list(card.configs))
        elif (made.FIXTURES / name).is_dir():
            made.write_fixture(folder, name)
        elif card.status != "embedded":
            for config in card.configs:
                made.write_for(folder, f"{name}/{config}")
    return folder


@pytest.fixture(scope="module")
def published(home: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Publication]:
    """Every benchmark, published once; of shapes the small half, which is made by the same code."""
    to = tmp_path_factory.mktemp("published")
    wanted = [name for name in NAMES if name != "shapes"] + ["shapes/val", "shapes/multiturn_val"]
    done = publish(wanted, to, data_dir=home, verification_mode="no_checks")
    return {one.name: one for one in done}


def source(benchmark_id: str, home: Path) -> dict[str, Any]:
    """What `publish` was given for a benchmark."""
    embedded = benchmark_id.startswith("shapes/")
    return {"data_dir": None if embedded else home, "verification_mode": "no_checks"}


LOADS = """
import json, sys, warnings
from datasets import Features, load_dataset
warnings.simplefilter("ignore")
found = {}
for folder, configs in json.load(sys.stdin).items():
    found[folder] = {}
    for config in configs:
        data = load_dataset(folder, config)
        (split,) = data
        found[folder][config] = [split, str(data[split].features), data[split].to_list()]
assert "cir_datasets" not in sys.modules
json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def loaded(published: dict[str, Publication], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By folder and configuration: split, features and rows, loaded by a process that knows nothing of us."""
    folder = tmp_path_factory.mktemp("elsewhere")
    asked = {str(one.folder): [config.name for config in one.configs] for one in published.values()}
    done = forked.run(
        [sys.executable, "-c", LOADS],
        cwd=folder,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf")},
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_published_loads_anywhere_with_the_same_rows(
    name: str, home: Path, published: dict[str, Publication], loaded: dict[str, Any]
) -> None:
    import datasets

    configs = [config.name for config in published[name].configs]
    assert len(configs) == (4 if name == "shapes" else 2 * len(registry.card(name).configs))
    found = loaded[str(published[name].folder)]
    assert list(found) == configs
    for config in configs:
        benchmark_id = f"{name}/{config.removesuffix('_images')}"
        spec = registry.spec(benchmark_id)
        if config.endswith("_images"):
            rows = cir_datasets.image_manifest(benchmark_id, **source(benchmark_id, home))
            schema = cir_datasets.rows.records.image_schema()
        else:
            rows = cir_datasets.load(benchmark_id, **source(benchmark_id, home)).rows()
            schema = builder_class(name)(spec, {}).schema()
        assert found[config][0] == spec.config.split
        assert found[config][1] == str(datasets.Features.from_arrow_schema(schema))
        assert found[config][2] == rows


@pytest.mark.parametrize("name", NAMES)
def test_mlcroissant_reports_neither_error_nor_warning(name: str, published: dict[str, Publication]) -> None:
    assert croissant.check(published[name].folder / "croissant.json") == []
    assert published[name].warnings == ()


def plain(value: Any, prefix: str) -> Any:
    """A record of mlcroissant as the row that it was: text is bytes there, and names are paths."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [plain(entry, prefix) for entry in value]
    if isinstance(value, dict):
        return {key.rpartition("/")[2]: plain(entry, f"{key}/") for key, entry in value.items()}
    return value


@pytest.mark.parametrize("name", [name for name in NAMES if name != "shapes"])
def test_mlcroissant_reads_the_rows(name: str, home: Path, published: dict[str, Publication]) -> None:
    import mlcroissant

    read = mlcroissant.Dataset(str(published[name].folder / "croissant.json"))
    config = next(iter(registry.card(name).configs))
    rows = cir_datasets.load(f"{name}/{config}", **source(f"{name}/{config}", home)).rows()
    assert [plain(record, "") for record in read.records(config)] == rows
    images = cir_datasets.image_manifest(f"{name}/{config}", **source(f"{name}/{config}", home))
    ids = [record[f"{config}_images/image_id"].decode() for record in read.records(f"{config}_images")]
    assert ids == [image["image_id"] for image in images]


def test_croissant_says_who_where_and_what_is_known_of_bias(published: dict[str, Publication]) -> None:
    metadata = json.loads((published["circled"].folder / "croissant.json").read_bytes())
    assert metadata["conformsTo"] == croissant.CONFORMS_TO
    assert metadata["creator"][0] == {"@type": "sc:Person", "name": "Tomohisa Takeda"}
    for statement in ("dataCollection", "dataBiases", "dataLimitations", "dataUseCases", "dataSocialImpact"):
        assert metadata[f"rai:{statement}"]
    assert metadata["rai:personalSensitiveInformation"]
    files = {entry["@id"]: entry for entry in metadata["distribution"]}
    assert len(files) == 18
    for config in published["circled"].configs:
        for file in config.files:
            assert files[file.path]["sha256"] == file.sha256


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("name", ["circled", "circo"])
def test_publishing_again_gives_the_same_bytes(
    name: str, home: Path, published: dict[str, Publication], tmp_path: Path
) -> None:
    first = files_of(published[name].folder)
    publish(name, tmp_path, data_dir=home, verification_mode="no_checks")
    assert files_of(tmp_path / name) == first
    publish(name, tmp_path, data_dir=home, verification_mode="no_checks")
    assert files_of(tmp_path / name) == first
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_head_of_the_readme_is_the_hubs(published: dict[str, Publication]) -> None:
    page = (published["fashioniq"].folder / "README.md").read_text(encoding="utf-8")
    head = yaml.safe_load(page.split("---\n")[1])
    assert head["license"] == "other"
    assert head["license_name"] == "cdla-permissive"
    assert head["pretty_name"] == "FashionIQ"
    assert "composed-image-retrieval" in head["tags"]
    named = {config["config_name"]: config["data_files"] for config in head["configs"]}
    assert len(named) == 36
    assert named["dress_val_union"] == [
        {"split": "validation", "path": "dress_val_union/validation-*.parquet"}
    ]
    info = {entry["config_name"]: entry for entry in head["dataset_info"]}
    assert info["dress_val"]["splits"][0]["num_examples"] == 3


def test_the_card_tells_licences_protocol_fields_traps_and_citation(
    published: dict[str, Publication],
) -> None:
    page = (published["circo"].folder / "README.md").read_text(encoding="utf-8")
    ids = page.partition("## Ids")[2].partition("## Fields")[0]
    assert registry.card("circo").ids in ids
    assert "| `val` | `0` | `000000271520` |" in ids
    card = registry.card("circo")
    for words in (
        "- Annotations: CC BY-NC 4.0 (https://creativecommons.org/licenses/by-nc/4.0/)",
        "- Images: COCO 2017",
        "does not allow every kind of copy",
        "| `val` | 5 | kept in the ranking | public |  | `map@5` |",
        "| `test` | 5 | kept in the ranking | withheld |",
        "| `shared_concept` | string | What reference and target have in common",
        "| `positive_image_ids` | list of string |",
        "@inproceedings{baldrati2023searle",
        "- version 1: First version.",
        "unpinned source, not checked: counts",
        *card.traps,
    ):
        assert words in page
    assert "\n\n\n" not in page


def test_several_files_hold_a_large_configuration(tmp_path: Path) -> None:
    import datasets
    import mlcroissant

    home = tmp_path / "home"
    made.write_for(home, "cirr/val")
    prepared = ensure("cirr/val", data_dir=home, verification_mode="no_checks")
    images = prepared.images_file
    assert images is not None
    config = write_config(
        images, tmp_path, "val_images", prepared.spec, is_manifest=True, max_rows=3
    )  # 3, 3 and 2
    assert [pq.ParquetFile(tmp_path / file.path).metadata.num_rows for file in config.files] == [3, 3, 2]
    asked = write_config(prepared.rows_file, tmp_path, "val", prepared.spec, is_manifest=False, max_rows=2)
    pages, warnings = documents([asked, config], [prepared])
    assert warnings == []
    for name, content in pages.items():
        (tmp_path / name).write_bytes(content)
    rows = cir_datasets.image_manifest("cirr/val", data_dir=home, verification_mode="no_checks")
    read = mlcroissant.Dataset(str(tmp_path / "croissant.json"))
    ids = [record["val_images/image_id"].decode() for record in read.records("val_images")]
    assert ids == [row["image_id"] for row in rows]
    found = datasets.load_dataset(
        str(tmp_path), "val_images", split="validation", cache_dir=str(tmp_path / "c")
    )
    assert found.to_list() == rows
    pushed, warnings = documents(
        [asked, config], [prepared], "me/cirr", "https://hub.example/datasets/me/cirr"
    )
    assert warnings == []
    assert (
        b"https://hub.example/datasets/me/cirr/resolve/main/val/validation-00000" in pushed["croissant.json"]
    )


def test_what_is_no_longer_published_goes_and_other_files_stay(home: Path, tmp_path: Path) -> None:
    publish("circo", tmp_path, data_dir=home, verification_mode="no_checks")
    (tmp_path / "circo/notes.txt").write_text("mine", encoding="utf-8")
    wanted: dict[str, Any] = {"data_dir": home, "verification_mode": "no_checks"}
    before = files_of(tmp_path)
    with pytest.raises(
        PublishError, match=r"configurations .* removed.*: test, test_images\. (?s:.)*Fix: .*"
    ):
        publish("circo/val", tmp_path, **wanted)
    assert files_of(tmp_path) == before
    publish("circo/val", tmp_path, remove_others=True, **wanted)
    assert sorted(path.name for path in (tmp_path / "circo").iterdir()) == [
        "README.md",
        "croissant.json",
        "notes.txt",
        "val",
        "val_images",
    ]


def test_a_folder_of_somebody_else_is_left_alone(home: Path) -> None:
    before = files_of(home)
    with pytest.raises(CallError, match=r"cirr: is there already and was not written by .*\n?.*Fix: choose"):
        publish("cirr/val", home, data_dir=home, verification_mode="no_checks")
    assert files_of(home) == before


def test_what_is_published_is_not_lost_with_data_that_is_no_longer_at_hand(
    home: Path, tmp_path: Path
) -> None:
    lacking = tmp_path / "publishers"
    shutil.copytree(home / "cirr", lacking / "cirr")
    wanted: dict[str, Any] = {"data_dir": lacking, "verification_mode": "no_checks", "skip_missing": True}
    publish("cirr", tmp_path / "to", **wanted)
    before = files_of(tmp_path / "to")
    (lacking / "cirr/captions/cap.rc2.train.json").unlink()
    with pytest.raises(PublishError, match=r"removed.*not available: dialogues_across_train.*train_images"):
        publish("cirr", tmp_path / "to", **wanted)
    assert files_of(tmp_path / "to") == before
    publish("cirr", tmp_path / "to", remove_others=True, **wanted)
    assert not (tmp_path / "to/cirr/train").exists()


def test_a_folder_with_another_benchmark_is_refused(
    home: Path, published: dict[str, Publication], tmp_path: Path
) -> None:
    shutil.copytree(published["circo"].folder, tmp_path / "cirr")
    before = files_of(tmp_path)
    with pytest.raises(PublishError, match=r"holds another benchmark, 'circo'(?s:.)*Fix: give cirr a place"):
        publish("cirr/val", tmp_path, data_dir=home, verification_mode="no_checks", remove_others=True)
    assert files_of(tmp_path) == before


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "{}",
        '{"distribution": 5}',
        '{"distribution": [5]}',
        '{"distribution": [{"@id": 5}]}',
        '{"distribution": []}',
        '{"name": 5, "distribution": []}',
    ],
)
def test_metadata_of_somebody_else_is_refused(content: str, home: Path, tmp_path: Path) -> None:
    (tmp_path / "cirr").mkdir()
    (tmp_path / "cirr/croissant.json").write_text(content, encoding="utf-8")
    with pytest.raises(
        PublishError, match=r"cirr: its croissant\.json is not metadata of an earlier.*Fix: choose"
    ):
        publish("cirr/val", tmp_path, data_dir=home, verification_mode="no_checks")
    assert files_of(tmp_path) == {"cirr/croissant.json": content.encode()}


def test_each_source_file_is_under_its_own_publisher(published: dict[str, Publication]) -> None:
    page = (published["circled"].folder / "README.md").read_text(encoding="utf-8")
    section = page.split("## Where the rows come from")[1].split("## Citation")[0]
    groups = {}
    for name in ("circled", "circo", "cirr", "fashioniq"):
        source = registry.card(name).source
        at = f"revision {source.revision}" if source.revision else "no revision is pinned"
        _, _, rest = section.partition(f"`{source.repository}` ({source.publisher}, {at})")
        assert rest, name
        groups[name] = rest.split("rom `")[0].split("| benchmark |")[0]
    assert "`data/cirr_val.json`" in groups["circled"]
    assert "image_splits" not in groups["circled"]
    assert "image_info_unlabeled2017.json`" in groups["circo"]
    assert "`image_splits/split.rc2.val.json`" in groups["cirr"]
    assert "`image_splits/split.dress.val.json`" in groups["fashioniq"]
    assert "`data/" not in "".join(groups[name] for name in ("circo", "cirr", "fashioniq"))


def test_a_licence_that_is_not_stated_is_not_an_address(published: dict[str, Publication]) -> None:
    unknown = [name for name in NAMES if card_text(name).license_id == "unknown"]
    assert unknown
    for name in NAMES:
        metadata = json.loads((published[name].folder / "croissant.json").read_bytes())
        head = yaml.safe_load((published[name].folder / "README.md").read_text().split("---\n")[1])
        if name in unknown:
            assert metadata["license"].startswith("The publisher states no licence")
            assert "license_link" not in head
        else:
            assert metadata["license"] == card_text(name).license_url


def test_data_that_is_not_at_hand_is_named_or_left_out(home: Path, tmp_path: Path) -> None:
    lacking = tmp_path / "publishers"
    shutil.copytree(home / "cirr", lacking / "cirr")
    (lacking / "cirr/captions/cap.rc2.train.json").unlink()
    wanted: dict[str, Any] = {"data_dir": lacking, "verification_mode": "no_checks"}
    with pytest.raises(
        SourceError, match=r"3 of 7 benchmarks is not available: cirr/train, .*(?s:.)*--skip-missing"
    ):
        publish("cirr", tmp_path / "to", **wanted)
    assert not (tmp_path / "to").exists()
    (done,) = publish("cirr", tmp_path / "to", skip_missing=True, **wanted)
    assert list(done.skipped) == [f"cirr/{each}train" for each in ("", "dialogues_", "dialogues_across_")]
    here = ("val", "test1", "dialogues_val", "dialogues_across_val")
    assert [config.name for config in done.configs] == [
        f"{each}{of}" for each in here for of in ("", "_images")
    ]
    with pytest.raises(SourceError, match="cirr/train"):
        publish("cirr/train", tmp_path / "other", skip_missing=True, **wanted)


def test_a_gallery_that_is_not_at_hand_is_said(tmp_path: Path) -> None:
    made.write_circo(tmp_path / "home", "val", gallery=False)
    (done,) = publish("circo/val", tmp_path / "to", data_dir=tmp_path / "home", verification_mode="no_checks")
    assert [config.name for config in done.configs] == ["val"]
    assert any("the list of the gallery is not available" in note for note in done.notes)
    page = (done.folder / "README.md").read_text(encoding="utf-8")
    assert "| `val` | 123,403 (list not here) |" in page


def test_wrong_counts_are_an_error(home: Path, tmp_path: Path) -> None:
    with pytest.raises(CountError):
        publish("cirr/val", tmp_path, data_dir=home)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"benchmarks": ["circo", "circled"], "push_to": "me/both"}, "do not share a repository"),
        ({"benchmarks": "circled", "push_to": "circled"}, "a repository is named ORG/NAME"),
        (
            {"benchmarks": "circled", "push_to": "me/..x"},
            r"'me/\.\.x': the Hub takes no such name(?s:.)*Fix: ",
        ),
        ({"benchmarks": "circo", "push_to": "me/circo"}, '--i-may-copy "CC BY-NC 4.0"'),
        (
            {"benchmarks": "circo", "push_to": "me/circo", "may_copy": "MIT"},
            r"nothing was pushed \(you wrote 'MIT'\)",
        ),
    ],
)
def test_a_push_that_may_not_be_is_refused_before_any_work(
    options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(CallError, match=words):
        publish(to=tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'cirr/val'"):
        publish("cir/val", tmp_path)


def test_a_benchmark_without_a_dataset_card_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CardError, match=r"cards/nothing\.md: no such file.*Fix: write it"):
        card_text("nothing")


def test_metadata_that_mlcroissant_refuses_is_an_error(
    published: dict[str, Publication], tmp_path: Path
) -> None:
    metadata = json.loads((published["cirr"].folder / "croissant.json").read_bytes())
    metadata["recordSet"][0]["field"][0]["source"]["fileObject"]["@id"] = "nowhere"
    with pytest.raises(PublishError, match="mlcroissant refuses it"):
        croissant.check(metadata)


def test_the_command_prints_what_was_written(home: Path, tmp_path: Path) -> None:
    def cir(*arguments: str) -> subprocess.CompletedProcess[str]:
        return cir_here.cir("--no-checks", "datasets", "publish", *arguments)

    shared = ["--to", str(tmp_path), "--data-dir", str(home)]
    done = cir("circo/val", *shared)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("circo: 1 configuration and 1 gallery")
    assert 'cir: circo: the licence of the annotations is "CC BY-NC 4.0"' in done.stderr
    done = cir("circled/cirr_val", *shared, "--json")
    (found,) = json.loads(done.stdout)
    assert [config["name"] for config in found["configs"]] == ["cirr_val", "cirr_val_images"]
    assert found["commit_url"] is None
    done = cir("circo/val", *shared, "--push", "me/circo")
    assert done.returncode == 2
    assert done.stderr.startswith('cir: circo: the licence of its annotations is "CC BY-NC 4.0"')
    assert "Traceback" not in done.stderr

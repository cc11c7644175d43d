"""What is published of a benchmark of one's own: nothing of this machine, nothing that nobody has said."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import fisd_runs
import pyarrow.parquet as pq
import pytest
from PIL import Image

import cir_datasets
from cir_datasets.construction.fisd.outcome import write_outcome
from cir_datasets.construction.folder import write_benchmark
from cir_datasets.construction.workspace import Workspace
from leaderboard.challenge.making import Rules, default_phase, make
from leaderboard.challenge.material import from_benchmark

ROWS = [
    {
        "query_id": str(number),
        "reference_image_id": f"i{number}",
        "relative_caption": f"in red, not {number}",
        "target_image_id": f"i{number + 1}",
    }
    for number in range(30)
]
GALLERY = [f"i{number}" for number in range(32)]

pytestmark = [
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),  # mlcroissant's
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # mlcroissant's
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the makers work: its name must not leave."""
    return tmp_path_factory.mktemp("of_the_maker")


@pytest.fixture(scope="module")
def published(place: Path) -> Iterator[Path]:
    """An own benchmark, a folder with settings, and one that `cir make fisd` has made, all published."""
    pictures = place / "pictures"
    pictures.mkdir()
    for image in GALLERY:
        Image.new("RGB", (4, 4)).save(pictures / f"{image}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
        patch.setenv("CIR_BENCHMARKS", "")
        patch.setenv("CIR_CHALLENGES", str(place / "challenges"))
        cir_datasets.custom_benchmark(
            "kept_rows", ROWS, images=pictures, folder=place / "kept", metrics=["recall@1"]
        )
        settings = {"encoder": str(place / "model"), "files": [{"videos": "~/clips"}], "seed": 7}
        written = write_benchmark(
            place / "told",
            name="told_rows",
            title="Told rows",
            configs={"test": ROWS},
            galleries=GALLERY,
            picture_folder=str(pictures),
            private=False,
            made={"pipeline": "mine", **settings},
        )
        run = place / "run"
        made = fisd_runs.run(run, fisd_runs.shapes_captions(place, 30))
        drawn = write_outcome(
            made, name="drawn_rows", title="Drawn", settings=Workspace.existing(run).settings
        )
        patch.setenv("CIR_BENCHMARKS", f"{place / 'kept'}:{written}:{drawn}")
        cir_datasets.publish(["kept_rows", "told_rows", "drawn_rows"], place / "out")
        yield place / "out"


def texts(folder: Path) -> dict[str, str]:
    """All that files say, by name: of Parquet its rows and its metadata."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            found[str(path)] = (
                f"{table.to_pylist()} {pq.read_metadata(path).metadata} {table.schema.metadata}"
            )
        elif path.is_file():
            found[str(path)] = path.read_bytes().decode("utf-8", "replace")
    return found


def local(place: Path, said: str) -> list[str]:
    """What of this machine a text holds."""
    names = {str(place), place.name, str(Path.home()), "~/", f"{socket.gethostname()}."}
    return sorted(name for name in names if name in said)


def test_no_place_of_the_makers_machine_is_in_any_file(place: Path, published: Path) -> None:
    said = texts(published)
    assert len([name for name in said if name.endswith(".parquet")]) == 6
    assert {name: local(place, text) for name, text in said.items() if local(place, text)} == {}
    assert "encoder: model" in said[str(published / "told_rows" / "README.md")]


@pytest.mark.parametrize("name", ["kept_rows", "told_rows", "drawn_rows"])
def test_what_nobody_has_said_is_left_out_or_said_to_be_unknown(name: str, published: Path) -> None:
    page = (published / name / "README.md").read_text(encoding="utf-8")
    head, _, body = page.removeprefix("---\n").partition("\n---\n")
    assert re.findall(r"\[[^\]]*\]\(\s*\)", page) == []
    for invented in (
        "its makers.",
        "{its makers}",
        "not published",
        "every kind of copy",
        "None known",
        "pinned",
    ):
        assert invented not in body
    assert f'load_dataset("{name}"' not in body  # the name is known beside the maker's folder alone
    assert "\nlanguage:" not in head
    assert "Annotations: unknown" in body
    assert "CIR_IMAGES" not in body
    assert ("Its makers keep it private" in body) == (name != "told_rows")
    metadata = json.loads((published / name / "croissant.json").read_bytes())
    assert {"url", "creator", "inLanguage", "datePublished"} & metadata.keys() == set()


def test_a_paper_that_there_is_stands_on_the_page(place: Path, published: Path) -> None:
    folder = place / "told"
    card = (folder / "card.yaml").read_text(encoding="utf-8")
    paper = "paper: {title: On rows, authors: 'A. Writer, B. Writer', venue: CVPR, year: 2026, url: ''}\n"
    (folder / "card.yaml").write_text(card + paper, encoding="utf-8")
    (done,) = cir_datasets.publish("told_rows", place / "again")
    page = (done.folder / "README.md").read_text(encoding="utf-8")
    assert "Paper: A. Writer, B. Writer. On rows. CVPR 2026." in page
    metadata = json.loads((done.folder / "croissant.json").read_bytes())
    assert [each["name"] for each in metadata["creator"]] == ["A. Writer", "B. Writer"]
    (folder / "card.yaml").write_text(card, encoding="utf-8")


def test_a_challenge_made_of_it_hands_out_no_place_and_no_year(place: Path, published: Path) -> None:
    material = from_benchmark("kept_rows/test", None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CIR_LEADERBOARD_HOME", str(place / "board"))
        rules = Rules(
            "autumn_rows", "Autumn", ground_truth=str(place / "truth.jsonl"), phases=(default_phase(),)
        )
        done = make(material, rules)
    said = texts(done.public)
    assert said
    assert {name: local(place, text) for name, text in said.items() if local(place, text)} == {}
    assert not cir_datasets.spec("autumn_rows/test").card.paper.known

"""The pictures that pages show: only those that the package draws, of the galleries that boards rank."""

from __future__ import annotations

import io
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from PIL import Image

from cir_datasets import shapes
from cir_datasets.registry import spec
from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.pages.pictures import picture, picture_path, task_example
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.web import site_routes

PATH = picture_path(spec("shapes/val"), "val-000123")


@pytest.fixture
def site(tmp_path: Path) -> TestClient:
    app = FastAPI()
    app.include_router(site_routes.router(Server.open(Settings(tmp_path / "home"))))
    return TestClient(app)


def test_a_picture_is_what_the_package_draws() -> None:
    with Image.open(io.BytesIO(picture(PATH))) as opened:
        assert opened.format == "PNG"
        assert np.array_equal(np.asarray(opened), shapes.pixels(shapes.scene("val-000123")))


@pytest.mark.parametrize(
    ("benchmark", "image"),
    [
        ("cirr/val", "dev-1-0-img0"),
        ("circo/val", "000000000042"),
        ("shapes/val", "dev-1-0-img0"),
        ("shapes/val", "clip-000012/000003.jpg"),
        ("shapes/val", "val-000123\n"),
        ("shapes/val", "../../etc/passwd"),
    ],
)
def test_what_may_not_be_shown_has_no_path(benchmark: str, image: str) -> None:
    assert picture_path(spec(benchmark), image) == ""


@pytest.mark.parametrize(
    "path",
    [
        "site/pictures/shapes/2/val-999999.png",
        "site/pictures/shapes/1/val-000123.png",
        "site/pictures/shapes/2/train-000001.png",
        "site/pictures/shapes/2/none-000001.png",
        "site/pictures/shapes/2/val-000123.png/",
        "site/pictures/shapes/2/../2/val-000123.png",
        "site/pictures/shapes/2/val-00012३.png",
        "site/pictures/",
        "",
    ],
)
def test_there_is_no_other_picture(path: str) -> None:
    with pytest.raises(UnknownNameError, match=r"no (picture|image)"):
        picture(path)


def test_the_example_of_the_task_is_drawn_where_no_board_ranks_its_gallery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_LEADERBOARD_BOARDS", "own")
    text = (resources.files("leaderboard") / "boards/cirr_val.yaml").read_text()
    (tmp_path / "home/boards").mkdir(parents=True)
    (tmp_path / "home/boards/own.yaml").write_text(text.replace("id: cirr/val", "id: own/cirr"))
    server = Server.open(Settings(tmp_path / "home"))
    try:
        assert boards.ids() == ("own/cirr",)
        for part in ("reference", "target", "near_miss"):
            with Image.open(io.BytesIO(picture(task_example()[part]["path"]))) as opened:
                assert opened.size == (96, 96)
        with pytest.raises(UnknownNameError):
            picture("site/pictures/shapes/2/train-000001.png")
    finally:
        server.close()
        monkeypatch.undo()
        boards.use(None)


def test_a_browser_may_keep_a_picture(site: TestClient) -> None:
    answer = site.get(f"/{PATH}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/png"
    assert "immutable" in answer.headers["cache-control"]
    assert answer.content == picture(PATH)
    assert site.get("/site/pictures/shapes/2/val-999999.png").status_code == 404

"""`cir make zerosight` from video files to a benchmark that is loaded, run and scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from fisd_runs import content
from PIL import Image
from retrieval_models import save_vit
from typer.testing import CliRunner

from cir_datasets.construction.zerosight.options import Thresholds, load_thresholds
from cir_datasets.errors import ConstructionError
from cir_datasets.shapes import clip, pixels, scene
from examples.clips import write_clips
from leaderboard.cli import build

VIDEOS = 5


def call(*arguments: str) -> str:
    made = CliRunner().invoke(build(), list(map(str, arguments)))
    if isinstance(made.exception, ConstructionError):
        raise made.exception
    assert made.exit_code == 0, made.output
    return made.output


def rows(folder: Path, stage: str) -> list[dict[str, Any]]:
    (path,) = folder.glob(f"[0-9][0-9]-{stage}.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clips")
    write_clips(folder, VIDEOS)
    return folder


def make(clips: Path, out: Path, *more: str) -> str:
    return call(
        "make", "zerosight", "--videos", str(clips), "--out", str(out), "--thresholds", "shapes",
        "--unknown-dates", "keep", "--name", "my_frames", *more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(clips: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "out"
    make(clips, out)
    return out


def test_every_triple_obeys_its_thresholds(made: Path) -> None:
    obey(made, load_thresholds("shapes"))


def obey(made: Path, limits: Thresholds) -> None:
    """What all references and targets keep to: the limits of sight and meaning, each by its own vectors."""
    ids = [row["image"] for row in rows(made, "frames")]
    place = {image: number for number, image in enumerate(ids)}
    visual = np.load(made / "03-visual.npy").astype(np.float64)
    semantic = np.load(made / "04-semantic.npy").astype(np.float64)
    queries = [row for row in rows(made, "review") if not row.get("failed")]
    assert queries
    for query in queries:
        reference = place[query["reference"]]
        targets = [place[image] for image in (*query["positives"], *query["negatives"])]
        for vectors, (low, high) in ((visual, limits.target_visual), (semantic, limits.target_semantic)):
            cosines = vectors[targets] @ vectors[reference]
            assert (cosines >= low - 1e-6).all()
            assert (cosines <= high + 1e-6).all()
        among = visual[targets] @ visual[targets].T
        np.fill_diagonal(among, 0)
        assert (among < limits.mutual_visual).all()
        assert len({ids[target].split("/")[0] for target in (reference, *targets)}) == 1
    kept = [place[row["image"]] for row in rows(made, "kept_references") if not row.get("failed")]
    for first in kept:
        for second in kept:
            if first < second and ids[first].split("/")[0] == ids[second].split("/")[0]:
                assert visual[first] @ visual[second] < limits.reference_visual
                assert semantic[first] @ semantic[second] < limits.reference_semantic


FILMS = {"still.webm": ("libvpx", 30, 23), "still.mkv": ("mpeg4", 25, 31)}
"""Videos of one picture, which give no query: codec, frames a second, frames."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over clips and other films by two encoders: a small ViT sees, the encoder of shapes means."""
    folder = tmp_path_factory.mktemp("mixed")
    write_clips(folder / "videos", 3)
    for number, (name, (codec, rate, length)) in enumerate(FILMS.items()):
        picture = av.VideoFrame.from_ndarray(pixels(scene(f"val-{number:06d}")), format="rgb24")
        with av.open(str(folder / "videos" / name), "w") as out:
            stream = out.add_stream(codec, rate=rate)
            stream.width, stream.height, stream.pix_fmt = picture.width, picture.height, "yuv420p"
            for _ in range(length):
                out.mux(stream.encode(picture))
                picture.pts = None
            out.mux(stream.encode(None))
    limits = load_thresholds("shapes").model_dump() | SIGHT
    (folder / "limits.yaml").write_text(json.dumps(limits))
    call(
        "make", "zerosight", "--videos", folder / "videos", "--out", folder / "out",
        "--unknown-dates", "keep", "--vit-encoder", save_vit(folder / "vit", seed=1),
        "--thresholds", folder / "limits.yaml", "--pool-frames", "raw", "--pictures", "png",
    )  # fmt: skip
    return folder


SIGHT = {"reference_visual": 0.99995, "target_visual": [0.9, 0.9999], "mutual_visual": 0.99999}
"""Limits for a ViT that was never trained: all pictures look nearly alike to it."""


@pytest.mark.slow
def test_two_encoders_filter_each_by_its_own_limits(mixed: Path) -> None:
    made = mixed / "out"
    limits = load_thresholds(str(mixed / "limits.yaml"))
    obey(made, limits)
    visual, semantic = np.load(made / "03-visual.npy"), np.load(made / "04-semantic.npy")
    assert (visual.shape[1], semantic.shape[1]) == (24, 128)
    place = {row["image"]: number for number, row in enumerate(rows(made, "frames"))}
    meanings = [
        semantic[place[row["reference"]]] @ semantic[place[target["image"]]]
        for row in rows(made, "targets") if not row.get("failed")
        for target in row["targets"]
    ]  # fmt: skip
    # By the limits of the other encoder these would not be targets.
    assert min(meanings) < limits.target_visual[0]
    noted = (made / "benchmark" / "card.yaml").read_text()
    assert "vit" in noted
    assert "shapes" in noted


@pytest.mark.slow
def test_the_raw_pool_has_every_fifth_frame_of_all_videos_without_a_query(mixed: Path) -> None:
    made = mixed / "out"
    pool = [row["image"] for row in rows(made, "pool") if row["from"] == "other video"]
    used = {row["reference"].split("/")[0] for row in rows(made, "targets") if not row.get("failed")}
    expected = []
    for row in rows(made, "videos"):
        if row["video"] in used:
            continue
        with av.open(str(mixed / "videos" / row["file"])) as container:
            for number, frame in enumerate(container.decode(video=0)):
                if number % 5 == 0:
                    image = f"{row['video']}/raw-{number:06d}.png"
                    with Image.open(made / "benchmark" / "images" / image) as picture:
                        assert (np.asarray(picture) == frame.to_ndarray(format="rgb24")).all()
                    expected.append(image)
    assert pool == expected
    of_films = [image for image in pool if image.startswith("still")]
    assert len(of_films) == sum(-(-length // 5) for _, _, length in FILMS.values())
    gallery = [row["image"] for row in rows(made, "pool")]
    assert len(set(gallery)) == len(gallery)


def test_frames_are_those_of_the_scenes(made: Path) -> None:
    frames = [row for row in rows(made, "frames") if row["video"] == "clip-000001"]
    assert [row["number"] for row in frames] == list(range(len(clip(1))))


def test_the_gallery_has_targets_references_and_every_fifth_frame_of_other_videos(made: Path) -> None:
    pool = {row["image"]: row["from"] for row in rows(made, "pool")}
    still = [image for image, origin in pool.items() if origin == "other video"]
    assert still == [f"clip-000004/{second:06d}.jpg" for second in range(0, 20, 5)]
    for row in rows(made, "review"):
        assert {row["reference"], *row["positives"], *row["negatives"]} <= set(pool)


def test_counts_add_up(made: Path) -> None:
    targets = [row for row in rows(made, "targets") if not row.get("failed")]
    assert len(rows(made, "candidate_captions")) == sum(len(row["targets"]) for row in targets)
    assert len(rows(made, "consensus")) == len(targets)
    for row in rows(made, "consensus"):
        of_query = [one["target"] for one in rows(made, "candidate_captions") if one["query"] == row["query"]]
        assert sorted((*row["positives"], *row["negatives"])) == sorted(of_query)
    split = [row["split"] for row in rows(made, "split")]
    assert split.count("test") == max(1, round(len(split) / 10))


def test_the_benchmark_is_loaded_run_and_scored(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_BENCHMARKS", str(made / "benchmark"))
    file = tmp_path / "ranks.json"
    call("run", "-b", "my_frames/all", "-m", "image_text_sum", "-e", "shapes", "--out", str(file))
    scored = json.loads(call("score", str(file), "--format", "json"))
    assert "pnr_map@10" in json.dumps(scored)


@pytest.mark.slow
def test_a_review_changes_what_follows_it_alone(clips: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(clips, out)
    before = content(out)
    lines = (out / "review.csv").read_text().splitlines(keepends=True)
    (tmp_path / "done.csv").write_text(lines[0] + lines[1].replace(",,", ",drop,", 1))
    make(clips, out, "--review", str(tmp_path / "done.csv"))
    after = content(out)
    assert rows(out, "review")[0]["failed"] == "review: dropped"
    same = {name for name in before if after.get(name) == before[name]}
    assert all(f"{number:02d}-" in " ".join(sorted(same)) for number in range(1, 11))
    assert len((out / "benchmark/all.jsonl").read_text().splitlines()) == len(lines) - 2


@pytest.mark.slow
def test_a_review_in_the_folder_is_left_until_it_is_taken_in_and_holds_from_then_on(
    clips: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    make(clips, out)
    table = out / "review.csv"
    lines = table.read_text().splitlines(keepends=True)
    written = lines[0] + lines[1].replace(",,", ",drop,", 1) + "".join(lines[2:])
    table.write_text(written)
    assert "was not taken in" in make(clips, out)
    assert table.read_text() == written
    assert rows(out, "review")[0]["verdict"] == ""
    assert "was not taken in" not in make(clips, out, "--review", str(table))
    assert table.read_text() == written
    (tmp_path / "second.csv").write_text(lines[0] + lines[2].replace(",,", ",drop,", 1))
    make(clips, out, "--review", str(tmp_path / "second.csv"))
    assert [row["verdict"] for row in rows(out, "review")[:3]] == ["drop", "drop", ""]
    before = content(out)
    make(clips, out, "--review", str(tmp_path / "second.csv"))
    assert content(out) == before


@pytest.mark.slow
def test_where_people_drop_everything_there_is_no_benchmark(clips: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(clips, out)
    head, *lines = (out / "review.csv").read_text().splitlines(keepends=True)
    (tmp_path / "done.csv").write_text(head + "".join(line.replace(",,", ",drop,", 1) for line in lines))
    with pytest.raises(ConstructionError, match="no query is left, see its report"):
        make(clips, out, "--review", str(tmp_path / "done.csv"))
    assert all(row["failed"] == "review: dropped" for row in rows(out, "review"))
    assert not (out / "benchmark" / "card.yaml").exists()
    assert "0 queries" in (out / "report.html").read_text()


@pytest.mark.slow
def test_the_released_consensus_drops_what_has_no_neighbour(clips: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(clips, out, "--consensus", "released", "--neighbour", "1", "--pool-frames", "raw")
    raw = [row["image"] for row in rows(out, "pool") if row["from"] == "other video"]
    assert raw[:3] == [f"clip-000004/raw-{number:06d}.jpg" for number in (0, 5, 10)]
    assert len(raw) == 16
    for row in rows(out, "consensus"):
        assert row.get("failed") or len(set(row["captions"])) == 1


@pytest.mark.slow
def test_no_video_that_is_late_enough_is_said(clips: Path, tmp_path: Path) -> None:
    with pytest.raises(ConstructionError, match="its date is not known"):
        call("make", "zerosight", "--videos", str(clips), "--out", str(tmp_path / "out"))
    # What the message says can be done.
    make(clips, tmp_path / "out")


def test_files_that_cannot_be_opened_are_not_told_of_dates(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/notes.mp4").write_text("not a video")
    with pytest.raises(ConstructionError, match="it cannot be opened") as caught:
        call("make", "zerosight", "--videos", str(tmp_path / "in"), "--out", str(tmp_path / "out"))
    assert "unknown-dates" not in str(caught.value)


def test_the_estimate_asks_nothing(clips: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    asked = ["make", "zerosight", "--videos", str(clips), "--out", out]
    asked += ["--unknown-dates", "keep", "--dry-run"]

    def dry(*more: str) -> str:
        return " ".join(call(*asked, *more).split())

    said = dry()
    assert "5 of 5 videos" in said
    assert "candidate captions" in said
    assert "1 at once" in said
    assert "16 at once" in dry("--language", "openai:gpt-4o,concurrency=16")
    assert "3 at once" in dry("--language", "openai:gpt-4o,concurrency=16", "--concurrency", "3")
    unknown = CliRunner().invoke(build(), [*asked, "--language", "opneai:gpt-4o"])
    assert "no language backend" in str(unknown.exception or unknown.output)
    assert not (tmp_path / "out").exists()


def test_categories_of_videos_are_columns_counted_and_scored(
    clips: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(path.name for path in clips.glob("*") if path.suffix != ".csv")
    for name in files:
        (tmp_path / "clips" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "clips" / name).symlink_to(clips / name)
    kinds = {name: ("Music", "Piano") if place % 2 else ("Sports", "") for place, name in enumerate(files)}
    lines = [f"{name},2023-01-01,{','.join(kind)}" for name, kind in kinds.items()]
    (tmp_path / "clips" / "metadata.csv").write_text("\n".join(["file,date,category,subcategory", *lines]))
    out = tmp_path / "out"
    make(tmp_path / "clips", out)
    video = {row["image"]: row["video"] for row in rows(out, "frames")}
    by_video = {Path(name).stem: kind for name, kind in kinds.items()}
    queries = [json.loads(line) for line in (out / "benchmark" / "all.jsonl").read_text().splitlines()]
    for query in queries:
        expected = by_video[video[query["reference_image_id"]]]
        assert (query["video_category"], query.get("video_subcategory") or "") == expected
    monkeypatch.setenv("CIR_BENCHMARKS", str(out / "benchmark"))
    sports = sum(query["video_category"] == "Sports" for query in queries)
    counted = json.loads(call("datasets", "stats", "my_frames/all", "--no-tags", "--json"))
    (one,) = counted if isinstance(counted, list) else [counted["benchmarks"][0]]
    assert one["video_categories"] == {"Music / Piano": len(queries) - sports, "Sports / ": sports}
    assert "VIDEO CATEGORY" in call("datasets", "stats", "my_frames/all", "--no-tags")
    call("run", "--method", "random", "--benchmark", "my_frames/all", "--out", str(tmp_path / "run.json"))
    shown = json.loads(call("score", str(tmp_path / "run.json"), "--json"))
    groups = {group["video category"]: group for group in shown["by_video_category"]}
    assert {name: group["queries"] for name, group in groups.items()} == {
        "Music": len(queries) - sports, "Sports": sports,
    }  # fmt: skip
    metric = next(name for name in shown["metrics"] if name in groups["Music"])
    mean = sum(group[metric] * group["queries"] for group in groups.values()) / len(queries)
    assert mean == pytest.approx(shown["metrics"][metric])
    assert [group["video subcategory"] for group in shown["by_video_subcategory"]] == ["Piano"]
    assert "video_category" not in (made / "benchmark" / "all.jsonl").read_text()

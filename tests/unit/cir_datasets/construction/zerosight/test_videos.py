"""Real video files: dates, rotations, odd frame rates, and files that are damaged."""

from __future__ import annotations

import os
import pickle
from datetime import date
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import orjson
import pytest
from PIL import Image

from cir_datasets.construction.zerosight import frames
from cir_datasets.construction.zerosight.frames import FrameWriter
from cir_datasets.construction.zerosight.options import ZeroSightOptions
from cir_datasets.construction.zerosight.videos import digest_of, files_in, video_rows
from cir_datasets.errors import ConstructionError

KEEP = ZeroSightOptions(unknown_dates="keep")


def video(
    path: Path,
    milliseconds: list[int],
    *,
    size: tuple[int, int] = (64, 32),
    codec: str = "mpeg4",
    **said: str,
) -> Path:
    """A video whose n-th frame, shown at that time, is grey of 10 times n."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as out:
        out.metadata.update(said)
        stream = out.add_stream(codec, rate=1000)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        for place, time in enumerate(milliseconds):
            frame = av.VideoFrame.from_ndarray(
                np.full((size[1], size[0], 3), min(250, 10 * place), np.uint8), format="rgb24"
            )
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path


def frames_of(folder: Path, out: Path, **options: bool) -> list[dict[str, object]]:
    rows = [row for row in video_rows(folder, files_in(folder), KEEP) if not row.get("failed")]
    return FrameWriter(folder, out, "png", **options)(rows)


def test_one_frame_a_second_of_a_video_whose_frames_come_unevenly(tmp_path: Path) -> None:
    video(tmp_path / "in/a.mkv", [0, 300, 900, 1100, 1200, 4500, 4600, 5000])
    rows = frames_of(tmp_path / "in", tmp_path / "out")
    assert [row["number"] for row in rows] == [0, 1, 4, 5]
    greys = [
        round(
            float(np.asarray(Image.open(tmp_path / "out/benchmark/images" / str(row["image"]))).mean()) / 10
        )
        for row in rows
    ]
    assert greys == [0, 3, 5, 7]
    assert rows[0] == {"image": "a/000000.png", "video": "a", "number": 0, "width": 64, "height": 32}


def test_every_fifth_of_all_frames(tmp_path: Path) -> None:
    video(tmp_path / "in/a.mkv", list(range(0, 1200, 100)))
    rows = frames_of(tmp_path / "in", tmp_path / "out", raw=True)
    assert [row["image"] for row in rows] == ["a/raw-000000.png", "a/raw-000005.png", "a/raw-000010.png"]


def test_workers_of_a_cluster_write_the_same_pictures(tmp_path: Path) -> None:
    video(tmp_path / "in/a.mkv", [0, 1000])
    rows = list(video_rows(tmp_path / "in", files_in(tmp_path / "in"), KEEP))
    here = FrameWriter(tmp_path / "in", tmp_path / "here", "jpg")
    there = pickle.loads(pickle.dumps(FrameWriter(tmp_path / "in", tmp_path / "there", "jpg")))
    assert here(rows) == there(rows)
    for number in range(2):
        one, other = (tmp_path / name / f"benchmark/images/a/{number:06d}.jpg" for name in ("here", "there"))
        assert one.read_bytes() == other.read_bytes()


def test_a_video_of_one_frame_has_one(tmp_path: Path) -> None:
    video(tmp_path / "in/a.mp4", [0])
    assert [row["number"] for row in frames_of(tmp_path / "in", tmp_path / "out")] == [0]


def test_a_rotation_is_undone(tmp_path: Path) -> None:
    plain = video(tmp_path / "plain.mp4", [0, 500])
    turned = tmp_path / "in/turned.mp4"
    turned.parent.mkdir()
    content = bytearray(plain.read_bytes())
    # The matrix of the track's header: 90 degrees to the right, as phones write it.
    start = content.index(b"tkhd") + 4 + 40
    matrix = (0, 1 << 16, 0, (1 << 32) - (1 << 16), 0, 0, 0, 0, 1 << 30)
    content[start : start + 36] = b"".join(number.to_bytes(4, "big") for number in matrix)
    turned.write_bytes(bytes(content))
    (row,) = frames_of(tmp_path / "in", tmp_path / "out")
    assert (row["width"], row["height"]) == (32, 64)


def test_broken_and_empty_videos_are_kept_with_the_reason(tmp_path: Path) -> None:
    whole = video(tmp_path / "in/whole.mkv", list(range(0, 60_000, 100)), size=(320, 240))
    (tmp_path / "in/empty.mp4").write_bytes(b"")
    (tmp_path / "in/noise.mp4").write_bytes(bytes(range(256)) * 20)
    content = whole.read_bytes()
    (tmp_path / "in/cut.mkv").write_bytes(content[: len(content) // 2])
    with av.open(str(tmp_path / "in/sound.mkv"), "w") as out:
        stream = out.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8000
        out.mux(stream.encode(frame))
    rows = {row["video"]: row for row in video_rows(tmp_path / "in", files_in(tmp_path / "in"), KEEP)}
    assert rows["sound"]["failed"] == "it has no pictures"
    assert rows["empty"]["failed"].startswith("it cannot be opened")
    assert rows["noise"]["failed"].startswith("it cannot be opened")
    assert str(tmp_path) not in str(rows)
    made = frames_of(tmp_path / "in", tmp_path / "out")
    of_cut = [row for row in made if row["video"] == "cut" and "image" in row]
    assert 0 < len(of_cut) < 60
    assert sum(row["video"] == "whole" for row in made) == 60


def test_dates_come_from_the_table_else_from_the_container(tmp_path: Path) -> None:
    for name, said in (("a", "2021-05-01T10:00:00Z"), ("b", "2023-05-01T10:00:00Z"), ("c", "")):
        video(tmp_path / f"{name}.mkv", [0], **({"creation_time": said} if said else {}))
    video(tmp_path / "d.mkv", [0])
    (tmp_path / "metadata.csv").write_text("file,date\na.mkv,2022-04-01\nd.mkv,2022-03-31\n")
    rows = {row["video"]: row for row in video_rows(tmp_path, files_in(tmp_path), ZeroSightOptions())}
    assert (rows["a"]["date"], rows["a"]["date_from"]) == ("2022-04-01", "metadata")
    assert (rows["b"]["date"], rows["b"]["date_from"]) == ("2023-05-01", "container")
    assert {name: row.get("failed") for name, row in rows.items()} == {
        "a": None,
        "b": None,
        "c": "its date is not known",
        "d": "it is not after 2022-03-31",
    }
    (tmp_path / "metadata.csv").write_text(
        "file,date,category,subcategory\na.mkv,2022-04-01,Sports,Ball  games\nd.mkv,2023-03-31,,\n"
    )
    categories = ("video_category", "video_subcategory")
    named = {row["video"]: row for row in video_rows(tmp_path, files_in(tmp_path), ZeroSightOptions())}
    assert [named["a"][name] for name in categories] == ["Sports", "Ball games"]
    assert not any(name in named[video] for name in categories for video in "bcd")
    every = video_rows(tmp_path, files_in(tmp_path), ZeroSightOptions(after=None))
    assert not any(row.get("failed") for row in every)
    later = ZeroSightOptions(after=date(2022, 4, 1), unknown_dates="keep", limit=3)
    assert [row.get("failed") for row in video_rows(tmp_path, files_in(tmp_path), later)] == [
        "it is not after 2022-04-01",
        None,
        None,
    ]


def test_ids_are_paths_without_what_breaks_tables(tmp_path: Path) -> None:
    for name in ("x/my talk.mp4", "x/my_talk.mkv", "ü.mp4"):
        video(tmp_path / name, [0])
    assert [row["video"] for row in video_rows(tmp_path, files_in(tmp_path), KEEP)] == [
        "x/my_talk",
        "x/my_talk-2",
        "ü",
    ]


def test_the_digest_follows_content_and_tables(tmp_path: Path) -> None:
    video(tmp_path / "a.mkv", [0])
    before = digest_of(tmp_path, files_in(tmp_path))
    (tmp_path / "metadata.jsonl").write_text('{"file": "a.mkv", "date": "2024-01-01"}\n')
    assert digest_of(tmp_path, files_in(tmp_path)) != before


@pytest.mark.parametrize("text", ["file,date\n,2022-01-01\n", "file,date\na.mkv,soon\n"])
def test_a_table_of_dates_is_checked(tmp_path: Path, text: str) -> None:
    video(tmp_path / "a.mkv", [0])
    (tmp_path / "metadata.csv").write_text(text)
    with pytest.raises(ConstructionError, match="line 2 has no file or no date"):
        list(video_rows(tmp_path, files_in(tmp_path), KEEP))


def test_a_folder_without_videos_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConstructionError, match="no video in it"):
        files_in(tmp_path)
    with pytest.raises(ConstructionError, match="no such folder"):
        files_in(tmp_path / "missing")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("metadata.csv", 'file,date\n"a.mkv,2022-01-01\n' + "x" * 140_000, "line 2: it is not CSV"),
        ("metadata.csv", "file,day\na.mkv,2022-01-01\n", "line 1 does not name the columns date"),
        ("metadata.csv", "file,date\na.mkv,2022-01-01\na.mkv,2023-01-01\n", "metadata.csv, line 2, too"),
        ("metadata.jsonl", "\n[1]\n", "line 2 is not an object"),
        ("metadata.jsonl", '"x"\n', "line 1 is not an object"),
        ("metadata.jsonl", "{\n", "line 1 is not JSON"),
    ],
    ids=["open", "column", "twice", "list", "text", "cut"],
)
def test_a_table_of_dates_that_is_something_else_is_named(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    video(tmp_path / "a.mkv", [0])
    (tmp_path / name).write_text(text)
    with pytest.raises(ConstructionError, match=said):
        list(video_rows(tmp_path, files_in(tmp_path), KEEP))


def test_what_is_no_video_after_all_is_a_row_with_the_reason(tmp_path: Path) -> None:
    video(tmp_path / "a.mkv", [0])
    (tmp_path / "gone.mp4").symlink_to(tmp_path / "missing.mp4")
    (tmp_path / os.fsdecode(b"\xff.mkv")).write_bytes((tmp_path / "a.mkv").read_bytes())
    (tmp_path / "metadata.csv").write_text("file,date\na.mkv,2023-01-01\nb.mkv,2023-01-01\n")
    files = files_in(tmp_path)
    assert digest_of(tmp_path, files) == digest_of(tmp_path, files)
    rows = [orjson.loads(orjson.dumps(row)) for row in video_rows(tmp_path, files, KEEP)]
    assert {row["file"]: row.get("failed") for row in rows} == {
        "a.mkv": None,
        "gone.mp4": "it cannot be opened: No such file or directory",
        "\\xff.mkv": "its name is not UTF-8",
        "b.mkv": "a table of dates names it, and there is no such video",
    }


def test_a_pipe_among_the_videos_is_a_row_with_the_reason(tmp_path: Path) -> None:
    video(tmp_path / "in/a.mkv", [0])
    os.mkfifo(tmp_path / "in/b.mp4")
    files = files_in(tmp_path / "in")
    assert digest_of(tmp_path / "in", files) == digest_of(tmp_path / "in", files)
    good, pipe = video_rows(tmp_path / "in", files, KEEP)
    assert "failed" not in good
    assert "no regular file" in str(pipe["failed"])


def test_a_long_video_gives_so_many_frames_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MOST_FRAMES", 3)
    video(tmp_path / "in/a.mkv", [1000 * second for second in range(5)])
    video(tmp_path / "in/b.mkv", [1000 * second for second in range(3)])
    *rows, last = frames_of(tmp_path / "in", tmp_path / "out")[:4]
    assert [row["number"] for row in rows] == [0, 1, 2]
    assert last == {"video": "a", "failed": "only its first 3 frames are taken; for more cut it up"}
    assert len(list((tmp_path / "out").rglob("a/*.png"))) == 3
    assert len(list((tmp_path / "out").rglob("b/*.png"))) == 3

"""The stages of a run on disk: resumed runs, what a person may change there, and what is refused."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest

from cir_datasets.common import stages as room
from cir_datasets.common.stages import Stages, StageState
from cir_datasets.construction.workspace import Workspace
from cir_datasets.errors import ConstructionError
from cir_metrics.errors import CirError, UnknownNameError

STAGES = {"captions": "captions pictures", "features": "encodes them", "words": "asks", "last": "ends"}
SETTINGS = {"seed": 7, "encoder": {"model": "shapes"}}


class KilledError(BaseException):
    """Ends a run as a signal would: nothing catches it."""


def opened(folder: Path, **changed: Any) -> Workspace:
    return Workspace(folder, "circled", STAGES, {**SETTINGS, **changed})


def work(folder: Path, asked: list[int] | None = None) -> Workspace:
    """A run of all four stages; `asked` gets what the third one was called for."""

    def words(chunk: Sequence[int]) -> list[dict[str, Any]]:
        if asked is not None:
            asked.extend(chunk)
        return [
            {"item": item} if item % 3 else {"item": item, "failed": "it is one of three"} for item in chunk
        ]

    made = opened(folder)
    captions = made.rows("captions", lambda: [{"image": str(n), "caption": f"a {n}"} for n in range(7)])
    made.vectors("features", lambda: np.arange(14, dtype=np.float32).reshape(7, 2))
    rows = made.rows_in_chunks("words", list(range(len(captions))), words, size=2)
    made.rows("last", lambda: [row for row in rows if not row.get("failed")])
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def test_stages_are_files_that_a_person_can_read(tmp_path: Path) -> None:
    work(tmp_path)
    assert sorted(contents(tmp_path)) == [
        "01-captions.jsonl",
        "02-features.npy",
        "03-words.jsonl",
        "04-last.jsonl",
        "make.json",
    ]
    assert (tmp_path / "03-words.jsonl").read_text().splitlines()[:2] == [
        '{"item":0,"failed":"it is one of three"}',
        '{"item":1}',
    ]
    made = Workspace.existing(tmp_path)
    assert [(one.name, one.finished, one.rows, one.failed) for one in made.states()] == [
        ("captions", True, 7, 0),
        ("features", True, 7, 0),
        ("words", True, 7, 3),
        ("last", True, 4, 0),
    ]
    assert (made.kind, made.settings) == ("circled", SETTINGS)


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    work(tmp_path)
    before = contents(tmp_path)
    again: list[int] = []
    work(tmp_path, again)
    assert again == []
    assert contents(tmp_path) == before


def counting_writes(patch: pytest.MonkeyPatch, end_at: int) -> None:
    """End the run as a kill would before one of its writes; a line that is appended is there by half then."""
    left = end_at
    write, fsync = room.write_whole, os.fsync

    def one_less() -> bool:
        nonlocal left
        left -= 1
        return left == 0

    def whole(path: Path, content: bytes, **options: Any) -> None:
        if one_less():
            raise KilledError
        write(path, content, **options)

    def synced(file: int) -> None:
        if one_less():
            with contextlib.suppress(OSError):  # of a folder
                os.truncate(file, os.fstat(file).st_size - 5)
            raise KilledError
        fsync(file)

    patch.setattr(room, "write_whole", whole)
    patch.setattr(room.os, "fsync", synced)
    patch.setattr(room, "_SYNC_SECONDS", 0.0)


def test_a_run_that_was_killed_before_any_of_its_writes_ends_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = contents(work(tmp_path / "whole").folder)
    writes = 0
    for kill_at in range(1, 100):
        folder = tmp_path / f"killed-{kill_at}"
        asked: list[int] = []
        with monkeypatch.context() as patch:
            counting_writes(patch, kill_at)
            try:
                work(folder, asked)
            except KilledError:
                writes = kill_at
            else:
                break
        work(folder, asked)
        assert contents(folder) == whole, kill_at
        assert len(asked) <= 7 + 2, "a chunk at most is made twice"
    assert writes > 10


def test_the_parts_of_an_unfinished_stage_are_counted(tmp_path: Path) -> None:
    made = opened(tmp_path)

    def stop(chunk: Sequence[int]) -> list[dict[str, Any]]:
        if 4 in chunk:
            raise KilledError
        return [{"item": item} for item in chunk]

    made.rows("captions", list)
    with pytest.raises(KilledError):
        made.rows_in_chunks("words", [0, 1, 2, 3, 4], stop, size=2)
    third = Workspace.existing(tmp_path).states()[2]
    assert third == StageState("words", "asks", tmp_path / "03-words.jsonl", finished=False, parts=2)


def test_chunks_may_come_back_in_any_order(tmp_path: Path) -> None:
    class Backwards:
        def map(self, work: Any, chunks: Any) -> Iterator[tuple[int, Any]]:
            for number, chunk in reversed(list(chunks)):
                yield number, work(chunk)

    def words(chunk: Sequence[int]) -> list[dict[str, Any]]:
        return [{"item": item} for item in chunk]

    one = opened(tmp_path / "one").rows_in_chunks("words", range(9), words, size=4)
    two = opened(tmp_path / "two").rows_in_chunks("words", range(9), words, size=4, engine=Backwards())
    assert one == two == [{"item": item} for item in range(9)]
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_other_settings_are_named(tmp_path: Path) -> None:
    opened(tmp_path)
    with pytest.raises(ConstructionError, match=r"settings \(limit None, not 3; seed 7, not 8\)\. Fix: call"):
        opened(tmp_path, seed=8, limit=3)
    with pytest.raises(ConstructionError, match=r"other settings \(pipeline\)"):
        Workspace(tmp_path, "cirr", STAGES, SETTINGS)


def test_a_stage_that_a_person_has_changed_is_not_built_upon_in_silence(tmp_path: Path) -> None:
    work(tmp_path)
    path = tmp_path / "01-captions.jsonl"
    path.write_bytes(path.read_bytes().replace(b"a 3", b"a three"))
    with pytest.raises(
        ConstructionError, match=r"01-captions\.jsonl: it was changed .*cir make again .*--from"
    ):
        opened(tmp_path)
    path.unlink()
    with pytest.raises(ConstructionError, match=r"01-captions\.jsonl: it is gone"):
        opened(tmp_path)


def test_changes_are_taken_where_the_next_stage_is_made_anew(tmp_path: Path) -> None:
    work(tmp_path)
    path = tmp_path / "01-captions.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    Workspace.existing(tmp_path).forget_from("features")
    asked: list[int] = []
    work(tmp_path, asked)
    assert asked == [0, 1, 2, 3]
    assert Workspace.existing(tmp_path).states()[0].rows == 4


def test_changes_of_the_last_stage_are_taken_as_the_message_says(tmp_path: Path) -> None:
    work(tmp_path)
    path = tmp_path / "04-last.jsonl"
    path.write_bytes(b'{"item":1,"by":"a person"}\n')
    with pytest.raises(ConstructionError, match=r"--from last`, which makes .* --from result` takes your"):
        opened(tmp_path)
    before = path.read_bytes()
    assert Workspace.existing(tmp_path).forget_from("result") == []
    work(tmp_path)
    assert path.read_bytes() == before
    assert [one.rows for one in Workspace.existing(tmp_path).states()] == [7, 7, 7, 1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"image":"2"}', r"line 3: it has no caption, which each row of the stage has\. Fix: add it"),
        (b'{"image":"2","capt', r"line 3: it is not JSON"),
        (b'["image"]', r"line 3: it is not a JSON object"),
    ],
)
def test_changes_that_cannot_be_gone_on_with_are_refused_with_their_line(
    tmp_path: Path, line: bytes, said: str
) -> None:
    work(tmp_path)
    path = tmp_path / "01-captions.jsonl"
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:2], line, *lines[3:]]) + b"\n")
    with pytest.raises(ConstructionError, match=rf"01-captions\.jsonl, {said}.*--from captions`"):
        Workspace.existing(tmp_path).forget_from("features")
    path.write_bytes(b"\n".join([*lines[:2], b'{"failed":"a person drops it"}', *lines[3:]]) + b"\n")
    Workspace.existing(tmp_path).forget_from("features")
    assert Workspace.existing(tmp_path).states()[0].failed == 1


def test_stages_can_be_forgotten(tmp_path: Path) -> None:
    work(tmp_path)
    before = contents(tmp_path)
    removed = Workspace.existing(tmp_path).forget_from("words")
    assert [path.name for path in removed] == ["03-words.jsonl", "04-last.jsonl"]
    assert [one.finished for one in Workspace.existing(tmp_path).states()] == [True, True, False, False]
    asked: list[int] = []
    work(tmp_path, asked)
    assert asked == list(range(7))
    assert contents(tmp_path) == before
    with pytest.raises(UnknownNameError, match=r"no stage 'word'\. Did you mean 'words'"):
        Workspace.existing(tmp_path).forget_from("word")


def test_a_benchmark_is_none_from_when_its_stages_are_forgotten(tmp_path: Path) -> None:
    work(tmp_path)
    card, rows = tmp_path / "benchmark" / "card.yaml", tmp_path / "benchmark" / "queries.jsonl"
    card.parent.mkdir()
    for path in (card, rows):
        path.write_text("")
    assert card in Workspace.existing(tmp_path).forget_from("last")
    assert rows.is_file()


def test_what_the_result_is_called_is_no_setting_and_the_last_call_says_it(tmp_path: Path) -> None:
    work(tmp_path)
    opened(tmp_path, called={"name": "mine"})
    opened(tmp_path, called={"name": "other"})
    assert Workspace.existing(tmp_path).settings == {**SETTINGS, "called": {"name": "other"}}


def test_many_stages_are_listed_over_several_lines(tmp_path: Path) -> None:
    Workspace(tmp_path, "circled", {f"a-stage-{n}": "works" for n in range(30)}, {})
    with pytest.raises(UnknownNameError) as caught:
        Workspace.existing(tmp_path).forget_from("turns")
    lines = str(caught.value).splitlines()
    assert len(lines) > 3
    assert max(map(len, lines)) <= 100
    assert lines[-1].endswith("a-stage-29, result")


def test_stages_that_were_being_forgotten_when_the_call_ended_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = contents(work(tmp_path / "whole").folder)
    names = ("write_whole", "unlink", "rmtree")
    real = {"write_whole": room.write_whole, "unlink": Path.unlink, "rmtree": shutil.rmtree}
    ended = 0
    for end_at in range(1, 100):
        folder = work(tmp_path / f"ended-{end_at}").folder
        (folder / "04-last.parts").mkdir()
        (folder / "02-features.npy").write_bytes(b"damaged")
        left = end_at

        def counted(name: str) -> Callable[..., Any]:
            def call(*given: Any, **options: Any) -> Any:
                nonlocal left
                left -= 1
                if not left:
                    raise KilledError
                return real[name](*given, **options)

            return call

        with monkeypatch.context() as patch:
            patch.setattr(room, "write_whole", counted(names[0]))
            patch.setattr(Path, "unlink", counted(names[1]))
            patch.setattr(shutil, "rmtree", counted(names[2]))
            try:
                Workspace.existing(folder).forget_from("features")
            except KilledError:
                ended = end_at
            else:
                break
        if end_at == 1:
            # Nothing was forgotten yet, and the person's change is still there.
            with pytest.raises(ConstructionError, match="was changed since it was made"):
                opened(folder)
            continue
        asked: list[int] = []
        work(folder, asked)
        assert asked == list(range(7))
        assert contents(folder) == whole
    assert ended >= 6


DONE = b"""{"format": 1, "pipeline": "circled", "stages": {"captions": ""}, "settings": {},
"done": {"captions": {"rows": 3}}}"""


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"pipeline": "circled"}', b"\xff", DONE])
def test_a_damaged_state_explains_itself(tmp_path: Path, damage: bytes) -> None:
    opened(tmp_path)
    (tmp_path / "make.json").write_bytes(damage)
    for look in (opened, Workspace.existing):
        with pytest.raises(ConstructionError, match=r"make\.json: it is damaged\. Fix: "):
            look(tmp_path)


@pytest.mark.parametrize("damage", [b'{"item":\n', b"7\n", b"[0, []\n[1, []]\n"])
def test_a_damaged_part_explains_itself(tmp_path: Path, damage: bytes) -> None:
    made = opened(tmp_path)
    (tmp_path / "03-words.part.jsonl").write_bytes(damage)
    with pytest.raises(ConstructionError, match=r"03-words\.part\.jsonl: it is damaged"):
        made.rows_in_chunks("words", [0], lambda chunk: [], size=1)


def test_a_run_of_version_0_1_goes_on_with_the_parts_of_its_folder(tmp_path: Path) -> None:
    whole = contents(work(tmp_path / "whole").folder)
    folder = tmp_path / "before"
    made = opened(folder)
    made.rows("captions", lambda: [{"image": str(n), "caption": f"a {n}"} for n in range(7)])
    parts = folder / "03-words.parts"
    parts.mkdir()
    (parts / "000002.jsonl").write_bytes(b'{"item":4}\n{"item":5}\n')
    (parts / ".000001.jsonl-0a1b2c3d").write_bytes(b'{"ite')
    assert made.states()[2].parts == 1
    asked: list[int] = []
    work(folder, asked)
    assert asked == [0, 1, 2, 3, 6]
    assert contents(folder) == whole
    assert not parts.exists()


def test_folders_without_a_run_and_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConstructionError, match=r"holds no run of `cir make`\. Fix: name the folder"):
        Workspace.existing(tmp_path).states()
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ConstructionError, match=r"it is a file"):
        opened(file)
    with pytest.raises(ConstructionError, match=r"cannot be written"), Workspace.held(file):
        pass


def test_a_second_program_is_refused_and_a_killed_one_leaves_the_folder_free(tmp_path: Path) -> None:
    hold = (
        "import sys, time\nfrom cir_datasets.construction.workspace import Workspace\n"
        "with Workspace.held(sys.argv[1]):\n    print('held', flush=True)\n    time.sleep(600)\n"
    )
    with forked.Process(
        [sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout.readline() == "held\n"
            with (
                pytest.raises(ConstructionError, match=r"another program writes it"),
                Workspace.held(tmp_path),
            ):
                pass
        finally:
            other.kill()
    with Workspace.held(tmp_path):
        pass


def test_a_folder_may_be_moved(tmp_path: Path) -> None:
    work(tmp_path / "here")
    shutil.move(tmp_path / "here", tmp_path / "there")
    asked: list[int] = []
    work(tmp_path / "there", asked)
    assert asked == []


def test_what_a_kill_has_left_half_written_goes_when_the_run_goes_on(tmp_path: Path) -> None:
    Stages(tmp_path, "x", {"a": "b"}, {})
    for name in (".01-a.jsonl-0123abcd", ".make.json-0123abcd"):
        (tmp_path / name).write_text("half")
    (tmp_path / ".mine-0123abcd").write_text("a user's")
    Stages(tmp_path, "x", {"a": "b"}, {})
    assert {path.name for path in tmp_path.iterdir()} == {"make.json", ".mine-0123abcd"}


def test_a_setting_inside_another_is_named(tmp_path: Path) -> None:
    Stages(tmp_path, "x", {"a": "b"}, {"plan": {"annotators": 2, "size": 6}})
    with pytest.raises(CirError, match=re.escape("other settings (annotators 2, not 3). Fix")):
        Stages(tmp_path, "x", {"a": "b"}, {"plan": {"annotators": 3, "size": 6}})

"""Dialogues on pictures of one's own."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from benchmark_world import dialogues as world
from says import says

from cir_datasets.errors import SourceError
from cir_datasets.shapes import picture
from cir_metrics.errors import CallError
from submissions.embeddings.store import EmbeddingStore
from submissions.multiround.making import make_transcript
from submissions.multiround.person import SKIPPED, PersonDialogue
from submissions.multiround.user_pictures import user_pictures
from submissions.running.options import RunOptions
from submissions.transcripts.checking import check_transcript
from submissions.transcripts.reading import read_transcript

SETTINGS = replace(world.SETTINGS, start="random", seed=5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve pictures, some of them in a folder below."""
    made = tmp_path / "pictures"
    (made / "more").mkdir(parents=True)
    for place, image in enumerate(world.GALLERY):
        picture(image).save(made / ("more" if place % 2 else ".") / f"{image}.png")
    return made


def test_sessions_between_own_pictures_are_played_and_scored(folder: Path, tmp_path: Path) -> None:
    benchmark = user_pictures(folder)
    options = RunOptions(
        encoder=world.DegreesEncoder(), store=EmbeddingStore(tmp_path / "store"), workers=0, images=folder
    )
    out = tmp_path / "human.jsonl"
    dialogue = PersonDialogue(
        benchmark, world.Degrees(), SETTINGS, options, out=out, limit=4, form="terminal"
    )
    stage = dialogue.current()
    assert dialogue.picture(stage.exchange.target) is not None
    while dialogue.current() is not None:
        dialogue.say("45")
    checked = check_transcript(out, benchmark)
    assert checked.report.errors == ()
    ranks = [rounds[0].rank for rounds in dialogue.transcript.sessions().values()]
    assert checked.score().metrics["mean_rank@turn1"] == sum(ranks) / len(ranks)
    simulated = make_transcript(
        user_pictures(folder), world.Degrees(), world.ScriptedUser(), SETTINGS, options, limit=4
    )
    assert list(simulated.sessions()) == list(dialogue.transcript.sessions())


def test_a_folder_that_holds_other_pictures_is_not_gone_on_with(folder: Path, tmp_path: Path) -> None:
    def opened() -> PersonDialogue:
        options = RunOptions(
            encoder=world.DegreesEncoder(), store=EmbeddingStore(tmp_path / "store"), workers=0, images=folder
        )
        out = tmp_path / "human.jsonl"
        return PersonDialogue(
            user_pictures(folder), world.Degrees(), SETTINGS, options, out=out, limit=2, form="terminal"
        )

    opened().say("45")
    for image in world.GALLERY[:7]:
        next(folder.rglob(f"{image}.png")).unlink()
    with pytest.raises(CallError) as raised:
        opened().current()
    says(raised, "other settings", "reference", "name another one")
    (tmp_path / "human.jsonl.journal").rename(tmp_path / "away")
    opened().say(SKIPPED)
    for image in world.GALLERY:
        picture(image).save(folder / f"{image}.png")
    with pytest.raises(CallError) as raised:
        opened()
    says(raised, "random-5-00000", "not among these 2", "--out")


def test_the_python_of_the_docs_runs(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[4] / "docs/dialogue.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    folder.rename(tmp_path / "FOLDER")
    exec(source, {})
    assert len(read_transcript(tmp_path / "own.jsonl").sessions()) == 2


def test_names_that_cannot_be_ids_are_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "red\x1b.png").write_bytes(b"")
    with pytest.raises(SourceError) as raised:
        user_pictures(folder)
    says(raised, "pictures", "\\x1b", "rename")
    with pytest.raises(SourceError, match="no such folder"):
        user_pictures(tmp_path / "absent")

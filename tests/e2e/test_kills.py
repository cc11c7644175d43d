"""What goes on where it was killed ends with the same bytes: everything that keeps stages or values.

Each user of the stage store and of the cache is killed with SIGKILL in the midst of writes, several times in
the same folder, and run to its end. A run that nothing ended is beside it.
"""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import datasets_pictures as pictures
import datasets_publishers as made
import forked
import kill_points
import numpy as np
import pytest
from benchmark_world.embeddings import IMAGES, SHARD_SIZE, SHARDS, every_vector, finished
from fisd_runs import shapes_captions
from language_server import LanguageServer
from PIL import Image

from cir_datasets.shapes import picture
from examples.clips import write_clips
from submissions.embeddings.folder import EmbeddingFolder
from submissions.embeddings.store import EmbeddingStore

ROOT = Path(__file__).resolve().parents[2]
MOST_KILLS = 6


@dataclass(frozen=True)
class User:
    """Something that keeps what it has made, and is killed.

    Args:
        commands: programs and arguments, one after the other, as `kill_points` takes them; INPUT in these is
            the folder of what `prepare` made.
        result: files and folders in the folder of the run that must be the same.
        prepare: makes what is read.
        least_writes: of a run that nothing ends: it is really in several steps.
        gone: what is not there at the end.
        after_kill: what must be so in the folder of the run after each kill.
    """

    commands: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]
    prepare: Callable[[Path], object] = lambda folder: None
    least_writes: int = 10
    gone: tuple[str, ...] = ()
    after_kill: Callable[[Path], object] = lambda folder: None


def photos(folder: Path) -> None:
    (folder / "photos").mkdir()
    for number in range(40):
        picture(f"val-{number:06d}").save(folder / "photos" / f"{number}.png")


def noise(folder: Path) -> None:
    """A made-up CIRR whose pictures are many small files."""
    made.write_cirr(folder / "home", "val")
    drawn = random.Random(0)
    ids = [f"dev-{number}-0-img0" for number in range(240)]
    (folder / "images").mkdir()
    for image_id in ids:
        content = drawn.randbytes(20 * 20 * 3)
        Image.frombytes("RGB", (20, 20), content).save(folder / "images" / f"{image_id}.png")
    both = [*ids, *made.cirr_images("val")]
    made.write(
        folder / "home/cirr/image_splits/split.rc2.val.json", {one: f"./dev/{one}.png" for one in both}
    )
    pictures.write_flat(folder / "images", made.cirr_images("val"))


def clip(folder: Path) -> None:
    from retrieval_models import save_clip

    save_clip(folder / "model")


def finished_shards_are_right(folder: Path) -> None:
    """A shard that counts as finished has the vectors of its pictures; nothing under way is damaged."""
    store = EmbeddingStore(folder / "store")
    for stored in store.list():
        assert store.damage(stored.key) == []
        vectors = EmbeddingFolder.existing(store.root / stored.key)
        array = next(vectors.folder.glob("01-vectors*.npy"), None)
        if array is None:
            continue
        rows = np.load(array, mmap_mode="r")
        wanted = every_vector()
        for _, start, stop in finished(vectors):
            np.testing.assert_array_equal(rows[start:stop], wanted[start:stop])


TRAINING = """
import sys, torch
from pathlib import Path
from benchmark_world.embeddings import shapes_pictures
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.loading import load_encoder
from submissions.training.pic2word_training import train_pic2word
from submissions.training.training_options import Pic2WordTraining
torch.set_num_threads(1)
train_pic2word(
    Pic2WordTraining(
        encoder=load_encoder(Path(sys.argv[1])), out=Path("head"), steps=24, batch_size=8, learning_rate=0.001
    ),
    shapes_pictures(20), store=EmbeddingStore(Path("store")), save_seconds=0.0,
)
"""
COMPOSITION = """
import sys, torch
from pathlib import Path
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.loading import load_encoder
from submissions.training.composition_training import train_composition
from submissions.training.training_options import TirgTraining
torch.set_num_threads(1)
root = Path(sys.argv[1])
train_composition(
    TirgTraining(
        encoder=load_encoder(root / "model"), benchmark="cirr/train", out=Path("head"), hidden_size=16,
        epochs=4, epoch_steps=5, batch_size=8, learning_rate=0.01, validation="cirr/val", device="cpu",
        images=root / "nlvr2",
    ),
    store=EmbeddingStore(Path("store")), save_seconds=0.0,
)
"""
EMBEDDING = "from benchmark_world import embeddings; embeddings.main('store', 'log')"
QUESTIONS = """
from submissions.language.server import ServerLanguage
language = ServerLanguage("tiny", concurrency=1)
print(language.judge("Say in capitals:\\n{text}", [{"text": f"text {number}"} for number in range(20)]))
"""


def cir(words: str) -> tuple[str, ...]:
    return ("cir", *words.split())


USERS = {
    "circled": User(
        (cir("make circled --benchmark shapes/val --limit 10 --language oracle --out mine"),), ("mine",)
    ),
    "cirr": User(
        (
            cir(
                "make cirr --images INPUT/photos -e shapes --splits test=100 --subsets 3 --annotators 2 "
                "--name mine --out mine"
            ),
            ("ANSWERS",),
            cir("make cirr-import mine a1.json a2.json --images INPUT/photos"),
        ),
        ("mine",),
        photos,
    ),
    "fisd": User(
        (
            cir(
                "make fisd --captions INPUT/captions.txt --language oracle --per-aspect 4 --spare 1 "
                "--chunk 2 --out mine"
            ),
        ),
        ("mine",),
        lambda folder: shapes_captions(folder, 100),
    ),
    "zerosight": User(
        (cir("make zerosight --videos INPUT --out mine --name mine --thresholds shapes --after none"),),
        ("mine",),
        lambda folder: write_clips(folder, 2, first=3),
    ),
    "dialogue": User(
        (
            cir(
                "multiround --benchmark shapes/val --method random --limit 12 --simulator oracle "
                "--start random --k 1 --max-rounds 4 --out dialogue.jsonl"
            ),
        ),
        ("dialogue.jsonl",),
        gone=("dialogue.jsonl.journal",),
    ),
    "training": User(((TRAINING, "INPUT/model"),), ("head",), clip),
    "embeddings": User(
        ((EMBEDDING,),), ("store",), least_writes=2 * SHARDS, after_kill=finished_shards_are_right
    ),
    "hashes": User(
        (cir("datasets hash cirr/val --root INPUT/images --out out.parquet --workers 1 --no-checks"),),
        ("out.parquet",),
        noise,
        least_writes=5,
    ),
    "answers": User(((QUESTIONS,),), ("said",), least_writes=20),
    "reranking": User(
        (
            cir(
                "run --benchmark shapes/val --method image_only_pixels --out ranks.json --rerank sc4cir "
                "--rerank-processes s1+s2 --rerank-top 3 --language openai:tiny,concurrency=1"
            ),
        ),
        ("ranks.json",),
        least_writes=300,
    ),
}


@pytest.fixture
def server() -> Iterator[LanguageServer]:
    def answer(prompt: str) -> str:
        asks_in_capitals = prompt.startswith("Say in capitals")
        return prompt.splitlines()[-1].upper() if asks_in_capitals else '{"instruction": "a small red star"}'

    with LanguageServer(answer=answer) as running:
        yield running


class Runs:
    """Runs of one user in one folder."""

    def __init__(self, user: User, folder: Path, inputs: Path, server: LanguageServer) -> None:
        self.user, self.folder, self._inputs = user, folder, inputs
        folder.mkdir()
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(kill_points.__file__).parent)]),
            "CIR_CACHE_HOME": str(folder / "cache"),
            "CIR_DATA_HOME": str(inputs / "home"),
            "CIR_PROMPTS": "",
            "OMP_NUM_THREADS": "1",
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "sk-made-up-for-tests",
            "NO_PROXY": "127.0.0.1",
        }

    def run(self, command: tuple[str, ...], end_at: int = 0) -> int | None:
        """How many writes there were; None where it was killed before its end."""
        if command == ("ANSWERS",):
            return self._answer()
        words = [word.replace("INPUT", str(self._inputs)) for word in command]
        done = forked.run(
            [sys.executable, kill_points.__file__, str(end_at), *words],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode == -signal.SIGKILL and end_at:
            return None
        assert done.returncode == 0, done.stderr
        *said, writes = done.stdout.splitlines()
        (self.folder / "said").write_text("\n".join(said))
        return int(writes)

    def _answer(self) -> int:
        """What two annotators write on the pages of a run."""
        with (self.folder / "mine/tasks/tasks.csv").open(newline="") as file:
            tasks = list(csv.DictReader(file))
        for page in ("1", "2"):
            answers = [
                {"task": row["task"], "caption": f"put thing {at} there", "mark": ""}
                for at, row in enumerate(row for row in tasks if row["page"] == page)
            ]
            whole = {"run": tasks[0]["run"], "annotator": f"a{page}", "answers": answers}
            (self.folder / f"a{page}.json").write_text(json.dumps(whole))
        return 0

    def killed_and_gone_on_with(self, command: tuple[str, ...], moments: Sequence[int]) -> int:
        """How often it was killed until it ended, each time at that write of its process."""
        for kills, moment in enumerate(moments):
            if self.run(command, moment) is not None:
                return kills
            self.user.after_kill(self.folder)
        self.run(command)
        return len(moments)

    def results(self) -> dict[str, bytes]:
        found = {}
        for name in self.user.result:
            for path in sorted([self.folder / name, *(self.folder / name).rglob("*")]):
                a_lock = {".lock", ".claims"} & set(path.relative_to(self.folder).parts)
                if path.is_file() and not a_lock:
                    found[path.relative_to(self.folder).as_posix()] = path.read_bytes()
        return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")
@pytest.mark.parametrize("name", USERS)
def test_what_is_killed_in_the_midst_of_writes_goes_on_and_ends_with_the_same_bytes(
    name: str, tmp_path: Path, server: LanguageServer
) -> None:
    if name == "training":
        pytest.importorskip("transformers", reason="needs the extra `retrieval`")
    if name == "zerosight":
        pytest.importorskip("av", reason="needs the extra `construction`")
    user = USERS[name]
    (tmp_path / "input").mkdir()
    user.prepare(tmp_path / "input")
    whole, killed = (
        Runs(user, tmp_path / where, tmp_path / "input", server) for where in ("whole", "killed")
    )
    drawn = random.Random(name)
    kills = total = 0
    for command in user.commands:
        writes = whole.run(command) or 0
        total += writes
        if writes:
            moments = [drawn.randint(1, max(2, writes // 3)) for _ in range(MOST_KILLS)]
            kills += killed.killed_and_gone_on_with(command, moments)
        else:
            killed.run(command)
    print(f"{name}: {total} writes, killed {kills} times")
    assert total >= user.least_writes
    assert kills >= 2
    assert killed.results() == whole.results() != {}
    assert not any((killed.folder / name).exists() for name in user.gone)
    if name == "embeddings":
        encoded = len((killed.folder / "log").read_text().splitlines())
        assert encoded <= IMAGES + kills * SHARD_SIZE, "no finished shard is encoded again"
    if name == "answers":
        asked = sum(server.answered.values())
        assert asked <= 2 * 20 + kills, "no more than what was open at a kill is asked again"


@pytest.mark.slow
def test_a_training_with_a_watch_that_is_killed_ends_with_the_same_weights(
    tmp_path: Path, server: LanguageServer
) -> None:
    """What it remembers of the epochs before is in the state too."""
    pytest.importorskip("transformers", reason="needs the extra `retrieval`")
    from datasets_pictures import write_nlvr2

    inputs = tmp_path / "input"
    for split in ("train", "val"):
        made.write_cirr_of_two_subsets(inputs / "home", split)
        write_nlvr2(inputs / "nlvr2", split, made.cirr_images(split))
    clip(inputs)
    program = f"import os; os.environ['CIR_VERIFICATION_MODE'] = 'no_checks'\n{COMPOSITION}"
    user = User(((program, "INPUT"),), ("head",))
    whole, killed = (Runs(user, tmp_path / where, inputs, server) for where in ("whole", "killed"))
    writes = whole.run(user.commands[0])
    assert writes is not None
    assert killed.killed_and_gone_on_with(user.commands[0], [writes // 2, writes // 4]) >= 2
    assert killed.results() == whole.results() != {}

"""`cir train cirplant` and `cir train tirg`: what they write, the model card, the way to the Hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import forked
import pytest
import yaml

pytest.importorskip("torch", reason="needs the extra `retrieval`")
pytest.importorskip("transformers", reason="needs the extra `retrieval`")

import datasets_publishers as made
from datasets_pictures import write_nlvr2
from http_hub import TOKEN, Hub
from huggingface_hub import HfApi
from retrieval_models import save_resnet
from typer.testing import CliRunner, Result

from cir_datasets.errors import MissingImagesError
from cir_metrics.errors import CallError, UnknownNameError
from leaderboard.cli import build
from submissions.errors import CheckpointError
from submissions.training.model_card import push_checkpoint

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning"),
]

ROOT = Path(__file__).resolve().parents[4]
SMALL = {
    "cirplant": ["--hidden-size", "16", "--layers", "1", "--heads", "2"],
    "tirg": ["--hidden-size", "16"],
}
NUMBERS = ["--epochs", "2", "--epoch-steps", "2", "--batch-size", "4", "--device", "cpu", "--threads", "1"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up CIRR with pictures, and a tiny ResNet."""
    for split in ("train", "val"):
        made.write_cirr_of_two_subsets(tmp_path / "home", split)
        write_nlvr2(tmp_path / "nlvr2", split, made.cirr_images(split))
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    save_resnet(tmp_path / "resnet")  # of images alone: both read the words themselves
    return tmp_path


def train(home: Path, name: str, *more: str) -> Result:
    words = ["train", name, "--benchmark", "cirr/train", "--encoder", str(home / "resnet")]
    words += ["--images", str(home / "nlvr2"), "--out", str(home / name), *SMALL[name], *NUMBERS]
    return CliRunner().invoke(build(), [*words, *more])


@pytest.mark.parametrize("name", ["cirplant", "tirg"])
def test_a_training_ends_with_a_folder_that_says_what_it_can_do(home: Path, name: str) -> None:
    done = train(home, name, "--validation", "cirr/val", "--report", "cirr/val", "--recipe", "paper")
    assert done.exit_code == 0, done.exception
    assert done.stdout == f"{home / name}\n"
    assert "after every step, as the paper says (decay step)" in done.stderr
    assert "step 4: recall@1" in done.stderr
    config = json.loads((home / name / "config.json").read_text(encoding="utf-8"))
    page = (home / name / "README.md").read_text(encoding="utf-8")
    _, head, text = page.split("---\n", 2)
    assert yaml.safe_load(head)["tags"] == ["composed-image-retrieval", name]
    assert config["weights_sha256"][:12] in text
    assert "kept: the weights of step" in text
    assert "the best on cirr/val: recall@1" in text
    assert "the numbers below are of the benchmark that the weights were chosen on" in text
    (result,) = yaml.safe_load((home / name / ".eval_results/cirr_val.yaml").read_text(encoding="utf-8"))
    assert result["dataset"] == {"id": "cirr", "task_id": "cirr_val"}
    run = home / "run.json"
    options = ["--encoder", str(home / "resnet"), "--images", str(home / "nlvr2"), "--device", "cpu"]
    words = ["run", "--benchmark", "cirr/val", "--method", name, "--checkpoint", str(home / name), *options]
    assert CliRunner().invoke(build(), [*words, "--out", str(run)]).exit_code == 0
    scored = json.loads(CliRunner().invoke(build(), ["score", str(run), "--json"]).stdout)
    assert result["value"] == round(100 * scored["main"], 2)
    for metric, value in scored["metrics"].items():
        assert f"| {metric} | {100 * value:.2f} | `cirr/val#" in text
    again = train(home, name, "--validation", "cirr/val", "--recipe", "paper")
    assert "is done already" in again.stderr
    assert (home / name / "README.md").read_text(encoding="utf-8") == page


def test_calls_that_cannot_be_done_are_refused_before_the_training(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[tuple[list[str], type, str]] = [
        (
            ["--recipe", "papers"],
            UnknownNameError,
            "--recipe 'papers' is not a choice. Did you",
        ),
        (["--init", "bert"], CallError, "--init gives the sizes, and hidden_size, layers, heads too"),
        (["--report", "nope/x"], UnknownNameError, "nope"),
        (["--report", "cirr/test1"], CallError, "--report cirr/test1: its publisher withholds"),
        (["--report", "cirr/val"], MissingImagesError, "val-0-0-img0"),
        (
            ["--push", "mine"],
            CallError,
            "--push: 'mine' is not the id of a repository. Fix: write OWNER/NAME",
        ),
    ]
    made.write_cirr(home / "home", "test1")
    (home / "nlvr2/val/val-0-0-img0.png").unlink()
    monkeypatch.setenv("CIR_BENCHMARKS", str(own(home)))
    outcomes += [
        ([*named, "mine/test", "--push", "me/mine"], CallError, "the card of mine says private: true")
        for named in (["--benchmark"], ["--report"], ["--validation"])
    ]
    for options, error, words in outcomes:
        refused = train(home, "cirplant", *options).exception  # before anything is trained
        assert isinstance(refused, error)
        assert words in str(refused)
    assert not (home / "cirplant").exists()


def own(home: Path) -> Path:
    """A benchmark whose card says `private: true`."""
    if not (home / "mine").exists():
        new = ["datasets", "new", "mine", "--out", str(home / "mine")]
        assert CliRunner().invoke(build(), new).exit_code == 0
    return home / "mine"


def start(home: Path, hub: Hub, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: huggingface_hub reads its environment when it is imported."""
    words = ["train", "tirg", "--benchmark", "cirr/train", "--encoder", str(home / "resnet")]
    words += ["--images", str(home / "nlvr2"), "--out", str(home / "tirg"), *SMALL["tirg"], *NUMBERS, *more]
    known = {
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_XET": "1",
        "HF_TOKEN": TOKEN,
        "HF_HUB_OFFLINE": "0",
        "HF_HOME": str(home / "hf"),
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
    }
    command = [sys.executable, "-m", "leaderboard.cli", *words]
    return forked.run(
        command, env={**os.environ, **known, **environment}, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_folder_is_pushed_whole_and_nothing_else(home: Path) -> None:
    with Hub() as hub:
        refused = start(home, hub, "--push", "me/tirg", HF_TOKEN="hf_another")
        assert refused.returncode == 1, refused.stderr
        assert "log in with `hf auth login`" in refused.stderr
        assert hub.repositories == {}
        (home / "tirg/01-training.part").write_bytes(b"of a training that was stopped")
        (home / "tirg/notes.txt").write_text("of the owner", encoding="utf-8")
        (home / "tirg/.eval_results").mkdir()
        (home / "tirg/.eval_results/linked.yaml").symlink_to(home / "tirg/notes.txt")
        done = start(home, hub, "--report", "cirr/val", "--push", "me/tirg")
        assert done.returncode == 0, done.stderr
        files = hub.repository("me/tirg").files
    names = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "README.md"}
    assert set(files) - {".gitattributes"} == names | {".eval_results/cirr_val.yaml"}
    for name in names:
        assert files[name] == (home / "tirg" / name).read_bytes()


@pytest.mark.slow
def test_what_is_private_goes_to_a_private_repository_alone(home: Path) -> None:
    mine = own(home)
    call = ["--benchmark", "mine/test", "--images", str(mine / "images"), "--out", str(home / "own")]
    with Hub() as hub:
        HfApi(hub.url, token=TOKEN).create_repo("me/shown")
        shown = start(home, hub, *call, "--push", "me/shown", "--even-private", CIR_BENCHMARKS=str(mine))
        assert (shown.returncode, "me/shown: is public" in shown.stderr) == (1, True), shown.stderr
        assert set(hub.repository("me/shown").files) == {".gitattributes"}
        kept = start(home, hub, *call, "--push", "me/kept", "--even-private", CIR_BENCHMARKS=str(mine))
        assert kept.returncode == 0, kept.stderr
        assert hub.repository("me/kept").private
        assert "model.safetensors" in hub.repository("me/kept").files


def test_a_folder_without_a_checkpoint_is_not_pushed(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"holds no config\.json"):
        push_checkpoint(tmp_path, "me/mine")

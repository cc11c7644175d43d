"""The commands that train heads: what they write, print and refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `retrieval`")
pytest.importorskip("transformers", reason="needs the extra `retrieval`")

import typer
from benchmark_world.embeddings import shapes_pictures
from retrieval_models import save_clip
from typer.testing import CliRunner, Result

from cir_metrics.errors import CallError
from submissions.commands.train import concat_command, magiclens_command, pic2word_command, report_done
from submissions.encoders.loading import load_encoder
from submissions.errors import CheckpointError, EncoderError
from submissions.methods.heads.checkpoints import load_head
from submissions.training.loop import Trained

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("models") / "clip")


def call(main: Callable[..., None], *options: object) -> Result:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    return CliRunner().invoke(app, [str(option) for option in options])


def test_pic2word_trains_on_a_folder_of_pictures(tmp_path: Path, clip: Path) -> None:
    folder = tmp_path / "pictures" / "inside"
    folder.mkdir(parents=True)
    shown = shapes_pictures(6)
    for place, name in enumerate(shown.ids):
        shown.open(place).save(folder / f"{name}.png")
    options = ["--images", folder.parent, "--encoder", clip, "--out", tmp_path / "head", "--hidden-size", 8]
    numbers = ["--steps", 4, "--batch-size", 3, "--seed", 2, "--device", "cpu"]
    done = call(pic2word_command, *options, *numbers)
    assert done.exit_code == 0
    assert done.stdout == f"{tmp_path / 'head'}\n"
    assert done.stderr.startswith("4 steps: loss ")
    read = load_head(tmp_path / "head", "pic2word", encoder=load_encoder(clip).identity)
    assert (read.training["pictures"], read.training["seed"], read.training["steps"]) == ("pictures", 2, 4)
    again = call(pic2word_command, *options, *numbers)
    assert again.stderr.startswith(f"{tmp_path / 'head'}: this training is done already.")
    other = call(pic2word_command, *options, "--steps", 5)
    assert isinstance(other.exception, CheckpointError)
    assert "steps 4, not 5" in str(other.exception)


@pytest.mark.parametrize(
    ("main", "options", "error", "words"),
    [
        (pic2word_command, [], CallError, "nothing to train on. Fix: add --images FOLDER or --benchmark"),
        (
            pic2word_command,
            ["-b", "shapes/val", "--dropout", 1],
            CallError,
            "--dropout 1.0; it is a share",
        ),
        (
            concat_command,
            ["-b", "shapes/val", "--loss", "triplet"],
            CallError,
            "--loss 'triplet' is not a choice. Did you mean 'soft_triplet'?",
        ),
        (concat_command, ["-b", "shapes/val", "--learning-rate", 0], CallError, "--learning-rate 0.0"),
        (
            magiclens_command,
            ["-b", "shapes/val", "--heads", 5],
            CallError,
            "heads divide the encoder's 24",
        ),
    ],
)
def test_calls_that_train_nothing_are_refused(
    tmp_path: Path, clip: Path, main: Callable[..., None], options: list[object], error: type, words: str
) -> None:
    outcome = call(main, "--encoder", clip, "--out", tmp_path, *options)
    assert isinstance(outcome.exception, error)
    assert words in str(outcome.exception)


@pytest.mark.parametrize("name", ["pixels", "none"])
@pytest.mark.parametrize("main", [concat_command, pic2word_command, magiclens_command])
def test_pixels_and_none_are_not_encoders(tmp_path: Path, main: Callable[..., None], name: str) -> None:
    outcome = call(main, "-b", "shapes/val", "--encoder", name, "--out", tmp_path)
    assert isinstance(outcome.exception, EncoderError)
    assert str(outcome.exception).startswith(f"there is no encoder {name!r}. Fix: name one (shapes, ")


def test_magiclens_stands_on_a_clip(tmp_path: Path, clip: Path) -> None:
    from retrieval_models import save_siglip

    siglip = save_siglip(tmp_path / "siglip")
    outcome = call(
        magiclens_command, "-b", "shapes/val", "--encoder", siglip, "--out", tmp_path, "--heads", 4
    )
    assert isinstance(outcome.exception, EncoderError)
    assert "MagicLens stands on a CLIP, and siglip is of the family siglip" in str(outcome.exception)


@pytest.mark.filterwarnings("ignore::submissions.errors.TruncationWarning")  # the tiny CLIP reads 16 tokens
@pytest.mark.parametrize("name", ["concat", "magiclens"])
def test_triplets_of_a_benchmark_are_trained_on(tmp_path: Path, clip: Path, name: str) -> None:
    main = {"concat": concat_command, "magiclens": magiclens_command}[name]
    out = tmp_path / "head"
    more = ["--layers", 1, "--heads", 2] if name == "magiclens" else ["--loss", "batch_softmax"]
    numbers = ["--steps", 3, "--batch-size", 8, "--device", "cpu"]
    done = call(main, "--benchmark", "shapes/val", "--encoder", clip, "--out", out, *numbers, *more)
    assert done.exit_code == 0, done.exception
    assert done.stdout == f"{out}\n"
    again = call(main, "--benchmark", "shapes/val", "--encoder", clip, "--out", out, *numbers, *more)
    assert "is done already" in again.stderr
    if name == "magiclens":
        trained = load_encoder(out)
        assert trained.identity.family == "magiclens"
        before, after = load_encoder(clip), trained
        images = [shapes_pictures().open(0)]
        assert before.encode_images(images).tolist() != after.encode_images(images).tolist()
    else:
        training = load_head(out, "concat", encoder=load_encoder(clip).identity).training
        assert (training["benchmark"], training["loss"]) == ("shapes/val", "batch_softmax")


def test_a_training_that_went_on_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    report_done(Trained(Path("head"), steps=2000, first_loss=2.0, last_loss=0.5, resumed_at=1200))
    outcome = capsys.readouterr()
    assert outcome.out == "head\n"
    assert outcome.err == "went on at step 1,200 of 2,000.\n2,000 steps: loss 2.0000 -> 0.5000\n"

"""The options of every command that loads an encoder, encodes pictures, or runs a method."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.options import Options, option

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder

ENCODER_HELP = "Encoder: a name on the Hub, a folder, or shapes (the shipped one, the default on shapes)"
LANGUAGE_HELP = (
    "Language backend: oracle (shapes), openai:MODEL, transformers:FOLDER_OR_NAME, SEES+WRITES; options "
    "behind it, as in openai:MODEL,concurrency=8"
)


class DeviceOptions(Options):
    """Where a model runs."""

    device: str = option(
        "auto",
        "Where the model runs: auto, cpu, cuda, cuda:1, mps.",
        words="auto, cpu, cuda, cuda:N or mps",
        form="auto|cpu|cuda(:[0-9]+)?|mps",
    )


class LoadingOptions(DeviceOptions):
    """How an encoder is loaded."""

    revision: str | None = option(
        None,
        "Revision on the Hub: the encoder's commit, branch or tag.",
        words="a commit, branch or tag on the Hub",
        in_file=True,
    )
    dtype: str = option(
        "float32",
        "The model's numbers: float32, float16, bfloat16, or auto (float16 on cuda).",
        words="float32, float16, bfloat16 or auto",
        form="float32|float16|bfloat16|auto",
        in_file=True,
    )


class EncoderOptions(Options):
    """Which encoder, and of which pictures."""

    encoder: str | Path | Encoder | None = option(
        None, f"{ENCODER_HELP}.", "-e", words="a name or a folder", kind=str
    )
    images: str | Path | None = option(
        None,
        "Folder of the images; default: below CIR_IMAGES. Shapes are drawn.",
        words="a folder",
    )


class BatchOptions(Options):
    """How many pictures and texts are read and encoded at once."""

    batch_size: int = option(64, "Batch: images or texts that are encoded at once.", min=1, in_file=True)
    workers: int = option(
        2, "Workers: processes that read images; 0 reads them in this one.", min=0, in_file=True
    )


class PromptOptions(Options):
    """What language models are asked."""

    prompts: str | Path | None = option(
        None, "Folder of prompts that replace ours; default: CIR_PROMPTS.", words="a folder", in_file=True
    )


class EncodingOptions(EncoderOptions, LoadingOptions, BatchOptions):
    """How pictures and texts become vectors."""

    skip_missing: bool = option(
        False,
        "Go on without what is missing: images that cannot be read rank last, and the signature says so.",
        words="True or False",
        in_file=True,
    )


class MethodOptions(EncodingOptions):
    """What a method is given beside a benchmark."""

    caption_rule: str | None = option(
        None,
        "How several captions of a query become text; default: strip_capitalize_and.",
        words="the name of a caption rule",
        in_file=True,
    )
    checkpoint: str | Path | None = option(
        None,
        "The method's own trained weights, file or folder; shapes: those that come with the package for "
        "cirplant and tirg.",
        words="a file or folder",
    )


class EngineOptions(Options):
    """On which machines the work is done."""

    engine: str = option(
        "local",
        "Where it runs: local (this machine), or ray (workers of a Ray cluster).",
        in_file=True,
    )
    address: str | None = option(
        None, "Ray cluster: auto or host:port; default: one on this machine for this call.", in_file=True
    )


class MakingOptions(DeviceOptions, PromptOptions, EngineOptions):
    """What every construction pipeline takes."""

    out: Path = option(..., "Where to write: the folder of the run; a stopped run goes on in it.", "-o")
    name: str | None = option(None, "Name of what is made: the benchmark's; default: made from --out.")
    dry_run: bool = option(False, "Print an estimate of calls, tokens and hours, and make nothing.")


class SeedOptions(Options):
    """What is drawn."""

    seed: int = option(0, "Seed, a whole number from 0, of all that is drawn.", min=0)

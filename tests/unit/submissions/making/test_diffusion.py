"""Diffusion pipelines as generators: a tiny one with random weights is saved, loaded, and really draws."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fisd_runs import content
from PIL import Image

from cir_datasets.construction.fisd.making import MadeFisd, make_fisd
from cir_datasets.construction.fisd.manners import English
from cir_datasets.construction.fisd.options import FisdOptions
from cir_metrics.errors import CirError

pytest.importorskip("diffusers", reason="needs the extra `diffusion`")
pytestmark = pytest.mark.slow
WORDS = (
    "a",
    "photo",
    "of",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "dogs",
    "dog",
    "cat",
    "cats",
)


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Stable Diffusion pipeline of a few thousand weights."""
    import torch
    from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

    folder = tmp_path_factory.mktemp("pipeline")
    words = {word: place for place, word in enumerate(("<|startoftext|>", "<|endoftext|>"))}
    letters = sorted(set("".join(WORDS)))
    tokens = [*letters, *(f"{letter}</w>" for letter in letters)]
    words |= {token: place + len(words) for place, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(words))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    torch.manual_seed(7)
    tokenizer = CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=77)
    text = CLIPTextModel(
        CLIPTextConfig(
            vocab_size=len(words),
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=1,
            num_attention_heads=2,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=1,
        )
    )
    unet = UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(8, 16),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=2,
        norm_num_groups=4,
    )
    vae = AutoencoderKL(block_out_channels=(8,), norm_num_groups=4, latent_channels=4)
    StableDiffusionPipeline(
        vae=vae,
        text_encoder=text,
        tokenizer=tokenizer,
        unet=unet,
        scheduler=DDIMScheduler(steps_offset=1, clip_sample=False),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(folder / "tiny")
    return folder / "tiny"


def loaded(pipeline: Path, **options: Any) -> Any:
    from submissions.making.diffusion import load_diffusion

    return load_diffusion(str(pipeline), **{"steps": 2, "size": 32, "device": "cpu", **options})


def pixels(png: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(png)))


def test_one_seed_gives_the_same_picture_again_and_other_words_another(pipeline: Path) -> None:
    generator = loaded(pipeline)
    first, second = generator.draw(["a photo of one dog", "a photo of two cats"], 5)
    assert pixels(first).shape == (32, 32, 3)
    assert generator.draw(["a photo of one dog"], 5) == [first]
    assert loaded(pipeline).draw(["a photo of one dog"], 5) == [first]
    assert first != second
    assert generator.draw(["a photo of one dog"], 6) != [first]


def test_one_seed_is_one_noise_for_all_captions(pipeline: Path) -> None:
    generator = loaded(pipeline, guidance=1.0)
    same, other = generator.draw(["a photo of one dog", "a photo of one cat"], 5)
    (elsewhere,) = generator.draw(["a photo of one cat"], 6)
    near = np.abs(pixels(same).astype(int) - pixels(other)).mean()
    far = np.abs(pixels(elsewhere).astype(int) - pixels(other)).mean()
    assert near < far


def test_what_pictures_depend_on_is_said_and_a_generator_travels(pipeline: Path) -> None:
    generator = loaded(pipeline)
    identity = generator.identity
    assert (identity["model"], identity["steps"], identity["size"]) == ("tiny", 2, 32)
    assert len(identity["commit"]) == 64
    assert str(pipeline) not in json.dumps(identity)
    assert pickle.loads(pickle.dumps(generator)) == generator


def numbered(folder: Path, generator: Any) -> MadeFisd:
    """A run of cardinality alone, which asks no language model."""
    return make_fisd(
        folder,
        {"cardinality": []},
        manner=English((("dog", "dogs"), ("cat", "cats"))),
        words=None,
        generator=generator,
        options=FisdOptions(per_aspect=2, spare=0, chunk=1),
    )


def test_a_run_draws_its_pictures_and_a_second_one_the_same(pipeline: Path, tmp_path: Path) -> None:
    made = numbered(tmp_path / "one", loaded(pipeline))
    assert [query["aspects"] for query in made.queries] == [["cardinality"]] * 2
    assert content(tmp_path / "one") == (
        numbered(tmp_path / "two", loaded(pipeline)) and content(tmp_path / "two")
    )


def test_folders_that_hold_no_pipeline_explain_themselves(pipeline: Path, tmp_path: Path) -> None:
    with pytest.raises(CirError, match=r"no model_index\.json is in it\. Fix: "):
        loaded(tmp_path)
    with pytest.raises(CirError, match=r"no such folder\. Fix: "):
        loaded(tmp_path / "none")
    with pytest.raises(CirError, match=r"steps=0, .*Fix: choose them so"):
        loaded(pipeline, steps=0)
    with pytest.raises(CirError, match=r"device 'moon' cannot be used"):
        loaded(pipeline, device="moon")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "model_index.json").write_text('{"_class_name": "StableDiffusionPipeline"}')
    with pytest.raises(CirError, match=r"cannot be loaded: .* Fix: "):
        loaded(broken).draw(["a dog"], 1)


def test_a_pipeline_that_takes_no_words_is_refused(tmp_path: Path) -> None:
    from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel

    unet = UNet2DModel(
        sample_size=8,
        block_out_channels=(8,),
        down_block_types=("DownBlock2D",),
        up_block_types=("UpBlock2D",),
        norm_num_groups=4,
    )
    DDPMPipeline(unet, DDPMScheduler()).save_pretrained(tmp_path / "ddpm")
    with pytest.raises(CirError, match=r"it draws without words\. Fix: "):
        loaded(tmp_path / "ddpm").draw(["a dog"], 1)

"""The model, its image processor and its tokenizer: a small CLIP, with a token for each word of shapes."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordLevel
from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, PreTrainedTokenizerFast

from cir_datasets.shapes import (
    BACKGROUNDS,
    COLOURS,
    NUMBERS,
    PLACES,
    SHAPES,
    SIDE,
    SIZES,
    TEXTURES,
    VIEWS,
    plural,
)

PADDING, START, UNKNOWN, END = SPECIAL = ("<padding>", "<start>", "<unknown>", "<end>")
"""In the order of their numbers. CLIP of transformers reads an end token numbered 2 in a way of its own (the
highest number of the text then counts as its end), so that number goes to another."""

LONGEST = 64
"""Tokens of a text; the longest caption of shapes has fewer."""

_GLUE = ("a", "an", "also", "and", "background", "on", ",")
_VISION = {
    "image_size": SIDE,
    "patch_size": 16,
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "hidden_act": "gelu",
}
_TEXT = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "hidden_act": "gelu",
    "max_position_embeddings": LONGEST,
}
PROJECTION = 128
"""Dimensions of a vector."""


def vocabulary() -> list[str]:
    """All tokens, in the order of their numbers.

    Example:
        >>> vocabulary()[:5], len(vocabulary())
        (['<padding>', '<start>', '<unknown>', '<end>', ','], 70)
    """
    spoken = [*NUMBERS, *PLACES, *VIEWS.values(), *SIZES, *TEXTURES, *COLOURS, *BACKGROUNDS, *SHAPES]
    words = {word for text in spoken for word in re.findall(r"\w+", text)}
    words.update(plural(shape) for shape in SHAPES)
    return [*SPECIAL, *sorted(words.union(_GLUE))]


def make_tokenizer() -> Any:
    """The tokenizer, as transformers takes it: lower case, commas apart, start and end added.

    Example:
        >>> tokenizer = make_tokenizer()
        >>> tokenizer.convert_ids_to_tokens(tokenizer("A blue star")["input_ids"])
        ['<start>', 'a', 'blue', 'star', '<end>']
    """
    numbers = {word: number for number, word in enumerate(vocabulary())}
    tokenizer = Tokenizer(WordLevel(numbers, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {END}", special_tokens=[(START, numbers[START]), (END, numbers[END])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=LONGEST,
        pad_token=PADDING,
        bos_token=START,
        eos_token=END,
        unk_token=UNKNOWN,
        model_input_names=["input_ids", "attention_mask"],
    )


def make_model(scale: float) -> Any:
    """The model with random weights; `torch.manual_seed` decides them.

    Args:
        scale: what cosines are multiplied with at the start (its logarithm is learned).
    """
    padding, start, _, end = range(len(SPECIAL))
    text = {
        **_TEXT,
        "vocab_size": len(vocabulary()),
        "pad_token_id": padding,
        "bos_token_id": start,
        "eos_token_id": end,
    }
    config = CLIPConfig(
        text_config=text,
        vision_config=dict(_VISION),
        projection_dim=PROJECTION,
        logit_scale_init_value=math.log(scale),
    )
    return CLIPModel(config)


def make_image_processor() -> Any:
    """What turns a picture into the model's pixels: 96 x 96, values from -1 to 1."""
    return CLIPImageProcessorPil(
        size={"height": SIDE, "width": SIDE},
        do_center_crop=False,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )


def save(model: Any, folder: Path) -> None:
    """Write model, tokenizer and image processor so that transformers' `Auto` classes load them."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    make_image_processor().save_pretrained(folder)
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)  # transformers makes it the owner's alone

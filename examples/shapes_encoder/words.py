"""The tokenizer: one token a word of the language of shapes."""

from __future__ import annotations

import re
from typing import Any

from cir_datasets.shapes.captions import NUMBERS, PLACES, VIEWS, plural
from cir_datasets.shapes.world import BACKGROUNDS, COLOURS, SHAPES, SIZES, TEXTURES

PADDING, START, UNKNOWN, END = SPECIAL = ("<padding>", "<start>", "<unknown>", "<end>")
"""In the order of their numbers. CLIP of transformers reads an end token numbered 2 in a way of its own (the
highest number of the text then counts as its end), so that number goes to another."""

LONGEST = 64
"""Tokens of a text; the longest caption of shapes has fewer."""

_GLUE = ("a", "an", "also", "and", "background", "on", ",")


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
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

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

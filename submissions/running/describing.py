"""What a rank file says of its method: encoder, caption rule, history, search and skipped images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from cir_datasets.common.terminal import counted
from submissions.rank_file.model import Method

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.encoders.protocol import Identity
    from submissions.language.protocol import LanguageIdentity
    from submissions.methods.composing import Composer, Context
    from submissions.methods.turns import Turn
    from submissions.running.aggregation import Aggregation

LONGEST_NAME, LONGEST_NOTES = 80, 2000
"""Characters of a method's name, and of its notes."""
_SHAPES_DATA = "shapes/train"
"""What the shipped encoder was trained on."""


def describe(
    method: Composer, context: Context, turns: Sequence[Turn], how: Aggregation, search: str
) -> Method:
    """The rank file's method block.

    Args:
        method: who composed.
        context: with what.
        turns: what was asked, which says whether several captions were joined.
        how: how turns became one vector; said of sessions only.
        search: how the gallery was searched, or "" where that was exact.
    """
    identity = context.encoder.identity
    described = method.method(context.encoder)
    label = [encoder_label(identity)]
    if context.language is not None:
        label.append(language_label(context.language.identity))
    if context.benchmark.multi_turn:
        label.append(how.label)
    change: dict[str, Any] = {
        "name": labelled(described.name, ", ".join(label)),
        "backbone": described.backbone or identity.text(),
        "search": search,
        "skipped_images": None,
    }
    if described.text_fields:
        change["caption_rule"] = described.caption_rule or context.caption_rule
        if described.text_fields == ["relative_caption"] and any(len(turn.captions) > 1 for turn in turns):
            change["text_fields"] = ["captions"]
    if context.benchmark.multi_turn:
        change["aggregation"] = how.text
    change |= trained_by_encoder(described, identity, context.benchmark)
    if context.language is not None and asks_scene_graphs(context.language.identity):
        change["oracle"] = "scene_graphs"
    language = "" if context.language is None else f"Language: {context.language.identity.text()}."
    change["notes"] = f"{described.notes} {language}".strip()
    # Made anew, not copied: what is put in is checked like any other untrusted input.
    made = Method.model_validate(described.to_dict() | change)
    missing = sorted(context.gallery.missing)
    if not missing:
        return made
    sentence = (
        f"{counted(len(missing), 'image')} missing or unreadable, ranked last as members of the gallery"
    )
    return with_skipped(made, len(missing), sentence, missing)


def encoder_label(identity: Identity) -> str:
    """A few words that set one encoder apart from others in a table.

    Example:
        >>> from submissions.encoders.protocol import Identity
        >>> encoder_label(Identity("openai/clip-vit-large-patch14", "32bd", "clip", "", "float32", 768))
        'clip-vit-large-patch14'
    """
    from submissions.encoders.protocol import is_shapes_encoder

    return "shapes encoder" if is_shapes_encoder(identity) else PurePath(identity.model).name


def language_label(identity: LanguageIdentity) -> str:
    """A few words that set one language backend apart from others in a table."""
    return "+".join(PurePath(model).name for model in identity.model.split("+"))


def trained_by_encoder(described: Method, identity: Identity, benchmark: Benchmark) -> dict[str, Any]:
    """What a method's fields say of an encoder that was trained on a benchmark; nothing of others."""
    from submissions.encoders.protocol import is_shapes_encoder

    if not is_shapes_encoder(identity):
        return {}
    change: dict[str, Any] = {"trained_on": list(dict.fromkeys([*described.trained_on, _SHAPES_DATA]))}
    if benchmark.spec.card.name == "shapes":
        change["zero_shot"] = False
    return change


def asks_scene_graphs(identity: LanguageIdentity) -> bool:
    """Whether the oracle of shapes sees or writes."""
    return identity.backend == "oracle" or "words by oracle " in f"{identity.settings} "


def labelled(name: str, label: str) -> str:
    """A method's name with what sets it apart behind it, as far as there is room."""
    room = LONGEST_NAME - len(name) - len(" ()")
    return f"{name} ({label[:room]})" if room > 0 else name


def with_skipped(described: Method, count: int, sentence: str, missing: Sequence[str]) -> Method:
    """A method block that counts images which were skipped, and names the first of them in its notes."""
    named = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
    notes = f"{described.notes} {sentence}: {named}.".strip()[:LONGEST_NOTES]
    return Method.model_validate(described.to_dict() | {"skipped_images": count, "notes": notes})

"""Features of images before they are brought to length 1, for networks that were trained on those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from submissions.errors import EncoderError
from submissions.truncation import report_cuts

if TYPE_CHECKING:
    from submissions.embeddings.pictures import Pictures
    from submissions.encoders.protocol import Vectors
    from submissions.methods.composing import Context


def reference_features(context: Context, references: Sequence[str | None]) -> Vectors:
    """Features of the references, shape (references, dimensions); zeros for None and for skipped images.

    Each picture is encoded once more: the embeddings of the gallery have length 1.

    Raises:
        EncoderError: the encoder shows no model that gives features.
        MissingImagesError: a reference outside the gallery has no picture.
    """
    from submissions.embeddings.pictures import pictures_of

    ids = sorted({image for image in references if image is not None} - context.gallery.missing)
    found = np.zeros((len(references), context.encoder.identity.dimensions), dtype=np.float32)
    if not ids:
        return found
    pictures = pictures_of(context.benchmark, images=context.images, ids=ids)
    features = dict(zip(ids, features_of(context.encoder, pictures, context.batch_size), strict=True))
    for row, image in enumerate(references):
        if image in features:
            found[row] = features[image]
    return found


def features_of(encoder: Any, pictures: Pictures, batch_size: int) -> Vectors:
    """Features of all pictures, shape (pictures, dimensions), float32.

    Raises:
        EncoderError: the encoder shows no model that gives features.
        MissingImagesError: a picture cannot be opened.
    """
    import torch

    from cir_datasets.common.progress import step_progress

    model, processor = _model(encoder), encoder.image_processor
    parts = []
    with step_progress(f"{pictures.name}: features of images", len(pictures.ids)) as advance:
        for start in range(0, len(pictures.ids), batch_size):
            places = range(start, min(start + batch_size, len(pictures.ids)))
            shown = [pictures.open(place) for place in places]
            pixels = torch.as_tensor(processor(images=shown, return_tensors="np")["pixel_values"])
            with torch.inference_mode():
                made = model.get_image_features(pixel_values=pixels.to(encoder.device, model.dtype))
            parts.append(getattr(made, "pooler_output", made).float().cpu().numpy())
            advance(len(shown))
    return np.concatenate(parts)


def text_features(encoder: Any, texts: Sequence[str], batch_size: int) -> Vectors:
    """Features of texts, shape (texts, dimensions), float32; longer than the model reads, they are cut.

    Raises:
        EncoderError: the encoder shows no model that gives features.

    Warns:
        TruncationWarning: some were cut; the message counts them, of a run all together.
    """
    import torch

    model, tokenizer, limit = _model(encoder), encoder.tokenizer, encoder.max_tokens
    read = tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
    cut = [text for text, tokens in zip(texts, read, strict=True) if len(tokens) > limit]
    report_cuts(cut, texts, limit=limit, model=encoder.identity.model)
    parts = [np.empty((0, encoder.identity.dimensions), dtype=np.float32)]
    for start in range(0, len(texts), batch_size):
        tokens = tokenizer(
            list(texts[start : start + batch_size]),
            truncation=True,
            max_length=limit,
            padding=True,
            return_token_type_ids=False,
            return_tensors="pt",
        ).to(encoder.device)
        with torch.inference_mode():
            made = model.get_text_features(**tokens)
        parts.append(getattr(made, "pooler_output", made).float().cpu().numpy())
    return np.concatenate(parts)


def _model(encoder: Any) -> Any:
    """The encoder's model, where it has image and text features and what prepares them."""
    model = getattr(encoder, "model", None)
    has_all = hasattr(model, "get_image_features") and hasattr(model, "get_text_features")
    if not has_all or not hasattr(encoder, "image_processor"):
        raise EncoderError(
            f"{encoder.identity.model} gives no features before they are brought to length 1. "
            "Fix: use an encoder of the family clip."
        )
    return model

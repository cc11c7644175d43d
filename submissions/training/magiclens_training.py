"""Train MagicLens' fusion on triplets, on top of a CLIP that stays as it is.

The authors train on many millions of pairs, and the CLIP too; this is the same model and objective on a
benchmark's training split, so that the method can be had where their weights cannot.

L = CE of s q . f(target, "") against those of the batch's other targets and of the query's own reference,
s a learned scale

Source: Zhang et al., ICML 2024, arXiv:2403.19651 (with references as negatives).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.atomic import staging_folder
from cir_metrics.errors import CallError
from submissions.encoders.loading import load_encoder
from submissions.encoders.pretrained import quiet
from submissions.errors import CheckpointError, EncoderError
from submissions.methods.heads.checkpoints import CONFIG
from submissions.methods.magiclens import FAMILY
from submissions.methods.trained_heads import trained_on
from submissions.training.earlier import begins_with, check_sizes
from submissions.training.loop import SAVE_SECONDS, Lesson, Trained, seeded, train_head
from submissions.training.old_calls import takes_old_calls
from submissions.training.training_options import MagicLensTraining
from submissions.training.triplets import Examples, depends_on, load_triplets

if TYPE_CHECKING:
    from torch import Tensor

    from submissions.encoders.magiclens_fusion import Fusion

_SCALE = 20.0
"""What similarities are multiplied with at the start of a training."""


@takes_old_calls(MagicLensTraining, renamed={"batch_size": "encoded_at_once"})
def train_magiclens(
    training: MagicLensTraining, *, encoded_at_once: int = 64, save_seconds: float = SAVE_SECONDS
) -> Trained:
    """Train a fusion and write the whole encoder in Hugging Face format; called again, it goes on.

    The features of pictures are computed anew at every call: they have no place in the embedding store, whose
    vectors have length 1.

    Args:
        training: all options; the encoder is of the family clip.
        encoded_at_once: images or texts.
        save_seconds: seconds between two states of an unfinished training.

    Raises:
        CallError: the heads do not divide the dimensions, or the ground truth is withheld.
        CheckpointError: the folder holds another training.
        EncoderError: the encoder is not a CLIP.
        CaptionRuleError: a query has several captions and no rule was given.
        MissingImagesError: pictures are missing.
    """
    encoder = training.loaded()
    identity, layers, heads = encoder.identity, training.layers, training.heads
    if identity.dimensions % heads:
        raise CallError(
            f"heads={heads}; heads divide the encoder's {identity.dimensions} dimensions. "
            "Fix: 8 heads are the paper's."
        )
    if identity.family != "clip":
        raise EncoderError(
            f"MagicLens stands on a CLIP, and {identity.model} is of the family {identity.family}. "
            "Fix: use an encoder of the family clip."
        )
    examples = training.call(load_triplets, benchmark_id=training.benchmark)
    feed_forward = training.feed_forward or 4 * identity.dimensions
    earlier, begun = _earlier(training, encoder, feed_forward)
    settings = {
        **depends_on(training, examples, identity),
        "layers": layers,
        "heads": heads,
        "feed_forward": feed_forward,
        **begun,
    }

    def begin() -> Lesson:
        import torch
        from torch import nn

        from submissions.encoders.magiclens_fusion import Fusion
        from submissions.methods.heads.features import features_of, text_features

        pictures = examples.vectors(lambda part: features_of(encoder, part, encoded_at_once))
        texts = text_features(encoder, [*examples.captions, ""], encoded_at_once)
        with seeded(training.seed):
            fusion = earlier or Fusion(identity.dimensions, layers, heads, feed_forward)
        trained = nn.ModuleDict({"fusion": fusion})
        trained.register_parameter("log_scale", nn.Parameter(torch.tensor(math.log(_SCALE))))

        def loss_of(rows: NDArray[np.int64]) -> Tensor:
            return _loss(fusion, trained.log_scale, examples, rows, pictures, texts)

        save = functools.partial(_save, training, encoder, fusion)
        return Lesson(trained, loss_of, np.bincount(examples.members).tolist(), save)

    label = f"magiclens: training on {training.benchmark}"
    return train_head(training.folder, training, settings, label, begin, save_seconds)


def _earlier(
    training: MagicLensTraining, encoder: Any, feed_forward: int
) -> tuple[Fusion | None, dict[str, Any]]:
    """The fusion that the training begins with, which stands on the very CLIP, and what is said of it."""
    import torch

    if training.from_checkpoint is None:
        return None, {}
    earlier: Any = load_encoder(training.from_checkpoint, device=training.device)
    if earlier.identity.family != FAMILY:
        raise CheckpointError(
            f"--from {training.from_checkpoint}: of the family {earlier.identity.family}, not {FAMILY}. Fix: "
            "name a folder that `cir train magiclens` wrote."
        )
    weights, there = encoder.model.state_dict(), earlier.model.state_dict()
    if not all(name in there and torch.equal(there[name], weights[name].to(there[name])) for name in weights):
        raise CheckpointError(
            f"--from {training.from_checkpoint}: its CLIP is not {encoder.identity.model}. Fix: give the "
            "--encoder that it was trained on."
        )
    config = earlier.model.config
    sizes = {"layers": training.layers, "heads": training.heads, "feed_forward": feed_forward}
    check_sizes(sizes, {name: getattr(config, f"fusion_{name}") for name in sizes})
    fusion: Fusion = earlier.model.fusion.requires_grad_(True)
    return fusion, begins_with(earlier.identity.revision, list(config.trained_on))


def _loss(
    fusion: Fusion,
    log_scale: Any,
    examples: Examples,
    rows: NDArray[np.int64],
    pictures: NDArray[np.float32],
    texts: NDArray[np.float32],
) -> Tensor:
    """The loss of a batch; a row of `pictures` behind the last stands for no reference."""
    import torch

    references = examples.references[rows]
    shown = torch.from_numpy(references < len(pictures) - 1)
    reference = torch.from_numpy(pictures[references])
    target = torch.from_numpy(pictures[examples.targets[rows]])
    empty = torch.from_numpy(texts[-1]).expand(len(rows), -1)
    queries = fusion(reference, torch.from_numpy(texts[examples.texts[rows]]), shown)
    targets = fusion(target, empty)
    own = torch.eye(len(rows), dtype=torch.bool)
    kept = torch.from_numpy(examples.rivals(rows)) | own
    start = (queries * fusion(reference, empty, shown)).sum(dim=-1, keepdim=True)
    # Scaled before anything is left out: 0 times infinity would be the scale's gradient.
    logits = log_scale.exp() * torch.cat([queries @ targets.T, start], dim=1)
    logits = logits.masked_fill(~torch.cat([kept, shown[:, None]], dim=1), -torch.inf)
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(rows)))


def _save(options: MagicLensTraining, encoder: Any, fusion: Fusion, *, training: dict[str, Any]) -> None:
    """Write the encoder with its fusion; config.json comes last, so that a folder with it is whole."""
    import transformers

    from submissions.encoders.magiclens import MagicLensConfig, MagicLensModel

    clip = encoder.model.config.to_dict()
    own = {
        name: clip[name]
        for name in ("text_config", "vision_config", "projection_dim", "logit_scale_init_value")
        if name in clip
    }
    config = MagicLensConfig(
        **own,
        fusion_layers=training["layers"],
        fusion_heads=training["heads"],
        fusion_feed_forward=training["feed_forward"],
        empty_text_ids=list(encoder.tokenizer("")["input_ids"]),
        trained_on=trained_on(training, training.get("members", [training["benchmark"]])),
        training=training,
    )
    model = MagicLensModel(config)
    weights = {f"fusion.{name}": weight for name, weight in fusion.state_dict().items()}
    model.load_state_dict({**encoder.model.state_dict(), **weights})
    root = options.folder
    with staging_folder(
        root, ".writing-", error=CheckpointError, fix="choose another --out.", sweep_below=root
    ) as written:
        with quiet(transformers):
            model.save_pretrained(written)
        encoder.tokenizer.save_pretrained(written)
        encoder.image_processor.save_pretrained(written)
        for path in sorted(written.iterdir(), key=lambda path: path.name == CONFIG):
            path.replace(root / path.name)

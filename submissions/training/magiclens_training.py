"""Train MagicLens' fusion on triplets, on top of a CLIP that stays as it is.

The authors train on many millions of pairs, and the CLIP too; this is the same model and objective on a
benchmark's training split, so that the method can be had where their weights cannot.

L = CE of s q . f(target, "") against those of the batch's other targets and of the query's own reference,
s a learned scale

Source: Zhang et al., ICML 2024, arXiv:2403.19651 (with references as negatives).
"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.atomic import staging_folder
from cir_metrics.errors import CallError
from submissions.encoders.pretrained import quiet
from submissions.errors import CheckpointError, EncoderError
from submissions.methods.heads.checkpoints import CONFIG
from submissions.training.loop import SAVE_SECONDS, Plan, Trained, finished, forget, train
from submissions.training.triplets import Examples, load_triplets

if TYPE_CHECKING:
    from torch import Tensor

    from submissions.encoders.magiclens_fusion import Fusion
    from submissions.encoders.protocol import Encoder

PLAN = Plan(steps=1000, batch_size=256, learning_rate=3e-4)

_SCALE = 20.0
"""What similarities are multiplied with at the start of a training."""


def train_magiclens(
    encoder: Encoder,
    benchmark: str,
    folder: str | Path,
    *,
    plan: Plan = PLAN,
    layers: int = 4,
    heads: int = 8,
    feed_forward: int | None = None,
    caption_rule: str | None = None,
    images: str | Path | None = None,
    batch_size: int = 64,
    save_seconds: float = SAVE_SECONDS,
) -> Trained:
    """Train a fusion and write the whole encoder in Hugging Face format; called again, it goes on.

    The features of pictures are computed anew at every call: they have no place in the embedding store, whose
    vectors have length 1.

    Args:
        encoder: of the family clip, from `load_encoder`.
        benchmark: id of a benchmark whose ground truth is public, such as `cirr/train`.
        folder: where the checkpoint goes.
        plan: how it is trained.
        layers: layers of self-attention.
        heads: heads of every attention; a divisor of the encoder's dimensions.
        feed_forward: width of the feed-forward blocks; None is four times the encoder's dimensions.
        caption_rule: how several captions become text, by name; None suits benchmarks with one caption.
        images: folder of the benchmark's images; None looks below `CIR_IMAGES`, and draws shapes.
        batch_size: images or texts that are encoded at once.
        save_seconds: seconds between two states of an unfinished training.

    Raises:
        CallError: a number is out of range, or the ground truth is withheld.
        CheckpointError: the folder holds another training.
        EncoderError: the encoder is not a CLIP.
        CaptionRuleError: a query has several captions and no rule was given.
        MissingImagesError: pictures are missing.
    """
    import torch
    from torch import nn

    from submissions.encoders.magiclens_fusion import Fusion
    from submissions.methods.heads.features import features_of, text_features

    plan.check()
    size = encoder.identity.dimensions
    if layers < 1 or heads < 1 or size % heads:
        raise CallError(
            f"layers={layers}, heads={heads}; both are 1 or more, and heads divide the encoder's {size} "
            "dimensions. Fix: 4 layers and 8 heads are the paper's."
        )
    if encoder.identity.family != "clip":
        raise EncoderError(
            f"MagicLens stands on a CLIP, and {encoder.identity.model} is of the family "
            f"{encoder.identity.family}. Fix: use an encoder of the family clip."
        )
    root = Path(folder).expanduser()
    examples = load_triplets(benchmark, caption_rule=caption_rule, images=images)
    settings: dict[str, Any] = {
        "benchmark": benchmark,
        "data_hash": examples.data_hash,
        "pictures_digest": examples.pictures.digest,
        "encoder": asdict(encoder.identity),
        "caption_rule": caption_rule,
        "layers": layers,
        "heads": heads,
        "feed_forward": 4 * size if feed_forward is None else feed_forward,
    }
    earlier = finished(root, {**settings, **asdict(plan)})
    if earlier is not None:
        return earlier
    seen = features_of(encoder, examples.pictures, batch_size)
    pictures = np.concatenate([seen, np.zeros((1, size), dtype=np.float32)])
    texts = text_features(encoder, [*examples.captions, ""], batch_size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        fusion = Fusion(size, layers, heads, settings["feed_forward"])
    trained = nn.ModuleDict({"fusion": fusion})
    trained.register_parameter("log_scale", nn.Parameter(torch.tensor(math.log(_SCALE))))

    def loss_of(rows: NDArray[np.int64]) -> Tensor:
        return _loss(fusion, trained.log_scale, examples, rows, pictures, texts)

    done = train(
        trained,
        loss_of,
        count=len(examples.targets),
        plan=plan,
        folder=root,
        settings=settings,
        label=f"magiclens: training on {benchmark}",
        save_seconds=save_seconds,
    )
    training = {**settings, **asdict(plan), "first_loss": done.first_loss, "last_loss": done.last_loss}
    _save(root, encoder, fusion, training)
    forget(root)
    return done


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


def _save(root: Path, encoder: Any, fusion: Fusion, training: dict[str, Any]) -> None:
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
        trained_on=[training["benchmark"]],
        training=training,
    )
    model = MagicLensModel(config)
    model.load_state_dict({**encoder.model.state_dict(), **_named("fusion", fusion.state_dict())})
    with staging_folder(
        root, ".writing-", error=CheckpointError, fix="choose another --out.", sweep_below=root
    ) as written:
        with quiet(transformers):
            model.save_pretrained(written)
        encoder.tokenizer.save_pretrained(written)
        encoder.image_processor.save_pretrained(written)
        for path in sorted(written.iterdir(), key=lambda path: path.name == CONFIG):
            path.replace(root / path.name)


def _named(prefix: str, weights: dict[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{name}": value for name, value in weights.items()}

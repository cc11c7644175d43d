"""Train CIRPLANT or TIRG on triplets, on the vectors of an image encoder that stays as it is.

The recipe `code` is what CIRPLANT's released code does, `paper` what its paper says; `triplet_loss` has the
loss. TIRG goes through the same trainer as a second composition.

Source: Liu et al., ICCV 2021, arXiv:2108.04024, sections 3 and 5, and the released code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_metrics.errors import CallError, UnknownNameError, did_you_mean
from submissions.methods.heads.checkpoints import save_head
from submissions.training.loop import SAVE_SECONDS, Trained, finished, forget, train
from submissions.training.triplet_examples import TripletData, load_triplet_data
from submissions.training.triplet_plan import DECAYS, RECIPES, SHAPES, NetworkShape, Recipe, TripletPlan
from submissions.training.validation import BestEpoch

if TYPE_CHECKING:
    from torch import nn

    from submissions.embeddings.store import EmbeddingStore
    from submissions.encoders.protocol import Encoder


def train_composition(
    encoder: Encoder,
    benchmark: str,
    folder: str | Path,
    *,
    composition: str = "cirplant",
    recipe: Recipe = RECIPES["code"],
    shape: NetworkShape | None = None,
    init: str | Path | None = None,
    epochs: int = 300,
    epoch_steps: int | None = None,
    batch_size: int = 32,
    learning_rate: float = 1e-5,
    weight_decay: float = 0.05,
    clip: float = 1.0,
    precision: str | None = None,
    seed: int = 0,
    device: str = "auto",
    validation: str | None = None,
    hold_out: float = 0.0,
    patience: int = 0,
    caption_rule: str | None = None,
    images: str | Path | None = None,
    store: EmbeddingStore | None = None,
    save_seconds: float = SAVE_SECONDS,
    say: Callable[[str], None] = lambda line: None,
) -> Trained:
    """Train a composition and write it; stopped and called again, it goes on.

    Args:
        encoder: of images; it may know no texts, such as a ResNet.
        benchmark: id of a benchmark whose ground truth is public, such as `cirr/train`.
        folder: where the checkpoint goes.
        composition: `cirplant` or `tirg`.
        recipe: what code and paper do differently, of `RECIPES` or your own.
        shape: sizes of a network that begins at random; None is the composition's of `SHAPES`.
        init: folder of a BERT or OSCAR whose weights CIRPLANT begins with; it gives the sizes.
        epochs: how often validation looks, and with `epoch_steps` the length of the training.
        epoch_steps: steps an epoch; None is one for each `batch_size` images of the gallery: 529 on
            `cirr/train`.
        batch_size: triplets a step, drawn with replacement.
        learning_rate: of AdamW at the first step; it falls linearly.
        weight_decay: of AdamW, but for biases and norms.
        clip: length that a gradient is cut to.
        precision: `float16` or `bfloat16` for mixed precision; None is float32.
        seed: of weights, batches, negatives and dropout.
        device: where the network is trained.
        validation: id of a benchmark on which each epoch is measured; the best epoch's weights are kept.
        hold_out: share of the references whose queries are not trained on but measured on, in place of
            `validation`.
        patience: epochs without a better recall after which the training ends; 0 never ends it.
        caption_rule: how several captions become text, by name; None suits benchmarks with one caption.
        images: folder of the benchmark's images; None looks below `CIR_IMAGES`, and draws shapes.
        store: where the pictures' vectors are kept; None is the store in the cache.
        save_seconds: seconds between two states of an unfinished training, beside those of each epoch.
        say: gets lines about the training, such as its learning rate and each epoch's recall.

    Raises:
        CallError: a number is out of range, the ground truth is withheld, or no query has a negative.
        CheckpointError: the folder holds another training, or `init` cannot be used.
        UnknownNameError: no composition, benchmark or rule has that name.
        CaptionRuleError: a query has several captions and no rule was given.
        MissingImagesError: pictures are missing.
    """
    import torch

    from submissions.encoders.pretrained import device_of
    from submissions.methods.heads.composition import COMPOSITIONS
    from submissions.methods.heads.wordpieces import TOKENIZER, read_captions
    from submissions.training.triplet_loss import Objective

    if composition not in COMPOSITIONS:
        hint = did_you_mean(composition, tuple(COMPOSITIONS))
        raise UnknownNameError(
            f"no composition {composition!r}.{hint} Fix: use one of {', '.join(COMPOSITIONS)}."
        )
    _check(recipe, batch_size, epochs, epoch_steps, hold_out, patience, validation, init, composition)
    if validation == benchmark:
        raise CallError(
            f"validation={validation} is trained on as well, so that its recall says nothing. Fix: give "
            "another benchmark, or hold_out (0.1 is a usual one)."
        )
    root = Path(folder).expanduser()
    data = load_triplet_data(
        benchmark, validation=validation, hold_out=hold_out, caption_rule=caption_rule, images=images
    )
    if not data.has_negatives:
        raise CallError(
            f"{benchmark}: no query has a negative to learn from: every target is a positive of it or in its "
            "own subset. Fix: train on a benchmark with other subsets as well"
            + (", or hold less out." if hold_out else ".")
        )
    per_epoch = max(1, data.gallery_size // batch_size) if epoch_steps is None else epoch_steps
    plan = TripletPlan(
        epochs * per_epoch,
        batch_size,
        learning_rate,
        weight_decay,
        seed,
        clip,
        precision,
        epoch_steps=per_epoch,
        decay=recipe.decay,
    )
    plan.check()
    tokenizer, sizes, begun = _network_sizes(encoder, data, composition, recipe, shape, init)
    settings: dict[str, Any] = {
        "benchmark": benchmark,
        "data_hash": data.examples.data_hash,
        "pictures_digest": data.examples.pictures.digest,
        "encoder": asdict(encoder.identity),
        "composition": composition,
        "recipe": asdict(recipe),
        "init": None if begun is None else begun.sha256,
        "words_sha256": hashlib.sha256(
            json.dumps(tokenizer.get_vocab(), sort_keys=True).encode()
        ).hexdigest(),
        "sizes": sizes,
        "caption_rule": caption_rule,
        "validation": validation,
        "validation_data_hash": None if data.measured is None else data.measured.data_hash,
        "hold_out": hold_out,
        "patience": patience,
    }
    earlier = finished(root, {**settings, **asdict(plan)})
    if earlier is not None:
        return earlier
    say(plan.log())
    vectors, watched = data.vectors(encoder, store)
    tokens = read_captions(tokenizer, data.examples.captions)
    place = device_of(device, CallError)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network: Any = COMPOSITIONS[composition](**sizes)
    if begun is not None:
        say(begun.fill(network))
    if not recipe.scaled:
        network.scale.data.fill_(1.0)
        network.scale.requires_grad_(False)
    network.to(place)
    objective = Objective(network, data, vectors, tokens, recipe, tokenizer.pad_token_id, place)
    watch = None
    if data.validation is not None:
        asked = read_captions(tokenizer, data.validation_captions)

        def measure(module: nn.Module) -> dict[str, float]:
            return data.measure(module, watched, asked, tokenizer.pad_token_id)

        watch = BestEpoch(measure, data.validation.main, patience, say)
    done = train(
        network,
        objective,
        count=len(data.rows),
        plan=plan,
        folder=root,
        settings=settings,
        label=f"{composition}: training on {benchmark}",
        save_seconds=save_seconds,
        undecayed=undecayed(network),
        watch=watch,
    )
    training = {**settings, **asdict(plan), "first_loss": done.first_loss, "last_loss": done.last_loss}
    if watch is not None:
        network.load_state_dict(watch.weights)
        training |= {"trained_steps": done.steps, "history": watch.history, "best": watch.history[watch.best]}
    tokenizer.save_pretrained(root)
    save_head(
        root,
        composition,
        network,
        sizes=sizes,
        encoder=encoder.identity,
        training=training,
        beside=TOKENIZER,
    )
    forget(root)
    return done


def undecayed(network: nn.Module) -> list[str]:
    """Names of the parameters without weight decay: biases, norms, and the learned scales of features."""
    from torch import nn

    norms = (nn.LayerNorm, nn.BatchNorm1d)
    found = []
    for path, module in network.named_modules():
        for name, _ in module.named_parameters(recurse=False):
            if name.startswith("bias") or isinstance(module, norms) or module is network:
                found.append(f"{path}.{name}" if path else name)
    return found


def _check(
    recipe: Recipe,
    batch_size: int,
    epochs: int,
    epoch_steps: int | None,
    hold_out: float,
    patience: int,
    validation: str | None,
    init: str | Path | None,
    composition: str,
) -> None:
    numbers = {"epochs": epochs, "epoch_steps": 1 if epoch_steps is None else epoch_steps}
    for name, value in (numbers | {"together": recipe.together}).items():
        if value < 1:
            raise CallError(f"{name}={value}; it is 1 or more. Fix: choose a larger one.")
    if recipe.together > max(1, batch_size // 2):
        raise CallError(
            f"together={recipe.together} and batch_size={batch_size}; a batch has two references or more, so "
            "that there are negatives. Fix: give a smaller together or a larger batch_size."
        )
    for name, value in {"triplets": recipe.triplets, "patience": patience}.items():
        if value < 0:
            raise CallError(f"{name}={value}; it is 0 or more. Fix: choose a larger one.")
    if recipe.decay not in DECAYS:
        raise UnknownNameError(f"no decay {recipe.decay!r}. Fix: use one of {', '.join(DECAYS)}.")
    if not 0 <= hold_out < 1:
        raise CallError(f"hold_out={hold_out}; it is a share from 0 to below 1. Fix: 0.1 is a usual one.")
    if hold_out and validation is not None:
        raise CallError("hold_out and validation are both given. Fix: give one of them.")
    if patience and not hold_out and validation is None:
        raise CallError(
            f"patience={patience} and nothing to measure on. Fix: give validation (--validation BENCHMARK) "
            "or hold_out (0.1 is a usual one)."
        )
    if init is not None and composition != "cirplant":
        raise CallError(f"{composition} does not begin with a BERT. Fix: leave init (--init) out.")


def _network_sizes(
    encoder: Encoder,
    data: TripletData,
    composition: str,
    recipe: Recipe,
    shape: NetworkShape | None,
    init: str | Path | None,
) -> tuple[Any, dict[str, Any], Any]:
    """The tokenizer, the arguments of the network's class, and the BERT that it begins with, if any."""
    from submissions.methods.heads.bert_folders import read_bert_folder
    from submissions.methods.heads.wordpieces import POSITIONS, tokenizer_of, vocabulary

    size = encoder.identity.dimensions
    if init is not None:
        begun = read_bert_folder(init)
        sizes = {"vector_size": size, "bert": dict(begun.settings)}
        return begun.tokenizer, {**sizes, "normalised_input": recipe.normalised_input}, begun
    made = shape or SHAPES[composition]
    made.check()
    words = vocabulary(data.said)
    tokenizer = tokenizer_of(words)
    if composition == "tirg":
        return (
            tokenizer,
            {"vector_size": size, "vocabulary": len(words), "hidden_size": made.hidden_size},
            None,
        )
    bert: Mapping[str, Any] = {
        "vocab_size": len(words),
        "hidden_size": made.hidden_size,
        "num_hidden_layers": made.layers,
        "num_attention_heads": made.heads,
        "intermediate_size": made.feed_forward or 4 * made.hidden_size,
        "hidden_dropout_prob": made.dropout,
        "attention_probs_dropout_prob": made.dropout,
        "max_position_embeddings": POSITIONS,
        "pad_token_id": tokenizer.pad_token_id,
    }
    sizes = {"vector_size": size, "bert": dict(bert), "normalised_input": recipe.normalised_input}
    return tokenizer, sizes, None

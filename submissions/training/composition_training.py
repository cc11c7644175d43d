"""Train CIRPLANT or TIRG on triplets, on the vectors of an image encoder that stays as it is.

The recipe `code` is what CIRPLANT's released code does, `paper` what its paper says; `triplet_loss` has the
loss. TIRG goes through the same trainer as a second composition.

Source: Liu et al., ICCV 2021, arXiv:2108.04024, sections 3 and 5, and the released code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cir_metrics.errors import CallError
from submissions.methods.cirplant import Cirplant, Tirg
from submissions.methods.heads.checkpoints import Head, save_head
from submissions.methods.heads.wordpieces import load_tokenizer
from submissions.training.earlier import check_sizes, earlier_head
from submissions.training.loop import SAVE_SECONDS, Lesson, Trained, seeded, train_head
from submissions.training.old_calls import takes_old_calls
from submissions.training.training_options import CirplantTraining, CompositionTraining, TirgTraining
from submissions.training.triplet_examples import load_triplet_data
from submissions.training.triplets import depends_on
from submissions.training.validation import BestEpoch, main_recall, mean_recalls

if TYPE_CHECKING:
    from torch import nn

    from submissions.embeddings.store import EmbeddingStore


@takes_old_calls(CirplantTraining, TirgTraining, defaults={"learning_rate": 1e-5})
def train_composition(
    training: CompositionTraining,
    *,
    store: EmbeddingStore | None = None,
    save_seconds: float = SAVE_SECONDS,
    say: Callable[[str], None] = lambda line: None,
) -> Trained:
    """Train a composition and write it; stopped and called again, it goes on.

    Args:
        training: a `CirplantTraining` or a `TirgTraining`; its encoder may know no texts, such as a ResNet.
        store: where the pictures' vectors are kept; None is the store in the cache.
        save_seconds: seconds between two states of an unfinished training, beside those of each epoch.
        say: gets lines about the training, such as its learning rate and each epoch's recall.

    Raises:
        CallError: the ground truth is withheld, or no query has a negative.
        CheckpointError: the folder holds another training, or `init` cannot be used.
        UnknownNameError: no benchmark or rule has that name.
        CaptionRuleError: a query has several captions and no rule was given.
        MissingImagesError: pictures are missing.
    """
    encoder = training.loaded()
    benchmark, name, root = training.benchmark, training.composition, training.folder
    data = training.call(load_triplet_data, benchmark_id=benchmark)
    if not data.has_negatives:
        raise CallError(
            f"{benchmark}: no query has a negative to learn from: every target is a positive of it or in its "
            "own subset. Fix: train on a benchmark with other subsets as well"
            + (", or hold less out." if training.hold_out else ".")
        )
    plan = training.resolved(data.gallery_size)
    earlier, begun = earlier_head(training, {"cirplant": Cirplant, "tirg": Tirg}[name], encoder)
    if earlier is None:
        tokenizer, sizes, bert = _network_sizes(plan, encoder.identity.dimensions, data.said)
    else:
        tokenizer, sizes, bert = load_tokenizer(earlier.folder), _checked_sizes(plan, earlier), None
    settings: dict[str, Any] = {
        **depends_on(plan, data.examples, encoder.identity),
        "composition": name,
        "recipe": plan.differences,
        "init": None if bert is None else bert.sha256,
        "words_sha256": hashlib.sha256(
            json.dumps(tokenizer.get_vocab(), sort_keys=True).encode()
        ).hexdigest(),
        "sizes": sizes,
        "validation": plan.validation,
        "validation_data_hash": data.measured_hash if data.measured else None,
        "hold_out": plan.hold_out,
        "patience": plan.patience,
        **begun,
    }

    def begin() -> Lesson:
        from submissions.encoders.pretrained import device_of
        from submissions.methods.heads.composition import COMPOSITIONS
        from submissions.methods.heads.wordpieces import TOKENIZER, read_captions
        from submissions.training.triplet_loss import Objective

        say(plan.log())
        vectors, measured_vectors = data.vectors(encoder, store)
        tokens = read_captions(tokenizer, data.examples.captions)
        device = device_of(plan.device, CallError)
        with seeded(plan.seed):
            kind = COMPOSITIONS[name]
            network: Any = kind(**sizes) if earlier is None else earlier.module(kind).requires_grad_(True)
        if bert is not None:
            say(bert.fill(network))
        if not plan.scaled:
            network.scale.data.fill_(1.0)
            network.scale.requires_grad_(False)
        network.to(device)
        watch = None
        if data.measured:
            asked = [read_captions(tokenizer, measured.captions) for measured in data.measured]

            def measure(module: nn.Module) -> dict[str, float]:
                members = zip(data.measured, measured_vectors, asked, strict=True)
                return mean_recalls(
                    [
                        measured.recalls(module, vectors, tokens, tokenizer.pad_token_id)
                        for measured, vectors, tokens in members
                    ]
                )

            watch = BestEpoch(
                measure, main_recall([each.answers for each in data.measured]), plan.patience, say
            )

        def save(training: dict[str, Any]) -> None:
            if watch is not None:
                network.load_state_dict(watch.weights)
                history = watch.history
                training |= {
                    "trained_steps": int(history[-1]["step"]),
                    "history": history,
                    "best": history[watch.best],
                }
            tokenizer.save_pretrained(root)
            save_head(
                root,
                name,
                network,
                sizes=sizes,
                encoder=encoder.identity,
                training=training,
                beside=TOKENIZER,
            )

        objective = Objective(network, data, vectors, tokens, plan, tokenizer.pad_token_id, device)
        return Lesson(network, objective, data.counts, save, undecayed(network), watch)

    return train_head(root, plan, settings, f"{name}: training on {benchmark}", begin, save_seconds)


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


def _checked_sizes(training: CompositionTraining, earlier: Head) -> dict[str, Any]:
    """The sizes of a checkpoint, which the call must not contradict."""
    sizes = dict(earlier.sizes)
    bert = sizes.get("bert") or {}
    there = {
        **sizes,
        **{option: bert[name] for option, name in _BERT_NAMES.items() if name in bert},
        "normalised_input": sizes.get("normalised_input", training.normalised_input),
    }
    check_sizes({**training.changed_sizes, "normalised_input": training.normalised_input}, there)
    return sizes


_BERT_NAMES = {
    "hidden_size": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "feed_forward": "intermediate_size",
    "dropout": "hidden_dropout_prob",
}
"""How a BERT calls the options of sizes."""


def _network_sizes(
    training: CompositionTraining, vector_size: int, captions: list[str]
) -> tuple[Any, dict[str, Any], Any]:
    """The tokenizer, the arguments of the network's class, and the BERT that it begins with, if any."""
    from submissions.methods.heads.bert_folders import read_bert_folder
    from submissions.methods.heads.wordpieces import POSITIONS, tokenizer_of, vocabulary

    chosen, begun = training.sizes, None
    init = training.init if isinstance(training, CirplantTraining) else None
    if init is not None:
        begun = read_bert_folder(init)
        tokenizer, bert = begun.tokenizer, dict(begun.settings)
    else:
        words = vocabulary(captions)
        tokenizer = tokenizer_of(words)
        if not isinstance(training, CirplantTraining):
            return tokenizer, {"vector_size": vector_size, "vocabulary": len(words), **chosen}, None
        bert = {
            "vocab_size": len(words),
            "hidden_size": chosen["hidden_size"],
            "num_hidden_layers": chosen["layers"],
            "num_attention_heads": chosen["heads"],
            "intermediate_size": chosen["feed_forward"] or 4 * chosen["hidden_size"],
            "hidden_dropout_prob": chosen["dropout"],
            "attention_probs_dropout_prob": chosen["dropout"],
            "max_position_embeddings": POSITIONS,
            "pad_token_id": tokenizer.pad_token_id,
        }
    sizes = {"vector_size": vector_size, "bert": bert, "normalised_input": training.normalised_input}
    return tokenizer, sizes, begun

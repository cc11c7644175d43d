"""Folders of small trained heads (`config.json`, `model.safetensors`): written whole, read with suspicion.

A head is trained on the vectors of one encoder and means nothing on those of another. The folder therefore
says which encoder that was, and a head is refused beside any other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cir_datasets.common.atomic import write_whole
from submissions.errors import CheckpointError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from submissions.encoders.protocol import Identity

Module = TypeVar("Module", bound="nn.Module")

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
FORMAT_VERSION = 1

_MUST_AGREE = ("revision", "family", "preprocessing", "dimensions")
"""What of an encoder moves its vectors; the type of numbers changes their last digits only."""
_WHOLE = "Fix: get the whole folder of the checkpoint."
_EXAMPLES = 5
_HASH, _HASH_SHOWN = 39, 12
"""Longer texts than the first are hashes, of which so many digits are shown."""


def command(kind: str) -> str:
    """The command that trains a head of a kind.

    Example:
        >>> command("concat")
        'cir train concat'
    """
    return f"cir train {kind}"


@dataclass(frozen=True)
class Head:
    """A head as it was read.

    Args:
        folder: where it lies.
        sizes: the keyword arguments of its module.
        training: how it was trained: benchmark, seed, steps and more.
        tensors: its weights by name.
        sha256: of the file of weights.
    """

    folder: Path
    sizes: Mapping[str, Any]
    training: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    sha256: str

    def module(self, make: Callable[..., Module]) -> Module:
        """The head itself, ready to answer.

        Args:
            make: its class; made with `sizes`.

        Raises:
            CheckpointError: the sizes make no such module, or the weights do not fit it.
        """
        return filled(make, self.sizes, self.tensors, self.folder)


def save_head(
    folder: str | Path,
    kind: str,
    module: nn.Module,
    *,
    sizes: Mapping[str, Any],
    encoder: Identity,
    training: Mapping[str, Any],
    beside: Sequence[str] = (),
) -> Path:
    """Write a head; what lay there is replaced, and each file appears whole or not at all.

    Args:
        folder: where to write; made where it is missing.
        kind: what it is: `pic2word` or `concat`.
        module: whose weights to write.
        sizes: the keyword arguments that make such a module.
        encoder: the encoder whose vectors it was trained on.
        training: what the rank file and a reader should know of its training.
        beside: names of further files in the folder that the head cannot do without, such as a tokenizer's.

    Returns:
        The folder.
    """
    root = Path(folder).expanduser()
    write_tensors(root / WEIGHTS, module)
    described = {
        "format_version": FORMAT_VERSION,
        "model_type": kind,
        "sizes": dict(sizes),
        "encoder": asdict(encoder),
        "training": dict(training),
        "weights_sha256": file_sha256(root / WEIGHTS),
    }
    if beside:
        described["files_sha256"] = {name: file_sha256(root / name) for name in beside}
    text = json.dumps(described, indent=2, sort_keys=True) + "\n"
    write_whole(root / CONFIG, text.encode(), durable=True)
    return root


def load_head(folder: str | Path, kind: str, *, encoder: Identity, beside: Sequence[str] = ()) -> Head:
    """Read a head for an encoder.

    Args:
        folder: a folder written by `save_head`.
        kind: what it must be.
        encoder: the encoder that it is to be used with.
        beside: names of further files that must be those of the training, as of `save_head`.

    Raises:
        CheckpointError: it is missing, damaged, of another kind, or made for another encoder.
    """
    root = Path(folder).expanduser()
    described = read_config(root, kind, f"name a folder that `{command(kind)}` wrote")
    made_for = described.get("encoder")
    if not isinstance(made_for, dict) or not isinstance(described.get("sizes"), dict):
        raise CheckpointError(
            f"{root / CONFIG}: says no encoder or no sizes. Fix: train it anew with `{command(kind)}`."
        )
    _check_encoder(root, kind, made_for, encoder)
    tensors = read_tensors(root / WEIGHTS)
    sha256 = file_sha256(root / WEIGHTS)
    if described.get("weights_sha256") != sha256:
        raise CheckpointError(
            f"{root / WEIGHTS}: its sha256 is not the one that {CONFIG} names. "
            f"Fix: get both files of one training, or train it anew with `{command(kind)}`."
        )
    named = described.get("files_sha256")
    for name in beside:
        if not (root / name).is_file():
            raise CheckpointError(
                f"{root / name}: no such file. Fix: get the whole folder of the checkpoint."
            )
        if not isinstance(named, dict) or named.get(name) != file_sha256(root / name):
            raise CheckpointError(
                f"{root / name}: its sha256 is not the one that {CONFIG} names, so that it is of another "
                f"training. Fix: get all files of one training, or train it anew with `{command(kind)}`."
            )
    return Head(root, described["sizes"], described.get("training", {}), tensors, sha256)


def read_config(root: Path, kind: str, fix: str) -> dict[str, Any]:
    """The description of a checkpoint folder, of the right kind and version.

    Args:
        root: the folder.
        kind: what `model_type` must say.
        fix: what the caller would have a user do.

    Raises:
        CheckpointError: it is missing, not JSON, or of another kind or version.
    """
    path = root / CONFIG
    if not path.is_file():
        raise CheckpointError(f"{root}: holds no {CONFIG}, so it is not a checkpoint of {kind}. Fix: {fix}.")
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not JSON ({error}). Fix: {fix}.") from error
    if not isinstance(described, dict) or described.get("model_type") != kind:
        found = described.get("model_type") if isinstance(described, dict) else None
        raise CheckpointError(f"{path}: model_type is {found!r}, not {kind!r}. Fix: {fix}.")
    if described.get("format_version") != FORMAT_VERSION:
        raise CheckpointError(
            f"{path}: format_version is {described.get('format_version')!r}; this release reads "
            f"{FORMAT_VERSION}. Fix: {fix}."
        )
    return described


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The weights of a safetensors file by name.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise CheckpointError(f"{path}: no such file. {_WHOLE}")
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError, LookupError, TypeError, RuntimeError, MemoryError) as error:
        raise CheckpointError(f"{path}: not a safetensors file ({error}). Fix: get it again.") from error


def write_tensors(path: Path, module: nn.Module) -> None:
    """Write a module's weights as a safetensors file, whole or not at all."""
    from safetensors.torch import save

    tensors = {name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()}
    write_whole(path, save(tensors), durable=True)


def filled(
    make: Callable[..., Module], sizes: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path
) -> Module:
    """A module with the weights of a file, ready to answer.

    Args:
        make: its class.
        sizes: the keyword arguments to make it with, as a file says them.
        tensors: its weights by name.
        where: the folder that both come from, for messages.

    Raises:
        CheckpointError: the sizes make no such module, or a weight is missing, unknown, or of another shape.
    """
    import torch

    try:
        with torch.device("meta"):  # of sizes in a file: nothing is allocated before the weights fit them
            module = make(**sizes)
    except (TypeError, ValueError, RuntimeError, ZeroDivisionError, AssertionError) as error:
        raise CheckpointError(
            f"{where / CONFIG}: its sizes make no head ({error}). Fix: get the folder again."
        ) from error
    wanted = module.state_dict()
    missing, unknown = sorted(wanted.keys() - tensors.keys()), sorted(tensors.keys() - wanted.keys())
    odd = [name for name in wanted.keys() & tensors.keys() if wanted[name].shape != tensors[name].shape]
    if missing or unknown or odd:
        words = [
            f"{label} {', '.join(sorted(names)[:_EXAMPLES])}"
            for label, names in (("missing", missing), ("unknown", unknown), ("of another shape", odd))
            if names
        ]
        raise CheckpointError(
            f"{where}: its weights do not fit its {CONFIG}: {'; '.join(words)}. "
            "Fix: get both files of one training."
        )
    module.load_state_dict(dict(tensors), assign=True)
    return module.eval().requires_grad_(False)


def file_sha256(path: Path) -> str:
    """Hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_encoder(root: Path, kind: str, made_for: Mapping[str, Any], encoder: Identity) -> None:
    """Refuse a head of another encoder, and say in what the two differ."""
    asked = asdict(encoder)
    fields = _MUST_AGREE if asked["revision"] != "unknown" else ("model", *_MUST_AGREE)
    differ = [name for name in fields if made_for.get(name) != asked[name]]
    if differ:
        lines = "; ".join(
            f"{name} {_shown(made_for.get(name))}, not {_shown(asked[name])}" for name in differ
        )
        raise CheckpointError(
            f"{root}: trained on the encoder {made_for.get('model')!r}, and asked for with "
            f"{encoder.model!r} ({lines}). Fix: use the encoder that it was trained on, or train one: "
            f"{command(kind)} --encoder ENCODER --benchmark BENCHMARK --out FOLDER"
        )


def _shown(value: Any) -> str:
    """A value of an identity; of a hash the first twelve digits."""
    return repr(value[:_HASH_SHOWN] if isinstance(value, str) and len(value) > _HASH else value)

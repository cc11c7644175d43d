"""Folders of small trained heads (`config.json`, `model.safetensors`): written whole, read with suspicion.

A head is trained on the vectors of one encoder and means nothing on those of another. The folder therefore
says which encoder that was, and a head is refused beside any other.
"""

from __future__ import annotations

import hashlib
import json
import pickle
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
            CheckpointError: the sizes make no such module, or a weight is missing, unknown, or of another
                shape.
        """
        import torch

        try:
            with torch.device("meta"):  # of sizes in a file: nothing is allocated before the weights fit them
                module = make(**self.sizes)
        except (TypeError, ValueError, RuntimeError, ZeroDivisionError, AssertionError) as error:
            raise CheckpointError(
                f"{self.folder / CONFIG}: its sizes make no head ({error}). Fix: get the folder again."
            ) from error
        needed, there = module.state_dict(), self.tensors
        missing, unknown = needed.keys() - there.keys(), there.keys() - needed.keys()
        odd = [name for name in needed.keys() & there.keys() if needed[name].shape != there[name].shape]
        if missing or unknown or odd:
            words = [
                f"{label} {', '.join(sorted(names)[:_EXAMPLES])}"
                for label, names in (("missing", missing), ("unknown", unknown), ("of another shape", odd))
                if names
            ]
            raise CheckpointError(
                f"{self.folder}: its weights do not fit its {CONFIG}: {'; '.join(words)}. "
                "Fix: get both files of one training."
            )
        module.load_state_dict(dict(there), assign=True)
        return module.eval().requires_grad_(False)


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
    from safetensors.torch import save

    root = Path(folder).expanduser()
    tensors = {name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()}
    write_whole(root / WEIGHTS, save(tensors), durable=True)
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
    described = read_described(root / CONFIG, f"name a folder that `{command(kind)}` wrote", kind)
    made_for = described.get("encoder")
    if not isinstance(made_for, dict) or not isinstance(described.get("sizes"), dict):
        raise CheckpointError(
            f"{root / CONFIG}: says no encoder or no sizes. Fix: train it anew with `{command(kind)}`."
        )
    _check_encoder(root, kind, made_for, encoder)
    tensors = read_tensors(root / WEIGHTS)
    digests = {name: file_sha256(root / name) for name in (WEIGHTS, *beside) if (root / name).is_file()}
    of_others = described.get("files_sha256")
    known = {**(of_others if isinstance(of_others, dict) else {}), WEIGHTS: described.get("weights_sha256")}
    for name in (WEIGHTS, *beside):
        if name not in digests:
            raise CheckpointError(f"{root / name}: no such file. {_WHOLE}")
        if known.get(name) != digests[name]:
            raise CheckpointError(
                f"{root / name}: its sha256 is not the one that {CONFIG} names, so that it is of another "
                f"training. Fix: get all files of one training, or train it anew with `{command(kind)}`."
            )
    return Head(root, described["sizes"], described.get("training", {}), tensors, digests[WEIGHTS])


def read_described(path: Path, fix: str, kind: str | None = None) -> dict[str, Any]:
    """What the file `config.json` of a checkpoint describes.

    Args:
        path: the file.
        fix: what the caller would have a user do.
        kind: the head that it must be, in this version; None is anything.

    Raises:
        CheckpointError: it is missing, not JSON, or of another kind or version.
    """
    if not path.is_file():
        raise CheckpointError(
            f"{path.parent}: holds no {CONFIG}, so it is not a checkpoint of {kind or 'a model'}. Fix: {fix}."
        )
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not JSON ({error}). Fix: {fix}.") from error
    held = described if isinstance(described, dict) else {}
    must_be = {} if kind is None else {"model_type": kind, "format_version": FORMAT_VERSION}
    for name, value in must_be.items():
        if held.get(name) != value:
            raise CheckpointError(f"{path}: {name} is {held.get(name)!r}, not {value!r}. Fix: {fix}.")
    return held


def read_torch(path: Path, fix: str, harmless: Sequence[Any] = ()) -> dict[str, Any]:
    """What a file of torch holds by name; no code in it is run.

    Args:
        path: the file.
        fix: what the caller would have a user do.
        harmless: what it may hold beside tensors, as of torch's `safe_globals`.

    Raises:
        CheckpointError: it is damaged, or holds more than weights.
    """
    import torch

    try:
        with torch.serialization.safe_globals(list(harmless)):
            held = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, ValueError, TypeError) as error:
        # What torch says then is how to run the code in such a file: no advice to pass on.
        raise CheckpointError(f"{path}: not a file of weights alone, as torch writes it. {fix}") from error
    if not isinstance(held, dict):
        raise CheckpointError(f"{path}: holds a {type(held).__name__}, not weights by name. {fix}")
    return held


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

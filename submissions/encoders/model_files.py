"""Where a model's files are: a folder, or a name on the Hub; and what identifies them."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cir_datasets.errors import without_secret_cause
from cir_metrics.errors import MissingExtraError
from submissions.encoders import openclip
from submissions.encoders.pretrained import update_with
from submissions.errors import EncoderError

CONFIG = "config.json"
_WEIGHTS = ("*.safetensors", "*.bin")


@dataclass(frozen=True)
class ModelFiles:
    """A model's files.

    Args:
        source: what transformers loads them from: a folder, or a name on the Hub.
        folder: the user's folder, or None where it is a name on the Hub.
        revision: commit on the Hub, or None where it is a folder.
        open_clip: whether they are in OpenCLIP's own format; `source` is a folder then.
        name: what a person calls the model.
    """

    source: str
    folder: Path | None
    revision: str | None
    open_clip: bool
    name: str

    def fingerprint(self) -> str:
        """What identifies the weights: the commit, or a folder's sha256."""
        if self.folder is not None:
            return folder_sha256(self.folder)
        return self.revision or "unknown"


def model_files(name: str | Path, revision: str | None) -> ModelFiles:
    """Find a model's files.

    Args:
        name: a folder, or a name on the Hub.
        revision: commit, branch or tag on the Hub.

    Raises:
        EncoderError: no such folder, or no model in it.
    """
    folder = _folder(name)
    if folder is not None:
        open_clip = not (folder / CONFIG).is_file()
        return ModelFiles(str(folder), folder, None, open_clip, folder.name)
    snapshot = _snapshot(str(name), revision)
    open_clip = not (snapshot / CONFIG).is_file()
    source = str(snapshot) if open_clip else str(name)
    # The folder of a snapshot has its commit for a name.
    return ModelFiles(source, None, snapshot.name, open_clip, str(name))


@contextmanager
def loading_explained(name: str | Path) -> Iterator[None]:
    """Say what transformers and the Hub say about a folder or a name, in a line."""
    try:
        yield
    except EncoderError:
        raise
    except ImportError as error:
        needs = str(error).strip().splitlines()
        raise MissingExtraError(
            f"{name}: transformers cannot load it: {next((line for line in needs if line), '')} "
            "Fix: install what it names (SigLIP's tokenizer needs: pip install sentencepiece)."
        ) from error
    except pickle.UnpicklingError as error:
        raise EncoderError(
            f"{name}: its weights are a pickle that holds more than numbers, or is damaged; opening it could "
            "run foreign code. Fix: get the model with safetensors, or convert it where you trust it."
        ) from error
    except Exception as error:  # what is wrong with files of others comes as anything
        if "trust_remote_code" in str(error):
            raise EncoderError(
                f"{name}: it works by code of its own repository only, which is never run here. Fix: use a "
                "model that transformers itself knows, or write an encoder of your own (docs/encoders.md)."
            ) from error
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        fix = (
            "get it again, or save model, tokenizer and image processor with save_pretrained."
            if Path(name).expanduser().is_dir()
            else "check the name and the revision, and that the Hub can be reached (HF_HUB_OFFLINE is not "
            "set, or the model is in the cache); or pass a folder."
        )
        raise EncoderError(
            f"{name}: cannot be loaded: {reason.rstrip('.')}. Fix: {fix}"
        ) from without_secret_cause(error)


def _folder(name: str | Path) -> Path | None:
    """The folder that is meant, or None where it is a name on the Hub."""
    path = Path(name).expanduser()
    if not path.is_dir():
        text = str(name)
        if isinstance(name, Path) or text.startswith((".", "~", "/")) or text.count("/") > 1:
            raise EncoderError(
                f"{name}: no such folder. Fix: pass a folder in Hugging Face format, or a name on the Hub "
                "such as openai/clip-vit-base-patch32."
            )
        return None
    path = path.absolute()
    if not (path / CONFIG).is_file() and not (path / openclip.CONFIG).is_file():
        raise EncoderError(
            f"{path}: no {CONFIG} is in it. Fix: pass a folder that save_pretrained wrote, or one in "
            f"OpenCLIP's format ({openclip.CONFIG})."
        )
    if not _weight_files(path):
        raise EncoderError(
            f"{path}: no weights are in it (model.safetensors or pytorch_model.bin). "
            "Fix: get them, or pass the folder that save_pretrained wrote."
        )
    return path


def _snapshot(name: str, revision: str | None) -> Path:
    """Local folder of a commit on the Hub: with the configuration, or all of a model in OpenCLIP's format."""
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import EntryNotFoundError

    try:
        return Path(hf_hub_download(name, CONFIG, revision=revision)).parent
    except EntryNotFoundError as error:
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=list(openclip.FILES)))
        if (folder / openclip.CONFIG).is_file():
            return folder
        raise EncoderError(
            f"{name}: the Hub has neither {CONFIG} nor {openclip.CONFIG} of it. "
            "Fix: name a model that transformers or OpenCLIP can load."
        ) from error


def _weight_files(folder: Path) -> list[Path]:
    return sorted(folder.glob(_WEIGHTS[0])) or sorted(folder.glob(_WEIGHTS[1]))


def folder_sha256(folder: Path) -> str:
    """sha256 (hex) over the weight files and the model's configuration, by name."""
    config = next(folder / name for name in (CONFIG, openclip.CONFIG) if (folder / name).is_file())
    whole = hashlib.sha256(config.read_bytes())
    for path in _weight_files(folder):
        whole.update(f"\0{path.name}\0".encode())
        update_with(whole, path)
    return whole.hexdigest()

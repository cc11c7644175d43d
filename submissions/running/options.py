"""What a call of `make_rank_file` says: of the right type, and nothing that would be ignored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submissions.errors import MethodError
from submissions.methods.registry import PIXELS, composer_names, scorer_names
from submissions.rank_file.depth import MAX_DEPTH

if TYPE_CHECKING:
    from submissions.embeddings.store import EmbeddingStore
    from submissions.encoders.protocol import Encoder
    from submissions.language.protocol import Language

USUAL: Mapping[str, object] = {
    "encoder": None,
    "images": None,
    "caption_rule": None,
    "search": "exact",
    "language": None,
    "checkpoint": None,
    "revision": None,
    "device": "auto",
    "dtype": "float32",
    "batch_size": 64,
    "workers": 2,
    "skip_missing": False,
}
"""The options that concern an encoder, with what each is unless told otherwise."""

LOADING = ("revision", "device", "dtype")
"""Those that say how an encoder is loaded."""


def not_usual(options: Mapping[str, object]) -> list[str]:
    """Names of the options of `USUAL` that are not what they are unless told otherwise.

    Example:
        >>> not_usual({"device": "cuda", "dtype": "float32", "encoder": "pixels", "k": 10})
        ['device']
    """
    return [
        name
        for name, value in options.items()
        if name in USUAL
        and not (value is USUAL[name] or value == USUAL[name])
        and not (name == "encoder" and value == PIXELS)
    ]


def option_words(names: list[str]) -> str:
    """Options as a call writes them.

    Example:
        >>> option_words(["batch_size", "device"])
        '--batch-size, --device'
    """
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def check_unused(name: str, unused: list[str]) -> None:
    """Refuse options that a method without an encoder would ignore.

    Args:
        name: the method's.
        unused: names of the options.

    Raises:
        MethodError: there are some.

    Example:
        >>> check_unused("random", [])
    """
    if unused:
        words = option_words(unused)
        other = ", or choose an --encoder" if name in composer_names() and "encoder" not in unused else ""
        raise MethodError(f"{name} uses no encoder, and has no use for {words}. Fix: leave it out{other}.")


def check_loading(encoder: str | Encoder, options: Mapping[str, object]) -> None:
    """Refuse options of loading where there is nothing that they could change.

    Args:
        encoder: its name or folder, or an encoder that is loaded.
        options: `LOADING` with their values.

    Raises:
        MethodError: the encoder is loaded already, or a revision is asked of what has none.
    """
    from submissions.encoders.protocol import SHAPES_ENCODER

    if not isinstance(encoder, str):
        unused = not_usual({name: options[name] for name in LOADING})
        if unused:
            words = ", ".join(f"{option}=" for option in unused)
            raise MethodError(
                f"the encoder {encoder.identity.model} is loaded already, and {words} would be ignored. "
                "Fix: say it to load_encoder."
            )
    elif options["revision"] is not None and (
        encoder == SHAPES_ENCODER or Path(encoder).expanduser().is_dir()
    ):
        what = "comes with this package" if encoder == SHAPES_ENCODER else "is a folder"
        raise MethodError(
            f"--revision {options['revision']}: the encoder {encoder} {what}; only names on the Hub have "
            "revisions. Fix: leave it out."
        )


def checked_k(k: object) -> int:
    """The number of images a ranking.

    Raises:
        MethodError: it is not a whole number from 1 to 1,000.

    Example:
        >>> checked_k(50)
        50
    """
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_DEPTH:
        raise MethodError(f"k={k!r}; a ranking holds 1 to {MAX_DEPTH:,} images. Fix: choose k in that range.")
    return k


def check_counts(batch_size: object, workers: object) -> None:
    """Refuse counts that are none.

    Raises:
        MethodError: `batch_size` is not a whole number from 1, or `workers` none from 0.

    Example:
        >>> check_counts(64, 0)
    """
    for name, value, least in (("batch_size", batch_size, 1), ("workers", workers, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise MethodError(
                f"{name}={value!r}; it is a whole number, {least} or more. Fix: choose another one, or none."
            )


def checked_encoder(encoder: object) -> str | Encoder | None:
    """An encoder, or its name or folder as text.

    Raises:
        MethodError: it is none of them.

    Example:
        >>> checked_encoder(Path("models/clip"))
        'models/clip'
    """
    from submissions.encoders.protocol import Encoder

    if isinstance(encoder, Path):
        return str(encoder)
    if encoder is None or isinstance(encoder, str | Encoder):
        return encoder
    raise MethodError(
        f"encoder= is of type {type(encoder).__name__}, which has no identity, encode_images and "
        "encode_texts. Fix: pass a name, a folder, or what load_encoder gives."
    )


def checked_language(language: object) -> str | Language | None:
    """A language backend or its name.

    Raises:
        MethodError: it is neither.

    Example:
        >>> checked_language("oracle")
        'oracle'
    """
    from submissions.language.protocol import Language

    if language is None or isinstance(language, str | Language):
        return language
    raise MethodError(
        f"language= is of type {type(language).__name__}, which is not a language backend. "
        "Fix: pass a name such as oracle, or what load_language gives."
    )


def checked_store(store: object) -> EmbeddingStore | None:
    """A store, of its folder where that is given.

    Raises:
        MethodError: it is neither.

    Example:
        >>> checked_store("kept").root.name
        'kept'
    """
    from submissions.embeddings.store import EmbeddingStore

    if isinstance(store, str | Path):
        return EmbeddingStore(Path(store))
    if store is None or isinstance(store, EmbeddingStore):
        return store
    raise MethodError(
        f"store= is of type {type(store).__name__}. Fix: pass a folder or an EmbeddingStore, or leave it out."
    )


def check_pixels(name: str, encoder: Any) -> None:
    """Refuse "pixels" as the encoder of a method on embeddings.

    Raises:
        MethodError: it is.
    """
    if isinstance(encoder, str) and encoder == PIXELS:
        raise MethodError(
            f"{name} works on an encoder's vectors, and pixels has none; it is for "
            f"{', '.join(scorer_names())}. Fix: choose another --encoder."
        )

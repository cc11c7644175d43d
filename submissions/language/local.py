"""Models of the transformers library on this machine: they look, write, or both.

Three kinds, told apart by what the folder holds: an image-text model with a chat template answers everything;
one without (BLIP, GIT) captions pictures, without a prompt; a text model with a chat template does everything
but caption. Decoding is greedy. Code of a model's repository is never run.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cir_datasets.errors import without_secret_cause
from cir_metrics.errors import CallError, MissingExtraError
from submissions.encoders.pretrained import NO_FOREIGN_CODE, device_of, libraries, quiet, update_with
from submissions.errors import LanguageError
from submissions.language.answers import Answer, NoAnswerError, WrongFormError
from submissions.language.asking import AskingLanguage, ModelQuestion, opened
from submissions.language.cache import answer_cache
from submissions.language.prompts import load_prompts
from submissions.language.protocol import LanguageIdentity
from submissions.language.usage import Usage

_ATTEMPTS = 3
"""Times that a question is asked whose answers are not of the form that was asked for."""
_DTYPES = ("auto", "float32", "float16", "bfloat16")
_CONTENT = (".safetensors", ".bin", ".json", ".jinja", ".txt", ".model")
"""Endings of the files that a model's answers depend on."""

_LOADING_ERRORS = (
    *(OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError),
    *(EOFError, pickle.UnpicklingError),
)
"""What is wrong with files of others comes as any of these."""


class LocalLanguage(AskingLanguage):
    """A model in Hugging Face format, from a folder or the Hub.

    Answers are the same for the same batches on one machine. Beside other questions in a batch an answer is
    computed with other rounding, which can change a word: `batch_size=1` is slower and has no neighbours.

    Args:
        model: a folder in Hugging Face format, or a model's name on the Hub.
        revision: commit, branch or tag on the Hub; None is its main branch.
        device: `auto` (a GPU where there is one), `cpu`, `cuda`, `cuda:1`, `mps`.
        dtype: of the weights: `float32`, `float16`, `bfloat16`, or `auto`, as they were saved.
        prompts: folder of prompts that replace ours; None looks at `CIR_PROMPTS`.
        cache: folder of answers; None is `language` in the cache, False asks everything anew.
        max_tokens: most tokens of an answer; one that is longer counts as none.
        batch_size: questions answered at once, 1 or more.

    Raises:
        MissingExtraError: torch or transformers is not installed.
        CallError: an argument is out of range.
        LanguageError: the model cannot be loaded, or is of no kind that is known.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        prompts: str | Path | None = None,
        cache: str | Path | bool | None = None,
        max_tokens: int = 300,
        batch_size: int = 1,
    ) -> None:
        """See the class."""
        for name, value in (("max_tokens", max_tokens), ("batch_size", batch_size)):
            if value <= 0:
                raise CallError(f"{name}={value}; it is above 0. Fix: leave it out for our choice.")
        if dtype not in _DTYPES:
            raise CallError(f"dtype {dtype!r} is not known. Fix: use one of {', '.join(_DTYPES)}.")
        templates = load_prompts(prompts)
        self._torch, transformers = libraries("a local model")
        self._device = device_of(device, CallError)
        folder = _folder(str(model))
        source = str(model) if folder is None else str(folder)
        with _loading_explained(source), quiet(transformers):
            config = transformers.AutoConfig.from_pretrained(source, revision=revision, **NO_FOREIGN_CODE)
            commit = getattr(config, "_commit_hash", None) or revision
            self._sees, loader = _kind(transformers, source, config)
            weights = loader.from_pretrained(source, revision=commit, dtype=dtype, **NO_FOREIGN_CODE)
            maker = transformers.AutoProcessor if self._sees else transformers.AutoTokenizer
            self._processor = maker.from_pretrained(source, revision=commit, **NO_FOREIGN_CODE)
        self._model = weights.to(self._device).eval().requires_grad_(False)
        self._tokenizer = getattr(self._processor, "tokenizer", self._processor)
        self._tokenizer.padding_side = "left"
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        self._writes = getattr(self._processor, "chat_template", None) is not None
        if not self._sees and not self._writes:
            raise LanguageError(
                f"{source}: a text model without a chat template does not answer questions. "
                "Fix: use one that was tuned to follow instructions."
            )
        self._ends = _ends(weights, self._tokenizer)
        self._max_tokens = max_tokens
        self._identity = LanguageIdentity(
            "transformers",
            source if folder is None else folder.name,
            (commit or "unknown") if folder is None else _content_hash(folder),
            templates.sha256,
            f"{str(self._model.dtype).removeprefix('torch.')}, max_tokens {max_tokens}",
        )
        super().__init__(
            prompts=templates,
            cache=answer_cache(cache),
            usage=Usage(),
            threads=1,
            at_once=batch_size,
            depends_on={
                "backend": "transformers",
                "model": "" if folder is not None else source,
                "revision": self._identity.revision,
                "settings": self._identity.settings,
            },
            title=f"transformers:{self._identity.model}",
            ask=self._replies,
        )

    @property
    def identity(self) -> LanguageIdentity:
        """What the answers depend on."""
        return self._identity

    def _replies(self, questions: Sequence[ModelQuestion]) -> list[Answer | NoAnswerError]:
        """What the model says to questions of one task; those answered in another form are asked again."""
        replies = self._said(questions, [None] * len(questions))
        for _ in range(_ATTEMPTS - 1):
            wrong = {place: reply for place, reply in enumerate(replies) if isinstance(reply, WrongFormError)}
            if not wrong:
                break
            again = self._said([questions[place] for place in wrong], list(wrong.values()))
            for place, reply in zip(wrong, again, strict=True):
                replies[place] = reply
        return replies

    def _said(
        self, questions: Sequence[ModelQuestion], wrong: Sequence[WrongFormError | None]
    ) -> list[Answer | NoAnswerError]:
        """One answer to each question, after what the model has answered wrongly before."""
        looks = bool(questions[0].pictures)
        if looks and not self._sees:
            raise NoAnswerError(
                "the model sees no pictures",
                final=True,
                fix="name an image-text model, or two as SEES+WRITES, each with its backend",
            )
        if not looks and not self._writes:
            raise NoAnswerError(
                "the model captions pictures and follows no instructions",
                final=True,
                fix="name a model with a chat template, or two as SEES+WRITES, each with its backend",
            )
        self.usage.sent()
        torch = self._torch
        try:
            inputs = self._inputs(questions, wrong).to(self._device)
            with torch.inference_mode():
                made = self._model.generate(
                    **inputs, do_sample=False, num_beams=1, max_new_tokens=self._max_tokens
                )
        except torch.OutOfMemoryError as error:
            raise NoAnswerError(
                "the device has too little memory",
                final=True,
                fix="lower batch_size=, or use a smaller dtype",
            ) from error
        asked = inputs["input_ids"] if self._writes else None
        start = 0 if asked is None else asked.shape[1]
        sizes = [0] * len(questions) if asked is None else inputs["attention_mask"].sum(dim=1).tolist()
        return [
            self._answer(question, row[start:].tolist(), int(size))
            for question, row, size in zip(questions, made.cpu(), sizes, strict=True)
        ]

    def _inputs(self, questions: Sequence[ModelQuestion], wrong: Sequence[WrongFormError | None]) -> Any:
        """Tensors of the questions, padded on the left."""
        images = [[opened(picture).convert("RGB") for picture in question.pictures] for question in questions]
        if not self._writes:
            inputs = self._processor(images=[each[0] for each in images], return_tensors="pt")
            inputs["pixel_values"] = inputs["pixel_values"].to(self._model.dtype)
            return inputs
        asked = [
            self._conversation(question, before) for question, before in zip(questions, wrong, strict=True)
        ]
        texts = self._processor.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
        if not self._sees:
            return self._processor(texts, padding=True, add_special_tokens=False, return_tensors="pt")
        begun = self._tokenizer.bos_token is not None and texts[0].startswith(self._tokenizer.bos_token)
        inputs = self._processor(
            text=texts,
            images=images if images[0] else None,
            padding=True,
            add_special_tokens=not begun,
            return_tensors="pt",
        )
        for name, values in inputs.items():
            if values.is_floating_point():
                inputs[name] = values.to(self._model.dtype)
        return inputs

    def _conversation(self, question: ModelQuestion, wrong: WrongFormError | None) -> list[dict[str, Any]]:
        """A question's prompt behind its pictures; several have their numbers."""
        parts: list[dict[str, str]] = []
        for number, _ in enumerate(question.pictures, start=1):
            if len(question.pictures) > 1:
                parts.append({"type": "text", "text": f"Picture {number}:"})
            parts.append({"type": "image"})
        messages = [{"role": "user", "content": self._content(parts, question.prompt)}]
        if wrong is not None:
            messages.append({"role": "assistant", "content": self._content([], wrong.said)})
            messages.append({"role": "user", "content": self._content([], wrong.correction)})
        return messages

    def _content(self, parts: list[dict[str, str]], prompt: str) -> Any:
        return [*parts, {"type": "text", "text": prompt}] if self._sees else prompt

    def _answer(self, question: ModelQuestion, tokens: list[int], asked: int) -> Answer | NoAnswerError:
        said = len([token for token in tokens if token != self._tokenizer.pad_token_id])
        self.usage.paid(asked, said)
        if len(tokens) >= self._max_tokens and tokens[-1] not in self._ends:
            return NoAnswerError("the answer was cut off", fix="raise max_tokens")
        try:
            return Answer(
                question.read(self._tokenizer.decode(tokens, skip_special_tokens=True)), asked, said
            )
        except NoAnswerError as error:
            return error


def _folder(model: str) -> Path | None:
    """The folder that is meant, or None where it is a name on the Hub."""
    path = Path(model).expanduser()
    if not path.is_dir():
        if model.startswith((".", "~", "/")) or model.count("/") > 1:
            raise LanguageError(
                f"{model}: no such folder. Fix: name a folder in Hugging Face format, or a model on the Hub."
            )
        return None
    if not (path / "config.json").is_file():
        raise LanguageError(
            f"{path}: no config.json is in it. Fix: name a folder that save_pretrained wrote."
        )
    return path.absolute()


def _kind(transformers: Any, source: str, config: Any) -> tuple[bool, Any]:
    """Whether a model sees pictures, and what loads it."""
    if type(config) in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        return True, transformers.AutoModelForImageTextToText
    if type(config) in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
        return False, transformers.AutoModelForCausalLM
    raise LanguageError(
        f"{source}: models of type {config.model_type!r} write no text. "
        "Fix: use an image-text model, or a text model that follows instructions."
    )


def _ends(model: Any, tokenizer: Any) -> set[int]:
    """Tokens after which an answer is complete."""
    named = getattr(model.generation_config, "eos_token_id", None)
    ends = {tokenizer.eos_token_id, tokenizer.pad_token_id, getattr(tokenizer, "sep_token_id", None)}
    ends.update(named if isinstance(named, list) else [named])
    return {token for token in ends if token is not None}


def _content_hash(folder: Path) -> str:
    """sha256 (hex) over the files of a model, by name."""
    whole = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in _CONTENT:
            whole.update(f"\0{path.name}\0{path.stat().st_size}\0".encode())
            update_with(whole, path)
    return whole.hexdigest()


@contextmanager
def _loading_explained(source: str) -> Iterator[None]:
    """Say what transformers says about a folder or a name, in a line."""
    try:
        yield
    except LanguageError:
        raise
    except ImportError as error:
        needs = next((line for line in str(error).strip().splitlines() if line), "")
        raise MissingExtraError(
            f"{source}: transformers cannot load it: {needs} Fix: install what it names."
        ) from error
    except _LOADING_ERRORS as error:
        if "trust_remote_code" in str(error):
            raise LanguageError(
                f"{source}: it cannot be loaded without code of its own, which is never run. "
                "Fix: use a model that transformers itself knows."
            ) from error
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise LanguageError(
            f"{source}: cannot be loaded: {reason} Fix: check the name, and that the Hub can be reached "
            "(HF_HUB_OFFLINE); of a folder, save model and processor with save_pretrained."
        ) from without_secret_cause(error)

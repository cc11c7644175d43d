"""Prompt templates: text files with placeholders, ours or a user's folder of them.

A template is Markdown or plain text, `NAME.md`, with placeholders such as `{caption}`. It may begin with its
version, between two lines of `---`. Our tasks need their placeholders; every other file is a question of your
own for `judge` or `ask`. A user's folder replaces the templates that it holds; what it leaves out stays ours.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from cir_metrics.errors import CallError, did_you_mean
from submissions.errors import LanguageError

PLACEHOLDERS: Mapping[str, tuple[str, ...]] = {
    "caption": (),
    "merge": ("caption", "change"),
    "difference": ("first", "second"),
    "fits": ("caption", "change", "target"),
    "same": ("first", "second"),
    "caption_clothes": (),
    "feedback": ("first", "second", "words", "limits"),
    "feedback_pictures": ("words", "limits"),
    "next_difference": ("history", "retry"),
    "frame": ("number",),
    "next_frame": ("number",),
    "frame_change": (),
    "summary": ("captions",),
    "session": ("utterances",),
    "reverse": ("change",),
    "candidate": (),
    "edit_addition": ("caption", "retry"),
    "edit_negation": ("caption", "retry"),
    "edit_change": ("caption", "retry"),
    "edit_background": ("caption", "retry"),
    "edit_complex": ("caption", "retry"),
    "hard_negative": ("reference", "change", "target", "like"),
    "pair": (),
}
"""The words that each of our templates is given; each of them must occur in it."""

VARIABLE = "CIR_PROMPTS"
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_VERSIONED = re.compile(r"---\nversion: (?P<version>\w[\w.-]{0,39})\n---\n(?P<text>.*)", re.DOTALL)


@dataclass(frozen=True)
class Template:
    """One prompt with places for words.

    Args:
        name: the file's name without ending, or `judge` for a text that was passed.
        text: what is sent, with placeholders.
        version: what its file says of it; empty where it says nothing.
    """

    name: str
    text: str
    version: str = ""

    @property
    def placeholders(self) -> frozenset[str]:
        """Names of the words that it needs.

        Example:
            >>> sorted(Template("merge", "{caption}, but {change}").placeholders)
            ['caption', 'change']
        """
        return frozenset(_PLACEHOLDER.findall(self.text))

    @property
    def label(self) -> str:
        """Name, version and the start of the hash, for headers of what was made with it.

        Example:
            >>> Template("merge", "{caption}, but {change}", "2").label
            'merge 2 (d2987231840c)'
        """
        return " ".join(filter(None, (self.name, self.version, f"({self.sha256[:12]})")))

    @property
    def sha256(self) -> str:
        """Of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def filled(self, words: Mapping[str, str]) -> str:
        """The prompt with its words; braces inside the words stay as they are.

        Raises:
            LanguageError: a word is missing.

        Example:
            >>> Template("merge", "{caption}, but {change}").filled({"caption": "a {dog}", "change": "red"})
            'a {dog}, but red'
        """
        missing = sorted(self.placeholders - set(words))
        if missing:
            raise LanguageError(
                f"prompt {self.name}: no words for {_braced(missing)}. "
                f"Fix: give every item {', '.join(map(repr, sorted(self.placeholders)))}."
            )
        return _PLACEHOLDER.sub(lambda found: words[found[1]], self.text)


@dataclass(frozen=True)
class Prompts:
    """All templates of a backend, by name."""

    templates: Mapping[str, Template]

    @property
    def sha256(self) -> str:
        """Of names and texts together: what `LanguageIdentity.prompts` says."""
        listed = {name: template.text for name, template in self.templates.items()}
        return hashlib.sha256(json.dumps(listed, sort_keys=True).encode()).hexdigest()

    def __getitem__(self, name: str) -> Template:
        """The template of a name, or of a text that holds a placeholder.

        Raises:
            LanguageError: no template has that name.
        """
        if name in self.templates:
            return self.templates[name]
        if _NAME.fullmatch(name):
            raise LanguageError(
                f"no prompt {name!r}.{did_you_mean(name, self.templates)} "
                f"There are {', '.join(self.templates)}. Fix: use one of them, put {name}.md into your "
                "folder of prompts, or pass the text itself."
            )
        template = Template("judge", name)
        if not template.placeholders:
            raise LanguageError(
                f"prompt {name[:60]!r}: it has no placeholder, so that every item would be asked the same. "
                "Fix: put the names of the items' words into it in braces, such as {caption}."
            )
        return template


def load_prompts(folder: str | Path | None = None) -> Prompts:
    """The templates of this package, or with some replaced by a user's.

    Args:
        folder: files `NAME.md` that replace ours of that name or add to them; None looks at `CIR_PROMPTS`.

    Raises:
        CallError: the folder does not exist or holds no template.
        LanguageError: a template lacks a placeholder, has one that nothing fills, or is empty.

    Example:
        >>> list(load_prompts().templates)[:5]
        ['caption', 'merge', 'difference', 'fits', 'same']
    """
    ours = resources.files("submissions") / "language" / "templates"
    found = {name: _template(name, (ours / f"{name}.md").read_bytes(), name) for name in PLACEHOLDERS}
    folder = folder or os.environ.get(VARIABLE) or None
    if folder is None:
        return Prompts(found)
    root = Path(folder).expanduser().absolute()
    if not root.is_dir():
        raise CallError(f"{root}: no such folder of prompts. Fix: name a folder with files such as merge.md.")
    files = sorted(root.glob("*.md"))
    if not files:
        raise CallError(f"{root}: no prompt in it. Fix: put files such as merge.md there.")
    for file in files:
        found[file.stem] = _checked(file)
    return Prompts(found)


def _checked(file: Path) -> Template:
    if not _NAME.fullmatch(file.stem):
        raise LanguageError(
            f"{file}: {file.stem!r} is not a name of a prompt. "
            "Fix: small letters, digits and _, as in merge.md or my_question.md."
        )
    template = _template(file.stem, file.read_bytes(), str(file))
    if not template.text:
        raise LanguageError(f"{file}: the prompt is empty. Fix: write what is asked, or remove the file.")
    wanted = PLACEHOLDERS.get(file.stem)
    if wanted is None:
        return template
    lacking = sorted(set(wanted) - template.placeholders)
    if lacking:
        raise LanguageError(f"{file}: it lacks {_braced(lacking)}. Fix: put it where those words belong.")
    unknown = sorted(template.placeholders - set(wanted))
    if unknown:
        known = f"use {_braced(wanted)} only" if wanted else "this prompt has no placeholders"
        raise LanguageError(f"{file}: nothing fills {_braced(unknown)}. Fix: {known}.")
    return template


def _template(name: str, content: bytes, where: str) -> Template:
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").strip()
    except UnicodeDecodeError as error:
        raise LanguageError(f"{where}: it is not UTF-8 ({error.reason}). Fix: save it as UTF-8.") from error
    versioned = _VERSIONED.fullmatch(text)
    if versioned is None:
        return Template(name, text)
    return Template(name, versioned["text"].strip(), versioned["version"])


def _braced(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)

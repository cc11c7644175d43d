"""Caption rules: how the several captions of a query become text.

FashionIQ has two captions a query, and papers join them in at least nine ways; which one moves scores, so it
is declared by name. The rules are data (`caption_rules.yaml`); the strings of a name never change.
"""

from __future__ import annotations

import functools
import json
import string
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from cir_datasets.common.yaml import checked, read_yaml
from cir_datasets.errors import CaptionRuleError, CardError
from cir_metrics.errors import UnknownNameError

_BLANKS = str.maketrans(dict.fromkeys(string.punctuation, " "))


class CaptionRule(BaseModel):
    """One way to make text of captions; `caption_rules.yaml` says what its fields mean."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    meaning: str
    take: Literal["only", "first", "last", "each", "all"]
    words: bool = False
    spelled: bool = False
    spelling: dict[str, str] | None = None
    strip: str = ""
    skip_empty: bool = False
    capitalize: bool = False
    join: str = ""
    orders: tuple[Literal["forward", "reversed"], ...] = ("forward",)

    def texts(self, captions: Sequence[str]) -> list[str]:
        """The texts that captions become: one, or several where the rule says so; never none.

        Args:
            captions: as published. Without any (a turn of feedback without words) the text is empty.

        Raises:
            CaptionRuleError: the rule is for one caption, and there are several; or it needs a dictionary.

        Example:
            >>> caption_rule("strip_capitalize_and").texts(["is Red.", " has a longer sleeve"])
            ['Is red and has a longer sleeve']
        """
        if self.take == "only" and len(captions) > 1:
            raise CaptionRuleError(
                f"the caption rule {self.name!r} is for one caption, and there are {len(captions)}: "
                f"{list(captions)}. {_fix()}"
            )
        if self.spelled and self.spelling is None:
            raise CaptionRuleError(
                f"the caption rule {self.name!r} corrects words by a dictionary, and none was given. Fix: in "
                f"Python pass caption_rule({self.name!r}, spelling=FILE), a JSON object of words and their "
                "corrections; or use lower_and, which corrects none."
            )
        if self.words:
            captions = [self._plain(caption) for caption in captions]
        kept = [caption.strip(self.strip) if self.strip else caption for caption in captions]
        if self.skip_empty:
            kept = [caption for caption in kept if caption]
        if not kept:
            return [""]
        if self.take in ("first", "last"):
            kept = kept[:1] if self.take == "first" else kept[-1:]
        if self.take == "each":
            return [self._text([caption]) for caption in kept]
        orders = self.orders if len(kept) > 1 else self.orders[:1]
        return [self._text(kept if order == "forward" else kept[::-1]) for order in orders]

    def _plain(self, caption: str) -> str:
        words = caption.lower().translate(_BLANKS).split()
        return " ".join((self.spelling or {}).get(word, word) for word in words)

    def _text(self, captions: list[str]) -> str:
        first, *others = captions
        return self.join.join([first.capitalize() if self.capitalize else first, *others])


@functools.cache
def _rules() -> dict[str, CaptionRule]:
    where = "registry/caption_rules.yaml"
    text = (resources.files("cir_datasets") / where).read_text(encoding="utf-8")
    return {
        name: checked(CaptionRule, {"name": name, **fields}, f"{where}: {name}", CardError)
        for name, fields in read_yaml(text, where, CardError).items()
    }


def caption_rule_names() -> tuple[str, ...]:
    """Names of all caption rules.

    Example:
        >>> "strip_capitalize_and" in caption_rule_names()
        True
    """
    return tuple(_rules())


def caption_rule(name: str, *, spelling: str | Path | Mapping[str, str] | None = None) -> CaptionRule:
    """The caption rule of a name.

    Args:
        name: such as `strip_capitalize_and`.
        spelling: of a rule that corrects words (`lower_spelled_and`): a JSON file with an object of words, in
            lower case, and what each becomes, or that object.

    Raises:
        UnknownNameError: no rule has that name; the message names all.
        CaptionRuleError: the dictionary cannot be read, or the rule uses none.

    Example:
        >>> caption_rule("both_orders").texts(["is red", "is long"])
        ['Is red and is long', 'Is long and is red']
        >>> caption_rule("lower_spelled_and", spelling={"sleves": "sleeves"}).texts(["V-neck.", "sleves"])
        ['v neck and sleeves']
    """
    if name not in _rules():
        known = caption_rule_names()
        raise UnknownNameError.of("caption rule", name, known)
    rule = _rules()[name]
    if spelling is None:
        return rule
    if not rule.spelled:
        raise CaptionRuleError(
            f"spelling=: the caption rule {name!r} corrects no words. "
            "Fix: leave spelling= out, or use lower_spelled_and."
        )
    return rule.model_copy(update={"spelling": _corrections(spelling)})


def _corrections(spelling: str | Path | Mapping[str, str]) -> dict[str, str]:
    """A dictionary of words and their corrections, from a file or as it is given."""
    where, why = "spelling=", "it is no object of words"
    made: Any = spelling
    if not isinstance(spelling, Mapping):
        where = f"spelling={str(spelling)!r}"
        try:
            made = json.loads(Path(spelling).read_text("utf-8"))
        except (OSError, ValueError) as error:
            made, why = None, str(error)
    if isinstance(made, Mapping) and all(isinstance(text, str) for pair in made.items() for text in pair):
        return dict(made)
    raise CaptionRuleError(
        f'{where}: {why}. Fix: give a JSON file that holds words and corrections, {{"sleves": "sleeves"}}.'
    )


TURN_RULE = "trim_and"
"""How several captions of a query or a turn become the one text that a method reads."""


def published_text(row: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """A query's or a turn's captions as one text, and as they were published.

    Args:
        row: with `captions`, or with `relative_caption` where a publisher has joined them.

    Example:
        >>> published_text({"captions": ["red ", "big"]})
        ('red and big', ('red ', 'big'))
    """
    captions = row.get("captions") or ([row["relative_caption"]] if row.get("relative_caption") else [])
    published = tuple(caption or "" for caption in captions)
    joined = (row["relative_caption"],) if row.get("relative_caption") else published
    return caption_rule(TURN_RULE).texts(joined)[0], published


def _fix() -> str:
    several = [name for name, rule in _rules().items() if rule.take != "only"]
    return f"Fix: caption_rule= one of {', '.join(several)}."

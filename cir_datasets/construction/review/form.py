"""What people are shown and asked: a form, as YAML says it."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cir_datasets.common.yaml import checked, read_yaml
from cir_datasets.construction.filled_tables import read_text
from cir_datasets.errors import ConstructionError

Scale = Literal["nominal", "ordinal", "interval"]

COMMON = ("annotator", "run", "seconds")
"""Columns of every file of answers, beside those of its form."""

_SCALES: Mapping[str, Scale] = {
    "choice": "nominal",
    "sort": "nominal",
    "stars": "ordinal",
    "number": "interval",
}
_PICTURE = re.compile(r'"([^"]*)"|(\S+)')
_NAME = rf"^[{string.ascii_letters}][{string.ascii_letters}{string.digits}_]*$"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ReviewField(_Part):
    """A field of an item that the page shows.

    Args:
        field: its name; of pictures, a file's name, `{picture: FILE, text: WORDS}`, or a list of these. Files
            of videos are shown as such.
        label: what stands beside it.
        frame: of pictures the colour around them.
        small: whether pictures are small, beside each other.
        below: whether it stands below the questions.
    """

    field: str
    label: str = ""
    frame: Literal["plain", "good", "bad"] = "plain"
    small: bool = False
    below: bool = False


class ReviewQuestion(_Part):
    """A question.

    Args:
        name: of its column.
        kind: `choice` of one, `text`, `number` (whole), `stars` (from 1), or `sort`: one of the choices for
            each of the item's pictures, or none.
        label: the question.
        choices: by value what the page says; of `sort` each is a column, which names its pictures.
        clear: what the button says that takes a choice back.
        menu: whether choices are a menu.
        pictures: of `sort` the item's field.
        rest: of `sort` what the page says of pictures in no column.
        needed: whether an answer without it is refused.
        of: a field; items without it are not asked.
        prefilled: whether the item brings an answer, which people correct.
        placeholder: a field, shown while there is no answer.
        unless: by other questions the answers with which this one is void; none stands for any answer.
        ends: choices with which no other answer of the item counts.
        sets: by other questions the answer that a change here gives them where they have none.
        min: lowest number; of `sort`, so many pictures in the first column.
        max: highest number, number of stars, characters of a text, or pictures in the first column.
        min_words: different words of a text.
        most_alike: items for which one person may write the same text; 0 is any number.
        distinct: a field; the same text may not be written for two items that share it.
        lines: of a text's box.
        scores: by choice the number that it stands for.
        scale: of the agreement; by default nominal for choices, ordinal for stars, interval for numbers.
    """

    name: str = Field(pattern=_NAME)
    kind: Literal["choice", "text", "number", "stars", "sort"]
    label: str
    choices: dict[str, str] = {}
    clear: str = "Clear"
    menu: bool = False
    pictures: str = ""
    rest: str = "neither"
    needed: bool = False
    of: str = ""
    prefilled: bool = False
    placeholder: str = ""
    unless: dict[str, tuple[str, ...]] = {}
    ends: tuple[str, ...] = ()
    sets: dict[str, str] = {}
    min: int = 0
    max: int = 0
    min_words: int = 0
    most_alike: int = 0
    distinct: str = ""
    lines: int = 1
    scores: dict[str, float] = {}
    scale: Scale | None = None

    @model_validator(mode="after")
    def _fits(self) -> ReviewQuestion:
        if (self.kind in {"choice", "sort"}) != bool(self.choices):
            raise ValueError(f"{self.name}: choices belong to the kinds choice and sort, and to these alone")
        if (self.kind == "sort") != bool(self.pictures):
            raise ValueError(f"{self.name}: a question of the kind sort names its pictures, and no other")
        if not {*self.ends, *self.scores} <= set(self.choices):
            raise ValueError(f"{self.name}: ends or scores name a choice that there is not")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """Where its answers stand."""
        return tuple(self.choices) if self.kind == "sort" else (self.name,)

    @property
    def highest(self) -> int | None:
        """The highest number or the number of stars; None where any is right."""
        return self.max or (5 if self.kind == "stars" else None)

    @property
    def lowest(self) -> int:
        """The lowest number."""
        return 1 if self.kind == "stars" else self.min

    @property
    def level(self) -> Scale | None:
        """Of the agreement; None of texts."""
        return self.scale or _SCALES.get(self.kind)


class ReviewForm(_Part):
    """A form.

    Args:
        name: of the form.
        item: what an item is called, and several of them.
        id: the field that names an item.
        unit: the field that items share which ask for the same; `id` where it is empty.
        keys: further fields that answers must repeat, such as the seed of what was shown.
        one_person: whether an item is answered by one person; a second one's answer is refused.
        page_size: items of a page.
        instructions: paragraphs.
        examples: answers that the instructions show; whoever hands one in has not looked.
        pictures: fields with pictures.
        texts: fields with texts.
        questions: what is asked.
        done: questions whose answers make an item done; those that are needed where it is empty.
        context: fields that tables show beside the answers.
        cases: of a benchmark's queries what is an item: each query, or each target of it.
        sample: so many of these are drawn of each source; 0 is all.
        people: how many answer each item.
        columns_of: by a field of queries, of several texts, the questions whose answers it becomes.
        clean: by question the answers of queries that an overlay keeps.
        published: by question what a paper has, by dataset or model.
    """

    name: str = Field(pattern=_NAME)
    item: tuple[str, str] = ("item", "items")
    id: str = "id"
    unit: str = ""
    keys: tuple[str, ...] = ()
    one_person: bool = False
    page_size: int = Field(default=10, ge=1)
    instructions: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    pictures: tuple[ReviewField, ...] = ()
    texts: tuple[ReviewField, ...] = ()
    questions: tuple[ReviewQuestion, ...] = Field(min_length=1)
    done: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    cases: Literal["queries", "targets"] = "queries"
    sample: int = Field(default=0, ge=0)
    people: int = Field(default=1, ge=1)
    columns_of: dict[Literal["auxiliary_captions", "captions"], tuple[str, ...]] = {}
    clean: dict[str, tuple[str, ...]] = {}
    published: dict[str, dict[str, float]] = {}

    @model_validator(mode="after")
    def _names_fit(self) -> ReviewForm:
        columns = [self.id, *self.keys, *self.columns, *COMMON]
        twice = sorted({name for name in columns if columns.count(name) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} names two columns")
        known = {question.name for question in self.questions}
        named = (*self.done, *self.clean, *(name for many in self.columns_of.values() for name in many))
        for name in (*named, *(name for one in self.questions for name in (*one.unless, *one.sets))):
            if name not in known:
                raise ValueError(f"{name} is no question")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the answers."""
        return tuple(column for question in self.questions for column in question.columns)

    @property
    def sorted_pictures(self) -> list[str]:
        """Fields whose pictures people sort."""
        return [question.pictures for question in self.questions if question.pictures]

    @property
    def brought(self) -> set[str]:
        """Columns that items bring and people correct."""
        return {column for one in self.questions if one.prefilled for column in one.columns}

    @property
    def table_columns(self) -> tuple[str, ...]:
        """Of the table to fill in."""
        return (self.id, *self.keys, *self.columns, *self.context)

    @property
    def done_by(self) -> tuple[str, ...]:
        """Questions whose answers make an item done."""
        return self.done or tuple(question.name for question in self.questions if question.needed)

    @property
    def required(self) -> tuple[str, ...]:
        """Columns that a file of answers has."""
        asked = [one for one in self.questions if one.prefilled or one.name in self.done_by]
        return (self.id, *self.keys, *(column for one in asked for column in one.columns))

    def changed(self, question: str, **values: Any) -> ReviewForm:
        """The form with some values of a question changed."""
        questions = [one.model_copy(update=values) if one.name == question else one for one in self.questions]
        return self.model_copy(update={"questions": tuple(questions)})

    def answers_in(self, row: Mapping[str, Any]) -> dict[str, str]:
        """What a row answers, by column: of an item what it brings, of a file's row what people filled in.

        Where an answer ends the others, they are left out; blanks are one blank.
        """
        found = {column: plain(row.get(column)) for column in self.columns}
        if any(found.get(question.name) in question.ends for question in self.questions):
            found = {column: text for column, text in found.items() if column not in self.brought}
        return {column: text for column, text in found.items() if text}

    def of_item(self, item: Mapping[str, Any]) -> Iterator[ReviewQuestion]:
        """The questions that are asked of an item."""
        return (question for question in self.questions if not question.of or item.get(question.of))


def cell(value: Any) -> str:
    """A value as a cell of a table holds it: lists with blanks between, names with blanks in quotation marks.

    Example:
        >>> cell(["a.jpg", "red car.jpg"])
        'a.jpg "red car.jpg"'
    """
    if isinstance(value, list | tuple):
        return " ".join(f'"{one}"' if " " in str(one) else str(one) for one in value)
    return "" if value is None else str(value)


def names_in(text: str) -> list[str]:
    """The names of pictures in a cell.

    Example:
        >>> names_in('a.jpg "red car.jpg"')
        ['a.jpg', 'red car.jpg']
    """
    return [quoted or bare for quoted, bare in _PICTURE.findall(text)]


def plain(value: Any) -> str:
    """A value as a cell holds it, blanks are one blank."""
    return " ".join(cell(value).split())


def load_form(form: str | Path) -> ReviewForm:
    """A form of this package by name, or that of a YAML file.

    Args:
        form: `cirr`, `fisd`, `zerosight`, `auxiliary`, `performance`, `noise`, `quality`, or the path of a
            file.

    Raises:
        ConstructionError: it cannot be read, or does not say a form; the message names the field.

    Example:
        >>> load_form("cirr").required
        ('task', 'caption')
    """
    shipped = resources.files(__package__) / "forms" / f"{form}.yaml"
    if isinstance(form, str) and shipped.is_file():
        where, text = f"{form}.yaml", shipped.read_text("utf-8")
    else:
        path = Path(form).expanduser()
        where, text = str(path), read_text(path, ConstructionError)
    return checked(
        ReviewForm, read_yaml(text, where, ConstructionError, words=True), where, ConstructionError, text
    )

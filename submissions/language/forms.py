"""Forms of answers: what `Language.ask` asks a model to fill in, and checks.

A form is a class with a line about each field. From it come the words behind the prompt and the check of the
answer, so that neither can differ from the other. Prompts say what is asked; they are files that a user
replaces. Forms are what the program goes on with; they are not.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from submissions.language.answers import WrongFormError, bare_words

_FENCED = re.compile(r"```[a-zA-Z]*\s*\n(?P<inside>.*?)```", re.DOTALL)
_SHOWN = 3
"""Faults of an answer that one correction to the model names at most."""

NOTHING_LEFT = "none"
"""An instruction where nothing is left that may be asked for, as the prompt's limits say it."""

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]
Scale = Annotated[int, Field(ge=1, le=5)]
Category = Literal["addition", "subtraction", "viewpoint", "background", "attribute", "relative"]


class Form(BaseModel):
    """What an answer holds; fields that were not asked for are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @classmethod
    def request(cls) -> str:
        """What stands behind the prompt.

        Example:
            >>> print(Instruction.request())
            Answer with one JSON object alone, with these fields:
            "instruction": the request, as text
        """
        lines = [f'"{name}": {field.description}' for name, field in cls.model_fields.items()]
        return "\n".join(("Answer with one JSON object alone, with these fields:", *lines))

    @classmethod
    def response_format(cls) -> dict[str, Any]:
        """The form as servers take it that hold a model to a JSON schema.

        What not every server knows of a schema (lengths, ranges) is left out: `read` checks it.

        Example:
            >>> Instruction.response_format()["json_schema"]["schema"]["required"]
            ['instruction']
        """
        schema = _known_everywhere(cls.model_json_schema())
        return {
            "type": "json_schema",
            "json_schema": {"name": cls.__name__, "strict": True, "schema": schema},
        }

    @classmethod
    def read(cls, said: str) -> Self:
        """The form as a model filled it in, with or without a fence or words around the object.

        Where the only field is a text, one paragraph without an object is taken as that text.

        Raises:
            WrongFormError: there is no JSON object, a field is missing, its value is not what was asked, or
                the only text answers nothing.

        Example:
            >>> Instruction.read('```json\\n{"instruction": "make it red"}\\n```').instruction
            'make it red'
            >>> Instruction.read("Instruction: make it red").instruction
            'make it red'
        """
        fenced = _FENCED.search(said)
        inside = said if fenced is None else fenced["inside"]
        start, end = inside.find("{"), inside.rfind("}")
        try:
            if 0 <= start < end:
                form = cls.model_validate_json(inside[start : end + 1])
                if text := cls.text_of(form):
                    bare_words(text)
                return form
            name = cls._only_text()
            if name is None or start >= 0 or end >= 0:
                raise WrongFormError(said, "it holds no JSON object")
            words = bare_words(inside or said)
            if "\n\n" in words:
                raise WrongFormError(said, "it holds no JSON object")
            return cls(**{name: words})
        except ValidationError as error:
            raise WrongFormError(said, _faults(error)) from error

    @classmethod
    def _only_text(cls) -> str | None:
        """The name of the only field, where it is a text."""
        fields = [(name, field.annotation) for name, field in cls.model_fields.items()]
        return fields[0][0] if [kind for _, kind in fields] == [str] else None

    @classmethod
    def text_of(cls, form: Form) -> str:
        """The text of a form whose only field is one; else nothing."""
        name = cls._only_text()
        return "" if name is None else str(getattr(form, name))


def _known_everywhere(schema: Any) -> Any:
    """A schema without limits of values, whose objects hold what they name and nothing else."""
    if isinstance(schema, list):
        return [_known_everywhere(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        # Names of fields are no words of schemas.
        key: {name: _known_everywhere(field) for name, field in part.items()}
        if key in ("properties", "$defs")
        else _known_everywhere(part)
        for key, part in schema.items()
        if key not in _LEFT_TO_READ
    }
    return {**kept, "additionalProperties": False} if kept.get("type") == "object" else kept


_LEFT_TO_READ = ("title", "default", "minLength", "maxLength", "minimum", "maximum")


def _faults(error: ValidationError) -> str:
    """What is wrong, field by field, without the answer's own words."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    named = [
        f'"{".".join(map(str, each["loc"]))}": {each["msg"]}' if each["loc"] else each["msg"]
        for each in found
    ]
    return "; ".join(named[:_SHOWN])


class Instruction(Form):
    """One relative caption."""

    instruction: Words = Field(description="the request, as text")


class Caption(Form):
    """What a picture shows."""

    caption: Words = Field(description="the description, as text")


class Edit(Form):
    """A change to what a caption describes."""

    relative_caption: Words = Field(description="the request for the change, as text")
    target_caption: Words = Field(description="the caption after the change, as text")


class HardNegative(Form):
    """What is easily taken for a target."""

    negative_caption: Words = Field(description="the caption of that picture, as text")


class FrameChoice(Form):
    """One of several pictures, or none."""

    choice: Annotated[int, Field(ge=0)] = Field(description="number of the picture, 0 for none")


class NextFrameChoice(Form):
    """One of several pictures but the first, or none."""

    choice: Annotated[int, Field(ge=1)] = Field(description="number of the picture from 2 on, 1 for none")


class SortedInstruction(Form):
    """One relative caption, and what kind of change it asks for (ZeroSight's six categories)."""

    instruction: Words = Field(description="the request, as text")
    category: Category = Field(
        description="what it mainly asks for: addition (something more is there), subtraction (something is "
        "gone), viewpoint, background, attribute (another look of a thing) or relative (more, fewer, larger, "
        "nearer, elsewhere)"
    )


class SessionScores(Form):
    """Five scales of a session, each from 1 (worst) to 5 (best); CIRCLED, appendix D."""

    naturalness: Scale = Field(description="whole number from 1 to 5")
    coherence: Scale = Field(description="whole number from 1 to 5")
    progress: Scale = Field(description="whole number from 1 to 5")
    redundancy: Scale = Field(description="whole number from 1 to 5; 5 is least repetition")
    overall: Scale = Field(description="whole number from 1 to 5")

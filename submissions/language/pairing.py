"""Two language backends as one: the first sees, the second writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from submissions.language import Language, LanguageIdentity, Picture


class PairedLanguage:
    """A captioner of pictures beside a model for words, as CIReVL has them.

    Args:
        sees: captions pictures.
        writes: does everything else.
    """

    def __init__(self, sees: Language, writes: Language) -> None:
        """See the class."""
        self.sees = sees
        self.writes = writes

    @property
    def identity(self) -> LanguageIdentity:
        """Both, the one that sees first."""
        first, second = self.sees.identity, self.writes.identity
        return LanguageIdentity(
            first.backend,
            first.model,
            first.revision,
            first.prompts,
            "; ".join(part for part in (first.settings, f"words by {second.text()}") if part),
        )

    def caption(self, images: Sequence[Picture]) -> list[str]:
        """A caption of each picture."""
        return self.sees.caption(images)

    def merge(self, captions: Sequence[str], changes: Sequence[str]) -> list[str]:
        """The caption of each target."""
        return self.writes.merge(captions, changes)

    def difference(self, first: Sequence[str], second: Sequence[str]) -> list[str]:
        """The relative caption from each first caption to the second."""
        return self.writes.difference(first, second)

    def judge(self, prompt: str, items: Sequence[Mapping[str, str]]) -> list[str]:
        """The answer to a question of your own about each item."""
        return self.writes.judge(prompt, items)

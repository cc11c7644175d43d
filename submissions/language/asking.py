"""Many questions to a model: each asked once, answered from disk where it can be, none lost.

What backends with a model share. A backend says what an answer depends on and how questions are asked; order,
repeats, the cache, threads and what has failed are seen to here.
"""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from cir_datasets.common.progress import step_progress
from cir_datasets.common.terminal import visible
from cir_metrics.errors import CirError
from submissions.errors import LanguageError
from submissions.language.answers import Answer, NoAnswerError, check_new_words, is_text, usable
from submissions.language.cache import AnswerCache, cache_key, picture_digest
from submissions.language.prompts import Prompts, Template
from submissions.language.protocol import FormT, Item, Picture
from submissions.language.usage import Usage

if TYPE_CHECKING:
    from submissions.language.forms import Form

_EXAMPLES = 5
_SHOWN = 60
UNREADABLE = "the picture cannot be read"
_HOPELESS = 30
"""Answers of a wrong form in a row, to questions of one prompt: the others would fare no better."""
_READ_AHEAD = 8
"""Tasks that wait for each thread: enough to keep it busy, few enough to stop soon."""


@dataclass(frozen=True)
class ModelQuestion:
    """One question to a model.

    Args:
        template: the prompt.
        words: for its placeholders.
        pictures: what is to be looked at.
        form: what the answer is to hold, or None where it is free text.
    """

    template: Template
    words: Mapping[str, str] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()
    form: type[Form] | None = None

    @property
    def prompt(self) -> str:
        """What is sent."""
        filled = self.template.filled(self.words)
        return filled if self.form is None else f"{filled}\n\n{self.form.request()}"

    @property
    def about(self) -> str:
        """How errors name it: the pictures' ids, or the start of its words."""
        if self.pictures:
            return " | ".join(picture.id for picture in self.pictures)
        words = " | ".join(self.words[name] for name in self.words)
        return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 3]}..."

    def read(self, said: str | None) -> str:
        """The usable answer in what a model said: its words, or the JSON of the form.

        Raises:
            NoAnswerError: the model said nothing that can be used.
        """
        words = usable(said)
        if self.form is None:
            return words
        form = self.form.read(words)
        check_new_words(self.form.text_of(form), f"{self.template.text}\n\n{self.form.request()}")
        return form.model_dump_json()


_In = TypeVar("_In")
_Out = TypeVar("_Out")
_Open = tuple[str, dict[str, Any], ModelQuestion]
"""A question that is to be asked: its key, what the key is made of, itself."""
AskSome = Callable[[Sequence[ModelQuestion]], Sequence[Answer | NoAnswerError]]


class AskingLanguage:
    """The tasks of `Language` as questions to a model; backends say how they are asked.

    Args:
        prompts: the templates.
        cache: answers on disk, or None to ask every question anew.
        usage: what counts.
        threads: calls of `ask` that run beside each other.
        at_once: most questions of one call of `ask`.
        depends_on: what answers depend on beside prompt and picture, as JSON values.
        title: how messages name the backend.
        ask: gives what became of each question, or raises `NoAnswerError` where all fare the same.
    """

    def __init__(
        self,
        *,
        prompts: Prompts,
        cache: AnswerCache | None,
        usage: Usage,
        threads: int,
        at_once: int,
        depends_on: Mapping[str, Any],
        title: str,
        ask: AskSome,
    ) -> None:
        """See the class."""
        self.prompts = prompts
        self.cache = cache
        self.usage = usage
        self._threads = threads
        self._at_once = at_once
        self._depends_on = dict(depends_on)
        self._title = title
        self._ask = ask
        self._stopping = threading.Event()
        self._wrong: Counter[str] = Counter()
        self._counting = threading.Lock()

    def known_only(self) -> Self:
        """The same backend with the answers on disk alone: nobody is asked, and the others have no answer."""
        known = copy.copy(self)
        known._ask = _ask_nobody
        return known

    def caption(self, images: Sequence[Picture]) -> list[str]:
        """A caption of each picture."""
        template = self.prompts["caption"]
        return self._answers([ModelQuestion(template, pictures=(image,)) for image in images])

    def merge(self, captions: Sequence[str], changes: Sequence[str]) -> list[str]:
        """The caption of each target."""
        template = self.prompts["merge"]
        pairs = paired_up(captions, changes, "captions", "changes")
        return self._answers([ModelQuestion(template, {"caption": one, "change": two}) for one, two in pairs])

    def difference(self, first: Sequence[str], second: Sequence[str]) -> list[str]:
        """The relative caption from each first caption to the second."""
        template = self.prompts["difference"]
        pairs = paired_up(first, second, "first captions", "second captions")
        return self._answers([ModelQuestion(template, {"first": one, "second": two}) for one, two in pairs])

    def judge(self, prompt: str, items: Sequence[Mapping[str, str]]) -> list[str]:
        """The answer to a question of your own about each item."""
        return self._answers(self._questions(prompt, [Item(words) for words in items]))

    def ask(self, prompt: str, items: Sequence[Item], form: type[FormT]) -> list[FormT]:
        """The answer to one question about each item, in the fields of a form."""
        try:
            answers = self._answers(self._questions(prompt, items, form))
        except LanguageError as error:
            kept = [None if text is None else form.model_validate_json(text) for text in error.answers]
            raise LanguageError(str(error), error.failed, kept, final=error.final) from error
        return [form.model_validate_json(text) for text in answers]

    def _questions(
        self, prompt: str, items: Sequence[Item], form: type[Form] | None = None
    ) -> list[ModelQuestion]:
        template = self.prompts[prompt]
        questions = []
        for item in items:
            words = {name: item.words[name] for name in item.words if name in template.placeholders}
            template.filled(words)
            questions.append(ModelQuestion(template, words, item.pictures, form))
        return questions

    def _answers(self, questions: Sequence[ModelQuestion]) -> list[str]:
        """The answers in the order of the questions.

        Raises:
            LanguageError: some have none; the error names them, and holds the others.
        """
        failed: dict[int, NoAnswerError] = {}
        found: dict[str, Answer] = {}
        wanted: dict[str, list[int]] = {}
        asked: dict[str, dict[str, Any]] = {}
        for place, outcome in self._in_threads(
            questions, self._named, 1, f"{self._title}: looking for answers"
        ):
            if isinstance(outcome, NoAnswerError):
                failed[place] = outcome
                continue
            key, depends, kept = outcome
            if kept is not None and key not in found:
                found[key] = kept
                self.usage.came(cached=True)
            wanted.setdefault(key, []).append(place)
            asked[key] = depends
        first = {key: min(places) for key, places in wanted.items()}
        to_ask = [
            (key, asked[key], questions[first[key]])
            for key in sorted(wanted, key=first.__getitem__)
            if key not in found
        ]
        chunks = [to_ask[at : at + self._at_once] for at in range(0, len(to_ask), self._at_once)]
        for place, outcomes in self._in_threads(chunks, self._asked, self._at_once, f"{self._title}: asking"):
            chunk = chunks[place]
            if isinstance(outcomes, NoAnswerError):
                outcomes = [outcomes] * len(chunk)
            for (key, _, _), reply in zip(chunk, outcomes, strict=True):
                if isinstance(reply, NoAnswerError):
                    failed.update(dict.fromkeys(wanted[key], reply))
                else:
                    found[key] = reply
        texts: list[str | None] = [None] * len(questions)
        for key, places in wanted.items():
            for place in places:
                texts[place] = found[key].text if key in found else None
        if failed:
            self._refuse(questions, failed, texts)
        return [text for text in texts if text is not None]

    def _named(self, question: ModelQuestion) -> tuple[str, dict[str, Any], Answer | None]:
        """Key of a question, what it is made of, and its answer on disk."""
        if not is_text(question.prompt):
            raise NoAnswerError(
                "the words are not text: they hold half a character (a lone surrogate)",
                fix="correct the words and run the same again",
            )
        depends: dict[str, Any] = {
            **self._depends_on,
            "task": question.template.name,
            "template": question.template.sha256,
            "words": dict(question.words),
        }
        if question.form is not None:
            depends["form"] = question.form.request()
        if question.pictures:
            depends["pictures"] = [picture_digest(opened(picture)) for picture in question.pictures]
        key = cache_key(depends)
        return key, depends, None if self.cache is None else self.cache.get(key)

    def _asked(self, chunk: Sequence[_Open]) -> Sequence[Answer | NoAnswerError]:
        prompt = chunk[0][2].template.name
        try:
            replies = self._ask([question for _, _, question in chunk])
        except NoAnswerError as error:
            self._refuse_wrong_forms(prompt, [error])
            raise
        came: dict[str, tuple[Answer, dict[str, Any]]] = {}
        for (key, depends, question), reply in zip(chunk, replies, strict=True):
            if isinstance(reply, Answer):
                # A picture's name may be no text, where the file system's names are none.
                about = question.about.encode(errors="backslashreplace").decode()
                came[key] = reply, {**depends, "about": about}
        if self.cache is not None and came:
            self.cache.put(came)
        for _ in came:
            self.usage.came(cached=False)
        self._refuse_wrong_forms(prompt, replies)
        return replies

    def _refuse_wrong_forms(self, prompt: str, replies: Sequence[Answer | NoAnswerError]) -> None:
        """Give up where no answer of a prompt keeps to its form; other failures say nothing about that."""
        with self._counting:
            for reply in replies:
                if isinstance(reply, Answer):
                    self._wrong[prompt] = 0
                elif reply.wrong_form:
                    self._wrong[prompt] += 1
            count, last = self._wrong[prompt], replies[-1]
            hopeless = count >= _HOPELESS and isinstance(last, NoAnswerError) and last.wrong_form
            if hopeless:
                # A later call begins anew.
                self._wrong[prompt] = 0
        if hopeless and isinstance(last, NoAnswerError):
            raise NoAnswerError(
                f"{last.why}; so were the {count - 1} before it",
                final=True,
                fix="change the prompt or the model and run the same again",
            )

    def _in_threads(
        self, tasks: Sequence[_In], work: Callable[[_In], _Out], steps: int, label: str
    ) -> Iterator[tuple[int, _Out | NoAnswerError]]:
        """Each task's place and result, as they come; after a final failure the rest is not begun."""
        hopeless = threading.Event()
        last: list[NoAnswerError] = []

        def one(task: _In) -> _Out:
            if hopeless.is_set():
                raise last[0]
            try:
                return work(task)
            except NoAnswerError as error:
                if error.final:
                    last.append(error)
                    hopeless.set()
                raise

        self._stopping.clear()
        pool = ThreadPoolExecutor(self._threads, thread_name_prefix="language")
        pending: dict[Future[_Out], int] = {}
        places = iter(range(len(tasks)))
        try:
            with step_progress(label, len(tasks) * steps) as advance:
                while True:
                    while len(pending) < self._threads * _READ_AHEAD:
                        place = next(places, None)
                        if place is None:
                            break
                        pending[pool.submit(one, tasks[place])] = place
                    if not pending:
                        return
                    done, _ = wait(pending, return_when=FIRST_COMPLETED)
                    for future in done:
                        place = pending.pop(future)
                        try:
                            result: _Out | NoAnswerError = future.result()
                        except NoAnswerError as error:
                            result = error
                        advance(steps)
                        yield place, result
        except BaseException:
            self._stopping.set()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _refuse(
        self,
        questions: Sequence[ModelQuestion],
        failed: Mapping[int, NoAnswerError],
        texts: Sequence[str | None],
    ) -> NoReturn:
        listed = [(questions[place].about, failed[place].why) for place in sorted(failed)]
        worst = sorted(failed, key=lambda place: (not failed[place].final, place))
        shown = "".join(f"\n  {questions[n].about!r}: {failed[n].why}" for n in worst[:_EXAMPLES])
        more = f"\n  ... and {len(listed) - _EXAMPLES:,} more" if len(listed) > _EXAMPLES else ""
        task = questions[0].template.name
        answered = sum(text is not None for text in texts)
        kept = (
            "in the error's `answers`"
            if self.cache is None
            else "in the cache; only the others are asked again"
        )
        fix = next((failed[n].fix for n in worst if failed[n].fix), "run the same again")
        raise LanguageError(
            f"{self._title}, {task}: {len(listed):,} of {len(questions):,} questions have no answer:"
            f"{shown}{more}\nThe {answered:,} answers that came are {kept}. "
            f"Fix: {fix}.",
            listed,
            texts,
            final=any(error.final for error in failed.values()) or _is_gone(failed, len(questions)),
        )


def _ask_nobody(questions: Sequence[ModelQuestion]) -> NoReturn:
    raise NoAnswerError("it is not known, and nobody is asked any more", final=True)


def _is_gone(failed: Mapping[int, NoAnswerError], asked: int) -> bool:
    """Whether it is the backend that fails: most questions, and several, have had no reply."""
    unheard = sum(error.unheard for error in failed.values())
    return unheard > 1 and 2 * unheard > asked


def answered(ask: Callable[[], Sequence[_In]], silent: Callable[[str], _Out]) -> list[_In | _Out]:
    """Answers, and in the place of those that did not come what is made of the reason.

    A reason is one that output may hold: paths of this machine, and what to do there, are for its terminal.

    Raises:
        LanguageError: no further question would be answered either.
    """
    try:
        return list(ask())
    except LanguageError as error:
        if error.final or not error.failed:
            raise
        public = (
            UNREADABLE if why.startswith(UNREADABLE) else visible(why.partition(" Fix: ")[0])
            for _, why in error.failed
        )
        return [silent(next(public)) if one is None else one for one in error.answers]


def paired_up(one: Sequence[str], two: Sequence[str], first: str, second: str) -> list[tuple[str, str]]:
    """Two lists side by side.

    Raises:
        LanguageError: they differ in length.

    Example:
        >>> paired_up(["a star"], ["red"], "captions", "changes")
        [('a star', 'red')]
    """
    if len(one) != len(two):
        raise LanguageError(f"{len(one)} {first} and {len(two)} {second}. Fix: give as many of each.")
    return list(zip(one, two, strict=True))


def opened(picture: Picture) -> Any:
    """The picture's pixels; one that cannot be read is a question without an answer, not the end of all.

    Raises:
        NoAnswerError: it cannot be read.
    """
    try:
        return picture.open()
    except (OSError, CirError) as error:
        raise NoAnswerError(
            f"{UNREADABLE}: {error}", fix="repair the pictures and run the same again"
        ) from error

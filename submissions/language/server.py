"""Any server that speaks OpenAI's chat API: OpenAI itself, vLLM, llama.cpp, Ollama, and many others.

Questions go out in threads, at most so many a minute. What passes (429, 5xx, time-outs, broken connections,
an answer that is empty, cut off, refused or no JSON) is asked again after a pause that doubles, or that the
server names (Retry-After); what stays is listed in one error at the end.
"""

from __future__ import annotations

import base64
import email.utils
import functools
import hashlib
import io
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cir_datasets.errors import HttpAnswerError, LateAnswerError, missing_extra
from cir_metrics.errors import CallError
from submissions.language.answers import Answer, NoAnswerError, WrongFormError
from submissions.language.asking import AskingLanguage, ModelQuestion, opened
from submissions.language.cache import answer_cache
from submissions.language.pacing import Pace
from submissions.language.prompts import load_prompts
from submissions.language.protocol import LanguageIdentity, Picture
from submissions.language.usage import Usage, price_of

if TYPE_CHECKING:
    from pathlib import Path

    from tenacity import RetryCallState

_log = logging.getLogger(__name__)

URL = "https://api.openai.com/v1"
_NO_KEY = "none"
"""Sent to servers of one's own, most of which want none; the client insists on one."""

_FIRST_WAIT, _MOST_WAIT = 1.0, 60.0
_LONGEST_PAUSE = 600.0
"""Seconds of Retry-After that are waited for; a server that wants more has closed for today."""

_LIMITS = ("max_tokens", "max_completion_tokens")
_MOST_ROOM = 8
"""How many times the tokens of its first try an answer that was cut off may get."""

_MOST_BYTES = 2**22
"""Of a reply: eight times `max_tokens` are far fewer."""

_SIDE = 1024
_HOPELESS = {
    401: ("the server refuses the key", "set OPENAI_API_KEY to a key of that server"),
    403: ("the server refuses the key this model", "use a model that the key may use"),
    404: ("the server has no such model or address", "check the model's name and OPENAI_BASE_URL"),
}
"""Answers that every further question would get too."""


class ServerLanguage(AskingLanguage):
    """A model behind OpenAI's chat API.

    Args:
        model: the model's name on the server.
        url: base address, such as `http://localhost:8000/v1`; None looks at `OPENAI_BASE_URL`, else it is
            OpenAI's.
        key: None looks at `OPENAI_API_KEY`.
        prompts: folder of prompts that replace ours; None looks at `CIR_PROMPTS`.
        cache: folder of answers; None is `language` in the cache, False asks everything anew.
        concurrency: questions asked at once, 1 or more.
        requests_per_minute: most requests a minute, evenly spaced; None sets no limit.
        timeout: seconds that a whole reply may take, however steadily it comes.
        attempts: how often a question is asked at most, 1 or more.
        max_tokens: most tokens of an answer; one that is cut off is asked again with twice as many, up to
            eight times as many.
        parameters: further fields of the request (`{"seed": 7}`); None as a value removes one of ours, for
            servers that refuse it.
        prices: see `submissions.language.usage.price_of`.
        clock: seconds that only grow; for the pace.
        sleep: waits so many seconds, for the pace and between attempts; None waits, and stops waiting when
            the work is interrupted.

    Raises:
        MissingExtraError: the client is not installed.
        CallError: an argument is out of range, or there is neither key nor address.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str | None = None,
        key: str | None = None,
        prompts: str | Path | None = None,
        cache: str | Path | bool | None = None,
        concurrency: int = 4,
        requests_per_minute: float | None = None,
        timeout: float = 120.0,
        attempts: int = 6,
        max_tokens: int = 300,
        parameters: Mapping[str, Any] | None = None,
        prices: str | Path | Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        """See the class."""
        for name, value in (
            ("concurrency", concurrency),
            ("attempts", attempts),
            ("max_tokens", max_tokens),
            ("timeout", timeout),
        ):
            if value <= 0:
                raise CallError(f"{name}={value}; it is above 0. Fix: leave it out for our choice.")
        self.url, key = _address(url, key)
        self._key = key
        # Addresses of private servers are nobody's business: neither rank files nor the cache hold them.
        self._server = hashlib.sha256(self.url.encode()).hexdigest()
        _check_parameters(parameters or {})
        asked = {"temperature": 0, "max_tokens": max_tokens, **(parameters or {})}
        self._parameters = {name: value for name, value in asked.items() if value is not None}
        self._takes_schemas = "response_format" not in asked
        self._model = model
        self._attempts = attempts
        self._sleep = sleep or self._wait
        self._pace = Pace(requests_per_minute, clock=clock, sleep=self._sleep)
        self._reported: set[str] = set()
        self._report = threading.Lock()
        self._client = _client(self.url, key, timeout)
        super().__init__(
            prompts=load_prompts(prompts),
            cache=answer_cache(cache),
            usage=Usage(price_of(model, prices)),
            threads=concurrency,
            at_once=1,
            depends_on={
                "backend": "openai",
                "server": self._server,
                "model": model,
                "parameters": self._parameters,
                "side": _SIDE,
            },
            title=f"openai:{model}",
            ask=lambda questions: [self._ask_patiently(question) for question in questions],
        )

    @property
    def identity(self) -> LanguageIdentity:
        """What the answers depend on."""
        settings = ", ".join(f"{name} {value}" for name, value in sorted(self._parameters.items()))
        server = f"server {self._server[:12]}"
        return LanguageIdentity("openai", self._model, server, self.prompts.sha256, settings)

    def _ask_patiently(self, question: ModelQuestion) -> Answer:
        from tenacity import Retrying, retry_if_exception, stop_after_attempt

        messages = [{"role": "user", "content": _content(question)}]
        parameters = dict(self._parameters)
        retrying = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, _RetryError)),
            stop=stop_after_attempt(self._attempts),
            wait=self._pause_before_next,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            answer: Answer = retrying(self._ask_once, question, messages, parameters)
        except _RetryError as error:
            times = f"{self._attempts} times" if self._attempts > 1 else "once"
            raise NoAnswerError(
                f"{error.why} (asked {times})",
                final=error.final,
                unheard=error.unheard,
                fix=error.fix,
                wrong_form=error.wrong_form,
            ) from error
        return answer

    def _pause_before_next(self, state: RetryCallState) -> float:
        """Doubling pauses with some chance in them, or what the server names."""
        from tenacity import wait_random_exponential

        outcome = state.outcome
        error = outcome.exception() if outcome is not None else None
        if isinstance(error, _RetryError) and (error.final or error.unheard):
            self._say_once(error.why)
        named = error.retry_after if isinstance(error, _RetryError) else None
        if named is not None:
            self._pace.pause(named)
            return named
        return wait_random_exponential(multiplier=_FIRST_WAIT, max=_MOST_WAIT)(state)

    def _say_once(self, why: str) -> None:
        """Say that a server does not answer: pauses are long, and nothing else is seen of them."""
        with self._report:
            if why in self._reported:
                return
            self._reported.add(why)
        _log.warning(
            "%s: %s. The question is asked again after a pause, %d times in all; Ctrl-C stops the run.",
            self._title,
            why,
            self._attempts,
        )

    def _wait(self, seconds: float) -> None:
        if self._stopping.wait(seconds):
            raise NoAnswerError("it was interrupted")

    def _ask_once(
        self, question: ModelQuestion, messages: list[dict[str, Any]], parameters: dict[str, Any]
    ) -> Answer:
        """One request; what is wrong with its answer changes `messages` or `parameters` for the next one."""
        import openai

        self._pace.wait()
        self.usage.sent()
        try:
            return self._read(question, self._replied(question, messages, parameters))
        except _CorrectedError as error:
            # The same question would have the same answer.
            messages[1:] = [
                {"role": "assistant", "content": error.said},
                {"role": "user", "content": error.correction},
            ]
            raise
        except _CutOffError:
            for name in _LIMITS:
                if name in parameters:
                    parameters[name] = min(2 * parameters[name], _MOST_ROOM * self._parameters[name])
            raise
        except openai.APIStatusError as error:
            raise _refused(error, self._key) from error
        except (openai.OpenAIError, HttpAnswerError, ValueError, RecursionError) as error:
            raise self._passing(error) from error

    def _replied(
        self, question: ModelQuestion, messages: list[dict[str, Any]], parameters: dict[str, Any]
    ) -> Any:
        """The reply; of a server that refuses a JSON schema without one, from then on for all questions."""
        import openai

        create = functools.partial(self._client.chat.completions.create, model=self._model, messages=messages)
        if question.form is None or not self._takes_schemas:
            return create(extra_body=parameters)
        try:
            return create(extra_body={**parameters, "response_format": question.form.response_format()})
        except (openai.BadRequestError, openai.UnprocessableEntityError):
            self._pace.wait()
            self.usage.sent()
            reply = create(extra_body=parameters)
        # It was the schema then, and no other fault of the question.
        self._takes_schemas = False
        return reply

    def _passing(self, error: Exception) -> NoAnswerError:
        import httpx
        import openai

        # Earlier versions of openai wrap what its client raises.
        cause = error if isinstance(error, HttpAnswerError) else error.__cause__
        if isinstance(cause, LateAnswerError) or isinstance(error, openai.APITimeoutError):
            fix = "allow more time (timeout=) or run it again"
            return _RetryError("no reply in time", unheard=True, fix=fix)
        if isinstance(cause, HttpAnswerError):
            refused = _RetryError if cause.passing else NoAnswerError
            return refused(cause.why, final=not cause.passing, fix=cause.fix)
        if isinstance(cause, httpx.ConnectError):
            fix = "see whether the server is up, and run it again"
            return _RetryError(f"no connection to {self.url}", final=True, fix=fix)
        if isinstance(error, openai.APIConnectionError):
            return _RetryError("the connection broke off", unheard=True, fix="run it again")
        return _RetryError("the reply is not JSON of the chat API")

    def _read(self, question: ModelQuestion, reply: Any) -> Answer:
        """The answer in a reply; servers differ in what they leave out: nothing is taken for granted."""
        tokens = getattr(reply, "usage", None)
        prompt_tokens = _count(getattr(tokens, "prompt_tokens", 0))
        completion_tokens = _count(getattr(tokens, "completion_tokens", 0))
        self.usage.paid(prompt_tokens, completion_tokens)
        choices = getattr(reply, "choices", None)
        if not isinstance(choices, list) or not choices or getattr(choices[0], "message", None) is None:
            raise _RetryError("the reply is not JSON of the chat API")
        message, reason = choices[0].message, getattr(choices[0], "finish_reason", None)
        if reason == "length":
            raise _CutOffError("the answer was cut off", fix="raise max_tokens")
        if reason == "content_filter" or getattr(message, "refusal", None):
            raise _RetryError("the model refused to answer", fix="change the prompt or the model")
        content = message.content
        if content is not None and not isinstance(content, str):
            raise _RetryError("the reply is not JSON of the chat API")
        try:
            return Answer(question.read(content), prompt_tokens, completion_tokens)
        except WrongFormError as error:
            raise _CorrectedError(error.why, error.said, error.correction) from error
        except NoAnswerError as error:
            raise _RetryError(error.why, fix=error.fix) from error


class _RetryError(NoAnswerError):
    """May be gone the next time."""

    def __init__(
        self,
        why: str,
        *,
        final: bool = False,
        unheard: bool = False,
        fix: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(why, final=final, unheard=unheard, fix=fix)
        self.retry_after = retry_after


class _CutOffError(_RetryError):
    """Had no room for its end."""


class _CorrectedError(_RetryError):
    """Is not of the form that was asked for."""

    def __init__(self, why: str, said: str, correction: str) -> None:
        super().__init__(why, fix="change the prompt")
        self.wrong_form = True
        self.said = said
        self.correction = correction


def _refused(error: Any, key: str) -> NoAnswerError:
    """What an answer with a status of 4xx or 5xx means for this question and for the others."""
    status = int(error.status_code)
    if status in _HOPELESS:
        why, fix = _HOPELESS[status]
        return NoAnswerError(f"{why} ({status})", final=True, fix=fix)
    if status == 429 and error.code == "insufficient_quota":
        return NoAnswerError(
            "the account has no credit left (429)", final=True, fix="add credit and run it again"
        )
    if status in (408, 409, 429) or status >= 500:
        pause = _retry_after(error.response.headers)
        if pause is not None and pause > _LONGEST_PAUSE:
            return NoAnswerError(
                f"the server is closed for {pause:,.0f} seconds ({status})",
                final=True,
                fix="run it again then",
            )
        return _RetryError(
            f"the server answered {status}", unheard=True, fix=_FIXES.get(status, ""), retry_after=pause
        )
    body = error.body
    said = str(body.get("message", "")) if isinstance(body, Mapping) else ""
    if len(key) >= _SHORTEST_KEY:
        said = said.replace(key, "[the key]")
    said = " ".join(said.split())[:_MOST_SAID]
    return NoAnswerError(f"the server answered {status}" + (f": {said}" if said else ""), fix=_BAD_REQUEST)


_MOST_SAID = 200
"""Characters of a server's reason that are shown."""
_SHORTEST_KEY = 8
"""Shorter ones (none, EMPTY, x) are stand-ins, which may be part of any word that a server says."""
_FIXES = {429: "ask more slowly (requests_per_minute=, concurrency=)"}
_BAD_REQUEST = "change what the server refuses (parameters=, prompts)"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait that a reply names, as a number or as a date; None where it names none."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if seconds == seconds else None


def _check_parameters(parameters: Mapping[str, Any]) -> None:
    ours = sorted({"messages", "model", "n", "stream"} & set(parameters))
    if ours:
        raise CallError(f"parameters: {ours[0]!r} is not for you to set. Fix: leave it out.")
    try:
        json.dumps(dict(parameters), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CallError(
            f"parameters: they are not JSON: {error}. Fix: use numbers, texts and lists."
        ) from error


def _content(question: ModelQuestion) -> Any:
    """A message's content: the prompt alone, or with the pictures before it; several have their numbers."""
    if not question.pictures:
        return question.prompt
    parts: list[dict[str, Any]] = []
    for number, picture in enumerate(question.pictures, start=1):
        if len(question.pictures) > 1:
            parts.append({"type": "text", "text": f"Picture {number}:"})
        parts.append({"type": "image_url", "image_url": {"url": _data_url(picture)}})
    return [*parts, {"type": "text", "text": question.prompt}]


def _data_url(picture: Picture) -> str:
    """The picture as JPEG, its longer side at most 1,024 pixels."""
    image = opened(picture).convert("RGB")
    image.thumbnail((_SIDE, _SIDE))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=95, subsampling=0)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _count(tokens: Any) -> int:
    return tokens if isinstance(tokens, int) and tokens >= 0 else 0


def _address(url: str | None, key: str | None) -> tuple[str, str]:
    """Base address and key, of the arguments or of the environment."""
    given = url or os.environ.get("OPENAI_BASE_URL")
    key = (key or os.environ.get("OPENAI_API_KEY") or "").strip()
    if not all("!" <= character <= "~" for character in key):
        # Not shown either.
        raise CallError(
            "the key of the language server holds a blank, a line break or a character outside ASCII, which "
            "no key has. Fix: copy the key anew, and set OPENAI_API_KEY to it alone."
        )
    address = (given or URL).strip().rstrip("/")
    try:
        parts = urlsplit(address)
    except ValueError:  # a bracket that is not closed, say
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
        # Not shown: it may hold a password, or a key as ?api_key=.
        raise CallError(
            "the address of the language server cannot be used. Fix: set OPENAI_BASE_URL to one "
            "such as http://localhost:8000/v1, without user or query, and keep the key in OPENAI_API_KEY."
        )
    if not key and address == URL:
        raise CallError(
            "there is no key for OpenAI's server, and no other server is named. Fix: set OPENAI_API_KEY, or "
            "OPENAI_BASE_URL to the address of another server."
        )
    return address, key or _NO_KEY


def _client(url: str, key: str, timeout: float) -> Any:
    try:
        import openai
    except ImportError as error:
        raise missing_extra("a language server", "openai", "language") from error
    from cir_datasets.sources.client import BoundedClient

    # Attempts are ours: docs/dependencies.md says why.
    client: Any = BoundedClient(seconds=timeout, num_bytes=_MOST_BYTES)
    return openai.OpenAI(base_url=url, api_key=key, timeout=timeout, max_retries=0, http_client=client)

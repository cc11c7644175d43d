"""What was asked of a backend, and what it cost."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.common.paths import regular
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from submissions.language.protocol import Language

VARIABLE = "CIR_LANGUAGE_PRICES"
_MILLION = 1_000_000


@dataclass(frozen=True)
class Price:
    """What a model costs, in any one currency, for a million tokens.

    Args:
        input: of tokens of questions.
        output: of tokens of answers.
    """

    input: float
    output: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of some tokens.

        Example:
            >>> Price(input=0.5, output=2.0).of(1_000_000, 250_000)
            1.0
        """
        return (prompt_tokens * self.input + completion_tokens * self.output) / _MILLION


@dataclass
class Usage:
    """Counts of one backend since it was loaded.

    Args:
        price: None where it is not known; then no cost is printed.
    """

    price: Price | None = None
    requests: int = 0
    """Requests sent, those that failed included."""
    answered: int = 0
    """Questions answered by the model."""
    cached: int = 0
    """Questions answered from disk."""
    prompt_tokens: int = 0
    """Tokens paid for now, those of answers that could not be used included."""
    completion_tokens: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def cost(self) -> float | None:
        """In the currency of the price, or None without one."""
        return None if self.price is None else self.price.of(self.prompt_tokens, self.completion_tokens)

    def sent(self) -> None:
        """Count a request."""
        with self._lock:
            self.requests += 1

    def paid(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Count the tokens of a reply, whether it can be used or not."""
        with self._lock:
            self.prompt_tokens += prompt_tokens
            self.completion_tokens += completion_tokens

    def came(self, *, cached: bool) -> None:
        """Count an answer."""
        with self._lock:
            self.cached += cached
            self.answered += not cached

    def text(self) -> str:
        """One line.

        Example:
            >>> Usage(Price(1.0, 2.0), requests=3, answered=2, cached=5, prompt_tokens=1000).text()
            '2 answered (3 requests, 1,000 + 0 tokens, cost 0.001), 5 from the cache'
        """
        cost = "" if self.cost is None else f", cost {self.cost:.6g}"
        tokens = f"{self.prompt_tokens:,} + {self.completion_tokens:,} tokens"
        return (
            f"{self.answered:,} answered ({self.requests:,} requests, {tokens}{cost}), "
            f"{self.cached:,} from the cache"
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "requests": self.requests,
            "answered": self.answered,
            "cached": self.cached,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": self.cost,
        }


def usage_text(language: Language) -> str:
    """What was asked of a backend since it was loaded, a line for each that counts; "" where none does.

    Example:
        >>> from submissions.language import load_language
        >>> usage_text(load_language("oracle"))
        ''
    """
    parts = [getattr(language, name, None) for name in ("sees", "writes")]
    lines = [usage_text(part) for part in parts if part is not None]
    usage = getattr(language, "usage", None)
    if isinstance(usage, Usage):
        identity = language.identity
        lines.append(f"{identity.backend}:{identity.model}: {usage.text()}")
    return "\n".join(line for line in lines if line)


def price_of(model: str, prices: str | Path | Mapping[str, Any] | None = None) -> Price | None:
    """The price of a model.

    Args:
        model: the model's name.
        prices: a YAML file `model: {input: 0.15, output: 0.60}` (for a million tokens), such a mapping, or
            None for the file of `CIR_LANGUAGE_PRICES`.

    Returns:
        None where nothing says a price of that model.

    Raises:
        CallError: the file does not exist, or does not say prices.

    Example:
        >>> price_of("small", {"small": {"input": 0.15, "output": 0.6}})
        Price(input=0.15, output=0.6)
    """
    prices = prices or os.environ.get(VARIABLE) or None
    if prices is None:
        return None
    where = "prices" if isinstance(prices, Mapping) else str(prices)
    listed = prices if isinstance(prices, Mapping) else _read(Path(prices).expanduser())
    if not isinstance(listed, Mapping):
        raise CallError(f"{where}: it is not a mapping. {_FIX}")
    entry = listed.get(model)
    if entry is None:
        return None
    good = isinstance(entry, Mapping) and set(entry) == {"input", "output"}
    if not good or not all(
        isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        for value in entry.values()
    ):
        raise CallError(f"{where}: the price of {model!r} is {entry!r}. {_FIX}")
    return Price(float(entry["input"]), float(entry["output"]))


_FIX = "Fix: write `MODEL: {input: 0.15, output: 0.60}`, prices of a million tokens."


def _read(path: Path) -> Any:
    from cir_datasets.common.yaml import read_yaml

    try:
        return read_yaml(regular(path).read_text(encoding="utf-8"), str(path), CallError)
    except OSError as error:
        raise CallError(
            f"{path}: the prices cannot be read: {error.strerror or error}. Fix: name a YAML file."
        ) from error
    except UnicodeDecodeError as error:
        raise CallError(f"{path}: it is not UTF-8 text. {_FIX}") from error

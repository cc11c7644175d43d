"""What the evaluate modules share: checks before evaluate sees anything, then `cir_metrics.evaluation`.

evaluate lets `None` inside a list and unknown keys of a dict through, so `compute`, `add` and `add_batch`
check each prediction and pick what the metric needs from each reference first. A reference may be a whole row
of a dataset. evaluate then does what it is good at: incremental use, memory or disk, several processes.
"""

from __future__ import annotations

import abc
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import datasets
import evaluate

from cir_metrics.catalogue import METRICS, MetricEntry, check_variant
from cir_metrics.errors import CallError, InputError
from cir_metrics.inputs import Reference, check_inputs, check_ranking, check_session
from cir_metrics.lists import evaluate_multi_turn, evaluate_single_turn
from cir_metrics.sums import check_cutoffs

# A module's script imports from here alone: evaluate reads its imports one line at a time. The class here
# stays abstract, as it names no metric: evaluate takes the first concrete one that it finds in a script,
# imported ones included.
__all__ = ["InputError", "RankingMetric", "check_session"]

_TEXT = datasets.Value("string")
_IDS = datasets.List(_TEXT)
_FIELD_TYPES = {
    **dict.fromkeys(("target", "reference"), _TEXT),
    **dict.fromkeys(("subset", "positives", "negatives", "turn_targets"), _IDS),
}
_PREDICTIONS = {
    "gallery": "one ranking a query: image ids, best first",
    "subset": "one ranking a query of the subset's members without the reference image: ids, best first",
    "sessions": "one list a session of one ranking a turn: image ids, best first",
}
"""By what is ranked, what the predictions are."""


class RankingMetric(evaluate.Metric, abc.ABC):  # type: ignore[misc]
    """Base of the evaluate modules: checks what is added, one prediction a time, and scores it all."""

    keywords: tuple[str, ...] = ("ks",)
    """What `compute` takes beside predictions and references."""
    prediction_text: str = ""
    """What the predictions are, where `_PREDICTIONS` does not say it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what `evaluate.load` passes on."""
        self._forget()
        super().__init__(*args, **kwargs)

    def _forget(self) -> None:
        self._added = 0
        self._answers: dict[str, int] = {}

    def _build_data_dir(self) -> str:
        return str(self._data_dir_root if self.keep_in_memory else self._writing(super()._build_data_dir))

    def _init_writer(self, timeout: float = 1) -> None:
        self._writing(super()._init_writer, timeout)

    def _writing(self, step: Callable[..., Any], *args: Any) -> Any:
        """Do what writes to evaluate's folder; of a refusal say where that is, and how to do without."""
        try:
            return step(*args)
        except TimeoutError:
            raise
        except OSError as error:
            raise CallError(
                f"{self._data_dir_root}: {self.metric} keeps there what is added, and it cannot be written: "
                f"{error}. Fix: evaluate.load({self.metric!r}, keep_in_memory=True), or cache_dir=FOLDER, a "
                "folder of yours on a disk with locks."
            ) from error

    @property
    @abc.abstractmethod
    def metric(self) -> str:
        """Module name, the key of the catalogue."""

    @property
    def entry(self) -> MetricEntry:
        """The catalogue's entry of this metric."""
        return METRICS[self.metric]

    @property
    def ranked(self) -> str:
        """What is ranked: the `gallery`, the query's `subset`, or the gallery at each turn of `sessions`."""
        if "single_turn" not in self.entry.protocols:
            return "sessions"
        return "subset" if self.entry.reads_subset else "gallery"

    def check_prediction(self, value: object, where: str, reference: Reference) -> list[Any]:
        """One prediction as it is stored: a ranking that is not empty, or one a turn of a session."""
        if self.ranked == "sessions":
            return check_session(value, where, reference, allow_empty=False)
        return check_ranking(value, where, reference, among=self.ranked, allow_empty=False)

    # evaluate copies the next three methods for each instance and appends to their docstrings.
    def compute(
        self, *, predictions: Any = None, references: Any = None, **keywords: Any
    ) -> dict[str, float] | None:
        """Value of the metric over what was added before and what is given here."""
        options = self._check_keywords(keywords)
        if predictions is not None or references is not None:
            self._add(predictions, references)
        if not self._added:
            raise InputError(f"{self.metric}: nothing was added. Fix: pass predictions and references.")
        try:
            values: dict[str, float] | None = super().compute(**options)
        finally:  # a refusal, too, leaves nothing of what was added
            self._forget()
        return values

    def add_batch(self, *, predictions: Any = None, references: Any = None, **unknown: Any) -> None:
        """Add a batch of predictions and references."""
        self._refuse(unknown, "predictions", "references")
        self._add(predictions, references)

    def add(self, *, prediction: Any = None, reference: Any = None, **unknown: Any) -> None:
        """Add one prediction and its reference."""
        # evaluate.combine hands its single prediction and reference on under the names of the batch.
        if prediction is None and reference is None and set(unknown) == {"predictions", "references"}:
            prediction, reference = unknown.pop("predictions"), unknown.pop("references")
        self._refuse(unknown, "prediction", "reference")
        self._add([prediction], [reference])

    def _compute(
        self, *, predictions: list[Any], references: list[Reference], **options: Any
    ) -> dict[str, float]:
        names = [f"{self.entry.printed}@{k}" for k in options.get("ks", ())] or [self.entry.printed]
        if self.ranked == "sessions":
            return evaluate_multi_turn(names, predictions, references).values
        if self.ranked == "subset":
            return evaluate_single_turn(names, None, references, subset_rankings=predictions).values
        variants = {self.metric: options["variant"]} if "variant" in options else {}
        return evaluate_single_turn(names, predictions, references, variants=variants).values

    def _info(self) -> evaluate.MetricInfo:
        fields = {name: _FIELD_TYPES[name] for name in self.entry.fields}
        prediction = datasets.List(_IDS) if self.ranked == "sessions" else _IDS
        return evaluate.MetricInfo(
            description=f"{self.entry.title}: {self.entry.description}",
            citation=self.entry.source,
            inputs_description=self._inputs_description(),
            features=datasets.Features({"predictions": prediction, "references": fields}),
            license="Apache-2.0",
            reference_urls=[self.entry.url] if self.entry.url else [],
        )

    def _inputs_description(self) -> str:
        fields = ", ".join(repr(field) for field in self.entry.fields)
        texts = {
            "ks": f"ks: cutoffs, whole numbers of 1 or more; default {self.entry.default_ks}.",
            "variant": f"variant: one of {self.entry.variants}; default {self.entry.default_variant!r}.",
            "gallery_size": "gallery_size: not read.",
        }
        return "\n".join(
            [
                "\n\nArgs:",
                f"    predictions: {self.prediction_text or _PREDICTIONS[self.ranked]}.",
                f"    references: one dict each with {fields}; a row of a benchmark will do.",
                *(f"    {texts[keyword]}" for keyword in self.keywords),
                "Returns:",
                "    dict of printed name -> value.",
                "Raises:",
                "    InputError: malformed input; the message names position, value and fix.",
            ]
        )

    def _check_keywords(self, keywords: Mapping[str, Any]) -> dict[str, Any]:
        unknown = [name for name in keywords if name not in self.keywords]
        self._refuse(unknown, "predictions", "references", *self.keywords)
        options = dict(keywords)
        if "ks" in self.keywords:
            options["ks"] = check_cutoffs(keywords.get("ks", self.entry.default_ks))
        if "variant" in self.keywords:
            options["variant"] = check_variant(self.metric, keywords.get("variant"))
        if "gallery_size" in keywords:
            warnings.warn("gallery_size is not read. Fix: leave it out.", DeprecationWarning, stacklevel=3)
        return options

    def _add(self, predictions: Any, references: Any) -> None:
        """Check a batch, and hand to evaluate what counts of it."""
        given = {"predictions": (predictions, self.check_prediction)}
        batch = check_inputs(references, self.entry.fields, given, first=self._added)
        batch, answers = batch.once(self._answers, first=self._added)
        if batch.references:
            stored = [{field: row[field] for field in self.entry.fields} for row in batch.references]
            super().add_batch(predictions=batch.columns["predictions"], references=stored)
            self._added += len(stored)
            self._answers |= answers

    def _refuse(self, unknown: Iterable[str], *known: str) -> None:
        for name in unknown:
            raise InputError(f"{self.metric} has no keyword {name!r}. Fix: use {', '.join(known)}.")


# What scripts of 0.1.0, which `cir metrics install` has copied, are classes of.
SingleTurnMetric = SubsetMetric = MultiTurnMetric = RankingMetric

"""All baselines of a benchmark: those without weights, and those of an encoder where there is one."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from cir_datasets.errors import install_lines
from cir_metrics.errors import CallError
from submissions.encoders.protocol import NO_ENCODER, SHAPES_ENCODER
from submissions.errors import MethodError
from submissions.methods.card import method_card
from submissions.methods.registry import methods_for
from submissions.running.options import (
    RunOptions,
    check_run_encoder,
    option_words,
    options_from,
    takes_run_options,
)

if TYPE_CHECKING:
    from typing import Unpack

    from cir_datasets.rows.benchmark import Benchmark
    from submissions.language.protocol import Language
    from submissions.rank_file.model import RankFile
    from submissions.running.options import RunFields

SHAPES_LANGUAGE = "oracle"
"""The language backend of shapes that needs no weights either."""


@dataclass(frozen=True)
class Baseline:
    """One call of `make_rank_file`.

    Args:
        method: name of the method.
        encoder: name of the encoder, or None where the method uses none.
        language: name of the language backend, where the method uses one.
        aggregation: of a session's turns; None leaves the default.
        rerank: name of the re-ranker, where there is one.
        rerank_turns: which turns of a session it ranks anew; None leaves the default.
        checkpoint: of the method, where it has weights of its own; `shapes` is the shipped one.
    """

    method: str
    encoder: str | None = None
    language: str | None = None
    aggregation: str | None = None
    rerank: str | None = None
    rerank_turns: str | None = None
    checkpoint: str | None = None

    @property
    def name(self) -> str:
        """A name for files.

        Example:
            >>> Baseline("image_text_sum", "openai/clip-vit-base-patch32", aggregation="latest").name
            'image_text_sum-clip-vit-base-patch32-latest'
        """
        encoder = (self.encoder or "").rstrip("/").rpartition("/")[2]
        parts = [self.method, encoder, self.aggregation or "", self.rerank or ""]
        return "-".join(re.sub(r"[^\w.]+", "-", part) for part in parts if part)

    @property
    def options(self) -> dict[str, str]:
        """What `make_rank_file` is given beside benchmark and method.

        Example:
            >>> Baseline("random").options
            {}
        """
        given = dataclasses.asdict(self)
        return {option: given[option] for option in given if option != "method" and given[option] is not None}

    def command(self, benchmark: str, out: str) -> str:
        """The command that makes its rank file.

        Example:
            >>> Baseline("image_only", "shapes").command("shapes/val", "run.json")
            'cir run --benchmark shapes/val --method image_only --encoder shapes --out run.json'
        """
        given = {"benchmark": benchmark, "method": self.method, **self.options, "out": out}
        return " ".join(
            ["cir run", *(f"--{option.replace('_', '-')} {value}" for option, value in given.items())]
        )


@dataclass(frozen=True)
class Baselines:
    """What can be run, and why the rest cannot.

    Args:
        run: in the order of tables.
        left_out: a sentence for each reason why some are not among them.
        fallback: whether an encoder's would be among them if what it needs was installed.
    """

    run: tuple[Baseline, ...]
    left_out: tuple[str, ...] = ()
    fallback: bool = False


def baselines(
    benchmark: str | Benchmark, *, encoder: str | None = None, language: str | None = None
) -> Baselines:
    """The baselines of a benchmark.

    Args:
        benchmark: an id or a benchmark.
        encoder: name or folder of an encoder, or "none" for the methods without weights alone. None means
            the shipped encoder on benchmarks of shapes, where torch is installed, and "none" elsewhere.
        language: name of a language backend; None means the oracle on benchmarks of shapes.

    Raises:
        UnknownNameError: no benchmark has that id.
        MethodError: `encoder` is not a name.
        EncoderError: no encoder has that name.

    Example:
        >>> [each.name for each in baselines("shapes/val", encoder="none").run]
        ['random', 'image_only_pixels', 'text_only_pixels', 'image_text_sum_pixels']
    """
    from cir_datasets.registry import spec

    RunOptions(encoder=encoder)
    if encoder != NO_ENCODER:
        check_run_encoder(encoder)
    of = spec(benchmark) if isinstance(benchmark, str) else benchmark.spec
    embedded = of.card.source.publisher == "embedded"
    chosen, left_out, missing = encoder, [], []
    if embedded and encoder is None:
        chosen = SHAPES_ENCODER
        missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
        if missing:
            chosen = NO_ENCODER
            left_out.append(
                f"{' and '.join(missing)} not installed: only the baselines without weights are run. "
                f"For the others: {install_lines('retrieval')}."
            )
    elif encoder is None:
        left_out.append("No --encoder given: only the baselines without weights are run.")
    language = language or (SHAPES_LANGUAGE if embedded else None)
    found = [Baseline(name) for name in methods_for(benchmark)]
    if chosen in (None, NO_ENCODER):
        return Baselines(tuple(found), tuple(left_out), bool(missing))
    silent = []
    for method, aggregations in _listed().items():
        turns = "language" in method_card(method).needs
        if turns and language is None:
            silent.append(method)
            continue
        for each in aggregations if of.kind == "multi_turn" else [None]:
            found.append(Baseline(method, chosen, language if turns else None, each))
    if silent:
        left_out.append(f"No --language given: {', '.join(silent)} left out.")
    return Baselines(tuple(found), tuple(left_out))


@takes_run_options
def run_baselines(
    benchmark: str | Benchmark,
    chosen: Baselines,
    options: RunOptions | None = None,
    *,
    speakers: dict[str, Language] | None = None,
    **by_name: Unpack[RunFields],
) -> Iterator[tuple[Baseline, RankFile]]:
    """Run baselines one after the other; encoder and language backend are loaded once.

    Args:
        benchmark: an id or a benchmark.
        chosen: of `baselines`, which says encoder, language backend and aggregation of each.
        options: the other options, as for `make_rank_file`; those that concern an encoder are not given to
            the methods without weights, and `caption_rule` not to those that read no captions.
        speakers: filled with the language backends that are loaded, by name, for what they cost.
        by_name: fields of `RunOptions`, as for `make_rank_file`.

    Yields:
        Each baseline with its rank file.

    Raises:
        CallError: an option is for one method alone.
        MethodError: as for `make_rank_file`.
        UnknownNameError: as for `make_rank_file`; before anything is run.

    Example:
        >>> made = run_baselines("shapes/val", baselines("shapes/val", encoder="none"), k=10)
        >>> next(made)[1].method.name
        'Random'
    """
    import cir_datasets
    from submissions.encoders.loading import load_encoder
    from submissions.running.make import make_rank_file

    options = options_from(options, by_name)
    _check_all(chosen, options)
    if isinstance(benchmark, str):
        benchmark = cir_datasets.load(benchmark)
    encoder_of = functools.cache(functools.partial(load_encoder, **options.loading))
    loaded = {} if speakers is None else speakers
    for each in chosen.run:
        if each.encoder is None:
            yield each, make_rank_file(benchmark, each.method, k=options.k)
            continue
        values: dict[str, Any] = {"language": None, "prompts": None, **each.options}
        if each.language is not None and each.language not in loaded:
            named = options.changed(language=each.language)
            loaded[each.language] = cast("Language", named.with_language().language)
        if each.language is not None:
            values["language"] = loaded[each.language]
        if "captions" not in method_card(each.method).reads:
            values["caption_rule"] = None
        own = options.with_encoder(encoder_of(values.pop("encoder")))
        yield each, make_rank_file(benchmark, each.method, own.changed(**values))


def check_used(chosen: Baselines, options: RunOptions) -> None:
    """Refuse options that all baselines would ignore, as a person gives them.

    Args:
        chosen: of `baselines`.
        options: as for `run_baselines`.

    Raises:
        CallError: an option is for one method alone.
        MethodError: no encoder is used, for another reason than that something is not installed.

    Example:
        >>> check_used(baselines("shapes/val", encoder="none"), RunOptions(k=10, encoder="none"))
    """
    _check_all(chosen, options)
    unused = [name for name in options.given if name not in ("k", "encoder")]
    if unused and not chosen.fallback and not _encoders(chosen):
        raise MethodError(
            f"no baseline that is run uses an encoder, and none has a use for {option_words(unused)}. "
            "Fix: leave it out, or choose an --encoder."
        )


def _check_all(chosen: Baselines, options: RunOptions) -> None:
    for name in ("aggregation", "alpha", "checkpoint", "rerank"):
        if name in options.given:
            raise CallError(f"--{name} is for one --method. Fix: leave one of the two out.")
    for encoder in _encoders(chosen):
        options.check_loading(encoder)


def _encoders(chosen: Baselines) -> list[str]:
    return sorted({each.encoder for each in chosen.run if each.encoder})


@functools.cache
def _listed() -> dict[str, list[str | None]]:
    """The methods with an encoder, and the aggregations of each."""
    from cir_datasets.common.yaml import package_yaml

    rows = package_yaml("submissions", "running/baselines.yaml")
    return {row["method"]: row.get("aggregations", [None]) for row in rows}

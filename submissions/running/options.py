"""The options of a run: what each means, and every check of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from cir_datasets.common.options import by_call_alone, check_values, option
from cir_metrics.errors import CallError, UnknownNameError, did_you_mean
from submissions.errors import MethodError
from submissions.methods.sc4cir import SC4CIR
from submissions.running.method_options import LANGUAGE_HELP, LoadingOptions, MethodOptions, PromptOptions

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.embeddings.store import EmbeddingStore
    from submissions.encoders.protocol import Encoder
    from submissions.language.protocol import Language
    from submissions.methods.composing import Composer
    from submissions.methods.protocols import Ranker, Scorer
    from submissions.methods.turns import Turn
    from submissions.running.aggregation import Aggregation

_Function = TypeVar("_Function", bound=Callable[..., Any])

LOADING = tuple(each.name for each in fields(LoadingOptions))
"""Options that say how an encoder is loaded."""

_RERANK = ("rerank_top", "rerank_processes", "rerank_encoder", "rerank_turns")
"""Options of a re-ranker."""
_WITH_RERANK = ("rerank", *_RERANK, "language", "prompts")
"""Options that a re-ranker has a use for, whatever the method, or that have a check of their own."""
_WITH_PICTURES, _WITH_WORDS = ("images", "skip_missing"), (*LOADING, "batch_size")
"""Those that it has a use for where it asks about pictures, and where it compares words (s3)."""

_ENCODER = (
    "submissions.encoders.protocol",
    "Encoder",
    (
        ", which has no identity, encode_images and encode_texts. "
        "Fix: pass a name, a folder, or what load_encoder gives."
    ),
)
_OBJECTS = {
    "encoder": _ENCODER,
    "rerank_encoder": _ENCODER,
    "language": (
        "submissions.language.protocol",
        "Language",
        ", which is not a language backend. Fix: pass a name such as oracle, or what load_language gives.",
    ),
    "store": (
        "submissions.embeddings.store",
        "EmbeddingStore",
        ". Fix: pass a folder or an EmbeddingStore, or leave it out.",
    ),
}
"""Options that take an object too: module and name of its class, and what a message says of another one."""

_USUAL_AGGREGATION, ALL = "weighted", "all"
"""How turns become one vector by default, which CIRCLED's appendix B finds best; what asks for all ways."""


class RunOptions(MethodOptions, PromptOptions):
    """The options of `make_rank_file`, `make_bundle` and `cir run`.

    `make_rank_file` says what each takes. Values are checked here; `check` says whether they fit a benchmark
    and a method.

    Raises:
        UnknownNameError: no aggregation, caption rule or search has that name.
        MethodError: a value is of the wrong type or out of range.

    Example:
        >>> RunOptions(k=50, device="cuda").given
        ('device', 'k')
    """

    aggregation: str | None = option(
        None,
        "How a session's turns become one query: latest, average, weighted (default), feedback; all makes a "
        "file of each, and composes or scores once.",
        "-a",
        words="the name of an aggregation",
    )
    alpha: float | None = option(
        None,
        "With aggregation weighted: every later turn multiplies an earlier turn's weight by it, "
        "above 0 to 1; default 0.8.",
        words="more than 0 and at most 1",
        in_file=True,
    )
    k: int | None = option(
        None,
        "First images of a ranking, 1 to 1,000, that are kept; default: what the board uses.",
        min=1,
        max=1_000,
    )
    search: str = option(
        "exact",
        "exact, or by an index of FAISS: flat, hnsw, ivfpq.",
        words="the name of a search",
        in_file=True,
    )
    language: str | Language | None = option(None, f"{LANGUAGE_HELP}.", words="a name or a folder", kind=str)
    rerank: str | None = option(
        None,
        "Re-ranker of the best images: sc4cir, which asks --language (docs/language.md).",
        words="the name of a re-ranker",
    )
    rerank_top: int = option(
        SC4CIR.top, "Images of a ranking that are ranked anew.", words="a number of images", in_file=True
    )
    rerank_processes: str = option(
        SC4CIR.processes,
        "What is added up: s1, s2, s3, or several as in s1+s3.",
        words="s1, s2, s3, or several with + between them",
        in_file=True,
    )
    rerank_encoder: str | Path | Encoder | None = option(
        None,
        "Text encoder of s3: a name, a folder or shapes; default: the run's own.",
        words="a name or a folder",
        kind=str,
        in_file=True,
    )
    rerank_turns: str = option(
        SC4CIR.turns, "Of a session: last or each.", words="last or each", in_file=True
    )
    store: EmbeddingStore | str | Path | None = by_call_alone(None)

    def __post_init__(self) -> None:
        """Check every value by itself."""
        check_values(self, MethodError)
        for name in _OBJECTS:
            _check_object(name, getattr(self, name))
        if self.aggregation == ALL:
            self.changed(aggregation="weighted")  # refuses a wrong alpha
        elif self.aggregation is not None or self.alpha is not None:
            self.aggregated()
        if self.caption_rule is not None:
            from cir_datasets.registry.caption_rules import caption_rule

            caption_rule(self.caption_rule).texts(())  # refuses one that needs a dictionary
        if self.search != "exact":
            from submissions.running.search import check_search

            check_search(self.search)
        self._check_rerank()

    def _check_rerank(self) -> None:
        if self.rerank is None:
            unused = [name for name in self.given if name in _RERANK]
            if unused:
                raise MethodError(
                    f"{option_words(unused)}: only beside --rerank. Fix: add --rerank {SC4CIR.name}."
                )
            return
        if self.rerank != SC4CIR.name:
            known = [SC4CIR.name]
            raise UnknownNameError(
                f"no re-ranker {self.rerank!r}.{did_you_mean(self.rerank, known)} There is {SC4CIR.name}."
            )
        SC4CIR(self.rerank_top, self.rerank_processes, self.rerank_turns)

    @property
    def reranker(self) -> SC4CIR | None:
        """The settings of the re-ranker, or None without one.

        Example:
            >>> RunOptions(rerank="sc4cir", rerank_top=10).reranker
            SC4CIR(top=10, processes='s1+s2+s3', turns='last')
        """
        if self.rerank is None:
            return None
        return SC4CIR(self.rerank_top, self.rerank_processes, self.rerank_turns)

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the options that differ from the default."""
        return tuple(
            each.name
            for each in fields(self)
            if not ((value := getattr(self, each.name)) is each.default or value == each.default)
        )

    @property
    def loading(self) -> dict[str, Any]:
        """What `load_encoder` is given beside the name."""
        return {name: getattr(self, name) for name in LOADING}

    def changed(self, **changes: Any) -> RunOptions:
        """These options with some of them changed.

        Raises:
            UnknownNameError: no option has that name; the message names the nearest.

        Example:
            >>> RunOptions(k=50).changed(workers=0).given
            ('workers', 'k')
        """
        names = [each.name for each in fields(self)]
        for name in changes:
            if name not in names:
                raise UnknownNameError.of("option", name, names)
        return replace(self, **changes)

    def with_encoder(self, encoder: Encoder) -> RunOptions:
        """These options with an encoder that is loaded, and nothing that says how to load it."""
        return replace(self, encoder=encoder, **{name: getattr(RunOptions, name) for name in LOADING})

    def with_language(self) -> RunOptions:
        """These options with the language backend loaded that they name; the same ones where they name none.

        Raises:
            UnknownNameError: no language backend has that name.
            LanguageError: its model or prompts cannot be used.
        """
        if not isinstance(self.language, str):
            return self
        from submissions.language import load_language

        prompts = {} if self.prompts is None else {"prompts": self.prompts}
        return replace(self, language=load_language(self.language, **prompts), prompts=None)

    def aggregated(self, usual: str = _USUAL_AGGREGATION) -> Aggregation:
        """How turns become one ranking.

        Args:
            usual: what is meant where neither `aggregation` nor `alpha` is given.

        Example:
            >>> RunOptions(alpha=0.5).aggregated("latest")
            Aggregation(name='weighted', alpha=0.5)

        Raises:
            MethodError: all are asked for, where one is needed.
        """
        from submissions.running.aggregation import aggregation

        if self.aggregation == ALL:
            raise MethodError(
                "aggregation=all makes several rank files. Fix: name one, or use cir run --aggregation all."
            )
        name = self.aggregation or (usual if self.alpha is None else _USUAL_AGGREGATION)
        return aggregation(name, alpha=self.alpha)

    def each_aggregation(self, *, vectors: bool) -> tuple[RunOptions, ...]:
        """These options, once for each aggregation that is asked for.

        Args:
            vectors: whether the method composes vectors, which `feedback` needs.

        Example:
            >>> each = RunOptions(aggregation="all", alpha=0.5).each_aggregation(vectors=False)
            >>> [(one.aggregation, one.alpha) for one in each]
            [('latest', None), ('average', None), ('weighted', 0.5)]
        """
        if self.aggregation != ALL:
            return (self,)
        from submissions.running.aggregation import AGGREGATIONS

        names = [name for name in AGGREGATIONS if vectors or name != "feedback"]
        return tuple(
            self.changed(aggregation=name, alpha=self.alpha if name == "weighted" else None) for name in names
        )

    def check(self, benchmark: Benchmark, name: str, method: Composer | Scorer | Ranker | None) -> None:
        """Refuse options that a benchmark or a method would ignore, and a method that lacks one.

        Args:
            benchmark: what is ranked.
            name: what the method is called in messages.
            method: the method; None of a rank file that is ranked anew without it.

        Raises:
            CallError: there are prompts without a language backend to load with them.
            EncoderError: no encoder has that name.
            MethodError: an option does not fit, or one is missing.
        """
        from submissions.methods.registry import kind_of_class, needs_of
        from submissions.methods.user_methods import bound_encoder

        turns = [option for option in self.given if option in ("aggregation", "alpha")]
        if turns and not benchmark.multi_turn:
            raise MethodError(
                f"{benchmark.id} has no turns to aggregate. Fix: leave --aggregation and --alpha out."
            )
        how = self.reranker
        if how is not None and self.aggregation == ALL:
            raise MethodError("--rerank is for one --aggregation. Fix: name one in the place of all.")
        kind = kind_of_class(method)
        if kind != "composer":
            used = {"k", *(turns if kind == "scorer" else ()), *_with(how)}
            unused = [option for option in self.given if option not in used]
            if unused:
                raise MethodError(
                    f"{name} uses no encoder, and has no use for {option_words(unused)}. Fix: leave it out."
                )
        else:
            check_run_encoder(self.encoder)
        self._check_language(name, needed="language" in needs_of(method))
        if how is not None:
            self._check_reranking(how, benchmark, has_encoder=kind == "composer")
        if kind != "composer":
            return
        own = bound_encoder(method)
        if own is not None and isinstance(self.encoder, str | Path) and str(self.encoder) != own:
            raise MethodError(f"{name} brings its own encoder, {own}. Fix: leave --encoder out.")
        self.encoder_for(benchmark, name, own)

    def _check_language(self, name: str, *, needed: bool) -> None:
        if self.prompts is not None and not isinstance(self.language, str):
            what = "are those of a --language" if self.language is None else "come too late: it is loaded"
            fix = "add --language" if self.language is None else "give them to load_language"
            raise CallError(f"--prompts {what}. Fix: {fix}, or leave them out.")
        asks = self.reranker is not None and self.reranker.asks
        if self.language is None and (needed or asks):
            raise MethodError(
                f"{name if needed else SC4CIR.title} needs a language backend. "
                "Fix: add --language NAME: oracle (shapes), openai:MODEL or transformers:FOLDER."
            )
        if self.language is not None and not (needed or asks):
            if self.reranker is not None:
                raise MethodError(
                    f"{SC4CIR.title} with s1 alone asks nobody, and {name} uses no language backend. "
                    "Fix: leave --language out, or name more rerank_processes (cir rerank: processes)."
                )
            raise MethodError(f"{name} uses no language backend. Fix: leave --language out.")

    def _check_reranking(self, how: SC4CIR, benchmark: Benchmark, *, has_encoder: bool) -> None:
        """Refuse options of a re-ranker that this run would ignore, and one that it cannot do without."""
        if how.turns != SC4CIR.turns and not benchmark.multi_turn:
            fix = "Fix: leave --rerank-turns (cir rerank: turns) out."
            raise MethodError(f"{benchmark.id} has no turns to choose. {fix}")
        if "s3" not in how.used:
            if self.rerank_encoder is not None:
                raise MethodError(
                    "--rerank-encoder (cir rerank: --encoder) is of s3, which is left out. Fix: leave it out "
                    "as well."
                )
        elif self.rerank_encoder is not None or not has_encoder:
            words = self.rerank_encoder_for(benchmark)
            if not has_encoder:
                self.check_loading(words)
        if how.asks and self.language is not None and not isinstance(self.language, str):
            from submissions.language.protocol import FormLanguage

            if not isinstance(getattr(self.language, "sees", self.language), FormLanguage):
                raise MethodError(
                    f"{self.language.identity.text()} has no ask, which {SC4CIR.title} needs. "
                    "Fix: use another --language."
                )

    def rerank_encoder_for(self, benchmark: Benchmark) -> str | Encoder:
        """The text encoder of s3 where it is not the run's own: the one that is given, or that of shapes.

        Raises:
            EncoderError: no encoder has that name.
            MethodError: the benchmark is not of shapes, and no `rerank_encoder` is given.
        """
        return _chosen_encoder(
            self.rerank_encoder,
            benchmark,
            f"the process s3 compares words, and the method has no encoder for {benchmark.id}. "
            "Fix: add rerank_encoder: NAME (cir rerank: --encoder NAME), such as "
            "openai/clip-vit-large-patch14, or leave s3 out.",
        )

    def rerank_loading(self, *, has_encoder: bool) -> dict[str, Any]:
        """What `load_encoder` is given beside the name of the text encoder of s3.

        Args:
            has_encoder: whether the run's method has an encoder too, which a revision is then of.
        """
        return {name: value for name, value in self.loading.items() if name != "revision" or not has_encoder}

    def encoder_for(self, benchmark: Benchmark, name: str, own: str | None = None) -> str | Encoder:
        """The encoder of a run: the one that is given, the method's own, or the shipped one for its pictures.

        Args:
            benchmark: what is ranked.
            name: what the method is called in messages.
            own: name or folder of the encoder that the method's checkpoint is.

        Raises:
            EncoderError: no encoder has that name.
            MethodError: no encoder is given and the benchmark is not of shapes, or an option of loading
                could change nothing.
        """
        chosen = _chosen_encoder(
            self.encoder if self.encoder is not None else own,
            benchmark,
            f"{name} needs an encoder for {benchmark.id}. "
            "Fix: add --encoder NAME (encoder=), such as openai/clip-vit-large-patch14 or a folder.",
        )
        self.check_loading(chosen)
        return chosen

    def check_loading(self, encoder: str | Encoder) -> None:
        """Refuse options of loading where there is nothing that they could change.

        Args:
            encoder: its name or folder, or an encoder that is loaded.

        Raises:
            EncoderError: no encoder has that name.
            MethodError: the encoder is loaded already, or it has no revisions and one is wanted.
        """
        from submissions.encoders.loading import check_encoder_name
        from submissions.encoders.protocol import SHAPES_ENCODER

        if not isinstance(encoder, str):
            unused = [name for name in self.given if name in LOADING]
            if unused:
                words = ", ".join(f"{option}=" for option in unused)
                raise MethodError(
                    f"the encoder {encoder.identity.model} is loaded already, and {words} would be ignored. "
                    "Fix: say it to load_encoder."
                )
            return
        check_encoder_name(encoder)
        if self.revision is not None and (encoder == SHAPES_ENCODER or Path(encoder).expanduser().is_dir()):
            what = "comes with this package" if encoder == SHAPES_ENCODER else "is a folder"
            raise MethodError(
                f"--revision {self.revision}: the encoder {encoder} {what}; only names on the Hub have "
                "revisions. Fix: leave it out."
            )

    def caption_rule_for(self, turns: Sequence[Turn], name: str, text_fields: Sequence[str]) -> str:
        """The caption rule of a run.

        Args:
            turns: all turns; several captions in one change the default.
            name: what the method is called in messages.
            text_fields: what the method says that it reads.

        Raises:
            MethodError: a rule is given, and the method reads no captions.

        Example:
            >>> from submissions.methods.turns import Turn
            >>> turn = Turn("1", None, "red", ("red",))
            >>> RunOptions().caption_rule_for([turn], "mine", ["relative_caption"])
            'single'
        """
        if self.caption_rule is None:
            return "strip_capitalize_and" if any(len(turn.captions) > 1 for turn in turns) else "single"
        if not text_fields:
            raise MethodError(
                f"{name} reads no captions, and has no use for --caption-rule. Fix: leave it out."
            )
        return self.caption_rule


class RunFields(TypedDict, total=False):
    """The fields of `RunOptions`, as a call names them."""

    encoder: str | Path | Encoder | None
    images: str | Path | None
    aggregation: str | None
    alpha: float | None
    k: int | None
    caption_rule: str | None
    search: str
    language: str | Language | None
    prompts: str | Path | None
    checkpoint: str | Path | None
    revision: str | None
    device: str
    dtype: str
    batch_size: int
    workers: int
    skip_missing: bool
    store: EmbeddingStore | str | Path | None
    rerank: str | None
    rerank_top: int
    rerank_processes: str
    rerank_encoder: str | Path | Encoder | None
    rerank_turns: str


def takes_run_options(function: _Function) -> _Function:
    """A function that takes `RunFields` by name, with all of them in the signature that `help` shows."""
    shown = inspect.signature(function)
    before = [each for each in shown.parameters.values() if each.kind is not each.VAR_KEYWORD]
    of_options = inspect.signature(RunOptions).parameters.values()
    function.__signature__ = shown.replace(parameters=[*before, *of_options])  # type: ignore[attr-defined]
    return function


def _chosen_encoder(given: str | Path | Encoder | None, benchmark: Benchmark, missing: str) -> str | Encoder:
    """The encoder that is given, or the shipped one for its pictures.

    Raises:
        EncoderError: no encoder has that name.
        MethodError: none is given and the benchmark is not of shapes, which `missing` says.
    """
    from submissions.encoders.loading import check_encoder_name
    from submissions.encoders.protocol import SHAPES_ENCODER

    if given is None:
        if benchmark.spec.card.source.publisher != "embedded":
            raise MethodError(missing)
        return SHAPES_ENCODER
    if isinstance(given, str | Path):
        check_encoder_name(str(given))
        return str(given)
    return given


def options_from(options: RunOptions | None, by_name: Mapping[str, Any]) -> RunOptions:
    """Options as a call gives them: an object, values by name that go before the object's, or both.

    Raises:
        UnknownNameError: no option has that name; the message names the nearest.
        MethodError: `options` is not a `RunOptions`, and as for `RunOptions`.
    """
    if options is not None and not isinstance(options, RunOptions):
        raise MethodError(
            f"options= is of type {type(options).__name__}. Fix: pass RunOptions(...), or its fields by name."
        )
    return (options or RunOptions()).changed(**by_name)


def option_words(names: Sequence[str]) -> str:
    """Options as a call writes them.

    Example:
        >>> option_words(["batch_size", "store"])
        '--batch-size, store='
    """
    # No command has a store: CIR_CACHE_HOME names it.
    return ", ".join("store=" if name == "store" else f"--{name.replace('_', '-')}" for name in names)


def _with(how: SC4CIR | None) -> tuple[str, ...]:
    """The options that a re-ranker has a use for."""
    if how is None:
        return ()
    words = _WITH_WORDS if "s3" in how.used else ()
    return (*_WITH_RERANK, *(_WITH_PICTURES if how.asks else ()), *words)


def check_run_encoder(encoder: object) -> None:
    """Refuse names that are not an encoder's, where methods without weights may be run instead.

    Raises:
        EncoderError: no encoder has that name.
    """
    from submissions.encoders.loading import check_encoder_name
    from submissions.methods.registry import scorer_names

    known = ", ".join(scorer_names()[1:])
    check_encoder_name(
        encoder, f", or leave --encoder out and use --method {known}, or --all-baselines with --encoder none"
    )


def _check_object(name: str, value: object) -> None:
    """Refuse an empty name, and an object in its place that lacks what `_OBJECTS` says."""
    if isinstance(value, str) and not value.strip():
        raise MethodError(f"{name}={value!r}; it is a name or a folder. Fix: pass that, or leave it out.")
    if value is None or isinstance(value, str) or (isinstance(value, Path) and name != "language"):
        return
    module, kind, words = _OBJECTS[name]
    if not isinstance(value, getattr(import_module(module), kind)):
        raise MethodError(f"{name}= is of type {type(value).__name__}{words}")

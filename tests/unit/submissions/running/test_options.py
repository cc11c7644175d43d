"""What a call of `make_rank_file` says: of the right type, and nothing of it ignored."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import pytest
from benchmark_world import small_shapes
from benchmark_world.encoders import PlainEncoder
from PIL import Image

from cir_datasets.errors import MissingImagesError, SourceError
from cir_metrics.errors import CallError, UnknownNameError
from submissions import RunOptions, make_bundle, make_rank_file, run_baselines
from submissions.commands.run import run_command
from submissions.embeddings.store import EmbeddingStore
from submissions.errors import EncoderError, MethodError
from submissions.language import load_language
from submissions.rank_file.model import Method
from submissions.running.options import RunFields


@pytest.fixture
def run(tmp_path: Path) -> Any:
    return functools.partial(
        make_rank_file, encoder=PlainEncoder(), store=EmbeddingStore(tmp_path / "store"), workers=0
    )


UNUSED: dict[str, Any] = {
    "encoder": "nosuch/model",
    "images": Path("/nonexistent"),
    "caption_rule": "comma",
    "search": "hnsw",
    "language": "oracle",
    "prompts": "folder",
    "checkpoint": "weights",
    "revision": "zzz",
    "device": "mps",
    "dtype": "float16",
    "batch_size": 1,
    "workers": 0,
    "skip_missing": True,
    "store": Path("/nonexistent"),
}
"""What a method without weights has no use for."""


def test_every_option_is_tried() -> None:
    named = {each.name for each in dataclasses.fields(RunOptions)}
    # Those of a re-ranker, which goes with every method, are tried in ../methods/test_sc4cir.py.
    reranking = {name for name in named if name.startswith("rerank")}
    assert named - UNUSED.keys() == {"aggregation", "alpha", "k", *reranking}
    assert sorted(RunOptions(**UNUSED).given) == sorted(UNUSED)


@pytest.mark.parametrize("method", ["random", "image_only_pixels"])
@pytest.mark.parametrize("option", UNUSED)
def test_a_method_without_weights_refuses_what_it_would_ignore(method: str, option: str) -> None:
    with pytest.raises(MethodError) as caught:
        make_rank_file("shapes/val", method, **{option: UNUSED[option]})
    words = "store=" if option == "store" else f"--{option.replace('_', '-')}"
    assert f"has no use for {words}. Fix: leave it out" in str(caught.value)


def test_all_of_it_is_named_at_once() -> None:
    with pytest.raises(MethodError, match=r"no use for --workers, --device\. Fix: leave it out\.$"):
        make_rank_file("shapes/val", "random", device="cpu", workers=3)


def test_options_are_an_object_or_keywords_which_go_first() -> None:
    benchmark = small_shapes()
    by_name = make_rank_file(benchmark, "random", k=7)
    assert make_rank_file(benchmark, "random", RunOptions(k=7)) == by_name
    assert make_rank_file(benchmark, "random", options=RunOptions(k=20), k=7) == by_name
    with pytest.raises(MethodError, match=r"options= is of type dict\. Fix: pass RunOptions"):
        make_rank_file(benchmark, "random", {"k": 7})  # type: ignore[arg-type]


def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no option 'devise'\. Did you mean 'device'\? Fix: use one of"
    ):
        make_bundle("fashioniq/val", "random", devise="cpu")


def test_a_call_takes_every_option_with_its_type_and_default() -> None:
    wanted = inspect.signature(RunOptions).parameters
    firsts = {
        make_rank_file: ["benchmark", "method", "options"],
        make_bundle: ["suite", "method", "options"],
        run_baselines: ["benchmark", "chosen", "options", "speakers"],
    }
    for function, first in firsts.items():
        taken = dict(inspect.signature(function).parameters)
        assert [*taken] == [*first, *wanted]
        assert {name: taken.get(name) for name in wanted} == dict(wanted)
    # What an editor follows has the same types.
    assert {name: kind.__forward_arg__ for name, kind in RunFields.__annotations__.items()} == {
        name: each.annotation for name, each in wanted.items()
    }


def test_the_command_has_every_option_with_the_same_default() -> None:
    run = inspect.signature(run_command).parameters
    for each in dataclasses.fields(RunOptions):
        if each.name != "store":  # a folder of the library's, which CIR_CACHE_HOME names
            assert run[each.name].default == each.default, each.name


def test_prompts_are_those_of_a_language_backend_that_is_still_to_be_loaded(run: Any) -> None:
    with pytest.raises(CallError, match=r"--prompts are those of a --language\. Fix: add --language, or"):
        run(small_shapes(), "cirevl", prompts="folder")
    with pytest.raises(CallError, match=r"--prompts come too late: it is loaded\. Fix: give them to load_"):
        run(small_shapes(), "cirevl", prompts="folder", language=load_language("oracle"))


def test_options_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        RunOptions().k = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"k": "5"}, "k='5' is out of range. Fix: use a whole number from 1 to 1,000."),
        ({"k": True}, "k=True is out of range. Fix: use a whole"),
        ({"aggregation": "weighted", "alpha": "x"}, "alpha='x'; it is more than 0 and at most 1. Fix: "),
        ({"batch_size": "3"}, "batch_size='3' is out of range. Fix: use a whole number, 1 or more."),
        ({"batch_size": 0}, "batch_size=0 is out of range. Fix: use a whole number, 1 or more."),
        ({"workers": 1.5}, "workers=1.5 is out of range. Fix: use a whole number, 0 or more."),
        ({"workers": -1}, "workers=-1 is out of range. Fix: use a whole number, 0 or more."),
        ({"store": ""}, "store=''; it is a name or a folder. Fix: "),
        ({"store": 7}, "store= is of type int. Fix: pass a folder or an EmbeddingStore"),
        ({"encoder": object()}, "encoder= is of type object, which has no identity, encode_images and"),
        ({"language": object()}, "language= is of type object, which is not a language backend. Fix: "),
        ({"revision": "1"}, "the encoder plain is loaded already, and revision= would be ignored. Fix: "),
        ({"device": "cpu", "dtype": "float16"}, "device=, dtype= would be ignored."),
        ({"caption_rule": "first"}, "image_only reads no captions, and has no use for --caption-rule. Fix: "),
        ({"encoder": "shapes", "revision": "1"}, "the encoder shapes comes with this package; only names"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_with_its_fix(
    run: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(MethodError) as caught:
        run(small_shapes("multiturn_val"), "image_only", **options)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("option", "wrong", "words"),
    [
        ("images", 5, "a folder"),
        ("images", "", "a folder"),
        ("prompts", ["folder"], "a folder"),
        ("checkpoint", 1.5, "a file or folder"),
        ("revision", 7, "a commit, branch or tag on the Hub"),
        ("device", 0, "auto, cpu, cuda, cuda:N or mps"),
        ("device", None, "auto, cpu, cuda, cuda:N or mps"),
        ("device", "cuda:", "auto, cpu, cuda, cuda:N or mps"),
        ("device", "gpu", "auto, cpu, cuda, cuda:N or mps"),
        ("dtype", "float99", "float32, float16, bfloat16 or auto"),
        ("dtype", None, "float32, float16, bfloat16 or auto"),
        ("skip_missing", "no", "True or False"),
        ("skip_missing", 1, "True or False"),
        ("caption_rule", 5, "the name of a caption rule"),
        ("aggregation", 5, "the name of an aggregation"),
        ("search", 5, "the name of a search"),
        ("encoder", "", "a name or a folder"),
        ("language", " ", "a name or a folder"),
    ],
)
def test_a_value_of_the_wrong_type_or_form_is_refused_at_once(option: str, wrong: Any, words: str) -> None:
    with pytest.raises(MethodError) as caught:
        RunOptions(**{option: wrong})
    default = getattr(RunOptions, option)
    assert str(caught.value) == (
        f"{option}={wrong!r}; it is {words}. Fix: pass that, or leave it out (default: {default!r})."
    )


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:0", "cuda:11", "mps"])
@pytest.mark.parametrize("dtype", ["auto", "float32", "float16", "bfloat16"])
def test_what_can_be_had_is_accepted(device: str, dtype: str) -> None:
    assert RunOptions(device=device, dtype=dtype).device == device


def test_what_is_not_a_benchmark_is_refused(run: Any) -> None:
    with pytest.raises(MethodError, match=r"benchmark= is of type NoneType\. Fix: pass an id, or what"):
        run(None, "image_only")


def test_a_folder_has_no_revision(run: Any, tmp_path: Path) -> None:
    for folder in (tmp_path, str(tmp_path)):
        with pytest.raises(MethodError, match=r"is a folder; only names on the Hub have revisions. Fix: "):
            run(small_shapes(), "image_only", encoder=folder, revision="1")
    with pytest.raises(MethodError, match=r"is a folder; only names on the Hub have revisions. Fix: "):
        make_bundle("fashioniq/val", "image_only", encoder=str(tmp_path), revision="1")


def test_a_store_may_be_given_by_its_folder(run: Any, tmp_path: Path) -> None:
    made = run(small_shapes(), "image_only", store=str(tmp_path / "kept"))
    assert made == run(small_shapes(), "image_only")
    assert [each.images for each in EmbeddingStore(tmp_path / "kept").list()] == [60]


class Mine:
    """A method on embeddings."""

    def method(self, encoder: Any) -> Method:
        return Method(name="Mine")

    def compose(self, turns: Any, context: Any) -> Any:
        return context.image_vectors([turn.reference for turn in turns])


def test_the_former_encoder_of_pixels_names_the_methods_of_now(run: Any) -> None:
    for method in ("image_only", Mine()):
        with pytest.raises(EncoderError) as caught:
            run(small_shapes(), method, encoder="pixels")
        assert "--method image_only_pixels, text_only_pixels, image_text_sum_pixels" in str(caught.value)


def test_where_no_picture_is_there_nothing_is_ranked(run: Any, tmp_path: Path) -> None:
    """Not even where missing ones may be skipped: the folder is the wrong one."""
    benchmark, encoder = worlds.fashioniq("dress"), PlainEncoder()
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    with pytest.raises(MissingImagesError, match="80 of 80 images are missing or cannot be read"):
        run(benchmark, "text_only", encoder=encoder, images=folder, skip_missing=True)
    assert encoder.images == 0
    for image in benchmark.gallery or ():
        (folder / f"{image}.png").write_bytes(b"no picture")
    with pytest.raises(MissingImagesError, match="80 of 80 images are missing or cannot be read"):
        run(benchmark, "text_only", encoder=encoder, images=folder, skip_missing=True)
    Image.new("RGB", (6, 6)).save(folder / f"{(benchmark.gallery or ())[0]}.png")
    made = run(benchmark, "text_only", encoder=PlainEncoder("other"), images=folder, skip_missing=True)
    assert made.method.skipped_images == 79


def test_without_a_folder_of_images_the_option_is_named(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CIR_IMAGES", raising=False)
    with pytest.raises(SourceError, match=r"where are its images\? Fix: name .*--images, or images="):
        run(worlds.fashioniq("dress"), "text_only")

"""Encoders and language backends in the hands of the pipelines."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from language_server import Fault, LanguageServer

import cir_datasets
from cir_datasets.construction.backends import Failed, Question
from cir_datasets.construction.workspace import Workspace
from cir_datasets.errors import ConstructionError
from cir_metrics.errors import UnknownNameError
from submissions.embeddings.pictures import ShapesPictures
from submissions.encoders.loading import load_encoder
from submissions.encoders.protocol import Encoder, Identity
from submissions.errors import LanguageError, MethodError
from submissions.language.loading import load_language
from submissions.language.prompts import load_prompts
from submissions.making.backends import FORMS, EncoderFeatures, LanguageWords

IDS = tuple(cir_datasets.load("shapes/val").gallery or ())[:6]
PICTURES = ShapesPictures("shapes/val", IDS)


def served(server: LanguageServer) -> LanguageWords:
    backend = load_language("openai:test", url=server.url, key="k", cache=False, sleep=lambda _: None)
    return LanguageWords(backend, PICTURES)


def test_every_form_belongs_to_a_prompt() -> None:
    prompts = load_prompts()
    for name in FORMS:
        assert prompts[name].name == name


def test_the_oracle_answers_in_order() -> None:
    words = LanguageWords(load_language("oracle"), PICTURES)
    captions = words.caption(IDS[:2])
    assert words.caption(IDS[1::-1]) == captions[::-1]
    assert words.merge([str(one) for one in captions], ["also a small red star"] * 2) != captions
    first, second = (str(caption) for caption in captions)
    assert words.difference([first], [second])
    (found,) = words.ask("frame", [Question({"number": "3"}, IDS[:3])])
    assert isinstance(found, dict)
    assert 0 <= found["choice"] <= 3
    assert words.identity["backend"] == "oracle"


def test_questions_without_an_answer_have_a_reason_in_their_place() -> None:
    words = LanguageWords(load_language("oracle"), PICTURES)
    found = words.merge(["a red circle", "a lorry", "a blue star"], ["a green star"] * 3)
    assert [isinstance(one, Failed) for one in found] == [False, True, False]
    assert isinstance(found[1], Failed)
    assert "lorry" in found[1].why
    assert "Fix:" not in found[1].why


def test_faults_of_a_server_cost_no_answer() -> None:
    def fault(prompt: str, times: int) -> Fault | None:
        return Fault("status", 503) if times == 1 else None

    with LanguageServer(fault) as server:
        found = served(server).difference(["a red star", "b"], ["a blue star", "c"])
    with LanguageServer() as server:
        assert served(server).difference(["a red star", "b"], ["a blue star", "c"]) == found
    assert not any(isinstance(one, Failed) for one in found)


def test_a_key_that_is_refused_ends_the_run() -> None:
    with (
        LanguageServer(lambda prompt, times: Fault("status", 401)) as server,
        pytest.raises(LanguageError, match=r"401"),
    ):
        served(server).difference(["a"], ["b"])


def test_a_prompt_without_a_form_is_refused() -> None:
    words = LanguageWords(load_language("oracle"), PICTURES)
    with pytest.raises(UnknownNameError, match=r"no form for the prompt 'frames'\. Did you mean 'frame'"):
        words.ask("frames", [Question()])


def test_a_backend_that_fills_in_no_forms_is_refused() -> None:
    class Plain:
        identity = load_language("oracle").identity
        caption = merge = difference = judge = None

    with pytest.raises(MethodError, match=r"has no ask, .* Fix: use another --language"):
        LanguageWords(Plain(), PICTURES)  # type: ignore[arg-type]


class Lengths:
    """An encoder of no weights: a text is its length, an image its mean colour; it counts what it encodes."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    @property
    def identity(self):  # type: ignore[no-untyped-def]
        from submissions.encoders.protocol import Identity

        return Identity("lengths", "1", "lengths", "", "float32", 3)

    def encode_images(self, images):  # type: ignore[no-untyped-def]
        rows = np.stack([np.asarray(image, np.float32).mean((0, 1)) + 1 for image in images])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def encode_texts(self, texts):  # type: ignore[no-untyped-def]
        self.seen += texts
        rows = np.array([[len(text), 1, 1] for text in texts], np.float32).reshape(-1, 3)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_features_come_in_the_order_of_ids_and_texts_and_each_is_encoded_once(tmp_path) -> None:  # type: ignore[no-untyped-def]
    encoder = Lengths()
    features = EncoderFeatures(encoder, lambda ids: ShapesPictures("some", tuple(ids)), store=tmp_path)
    one = features.images(IDS[:3])
    assert np.array_equal(features.images([IDS[2], IDS[0], IDS[2]]), one[[2, 0, 2]])
    texts = features.texts(["bb", "a", "bb"])
    assert np.array_equal(texts[0], texts[2])
    assert not np.array_equal(texts[0], texts[1])
    assert encoder.seen == ["a", "bb"]
    assert features.texts([]).shape == (0, 3)
    assert features.identity["dimensions"] == 3


def test_a_language_model_is_told_apart_by_name_prompts_and_settings_and_not_by_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    def words(name: str) -> LanguageWords:
        return LanguageWords(load_language(name, cache=tmp_path), PICTURES)

    def room(name: str) -> Workspace:
        return Workspace(tmp_path / "made", "circled", {"all": "asks"}, {"language": words(name).identity})

    here, there = (f"openai:m,url=http://localhost:{port}/v1" for port in (1, 2))
    first = room(here)
    room(there)
    with pytest.raises(ConstructionError, match="language"):
        room(there.replace(":m", ":other"))
    with pytest.raises(ConstructionError, match="language"):
        room(f"{there},max_tokens=9")
    for made in (f"oracle+{here}", f"oracle+{there}"):
        assert "server" in words(made).identity["called"]
    assert _without_called(f"oracle+{here}", words) == _without_called(f"oracle+{there}", words)
    assert "openai:m (server " in Workspace.existing(first.folder).settings["language"]["called"]


def _without_called(name: str, words: Callable[[str], LanguageWords]) -> dict[str, Any]:
    return {key: value for key, value in words(name).identity.items() if key != "called"}


def test_a_folders_model_has_its_name_beside_what_is_compared(tmp_path: Path) -> None:
    def features(folder: str) -> EncoderFeatures:
        encoder = load_encoder("shapes")
        named = dataclasses.replace(encoder.identity, model=folder)
        return EncoderFeatures(Named(encoder, named), lambda ids: PICTURES)

    def room(folder: str) -> Workspace:
        return Workspace(tmp_path, "circled", {"all": "looks"}, {"encoder": features(folder).identity})

    first = room("ViT-B-32")
    room("copy-of-it")
    assert Workspace.existing(first.folder).settings["encoder"]["called"] == "ViT-B-32"


class Named:
    """An encoder by another name."""

    def __init__(self, inner: Encoder, identity: Identity) -> None:
        self._inner = inner
        self.identity = identity

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

"""Models of transformers on this machine: prompts and pictures reach them, and answers come back whole."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import language_models as models
import pytest
from says import says

pytest.importorskip("torch")
pytest.importorskip("transformers")

from PIL import Image

from cir_metrics.errors import CallError
from submissions.errors import LanguageError
from submissions.language import load_language
from submissions.language.loading import PairedLanguage
from submissions.language.local import LocalLanguage
from submissions.language.protocol import Language, Picture

PICTURES = [
    Picture(colour, lambda colour=colour: Image.new("RGB", (40, 50), colour)) for colour in models.COLOURS
]
MERGES = [
    (f"a {first} star", second, f"a {second} star") for first in models.COLOURS for second in models.COLOURS
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models and prompts, made once."""
    root = tmp_path_factory.mktemp("models")
    models.save_prompts(root / "prompts")
    models.save_image_text_model(root / "both")
    models.save_captioner(root / "captioner")
    models.save_writer(root / "writer")
    models.save_writer(root / "plain", chat=False)
    return root


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("CIR_PROMPTS", raising=False)
    return tmp_path / "cache" / "language"


def loaded(home: Path, name: str, **options: object) -> LocalLanguage:
    options = {"prompts": home / "prompts", "device": "cpu", "max_tokens": 8, **options}
    found = load_language(f"transformers:{home / name}", **options)
    assert isinstance(found, LocalLanguage)
    return found


@pytest.mark.parametrize("batch_size", [1, pytest.param(2, marks=pytest.mark.slow), 16])
def test_pictures_and_words_reach_the_model(home: Path, batch_size: int) -> None:
    language = loaded(home, "both", batch_size=batch_size)
    assert isinstance(language, Language)
    assert language.caption(PICTURES) == [f"a {colour} star" for colour in models.COLOURS]
    captions, changes, merged = zip(*MERGES, strict=True)
    assert language.merge(captions, changes) == list(merged)
    assert language.usage.requests == -(-3 // batch_size) + -(-9 // batch_size)


def test_questions_of_different_length_do_not_disturb_each_other(home: Path) -> None:
    language = loaded(home, "both", batch_size=2, cache=False)
    prompt = "{filler} say a red star but {change}"
    items = [{"filler": "", "change": "blue"}, {"filler": "? ? ? ? ?", "change": "green"}]
    alone = loaded(home, "both", batch_size=1, cache=False)
    assert language.judge(prompt, items) == alone.judge(prompt, items)


def test_answers_are_kept_by_the_models_content(home: Path, cache: Path, tmp_path: Path) -> None:
    first = loaded(home, "both")
    first.caption(PICTURES)
    again = loaded(home, "both", batch_size=2)
    assert again.caption(PICTURES) == first.caption(PICTURES)
    assert again.usage.requests == 0
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in (home / "both").iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    elsewhere = loaded(tmp_path, "moved", prompts=home / "prompts")
    elsewhere.caption(PICTURES)
    assert elsewhere.usage.requests == 0
    template = moved / "chat_template.jinja"
    template.write_text(template.read_text() + "\n")
    changed = loaded(tmp_path, "moved", prompts=home / "prompts")
    changed.caption(PICTURES[:1])
    assert changed.usage.requests == 1
    assert changed.identity.revision != first.identity.revision
    content = (cache / "answers.sqlite").read_bytes()
    assert b'"asked":' in content
    assert str(home).encode() not in content


def test_the_identity_says_what_answered(home: Path) -> None:
    language = loaded(home, "both")
    assert language.identity.text() == (
        f"transformers:both (revision {language.identity.revision[:12]}, "
        f"prompts {language.prompts.sha256[:12]}, float32, max_tokens 8)"
    )


def test_an_answer_without_end_counts_as_none_and_is_not_kept(home: Path, cache: Path) -> None:
    with pytest.raises(LanguageError, match="the answer was cut off") as caught:
        loaded(home, "both", max_tokens=2).caption(PICTURES)
    assert "Fix: raise max_tokens." in str(caught.value)
    assert caught.value.answers == (None, None, None)
    assert not cache.exists()


def test_a_captioner_takes_no_prompt_and_writes_nothing_else(home: Path) -> None:
    language = loaded(home, "captioner")
    assert language.caption(PICTURES) == [f"a {colour} star" for colour in models.COLOURS]
    other = loaded(home, "captioner", cache=False, batch_size=2)
    assert other.caption(PICTURES) == language.caption(PICTURES)
    with pytest.raises(LanguageError, match="captions pictures and follows no instructions"):
        language.merge(["a"], ["b"])


def test_a_text_model_writes_and_sees_nothing(home: Path) -> None:
    language = loaded(home, "writer", batch_size=2)
    asked = (["a red star", "a"], ["blue", "green"])
    assert language.merge(*asked) == loaded(home, "writer", batch_size=2, cache=False).merge(*asked)
    with pytest.raises(LanguageError, match="the model sees no pictures") as caught:
        language.caption(PICTURES)
    assert "SEES+WRITES" in str(caught.value)


def test_a_pair_captions_by_its_first_model_and_writes_by_its_second(home: Path) -> None:
    name = f"transformers:{home / 'captioner'}+transformers:{home / 'both'}"
    both = load_language(name, prompts=home / "prompts", max_tokens=8, device="cpu")
    assert isinstance(both, PairedLanguage)
    assert both.caption(PICTURES) == loaded(home, "captioner").caption(PICTURES)
    assert both.merge(["a red star"], ["blue"]) == ["a blue star"]
    assert both.identity.model == "captioner"
    assert "words by transformers:both" in both.identity.text()


def test_weights_are_held_as_asked(home: Path) -> None:
    half = loaded(home, "both", dtype="bfloat16")
    assert half.identity.settings == "bfloat16, max_tokens 8"
    assert half.caption(PICTURES) == [f"a {colour} star" for colour in models.COLOURS]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size=0; it is above 0"),
        ({"max_tokens": 0}, "max_tokens=0; it is above 0"),
        ({"dtype": "int8"}, "dtype 'int8' is not known"),
        ({"device": "abacus"}, "device 'abacus' cannot be used"),
    ],
)
def test_options_out_of_range_are_named(home: Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(CallError, match=words):
        loaded(home, "both", **options)


def test_folders_that_hold_no_model_for_this(home: Path, tmp_path: Path) -> None:
    models.save_prompts(tmp_path / "prompts")
    with pytest.raises(LanguageError, match="no such folder"):
        loaded(tmp_path, "nowhere")
    with pytest.raises(LanguageError, match=r"no config\.json is in it"):
        loaded(tmp_path, ".")
    with pytest.raises(LanguageError, match="a text model without a chat template"):
        loaded(home, "plain")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "clip"}))
    with pytest.raises(LanguageError, match="models of type 'clip' write no text"):
        loaded(tmp_path, ".")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(LanguageError, match="cannot be loaded"):
        loaded(tmp_path, ".")


@pytest.mark.parametrize(
    ("model", "file", "values"),
    [
        ("writer", "config.json", {"model_type": "own", "auto_map": {"AutoConfig": "own.Own"}}),
        (
            "writer",
            "tokenizer_config.json",
            {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", None]}},
        ),
        (
            "both",
            "processor_config.json",
            {"processor_class": "Own", "auto_map": {"AutoProcessor": "own.Own"}},
        ),
    ],
)
def test_code_that_a_folder_brings_is_refused_and_nobody_is_asked(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    file: str,
    values: dict[str, object],
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda question="": asked.append(question) or "y")
    folder, ran = tmp_path / "own", tmp_path / "ran"
    shutil.copytree(home / model, folder)
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w')\nclass Own: pass\n")
    (folder / file).write_text(json.dumps({**json.loads((folder / file).read_text()), **values}))
    with pytest.raises(LanguageError) as caught:
        loaded(tmp_path, "own", prompts=home / "prompts")
    says(
        caught,
        f"{folder}: it cannot be loaded without code of its own",
        "Fix: use a model that transformers itself knows",
    )
    assert not ran.exists()
    assert asked == []


def test_weights_that_are_a_pickle_of_other_things_are_refused_in_a_line(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pickled"
    shutil.copytree(home / "writer", folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Path("b")}, protocol=2))
    with pytest.raises(LanguageError, match=rf"^{folder}: cannot be loaded: "):
        loaded(tmp_path, "pickled", prompts=home / "prompts")

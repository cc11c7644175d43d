"""Encoders: every family against transformers' own forward pass, formats, names on the Hub, and bad input.

Models are tiny and random; they are saved and loaded as real checkpoint folders are.
"""

from __future__ import annotations

import json
import pickle
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cir_datasets.shapes import picture
from submissions.errors import EncoderError, TruncationWarning

pytest.importorskip("torch", reason="needs the extra `retrieval`")
pytest.importorskip("transformers", reason="needs the extra `retrieval`")

import torch
from http_hub import Hub
from PIL import Image
from retrieval_models import (
    MAX_TOKENS,
    SIDE,
    as_open_clip,
    save_blip,
    save_clip,
    save_resnet,
    save_siglip,
    save_siglip2,
    save_vit,
)

import cir_datasets
from submissions.encoders.loading import load_encoder
from submissions.encoders.protocol import PreparingEncoder, Vectors, is_shapes_encoder
from submissions.running.describing import encoder_label

TEXTS = ["a red circle", "a small blue star with a yellow square", "sand"]
MAKERS: dict[str, Callable[[Path], Path]] = {
    "clip": save_clip,
    "siglip": save_siglip,
    "siglip2": save_siglip2,
    "blip_itm": save_blip,
}
DIMENSIONS = {"clip": 24, "siglip": 32, "siglip2": 32, "blip_itm": 20}


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {name: make(root / name) for name, make in MAKERS.items()}


@pytest.fixture(scope="module")
def images() -> list[Image.Image]:
    shown = [picture(image) for image in list(cir_datasets.load("shapes/val").gallery or ())[:4]]
    wide = Image.effect_noise((70, 41), 60).convert("RGB")
    return [*shown, wide, Image.new("RGB", (33, 90), (200, 30, 90))]


def unit(features: Any) -> Vectors:
    return torch.nn.functional.normalize(features, dim=-1).numpy()


@pytest.mark.parametrize("family", MAKERS)
def test_vectors_are_float32_of_length_1_and_the_same_every_time(
    family: str, folders: dict[str, Path], images: list[Image.Image]
) -> None:
    encoder = load_encoder(str(folders[family]), device="cpu")
    for made, again, rows in (
        (encoder.encode_images(images), encoder.encode_images(images), len(images)),
        (encoder.encode_texts(TEXTS), encoder.encode_texts(TEXTS), len(TEXTS)),
    ):
        assert made.dtype == np.float32
        assert made.shape == (rows, DIMENSIONS[family])
        np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
        assert made.tobytes() == again.tobytes()
        assert np.abs(made[0] - made[1]).max() > 1e-3
    assert encoder.encode_images([]).shape == encoder.encode_texts([]).shape == (0, DIMENSIONS[family])
    assert isinstance(encoder, PreparingEncoder)


@pytest.mark.parametrize("family", MAKERS)
def test_another_batch_size_moves_vectors_by_rounding_only(
    family: str, folders: dict[str, Path], images: list[Image.Image]
) -> None:
    encoder = load_encoder(str(folders[family]), device="cpu")
    singly = np.concatenate([encoder.encode_images([image]) for image in images])
    np.testing.assert_allclose(encoder.encode_images(images), singly, atol=2e-6)
    singly = np.concatenate([encoder.encode_texts([text]) for text in TEXTS])
    np.testing.assert_allclose(encoder.encode_texts(TEXTS), singly, atol=2e-6)


def test_a_resnet_gives_vectors_of_images_and_refuses_texts(
    tmp_path: Path, images: list[Image.Image]
) -> None:
    from transformers import ConvNextImageProcessorPil, ResNetForImageClassification

    folder = save_resnet(tmp_path / "resnet")
    encoder = load_encoder(str(folder), device="cpu")
    model = ResNetForImageClassification.from_pretrained(folder)
    pixels = ConvNextImageProcessorPil.from_pretrained(folder)(images=images, return_tensors="pt")
    with torch.no_grad():
        pooled = model.resnet(**pixels).pooler_output.flatten(1)
    made = encoder.encode_images(images)
    assert made.shape == (len(images), encoder.identity.dimensions) == (len(images), 24)
    np.testing.assert_allclose(made, unit(pooled), atol=1e-6)
    assert encoder.encode_texts([]).shape == (0, 24)
    with pytest.raises(EncoderError, match=r"resnet.* knows images alone, not texts\. Fix:"):
        encoder.encode_texts(TEXTS)


def test_a_vit_gives_its_first_token(tmp_path: Path, images: list[Image.Image]) -> None:
    from transformers import ViTImageProcessorPil, ViTModel

    folder = save_vit(tmp_path / "vit")
    encoder = load_encoder(str(folder), device="cpu")
    pixels = ViTImageProcessorPil.from_pretrained(folder)(images=images, return_tensors="pt")
    with torch.no_grad():
        first = ViTModel.from_pretrained(folder)(**pixels).last_hidden_state[:, 0]
    np.testing.assert_allclose(encoder.encode_images(images), unit(first), atol=1e-6)
    with pytest.raises(EncoderError, match=r"vit.* knows images alone"):
        encoder.encode_texts(TEXTS)


def test_clip_is_what_transformers_computes(folders: dict[str, Path], images: list[Image.Image]) -> None:
    from transformers import AutoTokenizer, CLIPImageProcessorPil, CLIPModel

    model = CLIPModel.from_pretrained(folders["clip"])
    pixels = CLIPImageProcessorPil.from_pretrained(folders["clip"])(images=images, return_tensors="pt")
    tokens = AutoTokenizer.from_pretrained(folders["clip"])(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        whole = model(
            input_ids=tokens["input_ids"],
            attention_mask=tokens["attention_mask"],
            pixel_values=pixels["pixel_values"],
        )
    encoder = load_encoder(str(folders["clip"]), device="cpu")
    # Here transformers normalises, and there we: within float32's rounding.
    np.testing.assert_allclose(encoder.encode_images(images), whole.image_embeds.numpy(), atol=1e-6)
    np.testing.assert_allclose(encoder.encode_texts(TEXTS), whole.text_embeds.numpy(), atol=1e-6)


@pytest.mark.parametrize("family", ["siglip", "siglip2"])
def test_siglip_images_are_what_transformers_computes(
    family: str, folders: dict[str, Path], images: list[Image.Image]
) -> None:
    from transformers import AutoModel, Siglip2ImageProcessorPil, SiglipImageProcessorPil

    processor = {"siglip": SiglipImageProcessorPil, "siglip2": Siglip2ImageProcessorPil}[family]
    inputs = processor.from_pretrained(folders[family])(images=images, return_tensors="pt")
    with torch.no_grad():
        wanted = AutoModel.from_pretrained(folders[family]).get_image_features(**inputs).pooler_output
    made = load_encoder(str(folders[family]), device="cpu").encode_images(images)
    np.testing.assert_allclose(made, unit(wanted), atol=1e-6)


def test_siglip_pads_texts_to_its_limit_and_attends_to_padding(folders: dict[str, Path]) -> None:
    from transformers import AutoTokenizer, SiglipModel

    model = SiglipModel.from_pretrained(folders["siglip"])
    tokens = AutoTokenizer.from_pretrained(folders["siglip"])(
        TEXTS, padding="max_length", max_length=MAX_TOKENS, return_tensors="pt"
    )
    with torch.no_grad():
        wanted = model.text_model(input_ids=tokens["input_ids"]).pooler_output
        short = model.text_model(input_ids=tokens["input_ids"][:, :12]).pooler_output
    made = load_encoder(str(folders["siglip"]), device="cpu").encode_texts(TEXTS)
    np.testing.assert_allclose(made, unit(wanted), atol=1e-6)
    assert np.abs(made - unit(short)).max() > 1e-3


def test_blip_is_its_contrastive_head(folders: dict[str, Path], images: list[Image.Image]) -> None:
    """Products of our vectors are the scores that BlipForImageTextRetrieval gives without its ITM head."""
    from transformers import AutoTokenizer, BlipForImageTextRetrieval, BlipImageProcessorPil

    model = BlipForImageTextRetrieval.from_pretrained(folders["blip_itm"]).eval()
    pixels = BlipImageProcessorPil.from_pretrained(folders["blip_itm"])(images=images, return_tensors="pt")
    tokens = AutoTokenizer.from_pretrained(folders["blip_itm"])(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        scores = model(
            input_ids=tokens["input_ids"],
            attention_mask=tokens["attention_mask"],
            pixel_values=pixels["pixel_values"],
            use_itm_head=False,
        ).itm_score
    encoder = load_encoder(str(folders["blip_itm"]), device="cpu")
    made = encoder.encode_images(images) @ encoder.encode_texts(TEXTS).T
    np.testing.assert_allclose(made, scores.numpy(), atol=1e-5)


@pytest.mark.parametrize("custom_text", [False, True], ids=["CLIP", "CustomTextCLIP"])
def test_open_clip_format_gives_identical_vectors(
    custom_text: bool, folders: dict[str, Path], images: list[Image.Image], tmp_path: Path
) -> None:
    folder = as_open_clip(folders["clip"], tmp_path / "open", custom_text=custom_text)
    ours, theirs = load_encoder(str(folders["clip"]), device="cpu"), load_encoder(str(folder), device="cpu")
    assert theirs.encode_images(images).tobytes() == ours.encode_images(images).tobytes()
    assert theirs.encode_texts(TEXTS).tobytes() == ours.encode_texts(TEXTS).tobytes()
    assert (theirs.identity.model, theirs.identity.family) == ("open", "clip")
    assert theirs.identity.revision != ours.identity.revision


def test_open_clip_squashes_where_its_configuration_says_so(
    folders: dict[str, Path], images: list[Image.Image], tmp_path: Path
) -> None:
    folder = as_open_clip(folders["clip"], tmp_path / "open")
    whole = json.loads((folder / "open_clip_config.json").read_text())
    squash = {"resize_mode": "squash", "interpolation": "bilinear", "mean": [0.5] * 3, "std": [0.25] * 3}
    (folder / "open_clip_config.json").write_text(json.dumps({**whole, "preprocess_cfg": squash}))
    made: Any = load_encoder(str(folder), device="cpu")
    wide = images[4]
    square = wide.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    assert (made.prepare([wide])["pixel_values"][0] == np.asarray(square).transpose(2, 0, 1)).all()
    pixels = (np.asarray(square, dtype=np.float32) / 255 - 0.5) / 0.25
    plain: Any = load_encoder(str(folders["clip"]), device="cpu")
    with torch.no_grad():
        inputs = {"pixel_values": torch.as_tensor(pixels.transpose(2, 0, 1)[None])}
        wanted = plain.family.image(plain.model, inputs)
    np.testing.assert_allclose(made.encode_images([wide]), unit(wanted), atol=1e-6)


@pytest.mark.parametrize(
    ("described", "named"),
    [
        (
            {"vision_cfg": {"timm_model_name": "vit_x", "image_size": 32}},
            "timm_model_name='vit_x'",
        ),
        ({"vision_cfg": {"layers": [3, 4, 6, 3], "image_size": 32}}, r"vision_cfg.layers=\[3, 4, 6, 3\]"),
        ({"text_cfg": {"hf_model_name": "roberta"}}, "text_cfg.hf_model_name='roberta'"),
        ({"multimodal_cfg": {}}, "multimodal_cfg"),
        (
            {"vision_cfg": {"act_kwargs": {"approximate": "tanh"}}},
            r"vision_cfg.act_kwargs=\{'approximate': 'tanh'\}",
        ),
        ({"text_cfg": {"norm_kwargs": {"eps": 1e-6}}}, r"text_cfg.norm_kwargs=\{'eps': 1e-06\}"),
        ({"vision_cfg": {"qk_norm": False}}, "vision_cfg.qk_norm"),
        (
            {"text_cfg": {"tokenizer_kwargs": {"clean": "canonicalize"}}},
            "text_cfg.tokenizer_kwargs=.*canonicalize.*",
        ),
        ({"text_cfg": {"pool_type": ""}}, "text_cfg.pool_type=''"),
        ({"audio_cfg": None}, "audio_cfg"),
        ({"quick_gelu": True, "nonscalar_logit_scale": True}, "nonscalar_logit_scale=True"),
    ],
)
def test_open_clip_models_that_are_not_plain_clip_are_refused(
    described: dict[str, Any], named: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = as_open_clip(folders["clip"], tmp_path / "open", **described)
    with pytest.raises(EncoderError, match=f"{named}: a kind of model that is not converted. Fix:"):
        load_encoder(str(folder), device="cpu")


@pytest.mark.parametrize(
    ("whole", "named"),
    [
        ({"naflex_cfg": {}}, "naflex_cfg"),
        ({"preprocess_cfg": {"size": SIDE + 8}}, f"preprocess_cfg.size={SIDE + 8}"),
        ({"preprocess_cfg": {"mode": "L"}}, "preprocess_cfg.mode='L'"),
        ({"preprocess_cfg": {"crop_pct": 0.9}}, "preprocess_cfg.crop_pct"),
    ],
)
def test_what_open_clip_would_do_otherwise_to_pictures_is_refused(
    whole: dict[str, Any], named: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    path = as_open_clip(folders["clip"], tmp_path / "open") / "open_clip_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **whole}))
    with pytest.raises(EncoderError, match=f"{named}: a kind of model that is not converted. Fix:"):
        load_encoder(str(path.parent), device="cpu")


def test_open_clip_keys_that_change_no_vector_are_read_over(
    folders: dict[str, Path], images: list[Image.Image], tmp_path: Path
) -> None:
    path = as_open_clip(folders["clip"], tmp_path / "open") / "open_clip_config.json"
    whole = json.loads(path.read_text())
    whole["model_cfg"]["vision_cfg"] |= {
        "act_kwargs": {},
        "norm_kwargs": None,
        "patch_dropout": 0.5,
        "timm_pool": "avg",
    }
    whole["model_cfg"]["text_cfg"] |= {"pool_type": "argmax", "hf_tokenizer_name": "some/name", "eos_id": 2}
    whole["preprocess_cfg"] |= {"size": [SIDE, SIDE], "mode": "RGB", "fill_color": 0}
    path.write_text(json.dumps(whole))
    ours, theirs = (
        load_encoder(str(folders["clip"]), device="cpu"),
        load_encoder(str(path.parent), device="cpu"),
    )
    assert theirs.encode_images(images).tobytes() == ours.encode_images(images).tobytes()
    assert theirs.encode_texts(TEXTS).tobytes() == ours.encode_texts(TEXTS).tobytes()


def test_open_clip_without_a_tokenizer_says_whose_to_take(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = as_open_clip(folders["clip"], tmp_path / "open")
    for path in folder.glob("*token*"):
        path.unlink()
    with pytest.raises(EncoderError, match=r"no tokenizer is in it.*Fix: put tokenizer\.json"):
        load_encoder(str(folder), device="cpu")


@pytest.fixture
def hub(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hub:
    """The Hub, as huggingface_hub sees it, and an empty cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    return hub


def upload(hub: Hub, name: str, folder: Path) -> str:
    return hub.repository(name).commit({path.name: path.read_bytes() for path in folder.iterdir()})


def test_a_name_on_the_hub_is_loaded_at_its_commit(
    hub: Hub, folders: dict[str, Path], images: list[Image.Image], tmp_path: Path
) -> None:
    first = upload(hub, "some/tiny-clip", folders["clip"])
    second = upload(hub, "some/tiny-clip", save_clip(tmp_path / "other", seed=1))
    local = load_encoder(str(folders["clip"]), device="cpu")
    old = load_encoder("some/tiny-clip", revision=first, device="cpu")
    new = load_encoder("some/tiny-clip", device="cpu")
    assert (old.identity.model, old.identity.revision) == ("some/tiny-clip", first)
    assert new.identity.revision == second
    assert old.encode_images(images).tobytes() == local.encode_images(images).tobytes()
    assert new.encode_images(images).tobytes() != local.encode_images(images).tobytes()
    assert old.identity.preprocessing == new.identity.preprocessing == local.identity.preprocessing


def test_open_clip_only_on_the_hub_and_later_from_the_cache(
    hub: Hub,
    folders: dict[str, Path],
    images: list[Image.Image],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit = upload(hub, "some/open", as_open_clip(folders["clip"], tmp_path / "open"))
    made = load_encoder("some/open", device="cpu")
    assert (made.identity.model, made.identity.revision) == ("some/open", commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    before = len(hub.requests)
    assert load_encoder("some/open", device="cpu").identity == made.identity
    assert len(hub.requests) == before
    with pytest.raises(EncoderError, match=r"^some/other: cannot be loaded: .*HF_HUB_OFFLINE is not set"):
        load_encoder("some/other", device="cpu")
    local = load_encoder(str(folders["clip"]), device="cpu")
    assert made.encode_images(images).tobytes() == local.encode_images(images).tobytes()


@pytest.mark.parametrize(("name", "revision"), [("some/absent", None), ("some/tiny-clip", "no-such-tag")])
def test_what_the_hub_has_not_is_named(
    hub: Hub, name: str, revision: str | None, folders: dict[str, Path]
) -> None:
    upload(hub, "some/tiny-clip", folders["clip"])
    with pytest.raises(
        EncoderError, match=rf"^{name}: cannot be loaded: .*Fix: check the name and the revision"
    ):
        load_encoder(name, revision=revision, device="cpu")


def test_identity_follows_weights_preprocessing_and_dtype(folders: dict[str, Path], tmp_path: Path) -> None:
    first = load_encoder(str(folders["clip"]), device="cpu").identity
    assert first == load_encoder(str(folders["clip"]), device="cpu").identity
    assert first.text() == f"clip (clip, 24 dimensions, float32, revision {first.revision[:12]})"
    moved = shutil.copytree(folders["clip"], tmp_path / "clip")
    assert load_encoder(str(moved), device="cpu").identity == first
    described = json.loads((moved / "preprocessor_config.json").read_text())
    (moved / "preprocessor_config.json").write_text(json.dumps({**described, "image_mean": [0, 0, 0]}))
    other = load_encoder(str(moved), device="cpu").identity
    assert other.revision == first.revision
    assert other.preprocessing != first.preprocessing
    assert load_encoder(str(folders["clip"]), device="cpu", dtype="bfloat16").identity.dtype == "bfloat16"
    weights = save_clip(tmp_path / "seed1", seed=1)
    assert load_encoder(str(weights), device="cpu").identity.revision != first.revision


def test_texts_beyond_the_limit_are_cut_off_with_a_warning_that_counts_them(folders: dict[str, Path]) -> None:
    encoder = load_encoder(str(folders["clip"]), device="cpu")
    encoder.encode_texts(["red"])
    long = " ".join(["red"] * (MAX_TOKENS - 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = encoder.encode_texts([long])
    with pytest.warns(TruncationWarning, match=r"^1 of 2 texts are longer than the 16 tokens that clip"):
        cut = encoder.encode_texts([long + " green", "red"])
    np.testing.assert_allclose(cut[0], whole[0], atol=1e-6)


def test_half_precision_stays_near_and_gives_float32(
    folders: dict[str, Path], images: list[Image.Image]
) -> None:
    full = load_encoder(str(folders["clip"]), device="cpu")
    assert load_encoder(str(folders["clip"]), device="cpu", dtype="auto").identity == full.identity
    half = load_encoder(str(folders["clip"]), device="cpu", dtype="bfloat16")
    made = half.encode_images(images)
    assert made.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    assert (made * full.encode_images(images)).sum(axis=1).min() > 0.995
    assert (half.encode_texts(TEXTS) * full.encode_texts(TEXTS)).sum(axis=1).min() > 0.995


def test_preparation_can_be_pickled_and_holds_no_weights(folders: dict[str, Path]) -> None:
    encoder = load_encoder(str(folders["clip"]), device="cpu")
    assert isinstance(encoder, PreparingEncoder)
    packed = pickle.dumps(encoder.prepare)
    assert len(packed) < 10_000
    image = Image.new("RGB", (50, 40), (1, 2, 3))
    made = pickle.loads(packed)([image])["pixel_values"]
    assert made.dtype == np.uint8
    assert made.shape == (1, 3, SIDE, SIDE)


def damaged(folder: Path, out: Path, change: str) -> Path:
    shutil.copytree(folder, out)
    if change == "no weights":
        (out / "model.safetensors").unlink()
    elif change == "half the weights":
        whole = (out / "model.safetensors").read_bytes()
        (out / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    elif change == "no config":
        (out / "config.json").unlink()
    elif change == "other type":
        (out / "config.json").write_text(json.dumps({"model_type": "bert"}))
    elif change == "no tokenizer":
        for path in out.glob("*token*"):
            path.unlink()
    elif change == "pickle":
        (out / "model.safetensors").unlink()
        torch.save({"weight": Path("a class, which only running code can make")}, out / "pytorch_model.bin")
    elif change == "lost weights":
        from safetensors.torch import load_file, save_file

        weights = load_file(out / "model.safetensors")
        del weights["visual_projection.weight"]
        save_file(weights, out / "model.safetensors", {"format": "pt"})
    return out


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("no weights", r"no weights are in it \(model\.safetensors or pytorch_model\.bin\)\. Fix: get them"),
        ("half the weights", r"cannot be loaded: .* Fix: get it again"),
        ("no config", r"no config\.json is in it\. Fix: pass a folder that save_pretrained wrote"),
        (
            "other type",
            r"models of type 'bert' are not dual encoders that are known\. Fix: use one of",
        ),
        (
            "no tokenizer",
            r"no tokenizer is in it, or one of another model: it knows 2 tokens, the model 38\.",
        ),
        ("pickle", r"its weights are a pickle that holds more than numbers.* Fix: get the model with safete"),
        ("lost weights", r"1 weights of the model are not in its files, 'visual_projection\.weight' for one"),
    ],
)
def test_a_folder_that_cannot_be_used_says_why(
    change: str, text: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = damaged(folders["clip"], tmp_path / "damaged", change)
    with pytest.raises(EncoderError, match=rf"^{folder}: {text}"):
        load_encoder(str(folder), device="cpu")


def test_blip_without_a_tokenizer_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = damaged(folders["blip_itm"], tmp_path / "blip", "no tokenizer")
    with pytest.raises(
        EncoderError, match=rf"^{folder}: no tokenizer is in it.*5 tokens, the model 38\. Fix:"
    ):
        load_encoder(str(folder), device="cpu")


@pytest.mark.parametrize(
    ("file", "changed", "refused"),
    [
        ("config.json", {"model_type": "own", "auto_map": {"AutoConfig": "own.Own"}}, True),
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["own.Own", "own.Own"]}}, False),
        ("preprocessor_config.json", {"auto_map": {"AutoImageProcessor": "own.Own"}}, False),
    ],
)
def test_code_of_a_repository_is_neither_run_nor_offered(
    file: str,
    changed: dict[str, Any],
    refused: bool,
    folders: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Transformers' own class is used where there is one."""
    folder = shutil.copytree(folders["clip"], tmp_path / "own")
    mark = tmp_path / "it ran"
    (folder / "own.py").write_text(f"open({str(mark)!r}, 'w')\n")
    described = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps({**described, **changed}))
    asked = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or "y")
    if refused:
        with pytest.raises(EncoderError, match=rf"^{folder}: it works by code of its own repository only, "):
            load_encoder(str(folder), device="cpu")
    else:
        made = load_encoder(str(folder), device="cpu").encode_texts(TEXTS)
        assert made.tobytes() == load_encoder(folders["clip"], device="cpu").encode_texts(TEXTS).tobytes()
    assert not mark.exists()
    assert not asked


def test_a_folder_named_shapes_is_not_the_encoder_that_is_shipped(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    own = load_encoder(str(shutil.copytree(folders["clip"], tmp_path / "shapes")), device="cpu").identity
    shipped = load_encoder("shapes", device="cpu").identity
    assert own.model == shipped.model == "shapes"
    assert (is_shapes_encoder(own), is_shapes_encoder(shipped)) == (False, True)
    assert (encoder_label(own), encoder_label(shipped)) == ("shapes", "shapes encoder")


@pytest.mark.parametrize("name", ["./absent", "/no/such/folder", "a/b/c"])
def test_a_folder_that_is_not_there(name: str) -> None:
    with pytest.raises(EncoderError, match=rf"^{name}: no such folder\. Fix: pass a folder in Hugging Face"):
        load_encoder(name)


def test_devices_and_types_that_are_not_there(folders: dict[str, Path]) -> None:
    with pytest.raises(EncoderError, match=r"^device 'abacus' cannot be used: .* Fix: use auto or cpu"):
        load_encoder(str(folders["clip"]), device="abacus")
    with pytest.raises(EncoderError, match=r"^dtype 'float8' is not known\. Fix: use one of auto, float32"):
        load_encoder(str(folders["clip"]), dtype="float8")
    with pytest.raises(EncoderError, match=r"^threads=0\. Fix: use 1 or more"):
        load_encoder(str(folders["clip"]), threads=0)


IMPOSSIBLE: dict[str, Any] = {
    "huge": {"size": {"shortest_edge": 10**9}, "crop_size": {"height": 10**9, "width": 10**9}},
    "none": {"size": {"shortest_edge": 0}},
    "negative": {"crop_size": {"height": -3, "width": 5}},
    "text": {"size": "large"},
    "another": {"size": {"height": 7, "width": 7}, "crop_size": {"height": 7, "width": 7}},
    "mean": {"image_mean": ["a"]},
    "factor": {"rescale_factor": {}},
    "nested": {"size": {"shortest_edge": {"shortest_edge": 3}}},
}


@pytest.mark.parametrize("fault", IMPOSSIBLE)
def test_an_impossible_preprocessing_is_refused_when_it_is_loaded(
    fault: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(folders["clip"], tmp_path / "model")
    path = next(path for path in folder.glob("*processor_config.json"))
    described = json.loads(path.read_text())
    inner = described.get("image_processor", described)
    inner.update(IMPOSSIBLE[fault])
    path.write_text(json.dumps(described))
    with pytest.raises(EncoderError) as caught:
        load_encoder(str(folder), device="cpu")
    assert str(folder) in str(caught.value)
    assert "Fix: get it again" in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 64, (2**62).to_bytes(8, "little") + b"{}", (2).to_bytes(8, "little") + b"[]"]
)
def test_damaged_safetensors_are_refused_in_words(
    content: bytes, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(folders["clip"], tmp_path / "model")
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(EncoderError) as caught:
        load_encoder(str(folder), device="cpu")
    assert "Fix: " in str(caught.value)

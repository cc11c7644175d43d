"""Signatures: what they print, what their key holds, how two differ; and the catalogue behind them."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest

from cir_metrics.catalogue import METRICS, check_variant, metric, parse_metric
from cir_metrics.errors import InputError, UnknownNameError
from cir_metrics.signature import Signature, differences, package_version

DATA = "4f1c2ab" + "0" * 57
GALLERY = "9be02d1" + "1" * 57


def signature(metric_name: str = "recall@10", **changes: Any) -> Signature:
    fields: dict[str, Any] = {
        "benchmark": "fashioniq/dress_val",
        "benchmark_version": 1,
        "data_hash": DATA,
        "gallery_hash": GALLERY,
        "gallery_size": 3817,
        "reference": "kept",
        "n": 2017,
    }
    return Signature.of(metric_name, **{**fields, **changes})


def test_the_usual_signature_is_one_short_line() -> None:
    assert str(dataclasses.replace(signature(), package_version="0.3.0")) == (
        "fashioniq/dress_val#1 | data:4f1c2ab | gallery:3817:9be02d1 | ref:kept | ties:last | "
        "metric:1 | sig:2 | n:2017 | v:0.3.0"
    )


def test_a_signature_prints_all_that_is_unusual() -> None:
    unusual = signature(
        "pnr_map@5",
        gallery_hash=None,
        gallery_size=None,
        reference="removed",
        variant="released_code",
        checks_skipped=("gallery", "counts"),
    )
    assert str(unusual) == (
        "fashioniq/dress_val#1 | data:4f1c2ab | gallery:unknown | ref:removed | ties:last | "
        f"metric:1:released_code | sig:2 | skipped:counts,gallery | n:2017 | v:{package_version()}"
    )


def test_key_has_whole_hashes_and_neither_n_nor_package_version() -> None:
    key = signature().key
    assert DATA in key
    assert GALLERY in key
    assert "recall@10:1" in key
    assert key == signature(n=5).key == dataclasses.replace(signature(), package_version="9").key
    assert "2017" not in key


CHANGES: list[tuple[str, dict[str, Any], str]] = [
    (
        "benchmark",
        {"benchmark": "fashioniq/dress_val_union"},
        ("fashioniq/dress_val#1 against fashioniq/dress_val_union#1"),
    ),
    ("benchmark", {"benchmark_version": 2}, "fashioniq/dress_val#1 against fashioniq/dress_val#2"),
    # The first seven characters agree, the hashes do not.
    ("data", {"data_hash": DATA[:-1] + "f"}, f"{DATA} against {DATA[:-1]}f"),
    ("gallery", {"gallery_hash": GALLERY[:-1] + "f"}, f"3817:{GALLERY} against 3817:{GALLERY[:-1]}f"),
    ("gallery", {"gallery_hash": None, "gallery_size": None}, f"3817:{GALLERY} against unknown"),
    ("ref", {"reference": "removed"}, "kept against removed"),
    ("metric", {"metric_name": "recall@50"}, "recall@10:1 against recall@50:1"),
    ("skipped", {"checks_skipped": ("counts",)}, "none against counts"),
]


@pytest.mark.parametrize(
    ("part", "change", "text"), CHANGES, ids=[str(list(change)) for _, change, _ in CHANGES]
)
def test_differences_name_the_part(part: str, change: dict[str, Any], text: str) -> None:
    other = signature(**change)
    assert differences(signature(), other) == [f"{part}: {text}"]
    assert other.key != signature().key


def test_variant_version_and_tie_rule_are_part_of_the_key() -> None:
    one, two = signature("pnr_map@5"), signature("pnr_map@5", variant="released_code")
    assert differences(one, two) == ["metric: pnr_map@5:1 against pnr_map@5:1:released_code"]
    newer = dataclasses.replace(one, metric_version=2)
    assert differences(one, newer) == ["metric: pnr_map@5:1 against pnr_map@5:2"]
    assert differences(one, dataclasses.replace(one, ties="listed")) == ["ties: last against listed"]
    assert differences(one, dataclasses.replace(one, n=3, package_version="9")) == []


def test_order_of_skipped_checks_does_not_matter() -> None:
    one = signature(checks_skipped=("counts", "gallery"))
    assert one.key == signature(checks_skipped=("gallery", "counts")).key


def test_to_dict_is_json_and_holds_the_key() -> None:
    written = json.loads(json.dumps(signature().to_dict()))
    assert written["key"] == signature().key
    assert written["gallery_size"] == 3817
    assert written["checks_skipped"] == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"gallery_hash": None},
            "a signature has both gallery hash and size, or neither. Fix: pass both or None twice.",
        ),
        ({"reference": "dropped"}, "reference='dropped'. Fix: use 'kept' or 'removed'."),
        ({"ties": "first"}, "ties='first'. Fix: use 'last' or 'listed'."),
        ({"variant": "code"}, "variant='code': recall_at_k has no such variant. Fix: use one of 'equation'."),
    ],
)
def test_malformed_signatures_are_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"):
        signature(**change)


# --- formats ---

OLD = {
    "benchmark": "fashioniq/dress_val",
    "benchmark_version": 1,
    "data_hash": DATA,
    "gallery_hash": GALLERY,
    "gallery_size": 3817,
    "reference": "kept",
    "metric": "recall@10",
    "variant": "equation",
    "metric_version": 1,
    "checks_skipped": [],
    "n": 2017,
    "package_version": "0.1.0",
    "ties": "last",
    "key": f"benchmark:fashioniq/dress_val#1|data:{DATA}|gallery:3817:{GALLERY}|ref:kept|ties:last"
    "|metric:recall@10:1|skipped:none",
    "text": "fashioniq/dress_val#1 | data:4f1c2ab | gallery:3817:9be02d1 | ref:kept | ties:last | metric:1 "
    "| n:2017 | v:0.1.0",
}
"""What version 0.1.0 stored."""


def test_a_signature_of_format_1_is_read_as_it_was_written() -> None:
    old = Signature.from_dict(OLD)
    assert (old.format, old.key, str(old)) == (1, OLD["key"], OLD["text"])
    assert {**old.to_dict(), "text": str(old)} == OLD


def test_a_signature_of_format_1_equals_none_of_format_2_and_the_format_is_the_reason() -> None:
    old = Signature.from_dict(OLD)
    for ties in ("last", "listed"):
        new = dataclasses.replace(signature(ties=ties), package_version="0.1.0")
        assert new.data_hash == old.data_hash
        assert new.key != old.key
        assert new != old
        assert differences(old, new) == ["sig: 1 against 2"]
        assert differences(new, old) == ["sig: 2 against 1"]
    assert differences(old, signature(reference="removed")) == [
        "sig: 1 against 2",
        "ref: kept against removed",
    ]
    assert differences(old, dataclasses.replace(old, data_hash="f" * 64)) == [
        f"data: {DATA} against {'f' * 64}"
    ]


@pytest.mark.parametrize("changes", [{}, {"search": "hnsw, recall@50 0.9"}, {"checks_skipped": ("counts",)}])
def test_a_written_signature_is_read_again(changes: dict[str, Any]) -> None:
    one = signature(ties="listed", **changes)
    assert Signature.from_dict(json.loads(json.dumps(one.to_dict()))) == one


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"format": 3}, "a signature of format 3; this version reads 1 to 2. Fix: read it with the version"),
        ({"metric": "recal@10"}, "no metric is printed as 'recal@10'"),
    ],
)
def test_stored_signatures_that_cannot_be_read(change: dict[str, Any], text: str) -> None:
    with pytest.raises((InputError, UnknownNameError), match=re.escape(text)):
        Signature.from_dict({**OLD, **change})


# --- the catalogue ---


@pytest.mark.parametrize(
    ("printed", "parsed"),
    [
        ("recall@5", ("recall_at_k", 5)),
        ("recall_subset@1", ("recall_subset", 1)),
        ("map_subset@3", ("map_subset", 3)),
        ("map@10", ("map_at_k", 10)),
        ("pnr_map@50", ("pnr_map", 50)),
        ("hits@10", ("hits_at_k", 10)),
        ("hits@10@turn3", ("hits_at_k", 10)),
        ("final_recall@10", ("final_recall", 10)),
        ("final_mrr@50", ("final_mrr", 50)),
        ("hits_auc@10", ("hits_auc", 10)),
        ("mean_rank", ("mean_rank", None)),
        ("median_rank", ("mean_rank", None)),
        ("censored", ("mean_rank", None)),
    ],
)
def test_a_printed_metric_is_parsed_into_module_and_cutoff(
    printed: str, parsed: tuple[str, int | None]
) -> None:
    assert parse_metric(printed) == parsed


@pytest.mark.parametrize(
    ("printed", "error", "text"),
    [
        ("recall", InputError, "'recall' names no cutoff. Fix: write 'recall@K', such as 'recall@1'."),
        (
            "recall@0",
            InputError,
            "'recall@0': k=0; a cutoff is 1 or more. Fix: ask for recall@1 or more.",
        ),
        (
            "recall@-5",
            InputError,
            "'recall@-5': k=-5; a cutoff is 1 or more. Fix: ask for recall@1 or more.",
        ),
        (
            "mean_rank@5",
            InputError,
            ("'mean_rank@5' names a cutoff; mean_rank has none. Fix: write 'mean_rank'."),
        ),
        (
            "pnr_map@5@turn1",
            InputError,
            (
                "'pnr_map@5@turn1' names a turn; only hits, recall, map, mean_rank have a value a turn. "
                "Fix: drop '@turn1'."
            ),
        ),
        (
            "recal@5",
            UnknownNameError,
            "no metric is printed as 'recal@5'. Did you mean 'recall@1'? `cir metrics list` shows all.",
        ),
        (
            "recall_at_k@5",
            UnknownNameError,
            "no metric is printed as 'recall_at_k@5'. Did you mean 'recall@1'? `cir metrics list` shows all.",
        ),
        ("zzz", UnknownNameError, "no metric is printed as 'zzz'. `cir metrics list` shows all."),
        (
            "recall@five",
            UnknownNameError,
            "no metric is printed as 'recall@five'. Did you mean 'recall@1'? `cir metrics list` shows all.",
        ),
    ],
)
def test_malformed_names_are_refused(printed: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        parse_metric(printed)


def test_module_names_are_looked_up_with_a_hint() -> None:
    assert metric("pnr_map").default_variant == "equation"
    with pytest.raises(UnknownNameError, match=r"no metric 'pnrmap'\. Did you mean 'pnr_map'"):
        metric("pnrmap")
    assert check_variant("pnr_map", "released_code") == "released_code"


def test_the_catalogue_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        METRICS["new"] = METRICS["pnr_map"]  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        METRICS["pnr_map"].version = 2  # type: ignore[misc]


def test_the_paper_is_the_default_everywhere() -> None:
    assert {entry.default_variant for entry in METRICS.values()} == {"equation"}

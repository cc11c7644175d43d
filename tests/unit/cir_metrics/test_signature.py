"""Signatures: what they print, what their key holds, how two differ; and the catalogue behind them."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest
from says import refusal, says

from cir_metrics.catalogue import METRICS, Signature, check_variant, metric, package_version, parse_metric
from cir_metrics.errors import InputError, UnknownNameError
from cir_metrics.signature import differences, shares_differ

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
        "metric:1 | sig:3 | n:2017 | v:0.3.0"
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
        f"metric:1:released_code | sig:3 | skipped:counts,gallery | n:2017 | v:{package_version()}"
    )


def test_key_has_whole_hashes_and_neither_n_nor_package_version() -> None:
    key = signature().key
    assert DATA in key
    assert GALLERY in key
    assert "recall@10:1" in key
    assert key == signature(n=5).key == dataclasses.replace(signature(), package_version="9").key
    assert "2017" not in key


CHANGES: list[tuple[str, dict[str, Any], str]] = [
    ("benchmark", {"benchmark": "cirr/val"}, "fashioniq/dress_val#1 against cirr/val#1"),
    ("benchmark", {"benchmark_version": 2}, "fashioniq/dress_val#1 against fashioniq/dress_val#2"),
    # The first seven characters agree, the hashes do not.
    ("data", {"data_hash": DATA[:-1] + "f"}, f"{DATA} against {DATA[:-1]}f"),
    ("gallery", {"gallery_hash": GALLERY[:-1] + "f"}, f"3817:{GALLERY} against 3817:{GALLERY[:-1]}f"),
    ("gallery", {"gallery_hash": None, "gallery_size": None}, f"3817:{GALLERY} against unknown"),
    ("ref", {"reference": "removed"}, "kept against removed"),
    ("metric", {"metric_name": "recall@50"}, "recall@10:1 against recall@50:1"),
    ("skipped", {"checks_skipped": ("counts",)}, "none against counts"),
    ("ref", {"reference": "outside"}, "kept against outside"),
    ("gallery", {"gallery_kind": "per-query"}, f"3817:{GALLERY} against per-query:3817:{GALLERY}"),
    ("ranked", {"ranked": "fashioniq/dress_val_union"}, "the gallery against fashioniq/dress_val_union"),
    ("repaired", {"repaired": ("padding",)}, "none against padding"),
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


def test_what_lists_show_and_a_file_declares_is_printed_for_the_record() -> None:
    one = signature(reference_held=(2017, 2017), reference_declared="kept")
    assert one.key == signature().key
    assert " | held:2017/2017 | declared:kept | n:2017 | " in str(one)
    written = json.loads(json.dumps(one.to_dict()))
    assert written["reference_held"] == [2017, 2017]
    assert Signature.from_dict(written) == one


@pytest.mark.parametrize(
    ("changes", "unverified"),
    [
        ({}, False),
        ({"reference_held": (0, 2017)}, True),
        ({"reference_held": (1, 2017)}, False),
        ({"reference_held": (0, 0)}, False),
        ({"reference_held": (0, 2017), "reference_declared": "kept"}, False),
        ({"reference_held": (0, 2017), "reference": "removed"}, False),
        ({"reference_held": (0, 2017), "reference": "outside"}, False),
    ],
)
def test_unverified_is_what_no_list_shows_and_nobody_declared(
    changes: dict[str, Any], unverified: bool
) -> None:
    one = signature(**changes)
    assert one.unverified is unverified
    assert (":unverified" in str(one), one.to_dict().get("unverified", False)) == (unverified, unverified)
    assert one.key == signature(reference=one.reference).key


@pytest.mark.parametrize(
    ("first", "second", "differ"),
    [
        ((2017, 2017), (0, 2017), True),
        ((0, 800), (448, 800), True),
        ((346, 800), (448, 800), False),
        ((2000, 2017), (200, 2017), True),
        ((2000, 2017), (201, 2017), False),
        ((5, 2017), (0, 2017), False),
        ((9, 9), (0, 2017), False),
        ((0, 2017), (0, 2017), False),
        (None, (0, 2017), False),
        ((0, 0), (5, 5), False),
    ],
)
def test_shares_differ_tenfold_and_by_more_than_a_few_lists(
    first: tuple[int, int] | None, second: tuple[int, int] | None, differ: bool
) -> None:
    assert shares_differ(first, second) is shares_differ(second, first) is differ


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
        ({"gallery_hash": None}, "a signature has both gallery hash and size, or neither"),
        ({"reference": "dropped"}, "reference='dropped' ... use one of 'kept', 'removed', 'outside', 'none'"),
        ({"reference_held": (3, 2)}, "reference_held=(3, 2) ... pass how many lists hold the reference"),
        ({"reference_declared": "outside"}, "reference_declared='outside' ... use one of '', 'kept'"),
        ({"ties": "first"}, "ties='first'. Fix: use one of 'last', 'listed'."),
        ({"variant": "code"}, "variant='code': recall_at_k has no such variant. Fix: use one of 'equation'."),
    ],
)
def test_malformed_signatures_are_refused(change: dict[str, Any], text: str) -> None:
    with refusal(text):
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


OLD_2 = {
    **{name: value for name, value in OLD.items() if name not in ("key", "text")},
    "ties": "listed",
    "format": 2,
    "key": f"sig:2|{str(OLD['key']).replace('ties:last', 'ties:listed')}",
    "text": str(OLD["text"]).replace("ties:last", "ties:listed").replace(":1 | n", ":1 | sig:2 | n"),
}
"""What versions between 0.1.0's first and last stored."""


def test_a_signature_of_format_2_is_read_as_it_was_written() -> None:
    old = Signature.from_dict(OLD_2)
    assert {**old.to_dict(), "text": str(old)} == OLD_2


@pytest.mark.parametrize("stored", [OLD, OLD_2])
def test_an_older_signature_equals_none_of_format_3_and_the_format_is_the_reason(stored: Any) -> None:
    old = Signature.from_dict(stored)
    for ties in {old.ties, "listed"}:
        new = dataclasses.replace(signature(ties=ties), package_version="0.1.0")
        assert new.data_hash == old.data_hash
        assert new.key != old.key
        assert new != old
        assert differences(old, new) == [f"sig: {old.format} against 3"]
        assert differences(new, old) == [f"sig: 3 against {old.format}"]
    # What the protocol says of the reference is no more than that: it is not held against the new part.
    assert differences(old, signature(ties=old.ties, reference="removed")) == [f"sig: {old.format} against 3"]
    assert differences(old, dataclasses.replace(old, gallery_size=9)) == [
        f"gallery: 3817:{GALLERY} against 9:{GALLERY}"
    ]


def test_formats_1_and_2_are_not_compared_by_data_and_ties() -> None:
    assert differences(Signature.from_dict(OLD), Signature.from_dict(OLD_2)) == ["sig: 1 against 2"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"search": "hnsw, recall@50 0.9"},
        {"checks_skipped": ("counts",)},
        {"repaired": ("padding",), "gallery_kind": "per-query", "ranked": "fashioniq/dress_val_union"},
    ],
)
def test_a_written_signature_is_read_again(changes: dict[str, Any]) -> None:
    one = signature(ties="listed", **changes)
    assert Signature.from_dict(json.loads(json.dumps(one.to_dict()))) == one


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"format": 4}, "a signature of format 4; this version reads 1 to 3. Fix: read it with the version"),
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
        ("turn_recall@5", ("turn_recall", 5)),
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
        ("recall@0", InputError, "'recall@0': k=0; a cutoff is 1 or more. Fix: ask for recall@1 or more."),
        ("recall@-5", InputError, "'recall@-5': k=-5; a cutoff is 1 or more. Fix: ask for recall@1 or more."),
        ("mean_rank@5", InputError, "'mean_rank@5' names a cutoff ... write 'mean_rank'"),
        ("pnr_map@5@turn1", InputError, "'pnr_map@5@turn1' names a turn ... drop '@turn1'"),
        ("recal@5", UnknownNameError, "'recal@5'. Did you mean 'recall@5'? Fix: use one that"),
        ("recall_at_k@5", UnknownNameError, "'recall_at_k@5'. Did you mean 'recall@5'? Fix: use one that"),
        ("zzz", UnknownNameError, "no metric is printed as 'zzz'. Fix: use one that"),
        ("recall@five", UnknownNameError, "'recall@five'. Did you mean 'recall@1'? Fix: use one that"),
    ],
)
def test_malformed_names_are_refused(printed: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        parse_metric(printed)
    says(caught, text)


def test_module_names_are_looked_up_with_a_hint() -> None:
    assert metric("pnr_map").default_variant == "equation"
    with pytest.raises(UnknownNameError, match=r"no metric 'pnrmap'\. Did you mean 'pnr_map'"):
        metric("pnrmap")
    assert check_variant("pnr_map", "released_code") == "released_code"


def test_an_entry_of_the_catalogue_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        METRICS["pnr_map"].version = 2  # type: ignore[misc]


def test_the_paper_is_the_default_everywhere() -> None:
    assert {entry.default_variant for entry in METRICS.values()} == {"equation"}

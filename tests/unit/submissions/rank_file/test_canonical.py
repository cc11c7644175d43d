"""The hash that says whether two rank files are the same answer."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

import submissions
from submissions import Method, RankBundle, RankFile
from submissions.rank_file.canonical import canonical_hash

TOY = RankFile("toy", 1, Method(name="one"), {"q2": ["b"], "q1": ["a", "été"]})


def read(content: bytes, benchmark: str) -> str:
    found = submissions.validate(content, benchmark, part=False)
    assert found.ok, found.text()
    assert isinstance(found.rank_file, RankFile)
    return canonical_hash(found.rank_file)


@pytest.mark.parametrize("form", ["lines", "parquet", "trec"])
@pytest.mark.parametrize("benchmark", ["shapes/val", "shapes/multiturn_val"])
def test_the_container_makes_no_difference(benchmark: str, form: str) -> None:
    whole = submissions.make_rank_file(benchmark, "random")
    # A TREC run holds no rankings of subsets, so that no board with such a metric takes it.
    rank_file = replace(whole, subset_rankings=None) if form == "trec" else whole
    [made] = submissions.convert([rank_file.to_json()], form, benchmark=benchmark)
    found = submissions.read(made.content, benchmark=benchmark)
    assert isinstance(found, RankFile)
    assert canonical_hash(found) == canonical_hash(rank_file)


@pytest.mark.parametrize("benchmark", ["shapes/val", "shapes/multiturn_val"])
def test_blanks_order_gzip_and_the_method_make_no_difference(benchmark: str) -> None:
    rank_file = submissions.make_rank_file(benchmark, "random")
    expected = canonical_hash(rank_file)
    document = rank_file.to_dict()
    turned = {"rankings": dict(reversed(document["rankings"].items())), "method": {"name": "Other"}}
    indented = json.dumps(dict(reversed((document | turned).items())), indent=2).encode()
    assert [read(content, benchmark) for content in (indented, gzip.compress(indented))] == [expected] * 2


def swapped(ranking: list[Any]) -> list[Any]:
    return [*ranking[:-2], ranking[-1], ranking[-2]]


def test_a_swapped_pair_makes_a_difference_wherever_it_stands() -> None:
    one = submissions.make_rank_file("shapes/val", "random")
    last = list(one.rankings)[-1]
    other = [
        replace(one, rankings={**one.rankings, last: swapped(one.rankings[last])}),
        replace(one, subset_rankings={**one.subset_rankings, last: swapped(one.subset_rankings[last])}),
        replace(one, subset_rankings=None),
        replace(one, benchmark="shapes/test"),
    ]
    turns = submissions.make_rank_file("shapes/multiturn_val", "random")
    session = next(iter(turns.rankings))
    first, *rest = turns.rankings[session]
    other += [turns, replace(turns, rankings={**turns.rankings, session: [swapped(first), *rest]})]
    assert len({canonical_hash(file) for file in [one, *other]}) == 7


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"q": ["a", "bc"]}, {"q": ["ab", "c"]}),
        ({"q": ["a", "b"]}, {"q": ["a"], "b": []}),
        ({"q": [["a"], ["b"]]}, {"q": [["a", "b"]]}),
        ({"q": ["1:a,1:b"]}, {"q": ["a", "b"]}),
    ],
)
def test_ids_do_not_run_into_each_other(one: dict[str, Any], other: dict[str, Any]) -> None:
    found = {canonical_hash(replace(TOY, rankings=rankings)) for rankings in (one, other)}
    assert len(found) == 2


def test_the_hash_is_the_documented_one() -> None:
    parts = ["toy", "rankings", "2", "q1", "1", "2", "a", "été", "q2", "1", "1", "b"]
    written = b"".join(b"%d:%s," % (len(part.encode()), part.encode()) for part in parts)
    assert canonical_hash(TOY) == hashlib.sha256(written).hexdigest()


def test_a_bundle_is_hashed_by_its_runs_in_whatever_order() -> None:
    one, two = TOY, replace(TOY, benchmark="other")
    bundle = RankBundle("both", (one, two))
    parts = "".join(f"64:{canonical_hash(run)}," for run in (two, one))  # "other" is before "toy"
    assert canonical_hash(bundle) == hashlib.sha256(f"4:both,1:2,{parts}".encode()).hexdigest()
    assert canonical_hash(RankBundle("both", (two, one))) == canonical_hash(bundle)
    changed = replace(one, rankings={"q2": ["b"], "q1": ["été", "a"]})
    different = (("both", (changed, two)), ("others", (one, two)), ("both", (one,)))
    assert len({canonical_hash(bundle), *(canonical_hash(RankBundle(*each)) for each in different)}) == 4

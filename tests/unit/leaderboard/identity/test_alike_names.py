"""A name that looks like another owner's belongs to its first owner: of methods, of tokens, of teams."""

from __future__ import annotations

import pytest

from cir_metrics.errors import CallError
from leaderboard.errors import UploadRefusedError
from leaderboard.identity import Tokens
from leaderboard.intake.life import act
from leaderboard.store import Store
from leaderboard.store.database import name_methods
from leaderboard.store.schema import submissions
from leaderboard.store.submission import Submission, name_key

NAME = "Sprint-0 CLIP Sum"
PLAIN = (
    "sprint-0 clip sum",
    "SPRINT-0 CLIP SUM",
    "  Sprint-0  CLIP\u00a0Sum ",
    "Sprint-O CLIP Sum",
    "Sprint-0 CLlP Sum",
    "Sprint-0 CL1P Sum",
    "Sprint 0 CLIP Sum",
    "Sprint0 CLIP Sum",
    "Sprint_0-CLIP_Sum",
    "Sprint\u20100 CLIP Sum",
    "Sprint\u20130 CLIP Sum",
    "Sprint-0 CLIP Sum.",
    "Sprint-0 CLIP Sum\u2026",
    "Sprint-0 CLIP\u200b Sum",
    "\uff33print-0 CLIP Sum",
    "Sprint-\U0001d7ce CLIP Sum",
)
OTHER_SCRIPTS = (
    "\u0405print-0 CLIP Sum",
    "S\u0440rint-0 CLIP Sum",
    "Spr\u0456nt-0 CLIP Sum",
    "Sprint-\u043e CLIP Sum",
    "Sprint-0 \u0421LIP Sum",
    "Sprint-0 CLI\u03a1 Sum",
    "Sprint-0 \u13dfLIP Sum",
    "Sprint\u22120 CLIP Sum",
    "Sprint-\u0665 CLIP Sum",
    "Sprint-0 CLIP Surn",
)


@pytest.mark.parametrize("name", PLAIN)
def test_what_looks_like_a_name_is_that_name(name: str) -> None:
    assert name_key(name) == name_key(NAME)


@pytest.mark.parametrize("name", OTHER_SCRIPTS)
def test_so_are_letters_of_other_scripts(name: str) -> None:
    assert name_key(name) == name_key(NAME)


def test_names_of_methods_that_are_told_apart_stay_apart() -> None:
    names = (
        "SEARLE",
        "SEARLE-XL",
        "iSEARLE",
        "CLIP",
        "CLIP+",
        "CLIP*",
        "v1.0",
        "v10",
        "Ours (A)",
        "Ours (B)",
        "R50",
    )
    assert len({name_key(name) for name in names}) == len(names)


def kept(store: Store, number: int, owner: str, name: str) -> Submission:
    one, _ = store.receive(
        board="shapes/val", sha256=f"{number:064x}", size=1, file_name="a.json", owner=owner
    )
    happened = [("validated", {}), ("scored", {"report": {}}), ("private", {})]
    return store.append(one, happened, method={"name": name})  # type: ignore[arg-type]


def test_the_first_owner_keeps_the_name(store: Store) -> None:
    mine, yours = (
        kept(store, number, owner, name) for number, owner, name in ((1, "ada", NAME), (2, "ben", PLAIN[3]))
    )
    again = kept(store, 3, "ada", PLAIN[7])
    assert act(store, mine, "publish", "owner").state == "published"
    with pytest.raises(UploadRefusedError) as refused:
        act(store, yours, "publish", "owner")
    assert refused.value.code == "name-taken"
    assert act(store, again, "publish", "owner").state == "published"


def test_names_that_were_kept_before_are_compared_so(store: Store) -> None:
    """As a migration and an import leave them; both had been published, and the first goes on."""
    mine, yours = kept(store, 1, "ada", "first"), kept(store, 2, "ben", "second")
    for one in (mine, yours):
        act(store, one, "publish", "owner")
    with store.database.write() as connection:
        for one, name in ((mine, NAME), (yours, PLAIN[3])):
            here = submissions.update().where(submissions.c.id == one.id)
            connection.execute(here.values(method={"name": name}, name_key=name.casefold()))
        name_methods(connection)
    assert [one.id for one in store.named("shapes/val", PLAIN[5])] == [mine.id, yours.id]
    third = kept(store, 3, "ada", NAME)
    assert act(store, third, "publish", "owner").state == "published"


def test_owners_and_teams_have_names_that_are_told_apart(store: Store) -> None:
    tokens = Tokens(store)
    for _ in range(2):
        tokens.create("bob0")
    tokens.join("lab", "bob0")
    tokens.join("lab", "ada")
    for name in ("bobO", "BOB0", "bob-0", "b0b0"):
        with pytest.raises(CallError, match="looks like 'bob0'"):
            tokens.create(name)
    with pytest.raises(CallError, match="looks like 'lab'"):
        tokens.join("1ab", "ada")

"""The commands `cir leaderboard token create|list|revoke|team`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cir_datasets.common.terminal import echo, fitted
from leaderboard.options import Home

if TYPE_CHECKING:
    from leaderboard.identity import Tokens

Name = Annotated[str, typer.Argument(help="Whose token it is: letters, digits, '.', '_' and '-'.")]


def token_commands() -> typer.Typer:
    """The group `cir leaderboard token`."""
    group = typer.Typer(no_args_is_help=True, help="Make, list and revoke API tokens of a leaderboard.")
    group.command("create")(create)
    group.command("list")(list_)
    group.command("revoke")(revoke)
    group.command("team")(team)
    return group


def create(
    name: Name,
    role: Annotated[
        Literal["user", "organiser"], typer.Option(help="What it may do; organisers may hide and erase.")
    ] = "user",
    home: Home = None,
) -> None:
    """Make a token and print it; it is kept as a hash and cannot be shown again.

    \b
    Example:
        cir leaderboard token create ada
    """
    with _tokens(home) as tokens:
        echo(tokens.create(name, role))
    echo("Keep it like a password: this is the only time that it is shown.", err=True)


def list_(home: Home = None) -> None:
    """List all tokens: id, owner, role, when made and revoked.

    \b
    Example:
        cir leaderboard token list
    """
    with _tokens(home) as tokens:
        found = tokens.all()
    rows = [["id", "owner", "role", "made", "revoked"]]
    for one in found:
        revoked = "-" if one.revoked_at is None else f"{one.revoked_at:%Y-%m-%d}"
        rows.append([one.id, one.owner, one.role, f"{one.created_at:%Y-%m-%d}", revoked])
    echo(fitted(rows))


def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id, from list.")],
    home: Home = None,
) -> None:
    """Refuse a token from now on; what was submitted with it stays.

    \b
    Example:
        cir leaderboard token revoke 1f2e3d4c
    """
    with _tokens(home) as tokens:
        echo(f"{tokens.revoke(token_id).owner}: token {token_id} is refused from now on.")


def team(
    team_name: Annotated[str, typer.Argument(metavar="TEAM", help="The team's name.")],
    name: Name,
    home: Home = None,
) -> None:
    """Let the owner of a token act for a team as well.

    \b
    Example:
        cir leaderboard token team lab ada
    """
    with _tokens(home) as tokens:
        tokens.join(team_name, name)
    echo(f"{name} may now submit for the team {team_name}, and change its submissions.")


@contextmanager
def _tokens(home: Path | None) -> Iterator[Tokens]:
    from leaderboard import settings
    from leaderboard.identity import Tokens
    from leaderboard.store import Store

    chosen = settings.read(home)
    if chosen.log:
        from leaderboard.store.hub_log import HubLog

        with HubLog.changes(chosen) as store:
            yield Tokens(store)
        return
    chosen.home.mkdir(parents=True, exist_ok=True)
    with closing(Store.of(chosen)) as store:
        yield Tokens(store)

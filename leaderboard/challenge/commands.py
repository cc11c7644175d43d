"""`cir challenge`: make a sealed challenge, check that it keeps its secret, join one."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cir_datasets.commands import CommandOfOptions, DataDirAnywhere, NoChecksAnywhere
from cir_datasets.common.terminal import echo
from cir_metrics.errors import CallError, CirError
from leaderboard.options import Home, ServerCommand

if TYPE_CHECKING:
    from leaderboard.boards import Board, Phase

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Challenges; default: all.")]


def challenge_commands() -> typer.Typer:
    """The group `cir challenge`."""
    group = typer.Typer(no_args_is_help=True, help="Sealed challenges: the ground truth stays with you.")
    group.command("new", cls=ServerCommand)(new)
    group.command("check", cls=ServerCommand)(check)
    group.command("join", cls=CommandOfOptions)(join)
    group.command("remove", cls=ServerCommand)(remove)
    return group


def new(
    name: Annotated[str, typer.Argument(help="Its name: small letters, digits and _.")],
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help="What it is made of: a benchmark or overlay whose truth is here, or JSON lines of your own.",
        ),
    ],
    ground_truth: Annotated[
        str,
        typer.Option(
            "--ground-truth",
            help="Where the ground truth goes: a file outside the home, s3://BUCKET/KEY, "
            "hf://datasets/OWNER/NAME/FILE.",
        ),
    ],
    gallery: Annotated[
        Path | None, typer.Option(help="The gallery of your own rows: an image id a line.")
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            help="The answers that the publisher of the benchmark withholds, where you have them: JSON "
            "lines with query_id and target_image_id."
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="Title for people; default: the name.")] = "",
    main: Annotated[str | None, typer.Option(help="The metric that ranks, such as recall@10.")] = None,
    keep_reference: Annotated[
        bool,
        typer.Option("--keep-reference", help="Of your own rows: reference images stay in the rankings."),
    ] = False,
    phase: Annotated[
        list[str] | None,
        typer.Option(
            help="When it takes submissions, NAME=OPENS/CLOSES in UTC days or moments; a day closes at "
            "its end. Again for more. Default: 90 days from today."
        ),
    ] = None,
    a_day: Annotated[
        int | None, typer.Option(help="Scored submissions of an owner a day. Default: up to 5.", min=1)
    ] = None,
    in_all: Annotated[
        int | None,
        typer.Option(help="The same in a phase. Default, and the most: what the labels afford.", min=1),
    ] = None,
    at_end: Annotated[
        bool,
        typer.Option("--at-end", help="Show results when their phase has closed; a small test always does."),
    ] = False,
    home: Home = None,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Make a sealed challenge: a folder to hand out, a ground truth that stays with you, and a board.

    \b
    Example:
        cir challenge new autumn --from shapes/val --ground-truth $HOME/secret/autumn.jsonl
    """
    from cir_datasets.common.paths import NAME_RULE, is_name
    from leaderboard import boards, settings
    from leaderboard.challenge.making import Rules, default_phase, make
    from leaderboard.challenge.material import from_benchmark, from_files

    boards.use(settings.read(home).home)
    if not is_name(name):
        raise CallError(f"{name!r} is not a name. Fix: write {NAME_RULE}.")
    lines = Path(source)
    if lines.is_file():
        if gallery is None:
            raise CallError(f"{lines}: its gallery is missing. Fix: add --gallery FILE, an image id a line.")
        if answers is not None:
            raise CallError(f"{lines}: holds its own answers. Fix: leave --answers out.")
        reference = "kept" if keep_reference else "removed"
        material = from_files(lines, gallery, main, reference)
    else:
        material = from_benchmark(source, main, answers)
        if answers is None:
            echo(f"The ground truth of {source} is known to whoever has that benchmark.", err=True)
    limits = {"a_day": a_day, "in_all": in_all, "results": "at_end" if at_end else "shown"}
    phases = [_phase(written) for written in phase or ()] or [default_phase()]
    rules = Rules(
        name,
        title or name,
        ground_truth if "://" in ground_truth else str(Path(ground_truth).expanduser().resolve()),
        tuple(one.model_copy(update=limits) for one in phases),
    )
    made = make(material, rules)
    echo(f"board         {rules.id}: {made.board}")
    echo(f"ground truth  {rules.ground_truth} ({made.queries:,} queries): keep it to yourself")
    echo(f"to hand out   {made.public}")
    priced = boards.board(rules.id)
    if priced.price is not None:
        results = "at the end" if priced.shown_from(priced.phases[0].opens) else "as they come"
        echo(f"price         {priced.price.words()}; results are shown {results}")
    for warning in made.warnings:
        echo(f"warning: {warning}", err=True)
    echo("Next:")
    place = "" if home is None else f" --home {shlex.quote(str(home))}"
    echo(f"  cir challenge check {name}{place}")
    echo(f"  cir leaderboard token create NAME{place}")
    echo(f"  cir leaderboard serve{place}")
    echo(f"Whoever takes part gets a token and the folder {made.public}, and runs beside it:")
    echo(f"  cir challenge join {name}")
    echo("  export CIR_LEADERBOARD_TOKEN=TOKEN")
    echo(f"  cir submit {made.sample.name} --to URL --board {rules.id}")


def check(names: Names = None, home: Home = None) -> None:
    """Check that the ground truth fits, is private, lies in no place of the server, and is not sold.

    \b
    Example:
        cir challenge check autumn
    """
    from leaderboard import boards
    from leaderboard.challenge.checking import faults

    checked = _sealed(names, home)
    found = 0 if names else len(boards.wrong_files())  # the log has said why
    for board in checked:
        said = list(faults(board))
        for fault in said:
            echo(fault, err=True)
        found += len(said)
        if board.price is not None:
            echo(f"{board.id}: {board.price.words()}")
        if not said:
            echo(f"{board.id}: its ground truth fits, is private, and lies in no place of the server")
    if found:
        raise CirError("1 fault." if found == 1 else f"{found} faults.")


def join(folder: Annotated[Path, typer.Argument(help="The folder that the organisers hand out.")]) -> None:
    """Make a challenge known here: its benchmark can then be ranked, validated and submitted to.

    \b
    Example:
        cir challenge join autumn
    """
    import shutil

    import cir_datasets
    from cir_datasets.common.atomic import staging_folder
    from cir_datasets.common.paths import challenge_home
    from cir_datasets.errors import DatasetError
    from cir_datasets.registry.challenges import CARD_FILE, CONFIG, PINS_FILE, read_card

    given = folder.expanduser().absolute()
    card = read_card(given / CARD_FILE)
    config = card.configs[CONFIG]
    target = challenge_home() / card.name
    if card.name in cir_datasets.names():
        raise CallError(
            f"{card.name!r} is the name of a benchmark. Fix: ask the organisers for another name."
        )
    if target.exists() and not (target.resolve() == given.resolve()):
        raise CallError(f"{target}: is there already. Fix: remove it first, if it is an older one.")
    if not target.exists():
        names = [CARD_FILE, PINS_FILE, *config.files, *config.gallery_files]
        fix = "set CIR_CHALLENGES to a folder of yours."
        with staging_folder(target.parent, ".joining-", error=DatasetError, fix=fix) as made:
            for name in names:
                if Path(name).name != name or not (given / name).is_file():
                    raise CallError(f"{given / name}: is not a file. Fix: get the folder again.")
                shutil.copyfile(given / name, made / name)
            made.rename(target)
    cir_datasets.prepare(f"{card.name}/{CONFIG}")
    echo(f"{card.name}/{CONFIG}: {config.queries:,} queries, {config.gallery:,} images")


def remove(
    name: Annotated[str, typer.Argument(help="The challenge.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    home: Home = None,
) -> None:
    """Remove a challenge's board and its folder to hand out; ground truth and submissions stay.

    \b
    Example:
        cir challenge remove autumn --yes
    """
    from cir_datasets.common.paths import is_name
    from leaderboard import boards, settings
    from leaderboard.challenge.making import remove as remove_challenge
    from leaderboard.errors import BoardError

    if not is_name(name):
        raise CallError(f"{name!r} is not a name. Fix: write the challenge's name, without /test.")
    with suppress(BoardError):  # its board may be what is wrong
        boards.use(settings.read(home).home)
    if not yes and not typer.confirm(f"Remove the board and the public folder of {name}?", err=True):
        raise CallError("nothing was removed. Fix: answer y, or add --yes.")
    for line in remove_challenge(name):
        echo(line)
    echo("Its ground truth and what was submitted stay where they are.")


def _sealed(names: list[str] | None, home: Path | None) -> list[Board]:
    from cir_datasets.registry.challenges import CONFIG
    from leaderboard import boards, settings

    boards.use(settings.read(home).home)
    if not names:
        return [board for board in boards.boards() if board.sealed]
    found = [boards.board(name if "/" in name else f"{name}/{CONFIG}") for name in names]
    for board in found:
        if not board.sealed:
            raise CallError(f"{board.id}: its ground truth is public. Fix: name a sealed board.")
    return found


def _phase(written: str) -> Phase:
    from pydantic import ValidationError

    from leaderboard.boards import Phase

    name, _, times = written.partition("=")
    opens, _, closes = times.partition("/")
    try:
        return Phase.model_validate({"name": name, "opens": opens, "closes": closes})
    except ValidationError as error:
        raise CallError(
            f"--phase {written!r}: {error.errors()[0]['msg']}. "
            "Fix: write NAME=OPENS/CLOSES, as in test=2026-12-01/2027-02-01."
        ) from error

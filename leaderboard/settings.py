"""What a leaderboard server is given from outside: where its state lies, its limits, what it is called."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

import platformdirs

from cir_metrics.errors import CallError, UnknownNameError
from submissions.rank_file.texts import name as checked_name

DEFAULT_MAX_UPLOAD_MB = 64
"""Upper limit of an uploaded file in MB of 2**20 bytes; judging one has limits of its own."""

Accounts = Literal["local", "tokens", "oauth"]
Durability = Literal["journalled", "committed"]
"""How safe a submission is: on the disk of this machine, or in the log's repository."""
DEFAULT_UPLOADS_AN_HOUR = 600
DEFAULT_COMMITS_AN_HOUR = 100
"""The Hub takes 128."""
DEFAULT_REFUSED_DAYS = 14
DEFAULT_NAME = "CIR leaderboard"
PREPARE = "CIR_PREPARE"
PERSISTENT = Path("/data")
"""Where a Space that has persistent storage finds it."""
LOG = "CIR_LEADERBOARD_LOG"
_NAME_LENGTH = 80
_MOST_DAYS = 36_500
HUB_DATASETS = "hf://datasets/"
"""What the address of a dataset repository begins with."""
_REPOSITORY = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)/?", re.ASCII)
_NEEDED = ("SPACE_ID", "OAUTH_CLIENT_ID", "OAUTH_CLIENT_SECRET", "OAUTH_SCOPES", "OPENID_PROVIDER_URL")
"""What Hugging Face sets in a Space whose README says `hf_oauth: true`."""


@dataclass(frozen=True)
class Settings:
    """Settings of one server.

    Args:
        home: folder of the database and of the stored files; made when it does not exist.
        max_upload_bytes: an upload of more bytes is refused.
        name: what the server calls itself in its receipts.
        url: its address from outside, for its receipts; empty where it is not known. It is never taken from a
            request, whose sender could write any.
        files_at: where rank files are stored, see `open_files`; empty is `files` below the home.
        database: SQLAlchemy's URL of the database; empty is SQLite below the home.
        log: dataset repository of the Hub, `OWNER/NAME`, that everything is committed to and replayed from;
            empty for none.
        received: what an upload's answer waits for, where there is such a repository.
        commits_an_hour: how many commits it takes.
        accounts: `local`, where everybody who reaches the server is the one person who runs it; `tokens`; or
            `oauth`, in a Space, where people sign in with Hugging Face and programs send tokens.
        pictures: parent of image folders whose pictures pages may show to anybody; None for none.
        a_day: scored submissions that an owner may have on a board in a UTC day; None for any number.
        in_all: the same for all time.
        uploads_an_hour: uploads from one address, where there are accounts.
        refused_days: days for which a refused file is kept; 0 for ever.
        signing_key: file of the key that signs receipts; None is one of its own below the home.
        prepare: benchmarks that are prepared when the server starts, and repositories that have their files.
    """

    home: Path
    max_upload_bytes: int = DEFAULT_MAX_UPLOAD_MB * 2**20
    name: str = DEFAULT_NAME
    url: str = ""
    files_at: str = ""
    database: str = ""
    accounts: Accounts = "local"
    a_day: int | None = None
    in_all: int | None = None
    uploads_an_hour: int = DEFAULT_UPLOADS_AN_HOUR
    refused_days: int = DEFAULT_REFUSED_DAYS
    signing_key: Path | None = None
    prepare: tuple[str, ...] = ()
    log: str = ""
    received: Durability = "journalled"
    commits_an_hour: int = DEFAULT_COMMITS_AN_HOUR
    pictures: Path | None = None

    @property
    def database_url(self) -> str:
        """SQLAlchemy's URL of the store."""
        return self.database or f"sqlite:///{self.home / 'leaderboard.sqlite'}"

    @property
    def files(self) -> Path:
        """Folder of the stored rank files, unless `files_at` names another place."""
        return self.home / "files"


def default_home() -> Path:
    """`CIR_LEADERBOARD_HOME`, else `leaderboard` in the user's data folder."""
    configured = os.environ.get("CIR_LEADERBOARD_HOME")
    if configured:
        return Path(configured).expanduser().absolute()
    return Path(platformdirs.user_data_dir("cir-benchmarks")) / "leaderboard"


def in_space() -> bool:
    """Whether this process runs in a Space."""
    return os.environ.get("SYSTEM") == "spaces"


def only_own_boards() -> bool:
    """Whether `CIR_LEADERBOARD_BOARDS` leaves the package's boards out.

    Raises:
        CallError: it is neither own nor all.
    """
    fix = "write own, for the boards of the home alone, or all."
    return _choice("CIR_LEADERBOARD_BOARDS", "all", ("own", "all"), fix) == "own"


def read(home: Path | None = None) -> Settings:
    """Settings from the environment: `CIR_LEADERBOARD_HOME` and its like in `docs/environment.md`.

    Args:
        home: the folder asked for on the command line; it goes before the environment.

    Raises:
        CallError: the limit is not a positive number of MB, or the name or the address is not one.
    """
    refused_days = _count("CIR_LEADERBOARD_REFUSED_DAYS", least=0, most=_MOST_DAYS)
    chosen = default_home() if home is None else home.expanduser().absolute()
    key, pictures = (os.environ.get(f"CIR_LEADERBOARD_{name}") for name in ("SIGNING_KEY", "PICTURES"))
    return Settings(
        home=chosen,
        max_upload_bytes=(_count("CIR_LEADERBOARD_MAX_UPLOAD_MB") or DEFAULT_MAX_UPLOAD_MB) * 2**20,
        name=_name(os.environ.get("CIR_LEADERBOARD_NAME") or DEFAULT_NAME),
        files_at=os.environ.get("CIR_LEADERBOARD_FILES") or "",
        database=os.environ.get("CIR_LEADERBOARD_DATABASE") or "",
        accounts=_accounts(),
        a_day=_count("CIR_LEADERBOARD_QUOTA_DAY"),
        in_all=_count("CIR_LEADERBOARD_QUOTA"),
        uploads_an_hour=_count("CIR_LEADERBOARD_UPLOADS_AN_HOUR") or DEFAULT_UPLOADS_AN_HOUR,
        refused_days=DEFAULT_REFUSED_DAYS if refused_days is None else refused_days,
        url=_url(os.environ.get("CIR_LEADERBOARD_URL") or ""),
        signing_key=Path(key).expanduser().absolute() if key else None,
        prepare=to_prepare(os.environ.get(PREPARE) or ""),
        log=_log(os.environ.get(LOG) or ""),
        received=_received(),
        commits_an_hour=_count("CIR_LEADERBOARD_COMMITS_AN_HOUR") or DEFAULT_COMMITS_AN_HOUR,
        pictures=Path(pictures).expanduser().absolute() if pictures else None,
    )


def to_prepare(written: str) -> tuple[str, ...]:
    """What `CIR_PREPARE` names, each once.

    Args:
        written: ids of benchmarks and suites, and `hf://datasets/OWNER/NAME`, with blanks between.

    Raises:
        CallError: there is no such benchmark.

    Example:
        >>> to_prepare("cirr/val circo/val cirr/val")
        ('cirr/val', 'circo/val')
    """
    found = tuple(dict.fromkeys(written.split()))
    if not found or any(name.startswith(HUB_DATASETS) for name in found):
        return found  # a repository may bring what is not known yet
    from cir_datasets.registry import ids_of

    for name in found:
        try:
            ids_of(name)
        except UnknownNameError as error:
            raise CallError(f"{PREPARE}: {error} Fix: write ids such as cirr/val, blanks between.") from error
    return found


def lasts(variables: Mapping[str, str]) -> bool:
    """Whether entries outlive the disk on which a server starts, by the variables that it is given.

    Args:
        variables: by name.

    Example:
        >>> lasts({"CIR_LEADERBOARD_LOG": "hf://datasets/me/log", "HF_TOKEN": "..."}), lasts({})
        (True, False)
    """
    if (variables.get("CIR_LEADERBOARD_HOME") or "").startswith(f"{PERSISTENT}/"):
        return True
    if (variables.get(LOG) or "").startswith(HUB_DATASETS):
        return bool(variables.get("HF_TOKEN"))
    database, files = variables.get("CIR_LEADERBOARD_DATABASE"), variables.get("CIR_LEADERBOARD_FILES")
    return bool(database and not database.startswith("sqlite") and files and "://" in files)


def check_place() -> None:
    """Refuse to sign anybody in outside a Space.

    Raises:
        CallError: this process does not run in a Space, or the Space does not ask for logins.
    """
    missing = [name for name in _NEEDED if not os.environ.get(name)]
    if not in_space():
        missing.insert(0, "SYSTEM=spaces")
    if missing:
        raise CallError(
            "CIR_LEADERBOARD_ACCOUNTS=oauth signs people in with Hugging Face, inside a Space only; "
            f"{', '.join(missing)} is not set. Fix: in a Space, write  hf_oauth: true  into its README.md; "
            "elsewhere use CIR_LEADERBOARD_ACCOUNTS=tokens."
        )


def _log(written: str) -> str:
    found = _REPOSITORY.fullmatch(written)
    if written and found is None:
        raise CallError(
            "CIR_LEADERBOARD_LOG: not an address that is known here. Fix: write hf://datasets/OWNER/NAME, a "
            "private dataset repository; its token belongs into HF_TOKEN."
        )
    others = [name for name in ("CIR_LEADERBOARD_DATABASE", "CIR_LEADERBOARD_FILES") if os.environ.get(name)]
    if found is not None and others:
        raise CallError(
            f"CIR_LEADERBOARD_LOG keeps entries and files; {' and '.join(others)} would, too. Fix: leave out "
            "one or the other;  cir leaderboard take-over  brings what is there into the log."
        )
    return "" if found is None else found[1]


def _received() -> Durability:
    fix = (
        "write journalled, where an upload is answered when it is on the server's disk, or committed, where "
        "it is in the log."
    )
    found = _choice("CIR_LEADERBOARD_RECEIVED", "journalled", get_args(Durability), fix)
    return cast(Durability, found)


def _accounts() -> Accounts:
    fix = "write tokens, oauth in a Space, or local for a leaderboard of your own on this machine."
    found = _choice("CIR_LEADERBOARD_ACCOUNTS", "local", get_args(Accounts), fix)
    if found == "oauth":
        check_place()
    return cast(Accounts, found)


def _choice(variable: str, default: str, choices: tuple[str, ...], fix: str) -> str:
    written = os.environ.get(variable) or default
    if written not in choices:
        raise CallError(f"{variable}={written[:40]!r}: not a choice. Fix: {fix}")
    return written


def _count(variable: str, least: int = 1, most: int = 10**9) -> int | None:
    written = os.environ.get(variable)
    if not written:
        return None
    if not written.isdecimal() or not least <= int(written) <= most:
        raise CallError(
            f"{variable}={written[:40]!r}: not a whole number from {least} to {most:,}. "
            "Fix: leave it unset or write one."
        )
    return int(written)


def _name(written: str) -> str:
    try:
        return checked_name(written, _NAME_LENGTH)
    except ValueError as error:
        raise CallError(
            f"CIR_LEADERBOARD_NAME: {error}. Fix: write a short name, or leave it unset ({DEFAULT_NAME})."
        ) from error


def _url(written: str) -> str:
    if not written:
        return ""
    from cir_datasets.common.addresses import address_and_login

    found = address_and_login(written)
    if found is None or found[1] is not None:
        raise CallError(
            "CIR_LEADERBOARD_URL: not an address that everybody may see. Fix: write https:// and the host, "
            "without user, password and query, or leave it unset."
        )
    return found[0]

"""Putting a Space together from a checkout, and pushing it in one commit.

A Space installs `requirements.txt` before it sees any other file, so that it cannot install a wheel that lies
beside it: the packages lie there as they are, with the metadata that tells their version.
"""

from __future__ import annotations

import configparser
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from cir_datasets.errors import PushError
from cir_datasets.publishing.hub import hub_push
from cir_metrics.catalogue import package_version
from cir_metrics.errors import CallError

PACKAGES = ("cir_metrics", "cir_datasets", "submissions", "leaderboard")
_OWN = re.compile(rf"(?:{'|'.join(PACKAGES)})/|cir_benchmarks-[^/]*\.dist-info/")
"""Paths that belong to this command: those of an earlier push go where they are not written anew."""
_REQUIREMENT = re.compile(r"^ *([\w.-]+)(\[[^\]]*\])? *(?:>=|==) *(\S+)", re.MULTILINE)
"""Name, extras, version of a line of `setup.cfg` or `constraints.txt`."""
_ROOT = Path(__file__).resolve().parents[2]


def assemble(folder: Path, root: Path = _ROOT) -> list[Path]:
    """Write all files of the Space to a new folder.

    Args:
        folder: it must not exist, or be empty.
        root: the checkout to take them from.

    Returns:
        The files, sorted.

    Raises:
        CallError: the folder holds something, or `root` is not a checkout.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CallError(f"{folder}: not an empty folder. Fix: name a new one, or empty it.")
    needed = requirements(root)
    folder.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        shutil.copytree(
            root / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
    for name in ("README.md", "app.py"):
        source = files("leaderboard.space") / name
        (folder / name).write_bytes(source.read_bytes())
    (folder / "requirements.txt").write_text("\n".join(needed) + "\n", encoding="utf-8")
    about = folder / f"cir_benchmarks-{package_version()}.dist-info"
    about.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: cir-benchmarks\nVersion: {package_version()}\n"
    (about / "METADATA").write_text(metadata, encoding="utf-8")
    return sorted(path for path in folder.rglob("*") if path.is_file())


def requirements(root: Path = _ROOT) -> list[str]:
    """What a server needs, each in the version of `constraints.txt`.

    Raises:
        CallError: `root` is not a checkout of the project.
    """
    setup = configparser.ConfigParser()
    if not setup.read(root / "setup.cfg") or not (root / "constraints.txt").is_file():
        raise CallError(
            f"{root}: holds no setup.cfg and constraints.txt. "
            "Fix: run this from a checkout of cir-benchmarks, installed with  pip install -e ."
        )
    extras = setup["options.extras_require"]
    wanted = "\n".join(
        (setup["options"]["install_requires"], *(extras[one] for one in ("leaderboard", "server", "space")))
    )
    pins = (root / "constraints.txt").read_text(encoding="utf-8")
    versions = {name.lower(): version for name, _, version in _REQUIREMENT.findall(pins)}
    found = [(name, extra) for name, extra, _ in _REQUIREMENT.findall(wanted)]
    return sorted(f"{name}{extra}=={versions[name.lower()]}" for name, extra in found)


@dataclass(frozen=True)
class Push:
    """Where a Space goes, and what it is given.

    Args:
        repository: `OWNER/NAME`.
        private: whether a Space that is made is private.
        log: dataset repository of its entries, or None.
        variables: that everybody may read.
        secrets: that nobody may.
    """

    repository: str
    private: bool = False
    log: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def push(folder: Path, to: Push) -> str:
    """Push an assembled Space in one commit; the commit's address.

    Space and log are made where there are none; its settings come before the commit that starts it. Files of
    an earlier push that are not written anew are deleted, others stay. The token is the one that
    huggingface_hub finds: `HF_TOKEN`, or `hf auth login`.

    Args:
        folder: from `assemble`.
        to: where to, and with what.

    Raises:
        PushError: the Hub refused or could not be reached, or everybody may read the log; the last revision
            there is untouched.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    new = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    if to.log is not None:
        _make_log(to.log)
    repository = to.repository
    with hub_push(f"spaces/{repository}", PushError) as there:
        there.step = "making the Space"
        there.api.create_repo(
            repository, repo_type="space", space_sdk="gradio", private=to.private, exist_ok=True
        )
        there.step = "setting its variables"
        for name, value in to.variables.items():
            there.api.add_space_variable(repository, name, value)
        for name, value in to.secrets.items():
            there.api.add_space_secret(repository, name, value)
        there.step = "reading its last revision"
        state = there.api.space_info(repository)
        paths = [sibling.rfilename for sibling in state.siblings or ()]
        operations: list[Any] = [
            *(CommitOperationAdd(path, str(source)) for path, source in sorted(new.items())),
            *(CommitOperationDelete(path) for path in paths if _OWN.match(path) and path not in new),
        ]
        there.step = "uploading and committing"
        commit = there.api.create_commit(
            repository,
            operations,
            commit_message=f"cir-benchmarks {package_version()}",
            repo_type="space",
            parent_commit=state.sha,
        )
    return str(commit.commit_url)


def _make_log(repository: str) -> None:
    with hub_push(f"datasets/{repository}", PushError) as there:
        there.step = "making the repository of entries"
        there.api.create_repo(repository, repo_type="dataset", private=True, exist_ok=True)
        if there.api.dataset_info(repository).private is not True:
            raise PushError(
                f"{there.url}: everybody may read it, and entries hold what is not published. Nothing was "
                "pushed.\n  Fix: make it private, or name another with --log."
            )

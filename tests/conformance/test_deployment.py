"""What the Dockerfile and compose.yaml name exists: files, commands, options, variables, addresses.

The image is not built here; docs/host.md says so.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from leaderboard.cli import build
from leaderboard.web.options import check_place

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTED = set(
    re.findall(r"`([A-Z][A-Z0-9_]+)`", (ROOT / "docs" / "environment.md").read_text(encoding="utf-8"))
)
THEIRS = ("PIP_", "PYTHON", "POSTGRES_", "HF_HUB_DISABLE_TELEMETRY")
"""Variables of pip, Python, PostgreSQL's image and huggingface_hub."""


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    return [
        (word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)
    ]


def of_kind(word: str) -> list[str]:
    return [rest for kind, rest in instructions() if kind == word]


COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
COPIED = [source for rest in of_kind("COPY") for source in rest.split()[:-1]]


def parsed(command: list[str]) -> dict[str, Any]:
    """The options of a `cir` command as the command line itself reads them; it exits where it does not."""
    assert command[0] == "cir"
    found: Any = get_command(build())
    words = command[1:]
    while hasattr(found, "commands"):
        assert words[0] in found.commands, f"there is no `cir {' '.join(command[1:])}`"
        found, words = found.commands[words[0]], words[1:]
    return found.make_context(" ".join(command), words).params


def test_what_the_image_copies_is_there_and_reaches_it() -> None:
    assert [source for source in COPIED if not (ROOT / source).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == set(COPIED)


def test_the_image_holds_every_file_that_the_installation_reads() -> None:
    setup = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    named = re.findall(r"^(?:long_description = file:|license_files =) *(\S+)", setup, flags=re.MULTILINE)
    packages = re.findall(r"^    (\w+)\*$", setup, flags=re.MULTILINE)
    assert set(named) == {"README.md", "LICENSE"}
    assert {*named, *packages, "setup.cfg", "pyproject.toml", "constraints.txt"} == set(COPIED)


def test_the_image_has_no_compiler_and_pinned_wheels_only() -> None:
    (base,) = of_kind("FROM")
    assert re.fullmatch(r"python:3\.1[1-3]-slim", base)
    runs = " ".join(of_kind("RUN"))
    assert "pip install --only-binary=:all: -c constraints.txt" in runs
    assert not re.search(r"apt-get|gcc|build-essential", runs)


def test_pip_takes_the_constraints() -> None:
    """It refuses all of them where one names an extra."""
    assert "[" not in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def test_the_server_is_no_superuser_and_may_write_its_state_only() -> None:
    kinds = [kind for kind, _ in instructions()]
    (user,) = of_kind("USER")
    (made,) = [run for run in of_kind("RUN") if "useradd" in run]
    assert re.search(rf"useradd --uid [1-9]\d+ --create-home {user}\b", made)
    assert f"chown {user} /state" in made
    assert of_kind("VOLUME") == ["/state"]
    assert kinds.index("USER") > max(place for place, kind in enumerate(kinds) if kind in ("RUN", "COPY"))


@pytest.mark.parametrize(
    "command",
    [json.loads(of_kind("CMD")[0]), *(SERVICES[name]["command"] for name in ("web", "worker"))],
    ids=["image", "web", "worker"],
)
def test_every_command_is_one_of_ours_with_its_options(command: list[str]) -> None:
    options = parsed(command)
    if "serve" in command:
        assert (options["host"], options["port"]) == ("0.0.0.0", 7860)
        check_place(options["host"], "tokens", options["behind_proxy"])


def test_what_listens_is_what_is_asked_and_published() -> None:
    assert of_kind("EXPOSE") == ["7860"]
    (health,) = of_kind("HEALTHCHECK")
    asked = re.search(r"http://127\.0\.0\.1:7860(/\w+)", health)
    assert f'"{asked[1]}"' in (ROOT / "leaderboard" / "web" / "reading.py").read_text(encoding="utf-8")
    assert {name for name, service in SERVICES.items() if "ports" in service} == {"proxy"}
    (subnet,) = COMPOSE["networks"]["default"]["ipam"]["config"]
    assert parsed(SERVICES["web"]["command"])["behind_proxy"] == [subnet["subnet"]]
    assert (ROOT / SERVICES["proxy"]["volumes"][0].partition(":")[0]).is_file()


def test_every_variable_is_documented() -> None:
    named = {found for rest in of_kind("ENV") for found in re.findall(r"(\w+)=", rest)}
    for service in SERVICES.values():
        named |= set(service.get("environment", ()))
        named |= set(re.findall(r"\$\{(\w+)", json.dumps(service)))
    assert {name for name in named if not name.startswith(THEIRS)} <= DOCUMENTED
    assert "CIR_LEADERBOARD_DATABASE" in named


def test_two_web_processes_and_two_workers_share_one_database_and_one_state() -> None:
    web, worker = SERVICES["web"], SERVICES["worker"]
    assert web["deploy"] == worker["deploy"] == {"replicas": 2}
    assert web["environment"] == worker["environment"]
    assert web["volumes"] == worker["volumes"] == ["state:/state"]
    assert web["environment"]["CIR_LEADERBOARD_DATABASE"].startswith("postgresql+psycopg://cir:")
    assert web["environment"]["CIR_LEADERBOARD_DATABASE"].endswith("@database/cir")
    assert web["environment"]["CIR_LEADERBOARD_ACCOUNTS"] == "tokens"
    mounted = {volume.split(":")[0] for service in SERVICES.values() for volume in service["volumes"]}
    volumes = {place for place in mounted if not place.startswith(".")}
    assert volumes == set(COMPOSE["volumes"])
    assert SERVICES["database"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")

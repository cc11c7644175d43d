"""A card that is wrong is refused with its file, its line or field, and the fix, not in pydantic's words."""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib import resources
from pathlib import Path

import pytest
from programs import run_program

from cir_datasets import registry
from cir_datasets.common.yaml import parse_yaml, read_model
from cir_datasets.errors import CardError
from cir_datasets.publishing.card_text import CardText
from cir_datasets.registry.caption_rules import CaptionRule
from cir_datasets.registry.schema import Card, SourceFiles
from cir_datasets.registry.suites import Suite
from leaderboard.boards import Board

ROOT = Path(__file__).resolve().parents[4]
CIRR = (resources.files("cir_datasets") / "cards/cirr.yaml").read_text(encoding="utf-8")
CIRCLED = (resources.files("cir_datasets") / "cards/circled.yaml").read_text(encoding="utf-8")

# What is replaced in the card, by what, and what the message says.
BROKEN = [
    ("queries: 4181", "queries: -4181", r"configs\.val\.queries: must be 1 or more, not -4181\. Fix: corr"),
    ("queries: 4181", "queries: 0", r"configs\.val\.queries: must be 1 or more, not 0"),
    ("queries: 4181", "queries: yes", r"configs\.val\.queries: must be a whole number, not True"),
    ("gallery: 2297", "gallery: -1", r"configs\.val\.gallery: must be 1 or more, not -1"),
    ("gallery: 2297", "gallery: 2297.5", r"configs\.val\.gallery: must be a whole number, not 2297\.5"),
    ("subset: 6", "subset: -6", r"configs\.train\.subset: must be 2 or more, not -6"),
    ("version: 1", "version: -1", r"version: must be 1 or more, not -1"),
    ("published: 4184", "published: -4184", r"known_differences\.0\.published: must be 0 or more"),
    ("ours: 4181", "ours: 4180", r"configs\.val: a known difference says 4,180 queries here, but .* is 4181"),
    (
        "recall@10,",
        "recal@10,",
        r"metrics\.2: no metric is printed as 'recal@10'\. Did you mean 'recall@10'\?",
    ),
    ("recall@10,", "recall,", r"metrics\.2: 'recall' names no cutoff\. Fix: write 'recall@K'"),
    ("recall@10,", "recall@0,", r"metrics\.2: 'recall@0': k=0; a cutoff is 1 or more"),
    ("recall@10,", "hits@10@turn2,", r"metrics\.2: 'hits@10@turn2' names a turn\. Fix: write 'hits@10'"),
    ("recall@10,", "hits@10,", r"metric 'hits@10' cannot be computed of queries\. Fix: leave it out"),
    ("metrics: [map@1,", "metrics: [mpa@1,", r"report\.metrics\.0: no metric is printed as 'mpa@1'"),
    ("split: validation", "split: val", r"split: must be 'train', 'validation' or 'test', not 'val'\. Fix"),
    ("year: 2021", "year: soon", r"paper\.year: must be a whole number, not 'soon'"),
    (
        "summary: >-",
        "summary: [a]\nids2: >-",
        r"2 faults\.\n  summary: must be text, not \['a'\]\.\n  ids2: th",
    ),
    ("title: CIRR", "titel: CIRR", r"titel: there is no such field\. Did you mean 'title'\? Fix: leave"),
    ("queries: 4181", "querys: 4181", r"configs\.val\.queries: is missing\. Fix: add it"),
    (
        "revision: 9102",
        "revision: ",
        r"source\.revision: '[0-9a-f]{36}' is not a whole commit\. Fix: write its 4",
    ),
    ("copies_allowed: true", "copies_allowed: maybe", r"must be true or false, not 'maybe'"),
    ("configs:\n", "configs: 3\nothers:\n", r"configs: must be a mapping, not 3"),
    ("  val:\n    split", "  val_images:\n    split", r"'val_images' must not end in _images"),
    (
        "files: [captions/cap.rc2.train.json, captions_ext/cap.ext.rc2.train.json]",
        "note: x",
        "names no `files`",
    ),
    ("kind: mixed", "kind: single_turn", r"multi_turn_metrics and multi_turn_main_metric are for a card of"),
    ("split: validation", "split: validation\n    split: test", r"line \d+: the key 'split' is there twice"),
    (
        "name: cirr\n",
        "name: cirr\nname: cirr\n",
        r"line 2: the key 'name' is there twice \(first in line 1\)",
    ),
    ("name: cirr\n", "name: [cirr\n", r"line \d: .*\. Fix: correct it there"),
    ("name: cirr\n", "- name\n", r"line \d: .*Fix: "),
]


@pytest.mark.parametrize(("old", "new", "words"), BROKEN, ids=[words[:40] for _, _, words in BROKEN])
def test_a_broken_card_is_refused_in_words(old: str, new: str, words: str) -> None:
    assert old in CIRR
    with pytest.raises(CardError, match=words) as error:
        read_model(Card, CIRR.replace(old, new, 1), "cards/cirr.yaml", CardError)
    message = str(error.value)
    assert message.startswith("cards/cirr.yaml: ")
    assert "Fix: " in message
    assert "pydantic" not in message
    assert "type=" not in message


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{2: 718,", "{2: 719,", r"configs\.cirr_val: `turns` counts 960 sessions, and `queries` 959"),
        ("{2: 718,", "{2: -718,", r"configs\.cirr_val\.turns\.2: must be 0 or more, not -718"),
        ("{2: 718,", "{2: 718, 2: 0,", r"line \d+: the key 2 is there twice"),
        ("[hits@10,", "[recall@10,", r"metric 'recall@10' cannot be computed of sessions"),
        ("[hits@10,", "[recall_subset@1,", r"metric 'recall_subset@1' cannot be computed of sessions"),
    ],
)
def test_a_broken_card_of_sessions_is_refused_in_words(old: str, new: str, words: str) -> None:
    assert old in CIRCLED
    with pytest.raises(CardError, match=words):
        read_model(Card, CIRCLED.replace(old, new, 1), "cards/circled.yaml", CardError)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": {"bytes": -3, "sha256": "' + "a" * 64 + '"}}', r"a\.bytes: must be 0 or more, not -3"),
        ('{"a": {"bytes": 3}}', r"a\.sha256: is missing\. Fix: add it"),
        ('{"a": {"bytes": 3, "sha256": "b"}}', r"a\.sha256: 'b' does not have the form"),
        ('{"a": null, "a": null}', r"line 1: the key 'a' is there twice"),
        ("[1]", "it does not hold fields"),
    ],
)
def test_a_broken_list_of_files_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(CardError, match=rf"^sources/x\.json: {words}"):
        read_model(SourceFiles, text, "sources/x.json", CardError)


@pytest.mark.parametrize(
    ("model", "text", "words"),
    [
        (Suite, "id: x\nid: y\n", "line 2: the key 'id' is there twice"),
        (Suite, "metrics: [recal@1]\nversion: -1\n", r"\d faults.*version: must be 1 or more, not -1"),
        (CaptionRule, "name: x\nmeaning: y\ntake: third\n", "take: must be 'only', .* not 'third'"),
        (CardText, "", r"it does not hold fields\. Fix: write lines such as"),
        (
            CardText,
            "license_id: mit\nlicence: x\n",
            r"6 faults\.\n  license_url: is missing\. Fix: add it.*\n  and 1 more\.\n  Fix: correct these",
        ),
        (Board, "columns: []\n", r"faults\."),
    ],
)
def test_other_data_files_are_refused_in_the_same_words(model: type, text: str, words: str) -> None:
    with pytest.raises(CardError, match=rf"(?s)^file\.yaml: .*{words}"):
        read_model(model, text, "file.yaml", CardError)


def test_keys_that_only_look_alike_and_merged_ones_are_read() -> None:
    assert parse_yaml("a: &base {x: 1, y: 2}\nb: {<<: *base, y: 3}\n1: int\n'1': text\n") == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 3},
        1: "int",
        "1": "text",
    }


LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 60)
)
MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], k{n}: 1}}\n" for n in range(1, 12)
)
BOMBS = {
    "laughs": (LAUGHS, r"line \d+: it stands for more than 500,000 values"),
    "merges": (MERGES, r"line \d+: it stands for more than 500,000 values"),
    "itself": ("a: &a [1, *a]", "line 1: an alias stands in what it stands for"),
    "flow": ("[" * 200_000, "line 1: it is nested more than 50 deep"),
    "block": ("- " * 200_000, "line 1: it is nested more than 50 deep"),
    "keys": ("? " * 200_000, "line 1: it is nested more than 50 deep"),
    "digits": ("a: 1" + "0" * 20_000, "line 1: a number of more than 100 digits"),
    "sexagesimal": ("a: 1" + ":10" * 100_000, "line 1: a number of more than 100 digits"),
    "long": ("a: " + "x" * 5_000_000, "more than 4,194,304 characters"),
    "date": ("a: 2024-02-31", "a value does not have the form of its type"),
    "tag": ("a: !!int many", "a value does not have the form of its type"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_yaml_bomb_is_refused_before_it_goes_off(name: str) -> None:
    """In a process of its own: on some of them the parser in C would crash, or memory would end."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30));"
        "import yaml; from cir_datasets.common.yaml import parse_yaml, yaml_fault\n"
        "try:\n    parse_yaml(sys.stdin.read())\n"
        "except yaml.YAMLError as error:\n    print(yaml_fault(error))"
    )
    text, words = BOMBS[name]
    done = run_program(
        [sys.executable, "-c", code],
        input=text,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        code=None,
    )
    assert (done.returncode, done.stderr[-500:]) == (0, "")
    assert re.match(words, done.stdout)


def test_one_place_reads_yaml() -> None:
    found = [
        str(path.relative_to(ROOT))
        for folder in ("cir_metrics", "cir_datasets", "submissions", "leaderboard")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"yaml\.(safe_|full_|unsafe_)?load|YAML\(", path.read_text(encoding="utf-8"))
    ]
    assert found == ["cir_datasets/common/yaml.py"]


@pytest.mark.parametrize("folder", ["cir_datasets", "submissions", "leaderboard"])
def test_no_data_file_of_the_packages_holds_a_key_twice(folder: str) -> None:
    found = sorted((ROOT / folder).rglob("*.yaml"))
    assert found
    for path in found:
        parse_yaml(path.read_text(encoding="utf-8"))


def test_the_command_tells_it_with_file_and_fix(tmp_path: Path) -> None:
    for name in ("cir_datasets", "cir_metrics", "submissions", "leaderboard"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.gz"))
    path = tmp_path / "cir_datasets/cards/cirr.yaml"
    path.write_text(CIRR.replace("queries: 4181", "queries: -4181"), encoding="utf-8")
    done = run_program(
        [sys.executable, "-m", "leaderboard.cli", "datasets", "show", "cirr/val"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        code=None,
    )
    assert (done.returncode, done.stdout) == (1, "")
    words = "cards/cirr.yaml: configs.val.queries: must be 1 or more, not -4181. Fix: correct that field."
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", registry.names())
def test_every_card_survives_its_own_dump(name: str) -> None:
    card = registry.card(name)
    assert Card.model_validate(card.model_dump()) == card


def test_a_card_of_a_challenge_of_0_1_is_read() -> None:
    fields = registry.card("cirr").model_dump(exclude={"extra_fields"})
    assert Card.model_validate(fields | {"own_fields": ["captions"]}).extra_fields == ("captions",)

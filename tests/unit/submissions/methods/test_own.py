"""Methods of a user's own: by `module:Class`, by entry point, and those that rank by themselves."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import numpy as np
import pytest
from benchmark_world import small_shapes
from benchmark_world.encoders import PlainEncoder
from programs import run_program
from says import refusal

import submissions
from cir_metrics.errors import UnknownNameError
from submissions import make_rank_file
from submissions.errors import MethodError
from submissions.methods import method_names
from submissions.methods.card import method_card, method_cards
from submissions.methods.registry import GROUP, kind_of, method_of
from submissions.methods.turns import Candidates, Turn
from submissions.methods.user_methods import bound_encoder
from submissions.rank_file.model import Method

SOURCE = '''
from submissions import Method
import numpy as np


class Longest:
    """Images whose id is longest come first."""

    needs_pictures = False
    aggregation = "latest"

    def method(self):
        return Method(name="Longest", backbone="none")

    def scores(self, turns, gallery):
        return np.array([[len(image) for image in gallery.ids]] * len(turns), dtype=float)


class Alphabet:
    """Images by their ids."""

    def method(self):
        return Method(name="Alphabet", backbone="none")

    def rank(self, turns, gallery, k):
        return [sorted(gallery.ids)[:k] for turn in turns]


class Nothing:
    """Neither of them."""
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with methods, installed as pip leaves it: module and entry points."""
    (tmp_path / "their_methods.py").write_text(SOURCE)
    about = tmp_path / "their_methods-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-methods\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        f"[{GROUP}]\n"
        "longest = their_methods:Longest\n"
        "alphabet = their_methods:Alphabet\n"
        "nothing = their_methods:Nothing\n"
        "gone = not_there:Method\n"
        "random = their_methods:Longest\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "their_methods", raising=False)
    importlib.invalidate_caches()
    return tmp_path


@pytest.mark.usefixtures("package")
class TestEntryPoints:
    def test_their_names_come_last_and_ours_stay_ours(self) -> None:
        assert method_names()[-4:] == ("longest", "alphabet", "nothing", "gone")
        assert make_rank_file(worlds.cirr(), "random").method.name == "Random"

    def test_registered_methods_of_ones_own_rank(self) -> None:
        benchmark = worlds.cirr()
        for name, title in (("longest", "Longest"), ("alphabet", "Alphabet")):
            made = make_rank_file(benchmark, name)
            assert made.method.name == title
            assert submissions.validate(made, benchmark).findings == ()
        ranked = make_rank_file(benchmark, "alphabet", k=1000)
        for row in benchmark.rows():
            reference, members = row["reference_image_id"], row["subset_image_ids"]
            wanted = [image for image in sorted(benchmark.gallery or ()) if image != reference]
            assert ranked.rankings[row["query_id"]] == wanted
            assert ranked.subset_rankings[row["query_id"]] == sorted(set(members) - {reference})[:3]

    def test_their_cards_are_made_of_their_docstrings(self) -> None:
        assert method_card("longest").summary == "Images whose id is longest come first."
        assert method_card("alphabet").encoders == ("none",)
        found = {card.name: card.summary for card in method_cards()}
        assert "their_methods:Nothing has none of compose(turns, context), scores(" in found["nothing"]
        assert "not_there:Method cannot be imported (No module named 'not_there')" in found["gone"]

    def test_what_cannot_be_had_says_so(self) -> None:
        with pytest.raises(MethodError, match=r"the method gone: not_there:Method cannot be imported"):
            method_of("gone")
        with pytest.raises(UnknownNameError, match=r"no method 'longst'\. Did you mean 'longest'\?"):
            make_rank_file(worlds.cirr(), "longst")

    def test_a_class_is_found_by_its_module_and_name(self) -> None:
        assert kind_of("their_methods:Alphabet") == "ranker"
        made = make_rank_file(worlds.circled(), "their_methods:Longest")
        assert (made.method.name, made.method.aggregation) == ("Longest", "latest")
        with pytest.raises(
            MethodError,
            match=r"the module their_methods has no class 'Longst'\. Did you mean 'Longest'\? "
            r"Fix: name one of its methods: Longest, Alphabet",
        ):
            make_rank_file(worlds.cirr(), "their_methods:Longst")
        with pytest.raises(MethodError, match="has no use for --aggregation"):
            make_rank_file(worlds.circled(), "their_methods:Alphabet", aggregation="latest")


def test_the_command_finds_a_class_in_this_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOURCE)
    command = [sys.executable, "-P", "-m", "leaderboard.cli", "run", "--benchmark", "shapes/val"]
    done = run_program([*command, "--method", "mine:Alphabet", "--k", "50", "--json"], cwd=tmp_path)
    (written,) = json.loads(done.stdout)
    assert Path(written["file"]) == tmp_path / "Alphabet.shapes-val.json"
    assert submissions.validate(written["file"]).ok
    assert f"Where it stands: cir score {written['file']}" in done.stderr


class Lists:
    """A ranker that gives what the test says."""

    def __init__(self, lists: Any) -> None:
        self.lists = lists

    def method(self) -> Method:
        return Method(name="Lists")

    def rank(self, turns: Sequence[Turn], gallery: Candidates, k: int) -> Any:
        return self.lists(turns, gallery, k)


def each(ranking: Any) -> Any:
    """A ranker's answer: the same to every turn."""
    return lambda turns, gallery, k: [ranking for _ in turns]


@pytest.mark.parametrize(
    ("lists", "text"),
    [
        (lambda *_: [], "Lists gave 0 rankings for 6 turns. Fix: one for each."),
        (each(["im9", "cat"]), "Lists, turn 100: 'cat' is not in the gallery. Fix: rank images of the"),
        (each(["im9", "im9"]), "Lists, turn 100: an image is listed twice, 'im9'. Fix: list it once."),
        (each([f"im{n}" for n in range(49)]), "turn 100: 48 images beside the reference, and 50 are wanted."),
        (lambda *_: None, "Lists gave NoneType as rankings. Fix: rank() gives a list a turn."),
        (lambda *_: "abcdef", "Lists gave str as rankings."),
        (each(None), "Lists, turn 100: no list of image ids. Fix: "),
        (each("im9"), "Lists, turn 100: no list of image ids."),
        (each([1, 2]), "Lists, turn 100: no list of image ids."),
        (each([["im9"]]), "Lists, turn 100: no list of image ids."),
        (lambda turns, *_: (1 / 0 for _ in turns), "the method Lists failed: ZeroDivisionError: "),
    ],
)
def test_what_a_ranker_lists_is_checked(lists: Any, text: str) -> None:
    with refusal(text, MethodError):
        make_rank_file(worlds.cirr(), Lists(lists))


def test_a_ranker_sees_the_turns_of_a_session_in_order() -> None:
    asked: list[str] = []

    def lists(turns: Sequence[Turn], gallery: Candidates, k: int) -> list[Sequence[str]]:
        asked.extend(turn.key for turn in turns)
        return [gallery.ids[:k] for _ in turns]

    made = make_rank_file(worlds.circled(), Lists(lists))
    assert asked == ["s0#1", "s0#2", "s1#1", "s1#2", "s1#3", "s2#1", "s2#2"]
    assert [len(turns) for turns in made.rankings.values()] == [2, 3, 2]


class Scores:
    """A scorer that gives what the test says, and has nothing that it could do without."""

    def __init__(self, scores: Any) -> None:
        self.give = scores

    def method(self) -> Method:
        return Method(name="Scores")

    def scores(self, turns: Sequence[Turn], gallery: Candidates) -> Any:
        return self.give(len(turns), len(gallery.ids))


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        (lambda turns, images: np.full((turns, images), np.nan), "float64 with values that are not finite"),
        (lambda turns, images: np.full((turns, images), np.inf), "with values that are not finite as"),
        (lambda turns, images: np.zeros((turns + 1, images)), "an array of shape (8, 30) and type float64"),
        (lambda turns, images: np.zeros((turns - 1, images)), "an array of shape (6, 30) and type float64"),
        (lambda turns, images: np.zeros((turns, images - 1)), "an array of shape (7, 29) and type float64"),
        (lambda turns, images: np.zeros(images), "an array of shape (30,) and type float64 as scores."),
        (lambda turns, images: np.full((turns, images), "x"), "of shape (7, 30) and type <U1 as scores."),
        (lambda turns, images: np.zeros((turns, images), complex), "and type complex128 as scores."),
        (lambda turns, images: [[1.0], [1.0, 2.0]], "gave list, which is not an array as scores."),
        (lambda turns, images: None, "gave NoneType, which is not an array as scores."),
    ],
)
def test_what_a_scorer_gives_is_checked(scores: Any, text: str) -> None:
    fix = "Fix: scores() gives finite numbers of shape (7, 30), a row a turn."
    for aggregation in (None, "weighted"):
        with refusal(f"the method Scores ... {text} ... {fix}", MethodError):
            make_rank_file(worlds.circled(), Scores(scores), aggregation=aggregation)


@pytest.mark.parametrize("kind", ["list", "int64", "float32", "bool", "uint8"])
def test_any_numbers_are_scores(kind: str) -> None:
    """As are those of a method that says no aggregation; what it gave is left as it was."""
    given: list[Any] = []

    def scores(turns: int, images: int) -> Any:
        table = np.arange(turns * images).reshape(turns, images) % 7 > 3
        given.append(table.astype(int).tolist() if kind == "list" else table.astype(kind))
        return given[-1]

    def as_double(turns: int, images: int) -> Any:
        return np.asarray(scores(turns, images), dtype=np.float64)

    for aggregation in (None, "average", "weighted"):
        made = make_rank_file(worlds.circled(), Scores(scores), aggregation=aggregation)
        assert np.array_equal(given[-1], np.arange(210).reshape(7, 30) % 7 > 3)
        assert made == make_rank_file(worlds.circled(), Scores(as_double), aggregation=aggregation)
    assert make_rank_file(worlds.circled(), Scores(scores)).method.aggregation == "latest"


def test_anything_that_can_be_gone_through_is_a_list() -> None:
    """Tuples, generators and arrays too; what is written is plain text."""
    benchmark = worlds.cirr()
    plain = make_rank_file(benchmark, Lists(lambda turns, gallery, k: [gallery.ids[:k] for _ in turns]))
    for lists in (
        lambda turns, gallery, k: (iter(gallery.ids[:k]) for _ in turns),
        lambda turns, gallery, k: np.array([gallery.ids[:k] for _ in turns]),
    ):
        made = make_rank_file(benchmark, Lists(lists))
        assert made.to_json() == plain.to_json()


class Composes:
    """A method on embeddings that gives what the test says, and does not say what it needs."""

    def __init__(self, compose: Any, described: Any = None) -> None:
        self.give, self.described = compose, described

    def method(self, encoder: Any) -> Any:
        return self.described or Method(name="Composes")

    def compose(self, turns: Sequence[Turn], context: Any) -> Any:
        return self.give(turns)


def broken(*given: Any) -> Any:
    raise KeyError("boom")


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (Composes(broken), "the method Composes failed: KeyError: 'boom'. Fix: correct it; `cir --debug"),
        (Composes(lambda turns: [[1], [1, 2]]), "Composes composed list, which is not an array. Fix: "),
        (Composes(lambda turns: None), "the method Composes composed NoneType, which is not an array."),
        (Composes(np.ones, {"name": "x"}), "the method Composes: method() gave dict. Fix: give submissions."),
        (Scores(broken), "the method Scores failed: KeyError: 'boom'."),
        (Lists(broken), "the method Lists failed: KeyError: 'boom'."),
        (Scores, "Scores is a class. Fix: pass a method made of it, or its name."),
    ],
)
def test_a_method_that_fails_says_whose_failure_it_is(
    method: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path))
    on_embeddings = {"encoder": PlainEncoder(), "workers": 0} if isinstance(method, Composes) else {}
    with pytest.raises(MethodError) as caught:
        make_rank_file(small_shapes(), method, **on_embeddings)
    assert said in str(caught.value)


FAILING = """
class NeedsMore:
    more = None

    def __init__(self, more):
        pass

    def rank(self, turns, gallery, k):
        return []


class Strange(NeedsMore):
    needs = {"a horse"}
"""


def test_a_class_that_cannot_be_made_or_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failing_methods.py").write_text(FAILING)
    (tmp_path / "raising_methods.py").write_text("raise RuntimeError('no luck')\n")
    (tmp_path / "misspelt_methods.py").write_text("class (:\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name, said in (
        (
            "failing_methods:NeedsMore",
            r"the method failing_methods:NeedsMore failed: TypeError: .*'more'\. Fix",
        ),
        ("raising_methods:Mine", "raising_methods:Mine failed while it was imported: RuntimeError: no luck"),
        ("misspelt_methods:Mine", "misspelt_methods:Mine failed while it was imported: SyntaxError"),
    ):
        with pytest.raises(MethodError, match=said):
            make_rank_file(worlds.cirr(), name)
    with pytest.raises(MethodError, match=r"needs holds 'a horse'\. Fix: it may hold"):
        method_card("failing_methods:Strange")


def test_an_encoder_that_a_method_brings_under_its_old_name_is_read() -> None:
    class Old:
        own_encoder = "shapes"

    with pytest.warns(FutureWarning, match="bound_encoder"):
        assert bound_encoder(Old()) == "shapes"
    assert bound_encoder(object()) is None

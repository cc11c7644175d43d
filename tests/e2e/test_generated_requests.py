"""Generated requests, most of them malformed: no 5xx, no nonsense accepted, little memory.

Hypothesis makes files, forms and headers; Schemathesis makes requests to every route of the OpenAPI document,
as the document allows them and as it does not, and compares the answers with it.
"""

from __future__ import annotations

import gzip
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import leaderboard_world as world
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.specs.openapi.checks import positive_data_acceptance

import submissions

MEMORY_MIB = 400
UPLOADS = "/api/submissions"
pytestmark = pytest.mark.slow
MANY, A_FEW = 200, 20
GENERATED = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
ONCE = (Phase.generate,)
"""A server has a memory: a request is not sent again to make it smaller."""


@pytest.fixture(scope="module")
def server(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("generated")
    alone = world.alone(folder, new_database())
    with world.serving(folder / "home", bare=True, CIR_LEADERBOARD_MAX_UPLOAD_MB="1", **alone) as running:
        yield running


@dataclass(frozen=True)
class Upload:
    """A request that no server should put onto a board."""

    kind: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


class Files:
    """Files that are not valid rank files, most of them made from one that is."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.content = json.dumps(document).encode()
        self.packed = gzip.compress(self.content, mtime=0)
        (made,) = submissions.convert([self.content], "parquet")
        self.parquet = made.content
        self.queries = sorted(document["rankings"])

    def any(self) -> st.SearchStrategy[tuple[str, bytes]]:
        made = {
            "bytes": st.binary(min_size=1, max_size=300),
            "json": VALUES.map(lambda value: json.dumps(value).encode()),
            "cut": st.integers(1, len(self.content) - 1).map(lambda size: self.content[:size]),
            "field": self._field(),
            "ranking": self._ranking(),
            "gzip": self._packed(),
            "parquet": self._parquet(),
            "lines": st.lists(VALUES, min_size=1, max_size=5).map(
                lambda values: b"\n".join(json.dumps(value).encode() for value in values)
            ),
        }
        return st.sampled_from(sorted(made)).flatmap(
            lambda kind: made[kind].map(lambda content: (kind, content))
        )

    def _field(self) -> st.SearchStrategy[bytes]:
        """A field that a rank file must have, with a value that none may have, or without it."""
        needed = st.sampled_from(["format", "format_version", "benchmark", "method", "rankings"])

        def changed(drawn: tuple[str, bool, Any]) -> bytes:
            name, without, value = drawn
            kept = {key: old for key, old in self.document.items() if key != name}
            return json.dumps(kept if without else {**kept, name: value}).encode()

        return st.tuples(needed, st.booleans(), VALUES.filter(lambda value: value != 1)).map(changed)

    def _ranking(self) -> st.SearchStrategy[bytes]:
        """One ranking of another type, without an image, with one twice, unknown, or not to be ranked."""
        changes: dict[str, Callable[[list[str], Any], Any]] = {
            "value": lambda _images, value: value,
            "short": lambda images, _: images[1:],
            "twice": lambda images, _: [images[0], *images[:-1]],
            "unknown": lambda images, value: [*images[:-1], f"{value}?"],
            "typed": lambda images, value: [*images[:-1], [value]],
        }

        def changed(drawn: tuple[str, str, Any]) -> bytes:
            query, how, value = drawn
            rankings = self.document["rankings"]
            images = changes[how](rankings[query], value)
            return json.dumps({**self.document, "rankings": {**rankings, query: images}}).encode()

        return st.tuples(st.sampled_from(self.queries), st.sampled_from(sorted(changes)), VALUES).map(changed)

    def _packed(self) -> st.SearchStrategy[bytes]:
        """Cut, with a changed byte behind the header, or with something behind its end."""
        places = st.integers(10, len(self.packed) - 1)
        return (
            places.map(lambda size: self.packed[:size])
            | st.tuples(places, st.integers(1, 255)).map(lambda change: flipped(self.packed, *change))
            | st.binary(min_size=1, max_size=99).map(lambda more: gzip.compress(self.content + b"]" + more))
        )

    def _parquet(self) -> st.SearchStrategy[bytes]:
        """Cut, or with a changed byte in the tail that says where everything lies."""
        size = len(self.parquet)
        return st.integers(8, size - 1).map(lambda end: self.parquet[:end]) | st.tuples(
            st.integers(size - 8, size - 1), st.integers(1, 255)
        ).map(lambda change: flipped(self.parquet, *change))


def flipped(content: bytes, place: int, change: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= change
    return bytes(changed)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=400)
FIELDS = st.sampled_from(
    [
        "name",
        "paper",
        "code",
        "zero_shot",
        "trained_on",
        "caption_rule",
        "notes",
        "submitter",
        "publish",
        "no",
    ]
)
TYPES = st.sampled_from(
    [
        "application/json",
        "application/octet-stream",
        "application/gzip",
        "text/html",
        "multipart/form-data",
        "",
    ]
)
HEADER = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60).map(str.strip)


def part(name: str, value: bytes, file_name: str | None = None) -> bytes:
    said = f'Content-Disposition: form-data; name="{name}"'
    said += "" if file_name is None else f'; filename="{file_name}"'
    return b"--b\r\n" + said.encode("utf-8", "replace") + b"\r\n\r\n" + value + b"\r\n"


@st.composite
def uploads(draw: st.DrawFn, files: Files) -> Upload:
    """A file as the body, in a form, in a form that is damaged; with texts and headers beside it."""
    kind, content = draw(files.any())
    boards = [st.just("shapes/val")] * 9 + [st.sampled_from(["shapes/multiturn_val", "cirr/val", ""]), TEXTS]
    query = {"board": draw(st.one_of(boards)), "publish": draw(st.sampled_from(["yes", "yes", "no", "?"]))}
    how = draw(st.sampled_from(["body", "body", "form", "form", "damaged"]))
    if how == "body":
        query |= draw(st.dictionaries(FIELDS, TEXTS, max_size=1))
        return Upload(kind, query, {"content-type": draw(TYPES | HEADER)}, content)
    texts = draw(st.lists(st.tuples(FIELDS, TEXTS), max_size=3))
    body = b"".join(part(name, value.encode()) for name, value in texts)
    body += part("file", content, draw(HEADER)) + b"--b--\r\n"
    if how == "damaged":
        kind = f"damaged {kind}"
        place = draw(st.integers(0, min(len(body) - 1, 200)))
        body = draw(st.sampled_from([body[:place], body[place:], flipped(body, place, 7), body + body]))
    return Upload(kind, query, {"content-type": "multipart/form-data; boundary=b"}, body)


def error_code(status: int, body: Any) -> str:
    """The code of an answer that refuses; every such answer has the same form."""
    assert HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR, body
    assert set(body) == {"error"}
    # A file on the wrong board is answered with the right one, too.
    assert set(body["error"]) - {"board_offered"} == {"code", "message", "fix"}
    assert all(isinstance(text, str) and text for text in body["error"].values())
    return str(body["error"]["code"])


def peak_mib(server: Any) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/status").read_text())
    return int(found[1]) / 1024


def ends(server: Any, accepted: set[str]) -> Counter[str]:
    """The states in which submissions end, once none waits."""
    until = time.monotonic() + 5 * len(accepted) + 60
    while server.get("/health").json()["waiting"] and time.monotonic() < until:
        time.sleep(0.5)
    done = [server.get(f"{UPLOADS}/{one}").json() for one in accepted]
    assert [one for one in done if one["state"] == "rejected" and not one["findings"]] == []
    return Counter(one["state"] for one in done)


def test_every_route_answers_as_the_openapi_document_says(server: Any) -> None:
    """Ids are those of a board and a submission that are there, in every second request."""
    there = server.submitted(world.as_bytes(world.broken(world.rank_file(2, "There"))))["id"]
    known = {"board_id": "shapes/val", "board": "shapes/val", "submission_id": there}
    document = schemathesis.openapi.from_url(f"{server.url}/api/openapi.json")
    operations = [found.ok() for found in document.get_all_operations()]
    assert len(operations) >= 9
    seen: Counter[str] = Counter()
    for operation in operations:
        for mode in schemathesis.GenerationMode:

            @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
            @settings(max_examples=A_FEW, phases=ONCE, derandomize=True, **GENERATED)
            def send(case: Any, real: bool) -> None:
                if real:
                    for given_values in (case.path_parameters, case.query):
                        for name in set(given_values or {}) & set(known):
                            given_values[name] = known[name]
                answer = case.call(timeout=300)
                seen[f"{case.method} {case.operation.path} {answer.status_code}"] += 1
                # What a rank file must be, and which boards there are, no schema says.
                case.validate_response(answer, excluded_checks=[positive_data_acceptance])

            try:
                send()
            except Unsatisfiable:
                # A route that takes nothing cannot be sent anything wrong.
                assert mode is schemathesis.GenerationMode.NEGATIVE
    print(f"{sum(seen.values())} requests to {len(operations)} routes: {dict(sorted(seen.items()))}")
    assert {line.rpartition(" ")[0] for line in seen} == {operation.label for operation in operations}
    assert peak_mib(server) < MEMORY_MIB
    assert "Traceback" not in server.log.read_text()


def test_a_malformed_upload_is_refused_or_rejected(server: Any) -> None:
    """At once by 4xx, or by its findings."""
    said: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    accepted: set[str] = set()
    with httpx.Client(base_url=server.url, timeout=300) as client:

        @given(upload=uploads(Files(world.rank_file(1, "Whole"))))
        @settings(max_examples=MANY, phases=ONCE, derandomize=True, **GENERATED)
        def send(upload: Upload) -> None:
            answer = client.post(UPLOADS, params=upload.query, headers=upload.headers, content=upload.body)
            kinds[upload.kind] += 1
            if answer.status_code in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
                accepted.add(answer.json()["id"])
                said["taken in"] += 1
            else:
                said[error_code(answer.status_code, answer.json())] += 1

        send()
    print(f"{sum(kinds.values())} uploads {dict(kinds)}: {dict(said)}")
    assert sum(kinds.values()) >= MANY
    assert len(said) > 4
    assert accepted
    states = ends(server, accepted)
    print(f"{len(accepted)} judged: {dict(states)}")
    assert set(states) == {"rejected"}
    assert server.rows() == []
    print(f"peak of the web process: {peak_mib(server):.0f} MiB")
    assert peak_mib(server) < MEMORY_MIB
    assert "Traceback" not in server.log.read_text()

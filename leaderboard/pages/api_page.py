"""The page `/api`: the routes of the OpenAPI document as a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from leaderboard.pages.markdown import inline_html_of
from leaderboard.pages.site import Page


@dataclass(frozen=True)
class Route:
    """One route.

    Args:
        method: of HTTP.
        path: its path.
        words: what it does.
        names: by names of parameters or bodies what they are.
        answers: media types of what it answers.
    """

    method: str
    path: str
    words: Markup
    names: tuple[tuple[str, Markup], ...]
    answers: tuple[str, ...]


def page(document: Mapping[str, Any]) -> Page:
    """The page.

    Args:
        document: the OpenAPI document.
    """
    listed = [
        _route(method, path, route)
        for path, methods in document["paths"].items()
        for method, route in methods.items()
    ]
    info = document["info"]
    return Page(
        "api.html",
        "API",
        f"The {len(listed)} routes of the leaderboard's API: boards, entries, submissions and the feed.",
        {"routes": listed, "intro": inline_html_of(info.get("description", ""))},
        section="api",
    )


def _route(method: str, path: str, route: Mapping[str, Any]) -> Route:
    names = [
        (f"{one['name']}{' *' if one.get('required') else ''}", _parameter(one))
        for one in route.get("parameters", ())
    ]
    answers = {
        kind
        for status, one in route["responses"].items()
        if status == "200"
        for kind in one.get("content", ())
    }
    # Names that say the same stand in one line.
    alike: dict[str, list[str]] = {}
    for name, words in (*names, *_bodies(route)):
        alike.setdefault(words, []).append(name)
    return Route(
        method.upper(),
        path,
        inline_html_of(route.get("description", "")),
        tuple((", ".join(same), inline_html_of(words)) for words, same in alike.items()),
        tuple(sorted(answers)),
    )


def _bodies(route: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for kind, body in route.get("requestBody", {}).get("content", {}).items():
        fields = ", ".join(body["schema"].get("properties", {}))
        yield kind, f"fields {fields}" if fields else "the file alone"


def _parameter(one: Mapping[str, Any]) -> str:
    schema = one["schema"]
    limits = [
        f"{word} {schema[key]}"
        for key, word in (("minimum", "at least"), ("maximum", "at most"))
        if key in schema
    ]
    if "enum" in schema:
        limits.append(" or ".join(schema["enum"]))
    if schema.get("default") is not None:
        limits.append(f"default {schema['default']}")
    return "; ".join([one.get("description", one["in"]), *limits])

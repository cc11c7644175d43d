"""The page `/api`: the routes of the OpenAPI document as a list, without a script or another request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leaderboard.pages.markup import element, joined, text

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1d2129}"
    "code{font-size:.92em}section{border-top:1px solid #d5d9e0;padding:.8rem 0}h2{font-size:1rem;margin:0}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.4rem 0}dd{margin:0}"
    "p{margin:.3rem 0}.quiet{color:#5b6472}"
)


def page(document: Mapping[str, Any]) -> str:
    """The routes as HTML.

    Args:
        document: the OpenAPI document.
    """
    info = document["info"]
    title = f"{info['title']}: API"
    listed = joined(
        _route(method, path, route)
        for path, methods in document["paths"].items()
        for method, route in methods.items()
    )
    link = element("a", "OpenAPI document", href="/api/openapi.json")
    intro = f"{text(info.get('description', ''))} {link}, {element('a', 'boards', href='/')}."
    head = element("title", text(title)) + element("style", _STYLE)
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">' + head
    body = element("h1", text(title)) + element("p", intro) + listed
    return "<!doctype html>" + element("html", element("head", head) + element("body", body), lang="en")


def _route(method: str, path: str, route: Mapping[str, Any]) -> str:
    names = [
        (f"{one['name']}{' *' if one.get('required') else ''}", _parameter(one))
        for one in route.get("parameters", ())
    ]
    names += _bodies(route)
    answers = sorted(
        {
            kind
            for status, one in route["responses"].items()
            if status == "200"
            for kind in one.get("content", ())
        }
    )
    parts = element("h2", element("code", text(f"{method.upper()} {path}")))
    parts += element("p", text(route.get("description", "")))
    if names:
        listed = joined(
            element("dt", element("code", text(name))) + element("dd", text(words)) for name, words in names
        )
        parts += element("dl", listed)
    if answers:
        parts += element("p", text(f"answers {', '.join(answers)}"), "quiet")
    return element("section", parts)


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

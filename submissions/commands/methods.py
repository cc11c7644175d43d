"""`cir methods list` and `cir methods show`: what can be run."""

from __future__ import annotations

from typing import Annotated

import typer

from cir_datasets.common.terminal import echo, fitted
from submissions.commands import as_text, find_modules_here


def methods_commands() -> typer.Typer:
    """The group `cir methods`."""
    group = typer.Typer(help="Methods: which there are, and what each does.", no_args_is_help=True)
    group.command("list")(list_methods)
    group.command("show")(show_method)
    return group


def list_methods(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one card a method.")] = False,
) -> None:
    """List the methods: name, encoders (none: runs without weights), what else each needs, summary.

    Methods of other packages (entry point group cir_benchmarks.methods) come last.

    \b
    Example:
        cir methods list
    """
    from submissions.methods.card import method_cards, reranker_names

    found = method_cards()
    if as_json:
        echo(as_text([card.model_dump(mode="json") for card in found]))
        return
    rows = [("NAME", "ENCODERS", "NEEDS", "SUMMARY")]
    for card in found:
        rows.append((card.name, ", ".join(card.encoders), ", ".join(card.needs) or "-", card.summary))
    echo(fitted(rows))
    echo(f"Re-rankers, which go with any of them (cir run --rerank): {', '.join(reranker_names())}", err=True)


def show_method(
    name: Annotated[
        str, typer.Argument(help="Name of the method or re-ranker, or module:Class of your own.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one card a method.")] = False,
) -> None:
    """Show a card, of a method or a re-ranker: what it does, reads and needs, its limits, what it gives.

    \b
    Example:
        cir methods show cirevl
    """
    from submissions.methods.card import method_card

    find_modules_here(name)
    card = method_card(name)
    if as_json:
        echo(as_text(card.model_dump(mode="json")))
        return
    echo(f"{card.title} ({card.name})\n{card.summary or 'Its docstring is empty.'}\n")
    fields = card.model_dump(mode="json", exclude={"name", "title", "summary"})
    for field, value in fields.items():
        text = ", ".join(value) if isinstance(value, list) else value
        if text or ":" not in name:  # nobody wrote a card for a class of one's own
            echo(f"{field + ':':<10} {text or '-'}")

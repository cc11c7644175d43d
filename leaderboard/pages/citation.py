"""How an entry is cited: BibTeX with everything that people wrote escaped, and a line of text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cir_datasets.common.yaml import package_yaml
from leaderboard.boards import Board
from leaderboard.pages.labels import metric_value
from leaderboard.standings.views import method_name
from submissions.rank_file.texts import is_link


def citation(board: Board, row: Mapping[str, Any], site: str, server: str) -> dict[str, str]:
    """How to cite an entry.

    Args:
        board: its board.
        row: its row of the board's table.
        site: what the server calls itself.
        server: its address, or empty where it is not known.

    Returns:
        `bibtex`, and a `line` of text.
    """
    name, id_ = method_name(row), row["submission"]
    when = datetime.fromisoformat(row["published_at"] or row["received_at"])
    value = f"{board.primary_label} {metric_value(board, board.primary, row['main'])}"
    address = f"{server}/e/{id_}" if server else ""
    by = f"{row['submitter']}. " if row["submitter"] else ""
    where = f", {address}" if address else ""
    link = row["method"].get("paper")
    paper = f"Paper: {link}. " if isinstance(link, str) and is_link(link) else ""
    line = (
        f"{by}{name}: {value} on {board.title}. {site}, entry {id_}, {when:%Y-%m-%d}{where}. "
        f"Signature: {row['signature']}."
    )
    fields = {
        "title": f"{{{_bibtex(name)}: {_bibtex(value)} on {_bibtex(board.title)}}}",
        # Who made the method is not known where nobody says it; styles sort such an entry by its key.
        **({"author": f"{{{_bibtex(row['submitter'])}}}"} if row["submitter"] else {"key": _bibtex(name)}),
        "year": f"{when:%Y}",
        "howpublished": _bibtex(f"{site}, entry {id_}, {when:%Y-%m-%d}"),
        **({"url": address} if address else {}),
        "note": _bibtex(f"{paper}Signature: {row['signature']}"),
    }
    lines = "".join(f"  {field:<12} = {{{said}}},\n" for field, said in fields.items())
    return {"line": line, "bibtex": f"@misc{{cir-{id_},\n{lines}}}"}


def _bibtex(text: str) -> str:
    """Text as a BibTeX field holds it, on one line."""
    plain = re.sub(r"\s+", " ", text)
    written = package_yaml("leaderboard", "pages/bibtex.yaml")
    return "".join(written.get(letter, letter) for letter in plain)

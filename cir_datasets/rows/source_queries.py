"""Which single query a session began with: looked up by turn 1's reference and caption, and by the target."""

from __future__ import annotations

from collections.abc import Iterable

from cir_datasets.rows.records import Row


class SourceQueries:
    """The queries of a benchmark that sessions were made of, by reference and caption.

    Args:
        rows: its queries; each of a query's captions may have begun a session.

    Example:
        >>> query = {"query_id": "7", "reference_image_id": "a", "captions": ["is red", "is  long "],
        ...          "positive_image_ids": ["b"]}
        >>> session = {"ground_truth_ids": ["b"],
        ...            "turns": [{"reference_image_id": "a", "relative_caption": "is long"}]}
        >>> queries = SourceQueries([query])
        >>> queries.of(session), queries.of({**session, "ground_truth_ids": ["c"]})
        ('7', None)
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        """Take the queries."""
        self._found: dict[tuple[str | None, str], list[tuple[str, frozenset[str]]]] = {}
        for row in rows:
            targets = frozenset(row["positive_image_ids"])
            for caption in row["captions"] or (row["relative_caption"],):
                key = row["reference_image_id"], _plain(caption or "")
                self._found.setdefault(key, []).append((row["query_id"], targets))

    def of(self, session: Row) -> str | None:
        """The id of the first query with the session's turn 1 and one of its targets; None without."""
        first = session["turns"][0] if session["turns"] else {}
        key = first.get("reference_image_id"), _plain(first.get("relative_caption") or "")
        return next(
            (
                query
                for query, targets in self._found.get(key, ())
                if targets & {*session["ground_truth_ids"]}
            ),
            None,
        )


def _plain(caption: str) -> str:
    """A caption without the blanks that files differ in."""
    return " ".join(caption.split())

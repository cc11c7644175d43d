"""What a shell offers for the value of an option: methods, and kinds of tables."""

from __future__ import annotations


def method_values(incomplete: str) -> list[str]:
    """Names of methods that begin so.

    Args:
        incomplete: what was typed.

    Example:
        >>> method_values("cirp")
        ['cirplant']
    """
    from submissions.methods.registry import method_names

    return [name for name in method_names() if name.startswith(incomplete)]


def table_values(incomplete: str) -> list[str]:
    """Benchmarks that have a table as papers print it, and begin so.

    Example:
        >>> table_values("circ")
        ['circled', 'circo']
    """
    from submissions.papers.layout import layout_names

    return [name for name in layout_names() if name.startswith(incomplete)]

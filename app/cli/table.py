"""Rows in columns, for people."""

from collections.abc import Iterable, Sequence

from app.catalog.problems import printable


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print the rows below their head, each column as wide as it has to be."""
    lines = [head, *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = (f"{cell:<{width}}" for cell, width in zip(line, widths))
        print("  ".join(cells).rstrip())

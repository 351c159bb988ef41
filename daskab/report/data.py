"""Data sets as a table, and what is to be known of one before it is used."""

from __future__ import annotations

from rich.table import Table

from daskab.datasets.registry import Entry


def describe_data(entries: dict[str, Entry], here: dict[str, bool]) -> Table:
    """One line a data set."""
    table = Table(box=None)
    table.add_column("name", no_wrap=True)
    for column in ("rows", "copies", "inputs", "classes"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("where", no_wrap=True)
    table.add_column("what")
    for name, entry in entries.items():
        numbers = (entry.rows, entry.duplicates, entry.n_inputs, len(entry.classes))
        where = "here" if here[name] else "to fetch" if all(file.url for file in entry.files) else "not here"
        table.add_row(name, *(f"{n:,}" for n in numbers), where, entry.title)
    return table


def describe_entry(entry: Entry) -> str:
    """Its origin, terms and traps."""
    lines = [entry.title, f"Source: {entry.source}", f"Licence: {entry.licence}", f"Cite: {entry.citation}"]
    return "\n".join([*lines, *(f"Beware: {trap}." for trap in entry.traps)])

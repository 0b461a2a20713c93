"""`evictstream config`: which settings are in force, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, print_table

app = typer.Typer(rich_markup_mode="markdown", add_completion=False)


@app.command()
def config(
    context: typer.Context,
    explain: Annotated[bool, typer.Option("--explain", help="Explain each setting.")] = False,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Show the effective settings and where each comes from; secrets are masked.

    Examples:

    * `evictstream config`
    * `evictstream --config prod.toml config -o json`
    * `evictstream config --explain`
    """
    from evictstream.streams.settings import Settings
    from evictstream.streams.settings.meanings import meanings

    loaded = global_options(context).loaded
    said = meanings(Settings) if explain else {}
    if output is OutputFormat.JSON:
        print_json(
            {
                name: {"value": value, "origin": loaded.origins[name]} | ({"meaning": said[name]} if explain else {})
                for name, value in loaded.shown().items()
            }
        )
        return
    titles = ["setting", "value", "from"] + (["meaning"] if explain else [])
    print_table(
        titles,
        (
            [name, "-" if value is None else str(value), loaded.origins[name]] + ([said[name]] if explain else [])
            for name, value in loaded.shown().items()
        ),
    )

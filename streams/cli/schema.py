"""`evictstream schema`: the JSON Schemas of the messages, for programs in other languages."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from evictstream.streams.cli.output import say
from evictstream.streams.errors import WrongUseError

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def schema(
    message: Annotated[
        str | None, typer.Argument(help="Which message; without it, their names are printed.", metavar="MESSAGE")
    ] = None,
) -> None:
    """Print the JSON Schema of a message on the topics.

    Examples:

    * `evictstream schema` lists the messages
    * `evictstream schema command > command.json`
    """
    from evictstream.models.messages.schemas import MESSAGES, schema_texts

    if message is None:
        for name in MESSAGES:
            say(name)
    elif message not in MESSAGES:
        raise WrongUseError(f"there is no message {message}", next_step=f"name one of {', '.join(MESSAGES)}")
    else:
        sys.stdout.write(schema_texts()[f"{message}.json"])

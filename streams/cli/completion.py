"""`evictstream completion`: the script that completes its commands and options in a shell."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


class Shell(enum.StrEnum):
    """Shells that are completed."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command()
def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell: bash, zsh or fish.", metavar="SHELL", show_default=False)],
) -> None:
    """Print the script that completes commands and options in a shell.

    Examples:

    * `source <(evictstream completion bash)`, in `~/.bashrc`
    * `source <(evictstream completion zsh)`, in `~/.zshrc` after `compinit`
    * `evictstream completion fish > ~/.config/fish/completions/evictstream.fish`
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined] # imported there to be used

    from evictstream.streams.cli.main import COMPLETION_VARIABLE
    from evictstream.streams.cli.output import say

    script = get_completion_script(prog_name="evictstream", complete_var=COMPLETION_VARIABLE, shell=shell)
    for line in script.splitlines():
        say(line)

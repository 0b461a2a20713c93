"""The command line as a user has it, for the kit's commands."""

from __future__ import annotations

from tests.streams.cli.conftest import cli

__all__ = ["cli"]

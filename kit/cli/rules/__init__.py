"""`evictstream rules verdict`, `taint` and `tolerations`: Kubernetes' rules, applied to files. Needs no Kafka."""

from __future__ import annotations

import typer

from evictstream.kit.cli.rules.taint import taint
from evictstream.kit.cli.rules.tolerations import tolerations
from evictstream.kit.cli.rules.verdict import verdict

app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
app.command()(verdict)
app.command()(taint)
app.command()(tolerations)

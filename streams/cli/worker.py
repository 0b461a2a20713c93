"""`evictstream worker`: one process of the service."""

from __future__ import annotations

import typer

from streams.cli.invocation import invocation

app = typer.Typer(rich_markup_mode="markdown")


@app.command()
def worker(context: typer.Context) -> None:
    """Run the service: read changes, keep deadlines, send commands, until stopped.

    Start as many as you like, up to one for each partition; they share the partitions and take over from each other.
    Refuses to start when a topic is not as it must be. SIGTERM commits what was read, leaves the group and exits with
    0. Whatever cannot go on ends it with one line and a documented exit code, for a supervisor to restart it.

    Examples:

    * `evictstream -b localhost:9092 worker`
    * `EVICTSTREAM_GROUP_INSTANCE_ID=$HOSTNAME evictstream worker` keeps its partitions over a quick restart
    """
    import asyncio

    from streams.service.app import run_worker

    asyncio.run(run_worker(invocation(context).settings))

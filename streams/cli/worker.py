"""`evictstream worker`: one process of the service."""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import warn_of_end
from evictstream.streams.cli.service_imports import service_imports
from evictstream.streams.errors import EvictstreamError, ExitCode

_LOG = logging.getLogger(__name__)

app = typer.Typer(rich_markup_mode="markdown", add_completion=False)


@app.command()
def worker(context: typer.Context) -> None:
    """Run a worker: read changes, keep deadlines, send commands, until stopped.

    Start as many as you like, up to one per partition; they share the partitions and take over from each other. A
    worker refuses to start if a topic has the wrong configuration. After SIGTERM it commits what it has read, leaves
    the group and exits with 0. If it cannot continue or is stuck, it exits with one line and a documented exit code;
    let a supervisor restart it. Health and metrics are served on loopback; the log names the port.

    Examples:

    * `evictstream -b localhost:9092 worker`
    * `EVICTSTREAM_GROUP_INSTANCE_ID=$HOSTNAME evictstream worker` need not wait for itself after it was killed
    """
    with service_imports():
        import asyncio

        from evictstream.streams.worker.app import loop_factory, run_worker
        from evictstream.streams.worker.memory_tuning import calm_collector

    calm_collector()
    settings = global_options(context).settings_of_service()
    with asyncio.Runner(loop_factory=loop_factory(settings)) as runner:
        runner.run(run_worker(settings, leave))


def leave(error: BaseException) -> NoReturn:
    """Write one line about the error, and end the process at once with its exit code."""
    is_ours = isinstance(error, EvictstreamError)
    line = str(error) if is_ours else f"internal failure, {type(error).__name__}: {error}"
    if not is_ours:
        _LOG.error("internal failure", exc_info=error)
    code = error.exit_code if isinstance(error, EvictstreamError) else ExitCode.INTERNAL_FAILURE
    warn_of_end(line, code)
    logging.shutdown()
    sys.stderr.flush()
    os._exit(code)

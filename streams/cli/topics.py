"""`evictstream topics declare` and `check`: the topics of one service on one Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, print_table, say
from evictstream.streams.errors import ExitCode

if TYPE_CHECKING:
    from evictstream.streams.broker.admin import TopicsReport

app = typer.Typer(rich_markup_mode="markdown", add_completion=False)


@app.command()
def declare(context: typer.Context, output: OutputOption = OutputFormat.TEXT) -> ExitCode:
    """Create missing topics; existing topics are not changed.

    Exits with 1 if the configuration of an existing topic differs, and lists every difference.

    Examples:

    * `evictstream -b localhost:9092 topics declare`
    * `evictstream --set partitions=64 --set replication_factor=3 --set min_insync_replicas=2 topics declare`
    """
    from evictstream.streams.broker.admin import declare_topics

    return _show(declare_topics(global_options(context).settings), output)


@app.command()
def check(context: typer.Context, output: OutputOption = OutputFormat.TEXT) -> ExitCode:
    """List every difference between the topics and the settings; change nothing.

    Exits with 0 if there is none, otherwise with 1. `breaks`: a worker refuses to start. `weakens`: slower or less
    safe.

    Examples:

    * `evictstream topics check`
    * `evictstream topics check -o json`
    """
    from evictstream.streams.broker.admin import check_topics

    return _show(check_topics(global_options(context).settings), output)


def _show(report: TopicsReport, output: OutputFormat) -> ExitCode:
    if output is OutputFormat.JSON:
        print_json(
            {
                "bootstrapServers": report.bootstrap_servers,
                "topics": report.topics,
                "created": report.created,
                "differences": [
                    {
                        "topic": difference.topic,
                        "what": difference.what,
                        "expected": difference.expected,
                        "actual": difference.actual,
                        "severity": difference.severity,
                    }
                    for difference in report.differences
                ],
            }
        )
    else:
        _show_text(report)
    return ExitCode.FOUND_PROBLEM if report.differences else ExitCode.DONE


def _show_text(report: TopicsReport) -> None:
    for name in report.created:
        say(f"created {name}")
    if report.differences:
        print_table(
            ["topic", "what", "is", "must be", "severity"],
            ([d.topic, d.what, d.actual, d.expected, d.severity] for d in report.differences),
        )
    else:
        say(f"all {len(report.topics)} topics at {report.bootstrap_servers} match the settings")

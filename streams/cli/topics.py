"""`evictstream topics declare` and `check`: the topics of one service on one Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, print_table, say, warn
from evictstream.streams.errors import ExitCode

if TYPE_CHECKING:
    from evictstream.streams.broker.admin import TopicsReport
    from evictstream.streams.settings import Settings

SAFE_COPIES: Final = 3
"""With one copy lost and another one behind, there is still one; Kafka's own advice."""

app = typer.Typer(rich_markup_mode="markdown", add_completion=False)


@app.command()
def declare(context: typer.Context, output: OutputOption = OutputFormat.TEXT) -> ExitCode:
    """Create missing topics; existing topics are not changed.

    Choose EVICTSTREAM_PARTITIONS and EVICTSTREAM_REPLICATION_FACTOR before: topics keep what they are created with.

    Exits with 1 if the configuration of an existing topic differs, and lists every difference.

    Examples:

    * `evictstream -b localhost:9092 topics declare`
    * `evictstream --set partitions=64 --set replication_factor=3 --set min_insync_replicas=2 topics declare`
    """
    from evictstream.streams.broker.admin import declare_topics

    settings = global_options(context).settings
    report = declare_topics(settings)
    code = _show(report, output)
    if report.created and output is OutputFormat.TEXT:
        _show_choice(settings, report)
    return code


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


def _show_choice(settings: Settings, report: TopicsReport) -> None:
    """Say what cannot be changed later, and warn where it is a choice for trials on a Kafka that is none."""
    copies, brokers = settings.replication_factor, report.kafka.brokers
    say(f"{settings.partitions} partitions, {copies} {'copy' if copies == 1 else 'copies'} each: this stays so")
    if copies < SAFE_COPIES <= brokers:
        warn(
            f"with so few copies on {brokers} brokers, a broker that is lost may lose evictions: for production"
            f" delete these topics, set EVICTSTREAM_REPLICATION_FACTOR={SAFE_COPIES} and"
            " EVICTSTREAM_MIN_INSYNC_REPLICAS=2, and declare them again"
        )


def _show(report: TopicsReport, output: OutputFormat) -> ExitCode:
    if output is OutputFormat.JSON:
        print_json(
            {
                "bootstrapServers": report.bootstrap_servers,
                "brokers": report.kafka.brokers,
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
    from evictstream.streams.broker.admin import advice

    for name in report.created:
        say(f"created {name}")
    if report.differences:
        print_table(
            ["topic", "what", "is", "must be", "severity"],
            ([d.topic, d.what, d.actual, d.expected, d.severity] for d in report.differences),
        )
        warn(advice(report.differences))
    else:
        say(f"all {len(report.topics)} topics at {report.bootstrap_servers} match the settings")

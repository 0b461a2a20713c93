"""`evictstream incidents`: what guards hold, and the answers of people."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.kit.cli.seeing import present_us
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.lists import ListFormat, ListOption, ListPrinter
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say, warn
from evictstream.streams.errors import ExitCode, FoundProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from evictstream.models.messages.incident import Incident, IncidentAnswer, IncidentVerdict
    from evictstream.models.messages.policy import Policy
    from evictstream.streams.settings import Settings

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

_SHORTEST_APPROVAL_SECONDS = 60
_USUAL_APPROVAL = "1h"

IdArgument = Annotated[str, typer.Argument(help="Id of the incident.", metavar="ID")]
AnswerWhyOption = Annotated[str, typer.Option(help="Why, for those who ask later.", metavar="TEXT")]


@app.command("list")
def list_incidents(
    context: typer.Context,
    output: ListOption = ListFormat.TABLE,
) -> ExitCode:
    """Show the incidents that stand: what guards of policies hold, or have held.

    `DUE` are the evictions that have to leave now. `LOSING ALL` are owners of which every pod would leave. Workers
    publish the numbers each ten seconds while they change.

    Examples:

    * `evictstream incidents list`
    * `evictstream incidents list -o wide`
    """
    from evictstream.kit.cli.incident_table import incidents_kind

    found = _read(global_options(context).settings)
    if found or output not in (ListFormat.TABLE, ListFormat.WIDE):
        kind = incidents_kind(present_us)
        ListPrinter(kind, output).whole(sorted(found.values(), key=lambda one: (one.opened_at, one.id)))
    else:
        warn("no incidents")
    return ExitCode.DONE


@app.command()
def show(context: typer.Context, incident_id: IdArgument, output: OutputOption = OutputFormat.TEXT) -> ExitCode:
    """Show all that is known of an incident: its nodes, and the owners that lose all of their pods.

    Examples:

    * `evictstream incidents show 3f9a2c1b07`
    """
    import msgspec

    from evictstream.kit.cli.incident_table import incident_lines

    incident = _one_of(_read(global_options(context).settings), incident_id)
    if output is OutputFormat.JSON:
        print_json(msgspec.to_builtins(incident))
    else:
        for line in incident_lines(incident):
            say(line)
    return ExitCode.DONE


@app.command()
def approve(
    context: typer.Context,
    incident_id: IdArgument,
    why: AnswerWhyOption,
    approved_for: Annotated[
        str,
        typer.Option(
            "--for", help="Until when the approval counts; what is not gone then waits again.", metavar="TIME"
        ),
    ] = _USUAL_APPROVAL,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Let the evictions of an incident go. What is overdue goes over the `spread` of its policy.

    Nodes that are tainted later are not of this incident: they are counted again.

    Examples:

    * `evictstream incidents approve 3f9a2c1b07 --why "rack 7 is really dead"`
    * `evictstream incidents approve 3f9a2c1b07 --why "slow rollout" --for 6h`
    """
    from evictstream.models.messages.incident import IncidentVerdict
    from evictstream.models.messages.policy import LONGEST_APPROVAL_SECONDS
    from evictstream.streams.cli.durations import read_limited_length

    seconds = read_limited_length(
        approved_for, option="--for", least=_SHORTEST_APPROVAL_SECONDS, most=LONGEST_APPROVAL_SECONDS
    )
    settings = global_options(context).settings
    return _answer(settings, incident_id, IncidentVerdict.APPROVED, why=why, seconds=seconds, output=output)


@app.command()
def reject(
    context: typer.Context, incident_id: IdArgument, why: AnswerWhyOption, output: OutputOption = OutputFormat.TEXT
) -> ExitCode:
    """Hold the evictions of an incident until its taints are gone. It can still be approved later.

    Examples:

    * `evictstream incidents reject 3f9a2c1b07 --why "an empty selector, being mended"`
    """
    from evictstream.models.messages.incident import IncidentVerdict

    settings = global_options(context).settings
    return _answer(settings, incident_id, IncidentVerdict.REJECTED, why=why, seconds=None, output=output)


def _answer(
    settings: Settings,
    incident_id: str,
    verdict: IncidentVerdict,
    *,
    why: str,
    seconds: int | None,
    output: OutputFormat,
) -> ExitCode:
    from evictstream.models.instants import instant_text, microseconds
    from evictstream.models.messages.incident import IncidentAnswer
    from evictstream.streams.cli.steering_records import check_why, who

    check_why(why)
    problems: list[str] = []
    standing = _read(settings, problems.append)
    for problem in problems:
        warn(problem)
    incident = _one_of(standing, incident_id)
    answer = IncidentAnswer(
        incident=incident.id, verdict=verdict, why=why, by=who(), answered_at=dt.datetime.now(dt.UTC)
    )
    policy, answer = _write(
        settings,
        incident.policy,
        answer,
        seconds=seconds,
        standing_ids=None if problems else standing.keys(),
    )
    expires_at = None if answer.expires_at is None else instant_text(microseconds(answer.expires_at))
    if output is OutputFormat.JSON:
        fields = {"incident": incident.id, "verdict": str(verdict), "policy": policy.name, "revision": policy.revision}
        print_json(fields if expires_at is None else {**fields, "expiresAt": expires_at})
    else:
        say(_sentence(incident, policy, expires_at))
    return ExitCode.DONE


def _write(
    settings: Settings,
    policy_name: str,
    answer: IncidentAnswer,
    *,
    seconds: int | None,
    standing_ids: Container[str] | None,
) -> tuple[Policy, IncidentAnswer]:
    """Write an answer that counts for some seconds; returns the policy, and the answer with its end."""
    from evictstream.kit.cli.policy_writing import write_answer
    from evictstream.streams.broker.steering_readers import PoliciesReader
    from evictstream.streams.cli.steering_records import open_records, open_writer

    topic = settings.policies_topic
    with open_records(settings, topic, PoliciesReader) as reader, open_writer(settings, topic, reader) as writer:
        return write_answer(writer, reader, policy_name, answer, seconds=seconds, standing_ids=standing_ids)


def _sentence(incident: Incident, policy: Policy, expires_at: str | None) -> str:
    if expires_at is None:
        return f"rejected incident {incident.id}: its evictions wait until {incident.taint} is gone from its nodes"
    seconds = policy.spread_seconds
    how = f"within {seconds} s" if seconds else "at once"
    return f"approved incident {incident.id} until {expires_at}; what is overdue goes {how}"


def _one_of(standing: Mapping[str, Incident], incident_id: str) -> Incident:
    found = standing.get(incident_id)
    if found is None:
        raise FoundProblemError(
            f"there is no incident {incident_id}, or it has ended", next_step="evictstream incidents list shows them"
        )
    return found


def _read(settings: Settings, on_problem: Callable[[str], None] = warn) -> dict[str, Incident]:
    from evictstream.kit.see.incidents import read_incidents

    return read_incidents(settings, on_problem)

"""`evictstream hold`: the brake."""

from __future__ import annotations

import datetime as dt
import difflib
import re
import secrets
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.streams.cli.durations import read_limited_length
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say, warn
from evictstream.streams.errors import EvictstreamError, ExitCode, WrongUseError
from evictstream.streams.feed.cluster_names import check_cluster_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evictstream.models.messages.brake import Brake
    from evictstream.models.steering.brakes import StandingBrake
    from evictstream.streams.cli.regions import RegionAnswers
    from evictstream.streams.settings import Settings

LONGEST_HOLD_SECONDS = 366 * 86_400
"""Of `--for`: what is held for longer is no incident."""

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def hold(  # noqa: PLR0917 - typer reads options from positional parameters
    context: typer.Context,
    why: Annotated[str, typer.Option(help="For those who find their evictions held.", metavar="TEXT")],
    cluster: Annotated[
        list[str] | None, typer.Option(help="Only in this cluster.", metavar="NAME", parser=check_cluster_name)
    ] = None,
    zone: Annotated[
        list[str] | None,
        typer.Option(help="Only on nodes with this value of topology.kubernetes.io/zone.", metavar="ZONE"),
    ] = None,
    taint: Annotated[
        list[str] | None, typer.Option(help="Only what leaves because of a taint with this key.", metavar="KEY")
    ] = None,
    namespace: Annotated[
        list[str] | None, typer.Option("--namespace", "-n", help="Only pods of this namespace.", metavar="NAME")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All evictions of all clusters.")] = False,
    lasts: Annotated[str | None, typer.Option("--for", help="How long: 30m, 2h, 1d.", metavar="LENGTH")] = None,
    until_released: Annotated[bool, typer.Option("--until-released", help="Until somebody releases it.")] = False,
    spread: Annotated[
        str, typer.Option(help="Over how long what is overdue at the end is spread.", metavar="LENGTH")
    ] = "60s",
    brake_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="How it is called. Default: a new name. That of a brake with the same options: prolong it.",
            metavar="ID",
        ),
    ] = None,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Brake: hold evictions back, at once and everywhere. Nothing is asked.

    Deadlines, cancellations and results go on; pods whose taint goes meanwhile stay. An option may be given several
    times: one of its values has to apply, and of each option that is given one. Workers and executors follow within a
    second. Not held is who else evicts: a drain, the kubelet, an autoscaler (docs/stop-it-now.md).

    Where Kubernetes' own controller goes on with a pod before the end, stderr says when (docs/managed-clusters.md). The
    brake stands before the state is read for that.

    With `regions` set and without `-b` each region gets the brake. Exit code 1 says that one of them did not take it.

    Examples:

    * `evictstream hold --all --why "what is this?" --for 2h`
    * `evictstream hold --cluster prod-eu-1 --zone z-a --why "power work" --until-released`
    * `evictstream hold --taint node.kubernetes.io/unreachable -n shop --why storm --for 30m --spread 10m`
    """
    from evictstream.models.messages.brake import BRAKE_KIND, LONGEST_BRAKE_SPREAD_SECONDS, Brake
    from evictstream.models.messages.vocabulary import API_VERSION
    from evictstream.streams.cli.backstop import tell_outlasted
    from evictstream.streams.cli.regions import ask_regions, settings_of_regions
    from evictstream.streams.cli.steering_records import check_why, who

    check_why(why)
    clusters, zones = _checked("--cluster", cluster), _checked("--zone", zone)
    taints, namespaces = _checked("--taint", taint), _checked("--namespace", namespace)
    if everything == bool(clusters or zones or taints or namespaces):
        raise WrongUseError(
            "give --all, or what is held: --cluster, --zone, --taint, --namespace",
            next_step="--all alone holds all evictions of all clusters",
        )
    if (lasts is None) != until_released:
        raise WrongUseError("give either --for or --until-released", next_step="for example --for 2h")
    seconds = None if lasts is None else read_limited_length(lasts, option="--for", least=1, most=LONGEST_HOLD_SECONDS)
    spread_seconds = read_limited_length(spread, option="--spread", least=0, most=LONGEST_BRAKE_SPREAD_SECONDS)
    name = _checked_id(brake_id)
    brake = Brake(
        api_version=API_VERSION,
        kind=BRAKE_KIND,
        id=name,
        why=why,
        by=who(),
        held_at=dt.datetime.now(dt.UTC),
        clusters=clusters,
        zones=zones,
        taints=taints,
        namespaces=namespaces,
        spread_seconds=spread_seconds,
    )
    regions = settings_of_regions(context)
    answers = ask_regions(regions, lambda settings: _write(settings, brake, seconds))
    _say(answers, brake, output)
    if clusters:
        _warn_of_unknown(regions, clusters)
    for standing in list(answers.found.values())[:1]:  # the same everywhere, but for milliseconds
        tell_outlasted({region: regions[region] for region in answers.found}, standing)
    return ExitCode.DONE if answers.is_whole else ExitCode.FOUND_PROBLEM


def _write(settings: Settings, brake: Brake, seconds: int | None) -> StandingBrake:
    """Write a brake that ends after some seconds to a Kafka; returns it as it was read back."""
    from evictstream.streams.cli.brake_writing import set_brake
    from evictstream.streams.cli.brakes import open_brakes_writer

    with open_brakes_writer(settings) as writer:
        return set_brake(writer, brake, seconds)


def _checked(option: str, values: Sequence[str] | None) -> tuple[str, ...]:
    from evictstream.models.messages.brake import MOST_NAMES_IN_BRAKE

    if values is None:
        return ()
    if "" in values:
        raise WrongUseError(f"{option} is empty")
    if len(values) > MOST_NAMES_IN_BRAKE:
        raise WrongUseError(
            f"{option} is given more than {MOST_NAMES_IN_BRAKE} times", next_step="give several brakes, or --all"
        )
    return tuple(dict.fromkeys(values))


def _checked_id(wanted: str | None) -> str:
    from evictstream.models.messages.brake import LONGEST_BRAKE_ID

    if wanted is None:
        return f"brake-{secrets.token_hex(3)}"
    if not re.fullmatch(f"[a-z0-9][a-z0-9-]{{0,{LONGEST_BRAKE_ID - 1}}}", wanted):
        raise WrongUseError(
            f"--id {wanted!r} cannot be the name of a brake",
            next_step=f"use at most {LONGEST_BRAKE_ID} small letters, digits and hyphens",
        )
    return wanted


def _say(answers: RegionAnswers[StandingBrake], brake: Brake, output: OutputFormat) -> None:
    from evictstream.models.instants import instant_text
    from evictstream.models.steering.selection import selection_text
    from evictstream.streams.cli.regions import HERE, in_region

    answers.warn_of_problems()
    if output is OutputFormat.JSON:
        shown = {region: _as_json(standing) for region, standing in answers.found.items()}
        not_held = {region: str(error) for region, error in answers.problems.items()}
        print_json(shown.get(HERE, {"regions": shown, "notHeld": not_held}))
        return
    for region, standing in answers.found.items():
        since = instant_text(standing.appended_us)
        end = "somebody releases it" if standing.end_us is None else instant_text(standing.end_us)
        say(f"{in_region(region)}brake {brake.id} holds {selection_text(brake)} since {since}, until {end}")
    if answers.found:
        say(f"to release it: evictstream release {brake.id} --why TEXT")


def _as_json(standing: StandingBrake) -> dict[str, object]:
    import msgspec

    from evictstream.models.instants import instant_text

    return {**msgspec.to_builtins(standing.brake), "appendedAt": instant_text(standing.appended_us)}


def _warn_of_unknown(regions: Mapping[str, Settings], clusters: Sequence[str]) -> None:
    """Say of which clusters nothing is known in any region; the brake stands, whatever happens here."""
    from evictstream.streams.cli.regions import ask_regions

    try:
        answers = ask_regions(regions, lambda settings: _known(settings, clusters))
    except EvictstreamError as error:
        warn(f"it could not be checked whether these clusters exist: {error}")
        return
    if not answers.is_whole:
        return
    known = set().union(*answers.found.values())
    for name in clusters:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            warn(f"nothing is known of the cluster {name} yet, so nothing is held there{hint}")


def _known(settings: Settings, clusters: Sequence[str]) -> set[str]:
    from evictstream.streams.broker.feed_states import read_fed
    from evictstream.streams.broker.published_names import read_published
    from evictstream.streams.cli.known_clusters import read_with_progress

    known = {*read_fed(settings), *read_published(settings)}
    if not known.issuperset(clusters):  # others may feed it
        known.update(read_with_progress(settings, tuple(range(settings.partitions))).names)
    return known

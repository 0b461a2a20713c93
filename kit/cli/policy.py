"""`evictstream policy`: policies as records: apply, show, compare, delete."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.kit.cli.incomplete import AllowOption, tell_shortfalls
from evictstream.kit.cli.seeing import present_us
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.lists import ListFormat, ListOption, ListPrinter
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say, warn
from evictstream.streams.errors import ExitCode, FoundProblemError
from evictstream.streams.feed.cluster_names import check_cluster_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evictstream.kit.cli.policy_files import WrittenPolicy
    from evictstream.kit.see.stored_state import StoredState
    from evictstream.models.messages.policy import Policy
    from evictstream.models.steering.policies import Policies
    from evictstream.streams.broker.steering_readers import PoliciesReader
    from evictstream.streams.cli.steering_records import SteeringWriter
    from evictstream.streams.settings import Settings

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

FilesArgument = Annotated[list[Path], typer.Argument(help="Files of policies.", metavar="FILE...")]
WhyOption = Annotated[str | None, typer.Option(help="Why; instead of what the file says.", metavar="TEXT")]


@app.command()
def apply(
    context: typer.Context,
    files: FilesArgument,
    why: WhyOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing; say what would be held or released now.")
    ] = False,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Write the policies of files. Each change is a new revision; what is as before is not written.

    What the revision before held and the new one does not goes little by little, over the `spread` of the file (60s).

    If Kubernetes' own controller goes on with a pod before a policy lets it go, stderr says when
    (docs/managed-clusters.md). The policies stand before the state is read for that, as `evictstream get` does: half a
    second for 100,000 pods. `--dry-run` reads it too.

    Examples:

    * `evictstream policy apply agents.yaml --dry-run`
    * `evictstream policy apply agents.yaml nights.yaml`
    """
    from evictstream.kit.cli.policy_backstop import read_and_tell_outlasted
    from evictstream.kit.cli.policy_files import read_policy_files
    from evictstream.kit.cli.policy_names import warn_of_unknown
    from evictstream.kit.cli.policy_revisions import revised
    from evictstream.kit.cli.policy_writing import remove_old_policies
    from evictstream.kit.see.policies import listed_policies

    written = read_policy_files(files)
    settings = global_options(context).settings
    with _reading(settings) as reader:
        changed = revised(written, reader.policies, why)
        if dry_run:
            rows = _preview(settings, reader, changed, output)
            warn_of_unknown(settings, _of_changed(written, changed), rows)
            return ExitCode.DONE
        differ = {policy.name for policy in changed}
        with _writing(settings, reader) as writer:
            made = (
                _write(writer, reader, one.name, partial(_next, one, why=why)) for one in written if one.name in differ
            )
            changed = [policy for policy in made if policy is not None]
            now_us = writer.now_us() if changed else present_us()  # by Kafka's clock
            if changed:
                remove_old_policies(writer, reader)
        written_now = {policy.name: policy.revision for policy in changed}
        standing = {one.name: one.policy.revision for one in listed_policies(reader.policies) if one.policy is not None}
        revisions, policies = standing | written_now, reader.policies
        there = [one for one in written if one.name in revisions]
        if output is OutputFormat.JSON:
            print_json({one.name: revisions[one.name] for one in there})
        else:
            for one in there:
                verb = "is now" if one.name in written_now else "stays"
                say(f"policy {one.name} {verb} at revision {revisions[one.name]}")
    state = read_and_tell_outlasted(settings, policies, changed, now_us)
    warn_of_unknown(settings, _of_changed(written, changed), state)
    for one in written:
        if one.name not in revisions:
            warn(f"somebody has deleted policy {one.name} at the same time; apply it again if it is needed")
    return ExitCode.DONE if len(there) == len(written) else ExitCode.FOUND_PROBLEM


@app.command("get")
def get_policies(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(help="Default: all.", metavar="[NAME]...")] = None,
    output: ListOption = ListFormat.TABLE,
) -> ExitCode:
    """Show the policies: what each does, to which evictions, by whom and why.

    Examples:

    * `evictstream policy get`
    * `evictstream policy get agents -o yaml`
    """
    from evictstream.kit.cli.policy_table import policies_kind
    from evictstream.kit.see.policies import listed_policies

    with _reading(global_options(context).settings) as reader:
        known = [one for one in listed_policies(reader.policies) if not names or one.name in names]
    missing = sorted(set(names or ()) - {one.name for one in known})
    if known or output not in (ListFormat.TABLE, ListFormat.WIDE):
        ListPrinter(policies_kind(present_us), output).whole(known)
    elif not names:
        warn("no policies")
    for name in missing:
        warn(f"there is no policy {name}")
    return ExitCode.FOUND_PROBLEM if missing else ExitCode.DONE


@app.command()
def diff(context: typer.Context, files: FilesArgument, why: WhyOption = None) -> ExitCode:
    """Show what `policy apply` would change. Exit code 1 says that something would.

    Examples:

    * `evictstream policy diff agents.yaml`
    """
    import difflib

    from evictstream.kit.cli.policy_files import read_policy_files
    from evictstream.kit.cli.policy_revisions import revised
    from evictstream.kit.cli.policy_table import file_text

    written = read_policy_files(files)
    with _reading(global_options(context).settings) as reader:
        changed = revised(written, reader.policies, why)
        for policy in changed:
            standing = reader.policies.standing.get(policy.name)
            is_new = standing is None or standing.policy.spec is None
            before = "" if is_new or standing is None else file_text(standing.policy)
            label = "none" if is_new or standing is None else f"revision {standing.policy.revision}"
            lines = difflib.unified_diff(
                before.splitlines(),
                file_text(policy).splitlines(),
                f"{policy.name} ({label})",
                f"{policy.name} (revision {policy.revision})",
                lineterm="",
            )
            for line in lines:
                say(line)
    return ExitCode.FOUND_PROBLEM if changed else ExitCode.DONE


@app.command()
def delete(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(help="As `policy get` names them.", metavar="NAME...")],
    why: Annotated[str, typer.Option(help="Why it is no longer needed.", metavar="TEXT")],
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Delete policies. What they held goes little by little, over their `spread`.

    A policy that cannot be read is removed, and what it held goes at once, unless something else holds it. So that it
    goes little by little, apply the policy again, and delete it then. Exit code 1 says that one of them is not there.

    Examples:

    * `evictstream policy delete agents --why "the agent is mended"`
    """
    from evictstream.kit.cli.policy_revisions import next_revision
    from evictstream.kit.cli.policy_writing import remove_old_policies
    from evictstream.streams.cli.steering_records import check_why

    check_why(why)
    settings = global_options(context).settings
    deleted, missing = [], []
    with _reading(settings) as reader, _writing(settings, reader) as writer:
        for name in dict.fromkeys(names):
            standing = reader.policies.standing.get(name)
            sentence = f"deleted policy {name}"
            if name in reader.policies.unreadable:
                writer.remove(name)
                sentence = f"removed policy {name}, which could not be read; what nothing else holds goes at once"
            elif standing is None or standing.policy.spec is None:
                missing.append(name)
                continue
            else:
                _write(writer, reader, name, partial(next_revision, name, why=why))
            deleted.append(name)
            if output is OutputFormat.TEXT:
                say(sentence)
        if deleted:
            remove_old_policies(writer, reader)
    for name in missing:
        warn(f"there is no policy {name}")
    if output is OutputFormat.JSON:
        print_json({"deleted": deleted, "notDeleted": missing})
    return ExitCode.FOUND_PROBLEM if missing else ExitCode.DONE


@app.command("test")
def try_out(
    context: typer.Context,
    files: FilesArgument,
    on: Annotated[
        list[str],
        typer.Option(help="Anything that `evictstream replay` reads; repeatable.", metavar="RECORDING"),
    ],
    *,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Name of the cluster; overrides the recorded name.", metavar="NAME", parser=check_cluster_name
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="Time of the lists. Default: the latest time in them.", metavar="INSTANT"),
    ] = None,
    run_on: Annotated[
        float, typer.Option(help="Continue for this many seconds after the last event.", min=0, metavar="SECONDS")
    ] = 0.0,
    allow: AllowOption = None,
    output: OutputOption = OutputFormat.TEXT,
) -> int:
    """Show what policies would have done in a recorded incident: what they had let wait, how long, and what was spared.

    The recording is replayed without and with the policies of the files, in virtual time and without Kafka. Each
    eviction succeeds and its pod goes, unless the recording has results. Brakes and policies that the recording holds
    stand in both, but for those that a file replaces by name.

    Exits with 0; with 1 if the answer lacks something that `--allow` does not name; with 130 or 143 if stopped by
    Ctrl-C or SIGTERM.

    Examples:

    * `evictstream policy test agents.yaml --on examples/incidents/flapping-taints-no-evictor/events.jsonl.gz`
    * `evictstream policy test pace.yaml --on outage -o json`, after `evictstream record outage`
    """
    from evictstream.kit.cli.policy_trial import print_trial, print_trial_json
    from evictstream.kit.cli.replay_input import open_inputs
    from evictstream.kit.cli.tried_policies import tried_policies
    from evictstream.kit.replay.policy_trial import try_policies
    from evictstream.kit.replay.sources import open_source
    from evictstream.streams.cli.progress import with_progress
    from evictstream.streams.cli.stop_signals import StopSignals

    settings = global_options(context).settings
    records, policies = tried_policies(files)
    with StopSignals() as stop_signals, open_inputs(on, stop_signals) as inputs:
        if (code := stop_signals.exit_code) is not None:
            return code
        source = open_source(inputs, cluster=cluster, partitions=settings.partitions, at=at)
        trial = try_policies(
            settings,
            policies,
            lambda: with_progress(stop_signals.until_signal(source.read()), "replaying", source.total),
            partitions=source.partitions,
            plays_executor=not source.has_results,
            run_on_seconds=run_on,
        )
        if output is OutputFormat.JSON:
            print_trial_json(trial, records)
        else:
            print_trial(trial)
        return stop_signals.exit_code or tell_shortfalls(source.shortfalls(), allow)


@contextlib.contextmanager
def _reading(settings: Settings) -> Iterator[PoliciesReader]:
    from evictstream.streams.broker.steering_readers import PoliciesReader
    from evictstream.streams.cli.steering_records import open_records

    with open_records(settings, settings.policies_topic, PoliciesReader) as reader:
        yield reader


@contextlib.contextmanager
def _writing(settings: Settings, reader: PoliciesReader) -> Iterator[SteeringWriter]:
    from evictstream.streams.cli.steering_records import open_writer

    with open_writer(settings, settings.policies_topic, reader) as writer:
        yield writer


def _next(written: WrittenPolicy, policies: Policies, *, why: str | None) -> Policy | None:
    """Return the next revision of a policy; None if it stands as it is written."""
    from evictstream.kit.cli.policy_revisions import revised

    return next(iter(revised([written], policies, why)), None)


def _write(
    writer: SteeringWriter, reader: PoliciesReader, name: str, make: Callable[[Policies], Policy | None]
) -> Policy | None:
    from evictstream.kit.cli.policy_writing import write_next

    return write_next(writer, reader, name, make)


def _of_changed(written: list[WrittenPolicy], changed: list[Policy]) -> list[WrittenPolicy]:
    names = {policy.name for policy in changed}
    return [one for one in written if one.name in names]


def _preview(settings: Settings, reader: PoliciesReader, changed: list[Policy], output: OutputFormat) -> StoredState:
    """Say what is due now and would be held or released; returns the rows.

    Raises:
        FoundProblemError: clusters are known, but no row of theirs is here.
    """
    import msgspec

    from evictstream.kit.cli.kafka_clock import KafkaClock
    from evictstream.kit.cli.known_steering import known_steering
    from evictstream.kit.cli.policy_backstop import tell_outlasted_by_policies
    from evictstream.kit.cli.seeing import read_known_cluster
    from evictstream.kit.see.policies import held_change
    from evictstream.kit.see.steering import Steering
    from evictstream.models.messages.codec import encode
    from evictstream.streams.broker.published_names import read_published

    with known_steering(settings, is_timed=False) as newest:
        brakes = newest().brakes
    policies = after = reader.policies
    now_us = KafkaClock(settings, reader).look(brakes, has_policies=True)
    for policy in changed:
        after = after.with_record(policy.name.encode(), encode(policy), now_us // 1_000)
    read = read_known_cluster(settings, None)
    if not read.state.cluster_names() and read_published(settings):
        raise FoundProblemError(
            "the state of the clusters is not in this Kafka, so what would be held is not known",
            next_step="give -b with the address of a region's Kafka; `policy diff` shows the change here",
        )
    change = held_change(Steering(brakes, policies), Steering(brakes, after), read.state, now_us)
    tell_outlasted_by_policies(
        settings, after, [one.name for one in changed if one.spec is not None], read.state, now_us
    )
    if output is OutputFormat.JSON:
        revisions = [msgspec.to_builtins(policy) for policy in changed]
        print_json({"policies": revisions, **{name: dict(counts) for name, counts in change._asdict().items()}})
        return read.state
    for policy in changed:
        say(f"policy {policy.name} would get revision {policy.revision}")
    if not changed:
        say("nothing would change")
    for word, counts in (("held", change.held), ("released", change.released), ("held as before", change.still)):
        for cluster, count in sorted(counts.items()):
            others = change.others[cluster] if counts is change.still else 0
            more = f", {others} of them by other policies or brakes alone" if others else ""
            say(f"{count} evictions of {cluster} that are due now would be {word}{more}")
    if changed and not any(change):
        say("no eviction that is due now would be held or released")
    return read.state

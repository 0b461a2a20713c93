"""`evictstream policy`: policies as records: apply, show, compare, delete."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.kit.cli.seeing import present_us
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.lists import ListFormat, ListOption, ListPrinter
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say, warn
from evictstream.streams.errors import EvictstreamError, ExitCode, FoundProblemError, WrongUseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evictstream.kit.cli.policy_files import WrittenPolicy
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

    `--dry-run` reads the state, as `evictstream get` does: half a second for 100,000 pods.

    Examples:

    * `evictstream policy apply agents.yaml --dry-run`
    * `evictstream policy apply agents.yaml nights.yaml`
    """
    from evictstream.kit.cli.policy_files import read_policy_files
    from evictstream.kit.see.policies import listed_policies

    written = read_policy_files(files)
    settings = global_options(context).settings
    with _reading(settings) as reader:
        changed = _revised(written, reader.policies, why)
        if dry_run:
            _preview(settings, reader.policies, changed, output)
            return ExitCode.DONE
        with _writing(settings, reader) as writer:
            _write(writer, changed)
            _remove_old(writer, reader.policies)
        revised = {policy.name: policy.revision for policy in changed}
        standing = {one.name: one.policy.revision for one in listed_policies(reader.policies) if one.policy is not None}
        revisions = standing | revised
        if output is OutputFormat.JSON:
            print_json({one.name: revisions[one.name] for one in written})
        else:
            for one in written:
                verb = "is now" if one.name in revised else "stays"
                say(f"policy {one.name} {verb} at revision {revisions[one.name]}")
    _warn_of_unknown(settings, changed)
    return ExitCode.DONE


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
    from evictstream.kit.cli.policy_table import file_text

    written = read_policy_files(files)
    with _reading(global_options(context).settings) as reader:
        changed = _revised(written, reader.policies, why)
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

    A policy that cannot be read is removed. Exit code 1 says that one of them is not there.

    Examples:

    * `evictstream policy delete agents --why "the agent is mended"`
    """
    from evictstream.streams.cli.steering_records import check_why

    check_why(why)
    settings = global_options(context).settings
    deleted, missing = [], []
    with _reading(settings) as reader, _writing(settings, reader) as writer:
        for name in dict.fromkeys(names):
            standing = reader.policies.standing.get(name)
            if name in reader.policies.unreadable:
                writer.remove(name)
            elif standing is None or standing.policy.spec is None:
                missing.append(name)
                continue
            else:
                _write(writer, [_next_revision(name, reader.policies, why=why)])
            deleted.append(name)
            if output is OutputFormat.TEXT:
                say(f"deleted policy {name}")
        _remove_old(writer, reader.policies)
    for name in missing:
        warn(f"there is no policy {name}")
    if output is OutputFormat.JSON:
        print_json({"deleted": deleted, "notDeleted": missing})
    return ExitCode.FOUND_PROBLEM if missing else ExitCode.DONE


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


def _write(writer: SteeringWriter, policies: list[Policy]) -> None:
    from evictstream.models.messages.codec import encode

    for policy in policies:
        writer.append(policy.name, encode(policy))


def _remove_old(writer: SteeringWriter, policies: Policies) -> None:
    """Remove the records of policies that were deleted long ago."""
    from evictstream.models.instants import SECOND_US
    from evictstream.streams.cli.steering_records import REMEMBERED_SECONDS

    long_ago_us = present_us() - REMEMBERED_SECONDS * SECOND_US
    for name, standing in policies.standing.items():
        if standing.is_over(long_ago_us):
            writer.remove(name)


def _revised(written: list[WrittenPolicy], policies: Policies, why: str | None) -> list[Policy]:
    """Return the next revisions of those that differ from what stands.

    Raises:
        WrongUseError: nobody says why.
        FoundProblemError: there would be too many.
    """
    from evictstream.models.steering.policies import MOST_POLICIES
    from evictstream.streams.cli.steering_records import check_why

    found = []
    for one in written:
        standing = policies.standing.get(one.name)
        reason = check_why(why) if why is not None else one.why
        if standing is not None and _is_as_written(standing.policy, one, reason):
            continue
        if not reason:
            raise WrongUseError(f"policy {one.name} does not say why", next_step="write `why:` into it, or give --why")
        found.append(_next_revision(one.name, policies, why=reason, written=one))
    standing_names = {name for name, one in policies.standing.items() if one.policy.spec is not None}
    if len(standing_names.union(one.name for one in written)) > MOST_POLICIES:
        raise FoundProblemError(
            f"there would be more than {MOST_POLICIES} policies", next_step="write the patterns into fewer"
        )
    return found


def _is_as_written(policy: Policy, written: WrittenPolicy, why: str) -> bool:
    same = (policy.spec, policy.spread_seconds) == (written.spec, written.spread_seconds)
    return same and why in ("", policy.why)


def _next_revision(name: str, policies: Policies, *, why: str, written: WrittenPolicy | None = None) -> Policy:
    """Return the record after the one that stands; one without a spec where nothing is written."""
    import datetime as dt

    from evictstream.models.messages.policy import POLICY_KIND, EarlierSpec, Policy
    from evictstream.models.messages.vocabulary import API_VERSION
    from evictstream.streams.cli.steering_records import who

    standing = policies.standing.get(name)
    spread_seconds = 60 if written is None else written.spread_seconds
    spec = None if written is None else written.spec
    earlier: tuple[EarlierSpec, ...] = ()
    if standing is not None:
        if written is None:
            spread_seconds = standing.policy.spread_seconds
        earlier = standing.replaced_by(spec, time.time_ns() // 1_000)
    return Policy(
        api_version=API_VERSION,
        kind=POLICY_KIND,
        name=name,
        revision=1 if standing is None else standing.policy.revision + 1,
        why=why,
        by=who(),
        applied_at=dt.datetime.now(dt.UTC),
        spec=spec,
        spread_seconds=spread_seconds,
        earlier=earlier,
    )


def _preview(settings: Settings, policies: Policies, changed: list[Policy], output: OutputFormat) -> None:
    """Say what is due now and would be held or released."""
    import msgspec

    from evictstream.kit.cli.known_steering import known_steering
    from evictstream.kit.cli.seeing import read_known_cluster
    from evictstream.kit.see.policies import held_change
    from evictstream.kit.see.steering import Steering
    from evictstream.models.messages.codec import encode

    after, now_us = policies, present_us()
    for policy in changed:
        after = after.with_record(policy.name.encode(), encode(policy), now_us // 1_000)
    with known_steering(settings) as newest:
        brakes = newest().brakes
    read = read_known_cluster(settings, None)
    change = held_change(Steering(brakes, policies), Steering(brakes, after), read.state, now_us)
    if output is OutputFormat.JSON:
        revisions = [msgspec.to_builtins(policy) for policy in changed]
        print_json({"policies": revisions, **{name: dict(counts) for name, counts in change._asdict().items()}})
        return
    for policy in changed:
        say(f"policy {policy.name} would get revision {policy.revision}")
    if not changed:
        say("nothing would change")
    for word, counts in (("held", change.held), ("released", change.released), ("held as before", change.still)):
        for cluster, count in sorted(counts.items()):
            say(f"{count} evictions of {cluster} that are due now would be {word}")
    if changed and not any(change):
        say("no eviction that is due now would be held or released")


def _warn_of_unknown(settings: Settings, changed: list[Policy]) -> None:
    """Say which patterns of clusters match none that is known; the policy stands all the same."""
    import fnmatch

    from evictstream.streams.broker.feed_states import read_fed

    patterns = {pattern for policy in changed if policy.spec is not None for pattern in policy.spec.selected.clusters}
    if not patterns:
        return
    try:
        known = set(read_fed(settings))
    except EvictstreamError as error:  # the policies stand, whatever happens here
        warn(f"it could not be checked whether these clusters exist: {error}")
        return
    for pattern in sorted(patterns):
        if not any(fnmatch.fnmatchcase(name, pattern) for name in known):
            warn(f"no cluster that a feed of this service reads matches {pattern}")

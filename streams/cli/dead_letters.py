"""`evictstream dead-letters show` and `resend`: records that could not be used."""

from __future__ import annotations

import base64
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from evictstream.streams.cli.confirmation import DECLINED, YesOption, is_confirmed
from evictstream.streams.cli.global_options import global_options
from evictstream.streams.cli.output import OutputFormat, OutputOption, print_json, say, warn
from evictstream.streams.errors import ExitCode, FoundProblemError
from evictstream.streams.printing import printable

if TYPE_CHECKING:
    from collections.abc import Collection

    from evictstream.streams.cli.dead_letter_list import DeadLetter
    from evictstream.streams.settings import Settings

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

PLACE = "TOPIC/PARTITION/OFFSET"

_NAME_WIDTH = 11
"""Characters of the longest name of a field, and two spaces."""


@app.callback()
def dead_letters() -> None:
    """Look at records that could not be used, and send them again. `evictstream get dead-letters` lists them."""


@app.command()
def show(
    context: typer.Context,
    place: Annotated[str, typer.Argument(help="As `evictstream get dead-letters` names it.", metavar=PLACE)],
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Show one dead letter with its reason and its value.

    Examples:

    * `evictstream dead-letters show nodes/3/17`
    * `evictstream dead-letters show pods/0/4711 -o json`
    """
    settings = global_options(context).settings
    (letter,) = _found(settings, [place])
    value = letter.record.value
    text = None if value is None else _text(value)
    if output is OutputFormat.JSON:
        shown = {"value": text} if text is not None else {}
        if value is not None and text is None:
            shown = {"valueBase64": base64.b64encode(value).decode()}
        print_json({**_fields(letter), **shown})
        return ExitCode.DONE
    for name, found in _fields(letter).items():
        say(f"{name:{_NAME_WIDTH}}{found}")
    say()
    if value is not None:
        sys.stdout.write(f"{printable(_indented(value))}\n")
    return ExitCode.DONE


@app.command()
def resend(
    context: typer.Context,
    places: Annotated[list[str], typer.Argument(help="One or more, as `show` takes them.", metavar=f"{PLACE}...")],
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TEXT,
) -> ExitCode:
    """Send records again to the topic that they came from, after an upgrade or a change of limits.

    Only what this version can read is sent: a record that would be a dead letter again, that was cut, or that is a
    signal stays where it is, and the exit code is 1. A dead letter is not removed: it expires.

    A record counts as if it came now. The service drops it if it knows a newer version of the object. Of an object that
    is gone since it may know nothing: then it comes back until its feed lists the cluster again.

    Examples:

    * `evictstream dead-letters resend nodes/3/17`
    * `evictstream get dead-letters --since 1h -o name | xargs evictstream dead-letters resend --yes`
    """
    from evictstream.streams.cli.dead_letter_list import why_not_again
    from evictstream.streams.feed.publisher import open_publisher
    from evictstream.streams.worker.service_config import partition_config

    settings = global_options(context).settings
    is_json = output is OutputFormat.JSON
    config = partition_config(settings, settings.max_record_bytes)
    letters = _found(settings, places)
    at_us = time.time_ns() // 1_000
    reasons = {one.seen.place: why_not_again(one, at_us, config) for one in letters}
    for place, reason in reasons.items():
        if reason is not None:
            warn(f"{place} is not sent: {reason}")
    usable = [one for one in letters if reasons[one.seen.place] is None]
    if usable:
        named = ", ".join(one.seen.place for one in usable)
        if not is_confirmed(f"Send {named} again to the topics that they came from?", yes):
            return DECLINED
        with open_publisher(settings, also=[settings.results_topic]) as publisher:
            for one in usable:
                publisher.send(one.headers.origin_topic, one.record.key or b"", one.record.value or b"")
            publisher.flush()
    if is_json:
        not_sent = {place: reason for place, reason in reasons.items() if reason is not None}
        print_json({"sent": [one.seen.place for one in usable], "notSent": not_sent})
    elif usable:
        say(f"sent {len(usable)} of {len(letters)}")
    return ExitCode.DONE if len(usable) == len(letters) else ExitCode.FOUND_PROBLEM


def _found(settings: Settings, places: Collection[str]) -> list[DeadLetter]:
    """Find dead letters by their places, each once; raises `FoundProblemError` if one is missing."""
    from evictstream.streams.cli.dead_letter_list import read_dead_letters

    wanted = dict.fromkeys(place.removeprefix(settings.topic_prefix) for place in places)
    found: dict[str, DeadLetter] = {}
    for letter in read_dead_letters(settings, "beginning"):
        if letter.seen.place in wanted:
            found[letter.seen.place] = letter
    if missing := [place for place in wanted if place not in found]:
        raise FoundProblemError(
            f"there is no dead letter {', '.join(missing)}", next_step="`evictstream get dead-letters` lists them"
        )
    return [found[place] for place in wanted]


def _fields(letter: DeadLetter) -> dict[str, object]:
    import msgspec

    fields: dict[str, object] = msgspec.to_builtins(letter.seen)
    return {**fields, "topic": letter.headers.origin_topic, "sha256": letter.headers.sha256}


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _indented(value: bytes) -> str:
    import msgspec

    try:
        return msgspec.json.format(value, indent=2).decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return value.decode(errors="replace")

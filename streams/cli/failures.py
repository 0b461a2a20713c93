"""What a command says when it cannot do what it was asked for: a line for people, or an object for programs."""

from __future__ import annotations

import dataclasses
import itertools
import json
import traceback
from collections.abc import Mapping, Sequence

import typer

from evictstream.streams.errors import ExitCode
from evictstream.streams.printing import printable_json


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """Why a command ends without an answer.

    Attributes:
        problem: what is wrong.
        next_step: what to do now; may be empty.
        exit_code: of the command.
        fields: what the error says, as data.
    """

    problem: str
    next_step: str
    exit_code: ExitCode
    fields: Mapping[str, object] = dataclasses.field(default_factory=dict)

    @property
    def line(self) -> str:
        """All in one line; a sentence is followed by another one."""
        between = " " if self.problem.endswith((".", "?")) else "; "
        return " ".join(f"{self.problem}{self.next_step and between + self.next_step}".split())


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether a command line says `-o json`: also one that cannot be parsed. What is behind `--` is another program's.

    A command that prints JSON into a pipe without being asked sets `wants_json` of its options itself.
    """
    ours = list(itertools.takewhile(lambda word: word != "--", arguments))
    chosen = [following for word, following in itertools.pairwise(ours) if word in {"-o", "--output"}]
    return chosen[-1:] == ["json"] or bool({"-ojson", "--output=json"} & set(ours))


def say_as_json(failure: Failure, name: str, shown: BaseException | None) -> None:
    """Print one object on stderr, in one line.

    Args:
        failure: why.
        name: the error's class.
        shown: the error, if its traceback is wanted.
    """
    said: dict[str, object] = {
        "error": name,
        "message": failure.problem,
        "nextStep": failure.next_step,
        "exitCode": int(failure.exit_code),
        "fields": {_camel_case(name): value for name, value in failure.fields.items()},
    }
    if shown is not None:
        said["traceback"] = "".join(traceback.format_exception(shown)).splitlines()
    typer.echo(printable_json(json.dumps(said, ensure_ascii=False, default=str)), err=True)


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))

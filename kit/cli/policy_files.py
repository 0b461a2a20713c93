"""Files of policies, as people write them: YAML 1.2, one policy in each document.

A file is refused as a whole if anything in it is wrong, with the line and the path of each fault: a policy that is half
understood holds something else than its writer thinks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from pydantic import BeforeValidator, Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from evictstream.kit.cli.clause_fields import Length, SpreadLength, StrictFields
from evictstream.kit.cli.guard_clause import GuardFields
from evictstream.kit.cli.policy_holds import FileHold
from evictstream.kit.cli.policy_limits import FileLimit
from evictstream.models.messages.policy import LONGEST_POLICY_NAME, PolicySpec
from evictstream.models.messages.policy_clauses import (
    LABEL_PATTERN,
    LEAST_ABOVE_ALL_PRIORITIES,
    LONGEST_LABEL,
    LONGEST_PATTERN,
    MOST_PATTERNS,
    LimitScope,
    PolicySelection,
    PriorityRange,
)
from evictstream.models.steering.policies import MOST_POLICIES
from evictstream.streams.cli.steering_records import LONGEST_WHY
from evictstream.streams.errors import WrongUseError

LONGEST_FILE_BYTES: Final = 1_048_576
"""A hundred policies of a hundred long patterns each; what is larger is no file of policies."""

_PRIORITY: Final = "priority"  # the one field of a selection that is no list
_MAY_BE_ABSENT: Final = frozenset({"zones", "owners"})  # what has none is matched by no pattern, not even by *

_MOST_TOLD: Final = 10
"""Faults that are told; one wrong indentation makes many."""


class WrittenName(NamedTuple):
    """A pattern of clusters, zones or labels that a file has.

    Attributes:
        place: where, as `p.yaml:7: for.zones[0]`.
        field: of which field of a selection it is: `clusters`, `zones` or `nodeLabels`.
        pattern: it.
    """

    place: str
    field: str
    pattern: str


class WrittenPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy as a file has it.

    Attributes:
        name: its name.
        why: for those who find their evictions held; empty if the file does not say.
        spec: what it does.
        spread_seconds: over how long what it held is spread when it changes.
        names: of clusters, zones and labels of nodes that it has; some may fit nothing that there is.
    """

    name: str
    why: str
    spec: PolicySpec
    spread_seconds: int
    names: tuple[WrittenName, ...] = ()


_Pattern = Annotated[str, Field(min_length=1, max_length=LONGEST_PATTERN)]
_Patterns = Annotated[list[_Pattern], Field(min_length=1, max_length=MOST_PATTERNS)]


def _label(value: object) -> str:
    if not isinstance(value, str) or re.fullmatch(LABEL_PATTERN, value) is None:
        message = "is not a label: write key=value; only the value may be a pattern"
        raise ValueError(message)
    return value


_Label = Annotated[str, BeforeValidator(_label), Field(max_length=LONGEST_LABEL)]
_Below = Annotated[int, Field(gt=-LEAST_ABOVE_ALL_PRIORITIES, le=LEAST_ABOVE_ALL_PRIORITIES)]


class _Priority(StrictFields):
    below: _Below


class _Selection(StrictFields):
    clusters: _Patterns | None = None
    nodes: _Patterns | None = None
    taints: _Patterns | None = None
    namespaces: _Patterns | None = None
    zones: _Patterns | None = None
    owners: _Patterns | None = None
    node_labels: Annotated[list[_Label] | None, Field(alias="nodeLabels", min_length=1, max_length=MOST_PATTERNS)] = (
        None
    )
    priority: _Priority | None = None

    def selection(self) -> PolicySelection:
        lists = {name: tuple(dict.fromkeys(value or ())) for name, value in self if name != _PRIORITY}
        priority = None if self.priority is None else PriorityRange(below=self.priority.below)
        return PolicySelection(**lists, priority=priority)


class _Document(StrictFields):
    name: Annotated[str, Field(pattern=f"^[a-z0-9][a-z0-9-]{{0,{LONGEST_POLICY_NAME - 1}}}$")]
    why: Annotated[str, Field(min_length=1, max_length=LONGEST_WHY)] | None = None
    selected: Annotated[_Selection, Field(alias="for")] = _Selection()
    excluded: Annotated[_Selection | None, Field(alias="except")] = None
    observe: bool = False
    settle: Length | None = None
    patience: Length | None = None
    limit: FileLimit | None = None
    hold: FileHold | None = None
    guard: GuardFields | None = None
    spread: SpreadLength = 60

    def policy(self) -> WrittenPolicy:
        return WrittenPolicy(
            name=self.name,
            why=(self.why or "").strip(),
            spec=PolicySpec(
                selected=self.selected.selection(),
                excluded=None if self.excluded is None else self.excluded.selection(),
                observe=self.observe,
                settle_seconds=self.settle,
                patience_seconds=self.patience,
                limit=None if self.limit is None else self.limit.limit(),
                in_flight=None if self.limit is None else self.limit.in_flight(),
                hold=None if self.hold is None else self.hold.hold(),
                guard=None if self.guard is None else self.guard.guard(),
            ),
            spread_seconds=self.spread,
        )


_WORDS: Final = {
    "extra_forbidden": "is no field of a policy in this version",
    "missing": "is missing",
    "string_type": "is not a text: put it in quotes",
    "list_type": "is not a list",
    "bool_type": "is neither true nor false",
    "int_type": "is not a whole number",
    "model_type": "has no fields",
    "dict_type": "has no fields",
    "string_pattern_mismatch": "is not a name: use small letters, digits and hyphens",
}


def read_policy_files(paths: Sequence[Path]) -> list[WrittenPolicy]:
    """Read all policies of some files, in their order.

    Raises:
        WrongUseError: a file cannot be read, or is wrong; names file, line and path of each fault.
    """
    found: list[WrittenPolicy] = []
    faults: list[str] = []
    for path in paths:
        for place, document in _documents(path):
            if isinstance(document, str):
                faults.append(f"{place} {document}")
                continue
            policy, wrong = _read(path, document)
            faults += wrong
            if policy is not None and any(policy.name == other.name for other in found):
                faults.append(f"{_place(path, document, ('name',))}: there are two policies of the name {policy.name}")
            elif policy is not None:
                found.append(policy)
    if faults:
        more = f"; and {len(faults) - _MOST_TOLD} more" if len(faults) > _MOST_TOLD else ""
        raise WrongUseError("; ".join(faults[:_MOST_TOLD]) + more, next_step="docs/policies.md has the language")
    if not found:
        raise WrongUseError(f"no policy in {', '.join(map(str, paths))}")
    if len(found) > MOST_POLICIES:
        raise WrongUseError(f"more than {MOST_POLICIES} policies", next_step="write the patterns into fewer")
    return found


def _documents(path: Path) -> Iterator[tuple[str, CommentedMap | str]]:
    """Yield the documents of a file with their places; a fault as a text."""
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST_FILE_BYTES + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise WrongUseError(f"{path} cannot be read: {reason}") from error
    if len(content) > LONGEST_FILE_BYTES:
        raise WrongUseError(f"{path} has more than {LONGEST_FILE_BYTES} bytes")
    if re.search("^%", text, re.MULTILINE):
        yield f"{path}:", "a line begins with %: directives, as of another version of YAML, are not taken"
        return
    try:
        for document in YAML(typ="rt", pure=True).load_all(text):
            if isinstance(document, CommentedMap):
                yield f"{path}:{document.lc.line + 1}:", document
            elif document is not None:
                yield f"{path}:", "a document is not a policy: it has no fields"
    except MarkedYAMLError as error:
        mark = error.problem_mark
        problem = " ".join((error.problem or error.context or "it is no YAML").split())
        yield f"{path}:{mark.line + 1}:" if mark is not None else f"{path}:", problem.partition(" To suppress")[0]
    except (YAMLError, ValueError, TypeError, AssertionError, RecursionError) as error:  # some are ruamel's faults
        first, *_ = str(error).splitlines() or ["it is no YAML"]
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else first
        yield f"{path}:", problem


def _read(path: Path, document: CommentedMap) -> tuple[WrittenPolicy | None, list[str]]:
    """Return the policy of a document, or what is wrong with it."""
    empty = [f"{_place(path, document, place)} has no value" for place in _empty(document)]
    if empty:
        return None, empty
    try:
        policy = _Document.model_validate(document).policy()
    except ValidationError as error:
        return None, [
            f"{_place(path, document, one['loc'])} {_words(one)}"
            for one in error.errors(include_url=False, include_context=False, include_input=False)
        ]
    faults = [
        f"{_place(path, document, place)}: {policy.name} {fault}" for place, fault in _contradictions(policy.spec)
    ]
    return msgspec.structs.replace(policy, names=tuple(_names(path, document))), faults


def _names(path: Path, document: CommentedMap) -> Iterator[WrittenName]:
    """Yield the names of a document that is a policy."""
    for part, field in itertools.product(("for", "except"), ("clusters", "zones", "nodeLabels")):
        for number, pattern in enumerate(document.get(part, {}).get(field, ())):
            yield WrittenName(_place(path, document, (part, field, number)), field, str(pattern))
    scope, _, key = str(document.get("limit", {}).get("per", "")).partition("/")
    if scope == LimitScope.LABEL:
        yield WrittenName(_place(path, document, ("limit", "per")), "nodeLabels", f"{key}=*")


def _empty(document: CommentedMap) -> Iterator[tuple[str, ...]]:
    """Yield the paths of keys without a value: an empty list of `except` would match all."""
    for key, value in document.items():
        if value is None:
            yield (str(key),)
        elif isinstance(value, CommentedMap):
            yield from ((str(key), str(inner)) for inner, of_inner in value.items() if of_inner is None)


def _words(error: Any) -> str:
    message: str = error["msg"]
    return _WORDS.get(error["type"]) or message.removeprefix("Value error, ").removeprefix("Input ")


def _place(path: Path, document: CommentedMap, place: Sequence[int | str]) -> str:
    """Name file, line and path."""
    return f"{path}:{_line(document, place)}: {_path(place)}".removesuffix(": ")


def _path(place: Sequence[int | str]) -> str:
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _line(document: CommentedMap, place: Sequence[int | str]) -> int:
    """Return the line of what a path leads to, as far as the document has it."""
    node: Any = document
    line: int = document.lc.line
    for part in place:
        if isinstance(node, CommentedMap) and part in node:
            line = node.lc.key(part)[0] if part in (node.lc.data or {}) else line
        elif isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node):
            line = node.lc.item(part)[0]
        else:
            break
        node = node[part]
    return line + 1


def _contradictions(spec: PolicySpec) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what a policy cannot mean, with the path of the field; none for the whole document."""
    clauses = (spec.settle_seconds, spec.patience_seconds, spec.limit, spec.in_flight, spec.hold, spec.guard)
    guard = spec.guard
    if not (spec.observe or any(clauses)):
        yield (), "does nothing: give settle, patience, limit, hold, guard or observe"
    if guard is not None and guard.count is None and guard.share_percent is None:
        yield ("guard", "moreThan"), "guards nothing: give count, share or both in moreThan"
    if spec.observe and any(clauses):
        yield ("observe",), "observes, so its other clauses say nothing"
    if spec.excluded == PolicySelection():
        yield ("except",), "has an empty except"
    elif spec.excluded is not None and _covers(spec.excluded, spec.selected):
        yield ("except",), "selects nothing: except has all that for has"


def _covers(excluded: PolicySelection, selected: PolicySelection) -> bool:
    """Whether all that one selection matches is matched by the other one, pattern by pattern."""
    below, most = selected.priority, excluded.priority
    return (most is None or (below is not None and below.below <= most.below)) and all(
        not getattr(excluded, name)
        or ("*" in getattr(excluded, name) and name not in _MAY_BE_ABSENT)
        or (getattr(selected, name) and set(getattr(selected, name)) <= set(getattr(excluded, name)))
        for name in PolicySelection.__struct_fields__
        if name != _PRIORITY
    )

"""The contract of the annotation `evictstream.io/tolerations`, rule by rule (docs/managed-clusters.md)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.kubernetes import Toleration, read_tolerations, read_tolerations_row, tolerations_row
from evictstream.models.kubernetes.handed_over import (
    LARGEST_ANNOTATION_BYTES,
    for_built_in,
    handed_over,
    in_spec,
    is_same_in_force,
    read_handed_over,
)

FOREVER = None
LONGEST = 10**9
"""What the policy puts into the spec at most."""


def entry(seconds: Any = 5, built_in: Any = "none", **fields: Any) -> dict[str, Any]:
    one = {"key": "k", "operator": "Exists", "effect": "NoExecute"} | fields
    one = {name: value for name, value in one.items() if value is not ...}
    if seconds != "none":
        one["tolerationSeconds"] = seconds
    return one if built_in == "none" else one | {"builtInSeconds": built_in}


def spec(seconds: Any, **fields: Any) -> dict[str, Any]:
    return entry("none" if seconds is FOREVER else seconds, **fields)


def in_force(tolerations: list[dict[str, Any]], annotation: str | None) -> tuple[list[int | None], bool]:
    found = handed_over(read_tolerations(json.dumps(tolerations).encode()), annotation)
    return [one.toleration_seconds for one in found.tolerations], found.is_unreadable


@pytest.mark.parametrize(
    ("tolerations", "entries", "seconds"),
    [
        pytest.param([spec(3905)], [entry(5, 3905)], [5], id="backstop"),
        pytest.param([spec(FOREVER)], [entry(5)], [5], id="handover"),
        pytest.param([spec(3905)], [entry(5, 3906)], [3905], id="spec-edited"),
        pytest.param([spec(3905)], [entry(5)], [3905], id="spec-has-seconds-entry-is-handover"),
        pytest.param([spec(FOREVER)], [entry(5, 3905)], [None], id="seconds-taken-off-the-spec"),
        pytest.param([spec(3905)], [entry(3906, 3905)], [3905], id="longer-than-the-spec"),
        pytest.param([spec(3905)], [entry(3905, 3905)], [3905], id="as-long-as-the-spec"),
        pytest.param([spec(3905)], [entry("none", 3905)], [3905], id="forever-in-the-entry"),
        pytest.param([spec(3600)], [entry(-(2**63), 3600)], [-(2**63)], id="negative"),
        pytest.param([spec(2**63 - 1)], [entry(0, 2**63 - 1)], [0], id="largest-in-the-spec"),
        pytest.param([spec(10**9)], [entry(2**63 - 1, 10**9)], [10**9], id="largest-in-the-entry"),
        pytest.param([spec(3905, key="other")], [entry(5, 3905)], [3905], id="another-key"),
        pytest.param([spec(3905, value="v")], [entry(5, 3905)], [3905], id="another-value"),
        pytest.param([spec(3905, operator=..., value="v")], [entry(5, 3905, operator="Equal", value="v")], [3905],
                     id="absent-and-Equal-differ"),
        pytest.param([spec(3905, effect="NoSchedule")], [entry(5, 3905, effect="NoSchedule")], [3905], id="effect"),
        pytest.param([spec(FOREVER, effect=...)], [entry(5, effect=...)], [None], id="no-effect"),
        pytest.param([spec(3640, key=...)], [entry(40, 3640, key=...)], [40], id="wildcard"),
        pytest.param([spec(3605), spec(60)], [entry(5, 3605), entry(1, 60)], [5, 60], id="only-the-first-is-moved"),
        pytest.param([spec(60), spec(3605)], [entry(5, 3605)], [60, 3605], id="first-of-its-identity-was-edited"),
        pytest.param([spec(3605)], [entry(9, 9), entry(5, 3605)], [3605], id="of-two-entries-the-first-counts"),
        pytest.param([spec(3605)], [entry(5, 3605), entry(1, 3605)], [5], id="the-first-of-two-that-fit"),
        pytest.param([spec(FOREVER), spec(3605)], [entry(5, 3605)], [None, 3605], id="same-put-first-forever"),
        pytest.param([spec(30)], [], [30], id="empty"),
        pytest.param([], [entry(5)], [], id="nothing-in-the-spec"),
        pytest.param([spec(3605)], [entry(5, 3605, unknown={"a": [1]})], [5], id="unknown-field"),
        pytest.param([spec(3605)], [entry(5, 3605, value=None)], [5], id="null-is-absent"),
    ],
)  # fmt: skip
def test_seconds_in_force(
    tolerations: list[dict[str, Any]], entries: list[dict[str, Any]], seconds: list[int | None]
) -> None:
    assert in_force(tolerations, json.dumps(entries)) == (seconds, False)


@pytest.mark.parametrize(
    "annotation",
    [
        "",
        "no JSON",
        "null",
        "{}",
        "5",
        '["text"]',
        "[[]]",
        '[{"key":5}]',
        '[{"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":1.5,"builtInSeconds":3605}]',
        '[{"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":true,"builtInSeconds":3605}]',
        '[{"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":5,"builtInSeconds":"3605"}]',
        json.dumps([entry(2**63, 3605)]),
        json.dumps([entry(5, 3605), entry(-(2**63) - 1, 3605)]),
        json.dumps([entry(5, 3605)] + [{}] * 1_000),
        "[" * 100_000,
        json.dumps([entry(5, 3605)]) + " " * LARGEST_ANNOTATION_BYTES,
        json.dumps([entry(5, 3605), entry(5, 3605, key="ü" * 65_000)], ensure_ascii=False),
        "\ud800",
    ],
    ids=lambda text: ascii(text[:24]),
)
def test_unreadable_annotations_count_as_absent(annotation: str) -> None:
    assert in_force([spec(3605)], annotation) == ([3605], True)


def test_largest_annotation_is_read() -> None:
    text = json.dumps([entry(5, 3605)])
    assert in_force([spec(3605)], text.ljust(LARGEST_ANNOTATION_BYTES)) == ([5], False)


@pytest.mark.parametrize("annotation", [b"5", b'["text"]', b'"\\ud800"'])
def test_annotations_that_are_no_text_count_as_absent(annotation: bytes) -> None:
    assert read_handed_over(msgspec.Raw(b'[{"key":"k"}]'), msgspec.Raw(annotation)).is_unreadable


@given(st.text() | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_text_is_read_without_an_error(annotation: str) -> None:
    tolerations = (Toleration("k", "Exists", "", "NoExecute", 3605),)
    assert handed_over(tolerations, annotation).tolerations == tolerations


def test_equal_pods_share_one_list() -> None:
    texts = (
        msgspec.Raw(json.dumps([spec(3605)]).encode()),
        msgspec.Raw(json.dumps(json.dumps([entry(5, 3605)])).encode()),
    )
    other = msgspec.Raw(json.dumps(json.dumps([entry(5, 3605), entry(key="gone")])).encode())
    assert read_handed_over(*texts).tolerations is read_handed_over(*texts).tolerations
    assert read_handed_over(*texts).tolerations is read_handed_over(texts[0], other).tolerations


SECONDS = st.none() | st.integers(-3, 4_000) | st.sampled_from([-(2**63), 2**63 - 1, 10**9])
IDENTITIES = st.tuples(
    st.sampled_from(["", "a", "b"]), st.sampled_from(["", "Equal", "Exists"]), st.sampled_from(["", "v"]),
    st.sampled_from(["NoExecute", "NoExecute", "NoSchedule", ""]),
)  # fmt: skip
LISTS = st.lists(
    st.builds(lambda one, seconds: Toleration(one[0], one[1], one[2], one[3], seconds), IDENTITIES, SECONDS), max_size=6
)


@given(LISTS, st.booleans())
def test_moved_lists_have_the_seconds_they_had(tolerations: list[Toleration], has_backstop: bool) -> None:  # noqa: FBT001
    """What the policy does, by docs/managed-clusters.md: the first of each identity moves, if it has seconds."""
    spec_then: list[Toleration] = []
    entries: list[dict[str, object]] = []
    expected: list[int | None] = []
    seen: set[tuple[str, ...]] = set()
    for one in tolerations:
        seconds, identity = one.toleration_seconds, (one.key, one.operator, one.value, one.effect)
        is_moved = seconds is not None and one.effect == "NoExecute" and identity not in seen
        seen.add(identity)
        if seconds is None or not is_moved:
            spec_then.append(one)
            expected.append(seconds)
            continue
        built_in = LONGEST if seconds > LONGEST else max(seconds, 0) + 3600
        spec_then.append(msgspec.structs.replace(one, toleration_seconds=built_in if has_backstop else None))
        texts = dict(zip(("key", "operator", "value", "effect"), identity, strict=True))
        fields: dict[str, object] = {name: text for name, text in texts.items() if text}
        fields["tolerationSeconds"] = seconds
        entries.append(fields | {"builtInSeconds": built_in} if has_backstop else fields)
        expected.append(min(seconds, LONGEST) if has_backstop else seconds)
    found = handed_over(tuple(spec_then), json.dumps(entries)).tolerations
    assert [one.toleration_seconds for one in found] == expected
    assert in_spec(found) == tuple(spec_then)
    assert read_tolerations_row(tolerations_row(found)) == found


def test_moving_seconds_is_no_edit() -> None:
    before = (Toleration("k", "Exists", "", "NoExecute", 5), Toleration("a"))
    moved = (Toleration("k", "Exists", "", "NoExecute", 5, 3605), Toleration("a"))
    edited = (Toleration("k", "Exists", "", "NoExecute", 6, 3605), Toleration("a"))
    assert is_same_in_force(before, moved)
    assert not is_same_in_force(before, edited)
    assert not is_same_in_force(before, before[:1])
    assert not is_same_in_force(before, (before[0], Toleration("b")))


@pytest.mark.parametrize(
    ("in_the_spec", "counted"),
    [(3605, 3605), (None, None), (9_223_372_036, 9_223_372_036), (9_223_372_037, None), (18_446_744_074, 0),
     (2**63 - 1, None), (-5, -5)],
)  # fmt: skip
def test_built_in_controller_counts_nanoseconds_in_64_bits(in_the_spec: int | None, counted: int | None) -> None:
    """semantics.md 13 row 33"""
    moved = (Toleration("k", "Exists", "", "NoExecute", 1, in_the_spec), Toleration("a", toleration_seconds=2**63))
    assert for_built_in(moved) == (
        Toleration("k", "Exists", "", "NoExecute", counted), Toleration("a", toleration_seconds=None),
    )  # fmt: skip
    assert for_built_in(moved[1:]) == (Toleration("a", toleration_seconds=None),)


def test_lists_where_nothing_moved_are_the_same_object() -> None:
    tolerations = read_tolerations(b'[{"key":"a","tolerationSeconds":300}]')
    assert for_built_in(tolerations) is in_spec(tolerations) is tolerations
    assert handed_over(tolerations, "[]").tolerations is tolerations

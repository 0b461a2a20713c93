"""The oracle on stories with reports of an executor's queue, each told right and broken.

The pod's first attempt is issued at 15.01 and gets no answer; a repeat is owed from 17.7 to 18.01.
"""

from __future__ import annotations

import pytest

from tests.faults.numbers import NUMBERS
from tests.kit.oracle.telling import Story, tainted
from tests.kit.oracle.test_listings import repeated

LIMIT = 15.01 + NUMBERS.accepted_limit_seconds


def waiting() -> Story:
    return tainted().say("Schedule", 10.1).say("Evict", 15.01)


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(lambda: waiting().report(16), id="once"),
        pytest.param(lambda: waiting().report(16, 15).report(17, 17), id="the newest of two"),
        pytest.param(lambda: waiting().report(16).result(16.5, "Observed"), id="observed besides"),
        pytest.param(lambda: waiting().result(15.5, "Accepted").report(16), id="accepted before"),
    ],
)
def test_a_report_puts_the_next_attempt_off(story: object) -> None:
    assert callable(story)
    assert repeated(story(), LIMIT + 0.01).violations() == []
    assert {found.rule for found in repeated(story(), LIMIT - 0.1).violations()} == {"repeated too soon"}
    assert {found.rule for found in story().violations()} == {"not repeated"}


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(lambda: waiting().report(16, 15.005), id="issued after what was read"),
        pytest.param(lambda: waiting().report(16).report(17, 15), id="no longer in the newest"),
    ],
)
def test_a_report_of_something_else_changes_nothing(story: object) -> None:
    assert callable(story)
    assert repeated(story(), 18.01).violations() == []


def test_what_has_failed_waits_in_no_queue() -> None:
    assert repeated(waiting().result(16, "Failed").report(16.2), 16.51).violations() == []
    assert repeated(waiting().report(15.5).result(16, "Failed"), 16.51).violations() == []


def test_what_was_only_observed_is_repeated_after_a_report_alone() -> None:
    observed = waiting().result(15.5, "Observed")
    assert observed.violations() == []
    assert {found.rule for found in repeated(observed, 40).violations()} == {"repeated though observed"}
    assert repeated(waiting().result(15.5, "Observed").report(30, 15), 30.1).violations() == []
    assert {found.rule for found in waiting().result(15.5, "Observed").report(30, 15).violations()} == {"not repeated"}


def test_a_report_from_before_the_attempt_repeats_nothing() -> None:
    story = tainted().say("Schedule", 10.1).report(12, 12).say("Evict", 15.01).result(15.5, "Observed")
    assert story.violations() == []
    assert {found.rule for found in repeated(story, 40).violations()} == {"repeated though observed"}


@pytest.mark.parametrize("outcome", ["Failed", "Succeeded"])
def test_another_answer_counts_beside_an_observation(outcome: str) -> None:
    story = waiting().result(15.5, "Observed").result(16, outcome)
    assert {found.rule for found in story.violations()} == {"not repeated"}

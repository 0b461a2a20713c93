"""The oracle on stories with guards that count owners which lose all of their pods, each told right and broken."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.objects import Json
from tests.kit.oracle.telling import TAINT, Story, tolerating
from tests.kit.oracle.test_brakes import done
from tests.kit.oracle.test_brakes import rules as all_rules
from tests.kit.oracle.test_guards import HELD

MISSING = "incident is missing"
OF_OWNERS: Json = {"of": "ownersLosingAll"}


def guarding(count: int = 1, **selected: Any) -> Json:
    return {"for": selected, "guard": {"count": count, "withinSeconds": 60} | OF_OWNERS}


def rules(story: Story) -> set[str]:
    """What is wrong, but for the other pods, of which nothing is told."""
    return all_rules(story) - {"not announced"}


def struck(*others: tuple[str, str], spec: Json | None = None) -> Story:
    """The pod of `web` and others, each with its owner, on three nodes; two nodes are tainted at 10, `o` is not."""
    story = Story().policy(1, spec or guarding()).pod(5, tolerating(5), owner="web")
    for number, (owner, node) in enumerate(others):
        story.pod(5, tolerating(50), name=f"q{number}", uid=f"other-{number}", node=node, owner=owner)
    story.node(6).node(6, name="m").node(6, name="o").node(10, TAINT, name="m").node(10, TAINT)
    return story.say("Schedule", 10.1)


@pytest.mark.parametrize(
    ("others", "is_held"),
    [
        ([("db", "m")], True),
        ([("db", "n")], True),
        ([("web", "m")], False),
        ([("db", "m"), ("db", "o")], False),
        ([("db", "m"), ("web", "o")], False),
        ([("", "m")], False),
    ],
    ids=["two", "on one node", "one with two pods", "one stays", "the pod's owner stays", "no owner"],
)
def test_owners_count_of_which_no_pod_stays(others: list[tuple[str, str]], *, is_held: bool) -> None:
    assert rules(done(struck(*others), 15.01)) - {MISSING} == (HELD if is_held else set())
    assert rules(struck(*others)) == ({"not issued", MISSING} if is_held else {"not issued"})


def test_an_incident_of_owners_has_a_reason() -> None:
    said: Json = OF_OWNERS | {"known": 3}
    assert rules(struck(("db", "m")).incident(11.5, **said)) == set()
    for others in ([("web", "m")], [("db", "m"), ("db", "o")]):
        assert "incident without a reason" in rules(struck(*others).incident(11.5, **said))
    assert "incident without a reason" in rules(struck(("db", "m")).incident(11.5, known=3))


def test_an_owner_counts_at_its_last_node() -> None:
    """Its pods on earlier nodes leave; those on the last one wait."""

    def slow(since: int, other: int) -> Story:
        story = Story().policy(1, guarding(0)).pod(5, tolerating(15), owner="web").node(6).node(6, name="m")
        story.pod(5, tolerating(50), name="q", uid="other", node="m", owner="web")
        for seconds, name in sorted([(since, "n"), (other, "m")]):
            story.node(seconds, TAINT, name=name)
        story.say("Schedule", since + 0.1, since + 15, window=since)
        story.say("Evict", since + 15.01, since + 15, window=since).result(since + 15.1, "Succeeded")
        return story.pod(since + 16, kind="DELETED", owner="web")

    assert rules(slow(13, 10)) - {MISSING} == HELD
    assert rules(slow(10, 13)) - {MISSING} == set()


def test_namespaces_select_owners() -> None:
    assert rules(done(struck(("db", "m"), spec=guarding(namespaces=["n?"])), 15.01)) == HELD | {MISSING}
    assert rules(struck(("db", "m"), spec=guarding(namespaces=["x"]))) == {"not issued"}


@pytest.mark.parametrize(("taint", "is_held"), [("maintenance", True), ("other", False)])
def test_only_selected_taints_can_be_the_last(taint: str, *, is_held: bool) -> None:
    story = struck(("db", "m"), spec=guarding(0, taints=[taint]))
    assert ("issued though held" in rules(done(story, 15.01))) == is_held


@pytest.mark.parametrize("owner", ["db", "db2"], ids=["a replacement stays", "it is another's"])
def test_a_bound_replacement_ends_the_loss(owner: str) -> None:
    def replaced() -> Story:
        return struck(("db", "m")).pod(10.2, name="r", uid="new", node="o", owner=owner)

    assert rules(done(replaced(), 15.01)) - {MISSING} == (set() if owner == "db" else HELD)


def test_owners_that_have_lost_all_make_no_room() -> None:
    def left(*, is_back: bool) -> Story:
        story = Story().policy(1, guarding()).pod(5, name="q", uid="other", node="n", owner="db").node(6)
        story.node(10, TAINT).say("Evict", 11.01, 10, name="e1", verdict="Untolerated", uid="other")
        story.pod(12, name="q", uid="other", kind="DELETED", owner="db")
        if is_back:
            story.node(12.5).node(12.8, TAINT)
        story.pod(13, tolerating(5), owner="web").say("Schedule", 13.1, 18, window=13)
        return story.say("Evict", 18.01, 18, window=13).result(18.1, "Succeeded").pod(19, kind="DELETED", owner="web")

    assert rules(left(is_back=False)) == HELD
    assert rules(left(is_back=True)) == set()


def test_a_late_pod_lets_an_incident_begin_earlier() -> None:
    """A pod of an owner comes to the first node: what had gone before its loss was known had gone rightly."""

    def story(published: float) -> Story:
        told = (
            Story()
            .policy(1, guarding(0))
            .pod(5, tolerating(5), owner="web")
            .pod(5, name="r", uid="r", node="o", owner="web")
        )
        told.pod(5, tolerating(50), name="q", uid="other", node="m", owner="db")
        told.node(6).node(6, name="m").node(6, name="o").node(10, TAINT).node(12, TAINT, name="m").say("Schedule", 10.1)
        return told.pod(16, tolerating(50), name="s", uid="late", node="n", owner="cache").incident(
            published, **OF_OWNERS, known=3, openedWith=2, allowed=0
        )

    assert rules(done(story(17), 15.01)) == set()
    assert rules(done(story(17), 25)) == HELD

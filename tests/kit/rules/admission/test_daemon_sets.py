"""semantics.md 9.2; pkg/controller/daemon/util/daemonset_util.go, and #92960 for what is wiped."""

from __future__ import annotations

import pytest

from evictstream.kit.rules.admission import (
    AddedBy,
    daemon_set_tolerations,
    default_toleration_seconds,
    plain,
    written,
)
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration, first_match

PREFIX = "node.kubernetes.io/"
USUAL = (
    Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute"),
    Toleration("node.kubernetes.io/unreachable", "Exists", "", "NoExecute"),
    Toleration("node.kubernetes.io/disk-pressure", "Exists", "", "NoSchedule"),
    Toleration("node.kubernetes.io/memory-pressure", "Exists", "", "NoSchedule"),
    Toleration("node.kubernetes.io/pid-pressure", "Exists", "", "NoSchedule"),
    Toleration("node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule"),
)
NETWORK = Toleration("node.kubernetes.io/network-unavailable", "Exists", "", "NoSchedule")
FOO = Toleration("foo", "Exists")
NOT_READY_30 = Toleration(PREFIX + "not-ready", "Exists", "", NO_EXECUTE, 30)


@pytest.mark.parametrize(
    ("template", "host_network", "expected"),
    [
        pytest.param((), False, USUAL, id="9.2 the six, in order"),
        pytest.param((), True, (*USUAL, NETWORK), id="9.2 host network: the seventh last"),
        pytest.param((FOO,), False, (FOO, *USUAL), id="9.2 those of the template stay in front"),
        pytest.param((NOT_READY_30,), False, USUAL, id="#92960 seconds are wiped"),
        pytest.param(
            (FOO, NOT_READY_30, FOO), False, (FOO, USUAL[0], FOO, *USUAL[1:]), id="9.2 replaced where it stands"
        ),
        pytest.param((NETWORK,), False, (NETWORK, *USUAL), id="9.2 without host network the seventh is the template's"),
        pytest.param((NETWORK,), True, (NETWORK, *USUAL), id="9.2 with host network it is replaced in place"),
        pytest.param(
            (NOT_READY_30, Toleration(PREFIX + "not-ready", "Exists", "", NO_EXECUTE, 60)),
            False,
            (USUAL[0], *USUAL),
            id="AddOrUpdateTolerationInPodSpec: every one of the identity is replaced",
        ),
        pytest.param(
            (NOT_READY_30, USUAL[0]),
            False,
            (USUAL[0], *USUAL),
            id="AddOrUpdateTolerationInPodSpec: an equal one behind changes nothing in that",
        ),
        pytest.param(
            (Toleration(PREFIX + "not-ready", "Exists"),),
            False,
            (Toleration(PREFIX + "not-ready", "Exists"), *USUAL),
            id="9.2 without effect it has another identity",
        ),
        pytest.param(
            (Toleration(PREFIX + "not-ready", "Equal", "", NO_EXECUTE, 30),),
            False,
            (Toleration(PREFIX + "not-ready", "Equal", "", NO_EXECUTE, 30), *USUAL),
            id="9.2 Equal has another identity",
        ),
        pytest.param(
            (Toleration("", "Exists"),), False, (Toleration("", "Exists"), *USUAL), id="9.2 a wildcard keeps none away"
        ),
    ],
)
def test_what_a_pod_of_a_daemon_set_tolerates(
    template: tuple[Toleration, ...], *, host_network: bool, expected: tuple[Toleration, ...]
) -> None:
    assert plain(daemon_set_tolerations(written(template), host_network=host_network)) == expected


def test_a_template_with_another_identity_is_the_one_in_use() -> None:
    mine = Toleration(PREFIX + "not-ready", "Exists", toleration_seconds=30)
    found = plain(daemon_set_tolerations(written((mine,))))
    assert first_match(found, Taint(PREFIX + "not-ready", "", NO_EXECUTE)) == mine


def test_origins_tell_what_was_replaced_and_what_was_there() -> None:
    same = Toleration(PREFIX + "unschedulable", "Exists", "", NO_SCHEDULE)
    found = daemon_set_tolerations(written((NOT_READY_30, same, FOO)))
    assert [entry.origin for entry in found[:3]] == [
        AddedBy.DAEMON_SET,
        AddedBy.WRITTEN,
        AddedBy.WRITTEN,
    ]
    assert {entry.origin for entry in found[3:]} == {AddedBy.DAEMON_SET}


def test_the_api_server_has_nothing_to_add_to_them() -> None:
    found = daemon_set_tolerations(())
    assert default_toleration_seconds(found) == found

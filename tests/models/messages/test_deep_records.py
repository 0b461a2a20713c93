"""Whatever a record is, it raises no other error than `Unreadable`: nothing of it ends a worker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evictstream.kit.what_if.facts import read_node_facts, read_pod_facts
from evictstream.models.messages.command import decode_command
from evictstream.models.messages.decision import decode_decision
from evictstream.models.messages.decoding import read_node_record, read_pod_record, read_result_record
from evictstream.models.messages.envelope import InputLimits
from evictstream.models.messages.events import NodeEvent, Origin, PodEvent
from evictstream.models.messages.result import decode_result
from evictstream.models.messages.unreadable import Unreadable, UnreadableReason
from evictstream.models.messages.watch_event import decode_watch_event

ORIGIN = Origin("topic", 0, 0)
KEY = b"c"
LEVELS = (990, 1_500, 9_995)  # more than Python 3.11, 3.12 and 3.13 read

NODE = (
    b'{"cluster":"c","type":"ADDED","object":{"kind":"Node","metadata":{"name":"n","uid":"u","resourceVersion":"7"%s}}}'
)
POD = (
    b'{"cluster":"c","type":"ADDED","object":{"kind":"Pod","metadata":{"namespace":"x","name":"p","uid":"u",'
    b'"resourceVersion":"7"},"spec":{"nodeName":"n"%s}}}'
)
RESULT = b'{"apiVersion":"evictstream.io/v1","kind":"EvictionResult"%s}'

READERS = [
    pytest.param(lambda value: read_node_record(KEY, value, 0, ORIGIN), NODE, id="node"),
    pytest.param(lambda value: read_pod_record(KEY, value, 0, ORIGIN), POD, id="pod"),
    pytest.param(lambda value: read_result_record(KEY, value, 0, ORIGIN), RESULT, id="result"),
    pytest.param(decode_watch_event, POD, id="watch event"),
    pytest.param(decode_command, RESULT, id="command"),
    pytest.param(decode_decision, RESULT, id="decision"),
    pytest.param(decode_result, RESULT, id="executor's result"),
    pytest.param(read_node_facts, NODE, id="facts of a node"),
    pytest.param(read_pod_facts, POD, id="facts of a pod"),
]


def reason_of(read: Callable[[bytes], object], value: bytes) -> UnreadableReason | None:
    """Why a record cannot be read; any other error is the test's."""
    try:
        read(value)
    except Unreadable as error:
        return error.reason
    return None


def nested(levels: int) -> bytes:
    return b'{"f":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize(("read", "text"), READERS)
@pytest.mark.parametrize("field", [b"managedFields", b"tolerations", b"affinity", b"cluster"])
def test_deep_json_is_read_or_unreadable(
    read: Callable[[bytes], object], text: bytes, field: bytes, levels: int
) -> None:
    value = text % (b',"%s":' % field + nested(levels))
    assert reason_of(read, value) in {
        None,
        UnreadableReason.BAD_JSON,
        UnreadableReason.WRONG_TYPE,
        UnreadableReason.MISSING_FIELD,
    }


@pytest.mark.parametrize(("read", "text"), READERS)
@pytest.mark.parametrize(
    "more",
    [
        pytest.param(b',"name":\xff', id="a byte that is no JSON"),
        pytest.param(b',"x":"\xc3\x28"', id="invalid UTF-8"),
        pytest.param(b',"x":' + b"9" * 5_000, id="a number of 5,000 digits"),
        pytest.param(b',"kind":7,"cluster":[]', id="fields of another type"),
    ],
)
def test_what_is_no_message_is_read_or_unreadable(read: Callable[[bytes], object], text: bytes, more: bytes) -> None:
    assert reason_of(read, text % more) in {None, *UnreadableReason}


LIMITS = InputLimits(largest_value_bytes=1_024)


def test_what_decides_nothing_does_not_count_as_size() -> None:
    pod = read_pod_record(KEY, POD % (b',"affinity":"%s"' % (b"x" * 2_000)), 0, ORIGIN, LIMITS)
    node = read_node_record(KEY, NODE % (b',"labels":"%s"' % (b"x" * 2_000)), 0, ORIGIN, LIMITS)
    assert isinstance(pod, PodEvent)
    assert isinstance(node, NodeEvent)
    assert (pod.is_undecidable, node.is_undecidable) == (False, False)


def test_a_pod_with_too_large_tolerations_is_known_and_undecidable() -> None:
    tolerations = b",".join([b'{"key":"%s"}' % (b"x" * 2_000)] * 1_000)
    pod = read_pod_record(KEY, POD % (b',"tolerations":[%s]' % tolerations), 0, ORIGIN)
    assert isinstance(pod, PodEvent)
    assert (pod.pod.uid, pod.is_undecidable, pod.pod.tolerations) == ("u", True, ())


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b'{"cluster":"c","type":"HEARTBEAT","clusterUid":"%s"}' % (b"x" * 2_000), id="a signal"),
        pytest.param(b"[" * 2_000, id="no event"),
        pytest.param(POD % (b',"x":' + nested(9_995)), id="too deep"),
    ],
)
def test_what_is_too_large_and_about_no_object_is_refused(value: bytes) -> None:
    for read in (read_node_record, read_pod_record):
        with pytest.raises(Unreadable, match="Oversized"):
            read(KEY, value, 0, ORIGIN, LIMITS)

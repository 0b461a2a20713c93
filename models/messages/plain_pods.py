"""The most frequent record of the pods topic, checked while it is decoded: a pod that has changed and does not leave.

The types say what the service's fast path asks of a record, so the decoder refuses every other one, and Python checks
nothing of it again. They are narrower than those of `decoding`: what they take, `decode_pod_record` takes too, with the
same values. What they refuse may still be a good record.
"""

from typing import Annotated, Final, Literal

import msgspec

from evictstream.models.kubernetes.shapes import PodMetadataObject, PodObject, PodSpecObject, PodStatusObject
from evictstream.models.messages.decoding import PodWatch
from evictstream.models.messages.object_limits import LONGEST_NAMES

# Three of these are at most `LONGEST_NAMES` together: longer ones are looked at by `decoding`.
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAMES // 3)]


class _PlainMetadata(PodMetadataObject, gc=False, kw_only=True):
    name: _Text
    namespace: _Text
    uid: _Text
    resource_version: _Text
    deletion_timestamp: None = None


class _PlainSpec(PodSpecObject, gc=False, kw_only=True):
    node_name: _Text


class _PlainStatus(PodStatusObject, gc=False):
    phase: Literal["Pending", "Running", "Unknown"] | None = None


class PlainPod(PodObject, gc=False, kw_only=True):
    """A v1 Pod that is bound, and neither terminating nor finished."""

    kind: Literal["Pod"]
    api_version: Literal["v1"]
    metadata: _PlainMetadata
    spec: _PlainSpec
    status: _PlainStatus


class PlainPodWatch(PodWatch, gc=False, kw_only=True):
    """A pod that was added or modified."""

    type: Literal["ADDED", "MODIFIED"]
    object: PlainPod


decode_plain_pod: Final = msgspec.json.Decoder(PlainPodWatch).decode
"""Decode a record; raises one of `DECODE_ERRORS` for any other. Called for each record, so it is the method itself."""

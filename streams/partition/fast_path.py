"""The fast path for the most frequent input: a known pod of which only the version or the tolerations changed.

Five of six events are status changes. The fast path recognises them, and edits of tolerations while nothing is due for
the pod: by types that the decoder checks, a look-up of the pod, and the texts of tolerations and traits as they were
last read. It makes no event of them. All other records go through `apply_pod`: stale, repeated and malformed ones too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evictstream.models.eviction import InputEffect
from evictstream.models.eviction.plain_edit import edit_tolerations, take_plain_version
from evictstream.models.instants import MILLISECOND_US
from evictstream.models.kubernetes.handed_over import has_moved, is_same_in_force, read_handed_over
from evictstream.models.kubernetes.resource_versions import read_version
from evictstream.models.kubernetes.shapes import NULL
from evictstream.models.kubernetes.tolerations import Tolerations
from evictstream.models.kubernetes.traits import PodTraits, read_pod_traits
from evictstream.models.messages.envelope import DECODE_ERRORS, event_at_us
from evictstream.models.messages.object_limits import LONGEST_TEXT, has_long_text, is_too_long
from evictstream.models.messages.plain_pods import PlainPodWatch, decode_plain_pod
from evictstream.streams.engine.core.logic import SLICE_COST, Part

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from evictstream.models.eviction.cluster import Cluster
    from evictstream.models.kubernetes.shapes import PodMetadataObject, PodSpecObject
    from evictstream.models.messages.envelope import InputLimits
    from evictstream.streams.engine.core.batches import Record
    from evictstream.streams.engine.core.outbox import Outbox

    ApplyOther = Callable[[Record, PlainPodWatch | None], Iterator[Part]]

LARGE_BYTES = 8_192  # a larger record costs a whole slice: this much may take a third of a millisecond
SLICE_BYTES = 65_536  # of plain records in one slice: some 100, which take 0.25 ms, or 0.5 ms if each changes a row
KEPT_TEXTS = 1_024  # lists of tolerations whose text is kept; a cluster has tens of different lists
LONGEST_KEPT_BYTES = 4_096  # of such a text; real ones have some 300. All together 8 MiB, and the lists themselves

_UNCHANGED: Final = InputEffect.UNCHANGED  # see `evictstream.models.eviction` for these constants
_CHANGED: Final = InputEffect.CHANGED
_UNCHANGED_VALUE: Final = _UNCHANGED._value_
_CHANGED_VALUE: Final = _CHANGED._value_

_NULL: Final = NULL

_join: Final = b"\n".join  # makes bytes of undecoded JSON in half the time of `bytes()`

# The text of tolerations as last read with the annotation, by their id, and tolerations by their text.
_texts: dict[int, tuple[Tolerations, msgspec.Raw, msgspec.Raw]] = {}
_lists: dict[bytes, Tolerations] = {}


class FastPath:
    """Applies plain changes to the nodes of one partition."""

    __slots__ = ("_by_key", "_largest_bytes", "_limits")

    def __init__(self, by_key: Mapping[bytes, Cluster], limits: InputLimits, largest_bytes: int) -> None:
        """Larger records than `largest_bytes` are no plain changes; `limits` hold for `observedAt`."""
        self._by_key = by_key
        self._limits = limits
        self._largest_bytes = min(largest_bytes, limits.largest_value_bytes)

    def apply(
        self, records: Iterable[Record], outbox: Outbox, counts: Counter[str], apply_other: ApplyOther
    ) -> Iterator[Part]:
        """Apply each known pod's event with a newer version and at most other tolerations; leave the others alone.

        Does exactly what `apply_pod` would do for such an event, in the order of the records.

        Args:
            records: of the pods topic, in offset order.
            outbox: takes the rows that change.
            counts: takes how many events have changed something, and how many nothing.
            apply_other: applies a record that is no plain change, with what it says if that has been decoded.
        """
        by_key, largest_bytes, texts, join = self._by_key, self._largest_bytes, _texts, _join
        size_bytes = unchanged = changed = 0  # counted in `counts` once for many
        for record in records:
            key, value = record.key, record.value
            cluster = by_key.get(key)  # type: ignore[arg-type]  # no key, no cluster
            if cluster is None or value is None or len(value) > largest_bytes:
                yield from apply_other(record, None)
                continue
            try:
                pod_record = decode_plain_pod(value)
            except DECODE_ERRORS:
                yield from apply_other(record, None)
                continue
            seen = pod_record.object
            spec, metadata = seen.spec, seen.metadata
            annotations = metadata.annotations
            text = hash(join((metadata.owner_references, metadata.labels, spec.priority, spec.scheduling_group)))
            aggregate = cluster.nodes.get(spec.node_name)
            pod = None if aggregate is None else aggregate.pods.get(metadata.uid)
            state = cluster.state
            if (
                aggregate is None
                or pod is None
                or pod_record.cluster != cluster.name
                or (annotations is not None and annotations.mirror is not msgspec.UNSET)
                or pod_record.epoch < state.epoch
                or record.timestamp * MILLISECOND_US <= state.forgotten_at_us
                or (traits := pod.traits) is None
                or (traits.text != text and not _are_traits(traits, metadata, spec, text))
            ):
                yield from apply_other(record, pod_record)
                continue
            tolerations = pod.tolerations
            kept = texts.get(id(tolerations))
            annotation = _NULL if annotations is None else annotations.tolerations
            if (
                kept is None
                or kept[1] != spec.tolerations
                or (kept[2] is not annotation and kept[2] != annotation)  # nearly all are `_NULL` itself
            ):
                read = _read_tolerations(spec.tolerations, annotation)
                if read is None or (
                    # a move takes an annotation, now or before: most edits have none, and comparing lists costs
                    (kept is None or kept[2] is not _NULL or annotation is not _NULL) and _is_move(tolerations, read)
                ):
                    yield from apply_other(record, pod_record)
                    continue
                tolerations = read
            version = read_version(metadata.resource_version, pod_record.epoch)
            effect = take_plain_version(aggregate, pod, version, tolerations)
            if effect is _UNCHANGED:
                unchanged += 1
            elif effect is _CHANGED:
                at_us = event_at_us(pod_record.observed_at, record.timestamp * MILLISECOND_US, self._limits)
                outbox.put(*edit_tolerations(aggregate, pod, tolerations, at_us))
                changed += 1
            else:
                yield from apply_other(record, pod_record)
                continue
            size_bytes += len(value)
            if size_bytes > SLICE_BYTES or len(value) > LARGE_BYTES:
                counts.update({_UNCHANGED_VALUE: unchanged, _CHANGED_VALUE: changed})
                size_bytes = unchanged = changed = 0
                yield Part(record.offset + 1, SLICE_COST)
        counts.update({_UNCHANGED_VALUE: unchanged, _CHANGED_VALUE: changed})


def _are_traits(traits: PodTraits, metadata: PodMetadataObject, spec: PodSpecObject, text: int) -> bool:
    """Read the traits of a pod; if it still has these, keep the hash of their text for the next pod that has them."""
    if read_pod_traits(metadata, spec) != traits:
        return False
    traits.text = text
    return True


def _is_move(known: Tolerations, read: Tolerations) -> bool:
    """Return whether seconds were moved and not edited, which is not plain; equal lists are known ones."""
    return read is not known and read != known and is_same_in_force(read, known)


def _read_tolerations(raw: msgspec.Raw, annotation: msgspec.Raw) -> Tolerations | None:
    """Read tolerations, and keep their texts for the next pod that has them; `None` if malformed or beyond a limit."""
    both = _join((raw, annotation))
    known = _lists.get(both)
    if known is not None:
        return known
    text = bytes(raw)
    if is_too_long(text):
        return None
    try:
        tolerations, is_unreadable = read_handed_over(raw, annotation)
    except DECODE_ERRORS:
        return None
    if is_unreadable or (len(text) > LONGEST_TEXT and has_long_text(tolerations)):
        return None
    if len(both) <= LONGEST_KEPT_BYTES:
        if len(_lists) >= KEPT_TEXTS:
            _texts.clear()
            _lists.clear()
        _lists[both] = tolerations
        has_annotation = annotation != _NULL
        if not has_annotation or has_moved(tolerations):  # else the list is that of pods without, whose text is to stay
            # the reference keeps the id from being used again
            _texts[id(tolerations)] = (tolerations, raw.copy(), annotation.copy() if has_annotation else _NULL)
    return tolerations

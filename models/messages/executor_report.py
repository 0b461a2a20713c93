"""What waits in the queue of an executor, said once for all of it: a record of the results topic. Key: the cluster.

The service repeats nothing that a fresh report holds (semantics.md 12.8). A report is no result: it says of no eviction
what became of it.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from evictstream.models.messages import codec
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.models.messages.fields import ApiVersion, Count, NonEmptyText, ReadInstant

REPORT_KIND: Final = "ExecutorReport"


class ExecutorReport(msgspec.Struct, frozen=True, gc=False, rename="camel", kw_only=True):
    """The queue of a cluster's executor: of what was issued up to `readTo`, all that has no answer waits in it."""

    api_version: ApiVersion
    kind: Annotated[str, Meta(extra_json_schema={"const": REPORT_KIND})]
    cluster: Annotated[str, Meta(description="As in the commands.", extra_json_schema={"minLength": 1})]
    executor: Annotated[NonEmptyText, Meta(description="Who reports; another one after each takeover.")]
    waiting: Annotated[Count, Meta(description="How many evictions wait or run.")]
    read_to: Annotated[
        ReadInstant, Meta(description="The latest `issuedAt` of an `Evict` that was read, answered or not.")
    ]
    reported_at: Annotated[ReadInstant | None, Meta(description="When, for people; the append time counts.")] = None


class _Kind(msgspec.Struct):
    kind: str = ""


_decoder: Final = msgspec.json.Decoder(ExecutorReport)
_kind_decoder: Final = msgspec.json.Decoder(_Kind)


def is_report(text: bytes | str) -> bool:
    """Whether a record of the results topic is a report, and no result."""
    try:
        return _kind_decoder.decode(text).kind == REPORT_KIND
    except DECODE_ERRORS:
        return False


def decode_report(text: bytes | str) -> ExecutorReport:
    """Read a report as the service does.

    Raises:
        Unreadable: it is not a report.
    """
    report = codec.decode(_decoder, text)
    codec.check_kind(report.api_version, report.kind, REPORT_KIND)
    return report

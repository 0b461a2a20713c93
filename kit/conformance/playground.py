"""Where a feed or an executor is played to: topics of its own, a fake API server, a kubeconfig, and its process."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from evictstream.kit.conformance.end_process import EndProcess
from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.process_rules import ProcessEvidence
from evictstream.kit.conformance.topic_recorder import TopicRecorder
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.run_names import delete_own, named
from evictstream.streams.errors import EndSilentError
from evictstream.streams.settings import Settings, environment_with

CONFORMANCE_PREFIX: Final = "evictstream-conformance-"
"""Begins the names of all that a run makes; eight hexadecimal digits of its own follow."""

CLUSTER: Final = "conformance"
"""What the cluster is called on the topics."""

CLUSTER_VARIABLE: Final = "CONFORMANCE_CLUSTER"
"""Tells the end the same. It is no setting of evictstream, whose environment refuses unknown names."""

PARTITIONS: Final = 3
"""Of each topic: enough that a wrong partitioner shows."""

_START_SECONDS: Final = 60.0
"""For an end that the kit has started to show itself."""

HAND_SECONDS: Final = 600.0
"""The same for one that a person starts."""

_LOOK_SECONDS: Final = 0.05

FIRST_TOKEN: Final = "first-token"  # noqa: S105 - of a server that holds nothing

_SHOWN: Final = tuple(
    f"EVICTSTREAM_{name}" for name in ("BOOTSTRAP_SERVERS", "TOPIC_PREFIX", "APPLICATION_ID", "PARTITIONS")
)

_Report = Callable[[str], None]
"""Takes a line about what is going on."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Playground:
    """What a play may use.

    Attributes:
        settings: of topics that only this run uses.
        api: the cluster.
        recorder: what the end writes.
        end: its process; None if a person starts it.
        shown: what a person has to set for it.
        report: takes a line about what is going on.
        is_stopped: whether the run was interrupted.
    """

    settings: Settings
    api: FakeApi
    recorder: TopicRecorder
    end: EndProcess | None
    shown: Mapping[str, str]
    token_file: Path
    report: _Report
    is_stopped: Callable[[], bool]

    def start(self, is_alive: Callable[[], bool]) -> None:
        """Start the end, or say with what a person starts it, and wait for its first sign of life.

        Raises:
            EndSilentError: none came.
        """
        if self.end is None:
            self.report("start it with this environment:")
            for name, value in self.shown.items():
                self.report(f"export {name}={shlex.quote(value)}")
        else:
            self.end.start()
        seconds = HAND_SECONDS if self.end is None else _START_SECONDS
        if not self.wait(is_alive, seconds):
            raise EndSilentError(seconds=seconds, ended="" if self.end is None else self.end.ended_by_itself)

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come: the program has ended by itself, or the run was interrupted."""
        return self.is_stopped() or (self.end is not None and not self.end.look())

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until it is so; False if it is not after so long, or `is_over`."""
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until or self.is_over:
                return condition()
            time.sleep(_LOOK_SECONDS)
        return True

    def stop(self) -> ProcessEvidence:
        """Stop the end, and tell what became of it."""
        if self.end is None:
            return ProcessEvidence(is_ours=False)
        self.end.stop()
        return ProcessEvidence(ended_by_itself=self.end.ended_by_itself, stop_seconds=self.end.stop_seconds)

    def set_token(self, token: str) -> None:
        """Accept only this token from now on; the kubeconfig's file keeps the one before."""
        self.api.token = token

    def hand_out(self) -> None:
        """Put the token that is accepted into the file that the kubeconfig names."""
        self.token_file.write_text(self.api.token or "")


@contextlib.contextmanager
def open_playground(
    settings: Settings,
    topics: Sequence[str],
    command: Sequence[str],
    *,
    report: _Report,
    is_stopped: Callable[[], bool],
) -> Iterator[Playground]:
    """Make all that is needed, and remove it afterwards; the end is not started yet.

    Args:
        settings: which Kafka.
        topics: short names of the recorded topics: `nodes`, `pods`, `results`.
        command: the end's program and its arguments; empty if a person starts it.
        report: takes a line about what is going on.
        is_stopped: whether the run was interrupted.

    Raises:
        BrokerError: Kafka does not answer, or refuses.
    """
    mine = named(settings, f"{CONFORMANCE_PREFIX}{uuid.uuid4().hex[:8]}").model_copy(
        # Beside a worker or a feed of the same machine there is no other port to be sure of.
        update={"partitions": PARTITIONS, "health_port": 0}
    )
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=CONFORMANCE_PREFIX)))
        declare_topics(mine)
        stack.callback(delete_own, mine)
        api = stack.enter_context(FakeApi())
        kubeconfig, token_file = folder / "kubeconfig", folder / "token"
        kubeconfig.write_text(api.kubeconfig(token_file))
        own = {"KUBECONFIG": str(kubeconfig), CLUSTER_VARIABLE: CLUSTER}
        environment = environment_with(mine) | own
        recorder = stack.enter_context(TopicRecorder(mine, {topic: f"{mine.topic_prefix}{topic}" for topic in topics}))
        end = EndProcess(command, environment) if command else None
        if end is not None:
            stack.callback(end.stop)
        playground = Playground(
            settings=mine,
            api=api,
            recorder=recorder,
            end=end,
            shown=own | {name: value for name, value in environment.items() if name in _SHOWN},
            token_file=token_file,
            report=report,
            is_stopped=is_stopped,
        )
        playground.set_token(FIRST_TOKEN)
        playground.hand_out()
        yield playground

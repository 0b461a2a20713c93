"""Mutations that random schedules have to notice: nobody has thought of the moment at which each of them matters."""

from __future__ import annotations

from tests.mutations.catalogue import Mutation

TORTURE = "tests/faults/test_sample.py"

BY_TORTURE = (
    Mutation(
        "torture: forget a cancel",
        "models/eviction/records.py",
        (
            (
                "step.commands.append(",
                "(lambda command: None if command.action == 'Cancel' else step.commands.append(command))(",
            ),
        ),
        (TORTURE,),
    ),
    Mutation(
        "torture: open the gates that wait for the inputs",
        "streams/service/gates.py",
        (("if not writer.caught_up:", "if False:"), ("if age > self._lag_limit_seconds:", "if False:")),
        (TORTURE,),
    ),
    Mutation(
        "torture: fire without asking again",
        "models/eviction/timer_step.py",
        (("due = reconcile(step, pod)", "due = pod.eviction.due"),),
        (TORTURE,),
    ),
    Mutation(
        "torture: let seconds overflow",
        "models/eviction/decision.py",
        (("if deadline_us > LAST_INSTANT_US:", "if False:"),),
        (TORTURE,),
    ),
    Mutation(
        "torture: begin windows anew at a restart",
        "streams/service/partition.py",
        (
            (
                "found.first_ordinal = self._clusters.first_ordinal(found.cluster)",
                "[setattr(pod, 'since_us', self._plan.now_us()) for pod in found.pods.values()]",
            ),
        ),
        (TORTURE,),
    ),
    Mutation(
        "torture: keep state after a failed transaction",
        "streams/engine/kafka/partition_producer.py",
        (
            (
                "broker_ms = await self._in_time(self._write(outbox, extra_rows, lands_at))\n",
                """broker_ms = -1
        with __import__("contextlib").suppress(PartitionLostError):
            broker_ms = await self._in_time(self._write(outbox, extra_rows, lands_at))
""",
            ),
        ),
        (TORTURE,),
    ),
    Mutation(
        "torture: leave some edits out of the rows",
        "models/eviction/pod_step.py",
        (("_step(aggregate, event, rules)\n    step.write_pod(pod)\n", "_step(aggregate, event, rules)\n"),),
        (TORTURE,),
    ),
    Mutation(
        "torture: skip the fence",
        "streams/engine/kafka/partition_producer.py",
        (
            (
                "transactional_id=config.transactional_id(partition),",
                "transactional_id=config.transactional_id(partition) + str(id(self)),",
            ),
        ),
        (TORTURE,),
    ),
    Mutation(
        "torture: read uncommitted rows",
        "streams/engine/kafka/log_reader.py",
        (("isolation_level=isolation", 'isolation_level="read_uncommitted"'),),
        (TORTURE,),
    ),
    Mutation(
        "torture: begin at the end of the inputs after a take-over",
        "streams/engine/core/takeover.py",
        (("settled[topic] = max(position, start)", "settled[topic] = end"),),
        (TORTURE,),
    ),
    Mutation(
        "torture: write positions without their rows and messages",
        "streams/engine/core/writer.py",
        (
            (
                "await self._producer.commit(outbox, {",
                "await self._producer.commit(Outbox() if self.transactions % 3 == 2 else outbox, {",
            ),
        ),
        (TORTURE,),
    ),
    Mutation(
        "torture: do not mind a silent feed",
        "streams/service/clusters.py",
        (("if since is not None and since < older_than_us:", "if False:"),),
        (TORTURE,),
    ),
    Mutation(
        "torture: trust any clock",
        "streams/service/clock.py",
        (("if ahead_us > self._skew_limit_us:", "if False:"),),
        (TORTURE,),
    ),
    Mutation(
        "torture: keep no timers over a restart",
        "streams/service/partition.py",
        (("        self._timers.rebuild()\n", ""),),
        (TORTURE,),
    ),
    Mutation(
        "torture: forget the former heap before its wake-ups are moved",
        "streams/engine/core/timers.py",
        (("self._former, self._heap = self._heap, []", "self._former, self._heap = [], []"),),
        (TORTURE,),
    ),
    Mutation(
        "torture: begin a window anew when a taint's value changes",
        "models/eviction/windows.py",
        (("known.since_us, at_us, added_us)", "at_us, at_us, added_us)"),),
        (TORTURE,),
    ),
)

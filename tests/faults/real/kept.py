"""A folder for each run, kept when it failed: logs of workers, what was planned and done, and the log of all topics.

`python -m tests.faults.real.kept FOLDER` judges a kept log again, without any Kafka.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from evictstream.kit.oracle import judge
from evictstream.kit.oracle.records import InputRecord, KeyedRecord, MessageRecord
from tests.faults.numbers import Numbers
from tests.faults.real.reading import Log

INPUTS_FILE = "inputs.json"
MESSAGES_FILE = "messages.json"
STEERING_FILE = "steering.json"
FACTS_FILE = "facts.json"


def keep(folder: Path, log: Log, facts: Mapping[str, object]) -> None:
    """Write a run's log (bytes as base64) and facts."""
    steering = {"brakes": log.brakes, "policies": log.policies, "incidents": log.incidents}
    contents = {INPUTS_FILE: log.inputs, MESSAGES_FILE: log.messages, STEERING_FILE: steering, FACTS_FILE: facts}
    for name, content in contents.items():
        (folder / name).write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1))


def load(folder: Path) -> tuple[Log, dict[str, object]]:
    """Read what `keep` wrote."""
    steering = msgspec.json.decode((folder / STEERING_FILE).read_bytes(), type=dict[str, list[KeyedRecord]])
    return (
        Log(
            msgspec.json.decode((folder / INPUTS_FILE).read_bytes(), type=list[InputRecord]),
            msgspec.json.decode((folder / MESSAGES_FILE).read_bytes(), type=list[MessageRecord]),
            **steering,
        ),
        msgspec.json.decode((folder / FACTS_FILE).read_bytes(), type=dict[str, object]),
    )


def main() -> int:
    """Judge again what stands in a folder."""
    log, facts = load(Path(sys.argv[1]))
    found = judge(
        log.inputs,
        log.messages,
        ended_at_us=int(str(facts["ended_at_us"])),
        partitions=int(str(facts["partitions"])),
        limits=msgspec.convert(facts["numbers"], Numbers).limits(),
        early_us=int(str(facts["early_us"])),
        may_forget=bool(facts["may_forget"]),
        brakes=log.brakes,
        policies=log.policies,
        incidents=log.incidents,
    )
    for violation in found:
        print(violation)
    print(f"{len(log.inputs)} inputs, {len(log.messages)} messages, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

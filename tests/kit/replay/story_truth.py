"""Reads a told story back, sentence by sentence, and holds each against the records that it was told from."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from evictstream.kit.replay.story import SourcedDecision, StoryLine, Teller, story
from evictstream.models.instants import instant_us
from evictstream.models.messages.decision import DecisionRecord
from tests.kit.replay.story_inputs import Inputs
from tests.kit.replay.story_sentences import SENTENCES, Claim, ToldEviction, UntrueError, hold


class Truth:
    """Checks lines, those of one eviction in their order."""

    def __init__(self, inputs: Inputs, *, knows_states: bool = True) -> None:
        """Without `knows_states` nodes and pods are not compared: what is played changes them and is no record."""
        self._inputs = inputs
        self._knows_states = knows_states
        self._evictions: dict[tuple[str, str], ToldEviction] = defaultdict(ToldEviction)
        self.checked: defaultdict[str, int] = defaultdict(int)

    def check(self, decisions: Sequence[SourcedDecision]) -> None:
        for told, line in zip(decisions, story(decisions), strict=True):
            try:
                self._check(told, line)
            except UntrueError as error:
                raise UntrueError(f"{line.at} {line.teller} {line.text!r}: {error}") from None

    def _check(self, told: SourcedDecision, line: StoryLine) -> None:
        it, so_far = told.record, self._evictions[told.record.cluster, told.record.eviction_id]
        hold(not so_far.is_ended, "the eviction had ended")
        if line.teller is Teller.PLAYED:
            hold(it.cause.kind in ("Result", "Pod") and so_far.attempts > 0, "that is not played")
        else:
            self._check_cause(it)
        rest = line.text
        while rest:
            for name, (pattern, check) in SENTENCES.items():
                found = re.match(pattern + r"(?: |$)", rest)
                if found is not None:
                    self.checked[name] += 1
                    moments = [*self._inputs.moments(it, told.came_us)] if self._knows_states else None
                    check(Claim(self._inputs, told, so_far, moments), *found.groups())
                    rest = rest[found.end() :]
                    break
            else:
                raise UntrueError(f"no sentence is understood in {rest!r}")
        if it.deadline != so_far.deadline:
            so_far.deadline, so_far.came_us = it.deadline, told.came_us

    def _check_cause(self, it: DecisionRecord) -> None:
        """The instant of a line is that of a record of its kind, or of the clock."""
        if it.cause.kind in ("Timer", "CatchUp"):
            hold(it.cause.topic is None, "a clock has no record")
            return
        one = self._inputs.at[it.cause.topic, it.cause.partition, it.cause.offset]  # type: ignore[index]
        hold(one.at_us == instant_us(it.cause.at), "the record has another time")
        hold(one.record.topic == f"{it.cause.kind.lower()}s", "the record is of another kind")
        hold(one.cluster == it.cluster, "the record is of another cluster")

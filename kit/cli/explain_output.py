"""What `evictstream explain` prints: a table for each pod, or all of it as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from evictstream.kit.replay.explanation import ExplainedPod, Explanation, PodAnswer, differing
from evictstream.kit.replay.standing_holds import StandingHold, hold_text
from evictstream.kit.replay.story import SourcedDecision, StoryLine, Teller, story
from evictstream.models.instants import instant_text
from evictstream.models.messages.vocabulary import DecisionKind
from evictstream.streams.cli.output import print_long_json, print_table, say, say_title

if TYPE_CHECKING:
    from evictstream.kit.recordings.shortfalls import Shortfall
    from evictstream.kit.replay.pod_observer import CaseLine

_MOST_NAMED: Final = 20
"""Pods that a message lists."""

MOST_CASES_SHOWN: Final = 40
"""The last ones of a pod, in a table; `-o json` has all."""

_ENDS: Final = frozenset({DecisionKind.COMPLETED, DecisionKind.CANCELLED})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExplainAnswer:
    """An explanation, and what it was told from.

    Attributes:
        recorded: decisions of the service that were read, whatever they are about.
        recorded_us: when the first and the last of them came; None without one.
        is_replay: whether a recording was replayed; else the service itself was asked.
        is_played: whether the replay plays an executor.
        assumed: what was assumed of files, for a table.
        summary: the same for programs.
        shortfalls: what is missing in the recording.
        cluster: the only one that was asked about; None for all that are known.
    """

    explanation: Explanation
    recorded: int
    recorded_us: tuple[int, int] | None
    is_replay: bool = False
    is_played: bool = False
    assumed: tuple[tuple[str, int | str], ...] = ()
    summary: dict[str, object] = dataclasses.field(default_factory=dict)
    shortfalls: tuple[Shortfall, ...] = ()
    cluster: str | None = None

    @property
    def place(self) -> str:
        """What knows, or does not know, the pod."""
        return "the recording" if self.is_replay else "the service"


def is_open(pod: ExplainedPod) -> bool:
    """Tell whether the service has an open eviction of the pod, by its newest decision; or may have, without one."""
    return not pod.decisions or pod.decisions[-1].record.decision not in _ENDS


def problem_of(asked: str, answer: ExplainAnswer) -> tuple[str, str]:
    """Say that no pod, or more than one, is meant, and what to do."""
    explanation = answer.explanation
    if explanation.answer is PodAnswer.SEVERAL:
        left_out = len(explanation.alike) - _MOST_NAMED
        more = f" and {left_out} more (-o json lists all)" if left_out > 0 else ""
        named = ", ".join(explanation.alike[:_MOST_NAMED])
        return f"pods in {len(explanation.alike)} namespaces are named {asked}", f"name one of {named}{more}"
    hint = "give NAMESPACE/NAME, or the UID"
    if explanation.alike:
        hint = f"did you mean {' or '.join(explanation.alike[:_MOST_NAMED])}?"
    elif answer.is_replay:
        hint += "; a recording has only pods that it lists or that change in it"
    else:
        hint += "; the service does not keep unbound pods, or pods that were deleted before a decision"
    where = "" if answer.cluster is None else f" of {answer.cluster}"
    return f"{answer.place} has no pod {asked}{where}", hint


def print_explanation(answer: ExplainAnswer) -> None:
    """Print a table for each pod."""
    for what, count in answer.assumed:
        say(f"{what}: {count}")
    if answer.is_replay:
        say(_sources(answer))
    for number, pod in enumerate(answer.explanation.pods):
        if number:
            say()
        where = f"on {pod.node}" if pod.node else "not bound to a node"
        say_title(f"{pod.address} ({pod.uid}) {where} of {pod.cluster}")
        _print_pod(pod, answer)


def _sources(answer: ExplainAnswer) -> str:
    """Say where the lines come from."""
    if answer.recorded_us is not None:
        first, last = map(instant_text, answer.recorded_us)
        return f"The recording has the decisions of the service from {first} to {last}."
    results = (
        "The replay assumes that each eviction succeeds and its pod is gone a second later."
        if answer.is_played
        else "Results of executors are taken from the recording."
    )
    return f"The recording has no decisions; a replay shows what the service would have decided. {results}"


def _print_pod(pod: ExplainedPod, answer: ExplainAnswer) -> None:
    recorded = pod.decisions_of(Teller.RECORDED)
    replayed = pod.decisions_of(Teller.REPLAY, Teller.PLAYED)
    otherwise = differing(recorded, replayed) if recorded else replayed
    if not pod.decisions:
        if pod.held is None:
            say(f"The service decided nothing about it{_how_far(answer)}.")
        _print_cases(pod.cases)
        _print_hold(pod)
        return
    if answer.recorded and not recorded:
        say("None of these decisions is about it. A replay decides:")
    left_out = ((one.at, StoryLine(one.at, one.teller, one.why.text)) for one in pod.left_out)
    told = [*_placed(story(recorded)), *_placed(_lines_of(replayed, otherwise)), *left_out]
    lines = [line for _, line in sorted(told, key=lambda placed: placed[0])]
    print_table(["when", "from", "what"], [[line.at, line.teller, line.text] for line in lines])
    _print_hold(pod)
    if recorded and not answer.is_replay and is_open(pod):
        say(f"It is pending: `evictstream describe pod {pod.address} --cluster {pod.cluster}` shows what it waits for.")
    if recorded and answer.is_replay:
        say(
            "All other decisions of a replay are the same within a second."
            if otherwise
            else "A replay decides the same within a second."
        )


def _print_hold(pod: ExplainedPod) -> None:
    if pod.held is not None:
        say(hold_text(pod.held))


def _placed(told: Iterable[StoryLine]) -> Iterator[tuple[str, StoryLine]]:
    """Pair lines with the instant that sorts them: none stands before what was decided earlier.

    A pod may end before the `Evict` that its end answers, as where the built-in controller is quicker.
    """
    latest = ""
    for line in told:
        latest = max(latest, line.at)
        yield latest, line


def _how_far(answer: ExplainAnswer) -> str:
    """Say what was looked at where nothing was found."""
    if not answer.is_replay:
        return ", as far as the decisions topic reaches back"
    return ", and neither does a replay" if answer.recorded else ""


def _lines_of(whole: list[SourcedDecision], chosen: list[SourcedDecision]) -> Iterator[StoryLine]:
    """Tell some decisions of a story, which is told as a whole."""
    wanted = {id(one) for one in chosen}
    for one, line in zip(whole, story(whole), strict=True):
        if id(one) in wanted:
            yield line


def _print_cases(cases: list[CaseLine]) -> None:
    shown = cases[-MOST_CASES_SHOWN:]
    if shown:
        print_table(["when", "from", "what"], [[one.at, one.teller, one.why.text] for one in shown])
    if len(cases) > len(shown):
        say(f"{len(cases) - len(shown):,} earlier lines are omitted; -o json has all")


def print_explanation_json(asked: str, answer: ExplainAnswer) -> None:
    """Print one object: the answer, the pods, and all decisions."""
    explanation = answer.explanation
    first, last = (None, None) if answer.recorded_us is None else map(instant_text, answer.recorded_us)
    head: dict[str, object] = {
        "pod": asked,
        "answer": explanation.answer,
        "alike": explanation.alike,
        "recorded": {"decisions": answer.recorded, "firstAt": first, "lastAt": last},
        "results": ("played" if answer.is_played else "recorded") if answer.is_replay else None,
        "pods": [_pod_json(pod) for pod in explanation.pods],
    }
    items = (item for pod in explanation.pods for item in _decisions_json(pod))
    print_long_json(head | answer.summary, "decisions", items)


def _pod_json(pod: ExplainedPod) -> dict[str, object]:
    return {
        "cluster": pod.cluster,
        "namespace": pod.namespace,
        "pod": pod.name,
        "podUid": pod.uid,
        "node": pod.node or None,
        "cases": [_case_json(one) for one in pod.cases],
        "leftOut": [_case_json(one) for one in pod.left_out],
        "held": None if pod.held is None else _hold_json(pod.held),
    }


def _hold_json(hold: StandingHold) -> dict[str, object]:
    until = None if hold.until_us is None else instant_text(hold.until_us)
    built_in = None if hold.built_in_us is None else instant_text(hold.built_in_us)
    due_since = instant_text(hold.due_us)
    return {"by": hold.by, "dueSince": due_since, "until": until, "builtInAt": built_in, "text": hold_text(hold)}


def _case_json(one: CaseLine) -> dict[str, object]:
    return {"at": one.at, "from": one.teller, "case": one.why.case, "text": one.why.text}


def _decisions_json(pod: ExplainedPod) -> Iterator[dict[str, object]]:
    for decision, line in zip(pod.decisions, story(pod.decisions), strict=True):
        yield {
            "from": decision.teller,
            "cameAt": instant_text(decision.came_us),
            "text": line.text,
            "decision": msgspec.to_builtins(decision.record),
        }

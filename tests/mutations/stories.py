"""Mutations of what is told: each would tell people something that no record says."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

STORY = "tests/kit/replay/test_story.py"
TRUE = "tests/kit/replay/test_story_is_true.py"
EXPLAINED = "tests/kit/replay/test_explanation.py"
HEARD = "tests/streams/worker/test_heard_at.py"

OF_STORIES = (
    Mutation(
        "tell that a gate held what was decided late",
        (Change(product.STORY, "_late", "earlier.came_us - owed_us < ON_TIME_US", "True"),),
        (
            f"{STORY}::test_what_was_decided_late_was_not_held",
            f"{TRUE}::test_every_sentence_of_a_replay_agrees_with_its_records",
        ),
    ),
    Mutation(
        "call what was known late late since its deadline",
        (Change(product.STORY, "_late", "instant_us(it.known_at or it.deadline)", "instant_us(it.deadline)"),),
        (f"{TRUE}::test_every_sentence_of_a_replay_agrees_with_its_records",),
    ),
    Mutation(
        "tell what is played like what a replay decides",
        (Change(product.VIRTUAL_PARTITION, "VirtualPartition._flush", "is_played = True", "is_played = False"),),
        (f"{EXPLAINED}::test_what_follows_from_a_played_executor_is_called_played",),
    ),
    Mutation(
        "tell of one pod where several have the name",
        (Change(product.EXPLANATION, "Explainer.explanation", "len(names) > 1", "False"),),
        (f"{EXPLAINED}::test_a_name_in_several_namespaces_lists_them",),
    ),
    Mutation(
        "say that a repeat rests on what was heard on either topic",
        (Change(product.CLUSTER, "ClusterState.heard_at_us", "min(...)", "max($0, self.nodes_heartbeat_at_us)"),),
        (f"{HEARD}::test_the_topic_that_was_heard_last_does_not_count",),
    ),
)

"""Mutations of what brakes do before a worker issues, and of how it knows them."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import GATES, Mutation
from tests.mutations.matching import Change
from tests.mutations.torture import TORTURE

STEPS = "tests/models/eviction/test_held_attempts.py"
HELD = "tests/streams/partition/test_held.py"
BRAKES = "tests/models/steering/test_brakes.py"
EXECUTING = "tests/models/eviction/test_executing.py"
WRITING = "tests/streams/cli/test_brake_writing.py"
ROWS = "tests/models/messages/test_older_readers.py"

OF_BRAKES = (
    Mutation(
        "ignore the brakes after a takeover",
        (
            Change(
                product.HELD,
                "HeldEvictions.__init__",
                "self._read_brakes = read_brakes",
                "first = read_brakes()\n"
                "self._read_brakes = lambda: NO_BRAKES if read_brakes() is first else read_brakes()",
            ),
        ),
        (HELD, TORTURE),
    ),
    Mutation(
        "let a repeat through a brake",
        (Change(product.POD_STEPS, "_hold", "longest_hold(...)", "(None if eviction.attempt else $0)"),),
        (STEPS, TORTURE),
    ),
    Mutation(
        "let all go when a brake ends",
        (Change(product.STEERING_BRAKES, "StandingBrake.until_us", "end_us + ...", "end_us"),),
        (HELD, STEPS, TORTURE),
    ),
    Mutation(
        "count brakes that are over for the limit",
        (Change(product.STEERING_BRAKES, "Brakes.with_record", "one.is_over(appended_us)", "False"),),
        (BRAKES,),
    ),
    Mutation(
        "ask for no time of Kafka",
        (Change(product.STEERING_RECORDS, "SteeringWriter.now_us", "least_us is None", "False"),),
        (WRITING,),
    ),
    Mutation(
        "leave one brake too many where it is",
        (Change(product.BRAKES_WRITER, "BrakesWriter.write", "self.remove(brake.id)", "None"),),
        (f"{WRITING}::test_one_brake_too_many_by_a_race_is_taken_back",),
    ),
    Mutation(
        "overwrite a release that comes while a brake is written",
        (Change(product.BRAKE_WRITING, "set_brake", "found is not None", "False"),),
        (f"{WRITING}::test_a_release_between_the_two_writes_stays",),
    ),
    Mutation(
        "let the second of two brakes of one name stand",
        (Change(product.BRAKE_WRITING, "set_brake", "_holds_otherwise(earlier, brake)", "False"),),
        (f"{WRITING}::test_of_two_brakes_of_one_name_the_first_stands",),
    ),
    Mutation(
        "look at what is held no more when its brake has changed",
        (Change(product.HELD, "HeldEvictions.begin_turn", "holder_of(held[1]) in changed", "False"),),
        (HELD,),
    ),
    Mutation(
        "leave held by a brake what has another reason by now",
        (Change(product.HELD, "HeldEvictions.look_again", "(key, uid) in places", "False"),),
        (HELD,),
    ),
    Mutation(
        "fire with brakes that were read before the takeover",
        (Change(product.GATES, "Gates._not_since_takeover", "read_at < writer.ends_asked_at", "False"),),
        (GATES,),
    ),
    Mutation(
        "fire without knowing the brakes",
        (Change(product.GATES, "Gates.closed", "view.objection()", "None"),),
        (GATES,),
    ),
    Mutation(
        "give up what an executor holds after a while",
        (Change(product.RESULT_STEPS, "apply_result", "reported is _ACCEPTED", "True"),),
        (EXECUTING,),
    ),
    Mutation(
        "forget after a restart that an executor holds it",
        (Change(product.POD_ROWS, "eviction_value", "held_by=eviction.held_by", "held_by=None"),),
        (STEPS, ROWS),
    ),
    Mutation(
        "write a row of what is held that older workers cannot read",
        (Change(product.POD_ROWS, "eviction_value", "written_outcome(eviction.outcome)", "eviction.outcome"),),
        (ROWS,),
    ),
)

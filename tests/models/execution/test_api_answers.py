"""What an answer means, as a table: by who gave it, and about whom it speaks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.execution.api_answers import OVERLOADED, Meaning, OtherObjects, Trouble, read_api_answer

POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}
NODE = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"}}
OF_A = {"name": "a", "kind": "pods"}
DENIED = 'admission webhook "guard.example.com" denied the request: no'
PAGE = "<html>no backend</html>"


def status(reason: str = "", message: str = "", **details: Any) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "reason": reason, "message": message, "details": details}


ANSWERS: list[tuple[str, int, Any, Meaning]] = [
    ("a pod", 200, POD, Meaning.DONE),
    ("a pod that will be deleted", 202, POD, Meaning.DONE),
    ("an eviction", 201, {"kind": "Status", "apiVersion": "v1", "status": "Success"}, Meaning.DONE),
    ("another pod", 200, POD | {"metadata": {"name": "b"}}, Meaning.DOUBTFUL),
    ("a node", 200, NODE, Meaning.DOUBTFUL),
    ("a pod of another group", 200, POD | {"apiVersion": "v2"}, Meaning.DOUBTFUL),
    ("a page with 200", 200, PAGE, Meaning.DOUBTFUL),
    ("nothing with 200", 200, "", Meaning.DOUBTFUL),
    ("a failure with 200", 200, status("NotFound", **OF_A), Meaning.DOUBTFUL),
    ("no such pod", 404, status("NotFound", **OF_A), Meaning.GONE),
    ("no such node", 404, status("NotFound", name="a", kind="nodes"), Meaning.DOUBTFUL),
    ("no such other pod", 404, status("NotFound", name="b", kind="pods"), Meaning.DOUBTFUL),
    ("no such path", 404, status("NotFound", "the server could not find the requested resource"), Meaning.DOUBTFUL),
    ("a page with 404", 404, PAGE, Meaning.DOUBTFUL),
    ("JSON of a proxy", 404, {"type": "error", "status": 404, "code": "NotFound"}, Meaning.DOUBTFUL),
    ("a pod with 404", 404, POD, Meaning.DOUBTFUL),
    ("a conflict", 409, status("Conflict", **OF_A), Meaning.CHANGED),
    ("a page with 409", 409, PAGE, Meaning.DOUBTFUL),
    ("a right that is missing", 403, status("Forbidden", **OF_A), Meaning.REFUSED),
    ("a page with 403", 403, PAGE, Meaning.DOUBTFUL),
    ("unknown sender", 401, status("Unauthorized", "Unauthorized"), Meaning.CREDENTIALS),
    ("a policy with 401", 401, status("Unauthorized", **OF_A), Meaning.REFUSED),
    ("a page with 401", 401, PAGE, Meaning.DOUBTFUL),
    ("a budget", 429, status("TooManyRequests", causes=[{"reason": "DisruptionBudget"}]), Meaning.BUDGET),
    ("a store that begins", 429, status("TooManyRequests", retryAfterSeconds=1), Meaning.CLUSTER_WAITS),
    ("429 without a time", 429, status("TooManyRequests"), Meaning.DOUBTFUL),
    ("429 about the pod", 429, status("TooManyRequests", **OF_A), Meaning.OBJECT_WAITS),
    ("a page with 429", 429, PAGE, Meaning.DOUBTFUL),
    ("priority and fairness", 429, OVERLOADED.decode() + "\n", Meaning.CLUSTER_WAITS),
    ("a webhook that failed", 500, status("InternalError", "failed calling webhook"), Meaning.OBJECT_WAITS),
    ("a server that stops", 503, status("ServiceUnavailable"), Meaning.DOUBTFUL),
    ("a budget in conflict", 504, status("Timeout", **OF_A), Meaning.OBJECT_WAITS),
    ("a page with 502", 502, PAGE, Meaning.DOUBTFUL),
    ("a body that is wrong", 422, status("Invalid", **OF_A), Meaning.FAILED),
    ("a redirect", 307, "", Meaning.DOUBTFUL),
    *[
        (f"a webhook with {code}", code, status("x", DENIED), Meaning.OBJECT_WAITS)
        for code in (401, 404, 409, 429, 503)
    ],
    *[(f"a webhook with {code}", code, status("x", DENIED), Meaning.REFUSED) for code in (400, 403, 422)],
]


@pytest.mark.parametrize(("code", "body", "meaning"), [pytest.param(*row[1:], id=row[0]) for row in ANSWERS])
def test_an_answer_counts_by_who_gave_it(code: int, body: Any, meaning: Meaning) -> None:
    text = (body if isinstance(body, str) else json.dumps(body)).encode()
    found = read_api_answer(code, text, plural="pods", name="a", has_retry_after=body == f"{OVERLOADED.decode()}\n")
    assert found.meaning is meaning
    assert found.meaning is Meaning.DONE or str(code) in found.text or code == 200


UNUSABLE = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"


BY_WHY = {
    "pdb disruptions allowed is negative": "pdb disruptions allowed is negative",
    UNUSABLE: "too many pending evictions not confirmed by PDB controller",
}


def forbidden_by_budget(why: str, *, has_cause: bool = True, message: str = "") -> bytes:
    """Write the answer of the Eviction API about a budget whose status cannot be used: 1.37 adds the cause."""
    cause = {
        "reason": "DisruptionBudget",
        "message": f"The disruption budget web does not allow evicting pods currently: {BY_WHY[why]}",
    }
    answer = status(
        "Forbidden",
        message or f'poddisruptionbudget.policy "web" is forbidden: {why}',
        name="web",
        group="policy",
        kind="poddisruptionbudget",
        **({"causes": [cause]} if has_cause else {}),
    )
    return json.dumps(answer | {"metadata": {}, "status": "Failure", "code": 403}).encode()


@pytest.mark.parametrize("why", BY_WHY)
def test_a_budget_that_is_unusable_now_only_delays(why: str) -> None:
    found = read_api_answer(403, forbidden_by_budget(why), plural="pods", name="a")
    assert found.meaning is Meaning.BUDGET
    assert why in found.text
    before = read_api_answer(403, forbidden_by_budget(why, has_cause=False), plural="pods", name="a")
    assert before.meaning is Meaning.REFUSED
    of_webhook = read_api_answer(403, forbidden_by_budget(why, message=DENIED), plural="pods", name="a")
    assert of_webhook.meaning is Meaning.REFUSED


def test_a_node_is_gone_only_as_a_node() -> None:
    gone = status("NotFound", name="a", kind="nodes")
    assert read_api_answer(404, json.dumps(gone).encode(), plural="nodes", name="a").meaning is Meaning.GONE
    assert read_api_answer(200, json.dumps(NODE).encode(), plural="nodes", name="a").meaning is Meaning.DONE


@given(st.integers(100, 999), st.binary() | st.sampled_from([json.dumps(row[2]).encode() for row in ANSWERS]))
def test_no_answer_raises_an_error(code: int, body: bytes) -> None:
    found = read_api_answer(code, body, plural="pods", name="a")
    assert found.meaning is not Meaning.GONE or code == 404
    assert found.meaning is not Meaning.DONE or code in range(200, 300)


def test_trouble_is_an_objects_own_once_others_are_answered() -> None:
    others = OtherObjects()
    others.note_answer("b", 1)
    assert others.trouble("a", 2) is Trouble.PERHAPS_OF_CLUSTER  # what was answered before says nothing of now
    others.note_answer("a", 3)  # of another request about the same object
    assert others.trouble("a", 4) is Trouble.PERHAPS_OF_CLUSTER
    others.note_answer("b", 5)
    assert others.trouble("a", 6) is Trouble.OF_OBJECT
    others.forget("a")
    assert others.trouble("a", 17) is Trouble.PERHAPS_OF_CLUSTER
    assert others.trouble("a", 27) is Trouble.PROBABLY_OF_CLUSTER
    others.forget("a")
    assert others.trouble("a", 27) is Trouble.PERHAPS_OF_CLUSTER


def test_trouble_of_two_objects_is_the_clusters() -> None:
    others = OtherObjects()
    assert others.trouble("a", 1) is Trouble.PERHAPS_OF_CLUSTER
    assert others.trouble("b", 2) is Trouble.OF_CLUSTER
    assert others.trouble("a", 3) is Trouble.OF_CLUSTER
    assert others.trouble("c", 100) is Trouble.PERHAPS_OF_CLUSTER  # of the others nothing was heard for long

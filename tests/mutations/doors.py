"""Mutations of what strangers reach: the health port, files and names of others, Kafka's rights, what is fetched."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

JARS = "tests/streams/broker/test_jars.py"
SETTINGS = "tests/streams/test_settings.py"
ENDPOINT = "tests/streams/health/test_endpoint.py"

OF_DOORS = (
    Mutation(
        "let slow clients of the health port keep their places",
        (Change(product.ENDPOINT, "Endpoint._make_room", "[*self._unfinished, *self._open][:1]", "[]"),),
        (f"{ENDPOINT}::test_hundreds_of_slow_clients_hold_up_no_probe",),
    ),
    Mutation(
        "wait for a request as long as bytes come",
        (
            Change(
                product.ENDPOINT,
                "Endpoint._talk",
                "async with asyncio.timeout(REQUEST_SECONDS):\n    path = await _path(loop, connection)",
                "path = await _path(loop, connection)",
            ),
        ),
        (f"{ENDPOINT}::test_a_request_byte_by_byte_is_closed_in_time",),
    ),
    Mutation(
        "work out an answer for each client of the health port",
        (Change(product.ENDPOINT, "_Shared.get", "self._underway is None or self._underway.done()", "True"),),
        (f"{ENDPOINT}::test_one_answer_serves_all_that_wait_for_it",),
    ),
    Mutation(
        "take settings that a user may not see for settings that Kafka does not know",
        (Change(product.TOPICS, "_described", "partitions.get(name) and not configs.get(name)", "False"),),
        ("tests/streams/broker/test_admin.py::test_settings_that_a_user_may_not_see_are_a_refusal",),
    ),
    Mutation(
        "trust another list of authorities than the system",
        (Change(product.JARS, "trusting_as_the_system", "truststore.inject_into_ssl()", "pass"),),
        (f"{JARS}::test_an_authority_of_the_system_alone_is_trusted",),
    ),
    Mutation(
        "take the address of a service for a setting",
        (Change(product.LOADING_OF_SETTINGS, "_from_environment", "_SERVICE_ADDRESS.fullmatch(str(value))", "False"),),
        (SETTINGS,),
    ),
)

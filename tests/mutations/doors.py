"""Mutations of what strangers reach: the health port, files and names of others, Kafka's rights, what is fetched."""

from __future__ import annotations

from tests.mutations import product
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

PRINTING = "tests/streams/test_printing.py"
FOLDER = "tests/kit/recordings/test_recording_folder.py"
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
                "async with asyncio.timeout(_REQUEST_SECONDS):\n    request = await _request(loop, connection)",
                "request = await _request(loop, connection)",
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
        (Change(product.TOPICS, "_described", "not configs.get(name)", "False"),),
        ("tests/streams/broker/test_admin.py::test_settings_that_a_user_may_not_see_are_a_refusal",),
    ),
    Mutation(
        "wait for a Kafka that the settings do not fit",
        (Change(product.OBSTACLES, "Obstacle.may_pass", "self.cause not in _LASTING", "True"),),
        ("tests/streams/broker/test_first_contact.py::test_only_what_may_pass_is_waited_for",),
    ),
    Mutation(
        "wait for topics beside one that does not fit",
        (Change(product.MISSING_TOPICS, "MissingTopics.may_come", 'one.what != "topic"', "False"),),
        ("tests/streams/broker/test_missing_topics.py::test_only_what_is_missing_is_waited_for",),
    ),
    Mutation(
        "begin without the rights that the work needs",
        (Change(product.TOPICS, "_refuse_forbidden", "name in rights and operation not in rights[name]", "False"),),
        ("tests/streams/broker/test_admin.py::test_a_report_names_topics_without_the_right",),
    ),
    Mutation(
        "write a line for each eviction of a storm",
        (Change(product.DEED_LOG, "DeedLog.takes", "self._seen[event] <= self._limit", "True"),),
        ("tests/streams/test_deed_log.py::test_a_storm_is_some_lines_and_one_with_counts",),
    ),
    Mutation(
        "log a closed gate at each look",
        (Change(product.GATE_LINES, "GateLines.look", "was is not None and was[0] is gate", "False"),),
        ("tests/streams/worker/test_gate_lines.py::test_an_outage_is_a_line_at_each_end",),
    ),
    Mutation(
        "trust another list of authorities than the system",
        (Change(product.JARS, "trusting_as_the_system", "truststore.inject_into_ssl()", "pass"),),
        (f"{JARS}::test_an_authority_of_the_system_alone_is_trusted",),
    ),
    Mutation(
        "print what steers a terminal, on a console of rich",
        (Change(product.CONSOLES, "PrintableConsole.render", "segment.control", "True"),),
        (f"{PRINTING}::test_a_live_view_keeps_its_own_sequences_only",),
    ),
    Mutation(
        "print what steers a terminal, everywhere else",
        (Change(product.PRINTING, "printable", "text.isprintable()", "True"),),
        (f"{PRINTING}::test_no_mark_gets_through",),
    ),
    Mutation(
        "log names to a console as they come",
        (Change(product.LOGS, "printable_values", "isinstance(value, str)", "False"),),
        ("tests/streams/test_logs.py::test_no_name_steers_the_terminal_of_a_console",),
    ),
    Mutation(
        "log records of libraries at debug",
        (Change(product.LOGS, "configure_logging", "max(logging.getLogger(name).level, logging.INFO)", "level"),),
        ("tests/streams/test_logs.py::test_libraries_quote_no_record_at_any_level",),
    ),
    Mutation(
        "show the login of an address",
        (Change(product.SECRETS, "Hider.hide", "'://' in text", "False"),),
        ("tests/streams/test_secrets.py::test_no_login_of_an_address_is_shown",),
    ),
    Mutation(
        "read whatever a manifest names",
        (Change(product.RECORDING_FOLDER, "_names", "match is None or ...", "False"),),
        (f"{FOLDER}::test_a_manifest_names_only_files_of_its_folder",),
    ),
    Mutation(
        "read through a link",
        (
            Change(product.PLAIN_FILES, "open_plain", "path.is_symlink()", "False"),
            Change(product.PLAIN_FILES, "open_plain", "... | os.O_NOFOLLOW", "os.O_RDONLY"),
        ),
        (f"{FOLDER}::test_a_manifest_that_is_a_link_is_refused",),
    ),
    Mutation(
        "take the address of a service for a setting",
        (Change(product.LOADING_OF_SETTINGS, "_from_environment", "_SERVICE_ADDRESS.fullmatch(str(value))", "False"),),
        (SETTINGS,),
    ),
)

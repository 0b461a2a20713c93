"""Every option that a help text, an error or a page names is one of the command that it is said of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evictstream.streams.errors import CredentialsError
from tests.deploy.pages import ROOT
from tests.docs.shell_blocks import PAGES as ALL_PAGES
from tests.streams.cli.command_tree import commands, options_of
from tests.streams.cli.named_options import NamedOption, named_options

OPTIONS = {" ".join(words): options_of(command) for words, command in commands()}
GLOBAL = OPTIONS[""] | {"--help", "-h"}
OWN = [
    (command.callback.__module__.removeprefix("evictstream.").replace(".", "/") + ".py", " ".join(words))
    for words, command in commands()
    if command.callback is not None
]
"""The file of each command; one file may have several."""

FOREIGN = {
    "kubectl": {"--all", "--output-watch-events", "--validate", "--watch"},
    "kube-apiserver": {
        "--default-not-ready-toleration-seconds",
        "--default-unreachable-toleration-seconds",
        "--feature-gates",
        "--max-mutating-requests-inflight",
        "--min-request-timeout",
        "--runtime-config",
    },
    "kube-controller-manager": {
        "--controllers",
        "--kube-api-burst",
        "--kube-api-qps",
        "--large-cluster-size-threshold",
        "--node-eviction-rate",
        "--node-monitor-grace-period",
        "--node-monitor-period",
        "--node-startup-grace-period",
        "--secondary-node-eviction-rate",
        "--unhealthy-zone-threshold",
    },
    "java": {"--enable-native-access", "--sun-misc-unsafe-memory-access"},
    "kafka-storage.sh": {"--cluster-id", "--config", "--feature"},
    "tests.bench and tests.specs": {"--only", "--quick", "--trace", "--write"},
    "an executor of one's own": {"--workers"},
}
OTHERS = frozenset().union(*FOREIGN.values())

READERS = {"explain", "policy test", "replay", "what-if"}
SAID_OF = {
    "kit/rules/kubectl": {"rules taint"},
    "kit/what_if/change.py": {"rules taint"},
    "kit/cli/policy_revisions.py": {"policy apply"},
    "kit/cli/tried_policies.py": {"explain", "replay", "what-if"},
    "kit/cli/incident_table.py": {"incidents approve", "incidents reject"},
    "streams/cli/steering_records.py": {
        "incidents approve",
        "incidents reject",
        "hold",
        "release",
        "policy apply",
        "policy delete",
    },
    "streams/cli/brake_writing.py": {"hold"},
    "streams/cli/confirmation.py": {"accept-gap", "cluster forget"},
    "kit/cli/incomplete.py": {*READERS, "import"},
    "kit/cli/manager_flags.py": {"what-if"},
    "kit/cli/descriptions.py": {"explain"},
    "kit/cli/explain_output.py": {"describe pod"},
    "streams/cli/lists.py": {"get clusters", "get dead-letters", "get evictions", "get nodes"},
    "streams/cli/failures.py": {name for name, options in OPTIONS.items() if "--output" in options},
    "streams/cli/output.py": {name for name, options in OPTIONS.items() if "--output" in options},
    "kit/cli/replay_input.py": {"replay"},
    "kit/cli/rules/checked_objects.py": {"rules tolerations", "rules verdict"},
    "kit/cli/rules/problems.py": {"rules tolerations", "rules verdict"},
    "kit/cli/rules/selection.py": {"rules verdict"},
    "streams/cli/topic_times.py --from": {"commands"},
    "streams/cli/topic_times.py": {"record", "replay"},
    "kit/cli/what_if_tables.py": {"what-if"},
    "kit/demo": {"demo"},
    "streams/errors/kubernetes.py": {"execute", "feed"},
    "streams/executor": {"execute"},
    "streams/feed": {"feed"},
    "streams/feed/cluster_names.py": {"execute", "feed"},
    "kit/recordings/importer.py": {"import"},
    "kit/recordings/assumed_times.py": READERS,
    "kit/replay/edited_records.py": {"replay", "what-if"},
    "kit/replay/sources.py": READERS,
    "streams/settings": {""},
}
"""Of which commands a text outside a command's own file is said: it has to be true of all of them."""

STYLES = {"kit/report/page.py"}
"""CSS names variables like options."""

PAGES = {
    "conformance.md": {"conformance executor", "conformance feed"},
    "executor.md": {"execute"},
    "feed.md": {"feed"},
    "replay.md": {*READERS, "import", "record"},
    "what-if.md": {"replay", "what-if"},
}
"""The pages that are about some commands. On others an option that stands alone has to be one of any command."""


NAMES_SOME = re.compile(r"(?<![\w-])--[a-zA-Z]|\bevictstream\s")
"""What a file has that names an option: to parse each file would take a second."""


def _texts(file: Path) -> Iterator[tuple[int, str]]:
    text = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if NAMES_SOME.search(text) else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def _said_of(name: str, option: str) -> set[str] | None:
    if own := {command for file, command in OWN if file == name}:
        return {command for command in own if option in OPTIONS[command]} or own  # a file may have several commands
    places = [f"{name} {option}", name, *map(str, Path(name).parents)]
    return next((SAID_OF[place] for place in places if place in SAID_OF), None)


def _wrong(found: NamedOption, said_of: set[str] | None) -> str | None:
    if found.command is not None:
        is_there = found.option in OPTIONS.get(found.command, ()) or found.option in GLOBAL
        return None if is_there else f"{found.option} of {found.command or 'evictstream'}"
    if found.option in GLOBAL | OTHERS:
        return None
    if said_of is None:
        return f"{found.option}: say in SAID_OF of which commands"
    missing = sorted(name for name in said_of if found.option not in OPTIONS[name])
    return f"{found.option} of {', '.join(missing)}" if missing else None


def test_every_option_in_a_text_of_the_program_exists() -> None:
    wrong = []
    for room in ("kit", "models", "streams"):
        for file in sorted((ROOT / room).rglob("*.py")):
            name = str(file.relative_to(ROOT))
            if name in STYLES:
                continue
            for line, text in _texts(file):
                problems = (_wrong(found, _said_of(name, found.option)) for found in named_options(text, OPTIONS))
                wrong += [f"{name}:{line}: {problem}" for problem in problems if problem]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", [page for page in ALL_PAGES if not page.startswith(("CHANGELOG", "docs/decisions"))])
def test_every_option_on_a_page_exists(page: str) -> None:
    of_page = PAGES.get(Path(page).name, set(OPTIONS))
    wrong = []
    for found in named_options((ROOT / page).read_text(encoding="utf-8"), OPTIONS):
        if found.command is not None:
            wrong.append(_wrong(found, None))
        elif found.option not in GLOBAL | OTHERS | frozenset().union(*(OPTIONS[name] for name in of_page)):
            wrong.append(f"{found.option} of {', '.join(sorted(of_page))}")
    assert [problem for problem in wrong if problem] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("`evictstream feed --context x`", [NamedOption("--context", "feed")]),
        ("kubectl: `kubectl get -A --watch | evictstream import --pace fast -`", [NamedOption("--pace", "import")]),
        ("of `evictstream record\n    --outputs`", [NamedOption("--outputs", "record")]),
        ("name it with --cluster", [NamedOption("--cluster", None)]),
        ("give `--at`", [NamedOption("--at", None)]),
        (
            "```sh\nevictstream -b x topics check --yes\n```",
            [NamedOption("-b", ""), NamedOption("--yes", "topics check")],
        ),
        ("`evictstream conformance feed -- ./own --workers 4`", []),
        ("`helm install evictstream chart --wait`", []),
        ("`kubectl -n evictstream exec w-0 -- evictstream get nodes --watch`", [NamedOption("--watch", "get nodes")]),
    ],
)
def test_what_a_text_names(text: str, said: list[NamedOption]) -> None:
    assert list(named_options(text, OPTIONS)) == said


def test_credentials_that_are_missing_name_what_can_be_typed() -> None:
    assert "--cluster NAME=CONTEXT" in str(CredentialsError("k", "r"))

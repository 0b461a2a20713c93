"""The page in a real browser, from a file and without a network: Debian's Chromium, driven by its own driver."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.report.fleet import outage, write_report

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--window-size=1600,1400",
)  # fmt: skip
PATIENCE_SECONDS = 30
EVIL = "<img src=x onerror=window.hacked=1></script><script>window.hacked=1</script>"
MANY_NODES, MANY_PODS = 1_000, 50
READY_SECONDS = 20
REACTS_SECONDS = 5
"""Of 50,000 evictions, with a processor that draws what a graphics card would: measured 4 and 0.6 s on a quiet one."""

ROWS = """
const rows = (root) => [...root.querySelectorAll(".slick-row"), ...[...root.querySelectorAll("*")].flatMap(
  (one) => one.shadowRoot ? rows(one.shadowRoot) : [])];
"""
"""Rows of the tables, which stand in shadow roots."""

pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="no chromium and chromedriver here: apt-get install chromium-driver"
    ),
    pytest.mark.slow,  # a browser, one for all: the file is in `IN_ONE_PROCESS` of tests/harness/scheduling.py
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver  # noqa: PLC0415 - here and below: half a second in each process

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "small.html"
    write_report(list(outage(nodes=6, pods=4)), page=path)
    return path


def opened(browser: Any, path: Path) -> Any:
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(path.as_uri())
    wait(browser, "return document.documentElement.dataset.ready === 'yes'")
    return browser


def at(browser: Any, path: Path) -> Any:
    """The page as it is, opened only if another one is: whoever changes it changes it back."""
    return browser if browser.current_url == path.as_uri() else opened(browser, path)


def wait(browser: Any, condition: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait  # noqa: PLC0415

    WebDriverWait(browser, PATIENCE_SECONDS, 0.05).until(lambda driver: driver.execute_script(condition))


def model(name: str) -> str:
    return f"Bokeh.documents[0].get_model_by_name('{name}')"


def shown(browser: Any) -> list[int]:
    found: list[int] = browser.execute_script(f"return [...{model('table')}.view.filter.indices]")
    return found


def test_it_loads_without_network_or_errors(browser: Any, small: Path) -> None:
    page = opened(browser, small)
    asked = [
        message["params"]["request"]["url"]
        for entry in page.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert page.find_elements("css selector", "#report *")
    assert "24" in page.find_element("css selector", ".counts").text


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        pytest.param("text", "p-3-", 4, id="a pod's name"),
        pytest.param("text", "N-5", 4, id="a node, in capitals"),
        pytest.param("zone", "z-1", 8, id="a zone"),
        pytest.param("outcome", "evicted", 24, id="an outcome"),
    ],
)
def test_a_filter_narrows_table_and_timeline(browser: Any, small: Path, name: str, value: str, expected: int) -> None:
    page = at(browser, small)
    assert len(shown(page)) == 24
    field = f"{model(name)}.{'value_input' if name == 'text' else 'value'}"
    before = page.execute_script(f"return {field}")
    page.execute_script(f"{field} = {json.dumps(value)}")
    assert len(shown(page)) == expected
    drawn = f"{model('timeline')}.renderers.filter((one) => one.view.filter === {model('table')}.view.filter)"
    assert page.execute_script(f"return {drawn}.length") >= 3
    page.execute_script(f"{field} = {json.dumps(before)}")


def test_a_chosen_row_tells_the_story_of_its_pod(browser: Any, small: Path) -> None:
    page = at(browser, small)
    wait(page, f"{ROWS} return rows(document).length > 3")
    cell = page.execute_script(f"{ROWS} return rows(document)[2]").find_elements("css selector", ".slick-cell")[1]
    name = cell.text
    cell.click()
    wait(page, "return document.querySelector('#story li') !== null")
    told = page.find_element("id", "story").text
    assert f"shop/{name}" in told
    assert "The eviction is issued, on time." in told


@pytest.mark.kit
def test_dark_and_light_are_switched(browser: Any, small: Path) -> None:
    page = opened(browser, small)
    grounds = []
    for _ in range(2):
        page.find_element("id", "theme").click()
        is_dark = page.execute_script("return document.documentElement.classList.contains('dark')")
        grounds.append((is_dark, page.execute_script(f"return {model('timeline')}.background_fill_color")))
    assert sorted(grounds) == [(False, "#ffffff"), (True, "#15181d")]


@pytest.mark.kit
@pytest.mark.parametrize("wants", ["dark", "light"])
def test_it_begins_as_the_reader_prefers(browser: Any, small: Path, wants: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": wants}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    page = opened(browser, small)
    assert page.execute_script("return document.documentElement.classList.contains('dark')") is (wants == "dark")


def test_names_are_never_markup(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "evil.html"
    write_report(list(outage(nodes=1, pods=2, name=EVIL, taint=EVIL)), page=path, title=EVIL)
    page = opened(browser, path)
    page.execute_script(f"{model('evictions')}.selected.indices = [0]")
    wait(page, "return document.querySelector('#story li') !== null")
    assert EVIL in page.find_element("id", "story").text
    assert EVIL in page.find_element("tag name", "h1").text
    time.sleep(0.5)  # what a handler would need to run
    assert page.execute_script("return window.hacked") is None
    assert page.execute_script("return document.querySelectorAll('img').length") == 0


@pytest.mark.kit
@pytest.mark.alone
def test_fifty_thousand_evictions_load_and_react(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "many.html"
    write_report(list(outage(nodes=MANY_NODES, pods=MANY_PODS)), page=path)
    assert path.stat().st_size < 25_000_000
    begin = time.monotonic()
    page = opened(browser, path)
    assert time.monotonic() - begin < READY_SECONDS
    assert len(shown(page)) == MANY_NODES * MANY_PODS
    begin = time.monotonic()
    page.execute_script(f"{model('zone')}.value = 'z-1'")
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert time.monotonic() - begin < REACTS_SECONDS
    assert len(shown(page)) == pytest.approx(MANY_NODES * MANY_PODS / 3, rel=0.01)

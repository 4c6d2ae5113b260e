"""What a person sees of a sweep in MLflow's pages: a real sweep, the real server, a real browser.

Screenshots go to $SPECEXP_SCREENSHOTS if that names a folder, else to pytest's.
"""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from test_tracking import with_package
from test_ui import free, until_it_answers

from specexp.tracking.wording import PALETTE

pytestmark = [pytest.mark.slow, pytest.mark.browser]

GAMMAS = (1, 2, 4, 8)
NAMES = [f"gamma={gamma}" for gamma in GAMMAS]
SWEEP = "python -m specexp -m gamma=1,2,4,8 steps=200"
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
PATIENCE = 30_000  # milliseconds, for a page on a busy machine
# What the plots on the page hold: a list for each plot, of its lines.
LINES = """() => [...document.querySelectorAll('.js-plotly-plot')].map(plot => (plot._fullData || []).map(line => ({
    name: line.name, mode: line.mode, color: line.line && line.line.color,
    x: Array.from(line.x || []), y: Array.from(line.y || []),
})))"""  # fullData: with the colours that Plotly took


class Shown(NamedTuple):
    """A sweep's folder, the places its command printed, the UI's address, the link its command printed."""

    folder: Path
    printed: dict[str, str]
    base: str
    told: str


@pytest.fixture(scope="module")
def shown(browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """A sweep of four cells, and `specexp ui` on it, ended as a person ends it."""
    where = tmp_path_factory.mktemp("browser")
    environment = with_package() | {"SPECEXP_OUTPUTS": str(where / "outputs")}
    environment.pop("MLFLOW_TRACKING_URI", None)
    words = [sys.executable, *SWEEP.split()[1:]]
    done = subprocess.run(words, env=environment, cwd=where, capture_output=True, text=True, timeout=300, check=True)
    printed = dict(re.findall(r"^(folder|charts|compare) +(\S+)$", done.stdout, re.MULTILINE))
    port = free()
    words = [sys.executable, "-m", "specexp", "ui", f"port={port}"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "bufsize": 0}
    server = subprocess.Popen(words, env=environment, cwd=where, start_new_session=True, **pipes)
    try:
        until_it_answers(server, port)
        told = server.stdout.readline().decode().removeprefix("MLflow: ").strip()
        yield Shown(where / printed["folder"], printed, f"http://127.0.0.1:{port}", told)
    finally:
        os.killpg(server.pid, signal.SIGINT)  # Ctrl-C
        rest = server.communicate(timeout=60)[0].decode()
    assert server.returncode == 0
    assert "Ctrl-C ends it" in rest
    assert f"here it is {port}" in rest
    assert "Traceback" not in rest


@pytest.fixture(scope="module")
def browser() -> Iterator:
    """Chromium as the system has it."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("the Python package playwright")
    if chromium is None:
        missing("chromium (Debian's package chromium)")
    with sync_playwright() as driver, driver.chromium.launch(executable_path=chromium, args=QUIET) as started:
        yield started


def missing(what: str) -> None:
    message = f"needs {what}"
    pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)


@pytest.fixture
def fresh(browser, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator:
    """A page of a person who has never been here, as wide as a laptop; what it showed last is kept as a picture."""
    with browser.new_context(viewport={"width": 1440, "height": 900}) as person:
        person.set_default_timeout(PATIENCE)
        page = person.new_page()
        yield page
        picture(page, tmp_path, request.node.name)


@pytest.fixture
def page(fresh, shown: Shown):
    """The same person after the two clicks that `specexp ui` speaks of."""
    settle(fresh, shown.base)
    return fresh


def picture(tab, folder: Path, name: str) -> None:
    kept = Path(os.environ.get("SPECEXP_SCREENSHOTS") or folder)
    kept.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=kept / f"{name}.png")


def see(page, *texts: str) -> None:
    """Waits until each of the texts is on the screen."""
    for text in texts:
        page.get_by_text(text, exact=True).filter(visible=True).first.wait_for()


def at(shown: Shown, link: str) -> str:
    """A link printed for port 5000, on the port of this test."""
    return link.replace("http://127.0.0.1:5000", shown.base)


def settle(page, base: str) -> None:
    """What the command says to click on once: the panel that takes a quarter of a first page, and the chat pages."""
    page.goto(base)
    panel = page.locator("[data-component-id='mlflow.assistant.chat_panel.close']")
    panel.click()
    panel.wait_for(state="detached")
    page.get_by_text("Model training", exact=True).first.click()
    see(page, "Model registry")  # in the list of pages on the left


def curve_of(folder: Path, name: str) -> dict[str, list[tuple[float, float]]]:
    """A curve of each cell, by its MLflow name: the points that curves.csv has first, and so best."""
    found = {}
    for cell in json.loads((folder / "sweep.json").read_text())["cells"]:
        gamma = json.loads((folder / cell / "run.json").read_text())["overrides"][0]
        with (folder / cell / "curves.csv").open() as file:
            rows = [row for row in csv.DictReader(file) if row["curve"] == name and row["kind"] == "expected"]
        found[gamma] = [(float(row["x"]), float(row["value"])) for row in rows]
    return found


def test_the_charts_of_the_sweep(shown: Shown, page) -> None:
    page.goto(at(shown, shown.printed["charts"]))
    see(page, *NAMES, "4 matching runs", "by_gamma", "by_position", "by_gamma/speedup")
    page.wait_for_function(f"(({LINES})()[0] || []).length > 0")
    speedups = [line for line in page.evaluate(LINES)[0] if line["mode"] == "lines+markers"]
    assert {line["name"]: line["color"] for line in speedups} == dict(zip(NAMES, PALETTE, strict=False))
    drawn = {line["name"]: list(zip(line["x"], line["y"], strict=True)) for line in speedups}
    assert drawn == curve_of(shown.folder, "by_gamma/speedup")
    assert [gamma for gamma, _ in drawn["gamma=4"]] == list(range(17))


def test_the_comparison_of_just_these_runs(shown: Shown, page) -> None:
    page.goto(at(shown, shown.printed["compare"]))
    see(page, "Comparing 4 Runs from 1 Experiment", "Parallel Coordinates Plot", "draft.sigma", *NAMES)
    page.get_by_role("switch").first.click()  # Parameters: Show diff only
    page.get_by_text("draft.sigma", exact=True).wait_for(state="detached")
    row = page.locator("tr", has=page.get_by_text("gamma", exact=True)).first
    assert row.inner_text().split() == ["gamma", *map(str, GAMMAS)]


def test_a_cell_says_what_it_was_and_how_to_have_it_again(shown: Shown, page) -> None:
    page.goto(at(shown, shown.printed["charts"]))
    page.get_by_role("link", name="gamma=4", exact=True).click()
    see(page, "target random, draft noise, rule token, cost milliseconds, γ = 4", "Show more")
    for text in ("python -m specexp gamma=4 steps=200", SWEEP):
        box = page.get_by_text(text, exact=True).bounding_box()
        assert box["y"] + box["height"] <= page.get_by_text("Show more", exact=True).bounding_box()["y"]


def test_a_cells_figure_is_on_its_page(shown: Shown, page) -> None:
    page.goto(at(shown, shown.printed["charts"]))
    page.get_by_role("link", name="gamma=4", exact=True).click()
    page.get_by_role("tab", name="Artifacts").click()
    page.get_by_text("notebook.png", exact=True).first.click()
    page.wait_for_function("() => [...document.images].some(image => image.naturalWidth > 600)")


def test_the_summary_holds_the_table(shown: Shown, page) -> None:
    page.goto(at(shown, shown.printed["charts"]))
    see(page, "4 matching runs")
    page.goto("about:blank")
    page.goto(shown.told)
    see(page, *NAMES, "5 matching runs")  # the filter of the link before is gone
    page.get_by_role("link", name="sweep gamma=1,2,4,8").click()
    page.get_by_text("Show more", exact=True).click()
    see(page, "gamma=1,2,4,8", SWEEP)
    rows = page.locator("table:has-text('tokens_per_step') tbody tr")
    cells = [[cell.inner_text().strip() for cell in row.locator("td").all()] for row in rows.all()]
    assert [row[:2] for row in cells] == [[str(gamma), "done"] for gamma in GAMMAS]
    assert all(re.fullmatch(r"\d\.\d+\s\[\d\.\d+,\s\d\.\d+\]", row[4]) for row in cells)


def test_the_links_show_the_charts_to_who_has_never_been_here(shown: Shown, fresh) -> None:
    fresh.goto(shown.told)
    see(fresh, *NAMES, "by_gamma")


def test_without_a_link_a_person_meets_pages_for_chat_traces(shown: Shown, fresh) -> None:
    """The control, and what the links are for: should MLflow mend this, they may become plainer."""
    fresh.goto(f"{shown.base}/#/experiments/1")
    see(fresh, "Evaluation runs", "Detect Issues in Your Traces")
    assert not fresh.get_by_text("gamma=4", exact=True).count()

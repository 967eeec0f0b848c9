"""A server for the page, a browser, and what the tests read from the page."""

import os
import shutil

import psutil
import pytest

from tests.page.serving import serve, wait_until
from workflow.explore import page_command

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
#: Seconds: to start, and for anything on the page to happen.
START, PATIENCE = 90, 30
CURVE = """
name => [...[...document.querySelectorAll(".js-plotly-plot")].flatMap(plot => plot.data)
    .find(curve => curve.name === name).y]
"""


@pytest.fixture(scope="session")
def saved_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="session")
def server(saved_folder):
    """The server of the page on this machine alone, and the link to it; each tab that was left ended its kernel."""
    with serve(page_command(browser=False), saved_folder) as (process, address, token):
        server = psutil.Process(process.pid)
        yield server, f"{address}?token={token}"
        wait_until(lambda: not server.children())


@pytest.fixture(scope="session")
def address(server):
    return server[1]


@pytest.fixture(scope="session")
def browser():
    """Chromium with a new, empty profile, driven by Playwright."""
    from playwright.sync_api import sync_playwright

    name = os.environ.get("CHROMIUM", "chromium")
    path = shutil.which(name) or pytest.fail(f"a browser is needed, found no {name!r}; set CHROMIUM=/path")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=1000 * START)


class Page:
    """The page as its user sees it."""

    def __init__(self, browser, address, scheme="light"):
        viewport = {"width": 1280, "height": 900}
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme, accept_downloads=True)
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(1000 * PATIENCE)
        self.errors, self.addresses = [], []
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("request", lambda request: self.addresses.append(request.url))
        self.tab.goto(address, wait_until="commit")
        self.tab.get_by_text("Starting a Python kernel").wait_for(timeout=1000 * START)
        self.tab.wait_for_selector(".scatterlayer .trace", timeout=1000 * START, state="attached")

    def leave(self):
        self.tab.close(run_before_unload=True)
        self.context.close()

    def wait_until(self, holds):
        wait_until(holds, PATIENCE, lambda seconds: self.tab.wait_for_timeout(1000 * seconds))

    def curve(self, name):
        """The heights of a plotted curve."""
        return self.tab.evaluate(CURVE, name)

    def control(self, label):
        return self.tab.get_by_label(label, exact=True).first

    def enter(self, label, value):
        self.control(label).fill(str(value))
        self.control(label).blur()

    def choose(self, label, option):
        self.control(label).select_option(label=option)

    def upload(self, content):
        with self.tab.expect_file_chooser() as chooser:
            self.tab.locator("button.widget-upload:visible").click()
        chooser.value.set_files({"name": "file.csv", "mimeType": "text/csv", "buffer": content})


@pytest.fixture(params=["light", "dark"])
def page(request, browser, address):
    page = Page(browser, address, request.param)
    page.scheme = request.param
    yield page
    page.leave()

"""A server for the page, a browser, and what the tests read from the page."""

import os
import shutil

import psutil
import pytest

from tests.page.serving import serve, wait_until
from workflow.serving.explore import page_command

#: Milliseconds until a browser, or a page with its kernel, has started.
START = 90_000
CURVE = """
name => [...[...document.querySelectorAll(".js-plotly-plot")].flatMap(plot => plot.data)
    .find(curve => curve.name === name).y]
"""


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """The link to a server of the page on this machine alone; each tab that was left has ended its
    kernel."""
    with serve(page_command(browser=False), tmp_path_factory.mktemp("server")) as (
        process,
        address,
        token,
    ):
        yield f"{address}?token={token}"
        wait_until(lambda: not psutil.Process(process.pid).children())


@pytest.fixture(scope="session")
def browser():
    """Chromium with a new, empty profile, driven by Playwright."""
    from playwright.sync_api import sync_playwright

    name = os.environ.get("CHROMIUM", "chromium")
    path = shutil.which(name) or pytest.fail(
        f"a browser is needed, found no {name!r}; set CHROMIUM=/path"
    )
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, timeout=START)


class Page:
    """The page as its user sees it."""

    def __init__(self, browser, address, scheme):
        self.tab = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
        self.scheme, self.errors, self.addresses = scheme, [], []
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("request", lambda request: self.addresses.append(request.url))
        self.tab.goto(address, wait_until="commit")
        self.tab.get_by_text("Starting a Python kernel").wait_for(timeout=START)
        self.tab.wait_for_selector(".scatterlayer .trace", timeout=START, state="attached")

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
        """Choose a file by the first button that is shown."""
        with self.tab.expect_file_chooser() as chooser:
            self.tab.locator("button.widget-upload:visible").first.click()
        chooser.value.set_files({"name": "file.csv", "mimeType": "text/csv", "buffer": content})


@pytest.fixture(params=["light", "dark"])
def page(request, browser, address):
    """A page of its own, whose tab is closed with what it does then, or is gone like that of a
    killed browser."""
    page = Page(browser, address, request.param)
    yield page
    page.tab.close(run_before_unload=request.param == "light")

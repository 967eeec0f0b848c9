"""A server for the page, a browser, and what the tests read from the page."""

import os
import shutil
from pathlib import Path

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
name => [...document.querySelectorAll(".tplr-panel")].map(panel => panel.numbers).find(drawn => name in drawn)[name][1]
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

    def __init__(self, browser, address, theme=None, system="light"):
        viewport = {"width": 1280, "height": 900}
        self.context = browser.new_context(viewport=viewport, color_scheme=system, accept_downloads=True)
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(1000 * PATIENCE)
        self.theme = theme or system
        self.errors, self.addresses = [], []
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        self.tab.on("request", lambda request: self.addresses.append(request.url))
        self.tab.goto(f"{address}&theme={theme}" if theme else address, wait_until="commit")
        # The labels and the optimal budgets follow the plots.
        late = ["[data-scheme^='smallest error']", ".tplr-releases .noUi-handle[aria-label]"]
        for selector in (".tplr-panel:nth-child(4) > svg text", *late):
            self.tab.wait_for_selector(selector, timeout=1000 * START, state="attached")

    def leave(self):
        self.tab.close(run_before_unload=True)
        self.context.close()

    def wait_until(self, holds):
        wait_until(holds, PATIENCE, lambda seconds: self.tab.wait_for_timeout(1000 * seconds))

    def wait_until_right(self):
        self.tab.wait_for_function("!document.querySelector('.tplr-problem, .tplr-stale')")

    def wait_for_text(self, text, selector="body"):
        self.wait_until(lambda: text in self.tab.locator(selector).first.inner_text())

    def curve(self, name):
        """The heights of a plotted curve."""
        return self.tab.evaluate(CURVE, name)

    def control(self, label):
        return self.tab.get_by_label(label, exact=True).first

    def handle(self, label):
        return self.tab.locator(f".noUi-handle[aria-label='{label}']").first

    def typed(self, label):
        """The number beside a slider."""
        return float(self.control(f"{label}, typed").input_value())

    def type_number(self, label, value):
        entry = self.control(f"{label}, typed")
        entry.fill(str(value))
        entry.press("Enter")

    def choose(self, label, option):
        self.control(label).select_option(label=option)

    def press(self, name):
        self.tab.get_by_role("button", name=name, exact=True).click()

    def download(self, name):
        """What is downloaded where a button is pressed."""
        with self.tab.expect_download() as download:
            self.press(name)
        return download.value.suggested_filename, Path(download.value.path()).read_bytes()

    def upload(self, content):
        with self.tab.expect_file_chooser() as chooser:
            self.tab.locator("button.widget-upload").first.click()
        chooser.value.set_files({"name": "file.csv", "mimeType": "text/csv", "buffer": content})


def opened(request, browser, address):
    page = Page(browser, address, *getattr(request, "param", ()))
    yield page
    page.leave()


# What is asked for in the address, and the theme of the reader's system, which counts where nothing is asked for.
themed_page = pytest.fixture(scope="module", params=[("light", "dark"), (None, "dark")], ids=["light", "dark"])(opened)
shared_page = pytest.fixture(scope="module")(opened)


@pytest.fixture
def page(shared_page):
    """One page for all tests of a module, each beginning with the same input."""
    shared_page.tab.bring_to_front()  # Chromium draws no frames for a tab behind another
    if shared_page.control("a different budget for each release").is_checked():
        shared_page.press("Reset to ε")
    shared_page.choose("Backward", "counterpart of forward")
    shared_page.choose("Forward", "an example")
    shared_page.choose("Example", "Fig. 8 of TKDE 2019")
    shared_page.press("both")
    for label, value in (("ε (nats)", 0.1), ("Releases T", 10), ("Target α (nats)", 1), ("Sensitivity", 2)):
        if shared_page.typed(label) != value:
            shared_page.type_number(label, value)
    shared_page.wait_until_right()
    shared_page.wait_for_text("0.4286", "[data-number='tpl']")
    return shared_page

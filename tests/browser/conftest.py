"""A server for the page, a browser, and what the tests read from the page."""

import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from workflow.chromium import MISSING, find_chromium
from workflow.configuration import ROOT
from workflow.explore import page_command, page_environment

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
#: Seconds: to start, and for anything on the page to happen.
START, PATIENCE = 90, 30


@pytest.fixture(scope="session")
def saved_folder(tmp_path_factory):
    """Below which the page saves its files."""
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="session")
def address(saved_folder, tmp_path_factory):
    """Address of the page, served on this machine alone while the tests run; without real data."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("voila") / "log.txt"
    environment = page_environment(saved_folder)
    for name in ("TPLREPRO_DATA", "MPLBACKEND"):
        environment.pop(name, None)
    environment["TPLREPRO_CACHE"] = str(saved_folder / "no-downloads")
    with open(log, "w") as out:
        server = subprocess.Popen(
            page_command(port, browser=False), cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + START
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/voila/static/none", timeout=2)
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Chromium with an empty profile, driven by Playwright."""
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    if path is None:
        pytest.fail(MISSING)
    with sync_playwright() as playwright:
        # launch() makes a new, empty user-data folder and removes it at the end.
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=1000 * START)
        yield chromium
        chromium.close()


class Page:
    """The page as its user sees it."""

    def __init__(self, browser, address, width=1280, theme=None, system="light"):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=system, accept_downloads=True
        )
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(1000 * PATIENCE)
        self.errors, self.addresses, self.sent = [], [], []
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("console", self._heard)
        self.tab.on("request", lambda request: self.addresses.append(request.url))
        self.tab.on("websocket", lambda connection: connection.on("framesent", self._saw_message))
        self.tab.goto(f"{address}?theme={theme}" if theme else address, wait_until="commit")
        self.tab.wait_for_selector(".tplr-plots > * > :nth-child(4) .xtick", timeout=1000 * START)
        self.tab.wait_for_function("document.querySelector('[data-scheme^=\"smallest error\"]')")
        self.wait_until_labelled()
        # The static figure at the end is the last that comes.
        self.tab.wait_for_selector(".jp-OutputArea img", timeout=1000 * START, state="attached")

    def _heard(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def _saw_message(self, frame):
        text = frame if isinstance(frame, str) else frame.decode(errors="replace")
        if '"state":{"value":' in text:
            self.sent.append(text)

    def wait_until_labelled(self):
        self.tab.wait_for_selector(".tplr-releases .noUi-handle[aria-label]")

    def curve(self, name):
        """(x, y) of a plotted curve, as lists."""
        return self.tab.evaluate(
            """name => {
                const plots = [...document.querySelectorAll(".tplr-plots .js-plotly-plot")];
                const trace = plots.flatMap(plot => plot.data).find(trace => trace.meta === name);
                return [Array.from(trace.x), Array.from(trace.y)];
            }""",
            name,
        )

    def control(self, label):
        return self.tab.get_by_label(label, exact=True).first

    def type_number(self, label, value):
        entry = self.control(f"{label}, typed")
        entry.fill(str(value))
        entry.press("Enter")

    def wait_until_settled(self, label):
        """Wait until the number beside a slider has followed it."""
        entry, seen = self.control(f"{label}, typed"), []
        deadline = time.monotonic() + PATIENCE
        while (len(seen) < 5 or len(set(seen[-5:])) > 1) and time.monotonic() < deadline:
            self.tab.wait_for_timeout(100)
            seen.append(entry.input_value())

    def handle(self, label):
        return self.tab.locator(f".noUi-handle[aria-label='{label}']").first

    def choose(self, label, option):
        self.control(label).select_option(label=option)

    def problem(self):
        """Text of the message that says what is wrong; waits for one."""
        return self.tab.locator(".tplr-problem").inner_text()

    def wait_until_right(self):
        self.tab.wait_for_function("!document.querySelector('.tplr-problem')")
        self.tab.wait_for_function("!document.querySelector('.tplr-stale')")

    def wait_for_number(self, where, text):
        """Wait until a number of the summary reads so."""
        self.tab.wait_for_function(
            "([where, text]) => document.querySelector(`[data-number='${where}']`).textContent.includes(text)",
            arg=[where, text],
        )

    def upload(self, label, file):
        self.control(label).set_input_files(file)

    def text(self):
        return self.tab.locator("body").inner_text()

    def close(self):
        self.context.close()


@pytest.fixture(scope="session")
def open_page(browser, address):
    """A function that opens the page anew."""
    return lambda **options: Page(browser, address, **options)


@pytest.fixture(scope="module")
def shared_page(open_page):
    page = open_page()
    yield page
    page.close()


@pytest.fixture
def page(shared_page):
    """One page for all tests of a module, each beginning with the same input."""
    if shared_page.control("different budgets for each release").is_checked():
        shared_page.tab.get_by_role("button", name="Reset to ε").click()
    shared_page.choose("Backward", "what belongs to the forward matrix")
    shared_page.choose("Forward", "an example")
    shared_page.choose("Example", "Fig. 8 of TKDE 2019")
    shared_page.tab.get_by_role("button", name="both").click()
    for label, value in (("ε (nats)", 0.1), ("Releases T", 10), ("Target α (nats)", 1), ("Sensitivity", 2)):
        if shared_page.control(f"{label}, typed").input_value() != str(value):
            shared_page.type_number(label, value)
    shared_page.wait_until_right()
    shared_page.wait_for_number("tpl", "0.4286")
    return shared_page

"""The status page of a publisher as a person sees it in Chromium, on a wide and a narrow screen."""

import pandas as pd
import pytest

import tplreport as tr
from tplreport.reporting.status_page import status_page

pytestmark = pytest.mark.browser
P = [[0.8, 0.2], [0.1, 0.9]]
EVIL = "<img src=x onerror=window.broken=1>"
STATISTICS = {
    "people": {"sensitivity": 2, "share": 0.6},
    EVIL: {"sensitivity": 50, "share": 0.4, "every": "1D", "at": "18:00"},
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("status")
    made = tr.Publisher(
        folder / "counts.sqlite",
        backward=P,
        forward=P,
        alpha=1.0,
        statistics=STATISTICS,
        floor="largest",
        step="1h",
    )
    times = pd.date_range("2024-05-01 17:00", periods=40, freq="1h")
    people = pd.DataFrame({f"place {number} {EVIL}": 100 for number in range(30)}, times)
    made.publish_table({"people": people, EVIL: pd.Series(4000.5, times[times.hour == 18])})
    page = folder / "status.html"
    page.write_text(status_page(made))
    return page.as_uri()


@pytest.mark.parametrize("width", [1280, 420])
def test_the_page_fits_the_screen_and_runs_nothing(browser, address, width):
    tab = browser.new_page(viewport={"width": width, "height": 900})
    errors, asked = [], []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(address)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("window.broken") is None
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert errors == []
    assert tab.locator("h1").inner_text() == "counts.sqlite"
    assert EVIL in tab.locator("h3").all_inner_texts()
    assert tab.get_by_text("remains for the next time").is_visible()
    shown = tab.evaluate("[...document.images].map(image => image.naturalWidth)")
    assert len(shown) == 3
    assert min(shown) > 800
    tab.close()

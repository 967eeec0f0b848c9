"""The site as a reader sees it: built without a warning, each kind of page opened at two widths, in light and dark."""

import subprocess
import sys

import pytest

from workflow.configuration import ROOT

pytestmark = pytest.mark.browser
PAGES = (
    "index",
    "docs/gallery",
    "docs/guide/counts",
    "docs/api/tplrepro",
    "docs/claims/tkde2019",
    "notebooks/tkde2019/fig3",
)


@pytest.fixture(scope="module")
def site():
    pytest.importorskip("sphinx", reason="the site needs what make docs installs")
    done = subprocess.run([sys.executable, "-m", "workflow.site"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return (ROOT / "build" / "site" / "html").as_uri()


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(1300, "light"), (400, "dark")])
def test_pages_show_their_text_and_pictures_and_fit_the_screen(site, browser, path, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.goto(f"{site}/{path}.html")
    assert page.locator("h1").inner_text().strip("¶# ")
    broken = page.evaluate("[...document.images].filter(image => image.complete && !image.naturalWidth).length")
    assert broken == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background.strip("rgba()").split(",")[:3])) > 3 * 128) == (scheme == "light")
    page.close()

"""The site, and what `make own-data` leaves, as read at two widths, in light and dark, and without a network."""

import os
import re
import subprocess
import sys

import pytest

from workflow.configuration import ROOT

pytestmark = pytest.mark.browser
PAGES = (
    "index",
    "docs/gallery",
    "docs/api/index",
    "docs/guide/counts",
    "docs/api/tplrepro.leakage",
    "docs/claims/tkde2019",
    "docs/theory/profiles",
    "ARTIFACT",
    "notebooks/tkde2019/fig3",
    "notebooks/explore/own_data",
)
SCREENS = pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])


@pytest.fixture(scope="module")
def site():
    pytest.importorskip("sphinx", reason="the site needs what make docs installs")
    done = subprocess.run([sys.executable, "-m", "workflow.site"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return (ROOT / "build" / "site" / "html").as_uri()


def opened(browser, address, width, scheme, name):
    """A page of a file, of which nothing is missing or wider than the screen, and its screenshot."""
    page, elsewhere = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme), []
    page.on("request", lambda request: request.url.startswith(("file:", "data:")) or elsewhere.append(request.url))
    page.goto(address)
    page.screenshot(path=ROOT / "build" / "browser" / f"{name}-{width}-{scheme}.png", full_page=True)
    assert page.locator("h1").first.inner_text().strip("¶# ")
    broken = page.evaluate("[...document.images].filter(image => image.complete && !image.naturalWidth).length")
    assert broken == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    return page, elsewhere


@pytest.mark.parametrize("path", PAGES)
@SCREENS
def test_pages_show_their_text_and_pictures_and_fit_the_screen(site, browser, path, width, scheme):
    page, elsewhere = opened(browser, f"{site}/{path}.html", width, scheme, f"site-{path.replace('/', '-')}")
    assert elsewhere == []
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background.strip("rgba()").split(",")[:3])) > 3 * 128) == (scheme == "light")
    texts = [page.title(), *page.locator("article :is(h1, h2, p, dd)").all_inner_texts()]
    assert [text for text in texts if re.search(r"\\([a-zA-Z]{2}|[(])|\^\{", text)] == []  # formulas are drawn
    if width == 1280:
        codes = page.locator(".highlight pre").evaluate_all(
            "codes => codes.filter(code => code.scrollWidth > code.clientWidth).map(code => code.innerText)"
        )
        assert [code for code in codes if max(map(len, code.splitlines())) <= 120] == []
    if path == "docs/gallery":
        fits = page.locator(".gallery img").evaluate_all("images => images.map(one => getComputedStyle(one).objectFit)")
        assert set(fits) == {"contain"}  # whole figures
    if path == "docs/theory/profiles":
        assert page.evaluate("[...document.fonts].filter(font => font.status == 'loaded').map(font => font.family)")
        size = "parseFloat(getComputedStyle(sign).fontSize)"
        heights = page.locator("math[display=block] mo").evaluate_all(
            f"signs => signs.map(sign => sign.getBoundingClientRect().height / {size})"
        )
        assert max(heights) > 2  # brackets around fractions, which need a font with tall ones
    page.close()


@pytest.mark.parametrize(
    ("words", "title"), [("Eq.+13", "Claims of [1], TKDE 2019"), ("install", "Install"), ("cite", "Cite")]
)
def test_an_equation_is_found_by_its_number_and_how_to_install_and_to_cite_by_these_words(site, browser, words, title):
    page = browser.new_page()
    page.goto(f"{site}/search.html?q={words}")
    page.locator("#search-results").get_by_role("link", name=title, exact=True).wait_for()
    page.close()


def test_narrow_tables_name_their_columns(site, browser):
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.goto(f"{site}/docs/claims/tkde2019.html")
    cells = page.locator("table.stacked tbody tr").first.locator("td")
    heads = cells.evaluate_all("cells => cells.map((cell) => cell.dataset.head)")
    assert heads == ["the paper", "ours", "decided by", "verdict"]
    assert cells.evaluate_all("cells => new Set(cells.map((cell) => cell.getBoundingClientRect().left)).size") == 1
    page.close()


@pytest.fixture(scope="module")
def own_data(tmp_path_factory):
    """The notebook that `make own-data` ran on a file of somebody's, as a page."""
    from nbconvert import HTMLExporter

    folder = tmp_path_factory.mktemp("own_data")
    times = [(who, day) for who in range(9) for day in range(20)]
    rows = [f"p{who},2024-05-{day + 1:02},{('home', 'büro', 'a; b')[(who * day + day // 2) % 3]}" for who, day in times]
    (folder / "visits.csv").write_text("\n".join(["Who?,When seen,Where", *rows]), encoding="utf-8")
    given = {"FILE": str(folder / "visits.csv"), "USER": "Who?", "TIME": "When seen", "STATE": "Where", "HORIZON": "8"}
    code = "import sys, pathlib; from workflow import own_data; own_data.TARGET = pathlib.Path(sys.argv[1]); "
    command = [sys.executable, "-c", code + "sys.exit(own_data.main(sys.argv[2:]))", folder / "out", *given]
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"} | given
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    text, _ = HTMLExporter(mathjax_url="", require_js_url="").from_filename(folder / "out" / "own_data.ipynb")
    (folder / "own_data.html").write_text(text, encoding="utf-8")
    return (folder / "own_data.html").as_uri()


@SCREENS
def test_own_data_is_read_at_any_width(own_data, browser, width, scheme):
    page, _ = opened(browser, own_data, width, scheme, "own-data")
    text = page.locator("main").inner_text()
    for said in (
        "visits.csv\nRead: user from 'Who?'",
        "9 users, 9 sequences",
        "büro",
        "smallest error (T known)",
        "90% interval",
    ):
        assert said in text
    assert page.locator("main img").count() == 1
    page.close()

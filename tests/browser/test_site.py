"""The site, and what `make own-data` leaves, as read at two widths, in light and dark, and without
a network."""

import re
import subprocess
import sys

import pytest

from tplreport.command import main
from workflow.configuration import ROOT

pytestmark = pytest.mark.browser
PAGES = (
    "index",
    "docs/gallery",
    "docs/api/index",
    "docs/guide/counts",
    "docs/api/tplrepro.leakage",
    "docs/claims/tkde2019",
    "docs/theory/cycles",
    "docs/theory/profiles",
    "docs/theory/intervals",
    "ARTIFACT",
    "notebooks/tkde2019/fig3",
    "notebooks/explore/own_data",
)
SCREENS = pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])


@pytest.fixture(scope="module")
def site():
    pytest.importorskip("sphinx", reason="the site needs what make docs installs")
    done = subprocess.run(
        [sys.executable, "-m", "workflow.publishing.site"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (ROOT / "build" / "site" / "html").as_uri()


def opened(browser, address, width, scheme, name):
    """A page of a file, of which nothing is missing or wider than the screen, and its
    screenshot."""
    page, elsewhere = (
        browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme),
        [],
    )
    page.on(
        "request",
        lambda request: request.url.startswith(("file:", "data:")) or elsewhere.append(request.url),
    )
    page.goto(address)
    page.screenshot(
        path=ROOT / "build" / "browser" / f"{name}-{width}-{scheme}.png", full_page=True
    )
    assert page.locator("h1").first.inner_text().strip("¶# ")
    broken = page.evaluate(
        "[...document.images].filter(image => image.complete && !image.naturalWidth).length"
    )
    assert broken == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    return page, elsewhere


@pytest.mark.parametrize("path", PAGES)
@SCREENS
def test_pages_show_their_text_and_pictures_and_fit_the_screen(site, browser, path, width, scheme):
    page, elsewhere = opened(
        browser, f"{site}/{path}.html", width, scheme, f"site-{path.replace('/', '-')}"
    )
    assert elsewhere == []
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background.strip("rgba()").split(",")[:3])) > 3 * 128) == (
        scheme == "light"
    )
    texts = [page.title(), *page.locator("article :is(h1, h2, p, dd)").all_inner_texts()]
    # formulas are drawn
    assert [text for text in texts if re.search(r"\\([a-zA-Z]{2}|[(])|\^\{", text)] == []
    if width == 1280:
        codes = page.locator(".highlight pre").evaluate_all(
            "codes => codes.filter(code => code.scrollWidth > code.clientWidth)"
            ".map(code => code.innerText)"
        )
        assert [code for code in codes if max(map(len, code.splitlines())) <= 120] == []
    if path == "docs/gallery":
        fits = page.locator(".gallery img").evaluate_all(
            "images => images.map(one => getComputedStyle(one).objectFit)"
        )
        assert set(fits) == {"contain"}  # whole figures
    if path == "docs/theory/profiles":
        assert page.evaluate(
            "[...document.fonts].filter(font => font.status == 'loaded').map(font => font.family)"
        )
        size = "parseFloat(getComputedStyle(sign).fontSize)"
        heights = page.locator("math[display=block] mo").evaluate_all(
            f"signs => signs.map(sign => sign.getBoundingClientRect().height / {size})"
        )
        assert max(heights) > 2  # brackets around fractions, which need a font with tall ones
    page.close()


@pytest.mark.parametrize(
    ("words", "title"),
    [("Eq.+13", "Claims of [1], TKDE 2019"), ("install", "Install"), ("cite", "Cite")],
)
def test_an_equation_is_found_by_its_number_and_how_to_install_and_to_cite_by_these_words(
    site, browser, words, title
):
    page = browser.new_page()
    page.goto(f"{site}/search.html?q={words}")
    page.locator("#search-results").get_by_role("link", name=title, exact=True).wait_for()
    page.close()


def test_tables_of_notebooks_are_styled_like_those_of_pages(site, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{site}/notebooks/explore/leakage.html")
    cell = page.locator("table.dataframe td").first
    style = "cell => [getComputedStyle(cell).paddingLeft, getComputedStyle(cell).borderLeftStyle]"
    padding, border = cell.evaluate(style)
    assert float(padding.removesuffix("px")) > 4
    assert border == "none"
    page.close()


def test_the_map_leads_to_descriptions_and_the_page_on_citing_shows_bibtex(site, browser):
    page = browser.new_page()
    page.goto(f"{site}/docs/map.html")
    assert page.locator("article a.download").count() == 0
    page.get_by_role("link", name="allocate_by_upper_bound").first.click()
    page.wait_for_url("**/docs/api/tplrepro.allocation.html#tplrepro.allocate_by_upper_bound")
    page.goto(f"{site}/cite.html")
    assert "@software{" in page.locator("article").inner_text()
    page.close()


def test_narrow_tables_name_their_columns(site, browser):
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.goto(f"{site}/docs/claims/tkde2019.html")
    cells = page.locator("table.stacked tbody tr").first.locator("td")
    heads = cells.evaluate_all("cells => cells.map((cell) => cell.dataset.head)")
    assert heads == ["row", "the paper", "ours", "decided by", "verdict"]
    assert (
        cells.evaluate_all(
            "cells => new Set(cells.map((cell) => cell.getBoundingClientRect().left)).size"
        )
        == 1
    )
    page.goto(f"{site}/docs/claims/sip2023.html")
    numbers = page.locator("#table-fig5-wrong-bits").locator("xpath=following::table[1]")
    assert "stacked" not in numbers.get_attribute("class")
    first, *_, last = numbers.locator("tbody tr").first.locator("td").all()
    assert first.bounding_box()["y"] == last.bounding_box()["y"]
    page.close()


@SCREENS
def test_a_report_on_own_data_is_read_at_any_width(browser, tmp_path, width, scheme):
    """The page that `make own-data` leaves as well, on a file of somebody's."""
    times = [(who, day) for who in range(9) for day in range(20)]
    rows = [
        f"p{who},2024-05-{day + 1:02},{('home', 'büro', 'a; b')[(who * day + day // 2) % 3]}"
        for who, day in times
    ]
    file, report = tmp_path / "visits.csv", tmp_path / "report.html"
    file.write_text("\n".join(["Who?,When seen,Where", *rows, ""]), encoding="utf-8")
    columns = ["--user=Who?", "--time=When seen", "--state=Where"]
    assert (
        main(
            [
                "report",
                str(file),
                *columns,
                "--alpha=1",
                "--horizon=8",
                "--epsilon=0.1",
                f"--html={report}",
            ]
        )
        == 0
    )
    page, elsewhere = opened(browser, report.as_uri(), width, scheme, "report")
    assert (elsewhere, page.locator("img").count()) == ([], 1)
    assert "user from 'Who?'" in page.locator("body").inner_text()
    if width == 1280:  # no column is cut
        assert page.locator(".scroll").evaluate("table => table.scrollWidth <= table.clientWidth")
    page.close()

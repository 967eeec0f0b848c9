"""The page at two widths and in two themes: no sideways scrolling, readable text, and pictures to look at."""

import pytest

from workflow.configuration import ROOT

pytestmark = pytest.mark.browser

WIDTHS = (1280, 800)
PICTURES = ROOT / "build" / "browser"


# What is asked for in the address, and the theme of the reader's system, which counts where nothing is asked for.
@pytest.fixture(scope="module", params=[("light", "dark"), (None, "dark")], ids=["light", "dark"])
def themed_page(request, open_page):
    asked, system = request.param
    page = open_page(theme=asked, system=system)
    page.theme = asked or system
    yield page
    page.close()


GROUND = """
() => {
    let e = document.querySelector(".tplr-page");
    while (/, 0\\)$/.test(getComputedStyle(e).backgroundColor)) e = e.parentElement;
    return Math.max(...getComputedStyle(e).backgroundColor.match(/[\\d.]+/g).slice(0, 3)) / 255;
}
"""
OVERFLOW = """
() => [...document.querySelectorAll("html, body, #rendered_cells, .tplr-page, .tplr-page *")]
    .filter(e => e.clientWidth && !e.closest("svg") && !e.closest(".tplr-scroll"))
    .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1
        && getComputedStyle(e).visibility !== "hidden")
    .map(e => `${e.tagName}.${e.className} ${e.getBoundingClientRect().right}`)
"""
SCROLLS = """
() => [...document.querySelectorAll("html, body, #rendered_cells, .tplr-page *")]
    .filter(e => e.scrollWidth > e.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(e).overflowX))
    .map(e => `${e.tagName}.${e.className} ${e.scrollWidth} > ${e.clientWidth}`)
"""
# Contrast of text against the ground of the page, as WCAG 2 defines it.
CONTRAST = """
() => {
    const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const light = text => rgb(text).map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
    const ground = e => {
        for (; e; e = e.parentElement) {
            const colour = getComputedStyle(e).backgroundColor;
            if (!/, 0\\)$/.test(colour)) return colour;
        }
        return "rgb(255, 255, 255)";
    };
    const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
    const found = {};
    const plot = document.querySelector(".tplr-plots");
    for (const kind of [".xtick text", ".ytick text", ".legendtext", ".gtitle", ".xtitle", ".ytitle"])
        for (const text of plot.querySelectorAll(kind))
            found[kind] = Math.min(found[kind] ?? 99, ratio(getComputedStyle(text).fill, ground(plot)));
    for (const kind of [".tplr-summary td", ".tplr-good", ".tplr-note", ".tplr-releases .widget-label", "h3"])
        for (const e of document.querySelectorAll(`.tplr-page ${kind}`))
            found[kind] = Math.min(found[kind] ?? 99, ratio(getComputedStyle(e).color, ground(e)));
    return found;
}
"""
CUT_LEGENDS = """
() => [...document.querySelectorAll(".tplr-panels > *")].flatMap(panel => {
    const ground = panel.querySelector(".legend .bg").getBoundingClientRect();
    const place = panel.getBoundingClientRect();
    return [...panel.querySelectorAll(".legendtext")].filter(text => {
        const box = text.getBoundingClientRect();
        return box.bottom > Math.min(ground.bottom, place.bottom) + 2 || box.right > place.right;
    }).map(text => text.textContent);
})
"""
CURVES = """
() => {
    return [...document.querySelectorAll(".tplr-plots .js-plotly-plot")].map(
        plot => plot.data.filter(t => t.mode !== "markers").map(t => [t.line.color, t.line.dash, t.marker.symbol]));
}
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_page_fits_and_is_readable(themed_page, width):
    tab = themed_page.tab
    tab.set_viewport_size({"width": width, "height": 900})
    tab.wait_for_timeout(800)  # the plots follow the width
    PICTURES.mkdir(parents=True, exist_ok=True)
    is_dark = tab.evaluate(GROUND) < 0.2
    assert is_dark == (themed_page.theme == "dark")
    tall = tab.evaluate("document.querySelector('#rendered_cells').scrollHeight") + 40
    tab.screenshot(path=PICTURES / f"{themed_page.theme}-{width}.png")
    tab.set_viewport_size({"width": width, "height": min(tall, 5000)})
    tab.wait_for_timeout(800)
    tab.screenshot(path=PICTURES / f"{themed_page.theme}-{width}-whole.png")
    assert tab.evaluate(OVERFLOW) == []
    assert tab.evaluate(SCROLLS) == []
    places = tab.evaluate("[...document.querySelectorAll('.tplr-panels > *')].map(e => e.clientWidth)")
    drawn = tab.evaluate(
        "[...document.querySelectorAll('.tplr-panels > *')].map(e => e.querySelector('svg').clientWidth)"
    )
    assert drawn == places
    assert tab.evaluate(CUT_LEGENDS) == []
    contrast = tab.evaluate(CONTRAST)
    assert len(contrast) == 11
    assert {kind: ratio for kind, ratio in contrast.items() if ratio < 4.5} == {}


def test_curves_of_a_panel_differ_in_more_than_colour(themed_page):
    for styles in themed_page.tab.evaluate(CURVES):
        assert len(styles) in (3, 5)
        for parts in (slice(0, 1), slice(1, 3)):  # colour; dash and marker
            assert len({tuple(style[parts]) for style in styles}) == len(styles)


def test_a_problem_is_shown_and_nothing_is_complained_about(themed_page):
    themed_page.tab.set_viewport_size({"width": 800, "height": 900})
    themed_page.type_number("Target α (nats)", -1)
    assert "alpha must be a finite level in nats, greater than 0; found -1" in themed_page.problem()
    themed_page.tab.screenshot(path=PICTURES / f"{themed_page.theme}-800-problem.png")
    themed_page.type_number("Target α (nats)", 1)
    themed_page.wait_until_right()
    assert themed_page.errors == []

"""The page at two widths and in two themes: no sideways scrolling, readable text, and pictures to look at."""

import pytest

from workflow.configuration import ROOT

pytestmark = pytest.mark.browser

TOO_WIDE = """
() => [...document.querySelectorAll("html, body, #rendered_cells, .tplr-page, .tplr-page *")].filter(e => {
    const style = getComputedStyle(e);
    const right = e.getBoundingClientRect().right;
    const isCut = right > document.documentElement.clientWidth + 1 && style.visibility !== "hidden";
    const scrolls = e.scrollWidth > e.clientWidth + 1 && ["auto", "scroll"].includes(style.overflowX);
    return scrolls || (isCut && e.clientWidth && !e.closest("svg") && !e.closest(".tplr-scroll"));
}).map(e => `${e.tagName}.${e.className} ${e.getBoundingClientRect().right} ${e.scrollWidth} > ${e.clientWidth}`)
"""
# Contrast of text against the ground of the page, as WCAG 2 defines it; and how light that ground is, of 1.
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
    const page = document.querySelector(".tplr-page");
    const kinds = {
        fill: [".xtick text", ".ytick text", ".legendtext", ".gtitle", ".xtitle", ".ytitle"],
        color: [".tplr-summary td", ".tplr-good", ".tplr-note", ".tplr-releases .widget-label", "h3"],
    };
    const found = {};
    for (const [colour, names] of Object.entries(kinds))
        for (const kind of names)
            for (const e of page.querySelectorAll(kind))
                found[kind] = Math.min(found[kind] ?? 99, ratio(getComputedStyle(e)[colour], ground(e)));
    return [found, Math.max(...rgb(ground(page))) / 255];
}
"""
CUT_PANELS = """
() => [...document.querySelectorAll(".tplr-panels > *")].filter(panel => {
    const place = panel.getBoundingClientRect();
    const bottom = Math.min(panel.querySelector(".legend .bg").getBoundingClientRect().bottom, place.bottom) + 2;
    const legends = [...panel.querySelectorAll(".legendtext")].map(text => text.getBoundingClientRect());
    return panel.querySelector("svg").clientWidth !== panel.clientWidth
        || legends.some(box => box.bottom > bottom || box.right > place.right);
}).map(panel => panel.textContent)
"""


@pytest.mark.parametrize("width", [1280, 800])
def test_page_fits_and_is_readable(themed_page, width):
    tab = themed_page.tab
    height = 900
    for part in ("", "-whole"):
        tab.set_viewport_size({"width": width, "height": height})
        tab.wait_for_timeout(800)  # the plots follow the width
        tab.screenshot(path=ROOT / "build" / "browser" / f"{themed_page.theme}-{width}{part}.png")
        height = min(tab.evaluate("document.querySelector('#rendered_cells').scrollHeight") + 40, 5000)
    assert [tab.evaluate(TOO_WIDE), tab.evaluate(CUT_PANELS), themed_page.errors] == [[], [], []]
    contrast, ground = tab.evaluate(CONTRAST)
    assert (ground < 0.2, len(contrast)) == (themed_page.theme == "dark", 11)
    assert {kind: ratio for kind, ratio in contrast.items() if ratio < 4.5} == {}

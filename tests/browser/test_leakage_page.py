"""The interactive page as a person uses it in Chromium: six jobs, at two widths, in light and
dark."""

import random
from urllib.parse import quote

import numpy as np
import pytest

import tplrepro as tpl
from page.leakage_page import OBSERVATIONS, SCHEDULE
from page.matrices import EXAMPLES, parse_cycle
from tests.browser.conftest import Page
from tests.page.serving import wait_until
from workflow.configuration import ROOT

pytestmark = pytest.mark.browser
FORWARD, BACKWARD = (parse_cycle(text)[0] for text in EXAMPLES["Fig. 8 of TKDE 2019"])
GYM = "<img src=x onerror=window.broken=1>"
TOO_WIDE = """
() => [...document.querySelectorAll(".tplr-page, .tplr-page *")].filter(e =>
    e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && e.clientWidth
    && !e.closest("svg, .tplr-scroll, .scroll, .js-plotly-plot, style")
).map(e => `${e.tagName}.${e.className}`)
"""
# How light the ground of the page is, and the text of its plots, verdict and notes, of 255.
LIGHT = """
() => {
    const canvas = document.createElement("canvas").getContext("2d");
    const light = colour => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return canvas.getImageData(0, 0, 1, 1).data.slice(0, 3).reduce((sum, one) => sum + one) / 3;
    };
    const of = (kind, property) => light(getComputedStyle(document.querySelector(kind))[property]);
    const kinds = [".tplr-verdict", ".tplr-note", ".tplr-page h3"].map(kind => of(kind, "color"));
    return [of("body", "backgroundColor"), of(".tplr-plots .xtick text", "fill"), ...kinds];
}
"""


def assert_leakage(page, epsilons, backward=BACKWARD, forward=FORWARD):
    expected = tpl.temporal_privacy_leakage(epsilons, backward, forward)
    wait_until(lambda: page.curve("TPL") == pytest.approx(expected.tpl, rel=1e-12))


def assert_fits(page, job):
    """Nothing is wider than the screen, text is readable, and the screenshots are there to be
    looked at."""
    wait_until(lambda: "being computed" not in page.tab.inner_text("body"))
    for width in (400, 1280):
        page.tab.set_viewport_size({"width": width, "height": 900})
        page.tab.wait_for_timeout(800)  # the plots follow the width
        assert page.tab.evaluate(TOO_WIDE) == []
        assert page.tab.evaluate(
            "[...document.querySelectorAll('select')].every(one => one.selectedIndex >= 0)"
        )
        height = page.tab.evaluate("document.querySelector('.tplr-page').scrollHeight") + 300
        page.tab.set_viewport_size({"width": width, "height": min(height, 6000)})
        page.tab.wait_for_timeout(500)
        page.tab.screenshot(path=ROOT / "build" / "browser" / f"{job}-{width}-{page.scheme}.png")
    ground, *texts = page.tab.evaluate(LIGHT)
    assert (ground < 50) == (page.scheme == "dark")
    assert min(abs(text - ground) for text in texts) > 70, texts
    assert page.errors == []


def test_a_dragged_or_typed_budget_changes_the_curves(page, address):
    assert "Without a kernel" not in page.tab.inner_text("body")
    assert_leakage(page, np.full(10, 0.1))
    box = page.tab.locator(".noUi-handle").filter(visible=True).nth(0).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.tab.mouse.move(x, y)
    page.tab.mouse.down()
    page.tab.mouse.move(x + 20, y, steps=10)
    wait_until(lambda: page.curve("TPL")[0] > 0.4)  # before the button is released
    page.tab.mouse.move(x + 30, y, steps=10)
    page.tab.mouse.up()
    page.tab.wait_for_timeout(1000)
    assert_leakage(page, np.full(10, float(page.control("ε (nats)").input_value())))
    page.enter("ε (nats)", 0.123456)  # stays, though the slider has no such step
    assert_leakage(page, np.full(10, 0.123456))
    page.tab.wait_for_timeout(1000)
    assert float(page.control("ε (nats)").input_value()) == 0.123456
    assert_fits(page, "example")
    assert [
        url
        for url in page.addresses
        if not url.startswith((address.partition("?")[0], "data:", "blob:"))
    ] == []


def test_a_typed_matrix_its_labels_are_words_and_a_mistake_stands_beside_it(page):
    page.enter("Backward", "")
    page.enter("Forward", f"home,office,{GYM}\n0.6,0.3,0.1\n0.2,0.7,0.1\n0.8,0.1,0.1")
    forward = tpl.TransitionMatrix([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.8, 0.1, 0.1]])
    assert_leakage(page, np.full(10, 0.1), forward.reverse(), forward)
    page.tab.get_by_text("<img src=x").first.wait_for()
    assert_fits(page, "typed")
    assert page.tab.evaluate("window.broken") is None
    page.tab.set_viewport_size({"width": 400, "height": 800})
    page.enter("Forward", "0.6,0.3\n0.1,0.9")
    error = page.tab.locator(".tplr-invalid .tplr-error")
    error.wait_for()
    assert error.inner_text() == (
        "rows must sum to 1, found 0.9 in line 1; correct it, or divide each row by its sum if "
        "these are counts, percents or rounded"
    )
    field, place = page.control("Forward").bounding_box(), error.bounding_box()
    assert 0 < place["y"] - field["y"] - field["height"] < 100
    assert place["y"] + place["height"] < 800  # in view without scrolling
    assert "211, 47, 47" in page.control("Forward").evaluate("e => getComputedStyle(e).borderColor")
    assert_fits(page, "mistake")


def test_an_uploaded_matrix_gets_curves_noise_at_a_delta_and_saved_budgets(page):
    page.upload(b"0.75,0.25\n0.5,0.5\n")
    forward = tpl.TransitionMatrix([[0.75, 0.25], [0.5, 0.5]])
    assert_leakage(page, np.full(10, 0.1), forward.reverse(), forward)
    page.choose("Budgets", "Algorithm 8 (T known)")
    page.choose("δ", "1e-6")
    page.tab.get_by_text("Equal Gaussian noise that keeps").wait_for()
    wait_until(lambda: len(page.curve("Gaussian, α at δ")) == 2)
    assert_fits(page, "matrix")
    with page.tab.expect_download() as download:
        page.tab.get_by_text("Save budgets (CSV)").click()
    assert download.value.suggested_filename == "alpha-1-T-10-budgets.csv"


def test_an_uploaded_cycle_is_shown_by_its_phases(page):
    hours = [f"{hour:02d}:00" for hour in range(24)]
    stay = [0.99 if hour < 7 else 0.6 for hour in range(24)]
    rows = [
        f"{label},{row}"
        for label, p in zip(hours, stay, strict=True)
        for row in (f"{p},{1.0 - p:.2f}", f"{1.0 - p:.2f},{p}")
    ]
    page.upload("\n".join(["phase,home,office", *rows]).encode())
    habits = tpl.Cycle([[[p, round(1.0 - p, 2)], [round(1.0 - p, 2), p]] for p in stay], step="1h")
    assert_leakage(page, np.full(48, 0.1), habits.reverse(), habits)
    ticks = page.tab.locator(".xtick text")
    wait_until(lambda: ticks.all_text_contents()[:3] == ["00:00", "06:00", "12:00"])
    page.tab.get_by_text("Suprema and budgets of the 24 phases").wait_for()
    page.choose("Budgets", SCHEDULE)
    wait_until(
        lambda: page.control("Schedule").input_value().startswith("phase,epsilon\n00:00,0.1")
    )
    budgets = [0.01 if hour < 7 else 0.2 for hour in range(24)]
    lines = [f"{label},{budget}" for label, budget in zip(hours, budgets, strict=True)]
    page.enter("Schedule", "\n".join(["phase,epsilon", *lines]))
    assert_leakage(page, np.array(budgets * 2), habits.reverse(), habits)
    page.choose("Users start", "anywhere: not known")
    assert_leakage(page, np.array(budgets * 2), habits.reverse(start="any"), habits)
    assert_fits(page, "cycle")
    page.enter("Forward", "0.75,0.25\n0.5,0.5\n")
    wait_until(lambda: len(page.curve("TPL")) == 10)
    page.tab.get_by_text("Suprema and budgets of").wait_for(state="detached")


def test_own_data_get_the_verdict_and_the_report_of_the_command(page):
    rng = random.Random(1)
    rows = [
        f"u{user},{day},{rng.choice(['home', 'office', GYM])}"
        for user in range(30)
        for day in range(20)
    ]
    page.choose("Begin with", OBSERVATIONS)
    page.tab.get_by_text("no file has been chosen yet").wait_for()
    page.upload("\n".join(["Kunde,Tag,Ort", *rows, ""]).encode())
    for label, column in (("User", "Kunde"), ("Time", "Tag"), ("State", "Ort")):
        page.choose(label, column)
    page.tab.get_by_text("Is the model believable?").wait_for()
    page.choose("Budgets", "Algorithm 8 (T known)")
    page.tab.get_by_text("by what the data do not rule out").first.wait_for()
    assert "tplr-bad" in page.tab.locator(".tplr-verdict").get_attribute("class")
    wait_until(lambda: max(page.curve("TPL, worst that the file allows"), default=0.0) > 1.0)
    assert page.tab.evaluate("window.broken") is None
    assert_fits(page, "data")


def test_a_script_in_the_address_does_not_run(browser, address):
    script = quote('"><script>window.foreign = 1</script>')
    for theme in (script, f"dark&anything={script}"):
        page = Page(browser, f"{address}&theme={theme}", "light")
        assert page.tab.evaluate("window.foreign") is None
        assert "foreign" not in page.tab.content()
        page.tab.close(run_before_unload=True)

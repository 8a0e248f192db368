"""The studio in a browser: from a disc to the flow through the edge of its hole, at two window sizes."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import subprocess
import sys
import tomllib
from urllib.parse import urlsplit

import pytest

pytest.importorskip("nicegui", reason="pages are made by pibls[studio]")
pytest.importorskip("latex2mathml", reason="formulas are typeset by pibls[studio]")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

DISC = """# A disc that is heated inside.
title = "Disc"
unknowns = ["u"]
equations = ["-laplacian(u) = load"]

[parameters]
load = 4
air = 0.5

[domain]
shape = "disk"
radius = 1
name = "plate"

[[conditions]]
kind = "dirichlet"
value = 0
on = "plate"

[solve]
tol = 1e-2
"""
PATIENCE = 60_000  # milliseconds, of which a machine with nothing else to do needs a hundredth


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a studio that runs in a process of its own."""
    path = tmp_path_factory.mktemp("studio") / "disc.toml"
    path.write_text(DISC, encoding="utf-8")
    command = [sys.executable, "-m", "pibls", "studio", str(path), "--no-browser"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as server:
        try:
            yield server.stdout.readline().split()[-1]
        finally:
            server.terminate()
            server.communicate(timeout=60)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        own = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield own
        own.close()


SIZES = {"desk": (1440, 900), "phone": (390, 844)}
BOTH = pytest.mark.parametrize("page", SIZES, indirect=True)  # for what depends on the size of the window


@pytest.fixture
def page(request, browser, address):
    width, height = SIZES[getattr(request, "param", "desk")]
    context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.wrong, page.hosts = [], set()
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("request", lambda sent: page.hosts.add(urlsplit(sent.url).netloc))
    page.goto(address)
    edge(page, "boundary").wait_for(state="attached")
    yield page
    assert page.wrong == []
    assert page.hosts <= {urlsplit(address).netloc, ""}  # nothing comes from elsewhere
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def edge(page, name):
    return page.locator(f'pibls-board [data-key="edge {name}"]')


def status(page, pattern):
    playwright.expect(page.locator(".status")).to_have_text(re.compile(pattern), timeout=PATIENCE)


def shown(page, pattern):
    canvas = page.locator("pibls-picture canvas").first
    playwright.expect(canvas).to_have_attribute("aria-label", re.compile(pattern), timeout=PATIENCE)


def problem(page):
    """Return the problem file that the page exports."""
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
        page.get_by_role("menuitem", name="Problem file").click()
    return download.value.path().read_text(encoding="utf-8")


@BOTH
def test_from_a_disc_to_the_flow_through_the_edge_of_its_hole(page, tmp_path):
    page.get_by_role("button", name="Add a disk").click()
    edge(page, "hole1").wait_for(state="attached")
    playwright.expect(page.locator("pibls-board .line.bare")).to_have_count(1)
    status(page, "hole1|no condition")
    drag(page, page.locator("pibls-board .handle.move").last, 24, 12)
    before = buttons(page)
    name = page.locator("pibls-board text").first
    name.click()  # as good as its edge
    playwright.expect(page.locator(".edge-panel")).to_contain_text(name.text_content(), timeout=PATIENCE)
    assert buttons(page) != before
    page.get_by_label("Title").fill("Ring")
    before = buttons(page)
    playwright.expect(page).to_have_url(re.compile("#.{100}"), timeout=PATIENCE)
    assert buttons(page) == before  # buttons that are made anew miss a click
    edge(page, "hole1").focus()
    page.keyboard.press("Enter")
    page.locator(".edge-panel .chip", has_text="Convection").click()
    playwright.expect(page.locator("pibls-board .line.bare")).to_have_count(0)
    page.keyboard.press("Control+Enter")
    status(page, "The estimated error .* is within the tolerance")
    shown(page, "^Solution u")
    page.locator(".chip", has_text="Estimated error").click()
    shown(page, "^Estimated error of u")
    page.locator(".right .chip", has_text="Solution").click()
    shown(page, "^Solution u")
    canvas = page.locator("pibls-picture canvas").first
    before = canvas.get_attribute("aria-label")
    page.get_by_label("Slider of load").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    playwright.expect(canvas).not_to_have_attribute("aria-label", before, timeout=PATIENCE)
    status(page, "is within the tolerance")
    page.get_by_role("button", name="Measure").click()
    playwright.expect(page.locator(".answers .line").first).to_contain_text(
        "flow out through hole1 =", timeout=PATIENCE
    )
    text = problem(page)
    found = tomllib.loads(text)
    assert found["title"] == "Ring"
    assert found["domain"]["of"][1]["center"] != [0, 0]
    assert [own["kind"] for own in found["conditions"]] == ["dirichlet", "convection"]
    assert found["conditions"][1]["on"] == "hole1"
    assert text.startswith("# A disc that is heated inside.")  # comments stay
    reopened(page, text, tmp_path)


def buttons(page):
    """Return marks of the buttons below the drawing, which are others once they are made anew."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".edge-panel *")]
        .map((node) => (node.mark ??= window.marked = (window.marked ?? 0) + 1))"""
    )


def drag(page, handle, across, down):
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + across, y + down, steps=4)
    page.mouse.up()
    playwright.expect(handle).not_to_have_attribute("aria-valuetext", re.compile(r"^0\.00?, 0\.00?"), timeout=PATIENCE)


def reopened(page, text, folder):
    """Open a changed file, undo that, and open the page's own address in a second window."""
    file = folder / "again.toml"
    file.write_text(text.replace('title = "Ring"', 'title = "Again <img src=x onerror=window.owned=1>"'), "utf-8")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open", exact=True).click()
    chooser.value.set_files(file)
    title = page.get_by_label("Title")
    playwright.expect(title).to_have_value(re.compile("^Again"), timeout=PATIENCE)
    playwright.expect(page).to_have_url(re.compile("#.{100}"), timeout=PATIENCE)
    assert page.evaluate("window.owned") is None
    second = page.context.new_page()
    second.goto(page.url)
    playwright.expect(second.get_by_label("Title")).to_have_value(re.compile("^Again"), timeout=PATIENCE)
    second.close()
    page.get_by_role("button", name="Undo").click()
    playwright.expect(title).to_have_value("Ring", timeout=PATIENCE)


@BOTH
def test_errors_stand_below_their_line_and_everything_has_a_name(page):
    field = page.get_by_label("Equation 1")
    field.fill("-laplacian(u) = sinn(x)")
    words = page.locator(".card.wrong .words").first
    playwright.expect(words).to_contain_text("Did you mean 'sin'?", timeout=PATIENCE)
    field.fill("-laplacian(u) = k*sin(x)")
    page.locator(".card.wrong .chip", has_text="Add the parameter k").click()
    playwright.expect(page.get_by_label("Slider of k")).to_be_visible(timeout=PATIENCE)
    playwright.expect(page.locator(".card .math").first).to_contain_text("sin", timeout=PATIENCE)
    page.get_by_label("Unknowns").fill("w")
    playwright.expect(field).to_have_value("-laplacian(w) = k*sin(x)", timeout=PATIENCE)
    status(page, "Ready to solve|The problem has changed")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, textarea, [role=button], [role=slider], [tabindex='0']")]
        .filter((node) => node.checkVisibility() && !node.closest("[aria-label], label")
          && !node.textContent.trim() && !node.getAttribute("placeholder"))
        .map((node) => node.outerHTML.slice(0, 120))"""
    )
    assert nameless == []


def test_an_answer_to_an_older_text_is_not_called_right(page):
    page.get_by_label("Equation 1").fill("-laplacian(u) = load*exp(2*x)*cos(9*y)")
    status(page, "Ready")
    page.get_by_role("button", name="Solve").click()
    page.get_by_label("Equation 1").fill("-laplacian(u) = 7")
    shown(page, "^Solution u")
    status(page, "The problem has changed")
    with page.expect_download():
        page.get_by_role("button", name="Export").click()
        page.get_by_role("menuitem", name="Table").click()
    status(page, "as it was solved, which has changed since")
    page.get_by_role("button", name="Solve").click()
    status(page, "is within the tolerance")
    page.get_by_role("button", name="Measure").click()
    playwright.expect(page.locator(".answers .line")).to_have_count(1, timeout=PATIENCE)
    page.get_by_role("button", name="Solve").click()
    playwright.expect(page.locator(".answers .line")).to_have_count(0, timeout=PATIENCE)  # of the solution before


def test_what_is_told_of_one_problem_goes_with_it(page):
    """No solution is shown as one; a slider in a coefficient is followed; another problem begins with nothing."""
    page.get_by_role("button", name="New").click()
    status(page, "Click what is red")
    page.get_by_role("button", name="Solve").click()
    status(page, "^Ill-posed.*Click what is red")
    playwright.expect(page.locator(".picture-box.doubt")).to_contain_text("This is no solution", timeout=PATIENCE)
    page.get_by_role("tab", name="File").click()
    page.get_by_label("Problem file").fill(DISC.replace("-laplacian(u)", "-air*laplacian(u)"))
    page.get_by_role("tab", name="Problem").click()
    status(page, "The problem has changed")
    page.get_by_role("button", name="Solve").click()
    status(page, "is within the tolerance")
    playwright.expect(page.locator(".picture-box.doubt")).to_have_count(0)
    slider = page.get_by_label("Slider of air")
    slider.focus()
    page.wait_for_function(BETWEEN, arg=slider.element_handle(), timeout=PATIENCE)
    status(page, "is within the tolerance")  # once it rests
    page.get_by_role("button", name="New").click()
    playwright.expect(page.locator(".figures")).to_have_text("", timeout=PATIENCE)


# Moves the slider until the page follows it between solutions, which are made while nothing else is done.
BETWEEN = """(slider) => {
  if (document.querySelector(".figures").textContent.includes("between")) return true;
  if (document.querySelector(".status.good") && !(window.count = ((window.count ?? 0) + 1) % 40)) {
    slider.value = 0.4 + 0.2 * Math.random();
    slider.dispatchEvent(new Event("input", {bubbles: true}));
  }
}"""
HOSTILE = "<img src=x onerror=window.owned=1>'\"__import__('os').system('touch owned')"


def test_scripts_in_every_field_stay_text(page, tmp_path):
    """Whatever is typed, opened or shared is shown as it is written, and the page goes on."""
    named = DISC.replace("Disc", "<script>window.owned=1</script>").replace("air = 0.5", "air = 0.5 # </script>")
    bad = named.replace('"plate"', "'<img src=x onerror=window.owned=1>'").replace("load", "lo'+alert(1)+'ad")
    for number, text in enumerate((named, bad, HOSTILE)):
        file = tmp_path / f"<img src=x onerror=window.owned={number}>.toml"
        file.write_text(text, "utf-8")
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Open", exact=True).click()
        chooser.value.set_files(file)
        status(page, "Ready to solve" if number == 0 else "Line|not")
    page.get_by_role("button", name="New").click()
    status(page, "Click what is red")
    fields = page.locator("nav input[type=text], nav input:not([type]), .answers input.q-field__native")
    for number in range(fields.count()):
        if fields.nth(number).is_editable():
            fields.nth(number).fill(HOSTILE)
    page.get_by_role("button", name="Measure").click()
    page.get_by_role("button", name="Examples").click()
    page.get_by_label("Search").fill(HOSTILE)
    page.keyboard.press("Escape")
    page.evaluate("location.hash = '<img src=x onerror=window.owned=1>'")
    status(page, "address has no problem")
    assert page.evaluate("window.owned") is None
    assert not (tmp_path / "owned").exists()
    page.get_by_role("button", name="New").click()
    status(page, "Click what is red")


@pytest.mark.parametrize(
    ("headers", "size", "found"),
    [
        ({}, 0, 403),
        ({"Host": "evil.example"}, 0, 403),
        ({"Origin": "http://evil.example"}, 0, 403),
        ({"Origin": "null"}, 0, 403),
        ({"Cookie": "own"}, 0, 200),
        ({"Cookie": "own", "Host": "evil.example"}, 0, 403),
        ({"Cookie": "own", "Origin": "http://evil.example"}, 0, 403),
        ({"Cookie": "own"}, 100_000_000, 413),
    ],
)
def test_the_server_itself_refuses_strangers_and_large_files(address, headers, size, found):
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.netloc, timeout=60)
    if "Cookie" in headers:
        connection.request("GET", f"/?{place.query}")
        headers = {**headers, "Cookie": connection.getresponse().getheader("set-cookie").partition(";")[0]}
        connection.close()
    try:
        connection.request("POST" if size else "GET", "/", b"x" * size or None, headers)
    except (BrokenPipeError, ConnectionResetError):
        assert size  # it was refused before all of it was sent
    else:
        answer = connection.getresponse()
        assert answer.status == found
        assert answer.getheader("set-cookie") is None
        assert place.query.removeprefix("token=").encode() not in answer.read()
    connection.close()

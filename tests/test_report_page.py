"""The page of `npulens report` in a real browser: charts, filters, themes, and no request."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import CODE, invoke
from test_report import BLOCKED, DYNAMIC, HOSTILE, HOSTILE_NAME, PORTED, PROJECT

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
INSTALL = "bash scripts/install_editors.sh does that"


def missing(reason: str) -> None:
    """Skip, except where the browser was promised to be there."""
    if os.environ.get("NPULENS_EDITORS") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    if program is None:
        missing(f"Chromium is not installed; {INSTALL}")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed; it is one of the packages for development")
    with sync_playwright() as playwright:
        # Inside a container there is nothing that its sandbox could be made of.
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


class Shown:
    """A page in the browser, with what it asked for and complained about."""

    def __init__(self, context: Any, file: Path) -> None:
        self.file = file
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())

    def rows(self, selector: str) -> Any:
        return self.page.locator(f"{selector} tbody tr:visible")

    def settles(self, selector: str, number: int) -> bool:
        """Whether there are so many rows soon; a form is reset after what resets it."""
        for _ in range(100):
            if self.rows(selector).count() == number:
                return True
            self.page.wait_for_timeout(20)
        return False

    def column(self, selector: str, column: int) -> list[str]:
        found: list[str] = self.page.locator(
            f"{selector} tbody tr:visible td:nth-child({column})"
        ).all_inner_texts()
        return found


@pytest.fixture
def show(browser: Any, here: Path) -> Iterator[Any]:
    contexts = []

    def opened(*options: str, files: dict[str, str] = PROJECT, theme: str = "light") -> Shown:
        for name, text in files.items():
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            (here / name).write_text(text, encoding="utf-8")
        assert invoke("report", ".", "-o", "report.html", *options) == (0, "", "")
        context = browser.new_context(color_scheme=theme, viewport={"width": 1200, "height": 900})
        contexts.append(context)
        return Shown(context, here / "report.html")

    yield opened
    for context in contexts:
        context.close()


MANY = {
    **{f"pkg{index % 7}/file{index:03}.py": CODE * 3 for index in range(150)},
    **{f"hot/{index}.py": f"{DYNAMIC}\n\nprint(Net().cuda())\n" for index in range(20)},
    "blocked.py": BLOCKED,
}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_is_asked_for_and_nothing_complained_about(show: Any, language: str) -> None:
    shown = show("--language", language)
    shown.page.wait_for_timeout(200)
    assert shown.requests == [shown.file.as_uri()]
    assert shown.complaints == []
    expected = {"en": ("Overview", "Blocked"), "zh": ("总览", "受阻")}[language]
    text = shown.page.inner_text("main")
    for word in expected:
        assert word in text


def test_charts_are_drawn(show: Any) -> None:
    page = show().page
    of_rows = sum(
        page.locator(rows).count()
        for rows in ("#families tbody tr", "#hotspots tbody tr", "#folders details")
    )
    assert of_rows >= 6
    assert page.locator("svg.bar").count() == 3 + of_rows
    chart = page.locator("svg.bar.large")
    whole = chart.bounding_box()
    parts = [part.bounding_box() for part in chart.locator("rect").all()]
    assert len(parts) == 4  # as they are, safe fixes, blocked, not judged
    assert abs(sum(part["width"] for part in parts) - whole["width"]) < 3
    assert parts[0]["width"] == pytest.approx(whole["width"] * 3 / 7, rel=0.02)
    assert all(part["height"] > 10 for part in parts)
    colours = {
        chart.locator("rect").nth(index).evaluate("each => getComputedStyle(each).fill")
        for index in range(4)
    }
    assert len(colours) == 4
    assert "rgb(0, 0, 0)" not in colours


def test_the_files_can_be_filtered_and_sorted(show: Any) -> None:
    shown = show()
    assert shown.rows("#file-list").count() == 8
    assert shown.column("#file-list", 2)[:2] == ["Blocked", "Blocked"]
    page = shown.page
    page.select_option("form[data-list=files] [name=state]", "safe")
    assert shown.column("#file-list", 1) == ["train.py"]
    page.click("form[data-list=files] [type=reset]")
    assert shown.settles("#file-list", 8)
    page.fill("form[data-list=files] [name=text]", "MODELS net")
    assert shown.column("#file-list", 1) == ["models/net.py"]
    page.fill("form[data-list=files] [name=text]", "nowhere")
    assert shown.rows("#file-list").count() == 0
    assert "Nothing fits." in page.inner_text("#files")
    page.fill("form[data-list=files] [name=text]", "")
    heading = page.locator("#file-list th").first
    heading.click()
    names = shown.column("#file-list", 1)
    assert names == sorted(names)
    heading.click()
    assert shown.column("#file-list", 1) == names[::-1]
    assert heading.get_attribute("aria-sort") == "descending"
    heading.focus()
    page.keyboard.press("Enter")
    assert shown.column("#file-list", 1) == names
    page.click("#overview button[data-state=blocked]")
    assert shown.settles("#file-list", 2)


def test_the_findings_can_be_filtered_and_sorted(show: Any) -> None:
    shown = show()
    page = shown.page
    total = shown.rows("#finding-list").count()
    form = "form[data-list=findings]"
    assert f"{total} of {total} shown" in page.inner_text("#findings")
    page.select_option(f"{form} [name=family]", "library")
    assert {text[:6] for text in shown.column("#finding-list", 3)} == {"NPU602"}
    page.select_option(f"{form} [name=fix]", "safe")
    assert shown.rows("#finding-list").count() == 0
    page.select_option(f"{form} [name=family]", "")
    assert set(shown.column("#finding-list", 4)) == {"safe fix"}
    page.click(f"{form} [type=reset]")
    assert shown.settles("#finding-list", total)
    counts = []
    for kind in ("1", "0"):
        page.select_option(f"{form} [name=work]", kind)
        counts.append(shown.rows("#finding-list").count())
    assert sum(counts) == total
    assert min(counts) > 0
    page.select_option(f"{form} [name=work]", "")
    page.click("#finding-list th[data-key=place]")
    places = [text.split("\n")[0].split(":") for text in shown.column("#finding-list", 2)]
    found = [(name, int(line)) for name, line, _ in places]
    assert found == sorted(found)
    page.click("#folders button[data-folder='kernels/deep']")
    assert shown.settles("#finding-list", 3)
    assert page.inner_text(f"{form} .chip") == "below: kernels/deep/"
    page.click("#families button[data-family=fused]")
    assert shown.settles("#finding-list", 1)
    assert not page.is_visible(f"{form} .chip")


def test_settled_places_are_folded_until_somebody_clicks(show: Any) -> None:
    page = show(files={"a.py": PORTED}).page
    place = page.locator("#settled li").first
    assert not place.is_visible()
    page.locator("#settled summary").click()
    assert "this is for another device (line 3" in place.inner_text()
    assert page.locator("#settled thead + tbody tr").count() == 2


def test_tables_of_the_page_can_be_sorted(show: Any) -> None:
    shown = show()
    for heading, column in (("#families th:nth-child(3)", 3), ("#families th:nth-child(4)", 4)):
        shown.page.click(heading)
        numbers = [int(text) for text in shown.column("#families", column)]
        assert numbers == sorted(numbers, reverse=True)
        shown.page.click(heading)
        assert [int(text) for text in shown.column("#families", column)] == sorted(numbers)


def test_long_lists_come_in_portions(show: Any) -> None:
    shown = show(files=MANY)
    page = shown.page
    assert shown.rows("#file-list").count() == 100
    page.click("#files .more button:has-text('Show 71 more')")
    assert shown.rows("#file-list").count() == 171
    assert shown.rows("#finding-list").count() == 100
    total = int(re.findall(r"of ([\d,]+) shown", page.inner_text("#findings"))[0].replace(",", ""))
    page.click(f"#findings .more button:has-text('Show all {total}')")
    assert shown.rows("#finding-list").count() == total > 500
    assert shown.rows("#hotspots").count() == 12
    page.click("#hotspots .show-all")
    hotspots = shown.rows("#hotspots").count()
    assert hotspots >= 20
    page.click("#hotspots th:nth-child(1)")
    assert shown.rows("#hotspots").count() == hotspots


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_is_the_system_s_until_somebody_clicks(show: Any, theme: str) -> None:
    shown = show(theme=theme)
    page = shown.page

    def is_dark() -> bool:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3])) < 3 * 128

    assert is_dark() == (theme == "dark")
    page.click("#theme")
    assert is_dark() == (theme == "light")
    for _ in range(10):  # what was stored reaches the process of a reloaded page a moment later
        page.reload()
        if is_dark() == (theme == "light"):
            break
    assert is_dark() == (theme == "light")
    page.click("#theme")
    assert is_dark() == (theme == "dark")


@pytest.mark.parametrize("kind", ["vscode-light", "vscode-dark"])
def test_inside_vs_code_the_theme_is_the_editor_s(show: Any, kind: str) -> None:
    """VS Code tells its theme as a class of the body."""
    page = show(theme="dark" if kind == "vscode-light" else "light").page
    page.evaluate(f"document.body.classList.add('{kind}')")
    scheme = page.evaluate("getComputedStyle(document.body).colorScheme")
    assert scheme == kind.removeprefix("vscode-")


def test_inside_a_frame_that_allows_scripts_alone(show: Any) -> None:
    """As a webview shows it: without an origin, so without storage."""
    shown = show()
    shown.page.goto("about:blank")
    shown.page.evaluate(
        """text => {
          const frame = document.createElement("iframe");
          frame.sandbox = "allow-scripts";
          frame.srcdoc = text;
          document.body.append(frame);
        }""",
        shown.file.read_text(encoding="utf-8"),
    )
    frame = shown.page.frame_locator("iframe")
    frame.locator("#file-list tbody tr").first.wait_for()
    frame.locator("#theme").click()
    assert frame.locator("html").get_attribute("data-theme") == "dark"
    assert shown.complaints == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(show: Any, theme: str) -> None:
    """All text has the contrast that WCAG 2 asks for (AA): 4.5, and 3 where it is large."""
    shown = show(theme=theme)
    page = shown.page
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert page.evaluate(CONTRAST) == []


CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const [red, green, blue] = rgba(colour).slice(0, 3).map((each) => {
      const part = each / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (rgba(colour)[3] === 255) return colour;
    }
    return "white";
  };
  const poor = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [one, other] = [luminance(style.color), luminance(ground(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const needed = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
    if (ratio < needed) {
      poor.add(`${element.tagName}.${element.className}: ${ratio.toFixed(2)}`);
    }
  }
  return [...poor];
}"""


def test_hostile_content_is_shown_and_not_run(show: Any) -> None:
    code = f"import torch\ntorch.cuda.synchronize({HOSTILE!r})\n"
    shown = show(files={HOSTILE_NAME: code})
    page = shown.page
    page.wait_for_timeout(200)
    assert shown.complaints == []
    assert shown.requests == [shown.file.as_uri()]
    assert page.locator("img").count() == 0
    assert HOSTILE_NAME in page.inner_text("#file-list")
    assert "<script>alert(1)</script>" in page.inner_text("#finding-list")


def test_it_fits_a_narrow_window_and_paper(show: Any, tmp_path: Path) -> None:
    page = show(files=MANY).page
    page.set_viewport_size({"width": 420, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    page.emulate_media(media="print")
    assert not page.is_visible("nav")
    assert not page.is_visible("form")
    assert page.is_visible("#file-list")

"""The page of `outword serve` in a real browser: a real server process and a real headless Chromium."""

import base64
import csv
import io
import json
import shutil
import zipfile
from urllib.parse import urlsplit

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outword[serve]")
pytest.importorskip("selenium", reason="the browser is driven by selenium")
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

import outword
from conftest import LABELS, PHOTOS
from helpers import served
from helpers.served import ask, process
from outword.maths.thresholds import fit_marks, fit_reference, measured
from outword.scoring.rows import COLUMNS
from outword.serve.app import create_app
from outword.vectors.vocabulary import Vocabulary

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
    pytest.mark.skipif(DRIVER is None, reason="there is no chromedriver here"),
]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
]
TOKEN = "open-sesame"
HOSTILE = "<img src=x onerror=\"document.title='pwned'\">.jpg"
CARDS = """
const [done] = arguments;
const read = () => [...document.querySelectorAll(".card")].map((card) => {
  const text = (selector) => card.querySelector(selector).textContent.trim();
  const [verdict, score, remark] = [...card.querySelector(".verdict").children].map((each) => each.textContent);
  const words = [...card.querySelectorAll(".words li")].map((item) => item.firstChild.textContent);
  return {name: text(".name"), verdict, score, remark, label: text(".label").replace(/^(nearest|as) /, ""),
    fits: text(".fits"), near: text(".near"), folded: !card.querySelector("details").open, words,
    error: text(".why"), again: !card.querySelector(".again").hidden,
    pictures: card.querySelectorAll(".photo img").length, tags: card.querySelectorAll(".text img").length};
});
requestAnimationFrame(() => done(read()));  // what has changed is drawn by then
"""
HAND_OVER = """
const [kind, files] = arguments;
const data = new DataTransfer();
for (const [name, content] of files) {
  const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
  data.items.add(new File([bytes], name, {type: "image/jpeg"}));
}
const event = kind === "drop" ? new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true})
  : new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
document.body.dispatchEvent(event);
return event.defaultPrevented;
"""
PASTE_TEXT = """
const data = new DataTransfer();
data.setData("text", "x");
const event = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
document.body.dispatchEvent(event);
return event.defaultPrevented;
"""
DROP_A_GIANT = """
const data = new DataTransfer();
data.items.add(new File([new Uint8Array(33 * 2 ** 20)], "giant.png"));
document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
"""
HOLD = """
const [path, body] = arguments;
const real = window.fetch;
window.fetch = async (asked, how) => {
  const answer = await real(asked, how);
  const read = answer.json.bind(answer);
  if (asked.startsWith(path) && (!body || String(how.body).includes(body)) && !window.go) {
    await new Promise((go) => { window.go = go; });
    answer.json = async () => { const told = await read(); window.read = true; return told; };
  }
  return answer;
};
"""
TAKE_NO_EMBEDDINGS = """
const real = window.fetch;
window.fetch = async (path, how) => {
  const answer = await real(path, how);
  return path === "v1/detectors" ? Response.json({...await answer.json(), takes_embeddings: false}) : answer;
};
"""
BE_BUSY = """
const real = window.fetch;
[window.busy, window.asked] = [arguments[0], 0];
window.fetch = (path, how) => {
  if (path.startsWith("v1/score")) window.asked += 1;
  const busy = path.startsWith("v1/score") && window.asked <= window.busy;
  return busy ? Promise.resolve(new Response("{}", {status: 503, headers: {"Retry-After": "0"}})) : real(path, how);
};
"""
WATCH = """
window.touched = new Set();
const note = (changes) => changes.forEach(({target}) => touched.add(target.closest?.(".card")?.querySelector(".name")));
const all = {subtree: true, childList: true, attributes: true, characterData: true};
new MutationObserver(note).observe(document.getElementById("cards"), all);
"""
TOUCHED = "return [...touched].map((name) => name?.textContent ?? 'the list');"
GO_AWAY = "window.real = fetch; window.fetch = () => Promise.reject(new TypeError('no network'));"
COME_BACK = "window.fetch = window.real;"


class Page:
    """The page, as a person uses it."""

    def __init__(self, driver, address, downloads):
        self.driver, self.address, self.downloads = driver, address, downloads
        self.refused = ()  # statuses that a test provokes
        self.asked = set()  # scheme and host of all requests

    def __getitem__(self, name):
        return self.driver.find_element(By.ID, name)

    def open(self):
        self.driver.get(self.address)
        return self

    def wait(self, condition):
        return WebDriverWait(self.driver, 20, poll_frequency=0.05).until(lambda _: condition())

    def ready(self):
        self.wait(self["app"].is_displayed)
        return self

    def choose(self, *names):
        self["files"].send_keys("\n".join(str(PHOTOS / f"{name}.jpg") for name in names))
        return self

    def hold(self, path, body=""):
        """Hold the next answer of a path; `held` waits until it is there, `let_go` until the page has read it."""
        self.driver.execute_script(HOLD, path, body)

    def held(self):
        self.wait(lambda: self.driver.execute_script("return Boolean(window.go)"))

    def let_go(self):
        self.driver.execute_script("window.go()")
        self.wait(lambda: self.driver.execute_script("return window.read"))

    def hand_over(self, kind, files):
        content = [[name, base64.b64encode(data).decode()] for name, data in files.items()]
        assert self.driver.execute_script(HAND_OVER, kind, content)
        return self.settled()

    def settled(self):
        """Wait until no photo waits, all that could be read have their pictures, and nothing is judged anew."""
        self.wait(lambda: self.pictured() and "busy" not in self["progress"].get_attribute("class"))
        return self

    def pictured(self):
        cards = self.cards().values()
        return cards and all(card["pictures"] or card["error"] for card in cards)

    def cards(self):
        return {card["name"]: card for card in self.driver.execute_async_script(CARDS)}

    def labels(self, *lines):
        """Replace the class names."""
        self["labels"].send_keys(Keys.CONTROL, "a")
        self["labels"].send_keys(Keys.NULL, "\n".join(lines))

    def mark(self, name, value):
        (card,) = [one for one in self.driver.find_elements(By.CLASS_NAME, "card") if name in one.text]
        card.find_element(By.CSS_SELECTOR, f"[value={value}]").click()

    def downloaded(self, button):
        self[button].click()
        path = self.wait(self.whole)
        data = path.read_bytes()
        path.unlink()
        return data

    def whole(self):
        """The file that was downloaded: Chromium holds its name with an empty one while it writes to another."""
        paths = list(self.downloads.iterdir())
        done = len(paths) == 1 and paths[0].suffix in (".csv", ".zip") and paths[0].stat().st_size
        return paths[0] if done else None

    def requests(self):
        """Requests since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        made = [event["params"]["request"] for event in events if event["method"] == "Network.requestWillBeSent"]
        self.asked |= {urlsplit(request["url"])[:2] for request in made}
        return made

    def posted(self):
        """The types of what was sent to be scored since the last call."""
        made = [request for request in self.requests() if "/v1/score" in request["url"]]
        return [request["headers"]["Content-Type"].split(";")[0] for request in made]

    def check(self):
        """Nobody else was asked, and the console has nothing but the refusals that the test provoked."""
        assert self.driver.title == "outword"
        self.requests()
        assert {urlsplit(self.address)[:2]} <= self.asked <= {urlsplit(self.address)[:2], ("blob", "")}
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        assert [text for text in said if not any(f"status of {code}" in text for code in self.refused)] == []


@pytest.fixture(scope="module")
def address(detector, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "pets.outword"
    detector.save(path)
    with process(path, "--max-detectors", "1") as (_, address):
        yield address


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS:
        options.add_argument(flag)
    downloads = tmp_path_factory.mktemp("downloads")
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver, downloads
    driver.quit()


@pytest.fixture
def page(browser, address):
    page = Page(browser[0], address, browser[1]).open().ready()
    yield page
    page.check()


def photo(name):
    return (PHOTOS / f"{name}.jpg").read_bytes()


def test_a_dropped_photo_gets_its_verdict_and_why(page, detector):
    page.hand_over("drop", {"cat.jpg": photo("cat"), "coffee.jpg": photo("coffee"), "raccoon.jpg": photo("raccoon")})
    cards = page.cards()
    assert list(cards) == ["coffee.jpg", "cat.jpg", "raccoon.jpg"]  # highest score first
    for name, card in cards.items():
        told = detector.explain(PHOTOS / name, top=3)
        sign = "≥" if told.score >= told.threshold else "<"
        score, compared, threshold = card["score"].split()  # with as many decimals as the plot can show
        assert (float(score), float(threshold)) == pytest.approx((told.score, told.threshold), abs=0.05)
        assert (compared, "." in score) == (sign, True)
        assert (card["verdict"], card["remark"]) == (told.verdict, "")
        assert card["label"] == (told.named if told.verdict == "in" else f"looks like: {told.looks_like[0]}")
        assert card["words"] == [word for word, share in told.words if share >= 0.01]
        assert card["pictures"] == 1
    assert page["tallies"].text.split() == ["2", "in", "1", "out"]
    assert page["said"].get_attribute("textContent") == "3 photos: 2 in, 1 out"
    assert not page["notice"].is_displayed()


def test_what_it_looks_like_and_how_well_it_fits_are_said_and_the_rest_is_folded(browser, detector):
    names, reference = ["tabby", "brick wall"], np.arange(124) / 100
    whole = detector.with_cut(fit_reference(reference, fpr=0.05), reference)
    whole.vocabulary = Vocabulary(names, detector.encoder.encode_texts(names).astype(np.float16))
    with served.in_thread(whole) as address:
        page = Page(browser[0], f"{address}/", browser[1]).open().ready()
        cards = page.choose("cat", "brick").settled().cards()
        cat, wall = cards["cat.jpg"], cards["brick.jpg"]
        assert (cat["verdict"], cat["label"], cat["near"]) == ("in", "tabby cat", "nearest label tabby cat")
        assert (wall["verdict"], wall["label"]) == ("out", "looks like: brick wall")
        assert wall["near"] == "nearest label space shuttle"
        assert (cat["fits"], cat["remark"]) == ("fits better than 99.2 % of unrelated photos", "")
        assert cat["folded"] and wall["folded"] and not page["notice"].is_displayed()
        assert page["threshold-text"].text == "Threshold 1.2, lets in 5% of 124 unrelated photos."
        page["threshold"].send_keys(Keys.HOME)
        assert page.cards()["brick.jpg"]["label"] == "space shuttle"  # as that, now that it is in
        rows = list(csv.DictReader(io.StringIO(page.downloaded("export").decode())))
        assert [(row["looks_like"], row["basis"]) for row in rows] == [(name, "calibrated") for name in names]
        page.check()


def test_a_pasted_photo_and_text_that_is_none(page):
    page.hand_over("paste", {"image.jpg": photo("cat")})
    assert page.cards()["pasted-1.jpeg"]["verdict"] == "in"
    assert page.driver.execute_script(PASTE_TEXT) is False


def test_demo_photos_marks_that_touch_one_card_and_removal(page):
    page["demo"].click()
    page.wait(lambda: len(page.cards()) == len(list(PHOTOS.glob("*.jpg"))))
    page.settled().hold("v1/detectors")
    page.driver.execute_script(WATCH)
    page.mark("cat.jpg", "inside")
    page.held()
    page.cards()
    assert page.driver.execute_script(TOUCHED) == ["cat.jpg"]
    page.let_go()
    page.wait(lambda: "from marks" in page["threshold-text"].text)
    scores = [float(card["score"].split()[0]) for card in page.settled().cards().values()]
    assert scores == sorted(scores, reverse=True)
    second = list(page.cards())[1]
    page.driver.find_element(By.CLASS_NAME, "remove").click()
    assert next(iter(page.cards())) == second
    assert page.driver.switch_to.active_element.get_attribute("aria-label") == f"Remove {second}"
    page["clear"].click()
    assert page.cards() == {}
    assert not page["results"].is_displayed()


def test_other_class_names_change_the_verdicts_without_sending_the_photos_again(page):
    before = page.choose("raccoon", "cat", "tripod").settled().cards()
    assert (before["raccoon.jpg"]["verdict"], before["raccoon.jpg"]["label"]) == ("out", "looks like: grey fox")
    page["threshold"].send_keys(Keys.HOME)
    page.requests()
    page.labels("tabby cat", "", "tripod", "coati: a raccoon, the animal", "frobnicator")
    page.wait(page["unknown"].is_displayed)
    after = page.settled().cards()
    assert after["raccoon.jpg"]["near"].startswith("nearest label coati")
    assert (before["tripod.jpg"]["verdict"], after["tripod.jpg"]["verdict"]) == ("out", "in")
    assert page["unknown"].text == "Unknown to the encoder: frobnicator. Verdicts on them are guesses."
    assert page.posted() == ["application/json"]
    assert "unrelated photos" in page["threshold-text"].text
    page["reset"].click()
    page.wait(lambda: page.cards() == before)
    assert page["labels"].get_property("value").split("\n") == LABELS
    assert not page["reset"].is_displayed()
    assert "new class names" not in page["threshold-text"].text


def test_photos_are_sent_again_where_embeddings_are_not_enough(page):
    page.choose("cat", "tripod").settled()
    page.posted()
    page.driver.execute_script(TAKE_NO_EMBEDDINGS)
    page.labels("tabby cat", "tripod")
    page.wait(lambda: page["facts"].text.startswith("classes\n2"))
    assert [card["verdict"] for card in page.settled().cards().values()] == ["in", "in"]
    assert page.posted() == ["multipart/form-data"] * 2


def test_wrong_class_names_are_said_beside_the_field_and_the_last_ones_stay(page):
    page.refused = (422,)
    before = page.choose("cat").settled().cards()
    page.labels("tabby cat | ")
    page.wait(lambda: "a name is missing" in page["labels-error"].text)
    assert page["labels"].get_attribute("aria-invalid") == "true"
    page.labels("crane: the bird", "crane: the machine")
    page.wait(lambda: 'got "crane" twice' in page["labels-error"].text)
    assert page.cards() == before
    page.labels("tabby cat", "dog")
    page.wait(lambda: page["facts"].text.startswith("classes\n2"))
    assert page["labels-error"].text == ""


def test_a_late_answer_to_older_class_names_is_dropped(page):
    page.choose("cat").settled().hold("v1/detectors", "tiger")
    page.labels("tiger", "pizza")
    page.held()
    page.labels("tabby cat", "pizza", "dog")
    page.wait(lambda: page["facts"].text.startswith("classes\n3"))
    page.posted()
    page.let_go()
    page.choose("coffee").settled()
    assert page.posted() == ["multipart/form-data"]  # nothing was scored with tigers
    assert page["facts"].text.startswith("classes\n3")


def test_a_photo_on_its_way_is_judged_by_the_class_names_of_its_arrival(page):
    page.hold("v1/score")
    page.choose("tripod").held()
    page.labels("tabby cat", "tripod")
    page.wait(lambda: page["facts"].text.startswith("classes\n2"))
    page.let_go()
    assert page.settled().cards()["tripod.jpg"]["label"] == "tripod"
    assert page.posted() == ["multipart/form-data", "application/json"]


def test_a_detector_that_the_service_forgot_is_made_again(page):
    page.refused = (404,)
    page.choose("cat").settled()
    page.labels("tabby cat", "pizza", "dog")
    page.wait(lambda: page["facts"].text.startswith("classes\n3"))
    status, _, _ = ask(page.address, "POST", "/v1/detectors", {"labels": ["door", "window"]})  # there is room for one
    assert status == 200
    page.choose("coffee").settled()
    assert page.cards()["coffee.jpg"]["error"] == ""


def test_the_line_is_moved_by_keys_and_by_pointer(page, detector):
    before = page.choose("cat", "raccoon").settled().cards()
    line = page["threshold"]
    line.send_keys(Keys.END)
    assert [card["verdict"] for card in page.cards().values()] == ["out", "out"]
    line.send_keys(Keys.HOME)
    assert [card["verdict"] for card in page.cards().values()] == ["in", "in"]
    assert "set by hand" in page["threshold-text"].text
    assert [card["remark"] for card in page.cards().values()] == ["", ""]
    assert not page["notice"].is_displayed()
    line.send_keys(Keys.ARROW_RIGHT)
    step = float(line.get_attribute("step"))
    assert float(line.get_property("value")) == pytest.approx(float(line.get_attribute("min")) + step)
    page["own-threshold"].click()
    page.wait(lambda: page.cards() == before)
    share = (detector.threshold - float(line.get_attribute("min"))) / (
        float(line.get_attribute("max")) - float(line.get_attribute("min"))
    )
    start = round((share - 0.5) * (line.size["width"] - 24))  # from the middle; the thumb is 24 wide
    ActionChains(page.driver).move_to_element_with_offset(line, start, 0).click_and_hold().move_by_offset(
        -start, 0
    ).release().perform()
    middle = (float(line.get_attribute("min")) + float(line.get_attribute("max"))) / 2
    assert float(line.get_property("value")) == pytest.approx(middle, abs=2 * step)
    ActionChains(page.driver).drag_and_drop_by_offset(line, -line.size["width"] // 2 + 14, 0).perform()
    assert page.cards()["raccoon.jpg"]["verdict"] == "in"
    assert "2 in" in line.get_attribute("aria-valuetext")


def test_marks_move_the_threshold_and_come_with_the_download(page, detector, tmp_path):
    before = page.choose("cat", "raccoon", "clock").settled().cards()
    mine, other = detector.score([PHOTOS / "raccoon.jpg", PHOTOS / "clock.jpg"])
    fitted = measured(fit_marks([mine], [other], detector.threshold), detector.reference_scores)
    page.mark("raccoon.jpg", "inside")
    page.mark("clock.jpg", "outside")
    page.wait(lambda: "1 of other things" in page["threshold-text"].text)
    assert f"Threshold {fitted.value:.1f}, {fitted.told}" in page["threshold-text"].text
    assert page["threshold-warning"].text == fitted.warning
    cards = page.cards()
    assert [cards[f"{name}.jpg"]["verdict"] for name in ("cat", "raccoon", "clock")] == ["in", "in", "out"]
    assert {card["remark"] for card in cards.values()} == {""}
    zipfile.ZipFile(io.BytesIO(page.downloaded("download"))).extractall(tmp_path)
    loaded = outword.load(tmp_path / "detector.outword")
    assert loaded.threshold_ == pytest.approx(fitted.value, rel=1e-4)
    assert loaded.calibration_.method == "marks"
    page["threshold"].send_keys(Keys.END)
    page.wait(lambda: "set by hand. 2 marks not used" in page["threshold-text"].text)
    page["use-marks"].click()
    assert page.cards() == cards
    page.mark("raccoon.jpg", "inside")  # once more: no mark
    page.mark("clock.jpg", "outside")
    page.wait(lambda: page.cards() == before)


def test_the_detector_comes_with_the_threshold_that_was_set_by_hand(page, tmp_path):
    page.choose("cat").settled()
    page["threshold"].send_keys(Keys.END)
    zipfile.ZipFile(io.BytesIO(page.downloaded("download"))).extractall(tmp_path)
    loaded = outword.load(tmp_path / "detector.outword")
    assert loaded.threshold_ == float(page["threshold"].get_property("value"))
    assert loaded.labels == LABELS


def test_the_table_says_what_the_page_shows(page):
    page.refused = (422,)
    page.hand_over("drop", {"=cat.jpg": photo("cat"), 'a, "b".jpg': photo("raccoon"), "bad.jpg": b"no image"})
    page["threshold"].send_keys(Keys.HOME)
    rows = list(csv.DictReader(io.StringIO(page.downloaded("export").decode())))
    cards = page.cards()
    assert list(rows[0]) == COLUMNS
    assert [row["path"] for row in rows] == ["'=cat.jpg", 'a, "b".jpg', "bad.jpg"]
    assert list(cards) == ["=cat.jpg", 'a, "b".jpg', "bad.jpg"]
    for row in rows[:2]:
        card = cards[row["path"].removeprefix("'")]
        assert (row["verdict"], row["label"], row["error"]) == (card["verdict"], card["label"], "")
        assert (row["basis"], float(row["threshold"])) == ("calibrated", float(page["threshold"].get_property("value")))
        assert f"{float(row['score']):.2f}" == card["score"].split()[0]
        assert [word.rpartition(" ")[0] for word in row["words"].split("; ") if word] == card["words"]
    assert rows[2]["error"] == cards["bad.jpg"]["error"]
    assert rows[2]["score"] == rows[2]["verdict"] == ""


def test_what_cannot_be_scored_is_a_card_that_says_why(page):
    page.refused = (422,)
    cards = page.hand_over("drop", {"bad.jpg": b"no image", "cut.jpg": photo("cat")[:300]}).cards()
    for card in cards.values():
        assert (card["verdict"], card["score"], card["pictures"], card["again"]) == ("error", "", 0, False)
    assert "not an image" in cards["bad.jpg"]["error"]
    page.requests()
    page.driver.execute_script(DROP_A_GIANT)
    assert "the file has 34.6 MB" in page.settled().cards()["giant.png"]["error"]
    assert page.requests() == []


def test_a_hostile_name_is_only_text(page):
    page.refused = (422,)
    hostile = f"\u202e{HOSTILE}"
    page.hand_over("drop", {hostile: photo("cat"), HOSTILE: b"no image"})
    cards = page.cards()
    assert set(cards) == {HOSTILE, f"\\u202e{HOSTILE}"}
    assert [card["tags"] for card in cards.values()] == [0, 0]
    page.labels(HOSTILE, "</textarea><script>document.title='pwned'</script>")
    page.wait(lambda: page["facts"].text.startswith("classes\n2"))
    assert page.driver.execute_script("return document.querySelectorAll('script').length") == 1
    page.mark(f"\\u202e{HOSTILE}", "inside")
    page.wait(lambda: "marks" in page["threshold-text"].text)


def test_a_busy_service_is_asked_again_then_the_photo_can_be_sent_again(page):
    page.driver.execute_script(BE_BUSY, 2)
    assert page.choose("cat").settled().cards()["cat.jpg"]["verdict"] == "in"
    assert page.driver.execute_script("return window.asked") == 3
    page.driver.execute_script("[window.asked, window.busy] = [0, 7]")
    card = page.choose("coffee").settled().cards()["coffee.jpg"]
    assert (card["verdict"], card["error"], card["again"]) == ("error", "the service answered with status 503.", True)
    assert page.driver.execute_script("return window.asked") == 7
    page.driver.find_element(By.CSS_SELECTOR, ".again:not([hidden])").click()
    assert page.driver.switch_to.active_element.get_attribute("aria-label") == "Remove coffee.jpg"
    card = page.settled().cards()["coffee.jpg"]
    assert (card["verdict"], card["error"], card["again"]) == ("in", "", False)


def test_a_service_out_of_reach_is_said_and_photos_wait(page):
    page.driver.execute_script(GO_AWAY)
    page["files"].send_keys(str(PHOTOS / "cat.jpg"))
    page.wait(page["trouble"].is_displayed)
    assert page["trouble-text"].text == "The service cannot be reached."
    assert page.cards()["cat.jpg"]["verdict"] == "waiting"
    page.driver.execute_script(COME_BACK)
    page["retry"].click()
    assert page.settled().cards()["cat.jpg"]["verdict"] == "in"
    assert not page["trouble"].is_displayed()


def test_a_phone_shows_all_of_it(page):
    size = {"width": 375, "height": 700, "deviceScaleFactor": 1, "mobile": True}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page["demo"].click()
        page.wait(lambda: len(page.cards()) > 10)
        assert page.settled().driver.execute_script("return document.documentElement.scrollWidth") == 375
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def under_prefix(app):
    """What a proxy does that has the service at /outword/."""

    async def proxied(scope, receive, send):
        path = scope.get("path", "")
        inside = path.removeprefix("/outword") if path.startswith("/outword/") else "/nothing-here"
        await app({**scope, "path": inside} if scope["type"] == "http" else scope, receive, send)

    return proxied


@pytest.fixture(scope="module")
def guarded():
    """A service with a token, with a method that has no threshold of its own, and behind a proxy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(served, "create_app", lambda *given, **named: under_prefix(create_app(*given, **named)))
        patch.setattr("outword.detector.fitting.find_reference", lambda encoder: None)
        with served.in_thread(outword.fit(LABELS, method="energy"), token=TOKEN) as address:
            yield f"{address}/outword/"


def test_behind_a_proxy_a_token_is_asked_for_and_kept_for_the_tab(browser, guarded):
    page = Page(browser[0], guarded, browser[1]).open()
    page.refused = (401,)
    page.wait(page["token-form"].is_displayed)
    assert not page["app"].is_displayed()
    page["token"].send_keys("wrong", Keys.ENTER)
    page.wait(lambda: page["token-refused"].text == "That token was refused.")
    page["token"].clear()
    page["token"].send_keys(TOKEN, Keys.ENTER)
    page.ready()["demo"].click()
    page.wait(lambda: len(page.cards()) > 10)
    assert page.settled().downloaded("download").startswith(b"PK")
    link = page.driver.find_element(By.LINK_TEXT, "For programs there is an API.")
    assert link.get_property("href") == f"{guarded}docs"
    page.check()
    page.refused = ()
    page.open().ready()
    page.check()


def test_a_method_without_a_threshold_gets_one_by_hand_or_by_marks(browser, guarded):
    page = Page(browser[0], guarded, browser[1]).open()
    page.wait(lambda: page["token-form"].is_displayed() or page["app"].is_displayed())
    if page["token-form"].is_displayed():
        page["token"].send_keys(TOKEN, Keys.ENTER)
    page.ready().choose("cat", "clock").settled()
    assert [card["verdict"] for card in page.cards().values()] == ["uncalibrated"] * 2
    assert "There is no threshold yet" in page["threshold-text"].text
    page.mark("cat.jpg", "inside")
    page.mark("clock.jpg", "outside")
    page.wait(lambda: [card["verdict"] for card in page.cards().values()] == ["in", "out"])
    page["own-threshold"].click()
    page.wait(lambda: [card["verdict"] for card in page.cards().values()] == ["uncalibrated"] * 2)
    page["threshold"].send_keys(Keys.HOME)
    assert [card["verdict"] for card in page.cards().values()] == ["in"] * 2
    page.labels("tabby cat", "pizza")
    page.wait(lambda: page["threshold-text"].text.startswith("The new class names have no threshold of their own yet"))
    page.check()

"""The page of `outword serve` in a real browser: a real server process and a real headless Chromium."""

import base64
import csv
import io
import json
import shutil
import zipfile
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from outword.detector.cuts import with_cut

pytest.importorskip("fastapi", reason="the service needs outword[serve]")
pytest.importorskip("selenium", reason="the browser is driven by selenium")
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

import outword
from conftest import LABELS, PHOTOS, call, lay_out, rows_of
from helpers import served
from helpers.bad_images import encoded
from helpers.contrastive import Contrastive
from helpers.contrastive import photo as shot
from helpers.served import ask, process
from outword.base.prediction import in_words
from outword.maths.thresholds import fit_marks, fit_reference, measured
from outword.scoring.rows import HEADER
from outword.vectors.vocabulary import Vocabulary
from outword.words.label_lists import read_list

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
  const [verdict, score, remark, unsure] = [...card.querySelector(".verdict").children].map((each) => each.textContent);
  return {name: text(".name"), verdict, score, remark, unsure, label: text(".label").replace(/^(nearest|as) /, ""),
    fits: text(".fits"), besides: text(".besides"), error: text(".why"), notes: text(".notes"),
    again: !card.querySelector(".again").hidden, shown: !card.hidden,
    pictures: card.querySelectorAll(".photo img").length, tags: card.querySelectorAll(".text img").length};
});
requestAnimationFrame(() => done(read()));  // what has changed is drawn by then
"""
VIEW = """
const list = (id) => [...document.querySelectorAll(`#${id} li`)].map((item) => item.firstChild.textContent);
const facts = [...document.querySelectorAll("#view-facts div")].map((pair) => [...pair.children]);
const text = (id) => document.getElementById(id).textContent;
return {...Object.fromEntries(facts.map(([name, value]) => [name.textContent, value.textContent])),
  name: text("view-name"), verdict: text("view-verdict"), sense: text("view-sense"), at: text("view-place"),
  open: document.getElementById("view").open, classes: list("view-labels"), words: list("view-words"),
  notes: list("view-notes"), pictures: document.querySelectorAll("#view-photo img").length};
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
ADD_NOTES = """
const real = window.fetch;
window.fetch = async (path, how) => {
  const answer = await real(path, how);
  if (!path.startsWith("v1/score") || !(how.body instanceof FormData)) return answer;
  const told = await answer.json();
  return Response.json({...told, results: told.results.map((result) => ({...result, notes: ["<i>blurred</i>"]}))});
};
"""
ANSWER_BY_ITSELF = """
const [score, files] = arguments;
[window.made, window.released] = [new Set(), new Set()];
const {createObjectURL, revokeObjectURL} = URL;
URL.createObjectURL = (blob) => { const url = createObjectURL.call(URL, blob); made.add(url); return url; };
URL.revokeObjectURL = (url) => { released.add(url); revokeObjectURL.call(URL, url); };
const result = {verdict: "in", basis: "reference", threshold: 0, p: 0.5, fits: "", label: "cat", kind: "",
  nearest: "cat", looks_like: [], labels: [], words: [], notes: [], error: "", embedding: [1]};
let count = 0;
window.fetch = async (path) => Response.json({results: [{...result, score: score + (count++ % 40) / 4}]});
const canvas = document.createElement("canvas");
canvas.toBlob((blob) => {
  const data = new DataTransfer();
  for (let i = 0; i < files; i += 1) data.items.add(new File([blob, String(i)], `${i}.png`, {type: "image/png"}));
  document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
});
"""
AXIS = """
const [ladder, values, cut, done] = arguments;
import("./static/axis.js").then(({axisOf}) => {
  const {place, score, low, high, step, ticks} = axisOf(ladder, values, cut, null, 200);
  const wide = Array.from({length: 201}, (_, i) => low + (i * (high - low)) / 200);
  done({places: values.map((value) => (place(value) - low) / (high - low)), back: values.map((v) => score(place(v))),
    rises: wide.every((at, i) => !i || score(at) > score(wide[i - 1])), steps: (high - low) / step,
    texts: ticks.map(({text}) => text ?? ""), all: [score(low), score(high)]});
});
"""
ZIP = """
const [most, done] = arguments;
const file = (text) => new File([text], "x", {lastModified: 1.6e12});
const gone = {size: 3, stream: () => { throw new Error("gone"); }};
import("./static/zip.js").then(async ({zipped}) => {
  const pairs = [["/a/./b.jpg", file("hello")], ["gone.jpg", gone], ["c.jpg", file("x".repeat(100))], ["..", file("")]];
  const {blob, unread} = await zipped(pairs, {most});
  const bytes = new Uint8Array(await blob.arrayBuffer());
  done({zip: btoa(String.fromCharCode(...bytes)), unread});
});
"""
PARSE = """
const [texts, done] = arguments;
import("./static/judging.js").then(({parseLabels}) => done(texts.map(parseLabels)));
"""
LABEL_TEXT = """
const [typed, prompts, done] = arguments;
import("./static/state.js").then(({labelText}) => done(labelText({labels: typed, typed, prompts})));
"""
TICKS = """
const [done] = arguments;
const shown = (tick) => getComputedStyle(tick).visibility === "visible";
requestAnimationFrame(() => setTimeout(() => done([...document.querySelectorAll("#ticks span")].filter(shown)
  .map((tick) => [tick.textContent, tick.getBoundingClientRect().left, tick.getBoundingClientRect().right]))));
"""
GO_AWAY = "window.real = fetch; window.fetch = () => Promise.reject(new TypeError('no network'));"
COME_BACK = "window.fetch = window.real;"


class Page:
    """The page, as a person uses it."""

    def __init__(self, driver, address, downloads):
        self.driver, self.address, self.downloads = driver, f"{address.rstrip('/')}/", downloads
        self.refused = ()  # statuses that a test provokes
        self.asked = set()  # scheme and host of all requests

    def __getitem__(self, name):
        return self.driver.find_element(By.ID, name)

    def open(self, kept='{"demo": false}'):
        """Open the page in a browser that has kept this of it: by default nothing but that it was here before."""
        key = json.dumps(f"outword:{urlsplit(self.address).path}")
        source = f"localStorage.clear(); localStorage.setItem({key}, {json.dumps(kept)});"
        first = self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
        self.reload()
        self.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", first)
        return self

    def reload(self):
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

    def judged_by(self, count):
        """Wait until so many class names judge."""
        self.wait(lambda: self["facts"].get_property("textContent").startswith(f"classes{count}c"))
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

    def view(self, name):
        """Click a photo, and read all that is said of it."""
        self.card(name).find_element(By.CLASS_NAME, "open").click()
        self.wait(self["view"].is_displayed)
        told = self.viewed()
        self["view-close"].click()
        return told

    def viewed(self):
        self.cards()  # what has changed is drawn by then
        return self.driver.execute_script(VIEW)

    def card(self, name):
        (card,) = [
            one
            for one in self.driver.find_elements(By.CLASS_NAME, "card")
            if name in one.find_element(By.CLASS_NAME, "name").text
        ]
        return card

    def value(self):
        """The threshold of the page, as its table has it."""
        return float(self.rows()[0]["threshold"])

    def rows(self):
        return list(csv.DictReader(io.StringIO(self.downloaded("export").decode())))

    def labels(self, *lines):
        """Replace the class names."""
        self["labels"].send_keys(Keys.CONTROL, "a")
        self["labels"].send_keys(Keys.NULL, "\n".join(lines))

    def mark(self, name, value):
        self.card(name).find_element(By.CSS_SELECTOR, f"[value={value}]").click()

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
    with process(path, "--limit", "detectors=1") as (_, address):
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
        assert float(card["score"]) == pytest.approx(told.score, abs=0.05)  # as many decimals as the plot can show
        assert (card["verdict"], card["remark"], card["fits"]) == (told.verdict, "", told.fits)
        like = f"looks like: {told.looks_like[0]}"
        assert card["label"] == (told.named if told.verdict == "in" else like)
        assert card["besides"].startswith(like if told.verdict == "in" else f"nearest of yours: {told.named}")
        assert card["pictures"] == 1
    assert page["show"].text.split()[:6] == ["3", "all", "2", "in", "1", "out"]
    assert page["said"].get_attribute("textContent") == "3 photos: 2 in, 1 out"
    assert not page["notice"].is_displayed()


def test_a_click_shows_the_photo_large_with_everything_known_about_it(page, detector):
    page.choose("cat", "raccoon").settled()
    told, known = detector.explain(PHOTOS / "raccoon.jpg", top=5), page.view("raccoon.jpg")
    assert (known["name"], known["verdict"], known["at"], known["pictures"]) == ("raccoon.jpg", "out", "2 of 2", 1)
    assert known["looks like"] == ", ".join(told.looks_like)
    assert known["nearest of yours"] == told.named
    assert known["classes"] == [label for label, _ in told.labels]
    assert known["words"] == [word for word, _ in told.fired]
    score, compared, threshold = known["score"].split()
    assert (float(score), compared, float(threshold)) == (
        pytest.approx(told.score, abs=0.05),
        "<",
        pytest.approx(told.threshold, abs=0.05),
    )
    assert float(known["p-value"].split(":")[0]) == pytest.approx(told.p, rel=0.05)
    assert known["how well"] == told.fits.capitalize()
    assert known["file"].startswith("480 × 480, 72 kB")
    assert not page["view"].is_displayed()
    assert page.driver.switch_to.active_element.get_attribute("aria-label") == "Show all about raccoon.jpg"


def test_what_it_looks_like_and_how_well_it_fits_are_said(browser, detector):
    names, reference = ["tabby", "brick wall"], np.arange(124) / 100
    whole = with_cut(detector, fit_reference(reference, fpr=0.05), reference)
    whole.vocabulary = Vocabulary(names, detector.encoder.encode_texts(names).astype(np.float16))
    with served.in_thread(whole) as address:
        page = Page(browser[0], f"{address}/", browser[1]).open().ready()
        cards = page.choose("cat", "brick").settled().cards()
        cat, wall = cards["cat.jpg"], cards["brick.jpg"]
        assert (cat["verdict"], cat["label"], cat["besides"]) == ("in", "tabby cat", "looks like: tabby, brick wall")
        assert (wall["verdict"], wall["label"]) == ("out", "looks like: brick wall")
        assert wall["besides"] == "nearest of yours: space shuttle"
        assert (cat["fits"], cat["remark"]) == ("fits better than 99.2 % of unrelated photos; 94.4 % are needed", "")
        assert not page["notice"].is_displayed()
        text = (
            "In is what fits better than 94.4 % of unrelated photos. Threshold 1.2, lets in 5% of 124 unrelated photos."
        )
        assert page["threshold-text"].text == text
        assert page["ticks"].text.split("\n") == ["90 %", "all 124"]  # 50 % is 6 pixels beside 90 %
        page["threshold"].send_keys(Keys.HOME)
        assert page.cards()["brick.jpg"]["label"] == "space shuttle"  # as that, now that it is in
        rows = page.rows()
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
    scores = [float(card["score"]) for card in page.settled().cards().values()]
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
    page.wait(lambda: "frobnicator" in page["odds"].text)
    after = page.settled().cards()
    assert page.view("raccoon.jpg")["nearest of yours"].startswith("coati")
    assert (before["tripod.jpg"]["verdict"], after["tripod.jpg"]["verdict"]) == ("out", "in")
    weakest = page["odds"].find_element(By.CSS_SELECTOR, ".not-seen")
    assert weakest.text.startswith("frobnicator\nnot seen, ") and "the encoder does not know it" in weakest.text
    assert weakest.find_element(By.TAG_NAME, "details").get_attribute("open") is None
    weakest.find_element(By.TAG_NAME, "summary").click()
    assert "outword tune" in weakest.text and page["odds-help"].is_displayed()
    assert not page["unknown"].is_displayed()  # the odds say it
    page["threshold"].send_keys(Keys.HOME)
    page.wait(page["unknown"].is_displayed)  # they are of another threshold
    assert page["unknown"].text == "Unknown to the encoder: frobnicator. Verdicts on them are guesses."
    page["own-threshold"].click()
    page.wait(page["odds"].is_displayed)
    assert page.posted() == ["application/json"]
    assert "unrelated photos" in page["threshold-text"].text
    page["reset"].click()
    page.wait(lambda: "set by hand" in page["threshold-text"].text)  # that belongs to those names
    page["own-threshold"].click()
    page.wait(lambda: page.cards() == before)
    assert page["labels"].get_property("value").split("\n") == LABELS
    assert not page["reset"].is_displayed()
    assert "new class names" not in page["threshold-text"].text


def test_photos_are_sent_again_where_embeddings_are_not_enough(page):
    page.choose("cat", "tripod").settled()
    page.posted()
    page.driver.execute_script(TAKE_NO_EMBEDDINGS)
    page.labels("tabby cat", "tripod")
    page.judged_by(2)
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
    page.judged_by(2)
    assert page["labels-error"].text == ""


def test_class_names_are_read_as_in_a_file_of_labels(page):
    texts = [
        "cat # my pet\ndog",
        "# mine\ncat,\ncrane#bird,,\nC#\n",
        "# mine\ncat, dog,",
        "crane: a crane, the bird, # not the machine\ncat",
        "crane: a crane, the bird,",
        "cat,\n",
        "track #5, cat",  # in a single line, it is a name
    ]
    for text, got in zip(texts, page.driver.execute_async_script(PARSE, texts), strict=True):
        entries = read_list(text, None, pytest.fail).entries
        prompts = {entry.text: entry.extra for entry in entries}
        assert got == (prompts if any(prompts.values()) else [entry.text for entry in entries])


@pytest.mark.parametrize(
    ("typed", "prompts"),
    [
        (["cat", "crane#bird"], {}),
        (["crane", "cat"], {"crane": "a crane, the bird"}),
        (["track #5", "cat"], {}),
        (["#hashtag"], {}),
    ],
)
def test_class_names_in_the_field_are_those_of_the_detector(page, typed, prompts):
    text = page.driver.execute_async_script(LABEL_TEXT, typed, prompts)
    wanted = {name: prompts.get(name, "") for name in typed} if prompts else typed
    assert page.driver.execute_async_script(PARSE, [text]) == [wanted]


def test_a_late_answer_to_older_class_names_is_dropped(page):
    page.choose("cat").settled().hold("v1/detectors", "tiger")
    page.labels("tiger", "pizza")
    page.held()
    page.labels("tabby cat", "pizza", "dog")
    page.judged_by(3)
    page.posted()
    page.let_go()
    page.choose("coffee").settled()
    assert page.posted() == ["multipart/form-data"]  # nothing was scored with tigers
    page.judged_by(3)


def test_a_photo_on_its_way_is_judged_by_the_class_names_of_its_arrival(page):
    page.hold("v1/score")
    page.choose("tripod").held()
    page.labels("tabby cat", "tripod")
    page.judged_by(2)
    page.let_go()
    assert page.settled().cards()["tripod.jpg"]["label"] == "tripod"
    assert page.posted() == ["multipart/form-data", "application/json"]


def test_a_detector_that_the_service_forgot_is_made_again(page):
    page.refused = (404,)
    page.choose("cat").settled()
    page.labels("tabby cat", "pizza", "dog")
    page.judged_by(3)
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
    share = (float(line.get_property("value")) - float(line.get_attribute("min"))) / (
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
    fitted = measured(fit_marks([mine], [other], detector.threshold), detector.thresholds.reference_scores)
    page.mark("raccoon.jpg", "inside")
    page.mark("clock.jpg", "outside")
    page.wait(lambda: "1 of other things" in page["threshold-text"].text)
    assert f"Threshold {fitted.value:.1f}, {fitted.told}" in page["threshold-text"].text
    assert page["threshold-warning"].text == fitted.warning
    cards = page.cards()
    assert [cards[f"{name}.jpg"]["verdict"] for name in ("cat", "raccoon", "clock")] == ["in", "in", "out"]
    assert {card["remark"] for card in cards.values()} == {""}
    (tmp_path / "detector.outword.zip").write_bytes(page.downloaded("download"))
    loaded = outword.load(tmp_path / "detector.outword.zip")
    assert loaded.threshold_ == pytest.approx(fitted.value, rel=1e-4)
    assert loaded.calibration_.method == "marks"
    page["threshold"].send_keys(Keys.END)
    page.wait(lambda: "set by hand; 2 marks not used" in page["threshold-text"].text)
    page["use-marks"].click()
    assert page.cards() == cards
    page.mark("raccoon.jpg", "inside")  # once more: no mark
    page.mark("clock.jpg", "outside")
    page.wait(lambda: page.cards() == before)


def test_the_detector_comes_with_the_threshold_that_was_set_by_hand(page, tmp_path):
    page.choose("cat").settled()
    page["threshold"].send_keys(Keys.END)
    (tmp_path / "d.zip").write_bytes(page.downloaded("download"))
    loaded = outword.load(tmp_path / "d.zip")
    assert loaded.threshold_ == page.value()
    assert loaded.labels == LABELS
    (row,) = rows_of(call("score", tmp_path / "d.zip", PHOTOS / "cat.jpg").stdout)
    assert (row["verdict"], row["basis"]) == ("out", "calibrated")


def test_the_table_says_what_the_page_shows(page):
    page.refused = (422,)
    page.hand_over("drop", {"=cat.jpg": photo("cat"), 'a, "b".jpg': photo("raccoon"), "bad.jpg": b"no image"})
    page["threshold"].send_keys(Keys.HOME)
    page.mark("=cat.jpg", "inside")
    page.mark('a, "b"', "outside")
    page.wait(lambda: "1 of other things" in page["threshold-text"].text)
    page["threshold"].send_keys(Keys.HOME)
    rows = page.rows()
    cards = page.cards()
    assert list(rows[0]) == [*HEADER, "mark"]
    assert [row["mark"] for row in rows] == ["in", "out", ""]
    assert [row["path"] for row in rows] == ["'=cat.jpg", 'a, "b".jpg', "bad.jpg"]
    assert list(cards) == ["=cat.jpg", 'a, "b".jpg', "bad.jpg"]
    for row in rows[:2]:
        card = cards[row["path"].removeprefix("'")]
        assert (row["verdict"], row["nearest"], row["error"]) == (card["verdict"], card["label"], "")
        assert row["label"] == ("" if row["verdict"] == "out" else row["nearest"])
        assert (row["basis"], float(row["threshold"]) < float(row["score"])) == ("calibrated", True)
        assert float(row["score"]) == pytest.approx(float(card["score"]), abs=0.05)
        assert card["fits"] == in_words(float(row["p"]))  # at this threshold nothing is needed to be in
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
    page.judged_by(2)
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


def test_ticks_whose_texts_would_overlap_are_left_out(page):
    page.choose("cat", "raccoon").settled()
    page.driver.execute_script(
        "document.getElementById('line').addEventListener('toggle', (e) => e.target.open = true)"
    )
    every = [text for text, _, _ in page.driver.execute_async_script(TICKS)]
    assert every[:3] == ["50 %", "90 %", "99 %"] and every[-1].startswith("all ")
    try:
        for width in (500, 390, 200):
            size = {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": True}
            page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            ticks = page.driver.execute_async_script(TICKS)
            assert all(before[2] < after[1] for before, after in pairwise(ticks))
            texts = [text for text, _, _ in ticks]
            assert texts[-1] == every[-1] and len(texts) > 1
            assert len(texts) < len(every) or width > 200
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    page.wait(lambda: [text for text, _, _ in page.driver.execute_async_script(TICKS)] == every)


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
        patch.setattr("outword.detector.fitting.find_reference", lambda encoder: None)
        made = outword.fit(LABELS, method="energy")
        with served.in_thread(made, token=TOKEN, around=under_prefix) as address:
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
    page.driver.execute_script("document.querySelector('.how').open = true")
    assert page.settled().downloaded("download").startswith(b"PK")
    link = page.driver.find_element(By.LINK_TEXT, "For programs there is an API.")
    assert link.get_property("href") == f"{guarded}docs"
    page.check()
    page.refused = ()
    page.open().ready()
    page.check()


def test_a_method_without_a_threshold_gets_one_by_hand_or_by_marks(browser, guarded):
    page = Page(browser[0], guarded, browser[1]).open()
    page.refused = (401,)
    page.wait(lambda: page["token-form"].is_displayed() or page["app"].is_displayed())
    if page["token-form"].is_displayed():
        page["token"].send_keys(TOKEN, Keys.ENTER)
    page.ready().choose("cat", "clock").settled()
    assert [card["verdict"] for card in page.cards().values()] == ["uncalibrated"] * 2
    assert "There is no threshold yet" in page["threshold-text"].text
    assert page["axis-text"].text == "score" and len([*map(float, page["ticks"].text.split())]) == 5
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


@pytest.fixture(scope="module")
def imagined(own_cache):
    """A detector of an encoder without a reference; many photos of one of its labels will be out."""
    return outword.fit(["car", "zorbly", "red"], encoder=Contrastive())


def test_the_odds_of_labels_and_one_imagined_threshold_for_all_photos(browser, imagined):
    with served.in_thread(imagined) as address:
        page = Page(browser[0], address, browser[1]).open().ready()
        shown = [("sports car", 1), ("goldfish", 2), ("tabby", 3), ("volcano", 4)]
        page.hand_over("drop", {f"{one[0]}.png": encoded(Image.fromarray(shot(*one)), "PNG") for one in shown})
        records = imagined.fixed().predict([shot(*one) for one in shown])
        found = page.cards()
        assert [found[f"{name}.png"]["verdict"] for name, _ in shown] == [one.verdict for one in records]
        assert [found[f"{name}.png"]["fits"] for name, _ in shown] == [one.fits for one in records]
        assert page.value() == pytest.approx(imagined.threshold)
        worst_first = sorted(imagined.odds, key=lambda one: one.share)
        items = page["odds"].find_elements(By.TAG_NAME, "li")
        shares = [f"{one.label}\n{one.word}, {round(100 * one.share)} %\n{one.expected}" for one in worst_first]
        assert [item.text.removesuffix("\nWhat helps?") for item in items] == shares
        assert page["odds-count"].text == "2 fair, 1 poor" and page["odds-help"].is_displayed()
        assert worst_first[0].word in ("poor", "not seen")
        assert items[0].get_attribute("class") == worst_first[0].word.replace(" ", "-")
        told = page["threshold-text"].text
        assert "of imagined unrelated photos" in told and imagined.how_cut in told
        page.mark("volcano.png", "outside")
        page.wait(lambda: not page["odds"].is_displayed())
        page["own-threshold"].click()
        page.wait(page["odds"].is_displayed)
        page.check()


def test_the_first_visit_shows_demo_photos_judged_with_lists_to_click_on(page, detector):
    page.open("{}").ready()
    page.driver.execute_script("document.getElementById('demo').click()")  # they come once all the same
    page.wait(lambda: len(page.driver.find_elements(By.CLASS_NAME, "card")) == len(list(PHOTOS.glob("*.jpg"))))
    cards = page.settled().cards()
    assert {card["verdict"] for card in cards.values()} == {"in", "out"}
    assert all("looks like: " in card["label"] + card["besides"] for card in cards.values())
    lists = [button.text for button in page["examples"].find_elements(By.TAG_NAME, "button")]
    assert lists == ["cat, dog, coffee", "animal", "camera, clock, tripod"]
    page["examples"].find_element(By.CSS_SELECTOR, "[value^=camera]").click()
    cards = page.judged_by(3).settled().cards()
    assert [cards[f"{name}.jpg"]["verdict"] for name in ("camera", "tripod", "cat")] == ["in", "in", "out"]
    page.choose("cat")  # photos of one's own take the place of the examples
    assert list(page.settled().cards()) == ["cat.jpg"]
    assert not page["examples"].is_displayed()
    page.reload().ready()
    assert page.cards() == {}


def test_kinds_are_shown_and_switched_off_one_by_one(page):
    page.choose("cat", "raccoon").settled()
    page.labels("animal")
    page.judged_by(1).settled()
    fold = page["kinds"].find_element(By.TAG_NAME, "details")
    before = fold.find_element(By.TAG_NAME, "summary")
    many = before.text
    before.click()

    def box(kind):
        return page["kinds"].find_element(By.CSS_SELECTOR, f'[data-kind="{kind}"] input')

    assert page.cards()["cat.jpg"]["label"].startswith("animal (")
    whole = float(page.cards()["cat.jpg"]["score"])
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", box("cat"))
    box("cat").click()
    page.wait(lambda: "1 switched off" in before.text and many.split()[1] not in before.text)
    assert page["labels"].get_property("value") == "animal > -cat"
    assert before.text.endswith(", 1 switched off: cat")
    cards = page.settled().cards()
    assert float(cards["cat.jpg"]["score"]) < whole - 5  # it is a feline at most, which is too little
    assert (cards["cat.jpg"]["verdict"], cards["raccoon.jpg"]["verdict"]) == ("out", "in")
    assert not box("cat").is_selected() and box("cat").is_enabled()
    assert not box("tabby").is_selected() and not box("tabby").is_enabled()  # it went with the cats
    box("horse").click()
    box("cat").click()  # without waiting for the answer
    page.wait(lambda: page["labels"].get_property("value") == "animal > -horse")
    page.wait(lambda: not box("horse").is_selected() and box("cat").is_selected())
    box("horse").click()
    page.wait(lambda: before.text == many)
    assert (page["labels"].get_property("value"), page.settled().cards()["cat.jpg"]["verdict"]) == ("animal", "in")
    assert not page["kinds-off"].is_displayed()
    page.labels("raccoon")  # the encoder knows none of its kinds
    page.wait(lambda: page["kinds-off"].text.startswith("Without kinds: raccoon. The encoder knows none of them"))


def test_marks_belong_to_a_label_list_and_all_of_it_survives_a_reload(page):
    before = page.choose("cat", "raccoon", "clock").settled().cards()
    page.mark("raccoon.jpg", "inside")
    page.wait(lambda: "from marks" in page["threshold-text"].text)
    marked = page.cards()
    page.labels("tabby cat", "pizza")
    page.judged_by(2)
    assert "from marks" not in page["threshold-text"].text  # the marks were made by other names
    page["threshold"].send_keys(Keys.HOME)
    page.wait(lambda: "set by hand" in page["threshold-text"].text)
    hand = page.value()
    page["reset"].click()
    page.wait(lambda: page.cards() == marked)
    page.labels("tabby cat", "pizza")
    page.judged_by(2)
    page.reload().ready().judged_by(2)
    page.choose("cat", "raccoon", "clock").settled()
    assert "set by hand" in page["threshold-text"].text and page.value() == hand
    page["reset"].click()
    page.wait(lambda: page.cards() == marked)
    page["own-threshold"].click()
    page.wait(lambda: page.cards() == before)


@pytest.mark.parametrize("kept", ["[", "7", '{"lists": [], "labels": {"text": 7}, "demo": false}', None])
def test_what_the_browser_keeps_may_be_anything_or_nothing(page, kept):
    if kept is None:  # it is full, or forbidden
        refuse = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('forbidden'); }});"
        refuse += "Object.defineProperty(crypto, 'subtle', {value: undefined});"  # as on plain HTTP
        script = page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": refuse})
        page.reload().ready()
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    else:
        page.open(kept).ready()
    page.choose("cat").wait(lambda: list(page.cards()) == ["cat.jpg"])
    page.settled().mark("cat.jpg", "outside")
    page.wait(lambda: "from marks" in page["threshold-text"].text)
    assert page["forgets"].is_displayed() == (kept is None)


def test_what_was_removed_comes_back(page):
    before = page.choose("cat", "raccoon").settled().cards()
    page["clear"].click()
    assert page.cards() == {} and page["removed-text"].text == "2 photos removed."
    page.labels("tabby cat", "pizza")
    page.judged_by(2)
    page["undo"].click()
    assert page.settled().cards().keys() == before.keys()
    page["reset"].click()
    page.wait(lambda: page.cards() == before)
    page.driver.find_element(By.CLASS_NAME, "remove").click()
    assert len(page.cards()) == 1
    page["undo"].click()
    assert page.settled().cards() == before and not page["removed"].is_displayed()


def test_folders_are_chosen_and_dropped_and_what_is_no_photo_is_passed_over(page, tmp_path):
    page.refused = (422,)
    lay_out(tmp_path / "mine", {"pets": ["cat"], "things": ["clock"]})
    (tmp_path / "mine" / "notes.txt").write_text("no photo")
    (tmp_path / "mine" / "._cat.jpg").write_bytes(b"of macOS")
    (tmp_path / "mine" / "CAT.RW2").write_bytes(photo("cat"))  # browsers have no type for it
    assert ",.rw2," in page["files"].get_attribute("accept")
    page["folder"].send_keys(str(tmp_path / "mine"))
    assert set(page.settled().cards()) == {"mine/pets/cat.jpg", "mine/things/clock.jpg", "mine/CAT.RW2"}
    assert page["passed-over"].text == "2 files of the folder passed over: no photos."
    page["clear"].click()
    files = [str(tmp_path / "mine" / "pets"), str(PHOTOS / "coffee.jpg")]
    dropped = {"x": 9, "y": 9, "data": {"items": [], "files": files, "dragOperationsMask": 1}}
    for kind in ("dragEnter", "drop"):
        page.driver.execute_cdp_cmd("Input.dispatchDragEvent", {"type": kind, **dropped})
    page.wait(lambda: len(page.cards()) == 2)
    assert set(page.settled().cards()) == {"pets/cat.jpg", "coffee.jpg"}


def test_photos_are_shown_by_verdict_and_in_an_order(page):
    page.choose("cat", "raccoon", "clock", "coffee", "brick").settled()

    def shown():
        return [name for name, card in page.cards().items() if card["shown"]]

    def show(kind):
        page["show"].find_element(By.CLASS_NAME, kind).click()
        return shown()

    cards = page.cards()
    for kind in ("in", "out"):
        assert show(kind) == [name for name, card in cards.items() if card["verdict"] == kind]
    show("all")
    page["threshold"].send_keys(Keys.END)
    page["threshold"].send_keys(Keys.HOME)
    assert [card["unsure"] for card in page.cards().values()][:2] == ["", ""]
    low, high = (float(page["threshold"].get_attribute(end)) for end in ("min", "max"))
    steps = round((high - low) / float(page["threshold"].get_attribute("step")))
    assert 80 <= steps <= 200
    while not any(card["unsure"] for card in page.cards().values()):
        page["threshold"].send_keys(Keys.ARROW_RIGHT * 4)
    unsure = [name for name, card in page.cards().items() if card["unsure"]]
    assert show("unsure") == unsure and 0 < len(unsure) < 5
    assert page["unsure-text"].text.startswith("unsure: so close to the threshold that letting in half")
    show("all")
    for order, wanted in {"name": sorted(cards), "worst": list(cards)[::-1], "best": list(cards)}.items():
        page["sort"].find_element(By.CSS_SELECTOR, f"[value={order}]").click()
        assert shown() == wanted
    page["sort"].find_element(By.CSS_SELECTOR, "[value=unsure]").click()
    assert shown()[0] in unsure


def test_keys_go_from_photo_to_photo_and_mark(page):
    first, second, third = page.choose("cat", "raccoon", "clock").settled().cards()
    page.driver.find_element(By.CLASS_NAME, "open").send_keys(Keys.ARROW_RIGHT)
    focused = page.driver.switch_to.active_element
    assert focused.get_attribute("aria-label") == f"Show all about {second}"
    focused.send_keys("1")
    page.wait(lambda: "1 of the classes" in page["threshold-text"].text)
    focused.send_keys(Keys.ENTER)
    page.wait(page["view"].is_displayed)
    assert page.viewed()["name"] == second
    page["view"].send_keys(Keys.ARROW_RIGHT, "2")
    page.wait(lambda: "1 of other things" in page["threshold-text"].get_property("textContent"))
    assert (page.viewed()["name"], page.viewed()["at"]) == (third, "3 of 3")
    page["view"].send_keys(Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert page.viewed()["name"] == first
    page["view"].send_keys(Keys.ESCAPE)
    label = f"Show all about {first}"  # though another one was clicked
    page.wait(lambda: page.driver.switch_to.active_element.get_attribute("aria-label") == label)
    page["labels"].send_keys("1")  # is text there
    assert page["labels"].get_property("value").endswith("1")


def test_the_marks_are_a_file_that_calibrate_takes(page, saved):
    names = ["cat", "coffee", "camera", "clock", "tripod", "brick"]
    page.choose(*names).settled()
    for name in names:
        page.mark(f"{name}.jpg", "outside" if name == "brick" else "inside")
    page.wait(lambda: "5 of the classes, 1 of other things" in page["threshold-text"].text)
    marks = saved.parent / "marks.csv"
    marks.write_bytes(page.downloaded("export-marks"))
    found = json.loads(call("calibrate", saved, PHOTOS, "--marks", marks, "--json").stdout)
    assert (found["n_photos"], found["n_others"]) == (5, 1)


def test_notes_of_the_service_are_shown_as_text(page):
    page.driver.execute_script(ADD_NOTES)
    assert page.choose("cat").settled().cards()["cat.jpg"]["notes"] == "<i>blurred</i>"
    assert page.view("cat.jpg")["notes"] == ["<i>blurred</i>"]
    page.labels("tabby cat", "pizza")
    page.judged_by(2)
    assert page.settled().cards()["cat.jpg"]["notes"] == "<i>blurred</i>"
    page["clear"].click()
    page.labels("tabby cat", "pizza", "dog")
    page.judged_by(3)
    page.posted()
    page["undo"].click()
    assert page.settled().cards()["cat.jpg"]["notes"] == page.rows()[0]["notes"] == "<i>blurred</i>"
    assert page.posted() == ["application/json"]  # only its embedding


def test_hundreds_of_photos_leave_no_address_behind(page):
    page.driver.execute_script(ANSWER_BY_ITSELF, -5.0, 300)
    page.wait(lambda: len(page.cards()) == 300)
    page.settled()
    page.driver.find_element(By.CLASS_NAME, "open").click()
    page.wait(page["view"].is_displayed)
    page["view"].send_keys(Keys.ARROW_RIGHT, Keys.ESCAPE)
    left = "return [...made].filter((url) => !released.has(url)).length"
    page.wait(lambda: page.driver.execute_script(left) == 0)
    assert page.driver.execute_script("return made.size") == 302


def test_a_screen_reader_finds_its_way(page):
    page.choose("cat").settled()
    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    told = {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]}
    wanted = {
        "heading": ["Does this photo show one of your classes?", "Your classes", "Photos", "Results"],
        "textbox": ["Class names, one a line"],
        "button": ["Choose photos", "Choose a folder", "1 all", "1 in", "Show all about cat.jpg", "one of mine"],
        "slider": ["All photos by how well they fit. Drag the line: what is right of it is in."],
        "group": ["Which photos to show", "Does cat.jpg show one of your classes?"],
        "combobox": ["Order"],
        "list": ["Photos"],
        "image": ["cat.jpg"],
    }
    assert {(role, name) for role, names in wanted.items() for name in names} <= told
    unnamed = {role for role, name in told if not name and role in ("button", "slider", "checkbox", "image", "textbox")}
    assert unnamed == set()


def test_photos_are_counted_and_shown_by_class(page):
    page.choose("cat", "raccoon", "coffee", "shuttle", "brick").settled()

    def chips(group):
        return [button.text.replace("\n", " ") for button in page[group].find_elements(By.TAG_NAME, "button")]

    def show(label):
        page["by-class"].find_element(By.CSS_SELECTOR, f'[value="{label}"]').click()
        return [name for name, card in page.cards().items() if card["shown"]]

    rows = page.rows()
    inside = {row["path"]: row["label"] for row in rows if row["verdict"] == "in"}
    nearest = {row["path"]: row["nearest"] for row in rows}
    of_cats = [row["path"] for row in rows if row["nearest"] == "tabby cat"]
    assert chips("by-class")[0] == "any class" and len(set(inside.values())) > 1
    counts = {label: sum(each == label for each in inside.values()) for label in set(nearest.values())}
    shown = {chip.split(" +")[0] for chip in chips("by-class")[1:]}
    assert shown == {f"{count} {label}" for label, count in counts.items()}
    assert sorted(show("tabby cat")) == sorted(of_cats)
    assert chips("show")[:2] == [f"{len(of_cats)} all", f"{counts['tabby cat']} in"]
    assert page["export-inside"].text == f"Export {counts['tabby cat']} in (zip)"
    page["show"].find_element(By.CLASS_NAME, "in").click()
    assert [name for name, card in page.cards().items() if card["shown"]] == ["cat.jpg"]
    page["show"].find_element(By.CLASS_NAME, "all").click()
    assert len(show("tabby cat")) == 5  # once more: any class
    show("espresso")
    page.labels("tabby cat", "pizza")
    page.judged_by(2).settled()
    assert all(card["shown"] for card in page.cards().values())  # there is no espresso any more


def test_many_photos_are_selected_and_marked_together(page):
    names = list(page.choose("cat", "raccoon", "coffee", "clock", "brick").settled().cards())

    def box(name):
        return page.card(name).find_element(By.CSS_SELECTOR, ".pick input")

    def marks():
        return {row["path"]: row["mark"] for row in page.rows()}

    def press(value):
        page["selection-marks"].find_element(By.CSS_SELECTOR, f'[value="{value}"]').click()

    assert not page["selection"].is_displayed()
    box(names[1]).click()
    ActionChains(page.driver).key_down(Keys.SHIFT).click(box(names[3])).key_up(Keys.SHIFT).perform()
    page.wait(lambda: page["selection-text"].text == "3 selected")
    page.hold("v1/detectors")
    press("inside")
    page.held()
    assert marks() == {name: "in" if name in names[1:4] else "" for name in names}
    page.let_go()
    page.wait(lambda: "from marks: 3 of the classes" in page["threshold-text"].text)
    pressed = page["selection-marks"].find_element(By.CSS_SELECTOR, "[aria-pressed=true]")
    assert pressed.get_attribute("value") == "inside"
    first = page.card(names[1]).find_element(By.CLASS_NAME, "open")
    first.send_keys("2")  # one of those that are selected
    page.wait(lambda: "3 of other things" in page["threshold-text"].text)
    first.send_keys("x", "1")  # it alone: it is selected no more
    page.wait(lambda: "1 of the classes, 2 of other things" in page["threshold-text"].text)
    assert page["selection-text"].text == "2 selected"
    press("")
    page.wait(lambda: "1 of the classes, 0 of other things" in page["threshold-text"].text)
    page["select-all"].click()
    page.wait(lambda: page["selection-text"].text == "5 selected")
    page["show"].find_element(By.CLASS_NAME, "out").click()
    outside = [name for name, card in page.cards().items() if card["verdict"] == "out"]
    assert page["selection-text"].text == f"{len(outside)} selected"  # what is not shown is left alone
    page["selection-remove"].click()
    page["show"].find_element(By.CLASS_NAME, "all").click()
    assert set(page.cards()) == set(names) - set(outside)
    page["undo"].click()
    assert set(page.settled().cards()) == set(names)
    page.card(names[0]).find_element(By.CLASS_NAME, "open").send_keys(Keys.ESCAPE)
    page.wait(lambda: not page["selection"].is_displayed())


def test_what_is_in_comes_as_a_zip_with_names_that_stay_in_their_folder(page, tmp_path):
    files = {"../../up.jpg": "cat", "C:\\work\\é.jpg": "cat", "CON.jpg": "coffee", "no.jpg": "brick"}
    page.hand_over("drop", {name: photo(kind) for name, kind in files.items()})
    page.hand_over("drop", {"con.JPG": photo("coffee"), "é.jpg": photo("cat"), "É.jpg": photo("cat")})
    with zipfile.ZipFile(io.BytesIO(page.downloaded("export-inside"))) as archive:
        assert archive.testzip() is None
        found = {name: archive.read(name) for name in archive.namelist()}
    kinds = {photo("cat"): "cat", photo("coffee"): "coffee"}
    assert {name: kinds[content] for name, content in found.items() if "con" in name.lower()} == {
        "_CON.jpg": "coffee",
        "_con (2).JPG": "coffee",
    }
    assert {name.lower() for name in found} >= {"é.jpg", "é (2).jpg"}
    folded = [name.lower() for name in found]
    assert len(found) == len(set(folded)) == 6
    assert all(Path(name).parts == Path(name).resolve().relative_to(Path.cwd()).parts for name in found)
    assert page["export-inside"].text == "Export 6 in (zip)" and page["export-inside"].is_enabled()


def test_a_zip_is_large_where_it_must_be_and_lacks_what_cannot_be_read(page):
    small, large = (page.driver.execute_async_script(ZIP, most) for most in (1000, 10))
    for made in (small, large):
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(made["zip"]))) as archive:
            assert archive.testzip() is None
            assert {info.filename: archive.read(info) for info in archive.infolist()} == {
                "a/b.jpg": b"hello",
                "c.jpg": b"x" * 100,
                "photo": b"",
            }
            assert archive.infolist()[0].date_time == (2020, 9, 13, *archive.infolist()[0].date_time[3:])
        assert made["unread"] == ["gone.jpg"]
    assert len(base64.b64decode(large["zip"])) > len(base64.b64decode(small["zip"]))


def test_page_and_command_agree_on_what_is_the_same(page, saved, tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    shot = Image.open(PHOTOS / "cat.jpg").convert("RGB")
    (folder / "a.jpg").write_bytes(photo("cat"))
    (folder / "b.jpg").write_bytes(photo("cat"))  # the same file
    shot.resize((shot.width * 2 // 3, shot.height * 2 // 3)).save(folder / "c.png")  # looks the same
    for name in ("d.png", "e.bmp"):
        Image.open(PHOTOS / "coffee.jpg").save(folder / name)  # the same pixels
    for kind in ("brick", "clock", "rocket", "tripod"):
        (folder / f"{kind}.jpg").write_bytes(photo(kind))
    page["folder"].send_keys(str(folder))
    cards = page.settled().cards()
    rows = {Path(row["path"]).name: row["notes"] for row in rows_of(call("score", saved, folder).stdout)}
    twins = {"b.jpg": "a.jpg", "c.png": "a.jpg", "e.bmp": "d.png"}
    for name, notes in rows.items():
        assert cards[f"photos/{name}"]["notes"].endswith(f"the same as photos/{twins[name]}" if name in twins else "")
        assert notes.endswith(str(folder / twins[name]) if name in twins else "")
        assert ("the same as" in cards[f"photos/{name}"]["notes"]) == ("the same as" in notes) == (name in twins)
    page["show"].find_element(By.CLASS_NAME, "same").click()
    assert {name for name, card in page.cards().items() if card["shown"]} == {f"photos/{name}" for name in twins}
    page["show"].find_element(By.CLASS_NAME, "all").click()
    for name in ("a.jpg", "d.png", "clock.jpg", "rocket.jpg", "tripod.jpg", "brick.jpg"):
        page.mark(f"photos/{name}", "outside" if name == "brick.jpg" else "inside")
    page.wait(lambda: "from marks: 5 of the classes, 1 of other things" in page["threshold-text"].text)
    (tmp_path / "marks.csv").write_bytes(page.downloaded("export-marks"))
    assert (tmp_path / "marks.csv").read_text().count(",in") == 7  # b.jpg and e.bmp have the marks of what they are
    found = json.loads(call("calibrate", saved, folder, "--marks", tmp_path / "marks.csv", "--json").stdout)
    assert (found["n_photos"], found["n_others"]) == (5, 1)


@pytest.mark.parametrize("names", [None, ["cat", "raccoon"]])
def test_on_a_phone_the_first_photo_is_on_the_first_screen(page, names):
    size = {"width": 390, "height": 664, "deviceScaleFactor": 1, "mobile": True}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.open('{"demo": true}' if names is None else '{"demo": false}').ready()
        if names:
            assert page["labels"].is_displayed()  # there is room while there are no photos
            page.choose(*names)
        page.wait(lambda: len(page.cards()) > 1)
        page.settled()
        first = page.driver.find_element(By.CSS_SELECTOR, ".card img")
        ends = "const {top, bottom} = arguments[0].getBoundingClientRect(); return [scrollY, top, bottom, innerWidth];"
        scrolled, top, bottom, width = page.driver.execute_script(ends, first)
        assert (scrolled, width) == (0, 390) and 0 < top < bottom < 664
        assert not page["labels"].is_displayed() and "tabby cat" in page["classes-named"].text
        assert page["line-text"].text.startswith("In is what fits better than")
        page["classes"].find_element(By.TAG_NAME, "summary").click()
        assert page["labels"].is_displayed()
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    page.wait(page["threshold"].is_displayed)


@pytest.mark.parametrize(
    ("ladder", "values", "cut"),
    [
        ([[1, -9], [0.5, -5], [0.1, 2], [0.01, 8], [0.001, 12]], [-20.0, -8.0, -4.0, 1.0, 7.0, 11.0, 20.0], 4.0),
        ([], [0.0009, 0.002, 0.01, 0.05, 0.3, 4.0, 6.5], 1.5),  # of many sizes
        ([], [-900.0, -30.0, -3.0, 3.0, 30.0, 900.0], 0.0),
        ([], [3.0, 3.0, 3.0], None),
    ],
)
def test_both_sides_of_the_axis_can_be_read(page, ladder, values, cut):
    axis = page.driver.execute_async_script(AXIS, ladder, values, cut)
    assert axis["back"] == pytest.approx(values)
    assert axis["rises"] and 80 <= axis["steps"] <= 201
    assert axis["all"][0] < min(values) and max(values) < axis["all"][1]
    gaps = np.diff(axis["places"])
    assert len(set(values)) == 1 or gaps.min() > 0.01  # none of them crowd
    assert axis["texts"] == (["50 %", "90 %", "99 %", "99.9 %", "all 1,999"] if ladder else [""] * 5)

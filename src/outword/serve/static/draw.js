/** Drawing the state: what has changed of it, once a frame. Names of files, labels and words only ever become text. */

import { withoutOf } from "./kinds.js";
import {
  $, basis, calibrated, countClasses, counted, countMarks, insidePhotos, kindOf, markOf, notesOf, ofClass,
  selectedPhotos, setAxis, shown, sortPhotos, state, threshold, unsure, visiblePhotos, waiting,
} from "./state.js";
import { renderView } from "./view.js";
import {
  besides, fitting, KINDS, number, percent, plural, seen, tally, thresholdText, thresholdTexts, unrelated, visible,
} from "./words.js";

export const NARROW = matchMedia("(max-width: 820px)"); // as in app.css
const LATEST = 250; // milliseconds until a change is drawn where there are no frames, in a tab in the background
const BINS = 48;
const APART = 6; // pixels between the texts of two ticks
const NAMED = 8; // labels that are named; the others are counted
const ODDS = ["good", "fair", "poor", "not seen"];
const WEAK = ["poor", "not seen"];

let frame = 0;
let timer = 0;

/** Draw the state soon: however many changes there are until then, it is drawn once. */
export function render() {
  if (frame) return;
  frame = requestAnimationFrame(draw);
  timer = setTimeout(draw, LATEST);
}

/** Draw the state now. */
export function draw() {
  cancelAnimationFrame(frame);
  clearTimeout(timer);
  frame = 0;
  renderTrouble();
  $("app").hidden = !state.detector;
  if (!state.detector) return;
  setAxis();
  renderFolds();
  renderClasses();
  renderKinds();
  renderProgress();
  renderRemoved();
  $("notice").hidden = calibrated();
  $("natural").textContent = threshold() === null ? "This method has none of its own."
    : "The one in use is the score's natural cut, classes against wild words.";
  $("app").classList.toggle("empty", !state.photos.length);
  $("results").hidden = !state.photos.length;
  renderResults();
  renderView();
}

/** Tell those who listen to the page. */
export function say(text) {
  $("said").textContent = text;
}

function renderResults() {
  const counts = counted();
  const scored = state.photos.filter((photo) => photo.result);
  renderExports();
  renderShow();
  renderByClass();
  renderSelection();
  $("histogram").hidden = !scored.length;
  if (scored.length) renderHistogram(scored, counts);
  renderThreshold();
  renderCards();
}

function renderExports() {
  const inside = insidePhotos().length;
  $("export").disabled = state.photos.every(waiting);
  $("export-marks").disabled = !countMarks();
  $("export-inside").disabled = !inside || Boolean(state.packing);
  $("export-inside").textContent = state.packing || `Export ${inside.toLocaleString("en")} in (zip)`;
  $("export-error").textContent = state.exportError;
}

const drawn = new WeakMap(); // what elements show

/** Whether an element is to show other values than when this was last asked of it. */
export function changed(shown, ...values) {
  const before = drawn.get(shown);
  if (before?.length === values.length && values.every((value, place) => value === before[place])) return false;
  drawn.set(shown, values);
  return true;
}

export function element(tag, text, kind = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = kind;
  return made;
}

function renderTrouble() {
  $("trouble").hidden = !state.trouble;
  $("trouble-text").textContent = state.trouble?.text ?? "";
  $("token-form").hidden = !state.asking;
  $("token-refused").textContent = state.refused ? "That token was refused." : "";
}

/** Where there is little room, what is set up once is folded away as soon as there are photos. */
function renderFolds() {
  const short = NARROW.matches && state.photos.length > 0;
  if (!changed($("line"), short) || document.activeElement === $("labels")) return;
  for (const id of ["classes", "line"]) $(id).open = !short;
}

/** The first of some labels by name, and how many others there are. */
function some(labels) {
  const named = labels.slice(0, NAMED).map(visible).join(", ");
  return labels.length > NAMED ? `${named} and ${plural(labels.length - NAMED, "other")}` : named;
}

// Class names

function renderClasses() {
  const { detector } = state;
  const error = state.labelsError;
  $("labels-error").textContent = error && `${error} Until then, the last valid names still count.`;
  $("labels").setAttribute("aria-invalid", String(Boolean(error)));
  $("classes-named").textContent = detector.labels.slice(0, NAMED).map(visible).join(", ");
  $("reset").hidden = detector === state.service && !error && !state.relabelling;
  $("examples").hidden = !state.photos.some((photo) => photo.demo);
  const odds = basis() === "calibrated" ? [] : detector.odds; // they are of the detector's own threshold
  if (changed($("odds"), detector, odds.length)) renderOdds(odds);
  const unknown = detector.labels.filter((label) => detector.coverage[label] === "unknown");
  $("unknown").hidden = !unknown.length || odds.length > 0; // the odds say more
  $("unknown").textContent = `Unknown to the encoder: ${some(unknown)}. Verdicts on them are guesses.`;
  $("not-clip").hidden = detector.encoder !== "mini";
  $("download-error").textContent = state.downloadError;
  $("forgets").hidden = !state.forgets;
  if (changed($("facts"), detector)) renderFacts(detector);
}

/** What to expect of each class, the worst first, and what helps with the weak ones. */
function renderOdds(odds) {
  const worst = [...odds].sort((one, other) => one.share - other.share);
  $("odds").replaceChildren(...worst.map(oddsOf));
  $("odds").parentElement.hidden = !odds.length;
  const weak = odds.filter(({ word }) => WEAK.includes(word)).length;
  $("odds-help").hidden = !weak;
  $("odds-count").textContent = ODDS.map((word) => [odds.filter((one) => one.word === word).length, word])
    .filter(([count]) => count).map(([count, word]) => `${count.toLocaleString("en")} ${word}`).join(", ");
}

function oddsOf({ label, word, share, expected, why, next_step: step }) {
  const item = element("li", "", word.replace(" ", "-"));
  const head = element("span", "", "head");
  head.append(element("b", visible(label)), " ", element("span", `${word}, ${percent(share)}`, "word"));
  item.append(head);
  item.title = expected;
  if (word !== "good") item.append(" ", element("small", visible([expected, why].filter(Boolean).join("; "))));
  if (step) {
    const fold = document.createElement("details");
    fold.append(element("summary", "What helps?"), element("small", visible(step)));
    item.append(fold);
  }
  return item;
}

function renderFacts({ labels, wild_words, method, encoder }) {
  $("weighs").textContent = wild_words
    ? `${plural(wild_words, "other word")} compete with your names for each photo`
    : "Your names compete with each other for each photo";
  const facts = { classes: labels.length, "competing words": wild_words, method, encoder };
  $("facts").replaceChildren(...Object.entries(facts).map(([name, value]) => {
    const pair = element("div", "");
    pair.append(element("dt", name), element("dd", value.toLocaleString("en")));
    return pair;
  }));
}

/** What each broad label stands for; a list is made when it is unfolded. */
function renderKinds() {
  const { detector } = state;
  if (!changed($("kinds"), detector, state.labelsError)) return;
  const broad = detector.labels.filter((label, place) =>
    detector.kinds[label]?.length || withoutOf(detector.typed[place]).length);
  const there = new Map([...$("kinds").children].map((fold) => [fold.dataset.label, fold]));
  $("kinds").replaceChildren(...broad.map((label) => there.get(label) ?? newFold(label)));
  for (const fold of $("kinds").children) renderFold(fold);
  $("kinds-off").hidden = !detector.kinds_off.length;
  $("kinds-off").textContent = `Without kinds: ${some(detector.kinds_off)}. The encoder knows none of them; `
    + "after > you can name kinds that it knows.";
}

function newFold(label) {
  const fold = document.createElement("details");
  fold.dataset.label = label;
  const list = element("ul", "");
  list.setAttribute("aria-label", `Kinds of ${visible(label)}`);
  fold.append(element("summary", ""), list);
  fold.addEventListener("toggle", () => renderFold(fold));
  return fold;
}

/** A box for each kind. What was taken away stays where it was; what went with it cannot come back by itself. */
function renderFold(fold) {
  const { detector } = state;
  const { label } = fold.dataset;
  const without = withoutOf(detector.typed[detector.labels.indexOf(label)]);
  const kinds = new Set(detector.kinds[label] ?? []);
  const few = without.length > 3 ? "" : `: ${without.map(visible).join(", ")}`;
  const off = without.length ? `, ${without.length} switched off${few}` : "";
  fold.firstElementChild.textContent = `${visible(label)}: ${plural(kinds.size, "kind")}${off}`;
  if (!fold.open || !detector.labels.includes(label)) return;
  const list = fold.lastElementChild;
  const there = new Set([...list.children].map((item) => item.dataset.kind));
  list.append(...[...without, ...kinds].filter((kind) => !there.has(kind)).map(newBox));
  for (const item of list.children) {
    const box = item.querySelector("input");
    const { kind } = item.dataset;
    box.checked = kinds.has(kind);
    box.disabled = !kinds.has(kind) && !without.includes(kind);
  }
}

function newBox(kind) {
  const item = document.createElement("li");
  item.dataset.kind = kind;
  const label = element("label", "");
  const box = Object.assign(document.createElement("input"), { type: "checkbox" });
  label.append(box, ` ${visible(kind)}`);
  item.append(label);
  return item;
}

// Photos

function renderProgress() {
  const total = state.photos.length;
  const done = total - state.photos.filter(waiting).length;
  const busy = done < total || state.relabelling;
  $("progress").classList.toggle("busy", busy);
  $("progress-text").textContent = done < total
    ? `${done.toLocaleString("en")} of ${plural(total, "photo")} scored` : "Judging anew";
  if (done < total) {
    $("progress-bar").max = total;
    $("progress-bar").value = done;
  } else $("progress-bar").removeAttribute("value");
  $("passed-over").hidden = !state.passedOver;
  $("passed-over").textContent = `${plural(state.passedOver, "file")} of the folder passed over: no photos.`;
  $("demo").hidden = state.photos.some((photo) => photo.demo);
  $("about-demo").hidden = !state.photos.some((photo) => photo.demo);
}

function renderRemoved() {
  $("removed").hidden = !state.removed;
  $("removed-text").textContent = state.removed ? `${plural(state.removed.photos.length, "photo")} removed.` : "";
}

/** How many photos of the class that is shown have each verdict; each is a button that shows these alone. */
function renderShow() {
  const photos = state.photos.filter(ofClass);
  const counts = counted(photos);
  const near = photos.filter(unsure).length;
  const parts = { all: photos.length, ...pick(counts, "in", "out"), unsure: near,
    ...pick(counts, "uncalibrated", "error", "waiting"), same: photos.filter((each) => state.twins.has(each)).length };
  const there = Object.keys(parts).filter((kind) => kind === "all" || kind === state.show || parts[kind]);
  $("unsure-text").hidden = state.show !== "unsure";
  $("unsure-text").textContent = `unsure: ${state.axis?.unsure}`;
  if (!changed($("show"), state.show, ...there.flatMap((kind) => [kind, parts[kind]]))) return;
  replaceChips($("show"), there.map((kind) => {
    const made = chip({ value: kind, text: KINDS[kind] ?? kind, count: parts[kind] ?? 0, pressed: state.show === kind });
    made.className = kind;
    made.title = kind === "unsure" ? state.axis.unsure : "";
    return made;
  }));
}

/** How many photos are nearest to each class; each is a button that shows these alone. */
function renderByClass() {
  const classes = countClasses();
  $("by-class").hidden = !state.label && state.detector.labels.length < 2;
  const values = classes.flatMap(({ label, inside, outside }) => [label, inside, outside]);
  if (!changed($("by-class"), state.label, ...values)) return;
  const any = chip({ value: "", text: "any class", pressed: !state.label });
  const missing = state.label && classes.every(({ label }) => label !== state.label);
  if (missing) classes.push({ label: state.label, inside: 0, outside: 0 });
  replaceChips($("by-class"), [any, ...classes.map(({ label, inside, outside }) => {
    const made = chip({ value: label, text: visible(label), count: inside, pressed: state.label === label });
    if (outside) made.append(element("small", ` +${outside.toLocaleString("en")} out`));
    made.classList.toggle("none", !inside);
    return made;
  })]);
}

/** A button that shows some of the photos, with how many there are. */
function chip({ value, text, count = null, pressed }) {
  const made = Object.assign(element("button", text), { type: "button", value });
  made.setAttribute("aria-pressed", String(pressed));
  if (count !== null) made.prepend(element("b", count.toLocaleString("en")), " ");
  return made;
}

/** Put other buttons into a group; the focus stays with the button of the same value. */
function replaceChips(group, buttons) {
  const focused = group.contains(document.activeElement) ? document.activeElement.value : null;
  group.replaceChildren(...buttons);
  if (focused !== null) group.querySelector(`[value="${CSS.escape(focused)}"]`)?.focus();
}

/** What can be done with the photos that are chosen. */
function renderSelection() {
  const [visible, selected] = [visiblePhotos().length, selectedPhotos()];
  $("select-all").disabled = !visible;
  $("selection").hidden = !selected.length;
  $("selection-text").textContent = `${selected.length.toLocaleString("en")} selected`;
  $("selection-rest").hidden = selected.length === visible;
  $("selection-rest").textContent = `Select all ${visible.toLocaleString("en")}`;
  for (const mark of ["inside", "outside"]) {
    const all = selected.every((photo) => markOf(photo) === mark);
    $("selection-marks").querySelector(`[value=${mark}]`).setAttribute("aria-pressed", String(all));
  }
}

const pick = (counts, ...kinds) =>
  Object.fromEntries(kinds.filter((kind) => counts[kind]).map((kind) => [kind, counts[kind]]));

function renderHistogram(scored, counts) {
  const { low, high, place } = state.axis;
  const bins = Array.from({ length: BINS }, () => ({ in: 0, out: 0, uncalibrated: 0 }));
  for (const photo of scored) {
    const bin = Math.floor((BINS * (place(photo.result.score) - low)) / (high - low));
    bins[Math.min(Math.max(bin, 0), BINS - 1)][kindOf(photo)] += 1;
  }
  const sizes = bins.map((bin) => bin.in + bin.out + bin.uncalibrated);
  const unit = 100 / Math.max(...sizes);
  $("plot").setAttribute("viewBox", `0 0 ${BINS} 100`);
  $("plot").replaceChildren(...bins.flatMap((bin, place) => {
    let top = 100;
    return Object.keys(bin).filter((kind) => bin[kind]).map((kind) => {
      top -= bin[kind] * unit;
      return rectangle(kind, place + 0.06, top, 0.88, bin[kind] * unit);
    });
  }));
  renderTicks();
  renderLine(counts);
}

function rectangle(kind, x, y, width, height) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  made.setAttribute("class", kind);
  for (const [name, value] of Object.entries({ x, y, width, height })) made.setAttribute(name, value);
  return made;
}

function renderTicks() {
  const { ticks, share } = state.axis;
  const texts = ticks.map(({ text, score }) => text ?? number(score));
  $("axis-text").textContent = share ? `fits better than … of ${unrelated()}` : "score";
  if (!changed($("ticks"), ...texts, ...ticks.map(({ at }) => at))) return;
  $("ticks").replaceChildren(...ticks.map(({ at }, place) => {
    const tick = element("span", texts[place]);
    tick.style.left = `${100 * at}%`;
    tick.classList.toggle("start", at === 0);
    return tick;
  }));
  thinTicks();
}

/** Leave out ticks whose texts would run into the next one; the last has the most to say. */
export function thinTicks() {
  let room = Infinity;
  for (const tick of [...$("ticks").children].reverse()) {
    const { left, right } = tick.getBoundingClientRect();
    const fits = right + APART <= room;
    tick.classList.toggle("crowded", !fits);
    if (fits) room = left;
  }
}

function renderLine(counts) {
  const { low, high, step, place } = state.axis;
  const line = $("threshold");
  const cut = threshold();
  Object.assign(line, { min: low, max: high, step });
  line.valueAsNumber = cut === null ? (low + high) / 2 : Math.max(place(cut), low);
  line.classList.toggle("unset", cut === null);
  line.setAttribute("aria-valuetext", `${thresholdText()} ${tally(counts)}`);
}

function renderThreshold() {
  const texts = thresholdTexts();
  texts.forEach((text, place) => ($("threshold-text").children[place].textContent = text));
  $("line-text").textContent = texts.find(Boolean);
  const warning = state.list.hand === null ? state.fitted?.warning : "";
  $("threshold-warning").hidden = !warning;
  $("threshold-warning").textContent = warning ?? "";
  $("threshold-error").textContent = state.thresholdError;
  $("use-marks").hidden = state.list.hand === null || !countMarks();
  $("own-threshold").hidden = state.list.hand === null && !countMarks();
}

// Cards

function renderCards() {
  sortPhotos();
  for (const photo of state.photos) renderCard(photo);
  arrange($("cards"), state.photos.map((photo) => photo.card));
  $("none-shown").hidden = !state.photos.length || state.photos.some(shown);
}

/** Let a list have these cards in this order; those in their place are not touched. */
function arrange(list, cards) {
  const focused = document.activeElement;
  const kept = new Set(cards);
  for (const card of [...list.children]) if (!kept.has(card)) card.remove();
  let next = list.firstElementChild;
  for (const card of cards) {
    if (card === next) next = next.nextElementSibling;
    else list.insertBefore(card, next);
  }
  if (list.contains(focused) && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

const part = (card, selector) => card.querySelector(selector);

export function makeCard(photo) {
  const card = $("card").content.cloneNode(true).firstElementChild;
  const name = visible(photo.name);
  part(card, ".name").textContent = name;
  part(card, ".open").setAttribute("aria-label", `Show all about ${name}`);
  part(card, ".marks").setAttribute("aria-label", `Does ${name} show one of your classes?`);
  part(card, ".remove").setAttribute("aria-label", `Remove ${name}`);
  part(card, ".pick input").setAttribute("aria-label", `Select ${name}`);
  part(card, ".again").setAttribute("aria-label", `Try again: ${name}`);
  return card;
}

/** Draw what has changed of a card; with hundreds of them, nothing else may be touched. */
function renderCard(photo) {
  const { card, result, error, again, picture } = photo;
  renderVerdict(photo);
  const selected = state.selected.has(photo);
  if (part(card, ".pick input").checked !== selected) part(card, ".pick input").checked = selected;
  if (card.hidden === shown(photo)) card.hidden = !shown(photo);
  const box = part(card, ".open");
  if (changed(box, picture) && picture) box.replaceChildren(picture);
  const fits = part(card, ".fits");
  if (changed(fits, fitting(photo))) fits.textContent = fitting(photo);
  const mark = markOf(photo);
  if (!changed(card, result, error, again, mark, state.twins.get(photo))) return;
  part(card, ".why").textContent = error;
  part(card, ".again").hidden = !again;
  part(card, ".label").hidden = part(card, ".besides").hidden = part(card, ".marks").hidden = !result;
  renderNotes(part(card, ".notes"), notesOf(photo));
  for (const button of card.querySelectorAll(".marks button")) {
    button.setAttribute("aria-pressed", String(mark === button.value));
  }
}

/** What the service noticed about a photo, if it did. */
export function renderNotes(list, notes) {
  list.hidden = !notes.length;
  list.replaceChildren(...notes.map((note) => element("li", visible(note))));
}

function renderVerdict(photo) {
  const { card, result, sent } = photo;
  const kind = kindOf(photo);
  const texts = [
    kind === "waiting" && sent ? "scoring" : kind,
    result ? number(result.score) : "",
    result && threshold() !== null && !calibrated() ? "(uncalibrated)" : "",
    result && unsure(photo) ? "unsure" : "",
  ];
  const line = part(card, ".verdict");
  if (!changed(line, kind, result, ...texts)) return;
  card.dataset.kind = kind;
  if (result) renderSeen(photo);
  line.firstElementChild.className = kind;
  texts.forEach((text, place) => (line.children[place].textContent = text));
}

/** What it is taken for: `as dog (beagle)`, `looks like: sea lion`. */
function renderSeen(photo) {
  const [sense, name] = seen(photo);
  const coverage = sense === "looks like:" ? "known" : state.detector.coverage[photo.result.nearest] ?? "known";
  const line = part(photo.card, ".label");
  line.replaceChildren(element("small", sense), ` ${visible(name)}`);
  if (coverage !== "known") line.append(" ", element("small", `(${coverage})`));
  const [also, names] = besides(photo);
  part(photo.card, ".besides").textContent = names && `${also} ${visible(names)}`;
}

/**
 * The page of `outword serve`: one state, one `render`, and events that change the one and call the other.
 *
 * Names of files, labels and words are untrusted: they only ever become text. Addresses are relative: the page may be
 * anywhere behind a proxy.
 */

const PARALLEL = 4; // photos on their way at a time
const RETRIES = 6; // of a request that the service was too busy for
const LONGEST_WAIT = 10; // seconds between two of them
const QUIET = 400; // milliseconds without a key before class names count
const LATEST = 250; // milliseconds until a change is drawn where there are no frames, in a tab in the background
const BINS = 48;
const STEPS = 200; // of the line across the plot, about
const NAMED = 8; // labels that are named; the others are counted
const SIDE = 336; // pixels of a thumbnail, enough for a dense screen
const COLUMNS = [
  "path", "score", "verdict", "basis", "threshold", "p", "label", "looks_like", "words", "error",
];

/**
 * @typedef {object} Photo
 * @property {string} name
 * @property {Blob} file
 * @property {boolean} sent whether it is on its way
 * @property {?object} result what the service says of it, by the detector of the page
 * @property {?number[]} embedding to score it again without sending it again
 * @property {string} error why there is no result
 * @property {boolean} again whether to send it again may help
 * @property {"" | "inside" | "outside"} mark
 * @property {?HTMLImageElement} picture
 * @property {HTMLLIElement} card
 */

const state = {
  token: remembered(),
  asking: null, // while a token is asked for: {wait: Promise, done: its resolve}
  refused: "", // the token that was refused last
  trouble: null, // {text, again, offline}: what to tell, what to try again, whether the service is out of reach
  service: null, // the detector that the service was started with
  detector: null, // the one that judges; `made` has the labels of one that the page had made
  labelsError: "",
  edits: 0, // counts changes of the class names, to know late answers
  relabelling: false,
  /** @type {Photo[]} */
  photos: [],
  sending: 0,
  pasted: 0,
  hand: null, // the threshold set by hand
  fitted: null, // the answer to the marks
  fits: 0, // counts requests for it
  dropped: false, // whether other class names ended a threshold
  thresholdError: "",
  scale: null, // of the plot: {low, high, step}
  places: 2, // decimals of scores
  downloadError: "",
};

const $ = (id) => document.getElementById(id);

// Talking to the service

/** An answer that is no success, in the words of the service, or no answer at all ("unreachable"). */
class Refused extends Error {
  constructor(code, message, hint = "", again = false) {
    super(hint ? `${message}. Hint: ${hint}.` : `${message}.`);
    this.code = code;
    this.again = again; // whether it may be another answer next time
  }
}

/** Ask the service; a body makes it a POST. Waits for a token, and while the service is busy. */
async function ask(path, body, retries = RETRIES) {
  const token = state.token;
  const response = await send(path, body, token);
  if (response.status === 401) {
    await anotherToken(token);
    return ask(path, body, retries);
  }
  if (response.status === 503 && retries) {
    const seconds = Number(response.headers.get("Retry-After") ?? 1);
    await new Promise((done) => setTimeout(done, 1000 * Math.min(seconds, LONGEST_WAIT)));
    return ask(path, body, retries - 1);
  }
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  const plain = { code: "", message: `the service answered with status ${response.status}` };
  const { code, message, hint } = error ?? plain;
  throw new Refused(code, message, hint, response.status >= 500 || response.status === 408);
}

async function send(path, body, token) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const json = body && !(body instanceof FormData);
  if (json) headers["Content-Type"] = "application/json";
  try {
    return await fetch(path, { method: body ? "POST" : "GET", headers, body: json ? JSON.stringify(body) : body });
  } catch {
    throw new Refused("unreachable", "The service cannot be reached");
  }
}

const askJson = async (path, body) => (await ask(path, body)).json();

/** Wait until there is another token than the one that was refused. */
async function anotherToken(refused) {
  if (state.token !== refused) return; // it came in the meantime
  state.refused = refused;
  if (!state.asking) {
    state.asking = {};
    state.asking.wait = new Promise((done) => (state.asking.done = done));
    draw(); // what is hidden cannot have the focus
    $("token").focus();
  }
  await state.asking.wait;
}

/** A request on a detector; one that the service had to forget is made again, once: it gets the same id. */
async function askDetector(detector, ask) {
  try {
    return await ask(detector.id);
  } catch (error) {
    if (error.code !== "unknown_detector" || !detector.made) throw error;
    await askJson("v1/detectors", detector.made);
    return ask(detector.id);
  }
}

/** Say what went wrong above everything, with a way to try again. */
function trouble(error, again) {
  state.trouble = { text: error.message, again, offline: error.code === "unreachable" };
}

function remembered(token) {
  try {
    if (token !== undefined) sessionStorage.setItem("outword-token", token);
    return sessionStorage.getItem("outword-token") ?? "";
  } catch {
    return token ?? ""; // the browser keeps nothing
  }
}

async function start() {
  try {
    state.service = await askJson("v1/detector");
    state.detector = state.service;
    $("labels").value = labelText(state.service);
    sendPhotos();
  } catch (error) {
    trouble(error, start);
  }
  render();
}

// Photos

function addPhotos(files) {
  for (const file of files) {
    const unknown = { result: null, embedding: null, error: "", again: false, mark: "", picture: null };
    const photo = { name: file.name, file, sent: false, ...unknown };
    photo.card = makeCard(photo);
    state.photos.push(photo);
  }
  sendPhotos();
  render();
}

const waiting = (photo) => !photo.result && !photo.error;

/** Send the photos that wait, a few at a time. */
function sendPhotos() {
  while (state.detector && !state.trouble?.offline && state.sending < PARALLEL) {
    const photo = state.photos.find((each) => waiting(each) && !each.sent);
    if (!photo) return;
    photo.sent = true;
    state.sending += 1;
    sendPhoto(photo).finally(() => {
      photo.sent = false;
      state.sending -= 1;
      sendPhotos();
      render();
      if (!state.photos.some(waiting)) say(tally());
    });
  }
}

async function sendPhoto(photo) {
  try {
    await checkFile(photo.file);
    photo.result = await scorePhoto(photo);
    if (photo.mark) refit(); // it was marked before the class names changed
  } catch (error) {
    if (error.code === "unreachable") trouble(error, resume);
    else Object.assign(photo, { error: error.message, again: Boolean(error.again) });
    return;
  }
  render();
  photo.picture ??= await thumbnail(photo);
}

/** Refuse what the service would not take, and what the browser cannot send. */
async function checkFile(file) {
  const most = state.detector.limits.body_bytes - 1024; // the form around it takes some
  if (file.size > most) {
    const sizes = `the file has ${megabytes(file.size)}, and the service takes ${megabytes(most)}`;
    throw new Refused("too_large", sizes, "make it smaller");
  }
  try {
    await file.slice(0, 1).arrayBuffer();
  } catch {
    throw new Refused("unreadable", "this is a folder, or a file that cannot be read", "drop the photos themselves");
  }
}

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** The result of a photo by the page's detector, whichever that is when the answer is here. */
async function scorePhoto(photo) {
  let detector, result;
  do {
    detector = state.detector;
    [result] = photo.embedding && detector.takes_embeddings
      ? await scoreEmbeddings(detector, [photo])
      : await scoreFile(detector, photo);
  } while (detector !== state.detector);
  return result;
}

async function scoreFile(detector, photo) {
  const form = new FormData();
  form.append("images", photo.file, photo.name);
  const query = `embeddings=${detector.takes_embeddings}`;
  const { results } = await askDetector(detector, (id) => askJson(`v1/score?detector=${id}&${query}`, form));
  photo.embedding = results[0].embedding;
  return results;
}

/** Score photos from their embeddings: in one request, unless there are more than it may hold. */
async function scoreEmbeddings(detector, photos) {
  const most = detector.limits.images;
  const results = [];
  for (let first = 0; first < photos.length; first += most) {
    const embeddings = photos.slice(first, first + most).map((photo) => photo.embedding);
    const answer = await askDetector(detector, (id) => askJson(`v1/score?detector=${id}`, { embeddings }));
    results.push(...answer.results);
  }
  return results;
}

/** A small copy. It is made after the service has read the photo, so that no giant is ever decoded here. */
async function thumbnail(photo) {
  try {
    const bitmap = await createImageBitmap(photo.file);
    const scale = Math.min(1, SIDE / Math.max(bitmap.width, bitmap.height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(bitmap.width * scale));
    canvas.height = Math.max(1, Math.round(bitmap.height * scale));
    const context = canvas.getContext("2d");
    Object.assign(context, { imageSmoothingQuality: "high", fillStyle: "white" });
    context.fillRect(0, 0, canvas.width, canvas.height); // a JPEG is black where a picture is transparent
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    bitmap.close();
    return await compressed(canvas, visible(photo.name));
  } catch {
    return null; // a format that the service reads and the browser does not
  }
}

/** A canvas as an image: a tenth of its memory, which counts where there are hundreds. */
async function compressed(canvas, name) {
  const image = new Image();
  image.alt = name;
  const blob = await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.85));
  const loaded = new Promise((done, fail) => Object.assign(image, { onload: done, onerror: fail }));
  image.src = URL.createObjectURL(blob);
  await loaded.finally(() => URL.revokeObjectURL(image.src));
  return image;
}

function removePhotos(photos) {
  const marked = photos.some((photo) => photo.mark);
  state.photos = state.photos.filter((photo) => !photos.includes(photo));
  render();
  if (marked) refit();
}

async function addDemo() {
  const fetchOne = async (name) => {
    const blob = await (await ask(`demo/${encodeURIComponent(name)}`)).blob();
    return new File([blob], name, { type: blob.type });
  };
  try {
    const { photos } = await askJson("demo");
    const shown = new Set(state.photos.map((photo) => photo.name));
    addPhotos(await Promise.all(photos.filter((name) => !shown.has(name)).map(fetchOne)));
  } catch (error) {
    trouble(error, addDemo);
    render();
  }
}

/** Go on with what waits, after the service was out of reach. */
function resume() {
  state.downloadError = "";
  sendPhotos();
  relabel();
  refit();
}

// Class names

/** Class names as the service takes them: a list, or an object where one has a prompt (`name: prompt text`). */
function parseLabels(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  const pairs = lines.map((line) => {
    const [name, ...rest] = `${line} `.split(": ");
    return [name.trim(), rest.join(": ").trim()];
  });
  const names = pairs.map(([name]) => name);
  if (pairs.every(([, prompt]) => !prompt)) return names;
  const twice = names.find((name, place) => names.indexOf(name) < place);
  if (twice) throw new Refused("invalid", `labels must differ, got "${twice}" twice`, "remove one of them");
  return Object.fromEntries(pairs);
}

/** The class names of a detector as the field has them. */
const labelText = ({ labels, prompts }) =>
  labels.map((name) => (prompts[name] ? `${name}: ${prompts[name]}` : name)).join("\n");

/** Judge by the class names in the field; an answer that comes after a later change is dropped. */
async function relabel() {
  state.edits += 1;
  const edit = state.edits;
  const current = () => edit === state.edits;
  state.labelsError = "";
  state.relabelling = true;
  render();
  try {
    const detector = await detectorOf(parseLabels($("labels").value));
    if (current()) await adopt(detector, current);
  } catch (error) {
    if (!current()) return;
    if (error.code === "unreachable") trouble(error, resume);
    else state.labelsError = error.message;
  }
  if (!current()) return;
  state.relabelling = false;
  render();
}

async function detectorOf(labels) {
  for (const known of [state.service, state.detector]) {
    if (JSON.stringify(labels) === JSON.stringify(parseLabels(labelText(known)))) return known;
  }
  const made = { labels };
  return { ...(await askJson("v1/detectors", made)), made };
}

/** Let a detector judge: all verdicts change together, when the new ones are all here. */
async function adopt(detector, current) {
  if (detector === state.detector) return;
  const results = new Map();
  const late = () => state.photos.filter((photo) => photo.result && photo.embedding && !results.has(photo));
  for (let photos = late(); detector.takes_embeddings && photos.length; photos = late()) {
    const answers = await scoreEmbeddings(detector, photos);
    if (!current()) return;
    photos.forEach((photo, place) => results.set(photo, answers[place]));
  }
  const dropped = detector !== state.service && detector.basis === "formula" && (state.dropped || calibrated());
  Object.assign(state, { detector, hand: null, fitted: null, thresholdError: "", dropped });
  for (const photo of state.photos) photo.result &&= results.get(photo) ?? null; // without one it is sent again
  if (!state.photos.some(waiting)) say(tally());
  sendPhotos();
  await refit();
}

// The threshold

/** The threshold that the page judges by; minus infinity takes everything, null is none. */
function threshold() {
  if (state.hand !== null) return state.hand;
  const { threshold } = state.fitted ?? state.detector;
  return threshold ?? (calibrated() ? -Infinity : null);
}

/** What the threshold rests on, in the words of `outword score`. */
const basis = () => (state.hand !== null || state.fitted !== null ? "calibrated" : state.detector.basis);

/** Whether it was found on photos, or set. */
const calibrated = () => basis() !== "formula";

/** "in", "out", or "uncalibrated" where there is no threshold. */
function side(photo) {
  const cut = threshold();
  if (cut === null) return "uncalibrated";
  return photo.result.score >= cut ? "in" : "out";
}

/** The nearest label, with the kind that matched. */
const named = ({ label, kind }) => (kind ? `${label} (${kind})` : label);

/** What a photo is taken for, and in which sense. */
function seen(photo) {
  const [best] = photo.result.looks_like;
  if (side(photo) === "in") return ["as", named(photo.result)];
  return side(photo) === "out" && best ? ["looks like:", best] : ["nearest", named(photo.result)];
}

function marks() {
  const scored = state.photos.filter((photo) => photo.result);
  const scores = (mark) => scored.filter((photo) => photo.mark === mark).map((photo) => photo.result.score);
  return { inside: scores("inside"), outside: scores("outside") };
}

const countMarks = () => Object.values(marks()).flat().length;

function mark(photo, value) {
  photo.mark = photo.mark === value ? "" : value;
  state.hand = null;
  render();
  refit();
}

/** Fit the threshold to the marks; without any it is the detector's own. */
async function refit() {
  state.fits += 1;
  const fit = state.fits;
  const { detector } = state;
  let [fitted, problem] = [null, ""];
  try {
    if (countMarks()) fitted = await askDetector(detector, (id) => askJson(`v1/detectors/${id}/threshold`, marks()));
  } catch (error) {
    if (error.code === "unreachable") trouble(error, resume);
    else problem = error.message;
  }
  if (fit !== state.fits || detector !== state.detector) return;
  state.fitted = fitted;
  state.thresholdError = problem;
  if (fitted) say(`${thresholdText()} ${tally()}`);
  render();
}

function thresholdText() {
  const cut = threshold();
  const count = countMarks();
  const none = state.dropped ? "The new class names have no threshold of their own yet" : "There is no threshold yet";
  if (cut === null) return `${none}: move the line, or say of a few photos whether they are yours.`;
  const value = cut === -Infinity ? "Everything is accepted" : `Threshold ${number(cut)}`;
  if (state.hand !== null) return `${value}, set by hand.${count ? ` ${plural(count, "mark")} not used.` : ""}`;
  if (state.fitted) {
    const { calibration, mistakes } = state.fitted;
    return `${value}, ${calibration}${mistakes ? `; ${mistakes} of them on the wrong side` : ""}.`;
  }
  const why = state.dropped ? "uncalibrated: the new class names have no threshold of their own yet" : "uncalibrated";
  return `${value}, ${state.detector.calibration || `the score's natural cut (${why})`}.`;
}

// What can be taken home

function exportCsv() {
  const rows = state.photos.filter((photo) => !waiting(photo)).map(csvRow);
  const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const lines = [COLUMNS, ...rows].map((row) => row.map(quoted).join(",") + "\n");
  save(new Blob(lines, { type: "text/csv" }), "scores.csv");
}

function csvRow(photo) {
  if (photo.error) return COLUMNS.map((name) => csvText({ path: photo.name, error: photo.error }[name] ?? ""));
  const { score, p, looks_like, words } = photo.result;
  const fired = words.map(({ word, share }) => `${word} ${share.toFixed(2)}`).join("; ");
  const numbers = { score, threshold: Number.isFinite(threshold()) ? threshold() : null, p };
  const texts = {
    path: photo.name, verdict: side(photo), basis: basis(), label: named(photo.result), looks_like: looks_like[0] ?? "",
    words: fired, error: "",
  };
  return COLUMNS.map((name) => (name in texts ? csvText(texts[name]) : String(numbers[name] ?? "")));
}

// A quote before what a spreadsheet would take for a formula, as outword/rows.py has it
function csvText(text) {
  return text.replace(/(?<![^;\t\r\n])(?=[' ]*[=+\-@\t\r\n\0\uff1d\uff0b\uff0d\uff20])/g, "'");
}

async function download() {
  state.downloadError = "";
  const body = state.hand !== null ? { threshold: state.hand } : countMarks() ? marks() : {};
  try {
    const response = await askDetector(state.detector, (id) => ask(`v1/detectors/${id}/artifact`, body));
    save(await response.blob(), "detector.outword.zip");
  } catch (error) {
    state.downloadError = error.message;
  }
  render();
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // some browsers read it later
}

// Words and numbers

/** A score with as many decimals as the plot can show, or two digits where those would all be 0. */
function number(value, more = 0) {
  const text = value.toFixed(Math.min(state.places + more, 20));
  return value && !Number(text) ? value.toPrecision(2) : text;
}

/** A score beside the threshold, with as many decimals as it takes to tell them apart. */
function comparison(score, cut) {
  if (cut === null || cut === -Infinity) return number(score);
  const more = [0, 1, 2, 3, 6].find((each) => number(score, each) !== number(cut, each)) ?? 0;
  return `${number(score, more)} ${score >= cut ? "≥" : "<"} ${number(cut, more)}`;
}

const percent = (share) => `${share < 0.1 ? Number((100 * share).toPrecision(2)) : Math.round(100 * share)} %`;

const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** A text in one line, with what cannot be seen as an escape. */
const visible = (text) =>
  text.replace(/[\p{C}\p{Z}]/gu, (c) => (c === " " ? c : `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`));

const KINDS = {
  in: "in",
  out: "out",
  uncalibrated: "without a verdict",
  error: "could not be scored",
  waiting: "waiting",
};

const kindOf = (photo) => (photo.error ? "error" : waiting(photo) ? "waiting" : side(photo));

/** How many are in, out, and so on. */
function tally(counts = counted()) {
  const parts = Object.keys(counts).map((kind) => `${counts[kind].toLocaleString("en")} ${KINDS[kind]}`);
  return `${plural(state.photos.length, "photo")}: ${parts.join(", ")}`;
}

function counted() {
  const counts = {};
  for (const photo of state.photos) counts[kindOf(photo)] = (counts[kindOf(photo)] ?? 0) + 1;
  return Object.fromEntries(Object.keys(KINDS).filter((kind) => counts[kind]).map((kind) => [kind, counts[kind]]));
}

/** Tell those who listen to the page. */
function say(text) {
  $("said").textContent = text;
}

// Drawing

let frame = 0;
let timer = 0;

/** Draw the state soon: however many changes there are until then, it is drawn once. */
function render() {
  if (frame) return;
  frame = requestAnimationFrame(draw);
  timer = setTimeout(draw, LATEST);
}

/** Draw the state now. */
function draw() {
  cancelAnimationFrame(frame);
  clearTimeout(timer);
  frame = 0;
  renderTrouble();
  $("app").hidden = !state.detector;
  if (!state.detector) return;
  renderClasses();
  renderProgress();
  $("notice").hidden = calibrated();
  $("natural").textContent = threshold() === null ? "This method has none of its own."
    : "The one in use is the score's natural cut, classes against wild words.";
  $("app").classList.toggle("empty", !state.photos.length);
  $("results").hidden = !state.photos.length;
  renderResults();
}

function renderResults() {
  const scored = state.photos.filter((photo) => photo.result);
  const counts = counted();
  if (scored.length) setScale(scored);
  $("export").disabled = state.photos.every(waiting);
  renderTallies(counts);
  $("histogram").hidden = !scored.length;
  if (scored.length) renderHistogram(scored, counts);
  renderThreshold();
  renderCards();
}

const drawn = new WeakMap(); // what elements show

/** Whether an element is to show other values than when this was last asked of it. */
function changed(shown, ...values) {
  const before = drawn.get(shown);
  if (before && values.every((value, place) => value === before[place])) return false;
  drawn.set(shown, values);
  return true;
}

function renderTrouble() {
  $("trouble").hidden = !state.trouble;
  $("trouble-text").textContent = state.trouble?.text ?? "";
  $("token-form").hidden = !state.asking;
  $("token-refused").textContent = state.refused ? "That token was refused." : "";
}

function renderClasses() {
  const { detector } = state;
  $("weighs").textContent = detector.wild_words
    ? `weighs your class names against ${plural(detector.wild_words, "wild word")} that stand for everything else`
    : "says how well your class names suit the photo";
  const error = state.labelsError;
  $("labels-error").textContent = error && `${error} Until then, the last valid names still count.`;
  $("labels").setAttribute("aria-invalid", String(Boolean(error)));
  $("reset").hidden = detector === state.service && !error && !state.relabelling;
  const unknown = detector.labels.filter((label) => detector.coverage[label] === "unknown");
  $("unknown").hidden = !unknown.length;
  const more = unknown.length > NAMED ? ` and ${plural(unknown.length - NAMED, "other")}` : "";
  const named = unknown.slice(0, NAMED).map(visible).join(", ") + more;
  $("unknown").textContent = `Unknown to the encoder: ${named}. Verdicts on them are guesses.`;
  $("not-clip").hidden = detector.encoder !== "mini";
  $("download-error").textContent = state.downloadError;
  if (changed($("facts"), detector)) renderFacts(detector);
}

function renderFacts({ labels, wild_words, method, encoder }) {
  const facts = { classes: labels.length, "wild words": wild_words, method, encoder };
  $("facts").replaceChildren(...Object.entries(facts).map(([name, value]) => {
    const pair = element("div", "");
    pair.append(element("dt", name), element("dd", value.toLocaleString("en")));
    return pair;
  }));
}

function renderProgress() {
  const total = state.photos.length;
  const done = total - state.photos.filter(waiting).length;
  const busy = done < total || state.relabelling;
  $("progress").classList.toggle("busy", busy);
  $("progress-text").textContent = done < total ? `${done} of ${plural(total, "photo")} scored` : "Judging anew";
  if (done < total) {
    $("progress-bar").max = total;
    $("progress-bar").value = done;
  } else $("progress-bar").removeAttribute("value");
}

function renderTallies(counts) {
  $("tallies").replaceChildren(...Object.entries(counts).map(([kind, count]) => {
    const item = element("span", ` ${KINDS[kind]}`, kind);
    item.prepend(element("b", count.toLocaleString("en")));
    return item;
  }));
}

/** Choose the ends and the step of the plot: round numbers around all scores and thresholds. */
function setScale(scored) {
  const cuts = [state.detector.threshold, state.fitted?.threshold ?? null].filter((cut) => cut !== null);
  const values = [...scored.map((photo) => photo.result.score), ...cuts];
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const margin = 0.04 * (most - least) || 0.5 * Math.abs(most) || 1;
  const hand = state.hand ?? least; // on the plot already: with a margin of its own the plot would grow under it
  const [low, high] = [Math.min(least - margin, hand), Math.max(most + margin, hand)];
  const power = Math.floor(Math.log10((high - low) / STEPS));
  const step = 10 ** power * [1, 2, 5, 10].find((times) => STEPS * times * 10 ** power >= 0.999 * (high - low));
  state.places = Math.min(Math.max(0, -power), 20);
  const steps = (count) => Number((count * step).toFixed(state.places));
  state.scale = { low: steps(Math.floor(low / step)), high: steps(Math.ceil(high / step)), step: steps(1) };
}

function renderHistogram(scored, counts) {
  const { low, high } = state.scale;
  const bins = Array.from({ length: BINS }, () => ({ in: 0, out: 0, uncalibrated: 0 }));
  for (const photo of scored) {
    const place = Math.floor((BINS * (photo.result.score - low)) / (high - low));
    bins[Math.min(place, BINS - 1)][side(photo)] += 1;
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
  $("low").textContent = number(low);
  $("high").textContent = number(high);
  renderLine(counts);
}

function renderLine(counts) {
  const { low, high, step } = state.scale;
  const line = $("threshold");
  const cut = threshold();
  Object.assign(line, { min: low, max: high, step });
  line.valueAsNumber = cut === null ? (low + high) / 2 : Math.max(cut, low);
  line.classList.toggle("unset", cut === null);
  line.setAttribute("aria-valuetext", `${thresholdText()} ${tally(counts)}`);
}

function rectangle(kind, x, y, width, height) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  made.setAttribute("class", kind);
  for (const [name, value] of Object.entries({ x, y, width, height })) made.setAttribute(name, value);
  return made;
}

function renderThreshold() {
  $("threshold-text").textContent = thresholdText();
  const warning = state.hand === null ? state.fitted?.warning : "";
  $("threshold-warning").hidden = !warning;
  $("threshold-warning").textContent = warning ?? "";
  $("threshold-error").textContent = state.thresholdError;
  $("use-marks").hidden = state.hand === null || !countMarks();
  $("own-threshold").hidden = state.hand === null && !state.photos.some((photo) => photo.mark);
}

/** Highest score first, what has none last; while photos are on their way no card jumps. */
function renderCards() {
  if (!state.photos.some(waiting)) {
    state.photos.sort((a, b) => (b.result?.score ?? -Infinity) - (a.result?.score ?? -Infinity) || 0);
  }
  for (const photo of state.photos) renderCard(photo);
  arrange($("cards"), state.photos.map((photo) => photo.card));
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

function makeCard(photo) {
  const card = $("card").content.cloneNode(true).firstElementChild;
  const name = visible(photo.name);
  part(card, ".name").textContent = name;
  part(card, ".marks").setAttribute("aria-label", `Does ${name} show one of your classes?`);
  part(card, ".remove").setAttribute("aria-label", `Remove ${name}`);
  part(card, ".remove").addEventListener("click", () => {
    const place = state.photos.indexOf(photo);
    removePhotos([photo]);
    const next = state.photos[Math.min(place, state.photos.length - 1)];
    (next ? part(next.card, ".remove") : $("files")).focus();
  });
  part(card, ".again").setAttribute("aria-label", `Try again: ${name}`);
  part(card, ".again").addEventListener("click", () => {
    Object.assign(photo, { error: "", again: false });
    part(card, ".remove").focus(); // the button goes away
    sendPhotos();
    render();
  });
  for (const button of card.querySelectorAll(".marks button")) {
    button.addEventListener("click", () => mark(photo, button.value));
  }
  return card;
}

/** Draw what has changed of a card; with hundreds of them, nothing else may be touched. */
function renderCard(photo) {
  const { card, result, error, again, mark, picture } = photo;
  renderVerdict(photo);
  const box = part(card, ".photo");
  if (changed(box, picture) && picture) box.prepend(picture);
  if (!changed(card, result, error, again, mark)) return;
  part(card, ".why").textContent = error;
  part(card, ".again").hidden = !again;
  part(card, ".label").hidden = part(card, ".marks").hidden = part(card, "details").hidden = !result;
  part(card, ".fits").hidden = !result?.fits;
  part(card, ".fired").hidden = !result?.words.length;
  if (result) renderEvidence(card, result);
  for (const button of card.querySelectorAll(".marks button")) {
    button.setAttribute("aria-pressed", String(mark === button.value));
  }
}

function renderVerdict(photo) {
  const { card, result, sent } = photo;
  const kind = kindOf(photo);
  const texts = [
    kind === "waiting" && sent ? "scoring" : kind,
    result ? comparison(result.score, threshold()) : "",
    result && threshold() !== null && !calibrated() ? "(uncalibrated)" : "",
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
  const coverage = sense === "looks like:" ? "known" : state.detector.coverage[photo.result.label] ?? "known";
  const line = part(photo.card, ".label");
  line.replaceChildren(element("small", sense), ` ${visible(name)}`);
  if (coverage !== "known") line.append(" ", element("small", `(${coverage})`));
}

/** How well it fits; and folded, the nearest label, and the words that fired with bars. */
function renderEvidence(card, result) {
  part(card, ".fits").firstElementChild.textContent = result.fits;
  part(card, ".near").replaceChildren(element("small", "nearest label"), ` ${visible(named(result))}`);
  part(card, ".words").replaceChildren(...result.words.map(({ word, share }) => {
    const item = element("li", "");
    const bar = element("i", "");
    bar.style.width = `${100 * Math.min(Math.max(share, 0), 1)}%`;
    item.append(element("span", visible(word)), element("span", percent(share)), bar);
    return item;
  }));
}

const part = (card, selector) => card.querySelector(selector);

function element(tag, text, kind = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = kind;
  return made;
}

// Events

let typing = 0;
$("labels").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(relabel, QUIET);
});
$("reset").addEventListener("click", () => {
  clearTimeout(typing);
  $("labels").value = labelText(state.service);
  $("labels").focus(); // the button goes away
  relabel();
});
$("files").addEventListener("change", () => {
  addPhotos($("files").files);
  $("files").value = ""; // the same file may be chosen again
});
$("demo").addEventListener("click", addDemo);
$("export").addEventListener("click", exportCsv);
$("download").addEventListener("click", download);
$("clear").addEventListener("click", () => {
  removePhotos(state.photos);
  $("files").focus();
});
$("threshold").addEventListener("input", () => {
  state.hand = $("threshold").valueAsNumber;
  render();
});
$("own-threshold").addEventListener("click", () => {
  for (const photo of state.photos) photo.mark = "";
  state.hand = null;
  $("threshold").focus();
  refit();
});
$("use-marks").addEventListener("click", () => {
  state.hand = null;
  $("threshold").focus();
  render();
});
$("retry").addEventListener("click", () => {
  const { again } = state.trouble;
  state.trouble = null;
  render();
  again();
});
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = $("token").value;
  remembered(state.token);
  const { done } = state.asking;
  state.asking = null;
  render();
  done();
});

const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
const dropping = (yes) => document.body.classList.toggle("dropping", yes);

document.addEventListener("dragover", (event) => {
  if (!carriesFiles(event)) return;
  event.preventDefault();
  dropping(true);
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) dropping(false); // out of the window
});
document.addEventListener("drop", (event) => {
  dropping(false);
  if (!carriesFiles(event)) return;
  event.preventDefault();
  addPhotos(event.dataTransfer.files);
});
document.addEventListener("paste", (event) => {
  const files = [...(event.clipboardData?.files ?? [])];
  if (!files.length) return;
  event.preventDefault();
  addPhotos(files.map((file) => {
    state.pasted += 1; // browsers call them all image.png
    return new File([file], `pasted-${state.pasted}.${file.type.split("/")[1] ?? "png"}`, { type: file.type });
  }));
});

start();

/** What the photos are judged by: class names and their kinds, marks, and the threshold. */

import { render, say } from "./draw.js";
import { withKind } from "./kinds.js";
import { keepLabels, keepList, recallList } from "./memory.js";
import { resume, scoreEmbeddings, sendPhotos } from "./photos.js";
import { askDetector, askJson, Refused, trouble } from "./service.js";
import {
  $, calibrated, COMMENT, countMarks, labelText, markedScores, markOf, sameAs, state, waiting,
} from "./state.js";
import { tally, thresholdText } from "./words.js";

/** Class names as the service takes them: a list, or an object where one has a prompt (`name: prompt text`). */
export function parseLabels(text) {
  const pairs = linesOf(text).map((line) => {
    const [name, ...rest] = `${line} `.split(": ");
    return [name.trim(), rest.join(": ").trim()];
  });
  const names = pairs.map(([name]) => name);
  if (pairs.every(([, prompt]) => !prompt)) return names;
  const twice = names.find((name, place) => names.indexOf(name) < place);
  if (twice) throw new Refused("invalid", `labels must differ, got "${twice}" twice`, "remove one of them");
  return Object.fromEntries(pairs);
}

/** One label a line, as in a file of labels; a single line may have several, with commas between them. */
function linesOf(text) {
  const found = text.split("\n");
  const bare = found.length > 1 ? found.map((line) => line.replace(COMMENT, "")) : found;
  const lines = bare.map((line) => line.trim()).filter(Boolean);
  const several = lines.length === 1 && !lines[0].includes(": ");
  if (several) return lines[0].split(",").map((name) => name.trim()).filter(Boolean);
  return lines.map((line) => line.replace(/,+$/, ""));
}

const same = (labels, detector) => JSON.stringify(labels) === JSON.stringify(parseLabels(labelText(detector)));

/** Judge by the class names in the field; an answer that comes after a later change is dropped. */
export async function relabel() {
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
  const known = [state.service, state.detector].find((detector) => same(labels, detector));
  if (known) return known;
  const made = { labels };
  return { ...(await askJson("v1/detectors", made)), made };
}

/** Let a detector judge: all verdicts change together, when the new ones are all here. Marks are those of its names. */
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
  Object.assign(state, { detector, fitted: null, thresholdError: "", dropped });
  if (!detector.labels.includes(state.label)) state.label = "";
  recallList();
  keepLabels(detector === state.service ? "" : labelText(detector));
  for (const photo of state.photos) photo.result &&= results.get(photo) ?? null; // without one it is sent again
  if (!state.photos.some(waiting)) say(tally());
  sendPhotos();
  await refit();
}

/** Switch a kind of a label on or off: the line of the label says so, and counts. What was typed before comes first. */
export async function switchKind(label, kind, on) {
  if (labelText(state.detector) !== $("labels").value) await relabel();
  const { labels, typed } = state.detector;
  if (state.labelsError) return render(); // to be put right first; the box goes back
  const changed = typed.map((text, place) => (labels[place] === label ? withKind(text, kind, on) : text));
  $("labels").value = labelText({ ...state.detector, typed: changed });
  await relabel();
}

// The threshold

/** Mark a photo; once more, and there is no mark. */
export function mark(photo, value) {
  markAll([photo], markOf(photo) === value ? "" : value);
}

/** Mark photos, or take their marks away by "". The same photo has one mark, however often it is there. */
export function markAll(photos, value) {
  const { marks } = state.list;
  const scored = photos.filter((photo) => photo.result);
  if (!scored.length) return;
  for (const photo of scored.flatMap(sameAs)) {
    if (value) marks[photo.hash] = value;
    else delete marks[photo.hash];
  }
  state.list.hand = null;
  keepList();
  render();
  refit();
}

/** Forget the marks of these class names and what was set by hand. */
export function forgetMarks() {
  state.list = { marks: {}, hand: null };
  keepList();
  refit();
}

/** Fit the threshold to the marks; without any it is the detector's own. */
export async function refit() {
  state.fits += 1;
  const fit = state.fits;
  const { detector } = state;
  let [fitted, problem] = [null, ""];
  try {
    const path = (id) => `v1/detectors/${id}/threshold`;
    if (countMarks()) fitted = await askDetector(detector, (id) => askJson(path(id), markedScores()));
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

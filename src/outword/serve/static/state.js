/** What the page knows, and what follows from it. Nothing here draws, asks or keeps anything. */

import { axisOf } from "./axis.js";

const NEAR = 0.3; // of the axis, to both sides of the line: half or twice, where it is a logarithm
const STEPS = 200; // of the line across the plot, about

/**
 * @typedef {object} Photo
 * @property {string} name with the folders that it was chosen with
 * @property {Blob} file
 * @property {boolean} demo whether it came with the page
 * @property {boolean} sent whether it is on its way
 * @property {string} hash of its content; empty until it is known
 * @property {?object} result what the service says of it, by the detector of the page
 * @property {?number[]} embedding to score it again without sending it again
 * @property {string[]} notes on its quality, from when it was sent
 * @property {?Uint8Array} fingerprint which tells whether it looks the same as another
 * @property {number} order its place among all that came in
 * @property {string} error why there is no result
 * @property {boolean} again whether to send it again may help
 * @property {?HTMLImageElement} picture
 * @property {HTMLLIElement} card
 */

export const state = {
  token: "",
  asking: null, // while a token is asked for: {wait: Promise, done: its resolve}
  refused: "", // the token that was refused last
  trouble: null, // {text, again, offline}: what to tell, what to try again, whether the service is out of reach
  columns: [], // of the table that can be taken home
  service: null, // the detector that the service was started with
  detector: null, // the one that judges; `made` has the labels of one that the page had made
  labelsError: "",
  edits: 0, // counts changes of the class names, to know late answers
  relabelling: false,
  /** @type {Photo[]} */
  photos: [],
  removed: null, // {photos, detector}: what can be brought back
  passedOver: 0, // files of the last folder that are no photos
  sending: 0,
  pasted: 0,
  list: { marks: {}, hand: null }, // of these class names: marks by hash, and the threshold set by hand
  fitted: null, // the answer to the marks
  fits: 0, // counts requests for it
  dropped: false, // whether other class names ended a threshold
  thresholdError: "",
  axis: null, // of the plot; see `setAxis`
  places: 2, // decimals of scores
  show: "all", // or a verdict, "unsure", or "same"
  label: "", // whose photos are to be shown; "" for any
  selected: new Set(), // photos that were chosen, to do something with all of them
  twins: new Map(), // photos that look the same as an earlier one, and which
  arrived: 0, // photos that ever came in
  packing: "", // how far a zip file is that is being made
  exportError: "",
  sort: "best",
  viewing: null, // the photo that is shown large
  downloadError: "",
  forgets: false, // whether the browser keeps nothing
};

export const $ = (id) => document.getElementById(id);

export const waiting = (photo) => !photo.result && !photo.error;

export const markOf = (photo) => state.list.marks[photo.hash] ?? "";

/** What is no part of a class name where there are several lines, as in files; `crane#bird` and `C#` have none. */
export const COMMENT = /(?:^|\s)#.*/;

/** The class names of a detector as the field has them; marks are kept under this. `track #5` needs a single line. */
export function labelText({ labels, typed, prompts }) {
  const lines = labels.map((name, place) => (prompts[name] ? `${typed[place]}: ${prompts[name]}` : typed[place]));
  const single = lines.some((line) => COMMENT.test(line)) && !lines.some((line) => /,|: /.test(line));
  return lines.join(single ? ", " : "\n");
}

/** The threshold that the page judges by; minus infinity takes everything, null is none. */
export function threshold() {
  if (state.list.hand !== null) return state.list.hand;
  const { threshold } = state.fitted ?? state.detector;
  return threshold ?? (calibrated() ? -Infinity : null);
}

/** What the threshold rests on, in the words of `outword score`. */
export const basis = () =>
  state.list.hand !== null || state.fitted !== null ? "calibrated" : state.detector.basis;

/** Whether it was found on photos, or set. */
export const calibrated = () => basis() !== "formula";

/** "in", "out", or "uncalibrated" where there is no threshold. */
export function side(photo) {
  const cut = threshold();
  if (cut === null) return "uncalibrated";
  return photo.result.score >= cut ? "in" : "out";
}

/** How far from the line a photo is, along the axis. */
function distance(photo) {
  const cut = threshold();
  if (!photo.result || cut === null || cut === -Infinity || !state.axis) return Infinity;
  return Math.abs(state.axis.place(photo.result.score) - state.axis.place(cut));
}

export const unsure = (photo) => distance(photo) <= NEAR;

export const kindOf = (photo) => (photo.error ? "error" : waiting(photo) ? "waiting" : side(photo));

/** What the service noted of a photo, and whether it looks the same as an earlier one, as `outword score` says it. */
export function notesOf(photo) {
  const twin = state.twins.get(photo);
  return twin ? [...photo.notes, `the same as ${twin.name}`] : photo.notes;
}

/** Whether a photo is nearest to the class that is to be shown. */
export const ofClass = (photo) => !state.label || photo.result?.nearest === state.label;

function ofVerdict(photo) {
  if (state.show === "all") return true;
  if (state.show === "unsure") return unsure(photo);
  return state.show === "same" ? state.twins.has(photo) : kindOf(photo) === state.show;
}

/** Whether a photo is among those that are to be shown; one on its way always is. */
export const shown = (photo) => waiting(photo) || (ofClass(photo) && ofVerdict(photo));

/** The photos as they are shown, in order. */
export const visiblePhotos = () => state.photos.filter(shown);

/** The photos that are chosen and shown: nothing is done with what nobody sees. */
export const selectedPhotos = () => visiblePhotos().filter((photo) => state.selected.has(photo));

/** The photos that are in, of the class that is shown. */
export const insidePhotos = () => state.photos.filter((photo) => kindOf(photo) === "in" && ofClass(photo));

/** How many photos are nearest to each class, in or not out, and out; classes with the most photos first. */
export function countClasses() {
  const counts = new Map();
  for (const photo of state.photos.filter(({ result }) => result)) {
    const { nearest } = photo.result;
    const count = counts.get(nearest) ?? { label: nearest, inside: 0, outside: 0 };
    count[kindOf(photo) === "out" ? "outside" : "inside"] += 1;
    counts.set(nearest, count);
  }
  const order = new Map(state.detector.labels.map((label, place) => [label, place]));
  return [...counts.values()].sort((one, other) =>
    other.inside - one.inside || other.outside - one.outside || order.get(one.label) - order.get(other.label));
}

const score = (photo) => photo.result?.score ?? -Infinity;
const up = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const ORDERS = {
  best: (a, b) => up(score(b), score(a)),
  worst: (a, b) => up(a.result?.score ?? Infinity, b.result?.score ?? Infinity),
  unsure: (a, b) => up(distance(a), distance(b)),
  name: (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }),
};

/** Put the photos in order; while some are on their way no card jumps. */
export function sortPhotos() {
  if (!state.photos.some(waiting)) state.photos.sort(ORDERS[state.sort]);
}

/** Whether two photos are the same one to `outword calibrate`: the same file, or the same vector. */
function isSame(one, other) {
  if (one.hash === other.hash) return true;
  if (!one.embedding || !other.embedding || score(one) !== score(other)) return false;
  return one.embedding.every((value, place) => value === other.embedding[place]);
}

/** The photos that are the same as one, and that one. */
export const sameAs = (photo) => state.photos.filter((other) => isSame(photo, other));

/** Scores of the marked photos, each photo once. */
export function markedScores() {
  const [scores, hashes, byScore] = [{ inside: [], outside: [] }, new Set(), new Map()];
  for (const photo of state.photos.filter((each) => each.result && markOf(each))) {
    const alike = byScore.get(score(photo)) ?? [];
    if (hashes.has(photo.hash) || alike.some((other) => isSame(photo, other))) continue;
    hashes.add(photo.hash);
    byScore.set(score(photo), [...alike, photo]);
    scores[markOf(photo)].push(score(photo));
  }
  return scores;
}

export const countMarks = () => Object.values(markedScores()).flat().length;

export function counted(photos = state.photos) {
  const counts = {};
  for (const photo of photos) counts[kindOf(photo)] = (counts[kindOf(photo)] ?? 0) + 1;
  return counts;
}

/** Choose the axis of the plot: by unrelated photos where they are known, else around the threshold. */
export function setAxis() {
  const scores = state.photos.filter((photo) => photo.result).map(score);
  if (!scores.length) return;
  const cuts = [state.detector.threshold, state.fitted?.threshold ?? null].filter((cut) => cut !== null);
  state.axis = axisOf(state.detector.ladder, [...scores, ...cuts], cuts[0] ?? null, state.list.hand, STEPS);
  const spread = Math.max(...scores, ...cuts) - Math.min(...scores, ...cuts);
  state.places = spread ? Math.min(Math.max(0, -Math.floor(Math.log10(spread / STEPS))), 20) : 2;
}

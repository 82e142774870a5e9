/** Photos: how they come in, are sent, pictured, and removed. */

import { makeCard, render, say } from "./draw.js";
import { refit, relabel } from "./judging.js";
import { keepDemo } from "./memory.js";
import { ask, askDetector, askJson, Refused, trouble } from "./service.js";
import { markOf, state, waiting } from "./state.js";
import { fingerprintOf, firstOfEach } from "./twins.js";
import { megabytes, tally, visible } from "./words.js";

const PARALLEL = 4; // photos on their way at a time
const HOW = "top=5&fixed=true"; // five labels, words and names of each photo; one threshold for all of them

/** How photos are called, as outword/photos/formats.py has it. */
export const SUFFIXES = [
  ".apng", ".arw", ".avif", ".bmp", ".cr2", ".cr3", ".dib", ".dng", ".gif", ".heic", ".heif", ".jfif", ".jpe", ".jpeg",
  ".jpg", ".nef", ".orf", ".pbm", ".pfm", ".pgm", ".png", ".pnm", ".ppm", ".raf", ".rw2", ".tif", ".tiff", ".webp",
];

// Coming in

/** Files that were chosen, dropped or pasted; those of folders only if they look like photos. */
export function addFiles(files, { folder = false, demo = false } = {}) {
  const chosen = [...files].filter((file) => !folder || isPhoto(file));
  state.passedOver = files.length - chosen.length;
  if (chosen.length && !demo) {
    state.photos = state.photos.filter((photo) => !photo.demo); // these give way to the first of one's own
    keepDemo(false);
  }
  if (folder) chosen.sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1)); // as outword score goes through it
  for (const file of chosen) {
    state.arrived += 1;
    const photo = {
      name: nameOf(file), file, demo, sent: false, hash: "", result: null, embedding: null, notes: [],
      fingerprint: null, order: state.arrived, error: "", again: false, picture: null, pixels: null,
    };
    photo.card = makeCard(photo);
    state.photos.push(photo);
  }
  if (!chosen.length && folder) say("There are no photos in it.");
  sendPhotos();
  render();
}

const nameOf = (file) => file.webkitRelativePath || file.path || file.name;

function isPhoto({ name, type }) {
  const called = SUFFIXES.some((suffix) => name.toLowerCase().endsWith(suffix));
  return !name.startsWith(".") && (called || type.startsWith("image/"));
}

/** What was dropped: files as they are, and folders with all that is in them. */
export async function addDropped(data) {
  const items = [...data.items].filter((item) => item.kind === "file");
  const folders = items.map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry?.isDirectory);
  const files = items.filter((item) => !item.webkitGetAsEntry?.()?.isDirectory).map((item) => item.getAsFile());
  if (files.length) addFiles(files); // `data` is empty after the first wait
  if (folders.length) addFiles((await Promise.all(folders.map(filesOf))).flat(), { folder: true });
}

/** All files of a folder, with their paths. */
async function filesOf(entry) {
  if (entry.isFile) {
    const file = await new Promise((done) => entry.file(done, () => done(null)));
    return file ? [Object.assign(file, { path: entry.fullPath.slice(1) })] : [];
  }
  const [reader, found] = [entry.createReader(), []];
  const more = () => new Promise((done) => reader.readEntries(done, () => done([])));
  for (let some = await more(); some.length; some = await more()) found.push(...some); // a hundred at a time
  return (await Promise.all(found.map(filesOf))).flat();
}

/** Photos from the clipboard, which browsers all call image.png. */
export function addPasted(files) {
  addFiles(files.map((file) => {
    state.pasted += 1;
    return new File([file], `pasted-${state.pasted}.${file.type.split("/")[1] ?? "png"}`, { type: file.type });
  }));
}

/** The demo photos that are not there yet; at the first visit only if nobody has added others in the meantime. */
export async function addDemo({ unasked = false } = {}) {
  const fetchOne = async (name) => {
    const blob = await (await ask(`demo/${encodeURIComponent(name)}`)).blob();
    return new File([blob], name, { type: blob.type, lastModified: 0 });
  };
  try {
    const { photos } = await askJson("demo");
    const files = await Promise.all(photos.map(fetchOne));
    const there = new Set(state.photos.map((photo) => photo.name));
    if (unasked && there.size) return;
    addFiles(files.filter((file) => !there.has(file.name)), { demo: true });
    keepDemo(true);
  } catch (error) {
    trouble(error, () => addDemo({ unasked }));
    render();
  }
}

// To the service and back

/** Send the photos that wait, a few at a time. */
export function sendPhotos() {
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
      if (state.photos.some(waiting)) return;
      findTwins();
      say(tally());
    });
  }
}

async function sendPhoto(photo) {
  try {
    await checkFile(photo.file);
    photo.hash ||= await hashOf(photo.file);
    photo.result = await scorePhoto(photo);
  } catch (error) {
    if (error.code === "unreachable") trouble(error, resume);
    else Object.assign(photo, { error: error.message, again: Boolean(error.again) });
    return;
  }
  if (markOf(photo)) refit(); // it was marked before, under these class names
  if (!photo.picture) picture(photo);
}

/** Go on with what waits, after the service was out of reach. */
export function resume() {
  state.downloadError = "";
  sendPhotos();
  relabel();
  refit();
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

/** What tells a photo from others: its content, or its name and date where a page may not hash (plain HTTP). */
async function hashOf(file) {
  if (!globalThis.crypto?.subtle) return `${file.name}/${file.size}/${file.lastModified}`;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));
  return [...digest.slice(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

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
  form.append("images", photo.file, photo.file.name);
  const query = `${HOW}&embeddings=${detector.takes_embeddings}`;
  const { results } = await askDetector(detector, (id) => askJson(`v1/score?detector=${id}&${query}`, form));
  const [{ embedding, notes, fingerprint }] = results;
  // all of it stays when it is judged by other class names
  Object.assign(photo, { embedding, notes, fingerprint: fingerprintOf(fingerprint) });
  return results;
}

/** Find the photos that look the same as one that came before. */
function findTwins() {
  state.twins = firstOfEach([...state.photos].sort((one, other) => one.order - other.order));
}

/** Score photos from their embeddings: in one request, unless there are more than it may hold. */
export async function scoreEmbeddings(detector, photos) {
  const most = detector.limits.images;
  const results = [];
  for (let first = 0; first < photos.length; first += most) {
    const some = photos.slice(first, first + most);
    const embeddings = some.map((photo) => photo.embedding);
    const answer = await askDetector(detector, (id) => askJson(`v1/score?detector=${id}&${HOW}`, { embeddings }));
    results.push(...answer.results);
  }
  return results;
}

// Pictures

const wanted = new Map(); // photos whose small copies are being made, by number
let [worker, latest] = [null, 0];

/** Have a small copy made. That is after the service has read the photo, so that no giant is ever decoded here. */
function picture(photo) {
  worker ??= newWorker();
  latest += 1;
  wanted.set(latest, photo);
  worker.postMessage({ id: latest, file: photo.file });
}

function newWorker() {
  const made = new Worker(new URL("thumbnail.js", import.meta.url));
  made.onmessage = async ({ data }) => {
    const photo = wanted.get(data.id);
    wanted.delete(data.id);
    photo.pixels = data.made?.pixels ?? null;
    photo.picture = data.made && (await loaded(data.made.blob, visible(photo.name)));
    render();
  };
  return made;
}

/** A small file as an image; its address is released as soon as it is read. */
async function loaded(blob, alt) {
  const image = new Image();
  const done = new Promise((done) => Object.assign(image, { onload: () => done(image), onerror: () => done(null) }));
  image.alt = alt;
  image.src = URL.createObjectURL(blob);
  return done.finally(() => URL.revokeObjectURL(image.src));
}

// Going away, and back

export function removePhotos(photos) {
  const [gone, marked] = [new Set(photos), photos.some(markOf)];
  state.removed = { photos: [...photos], detector: state.detector };
  state.photos = state.photos.filter((photo) => !gone.has(photo));
  if (!state.photos.length) keepDemo(false);
  if (gone.has(state.viewing)) state.viewing = null;
  for (const photo of photos) state.selected.delete(photo);
  findTwins();
  render();
  if (marked) refit();
}

/** Bring back what was removed last; by other class names it is judged anew. */
export function undoRemoval() {
  const { photos, detector } = state.removed;
  for (const photo of photos) if (detector !== state.detector && !photo.error) photo.result = null;
  state.photos.push(...photos);
  state.removed = null;
  findTwins();
  say(tally());
  sendPhotos();
  render();
  refit();
}

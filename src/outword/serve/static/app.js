/**
 * The page of `outword serve`: one state, one `render`, and events that change the one and call the other.
 *
 * state.js     what the page knows             draw.js, view.js   drawing it, and a photo large
 * service.js   talking to the service          photos.js          photos in, and away
 * memory.js    what the browser keeps          judging.js         class names, marks, the threshold
 * axis.js      the axis of the plot            exports.js, zip.js what can be taken home
 * select.js    choosing many photos            twins.js           photos that look the same
 */

import { draw, NARROW, render, say, thinTicks } from "./draw.js";
import { download, exportInside, exportMarks, exportTable } from "./exports.js";
import { forgetMarks, mark, markAll, relabel, switchKind } from "./judging.js";
import { keepList, recalledLabels, recallList, remembered, wantsDemo } from "./memory.js";
import {
  addDemo, addDropped, addFiles, addPasted, removePhotos, sendPhotos, SUFFIXES, undoRemoval,
} from "./photos.js";
import { pick, pickAll, pickNone, touched } from "./select.js";
import { askJson, trouble } from "./service.js";
import { $, labelText, selectedPhotos, state, visiblePhotos } from "./state.js";
import { view, viewNext } from "./view.js";

const QUIET = 400; // milliseconds without a key before class names count
const KEYS = { 1: "inside", 2: "outside" };

async function start() {
  try {
    state.service = await askJson("v1/detector");
    state.columns = await askJson("columns");
    state.detector = state.service;
    recallList();
    $("labels").value = recalledLabels() || labelText(state.service);
    if (recalledLabels()) await relabel();
    if (wantsDemo()) await addDemo({ unasked: true });
    sendPhotos();
  } catch (error) {
    trouble(error, start);
  }
  render();
}

// Class names

let typing = 0;
$("labels").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(relabel, QUIET);
});

/** Other class names than those in the field, at once. */
function useLabels(text) {
  clearTimeout(typing);
  $("labels").value = text;
  relabel();
}

$("reset").addEventListener("click", () => {
  $("labels").focus(); // the button goes away
  useLabels(labelText(state.service));
});
$("examples").addEventListener("click", ({ target }) => {
  if (target.value) useLabels(target.value.split(", ").join("\n"));
});
$("kinds").addEventListener("change", ({ target }) => {
  switchKind(target.closest("details").dataset.label, target.closest("li").dataset.kind, target.checked);
});
$("download").addEventListener("click", download);

// Photos

$("files").accept = ["image/*", ...SUFFIXES].join();
for (const id of ["files", "folder"]) {
  $(id).addEventListener("change", () => {
    addFiles($(id).files, { folder: id === "folder" });
    $(id).value = ""; // the same may be chosen again
  });
}
$("demo").addEventListener("click", () => addDemo());
$("clear").addEventListener("click", () => {
  removePhotos(state.photos);
  say("All photos are removed; this can be undone.");
  draw(); // what is hidden cannot have the focus
  $("undo").focus();
});
$("undo").addEventListener("click", () => {
  undoRemoval();
  $("files").focus(); // the button goes away
});
$("removed-close").addEventListener("click", () => {
  state.removed = null;
  $("files").focus();
  render();
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
  addDropped(event.dataTransfer);
});
document.addEventListener("paste", (event) => {
  const files = [...(event.clipboardData?.files ?? [])];
  if (!files.length) return;
  event.preventDefault();
  addPasted(files);
});

// Results

$("show").addEventListener("click", ({ target }) => {
  const button = target.closest("button");
  if (!button) return;
  state.show = button.value;
  render();
});
$("by-class").addEventListener("click", ({ target }) => {
  const button = target.closest("button");
  if (!button) return;
  state.label = button.value === state.label ? "" : button.value;
  render();
});
$("sort").addEventListener("change", () => {
  state.sort = $("sort").value;
  render();
});
$("export").addEventListener("click", exportTable);
$("export-marks").addEventListener("click", exportMarks);
$("export-inside").addEventListener("click", exportInside);
$("threshold").addEventListener("input", () => {
  const [place, { score, step }] = [$("threshold").valueAsNumber, state.axis];
  const digits = 1 - Math.floor(Math.log10(score(place + step) - score(place))); // one more than the step has
  state.list.hand = Number(score(place).toFixed(Math.min(Math.max(digits, 0), 100)));
  render();
});
$("threshold").addEventListener("change", keepList);
NARROW.addEventListener("change", render);
new ResizeObserver(thinTicks).observe($("ticks"));
$("own-threshold").addEventListener("click", () => {
  $("threshold").focus();
  forgetMarks();
});
$("use-marks").addEventListener("click", () => {
  state.list.hand = null;
  keepList();
  $("threshold").focus();
  render();
});

const photoOf = (target) => {
  const card = target.closest(".card");
  return state.photos.find((photo) => photo.card === card);
};

$("cards").addEventListener("click", ({ target, shiftKey }) => {
  const [photo, button] = [photoOf(target), target.closest("button")];
  if (photo && target.matches(".pick input")) pick(photo, { on: target.checked, range: shiftKey });
  if (!photo || !button) return;
  if (button.matches(".open")) view(photo);
  else if (button.matches(".remove")) remove(photo);
  else if (button.matches(".again")) tryAgain(photo);
  else mark(photo, button.value);
});

function remove(photo) {
  const place = state.photos.indexOf(photo);
  removePhotos([photo]);
  const next = state.photos[Math.min(place, state.photos.length - 1)];
  (next ? next.card.querySelector(".remove") : $("files")).focus();
}

function tryAgain(photo) {
  Object.assign(photo, { error: "", again: false });
  photo.card.querySelector(".remove").focus(); // the button goes away
  sendPhotos();
  render();
}

// Many photos at once

for (const id of ["select-all", "selection-rest"]) $(id).addEventListener("click", pickAll);
$("selection-none").addEventListener("click", () => {
  pickNone();
  $("select-all").focus(); // the button goes away
});
$("selection-marks").addEventListener("click", ({ target }) => {
  if (target.matches("button")) markAll(selectedPhotos(), target.value);
});
$("selection-remove").addEventListener("click", () => {
  removePhotos(selectedPhotos());
  draw(); // what is hidden cannot have the focus
  $("undo").focus();
});

// Keys: arrows go from photo to photo, 1 and 2 mark, x chooses, Escape chooses none

const plain = (event) => !(event.ctrlKey || event.metaKey || event.altKey);

$("cards").addEventListener("keydown", (event) => {
  const photo = photoOf(event.target);
  if (!photo || !plain(event)) return;
  const many = touched(photo);
  if (KEYS[event.key] && many.length > 1) markAll(many, KEYS[event.key]);
  else if (KEYS[event.key]) mark(photo, KEYS[event.key]);
  else if (event.key === "x") pick(photo, { on: !state.selected.has(photo) });
  else if (event.key === "Escape" && state.selected.size) pickNone();
  else if (event.key.startsWith("Arrow")) step(photo, event.key);
  else return;
  event.preventDefault();
});

function step(photo, key) {
  const photos = visiblePhotos();
  const tops = photos.map((each) => each.card.offsetTop);
  const columns = Math.max(1, tops.filter((top) => top === tops[0]).length);
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key];
  photos[photos.indexOf(photo) + steps]?.card.querySelector(".open").focus();
}

$("view").addEventListener("keydown", (event) => {
  if (!plain(event)) return;
  if (KEYS[event.key]) mark(state.viewing, KEYS[event.key]);
  else if (["ArrowLeft", "ArrowRight"].includes(event.key)) viewNext(event.key === "ArrowLeft" ? -1 : 1);
  else return;
  event.preventDefault();
});
$("view-before").addEventListener("click", () => viewNext(-1));
$("view-after").addEventListener("click", () => viewNext(1));
$("view-marks").addEventListener("click", ({ target }) => target.value && mark(state.viewing, target.value));
$("view-close").addEventListener("click", () => $("view").close());
$("view").addEventListener("click", ({ target }) => target === $("view") && $("view").close()); // beside it
$("view").addEventListener("close", () => {
  const photo = state.viewing;
  state.viewing = null;
  render();
  photo?.card.querySelector(".open").focus();
});

// When something is in the way

$("retry").addEventListener("click", () => {
  const { again } = state.trouble;
  state.trouble = null;
  render();
  again();
});
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = remembered($("token").value);
  const { done } = state.asking;
  state.asking = null;
  render();
  done();
});

state.token = remembered();
start();

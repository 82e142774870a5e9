/** What can be taken home: a table, the photos that are in, the marks for `outword calibrate`, the detector. */

import { render } from "./draw.js";
import { ask, askDetector } from "./service.js";
import {
  basis, countMarks, insidePhotos, markedScores, markOf, notesOf, side, state, threshold, waiting,
} from "./state.js";
import { plural } from "./words.js";
import { zipped } from "./zip.js";

const CELLS = { // of a column, by its form in the table of outword/base/prediction.py
  text: csvText,
  number: (value) => String(Number.isFinite(value) ? value : ""),
  best: ([name]) => csvText(name ?? ""),
  texts: (texts) => csvText(texts.join("; ")),
  shares: (shares) => csvText(shares.map(({ word, share }) => `${word} ${share.toFixed(2)}`).join("; ")),
};
const MARKS = { inside: "in", outside: "out", "": "" };

export function exportTable() {
  const rows = state.photos.filter((photo) => !waiting(photo)).map(cells);
  save(csv([...state.columns.map(({ name }) => name), "mark"], rows), "scores.csv");
}

/** The marks of the photos that are here; `outword calibrate --marks` reads them, and the table just as well. */
export function exportMarks() {
  const marked = state.photos.filter((photo) => markOf(photo));
  save(csv(["path", "mark"], marked.map((photo) => [csvText(photo.name), MARKS[markOf(photo)]])), "marks.csv");
}

/** The photos that are in, of the class that is shown, as files with their names; the service has no part in it. */
export async function exportInside() {
  const photos = insidePhotos();
  const pairs = photos.map((photo) => [photo.name, photo.file]);
  const progress = (done) => {
    state.packing = `${done.toLocaleString("en")} of ${plural(pairs.length, "photo")} packed`;
    render();
  };
  const { blob, unread } = await zipped(pairs, { progress });
  const gone = `${plural(unread.length, "photo")} cannot be read any more and stayed out: ${unread.slice(0, 3).join(", ")}`;
  Object.assign(state, { packing: "", exportError: unread.length ? gone : "" });
  if (unread.length < pairs.length) save(blob, "in.zip");
  render();
}

/** What the service says of a photo, with what the page decides itself: the threshold, hence the verdict, and marks. */
function cells(photo) {
  const own = photo.error ? { path: photo.name, error: photo.error } : {
    ...photo.result, path: photo.name, verdict: side(photo), basis: basis(), threshold: threshold(),
    label: side(photo) === "out" ? "" : photo.result.nearest, notes: notesOf(photo),
  };
  const mark = photo.error ? "" : MARKS[markOf(photo)];
  return [...state.columns.map(({ name, form }) => (name in own ? CELLS[form](own[name]) : "")), mark];
}

function csv(columns, rows) {
  const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const lines = [columns, ...rows].map((row) => row.map(quoted).join(",") + "\n");
  return new Blob(lines, { type: "text/csv" });
}

// A quote before what a spreadsheet would take for a formula, as outword/base/cells.py has it
function csvText(text) {
  return text.replace(/(?<![^;\t\r\n])(?=[' ]*[=+\-@\t\r\n\0\uff1d\uff0b\uff0d\uff20])/g, "'");
}

export async function download() {
  state.downloadError = "";
  const { hand } = state.list;
  const body = hand !== null ? { threshold: hand } : countMarks() ? markedScores() : {};
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

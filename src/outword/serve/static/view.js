/** A photo large, with everything that is known about it. */

import { changed, element, renderNotes } from "./draw.js";
import { $, basis, kindOf, markOf, notesOf, state, threshold, unsure, visiblePhotos } from "./state.js";
import { comparison, fitting, KINDS, megabytes, named, percent, seen, unrelated, visible } from "./words.js";

const BASES = {
  calibrated: "set here, or fitted to photos of the classes",
  reference: "from unrelated photos",
  imagined: "from photos imagined from names",
  batch: "from the photos themselves",
  formula: "the score's own, fitted to no photos",
};
let address = ""; // of the photo that is shown

export function view(photo) {
  state.viewing = photo;
  renderView();
}

/** The photo so many places further on; at the ends it stays. */
export function viewNext(steps) {
  const photos = visiblePhotos();
  const next = photos[photos.indexOf(state.viewing) + steps];
  if (next) view(next);
}

/** Draw the large view of `state.viewing`, or close it; addresses of photos are released. */
export function renderView() {
  const photo = state.viewing;
  const dialog = $("view");
  if (changed($("view-photo"), photo)) showPhoto(photo);
  if (!photo) {
    if (dialog.open) dialog.close();
    return;
  }
  const photos = visiblePhotos();
  const at = photos.indexOf(photo);
  $("view-before").disabled = at <= 0;
  $("view-after").disabled = at < 0 || at === photos.length - 1;
  $("view-place").textContent = at < 0 ? "" : `${at + 1} of ${photos.length}`;
  const mark = markOf(photo);
  for (const button of $("view-marks").children) {
    button.disabled = !photo.result;
    button.setAttribute("aria-pressed", String(mark === button.value));
  }
  const told = [photo.result, photo.error, kindOf(photo), threshold(), unsure(photo), photo.pixels, state.twins];
  if (changed($("view-facts"), photo, ...told)) renderFacts(photo);
  if (!dialog.open) dialog.showModal();
}

function showPhoto(photo) {
  if (address) URL.revokeObjectURL(address);
  address = photo ? URL.createObjectURL(photo.file) : "";
  $("view-photo").replaceChildren();
  if (!photo) return;
  $("view-name").textContent = visible(photo.name);
  const image = Object.assign(new Image(), { alt: visible(photo.name), src: address });
  // what the browser cannot show may have no small copy either
  image.addEventListener("error", () => image.replaceWith(element("p", "The browser cannot show this photo.", "hint")));
  $("view-photo").append(image);
}

function renderFacts(photo) {
  const { result, error } = photo;
  const kind = kindOf(photo);
  $("view-verdict").className = kind;
  $("view-verdict").textContent = KINDS[kind];
  $("view-sense").textContent = result ? visible(seen(photo).join(" ")) : error;
  renderNotes($("view-notes"), notesOf(photo));
  $("view-facts").replaceChildren(...(result ? judged(photo) : []), ...fileFacts(photo));
  $("view-labels").parentElement.hidden = !result;
  $("view-words").parentElement.hidden = !result?.words.length;
  shares($("view-labels"), result?.labels.map(({ label, share }) => [label, share]) ?? []);
  shares($("view-words"), result?.words.map(({ word, share }) => [word, share]) ?? []);
}

function judged(photo) {
  const { result } = photo;
  const coverage = state.detector.coverage[result.nearest];
  return Object.entries({
    "how well": fitting(photo).replace(/^f/, "F"),
    "looks like": result.looks_like.join(", "),
    "nearest of yours": named(result) + (coverage && coverage !== "known" ? ` (${coverage} to the encoder)` : ""),
    unsure: unsure(photo) ? state.axis.unsure : "",
    score: comparison(result.score, threshold()),
    "p-value": result.p === null ? "" : `${Number(result.p.toPrecision(2))}: the share of ${unrelated()} that score as high`,
    threshold: threshold() === null ? "none yet" : BASES[basis()],
  }).filter(([, value]) => value).map(pair);
}

function fileFacts({ file, pixels }) {
  const size = file.size < 1e5 ? `${Math.ceil(file.size / 1e3)} kB` : megabytes(file.size);
  return [pair(["file", [pixels?.join(" × "), size, file.type].filter(Boolean).join(", ")])];
}

function pair([name, value]) {
  const made = element("div", "");
  made.append(element("dt", name), element("dd", visible(value)));
  return made;
}

/** Names with their shares, and bars. */
function shares(list, pairs) {
  list.replaceChildren(...pairs.map(([name, share]) => {
    const item = element("li", "");
    const bar = element("i", "");
    bar.style.width = `${100 * Math.min(Math.max(share, 0), 1)}%`;
    item.append(element("span", visible(name)), element("span", percent(share)), bar);
    return item;
  }));
}

/** Words and numbers, as people read them. */

import { basis, countMarks, counted, side, state, threshold } from "./state.js";

/** A score with as many decimals as the plot can show, or two digits where those would all be 0. */
export function number(value, more = 0) {
  const text = value.toFixed(Math.min(state.places + more, 20));
  return value && !Number(text) ? value.toPrecision(2) : text;
}

/** A score beside the threshold, with as many decimals as it takes to tell them apart. */
export function comparison(score, cut) {
  if (cut === null || cut === -Infinity) return number(score);
  const more = [0, 1, 2, 3, 6].find((each) => number(score, each) !== number(cut, each)) ?? 0;
  return `${number(score, more)} ${score >= cut ? "≥" : "<"} ${number(cut, more)}`;
}

export const percent = (share) =>
  `${share < 0.1 ? Number((100 * share).toPrecision(2)) : Math.round(100 * share)} %`;

/** A share of unrelated photos, rounded down: 96.4 %, 99.95 %. */
export function better(share) {
  const places = share > 0.999 ? 2 : 1;
  return `${Number((Math.floor(10 ** places * 100 * share + 1e-6) / 10 ** places).toFixed(places))} %`;
}

export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** A text in one line, with what cannot be seen as an escape. */
export const visible = (text) =>
  text.replace(/[\p{C}\p{Z}]/gu, (c) => (c === " " ? c : `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`));

export const KINDS = {
  in: "in",
  out: "out",
  uncalibrated: "without a verdict",
  error: "could not be scored",
  waiting: "waiting",
  same: "the same as another",
};

/** How many are in, out, and so on. */
export function tally(counts = counted()) {
  const there = Object.keys(KINDS).filter((kind) => counts[kind]);
  const parts = there.map((kind) => `${counts[kind].toLocaleString("en")} ${KINDS[kind]}`);
  return `${plural(state.photos.length, "photo")}: ${parts.join(", ")}`;
}

/** The nearest label, with the kind that matched. */
export const named = ({ nearest, kind }) => (kind ? `${nearest} (${kind})` : nearest);

/** What a photo is taken for, and in which sense. */
export function seen(photo) {
  const [best] = photo.result.looks_like;
  if (side(photo) === "in") return ["as", named(photo.result)];
  return side(photo) === "out" && best ? ["looks like:", best] : ["nearest", named(photo.result)];
}

/** The other half of that: what it looks like, or which label is nearest. */
export function besides(photo) {
  const { looks_like: names } = photo.result;
  if (seen(photo)[0] === "looks like:") return ["nearest of yours:", named(photo.result)];
  return names.length ? ["looks like:", names.slice(0, 2).join(", ")] : ["", ""];
}

/** How well a photo fits, with what is needed to be in at the threshold that is drawn. */
export function fitting({ result }) {
  const cut = threshold();
  if (!result || cut === result.threshold) return result?.fits ?? "";
  const [fits] = result.fits.split("; ");
  const share = neededShare();
  return fits && share > 0 ? `${fits}; ${better(share)} are needed` : fits;
}

/** The share of unrelated photos that a photo at the threshold fits better than, where that is known. */
function neededShare() {
  const cut = threshold();
  if (cut === null || cut === -Infinity) return undefined;
  const found = state.photos.find(({ result }) => result?.threshold === cut && Number.isFinite(result.needed));
  return found ? 1 - found.result.needed : state.axis?.share?.(state.axis.place(cut));
}

/** The photos that p-values count. */
export const unrelated = () => (basis() === "imagined" ? "imagined unrelated photos" : "unrelated photos");

export const thresholdText = () => thresholdTexts().filter(Boolean).join(" ");

/** What the threshold says to everyone, and what it is. */
export function thresholdTexts() {
  const cut = threshold();
  const none = state.dropped ? "The new class names have no threshold of their own yet" : "There is no threshold yet";
  if (cut === null) return [`${none}: move the line, or say of a few photos whether they are yours.`, ""];
  if (cut === -Infinity) return [`Everything is in${why()}.`, ""];
  const share = neededShare();
  const first = share === undefined ? "" : `In is what fits better than ${better(share)} of ${unrelated()}.`;
  return [first, `Threshold ${number(cut)}${why()}.`];
}

/** Where the threshold comes from. */
function why() {
  const count = countMarks();
  if (state.list.hand !== null) return `, set by hand${count ? `; ${plural(count, "mark")} not used` : ""}`;
  if (state.fitted) {
    const { calibration, mistakes } = state.fitted;
    return `, ${calibration}${mistakes ? `; ${mistakes} of them on the wrong side` : ""}`;
  }
  if (basis() !== "formula") return `, ${state.detector.calibration}`;
  const unfitted = state.dropped ? "uncalibrated: the new class names have no threshold of their own yet" : "uncalibrated";
  return `, the score's natural cut (${unfitted})`;
}

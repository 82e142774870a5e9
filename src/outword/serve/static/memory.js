/**
 * What the browser keeps, and nobody else: the class names, and for each list of them its marks and the threshold that
 * was set by hand. Photos are not kept; marks are found again by what is in them. Where the browser keeps nothing, all
 * of this holds until the page is closed.
 */

import { labelText, state } from "./state.js";

const KEY = `outword:${location.pathname}`;
const TOKEN = "outword-token";
const LISTS = 30; // the latest ones; older marks are forgotten
const MARKS = ["inside", "outside"];

let known = sound(read());

function read() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {}; // forbidden, or not ours
  }
}

/** What was kept, as far as it is what it should be. */
function sound(kept) {
  const table = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});
  const lists = Object.entries(table(table(kept).lists)).map(([names, list]) => {
    const marks = Object.entries(table(table(list).marks)).filter(([, mark]) => MARKS.includes(mark));
    const { hand, at } = table(list);
    const number = Number.isFinite(table(hand).value);
    return [names, { marks: Object.fromEntries(marks), hand: number ? hand : null, at: Number(at) || 0 }];
  });
  const { service, text } = table(table(kept).labels);
  const labels = typeof text === "string" ? { service, text } : null;
  return { demo: table(kept).demo !== false, labels, lists: Object.fromEntries(lists) };
}

/** Keep a change of what was kept, whatever another tab has kept in the meantime. */
function keep(change) {
  change(known);
  try {
    const latest = sound(read());
    change(latest);
    const lists = Object.entries(latest.lists).sort(([, a], [, b]) => b.at - a.at).slice(0, LISTS);
    localStorage.setItem(KEY, JSON.stringify({ ...latest, lists: Object.fromEntries(lists) }));
  } catch {
    state.forgets = true;
  }
}

/** Whether the demo photos are to be shown at the start: until there were photos of one's own, or all were removed. */
export const wantsDemo = () => known.demo;

export const keepDemo = (demo) => known.demo === demo || keep((kept) => (kept.demo = demo));

/** The class names of the last visit to this service; "" where those of the service stand. */
export const recalledLabels = () => (known.labels?.service === state.service.id ? known.labels.text : "");

export const keepLabels = (text) => keep((kept) => (kept.labels = { service: state.service.id, text }));

/** Let the marks and the threshold of the detector's class names count. */
export function recallList() {
  const { marks, hand } = known.lists[labelText(state.detector)] ?? { marks: {}, hand: null };
  state.list = { marks: { ...marks }, hand: hand?.id === state.detector.id ? hand.value : null };
}

export function keepList() {
  const { marks, hand } = state.list;
  const id = state.detector.id;
  const list = { marks: { ...marks }, hand: hand === null ? null : { id, value: hand }, at: Date.now() };
  keep((kept) => (kept.lists[labelText(state.detector)] = list));
}

/** The token, which is kept until the tab is closed. */
export function remembered(token) {
  try {
    if (token !== undefined) sessionStorage.setItem(TOKEN, token);
    return sessionStorage.getItem(TOKEN) ?? "";
  } catch {
    return token ?? "";
  }
}

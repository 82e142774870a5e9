/** Talking to the service. Addresses are relative: the page may be anywhere behind a proxy. */

import { draw } from "./draw.js";
import { $, state } from "./state.js";

const RETRIES = 6; // of a request that the service was too busy for
const LONGEST_WAIT = 10; // seconds between two of them

/** An answer that is no success, in the words of the service, or no answer at all ("unreachable"). */
export class Refused extends Error {
  constructor(code, message, hint = "", again = false) {
    super(hint ? `${message}. Hint: ${hint}.` : `${message}.`);
    this.code = code;
    this.again = again; // whether it may be another answer next time
  }
}

/** Ask the service; a body makes it a POST. Waits for a token, and while the service is busy. */
export async function ask(path, body, retries = RETRIES) {
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

export const askJson = async (path, body) => (await ask(path, body)).json();

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
export async function askDetector(detector, ask) {
  try {
    return await ask(detector.id);
  } catch (error) {
    if (error.code !== "unknown_detector" || !detector.made) throw error;
    await askJson("v1/detectors", detector.made);
    return ask(detector.id);
  }
}

/** Say what went wrong above everything, with a way to try again. */
export function trouble(error, again) {
  state.trouble = { text: error.message, again, offline: error.code === "unreachable" };
}

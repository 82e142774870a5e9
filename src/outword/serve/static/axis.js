/**
 * The axis of the plot, on which both sides can be read.
 *
 * With a ladder (p-values and the scores that have them) it is -log10 p: each unit is a tenth of the unrelated photos
 * of the one before, and beyond the ladder it goes on as a straight line. Without one it is the logarithm of the score
 * where scores are positive and of many sizes, else a signed logarithm of the distance from the threshold.
 */

const MARGIN = 0.04; // of the axis, on both sides
const SHARES = [0.5, 0.9, 0.99, 0.999, 0.9999];
const TICKS = 5; // where they are scores
const MANY_SIZES = 20; // times the least score
const SMALLEST = 1e-6; // of the greatest score; what is smaller is shown as if it were this

/**
 * @param {number[][]} ladder p, falling, with the score that has it, rising
 * @param {number[]} values all that the axis must show
 * @param {?number} cut the middle, where there is no ladder
 * @param {?number} hand on the axis already: with a margin of its own the axis would grow under it
 * @param {number} steps of the line, about
 */
export function axisOf(ladder, values, cut, hand, steps) {
  const sizes = Math.min(...values) > 0 && Math.max(...values) > MANY_SIZES * Math.min(...values);
  const scale = ladder.length > 2 ? byLadder(ladder) : sizes ? byLog(values) : byDistance(values, cut);
  const places = values.map(scale.place);
  const [least, most] = [Math.min(...places, ...scale.ends), Math.max(...places, ...scale.ends)];
  const margin = MARGIN * (most - least) || 0.5;
  const own = hand === null ? [] : [scale.place(hand)];
  const [from, to] = [Math.min(least - margin, ...own), Math.max(most + margin, ...own)];
  const power = 10 ** Math.floor(Math.log10((to - from) / steps));
  const step = power * [1, 2, 5, 10].find((times) => steps * times * power >= 0.999 * (to - from));
  const [low, high] = [step * Math.floor(from / step), step * Math.ceil(to / step)];
  return { ...scale, low, high, step, ticks: scale.ticksWithin(low, high) };
}

function byLadder(ladder) {
  const [scores, logs] = [ladder.map(([, score]) => score), ladder.map(([p]) => -Math.log10(p))];
  const last = ladder.length - 1;
  const tenth = Math.min(Math.max(logs.findIndex((log) => log >= 1), 0), last - 1);
  const slopes = {
    below: (logs[1] - logs[0]) / (scores[1] - scores[0]),
    above: (logs[last] - logs[tenth]) / (scores[last] - scores[tenth]),
  };
  const count = Math.round(2 / ladder[last][0]) - 1; // its p is 2 / (n + 1)
  return {
    place: (score) => along(scores, logs, score, slopes.below, slopes.above),
    score: (place) => along(logs, scores, place, 1 / slopes.below, 1 / slopes.above),
    share: (place) => Math.min(Math.max(1 - 10 ** -place, 0), 1),
    unsure: "so close to the threshold that letting in half or twice as many unrelated photos would change the verdict",
    ends: [0, logs[last]],
    ticksWithin(low, high) {
      const known = SHARES.map((share) => ({ place: -Math.log10(1 - share), text: `${100 * share} %` }))
        .filter(({ place }) => place <= logs[last] + 0.01);
      return [...known, { place: high, text: `all ${count.toLocaleString("en")}` }].map(({ place, text }) =>
        ({ text, at: (place - low) / (high - low) }));
    },
  };
}

/** A straight line from point to point, and beyond the first and the last with slopes of its own. */
function along(from, to, value, below, above) {
  const last = from.length - 1;
  if (value <= from[0]) return to[0] + (value - from[0]) * below;
  if (value >= from[last]) return to[last] + (value - from[last]) * above;
  const next = from.findIndex((each) => each > value);
  const part = (value - from[next - 1]) / (from[next] - from[next - 1]);
  return to[next - 1] + part * (to[next] - to[next - 1]);
}

function byLog(values) {
  const floor = Math.max(Math.min(...values), SMALLEST * Math.max(...values));
  const score = (place) => (place < Math.log10(floor) && Math.min(...values) < floor ? 0 : 10 ** place);
  const unsure = "has between half and twice the score of the line";
  return { ...plain(score, unsure), place: (value) => Math.log10(Math.max(value, floor / 10)) };
}

/** What scales without a ladder have in common: ticks are scores. */
const plain = (score, unsure) => ({
  score,
  unsure,
  share: null,
  ends: [],
  ticksWithin: (low, high) => Array.from({ length: TICKS }, (_, i) => i / (TICKS - 1)).map((at) =>
    ({ score: score(low + at * (high - low)), at })),
});

function byDistance(values, cut) {
  const sorted = (numbers) => [...numbers].sort((a, b) => a - b);
  const median = (numbers) => sorted(numbers)[Math.floor(numbers.length / 2)];
  const middle = cut ?? median(values);
  const unit = median(values.map((value) => Math.abs(value - middle))) || Math.abs(middle) || 1;
  const score = (place) => middle + unit * Math.sinh(place);
  return { ...plain(score, "is close to the line"), place: (value) => Math.asinh((value - middle) / unit) };
}

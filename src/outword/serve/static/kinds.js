/** The kinds of a label, in what was typed: `animal > -dog` is without dogs, `pet > cat | hamster` has kinds by hand. */

/** The name, and what stands after the arrow. */
function partsOf(typed) {
  const [head, ...tail] = typed.split(/\s>\s/);
  return [head.trim(), tail.join(" > ").split("|").map((part) => part.trim()).filter(Boolean)];
}

/** The kinds that a label is without. */
export const withoutOf = (typed) =>
  partsOf(typed)[1].filter((part) => part.startsWith("-")).map((part) => part.slice(1).trim());

/** The same label with a kind, or without it. */
export function withKind(typed, kind, on) {
  const [head, parts] = partsOf(typed);
  const others = parts.filter((part) => !part.startsWith("-") || part.slice(1).trim() !== kind);
  const kinds = on ? others : [...others, `-${kind}`];
  return kinds.length ? `${head} > ${kinds.join(" | ")}` : head;
}

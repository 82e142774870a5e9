/** Photos that look the same, by the rule of outword/photos/twins.py: shrunk, enlarged, or saved once more. */

const DIFFERENT = 4; // bits of a fingerprint in which photos differ that are not the same
const OTHER_COLOUR = 24; // a mean colour of a square that differs by more is of another photo
const BITS = 16; // bytes of a fingerprint that are its bits; the others are mean colours
const ONES = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll("0", "").length);

/** The bytes of a fingerprint, which comes as base64; null where a photo shows too little for one. */
export const fingerprintOf = (text) => (text ? Uint8Array.from(atob(text), (c) => c.charCodeAt(0)) : null);

function alike(one, other) {
  let bits = 0;
  for (let at = 0; at < BITS; at += 1) bits += ONES[one[at] ^ other[at]];
  if (bits >= DIFFERENT) return false;
  for (let at = BITS; at < one.length; at += 1) if (Math.abs(one[at] - other[at]) > OTHER_COLOUR) return false;
  return true;
}

/** For each photo that is the same as an earlier one the first of these; photos are given in order. */
export function firstOfEach(photos) {
  const [first, kept] = [new Map(), []];
  for (const photo of photos) {
    if (!photo.fingerprint) continue;
    const known = kept.find((each) => alike(each.fingerprint, photo.fingerprint));
    if (known) first.set(photo, known);
    else kept.push(photo);
  }
  return first;
}

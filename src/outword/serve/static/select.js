/** Choosing many photos, to say the same of all of them. */

import { render } from "./draw.js";
import { selectedPhotos, state, visiblePhotos } from "./state.js";

let last = null; // the photo that was chosen last, where a range begins

/** Choose a photo or leave it; a range is all that is shown from the last one to this one. */
export function pick(photo, { on, range = false }) {
  const photos = visiblePhotos();
  const ends = [photos.indexOf(last), photos.indexOf(photo)].sort((one, other) => one - other);
  const some = range && ends[0] >= 0 ? photos.slice(ends[0], ends[1] + 1) : [photo];
  for (const each of some) {
    if (on) state.selected.add(each);
    else state.selected.delete(each);
  }
  last = photo;
  render();
}

/** Choose all photos that are shown. */
export function pickAll() {
  for (const photo of visiblePhotos()) state.selected.add(photo);
  render();
}

export function pickNone() {
  state.selected.clear();
  last = null;
  render();
}

/** What a key means on a photo: all that are chosen, if it is one of them, else it alone. */
export const touched = (photo) => (state.selected.has(photo) ? selectedPhotos() : [photo]);

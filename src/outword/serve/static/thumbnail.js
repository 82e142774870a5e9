/** A worker that makes small copies of photos, one after the other, away from the page. */

const SIDE = 336; // pixels, enough for a dense screen

async function small(file) {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, SIDE / Math.max(bitmap.width, bitmap.height));
  const size = [bitmap.width, bitmap.height].map((side) => Math.max(1, Math.round(side * scale)));
  const canvas = new OffscreenCanvas(...size);
  const context = canvas.getContext("2d");
  Object.assign(context, { imageSmoothingQuality: "high", fillStyle: "white" });
  context.fillRect(0, 0, ...size); // a JPEG is black where a picture is transparent
  context.drawImage(bitmap, 0, 0, ...size);
  const pixels = [bitmap.width, bitmap.height];
  bitmap.close();
  return { blob: await canvas.convertToBlob({ type: "image/jpeg", quality: 0.85 }), pixels };
}

let last = Promise.resolve();
self.onmessage = ({ data: { id, file } }) => {
  // null for a format that the service reads and the browser does not
  last = last.then(() => small(file).catch(() => null)).then((made) => self.postMessage({ id, made }));
};

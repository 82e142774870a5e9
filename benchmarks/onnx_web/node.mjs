// What a bundle says of photos, in onnxruntime-web under Node: node node.mjs FOLDER_OF_NODE_MODULES BUNDLE PIXELS
// PIXELS is a JSON file: a list of {height, width, data}, data being the path of the raw bytes, red first.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, bundle, pixels] = process.argv.slice(2);
const ort = createRequire(join(modules, "node_modules", "x.js"))("onnxruntime-web");
ort.env.wasm.numThreads = 1;
const session = await ort.InferenceSession.create(readFileSync(bundle));
const photos = JSON.parse(readFileSync(pixels, "utf8"));
const rows = [];
for (const { height, width, data } of photos) {
  const bytes = new Uint8Array(readFileSync(data));
  const start = performance.now();
  const found = await session.run({ pixels: new ort.Tensor("uint8", bytes, [1, height, width, 3]) });
  const ms = performance.now() - start;
  const label = found.labels.data[Number(found.label.data[0])];
  rows.push({ score: found.score.data[0], verdict: Boolean(found.verdict.data[0]), label, ms });
}
console.log(JSON.stringify(rows));

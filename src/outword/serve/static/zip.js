/**
 * A zip file of files as they are, without compression. It is a blob that refers to them: nothing but their names and
 * checksums is held in memory, however many there are. Names stay, as far as any system can unpack them.
 */

const MOST = 0xffffffff; // what 32 bits hold; more takes the larger records of zip64
const LARGE = 45; // the version of the format that has these
const UTF8 = 0x0800; // the flag for names that are UTF-8
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i; // names that Windows keeps for devices

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** The checksum of a file, read piece by piece. */
async function checksum(file) {
  let value = -1;
  const reader = file.stream().getReader();
  for (let { value: piece } = await reader.read(); piece; { value: piece } = await reader.read()) {
    for (const byte of piece) value = TABLE[(value ^ byte) & 255] ^ (value >>> 8);
  }
  return ~value >>> 0;
}

/** A name that stays inside the folder that it is unpacked in, and that any system can have. */
export function safeName(name) {
  const parts = name.split(/[/\\]/).filter((part) => part && part !== "." && part !== "..");
  return parts.map(safePart).join("/") || "photo";
}

function safePart(part) {
  const plain = part.replace(/[\p{Cc}\p{Cs}\p{Bidi_Control}<>:"|?*]/gu, "_").replace(/[. ]$/, "_");
  return RESERVED.test(plain) ? `_${plain}` : plain;
}

/** Names of which no two are the same, also where case does not count: the second cat.jpg is cat (2).jpg. */
export function uniqueNames(names) {
  const taken = new Set();
  return names.map((name) => {
    const [, stem, suffix] = /^(.*?)(\.[^./]*)?$/s.exec(name);
    let own = name;
    for (let count = 2; taken.has(own.toLowerCase()); count += 1) own = `${stem} (${count})${suffix ?? ""}`;
    taken.add(own.toLowerCase());
    return own;
  });
}

/**
 * A zip file of [name, file] pairs as a blob, with the names of those that cannot be read any more and are left out.
 * `most` is what the small records hold.
 */
export async function zipped(pairs, { progress = () => {}, most = MOST } = {}) {
  const names = uniqueNames(pairs.map(([name]) => safeName(name)));
  const [parts, directory, unread] = [[], [], []];
  let offset = 0;
  for (const [place, [name, file]] of pairs.entries()) {
    progress(place);
    try {
      const entry = { name: new TextEncoder().encode(names[place]), crc: await checksum(file), size: file.size, offset };
      entry.when = dosTime(new Date(file.lastModified ?? Date.now()));
      const head = localHeader(entry);
      parts.push(head, file);
      directory.push(directoryHeader(entry, most));
      offset += head.length + file.size;
    } catch {
      unread.push(name);
    }
  }
  const size = directory.reduce((sum, header) => sum + header.length, 0);
  const end = endRecords({ count: directory.length, size, offset }, most);
  return { blob: new Blob([...parts, ...directory, ...end], { type: "application/zip" }), unread };
}

/** Bytes of [width, number] pairs, the lowest byte first. */
function bytes(...fields) {
  const made = new Uint8Array(fields.reduce((sum, [width]) => sum + width, 0));
  const view = new DataView(made.buffer);
  let at = 0;
  for (const [width, value] of fields) {
    if (width === 2) view.setUint16(at, value, true);
    else if (width === 4) view.setUint32(at, value, true);
    else view.setBigUint64(at, BigInt(value), true);
    at += width;
  }
  return made;
}

function joined(...arrays) {
  const made = new Uint8Array(arrays.reduce((sum, array) => sum + array.length, 0));
  let at = 0;
  for (const array of arrays) {
    made.set(array, at);
    at += array.length;
  }
  return made;
}

/** What both headers of an entry have: version, flags, no compression, time, checksum, both sizes, length of the name. */
const common = ({ name, crc, size, when: [time, day] }, version) =>
  [[2, version], [2, UTF8], [2, 0], [2, time], [2, day], [4, crc], [4, size], [4, size], [2, name.length]];

const localHeader = (entry) => joined(bytes([4, 0x04034b50], ...common(entry, 20), [2, 0]), entry.name);

/** An entry of the directory at the end; a photo is small, but may begin behind 4 GB. */
function directoryHeader(entry, most) {
  const far = entry.offset >= most;
  const extra = far ? bytes([2, 1], [2, 8], [8, entry.offset]) : bytes();
  const fields = common(entry, far ? LARGE : 20);
  const rest = [[2, extra.length], [2, 0], [2, 0], [2, 0], [4, 0], [4, far ? MOST : entry.offset]];
  return joined(bytes([4, 0x02014b50], [2, far ? LARGE : 20], ...fields, ...rest), entry.name, extra);
}

function endRecords({ count, size, offset }, most) {
  const large = count >= 0xffff || size >= most || offset >= most;
  const [few, short, near] = large ? [0xffff, MOST, MOST] : [count, size, offset];
  const end = bytes([4, 0x06054b50], [2, 0], [2, 0], [2, few], [2, few], [4, short], [4, near], [2, 0]);
  if (!large) return [end];
  const versions = [[2, LARGE], [2, LARGE], [4, 0], [4, 0]];
  const record = bytes([4, 0x06064b50], [8, 44], ...versions, [8, count], [8, count], [8, size], [8, offset]);
  return [record, bytes([4, 0x07064b50], [4, 0], [8, offset + size], [4, 1]), end];
}

/** A time as zip files have it, to two seconds; there is none before 1980. */
function dosTime(date) {
  if (!(date.getFullYear() >= 1980 && date.getFullYear() < 2108)) return [0, (1 << 5) | 1];
  const time = (date.getHours() << 11) | (date.getMinutes() << 5) | (date.getSeconds() >> 1);
  return [time, ((date.getFullYear() - 1980) << 9) | ((date.getMonth() + 1) << 5) | date.getDate()];
}

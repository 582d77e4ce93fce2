// The names of everybody who was in the room, also of those who have left.

const names = new Map(); // participant → name
/** An id is a name and 32 hexadecimal digits: all that is known of people who left before we came. */
const withoutDigits = (id) => id.replace(/-[0-9a-f]{32}$/, "").replaceAll("-", " ");

/** Keeps the names of those who are there now. */
export function rememberNames(participants) {
  for (const [id, { name }] of participants) names.set(id, name);
}

export const nameOf = (id) => names.get(id) || withoutDigits(id);

// The invitation that this tab came with: a token that the server has signed.

import { keepForTab, keptForTab } from "./storage.js";

/** Removes the token from the address, so that copying the address passes no rights on. */
function taken() {
  const token = location.hash.slice(1);
  if (!token) return keptForTab("invitation");
  keepForTab("invitation", token);
  const address = new URL(location.href);
  address.hash = "";
  history.replaceState(null, "", address);
  return token;
}

/** Decodes the token; the signature is the server's business. */
function read(token) {
  try {
    const text = atob(token.split(".")[0].replace(/-/g, "+").replace(/_/g, "/"));
    const bytes = Uint8Array.from(text, (it) => it.codePointAt(0));
    const { role, room, name } = JSON.parse(new TextDecoder().decode(bytes));
    return { token, role, room: room ?? null, name: name ?? null };
  } catch {
    return { token, role: null, room: null, name: null };
  }
}

let current = taken();
current &&= read(current);

/** `{token, role, room, name}`, each `null` if it is left open; `null` without an invitation. */
export const invitation = () => current;

export function forgetInvitation() {
  current = null;
  keepForTab("invitation", null);
}

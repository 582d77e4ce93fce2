// Signalling servers at other nodes of a cluster: where a page goes on that has lost its own.

import { invitation } from "./invitation.js";

const LOST = new Set(["not-connected", "sfud-not-running"]);
let servers = []; // {name, url}

export function noteServers(others) {
  servers = others ?? [];
}

/** The problem, with a button for each other server if ours cannot help. */
export function withWaysOn(problem, { room, name }) {
  if (!LOST.has(problem?.reason)) return problem;
  const actions = servers.map((it) => ({
    label: `Go on at ${it.name}`, run: () => location.assign(addressAt(it.url, room, name)),
  }));
  return { message: problem.message, waiting: problem.waiting, actions };
}

/** The page at another server, which joins the room at once. */
function addressAt(url, room, name) {
  const address = new URL(url);
  address.search = location.search;
  for (const [key, value] of Object.entries({ room, name, auto: "1" })) {
    address.searchParams.set(key, value);
  }
  address.hash = invitation()?.token ?? "";
  return address;
}

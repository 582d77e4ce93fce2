// The room's address for others, with an invitation where they need one.

import { report } from "./banner.js";

const SAID_MILLISECONDS = 2500;

export async function inviteLink(call) {
  const address = new URL(location.origin + location.pathname);
  address.searchParams.set("room", call.room);
  const { token } = await call.request("inviteLink");
  if (token) address.hash = token;
  return address.href;
}

/** Copies it, and says so on the button. */
export async function copyLink(call, button) {
  const label = button.querySelector("span");
  const link = await inviteLink(call)
    .catch((error) => report({ message: `Not done: ${error.message}.` }));
  if (!link) return;
  try {
    await navigator.clipboard.writeText(link);
    label.textContent = "Copied";
  } catch {
    label.textContent = link;
  }
  setTimeout(() => (label.textContent = "Copy link"), SAID_MILLISECONDS);
}

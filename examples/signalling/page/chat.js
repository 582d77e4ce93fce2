// The chat: messages to everybody in the room, on one of sfud's topics, which keeps the last ones
// for those who come later.

import { announce } from "./announce.js";
import { nameOf } from "./names.js";

const TOPIC = "CHAT";
const MOST_SHOWN = 300; // more than sfud keeps, so that none comes twice
const byID = (id) => document.getElementById(id);

export class Chat {
  #call = null;
  #seen = new Set(); // messages that are shown
  #list = byID("chat-list");
  #log = byID("chat-log"); // which scrolls
  #isOpen = false;
  #unread = 0;

  constructor() {
    byID("chat-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
  }

  /** Follows this call from now on; another room begins with an empty chat. */
  attach(call) {
    if (call.room !== this.#call?.room) {
      this.#list.replaceChildren();
      this.#seen.clear();
      this.#unread = 0;
    }
    this.#call = call;
    call.addEventListener("joined", () => this.#subscribe(call));
    call.addEventListener("event", ({ detail: { event } }) => {
      if (event === "room.stateChanged") this.#subscribe(call); // a live event has opened
    });
    call.addEventListener("message", ({ detail }) => {
      if (detail.topic === TOPIC) this.#add(detail, true);
    });
  }

  show(isOpen) {
    byID("chat").hidden = !isOpen;
    const mayWrite = this.#call.roomState.hasMessages;
    byID("chat-text").disabled = !mayWrite;
    byID("chat-text").placeholder = mayWrite ? "Message to everybody" : "There is no chat now";
    if (isOpen && !this.#isOpen) {
      this.#unread = 0;
      this.#log.scrollTop = this.#log.scrollHeight;
      byID("chat-text").focus();
    }
    this.#isOpen = isOpen;
    byID("unread").hidden = this.#unread === 0;
    byID("unread").textContent = String(this.#unread);
    const button = document.querySelector("nav [data-do=chat]");
    button.setAttribute("aria-pressed", String(isOpen));
    button.setAttribute("aria-label", this.#unread ? `Chat (${this.#unread} unread)` : "Chat");
  }

  async #subscribe(call) {
    if (call !== this.#call || !call.roomState.hasMessages) return;
    const { messages } = await call.request("message.subscribe", { topic: TOPIC })
      .catch(() => ({ messages: [] })); // it is tried again with the next chance
    for (const it of messages) this.#add(it, false);
  }

  async #send() {
    const message = byID("chat-text").value.trim();
    if (!message || !this.#call) return;
    byID("chat-text").value = "";
    try {
      await this.#call.request("message.publish", { topic: TOPIC, message, persist: true });
    } catch (error) {
      byID("chat-text").value = message;
      const item = document.createElement("li");
      item.append(line("chat-problem", `Not sent: ${error.message}.`));
      this.#list.append(item);
      this.#log.scrollTop = this.#log.scrollHeight;
    }
  }

  #add({ number, message, from, time = Date.now() / 1000 }, isNew) {
    const key = `${number} ${from} ${message}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    const isMine = from === this.#call.me;
    const name = from ? nameOf(from) : "The server";
    const isAtEnd = this.#log.scrollHeight - this.#log.scrollTop - this.#log.clientHeight < 40;
    const head = line("chat-head", isMine ? "You" : name);
    const clock = document.createElement("time");
    clock.dateTime = new Date(time * 1000).toISOString();
    clock.textContent = new Date(time * 1000)
      .toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    head.append(clock);
    const item = document.createElement("li");
    item.className = isMine ? "is-mine" : "";
    item.append(head, line("chat-message", message));
    this.#list.append(item);
    if (this.#seen.size > MOST_SHOWN) {
      this.#list.firstElementChild.remove();
      this.#seen.delete(this.#seen.values().next().value);
    }
    if (isAtEnd || isMine) this.#log.scrollTop = this.#log.scrollHeight;
    if (!isNew || isMine || this.#isOpen) return;
    this.#unread += 1;
    announce(`${name} writes: ${message}`);
    this.show(false);
  }
}

function line(style, text) {
  const element = document.createElement("p");
  element.className = style;
  element.textContent = text;
  return element;
}

// Questions to answer with yes or no, one after another.

/** Puts questions in a `<dialog>` that has a title, a text and two buttons. */
export class Asker {
  #dialog;
  #queue = [];
  #current = null;

  constructor(dialog) {
    this.#dialog = dialog;
    dialog.addEventListener("close", () => {
      const { resolve, timer } = this.#current;
      clearTimeout(timer);
      this.#current = null;
      resolve(dialog.returnValue === "" ? null : dialog.returnValue === "yes");
      this.#next();
    });
  }

  /**
   * Resolves to the answer; to `null` if the question was closed, or has gone stale.
   *
   * A question with the same `key` takes the place of the one before; `expires` is in Unix seconds.
   */
  ask({ key, title, text, yes, no, danger = false, expires = null }) {
    this.dismiss(key);
    return new Promise((resolve) => {
      this.#queue.push({ key, title, text, yes, no, danger, expires, resolve });
      this.#next();
    });
  }

  /** Takes questions back that nobody needs to answer any more: one kind of them, or all. */
  dismiss(key = null) {
    for (const waiting of this.#queue.filter((it) => key === null || it.key === key)) {
      this.#queue.splice(this.#queue.indexOf(waiting), 1);
      waiting.resolve(null);
    }
    if (this.#current && (key === null || this.#current.key === key)) this.#dialog.close("");
  }

  #next() {
    if (this.#current || this.#dialog.open || this.#queue.length === 0) return;
    const question = (this.#current = this.#queue.shift());
    const find = (selector) => this.#dialog.querySelector(selector);
    find("h2").textContent = question.title;
    find("p").textContent = question.text;
    find("[value=yes]").textContent = question.yes;
    find("[value=no]").textContent = question.no;
    find("[value=yes]").classList.toggle("is-danger", question.danger);
    this.#dialog.returnValue = "";
    this.#dialog.showModal();
    if (question.expires === null) return;
    const left = question.expires * 1000 - Date.now();
    question.timer = setTimeout(() => this.#dialog.close(""), Math.max(left, 0));
  }
}

// Questions to answer with yes or no, or with a line of text, one after another.

/** Puts questions in a `<dialog>` that has a title, a text and two buttons. */
export class Asker {
  #dialog;
  #queue = [];
  #current = null;

  constructor(dialog) {
    this.#dialog = dialog;
    // No submit button: the return key in a field means yes.
    dialog.querySelector("[value=no]").addEventListener("click", () => dialog.close("no"));
    dialog.addEventListener("close", () => {
      const { resolve, timer, field } = this.#current;
      clearTimeout(timer);
      this.#current = null;
      const answer = dialog.returnValue === "" ? null : dialog.returnValue === "yes";
      const input = dialog.querySelector("input");
      resolve(field && answer ? input.value.trim() : answer);
      input.value = ""; // it may be a secret
      this.#next();
    });
  }

  /**
   * Resolves to the answer; to `null` if the question was closed or has expired. With a
   * `field` {label, placeholder} a yes is the entered text.
   *
   * A question with the same `key` replaces the earlier one; `expires` is in Unix seconds.
   */
  ask({ key, title, text, yes, no, field = null, danger = false, expires = null }) {
    this.dismiss(key);
    return new Promise((resolve) => {
      this.#queue.push({ key, title, text, yes, no, field, danger, expires, resolve });
      this.#next();
    });
  }

  /** Withdraws questions that need no answer any more: one kind of them, or all. */
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
    find("label").hidden = question.field === null;
    find("label span").textContent = question.field?.label ?? "";
    find("input").placeholder = question.field?.placeholder ?? "";
    find("input").required = question.field !== null;
    this.#dialog.returnValue = "";
    this.#dialog.showModal();
    if (question.expires === null) return;
    const left = question.expires * 1000 - Date.now();
    question.timer = setTimeout(() => this.#dialog.close(""), Math.max(left, 0));
  }
}

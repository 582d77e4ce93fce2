// Making and keeping elements of the page.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((it) => it !== null));
  return element;
}

export const html = (tag, attributes = {}, ...children) =>
  filled(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
  }
}

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Keeps one child for each item, by its key, so that animations and the focus go on. */
export function keyed(parent, items, { key, make, update }) {
  const kept = new Map([...parent.children].map((it) => [it.dataset.key, it]));
  const wanted = items.map((item) => {
    const name = key(item);
    const element = kept.get(name) ?? make(item);
    element.dataset.key = name;
    kept.delete(name);
    update(element, item);
    return element;
  });
  for (const gone of kept.values()) gone.remove();
  wanted.forEach((element, index) => {
    if (parent.children[index] !== element) parent.insertBefore(element, parent.children[index] ?? null);
  });
}

/** Builds a part of the page anew, but only if what it shows has changed. */
export function rebuilt(parent, shown, build) {
  const text = JSON.stringify(shown);
  if (parent.shown === text) return;
  parent.shown = text;
  parent.replaceChildren(...build());
}

// The browser's storage for this page, unless it is disabled.

function read(storage, name) {
  try {
    return window[storage].getItem(name);
  } catch {
    return null;
  }
}

function write(storage, name, value) {
  try {
    if (value === null) window[storage].removeItem(name);
    else window[storage].setItem(name, value);
  } catch {
    // not stored then
  }
}

export const kept = (name) => read("localStorage", name) ?? "";
export const keep = (name, value) => write("localStorage", name, value);

/** The same for one tab, over reloads; `null` forgets it. */
export const keptForTab = (name) => read("sessionStorage", name);
export const keepForTab = (name, value) => write("sessionStorage", name, value);

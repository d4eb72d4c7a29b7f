// SPDX-License-Identifier: MIT

// Making elements. Data becomes text nodes and properties, never markup.

/** Properties that are attributes; so are those with a dash in their names. */
const attributes = new Set(["class", "role", "for", "colspan", "scope", "list"]);

/**
 * Makes an element. Properties that begin with "on" are listeners; class, role, aria-* and
 * data-* are attributes; all others are properties of the element.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...any} children texts, nodes, lists of them, or nothing
 * @returns {any}
 */
export function el(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || (value === false && !name.startsWith("aria-"))) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (attributes.has(name) || name.includes("-")) e.setAttribute(name, String(value));
    /** @type {any} */ else e[name] = value;
  }
  e.append(
    ...children
      .flat(3)
      .filter(c => c !== undefined && c !== null && c !== false)
      .map(c => (c instanceof Node ? c : String(c))),
  );
  return e;
}

/**
 * Makes an element of a drawing. All its properties are attributes.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...any} children
 */
export function draw(tag, props = {}, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) e.setAttribute(name, String(value));
  e.append(...children.map(c => (c instanceof Node ? c : String(c))));
  return e;
}

/** Shows a message for some seconds. It is also read out. @param {string} text @param {boolean} [bad] */
export function toast(text, bad = false) {
  const e = el("div", { class: bad ? "toast bad" : "toast" }, text);
  const all = document.getElementById("toasts");
  all?.append(e);
  while (all && all.children.length > 3) all.firstElementChild?.remove();
  setTimeout(() => e.remove(), bad ? 9000 : 4000);
}

/** Shows an error that a person can do nothing about here, unless it is a cancelled request. @param {any} err */
export function complain(err) {
  if (err?.name === "AbortError") return;
  toast(err?.message ?? String(err), true);
}

/** Makes a listener that shows errors. The button cannot be pressed twice meanwhile. @param {(event: any) => any} work */
export function doing(work) {
  return async (/** @type {any} */ event) => {
    const button = event?.currentTarget instanceof HTMLButtonElement ? event.currentTarget : null;
    if (button) button.disabled = true;
    try {
      await work(event);
    } catch (err) {
      complain(err);
    } finally {
      if (button) button.disabled = false;
    }
  };
}

/** Takes the keyboard from what has it, so that it can be drawn anew. */
export function letGo() {
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
}

/** A field with its label. @param {string} text @param {HTMLElement} input @param {string} [hint] */
export function labelled(text, input, hint) {
  return el("label", {}, el("span", {}, text), input, hint && el("small", { class: "faint" }, hint));
}

/** A tick box with its label. @param {string} text @param {Record<string, any>} [props] */
export function ticked(text, props = {}) {
  const box = el("input", { type: "checkbox", ...props });
  return { box, label: el("label", { class: "inline" }, box, el("span", {}, text)) };
}

/**
 * Opens a dialog with a form. submit is called with the form's values; an error that it
 * throws is shown, and the dialog stays; so it does if submit returns false. Resolves to what
 * submit returned, or undefined.
 * @param {{title: string, body: any, ok?: string, danger?: boolean, submit?: (form: any) => any, extra?: any}} options
 * @returns {Promise<any>}
 */
export function ask({ title, body, ok = "OK", danger = false, submit = () => true, extra = [] }) {
  return new Promise(resolve => {
    const problem = el("p", { class: "error", role: "alert", hidden: true });
    const button = el("button", { class: danger ? "danger" : "primary", type: "submit" }, ok);
    /** @type {any} */
    let result;
    const form = el(
      "form",
      {
        method: "dialog",
        onsubmit: async event => {
          event.preventDefault();
          button.disabled = true;
          try {
            result = await submit(form);
            if (result !== false) dialog.close();
          } catch (err) {
            problem.textContent = err.message ?? String(err);
            problem.hidden = false;
          } finally {
            button.disabled = false;
          }
        },
      },
      el("h2", {}, title),
      el("div", { class: "fields" }, body),
      problem,
      el(
        "div",
        { class: "ends" },
        extra,
        el("span", { class: "space" }),
        el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
        button,
      ),
    );
    const dialog = el(
      "dialog",
      {
        "aria-label": title,
        onclose: () => {
          dialog.remove();
          resolve(result);
        },
      },
      form,
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Asks before something is lost. @param {string} title @param {string} text @param {string} ok */
export const confirmed = (title, text, ok) => ask({ title, body: el("p", {}, text), ok, danger: true });

/**
 * A table from rows of cells.
 * @param {string[]} heads
 * @param {any[][]} rows
 * @param {number[]} [numbers] the columns that are numbers
 */
export function table(heads, rows, numbers = []) {
  const cell = (tag, c, i) => el(tag, { class: numbers.includes(i) ? "number" : undefined, scope: tag === "th" ? "col" : undefined }, c);
  return el(
    "table",
    {},
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((h, i) => cell("th", h, i)),
      ),
    ),
    el(
      "tbody",
      {},
      rows.map(r =>
        el(
          "tr",
          {},
          r.map((c, i) => cell("td", c, i)),
        ),
      ),
    ),
  );
}

/** Offers text as a file. @param {string} name @param {string} type @param {BlobPart[]} parts */
export function download(name, type, parts) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const a = el("a", { href: url, download: name });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** @type {[string, number][]} */
const units = [
  ["d", 86400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
];

/** A time span as people say it: the two largest units. @param {number} seconds */
export function span(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.floor(seconds))} s`;
  const parts = [];
  let left = Math.floor(seconds);
  for (const [name, size] of units) {
    const n = Math.floor(left / size);
    left -= n * size;
    if (n > 0 && parts.length < 2) parts.push(`${n} ${name}`);
    else if (parts.length > 0) break;
  }
  return parts.join(" ");
}

/** A defaultTtl as people say it. @param {number | null | undefined} ttl */
export function ttlText(ttl) {
  if (ttl === undefined || ttl === null) return "off";
  return ttl === -1 ? "on, no default" : span(ttl);
}

/** A number of bytes. @param {number} bytes */
export function size(bytes) {
  for (const [name, unit] of /** @type {[string, number][]} */ ([
    ["GiB", 2 ** 30],
    ["MiB", 2 ** 20],
    ["KiB", 2 ** 10],
  ])) {
    if (bytes >= unit) return `${(bytes / unit).toFixed(1)} ${name}`;
  }
  return `${bytes} B`;
}

/** A number with its thousands apart. @param {number} n */
export const count = n => n.toLocaleString("en");

/** Reads a duration such as 90, 90s, 5m, 1h, 3d or 1d12h as seconds; NaN if it is none. @param {string} text */
export function seconds(text) {
  text = text.trim().toLowerCase();
  if (/^\d+$/.test(text)) return Number(text);
  if (!/^(\d+\s*[dhms]\s*)+$/.test(text)) return NaN;
  let sum = 0;
  for (const [, n, unit] of text.matchAll(/(\d+)\s*([dhms])/g)) sum += Number(n) * (units.find(u => u[0] === unit)?.[1] ?? NaN);
  return sum;
}

/** Reads what this browser remembers. @param {string} name @param {any} otherwise */
export function stored(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name) ?? "null") ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Remembers something in this browser. Where that is not allowed, it is forgotten with the page. @param {string} name @param {any} value */
export function store(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    /* full, or not allowed */
  }
}

// SPDX-License-Identifier: MIT

// The palette, which goes anywhere by a part of its name, and the list of keys.

import { ask, complain, el } from "./dom.js";

const MOST_SHOWN = 50;

/** @param {{text: string, go: () => void}[]} places */
export function palette(places) {
  let found = places,
    active = 0;
  const list = el("ul", { class: "offers static", role: "listbox", id: "palette-list", "aria-label": "Places" });
  const input = el("input", {
    type: "text",
    role: "combobox",
    "aria-label": "Go to",
    "aria-expanded": "true",
    "aria-controls": "palette-list",
    "aria-autocomplete": "list",
    autocomplete: "off",
    placeholder: "A container, a view, a page",
    oninput: () => {
      active = 0;
      show();
    },
    onkeydown: e => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
      if (!step || found.length === 0) return;
      e.preventDefault();
      active = (active + step + found.length) % found.length;
      mark();
    },
  });

  /** Each part of what was typed must be there, in any order. */
  function show() {
    const words = input.value
      .toLowerCase()
      .split(/[\s/]+/)
      .filter(Boolean);
    found = places.filter(p => words.every(w => p.text.toLowerCase().includes(w))).slice(0, MOST_SHOWN);
    list.replaceChildren(
      ...found.map((p, i) =>
        el(
          "li",
          {
            role: "option",
            id: `palette-${i}`,
            onclick: () => {
              active = i;
              list.closest("form")?.requestSubmit();
            },
          },
          p.text,
        ),
      ),
    );
    list.hidden = found.length === 0;
    mark();
  }

  function mark() {
    [...list.children].forEach((o, i) => {
      o.setAttribute("aria-selected", String(i === active));
    });
    if (found.length > 0) input.setAttribute("aria-activedescendant", `palette-${active}`);
    else input.removeAttribute("aria-activedescendant");
    list.children[active]?.scrollIntoView({ block: "nearest" });
  }
  show();
  ask({
    title: "Go to",
    ok: "Go",
    body: [input, list],
    submit: () => {
      if (!found[active]) throw new Error("There is no such place.");
      found[active].go();
      return true;
    },
  }).catch(complain);
}

export function keysHelp() {
  const keys = [
    ["Ctrl+K", "go to a container, a view or a page"],
    ["/", "filter the list, or find a container"],
    ["Ctrl+Enter", "run the query"],
    ["Ctrl+Space", "show what may come next in a query"],
    ["↓ ↑ in a list", "the next item, the one before; also Page Down, Page Up, Home and End"],
    ["Space in a list", "select the item"],
    ["Enter in a list", "open the item"],
    ["→ ← in a plot", "read its values; with Shift, add a part up"],
    ["Esc", "close a dialog"],
    ["?", "this help"],
  ];
  ask({
    title: "Keys",
    ok: "Close",
    body: [
      el(
        "table",
        { class: "prose" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "key"), el("th", { scope: "col" }, "what it does"))),
        el(
          "tbody",
          {},
          keys.map(([key, what]) => el("tr", {}, el("th", { scope: "row" }, el("kbd", {}, key)), el("td", {}, what))),
        ),
      ),
      el("p", {}, "More: ", el("a", { href: "docs/explorer" }, "the explorer"), ", ", el("a", { href: "docs/" }, "all pages"), "."),
    ],
  }).catch(complain);
}

// SPDX-License-Identifier: MIT

// The editor: a text area whose words are coloured by a layer behind it, with completion,
// matching brackets and marks where something is wrong.

import { el } from "./dom.js";
import { jsonFault, matching, tokens } from "./language.js";

const MOST_COLOURED = 200_000; // characters; a longer text is shown without colours
const TAB = "  ";
let count = 0;

/** @typedef {{start: number, end: number}} Place */

/**
 * @param {{value: string, label: string, language: import("./language.js").Language, rows?: number, readOnly?: boolean, id?: string,
 *   complete?: (text: string, at: number, asked: boolean) => {from: number, offers: {text: string, kind: string}[]}, onrun?: () => void, onchange?: () => void}} options
 */
export function codeEditor({ value, label, language, rows = 16, readOnly = false, id, complete, onrun, onchange }) {
  const list = `offers-${++count}`;
  const layer = el("pre", { "aria-hidden": "true" });
  const offers = el("ul", { class: "offers", role: "listbox", id: list, "aria-label": "Completions", hidden: true });
  const text = el("textarea", {
    rows,
    value,
    readOnly,
    id,
    spellcheck: false,
    autocomplete: "off",
    autocapitalize: "off",
    wrap: "off",
    "aria-label": label,
    "aria-autocomplete": complete ? "list" : undefined,
    "aria-controls": complete ? list : undefined,
    oninput: () => {
      wrong = null;
      paint();
      offer(false);
      onchange?.();
    },
    onscroll: follow,
    onkeydown: key,
    onblur: () => close(),
    onselect: paint,
    onclick: () => {
      close();
      paint();
    },
    onkeyup: paint,
  });
  const element = el("div", { class: `code ${language}` }, layer, text, offers);
  /** @type {Place | null} */
  let wrong = null;
  let from = 0,
    active = -1,
    painted = "";
  paint();

  function follow() {
    layer.scrollTop = text.scrollTop;
    layer.scrollLeft = text.scrollLeft;
  }

  /** Draws the layer, if it is not as it should be. */
  function paint() {
    const all = text.value,
      plain = all.length > MOST_COLOURED;
    element.classList.toggle("plain", plain);
    const words = plain ? [] : tokens(all, language);
    const pair = text.selectionStart === text.selectionEnd && document.activeElement === text ? matching(words, text.selectionStart) : null;
    const state = JSON.stringify([pair, wrong]) + all;
    if (state === painted) return;
    painted = state;
    const parts = [];
    for (const word of words) {
      const end = word.start + word.text.length,
        bad = wrong && word.start < wrong.end && end > wrong.start;
      const name = bad ? "wrong" : pair?.includes(word.start) ? "pair" : word.kind;
      if (bad && wrong && (word.start < wrong.start || end > wrong.end)) {
        // the mark begins or ends within the word
        const a = Math.max(0, wrong.start - word.start),
          b = Math.min(word.text.length, wrong.end - word.start);
        parts.push(word.text.slice(0, a), el("mark", {}, word.text.slice(a, b)), word.text.slice(b));
      } else if (bad) parts.push(el("mark", {}, word.text));
      else if (name === "space" || name === "plain" || name === "other") parts.push(word.text);
      else parts.push(el("span", { class: `t-${name}` }, word.text));
    }
    if (wrong && wrong.start >= all.length) parts.push(el("mark", {}, " "));
    layer.replaceChildren(...parts, "\n");
    follow();
  }

  /** Writes a text at the selection, so that it can be undone. @param {string} what */
  function insert(what) {
    text.focus();
    document.execCommand("insertText", false, what);
  }

  /** @param {boolean} asked */
  function offer(asked) {
    if (!complete || text.readOnly || text.selectionStart !== text.selectionEnd) return close();
    const found = complete(text.value, text.selectionStart, asked);
    if (found.offers.length === 0) return close();
    from = found.from;
    offers.replaceChildren(
      ...found.offers.map((o, i) =>
        el(
          "li",
          {
            role: "option",
            id: `${list}-${i}`,
            onpointerdown: (/** @type {Event} */ e) => {
              e.preventDefault();
              take(i);
            },
          },
          el("code", {}, o.text),
          el("span", { class: "faint" }, o.kind),
        ),
      ),
    );
    offers.hidden = false;
    choose(asked ? 0 : -1);
    // In a font of equal widths, the place of a character is that of its line and column.
    const lines = text.value.slice(0, from).split("\n"),
      style = getComputedStyle(text),
      height = parseFloat(style.lineHeight);
    const left = lines[lines.length - 1].length * charWidth(style) - text.scrollLeft,
      top = lines.length * height - text.scrollTop;
    offers.style.left = `${Math.max(0, Math.min(left, element.clientWidth - 260))}px`;
    offers.style.top = `${top + 8}px`;
  }

  /** @param {CSSStyleDeclaration} style */
  function charWidth(style) {
    const context = document.createElement("canvas").getContext("2d");
    if (!context) return 8;
    context.font = `${style.fontSize} ${style.fontFamily}`;
    return context.measureText("x").width;
  }

  function close() {
    offers.hidden = true;
    active = -1;
    text.removeAttribute("aria-activedescendant");
  }

  /** @param {number} i */
  function choose(i) {
    active = i;
    [...offers.children].forEach((o, n) => {
      o.setAttribute("aria-selected", String(n === i));
    });
    if (i < 0) {
      text.removeAttribute("aria-activedescendant");
      return;
    }
    text.setAttribute("aria-activedescendant", `${list}-${i}`);
    offers.children[i].scrollIntoView({ block: "nearest" });
  }

  /** @param {number} i */
  function take(i) {
    const chosen = offers.children[i].querySelector("code")?.textContent ?? "";
    close();
    text.setSelectionRange(from, text.selectionStart);
    insert(chosen);
  }

  /** @param {KeyboardEvent} e */
  function key(e) {
    const open = !offers.hidden,
      n = offers.children.length;
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey) && onrun) {
      e.preventDefault();
      close();
      onrun();
    } else if (e.key === " " && e.ctrlKey) {
      e.preventDefault();
      offer(true);
    } else if (open && e.key === "ArrowDown") {
      e.preventDefault();
      choose((active + 1) % n);
    } else if (open && e.key === "ArrowUp") {
      e.preventDefault();
      choose((active + n - 1 + Number(active < 0)) % n);
    } else if (open && ((e.key === "Tab" && !e.shiftKey) || (e.key === "Enter" && active >= 0))) {
      e.preventDefault();
      take(Math.max(0, active));
    } else if (open && e.key === "Escape") {
      e.preventDefault();
      e.stopPropagation();
      close();
    } else if (e.key === "Enter" && !text.readOnly && !e.ctrlKey && !e.metaKey) {
      const before = text.value.slice(0, text.selectionStart),
        line = before.slice(before.lastIndexOf("\n") + 1);
      const indent = (/^\s*/.exec(line)?.[0] ?? "") + (/[[{(]\s*$/.test(line) ? TAB : "");
      if (indent !== "") {
        e.preventDefault();
        insert(`\n${indent}`);
      }
    }
  }

  return {
    element,
    text,
    get value() {
      return text.value;
    },
    set value(v) {
      text.value = v;
      wrong = null;
      paint();
    },
    /** Marks what is wrong; with null, nothing. @param {Place | null | undefined} place */
    mark(place) {
      wrong = place ? { start: place.start, end: Math.max(place.end, place.start + 1) } : null;
      paint();
      if (place) {
        text.focus();
        text.setSelectionRange(place.start, place.end);
      }
    },
    /** The text as JSON. A fault is marked. */
    json() {
      try {
        return JSON.parse(text.value);
      } catch (err) {
        const message = err instanceof Error ? err.message : String(err);
        this.mark(jsonFault(message, text.value));
        throw new Error(`This is not JSON: ${message}`);
      }
    },
    /** Offers again what may come next, when more is known. */
    offer() {
      if (document.activeElement === text) offer(false);
    },
  };
}

// SPDX-License-Identifier: MIT

// Plots as drawings. A pointer or the arrow keys read their values, and a drag, or Shift with
// the arrows, adds up a part. Each plot has a table with the same figures.

import { draw, el, table } from "./dom.js";

const LEFT = 46,
  BOTTOM = 22,
  TOP = 8,
  RIGHT = 6;

/** A number of few digits. */
export const brief = n =>
  n >= 1e9
    ? `${(n / 1e9).toFixed(1)}G`
    : n >= 1e6
      ? `${(n / 1e6).toFixed(1)}M`
      : n >= 1e4
        ? `${Math.round(n / 1e3)}k`
        : n >= 10 || Number.isInteger(n)
          ? String(Math.round(n))
          : n.toFixed(1);

/** A round number that is not below n, for the top of an axis. */
export function roundUp(n) {
  if (n <= 1) return 1;
  const unit = 10 ** Math.floor(Math.log10(n));
  return unit * ([1, 2, 5].find(f => f * unit >= n) ?? 10);
}

/**
 * @typedef {{names: string[], series: {name: string, values: number[]}[], ticks: string[]}} Figures
 * @param {{label: string, unit?: string, kind: "bars" | "line", height?: number, heads: string}} options heads is the name of the first column
 */
export function plot({ label, unit = "", kind, height = 200, heads }) {
  /** @type {Figures} */
  let data = { names: [], series: [], ticks: [] };
  let width = 600,
    at = -1,
    from = -1,
    dragging = false,
    drawn = "";
  const svg = draw("svg", { class: "plot", "aria-hidden": "true" });
  const reads = el("p", { class: "reads faint" });
  const area = el(
    "div",
    {
      class: "plot-area",
      role: "slider",
      tabIndex: 0,
      "aria-label": `${label}. Arrow keys read it.`,
      "aria-valuemin": "0",
      "aria-valuemax": "0",
      "aria-valuenow": "0",
      "aria-valuetext": "nothing yet",
      onpointermove: e => {
        if (!dragging || e.buttons) point(indexAt(e), dragging);
      },
      onpointerdown: e => {
        area.setPointerCapture(e.pointerId);
        dragging = true;
        from = -1;
        point(indexAt(e), false);
        from = at;
      },
      onpointerup: () => {
        dragging = false;
      },
      onpointerleave: () => {
        if (!dragging && from === at) {
          at = from = -1;
          show();
        }
      },
      onkeydown: key,
      onblur: () => {
        at = from = -1;
        show();
      },
    },
    svg,
  );
  const twin = el("details", { ontoggle: () => fill() }, el("summary", {}, "As a table"), el("div", {}));
  const caption = el("figcaption", {}, label);
  const element = el("figure", { class: "card" }, caption, area, reads, twin);
  const watcher = new ResizeObserver(() => {
    if (area.clientWidth > 0 && area.clientWidth !== width) {
      width = area.clientWidth;
      paint(true);
    }
  });
  watcher.observe(area);

  const x = i =>
    kind === "bars"
      ? LEFT + ((width - LEFT - RIGHT) * i) / Math.max(1, data.names.length)
      : LEFT + (width - LEFT - RIGHT) * (data.names.length < 2 ? 0.5 : i / (data.names.length - 1));
  const step = () =>
    kind === "bars" ? (width - LEFT - RIGHT) / Math.max(1, data.names.length) : (width - LEFT - RIGHT) / Math.max(1, data.names.length - 1);

  function indexAt(e) {
    const px = e.clientX - area.getBoundingClientRect().left - LEFT,
      i = kind === "bars" ? Math.floor(px / step()) : Math.round(px / step());
    return Math.max(0, Math.min(data.names.length - 1, i));
  }

  function key(e) {
    const move = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity }[
      e.key
    ];
    if (e.key === "Escape") {
      at = from = -1;
      show();
      return;
    }
    if (move === undefined || data.names.length === 0) return;
    e.preventDefault();
    if (e.shiftKey && from < 0) from = Math.max(0, at);
    point(Math.max(0, Math.min(data.names.length - 1, Math.max(0, at) + (at < 0 ? 0 : move))), e.shiftKey);
  }

  function point(i, extend) {
    at = i;
    if (!extend) from = i;
    show();
  }

  /** Draws what is pointed at, and says it. */
  function show() {
    svg.querySelector(".brush")?.remove();
    if (at < 0 || at >= data.names.length) {
      reads.textContent = "\u00a0";
      return;
    }
    const a = Math.min(at, from < 0 ? at : from),
      b = Math.max(at, from < 0 ? at : from),
      half = kind === "bars" ? 0 : step() / 2;
    svg.prepend(
      draw("rect", {
        class: "brush",
        x: Math.max(LEFT, x(a) - half),
        y: TOP,
        width: Math.max(2, x(b) - x(a) + (kind === "bars" ? step() : a === b ? 2 : step())),
        height: height - TOP - BOTTOM,
      }),
    );
    const say = s => {
      const part = s.values.slice(a, b + 1);
      if (a === b) return `${s.name} ${brief(part[0])}${unit}`;
      return kind === "bars"
        ? `${s.name} ${brief(part.reduce((n, v) => n + v, 0))}${unit}`
        : `${s.name} from ${brief(Math.min(...part))} to ${brief(Math.max(...part))}${unit}`;
    };
    const text = `${data.names[a]}${a === b ? "" : ` to ${data.names[b]}`}: ${data.series.map(say).join(", ")}`;
    reads.textContent = text;
    area.setAttribute("aria-valuenow", String(at));
    area.setAttribute("aria-valuetext", text);
  }

  function paint(force = false) {
    const state = JSON.stringify(data);
    if (state === drawn && !force) return;
    drawn = state;
    const most = roundUp(Math.max(1, ...data.series.flatMap(s => s.values))),
      room = height - TOP - BOTTOM,
      y = n => TOP + room * (1 - n / most);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", String(height));
    svg.replaceChildren();
    for (const part of [0, 0.5, 1]) {
      svg.append(
        draw("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: y(most * part), y2: y(most * part) }),
        draw("text", { x: LEFT - 6, y: y(most * part) + 4, "text-anchor": "end" }, brief(most * part)),
      );
    }
    data.ticks.forEach((text, i) => {
      svg.append(
        draw(
          "text",
          {
            x: LEFT + (width - LEFT - RIGHT) * (data.ticks.length === 1 ? 0 : i / (data.ticks.length - 1)),
            y: height - 6,
            "text-anchor": i === 0 ? "start" : i === data.ticks.length - 1 ? "end" : "middle",
          },
          text,
        ),
      );
    });
    data.series.forEach((s, n) => {
      const name = "ab"[n] ?? "b";
      if (kind === "bars") {
        s.values.forEach((v, i) => {
          if (v > 0)
            svg.append(
              draw("rect", {
                class: `bar-${name}`,
                x: x(i) + 1,
                y: y(v),
                width: Math.max(1, step() - 2),
                height: Math.max(1, (room * v) / most),
              }),
            );
        });
        return;
      }
      if (s.values.length === 1) {
        svg.append(draw("circle", { class: "dot", cx: x(0), cy: y(s.values[0]), r: 3 }));
        return;
      }
      const points = s.values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(" ");
      if (points)
        svg.append(
          draw("polygon", { class: "area", points: `${x(0)},${y(0)} ${points} ${x(s.values.length - 1)},${y(0)}` }),
          draw("polyline", { class: `line-${name}`, points }),
        );
    });
    area.setAttribute("aria-valuemax", String(Math.max(0, data.names.length - 1)));
    if (at < 0)
      area.setAttribute(
        "aria-valuetext",
        data.names.length > 0
          ? `${data.names[0]}: ${data.series.map(s => `${s.name} ${brief(s.values[0])}${unit}`).join(", ")}`
          : "nothing yet",
      );
    show();
    fill();
  }

  function fill() {
    if (!twin.open) return;
    const place = twin.lastElementChild,
      scrolled = place?.firstElementChild?.scrollTop ?? 0;
    place?.replaceChildren(
      el(
        "div",
        { class: "scroll events", tabIndex: 0, role: "region", "aria-label": `${label}, as a table` },
        table(
          [heads, ...data.series.map(s => s.name)],
          data.names.map((name, i) => [name, ...data.series.map(s => s.values[i])]),
          data.series.map((_, i) => i + 1),
        ),
      ),
    );
    if (place?.firstElementChild) place.firstElementChild.scrollTop = scrolled;
  }

  return {
    element,
    /** @param {Figures} figures @param {string} [title] */
    update(figures, title) {
      data = figures;
      if (title !== undefined && caption.textContent !== title) caption.textContent = title;
      paint();
    },
    stop() {
      watcher.disconnect();
    },
  };
}

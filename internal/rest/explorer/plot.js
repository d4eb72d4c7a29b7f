// SPDX-License-Identifier: MIT

// Plots as drawings. Each has a table with the same figures, for those who do not see it.

import { draw, el, table } from "./dom.js";

const LEFT = 46, BOTTOM = 22, TOP = 8;
/** Width and height: of bars, which have a row of their own, and of a line, which has others beside it. */
const wide = [960, 210], narrow = [330, 130];

/** A number of few digits. */
export const brief = n => n >= 1e6 ? `${(n / 1e6).toFixed(1)}M` : n >= 1e4 ? `${Math.round(n / 1e3)}k` : n >= 10 || Number.isInteger(n) ? String(Math.round(n)) : n.toFixed(1);

function frame(label, most, ticks, [W, H]) {
  const svg = draw("svg", { class: "plot", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label });
  for (const part of [0, .5, 1]) {
    const y = TOP + (H - TOP - BOTTOM) * (1 - part);
    svg.append(draw("line", { class: "axis", x1: LEFT, x2: W, y1: y, y2: y }), draw("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, brief(most * part)));
  }
  ticks.forEach((text, i) => svg.append(draw("text", {
    x: LEFT + (W - LEFT) * (ticks.length === 1 ? 0 : i / (ticks.length - 1)), y: H - 6, "text-anchor": i === 0 ? "start" : i === ticks.length - 1 ? "end" : "middle",
  }, text)));
  return svg;
}

function twin(heads, rows) {
  return el("details", {}, el("summary", {}, "As a table"), el("div", { class: "scroll events", tabIndex: 0, role: "region", "aria-label": "Figures" }, table(heads, rows, heads.map((_, i) => i).slice(1))));
}

/**
 * Bars, with the outlines of others over them if there are any.
 * @param {{label: string, heads: string[], names: string[], bars: number[], others: number[] | null, ticks: string[]}} p
 */
export function bars({ label, heads, names, bars, others, ticks }) {
  const most = Math.max(1, ...bars, ...(others ?? []));
  const [W, H] = wide, svg = frame(label, most, ticks, wide), step = (W - LEFT) / bars.length, room = H - TOP - BOTTOM;
  const rect = (cls, n, i) => n > 0 && svg.append(draw("rect", { class: cls, x: LEFT + i * step + 1, y: TOP + room * (1 - n / most), width: Math.max(1, step - 2), height: room * n / most },
    draw("title", {}, `${names[i]}: ${n}`)));
  bars.forEach((n, i) => rect("bar-a", n, i));
  others?.forEach((n, i) => rect("bar-b", n, i));
  return el("figure", { class: "card" }, el("figcaption", {}, label), svg, twin(heads, names.map((name, i) => others ? [name, bars[i], others[i]] : [name, bars[i]])));
}

/** A line over time. */
export function line({ label, heads, names, values, ticks }) {
  const most = Math.max(1, ...values);
  const [W, H] = narrow, svg = frame(label, most, ticks, narrow), room = H - TOP - BOTTOM;
  const x = i => LEFT + (W - LEFT) * (values.length < 2 ? 1 : i / (values.length - 1)), y = n => TOP + room * (1 - n / most);
  const points = values.length === 1 ? `${LEFT},${y(values[0])} ${W},${y(values[0])}` : values.map((n, i) => `${x(i).toFixed(1)},${y(n).toFixed(1)}`).join(" ");
  svg.append(draw("polyline", { class: "line-a", points }));
  return el("figure", { class: "card" }, el("figcaption", {}, label), svg, twin(heads, names.map((name, i) => [name, values[i]])));
}

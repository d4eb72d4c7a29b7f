// SPDX-License-Identifier: MIT

// The banner of the test clock, on every page while it is on.

import { ask, confirmed, count, doing, el, labelled, span } from "./dom.js";
import * as api from "./api.js";

const AT_ONCE = 8; // forecasts asked for at the same time
const LISTED = 12; // containers that a preview names

/**
 * @param {{readOnly: boolean, databases: () => any[], moved: () => any, until: AbortSignal}} options moved is called after the clock was
 */
export function clockBanner({ readOnly, databases, moved, until }) {
  const element = el("section", { class: "banner", "aria-label": "Test clock", hidden: true });
  const time = el("strong", { class: "count" });
  const tick = () => {
    time.textContent = new Date(api.now()).toISOString().replace("T", " ").slice(0, 19) + " UTC";
  };
  const timer = setInterval(tick, 250);
  until.addEventListener("abort", () => clearInterval(timer));

  async function show() {
    const status = await api.readClock(),
      { test, frozen } = api.clockState();
    if (!test) {
      element.hidden = !status.reason;
      element.replaceChildren(status.reason ?? "");
      return;
    }
    element.hidden = false;
    tick();
    const move = (text, change, step) =>
      el(
        "button",
        {
          onclick: doing(async () => {
            if (step && !(await previewed(step, text))) return;
            await api.moveClock(change);
            await show();
            await moved();
          }),
        },
        text,
      );
    element.replaceChildren(
      "Test clock:",
      time,
      frozen ? el("span", { class: "badge on" }, "frozen") : "",
      ...(readOnly
        ? []
        : [
            frozen ? move("Release", { release: true }) : move("Freeze", { freeze: true }),
            move("+1 m", { advance: "1m" }, 60),
            move("+1 h", { advance: "1h" }, 3600),
            move("+1 d", { advance: "24h" }, 86400),
            el("button", { onclick: doing(set) }, "Set…"),
          ]),
    );
  }

  /** Says what a step would expire, and asks whether to take it if it is something. */
  async function previewed(step, text) {
    const queue = databases().flatMap(d => d.containers.filter(c => c.defaultTtl !== undefined).map(c => ({ db: d.id, coll: c.id }))),
      expiring = [];
    const worker = async () => {
      for (let c = queue.shift(); c; c = queue.shift()) {
        const { body } = await api.send("GET", api.ttlPath("forecast", c.db, c.coll, { interval: `${step}s`, count: "1" }));
        if (body.intervals[0].items > 0) expiring.push({ name: `${c.db}/${c.coll}`, items: body.intervals[0].items });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    if (expiring.length === 0) return true;
    expiring.sort((a, b) => b.items - a.items);
    const rest = expiring.slice(LISTED),
      more = rest.length > 0 ? ` and ${count(rest.reduce((n, e) => n + e.items, 0))} in ${rest.length} more containers` : "";
    return confirmed(
      `Move the clock by ${text}`,
      `These items will expire – ${expiring
        .slice(0, LISTED)
        .map(e => `${e.name}: ${count(e.items)}`)
        .join(", ")}${more}. The time never goes back.`,
      "Move it",
    );
  }

  async function set() {
    const to = el("input", { required: true, value: new Date(api.now()).toISOString() });
    const done = await ask({
      title: "Set the test clock",
      ok: "Set",
      body: labelled("Time, in UTC", to, "The time never goes back."),
      submit: async () => {
        const step = Math.ceil((Date.parse(to.value) - api.now()) / 1000);
        if (Number.isNaN(step)) throw new Error("This is no time. Give one such as 2030-01-01T00:00:00Z.");
        if (step > 0 && !(await previewed(step, span(step)))) return false;
        await api.moveClock({ set: to.value });
        return true;
      },
    });
    if (!done) return;
    await show();
    await moved();
  }
  return { element, show };
}

// SPDX-License-Identifier: MIT

// What expires in a container: now, later, and if it lived for another time.

import { el, ask, complain, count, doing, labelled, letGo, seconds, size, span, toast, ttlText } from "./dom.js";
import * as api from "./api.js";
import { effect } from "./core.js";
import { plot } from "./plot.js";

const SECONDS_MOST = 10 * 365 * 86400; // the longest life on the slider
const STEPS = 200;
const MOST_EVENTS = 500;
const clockText = text => text.slice(11, 19);

/** The slider is logarithmic: a second at its left, ten years at its right. */
export const lifeAt = step => Math.round(SECONDS_MOST ** (step / STEPS));
export const stepOf = life => Math.round((Math.log(life) / Math.log(SECONDS_MOST)) * STEPS);

export async function ttlView(main, ctx) {
  const { db, container, session, signal, reload } = ctx;
  const figures = el("div", { class: "cards" }),
    controls = el("div", { class: "bar" });
  let tried = /** @type {any} */ (null); // the TTL that the slider shows, as the pages take it, or null
  const outlook = plot({ label: "Items that expire", kind: "bars", heads: "within" }),
    legend = el("p", { class: "legend" });
  const hour = [
    ["Live items", p => p.live.items, ""],
    ["Expired, not purged", p => p.expiredPending.items, ""],
    ["Purge is behind", p => p.lagSeconds, " s"],
    ["Items purged a second", p => p.itemsPerSecond, ""],
    ["Debt", p => p.debtBytes, " B"],
  ].map(([label, of, unit]) => ({
    label: String(label),
    of: /** @type {(p: any) => number} */ (of),
    plot: plot({ label: String(label), unit: String(unit), kind: "line", height: 130, heads: "at" }),
  }));
  const plots = el(
    "div",
    { class: "plots" },
    hour.map(h => h.plot.element),
  );
  signal.addEventListener("abort", () => {
    for (const p of [outlook, ...hour.map(h => h.plot)]) p.stop();
  });
  const brought = el("section", { class: "card", hidden: true });
  main.replaceChildren(
    figures,
    controls,
    outlook.element,
    legend,
    whatIfCard(),
    el("h2", {}, "The last hour"),
    plots,
    eventsCard(),
    brought,
    explainCard(),
  );
  await Promise.all([drawStatus(), drawForecast(), drawHistory(), drawBrought()]);
  const timers = [
    setInterval(() => quietly(drawStatus), 2000),
    setInterval(() => quietly(drawForecast), 5000),
    setInterval(() => quietly(drawHistory), 10_000),
    setInterval(() => quietly(drawBrought), 5000),
  ];
  signal.addEventListener("abort", () => timers.forEach(clearInterval));

  let seen = ctx.moves.peek();
  effect(() => {
    // the test clock was moved
    if (ctx.moves.value === seen) return;
    seen = ctx.moves.value;
    for (const work of [drawStatus, drawForecast, drawHistory, drawBrought]) quietly(work);
  }, signal);

  async function quietly(work) {
    if (document.hidden || document.querySelector("dialog")) return;
    try {
      await work();
    } catch (err) {
      if (!signal.aborted && err.status !== 401) complain(err);
    }
  }

  async function get(page, more) {
    const { body } = await api.send("GET", api.ttlPath(page, db, container.id, more), { signal });
    api.heard(body);
    return body;
  }

  function post(page, more) {
    return api.send("POST", api.ttlPath(page, db, container.id, more));
  }

  async function drawStatus() {
    const s = (await get("status")).containers[0];
    const card = (title, figure, note) =>
      el(
        "div",
        { class: "card" },
        el("div", { class: "faint" }, title),
        el("div", { class: "figure" }, figure),
        el("div", { class: "faint" }, note),
      );
    figures.replaceChildren(
      card(
        "Default TTL",
        ttlText(s.defaultTtl),
        s.expireAtPath ? `deadlines at ${s.expireAtPath}` : s.slidingTtlPercent ? `sliding, ${s.slidingTtlPercent} %` : "",
      ),
      card("Live", count(s.live.items), size(s.live.bytes)),
      card("Expired, not purged", count(s.expiredPending.items), size(s.expiredPending.bytes)),
      card(
        "Purge is behind",
        span(s.purge.lagSeconds),
        s.purge.paused ? "paused" : s.purge.heldBack ? `held back: ${s.purge.heldBack}` : `${s.purge.itemsPerSecond.toFixed(1)} items/s`,
      ),
      card("Debt", size(s.purge.debt.bytes), `of ${size(s.purge.debt.limitBytes)}`),
    );
    if (session.readOnly || controls.contains(document.activeElement)) return;
    const act = (text, work, cls) =>
      el(
        "button",
        {
          class: cls,
          onclick: doing(async e => {
            await work(e);
            letGo();
            await drawStatus();
          }),
        },
        text,
      );
    controls.replaceChildren(
      "Purge:",
      s.purge.paused ? act("Resume", () => post("resume")) : act("Pause", () => post("pause")),
      act(s.purge.limit === null ? "Limit…" : `Limit: ${s.purge.limit}/s…`, limit),
      act("Purge now", async () => {
        await post("purge");
        toast("All that has expired is purged.");
      }),
      act("Erase…", erase, "danger"),
    );
  }

  async function limit() {
    const rate = el("input", { type: "number", min: "0", value: "0", required: true });
    await ask({
      title: "Limit purge",
      ok: "Set",
      body: labelled("Items a second", rate, "0 for no limit."),
      submit: async () => {
        await post("limit", { itemsPerSecond: rate.value });
        return true;
      },
    });
  }

  async function erase() {
    const done = await ask({
      title: "Erase",
      ok: "Erase",
      danger: true,
      body: el(
        "p",
        {},
        "Expired items are purged, and the bytes of all that was deleted leave the files of the data now. This may take a while.",
      ),
      submit: async () => {
        await post("erase");
        return true;
      },
    });
    if (done) toast("Erased.");
  }

  // The forecast, and another one under a TTL that is tried.

  /** What is tried, as people say it. */
  function triedText() {
    return tried === "off" ? "no TTL" : tried === "-1" ? "no default" : span(seconds(tried));
  }

  async function drawForecast() {
    const f = await get("forecast", { count: "40" });
    const other = tried === null ? null : await get("forecast", { count: "40", interval: `${f.intervalSeconds}s`, ttl: tried });
    const name = i => `in ${span(Math.max(0, (Date.parse(i.until) - f.nowMs) / 1000))}`;
    outlook.update(
      {
        names: f.intervals.map(name),
        ticks: ["now", name(f.intervals[Math.floor(f.intervals.length / 2)]), name(f.intervals.at(-1))],
        series: [
          { name: other ? "now" : "items", values: f.intervals.map(i => i.items) },
          ...(other ? [{ name: "if", values: other.intervals.map(i => i.items) }] : []),
        ],
      },
      `Items that expire, in steps of ${span(f.intervalSeconds)}, if nothing is written`,
    );
    legend.replaceChildren(
      ...[
        el("span", { class: "a" }, `with the TTL as it is: ${count(f.later.items)} later, ${count(f.never.items)} never`),
        other && el("span", { class: "b" }, `with ${triedText()}: ${count(other.later.items)} later, ${count(other.never.items)} never`),
      ].filter(Boolean),
    );
  }

  function whatIfCard() {
    const current = container.defaultTtl;
    const slider = el("input", {
      type: "range",
      min: "0",
      max: String(STEPS),
      value: String(current > 0 ? stepOf(current) : stepOf(3600)),
      "aria-label": "Time to live to try",
    });
    const kind = el(
      "select",
      { "aria-label": "Kind of TTL to try" },
      [
        ["time", "a time"],
        ["-1", "never, unless items say so"],
        ["off", "off"],
      ].map(([value, text]) => el("option", { value }, text)),
    );
    const typed = el("input", { "aria-label": "Time to live to try, typed", size: 8 });
    const says = el("p", { role: "status" }, "Move the slider to see what another default TTL would do. Nothing changes by that.");
    const apply = el("button", { class: "danger", disabled: true, onclick: doing(set) }, "Apply…");
    let timer,
      answer = /** @type {any} */ (null);
    const value = () => (kind.value === "time" ? `${seconds(typed.value)}s` : kind.value);
    const write = () => {
      typed.value = span(lifeAt(Number(slider.value))).replaceAll(" ", "");
    };
    write();
    const changed = () => {
      slider.disabled = typed.disabled = kind.value !== "time";
      clearTimeout(timer);
      timer = setTimeout(async () => {
        try {
          tried = value();
          answer = await get("whatif", { ttl: tried });
          says.textContent =
            `${count(answer.expires.items)} items would expire at once, ${count(answer.returns.items)} would come back, ${count(answer.remains.items)} would live on` +
            (answer.lastExpiresAt ? `, the last until ${answer.lastExpiresAt}.` : answer.remains.items ? ", and never expire." : ".");
          apply.disabled = false;
          await drawForecast();
        } catch (err) {
          if (signal.aborted) return;
          tried = null;
          apply.disabled = true;
          says.textContent = err.message;
        }
      }, 200);
    };
    slider.addEventListener("input", () => {
      write();
      changed();
    });
    typed.addEventListener("change", () => {
      const n = seconds(typed.value);
      if (n >= 1) slider.value = String(stepOf(n));
      changed();
    });
    kind.addEventListener("change", changed);

    async function set() {
      const name = el("input", { required: true });
      const done = await ask({
        title: `Set the default TTL to ${triedText()}`,
        ok: "Set it",
        danger: true,
        body: [el("p", {}, says.textContent), labelled(`Type ${container.id} to set it`, name)],
        submit: async () => {
          if (name.value !== container.id) throw new Error("This is not the container's name.");
          const path = api.collPath(db, container.id);
          const { body } = await api.send("GET", path);
          delete body.defaultTtl;
          if (tried !== "off") body.defaultTtl = tried === "-1" ? -1 : seconds(tried);
          await api.send("PUT", path, { body, headers: { "If-Match": body._etag } });
          return true;
        },
      });
      if (done) {
        toast("The default TTL is set, for all items.");
        await reload();
      }
    }
    return el(
      "section",
      { class: "card" },
      el("h2", {}, "What if?"),
      el("div", { class: "bar" }, kind, typed, el("span", { class: "grow" }, slider)),
      says,
      !session.readOnly && apply,
    );
  }

  // The last hour.

  async function drawHistory() {
    const h = await get("history");
    const names = h.points.map(p => clockText(p.at)),
      ticks = names.length > 1 ? [names[0], names.at(-1)] : names;
    for (const one of hour) one.plot.update({ names, ticks, series: [{ name: one.label.toLowerCase(), values: h.points.map(one.of) }] });
  }

  // What has expired, but is not purged, can be brought back.

  async function drawBrought() {
    const list = await get("undeletable", { count: "100" });
    brought.hidden = list.items.length === 0;
    if (brought.contains(document.activeElement)) return;
    brought.replaceChildren(
      el("h2", {}, "Expired, and not purged yet"),
      el("p", { class: "faint" }, "These can be brought back, as long as purge has not come to them."),
      el(
        "div",
        { class: "scroll events", tabIndex: 0, role: "region", "aria-label": "Expired, and not purged yet" },
        el(
          "table",
          {},
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              ["id", "partition key", "expired at", "bring back"].map(t => el("th", { scope: "col" }, t)),
            ),
          ),
          el(
            "tbody",
            {},
            list.items.map(i =>
              el(
                "tr",
                {},
                el("td", {}, i.id),
                el("td", {}, JSON.stringify(i.partitionKey)),
                el("td", {}, i.expiredAt),
                el(
                  "td",
                  {},
                  !session.readOnly &&
                    el("button", { "aria-label": `Bring back ${i.id}`, onclick: doing(() => bringBack(i)) }, "Bring back…"),
                ),
              ),
            ),
          ),
        ),
      ),
    );
  }

  async function bringBack(item) {
    const time = el("input", { value: "1h", required: true });
    const done = await ask({
      title: `Bring back ${item.id}`,
      ok: "Bring back",
      body: labelled("It lives for", time, "A duration such as 1h or 3d, or -1 for ever."),
      submit: async () => {
        const n = time.value.trim() === "-1" ? -1 : seconds(time.value);
        if (Number.isNaN(n)) throw new Error("This is no duration.");
        await post("undelete", { id: item.id, partitionKey: JSON.stringify(item.partitionKey), ttl: n === -1 ? "-1" : `${n}s` });
        return true;
      },
    });
    letGo();
    if (done) {
      toast(`${item.id} is back.`);
      await Promise.all([drawStatus(), drawForecast(), drawBrought()]);
    }
  }

  // Events as they happen. A pause keeps the cursor. If events after it were removed meanwhile,
  // the server says so, and the next reading begins anew.

  function eventsCard() {
    const list = el("tbody", {}),
      state = el("span", { class: "faint", role: "status" }, "");
    let cursor = /** @type {string | null} */ (null),
      run = /** @type {AbortController | null} */ (null);
    const toggle = el(
      "button",
      {
        onclick: doing(async () => {
          if (run) stop();
          else follow();
        }),
      },
      "Follow",
    );
    const stop = () => {
      run?.abort();
      run = null;
      toggle.textContent = cursor ? "Resume" : "Follow";
      state.textContent = cursor ? "Paused. Events are kept for an hour." : "";
    };
    signal.addEventListener("abort", () => run?.abort());

    async function follow() {
      const mine = (run = new AbortController());
      toggle.textContent = "Pause";
      state.textContent = "Following.";
      try {
        const reader = await api.stream(
          api.ttlPath("events", db, container.id, { follow: "true", ...(cursor ? { cursor } : { from: "kept" }) }),
          mine.signal,
        );
        let rest = "";
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
          const lines = (rest + part.value).split("\n");
          rest = lines.pop() ?? "";
          for (const l of lines.map(text => JSON.parse(text))) {
            if (l.type === "cursor") cursor = l.cursor;
            else if (l.type === "error") throw new api.Refusal(l.code === "Gone" ? 410 : 500, 0, l.message);
            else add(l);
          }
        }
      } catch (err) {
        if (err.status === 410) cursor = null; // what follows it was removed
        if (err.name !== "AbortError") complain(err);
      }
      if (run === mine) stop();
    }

    function add(e) {
      list.prepend(
        el(
          "tr",
          {},
          [
            e.goneAt,
            e.id ?? "(erased)",
            e.partitionKey ? JSON.stringify(e.partitionKey) : "",
            e.source === "container" ? "default" : "own",
          ].map(c => el("td", {}, c)),
        ),
      );
      while (list.children.length > MOST_EVENTS) list.lastChild.remove();
    }
    return el(
      "section",
      { class: "card" },
      el("h2", {}, "Expired items, as they expire"),
      el("div", { class: "bar" }, toggle, state),
      el(
        "div",
        { class: "scroll events", tabIndex: 0, role: "region", "aria-label": "Events" },
        el(
          "table",
          {},
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              ["gone at", "id", "partition key", "by the TTL"].map(t => el("th", { scope: "col" }, t)),
            ),
          ),
          list,
        ),
      ),
    );
  }

  function explainCard() {
    const id = el("input", { required: true }),
      key = el("input", {}),
      says = el("p", { role: "status" });
    return el(
      "section",
      { class: "card" },
      el("h2", {}, "Why does an item expire?"),
      el(
        "form",
        {
          class: "bar",
          onsubmit: async e => {
            e.preventDefault();
            try {
              const x = await get("explain", { id: id.value, partitionKey: key.value || id.value });
              says.textContent = `${x.reason} ${x.expired || x.purged ? "It has expired" : "It expires"}${x.expiresAt ? ` at ${x.expiresAt}` : x.expired ? "" : " never"}.`;
            } catch (err) {
              says.textContent = err.message;
            }
          },
        },
        labelled("id", id),
        labelled("Partition key", key, "if it is not the id"),
        el("button", { type: "submit" }, "Explain"),
      ),
      says,
    );
  }
}

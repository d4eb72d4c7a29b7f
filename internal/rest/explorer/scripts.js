// SPDX-License-Identifier: MIT

// Stored procedures, triggers and functions: editing them, and running procedures.

import { el, ask, confirmed, doing, labelled, toast } from "./dom.js";
import * as api from "./api.js";
import { codeEditor } from "./code.js";

/** The kinds of scripts, by the word in their paths. */
export const scriptKinds = {
  sprocs: {
    title: "Stored procedures",
    one: "stored procedure",
    list: "StoredProcedures",
    draft: "function (name) {\n  getContext().getResponse().setBody('Hello, ' + name);\n}\n",
  },
  triggers: {
    title: "Triggers",
    one: "trigger",
    list: "Triggers",
    draft: "function () {\n  var request = getContext().getRequest();\n  var item = request.getBody();\n  request.setBody(item);\n}\n",
  },
  udfs: { title: "Functions", one: "user-defined function", list: "UserDefinedFunctions", draft: "function (x) {\n  return x;\n}\n" },
};

export async function scriptsView(main, ctx) {
  const { db, container, session, signal, params } = ctx;
  const base = api.collPath(db, container.id);
  const all = await Promise.all(Object.keys(scriptKinds).map(kind => api.listAll(`${base}/${kind}`, scriptKinds[kind].list)));
  if (signal.aborted) return;
  const again = async () => {
    ctx.scriptsChanged();
    await scriptsView(main, { ...ctx, params: new URLSearchParams() });
  };
  main.replaceChildren(
    ...Object.entries(scriptKinds).map(([kind, k], i) =>
      el(
        "section",
        { class: "card" },
        el("h2", {}, k.title),
        all[i].length === 0
          ? el("p", { class: "faint" }, "none")
          : el(
              "ul",
              {},
              all[i].map(s =>
                el(
                  "li",
                  {},
                  el("button", { class: "plain", onclick: doing(() => open(kind, s)) }, s.id),
                  " ",
                  kind === "sprocs" && !session.readOnly && el("button", { onclick: doing(() => execute(s)) }, `Run ${s.id}…`),
                ),
              ),
            ),
        !session.readOnly &&
          el(
            "button",
            {
              onclick: doing(async () => {
                if (await edit(kind, null)) await again();
              }),
            },
            `New ${k.one}`,
          ),
      ),
    ),
  );

  const asked = Object.keys(scriptKinds).indexOf(params.get("kind") ?? ""),
    named = asked < 0 ? undefined : all[asked].find(s => s.id === params.get("id"));
  if (named) await open(params.get("kind"), named);

  async function open(kind, script) {
    ctx.remember({ kind, id: script.id });
    const changed = await edit(kind, script);
    if (signal.aborted) return;
    ctx.remember({});
    if (changed) await again();
  }

  function edit(kind, script) {
    const id = el("input", { required: true, value: script?.id ?? "", disabled: script !== null });
    const code = codeEditor({
      value: script?.body ?? scriptKinds[kind].draft,
      label: "Program",
      language: "script",
      readOnly: session.readOnly,
    });
    const when = el(
      "select",
      {},
      ["Pre", "Post"].map(v => el("option", { selected: script?.triggerType === v }, v)),
    );
    const on = el(
      "select",
      {},
      ["All", "Create", "Replace", "Delete"].map(v => el("option", { selected: script?.triggerOperation === v }, v)),
    );
    const path = script && `${base}/${kind}/${encodeURIComponent(script.id)}`;
    let removed = false;
    return ask({
      title: script ? script.id : `New ${scriptKinds[kind].one}`,
      ok: session.readOnly ? "Close" : "Save",
      body: [
        labelled("Name", id),
        kind === "triggers" && labelled("When", when, "before or after the write"),
        kind === "triggers" && labelled("On", on),
        code.element,
      ],
      extra:
        script && !session.readOnly
          ? [
              el(
                "button",
                {
                  type: "button",
                  class: "danger",
                  onclick: doing(async e => {
                    const dialog = e.currentTarget.closest("dialog");
                    if (!(await confirmed(`Delete ${script.id}`, "The script will be gone.", "Delete"))) return;
                    await api.send("DELETE", path);
                    removed = true;
                    dialog.close();
                  }),
                },
                "Delete…",
              ),
            ]
          : [],
      submit: async () => {
        if (session.readOnly) return true;
        const definition = {
          id: id.value,
          body: code.value,
          ...(kind === "triggers" ? { triggerType: when.value, triggerOperation: on.value } : {}),
        };
        await api.send(script ? "PUT" : "POST", path ?? `${base}/${kind}`, {
          body: definition,
          headers: script ? { "If-Match": script._etag } : {},
        });
        toast("Saved.");
        return true;
      },
    }).then(saved => saved || removed);
  }

  function execute(script) {
    const key = el("input", { placeholder: '"ada"', required: true }),
      args = codeEditor({ rows: 3, value: "[]", label: "Arguments", language: "json" });
    const out = el("pre", { class: "block", hidden: true, tabIndex: 0, role: "region", "aria-label": "Result" });
    return ask({
      title: `Run ${script.id}`,
      ok: "Run",
      body: [
        labelled("Partition key", key, "It runs in one logical partition."),
        el("p", { class: "faint" }, "Arguments, as a JSON array"),
        args.element,
        out,
      ],
      submit: async () => {
        let k = key.value;
        try {
          k = JSON.parse(k);
        } catch {
          /* plain text is a string */
        }
        const { headers, body } = await api.send("POST", `${base}/sprocs/${encodeURIComponent(script.id)}`, {
          body: JSON.stringify(args.json()),
          headers: {
            "x-ms-documentdb-partitionkey": api.headerJSON(Array.isArray(k) ? k : [k]),
            "x-ms-documentdb-script-enable-logging": "true",
          },
        });
        const log = headers.get("x-ms-documentdb-script-log-results");
        out.textContent = JSON.stringify(body, null, 2) + (log ? `\n\nLog:\n${decodeURIComponent(log)}` : "");
        out.hidden = false;
        return false; // the dialog stays, with the result
      },
    });
  }
}

// SPDX-License-Identifier: MIT

// The first page: all containers, what lives in them, and how to connect.

import { el, count, doing, size, span, toast, ttlText } from "./dom.js";
import * as api from "./api.js";

export async function overview(main, { session, signal, newDatabase }) {
  const { body } = await api.send("GET", api.ttlPath("status"), { signal });
  api.heard(body);
  const cell = (text, number) => el("td", { class: number ? "number" : undefined }, text);
  const all = body.containers;
  main.replaceChildren(el("h1", {}, "Overview"),
    all.length === 0
      ? el("div", { class: "card empty" }, el("p", {}, "There is no container yet."),
        !session.readOnly && el("button", { class: "primary", onclick: newDatabase }, "Create a database and a container"))
      : el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Containers" }, el("table", {},
        el("thead", {}, el("tr", {}, ["Container", "Default TTL", "Live items", "Size", "Expired, not purged", "Purge is behind"].map((t, i) => el("th", { scope: "col", class: i > 1 ? "number" : undefined }, t)))),
        el("tbody", {}, all.map(c => el("tr", {},
          el("td", {}, el("a", { href: `#/${encodeURIComponent(c.database)}/${encodeURIComponent(c.container)}/items` }, `${c.database} / ${c.container}`)),
          cell(ttlText(c.defaultTtl)), cell(count(c.live.items), true), cell(size(c.live.bytes), true), cell(count(c.expiredPending.items), true),
          cell(c.purge.paused ? "paused" : span(c.purge.lagSeconds), true)))))),
    connect(session));
}

const endpoint = () => location.origin + "/";

/** Code to copy, for each kind of client. The key is a placeholder: it never comes to this page. */
const programs = {
  JavaScript: () => `import { CosmosClient } from "@azure/cosmos";

const client = new CosmosClient({ endpoint: "${endpoint()}", key: process.env.MAYFLY_KEY });
const { database } = await client.databases.createIfNotExists({ id: "shop" });`,
  Python: () => `import os
from azure.cosmos import CosmosClient

client = CosmosClient("${endpoint()}", credential=os.environ["MAYFLY_KEY"])
shop = client.create_database_if_not_exists("shop")`,
  Go: () => `key, err := azcosmos.NewKeyCredential(os.Getenv("MAYFLY_KEY"))
// …
client, err := azcosmos.NewClientWithKey("${endpoint()}", key, nil)`,
  Java: () => `CosmosClient client = new CosmosClientBuilder()
    .endpoint("${endpoint()}")
    .key(System.getenv("MAYFLY_KEY"))
    .gatewayMode()
    .buildClient();`,
  ".NET": () => `var client = new CosmosClient("${endpoint()}", Environment.GetEnvironmentVariable("MAYFLY_KEY"),
    new CosmosClientOptions { ConnectionMode = ConnectionMode.Gateway });`,
  curl: () => `# Mayfly's own pages take the key as it is:
curl -H "Authorization: Bearer $MAYFLY_KEY" ${endpoint()}_mayfly/ttl/status`,
};

function connect(session) {
  const code = el("pre", { class: "block", tabIndex: 0, role: "region", "aria-label": "Program" });
  const choose = el("select", { "aria-label": "Language", onchange: () => { code.textContent = programs[choose.value](); } }, Object.keys(programs).map(name => el("option", {}, name)));
  code.textContent = programs.JavaScript();
  return el("section", { class: "card" }, el("h2", {}, "Connect"),
    el("p", {}, "The endpoint is ", el("code", {}, endpoint()), ". ",
      session.oneClick ? "The key is the well-known key of the emulators; the server prints it when it starts." : "The key is the one that the server was started with."),
    el("p", { class: "faint" }, "Over https, clients must trust the server's certificate: ", el("a", { href: "emulator.pem", download: "mayfly.pem" }, "save it"),
      " as mayfly.pem, then set for example NODE_EXTRA_CA_CERTS=mayfly.pem, SSL_CERT_FILE=mayfly.pem or curl --cacert mayfly.pem."),
    el("div", { class: "bar" }, choose, el("button", { onclick: doing(async () => { await navigator.clipboard.writeText(code.textContent); toast("Copied."); }) }, "Copy")), code);
}

// SPDX-License-Identifier: MIT

// Code to copy, for each kind of client. The key is a placeholder: it never comes to this page.

import { doing, el, toast } from "./dom.js";

const local = () => /^(localhost|127\.|\[::1\])/.test(location.host);
const secure = () => `https://${local() ? `localhost${location.port ? `:${location.port}` : ""}` : location.host}/`;

/**
 * Each program: how to get the SDK, the code, how it trusts the certificate, and whether its SDK
 * always encrypts.
 * @type {Record<string, {get: string, code: (at: string) => string, trust: string, encrypted?: boolean}>}
 */
const programs = {
  JavaScript: {
    get: "npm install @azure/cosmos",
    code: at => `import { CosmosClient } from "@azure/cosmos";

const client = new CosmosClient({ endpoint: "${at}", key: process.env.MAYFLY_KEY });
const { database } = await client.databases.createIfNotExists({ id: "shop" });
const { container } = await database.containers.createIfNotExists({
  id: "carts", partitionKey: { paths: ["/customer"] }, defaultTtl: 3600,
});
await container.items.create({ id: "1", customer: "ada", ttl: 60 });`,
    trust: "NODE_EXTRA_CA_CERTS=mayfly.pem node program.mjs",
  },
  Python: {
    get: "pip install azure-cosmos",
    code: at => `import os
from azure.cosmos import CosmosClient, PartitionKey

client = CosmosClient("${at}", credential=os.environ["MAYFLY_KEY"], connection_verify="mayfly.pem")
shop = client.create_database_if_not_exists("shop")
carts = shop.create_container_if_not_exists("carts", PartitionKey("/customer"), default_ttl=3600)
carts.create_item({"id": "1", "customer": "ada", "ttl": 60})`,
    trust: "# connection_verify in the program names the certificate\npython program.py",
  },
  Go: {
    get: "go get github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos",
    code: at => `key, err := azcosmos.NewKeyCredential(os.Getenv("MAYFLY_KEY"))
if err != nil { log.Fatal(err) }
client, err := azcosmos.NewClientWithKey("${at}", key, nil)
if err != nil { log.Fatal(err) }
carts, err := client.NewContainer("shop", "carts")
if err != nil { log.Fatal(err) }
_, err = carts.CreateItem(ctx, azcosmos.NewPartitionKeyString("ada"),
	[]byte(\`{"id":"1","customer":"ada","ttl":60}\`), nil)`,
    trust: "SSL_CERT_FILE=mayfly.pem go run .   # on Linux; elsewhere add it to the system",
  },
  Java: {
    encrypted: true, // direct mode is, and in gateway mode the SDK insists on it
    get: "<dependency><groupId>com.azure</groupId><artifactId>azure-cosmos</artifactId>…</dependency>",
    code: at => `CosmosClient client = new CosmosClientBuilder()
    .endpoint("${at}")
    .key(System.getenv("MAYFLY_KEY"))
    .buildClient();
client.createDatabaseIfNotExists("shop");
CosmosContainerProperties carts = new CosmosContainerProperties("carts", "/customer");
carts.setDefaultTimeToLiveInSeconds(3600);
client.getDatabase("shop").createContainerIfNotExists(carts);`,
    trust: `keytool -importcert -noprompt -alias mayfly -file mayfly.pem -keystore mayfly.p12 -storetype PKCS12 -storepass trusted
java -Djavax.net.ssl.trustStore=mayfly.p12 -Djavax.net.ssl.trustStorePassword=trusted …`,
  },
  ".NET": {
    encrypted: true, // direct mode is
    get: "dotnet add package Microsoft.Azure.Cosmos",
    code: at => `var client = new CosmosClient("${at}", Environment.GetEnvironmentVariable("MAYFLY_KEY"));
Database shop = await client.CreateDatabaseIfNotExistsAsync("shop");
Container carts = await shop.CreateContainerIfNotExistsAsync(
    new ContainerProperties("carts", "/customer") { DefaultTimeToLive = 3600 });
await carts.CreateItemAsync(new { id = "1", customer = "ada", ttl = 60 });`,
    trust: `SSL_CERT_FILE=mayfly.pem dotnet run          # on Linux
certutil -addstore -user Root mayfly.pem     # on Windows`,
  },
  Rust: {
    get: "cargo add azure_data_cosmos --features key_auth",
    code: at => `let endpoint: AccountEndpoint = "${at}".parse()?;
let account = AccountReference::with_authentication_key(endpoint, std::env::var("MAYFLY_KEY")?);
let client = CosmosClient::builder()
    .build(account, RoutingStrategy::PreferredRegions(Vec::new()))
    .await?;`,
    trust: "SSL_CERT_FILE=mayfly.pem cargo run",
  },
  curl: {
    get: "",
    code: at => `# The protocol needs a signature for each request, which SDKs and the mayfly command make.
# Mayfly's own pages take the key as it is:
curl --cacert mayfly.pem -H "Authorization: Bearer $MAYFLY_KEY" ${at}_mayfly/ttl/status`,
    trust: "# --cacert names the certificate",
  },
};

export function connectView(main, { session, params, remember }) {
  const names = Object.keys(programs);
  const code = el("pre", { class: "block", tabIndex: 0, role: "region", "aria-label": "Program" }),
    trust = el("pre", { class: "block", tabIndex: 0, role: "region", "aria-label": "Trusting the certificate" }),
    get = el("p", {});
  const choose = el(
    "select",
    { "aria-label": "Language", onchange: () => show() },
    names.map(name => el("option", { selected: name === params.get("language") }, name)),
  );
  const over = el(
    "select",
    { "aria-label": "Over", onchange: () => show() },
    el("option", { value: "https" }, "over HTTPS"),
    local() && el("option", { value: "http" }, "without encryption"),
  );
  const copy = from =>
    el(
      "button",
      {
        onclick: doing(async () => {
          await navigator.clipboard.writeText(from.textContent);
          toast("Copied.");
        }),
      },
      "Copy",
    );
  const steps = el("section", { class: "card" });

  function show() {
    const p = programs[choose.value],
      plain = over.value === "http" && !p.encrypted;
    const text = p.code(plain ? `http://${location.host}/` : secure());
    code.textContent = plain ? text.replace(', connection_verify="mayfly.pem"', "").replace("--cacert mayfly.pem ", "") : text;
    get.replaceChildren(...(p.get ? [el("code", {}, p.get)] : []));
    trust.textContent = p.trust;
    steps.hidden = plain;
    remember({ language: choose.value });
  }
  steps.append(
    el("h2", {}, "Trust the certificate"),
    el(
      "ol",
      {},
      el(
        "li",
        {},
        el("a", { href: "emulator.pem", download: "mayfly.pem" }, "Save the certificate"),
        " as ",
        el("code", {}, "mayfly.pem"),
        ". On the server's machine ",
        el("code", {}, "mayfly cert > mayfly.pem"),
        " does the same.",
      ),
      el("li", {}, "Have the program trust it:", trust, copy(trust)),
    ),
  );
  main.replaceChildren(
    el("h1", {}, "Connect"),
    el(
      "section",
      { class: "card" },
      el(
        "p",
        {},
        "The endpoint is ",
        el("code", {}, secure()),
        local() ? [" or ", el("code", {}, `http://${location.host}/`)] : "",
        ". ",
        session.oneClick
          ? "The key is the well-known key of the emulators; the server prints it when it starts."
          : "The key is the one that the server was started with. Here it is never shown.",
      ),
      el("div", { class: "bar" }, choose, over, copy(code)),
      get,
      code,
    ),
    steps,
  );
  show();
}

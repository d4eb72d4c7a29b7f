// SPDX-License-Identifier: MIT

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.GatewayConnectionConfig;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchOperationResult;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/**
 * Drives the real binary with the Java SDK, in gateway mode over HTTPS, as a program of a user
 * would. MAYFLY_BINARY names the binary; test/compat/run builds it.
 */
final class Compat {
  private static final String KEY =
      "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
  private static final Pattern LISTENS = Pattern.compile("^Mayfly listens on http://\\S+:(\\d+) and https:.*");
  private static final int STOP_LIMIT_SECONDS = 20;
  private static final ObjectMapper JSON = new ObjectMapper();

  private final int port;
  private final CosmosDatabase database;
  private int containers;

  private Compat(int port, CosmosClient client) {
    this.port = port;
    client.createDatabase("java");
    this.database = client.getDatabase("java");
  }

  interface Check {
    void run() throws Exception;
  }

  private void all() throws Exception {
    Map<String, Check> checks = new TreeMap<>();
    checks.put("items are created, read, replaced and deleted", this::items);
    checks.put("a query gives what matches, in order, page by page", this::queries);
    checks.put("partitions are merged by the SDK", this::severalPartitions);
    checks.put("a patch changes what it names", this::patches);
    checks.put("a batch is done, or not at all", this::batches);
    checks.put("the change feed has each item as it is now, and goes on", this::changes);
    checks.put("items expire on the millisecond", this::expiry);
    for (Map.Entry<String, Check> c : checks.entrySet()) {
      c.getValue().run();
      System.out.println("ok  " + c.getKey());
    }
  }

  private void items() {
    CosmosContainer c = container(p -> {});
    CosmosItemRequestOptions body = new CosmosItemRequestOptions().setContentResponseOnWriteEnabled(true);
    ObjectNode created = c.createItem(item("1", "a", 1), new PartitionKey("a"), body).getItem();
    equal(created, c.readItem("1", new PartitionKey("a"), ObjectNode.class).getItem());
    String etag = created.get("_etag").asText();
    ObjectNode replaced = c.replaceItem(item("1", "a", 2), "1", new PartitionKey("a"), body).getItem();
    equal(2, replaced.get("n").asInt());
    refused(409, () -> c.createItem(item("1", "a", 1), new PartitionKey("a"), body));
    refused(412, () -> c.deleteItem("1", new PartitionKey("a"), new CosmosItemRequestOptions().setIfMatchETag(etag)));
    c.deleteItem("1", new PartitionKey("a"), new CosmosItemRequestOptions());
    refused(404, () -> c.readItem("1", new PartitionKey("a"), ObjectNode.class));
  }

  private void queries() {
    CosmosContainer c = container(p -> {});
    fill(c, 20);
    CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("p1"));
    List<Integer> seen = new ArrayList<>();
    int pages = 0;
    for (FeedResponse<JsonNode> page :
        c.queryItems("SELECT * FROM c WHERE c.n > 2 ORDER BY c.n DESC", options, JsonNode.class).iterableByPage(2)) {
      equal(true, page.getResults().size() <= 2);
      page.getResults().forEach(i -> seen.add(i.get("n").asInt()));
      pages++;
    }
    equal(List.of(19, 16, 13, 10, 7, 4), seen);
    equal(true, pages >= 3);
  }

  /** 25,000 RU/s make five physical partitions. */
  private void severalPartitions() {
    CosmosContainer c = container(p -> {}, 25_000);
    fill(c, 30);
    List<Integer> seen = new ArrayList<>();
    c.queryItems("SELECT VALUE c.n FROM c ORDER BY c.n", new CosmosQueryRequestOptions(), Integer.class)
        .forEach(seen::add);
    equal(IntStream.range(0, 30).boxed().toList(), seen);
    List<Double> sum = new ArrayList<>(); // the SDK adds up doubles
    c.queryItems("SELECT VALUE SUM(c.n) FROM c", new CosmosQueryRequestOptions(), Double.class).forEach(sum::add);
    equal(List.of(435.0), sum);
  }

  private void patches() {
    CosmosContainer c = container(p -> {});
    c.createItem(item("1", "a", 1));
    CosmosPatchOperations operations = CosmosPatchOperations.create().increment("/n", 4).set("/text", "é");
    CosmosPatchItemRequestOptions options = new CosmosPatchItemRequestOptions();
    options.setContentResponseOnWriteEnabled(true);
    ObjectNode patched = c.patchItem("1", new PartitionKey("a"), operations, options, ObjectNode.class).getItem();
    equal(5, patched.get("n").asInt());
    equal("é", patched.get("text").asText());
    options.setFilterPredicate("FROM c WHERE c.n = 1");
    refused(412, () -> c.patchItem("1", new PartitionKey("a"), operations, options, ObjectNode.class));
  }

  private void batches() {
    CosmosContainer c = container(p -> {});
    CosmosBatch batch = CosmosBatch.createCosmosBatch(new PartitionKey("a"));
    batch.createItemOperation(item("1", "a", 1));
    batch.upsertItemOperation(item("2", "a", 2));
    batch.readItemOperation("1");
    CosmosBatchResponse done = c.executeCosmosBatch(batch);
    equal(List.of(201, 201, 200), done.getResults().stream().map(CosmosBatchOperationResult::getStatusCode).toList());
    batch = CosmosBatch.createCosmosBatch(new PartitionKey("a"));
    batch.createItemOperation(item("3", "a", 3));
    batch.createItemOperation(item("1", "a", 1));
    CosmosBatchResponse undone = c.executeCosmosBatch(batch);
    equal(List.of(424, 409), undone.getResults().stream().map(CosmosBatchOperationResult::getStatusCode).toList());
    refused(404, () -> c.readItem("3", new PartitionKey("a"), ObjectNode.class));
  }

  private void changes() {
    CosmosContainer c = container(p -> {}, 25_000);
    fill(c, 9);
    c.upsertItem(item("4", "p1", 40));
    c.deleteItem("5", new PartitionKey("p2"), new CosmosItemRequestOptions());
    String[] continuation = new String[1];
    equal(
        new TreeSet<>(List.of(0, 1, 2, 3, 6, 7, 8, 40)),
        changed(c, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange()), continuation));
    c.upsertItem(item("9", "p0", 9));
    equal(
        new TreeSet<>(List.of(9)),
        changed(c, CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(continuation[0]), continuation));
  }

  /** Reads the feed to its present end. */
  private static TreeSet<Integer> changed(CosmosContainer c, CosmosChangeFeedRequestOptions from, String[] continuation) {
    TreeSet<Integer> seen = new TreeSet<>();
    for (FeedResponse<JsonNode> page : c.queryChangeFeed(from, JsonNode.class).iterableByPage()) {
      page.getResults().forEach(i -> seen.add(i.get("n").asInt()));
      continuation[0] = page.getContinuationToken();
      if (page.getResults().isEmpty()) {
        break;
      }
    }
    return seen;
  }

  private void expiry() throws Exception {
    clock("{\"freeze\":true}");
    CosmosContainer c = container(p -> p.setDefaultTimeToLiveInSeconds(5));
    c.createItem(item("inherits", "a", 1));
    c.createItem(item("shorter", "a", 2).put("ttl", 2));
    c.createItem(item("never", "a", 3).put("ttl", -1));
    clock("{\"advance\":\"1999ms\"}");
    c.readItem("shorter", new PartitionKey("a"), ObjectNode.class);
    clock("{\"advance\":\"1ms\"}");
    refused(404, () -> c.readItem("shorter", new PartitionKey("a"), ObjectNode.class));
    clock("{\"advance\":\"3s\"}");
    refused(404, () -> c.readItem("inherits", new PartitionKey("a"), ObjectNode.class));
    List<Integer> left = new ArrayList<>();
    c.queryItems("SELECT VALUE c.n FROM c", new CosmosQueryRequestOptions(), Integer.class).forEach(left::add);
    equal(List.of(3), left);
    clock("{\"release\":true}");
  }

  private CosmosContainer container(java.util.function.Consumer<CosmosContainerProperties> more) {
    return container(more, 400);
  }

  private CosmosContainer container(java.util.function.Consumer<CosmosContainerProperties> more, int throughput) {
    CosmosContainerProperties p = new CosmosContainerProperties("c" + ++containers, "/pk");
    more.accept(p);
    database.createContainer(p, ThroughputProperties.createManualThroughput(throughput));
    return database.getContainer(p.getId());
  }

  /** Creates the items 0 to n-1 under three partition keys. */
  private static void fill(CosmosContainer c, int n) {
    for (int i = 0; i < n; i++) {
      c.createItem(item(String.valueOf(i), "p" + i % 3, i));
    }
  }

  private static ObjectNode item(String id, String pk, int n) {
    return JSON.createObjectNode().put("id", id).put("pk", pk).put("n", n);
  }

  private static void equal(Object want, Object got) {
    if (!want.equals(got)) {
      throw new AssertionError("got " + got + ", want " + want);
    }
  }

  private static void refused(int status, Check check) {
    try {
      check.run();
    } catch (CosmosException e) {
      equal(status, e.getStatusCode());
      return;
    } catch (Exception e) {
      throw new AssertionError(e);
    }
    throw new AssertionError("it succeeded, and is to fail with " + status);
  }

  private void clock(String move) throws Exception {
    HttpResponse<String> answer =
        HttpClient.newHttpClient()
            .send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/_mayfly/clock"))
                    .header("Authorization", "Bearer " + KEY)
                    .POST(HttpRequest.BodyPublishers.ofString(move))
                    .build(),
                HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() != 200) {
      throw new AssertionError(answer.body());
    }
  }

  /** Makes this process trust the certificate that the server exports. */
  private static void trust(String binary, Path data) throws Exception {
    Process p = new ProcessBuilder(binary, "cert", "--data", data.toString()).start();
    KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
    trusted.load(null, null);
    try (InputStream pem = p.getInputStream()) {
      trusted.setCertificateEntry("mayfly", CertificateFactory.getInstance("X.509").generateCertificate(pem));
    }
    Path file = data.resolveSibling("trusted.p12");
    try (var out = Files.newOutputStream(file)) {
      trusted.store(out, "trusted".toCharArray());
    }
    System.setProperty("javax.net.ssl.trustStore", file.toString());
    System.setProperty("javax.net.ssl.trustStorePassword", "trusted");
  }

  private static int listens(Process server) throws Exception {
    BufferedReader lines = server.inputReader();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      Matcher m = LISTENS.matcher(line);
      if (m.matches()) {
        return Integer.parseInt(m.group(1));
      }
    }
    throw new AssertionError("the server did not say where it listens");
  }

  public static void main(String[] args) throws Exception {
    String binary = System.getenv("MAYFLY_BINARY");
    Path scratch = Files.createTempDirectory("mayfly-compat");
    Path data = scratch.resolve("data");
    ProcessBuilder serve =
        new ProcessBuilder(binary, "serve", "--listen", "127.0.0.1:0", "--data", data.toString(), "--test-clock", "--sync=false")
            .redirectError(ProcessBuilder.Redirect.INHERIT);
    serve.environment().clear(); // so that no MAYFLY_ variable has a say
    Process server = serve.start();
    int status = 1;
    try {
      int port = listens(server);
      trust(binary, data);
      try (CosmosClient client =
          new CosmosClientBuilder()
              .endpoint("https://localhost:" + port + "/")
              .key(KEY)
              .gatewayMode(new GatewayConnectionConfig())
              .consistencyLevel(ConsistencyLevel.SESSION)
              .buildClient()) {
        new Compat(port, client).all();
      }
      status = 0;
    } catch (Throwable t) {
      t.printStackTrace();
    } finally {
      server.destroy();
      if (!server.waitFor(STOP_LIMIT_SECONDS, TimeUnit.SECONDS) || server.exitValue() != 0) {
        System.out.println("the server is to stop in peace, and did not");
        status = 1;
      }
      try (var files = Files.walk(scratch)) {
        files.sorted(Comparator.reverseOrder()).forEach(f -> f.toFile().delete());
      }
    }
    System.exit(status); // the SDK leaves threads behind
  }
}

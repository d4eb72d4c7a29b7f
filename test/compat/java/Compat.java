// SPDX-License-Identifier: MIT

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchOperationResult;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;

/**
 * Drives the real binary with the Java SDK as a program of a user would: in gateway mode over
 * HTTPS, and in direct mode, which the SDK uses unless it is told otherwise.
 */
final class Compat {
  private final Server server;
  private final Containers containers;

  private Compat(Server server, Containers containers) {
    this.server = server;
    this.containers = containers;
  }

  private void all(Map<String, Check> checks) {
    checks.put("items are created, read, replaced and deleted", this::items);
    checks.put("a query gives what matches, in order, page by page", this::queries);
    checks.put("partitions are merged by the SDK", this::severalPartitions);
    checks.put("a patch changes what it names", this::patches);
    checks.put("a batch is done, or not at all", this::batches);
    checks.put("the change feed has each item as it is now, and goes on", this::changes);
    checks.put("items expire on the millisecond", this::expiry);
  }

  private void items() {
    CosmosContainer c = containers.create(p -> {});
    CosmosItemRequestOptions body = new CosmosItemRequestOptions().setContentResponseOnWriteEnabled(true);
    ObjectNode created = c.createItem(Containers.item("1", "a", 1), new PartitionKey("a"), body).getItem();
    Check.equal(created, c.readItem("1", new PartitionKey("a"), ObjectNode.class).getItem());
    String etag = created.get("_etag").asText();
    ObjectNode replaced = c.replaceItem(Containers.item("1", "a", 2), "1", new PartitionKey("a"), body).getItem();
    Check.equal(2, replaced.get("n").asInt());
    Check.refused(409, () -> c.createItem(Containers.item("1", "a", 1), new PartitionKey("a"), body));
    Check.refused(412, () -> c.deleteItem("1", new PartitionKey("a"), new CosmosItemRequestOptions().setIfMatchETag(etag)));
    c.deleteItem("1", new PartitionKey("a"), new CosmosItemRequestOptions());
    Check.refused(404, () -> c.readItem("1", new PartitionKey("a"), ObjectNode.class));
  }

  private void queries() {
    CosmosContainer c = containers.create(p -> {});
    Containers.fill(c, 20);
    CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("p1"));
    List<Integer> seen = new ArrayList<>();
    int pages = 0;
    for (FeedResponse<JsonNode> page :
        c.queryItems("SELECT * FROM c WHERE c.n > 2 ORDER BY c.n DESC", options, JsonNode.class).iterableByPage(2)) {
      Check.equal(true, page.getResults().size() <= 2);
      page.getResults().forEach(i -> seen.add(i.get("n").asInt()));
      pages++;
    }
    Check.equal(List.of(19, 16, 13, 10, 7, 4), seen);
    Check.equal(true, pages >= 3);
  }

  private void severalPartitions() {
    CosmosContainer c = containers.create(p -> {}, Containers.FIVE_PARTITIONS);
    Containers.fill(c, 30);
    List<Integer> seen = new ArrayList<>();
    c.queryItems("SELECT VALUE c.n FROM c ORDER BY c.n", new CosmosQueryRequestOptions(), Integer.class)
        .forEach(seen::add);
    Check.equal(IntStream.range(0, 30).boxed().toList(), seen);
    List<Double> sum = new ArrayList<>(); // the SDK adds up doubles
    c.queryItems("SELECT VALUE SUM(c.n) FROM c", new CosmosQueryRequestOptions(), Double.class).forEach(sum::add);
    Check.equal(List.of(435.0), sum);
  }

  private void patches() {
    CosmosContainer c = containers.create(p -> {});
    c.createItem(Containers.item("1", "a", 1));
    CosmosPatchOperations operations = CosmosPatchOperations.create().increment("/n", 4).set("/text", "é");
    CosmosPatchItemRequestOptions options = new CosmosPatchItemRequestOptions();
    options.setContentResponseOnWriteEnabled(true);
    ObjectNode patched = c.patchItem("1", new PartitionKey("a"), operations, options, ObjectNode.class).getItem();
    Check.equal(5, patched.get("n").asInt());
    Check.equal("é", patched.get("text").asText());
    options.setFilterPredicate("FROM c WHERE c.n = 1");
    Check.refused(412, () -> c.patchItem("1", new PartitionKey("a"), operations, options, ObjectNode.class));
  }

  private void batches() {
    CosmosContainer c = containers.create(p -> {});
    CosmosBatch batch = CosmosBatch.createCosmosBatch(new PartitionKey("a"));
    batch.createItemOperation(Containers.item("1", "a", 1));
    batch.upsertItemOperation(Containers.item("2", "a", 2));
    batch.readItemOperation("1");
    CosmosBatchResponse done = c.executeCosmosBatch(batch);
    Check.equal(List.of(201, 201, 200), done.getResults().stream().map(CosmosBatchOperationResult::getStatusCode).toList());
    batch = CosmosBatch.createCosmosBatch(new PartitionKey("a"));
    batch.createItemOperation(Containers.item("3", "a", 3));
    batch.createItemOperation(Containers.item("1", "a", 1));
    CosmosBatchResponse undone = c.executeCosmosBatch(batch);
    Check.equal(List.of(424, 409), undone.getResults().stream().map(CosmosBatchOperationResult::getStatusCode).toList());
    Check.refused(404, () -> c.readItem("3", new PartitionKey("a"), ObjectNode.class));
  }

  private void changes() {
    CosmosContainer c = containers.create(p -> {}, Containers.FIVE_PARTITIONS);
    Containers.fill(c, 9);
    c.upsertItem(Containers.item("4", "p1", 40));
    c.deleteItem("5", new PartitionKey("p2"), new CosmosItemRequestOptions());
    String[] continuation = new String[1];
    Check.equal(
        new TreeSet<>(List.of(0, 1, 2, 3, 6, 7, 8, 40)),
        changed(c, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange()), continuation));
    c.upsertItem(Containers.item("9", "p0", 9));
    Check.equal(
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
    server.clock("{\"freeze\":true}");
    CosmosContainer c = containers.create(p -> p.setDefaultTimeToLiveInSeconds(5));
    c.createItem(Containers.item("inherits", "a", 1));
    c.createItem(Containers.item("shorter", "a", 2).put("ttl", 2));
    c.createItem(Containers.item("never", "a", 3).put("ttl", -1));
    server.clock("{\"advance\":\"1999ms\"}");
    c.readItem("shorter", new PartitionKey("a"), ObjectNode.class);
    server.clock("{\"advance\":\"1ms\"}");
    Check.refused(404, () -> c.readItem("shorter", new PartitionKey("a"), ObjectNode.class));
    server.clock("{\"advance\":\"3s\"}");
    Check.refused(404, () -> c.readItem("inherits", new PartitionKey("a"), ObjectNode.class));
    List<Integer> left = new ArrayList<>();
    c.queryItems("SELECT VALUE c.n FROM c", new CosmosQueryRequestOptions(), Integer.class).forEach(left::add);
    Check.equal(List.of(3), left);
    server.clock("{\"release\":true}");
  }

  /** Runs all checks with clients in one mode. */
  private static void run(Server server, boolean direct) throws Exception {
    String mode = direct ? "direct" : "gateway";
    try (CosmosClient client = server.client(direct).buildClient();
        CosmosAsyncClient async = server.client(direct).contentResponseOnWriteEnabled(true).buildAsyncClient()) {
      client.createDatabase(mode);
      Map<String, Check> checks = new TreeMap<>();
      Containers containers = new Containers(client.getDatabase(mode));
      new Compat(server, containers).all(checks);
      new Lives(server, containers, async, mode, direct).all(checks);
      new Processors(server, containers, async.getDatabase(mode)).all(checks);
      new Shop(server, containers).all(checks);
      for (Map.Entry<String, Check> c : checks.entrySet()) {
        c.getValue().run();
        System.out.println("ok  " + mode + ": " + c.getKey());
      }
    }
  }

  public static void main(String[] args) {
    int status = 1;
    try (Server server = new Server()) {
      run(server, false);
      run(server, true);
      status = 0;
    } catch (Throwable t) {
      t.printStackTrace();
    }
    System.exit(status); // the SDK leaves threads behind
  }
}

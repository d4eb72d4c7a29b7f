// SPDX-License-Identifier: MIT

import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedMetaData;
import com.azure.cosmos.models.ChangeFeedOperationType;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.ChangeFeedProcessorItem;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

/**
 * Hosts that follow a container with the SDK's change feed processor. What they have read they
 * write down in leases, one for each range of partition keys, which are items of a container.
 */
final class Processors {
  private static final int RANGES = 5;
  private static final Duration OFTEN = Duration.ofMillis(200);
  private static final int LOCK_SECONDS = 30;

  private final Server server;
  private final Containers containers;
  private final CosmosAsyncDatabase database;

  Processors(Server server, Containers containers, CosmosAsyncDatabase database) {
    this.server = server;
    this.containers = containers;
    this.database = database;
  }

  void all(Map<String, Check> checks) {
    checks.put("hosts share leases of ranges, and go on from them", () -> latest(Processors::latestVersions));
    checks.put("hosts share leases of partitions, and go on from them", () -> latest(Processors::items));
    checks.put("a host begins at a time", this::startTime);
    checks.put("a host is told all versions, deletes and expiries", this::allVersions);
    checks.put("the lock of a host that died ends by itself", this::lockOfTheDead);
  }

  /** Gives the host a handler of its changes. */
  interface Handler extends BiFunction<ChangeFeedProcessorBuilder, List<JsonNode>, ChangeFeedProcessorBuilder> {}

  /** What each host has in common: it looks often, and takes little at once. */
  private static ChangeFeedProcessorOptions options() {
    return new ChangeFeedProcessorOptions().setFeedPollDelay(OFTEN).setLeaseAcquireInterval(OFTEN).setMaxItemCount(7);
  }

  private static ChangeFeedProcessorBuilder latestVersions(ChangeFeedProcessorBuilder b, List<JsonNode> seen) {
    return b.handleLatestVersionChanges(changes -> changes.forEach(c -> seen.add(c.getCurrent())));
  }

  private static ChangeFeedProcessorBuilder items(ChangeFeedProcessorBuilder b, List<JsonNode> seen) {
    return b.handleChanges(seen::addAll);
  }

  private void latest(Handler handler) throws Exception {
    server.clock("{\"freeze\":true}");
    CosmosContainer feed = containers.create(p -> p.setDefaultTimeToLiveInSeconds(-1), Containers.FIVE_PARTITIONS);
    CosmosContainer leases = leases();
    create(feed, 0, 40);
    feed.createItem(Containers.item("expired", "p", 1).put("ttl", 5));
    server.clock("{\"advance\":\"5s\"}");

    List<JsonNode> first = Collections.synchronizedList(new ArrayList<>());
    ChangeFeedProcessorOptions options = options().setStartFromBeginning(true);
    ChangeFeedProcessor one = start("one", feed, leases, b -> handler.apply(b, first).options(options));
    Check.becomes(numbers(0, 40), () -> sorted(first));
    Check.becomes(Map.of("one", RANGES), () -> owners(leases));

    List<JsonNode> second = Collections.synchronizedList(new ArrayList<>());
    ChangeFeedProcessor two = start("two", feed, leases, b -> handler.apply(b, second));
    Check.becomes(Map.of("one", 3, "two", 2), () -> owners(leases));
    first.clear();
    second.clear();
    create(feed, 40, 80);
    // Until a host notes that a lease is no longer its own, a change may be told twice.
    Check.becomes(numbers(40, 80), () -> sorted(first, second).stream().distinct().toList());
    Check.equal(true, !first.isEmpty() && !second.isEmpty());

    Check.becomes(0, () -> lag(one));
    two.stop().block();
    Check.becomes(Map.of("one", RANGES), () -> owners(leases));
    stop(one, leases);
    create(feed, 80, 120);
    Check.equal(40, lag(one));
    feed.upsertItem(Containers.item("0", "p0", 120));
    feed.createItem(Containers.item("unseen", "p", 1).put("ttl", 5));
    server.clock("{\"advance\":\"5s\"}");
    List<JsonNode> third = Collections.synchronizedList(new ArrayList<>());
    ChangeFeedProcessor three = start("three", feed, leases, b -> handler.apply(b, third));
    Check.becomes(numbers(80, 121), () -> sorted(third));
    stop(three, leases);
    server.clock("{\"release\":true}");
  }

  private void startTime() throws Exception {
    server.clock("{\"freeze\":true}");
    CosmosContainer feed = containers.create(p -> {}, Containers.FIVE_PARTITIONS);
    CosmosContainer leases = leases();
    create(feed, 0, 20);
    server.clock("{\"advance\":\"1m\"}");
    create(feed, 20, 40);
    long second = feed.readItem("20", new PartitionKey("p20"), JsonNode.class).getItem().get("_ts").asLong();
    List<JsonNode> seen = Collections.synchronizedList(new ArrayList<>());
    ChangeFeedProcessorOptions options = options().setStartTime(Instant.ofEpochSecond(second - 1));
    ChangeFeedProcessor host = start("one", feed, leases, b -> latestVersions(b, seen).options(options));
    Check.becomes(numbers(20, 40), () -> sorted(seen));
    stop(host, leases);
    server.clock("{\"release\":true}");
  }

  private void allVersions() throws Exception {
    server.clock("{\"freeze\":true}");
    CosmosContainer feed =
        containers.create(
            p -> {
              p.setDefaultTimeToLiveInSeconds(-1);
              p.setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
            },
            Containers.FIVE_PARTITIONS);
    CosmosContainer leases = leases();
    feed.createItem(Containers.item("before", "a", 0));

    List<ChangeFeedProcessorItem> seen = Collections.synchronizedList(new ArrayList<>());
    ChangeFeedProcessor host = start("one", feed, leases, b -> b.handleAllVersionsAndDeletesChanges(c -> seen.addAll(c)));
    Check.becomes(RANGES, () -> begun(leases));
    feed.createItem(Containers.item("1", "a", 1));
    feed.upsertItem(Containers.item("1", "a", 2));
    feed.deleteItem("1", new PartitionKey("a"), new CosmosItemRequestOptions());
    feed.createItem(Containers.item("brief", "a", 3).put("ttl", 5));
    Check.becomes(4, seen::size);
    server.clock("{\"advance\":\"5s\"}");
    Check.becomes(5, seen::size);
    Check.equal(
        List.of("CREATE", "REPLACE", "DELETE", "CREATE", "DELETE"),
        seen.stream().map(c -> c.getChangeFeedMetaData().getOperationType().name()).toList());
    Check.equal(1, seen.get(0).getCurrent().get("n").asInt());
    Check.equal(2, seen.get(1).getCurrent().get("n").asInt());
    Check.equal(true, seen.get(2).getPrevious() == null);
    Check.equal(true, follows(seen.get(1), seen.get(0)));
    Check.equal(true, follows(seen.get(2), seen.get(1)));
    Check.equal(true, follows(seen.get(4), seen.get(3)));
    Check.equal(
        List.of(false, false, false, false, true),
        seen.stream().map(c -> c.getChangeFeedMetaData().isTimeToLiveExpired()).toList());
    Check.equal("brief", seen.get(4).toJsonNode().at("/metadata/id").asText());

    stop(host, leases);
    seen.clear();
    feed.upsertItem(Containers.item("before", "a", 4));
    feed.createItem(Containers.item("unseen", "a", 5).put("ttl", 5));
    Check.equal(2, lag(host));
    server.clock("{\"advance\":\"5s\"}");
    host = start("two", feed, leases, b -> b.handleAllVersionsAndDeletesChanges((c, context) -> seen.addAll(c)));
    Check.becomes(3, seen::size);
    ChangeFeedMetaData last = seen.get(2).getChangeFeedMetaData();
    Check.equal(ChangeFeedOperationType.DELETE, last.getOperationType());
    Check.equal(true, last.isTimeToLiveExpired());
    stop(host, leases);
    server.clock("{\"release\":true}");
  }

  /** Who makes the leases locks others out, with an item whose ttl says for how long. */
  private void lockOfTheDead() throws Exception {
    server.clock("{\"freeze\":true}");
    CosmosContainer feed = containers.create(p -> {});
    CosmosContainer leases = leases();
    feed.createItem(Containers.item("1", "a", 1));
    String lock = "localhost_" + database.read().block().getProperties().getResourceId() + "_"
        + feed.read().getProperties().getResourceId() + ".lock";
    leases.createItem(Containers.item(lock, "", 0).put("ttl", LOCK_SECONDS));
    server.clock("{\"advance\":\"" + LOCK_SECONDS + "s\"}");

    List<JsonNode> seen = Collections.synchronizedList(new ArrayList<>());
    ChangeFeedProcessorOptions options = options().setStartFromBeginning(true);
    ChangeFeedProcessor host = start("one", feed, leases, b -> latestVersions(b, seen).options(options));
    Check.becomes(numbers(1, 2), () -> sorted(seen));
    stop(host, leases);
    Check.refused(404, () -> leases.readItem(lock, new PartitionKey(lock), JsonNode.class));
    server.clock("{\"release\":true}");
  }

  private CosmosContainer leases() {
    return containers.create(
        p -> {
          p.setPartitionKeyDefinition(new PartitionKeyDefinition().setPaths(List.of("/id")));
          p.setDefaultTimeToLiveInSeconds(-1);
        });
  }

  private ChangeFeedProcessor start(
      String host, CosmosContainer feed, CosmosContainer leases, UnaryOperator<ChangeFeedProcessorBuilder> handler) {
    ChangeFeedProcessor processor =
        handler
            .apply(new ChangeFeedProcessorBuilder().options(options()))
            .hostName(host)
            .feedContainer(database.getContainer(feed.getId()))
            .leaseContainer(database.getContainer(leases.getId()))
            .buildChangeFeedProcessor();
    processor.start().block();
    return processor;
  }

  /**
   * Stops the only host, and waits until it has let go of its leases. Before that it has to have
   * them all and to have written down what it told: what is under way when it is stopped goes on.
   */
  private static void stop(ChangeFeedProcessor host, CosmosContainer leases) throws Exception {
    int ranges = count(leases, "");
    Check.becomes(ranges, () -> owners(leases).values().stream().mapToInt(n -> n).sum());
    Check.becomes(ranges, () -> begun(leases));
    Check.becomes(0, () -> lag(host));
    host.stop().block();
    Check.becomes(Map.of(), () -> owners(leases));
  }

  /** Returns how many changes a host would have to tell, by its own estimate. */
  private static int lag(ChangeFeedProcessor host) {
    return host.getCurrentState().block().stream().mapToInt(s -> s.getEstimatedLag()).sum();
  }

  private static boolean follows(ChangeFeedProcessorItem change, ChangeFeedProcessorItem before) {
    long previous = change.getChangeFeedMetaData().getPreviousLogSequenceNumber();
    return previous > 0 && previous == before.getChangeFeedMetaData().getLogSequenceNumber();
  }

  /** Counts the leases of each host. */
  private static Map<String, Integer> owners(CosmosContainer leases) {
    Map<String, Integer> owners = new TreeMap<>();
    leases
        .queryItems("SELECT VALUE c.Owner FROM c WHERE IS_STRING(c.Owner)", new CosmosQueryRequestOptions(), String.class)
        .forEach(o -> owners.merge(o, 1, Integer::sum));
    return owners;
  }

  /** Counts the leases that know where they are. */
  private static int begun(CosmosContainer leases) {
    return count(leases, " AND IS_STRING(c.ContinuationToken)");
  }

  /** Counts the leases of which more is so. */
  private static int count(CosmosContainer leases, String more) {
    List<Integer> n = new ArrayList<>();
    leases
        .queryItems(
            "SELECT VALUE 1 FROM c WHERE IS_DEFINED(c.LeaseToken)" + more, new CosmosQueryRequestOptions(), Integer.class)
        .forEach(n::add);
    return n.size();
  }

  /** Creates items, each under a key of its own, so that each range gets some. */
  private static void create(CosmosContainer c, int from, int to) {
    for (int n = from; n < to; n++) {
      c.createItem(Containers.item(String.valueOf(n), "p" + n, n));
    }
  }

  private static List<Integer> numbers(int from, int to) {
    return IntStream.range(from, to).boxed().toList();
  }

  @SafeVarargs
  private static List<Integer> sorted(List<JsonNode>... lists) {
    List<Integer> all = new ArrayList<>();
    for (List<JsonNode> list : lists) {
      synchronized (list) {
        list.forEach(i -> all.add(i.get("n").asInt()));
      }
    }
    Collections.sort(all);
    return all;
  }
}

// SPDX-License-Identifier: MIT

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.GatewayConnectionConfig;
import com.azure.cosmos.models.CosmosBulkOperationResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;

/** The mixed load of ../go/load/mixed.go with this SDK: see there. The argument says whether it is in direct mode. */
final class Mixed {
  private static final int WORKERS = 3;
  private static final long REPORT_MS = 200;
  private static final long PACE_MS = 20;
  private static final int ITEMS = 24; // of a worker
  private static final int PAGE = 5; // a query takes several, so that a split comes between them

  private static final AtomicLong writes = new AtomicLong();
  private static final AtomicLong reads = new AtomicLong();
  private static final AtomicLong errors = new AtomicLong();
  private static volatile String last = "none";
  private static volatile String wrong;
  private static volatile boolean over;

  private final CosmosContainer container;
  private final String by;
  private final int first; // of the kinds of queries
  private final Map<String, Integer> told = new TreeMap<>(); // the version of each item that was acknowledged

  private Mixed(CosmosContainer container, String by, int first) {
    this.container = container;
    this.by = by;
    this.first = first;
  }

  /** Begins a client as the environment says. */
  static CosmosClientBuilder client(boolean direct) throws Exception {
    Load.trust(Path.of(System.getenv("MAYFLY_CERTIFICATE")));
    CosmosClientBuilder b =
        new CosmosClientBuilder()
            .endpoint(System.getenv("MAYFLY_ENDPOINT"))
            .key(System.getenv("MAYFLY_KEY"))
            .consistencyLevel(ConsistencyLevel.SESSION);
    return direct ? b : b.gatewayMode(new GatewayConnectionConfig());
  }

  /** Notes in over, when it is run, that the standard input has ended. */
  static void atEndOfInput(Runnable ended) {
    Thread input =
        new Thread(
            () -> {
              try {
                System.in.transferTo(java.io.OutputStream.nullOutputStream());
              } catch (java.io.IOException e) {
                last = e.toString();
              }
              ended.run();
            });
    input.setDaemon(true);
    input.start();
  }

  static String text(Throwable e) {
    String text = e instanceof CosmosException c ? c.getStatusCode() + "/" + c.getSubStatusCode() + " " + c.getShortMessage() : e.toString();
    return text.replaceAll("\\s+", " ");
  }

  public static void main(String[] args) throws Exception {
    boolean direct = args.length > 0 && args[0].equals("direct");
    List<Mixed> all = new ArrayList<>();
    try (CosmosClient client = client(direct).buildClient()) {
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < WORKERS; i++) {
        Mixed m = new Mixed(client.getDatabase("split").getContainer("c"), (direct ? "direct-" : "java-") + i, 2 * i);
        all.add(m);
        threads.add(new Thread(m::work));
      }
      threads.forEach(Thread::start);
      atEndOfInput(() -> over = true);
      while (!over) {
        print();
        Thread.sleep(REPORT_MS);
      }
      for (Thread t : threads) {
        t.join();
      }
    }
    print();
    for (Mixed m : all) {
      System.out.println("acknowledged " + new ObjectMapper().writeValueAsString(m.told));
    }
    if (wrong != null) {
      System.err.println(wrong);
    }
    System.exit(wrong == null ? 0 : 1);
  }

  private static void print() {
    System.out.println(writes + " " + reads + " " + errors + " " + last);
  }

  private void work() {
    for (int n = 0; !over; n++) {
      round(n);
      try {
        Thread.sleep(PACE_MS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void round(int n) {
    String step = "write";
    try {
      write(n);
      step = "read";
      read(n / 2);
      switch ((first + n) % 5) {
        case 0 -> {
          step = "query";
          all(query("SELECT c.id, c.v FROM c WHERE c.owner = @by", JsonNode.class));
        }
        case 1 -> {
          step = "query in an order";
          ordered();
        }
        case 2 -> {
          step = "count";
          count();
        }
        case 3 -> {
          step = "bulk";
          bulk();
        }
        default -> {
          step = "read of many";
          many();
        }
      }
      reads.incrementAndGet();
    } catch (RuntimeException e) {
      errors.incrementAndGet();
      last = step + ": " + text(e);
    }
  }

  private String id(int n) {
    return by + "-" + n % ITEMS;
  }

  private Map<String, Object> item(String id, int version) {
    return Map.of("id", id, "pk", id, "owner", by, "v", version);
  }

  private void write(int n) {
    String id = id(n);
    int version = told.getOrDefault(id, 0) + 1;
    if (version == 1) {
      container.createItem(item(id, version));
    } else {
      container.upsertItem(item(id, version));
    }
    told.put(id, version);
    writes.incrementAndGet();
  }

  /** Writes several items at once, which the SDK sorts by ranges. */
  private void bulk() {
    List<CosmosItemOperation> operations = new ArrayList<>();
    told.forEach((id, v) -> operations.add(CosmosBulkOperations.getUpsertItemOperation(item(id, v + 1), new PartitionKey(id), id)));
    for (CosmosBulkOperationResponse<String> r : container.<String>executeBulkOperations(operations)) {
      if (r.getResponse() == null || !r.getResponse().isSuccessStatusCode()) {
        throw r.getException() instanceof RuntimeException e ? e : new IllegalStateException("status " + r.getResponse().getStatusCode());
      }
      told.merge(r.getOperation().getContext(), 1, Integer::sum);
      writes.incrementAndGet();
    }
  }

  private void read(int n) {
    check(container.readItem(id(n), new PartitionKey(id(n)), JsonNode.class).getItem());
  }

  private void many() {
    List<CosmosItemIdentity> wanted = told.keySet().stream().map(id -> new CosmosItemIdentity(new PartitionKey(id), id)).toList();
    FeedResponse<JsonNode> a = container.readMany(wanted, JsonNode.class);
    all(a.getResults());
  }

  private <T> List<T> query(String text, Class<T> rows) {
    List<T> seen = new ArrayList<>();
    SqlQuerySpec spec = new SqlQuerySpec(text, List.of(new SqlParameter("@by", by)));
    container.queryItems(spec, new CosmosQueryRequestOptions(), rows).iterableByPage(PAGE).forEach(p -> seen.addAll(p.getResults()));
    return seen;
  }

  private void ordered() {
    List<JsonNode> seen = query("SELECT c.id, c.v FROM c WHERE c.owner = @by ORDER BY c.id", JsonNode.class);
    all(seen);
    List<String> ids = seen.stream().map(i -> i.get("id").asText()).toList();
    if (!ids.equals(ids.stream().sorted().toList())) {
      wrong = "a query in the order of ids shows " + ids;
    }
  }

  private void count() {
    List<Integer> n = query("SELECT VALUE COUNT(1) FROM c WHERE c.owner = @by", Integer.class);
    if (!n.equals(List.of(told.size()))) {
      wrong = "a query counts " + n + " items of " + told.size();
    }
  }

  private void all(List<JsonNode> seen) {
    List<String> ids = seen.stream().map(i -> i.get("id").asText()).toList();
    if (ids.size() != told.size() || !told.keySet().equals(new TreeSet<>(ids))) {
      wrong = ids + " are shown of " + told.keySet();
      return;
    }
    seen.forEach(this::check);
  }

  private void check(JsonNode item) {
    if (item.path("v").asInt() != told.get(item.path("id").asText())) {
      wrong = "it is shown " + item + " where " + told.get(item.path("id").asText()) + " was acknowledged last";
    }
  }
}

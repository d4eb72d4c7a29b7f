// SPDX-License-Identifier: MIT

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.Consumer;

/** Containers that no other check has, and what is put into them. */
final class Containers {
  /** The throughput that makes five physical partitions. */
  static final int FIVE_PARTITIONS = 25_000;

  private static final int ONE_PARTITION = 400;
  private static final ObjectMapper JSON = new ObjectMapper();

  private final CosmosDatabase database;
  private int created;

  Containers(CosmosDatabase database) {
    this.database = database;
  }

  CosmosContainer create(Consumer<CosmosContainerProperties> more) {
    return create(more, ONE_PARTITION);
  }

  CosmosContainer create(Consumer<CosmosContainerProperties> more, int throughput) {
    CosmosContainerProperties p = new CosmosContainerProperties("c" + ++created, "/pk");
    more.accept(p);
    database.createContainer(p, ThroughputProperties.createManualThroughput(throughput));
    return database.getContainer(p.getId());
  }

  /** Creates the items 0 to n-1 under three partition keys. */
  static void fill(CosmosContainer c, int n) {
    for (int i = 0; i < n; i++) {
      c.createItem(item(String.valueOf(i), "p" + i % 3, i));
    }
  }

  static ObjectNode item(String id, String pk, int n) {
    return JSON.createObjectNode().put("id", id).put("pk", pk).put("n", n);
  }
}

// SPDX-License-Identifier: MIT

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosAsyncUser;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPermissionProperties;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosUserProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PermissionMode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;

/** What ends or changes under a client that stays: containers, tokens and the server. */
final class Lives {
  private final Server server;
  private final Containers containers;
  private final CosmosAsyncClient async;
  private final String database;
  private final boolean direct;

  Lives(Server server, Containers containers, CosmosAsyncClient async, String database, boolean direct) {
    this.server = server;
    this.containers = containers;
    this.async = async;
    this.database = database;
    this.direct = direct;
  }

  void all(Map<String, Check> checks) {
    checks.put("requests for items go by the mode of the client", this::mode);
    checks.put("a request is sent once, and nothing waits for replicas", this::once);
    checks.put("a container that is created again under its client is the new one", this::recreated);
    checks.put("a resource token reads and writes what it allows", this::token);
    checks.put("a server that stops and starts again loses no client", () -> restarted(false));
    checks.put("a server that is killed loses nothing that was acknowledged", () -> restarted(true));
  }

  private void mode() {
    CosmosContainer c = containers.create(p -> {});
    c.createItem(Containers.item("1", "a", 1));
    String told = c.readItem("1", new PartitionKey("a"), ObjectNode.class).getDiagnostics().toString();
    Check.equal(direct, told.contains("rntbd://localhost:") || told.contains("rntbd://127.0.0.1:"));
  }

  /** Clients ask again, or for positions, if an answer lacks what they need. */
  private void once() {
    CosmosContainer c = containers.create(p -> {});
    int reads = server.requests("item_read", direct);
    int creates = server.requests("item_create", direct);
    int positions = server.requests("container_position", direct);
    Check.refused(404, () -> c.readItem("1", new PartitionKey("a"), ObjectNode.class));
    c.createItem(Containers.item("1", "a", 1));
    Check.refused(409, () -> c.createItem(Containers.item("1", "a", 1)));
    Check.refused(404, () -> c.readItem("2", new PartitionKey("a"), ObjectNode.class));
    c.readItem("1", new PartitionKey("a"), ObjectNode.class);
    Check.equal(3, server.requests("item_read", direct) - reads);
    Check.equal(2, server.requests("item_create", direct) - creates);
    Check.equal(0, server.requests("container_position", direct) - positions);
  }

  private void recreated() {
    CosmosContainer c = containers.create(p -> {});
    c.createItem(Containers.item("1", "a", 1));
    try (CosmosClient other = server.client(direct).buildClient()) {
      other.getDatabase(database).getContainer(c.getId()).delete();
      other.getDatabase(database).createContainer(new CosmosContainerProperties(c.getId(), "/pk"));
    }
    Check.refused(404, () -> c.readItem("1", new PartitionKey("a"), ObjectNode.class));
    c.createItem(Containers.item("2", "a", 2));
    List<Integer> seen = new ArrayList<>();
    c.queryItems("SELECT VALUE c.n FROM c", new CosmosQueryRequestOptions(), Integer.class).forEach(seen::add);
    Check.equal(List.of(2), seen);
  }

  private void token() {
    CosmosContainer c = containers.create(p -> {});
    c.createItem(Containers.item("1", "a", 1));
    CosmosAsyncDatabase d = async.getDatabase(database);
    for (PermissionMode mode : List.of(PermissionMode.READ, PermissionMode.ALL)) {
      d.createUser(new CosmosUserProperties().setId(mode.toString())).block();
      CosmosAsyncUser u = d.getUser(mode.toString());
      u.createPermission(new CosmosPermissionProperties().setId("p").setPermissionMode(mode).setContainerName(c.getId()), null)
          .block();
      Check.equal(1, u.readAllPermissions().collectList().block().size());
      String token = u.getPermission("p").read(null).block().getProperties().getToken();
      try (CosmosClient holder = server.stranger(direct).resourceToken(token).buildClient()) {
        CosmosContainer held = holder.getDatabase(database).getContainer(c.getId());
        Check.equal(1, held.readItem("1", new PartitionKey("a"), ObjectNode.class).getItem().get("n").asInt());
        if (mode == PermissionMode.READ) {
          Check.refused(403, () -> held.createItem(Containers.item("2", "a", 2)));
        } else {
          held.createItem(Containers.item("2", "a", 2));
        }
      }
    }
  }

  /** Writes while the server ends and starts again. What fails may be there or not. */
  private void restarted(boolean killed) throws Exception {
    CosmosContainer c = containers.create(p -> {});
    TreeSet<Integer> acknowledged = new TreeSet<>();
    AtomicBoolean enough = new AtomicBoolean();
    Thread writer =
        new Thread(
            () -> {
              for (int i = 0; !enough.get(); i++) {
                try {
                  c.createItem(Containers.item("i" + i, "a", i), new PartitionKey("a"), new CosmosItemRequestOptions());
                  synchronized (acknowledged) {
                    acknowledged.add(i);
                  }
                } catch (CosmosException e) {
                  pause();
                }
              }
            });
    writer.start();
    Check.becomes(true, () -> count(acknowledged) > 50);
    server.restart(killed);
    int before = count(acknowledged);
    Check.becomes(true, () -> count(acknowledged) > before + 50);
    enough.set(true);
    writer.join();
    TreeSet<Integer> there = new TreeSet<>();
    c.queryItems("SELECT VALUE c.n FROM c", new CosmosQueryRequestOptions(), Integer.class).forEach(there::add);
    Check.equal(true, there.containsAll(acknowledged));
  }

  private static int count(TreeSet<Integer> acknowledged) {
    synchronized (acknowledged) {
      return acknowledged.size();
    }
  }

  private static void pause() {
    try {
      Thread.sleep(Check.BETWEEN_LOOKS.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}

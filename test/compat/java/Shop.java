// SPDX-License-Identifier: MIT

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;

/**
 * A day of a shop that keeps its customers' carts: a cart belongs to a session of a user of a
 * tenant, and is forgotten half an hour after it was last touched.
 */
final class Shop {
  private static final int HALF_AN_HOUR = 1800;
  private static final int TENANTS = 3;
  private static final int USERS = 4;
  private static final int SESSIONS = 5;
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Turns a cart into an order that is kept, or does nothing at all. */
  private static final String CHECK_OUT =
      """
      function checkOut(cartId, paid) {
        const container = getContext().getCollection();
        const link = container.getAltLink() + "/docs/" + cartId;
        container.readDocument(link, (err, cart) => {
          if (err) throw err;
          const order = { id: "order-" + cart.id, tenant: cart.tenant, user: cart.user, session: cart.session,
            total: cart.total, ttl: -1 };
          container.createDocument(container.getSelfLink(), order, (err) => {
            if (err) throw err;
            if (paid < cart.total) throw new Error("not enough was paid");
            container.deleteDocument(cart._self, (err) => {
              if (err) throw err;
              getContext().getResponse().setBody({ ordered: order.id, change: paid - cart.total });
            });
          });
        });
      }
      """;

  private final Server server;
  private final Containers containers;

  Shop(Server server, Containers containers) {
    this.server = server;
    this.containers = containers;
  }

  void all(Map<String, Check> checks) {
    checks.put("a shop: carts that are imported, found, paid and forgotten", this::day);
  }

  private void day() throws Exception {
    server.clock("{\"freeze\":true}");
    CosmosContainer carts = containers.create(
        p -> {
          p.setPartitionKeyDefinition(
              new PartitionKeyDefinition()
                  .setKind(PartitionKind.MULTI_HASH)
                  .setVersion(PartitionKeyDefinitionVersion.V2)
                  .setPaths(List.of("/tenant", "/user", "/session")));
          p.setDefaultTimeToLiveInSeconds(HALF_AN_HOUR);
        },
        Containers.FIVE_PARTITIONS);
    imports(carts);
    finds(carts);
    changes(carts);
    checksOut(carts);
    forgets(carts);
    server.clock("{\"release\":true}");
  }

  /** Carts come in bulk, over all partitions. */
  private static void imports(CosmosContainer carts) {
    List<CosmosItemOperation> operations = new ArrayList<>();
    for (int n = 0; n < TENANTS * USERS * SESSIONS; n++) {
      operations.add(CosmosBulkOperations.getUpsertItemOperation(cart(n), key(n), n));
    }
    operations.add(CosmosBulkOperations.getCreateItemOperation(cart(60), key(60), 60));
    Check.equal(61L, statuses(carts, operations).values().stream().filter(s -> s == 201).count());
    // One that fails does not hold up the others.
    Check.equal(
        Map.of(0, 409, 1, 200, 2, 200, 60, 204, 61, 404),
        statuses(
            carts,
            List.of(
                CosmosBulkOperations.getCreateItemOperation(cart(0), key(0), 0),
                CosmosBulkOperations.getPatchItemOperation(
                    "cart-1", key(1), CosmosPatchOperations.create().increment("/total", 5), 1),
                CosmosBulkOperations.getReadItemOperation("cart-2", key(2), 2),
                CosmosBulkOperations.getDeleteItemOperation("cart-60", key(60), 60),
                CosmosBulkOperations.getReplaceItemOperation("cart-61", cart(61), key(61), 61))));
  }

  private static Map<Integer, Integer> statuses(CosmosContainer carts, List<CosmosItemOperation> operations) {
    Map<Integer, Integer> statuses = new TreeMap<>();
    carts
        .executeBulkOperations(operations)
        .forEach(r -> statuses.put(r.getOperation().getContext(), r.getResponse().getStatusCode()));
    return statuses;
  }

  /** The front of the key is enough to find what is under it, and several carts are read at once. */
  private static void finds(CosmosContainer carts) {
    Check.equal(20, ids(carts, new PartitionKeyBuilder().add("tenant-1").build()).size());
    Check.equal(
        new TreeSet<>(List.of("cart-1", "cart-13", "cart-25", "cart-37", "cart-49")),
        ids(carts, new PartitionKeyBuilder().add("tenant-1").add("user-1").build()));
    Check.equal(new TreeSet<>(List.of("cart-13")), ids(carts, key(13)));
    Check.equal(new TreeSet<>(), ids(carts, new PartitionKeyBuilder().add("nobody").build()));

    List<CosmosItemIdentity> wanted =
        IntStream.iterate(0, n -> n < 100, n -> n + 7).mapToObj(n -> new CosmosItemIdentity(key(n), "cart-" + n)).toList();
    TreeSet<Integer> read = new TreeSet<>();
    carts.readMany(wanted, ObjectNode.class).getResults().forEach(c -> read.add(c.get("n").asInt()));
    Check.equal(new TreeSet<>(List.of(0, 7, 14, 21, 28, 35, 42, 49, 56)), read);
    Check.equal(12, carts.readManyByPartitionKeys(List.of(key(12), key(60)), ObjectNode.class).iterator().next().get("n").asInt());
  }

  private static TreeSet<String> ids(CosmosContainer carts, PartitionKey under) {
    TreeSet<String> ids = new TreeSet<>();
    CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setPartitionKey(under);
    carts.queryItems("SELECT VALUE c.id FROM c ORDER BY c.n", options, String.class).forEach(ids::add);
    return ids;
  }

  /** A coupon is taken off once. */
  private static void changes(CosmosContainer carts) {
    CosmosPatchOperations coupon = CosmosPatchOperations.create().increment("/total", -10).set("/coupon", "SUMMER");
    CosmosPatchItemRequestOptions once = new CosmosPatchItemRequestOptions();
    once.setFilterPredicate("FROM c WHERE NOT IS_DEFINED(c.coupon)");
    carts.patchItem("cart-3", key(3), coupon, once, ObjectNode.class);
    Check.refused(412, () -> carts.patchItem("cart-3", key(3), coupon, once, ObjectNode.class));
    ObjectNode cart = carts.readItem("cart-3", key(3), ObjectNode.class).getItem();
    Check.equal(93, cart.get("total").asInt());
  }

  /** A stored procedure does all of it or nothing. */
  private static void checksOut(CosmosContainer carts) throws Exception {
    carts.getScripts().createStoredProcedure(new CosmosStoredProcedureProperties("checkOut", CHECK_OUT));
    CosmosStoredProcedureRequestOptions options = new CosmosStoredProcedureRequestOptions().setPartitionKey(key(3));
    Check.refused(400, () -> checkOut(carts, options, 50));
    Check.equal(new TreeSet<>(List.of("cart-3")), ids(carts, key(3)));
    Check.equal(JSON.readTree("{\"ordered\":\"order-cart-3\",\"change\":7}"), JSON.readTree(checkOut(carts, options, 100)));
    Check.equal(new TreeSet<>(List.of("order-cart-3")), ids(carts, key(3)));
  }

  private static String checkOut(CosmosContainer carts, CosmosStoredProcedureRequestOptions options, int paid) {
    return carts.getScripts().getStoredProcedure("checkOut").execute(List.of("cart-3", paid), options).getResponseAsString();
  }

  /** A touched cart lives on, an order is kept, and nothing else is left. */
  private void forgets(CosmosContainer carts) throws Exception {
    server.clock("{\"advance\":\"29m59s\"}");
    carts.patchItem("cart-7", key(7), CosmosPatchOperations.create().set("/touched", true), ObjectNode.class);
    server.clock("{\"advance\":\"1s\"}");
    List<String> left = new ArrayList<>();
    carts.queryItems("SELECT VALUE c.id FROM c ORDER BY c.id", new CosmosQueryRequestOptions(), String.class).forEach(left::add);
    Check.equal(List.of("cart-7", "order-cart-3"), left);
    List<CosmosItemIdentity> some = IntStream.range(5, 10).mapToObj(n -> new CosmosItemIdentity(key(n), "cart-" + n)).toList();
    Check.equal(1, carts.readMany(some, ObjectNode.class).getResults().size());
  }

  private static ObjectNode cart(int n) {
    return JSON.createObjectNode()
        .put("id", "cart-" + n)
        .put("tenant", "tenant-" + n % TENANTS)
        .put("user", "user-" + n % USERS)
        .put("session", "session-" + n)
        .put("n", n)
        .put("total", 100 + n);
  }

  private static PartitionKey key(int n) {
    ObjectNode cart = cart(n);
    return new PartitionKeyBuilder()
        .add(cart.get("tenant").asText())
        .add(cart.get("user").asText())
        .add(cart.get("session").asText())
        .build();
  }
}

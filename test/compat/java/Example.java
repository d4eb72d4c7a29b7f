// SPDX-License-Identifier: MIT

// Keeps a cart for five seconds.

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

class Example {
  public static void main(String[] args) throws Exception {
    try (CosmosClient client =
        new CosmosClientBuilder()
            .endpoint("https://localhost:8081/")
            .key(System.getenv("MAYFLY_KEY"))
            .buildClient()) {
      client.createDatabaseIfNotExists("shop");
      CosmosContainerProperties p = new CosmosContainerProperties("carts", "/customer");
      p.setDefaultTimeToLiveInSeconds(5);
      client.getDatabase("shop").createContainerIfNotExists(p);
      CosmosContainer carts = client.getDatabase("shop").getContainer("carts");

      carts.createItem(new ObjectMapper().createObjectNode().put("id", "1").put("customer", "ada"));
      System.out.println("now: " + carts.readItem("1", new PartitionKey("ada"), ObjectNode.class).getItem());

      Thread.sleep(6000);
      try {
        carts.readItem("1", new PartitionKey("ada"), ObjectNode.class);
      } catch (CosmosException e) {
        System.out.println("six seconds later: " + e.getStatusCode()); // 404
      }
    }
  }
}

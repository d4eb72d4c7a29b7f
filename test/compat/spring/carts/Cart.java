// SPDX-License-Identifier: MIT

package carts;

import com.azure.spring.data.cosmos.core.mapping.Container;
import com.azure.spring.data.cosmos.core.mapping.CosmosUniqueKey;
import com.azure.spring.data.cosmos.core.mapping.CosmosUniqueKeyPolicy;
import com.azure.spring.data.cosmos.core.mapping.PartitionKey;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;

/** A cart of a customer, which is forgotten a minute after it was last touched. */
@Container(containerName = "carts", ru = "25000", timeToLive = 60)
@CosmosUniqueKeyPolicy(uniqueKeys = @CosmosUniqueKey(paths = "/number"))
public class Cart {
  @Id public String id;
  @PartitionKey public String owner;
  public int number;
  @Version public String _etag;

  public Cart() {}

  public Cart(String id, String owner, int number) {
    this.id = id;
    this.owner = owner;
    this.number = number;
  }
}

// SPDX-License-Identifier: MIT

package carts;

import com.azure.spring.data.cosmos.repository.CosmosRepository;
import com.azure.spring.data.cosmos.repository.Query;
import java.util.List;
import org.springframework.data.repository.query.Param;

public interface Carts extends CosmosRepository<Cart, String> {
  List<Cart> findByOwner(String owner);

  List<Cart> findByNumberGreaterThanOrderByNumberDesc(int number);

  long countByOwner(String owner);

  @Query("SELECT * FROM c WHERE c.number < @below ORDER BY c.number")
  List<Cart> below(@Param("below") int below);
}

// SPDX-License-Identifier: MIT

package carts;

import com.azure.spring.data.cosmos.repository.ReactiveCosmosRepository;
import reactor.core.publisher.Flux;

public interface ReactiveCarts extends ReactiveCosmosRepository<Cart, String> {
  Flux<Cart> findByOwner(String owner);
}

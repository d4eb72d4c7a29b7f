// SPDX-License-Identifier: MIT

package carts;

import com.azure.spring.data.cosmos.config.AbstractCosmosConfiguration;
import com.azure.spring.data.cosmos.repository.config.EnableCosmosRepositories;
import com.azure.spring.data.cosmos.repository.config.EnableReactiveCosmosRepositories;
import org.springframework.context.annotation.Configuration;

/** The repositories over a client that whoever starts the context has registered. */
@Configuration
@EnableCosmosRepositories(basePackageClasses = Carts.class)
@EnableReactiveCosmosRepositories(basePackageClasses = Carts.class)
public class Settings extends AbstractCosmosConfiguration {
  @Override
  protected String getDatabaseName() {
    return "spring";
  }
}

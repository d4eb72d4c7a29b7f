// SPDX-License-Identifier: MIT

import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;

/** Follows a container with a change feed processor in direct mode, for ../go/split: see there. */
final class Follow {
  private static final Duration OFTEN = Duration.ofMillis(200);

  public static void main(String[] args) throws Exception {
    CountDownLatch over = new CountDownLatch(1);
    int status = 0;
    try (CosmosAsyncClient client = Mixed.client(true).contentResponseOnWriteEnabled(true).buildAsyncClient()) {
      CosmosAsyncDatabase database = client.getDatabase("split");
      ChangeFeedProcessor host =
          new ChangeFeedProcessorBuilder()
              .hostName("one")
              .options(
                  new ChangeFeedProcessorOptions()
                      .setFeedPollDelay(OFTEN)
                      .setLeaseAcquireInterval(OFTEN)
                      .setMaxItemCount(7)
                      .setStartFromBeginning(true))
              .feedContainer(database.getContainer("c"))
              .leaseContainer(database.getContainer("leases"))
              .handleLatestVersionChanges(changes -> changes.forEach(c -> print(c.getCurrent())))
              .buildChangeFeedProcessor();
      host.start().block();
      Mixed.atEndOfInput(over::countDown);
      over.await();
      host.stop().block();
    } catch (RuntimeException e) {
      System.out.println("0 0 1 " + Mixed.text(e));
      status = 1;
    }
    System.exit(status); // the SDK leaves threads behind
  }

  private static void print(JsonNode item) {
    System.out.println("change " + item.get("id").asText() + " " + item.get("v").asInt());
  }
}

// SPDX-License-Identifier: MIT

import com.azure.cosmos.CosmosException;
import java.time.Duration;
import java.time.Instant;
import java.util.function.Supplier;

/** Something that holds, or throws. */
interface Check {
  Duration LIMIT = Duration.ofSeconds(20);
  Duration BETWEEN_LOOKS = Duration.ofMillis(20);

  void run() throws Exception;

  static void equal(Object want, Object got) {
    if (!want.equals(got)) {
      throw new AssertionError("got " + got + ", want " + want);
    }
  }

  /** Looks until it is so, for what goes on in threads of the SDK. */
  static void becomes(Object want, Supplier<Object> look) throws InterruptedException {
    Instant end = Instant.now().plus(LIMIT);
    while (!want.equals(look.get()) && Instant.now().isBefore(end)) {
      Thread.sleep(BETWEEN_LOOKS.toMillis());
    }
    equal(want, look.get());
  }

  static void refused(int status, Check check) {
    try {
      check.run();
    } catch (CosmosException e) {
      equal(status, e.getStatusCode());
      return;
    } catch (Exception e) {
      throw new AssertionError(e);
    }
    throw new AssertionError("it succeeded, and is to fail with " + status);
  }
}

// SPDX-License-Identifier: MIT

import carts.Cart;
import carts.Carts;
import carts.ReactiveCarts;
import carts.Settings;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.PartitionKey;
import com.azure.spring.data.cosmos.core.query.CosmosPageRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.StreamSupport;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.data.domain.Page;
import org.springframework.data.domain.Pageable;
import org.springframework.data.domain.Sort;

/** Drives the real binary with Spring Data in direct mode, which the SDK uses unless it is told otherwise. */
final class Spring {
  private static final PartitionKey ANN = new PartitionKey("ann");

  private static void crud(Carts carts) {
    carts.save(new Cart("1", "ann", 1));
    Cart one = carts.findById("1", ANN).orElseThrow();
    Check.equal(1, one.number);
    one.number = 10;
    Check.equal(10, carts.save(one).number);
    Check.equal(10, carts.findById("1").orElseThrow().number);
    refused(409, () -> carts.save(new Cart("other", "ann", 10))); // the number is taken in this partition
    carts.deleteById("1", ANN);
    Check.equal(true, carts.findById("1", ANN).isEmpty());
  }

  private static void locking(Carts carts) {
    carts.save(new Cart("1", "ann", 1));
    Cart mine = carts.findById("1", ANN).orElseThrow();
    Cart stale = carts.findById("1", ANN).orElseThrow();
    mine.number = 2;
    carts.save(mine);
    stale.number = 3;
    refused(412, () -> carts.save(stale));
    Check.equal(2, carts.findById("1", ANN).orElseThrow().number);
    carts.deleteAll();
  }

  private static void queries(Carts carts) {
    for (int n = 0; n < 20; n++) {
      carts.save(new Cart("c" + n, "o" + n % 4, n));
    }
    Check.equal(20L, carts.count());
    Check.equal(5, carts.findByOwner("o1").size());
    Check.equal(5L, carts.countByOwner("o2"));
    Check.equal(List.of(19, 18, 17), numbers(carts.findByNumberGreaterThanOrderByNumberDesc(16)));
    Check.equal(List.of(0, 1, 2), numbers(carts.below(3)));
    Check.equal(List.of(3, 7, 11, 15, 19), numbers(carts.findAll(new PartitionKey("o3"))).stream().sorted().toList());
    Check.equal(19, numbers(carts.findAll(Sort.by(Sort.Direction.DESC, "number"))).get(0));
    List<Integer> seen = new ArrayList<>();
    Pageable next = new CosmosPageRequest(0, 7, null, Sort.by("number"));
    for (Page<Cart> page = carts.findAll(next); ; page = carts.findAll(page.nextPageable())) {
      seen.addAll(numbers(page));
      if (!page.hasNext()) {
        break;
      }
    }
    Check.equal(numbers(carts.findAll(Sort.by("number"))), seen);
  }

  private static void reactive(ReactiveCarts carts) {
    carts.save(new Cart("r", "ray", 1)).block();
    Check.equal(1, carts.findById("r", new PartitionKey("ray")).block().number);
    Check.equal(1L, carts.findByOwner("ray").count().block());
    Check.equal(21L, carts.findAll().count().block());
  }

  private static void expiry(Server server, Carts carts) throws Exception {
    carts.deleteAll();
    carts.save(new Cart("1", "ann", 1));
    server.clock("{\"advance\":\"59999ms\"}");
    Check.equal(true, carts.findById("1", ANN).isPresent());
    server.clock("{\"advance\":\"1ms\"}");
    Check.equal(true, carts.findById("1", ANN).isEmpty());
    Check.equal(0L, carts.count());
  }

  private static List<Integer> numbers(Iterable<Cart> carts) {
    return StreamSupport.stream(carts.spliterator(), false).map(c -> c.number).toList();
  }

  /** Expects a status in what the exceptions of Spring wrap. */
  private static void refused(int status, Runnable request) {
    try {
      request.run();
    } catch (RuntimeException e) {
      for (Throwable t = e; t != null; t = t.getCause()) {
        if (t instanceof CosmosException c) {
          Check.equal(status, c.getStatusCode());
          return;
        }
      }
      throw e;
    }
    throw new AssertionError("it succeeded, and is to fail with " + status);
  }

  private static void run(String what, Check check) throws Exception {
    check.run();
    System.out.println("ok  " + what);
  }

  public static void main(String[] args) {
    int status = 1;
    try (Server server = new Server();
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext()) {
      server.clock("{\"freeze\":true}"); // the carts live for a minute, which may be short on a busy machine
      context.registerBean(CosmosClientBuilder.class, () -> server.client(true));
      context.register(Settings.class);
      context.refresh();
      Carts carts = context.getBean(Carts.class);
      run("items are saved, found and deleted, with unique keys", () -> crud(carts));
      run("an item that has changed is not overwritten", () -> locking(carts));
      run("derived and annotated queries, sorting and pages", () -> queries(carts));
      run("a reactive repository", () -> reactive(context.getBean(ReactiveCarts.class)));
      run("items expire on the millisecond, by the annotation", () -> expiry(server, carts));
      status = 0;
    } catch (Throwable t) {
      t.printStackTrace();
    }
    System.exit(status); // the SDK leaves threads behind
  }
}

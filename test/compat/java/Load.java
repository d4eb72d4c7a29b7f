// SPDX-License-Identifier: MIT

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.GatewayConnectionConfig;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Writes and reads items with the SDK until its standard input ends, as load does in ../go: see there. The argument
 * says whether it is in direct mode.
 */
final class Load {
  private static final int WORKERS = 4;
  private static final long REPORT_MS = 200;

  private static final AtomicLong writes = new AtomicLong();
  private static final AtomicLong reads = new AtomicLong();
  private static final AtomicLong errors = new AtomicLong();
  private static volatile String last = "none";
  private static volatile String lost;
  private static volatile boolean over;

  public static void main(String[] args) throws Exception {
    trust(Path.of(System.getenv("MAYFLY_CERTIFICATE")));
    boolean direct = args.length > 0 && args[0].equals("direct");
    CosmosClientBuilder b =
        new CosmosClientBuilder()
            .endpoint(System.getenv("MAYFLY_ENDPOINT"))
            .key(System.getenv("MAYFLY_KEY"))
            .consistencyLevel(ConsistencyLevel.SESSION)
            .preferredRegions(List.of(System.getenv("MAYFLY_REGIONS").split(",")));
    try (CosmosClient client = (direct ? b : b.gatewayMode(new GatewayConnectionConfig())).buildClient()) {
      String name = direct ? "direct" : "java";
      client.createDatabase(name);
      client
          .getDatabase(name)
          .createContainer(new CosmosContainerProperties("c", "/pk"), ThroughputProperties.createManualThroughput(40000));
      CosmosContainer container = client.getDatabase(name).getContainer("c");
      List<Thread> all = new ArrayList<>();
      for (int i = 0; i < WORKERS; i++) {
        String id = Integer.toString(i);
        all.add(new Thread(() -> work(container, id)));
      }
      all.forEach(Thread::start);
      Thread input =
          new Thread(
              () -> {
                try {
                  System.in.transferTo(java.io.OutputStream.nullOutputStream());
                } catch (java.io.IOException e) {
                  last = e.toString();
                }
                over = true;
              });
      input.setDaemon(true);
      input.start();
      while (!over) {
        print();
        Thread.sleep(REPORT_MS);
      }
      for (Thread t : all) {
        t.join();
      }
    }
    print();
    if (lost != null) {
      System.err.println(lost);
    }
    System.exit(lost == null ? 0 : 1);
  }

  private static void work(CosmosContainer container, String id) {
    PartitionKey key = new PartitionKey(id);
    int told = 0; // the last that was acknowledged
    for (int n = 1; !over; n++) {
      try {
        container.upsertItem(Map.of("id", id, "pk", id, "n", n));
        writes.incrementAndGet();
        told = n;
      } catch (RuntimeException e) {
        failed("write", e);
      }
      if (told == 0) {
        continue;
      }
      try {
        JsonNode item = container.readItem(id, key, JsonNode.class).getItem();
        if (item.path("n").asInt() < told) {
          lost = "a read shows " + item + " after the write of " + told + " was acknowledged";
        }
        reads.incrementAndGet();
      } catch (RuntimeException e) {
        failed("read", e);
      }
    }
  }

  private static void failed(String what, RuntimeException e) {
    errors.incrementAndGet();
    String text = e instanceof CosmosException c ? c.getStatusCode() + "/" + c.getSubStatusCode() + " " + c.getShortMessage() : e.toString();
    last = (what + ": " + text).replaceAll("\\s+", " ");
  }

  private static void print() {
    System.out.println(writes + " " + reads + " " + errors + " " + last);
  }

  static void trust(Path certificate) throws Exception {
    KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
    trusted.load(null, null);
    try (InputStream pem = Files.newInputStream(certificate)) {
      trusted.setCertificateEntry("mayfly", CertificateFactory.getInstance("X.509").generateCertificate(pem));
    }
    Path file = Files.createTempFile("trusted", ".p12");
    file.toFile().deleteOnExit();
    try (var out = Files.newOutputStream(file)) {
      trusted.store(out, "trusted".toCharArray());
    }
    System.setProperty("javax.net.ssl.trustStore", file.toString());
    System.setProperty("javax.net.ssl.trustStorePassword", "trusted");
  }
}

// SPDX-License-Identifier: MIT

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.GatewayConnectionConfig;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The real binary, which MAYFLY_BINARY names, on a port that was free, with a clock to move. */
final class Server implements AutoCloseable {
  private static final String KEY =
      "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
  private static final Pattern LISTENS = Pattern.compile("^Mayfly listens on http://\\S+:(\\d+) and https:.*");
  private static final int STOP_LIMIT_SECONDS = 20;

  private final String binary = System.getenv("MAYFLY_BINARY");
  private final Path scratch = Files.createTempDirectory("mayfly-compat");
  private final Path data = scratch.resolve("data");
  private Process process;
  private int port; // 0 for any

  Server() throws Exception {
    start();
    try {
      trust();
    } catch (Exception e) {
      process.destroy();
      throw e;
    }
  }

  private void start() throws Exception {
    ProcessBuilder serve =
        new ProcessBuilder(binary, "serve", "--listen", "127.0.0.1:" + port, "--data", data.toString(), "--test-clock")
            .redirectError(ProcessBuilder.Redirect.INHERIT);
    serve.environment().clear(); // so that no MAYFLY_ variable has a say
    process = serve.start();
    try {
      port = listens();
    } catch (Exception e) {
      process.destroy();
      throw e;
    }
  }

  /** Ends the server, in peace or not, and starts it again with the same data at the same address. */
  void restart(boolean killed) throws Exception {
    if (killed) {
      process.destroyForcibly().waitFor();
    } else {
      stop();
    }
    start();
  }

  /** Begins a client over HTTPS, with the settings that the SDK has by itself or in gateway mode. */
  CosmosClientBuilder client(boolean direct) {
    return stranger(direct).key(KEY);
  }

  /** Begins a client without a credential. */
  CosmosClientBuilder stranger(boolean direct) {
    CosmosClientBuilder b =
        new CosmosClientBuilder().endpoint("https://localhost:" + port + "/").consistencyLevel(ConsistencyLevel.SESSION);
    return direct ? b : b.gatewayMode(new GatewayConnectionConfig());
  }

  /** Moves the time, for example {"advance":"5s"}. */
  void clock(String move) throws Exception {
    HttpResponse<String> answer =
        HttpClient.newHttpClient()
            .send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/_mayfly/clock"))
                    .header("Authorization", "Bearer " + KEY)
                    .POST(HttpRequest.BodyPublishers.ofString(move))
                    .build(),
                HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() != 200) {
      throw new AssertionError(answer.body());
    }
  }

  /**
   * Counts the requests of an operation that the server has answered. If it is a node of a cluster, as in
   * test/compat/cluster, requests in direct mode go to the owners, and others come to this node first.
   */
  int requests(String operation, boolean direct) {
    try {
      int n = 0;
      for (String address : direct ? nodes() : List.of("127.0.0.1:" + port)) {
        Matcher m =
            Pattern.compile("(?m)^mayfly_requests_total\\{operation=\"" + operation + "\",status=\"\\d+\"\\} (\\d+)$")
                .matcher(page(address, "metrics").body());
        while (m.find()) {
          n += Integer.parseInt(m.group(1));
        }
      }
      return n;
    } catch (IOException | InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** Returns the addresses of all nodes, or that of the server if it is alone. */
  private List<String> nodes() throws IOException, InterruptedException {
    HttpResponse<String> cluster = page("127.0.0.1:" + port, "cluster");
    if (cluster.statusCode() == 404) {
      return List.of("127.0.0.1:" + port);
    }
    return Pattern.compile("\"address\":\"https?://([^\"]+)\"").matcher(cluster.body()).results().map(m -> m.group(1)).toList();
  }

  private static HttpResponse<String> page(String address, String name) throws IOException, InterruptedException {
    return HttpClient.newHttpClient()
        .send(
            HttpRequest.newBuilder(URI.create("http://" + address + "/_mayfly/" + name)).header("Authorization", "Bearer " + KEY).build(),
            HttpResponse.BodyHandlers.ofString());
  }

  private int listens() throws IOException {
    BufferedReader lines = process.inputReader();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      Matcher m = LISTENS.matcher(line);
      if (m.matches()) {
        return Integer.parseInt(m.group(1));
      }
    }
    throw new IOException("the server did not say where it listens");
  }

  /** Makes this process trust the certificate that the server exports. */
  private void trust() throws Exception {
    Process p = new ProcessBuilder(binary, "cert", "--data", data.toString()).start();
    KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
    trusted.load(null, null);
    try (InputStream pem = p.getInputStream()) {
      trusted.setCertificateEntry("mayfly", CertificateFactory.getInstance("X.509").generateCertificate(pem));
    }
    Path file = scratch.resolve("trusted.p12");
    try (var out = Files.newOutputStream(file)) {
      trusted.store(out, "trusted".toCharArray());
    }
    System.setProperty("javax.net.ssl.trustStore", file.toString());
    System.setProperty("javax.net.ssl.trustStorePassword", "trusted");
  }

  private void stop() throws Exception {
    process.destroy();
    boolean stopped = process.waitFor(STOP_LIMIT_SECONDS, TimeUnit.SECONDS);
    if (!stopped || process.exitValue() != 0) {
      throw new AssertionError("the server is to stop in peace, and did not");
    }
  }

  @Override
  public void close() throws Exception {
    try {
      stop();
    } finally {
      try (var files = Files.walk(scratch)) {
        files.sorted(Comparator.reverseOrder()).forEach(f -> f.toFile().delete());
      }
    }
  }
}

// SPDX-License-Identifier: MIT
package com.mayflydb.test;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.SecureRandom;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A Mayfly server for a test: with its data in memory, and a clock that the test moves.
 *
 * <pre>{@code
 * try (MayflyServer server = MayflyServer.start()) {
 *     // ... server.endpoint() and server.key() go to CosmosClientBuilder ...
 *     server.advance(Duration.ofHours(24));
 *     // ... and the cart is gone.
 * }
 * }</pre>
 */
public final class MayflyServer implements AutoCloseable {
    private static final Duration START_LIMIT = Duration.ofSeconds(60);
    private static final Duration REQUEST_LIMIT = Duration.ofSeconds(30);
    private static final int MAX_OUTPUT = 64 << 10;
    private static final Pattern CONNECTION = Pattern.compile("AccountEndpoint=([^;]*);.*?AccountKey=([^;]*)");
    private static final Pattern NOW = Pattern.compile("\"nowMs\":(\\d+)");

    private final HttpClient http = HttpClient.newBuilder().connectTimeout(REQUEST_LIMIT).build();
    private final String endpoint;
    private final String key;
    private final Runnable stop;
    private Path trustStore;

    private MayflyServer(String endpoint, String key, Runnable stop) {
        this.endpoint = endpoint.endsWith("/") ? endpoint : endpoint + "/";
        this.key = key;
        this.stop = stop;
    }

    /** Starts the program in MAYFLY_BINARY, or mayfly, with more arguments for mayfly serve. */
    public static MayflyServer start(String... args) {
        String binary = System.getenv("MAYFLY_BINARY");
        return startBinary(binary == null ? "mayfly" : binary, Map.of(), args);
    }

    /** Starts a program, with more variables of its environment and arguments for mayfly serve. */
    public static MayflyServer startBinary(String binary, Map<String, String> environment, String... args) {
        List<String> command = new ArrayList<>(List.of(binary, "serve", "--memory", "--test-clock"));
        command.addAll(Arrays.asList(args));
        command.add("--listen=127.0.0.1:0");
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(environment);
        Process process;
        try {
            process = builder.start();
        } catch (IOException e) {
            throw new IllegalStateException("cannot start " + binary + ": install it, or name it with MAYFLY_BINARY", e);
        }
        Thread kill = new Thread(process::destroyForcibly);
        Runtime.getRuntime().addShutdownHook(kill); // a test that fails leaves no server behind
        StringBuffer output = new StringBuffer();
        CompletableFuture<Matcher> greeted = new CompletableFuture<>();
        Thread reader = new Thread(() -> read(process, output, greeted), "mayfly-output");
        reader.setDaemon(true);
        reader.start();
        Runnable stop = () -> {
            try {
                Runtime.getRuntime().removeShutdownHook(kill);
            } catch (IllegalStateException e) {
                return; // the virtual machine ends, and kills it
            }
            process.destroy();
            try {
                process.waitFor();
            } catch (InterruptedException e) {
                process.destroyForcibly();
                Thread.currentThread().interrupt();
            }
        };
        try {
            Matcher found = greeted.get(START_LIMIT.toSeconds(), TimeUnit.SECONDS);
            String key = found.group(2);
            if (key.equals("<your key>")) {
                key = environment.getOrDefault("MAYFLY_KEY", System.getenv("MAYFLY_KEY"));
            }
            return new MayflyServer(found.group(1), key, stop);
        } catch (ExecutionException | TimeoutException e) {
            stop.run();
            throw new IllegalStateException("mayfly has not started:\n" + output, e);
        } catch (InterruptedException e) {
            stop.run();
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while mayfly started", e);
        }
    }

    private static void read(Process process, StringBuffer output, CompletableFuture<Matcher> greeted) {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (output.length() < MAX_OUTPUT) {
                    output.append(line).append('\n');
                }
                Matcher found = CONNECTION.matcher(line);
                if (line.startsWith("Connection string: ") && found.find()) {
                    greeted.complete(found);
                }
            }
        } catch (IOException e) {
            output.append(e).append('\n');
        }
        greeted.completeExceptionally(new IOException("it has ended"));
    }

    /** Starts an image with docker, with more arguments for mayfly serve. */
    public static MayflyServer startContainer(String image, String... args) {
        byte[] secret = new byte[64];
        new SecureRandom().nextBytes(secret);
        String key = Base64.getEncoder().encodeToString(secret);
        List<String> command = new ArrayList<>(List.of("run", "--detach", "--rm", "--publish=127.0.0.1::8081", "--env=MAYFLY_KEY=" + key, image,
                "serve", "--memory", "--test-clock"));
        command.addAll(Arrays.asList(args));
        command.add("--listen=0.0.0.0:8081");
        String id = docker(command);
        Runnable remove = () -> docker(List.of("rm", "--force", id));
        try {
            String at = docker(List.of("port", id, "8081/tcp")).lines().findFirst().orElseThrow();
            MayflyServer server = new MayflyServer("http://" + at + "/", key, remove);
            server.awaitReady();
            return server;
        } catch (RuntimeException e) {
            remove.run();
            throw e;
        }
    }

    private static String docker(List<String> args) {
        List<String> command = new ArrayList<>(List.of("docker"));
        command.addAll(args);
        try {
            Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
            String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).trim();
            if (process.waitFor() != 0) {
                throw new IllegalStateException("docker " + args.get(0) + ": " + output);
            }
            return output;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", e);
        }
    }

    /** Returns a server that runs already. */
    public static MayflyServer connect(String connectionString) {
        Matcher found = CONNECTION.matcher(connectionString);
        if (!found.find()) {
            throw new IllegalArgumentException("the connection string must have AccountEndpoint and AccountKey");
        }
        return new MayflyServer(found.group(1), found.group(2), () -> { });
    }

    /** The endpoint, over HTTP. */
    public String endpoint() {
        return endpoint;
    }

    /** The endpoint over HTTPS, which is on the same port. */
    public String secureEndpoint() {
        return endpoint.replaceFirst("^http:", "https:").replace("//127.0.0.1:", "//localhost:");
    }

    /** The master key. */
    public String key() {
        return key;
    }

    /** The connection string, over HTTP. */
    public String connectionString() {
        return "AccountEndpoint=" + endpoint + ";AccountKey=" + key + ";";
    }

    /** Returns a store with the certificate to trust for HTTPS and direct mode. */
    public KeyStore trustStore() {
        try {
            byte[] pem = send("GET", "_explorer/emulator.pem", null).getBytes(StandardCharsets.UTF_8);
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            store.setCertificateEntry("mayfly", CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(pem)));
            return store;
        } catch (GeneralSecurityException | IOException e) {
            throw new IllegalStateException("the certificate cannot be read", e);
        }
    }

    /**
     * Has this virtual machine trust the certificate, and no other: it sets javax.net.ssl.trustStore. Call it before
     * the first connection over TLS.
     */
    public void trust() {
        try {
            if (trustStore == null) {
                trustStore = Files.createTempFile("mayfly-", ".p12");
            }
            try (var file = Files.newOutputStream(trustStore)) {
                trustStore().store(file, "changeit".toCharArray());
            }
        } catch (GeneralSecurityException | IOException e) {
            throw new IllegalStateException("the store of certificates cannot be written", e);
        }
        System.setProperty("javax.net.ssl.trustStore", trustStore.toString());
        System.setProperty("javax.net.ssl.trustStorePassword", "changeit");
        System.setProperty("javax.net.ssl.trustStoreType", "PKCS12");
    }

    /** Returns the server's time. */
    public Instant now() {
        return now(send("GET", "_mayfly/clock", null));
    }

    private static Instant now(String status) {
        Matcher found = NOW.matcher(status);
        if (!found.find()) {
            throw new IllegalStateException("the clock has no time: " + status);
        }
        return Instant.ofEpochMilli(Long.parseLong(found.group(1)));
    }

    /** Moves the server's time ahead. */
    public void advance(Duration by) {
        send("POST", "_mayfly/clock", "{\"advance\":\"" + by.toMillis() + "ms\"}");
    }

    /** Moves the server's time ahead to a moment. */
    public void set(Instant moment) {
        send("POST", "_mayfly/clock", "{\"set\":\"" + moment + "\"}");
    }

    /** Stops the server's time. */
    public void freeze() {
        send("POST", "_mayfly/clock", "{\"freeze\":true}");
    }

    /** Lets the server's time go on. */
    public void release() {
        send("POST", "_mayfly/clock", "{\"release\":true}");
    }

    private void awaitReady() {
        Instant until = Instant.now().plus(START_LIMIT);
        while (true) {
            try {
                send("GET", "_mayfly/ready", null);
                return;
            } catch (IllegalStateException e) {
                if (Instant.now().isAfter(until)) {
                    throw e;
                }
            }
            try {
                Thread.sleep(50);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted", e);
            }
        }
    }

    private String send(String method, String page, String body) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(endpoint + page)).timeout(REQUEST_LIMIT).header("Authorization", "Bearer " + key)
                .method(method, body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body));
        try {
            HttpResponse<String> answer = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200) {
                throw new IllegalStateException(page + ": status " + answer.statusCode() + ": " + answer.body());
            }
            return answer.body();
        } catch (IOException e) {
            throw new IllegalStateException("the server at " + endpoint + " does not answer: " + e, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", e);
        }
    }

    /** Stops the server. */
    @Override
    public void close() {
        stop.run();
        if (trustStore != null) {
            try {
                Files.deleteIfExists(trustStore);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}

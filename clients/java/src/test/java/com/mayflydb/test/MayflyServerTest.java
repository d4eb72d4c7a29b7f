// SPDX-License-Identifier: MIT
package com.mayflydb.test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.Locale;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.Test;

class MayflyServerTest {
    private static final DateTimeFormatter DATE = DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.US);

    /** Sends a signed request of the protocol: the package itself needs no SDK. */
    private static int send(MayflyServer server, String method, String path, String kind, String link, String body) throws Exception {
        String date = DATE.format(ZonedDateTime.now(ZoneOffset.UTC));
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(Base64.getDecoder().decode(server.key()), "HmacSHA256"));
        String text = method.toLowerCase(Locale.ROOT) + "\n" + kind + "\n" + link + "\n" + date.toLowerCase(Locale.ROOT) + "\n\n";
        String sig = Base64.getEncoder().encodeToString(mac.doFinal(text.getBytes(StandardCharsets.UTF_8)));
        HttpRequest request = HttpRequest.newBuilder(URI.create(server.endpoint() + path))
                .header("Authorization", URLEncoder.encode("type=master&ver=1.0&sig=" + sig, StandardCharsets.UTF_8))
                .header("x-ms-date", date).header("x-ms-version", "2020-07-15").header("x-ms-documentdb-partitionkey", "[\"a\"]")
                .method(method, body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body)).build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
    }

    @Test
    void anItemExpiresWhenTheClockIsMoved() throws Exception {
        MayflyServer stopped;
        try (MayflyServer server = MayflyServer.start()) {
            stopped = server;
            assertTrue(server.connectionString().matches("AccountEndpoint=http://127\\.0\\.0\\.1:\\d+/;AccountKey=.+;"), server.connectionString());
            assertEquals(201, send(server, "POST", "dbs", "dbs", "", "{\"id\":\"d\"}"));
            assertEquals(201, send(server, "POST", "dbs/d/colls", "colls", "dbs/d",
                    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},\"defaultTtl\":3600}"));
            assertEquals(201, send(server, "POST", "dbs/d/colls/c/docs", "docs", "dbs/d/colls/c", "{\"id\":\"1\",\"pk\":\"a\"}"));
            assertEquals(200, send(server, "GET", "dbs/d/colls/c/docs/1", "docs", "dbs/d/colls/c/docs/1", null));
            server.freeze();
            Instant before = server.now();
            server.advance(Duration.ofMinutes(59));
            assertEquals(200, send(server, "GET", "dbs/d/colls/c/docs/1", "docs", "dbs/d/colls/c/docs/1", null));
            server.advance(Duration.ofSeconds(61));
            assertEquals(404, send(server, "GET", "dbs/d/colls/c/docs/1", "docs", "dbs/d/colls/c/docs/1", null));
            assertEquals(Duration.ofSeconds(59 * 60 + 61), Duration.between(before, server.now()));
            Instant far = Instant.parse("2100-01-01T00:00:00Z");
            server.set(far);
            assertEquals(far, server.now());
            server.release();
            assertTrue(MayflyServer.connect(server.connectionString()).now().compareTo(far) >= 0);
            assertThrows(IllegalStateException.class, () -> server.set(before));
        }
        assertThrows(IllegalStateException.class, stopped::now);
    }

    @Test
    void itsCertificateIsTrustedOverHTTPS() throws Exception {
        try (MayflyServer server = MayflyServer.start()) {
            TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(server.trustStore());
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, trust.getTrustManagers(), null);
            HttpRequest request = HttpRequest.newBuilder(URI.create(server.secureEndpoint() + "_mayfly/health")).build();
            HttpClient trusting = HttpClient.newBuilder().sslContext(context).build();
            assertEquals(200, trusting.send(request, HttpResponse.BodyHandlers.discarding()).statusCode());
            assertThrows(SSLException.class, () -> HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding()));
        }
    }

    @Test
    void aServerThatCannotStartSaysWhy() {
        IllegalStateException missing = assertThrows(IllegalStateException.class, () -> MayflyServer.startBinary("no-such-program", Map.of()));
        assertTrue(missing.getMessage().contains("MAYFLY_BINARY"), missing.getMessage());
        IllegalStateException flag = assertThrows(IllegalStateException.class, () -> MayflyServer.start("--no-such-flag"));
        assertTrue(flag.getMessage().contains("no-such-flag"), flag.getMessage());
        assertThrows(IllegalArgumentException.class, () -> MayflyServer.connect("nothing"));
    }
}

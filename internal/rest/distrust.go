// SPDX-License-Identifier: MIT

// What the log says about clients that do not trust the certificate. Their own messages often
// hide it: the Java SDK in direct mode retries for minutes, and then reports a timeout.

package rest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strings"
	"time"
)

// distrustAlerts are what clients send that refuse a certificate, as crypto/tls words them.
var distrustAlerts = []string{
	"bad certificate", "unsupported certificate", "certificate expired", "unknown certificate", "unknown certificate authority",
}

// trustRemedy says what to set.
const trustRemedy = "have the client trust the certificate of http://HOST:PORT/_explorer/emulator.pem, or of mayfly cert, and use one of its names (--tls-name adds more). " +
	"Node.js: NODE_EXTRA_CA_CERTS=FILE. Java: keytool -importcert -cacerts -alias mayfly -noprompt -storepass changeit -file FILE. " +
	"Python and Go: SSL_CERT_FILE=FILE. .NET: HttpClientFactory with a handler that accepts it. " +
	"Without TLS: an endpoint that begins with http://, in Java and .NET together with gateway mode, since direct mode always uses TLS, " +
	"and in Java also with -DCOSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED=true"

// distrusts reports whether a handshake failed because the client refused the certificate.
func distrusts(err error) bool {
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error" &&
		slices.Contains(distrustAlerts, strings.TrimPrefix(alert.Err.Error(), "tls: "))
}

// handshakeFailed logs that a client began with TLS and did not go on.
func (s *Splitter) handshakeFailed(c *splitConn, err error) {
	if !distrusts(err) {
		s.options.Logger.Debug("TLS handshake failed", "address", c.RemoteAddr(), "error", err)
		return
	}
	if omitted, ok := s.distrust.Take(time.Now()); ok {
		s.options.Logger.Warn("a client does not trust the certificate of this server, or asked for another name", "client", c.RemoteAddr().String(),
			"error", err, "names", s.certificateNames(), "remedy", trustRemedy, "omitted", omitted)
	}
}

// certificateNames returns the names and addresses that the certificate is for.
func (s *Splitter) certificateNames() (names []string) {
	if s.config.GetCertificate == nil {
		return nil
	}
	c, err := s.config.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil || c == nil || len(c.Certificate) == 0 {
		return nil
	}
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		return nil
	}
	names = slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// SPDX-License-Identifier: MIT

// The certificate of a running server: where it comes from, and how it is replaced before it
// ends, without a restart.

package mayfly

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mayflydb/mayfly/internal/rest"
)

// ErrNoCertificate means that a server has not made its certificate yet.
var ErrNoCertificate = rest.ErrNoCertificate

const (
	// certificateEvery is how often a server looks whether it needs another certificate.
	certificateEvery = time.Minute
	// renewRunning is how long before its end a running server replaces a certificate that
	// it has made. Clients must then trust the new one, so it waits for as long as it can;
	// a start replaces it thirty days before.
	renewRunning = 24 * time.Hour
	// From warnBefore on, the log tells of the end of a certificate, once in warnEvery.
	warnBefore = 30 * 24 * time.Hour
	warnEvery  = 24 * time.Hour
)

// Certificate returns, in PEM, the certificate that clients of the server with its data in
// dir must trust.
func Certificate(dir string) ([]byte, error) { return rest.CertificatePEM(dir) }

// TrustedCertificate returns, in PEM, the certificate that clients must trust.
func (s *Server) TrustedCertificate() []byte { return s.handler.Root() }

// checkCertificate refuses settings that do not fit together.
func (o Options) checkCertificate() error {
	switch {
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return errors.New("a certificate needs its key: give both --tls-cert and --tls-key")
	case o.TLSCert != "" && len(o.TLSNames) > 0:
		return errors.New("--tls-name is for the certificate that the server makes: leave it out with --tls-cert")
	}
	for _, name := range o.TLSNames {
		if err := rest.CheckName(name); err != nil {
			return err
		}
	}
	return nil
}

// certificate returns the server's certificate: the given one, or one that it makes. One that
// it has made is replaced before its end by the given time, or by 30 days if that is 0.
func (o Options) certificate(now time.Time, before time.Duration) (tls.Certificate, error) {
	var root *rest.Root
	if o.Cluster != nil {
		var err error
		if root, err = o.root(now); err != nil {
			return tls.Certificate{}, err
		}
	}
	switch {
	case o.TLSCert != "":
		return rest.LoadCertificate(o.TLSCert, o.TLSKey, now)
	case root != nil:
		return o.nodeCertificate(root, now)
	case !o.Memory:
		return rest.LoadOrMakeCertificate(o.Dir, now, rest.CertificateWish{Names: o.TLSNames, Before: before})
	}
	cert, key, err := rest.MakeCertificate(now, o.TLSNames...)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// keeper replaces the certificate of a running server.
type keeper struct {
	server  *Server
	ends    time.Time
	changed [2]time.Time // when the given files were last written
	warned  time.Time
}

// keepCertificate starts to replace the certificate when that is due.
func (s *Server) keepCertificate(c tls.Certificate) {
	k := &keeper{server: s, ends: rest.CertificateEnds(c), changed: s.options.certificateChanged()}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s.stopKeeping = func() {
		cancel()
		<-ended
	}
	go func() {
		defer close(ended)
		tick := time.NewTicker(certificateEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				k.look(time.Now())
			}
		}
	}()
}

// certificateChanged returns when the files of a given certificate were last written.
func (o Options) certificateChanged() (at [2]time.Time) {
	for i, name := range []string{o.TLSCert, o.TLSKey} {
		if info, err := os.Stat(name); err == nil {
			at[i] = info.ModTime()
		}
	}
	return at
}

// look replaces the certificate if that is due. If it cannot, the server goes on with the one
// that it has, and the log says so.
func (k *keeper) look(now time.Time) {
	o := k.server.options
	given := o.TLSCert != ""
	if given {
		changed := o.certificateChanged()
		if changed == k.changed {
			k.warn(now)
			return
		}
		k.changed = changed
	} else if now.Before(k.ends.Add(-renewRunning)) {
		k.warn(now)
		return
	}
	c, err := o.certificate(now, renewRunning)
	if err != nil {
		o.Logger.Error("the certificate cannot be replaced: the server goes on with the one that it has", "error", err, "ends", k.ends.UTC().Format(time.RFC3339))
		return
	}
	k.server.http.SetCertificate(c)
	k.server.handler.ShowCertificate(c)
	k.ends, k.warned = rest.CertificateEnds(c), now
	text := "the server has a new certificate"
	if !given {
		text += ", which clients must trust: get it with mayfly cert, or from /_explorer/emulator.pem"
	}
	o.Logger.Warn(text, "ends", k.ends.UTC().Format(time.RFC3339))
}

// warn tells of the end of the certificate.
func (k *keeper) warn(now time.Time) {
	if now.Before(k.ends.Add(-warnBefore)) || now.Sub(k.warned) < warnEvery {
		return
	}
	k.warned = now
	remedy := fmt.Sprintf("restart the server for a new one, or it makes one %v before the end: clients must trust that", renewRunning)
	if k.server.options.TLSCert != "" {
		remedy = "replace the files of --tls-cert and --tls-key: the server reads them again"
	}
	k.server.options.Logger.Warn("the certificate is about to end", "ends", k.ends.UTC().Format(time.RFC3339), "remedy", remedy)
}

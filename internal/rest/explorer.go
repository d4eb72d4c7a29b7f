// SPDX-License-Identifier: MIT

// The explorer: the pages that people see in a browser, under /_explorer/. Its files are
// served as they are written. Its data comes from the requests of the protocol and from
// Mayfly's own pages, under /_explorer/api/, with the rights of the browser's session.

package rest

import (
	"crypto/sha256"
	"crypto/tls"
	"embed"
	"encoding/hex"
	"encoding/pem"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/mayflydb/mayfly/internal/api"
	"github.com/mayflydb/mayfly/internal/docs"
)

const (
	explorerPrefix = "/_explorer/"
	explorerAPI    = explorerPrefix + "api"
	// headerExplorer is sent with every request of the explorer's scripts. A page of another
	// origin could send it only if an answer allowed that, and none does.
	headerExplorer = "X-Mayfly-Explorer"
	// offeredName is where the service's emulators offer their certificate.
	offeredName = "emulator.pem"
	// maxSessionBody is the longest body of a request to sign in.
	maxSessionBody = 4 << 10
)

var (
	errSignedOut   = api.Refuse(401, 0, "Nobody is signed in to the explorer, or the session has ended. Sign in again.")
	errWrongKey    = api.Refuse(401, 0, "This is not a key of this server.")
	errLinkUsed    = api.Refuse(401, 0, "This link has been used, or is too old. Make another with: mayfly explorer")
	errOtherOrigin = api.Refuse(403, 0, "Only the explorer's own pages may make this request.")
	errInClear     = api.Refuse(403, 0, "From other machines the explorer is open over HTTPS only: open the same address with https://.")
)

// explorerPolicy allows what the server itself serves, and nothing else: no inline scripts or
// styles, no other hosts, no frames. Trusted types refuse text as markup.
const explorerPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// explorerHeaders go with every answer under /_explorer/.
var explorerHeaders = []field{
	{"Content-Security-Policy", explorerPolicy},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
}

//go:embed explorer/*.js explorer/*.css explorer/*.html explorer/*.svg
var explorerFiles embed.FS

// explorerFile is a file of the explorer.
type explorerFile struct {
	contentType, tag string
	body             []byte
}

func newExplorerFile(contentType string, body []byte) explorerFile {
	sum := sha256.Sum256(body)
	return explorerFile{contentType, `"` + hex.EncodeToString(sum[:8]) + `"`, body}
}

// explorerSite has the explorer's files by their paths. It is made when it is first needed.
var explorerSite = sync.OnceValue(func() map[string]explorerFile {
	site := map[string]explorerFile{}
	err := fs.WalkDir(explorerFiles, "explorer", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := explorerFiles.ReadFile(name)
		if err != nil {
			return err
		}
		site[strings.TrimPrefix(name, "explorer/")] = newExplorerFile(contentTypeOf(name), body)
		return nil
	})
	if err != nil {
		panic(err) // the files are part of the binary
	}
	site[""] = site["index.html"]
	return site
})

// contentTypeOf returns the type of a file by its name. The machine's own table of types
// has no say about scripts and styles.
func contentTypeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

// wantsPage reports whether a request is that of a person who opened the server's address in
// a browser. SDKs ask for JSON.
func (h *Handler) wantsPage(r *http.Request) bool {
	return h.sessions != nil && (r.URL.Path == "/" || r.URL.Path+"/" == explorerPrefix) &&
		(r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		headerOf(r, headerAuthorization) == "" && strings.Contains(headerOf(r, "Accept"), "text/html")
}

// leadToExplorer answers a person's browser.
func (x *exchange) leadToExplorer() error {
	x.operation = opAdmin
	x.setWire("Location", explorerPrefix)
	x.setWire("Cache-Control", "no-store")
	x.writeEmpty(http.StatusSeeOther)
	return nil
}

// setExplorerHeaders sets the headers that go with every answer of the explorer.
func (x *exchange) setExplorerHeaders() {
	for _, f := range explorerHeaders {
		x.setWire(f.name, f.value)
	}
	x.setWire("Cache-Control", "no-store")
}

// serveExplorer answers a request under /_explorer/.
func (x *exchange) serveExplorer(name string) error {
	x.operation = opAdmin
	if name == offeredName && x.r.Method == http.MethodGet {
		if root := x.h.root.Load(); root != nil { // TLS shows it to everybody anyway
			x.setExplorerHeaders()
			x.writeAs(http.StatusOK, "application/x-pem-file", *root)
			return nil
		}
	}
	if x.h.sessions == nil {
		return errNoRoute
	}
	x.setExplorerHeaders()
	_, data := strings.CutPrefix(x.r.URL.Path, explorerAPI+"/")
	if page, ok := strings.CutPrefix(x.r.URL.Path+"/", docs.Prefix); ok && x.h.docs != nil {
		return x.serveDocs(strings.TrimSuffix(page, "/"))
	}
	if !data && name != "session" {
		return x.serveExplorerFile(name)
	}
	if !x.fromExplorer() {
		return errOtherOrigin
	}
	if x.r.TLS == nil && !fromThisMachine(x.r) && !x.h.emulator {
		return errInClear
	}
	if !data {
		return x.serveSession()
	}
	return x.serveExplorerData()
}

// ShowCertificate has the explorer offer the certificate that clients must trust: the last
// of the server's chain. It is called before the first request, and when that changes.
func (h *Handler) ShowCertificate(c tls.Certificate) {
	if n := len(c.Certificate); n > 0 {
		root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[n-1]})
		h.root.Store(&root)
	}
}

// Root returns the certificate that clients must trust, in PEM; nil if it is not known.
func (h *Handler) Root() []byte {
	if root := h.root.Load(); root != nil {
		return *root
	}
	return nil
}

func (x *exchange) serveExplorerFile(name string) error {
	file, ok := explorerSite()[name]
	if !ok {
		return errNoRoute
	}
	return x.writeFile(file)
}

// serveDocs answers with a page of the docs. They are public: nobody need sign in.
func (x *exchange) serveDocs(name string) error {
	file, ok, err := x.h.docs.File(name)
	switch {
	case err != nil:
		return err
	case !ok:
		return errNoRoute
	}
	return x.writeFile(newExplorerFile(file.ContentType, file.Body))
}

// writeFile answers with a file, unless the browser has it.
func (x *exchange) writeFile(file explorerFile) error {
	switch {
	case x.r.Method != http.MethodGet && x.r.Method != http.MethodHead:
		return api.ErrMethod
	}
	x.setWire("Cache-Control", "no-cache")
	x.set(headerETag, file.tag)
	if headerOf(x.r, "If-None-Match") == file.tag {
		x.writeEmpty(http.StatusNotModified)
		return nil
	}
	x.writeAs(http.StatusOK, file.contentType, file.body)
	return nil
}

// fromExplorer reports whether a request was made by the explorer's own scripts. Browsers
// say with every change where it comes from.
func (x *exchange) fromExplorer() bool {
	if headerOf(x.r, headerExplorer) == "" {
		return false
	}
	site, origin := headerOf(x.r, "Sec-Fetch-Site"), headerOf(x.r, "Origin")
	if site != "" && site != "same-origin" {
		return false
	}
	if origin != "" {
		u, err := url.Parse(origin)
		return err == nil && u.Host != "" && strings.EqualFold(u.Host, x.r.Host)
	}
	return site != "" || x.r.Method == http.MethodGet
}

// fromThisMachine reports whether a connection comes from this machine.
func fromThisMachine(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// sessionAnswer says what a browser's session may do.
type sessionAnswer struct {
	SignedIn bool `json:"signedIn"`
	ReadOnly bool `json:"readOnly"`
	// OneClick says that the well-known key opens this server, so that nobody need type it.
	OneClick bool `json:"oneClick"`
}

// sessionRequest is the body of a request to sign in. Exactly one field is given.
type sessionRequest struct {
	Key      string `json:"key"`
	Code     string `json:"code"`     // of a link
	OneClick bool   `json:"oneClick"` // with the well-known key
}

// serveSession signs in and out, and says whether the browser is signed in.
func (x *exchange) serveSession() error {
	switch x.r.Method {
	case http.MethodGet:
		by, ok := x.session()
		return x.writeSession(by, ok)
	case http.MethodPost:
		return x.signIn()
	case http.MethodDelete:
		if c, err := x.r.Cookie(cookieName(x.r)); err == nil {
			x.h.sessions.end(c.Value)
		}
		x.setWire("Set-Cookie", cookie(x.r, ""))
		return x.writeSession(0, false)
	}
	return api.ErrMethod
}

func (x *exchange) signIn() error {
	body, err := x.bodyUpTo(maxSessionBody)
	if err != nil {
		return err
	}
	var given sessionRequest
	if err := decodeStrict(body, &given); err != nil {
		return api.Invalid(`The body must be one of {"key":"…"}, {"code":"…"} and {"oneClick":true}.`)
	}
	by, err := x.credential(given)
	if err != nil {
		_ = x.unauthenticated(api.ErrBadAuthorization) // counts it, and slows down guesses
		return err
	}
	x.known = true
	x.Audit(by, "explorer sign in")
	x.setWire("Set-Cookie", cookie(x.r, x.h.sessions.begin(by)))
	return x.writeSession(by, true)
}

func (x *exchange) credential(given sessionRequest) (api.Credential, error) {
	switch given {
	case sessionRequest{Code: given.Code}:
		return x.h.sessions.redeem(given.Code)
	case sessionRequest{OneClick: true}:
		given.Key = api.WellKnownKey
	}
	by, err := x.h.service.Keys.Key(strings.Join(strings.Fields(given.Key), ""))
	if err != nil {
		return 0, errWrongKey
	}
	return by, nil
}

func (x *exchange) writeSession(by api.Credential, signedIn bool) error {
	_, err := x.h.service.Keys.Key(api.WellKnownKey)
	return x.writeJSON(sessionAnswer{SignedIn: signedIn, ReadOnly: signedIn && by == api.ByReadOnlyKey, OneClick: err == nil})
}

// session returns the credential of the browser's session.
func (x *exchange) session() (api.Credential, bool) {
	c, err := x.r.Cookie(cookieName(x.r))
	if err != nil {
		return 0, false
	}
	return x.h.sessions.find(c.Value)
}

// serveExplorerData answers a request of the protocol, or for one of Mayfly's own pages,
// with the rights of the browser's session.
func (x *exchange) serveExplorerData() error {
	by, ok := x.session()
	if !ok {
		return errSignedOut
	}
	x.signedIn, x.by = true, by
	u := *x.r.URL
	u.Path, u.RawPath = strings.TrimPrefix(u.Path, explorerAPI), strings.TrimPrefix(u.RawPath, explorerAPI)
	x.r = x.r.WithContext(x.r.Context()) // a copy
	x.r.URL, x.Path = &u, u.EscapedPath()
	return x.route()
}

// signed returns the headers with which a request of a session is passed on to another node,
// which knows nothing of the session: with a credential of the same rights.
func (x *exchange) signed() http.Header {
	header := x.r.Header.Clone()
	header.Del("Cookie")
	if strings.HasPrefix(x.r.URL.Path, adminPrefix) {
		header.Set(headerAuthorization, "Bearer "+x.h.service.Keys.Text(x.by))
		return header
	}
	rt, _ := parseURL(x.r.URL)
	p := api.Proof{Method: x.r.Method, Resource: rt.kind, Link: rt.link, MsDate: x.Began.UTC().Format(http.TimeFormat)}
	header.Set("X-Ms-Date", p.MsDate)
	header.Set(headerAuthorization, url.QueryEscape(x.h.service.Keys.Sign(x.by, &p)))
	return header
}

// linkAnswer is the answer with a link to sign in with.
type linkAnswer struct {
	Path    string `json:"path"`
	Seconds int    `json:"seconds"` // for which it works
}

// serveLink answers with a link that signs in once. The code is behind the #, which browsers
// send to no server and write into no log.
func (x *exchange) serveLink(by api.Credential) error {
	switch {
	case x.h.sessions == nil:
		return errNoRoute
	case x.r.Method != http.MethodPost:
		return api.ErrMethod
	}
	return x.writeJSON(linkAnswer{explorerPrefix + "#code=" + x.h.sessions.link(by), int(linkLife.Seconds())})
}

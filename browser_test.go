// SPDX-License-Identifier: MIT

// A browser for tests: Chromium without a window, driven over a pipe with its DevTools
// protocol.

package mayfly

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is a running Chromium with one page.
type browser struct {
	t       testing.TB
	to      *os.File
	session string // of the page

	mu       sync.Mutex
	last     int
	answers  map[int]chan devtoolsMessage
	problems []string // errors of scripts, and what the policy refused
}

type devtoolsMessage struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// requireBrowser is set where the tests in a browser run, and must not be skipped: together they
// take as long as all others.
const requireBrowser = "MAYFLY_REQUIRE_BROWSER"

// screenshots names the directory that screenshots go to, if any.
const screenshots = "MAYFLY_SCREENSHOTS"

// axeFile names the file of axe-core, which looks for what keeps people out. It is not part of
// the tree; .ci/run gets it from npm.
const axeFile = "MAYFLY_AXE"

// startBrowser starts Chromium, or skips the test where there is none. The browser ends with
// the test, which fails if a script did.
func startBrowser(t testing.TB, flags ...string) *browser {
	t.Helper()
	if os.Getenv(requireBrowser) == "" {
		t.Skip("SKIPPED: only if " + requireBrowser + " is set, as make explorer does")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("there is no chromium, and " + requireBrowser + " is set")
	}
	fromUs, to, err1 := os.Pipe()
	from, fromIt, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe", "--user-data-dir=" + t.TempDir(),
		"--window-size=1280,800", "--hide-scrollbars", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
	}, append(flags, "about:blank")...)...)
	cmd.ExtraFiles = []*os.File{fromUs, fromIt} // its descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = fromUs.Close(), fromIt.Close()
	b := &browser{t: t, to: to, answers: map[int]chan devtoolsMessage{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.read(bufio.NewReader(from))
	}()
	t.Cleanup(func() {
		b.mu.Lock()
		if len(b.problems) > 0 {
			t.Errorf("problems in the browser:\n%s", strings.Join(b.problems, "\n"))
		}
		b.mu.Unlock()
		_ = to.Close() // on which it ends
		done := make(chan struct{})
		go func() { _ = cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
		_ = from.Close()
		<-ended
	})
	b.open()
	return b
}

// open opens the page.
func (b *browser) open() {
	b.t.Helper()
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
}

// read passes answers on, and notes problems, until the browser ends.
func (b *browser) read(r *bufio.Reader) {
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			for _, answer := range b.answers {
				close(answer)
			}
			b.answers = nil
			b.mu.Unlock()
			return
		}
		var m devtoolsMessage
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if answer := b.answers[m.ID]; m.ID != 0 && answer != nil {
			answer <- m
			delete(b.answers, m.ID)
		} else if m.Method == "Runtime.exceptionThrown" || m.Method == "Log.entryAdded" && strings.Contains(string(m.Params), `"source":"security"`) {
			b.problems = append(b.problems, string(m.Params))
		}
		b.mu.Unlock()
	}
}

// call sends a command and waits for its answer.
func (b *browser) call(method string, params any, into any) {
	b.t.Helper()
	if params == nil {
		params = map[string]any{}
	}
	raw, err := json.Marshal(params)
	if err != nil {
		b.t.Fatal(err)
	}
	answer := make(chan devtoolsMessage, 1)
	b.mu.Lock()
	if b.answers == nil {
		b.mu.Unlock()
		b.t.Fatal("the browser has ended")
	}
	b.last++
	m := devtoolsMessage{ID: b.last, Method: method, Params: raw, SessionID: b.session}
	b.answers[m.ID] = answer
	b.mu.Unlock()
	text, err := json.Marshal(m)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.t.Fatal(err)
	}
	select {
	case got, ok := <-answer:
		switch {
		case !ok:
			b.t.Fatalf("%s: the browser has ended", method)
		case got.Error != nil:
			b.t.Fatalf("%s: %s", method, got.Error.Message)
		case into != nil:
			if err := json.Unmarshal(got.Result, into); err != nil {
				b.t.Fatal(err)
			}
		}
	case <-time.After(waitLimit):
		b.t.Fatalf("%s: no answer", method)
	}
}

// eval returns the value of an expression in the page, which may be a promise.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	var got struct {
		Result           struct{ Value any }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got)
	if e := got.ExceptionDetails; e != nil {
		b.t.Fatalf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	return got.Result.Value
}

// visit loads an address.
func (b *browser) visit(url string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.await(`document.readyState === "complete" && location.href !== "about:blank"`)
}

// pageWait bounds every wait for something that the page must show.
const pageWait = time.Minute

// await waits until a condition holds in the page.
func (b *browser) await(condition string) {
	b.t.Helper()
	// The page itself waits, unless it is replaced by another meanwhile.
	deadline := time.Now().Add(pageWait)
	for time.Now().Before(deadline) {
		if b.eval(`(() => { try { return Boolean(`+condition+`) } catch { return false } })()`) == true {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Fatalf("the page never had: %s\nit shows: %.2000v", condition, b.eval(`document.body.innerText`))
}

// literal returns a text as a literal of a script.
func literal(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// button is the expression for the visible button or link with a text, in the topmost dialog if there is one.
func button(text string) string {
	return fmt.Sprintf(`[...([...document.querySelectorAll("dialog[open]")].at(-1) ?? document).querySelectorAll("button, a, summary")].find(b => b.textContent.trim() === %s && b.checkVisibility() && !b.disabled)`, literal(text))
}

// press waits for a button or link with a text, and presses it.
func (b *browser) press(text string) {
	b.t.Helper()
	b.await(button(text))
	b.eval(button(text) + ".click()")
}

// field is the expression for the field with a label.
func field(label string) string {
	return fmt.Sprintf(`[...([...document.querySelectorAll("dialog[open]")].at(-1) ?? document).querySelectorAll("input, select, textarea")].find(i => (i.ariaLabel ?? i.closest("label")?.firstElementChild?.textContent ?? "") === %[1]s || i.closest("label")?.textContent === %[1]s)`, literal(label))
}

// write writes a text into the field with a label, as a person would.
func (b *browser) write(label, text string) {
	b.t.Helper()
	b.await(field(label))
	b.eval(`(f => { f.focus(); f.select?.() })(` + field(label) + `)`)
	b.call("Input.insertText", map[string]any{"text": text}, nil)
}

// upload chooses a file with the given text.
func (b *browser) upload(label, name, text string) {
	b.t.Helper()
	b.await(field(label))
	b.eval(fmt.Sprintf(`(f => { const d = new DataTransfer(); d.items.add(new File([%s], %s)); f.files = d.files; f.dispatchEvent(new Event("change")) })(%s)`, literal(text), literal(name), field(label)))
}

// shows waits until the page shows a text.
func (b *browser) shows(text string) {
	b.t.Helper()
	b.await(fmt.Sprintf(`document.body.innerText.includes(%s)`, literal(text)))
}

// lacks waits until the page no longer shows a text.
func (b *browser) lacks(text string) {
	b.t.Helper()
	b.await(fmt.Sprintf(`!document.body.innerText.includes(%s)`, literal(text)))
}

// resize sets the size of the window, and the colours.
func (b *browser) resize(width, height int, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// audit finds controls without a name, pictures without a text, and tables without heads.
func (b *browser) audit(where string) {
	b.t.Helper()
	found := b.eval(`[
		...[...document.querySelectorAll("button, a[href], input, select, textarea, [role=region], dialog")].filter(e => e.checkVisibility() &&
			!(e.ariaLabel || e.labels?.length && [...e.labels].some(l => l.innerText.trim()) || !/^(INPUT|SELECT|TEXTAREA|DIALOG)$/.test(e.tagName) && e.role !== "region" && e.innerText.trim())).map(e => "no name: " + e.outerHTML.slice(0, 200)),
		...[...document.querySelectorAll("img:not([alt]), svg[role=img]:not([aria-label])")].map(e => "no text: " + e.outerHTML.slice(0, 200)),
		...[...document.querySelectorAll("table")].filter(e => !e.querySelector("th")).map(e => "no heads: " + e.outerHTML.slice(0, 200)),
		...(document.querySelectorAll("main").length === 1 && document.querySelectorAll("h1").length === 1 ? [] : ["not one main part with one heading"]),
		...[...document.querySelectorAll("[id]")].filter(e => document.querySelectorAll("#" + CSS.escape(e.id)).length > 1).map(e => "twice: " + e.id),
	].join("\n")`)
	if found != "" {
		b.t.Errorf("%s is hard to use without sight or mouse:\n%v", where, found)
	}
}

// axe fails the test if axe-core finds something in the page. Without axe-core it does nothing.
func (b *browser) axe(where string) {
	b.t.Helper()
	file := os.Getenv(axeFile)
	if file == "" {
		return
	}
	if b.eval(`typeof axe`) == "undefined" {
		source, err := os.ReadFile(file)
		if err != nil {
			b.t.Fatal(err)
		}
		b.eval(string(source) + "\n;0")
	}
	found := b.eval(`axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r =>
		r.violations.map(v => v.id + ": " + v.help + "\n" + v.nodes.slice(0, 4).map(n => "   " + n.html.slice(0, 200) + " " + n.any.concat(n.all).map(c => c.message).join("; ")).join("\n")).join("\n"))`)
	if found != "" {
		b.t.Errorf("axe finds in %s:\n%v", where, found)
	}
}

// shoot audits the page, and takes a screenshot if screenshots are wanted.
func (b *browser) shoot(name string) {
	b.t.Helper()
	b.audit(name)
	b.axe(name)
	dir := os.Getenv(screenshots)
	if dir == "" {
		return
	}
	var got struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &got)
	png, err := base64.StdEncoding.DecodeString(got.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// object decodes the body of an answer.
func (a reply) object(t testing.TB) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

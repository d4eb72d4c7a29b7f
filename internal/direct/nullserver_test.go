// SPDX-License-Identifier: MIT

package direct_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

// nullServer has the test's own program be the server that only answers.
const nullServer = "MAYFLY_MEASURE_NULL_SERVER"

// runNullServer serves until the process is killed, if it is to do that.
func runNullServer() {
	if os.Getenv(nullServer) == "" {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("it listens on http://%s and nowhere else\n", l.Addr())
	answer := []byte(item1K("first"))
	err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = w.Write(answer) // a client that has gone needs none
	}))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// item1K is an item of about 1 KiB.
func item1K(id string) string {
	return `{"id":"` + id + `","pk":"p","text":"` + strings.Repeat("x", 960) + `"}`
}

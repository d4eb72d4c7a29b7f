// SPDX-License-Identifier: MIT

// Running stored procedures.

package rest

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/mayflydb/mayfly/internal/engine"
)

// execute runs a stored procedure.
func (x *exchange) execute(rt *route) error {
	body, err := x.body()
	if err != nil {
		return err
	}
	res, err := x.h.engine.Execute(x.r.Context(), &engine.Request{Target: x.target(rt), Body: body, Memory: &x.share})
	x.charge = res.Charge
	if res.Container != nil {
		x.setOwner(res.Container)
	}
	if res.LSN != 0 {
		x.setPosition(res.Partition, res.LSN)
	}
	if x.flag("X-Ms-Documentdb-Script-Enable-Logging") {
		x.set("X-Ms-Documentdb-Script-Log-Results", uriComponent.Replace(url.QueryEscape(res.Log)))
	}
	if err != nil {
		return err
	}
	if len(res.Body) == 0 {
		res.Body = []byte(`""`)
	}
	x.write(http.StatusOK, res.Body)
	return nil
}

// uriComponent makes a text as it stands in a query one as encodeURIComponent makes.
var uriComponent = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")

// Explain tells an error as clients see it.
func Explain(err error) (status int, text string) {
	f, _ := failureOf(err)
	return f.status, f.text
}

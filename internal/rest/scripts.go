// SPDX-License-Identifier: MIT

// Stored procedures, triggers and user-defined functions as clients keep them.

package rest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/engine"
)

// scriptTypes are the resource types that are scripts.
var scriptTypes = map[string]struct {
	kind  catalog.ScriptKind
	feed  string
	quota string // its name in quotas
}{
	typeUDFs:       {catalog.UDF, "UserDefinedFunctions", "functions"},
	typeProcedures: {catalog.StoredProcedure, "StoredProcedures", "storedProcedures"},
	typeTriggers:   {catalog.Trigger, "Triggers", "triggers"},
}

func (x *exchange) serveScripts(rt *route) error {
	t := engine.ScriptTarget{Database: rt.database, Container: rt.container, Kind: scriptTypes[rt.kind].kind, Script: rt.id}
	switch {
	case rt.feed && x.r.Method == http.MethodGet:
		return x.listScripts(rt, t)
	case rt.feed && x.r.Method == http.MethodPost && x.isQuery():
		return x.queryScripts(rt, t)
	case rt.feed && x.r.Method == http.MethodPost:
		return x.writeScript(rt, t, http.StatusCreated, func(body []byte) (*catalog.Script, error) {
			return x.h.engine.CreateScript(x.r.Context(), t, body)
		})
	case !rt.feed && x.r.Method == http.MethodGet:
		return x.readScript(rt, t)
	case !rt.feed && x.r.Method == http.MethodPut:
		return x.writeScript(rt, t, http.StatusOK, func(body []byte) (*catalog.Script, error) {
			return x.h.engine.ReplaceScript(x.r.Context(), t, body, x.header("If-Match"))
		})
	case !rt.feed && x.r.Method == http.MethodDelete:
		if err := x.h.engine.DeleteScript(x.r.Context(), t, x.header("If-Match")); err != nil {
			return err
		}
		x.writeEmpty(http.StatusNoContent)
		return nil
	case !rt.feed && x.r.Method == http.MethodPost && rt.kind == typeProcedures:
		return x.execute(rt)
	}
	return errMethod
}

func (x *exchange) readScript(rt *route, t engine.ScriptTarget) error {
	u, err := x.h.engine.Script(t)
	if err != nil {
		return err
	}
	x.setScript(rt, t)
	x.writeIfModified(u.ETag, u.Body)
	return nil
}

// setScript sets the headers that go with a script: of the container that has it, and how
// many of its kind that has and may have. If the container has gone meanwhile they are
// left out: what was asked for has been done.
func (x *exchange) setScript(rt *route, t engine.ScriptTarget) {
	c, all, err := x.h.engine.Scripts(t)
	if err != nil {
		return
	}
	x.setOwner(c)
	kind := scriptTypes[rt.kind]
	x.set(headerQuota, kind.quota+"="+strconv.Itoa(kind.kind.Max())+";")
	x.set(headerUsage, kind.quota+"="+strconv.Itoa(len(all))+";")
}

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

// writeScript passes the body to write and answers with what came of it.
func (x *exchange) writeScript(rt *route, t engine.ScriptTarget, status int, write func(body []byte) (*catalog.Script, error)) error {
	body, err := x.body()
	if err != nil {
		return err
	}
	u, err := write(body)
	if err != nil {
		return err
	}
	x.setScript(rt, t)
	x.writeResource(status, u.ETag, u.Body)
	return nil
}

func (x *exchange) listScripts(rt *route, t engine.ScriptTarget) error {
	c, all, err := x.h.engine.Scripts(t)
	if err != nil {
		return err
	}
	return x.writeFeed(&feed{
		owner: c.RIDText, kind: scriptTypes[rt.kind].feed, n: len(all),
		resource: func(i int) (rid string, body []byte) { return all[i].RID, all[i].Body },
		after:    func(rid string) (int, bool) { return catalog.FirstScriptAfter(all, rid) },
	})
}

func (x *exchange) queryScripts(rt *route, t engine.ScriptTarget) error {
	c, all, err := x.h.engine.Scripts(t)
	if err != nil {
		return err
	}
	bodies := make([][]byte, len(all))
	for i, u := range all {
		bodies[i] = u.Body
	}
	return x.queryResources(c.RIDText, scriptTypes[rt.kind].feed, bodies)
}

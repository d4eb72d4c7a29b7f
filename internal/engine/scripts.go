// SPDX-License-Identifier: MIT

// Stored procedures, triggers and user-defined functions as clients keep them: kept
// by the catalog, and compiled before they are kept.

package engine

import (
	"context"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/script"
)

// ScriptTarget names a script, or the scripts of a kind, in a container.
type ScriptTarget struct {
	Database, Container string // names or rids
	Kind                catalog.ScriptKind
	Script              string // name or rid
}

func (t *ScriptTarget) container() Target {
	return Target{Database: t.Database, Container: t.Container}
}

// Script returns a script.
func (e *Engine) Script(t ScriptTarget) (*catalog.Script, error) {
	c, err := e.target(t.container())
	if err != nil {
		return nil, err
	}
	return c.Script(t.Kind, t.Script)
}

// Scripts returns a container and its scripts of a kind, the oldest first.
func (e *Engine) Scripts(t ScriptTarget) (*catalog.Container, []*catalog.Script, error) {
	c, err := e.target(t.container())
	if err != nil {
		return nil, nil, err
	}
	return c, c.Scripts(t.Kind), nil
}

// CreateScript makes a script out of a request's body.
func (e *Engine) CreateScript(ctx context.Context, t ScriptTarget, body []byte) (*catalog.Script, error) {
	c, def, err := e.scriptWrite(ctx, t, body)
	if err != nil {
		return nil, err
	}
	u, err := e.catalog.CreateScript(ctx, c.RID, def, e.clock.Now())
	return u, e.commitFailed(err)
}

// ReplaceScript gives a script another text. What begins after it returns goes by
// that.
func (e *Engine) ReplaceScript(ctx context.Context, t ScriptTarget, body []byte, ifMatch string) (*catalog.Script, error) {
	c, def, err := e.scriptWrite(ctx, t, body)
	if err != nil {
		return nil, err
	}
	u, err := e.catalog.ReplaceScript(ctx, c.RID, t.Script, def, ifMatch, e.clock.Now())
	return u, e.commitFailed(err)
}

// DeleteScript removes a script.
func (e *Engine) DeleteScript(ctx context.Context, t ScriptTarget, ifMatch string) error {
	c, err := e.target(t.container())
	if err != nil {
		return err
	}
	return e.commitFailed(e.catalog.DeleteScript(ctx, c.RID, t.Kind, t.Script, ifMatch))
}

// scriptWrite checks what a create or a replace is about. The text is compiled before
// it is kept, but for that of a stored procedure, which fails when it is run.
func (e *Engine) scriptWrite(ctx context.Context, t ScriptTarget, body []byte) (*catalog.Container, catalog.ScriptDefinition, error) {
	if err := e.writable(); err != nil {
		return nil, catalog.ScriptDefinition{}, err
	}
	c, err := e.target(t.container())
	if err != nil {
		return nil, catalog.ScriptDefinition{}, err
	}
	def, err := catalog.ParseScript(t.Kind, body)
	if err != nil {
		return nil, def, err
	}
	if t.Kind == catalog.StoredProcedure {
		return c, def, nil
	}
	return c, def, e.checkFunction(ctx, &script.Function{Name: def.ID, Text: def.Text})
}

// checkFunction refuses a text that does not compile.
func (e *Engine) checkFunction(ctx context.Context, f *script.Function) error {
	seat, err := e.scripts.Enter(ctx)
	if err != nil {
		return err
	}
	defer seat.Leave()
	return scriptFailure(seat.Compile(ctx, f))
}

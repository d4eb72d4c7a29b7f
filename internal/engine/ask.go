// SPDX-License-Identifier: MIT

// Questions to other nodes: what has to be read or done in partitions that others own. A
// question has an operation, which the owner executes as this node would.

package engine

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/catalog"
	"github.com/mayflydb/mayfly/internal/cluster"
	"github.com/mayflydb/mayfly/internal/memory"
	"github.com/mayflydb/mayfly/internal/query"
	"github.com/mayflydb/mayfly/internal/store"
)

// Peers carries questions to other nodes.
type Peers interface {
	// Ask sends a request to a node, which passes it to Engine.Asked, and returns the answer.
	// An error says that there is no answer: the node may have done what it was asked for.
	Ask(ctx context.Context, node, address string, request []byte) (answer []byte, err error)
}

const (
	// askLimit bounds how long partitions are looked for whose owner has gone or changes. It
	// is longer than it takes until a node is declared dead and its floor has passed.
	askLimit = 10 * time.Second
	// askPause is the time between two rounds.
	askPause = 50 * time.Millisecond
)

// operation is what can be asked for: in a partition, or of a node, where c is nil if it is
// about no container.
type operation[A, R any] struct {
	name string
	// here executes it in a partition, or, with a nil partition, for the whole node.
	here func(ctx context.Context, e *Engine, c *catalog.Container, index int, p *store.Partition, args A) (R, error)
	// kills says that a node that does not answer is declared dead: the operation must not
	// be missed by an owner.
	kills bool
}

// asked is an operation as another node asks for it.
type asked func(ctx context.Context, e *Engine, c *catalog.Container, index int, p *store.Partition, args []byte) ([]byte, error)

// operations has what other nodes may ask for, by name.
var operations = map[string]asked{}

// newOperation makes an operation known.
func newOperation[A, R any](o operation[A, R]) *operation[A, R] {
	operations[o.name] = func(ctx context.Context, e *Engine, c *catalog.Container, index int, p *store.Partition, raw []byte) ([]byte, error) {
		var args A
		if err := decode(raw, &args); err != nil {
			return nil, err
		}
		result, err := o.here(ctx, e, c, index, p, args)
		if err != nil {
			return nil, err
		}
		return encode(&result)
	}
	return &o
}

// question is what a node is asked.
type question struct {
	Operation string
	Container catalog.ContainerRID // zero for none
	// Partitions are the ids of those that are asked about; none for the whole node.
	Partitions []int
	Args       []byte
}

// reply is the answer for a partition, or for the node.
type reply struct {
	Result []byte
	// Refused is the name of a known error, or its text.
	Refused string
	Failed  bool
	// Invalid says that it is the text of an InvalidError.
	Invalid bool
}

// refusals are the errors that a node which asks has to recognise.
var refusals = []error{store.ErrClosed, store.ErrRetention, store.ErrNoVersions, ErrDiskFull, ErrDiskSpent, ErrUnavailable, ErrStopping, ErrSplitting, ErrSession, ErrContinuation, ErrScriptsBusy,
	query.ErrSortTooLarge, query.ErrQueryTime, query.ErrToken, memory.ErrFull}

// errElsewhere: the node that was asked does not own the partition.
var errElsewhere = errors.New("the node does not own the partition")

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func decode(raw []byte, v any) error { return gob.NewDecoder(bytes.NewReader(raw)).Decode(v) }

// Asked answers a question of another node.
func (e *Engine) Asked(ctx context.Context, request []byte) ([]byte, error) {
	var q question
	if err := decode(request, &q); err != nil {
		return nil, invalid("The question of another node cannot be read: %v.", err)
	}
	do := operations[q.Operation]
	if do == nil {
		return nil, invalid("This node does not know the operation '%s': it may be of an earlier version.", q.Operation)
	}
	if err := e.Moment(ctx); err != nil {
		return nil, err
	}
	var c *catalog.Container
	if q.Container != (catalog.ContainerRID{}) {
		var err error
		if c, err = e.catalog.Current(q.Container); err != nil {
			return encode([]reply{replyOf(nil, store.ErrClosed)})
		}
	}
	if len(q.Partitions) == 0 {
		return encode([]reply{replyOf(do(ctx, e, c, -1, nil, q.Args))})
	}
	replies := make([]reply, len(q.Partitions))
	for n, i := range q.Partitions {
		replies[n] = replyOf(e.askedOf(ctx, c, i, do, q.Args))
	}
	return encode(replies)
}

// askedOf executes an operation in a partition, which the asking node knew. A split may have
// ended it since.
func (e *Engine) askedOf(ctx context.Context, c *catalog.Container, id int, do asked, args []byte) ([]byte, error) {
	if c.PositionOf(id) < 0 {
		return nil, store.ErrClosed
	}
	p, err := e.partition(c, id)
	if err != nil {
		return nil, err
	}
	return do(ctx, e, c, id, p, args)
}

func replyOf(result []byte, err error) reply {
	if err == nil {
		return reply{Result: result}
	}
	var elsewhere *NotOwnerError
	if errors.As(err, &elsewhere) {
		err = errElsewhere
	}
	for _, known := range append(refusals, errElsewhere) {
		if errors.Is(err, known) {
			return reply{Refused: known.Error(), Failed: true}
		}
	}
	var request *InvalidError
	var definition *catalog.InvalidError
	return reply{Refused: err.Error(), Failed: true, Invalid: errors.As(err, &request) || errors.As(err, &definition)}
}

// err returns the error of a reply.
func (r *reply) err() error {
	if !r.Failed {
		return nil
	}
	for _, known := range append(refusals, errElsewhere) {
		if r.Refused == known.Error() {
			return known
		}
	}
	if r.Invalid {
		return &InvalidError{r.Refused}
	}
	return errors.New(r.Refused)
}

// ask asks one node.
func ask[A, R any](ctx context.Context, e *Engine, node, address string, o *operation[A, R], c *catalog.Container, partitions []int, args A) ([]R, []error, error) {
	if e.options.Peers == nil {
		return nil, nil, fmt.Errorf("%w: there is no way to ask node %s", ErrUnavailable, node)
	}
	q := question{Operation: o.name, Partitions: partitions}
	if c != nil {
		q.Container = c.RID
	}
	var err error
	if q.Args, err = encode(&args); err != nil {
		return nil, nil, err
	}
	request, err := encode(&q)
	if err != nil {
		return nil, nil, err
	}
	answer, err := e.options.Peers.Ask(ctx, node, address, request)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: node %s did not answer: %w", ErrUnavailable, node, err)
	}
	var replies []reply
	if err := decode(answer, &replies); err != nil {
		return nil, nil, fmt.Errorf("the answer of node %s: %w", node, err)
	}
	n := max(1, len(partitions))
	if len(replies) == 1 && n > 1 { // the same for all
		for range n - 1 {
			replies = append(replies, replies[0])
		}
	}
	if len(replies) != n {
		return nil, nil, fmt.Errorf("node %s answered for %d of %d partitions", node, len(replies), n)
	}
	results, errs := make([]R, n), make([]error, n)
	for i := range replies {
		if errs[i] = replies[i].err(); errs[i] == nil {
			errs[i] = decode(replies[i].Result, &results[i])
		}
	}
	return results, errs, nil
}

// gather executes an operation in every partition of a container, by its owner, and returns
// the results in order.
func gather[A, R any](ctx context.Context, e *Engine, c *catalog.Container, o *operation[A, R], args A) ([]R, error) {
	if e.node == nil {
		results := make([]R, len(c.Ranges))
		err := e.eachPartition(c, func(i int, p *store.Partition) (err error) {
			results[i], err = o.here(ctx, e, c, c.Ranges[i].ID, p, args)
			return err
		})
		return results, err
	}
	all := make([]int, len(c.Ranges))
	for i := range all {
		all[i] = c.Ranges[i].ID
	}
	return gatherThose(ctx, e, c, all, o, args)
}

// gatherThose is gather for some of the partitions, by their ids, on a cluster. The others
// have no result.
func gatherThose[A, R any](ctx context.Context, e *Engine, c *catalog.Container, partitions []int, o *operation[A, R], args A) ([]R, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	results := make([]R, len(c.Ranges))
	g := &gathering[A, R]{e: e, c: c, o: o, args: args, results: results, left: partitions}
	for first := true; len(g.left) > 0; first = false {
		if !first {
			if err := pause(ctx, askPause); err != nil {
				return nil, errors.Join(unavailable(g.last), err)
			}
		}
		if err := g.round(ctx); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// gathering is the state of gather.
type gathering[A, R any] struct {
	e       *Engine
	c       *catalog.Container
	o       *operation[A, R]
	args    A
	results []R
	left    []int // the partitions without a result
	last    error // why there are some
}

// peer is a node to be asked.
type peer struct{ node, address string }

// round executes the operation in the partitions that are left, as far as they have an owner
// that answers.
func (g *gathering[A, R]) round(ctx context.Context) error {
	left := g.left
	g.left = nil
	there, here, err := g.e.locate(ctx, g.c, left)
	if err != nil {
		return err
	}
	for _, i := range here {
		var elsewhere *NotOwnerError
		p, err := g.e.partition(g.c, i)
		if errors.As(err, &elsewhere) {
			to := peer{elsewhere.Node, elsewhere.Address}
			there[to] = append(there[to], i)
			continue
		}
		if err == nil {
			g.results[g.c.PositionOf(i)], err = g.o.here(ctx, g.e, g.c, i, p, g.args)
		}
		if err := g.settle(i, err); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	var failed error
	var asking sync.WaitGroup
	for to, partitions := range there {
		asking.Go(func() {
			results, errs, err := ask(ctx, g.e, to.node, to.address, g.o, g.c, partitions, g.args)
			if err != nil && g.o.kills && ctx.Err() == nil {
				err = errors.Join(err, g.e.node.Kill(ctx, to.node))
				for _, i := range partitions { // it may register anew, and still not answer
					g.e.take(partitionID{g.c.RID, i})
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for n, i := range partitions {
				one := err
				if err == nil {
					one = errs[n]
					g.results[g.c.PositionOf(i)] = results[n]
				}
				failed = errors.Join(failed, g.settle(i, one))
			}
		})
	}
	asking.Wait()
	return failed
}

// settle notes the result of a partition. What another round may change is left for that.
func (g *gathering[A, R]) settle(i int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrClosed):
		if now, gone := g.e.catalog.Current(g.c.RID); gone != nil || now.PositionOf(i) < 0 {
			return err // the caller looks the container up again
		}
	case !errors.Is(err, errElsewhere) && !errors.Is(err, ErrUnavailable):
		return err
	}
	g.left, g.last = append(g.left, i), err
	return nil
}

// locate returns which partitions other nodes own, and those that are this node's, or that
// it should claim.
func (e *Engine) locate(ctx context.Context, c *catalog.Container, partitions []int) (there map[peer][]int, here []int, err error) {
	there = map[peer][]int{}
	keys := make([][]byte, len(partitions))
	for n, i := range partitions {
		keys[n] = store.OwnerKey(c.RID, i)
	}
	owners, err := e.node.Owners(ctx, keys)
	if err != nil {
		return nil, nil, err
	}
	alive := e.alive()
	for n, i := range partitions {
		if address, ok := alive[owners[n].Node]; ok && owners[n].Node != e.node.Name() {
			to := peer{owners[n].Node, address}
			there[to] = append(there[to], i)
		} else {
			here = append(here, i)
		}
	}
	return there, here, nil
}

// alive returns the addresses of the nodes that are alive, by name.
func (e *Engine) alive() map[string]string {
	all := map[string]string{}
	for _, m := range e.node.Members() {
		if m.State == cluster.Serving.String() || m.State == cluster.Draining.String() {
			all[m.Name] = m.Address
		}
	}
	return all
}

// askNodes executes an operation on every live node, this one included. Nodes that do not
// answer are left out, and returned.
func askNodes[A, R any](ctx context.Context, e *Engine, c *catalog.Container, o *operation[A, R], args A) (results []R, silent []string, err error) {
	own, err := o.here(ctx, e, c, -1, nil, args)
	if err != nil || e.node == nil {
		return []R{own}, nil, err
	}
	results = []R{own}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for node, address := range e.alive() {
		if node == e.node.Name() {
			continue
		}
		asking.Go(func() {
			got, errs, err := ask(ctx, e, node, address, o, c, nil, args)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || errs[0] != nil {
				silent = append(silent, node)
				e.logger.Warn("a node did not answer a question of this one", "node", node, "operation", o.name, "err", errors.Join(err, errors.Join(errs...)))
				return
			}
			results = append(results, got[0])
		})
	}
	asking.Wait()
	return results, silent, nil
}

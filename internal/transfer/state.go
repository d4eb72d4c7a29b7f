// SPDX-License-Identifier: MIT

// Package transfer moves items and definitions between servers and files: export, import, and
// a move from another account that follows its change feed. A transfer that was interrupted
// goes on where its state file says: what is behind that position is done, what is after it
// is done again, and doing it again changes nothing. So nothing is lost and nothing is there
// twice.
package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/client"
)

const (
	// saveEvery is the time between two saves of the state.
	saveEvery = time.Second
	// maxStateBytes bounds a state file: a position takes a few dozen bytes.
	maxStateBytes = 64 << 20
	// stateVersion is the form of state files.
	stateVersion = 1
)

// ErrOtherTransfer: the state file belongs to another transfer.
var ErrOtherTransfer = errors.New("the state file belongs to another transfer")

// state is how far a transfer is.
type state struct {
	Version int `json:"version"`
	// Kind, Source and Target say which transfer it is.
	Kind, Source, Target string
	// Parts are the containers, by their names.
	Parts map[string]*part
}

// part is how far one container is.
type part struct {
	// Bytes is how much of the file was read or written, and Rows how many items; for an
	// import how many lines.
	Bytes, Rows int64
	// Rejected is how long the file with rejected rows is.
	Rejected int64
	// Columns are those of a CSV file.
	Columns []string `json:",omitempty"`
	// Ranges are the positions in the physical partitions.
	Ranges map[string]*place `json:",omitempty"`
	Done   bool
}

// place is a position in a physical partition.
type place struct {
	// At is a continuation or a position in the change feed.
	At string
	// Versions is the position in the feed of all versions from which on it is followed.
	Versions string `json:",omitempty"`
	Done     bool
	// ahead is up to where each feed was read, which may not be written yet.
	ahead [2]string
}

// position returns the position in a feed.
func (p *place) position(feed client.Feed) *string {
	if feed == client.AllVersions {
		return &p.Versions
	}
	return &p.At
}

// next returns where the next page of a feed begins: after what was read.
func (p *place) next(feed client.Feed) string { return cmp.Or(p.ahead[feed], *p.position(feed)) }

// stateFile keeps a state. Its lock guards the state.
type stateFile struct {
	name string // empty for none

	mu    sync.Mutex
	state state
	saved time.Time
}

// openState reads the state of a transfer, or begins one. resumed reports that there was one.
func openState(name string, fresh state) (f *stateFile, resumed bool, err error) {
	fresh.Version, fresh.Parts = stateVersion, map[string]*part{}
	f = &stateFile{name: name, state: fresh}
	if name == "" {
		return f, false, nil
	}
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	var found state
	if info, err := file.Stat(); err == nil && info.Size() > maxStateBytes {
		return nil, false, fmt.Errorf("%s is no state file", name)
	}
	if err := json.NewDecoder(file).Decode(&found); err != nil {
		return nil, false, fmt.Errorf("%s is no state file: %w", name, err)
	}
	if found.Version != stateVersion || found.Kind != fresh.Kind || found.Source != fresh.Source || found.Target != fresh.Target {
		return nil, false, fmt.Errorf("%w: %s is about %s from %s to %s; name another one with --state, or remove it to begin anew", ErrOtherTransfer, name, found.Kind, found.Source, found.Target)
	}
	if found.Parts == nil {
		found.Parts = map[string]*part{}
	}
	f.state = found
	return f, true, nil
}

// part returns the state of a container.
func (f *stateFile) part(name string) *part {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.state.Parts[name]
	if p == nil {
		p = &part{Ranges: map[string]*place{}}
		f.state.Parts[name] = p
	}
	if p.Ranges == nil {
		p.Ranges = map[string]*place{}
	}
	return p
}

// adopt gives partitions that were split off the position of the one that they come from.
func (f *stateFile) adopt(p *part, ranges []client.Range) {
	f.change(func() {
		for _, r := range ranges {
			if p.Ranges[r.ID] != nil {
				continue
			}
			for _, parent := range slices.Backward(r.Parents) {
				if at := p.Ranges[parent]; at != nil {
					inherited := *at
					p.Ranges[r.ID] = &inherited
					break
				}
			}
		}
	})
}

// ErrSplit: a physical partition was split, and the server does not say into which others.
var ErrSplit = errors.New("a physical partition was split, and the server does not say yet into which: run the same command again, which goes on from where it is")

// splitsDeep bounds how often in a row a partition is found to be split while it is read or
// written.
const splitsDeep = 64

// splitUp returns a container as it is after one of its partitions was split, and the
// partitions that are in the place of that one.
func splitUp(ctx context.Context, c *client.Client, n client.Name, id string) (*client.Container, []client.Range, error) {
	of, err := c.Container(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	var children []client.Range
	for _, r := range of.Ranges {
		if slices.Contains(r.Parents, id) {
			children = append(children, r)
		}
	}
	if len(children) == 0 {
		return nil, nil, ErrSplit
	}
	return of, children, nil
}

// subStatusRangeGone says that a physical partition is no more.
const subStatusRangeGone = 1002

// rangeGone reports whether a request was refused since its physical partition is no more.
func rangeGone(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Status == http.StatusGone && refused.SubStatus == subStatusRangeGone
}

// change changes the state.
func (f *stateFile) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// save writes the state, atomically, if it is time to. Before that it calls settle, which
// makes durable what the state says is done.
func (f *stateFile) save(now bool, settle func() error) error {
	if f.name == "" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !now && time.Since(f.saved) < saveEvery {
		return nil
	}
	if settle != nil {
		if err := settle(); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(&f.state)
	if err != nil {
		return err
	}
	if err := replaceFile(f.name, raw); err != nil {
		return fmt.Errorf("save how far the transfer is: %w", err)
	}
	f.saved = time.Now()
	return nil
}

// remove removes the state of a transfer that has ended.
func (f *stateFile) remove() error {
	if f.name == "" {
		return nil
	}
	if err := os.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// privateFile is the mode of files with data.
const privateFile = 0o600

// replaceFile writes a file as one step.
func replaceFile(name string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	if err := errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return os.Rename(temporary.Name(), name)
}

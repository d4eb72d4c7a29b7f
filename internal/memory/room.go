// SPDX-License-Identifier: MIT

package memory

import "context"

// Room is a share as a part of a request uses it: waiting for memory or not. The zero
// value has no bounds.
type Room struct {
	ctx   context.Context // nil if the caller cannot wait
	share *Share
}

// RoomIn returns the room of a share for work that can wait for memory.
func RoomIn(ctx context.Context, s *Share) Room { return Room{ctx, s} }

// RoomNow returns the room of a share for work that cannot wait: Take then fails at once.
func RoomNow(s *Share) Room { return Room{share: s} }

// Take takes memory. The error is ErrFull, or that of the context.
func (m Room) Take(bytes int) error {
	if m.ctx != nil {
		return m.share.Take(m.ctx, int64(bytes))
	}
	if !m.share.TryTake(int64(bytes)) {
		return ErrFull
	}
	return nil
}

// Give gives memory back.
func (m Room) Give(bytes int) { m.share.Give(int64(bytes)) }

// Mark returns how much has been taken so far.
func (m Room) Mark() int64 { return m.share.Used() }

// Release gives back everything taken after a mark.
func (m Room) Release(mark int64) { m.share.Give(m.share.Used() - mark) }

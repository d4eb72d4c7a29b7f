// SPDX-License-Identifier: MIT

package memory

import "context"

// Room is where a part of a request takes its memory. The zero value has no bounds.
type Room struct {
	ctx   context.Context // of those that can wait
	share *Share
}

// RoomIn is the room of a share, for work that can wait for it.
func RoomIn(ctx context.Context, s *Share) Room { return Room{ctx, s} }

// RoomNow is the room of a share, for work that cannot wait: without room it fails.
func RoomNow(s *Share) Room { return Room{share: s} }

// Take takes memory, or says why there is none.
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

// Mark returns what was taken so far.
func (m Room) Mark() int64 { return m.share.Used() }

// Release gives back what was taken after a mark.
func (m Room) Release(mark int64) { m.share.Give(m.share.Used() - mark) }

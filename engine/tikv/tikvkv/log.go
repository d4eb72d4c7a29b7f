// SPDX-License-Identifier: MIT

package tikvkv

import (
	"context"
	"log/slog"
	"sync"

	"github.com/pingcap/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

var logOnce sync.Once

// logTo has the client of TiKV, which has one log for the process, write to ours. Its errors
// are what it repeats by itself, so an operator needs them only to find out more.
func logTo(l *slog.Logger) {
	logOnce.Do(func() {
		log.ReplaceGlobals(zap.New(forward{l}), &log.ZapProperties{Level: zap.NewAtomicLevelAt(zapcore.WarnLevel)})
	})
}

// forward passes entries on as debugging messages.
type forward struct{ log *slog.Logger }

func (f forward) Enabled(level zapcore.Level) bool {
	return level >= zapcore.WarnLevel && f.log.Enabled(context.Background(), slog.LevelDebug)
}

func (f forward) With(fields []zapcore.Field) zapcore.Core {
	return forward{f.log.With(attributes(fields)...)}
}

func (f forward) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if f.Enabled(e.Level) {
		return to.AddCore(e, f)
	}
	return to
}

func (f forward) Write(e zapcore.Entry, fields []zapcore.Field) error {
	f.log.Debug("TiKV's client: "+e.Message, attributes(fields)...)
	return nil
}

func (forward) Sync() error { return nil }

func attributes(fields []zapcore.Field) []any {
	encoder := zapcore.NewMapObjectEncoder()
	for _, field := range fields {
		field.AddTo(encoder)
	}
	var all []any
	for name, value := range encoder.Fields {
		all = append(all, slog.Any(name, value))
	}
	return all
}

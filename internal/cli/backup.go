// SPDX-License-Identifier: MIT

// The commands backup and restore.
//
// A directory of backups has one directory for each, named by its time:
//
//	20261118T211500Z/backup.json   the time, the files and their checksums
//	20261118T211500Z/db/           the files of the storage engine
//	partial/                       a backup that is under way, or was interrupted
//
// Tables never change. Those that the last backup has are linked and not sent again, so a
// backup takes as much room and time as has changed since the one before, and each is whole.

package cli

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/client"
	"github.com/mayflydb/mayfly/internal/kv"
)

type backupCommand struct {
	running
	printed
	To    string `required:"" placeholder:"DIR" help:"Directory of backups. Each gets a directory of its own in it; what has not changed since the one before is linked."`
	Check bool   `default:"true" negatable:"" help:"Check afterwards that every item has all its rows."`
}

// Help is shown below the usage.
func (*backupCommand) Help() string {
	return `The backup has every write that was acknowledged before it began. The server goes on
meanwhile. A backup that was interrupted goes on with what has arrived. The key and the
certificate of the server are not in it, and deleted data is until the backup is removed.

Examples:

  mayfly backup --to /backups/mayfly
  mayfly restore --from /backups/mayfly/20261118T211500Z --data ./mayfly-data`
}

const (
	backupFile   = "backup.json"
	backupStore  = "db"
	backupTime   = "20060102T150405Z"
	partialName  = "partial"
	privateDir   = 0o700
	privateFile  = 0o600
	backupPieces = 256 << 10
)

// backupRecord is the file backup.json.
type backupRecord struct {
	mayfly.Backup
	Sums mayfly.Sums `json:"sums"`
}

// Run makes a backup.
func (b *backupCommand) Run() error {
	ctx, stop := interruptible()
	defer stop()
	c, err := b.open(1)
	if err != nil {
		return err
	}
	_, key, _ := b.address()
	warnOfClearKey(c.Endpoint(), key)
	began := time.Now()
	r := &receiving{dir: filepath.Join(b.To, partialName), work: &work{}}
	if r.last, err = lastBackup(b.To); err != nil {
		return err
	}
	r.work.begin("asking for a backup", "", 0)
	end := showProgress(r.work)
	err = r.receive(ctx, c)
	end()
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted: run the same command again, which goes on with what has arrived")
		}
		return explained(err, "backup")
	}
	if b.Check {
		if err := checkBackup(r.dir); err != nil {
			return err
		}
	}
	name := freeName(b.To, time.UnixMilli(r.record.AtMs))
	if err := os.Rename(r.dir, name); err != nil {
		return fmt.Errorf("name the backup: %w", err)
	}
	if err := syncDir(b.To); err != nil {
		return err
	}
	took := time.Since(began)
	return b.show(func() error {
		_, err := fmt.Printf("%s: %d files, %s, of which %s are new, in %v\n", name, len(r.record.Files), byteCount(r.all), byteCount(r.received), took.Round(time.Millisecond))
		return err
	}, struct {
		Backup   string  `json:"backup"`
		Files    int     `json:"files"`
		Bytes    int64   `json:"bytes"`
		NewBytes int64   `json:"newBytes"`
		Seconds  float64 `json:"seconds"`
		Checked  bool    `json:"checked"`
	}{name, len(r.record.Files), r.all, r.received, took.Seconds(), b.Check})
}

// freeName returns the place of a backup: the name is its time, or the first second behind it
// that has no backup yet, since a test clock may stand.
func freeName(dir string, at time.Time) string {
	for ; ; at = at.Add(time.Second) {
		name := filepath.Join(dir, at.UTC().Format(backupTime))
		if _, err := os.Lstat(name); err != nil {
			return name
		}
	}
}

// lastBackup returns the newest backup in a directory; empty for none.
func lastBackup(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range slices.Backward(entries) { // in the order of their names
		if _, err := time.Parse(backupTime, e.Name()); err == nil {
			return filepath.Join(dir, e.Name()), nil
		}
	}
	return "", nil
}

// receiving is a backup under way.
type receiving struct {
	dir, last     string
	record        backupRecord
	all, received int64
	work          *work
}

func (r *receiving) store() string { return filepath.Join(r.dir, backupStore) }

// tables returns the tables in a directory, as the server names them, by their names.
func tables(dir string) map[string]kv.CheckpointFile {
	found := map[string]kv.CheckpointFile{}
	entries, _ := os.ReadDir(dir) // there may be none
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !neverChanges(e.Name()) {
			continue
		}
		found[e.Name()] = kv.CheckpointFile{Name: e.Name(), Bytes: info.Size(), Modified: info.ModTime().UnixNano()}
	}
	return found
}

// neverChanges reports whether a file of the storage engine is written once.
func neverChanges(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// receive asks for the files that are not here, and puts the backup together.
func (r *receiving) receive(ctx context.Context, c *client.Client) error {
	if err := os.MkdirAll(r.store(), privateDir); err != nil {
		return err
	}
	arrived, linked := tables(r.store()), map[string]kv.CheckpointFile{}
	var before backupRecord
	if r.last != "" {
		if err := readRecord(r.last, &before); err != nil {
			return err
		}
		linked = tables(filepath.Join(r.last, backupStore))
	}
	var ask struct {
		Have []kv.CheckpointFile `json:"have"`
	}
	for _, have := range []map[string]kv.CheckpointFile{arrived, linked} {
		for _, f := range have {
			ask.Have = append(ask.Have, f)
		}
	}
	body, err := json.Marshal(&ask)
	if err != nil {
		return err
	}
	res, err := c.Page(ctx, http.MethodPost, "backup", nil, body, 0)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	sums, err := r.unpack(r.work.counted(res.Body), func(f kv.CheckpointFile) bool {
		return arrived[f.Name] == f || linked[f.Name] == f
	})
	if err != nil {
		return err
	}
	r.record.Sums = mayfly.Sums{}
	keep := map[string]bool{}
	for _, f := range r.record.Files {
		keep[f.Name] = true
		r.all += f.Bytes
		at := filepath.Join(r.store(), f.Name)
		sum, sent := sums[f.Name]
		switch {
		case sent:
		case arrived[f.Name] == f:
			if sum, err = sumOf(at); err != nil {
				return err
			}
		case linked[f.Name] == f:
			sum = before.Sums[f.Name]
			_ = os.Remove(at) // of an interrupted backup, with another content
			if err := linkOrCopy(filepath.Join(r.last, backupStore, f.Name), at); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the server did not send %s", f.Name)
		}
		r.record.Sums[f.Name] = sum
	}
	return r.finish(keep)
}

// finish removes what does not belong to the backup, and writes its record.
func (r *receiving) finish(keep map[string]bool) error {
	entries, err := os.ReadDir(r.store())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !keep[e.Name()] {
			if err := os.Remove(filepath.Join(r.store(), e.Name())); err != nil {
				return err
			}
		}
	}
	raw, err := json.Marshal(&r.record)
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(r.dir, backupFile), raw); err != nil {
		return err
	}
	return errors.Join(syncDir(r.store()), syncDir(r.dir))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// unpack writes the files that the server sends, and returns their checksums. here reports
// whether a file need not be sent.
func (r *receiving) unpack(from io.Reader, here func(kv.CheckpointFile) bool) (mayfly.Sums, error) {
	archive := tar.NewReader(from)
	sums := mayfly.Sums{}
	for {
		h, err := archive.Next()
		if err != nil {
			return nil, fmt.Errorf("the server ended the backup early: %w", err)
		}
		switch {
		case h.Name == mayfly.BackupList:
			if err := json.NewDecoder(archive).Decode(&r.record.Backup); err != nil {
				return nil, fmt.Errorf("the backup cannot be read: %w", err)
			}
			wanted := int64(0)
			for _, f := range r.record.Files {
				if !here(f) {
					wanted += f.Bytes
				}
			}
			r.work.begin("receiving", "", wanted)
		case h.Name == mayfly.BackupSums:
			var theirs mayfly.Sums
			if err := json.NewDecoder(archive).Decode(&theirs); err != nil {
				return nil, fmt.Errorf("the backup cannot be read: %w", err)
			}
			for name, sum := range theirs {
				if got, ok := sums[name]; !ok || got != sum {
					return nil, fmt.Errorf("%s arrived damaged", name)
				}
			}
			return sums, nil
		case h.Name != filepath.Base(h.Name) || h.Name == "." || h.Name == "..":
			return nil, fmt.Errorf("the backup has a file %q, which is no name", h.Name)
		default:
			at := slices.IndexFunc(r.record.Files, func(f kv.CheckpointFile) bool { return f.Name == h.Name })
			if at < 0 {
				return nil, fmt.Errorf("the backup has a file %q that is not in its list", h.Name)
			}
			sum, err := receiveFile(filepath.Join(r.store(), h.Name), r.record.Files[at].Modified, archive)
			if err != nil {
				return nil, err
			}
			sums[h.Name] = sum
			r.received += h.Size
		}
	}
}

// receiveFile writes a file. It gets its time when it is whole, so that an interrupted backup
// does not go on with a part of it.
func receiveFile(name string, modified int64, from io.Reader) (uint32, error) {
	_ = os.Remove(name) // it may be a link to a file of another backup
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return 0, err
	}
	sum := crc32.New(castagnoli)
	_, err = io.CopyBuffer(io.MultiWriter(to, sum), from, make([]byte, backupPieces))
	if err := errors.Join(err, to.Sync(), to.Close()); err != nil {
		return 0, err
	}
	at := time.Unix(0, modified)
	return sum.Sum32(), os.Chtimes(name, at, at)
}

func sumOf(name string) (uint32, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	sum := crc32.New(castagnoli)
	_, err = io.CopyBuffer(sum, f, make([]byte, backupPieces))
	return sum.Sum32(), err
}

func linkOrCopy(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	_, err := copyFile(from, to, &work{})
	return err
}

// copyFile copies a file with its time, counting what it reads, and returns its checksum.
func copyFile(from, to string, w *work) (uint32, error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return 0, err
	}
	return receiveFile(to, info.ModTime().UnixNano(), w.counted(in))
}

func writeSynced(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, privateFile)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes the names in a directory durable, where the system can.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	_ = d.Sync() // not every system can
	return d.Close()
}

var errNoBackup = errors.New("there is no backup")

func readRecord(backup string, into *backupRecord) error {
	raw, err := os.ReadFile(filepath.Join(backup, backupFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w in %s: it would have a file %s", errNoBackup, backup, backupFile)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s cannot be read: %w", filepath.Join(backup, backupFile), err)
	}
	return nil
}

// checkBackup checks the rows of a backup, in a copy whose tables are links: opening a store
// changes it.
func checkBackup(dir string) error {
	paceCollector(0)
	copied := dir + ".check"
	if err := os.RemoveAll(copied); err != nil {
		return err
	}
	defer os.RemoveAll(copied)
	store := filepath.Join(copied, backupStore)
	if err := os.MkdirAll(store, privateDir); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(dir, backupStore))
	if err != nil {
		return err
	}
	for _, e := range entries {
		from, to := filepath.Join(dir, backupStore, e.Name()), filepath.Join(store, e.Name())
		if neverChanges(e.Name()) {
			err = linkOrCopy(from, to)
		} else {
			_, err = copyFile(from, to, &work{})
		}
		if err != nil {
			return err
		}
	}
	report, err := checked(func(report func(mayfly.CheckProgress)) (mayfly.CheckReport, error) {
		return mayfly.Check(copied, report)
	})
	for _, p := range report.Problems {
		fmt.Fprintln(os.Stderr, p)
	}
	if err != nil {
		return fmt.Errorf("the backup in %s cannot be used: %w", dir, err)
	}
	if report.Found > 0 {
		return fmt.Errorf("the backup in %s has %d problems in %d items", dir, report.Found, report.Items)
	}
	fmt.Fprintf(os.Stderr, "checked %s items, %s\n", grouped(report.Items), byteCount(report.Bytes))
	return nil
}

type restoreCommand struct {
	From       string `required:"" placeholder:"DIR" help:"The backup: one of the directories that mayfly backup makes."`
	Data       string `default:"mayfly-data" env:"MAYFLY_DATA" placeholder:"DIR" help:"Directory of the data, which must have none (${default})."`
	WithoutTTL bool   `name:"without-ttl" help:"Remove the default TTL of all containers, so that items come back that would be dead by now. Set it again when you have what you need."`
}

// Help is shown below the usage.
func (*restoreCommand) Help() string {
	return `The restored database begins a new history: positions in change feeds and session tokens
of before are older than everything that it writes. It has a new certificate. A restore
that was interrupted goes on with the files that are copied when the same command runs
again.

Examples:

  mayfly restore --from /backups/mayfly/20261118T211500Z
  mayfly restore --from /backups/mayfly/20261118T211500Z --data ./then --without-ttl`
}

// Run restores a backup.
func (r *restoreCommand) Run() error {
	paceCollector(0)
	ctx, stop := interruptible()
	defer stop()
	var record backupRecord
	if err := readRecord(r.From, &record); err != nil {
		if last, _ := lastBackup(r.From); errors.Is(err, errNoBackup) && last != "" {
			err = fmt.Errorf("%w. It is a directory of backups: name one of them; the last is %s", err, last)
		}
		return err
	}
	store := mayfly.StoreDir(r.Data)
	if _, err := os.Stat(store); err == nil {
		return fmt.Errorf("there is data in %s: restore to another directory, or move it away", r.Data)
	}
	began := time.Now()
	under := filepath.Join(r.Data, "restoring", backupStore)
	if err := os.MkdirAll(under, privateDir); err != nil {
		return err
	}
	at := time.UnixMilli(record.AtMs)
	w := &work{}
	end := showProgress(w)
	bytes, err := r.copy(ctx, &record, under, w)
	if err == nil {
		w.begin("beginning a new history", "", 0)
		err = openFailed(mayfly.Restore(ctx, mayfly.RestoreOptions{Store: under, At: at, WithoutTTL: r.WithoutTTL}))
	}
	end()
	if ctx.Err() != nil && err != nil {
		return errors.New("interrupted: run the same command again, which goes on with what is copied")
	}
	if err != nil {
		return err
	}
	if err := os.Rename(under, store); err != nil {
		return err
	}
	if err := errors.Join(os.Remove(filepath.Dir(under)), syncDir(r.Data)); err != nil {
		return err
	}
	fmt.Printf("restored %s of %s, %s, in %v\n", r.Data, at.UTC().Format(time.RFC3339), byteCount(bytes), time.Since(began).Round(time.Millisecond))
	if r.WithoutTTL {
		fmt.Println("No container has a default TTL: nothing expires until it is set again.")
	}
	return nil
}

// copy copies the files of a backup to a directory, and returns how many bytes they have.
// Tables that an interrupted restore has copied stay, after a look at their checksums. All
// else there is removed: a storage engine may have been opened on it.
func (r *restoreCommand) copy(ctx context.Context, record *backupRecord, under string, w *work) (bytes int64, err error) {
	before := tables(under)
	entries, err := os.ReadDir(under)
	if err != nil {
		return 0, err
	}
	for _, f := range record.Files {
		bytes += f.Bytes
		if f != before[f.Name] {
			delete(before, f.Name)
		}
	}
	w.begin("restoring", "", bytes)
	keep := map[string]bool{}
	for _, f := range record.Files {
		if _, there := before[f.Name]; there {
			sum, err := sumOf(filepath.Join(under, f.Name))
			if err != nil {
				return 0, err
			}
			keep[f.Name] = sum == record.Sums[f.Name]
		}
	}
	for _, e := range entries {
		if !keep[e.Name()] {
			if err := os.RemoveAll(filepath.Join(under, e.Name())); err != nil {
				return 0, err
			}
		}
	}
	done := int64(0)
	for _, f := range record.Files {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if !keep[f.Name] {
			sum, err := copyFile(filepath.Join(r.From, backupStore, f.Name), filepath.Join(under, f.Name), w)
			if err != nil {
				return 0, err
			}
			if sum != record.Sums[f.Name] {
				return 0, fmt.Errorf("%s in the backup is damaged: use another backup", f.Name)
			}
		}
		done += f.Bytes
		w.reach(done)
	}
	return bytes, nil
}

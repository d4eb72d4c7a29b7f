// SPDX-License-Identifier: MIT

// Command kill shows that acknowledged writes survive the death of the server. It starts
// the real binary on a directory, writes to it from several clients at once, ends it with
// SIGKILL, checks the data with "mayfly check", starts it again and reads everything back;
// and so on with the same data. It never reads the data itself, and imports nothing of
// Mayfly.
//
// What must hold: an acknowledged write exists after the kill, byte for byte. A write that
// was under way exists as a whole or not at all, be it of one item, a transactional batch,
// a stored procedure or a write with triggers. A refused write has left nothing behind. An
// expired item stays gone. The database's time does not go back.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// errBroken: the database broke one of these guarantees.
var errBroken = errors.New("promises were broken")

const (
	writers      = 8
	minLoad      = 50 * time.Millisecond
	maxLoad      = 400 * time.Millisecond
	maxComplaint = 20 // that are printed in a round
)

func main() {
	var (
		binary = flag.String("mayfly", "", "the server's `binary`")
		data   = flag.String("data", "", "an empty `directory` for its data")
		rounds = flag.Int("rounds", 20, "how often to kill it")
		seed   = flag.Uint64("seed", uint64(time.Now().UnixNano()), "chooses the writes and the moments, though not what the machine makes of them")
	)
	flag.Parse()
	if *binary == "" || *data == "" || *rounds < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	fmt.Printf("seed %d, data in %s\n", *seed, *data)
	if err := run(*binary, *data, *rounds, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "kill:", err)
		os.Exit(1)
	}
}

// trial is the whole run. The clients' knowledge outlives every server.
type trial struct {
	binary, data string
	writers      []*writer
	random       *rand.Rand

	kills, acknowledged, bundled, lost int
}

func run(binary, data string, rounds int, seed uint64) error {
	t := &trial{binary: binary, data: data, random: rand.New(rand.NewPCG(seed, 0))}
	for i := range writers {
		t.writers = append(t.writers, newWriter(i, rand.New(rand.NewPCG(seed, uint64(i+1)))))
	}
	if err := t.setUp(); err != nil {
		return err
	}
	err := t.rounds(rounds)
	fmt.Printf("%d kills, %d acknowledged writes, %d of them of several items, %d lost\n", t.kills, t.acknowledged, t.bundled, t.lost)
	return err
}

// rounds kills the server so many times, or until something is wrong, and reads the data
// back from a server that is then stopped cleanly.
func (t *trial) rounds(most int) error {
	for n := 1; n <= most; n++ {
		if err := t.round(n); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
	}
	s, err := start(t.binary, t.data)
	if err != nil {
		return err
	}
	read, err := t.readBack(s)
	fmt.Printf("at the end: %4d items read back\n", read)
	return errors.Join(err, s.stop())
}

// setUp creates the container, in four partitions.
func (t *trial) setUp() error {
	s, err := start(t.binary, t.data)
	if err != nil {
		return err
	}
	err = createContainer(newClient(s.endpoint))
	return errors.Join(err, s.stop())
}

// round starts the server, reads back the writes of the round before, and kills the server
// under load.
func (t *trial) round(n int) error {
	began := time.Now()
	s, err := start(t.binary, t.data)
	if err != nil {
		return err
	}
	defer s.kill()
	read, err := t.readBack(s)
	if err != nil {
		return err
	}
	load := minLoad + time.Duration(t.random.Int64N(int64(maxLoad-minLoad)))
	ended := make(chan error, len(t.writers))
	for _, w := range t.writers {
		go func() { ended <- w.write(newClient(s.endpoint)) }()
	}
	select {
	case err := <-ended:
		return fmt.Errorf("a request failed before the kill: %w\n%s", err, s.killed())
	case <-time.After(load):
	}
	s.kill()
	t.kills++
	for range t.writers {
		<-ended
	}
	acknowledged, doubts := 0, 0
	for _, w := range t.writers {
		acknowledged += w.acknowledged
		t.bundled += w.bundled
		doubts += w.doubts()
	}
	t.acknowledged += acknowledged
	if err := t.complaints(); err != nil {
		return err
	}
	checked, err := check(t.binary, t.data)
	if err != nil {
		return err
	}
	fmt.Printf("round %2d: %4d items read back, killed after %3d ms, %4d writes acknowledged, %d in doubt, check %s (%.1f s)\n",
		n, read, load.Milliseconds(), acknowledged, doubts, checked, time.Since(began).Seconds())
	return nil
}

// readBack lets every writer compare what it knows with the data.
func (t *trial) readBack(s *server) (int, error) {
	ended := make(chan int)
	for _, w := range t.writers {
		go func() { ended <- w.readBack(newClient(s.endpoint)) }()
	}
	read := 0
	for range t.writers {
		read += <-ended
	}
	return read, t.complaints()
}

// complaints prints the problems that the writers found, and counts them.
func (t *trial) complaints() error {
	found := 0
	for _, w := range t.writers {
		for _, c := range w.complaints {
			if found++; found <= maxComplaint {
				fmt.Println("LOST:", c)
			}
		}
		w.complaints = nil
	}
	t.lost += found
	if found > 0 {
		return fmt.Errorf("%w: %d", errBroken, found)
	}
	return nil
}

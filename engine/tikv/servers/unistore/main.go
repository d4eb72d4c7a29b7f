// SPDX-License-Identifier: MIT

// Command unistore serves TiDB's unistore, one store in one process that speaks TiKV's
// protocol, beside a PD. It is for tests: it has no replicas, it keeps locks in memory, and it
// loses updates with one-phase and with asynchronous commits.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/pingcap/kvproto/pkg/tikvpb"
	"github.com/pingcap/log"
	"github.com/pingcap/tidb/store/mockstore/unistore/config"
	"github.com/pingcap/tidb/store/mockstore/unistore/pd"
	"github.com/pingcap/tidb/store/mockstore/unistore/server"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	conf := config.DefaultConf
	conf.Server.Raft = false
	flag.StringVar(&conf.Server.PDAddr, "pd", conf.Server.PDAddr, "address of PD")
	flag.StringVar(&conf.Server.StoreAddr, "addr", conf.Server.StoreAddr, "address to listen on")
	flag.StringVar(&conf.Engine.DBPath, "data", "", "directory of the data")
	flag.Int64Var(&conf.Server.RegionSize, "region-size", conf.Server.RegionSize, "size in bytes from which a region is split")
	flag.Int64Var(&conf.Engine.MaxMemTableSize, "memory-table", conf.Engine.MaxMemTableSize, "size in bytes from which a table in memory becomes a file")
	flag.Int64Var(&conf.Engine.MaxTableSize, "table", conf.Engine.MaxTableSize, "size in bytes of a file that was merged from others")
	flag.BoolVar(&conf.Engine.SyncWrite, "sync", false, "acknowledge a write when it is on disk")
	level := flag.String("log", "error", "least level that is logged")
	flag.Parse()
	if err := run(&conf, *level); err != nil {
		fmt.Fprintln(os.Stderr, "unistore:", err)
		os.Exit(1)
	}
}

func run(conf *config.Config, level string) error {
	logger, properties, err := log.InitLogger(&log.Config{Level: level})
	if err != nil {
		return err
	}
	log.ReplaceGlobals(logger, properties)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := os.MkdirAll(conf.Engine.DBPath+"/kv", 0o700); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", conf.Server.StoreAddr)
	if err != nil {
		return err
	}
	conf.Server.StoreAddr = listener.Addr().String()
	client, err := pd.NewClient([]string{conf.Server.PDAddr}, "unistore")
	if err != nil {
		return err
	}
	store, err := server.New(conf, client)
	if err != nil {
		return err
	}
	const message = 64 << 20
	s := grpc.NewServer(grpc.MaxRecvMsgSize(message), grpc.MaxSendMsgSize(message))
	tikvpb.RegisterTikvServer(s, store)
	// A client that has lost its connection asks whether the store is alive.
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	fmt.Println("unistore listens on", conf.Server.StoreAddr)
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	s.Stop()
	store.Stop()
	return nil
}

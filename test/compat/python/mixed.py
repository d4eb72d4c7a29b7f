# SPDX-License-Identifier: MIT

"""The mixed load of ../go/load/mixed.go with this SDK: see there."""

import json
import os
import sys
import threading
import traceback

from azure.cosmos import CosmosClient
from azure.cosmos.documents import SSLConfiguration

WORKERS = 1  # 4.17.1 copies the headers of answers while another thread changes them
REPORT_SECONDS = 0.2
ITEMS = 24  # of a worker
PAGE = 5  # a query takes several, so that a split comes between them


def connect():
    trusted = SSLConfiguration()
    trusted.SSLCaCerts = os.environ["MAYFLY_CERTIFICATE"]
    client = CosmosClient(os.environ["MAYFLY_ENDPOINT"], os.environ["MAYFLY_KEY"], ssl_config=trusted)
    return client.get_database_client("split").get_container_client("c")


class Load:
    """What all workers share."""

    def __init__(self, container):
        self.container = container
        self.lock = threading.Lock()
        self.writes = self.reads = self.errors = 0
        self.last = "none"
        self.wrong = ""
        self.over = threading.Event()

    def print(self):
        with self.lock:
            print(self.writes, self.reads, self.errors, self.last, flush=True)


class Worker:
    def __init__(self, load, by):
        self.load = load
        self.container = load.container
        self.by = by
        self.told = {}  # the version of each item that was acknowledged

    def id(self, n):
        return f"{self.by}-{n % ITEMS}"

    def wrong(self, text):
        self.load.wrong = self.load.wrong or text

    def check(self, item):
        if item["v"] != self.told[item["id"]]:
            self.wrong(f"it is shown {item} where {self.told[item['id']]} was acknowledged last")

    def all(self, seen, ids):
        if sorted(item["id"] for item in seen) != sorted(ids):
            self.wrong(f"{[item['id'] for item in seen]} are shown of {sorted(ids)}")
        else:
            for item in seen:
                self.check(item)

    def write(self, n):
        id = self.id(n)
        version = self.told.get(id, 0) + 1
        body = {"id": id, "pk": id, "owner": self.by, "v": version}
        if version == 1:
            self.container.create_item(body)
        else:
            self.container.upsert_item(body)
        self.told[id] = version
        with self.load.lock:
            self.load.writes += 1

    def read(self, n):
        id = self.id(n // 2)
        self.check(self.container.read_item(id, id))

    def query(self, text):
        return list(self.container.query_items(
            text, parameters=[{"name": "@by", "value": self.by}], enable_cross_partition_query=True, max_item_count=PAGE))

    def find(self):
        self.all(self.query("SELECT c.id, c.v FROM c WHERE c.owner = @by"), self.told)

    def order(self):
        seen = self.query("SELECT c.id, c.v FROM c WHERE c.owner = @by ORDER BY c.id")
        self.all(seen, self.told)
        ids = [item["id"] for item in seen]
        if ids != sorted(ids):
            self.wrong(f"a query in the order of ids shows {ids}")

    def count(self):
        [n] = self.query("SELECT VALUE COUNT(1) FROM c WHERE c.owner = @by")
        if n != len(self.told):
            self.wrong(f"a query counts {n} items of {len(self.told)}")

    def latest(self):
        top = self.query("SELECT TOP 7 VALUE c.v FROM c WHERE c.owner = @by ORDER BY c.v DESC")
        known = sorted(self.told.values(), reverse=True)[:7]
        if top != known:
            self.wrong(f"a query for the latest versions shows {top} and not {known}")

    def many(self):
        """Reads many items at once, which the SDK sorts by ranges."""
        self.all(self.container.read_items([(id, id) for id in self.told], max_concurrency=1), self.told)

    def work(self):
        asks = [self.find, self.order, self.count, self.many, self.latest]
        n = 0
        while not self.load.over.is_set():
            step = "write"
            try:
                self.write(n)
                step = "read"
                self.read(n)
                ask = asks[n % len(asks)]
                step = ask.__name__
                ask()
                with self.load.lock:
                    self.load.reads += 1
            except Exception as e:  # whatever reaches the program is to be told
                traceback.print_exc()
                with self.load.lock:
                    self.load.errors += 1
                    self.load.last = " ".join(f"{step}: {type(e).__name__}: {e}".split())[:500]
            n += 1


def main():
    load = Load(connect())
    workers = [Worker(load, f"python-{i}") for i in range(WORKERS)]
    threads = [threading.Thread(target=w.work) for w in workers]
    for t in threads:
        t.start()

    def wait():
        sys.stdin.read()
        load.over.set()

    threading.Thread(target=wait, daemon=True).start()
    while not load.over.wait(REPORT_SECONDS):
        load.print()
    for t in threads:
        t.join()
    load.print()
    for w in workers:
        print("acknowledged", json.dumps(w.told), flush=True)
    if load.wrong:
        sys.exit(load.wrong)


if __name__ == "__main__":
    main()

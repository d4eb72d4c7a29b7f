# SPDX-License-Identifier: MIT

"""Regions with endpoints of their own: where the SDK reads and writes."""

import socket
import unittest
import uuid

from azure.cosmos import CosmosClient, PartitionKey

from server import WELL_KNOWN_KEY, Server


class Regions(unittest.TestCase):
    def start(self, *flags):
        """Starts a server with two regions, which are two names of this machine."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.west, self.east = f"http://localhost:{port}/", f"http://127.0.0.1:{port}/"
        server = Server("--listen", f"127.0.0.1:{port}", "--memory", "--region", f"West US={self.west}", "--region", f"East US={self.east}", *flags)
        self.addCleanup(server.stop)
        client = self.client()
        client.create_database("d").create_container("c", PartitionKey("/pk"))

    def client(self, *preferred):
        client = CosmosClient(self.west, WELL_KNOWN_KEY, preferred_locations=list(preferred), multiple_write_locations=True)
        self.addCleanup(client.__exit__)
        return client

    def container(self, *preferred):
        return self.client(*preferred).get_database_client("d").get_container_client("c")

    def endpoint_of(self, call, *args, **kwargs):
        """Makes a call and returns the endpoint that its last request went to."""
        urls = []
        call(*args, raw_response_hook=lambda response: urls.append(response.http_request.url), **kwargs)
        return urls[-1].partition("dbs/")[0]

    def create(self, container):
        return self.endpoint_of(container.create_item, {"id": str(uuid.uuid4()), "pk": "a"})

    def test_the_first_region_takes_writes(self):
        self.start()
        east = self.container("East US", "West US")
        self.assertEqual(self.create(east), self.west)
        self.assertEqual(self.endpoint_of(east.read), self.east)

    def test_every_region_takes_writes(self):
        self.start("--multi-write")
        west, east = self.container("West US", "East US"), self.container("East US", "West US")
        self.assertEqual(self.create(east), self.east)
        self.assertEqual(self.create(west), self.west)
        self.assertEqual(self.endpoint_of(east.upsert_item, {"id": "1", "pk": "a", "n": 1}), self.east)
        self.assertEqual(west.read_item("1", "a")["n"], 1)
        west.patch_item("1", "a", [{"op": "incr", "path": "/n", "value": 1}])
        self.assertEqual(east.read_item("1", "a")["n"], 2)
        self.assertEqual(len(list(east.query_items("SELECT VALUE c.id FROM c", partition_key="a"))), 3)
        self.assertEqual(list(west.list_conflicts()), [])


if __name__ == "__main__":
    unittest.main()

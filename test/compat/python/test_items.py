# SPDX-License-Identifier: MIT

import os
import subprocess
import tempfile
import unittest
import warnings

from azure.core import MatchConditions
from azure.cosmos import CosmosClient, PartitionKey, exceptions
from azure.cosmos.documents import SSLConfiguration

from server import WELL_KNOWN_KEY, Server, ServerTest


class Items(ServerTest):
    def test_an_item_is_created_read_replaced_and_deleted(self):
        c = self.container()
        created = c.create_item({"id": "1", "pk": "a", "n": 1, "text": "é𝄞"})
        self.assertEqual(created["text"], "é𝄞")
        self.assertGreater(float(created.get_response_headers()["x-ms-request-charge"]), 0)
        read = c.read_item("1", "a")
        self.assertEqual(read, created)
        replaced = c.replace_item("1", {**read, "n": 2})
        self.assertEqual(replaced["n"], 2)
        self.assertNotEqual(replaced["_etag"], created["_etag"])
        self.assertEqual(c.upsert_item({"id": "2", "pk": "a"})["id"], "2")
        c.delete_item("1", "a")
        with self.assertRaises(exceptions.CosmosResourceNotFoundError):
            c.read_item("1", "a")

    def test_conflicts_and_conditions_are_told_apart(self):
        c = self.container()
        first = c.create_item({"id": "1", "pk": "a"})
        with self.assertRaises(exceptions.CosmosResourceExistsError):
            c.create_item({"id": "1", "pk": "a"})
        c.replace_item("1", {"id": "1", "pk": "a", "n": 1})
        with self.assertRaises(exceptions.CosmosAccessConditionFailedError):
            c.replace_item("1", {"id": "1", "pk": "a"}, etag=first["_etag"], match_condition=MatchConditions.IfNotModified)

    def test_many_items_are_read_at_once(self):
        c = self.container(offer_throughput=25_000)
        keys = [(str(i), f"p{i % 7}") for i in range(40)]
        for id, pk in keys:
            c.create_item({"id": id, "pk": pk})
        items = c.read_items(keys)
        self.assertEqual(sorted((i["id"], i["pk"]) for i in items), sorted(keys))

    def test_many_items_are_read_without_those_that_are_gone(self):
        c = self.container(default_ttl=-1, offer_throughput=25_000)
        self.server.clock({"freeze": True})
        self.addCleanup(self.server.clock, {"release": True})
        for n in range(10):
            c.create_item({"id": str(n), "pk": f"p{n}", "ttl": 5 if n % 2 else -1})
        self.server.clock({"advance": "5s"})
        items = c.read_items([(str(n), f"p{n}") for n in range(12)])
        self.assertEqual(sorted(i["id"] for i in items), ["0", "2", "4", "6", "8"])


class Certificates(unittest.TestCase):
    def test_https_is_served_beside_http_to_who_trusts_the_certificate(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        data = os.path.join(scratch.name, "data")
        server = Server("--data", data, "--sync=false")
        self.addCleanup(server.stop)
        trusted = SSLConfiguration()
        trusted.SSLCaCerts = os.path.join(scratch.name, "trusted.pem")
        with open(trusted.SSLCaCerts, "wb") as file:
            file.write(subprocess.check_output([os.environ["MAYFLY_BINARY"], "cert", "--data", data], env={}))
        # On loopback the SDK verifies certificates only if it is told what to trust,
        # and warns if it is not.
        with warnings.catch_warnings(action="error"):
            with CosmosClient(f"https://{server.address}/", WELL_KNOWN_KEY, ssl_config=trusted) as client:
                c = client.create_database("https").create_container("c", PartitionKey("/pk"))
                c.create_item({"id": "1", "pk": "a"})
                self.assertEqual(c.read_item("1", "a")["id"], "1")


if __name__ == "__main__":
    unittest.main()

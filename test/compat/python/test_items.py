# SPDX-License-Identifier: MIT

import unittest
import warnings

from azure.core import MatchConditions
from azure.cosmos import CosmosClient, exceptions

from server import WELL_KNOWN_KEY, ServerTest


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

    def test_https_is_served_beside_http(self):
        # The SDK itself decides not to verify certificates on loopback, and warns.
        with warnings.catch_warnings(action="ignore"):
            with CosmosClient(f"https://{self.server.address}/", WELL_KNOWN_KEY) as client:
                self.assertEqual(client.create_database("https").id, "https")


if __name__ == "__main__":
    unittest.main()

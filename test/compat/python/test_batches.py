# SPDX-License-Identifier: MIT

import unittest

from azure.cosmos import exceptions

from server import ServerTest


class Patches(ServerTest):
    def test_operations_are_done_in_order(self):
        c = self.container()
        c.create_item({"id": "1", "pk": "a", "n": 1, "list": ["x"], "old": True})
        patched = c.patch_item("1", "a", [
            {"op": "incr", "path": "/n", "value": 4},
            {"op": "add", "path": "/list/-", "value": "y"},
            {"op": "set", "path": "/deep", "value": {"er": 1}},
            {"op": "remove", "path": "/old"},
        ])
        self.assertEqual((patched["n"], patched["list"], patched["deep"], "old" in patched), (5, ["x", "y"], {"er": 1}, False))
        self.assertEqual(c.read_item("1", "a"), patched)

    def test_a_condition_decides(self):
        c = self.container()
        c.create_item({"id": "1", "pk": "a", "n": 1})
        operations = [{"op": "incr", "path": "/n", "value": 1}]
        self.assertEqual(c.patch_item("1", "a", operations, filter_predicate="FROM c WHERE c.n = 1")["n"], 2)
        with self.assertRaises(exceptions.CosmosHttpResponseError) as refused:
            c.patch_item("1", "a", operations, filter_predicate="FROM c WHERE c.n = 1")
        self.assertEqual(refused.exception.status_code, 412)
        self.assertEqual(c.read_item("1", "a")["n"], 2)


class Batches(ServerTest):
    def test_all_operations_are_done(self):
        c = self.container()
        c.create_item({"id": "1", "pk": "a"})
        results = c.execute_item_batch([
            ("create", ({"id": "2", "pk": "a"},)),
            ("upsert", ({"id": "3", "pk": "a"},)),
            ("read", ("2",)),
            ("patch", ("3", [{"op": "set", "path": "/n", "value": 1}])),
            ("delete", ("1",)),
        ], "a")
        self.assertEqual([r["statusCode"] for r in results], [201, 201, 200, 200, 204])
        found = c.query_items("SELECT VALUE c.id FROM c", partition_key="a")
        self.assertEqual(sorted(found), ["2", "3"])

    def test_or_none(self):
        c = self.container()
        c.create_item({"id": "1", "pk": "a"})
        with self.assertRaises(exceptions.CosmosBatchOperationError) as refused:
            c.execute_item_batch([("create", ({"id": "2", "pk": "a"},)), ("create", ({"id": "1", "pk": "a"},))], "a")
        self.assertEqual(refused.exception.error_index, 1)
        self.assertEqual(refused.exception.status_code, 409)
        with self.assertRaises(exceptions.CosmosResourceNotFoundError):
            c.read_item("2", "a")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT

import unittest

from azure.cosmos import exceptions

from server import ServerTest


class TimeToLive(ServerTest):
    def setUp(self):
        self.server.clock({"freeze": True})
        self.addCleanup(self.server.clock, {"release": True})

    def advance(self, duration):
        self.server.clock({"advance": duration})

    def gone(self, c, id):
        with self.assertRaises(exceptions.CosmosResourceNotFoundError):
            c.read_item(id, "a")

    def test_items_expire_on_the_millisecond(self):
        c = self.container(default_ttl=5)
        for item in ({"id": "inherits"}, {"id": "shorter", "ttl": 2}, {"id": "never", "ttl": -1}):
            c.create_item({"pk": "a", **item})
        self.advance("1999ms")
        self.assertEqual(c.read_item("shorter", "a")["ttl"], 2)
        self.advance("1ms")
        self.gone(c, "shorter")
        self.advance("3s")
        self.gone(c, "inherits")
        self.assertEqual([i["id"] for i in c.query_items("SELECT * FROM c", partition_key="a")], ["never"])

    def test_a_write_begins_the_life_anew(self):
        c = self.container(default_ttl=5)
        c.create_item({"id": "1", "pk": "a"})
        self.advance("4s")
        c.upsert_item({"id": "1", "pk": "a"})
        self.advance("4s")
        self.assertEqual(c.read_item("1", "a")["id"], "1")
        self.advance("1s")
        self.gone(c, "1")


if __name__ == "__main__":
    unittest.main()

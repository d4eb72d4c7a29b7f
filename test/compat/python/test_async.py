# SPDX-License-Identifier: MIT

"""The SDK's other client, which has an HTTP stack of its own."""

import unittest
import uuid

from azure.cosmos import PartitionKey, exceptions
from azure.cosmos.aio import CosmosClient

from server import WELL_KNOWN_KEY, ServerTest


class Async(ServerTest, unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.client = await self.enterAsyncContext(CosmosClient(self.server.endpoint, WELL_KNOWN_KEY))
        self.database = await self.client.create_database(f"python-{uuid.uuid4()}")

    async def create(self, **definition):
        return await self.database.create_container("c", **{"partition_key": PartitionKey("/pk"), **definition})

    async def test_items_queries_and_batches(self):
        c = await self.create(offer_throughput=25_000)
        for n in range(20):
            await c.create_item({"id": str(n), "pk": f"p{n % 7}", "n": n})
        self.assertEqual((await c.read_item("3", "p3"))["n"], 3)
        ordered = c.query_items("SELECT VALUE c.n FROM c ORDER BY c.n DESC")
        self.assertEqual([n async for n in ordered], list(range(19, -1, -1)))
        many = await c.read_items([(str(n), f"p{n % 7}") for n in range(25)])
        self.assertEqual(len(many), 20)
        with self.assertRaises(exceptions.CosmosBatchOperationError):
            await c.execute_item_batch([("create", ({"id": "new", "pk": "p0"},)), ("create", ({"id": "0", "pk": "p0"},))], "p0")
        with self.assertRaises(exceptions.CosmosResourceNotFoundError):
            await c.read_item("new", "p0")

    async def test_both_modes_of_the_change_feed(self):
        self.server.clock({"freeze": True})
        self.addCleanup(self.server.clock, {"release": True})
        c = await self.create(change_feed_policy={"retentionDuration": 10}, default_ttl=-1)
        self.assertEqual([i async for i in c.query_items_change_feed(mode="AllVersionsAndDeletes", start_time="Now")], [])
        now = c.client_connection.last_response_headers["etag"]
        await c.create_item({"id": "1", "pk": "a", "ttl": 5})
        await c.create_item({"id": "2", "pk": "a"})
        self.server.clock({"advance": "5s"})
        latest = c.query_items_change_feed(start_time="Beginning")
        self.assertEqual([i["id"] async for i in latest], ["2"])
        told = c.query_items_change_feed(mode="AllVersionsAndDeletes", continuation=now)
        kinds = [(i["metadata"]["operationType"], i["metadata"].get("timeToLiveExpired", False)) async for i in told]
        self.assertEqual(kinds, [("create", False), ("create", False), ("delete", True)])


if __name__ == "__main__":
    unittest.main()

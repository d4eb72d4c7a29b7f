# SPDX-License-Identifier: MIT

import unittest

from server import ServerTest


class Changes(ServerTest):
    def test_the_change_feed_has_each_item_as_it_is_now(self):
        c = self.container(offer_throughput=25_000)
        for n in range(12):
            c.create_item({"id": str(n), "pk": f"p{n % 5}", "n": 0})
        c.upsert_item({"id": "3", "pk": "p3", "n": 1})
        c.delete_item("4", "p4")
        changes = {i["id"]: i["n"] for i in c.query_items_change_feed(start_time="Beginning")}
        self.assertEqual(changes, {str(n): int(n == 3) for n in range(12) if n != 4})

    def test_the_feed_goes_on_from_its_continuation(self):
        c = self.container()
        c.create_item({"id": "1", "pk": "a"})
        feed = c.query_items_change_feed(start_time="Beginning").by_page()
        first = [item["id"] for page in feed for item in page]
        c.create_item({"id": "2", "pk": "a"})
        rest = c.query_items_change_feed(continuation=feed.continuation_token).by_page()
        self.assertEqual(first, ["1"])
        self.assertEqual([item["id"] for page in rest for item in page], ["2"])

    def test_each_range_and_each_key_has_its_share(self):
        c = self.container(offer_throughput=25_000)
        for n in range(40):
            c.create_item({"id": str(n), "pk": f"p{n % 20}"})
        shares = [
            [item["id"] for item in c.query_items_change_feed(feed_range=share, start_time="Beginning")]
            for share in c.read_feed_ranges()
        ]
        self.assertEqual(len(shares), 5)
        self.assertEqual(sorted(id for share in shares for id in share), sorted(str(n) for n in range(40)))
        of_key = c.query_items_change_feed(partition_key="p7", start_time="Beginning")
        self.assertEqual([item["id"] for item in of_key], ["7", "27"])

    def test_all_versions_and_deletes(self):
        c = self.container(change_feed_policy={"retentionDuration": 10}, default_ttl=60)
        self.assertEqual(list(c.query_items_change_feed(mode="AllVersionsAndDeletes", start_time="Now")), [])
        now = c.client_connection.last_response_headers["etag"]
        c.create_item({"id": "1", "pk": "a", "n": 1})
        c.upsert_item({"id": "1", "pk": "a", "n": 2})
        c.delete_item("1", "a")
        told = list(c.query_items_change_feed(mode="AllVersionsAndDeletes", continuation=now))
        self.assertEqual([change["metadata"]["operationType"] for change in told], ["create", "replace", "delete"])
        self.assertEqual([change["current"].get("n") for change in told], [1, 2, None])
        self.assertNotIn("previous", told[2])
        self.assertFalse(told[2]["metadata"]["timeToLiveExpired"])


class Expiries(ServerTest):
    def setUp(self):
        self.server.clock({"freeze": True})
        self.addCleanup(self.server.clock, {"release": True})

    def test_the_latest_versions_are_without_them(self):
        c = self.container(default_ttl=60)
        for item in ({"id": "short", "ttl": 5}, {"id": "default"}, {"id": "kept", "ttl": -1}):
            c.create_item({"pk": "a", **item})
        for advance, left in (("4999ms", ["short", "default", "kept"]), ("1ms", ["default", "kept"]), ("55s", ["kept"])):
            self.server.clock({"advance": advance})
            feed = c.query_items_change_feed(start_time="Beginning")
            self.assertEqual([item["id"] for item in feed], left)

    def test_all_versions_tell_them_in_each_range(self):
        c = self.container(change_feed_policy={"retentionDuration": 10}, default_ttl=-1, offer_throughput=25_000)
        positions = []
        for share in c.read_feed_ranges():
            feed = c.query_items_change_feed(feed_range=share, mode="AllVersionsAndDeletes", start_time="Now")
            self.assertEqual(list(feed), [])
            positions.append(c.client_connection.last_response_headers["etag"])
        for n in range(20):
            c.create_item({"id": str(n), "pk": f"p{n}", "n": n, "ttl": 5})
        c.delete_item("0", "p0")
        self.server.clock({"advance": "5s"})
        told = {}
        for position in positions:
            for change in c.query_items_change_feed(mode="AllVersionsAndDeletes", continuation=position):
                metadata = change["metadata"]
                told.setdefault(metadata.get("id") or change["current"]["id"], []).append(change)
        self.assertEqual(sorted(told), sorted(str(n) for n in range(20)))
        for id, (created, deleted) in told.items():
            self.assertEqual(created["metadata"]["operationType"], "create")
            self.assertEqual(deleted["metadata"]["operationType"], "delete")
            self.assertEqual(deleted["metadata"]["timeToLiveExpired"], id != "0")
            self.assertEqual(deleted["metadata"]["previousImageLSN"], created["metadata"]["lsn"])
            self.assertEqual(deleted["metadata"]["partitionKey"], {"pk": f"p{id}"})
            self.assertEqual(deleted["current"], {})
            self.assertNotIn("previous", deleted)


if __name__ == "__main__":
    unittest.main()

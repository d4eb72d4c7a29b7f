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
        self.assertEqual(told[2]["previous"]["n"], 2)
        self.assertFalse(told[2]["metadata"]["timeToLiveExpired"])


if __name__ == "__main__":
    unittest.main()

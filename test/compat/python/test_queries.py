# SPDX-License-Identifier: MIT

import unittest

from server import ServerTest


class Queries(ServerTest):
    def numbers(self, **definition):
        """Returns a container with the items 0 to 29 under three partition keys."""
        c = self.container(**definition)
        for n in range(30):
            c.create_item({"id": str(n), "pk": f"p{n % 3}", "n": n})
        return c

    def ask(self, c, query, **options):
        return list(c.query_items(query, **{"enable_cross_partition_query": True, **options}))

    def test_one_partition_key(self):
        c = self.numbers()
        found = self.ask(c, "SELECT VALUE c.n FROM c WHERE c.n > @least ORDER BY c.n DESC",
                         parameters=[{"name": "@least", "value": 20}], partition_key="p1")
        self.assertEqual(found, [28, 25, 22])

    def test_several_partitions_are_merged(self):
        # 25,000 RU/s make five physical partitions: the SDK asks each, and merges.
        c = self.numbers(offer_throughput=25_000)
        self.assertEqual(self.ask(c, "SELECT VALUE c.n FROM c ORDER BY c.n"), list(range(30)))
        self.assertEqual(self.ask(c, "SELECT VALUE SUM(c.n) FROM c"), [435])
        self.assertEqual(self.ask(c, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3"), [10, 11, 12])
        self.assertEqual(sorted(self.ask(c, "SELECT DISTINCT VALUE c.pk FROM c")), ["p0", "p1", "p2"])

    def test_a_page_goes_on_where_the_last_one_ended(self):
        c = self.numbers()
        query = "SELECT VALUE c.n FROM c WHERE c.pk = 'p2' ORDER BY c.n"
        seen, token = [], None
        for _ in range(20):
            pages = c.query_items(query, partition_key="p2", max_item_count=3).by_page(token)
            page = list(next(pages))
            self.assertLessEqual(len(page), 3)
            seen += page
            token = pages.continuation_token
            if not token:
                break
        self.assertEqual(seen, list(range(2, 30, 3)))

    def test_containers_are_listed_and_queried(self):
        c = self.container()
        self.assertEqual(c.read()["id"], "c")
        self.assertEqual(c.get_throughput().offer_throughput, 400)


if __name__ == "__main__":
    unittest.main()

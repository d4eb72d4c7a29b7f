# SPDX-License-Identifier: MIT

"""Follows the change feed by its continuation, for ../go/split: see there."""

import sys
import threading
import traceback

from mixed import connect

BETWEEN_SECONDS = 0.05  # looks, when nothing is new


def main():
    container = connect()
    over = threading.Event()

    def wait():
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    start, reads = {"start_time": "Beginning"}, 0
    while not over.wait(BETWEEN_SECONDS):
        try:
            for item in container.query_items_change_feed(max_item_count=7, **start):
                print("change", item["id"], item["v"], flush=True)
        except Exception as e:  # whatever reaches the program is to be told
            traceback.print_exc()
            print(0, reads, 1, " ".join(f"{type(e).__name__}: {e}".split())[:500], flush=True)
            return
        reads += 1
        # The pages' own token is that of the last page that had items, and so before the
        # ranges in which nothing was new. The SDK does not take it if one was not read yet.
        start = {"continuation": container.client_connection.last_response_headers["etag"]}


if __name__ == "__main__":
    main()

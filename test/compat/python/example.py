# SPDX-License-Identifier: MIT

# Keeps a cart for five seconds.

import os
import time

from azure.cosmos import CosmosClient, PartitionKey, exceptions

client = CosmosClient.from_connection_string(os.environ["MAYFLY_CONNECTION"])
shop = client.create_database_if_not_exists("shop")
carts = shop.create_container_if_not_exists("carts", PartitionKey("/customer"), default_ttl=5)  # seconds

carts.create_item({"id": "1", "customer": "ada", "goods": ["tea"]})
print("now:", carts.read_item("1", "ada"))

time.sleep(6)
try:
    carts.read_item("1", "ada")
except exceptions.CosmosResourceNotFoundError as e:
    print("six seconds later:", e.status_code)  # 404

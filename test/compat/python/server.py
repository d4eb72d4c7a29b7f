# SPDX-License-Identifier: MIT

"""Starting and stopping the real binary, for the tests beside.

MAYFLY_BINARY names it; test/compat/run builds it.
"""

import json
import os
import re
import subprocess
import tempfile
import unittest
import urllib.request
import uuid

from azure.cosmos import CosmosClient, PartitionKey

WELL_KNOWN_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
STOP_LIMIT_SECONDS = 20
REQUEST_LIMIT_SECONDS = 20


class Server:
    """A running server, on a port that was free."""

    def __init__(self, *flags):
        self.log = tempfile.TemporaryFile()
        # Without an environment, so that no MAYFLY_ variable has a say.
        self.process = subprocess.Popen(
            [os.environ["MAYFLY_BINARY"], "serve", "--listen", "127.0.0.1:0", *flags],
            env={}, stdout=subprocess.PIPE, stderr=self.log, text=True)
        for line in self.process.stdout:
            found = re.match(r"Mayfly listens on http://(\S+) and https:", line)
            if found:
                self.address = found[1]
                break
        else:
            raise AssertionError(f"the server did not say where it listens:\n{self.stop()}")
        self.endpoint = f"http://{self.address}/"

    def stop(self):
        """Stops it as an operator would; returns what it logged."""
        self.process.terminate()
        self.process.wait(STOP_LIMIT_SECONDS)
        self.process.stdout.close()
        self.log.seek(0)
        text = self.log.read().decode()
        self.log.close()
        return text

    def clock(self, move):
        """Moves the time, for example {"advance": "5s"}."""
        request = urllib.request.Request(
            self.endpoint + "_mayfly/clock", json.dumps(move).encode(),
            {"Authorization": f"Bearer {WELL_KNOWN_KEY}"})
        with urllib.request.urlopen(request, timeout=REQUEST_LIMIT_SECONDS) as answer:
            assert answer.status == 200, answer.read()


class ServerTest(unittest.TestCase):
    """Tests that share a server in memory whose time they can move."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--memory", "--test-clock")

        def stop():
            log = cls.server.stop()
            assert cls.server.process.returncode == 0, f"the server is to stop in peace, but:\n{log}"

        cls.addClassCleanup(stop)

    def container(self, **definition):
        """Creates a container in a database that no other test has."""
        client = CosmosClient(self.server.endpoint, WELL_KNOWN_KEY)
        self.addCleanup(client.__exit__)
        database = client.create_database(f"python-{uuid.uuid4()}")
        return database.create_container("c", **{"partition_key": PartitionKey("/pk"), **definition})

# SPDX-License-Identifier: MIT

"""The program that docs/start.md shows, by the real time."""

import os
import pathlib
import subprocess
import sys

from server import WELL_KNOWN_KEY, ServerTest

LIMIT_SECONDS = 60


class Example(ServerTest):
    def test_the_example_over_http(self):
        connection = f"AccountEndpoint={self.server.endpoint};AccountKey={WELL_KNOWN_KEY};"
        program = pathlib.Path(__file__).with_name("example.py")
        done = subprocess.run([sys.executable, program], env={**os.environ, "MAYFLY_CONNECTION": connection},
                              capture_output=True, text=True, timeout=LIMIT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^now: \{'id': '1', 'customer': 'ada', 'goods': \['tea'\],.*\nsix seconds later: 404\n$")

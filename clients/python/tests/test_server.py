# SPDX-License-Identifier: MIT

import base64
import datetime
import hashlib
import hmac
import json
import ssl
import unittest
import urllib.error
import urllib.parse
import urllib.request
from email.utils import formatdate

import mayfly_server


def send(server, method, path, kind, link, body=None, headers=None):
    """Sends a signed request of the protocol: the package itself needs no SDK."""
    date = formatdate(usegmt=True)
    text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n".encode()
    sig = base64.b64encode(hmac.new(base64.b64decode(server.key), text, hashlib.sha256).digest()).decode()
    request = urllib.request.Request(
        server.endpoint + path, method=method, data=None if body is None else json.dumps(body).encode(),
        headers={**(headers or {}), "Authorization": urllib.parse.quote(f"type=master&ver=1.0&sig={sig}", safe=""),
                 "x-ms-date": date, "x-ms-version": "2020-07-15"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


class TestServer(unittest.TestCase):
    def test_an_item_expires_when_the_clock_is_moved(self):
        with mayfly_server.start() as server:
            self.assertRegex(server.connection_string, r"^AccountEndpoint=http://127\.0\.0\.1:\d+/;AccountKey=.+;$")
            self.assertEqual(send(server, "POST", "dbs", "dbs", "", {"id": "d"}), 201)
            container = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}, "defaultTtl": 3600}
            self.assertEqual(send(server, "POST", "dbs/d/colls", "colls", "dbs/d", container), 201)
            key = {"x-ms-documentdb-partitionkey": '["a"]'}
            item = {"id": "1", "pk": "a"}
            self.assertEqual(send(server, "POST", "dbs/d/colls/c/docs", "docs", "dbs/d/colls/c", item, key), 201)

            def read():
                return send(server, "GET", "dbs/d/colls/c/docs/1", "docs", "dbs/d/colls/c/docs/1", None, key)

            self.assertEqual(read(), 200)
            server.clock.freeze()
            before = server.clock.now()
            server.clock.advance("58m")
            server.clock.advance(60)
            self.assertEqual(read(), 200)
            server.clock.advance(datetime.timedelta(seconds=61))
            self.assertEqual(read(), 404)
            self.assertEqual(server.clock.now() - before, datetime.timedelta(minutes=59, seconds=61))
            server.clock.set(datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc))
            self.assertEqual(server.clock.now().year, 2100)
            server.clock.release()
            with self.assertRaisesRegex(RuntimeError, "status 400"):
                server.clock.advance("soon")
            self.assertGreaterEqual(mayfly_server.connect(server.connection_string).clock.now().year, 2100)
        with self.assertRaises(OSError):
            server.clock.now()

    def test_its_certificate_is_trusted_over_https(self):
        with mayfly_server.start() as server:
            url = server.endpoint.replace("http:", "https:") + "_mayfly/health"
            trusting = ssl.create_default_context(cafile=server.certificate_file())
            with urllib.request.urlopen(url, context=trusting) as answer:
                self.assertEqual(answer.status, 200)
            with self.assertRaises(urllib.error.URLError):
                urllib.request.urlopen(url, context=ssl.create_default_context())

    def test_a_server_that_cannot_start_says_why(self):
        with self.assertRaisesRegex(RuntimeError, "MAYFLY_BINARY"):
            mayfly_server.start(binary="no-such-program")
        with self.assertRaisesRegex(RuntimeError, "no-such-flag"):
            mayfly_server.start(args=["--no-such-flag"])
        with self.assertRaisesRegex(ValueError, "AccountEndpoint"):
            mayfly_server.connect("nothing")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT

"""A plugin of pytest: what the suite takes for granted of the machine it runs on.

The account and its regions have names below localhost. Such names are this machine
(RFC 6761), which not every resolver knows.

The SDK keeps as many threads as there are processors for requests to a second region.
Tests that ask five partitions want more than two.

Some tests give an answer a billionth of a second, and count on a network that takes
longer. Where DISTANCE is set, to seconds, the way to localhost leads through a relay
that holds back what it passes on for that long."""

import os
import socket
import threading
import time

LEAST_PROCESSORS = 8

processors = os.cpu_count() or 1
os.cpu_count = lambda: max(processors, LEAST_PROCESSORS)

resolve = socket.getaddrinfo
distance = float(os.environ.get("DISTANCE", "0"))
relays = {}  # by the port that they lead to
lock = threading.Lock()


def resolve_here(host, port, *args, **kwargs):
    name = host.decode() if isinstance(host, bytes) else host
    if name and name.endswith(".localhost"):
        host = "127.0.0.1"
    elif name == "localhost" and distance and port:
        host, port = relay(int(port)).getsockname()
    return resolve(host, port, *args, **kwargs)


def relay(port):
    """Returns the socket of the relay to a port of this machine."""
    with lock:
        if port not in relays:
            relays[port] = socket.create_server(("127.0.0.1", 0))
            threading.Thread(target=accept, args=(relays[port], port), daemon=True).start()
        return relays[port]


def accept(listener, port):
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", port))
        for source, target in ((client, server), (server, client)):
            threading.Thread(target=carry, args=(source, target), daemon=True).start()


def carry(source, target):
    try:
        while data := source.recv(65536):
            time.sleep(distance)
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # the client broke off, which is what the tests are about
        source.close()
        target.close()


socket.getaddrinfo = resolve_here

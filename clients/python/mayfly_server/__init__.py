# SPDX-License-Identifier: MIT

"""Starts Mayfly for a test, as the binary or in a container, and moves its clock."""

import atexit
import base64
import datetime
import json
import os
import re
import secrets
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

__all__ = ["Clock", "Server", "connect", "start"]

_START_LIMIT = 60  # seconds until a server must be ready
_TIMEOUT = 30  # seconds for a request
_MAX_OUTPUT = 64 << 10  # bytes that are kept of a server's output, for its error


def start(binary=None, image=None, args=(), env=None):
    """Starts a server, with its data in memory and a clock that can be moved."""
    flags = ["serve", "--memory", "--test-clock", *args]
    if image:
        return _in_container(image, flags, env or {})
    return _as_process(binary or os.environ.get("MAYFLY_BINARY", "mayfly"), flags, env or {})


def connect(connection_string):
    """Returns a server that runs already."""
    found = re.search(r"AccountEndpoint=([^;]*);.*AccountKey=([^;]*)", connection_string)
    if not found:
        raise ValueError("the connection string must have AccountEndpoint and AccountKey")
    return Server(found[1], found[2], lambda: None)


def _as_process(binary, flags, env):
    try:
        child = subprocess.Popen(
            [binary, *flags, "--listen=127.0.0.1:0"],
            env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
    except FileNotFoundError:
        raise RuntimeError(f"there is no program {binary}: install it, or name it with MAYFLY_BINARY") from None
    atexit.register(child.kill)  # a test that fails leaves no server behind
    output, found, ready = [], [], threading.Event()

    def read():
        kept = 0
        for line in child.stdout:
            if kept < _MAX_OUTPUT:
                output.append(line)
                kept += len(line)
            match = re.match(r"Connection string: AccountEndpoint=([^;]*);AccountKey=([^;]*);", line)
            if match and not found:
                found.extend(match.groups())
                ready.set()
        ready.set()  # it has ended

    reader = threading.Thread(target=read, daemon=True)
    reader.start()

    def stop():
        atexit.unregister(child.kill)
        child.terminate()
        child.wait()
        reader.join()
        child.stdout.close()

    if not ready.wait(_START_LIMIT) or not found:
        child.kill()
        stop()
        raise RuntimeError("mayfly has not started:\n" + "".join(output))
    endpoint, key = found
    if key == "<your key>":
        key = env.get("MAYFLY_KEY", os.environ.get("MAYFLY_KEY"))
        if not key:
            stop()
            raise RuntimeError("a server with a key of its own needs it in MAYFLY_KEY")
    return Server(endpoint, key, stop)


def _in_container(image, flags, env):
    key = base64.b64encode(secrets.token_bytes(64)).decode()
    variables = [f"--env={name}={value}" for name, value in {**env, "MAYFLY_KEY": key}.items()]

    def docker(*args):
        return subprocess.run(["docker", *args], check=True, capture_output=True, text=True).stdout.strip()

    container = docker("run", "--detach", "--rm", "--publish=127.0.0.1::8081", *variables, image, *flags, "--listen=0.0.0.0:8081")
    try:
        at = docker("port", container, "8081/tcp").splitlines()[0]
        server = Server(f"http://{at}/", key, lambda: docker("rm", "--force", container))
        server.ready()
        return server
    except BaseException:
        docker("rm", "--force", container)
        raise


class Server:
    """A running server. As a context it stops at the end."""

    def __init__(self, endpoint, key, stop):
        self.endpoint = endpoint if endpoint.endswith("/") else endpoint + "/"
        self.key = key
        self.connection_string = f"AccountEndpoint={self.endpoint};AccountKey={key};"
        self.clock = Clock(self)
        self._stop = stop
        self._files = None

    def certificate(self):
        """Returns the certificate to trust for HTTPS, in PEM."""
        with urllib.request.urlopen(self.endpoint + "_explorer/emulator.pem", timeout=_TIMEOUT) as answer:
            return answer.read().decode()

    def certificate_file(self):
        """Writes it to a file, for connection_verify of a client, or SSL_CERT_FILE."""
        if self._files is None:
            self._files = tempfile.TemporaryDirectory(prefix="mayfly-")
        name = os.path.join(self._files.name, "mayfly.pem")
        with open(name, "w", encoding="ascii") as file:
            file.write(self.certificate())
        return name

    def ready(self):
        """Waits until the server answers."""
        until = time.monotonic() + _START_LIMIT
        while True:
            try:
                with urllib.request.urlopen(self.endpoint + "_mayfly/ready", timeout=_TIMEOUT):
                    return
            except OSError as error:
                if time.monotonic() > until:
                    raise RuntimeError(f"mayfly at {self.endpoint} is not ready: {error}") from error
                time.sleep(0.05)

    def stop(self):
        """Stops the server."""
        self._stop()
        self._stop = lambda: None
        if self._files is not None:
            self._files.cleanup()
            self._files = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Clock:
    """The time of a server."""

    def __init__(self, server):
        self._server = server

    def now(self):
        """Returns the server's time."""
        return datetime.datetime.fromtimestamp(self._send()["nowMs"] / 1000, datetime.timezone.utc)

    def advance(self, duration):
        """Moves the time ahead: by a duration such as "90s" or "3d", by seconds, or by a timedelta."""
        if isinstance(duration, datetime.timedelta):
            duration = f"{duration // datetime.timedelta(milliseconds=1)}ms"
        self._send({"advance": str(duration)})

    def set(self, moment):
        """Moves the time ahead to a moment, which has a time zone."""
        self._send({"set": moment.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")})

    def freeze(self):
        """Stops the time."""
        self._send({"freeze": True})

    def release(self):
        """Lets the time go on."""
        self._send({"release": True})

    def _send(self, change=None):
        request = urllib.request.Request(
            self._server.endpoint + "_mayfly/clock",
            data=None if change is None else json.dumps(change).encode(),
            headers={"Authorization": "Bearer " + self._server.key},
            method="GET" if change is None else "POST",
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(f"the clock: status {error.code}: {error.read().decode()}") from None

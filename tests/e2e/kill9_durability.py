#!/usr/bin/env python3
"""kill -9 under write load: what was acknowledged is there after the restart.

Each round starts `tessera up`, lets several connections create, change and delete ConfigMaps as fast as they can, kills the
process after a random while and starts it again. Then

  - every acknowledged write is there; of the one write a connection had under way either the old or the new state;
  - no value is half written (each carries a digest of itself);
  - the revision has not gone back behind any that a client has seen.

Usage: kill9_durability.py [TESSERA] [--rounds 200] [--connections 4] [--seed 1]
"""
import argparse
import base64
import hashlib
import http.client
import json
import os
import random
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time

PATH = "/api/v1/namespaces/default/configmaps"


class Server:
    """One life of the process."""

    def __init__(self, program, folder):
        self.log = open(os.path.join(folder, "log"), "ab")
        self.process = subprocess.Popen(
            [program, "up", "--nodes", "1", "--data", os.path.join(folder, "data")],
            stdout=subprocess.PIPE, stderr=self.log)
        self.port = None
        for line in self.process.stdout:
            words = line.decode().split()
            if len(words) == 2 and words[0] == "ready":
                self.port = int(words[1].rsplit(":", 1)[1])
            if len(words) == 2 and words[0] == "kubeconfig":
                self.context = tls_context(words[1], folder)
                return
        raise SystemExit("the server did not start: see " + self.log.name)

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=30)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


def tls_context(kubeconfig, folder):
    with open(kubeconfig, encoding="utf-8") as file:
        text = file.read()

    def part(key):
        found = re.search(key + r"-data:\s*\"?([A-Za-z0-9+/=]+)", text)
        return base64.b64decode(found.group(1))

    context = ssl.create_default_context(cadata=part("certificate-authority").decode())
    client = os.path.join(folder, "client.pem")
    with open(os.open(client, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(part("client-certificate") + part("client-key"))
    context.load_cert_chain(client)
    return context


def value_of(rng):
    text = "%x" % rng.getrandbits(64) * rng.choice([1, 10, 400])
    return text + ":" + hashlib.sha256(text.encode()).hexdigest()


def is_whole(value):
    text, _, digest = value.partition(":")
    return hashlib.sha256(text.encode()).hexdigest() == digest


class Writer(threading.Thread):
    """Writes to names of its own; knows what was acknowledged and which write was under way."""

    def __init__(self, number, seed):
        super().__init__()
        self.number = number
        self.rng = random.Random(seed)
        self.state = {}
        self.under_way = None  # (name, value or None)
        self.acknowledged = 0
        self.revision = 0
        self.failure = None

    def run_on(self, server):
        threading.Thread.__init__(self)
        self.server = server
        self.start()

    def run(self):
        try:
            connection = self.server.connect()
            while True:
                self.write(connection)
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            pass  # killed

    def write(self, connection):
        name = "w%d-%d" % (self.number, self.rng.randrange(6))
        there = name in self.state
        value = None if there and self.rng.random() < 0.2 else value_of(self.rng)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                "data": {"v": value}}
        self.under_way = (name, value)
        if value is None:
            connection.request("DELETE", PATH + "/" + name)
        else:
            connection.request("PUT" if there else "POST", PATH + ("/" + name if there else ""),
                               json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        reply = json.loads(response.read())
        if response.status not in (200, 201):
            self.failure = "%d %s" % (response.status, reply.get("message"))
            raise http.client.HTTPException(self.failure)
        self.settle(value)
        self.acknowledged += 1
        if value is not None:
            self.revision = max(self.revision, int(reply["metadata"]["resourceVersion"]))

    def settle(self, value):
        name = self.under_way[0]
        if value is None:
            self.state.pop(name, None)
        else:
            self.state[name] = value
        self.under_way = None

    def check(self, found):
        """What the restarted server shows of this writer's names becomes its state."""
        mine = {n: v for n, v in found.items() if n.startswith("w%d-" % self.number)}
        name, attempted = self.under_way or (None, None)
        for key in set(mine) | set(self.state):
            shown = mine.get(key)
            if shown is not None and not is_whole(shown):
                return "half a value in %s" % key
            if shown == self.state.get(key) or (key == name and shown == attempted):
                continue
            return "%s shows %.40r, acknowledged was %.40r" % (key, shown, self.state.get(key))
        self.state = mine
        self.under_way = None
        return self.failure


def read_all(server):
    connection = server.connect()
    connection.request("GET", PATH)
    reply = json.loads(connection.getresponse().read())
    connection.close()
    found = {item["metadata"]["name"]: item["data"]["v"] for item in reply["items"]
             if item["metadata"]["name"].startswith("w")}
    return found, int(reply["metadata"]["resourceVersion"])


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("program", nargs="?",
                         default=os.environ.get("TESSERA", "build/dev/tessera"))
    options.add_argument("--rounds", type=int, default=200)
    options.add_argument("--connections", type=int, default=4)
    options.add_argument("--seed", type=int, default=1)
    args = options.parse_args()
    rng = random.Random(args.seed)
    writers = [Writer(i, rng.getrandbits(32)) for i in range(args.connections)]
    begun = time.monotonic()
    revision = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.rounds + 1):
            server = Server(args.program, folder)
            found, now = read_all(server)
            wrong = [w.check(found) for w in writers]
            revision = max([revision] + [w.revision for w in writers])
            if now < revision:
                wrong.append("the revision went back from %d to %d" % (revision, now))
            wrong = [text for text in wrong if text]
            if wrong:
                server.kill()
                print("round %d, seed %d: %s" % (number, args.seed, "; ".join(wrong)))
                return 1
            revision = now
            if number < args.rounds:
                for writer in writers:
                    writer.run_on(server)
                time.sleep(rng.uniform(0.02, 0.15))
            server.kill()
            for writer in writers:
                if writer.ident is not None:
                    writer.join()
    print("%d rounds in %.0f s: %d writes acknowledged, none lost, none half, revision %d" % (
        args.rounds, time.monotonic() - begun, sum(w.acknowledged for w in writers), revision))
    return 0


if __name__ == "__main__":
    sys.exit(main())

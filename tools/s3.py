"""The program on a real S3-compatible server (moto), behind a door that throttles, refuses and changes things.

    python tools/s3.py TERRANE

Needs moto[s3,server] and boto3. Says for every case what a user sees, and fails where that is not what it should be.
"""

import datetime
import http.client
import http.server
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import boto3
from moto.server import ThreadedMotoServer

BUCKET, KEY = "land", "deep/dem.trn"
ADDRESS = f"s3://{BUCKET}/{KEY}"


class Door(http.server.BaseHTTPRequestHandler):
    """Passes requests on to moto, unless `refuse` has an answer of its own: status, code and message."""

    protocol_version = "HTTP/1.1"
    moto = None
    refuse = staticmethod(lambda door: None)
    before = staticmethod(lambda count: None)
    count = 0
    keys_given = 0
    lock = threading.Lock()

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def key(self):
        authorization = self.headers.get("Authorization", "")
        return authorization.partition("Credential=")[2].partition("/")[0]

    def metadata(self):
        """What a machine of the cloud is told of its keys: new ones every time."""
        if self.path.endswith("/api/token"):
            return self.answer(200, b"token")
        if self.path.endswith("/security-credentials/"):
            return self.answer(200, b"role")
        with Door.lock:
            Door.keys_given += 1
            number = Door.keys_given
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)
        keys = {"Code": "Success", "AccessKeyId": f"KEY{number}", "SecretAccessKey": "secret", "Token": "t",
                "Expiration": soon.strftime("%Y-%m-%dT%H:%M:%SZ")}
        return self.answer(200, json.dumps(keys).encode())

    def handle_one(self):
        if self.path.startswith("/latest/"):
            return self.metadata()
        with Door.lock:
            Door.count += 1
            Door.before(Door.count)
            refused = Door.refuse(self)
        if refused:
            status, code, message = refused
            body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
            return self.answer(status, body.encode(), [("Content-Type", "application/xml")])
        inner = http.client.HTTPConnection("127.0.0.1", Door.moto, timeout=30)
        inner.request(self.command, self.path, headers=dict(self.headers))
        answer = inner.getresponse()
        headers = [(name, value) for name, value in answer.getheaders()
                   if name.lower() not in ("content-length", "transfer-encoding", "connection", "server", "date")]
        body = answer.read()
        inner.close()
        if self.command == "HEAD":
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                self.send_header(name, value)
            return self.end_headers()
        return self.answer(answer.status, body, headers)

    do_GET = do_HEAD = do_PUT = handle_one


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    folder = pathlib.Path(tempfile.mkdtemp())
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = ThreadedMotoServer(port=0, verbose=False)
    moto.start()
    Door.moto = moto.get_host_and_port()[1]
    door = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=door.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{door.server_port}"
    plain = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    keys = {"AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "hidden-secret", "AWS_SESSION_TOKEN": "hidden-token"}
    cloud = {**plain, "AWS_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1"}
    cases = 0

    def run(*words, environment={**cloud, **keys}):
        return subprocess.run([program, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)

    def fine(*words, **more):
        done = run(*words, **more)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def refused(what, *words, expected=(), environment={**cloud, **keys}, seconds=30):
        nonlocal cases
        started = time.time()
        done = run(*words, environment=environment)
        took = time.time() - started
        print(f"{what}: {done.stderr.strip()} ({took:.1f} s, {Door.count} requests)")
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (what, done.returncode, done.stderr)
        assert took < seconds, (what, took)
        assert "hidden" not in done.stderr and "Traceback" not in done.stderr
        for part in expected:
            assert part in done.stderr, (what, part, done.stderr)
        cases += 1

    def doors(refuse=lambda door: None, before=lambda count: None):
        Door.refuse, Door.before, Door.count = staticmethod(refuse), staticmethod(before), 0

    fine("generate", "dem.tif", "--size", "700x600", "--seed", "3")
    fine("encode", "dem.tif", "dem.trn", "--profile", "fast", "--tile", "64")
    fine("encode", "dem.tif", "other.trn", "--profile", "fast", "--tile", "64", "--max-error", "0.3")
    s3 = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{Door.moto}", region_name="us-east-1",
                      aws_access_key_id="KEY", aws_secret_access_key="secret")
    s3.create_bucket(Bucket=BUCKET)
    upload = lambda name: s3.upload_file(str(folder / name), BUCKET, KEY)
    upload("dem.trn")
    s3.upload_file(str(folder / "dem.tif"), BUCKET, "dem.tif")

    # The same answers as from the disk.
    doors()
    for words in (("info", "{}", "--json"), ("query", "{}", "--at", "500100.5,5199900.5"), ("verify", "{}", "--json")):
        here, there = (fine(*[word.format(name) for word in words]) for name in ("dem.trn", ADDRESS))
        assert here.replace("dem.trn", "") == there.replace(ADDRESS, "").replace("dem.trn", ""), (here, there)
        cases += 1
    fine("decode", "dem.trn", "here.tif")
    fine("decode", ADDRESS, "there.tif")
    assert (folder / "here.tif").read_bytes() == (folder / "there.tif").read_bytes()
    print(f"read from the store as from the disk, {Door.count} requests")
    cases += 1

    # Throttled now and then: nobody notices. Throttled always: it is said, soon.
    slow = (503, "SlowDown", "Please reduce your request rate.")
    doors(refuse=lambda door: slow if Door.count % 3 else None)
    fine("decode", ADDRESS, "there.tif", "--overwrite")
    assert (folder / "here.tif").read_bytes() == (folder / "there.tif").read_bytes()
    print(f"two of three requests throttled: nothing noticed, {Door.count} requests")
    cases += 1
    doors(refuse=lambda door: slow)
    refused("throttled always", "decode", ADDRESS, "new.tif", expected=(ADDRESS, "SlowDown"))
    doors(refuse=lambda door: slow if Door.count > 6 else None)
    refused("throttled from the middle on", "decode", ADDRESS, "new.tif", expected=(ADDRESS, "SlowDown"))

    # Keys that expire, before or in the middle, and those that are renewed.
    expired = (400, "ExpiredToken", "The provided token has expired.")
    doors(refuse=lambda door: expired)
    refused("expired keys", "info", ADDRESS, expected=(ADDRESS, "ExpiredToken", "has expired"))
    doors(refuse=lambda door: expired if Door.count > 3 else None)
    refused("keys that expire in the middle", "decode", ADDRESS, "new.tif", expected=(ADDRESS, "ExpiredToken"))
    doors(refuse=lambda door: (403, "InvalidAccessKeyId", "The key does not exist."))
    refused("wrong keys", "info", ADDRESS, expected=("403", "InvalidAccessKeyId"))
    doors(refuse=lambda door: None if door.key() == f"KEY{Door.keys_given}" else expired)
    machine = {**cloud, "AWS_METADATA_ENDPOINT": endpoint}
    fine("decode", ADDRESS, "there.tif", "--overwrite", environment=machine)
    assert (folder / "here.tif").read_bytes() == (folder / "there.tif").read_bytes()
    print(f"keys of a machine, good for a second: {Door.keys_given} were asked for, nothing noticed")
    assert Door.keys_given > 1
    cases += 1

    # What is not there, what changes, what is not read from there.
    doors()
    refused("no such file", "info", f"s3://{BUCKET}/none.trn", expected=("none.trn", "404"))
    refused("no such bucket", "info", "s3://nowhere/dem.trn", expected=("nowhere", "404"))
    doors(before=lambda count: upload("other.trn") if count == 4 else None)
    refused("another file in the middle", "decode", ADDRESS, "new.tif", expected=(ADDRESS, "changed while it was read"))
    doors()
    refused("a raster", "encode", f"s3://{BUCKET}/dem.tif", "new.trn", expected=("dem.tif",))
    refused("a file to write", "decode", "dem.trn", f"s3://{BUCKET}/new.tif", expected=("new.tif",))
    dead = {**cloud, **keys, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    refused("nobody there", "info", ADDRESS, "--remote-timeout", "3", environment=dead, expected=(ADDRESS,))
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["dem.tif", "dem.trn", "here.tif", "other.trn", "there.tif"], left
    moto.stop()
    print(f"{cases} cases")


main()

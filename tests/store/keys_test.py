#!/usr/bin/env python3
"""Keys that a service hands out and renews, a clock that is wrong, a store that fails for minutes; objects in parts."""
import datetime
import http.server
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import unittest
import urllib.parse

import s3_server

PROGRAM = os.environ["LOCKSTEP"]
HERE = "http://127.0.0.1"
ROLE = "arn:aws:iam::1:role/team"


class Service(http.server.BaseHTTPRequestHandler):
    """Amazon's three: STS, the agent of a container, the instance's. They hand out server.keys, the last one for ever."""

    def log_message(self, *args):
        pass

    def say(self, text, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def next_key(self):
        self.server.handed_out += 1
        keys = self.server.keys
        return keys.pop(0) if len(keys) > 1 else keys[0]

    def key_in_json(self):
        key_id, secret, token, end = self.next_key()
        self.say(json.dumps({"AccessKeyId": key_id, "SecretAccessKey": secret, "Token": token, "Expiration": end}))

    def do_POST(self):
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if form != {"Action": ["AssumeRoleWithWebIdentity"], "Version": ["2011-06-15"], "RoleArn": [ROLE],
                    "RoleSessionName": ["lockstep"], "WebIdentityToken": ["a token/of=the pod"]}:
            self.say(f"<ErrorResponse>{form}</ErrorResponse>", 403)
            return
        key_id, secret, token, end = self.next_key()
        self.say("<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
                 f"<AccessKeyId>{key_id}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>"
                 f"<SessionToken>{token}</SessionToken><Expiration>{end}</Expiration></Credentials>"
                 "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>")

    def do_PUT(self):
        self.say("a session" if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] else "", 200)

    def do_GET(self):
        roles = "/latest/meta-data/iam/security-credentials/"
        if self.path == "/container" and self.headers["Authorization"] == "let me in":
            self.key_in_json()
        elif self.headers["X-aws-ec2-metadata-token"] != "a session":
            self.say("", 401)
        elif self.path == roles:
            self.say("team")
        elif self.path == roles + "team":
            self.key_in_json()
        else:
            self.say("", 404)


class Keys(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.store = s3_server.Server()
        self.addCleanup(self.store.stop)
        self.service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        self.service.handed_out, self.service.keys = 0, []
        threading.Thread(target=self.service.serve_forever, daemon=True).start()
        self.addCleanup(self.service.server_close)
        self.addCleanup(self.service.shutdown)
        self.url = f"{HERE}:{self.service.server_address[1]}"
        self.store.objects["table.csv"] = ("a,b\n" + "".join(f"{i},{i % 2}\n" for i in range(40))).encode()
        (self.folder / "token").write_text("a token/of=the pod\n")

    def hand_out(self, name, seconds=3600):
        """A key that is said to be good for so long."""
        end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
        self.service.keys.append((name, f"secret of {name}", f"token of {name}", end.strftime("%Y-%m-%dT%H:%M:%SZ")))
        self.store.keys[name] = (f"secret of {name}", f"token of {name}")

    def environment(self, **variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return {**kept, "AWS_ENDPOINT_URL": self.store.url, "LOCKSTEP_CACHE": "none", "HOME": str(self.folder), **variables}

    def read(self, code=0, **variables):
        result = subprocess.run([PROGRAM, "data", "info", "table=s3://data/table.csv", "target=b"], capture_output=True, text=True,
                                timeout=120, check=False, stdin=subprocess.DEVNULL, env=self.environment(**variables))
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stderr

    def of_role(self):
        return {"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": str(self.folder / "token"),
                "AWS_ENDPOINT_URL_STS": self.url}

    def test_a_role_by_a_token(self):
        self.hand_out("first")
        self.read(**self.of_role())
        self.assertEqual(self.service.handed_out, 1)

    def test_a_role_of_the_profile(self):
        self.hand_out("first")
        (self.folder / ".aws").mkdir()
        (self.folder / ".aws/config").write_text(
            f"[default]\nrole_arn = {ROLE}\nweb_identity_token_file = {self.folder}/token\n")
        self.read(AWS_ENDPOINT_URL_STS=self.url)

    def test_a_container(self):
        self.hand_out("first")
        self.read(AWS_CONTAINER_CREDENTIALS_FULL_URI=self.url + "/container", AWS_CONTAINER_AUTHORIZATION_TOKEN="let me in")

    def test_an_instance(self):
        """Asked only where the store is Amazon's, whose hosts' names lead here."""
        self.hand_out("first")
        store = urllib.parse.urlsplit(self.store.url)
        inside = ("unshare", "--mount", "sh", "-c", 'printf "127.0.0.1 s3.us-east-1.amazonaws.com\n" > hosts && '
                  'mount --bind hosts /etc/hosts && exec "$@"', "sh")
        if subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode != 0:
            self.skipTest("names cannot be changed here")
        result = subprocess.run([*inside, PROGRAM, "data", "info", "table=s3://data/table.csv", "target=b"], cwd=self.folder,
                                capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
                                env=self.environment(AWS_ENDPOINT_URL=f"http://s3.us-east-1.amazonaws.com:{store.port}",
                                                     AWS_EC2_METADATA_SERVICE_ENDPOINT=self.url))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.service.handed_out, 1)

    def test_a_service_that_has_no_key(self):
        self.service.keys = [("", "", "", "")]
        said = self.read(code=1, LOCKSTEP_STORE_PATIENCE="1", **self.of_role())
        self.assertRegex(said, r"^lockstep: s3://data/table.csv: the object store has failed 3 times, for \d s, to read it: object "
                               rf"store: expected a key from {self.url} for the role {ROLE}, found the answer 200: <AssumeRole")

    def test_a_key_is_not_asked_of_anyone(self):
        said = self.read(code=78, AWS_CONTAINER_CREDENTIALS_FULL_URI="http://elsewhere.example/key")
        self.assertEqual(said, "lockstep: AWS_CONTAINER_CREDENTIALS_FULL_URI: expected https, or an address of this host, found "
                               "http://elsewhere.example/key\n")

    def test_a_key_that_ends_is_renewed(self):
        self.hand_out("ended", 3600)
        self.store.expired.add("ended")
        self.hand_out("next")
        self.read(**self.of_role())
        self.assertEqual(self.service.handed_out, 2)

    def test_a_key_in_a_file_is_read_again(self):
        (self.folder / ".aws").mkdir()
        file = self.folder / ".aws/credentials"

        def write(name):
            self.store.keys[name] = (f"secret of {name}", None)
            file.write_text(f"[default]\naws_access_key_id = {name}\naws_secret_access_key = secret of {name}\n")

        write("old")
        self.store.expired.add("old")
        said = self.read(code=1)
        self.assertEqual(said, "lockstep: s3://data/table.csv: the key old has expired (400, ExpiredToken: Not now.); renew it "
                               "where it comes from\n")
        self.store.http.on_expired = lambda: write("new")
        self.read()

    def test_a_clock_that_is_wrong(self):
        self.store.http.ahead = 7200
        self.store.http.keys["me"] = ("mine", None)
        self.read(AWS_ACCESS_KEY_ID="me", AWS_SECRET_ACCESS_KEY="mine")

    def test_a_store_that_fails_for_a_while(self):
        self.store.http.failures[:] = [503, "close", 500, 429, 503, 503, 503]
        self.read(AWS_ACCESS_KEY_ID=s3_server.KEY_ID, AWS_SECRET_ACCESS_KEY=s3_server.SECRET)
        self.assertEqual(self.store.failures, [])

    def test_a_patience_that_is_none(self):
        said = self.read(code=78, LOCKSTEP_STORE_PATIENCE="long")
        self.assertEqual(said, "lockstep: LOCKSTEP_STORE_PATIENCE: expected seconds, as in 300, found 'long'\n")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""`lockstep data fetch` as a user runs it, against HTTP servers on this machine and with its own list of mirrors."""
import hashlib
import http.server
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import unittest

PROGRAM = os.environ["LOCKSTEP"]
BODY = bytes((i * 7 + i // 256) % 256 for i in range(100000))
OTHER = BODY[::-1]


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves its server's files, with ranges, and records the requests."""

    def log_message(self, *args):
        pass

    def do_GET(self):
        body = self.server.body
        wanted = self.headers.get("Range", "")
        self.server.asked.append((self.path, wanted))
        if body is None:
            self.send_error(404)
            return
        start = int(wanted[len("bytes="):-1]) if wanted else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start:])


class Fetch(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.servers = []

    def tearDown(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()
        self.temporary.cleanup()

    def mirror(self, body):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.body, server.asked = body, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/sets"

    def fetch(self, *mirrors, code=0, name="toy"):
        file = {"name": "toy.bin", "bytes": len(BODY), "sha256": hashlib.sha256(BODY).hexdigest()}
        (self.folder / "list.json").write_text(json.dumps({"toy": {"mirrors": list(mirrors), "files": [file]}}))
        return self.run_fetch(name, "--to", "out", "--mirrors", "list.json", code=code)

    def run_fetch(self, *words, code=0):
        result = subprocess.run([PROGRAM, "data", "fetch", *words], cwd=self.folder, capture_output=True, text=True,
                                timeout=120, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def test_downloads_and_does_nothing_where_it_is_there(self):
        self.assertEqual(self.fetch(self.mirror(BODY)).stdout, "out/toy.bin received, 100,000 bytes\n")
        self.assertEqual((self.folder / "out/toy.bin").read_bytes(), BODY)
        self.assertEqual(self.servers[0].asked, [("/sets/toy.bin", "")])
        self.assertEqual(self.fetch("http://127.0.0.1:1/").stdout, "out/toy.bin already there\n")

    def test_goes_on_where_it_was_broken_off(self):
        (self.folder / "out").mkdir()
        (self.folder / "out/toy.bin.part").write_bytes(BODY[:60000])
        self.assertEqual(self.fetch(self.mirror(BODY)).stdout, "out/toy.bin received, 40,000 bytes\n")
        self.assertEqual(self.servers[0].asked, [("/sets/toy.bin", "bytes=60000-")])
        self.assertEqual((self.folder / "out/toy.bin").read_bytes(), BODY)
        self.assertFalse((self.folder / "out/toy.bin.part").exists())

    def test_the_second_mirror_helps(self):
        for first in (None, OTHER, b"short"):
            with self.subTest(first=first and first[:5]):
                self.fetch(self.mirror(first), self.mirror(BODY))
                self.assertEqual((self.folder / "out/toy.bin").read_bytes(), BODY)
                (self.folder / "out/toy.bin").unlink()

    def test_other_contents_are_refused(self):
        mirror = self.mirror(OTHER)
        error = self.fetch(mirror, code=65).stderr
        self.assertEqual(error, f"lockstep: toy.bin: no mirror delivered it: {mirror}/toy.bin: SHA-256 "
                                f"{hashlib.sha256(OTHER).hexdigest()}; expected {hashlib.sha256(BODY).hexdigest()}. "
                                "Run again to go on, or add a mirror to list.json\n")
        self.assertEqual(list((self.folder / "out").iterdir()), [])

    def test_no_mirror_answers(self):
        mirror = self.mirror(None)
        error = self.fetch(mirror, code=1).stderr
        self.assertEqual(error, f"lockstep: toy.bin: no mirror delivered it: {mirror}/toy.bin: The requested URL "
                                "returned error: 404. Run again to go on, or add a mirror to list.json\n")

    def test_mistakes(self):
        self.assertEqual(self.fetch("x", code=64, name="tow").stderr,
                         "lockstep: 'tow' is no data set of list.json; it has toy\n")
        (self.folder / "list.json").write_text("[1,")
        self.assertEqual(self.run_fetch("toy", "--mirrors", "list.json", code=78).stderr,
                         "lockstep: list.json: not JSON, at byte 4\n")
        self.assertEqual(self.run_fetch("toy", "--mirrors", "none.json", code=78).stderr,
                         "lockstep: none.json: the list of mirrors cannot be opened\n")
        (self.folder / "file").write_text("")
        self.assertIn("Not a directory", self.run_fetch("mnist", "--to", "file/x", code=73).stderr)

    def test_the_program_has_a_list_of_its_own(self):
        error = self.run_fetch("nothing", code=64).stderr
        self.assertRegex(error, r"^lockstep: 'nothing' is no data set of /.*/mirrors.json; it has cifar10, mnist, tinyshakespeare\n$")


if __name__ == "__main__":
    unittest.main()

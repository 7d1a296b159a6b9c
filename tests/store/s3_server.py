"""A server of the S3 protocol for tests: objects in memory, signatures checked as Amazon's documentation of Signature
Version 4 describes them, and failures on request."""
import calendar
import hashlib
import hmac
import http.server
import itertools
import re
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

KEY_ID, SECRET = "tester", "a secret/with+signs"


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def quoted(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-._~")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def expected_signature(self, secret, names, scope, query):
        """Of this request, by its own headers."""
        path = urllib.parse.unquote(self.path.partition("?")[0])
        pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
        canonical = "\n".join([
            self.command, quoted(path, "/"), "&".join(f"{quoted(name)}={quoted(value)}" for name, value in pairs),
            "".join(f"{name}:{self.headers[name].strip()}\n" for name in names), ";".join(names),
            self.headers["x-amz-content-sha256"]])
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope,
                          hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + secret).encode()
        for part in scope.split("/"):
            key = sign(key, part)
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    def may(self, query, body):
        """Whether the request is signed by who may send it, and its body is what was signed."""
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)",
                             self.headers.get("Authorization", ""))
        if found is None:
            return self.server.public
        key_id, scope, names, signature = found.groups()
        secret, token = self.server.keys.get(key_id, (None, None))
        return (secret is not None and self.headers.get("x-amz-security-token") == token
                and hashlib.sha256(body).hexdigest() == self.headers["x-amz-content-sha256"]
                and signature == self.expected_signature(secret, names.split(";"), scope, query))

    def refused_for_a_while(self):
        """(status, code), for a clock that is wrong or a key that has ended."""
        sent = self.headers.get("x-amz-date")
        if sent is None:
            return None
        at = calendar.timegm(time.strptime(sent, "%Y%m%dT%H%M%SZ"))
        if abs(at - time.time() - self.server.ahead) > 900:
            return 403, "RequestTimeTooSkewed"
        key_id = re.search("Credential=([^/]+)/", self.headers["Authorization"])[1]
        if key_id not in self.server.expired:
            return None
        self.server.on_expired()
        return 400, "ExpiredToken"

    def date_time_string(self, timestamp=None):
        return super().date_time_string(time.time() + self.server.ahead)

    def answer(self, status, body=b"", headers=(), length=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fail(self, status, code, message):
        body = f"<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
        self.answer(status, body, length=0 if self.command == "HEAD" else None)

    def serve(self):
        server, path, query = self.server, *self.path.partition("?")[::2]
        bucket, _, key = urllib.parse.unquote(path)[1:].partition("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with server.lock:
            server.asked.append((self.command, key or query, self.headers.get("Range", "")))
            failing = server.failures.pop(0) if server.failures else None
        time.sleep(server.answer_seconds)
        if failing == "close":
            self.close_connection = True
            return None
        if failing:
            return self.fail(failing, "SlowDown", "Please reduce your request rate.")
        if server.refused and self.command == "PUT":
            return self.fail(403, "AccessDenied", "Access Denied.")
        if passing := self.refused_for_a_while():
            return self.fail(*passing, "Not now.")
        if not self.may(query, body):
            return self.fail(403, "AccessDenied", "Access Denied.")
        if bucket != server.bucket:
            return self.fail(404, "NoSuchBucket", "The specified bucket does not exist.")
        if not key:
            return self.list(dict(urllib.parse.parse_qsl(query)))
        parts = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        if "uploads" in parts or "uploadId" in parts:
            return self.upload(key, parts, body)
        time.sleep(server.put_seconds if self.command == "PUT" else 0)
        with server.lock:
            if self.command == "PUT":
                server.objects[key] = body
                server.digests[key] = self.headers.get("x-amz-meta-sha256", "")
            elif self.command == "DELETE":
                server.objects.pop(key, None)
            found = server.objects.get(key)
            if found is not None and server.replace_after[0] == key and self.command == "GET":
                server.replace_after = (key, server.replace_after[1] - 1)
                if server.replace_after[1] < 0:
                    found = found[::-1]
        if self.command in ("PUT", "DELETE"):
            return self.answer(200 if self.command == "PUT" else 204)
        return self.fail(404, "NoSuchKey", "The specified key does not exist.") if found is None else self.send(key, found)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = serve

    def upload(self, key, query, body):
        """In parts: begun, each part, put together, or given up."""
        uploads = self.server.uploads
        with self.server.lock:
            if "uploads" in query:
                number = f"upload/{next(self.server.numbers)}"
                uploads[number] = {"digest": self.headers.get("x-amz-meta-sha256", "")}
                text = f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
                return self.answer(200, text.encode())
            upload = uploads[query["uploadId"]]
            if self.command == "PUT":
                upload[int(query["partNumber"])] = body
                return self.answer(200, headers=[("ETag", f"\"{hashlib.md5(body).hexdigest()}\"")])
            digest = upload["digest"]
            if self.command == "POST":
                named = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>\"(\w+)\"</ETag>", body.decode())
                assert [(int(number), etag) for number, etag in named] == [
                    (number, hashlib.md5(upload[number]).hexdigest()) for number in sorted(set(upload) - {"digest"})]
                self.server.objects[key] = b"".join(upload[number] for number in sorted(set(upload) - {"digest"}))
                self.server.digests[key] = digest
            del uploads[query["uploadId"]]
        return self.answer(200 if self.command == "POST" else 204)

    def send(self, key, body):
        headers = [("ETag", f"\"{hashlib.md5(body).hexdigest()}\""), ("x-amz-meta-sha256", self.server.digests.get(key, ""))]
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted is None:
            return self.answer(200, body, headers)
        first, last = int(wanted[1]), min(int(wanted[2]), len(body) - 1)
        headers.append(("Content-Range", f"bytes {first}-{last}/{len(body)}"))
        return self.answer(206, body[first:last + 1], headers)

    def list(self, query):
        """Three keys a page, so that every list has several."""
        with self.server.lock:
            keys = sorted(key for key in self.server.objects if key.startswith(query.get("prefix", "")))
            keys = [key for key in keys if key > query.get("continuation-token", "")]
            page = keys[:min(int(query.get("max-keys", 3)), 3)]
            items = "".join(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(self.server.objects[key])}</Size>"
                f"<ETag>&quot;{hashlib.md5(self.server.objects[key]).hexdigest()}&quot;</ETag></Contents>" for key in page)
        more = len(page) < len(keys)
        next_page = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        self.answer(200, f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{items}{next_page}"
                         "</ListBucketResult>".encode())


class Server:
    """A bucket. `asked`: method, key or query, and range of each request; `failures`: a status, or "close", for each of
    the next requests; `replace_after`: a key that is another object after so many times; `public`: whether unsigned
    requests are served; `refused`: whether nobody may write; `answer_seconds`: how long each answer takes;
    `put_seconds`: how long an object takes to be written; `keys`: the secret and the session token of each key;
    `expired`: ids of those that have ended, at whose use `on_expired` is called; `ahead`: seconds that its clock is;
    `uploads`: those in parts that are under way."""

    def __init__(self, bucket="data", address="127.0.0.1"):
        self.http = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.http.bucket, self.http.objects, self.http.public = bucket, {}, False
        self.http.asked, self.http.failures, self.http.lock = [], [], threading.Lock()
        self.http.replace_after, self.http.refused = ("", 0), False
        self.http.answer_seconds, self.http.put_seconds, self.http.ahead = 0, 0, 0
        self.http.keys, self.http.expired = {KEY_ID: (SECRET, None)}, set()
        self.http.digests, self.http.uploads, self.http.on_expired = {}, {}, lambda: None
        self.http.numbers = itertools.count()
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://{address}:{self.http.server_address[1]}"

    def __getattr__(self, name):
        return getattr(self.http, name)

    @property
    def environment(self):
        return {"AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}

    def put_tree(self, folder, prefix):
        for path in folder.rglob("*"):
            if path.is_file():
                self.http.objects[f"{prefix}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()

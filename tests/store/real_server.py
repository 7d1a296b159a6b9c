"""A real server of the S3 protocol, with the interface of s3_server.Server as far as tests of data need it."""
import datetime
import hashlib
import hmac
import http.client
import pathlib
import subprocess
import sys
import tempfile

import s3_server

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / name) for name in ("kubernetes", ".")]
import free_ports
import kube_tools
import shared


class VersityGateway:
    """versitygw over a folder, with one bucket, at an address of this machine."""

    def __init__(self, bucket="data", address="127.0.0.1"):
        self.bucket = bucket
        self.folder = tempfile.TemporaryDirectory()
        self.address, self.port = address, free_ports.free_port()
        self.process = subprocess.Popen(
            [*shared.ENDS_WITH_US, kube_tools.programs("s3") / "versitygw", "--port", f"{address}:{self.port}", "--access", s3_server.KEY_ID,
             "--secret", s3_server.SECRET, "--quiet", "posix", self.folder.name],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shared.wait_until(self.makes_the_bucket, "versitygw answers")

    def makes_the_bucket(self):
        try:
            return self.send("PUT", f"/{self.bucket}") == 200
        except OSError:
            return False

    def send(self, method, path, body=b""):
        """A signed request; returns its status."""
        now = datetime.datetime.now(datetime.timezone.utc)
        headers = {"host": f"{self.address}:{self.port}", "x-amz-content-sha256": hashlib.sha256(body).hexdigest(),
                   "x-amz-date": now.strftime("%Y%m%dT%H%M%SZ")}
        scope = f"{now:%Y%m%d}/us-east-1/s3/aws4_request"
        names = ";".join(headers)
        canonical = "\n".join([method, s3_server.quoted(path, "/"), "",
                               "".join(f"{name}:{value}\n" for name, value in headers.items()), names,
                               headers["x-amz-content-sha256"]])
        text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + s3_server.SECRET).encode()
        for part in scope.split("/"):
            key = s3_server.sign(key, part)
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={s3_server.KEY_ID}/{scope}, SignedHeaders={names}, "
                                    f"Signature={signature}")
        connection = http.client.HTTPConnection(self.address, self.port, timeout=30)
        connection.request(method, s3_server.quoted(path, "/"), body, headers)
        status = connection.getresponse().status
        connection.close()
        return status

    @property
    def environment(self):
        return {"AWS_ENDPOINT_URL": f"http://{self.address}:{self.port}", "AWS_ACCESS_KEY_ID": s3_server.KEY_ID,
                "AWS_SECRET_ACCESS_KEY": s3_server.SECRET}

    def put_tree(self, folder, prefix):
        for path in folder.rglob("*"):
            if path.is_file():
                status = self.send("PUT", f"/{self.bucket}/{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())
                assert status == 200, (path, status)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

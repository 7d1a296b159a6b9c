"""The object store of the disturbed training, on its first host: each checkpoint is copied there. Its keys are in a file,
so that they can change."""
import concurrent.futures
import ctypes
import pathlib

from s3_server import KEY_ID, Server

MANY = 1_000_000


def serve_on(process, address):
    """A server in the network of this process. A socket stays in the network in which it was made, so one thread goes
    there."""
    def make():
        with open(f"/proc/{process}/ns/net", "rb") as network:
            if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        return Server("chaos", address)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()


class Store:
    WAYS = ("503", "close", "slow", "clock", "expired")

    def __init__(self, hosts, folder):
        self.server = serve_on(hosts.pids[0], "10.77.0.1")
        self.server.http.handle_error = lambda *_: None  # clients die, too
        self.credentials, self.number, self.key = pathlib.Path(folder) / "credentials", 0, KEY_ID
        self.write_key()

    def write_key(self):
        new = self.credentials.with_suffix(".new")
        new.write_text(f"[default]\naws_access_key_id = {self.key}\naws_secret_access_key = {self.server.keys[self.key][0]}\n",
                       encoding="utf-8")
        new.rename(self.credentials)

    @property
    def environment(self):
        return {"AWS_ENDPOINT_URL": self.server.url, "AWS_SHARED_CREDENTIALS_FILE": str(self.credentials),
                "AWS_EC2_METADATA_DISABLED": "true"}

    def disturb(self, way):
        http = self.server.http
        if way in ("503", "close"):
            http.failures[:] = [503 if way == "503" else "close"] * MANY
        elif way == "slow":
            http.put_seconds = 0.3
        elif way == "clock":
            http.ahead += 3600
        else:
            http.expired.add(self.key)

    def mend(self):
        """The clock stays as it is: the client has to live with it."""
        http = self.server.http
        http.failures.clear()
        http.put_seconds = 0
        if self.key in http.expired:
            self.number += 1
            self.key = f"{KEY_ID}-{self.number}"
            http.keys[self.key] = (f"secret {self.number}", None)
            self.write_key()

    def asked(self):
        return len(self.server.asked)

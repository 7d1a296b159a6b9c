"""A service behind HTTPS that takes objects by POST, for those who have its token.

    with HttpsStub(folder) as stub:    # the folder gets `token` and `ca.crt`
        stub.taken                     # (path, object), in order
"""
import http.server
import json
import pathlib
import ssl
import subprocess
import threading


class HttpsStub:
    def __init__(self, folder, once=False):
        """`once`: an object that it has is refused with 409."""
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        (self.folder / "token").write_text("a-token", encoding="utf-8")
        self.taken = []
        key, certificate = self.folder / "key.pem", self.folder / "ca.crt"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=stub",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True, capture_output=True)
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                item = self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                allowed = (self.headers["Authorization"], self.headers["Content-Type"]) == ("Bearer a-token", "application/json")
                code = 403 if not allowed else 409 if once and item in stub.taken else 201
                if code == 201:
                    stub.taken.append(item)
                self.send_response(code)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

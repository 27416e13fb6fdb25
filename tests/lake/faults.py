"""Publishes small releases to the S3 server of AWS_* through a proxy that breaks each request in turn, in each way.

    python3 faults.py KANON INPUT POLICY      the releases appear in the bucket `lake`, below `faults/`

After each run there is a release that verifies, and the run says so, or none, and the next run succeeds.
"""

import http.client
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

SERVER = urlsplit(os.environ["AWS_ENDPOINT"]).netloc
FAULTS = ["refused before acting", "cut before acting", "cut after acting", "error after acting", "half of the answer"]


class Proxy(BaseHTTPRequestHandler):
    """Passes requests on; the request with the number `nth` goes wrong."""

    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    count, nth, fault = 0, -1, ""

    def log_message(self, *_):
        pass

    def answer(self, status, headers, body):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def cut(self):
        self.close_connection = True

    def any(self):
        with Proxy.lock:
            fault = Proxy.fault if Proxy.count == Proxy.nth else ""
            Proxy.count += 1
        sent = self.rfile.read(int(self.headers.get("content-length", 0)))
        error = (503, [("content-length", "0")], b"")
        if fault == "refused before acting":
            return self.answer(*error)
        if fault == "cut before acting":
            return self.cut()
        server = http.client.HTTPConnection(SERVER, timeout=60)
        # The name of the proxy stays, because the signature is of it.
        server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            server.putheader(name, value)
        server.endheaders(sent)
        response = server.getresponse()
        body = response.read()
        left_out = ("transfer-encoding", "connection", "content-length")
        headers = [pair for pair in response.getheaders() if pair[0].lower() not in left_out]
        length = response.getheader("content-length") if self.command == "HEAD" else str(len(body))
        headers.append(("content-length", length or "0"))
        server.close()
        if fault == "cut after acting":
            return self.cut()
        if fault == "error after acting":
            return self.answer(*error)
        if fault == "half of the answer":
            self.answer(response.status, headers, body[: len(body) // 2])
            return self.cut()
        return self.answer(response.status, headers, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = any


def main():
    kanon, given, policy = sys.argv[1:]
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    broken = {**os.environ, "AWS_ENDPOINT": f"http://127.0.0.1:{proxy.server_port}"}

    def run(environment, *words):
        return subprocess.run([kanon, *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def release(environment, name):
        there, private = f"s3://lake/faults/{name}", f"faults-{name}.json"
        return run(environment, "release", given, "--policy", policy, "--to", there, "--private", private)

    def verified(name):
        there, private = f"s3://lake/faults/{name}", f"faults-{name}.json"
        return run(os.environ, "verify", there, "--input", given, "--private", private)

    def demand(holds, *what):
        if not holds:
            sys.exit("\n".join(map(str, what)))

    whole = release(broken, "whole")
    demand(whole.returncode == 0, whole)
    requests, published = Proxy.count, 0
    demand(requests > 8, f"only {requests} requests passed the proxy")
    for number, fault in enumerate(FAULTS):
        for nth in range(requests):
            name = f"{number}-{nth}"
            Proxy.count, Proxy.nth, Proxy.fault = 0, nth, fault
            ran = release(broken, name)
            Proxy.fault = ""
            found = verified(name)
            if ran.returncode == 0:
                published += 1
                demand(found.returncode == 0, fault, nth, ran, found)
                continue
            demand(ran.returncode == 3, fault, nth, ran)
            is_publishing = "publishing the release" in ran.stderr
            demand(not is_publishing or "nothing was published" in ran.stderr, fault, nth, ran)
            demand(found.returncode == 3 and "no such object" in found.stderr, fault, nth, ran, found)
            again = release(os.environ, name)
            demand(again.returncode == 0 and verified(name).returncode == 0, fault, nth, ran, again)
    print(f"{len(FAULTS)} faults at each of {requests} requests: {published} runs published all the same")


if __name__ == "__main__":
    main()

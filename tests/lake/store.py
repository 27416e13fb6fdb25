"""Sends one signed request to the object store of AWS_* or AZURE_*, with Python alone; prints the status and the body.

    python3 store.py s3|azure METHOD PATH [--header 'NAME: VALUE']... [--body TEXT | --body @FILE]

PATH begins with the bucket or the container, as in /lake/visits/part-00000.parquet or '/lake?list-type=2&prefix=visits/'.
Exit code 0 if the status is 2xx, 1 if it is another, 2 if there is no answer.
"""

import argparse
import base64
import hashlib
import hmac
import os
import sys
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qsl, quote, urlsplit
from urllib.request import Request, urlopen


def signed_for_s3(method, path, query, headers, body):
    """Returns the address and the headers of a request to S3, with its signature of version 4."""
    endpoint, region = os.environ["AWS_ENDPOINT"], os.environ["AWS_REGION"]
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    digest = hashlib.sha256(body).hexdigest()
    headers = {**headers, "host": urlsplit(endpoint).netloc, "x-amz-date": now, "x-amz-content-sha256": digest}
    names = sorted(headers)
    path = quote(path)
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in sorted(query))
    listed = "".join(f"{name}:{headers[name]}\n" for name in names)
    request = "\n".join([method, path, query, listed, ";".join(names), digest])
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{os.environ['AWS_SECRET_ACCESS_KEY']}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={os.environ['AWS_ACCESS_KEY_ID']}/{scope}, "
        f"SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    return f"{endpoint}{path}?{query}", headers


def signed_for_azure(method, path, query, headers, body):
    """Returns the address and the headers of a request to Azure, with the signature of its account's key."""
    account, key = os.environ["AZURE_STORAGE_ACCOUNT_NAME"], os.environ["AZURE_STORAGE_ACCOUNT_KEY"]
    now = format_datetime(datetime.now(UTC), usegmt=True)
    headers = {"x-ms-date": now, "x-ms-version": "2023-11-03", "content-type": "application/octet-stream", **headers}
    if method == "PUT" and not any(name in ("restype", "comp") for name, _ in query):
        headers.setdefault("x-ms-blob-type", "BlockBlob")
    address = f"{os.environ['AZURE_STORAGE_ENDPOINT']}{quote(path)}"
    standard = ["content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"]
    standard += ["if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"]
    known = {**headers, "content-length": str(len(body) or "")}
    lines = [method, *(known.get(name, "") for name in standard)]
    lines += [f"{name}:{value}" for name, value in sorted(headers.items()) if name.startswith("x-ms-")]
    lines += [f"/{account}{urlsplit(address).path}", *(f"{name}:{value}" for name, value in sorted(query))]
    signature = hmac.digest(base64.b64decode(key), "\n".join(lines).encode(), "sha256")
    headers["authorization"] = f"SharedKey {account}:{base64.b64encode(signature).decode()}"
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query)
    return f"{address}?{query}", headers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", choices=["s3", "azure"])
    parser.add_argument("method")
    parser.add_argument("path")
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--body", default="")
    arguments = parser.parse_args()

    body = arguments.body.encode()
    if body.startswith(b"@"):
        body = Path(arguments.body[1:]).read_bytes()
    path, _, query = arguments.path.partition("?")
    headers = {name.strip().lower(): value.strip() for name, value in (each.split(":", 1) for each in arguments.header)}
    sign = signed_for_s3 if arguments.store == "s3" else signed_for_azure
    address, headers = sign(arguments.method, path, parse_qsl(query, keep_blank_values=True), headers, body)

    sent = body if body or arguments.method in ("PUT", "POST") else None
    request = Request(address, method=arguments.method, data=sent, headers=headers)
    try:
        with urlopen(request, timeout=30) as answer:
            status, text = answer.status, answer.read()
    except HTTPError as error:
        status, text = error.code, error.read()
    except (URLError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(status, flush=True)
    sys.stdout.buffer.write(text)
    sys.exit(not 200 <= status < 300)


if __name__ == "__main__":
    main()

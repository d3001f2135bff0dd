"""Google's XML API before fake-gcs-server, which has the JSON API: two views of the same objects.

delta-rs speaks XML, pyarrow JSON. Of XML, the server takes no `PUT` and no list by pages. So each
request becomes the JSON one of the same meaning: a write keeps its condition
(`x-goog-if-generation-match` is `ifGenerationMatch`), and the server alone judges it.
"""

import json
import secrets
import sys
from http.client import responses
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

from tests.support.relay import Answer, Headers, Relay, serve

JSON = ("storage/v1", "upload/", "download/", "batch/")
CODES = {404: "NoSuchKey", 412: "PreconditionFailed"}
_parts: dict[str, dict[int, bytes]] = {}  # of uploads in parts, by their ids
_buckets: set[str] = set()  # that exist; none is deleted
_lock = Lock()


class _Handler(Relay):
    def _take(self) -> None:
        body = self.body()
        url = urlsplit(self.path)
        self.query = {n: v[0] for n, v in parse_qs(url.query, keep_blank_values=True).items()}
        bucket, _, key = url.path.lstrip("/").partition("/")
        self.bucket, self.key = unquote(bucket), unquote(key)
        is_json = url.path.lstrip("/").startswith(JSON)
        try:
            status, headers, content = self.passed_on(body) if is_json else self._answer(body)
        except OSError:
            self.close_connection = True
            return
        length = next((v for n, v in headers if n.lower() == "content-length"), len(content))
        self.reply(status, headers, content, int(length))

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do_PATCH = _take  # noqa: N815

    def passed_on(self, body: bytes) -> Answer:
        """A write to a bucket that does not exist would make it."""
        path = urlsplit(self.path).path.split("/")
        if path[1] == "upload" and not self._has(unquote(path[5])):
            error = {"code": 404, "message": "The specified bucket does not exist."}
            return 404, [], json.dumps({"error": error}).encode()
        return super().passed_on(body)

    def _answer(self, body: bytes) -> Answer:
        if not self._has(self.bucket):
            return _error(404, "NoSuchBucket")
        if not self.key:
            return self._listed()
        if "uploads" in self.query or "uploadId" in self.query:
            return self._in_parts(body)
        if self.command == "PUT":
            return self._written(body)
        if self.command == "DELETE":
            return _plain(self.asked("DELETE", self._object(), {}, b""))
        headers = {"Range": self.headers["Range"]} if "Range" in self.headers else {}
        return _plain(self.asked(self.command, f"/download{self._object()}", headers, b""))

    def _has(self, bucket: str) -> bool:
        """Return True if the bucket exists; the server is asked until it does."""
        path = f"/storage/v1/b/{quote(bucket, safe='')}"
        if bucket not in _buckets and self.asked("GET", path, {}, b"")[0] == 200:
            _buckets.add(bucket)
        return bucket in _buckets

    def _object(self) -> str:
        return f"/storage/v1/b/{quote(self.bucket, safe='')}/o/{quote(self.key, safe='')}"

    def _written(self, content: bytes) -> Answer:
        asked = {"uploadType": "media", "name": self.key}
        if condition := self.headers.get("x-goog-if-generation-match"):
            asked["ifGenerationMatch"] = condition
        path = f"/upload/storage/v1/b/{quote(self.bucket, safe='')}/o?{urlencode(asked)}"
        kind = {"Content-Type": self.headers.get("Content-Type", "application/octet-stream")}
        status, _, found = self.asked("POST", path, kind, content)
        if status != 200:
            return _error(status)
        made = json.loads(found)
        tag: Headers = [("ETag", f'"{made["etag"]}"'), ("x-goog-generation", made["generation"])]
        return 200, tag, b""

    def _in_parts(self, content: bytes) -> Answer:
        upload = self.query.get("uploadId") or secrets.token_hex(8)
        if self.command == "POST" and "uploads" in self.query:
            with _lock:
                _parts[upload] = {}
            return _xml("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>")
        if self.command == "PUT":
            number = int(self.query["partNumber"])
            with _lock:
                _parts[upload][number] = content
            return 200, [("ETag", f'"{number}"')], b""
        with _lock:
            parts = _parts.pop(upload)
        if self.command == "DELETE":
            return 204, [], b""
        status, headers, error = self._written(b"".join(parts[n] for n in sorted(parts)))
        if status != 200:
            return status, headers, error
        tag = escape(dict(headers)["ETag"])
        status, kind, text = _xml("CompleteMultipartUploadResult", f"<ETag>{tag}</ETag>")
        return status, [*headers, *kind], text

    def _listed(self) -> Answer:
        after = self.query.get("start-after", "")
        names = {"prefix": "prefix", "delimiter": "delimiter", "continuation-token": "pageToken"}
        asked = {to: self.query[name] for name, to in names.items() if name in self.query}
        asked |= {"startOffset": after, "maxResults": self.query.get("max-keys", "1000")}
        path = f"/storage/v1/b/{quote(self.bucket, safe='')}/o?{urlencode(asked)}"
        status, _, found = self.asked("GET", path, {}, b"")
        if status != 200:
            return _error(status)
        page = json.loads(found)
        items = "".join(_item(one) for one in page.get("items", []) if one["name"] > after)
        below = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            for name in page.get("prefixes", [])
        )
        token = page.get("nextPageToken")
        more = f"<NextContinuationToken>{escape(token)}</NextContinuationToken>" if token else ""
        cut = f"<IsTruncated>{str(bool(token)).lower()}</IsTruncated>"
        return _xml("ListBucketResult", cut + more + items + below)


def _item(one: dict[str, Any]) -> str:
    return (
        f"<Contents><Key>{escape(one['name'])}</Key><LastModified>{one['updated']}</LastModified>"
        f"<ETag>{escape(one['etag'])}</ETag><Size>{one['size']}</Size></Contents>"
    )


def _plain(answer: Answer) -> Answer:
    """The same answer, with an error in XML."""
    return answer if answer[0] < 400 else _error(answer[0])


def _error(status: int, code: str = "") -> Answer:
    code = code or CODES.get(status, responses[status].replace(" ", ""))
    return _xml("Error", f"<Code>{code}</Code><Message>{code}</Message>", status)


def _xml(name: str, content: str, status: int = 200) -> Answer:
    text = f'<?xml version="1.0" encoding="UTF-8"?><{name}>{content}</{name}>'
    return status, [("Content-Type", "application/xml; charset=UTF-8")], text.encode()


def main(to: str) -> None:
    _Handler.to = to
    serve(_Handler)


if __name__ == "__main__":
    main(sys.argv[1])

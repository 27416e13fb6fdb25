//! A small S3 server on this machine, for tests: objects in memory, a log of the requests, faults on demand.
//!
//! Where a client can tell it does as S3 does; what it cannot do it refuses (400 `NotImplemented`). Unlike S3
//! it believes every signature, and every object has the same date: only the `ETag` tells of a change.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, ErrorKind, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

/// The one access key that the server knows.
pub(crate) const ACCESS_KEY: &str = "test-key";

/// No part of a multipart upload is smaller, but for its last.
const SMALLEST_PART: usize = 5 << 20;

/// A server that listens until it is dropped.
pub(crate) struct S3Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl S3Server {
    /// Starts a server without buckets on a free port.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), state: Arc::default() };
        let state = Arc::clone(&server.state);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&state);
                if state.lock().unwrap().is_stopped {
                    break;
                }
                // A client that goes away ends its thread, and nothing else.
                thread::spawn(move || drop(serve(&stream, &state)));
            }
        });
        server
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The URL of the server, without a slash at its end.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What a program must find in its environment to reach the server.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT", self.endpoint()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test-secret".to_owned()),
            ("AWS_REGION", "eu-central-1".to_owned()),
        ]
    }

    /// Adds an empty bucket. Anyone may read the objects of one whose name begins with `public`.
    pub(crate) fn add_bucket(&self, name: &str) {
        self.state().store.buckets.insert(name.to_owned());
    }

    /// Writes an object.
    pub(crate) fn put(&self, bucket: &str, key: &str, bytes: impl Into<Vec<u8>>) {
        self.state().store.put(bucket, key, bytes);
    }

    /// The content of an object.
    pub(crate) fn get(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        self.state().store.objects.get(&place(bucket, key)).map(|object| object.bytes.clone())
    }

    /// Removes an object, if it is there.
    pub(crate) fn remove(&self, bucket: &str, key: &str) {
        self.state().store.remove(bucket, key);
    }

    /// The keys of a bucket, sorted.
    pub(crate) fn keys(&self, bucket: &str) -> Vec<String> {
        let state = self.state();
        let of_bucket = state.store.objects.keys().filter(|(of, _)| of == bucket);
        of_bucket.map(|(_, key)| key.clone()).collect()
    }

    /// The number of multipart uploads that are neither completed nor aborted.
    pub(crate) fn open_uploads(&self) -> usize {
        self.state().store.uploads.len()
    }

    /// Every request so far, in the order of their arrival.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state().log.clone()
    }

    /// Forgets the requests so far.
    pub(crate) fn clear_requests(&self) {
        self.state().log.clear();
    }

    /// Lets the `nth` request from now on fail; 0 is the next one.
    pub(crate) fn fault(&self, nth: usize, fault: Fault) {
        let state = &mut *self.state();
        state.faults.insert(state.arrived + nth, fault);
    }

    /// Changes the stored content just before the `nth` request from now on is handled.
    pub(crate) fn before(&self, nth: usize, change: Change) {
        let state = &mut *self.state();
        state.changes.insert(state.arrived + nth, change);
    }

    /// Lets the credentials expire: they are good for `requests` more requests.
    pub(crate) fn expire_credentials_after(&self, requests: usize) {
        let state = &mut *self.state();
        state.expires_at = Some(state.arrived + requests);
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        // The lock is poisoned if a change of `before` panicked: its test fails anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_stopped = true;
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
    }
}

/// What a request asked for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// `GET`, `PUT` and so on.
    pub(crate) method: String,
    /// The bucket.
    pub(crate) bucket: String,
    /// The key, decoded; empty for a request of the bucket itself.
    pub(crate) path: String,
    /// The names and values of the query, decoded.
    pub(crate) query: BTreeMap<String, String>,
    /// The header `Range`.
    pub(crate) range: Option<String>,
    /// The header `If-Match`.
    pub(crate) if_match: Option<String>,
    /// Every header; the names are in small letters.
    pub(crate) headers: BTreeMap<String, String>,
}

/// How a request goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Answers an error of this status and code, and does nothing.
    Status(u16, &'static str),
    /// Acts, sends the headers and half of the body, and closes the connection.
    Cut,
    /// Closes the connection without an answer, and does nothing.
    CutBeforeActing,
    /// Acts, and closes the connection without an answer.
    ActThenClose,
    /// Acts, and answers an error of this status and code.
    ActThenStatus(u16, &'static str),
    /// Waits, and is an ordinary request then.
    Wait(Duration),
}

/// A change of the stored content.
pub(crate) type Change = Box<dyn FnOnce(&mut Store) + Send>;

/// The server behind its lock. Requests are numbered from 0 in the order of their arrival.
#[derive(Default)]
struct State {
    store: Store,
    log: Vec<Request>,
    arrived: usize,
    faults: BTreeMap<usize, Fault>,
    changes: BTreeMap<usize, Change>,
    expires_at: Option<usize>,
    is_stopped: bool,
}

impl State {
    /// Numbers and logs a request.
    fn arrive(&mut self, request: &Request) -> (usize, Option<Fault>) {
        let number = self.arrived;
        self.arrived += 1;
        self.log.push(request.clone());
        (number, self.faults.remove(&number))
    }

    /// Acts as the fault allows; `None` if there is no answer.
    fn handle(
        &mut self,
        number: usize,
        fault: Option<Fault>,
        request: &Request,
        body: Vec<u8>,
    ) -> Option<Answer> {
        if self.is_stopped {
            return None;
        }
        if let Some(change) = self.changes.remove(&number) {
            change(&mut self.store);
        }
        match fault {
            Some(Fault::CutBeforeActing) => return None,
            Some(Fault::Status(status, code)) => return Some(Answer::error((status, code))),
            _ => {}
        }
        let done = self.permit(number, request).and_then(|()| self.store.act(request, body));
        match fault {
            Some(Fault::ActThenClose) => None,
            Some(Fault::ActThenStatus(status, code)) => Some(Answer::error((status, code))),
            _ => Some(done.unwrap_or_else(Answer::error)),
        }
    }

    fn permit(&self, number: usize, request: &Request) -> Result<(), Refusal> {
        let Request { method, bucket, path, headers, .. } = request;
        let unknown = ["x-amz-copy-source", "if-modified-since", "if-unmodified-since", "transfer-encoding"];
        if unknown.iter().any(|name| headers.contains_key(*name)) {
            return Err(NOT_IMPLEMENTED);
        }
        let is_public = bucket.starts_with("public") && !path.is_empty();
        match headers.get("authorization") {
            None if is_public && (method == "GET" || method == "HEAD") => Ok(()),
            None => Err((403, "AccessDenied")),
            Some(by) if !by.contains(&format!("Credential={ACCESS_KEY}/")) => {
                Err((403, "InvalidAccessKeyId"))
            }
            Some(_) if self.expires_at.is_some_and(|end| number >= end) => Err((400, "ExpiredToken")),
            Some(_) => Ok(()),
        }
    }
}

/// A bucket and a key.
type Place = (String, String);

fn place(bucket: &str, key: &str) -> Place {
    (bucket.to_owned(), key.to_owned())
}

/// What the server holds.
#[derive(Default)]
pub(crate) struct Store {
    buckets: BTreeSet<String>,
    objects: BTreeMap<Place, Object>,
    /// Multipart uploads under way: where the object goes, and its parts.
    uploads: BTreeMap<String, (Place, BTreeMap<usize, Object>)>,
    uploads_begun: usize,
}

/// An object, or a part of one. Equal content has an equal tag.
struct Object {
    bytes: Vec<u8>,
    etag: String,
}

impl Object {
    fn new(bytes: Vec<u8>) -> Self {
        let hex: String = Sha256::digest(&bytes)[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { bytes, etag: format!("\"{hex}\"") }
    }
}

/// The status and the code of an error.
type Refusal = (u16, &'static str);
const NOT_IMPLEMENTED: Refusal = (400, "NotImplemented");
const PRECONDITION_FAILED: Refusal = (412, "PreconditionFailed");

impl Store {
    /// Writes an object.
    pub(crate) fn put(&mut self, bucket: &str, key: &str, bytes: impl Into<Vec<u8>>) {
        self.objects.insert(place(bucket, key), Object::new(bytes.into()));
    }

    /// Removes an object, if it is there.
    pub(crate) fn remove(&mut self, bucket: &str, key: &str) {
        self.objects.remove(&place(bucket, key));
    }

    fn act(&mut self, request: &Request, body: Vec<u8>) -> Result<Answer, Refusal> {
        let Request { method, bucket, path, query, .. } = request;
        if !self.buckets.contains(bucket) {
            return Err((404, "NoSuchBucket"));
        }
        let names: Vec<&str> = query.keys().map(String::as_str).collect();
        match (method.as_str(), path.is_empty(), names.as_slice()) {
            ("GET" | "HEAD", false, []) => self.read(request),
            ("PUT", false, []) => self.write(request, Object::new(body)),
            ("DELETE", false, []) => {
                self.remove(bucket, path);
                Ok(Answer::new(204, ""))
            }
            ("GET", true, _) if query.contains_key("list-type") => Ok(self.list(bucket, query)),
            ("POST", true, ["delete"]) => Ok(self.delete_many(bucket, &String::from_utf8_lossy(&body))),
            ("POST", false, ["uploads"]) => {
                self.uploads_begun += 1;
                let id = format!("upload-{}", self.uploads_begun);
                let xml = format!("<UploadId>{id}</UploadId>");
                self.uploads.insert(id, (place(bucket, path), BTreeMap::new()));
                Ok(Answer::xml("InitiateMultipartUploadResult", &xml))
            }
            ("PUT", false, ["partNumber", "uploadId"]) => {
                let number = query["partNumber"].parse().map_err(|_| (400, "InvalidArgument"))?;
                let part = Object::new(body);
                let answer = Answer::new(200, "").with("ETag", &part.etag);
                self.parts(request)?.insert(number, part);
                Ok(answer)
            }
            ("POST", false, ["uploadId"]) => self.complete(request, &String::from_utf8_lossy(&body)),
            ("DELETE", false, ["uploadId"]) => {
                self.parts(request)?;
                self.uploads.remove(&query["uploadId"]);
                Ok(Answer::new(204, ""))
            }
            _ => Err(NOT_IMPLEMENTED),
        }
    }

    fn read(&self, request: &Request) -> Result<Answer, Refusal> {
        let object = self.objects.get(&place(&request.bucket, &request.path)).ok_or((404, "NoSuchKey"))?;
        let is_it = |tag: &String| *tag == object.etag || tag == "*";
        if request.if_match.as_ref().is_some_and(|tag| !is_it(tag)) {
            return Err(PRECONDITION_FAILED);
        }
        if request.headers.get("if-none-match").is_some_and(is_it) {
            return Ok(Answer::new(304, "").with("ETag", &object.etag));
        }
        let length = object.bytes.len();
        let answer = match request.range.as_ref().and_then(|range| parse_range(range, length)) {
            Some(range) if range.start >= length => return Err((416, "InvalidRange")),
            Some(range) => {
                let shown = format!("bytes {}-{}/{length}", range.start, range.end - 1);
                Answer::new(206, &object.bytes[range]).with("Content-Range", &shown)
            }
            None => Answer::new(200, object.bytes.as_slice()),
        };
        let answer = answer.with("ETag", &object.etag).with("Accept-Ranges", "bytes");
        Ok(answer.with("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"))
    }

    /// Writes an object if the conditions of the request allow it.
    fn write(&mut self, request: &Request, object: Object) -> Result<Answer, Refusal> {
        let place = place(&request.bucket, &request.path);
        let if_none_match = request.headers.get("if-none-match").map(String::as_str);
        match (if_none_match, &request.if_match, self.objects.get(&place)) {
            (None, None, _) | (Some("*"), None, None) => {}
            (None, Some(tag), Some(current)) if *tag == current.etag => {}
            (Some("*"), None, Some(_)) | (None, Some(_), Some(_)) => return Err(PRECONDITION_FAILED),
            (None, Some(_), None) => return Err((404, "NoSuchKey")),
            (Some(_), _, _) => return Err(NOT_IMPLEMENTED),
        }
        let answer = Answer::new(200, "").with("ETag", &object.etag);
        self.objects.insert(place, object);
        Ok(answer)
    }

    /// One page of `ListObjectsV2`. The token of the next page is the last entry of this one.
    fn list(&self, bucket: &str, query: &BTreeMap<String, String>) -> Answer {
        let text = |name: &str| query.get(name).map_or("", String::as_str);
        let (prefix, delimiter, token) = (text("prefix"), text("delimiter"), text("continuation-token"));
        let most = text("max-keys").parse().unwrap_or(1000).min(1000);
        let (mut xml, mut last, mut count, mut is_truncated) = (String::new(), "", 0, false);
        let listed = self.objects.range(place(bucket, prefix)..);
        let listed = listed.take_while(|((of, key), _)| of == bucket && key.starts_with(prefix));
        for ((_, key), object) in listed.filter(|((_, key), _)| key.as_str() > text("start-after")) {
            // A key with a delimiter behind the prefix is listed as its group.
            let end = if delimiter.is_empty() { None } else { key[prefix.len()..].find(delimiter) };
            let entry = end.map_or(key.as_str(), |end| &key[..prefix.len() + end + delimiter.len()]);
            if entry <= token || entry == last {
                continue;
            }
            is_truncated = count == most;
            if is_truncated {
                break;
            }
            (last, count) = (entry, count + 1);
            let (name, etag, size) = (escape(entry), escape(&object.etag), object.bytes.len());
            let date = "<LastModified>2026-01-01T00:00:00.000Z</LastModified>";
            xml += &match end {
                Some(_) => format!("<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"),
                None => format!(
                    "<Contents><Key>{name}</Key>{date}<ETag>{etag}</ETag><Size>{size}</Size></Contents>"
                ),
            };
        }
        write!(xml, "<KeyCount>{count}</KeyCount><IsTruncated>{is_truncated}</IsTruncated>").unwrap();
        if is_truncated {
            write!(xml, "<NextContinuationToken>{}</NextContinuationToken>", escape(last)).unwrap();
        }
        Answer::xml("ListBucketResult", &xml)
    }

    fn delete_many(&mut self, bucket: &str, body: &str) -> Answer {
        let mut xml = String::new();
        for key in elements(body, "Key") {
            self.remove(bucket, &unescape(key));
            write!(xml, "<Deleted><Key>{key}</Key></Deleted>").unwrap();
        }
        Answer::xml("DeleteResult", &xml)
    }

    /// The parts of the upload that a request names.
    fn parts(&mut self, request: &Request) -> Result<&mut BTreeMap<usize, Object>, Refusal> {
        let upload = self.uploads.get_mut(&request.query["uploadId"]);
        let upload = upload.filter(|(target, _)| *target == place(&request.bucket, &request.path));
        Ok(&mut upload.ok_or((404, "NoSuchUpload"))?.1)
    }

    fn complete(&mut self, request: &Request, body: &str) -> Result<Answer, Refusal> {
        let parts = self.parts(request)?;
        let find = |listed: &str| {
            let field = |name| elements(listed, name).first().map(|text| unescape(text)).unwrap_or_default();
            let part = field("PartNumber").parse().ok().and_then(|number: usize| parts.get(&number));
            part.filter(|part| part.etag == field("ETag")).ok_or((400, "InvalidPart"))
        };
        let parts: Vec<&Object> = elements(body, "Part").into_iter().map(find).collect::<Result<_, _>>()?;
        let (_, all_but_last) = parts.split_last().ok_or((400, "MalformedXML"))?;
        if all_but_last.iter().any(|part| part.bytes.len() < SMALLEST_PART) {
            return Err((400, "EntityTooSmall"));
        }
        let bytes: Vec<&[u8]> = parts.iter().map(|part| part.bytes.as_slice()).collect();
        let mut object = Object::new(bytes.concat());
        // As in S3, the tag is not that of the same content written at once.
        object.etag = format!("{}-{}\"", object.etag.trim_end_matches('"'), parts.len());
        let xml = format!("<ETag>{}</ETag>", escape(&object.etag));
        self.write(request, object)?;
        self.uploads.remove(&request.query["uploadId"]);
        Ok(Answer::xml("CompleteMultipartUploadResult", &xml))
    }
}

/// The bytes that a header `Range` names; `None` if S3 would ignore it. They may begin behind the end.
fn parse_range(header: &str, length: usize) -> Option<Range<usize>> {
    let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    match (first, last) {
        ("", count) => Some(length.saturating_sub(count.parse().ok()?)..length),
        (first, "") => Some(first.parse().ok()?..length),
        (first, last) => {
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some(first..last.saturating_add(1).min(length))
        }
    }
}

/// What stands between each `<name>` and `</name>`.
fn elements<'a>(xml: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    xml.split(&open).skip(1).filter_map(|rest| rest.split_once(&close)).map(|(inner, _)| inner).collect()
}

/// What XML writes otherwise; `&` is first.
const ESCAPES: [(&str, &str); 5] =
    [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;"), ("'", "&apos;")];

fn escape(text: &str) -> String {
    ESCAPES.iter().fold(text.to_owned(), |text, (plain, escaped)| text.replace(plain, escaped))
}

fn unescape(text: &str) -> String {
    ESCAPES.iter().rev().fold(text.to_owned(), |text, (plain, escaped)| text.replace(escaped, plain))
}

/// Puts in the bytes that `%XX` stand for.
fn decode(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).unwrap_or_default();
        bytes.extend(u8::from_str_radix(digits, 16));
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads a request and its body; `None` at the end of the connection.
fn read_request(reader: &mut impl BufRead) -> io::Result<Option<(Request, Vec<u8>)>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line == "\r\n" {
            break;
        }
        let (name, value) = line.split_once(':').ok_or(ErrorKind::InvalidData)?;
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(Ok(0), |length| length.parse());
    let mut body = vec![0; length.map_err(io::Error::other)?];
    reader.read_exact(&mut body)?;

    let (method, rest) = first.split_once(" /").ok_or(ErrorKind::InvalidData)?;
    let target = rest.split(' ').next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let of_query = |text: &str| decode(&text.replace('+', " "));
    let request = Request {
        method: method.to_owned(),
        bucket: decode(bucket),
        path: decode(key),
        query: pairs.map(|(name, value)| (of_query(name), of_query(value))).collect(),
        range: headers.get("range").cloned(),
        if_match: headers.get("if-match").cloned(),
        headers,
    };
    Ok(Some((request, body)))
}

/// An answer to a request.
struct Answer {
    status: u16,
    headers: String,
    body: Vec<u8>,
}

impl Answer {
    fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: String::new(), body: body.into() }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        write!(self.headers, "{name}: {value}\r\n").unwrap();
        self
    }

    fn xml(root: &str, content: &str) -> Self {
        Self::new(200, format!("<{root}>{content}</{root}>"))
    }

    fn error((status, code): Refusal) -> Self {
        let xml = format!("<Error><Code>{code}</Code><Message>said by the test server</Message></Error>");
        Self::new(status, xml)
    }
}

/// Answers the requests of a connection, one after another.
fn serve(mut stream: &TcpStream, state: &Mutex<State>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some((request, body)) = read_request(&mut reader)? {
        let (number, fault) = state.lock().unwrap().arrive(&request);
        if let Some(Fault::Wait(time)) = fault {
            thread::sleep(time);
        }
        let answer = state.lock().unwrap().handle(number, fault, &request, body);
        let Some(Answer { status, headers, body }) = answer else { break };
        let head = format!("HTTP/1.1 {status} \r\nContent-Length: {}\r\n{headers}\r\n", body.len());
        let is_cut = fault == Some(Fault::Cut);
        let sent = if request.method == "HEAD" { 0 } else { body.len() / if is_cut { 2 } else { 1 } };
        stream.write_all(&[head.as_bytes(), &body[..sent]].concat())?;
        if is_cut {
            break;
        }
    }
    Ok(())
}

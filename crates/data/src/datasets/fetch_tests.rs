//! Transfers from a server on this machine that does what servers do, and what they should not.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use burn_gnn_files::DataError;
use sha2::{Digest, Sha256};

use super::fetch::fetch_files;
use super::unpack::unpack;
use super::{Download, RemoteFile, fetch};
use crate::formats::npz::npz_bytes;
use burn_gnn_testutil::faults::{draw, full_disk, kills, process, small_disk};

/// The headers of a request, in small letters.
type Request = Vec<String>;

/// Answers each connection as `answer` says, with the number of the connection from 0, several at a time; returns the
/// address and the requests so far.
fn serve(
    answer: impl Fn(usize, &Request, &mut TcpStream) + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<Request>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let log = Arc::new(Mutex::new(vec![]));
    let (seen, answer) = (log.clone(), Arc::new(answer));
    std::thread::spawn(move || {
        for (i, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let (seen, answer) = (seen.clone(), answer.clone());
            std::thread::spawn(move || {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let request: Request = lines
                    .map_while(Result::ok)
                    .take_while(|l| !l.is_empty())
                    .map(|l| l.to_lowercase())
                    .collect();
                seen.lock().unwrap().push(request.clone());
                answer(i, &request, &mut stream);
            });
        }
    });
    (address, log)
}

fn header(request: &Request, name: &str) -> Option<String> {
    request
        .iter()
        .find_map(|l| Some(l.strip_prefix(name)?.trim_start_matches(':').trim().to_owned()))
}

fn content() -> Vec<u8> {
    (0..100_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Sends a file like any server, from where the request asks, but only `most` bytes before it hangs up.
fn send(request: &Request, stream: &mut TcpStream, file: &[u8], etag: &str, most: usize) {
    let from = header(request, "range")
        .and_then(|r| r.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let from = from.filter(|_| header(request, "if-range").is_some_and(|t| t == etag));
    let head = match from {
        Some(from) if from >= file.len() => {
            "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n".to_owned()
        }
        Some(from) => format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {from}-{}/{}\r\nContent-Length: {}\r\n",
            file.len() - 1,
            file.len(),
            file.len() - from
        ),
        None => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", file.len()),
    };
    let _ = write!(stream, "{head}ETag: {etag}\r\nConnection: close\r\n\r\n");
    let body = &file[from.unwrap_or(0).min(file.len())..];
    let _ = stream.write_all(&body[..most.min(body.len())]);
}

fn get(url: &str, sha256: Option<&str>, path: &Path) -> Result<(), DataError> {
    fetch(Download { url, sha256, progress: false }, path)
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_whole_file() {
    let (url, log) =
        serve(|_, request, stream| send(request, stream, &content(), "\"a\"", usize::MAX));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/file");
    get(&url, Some(&sha256(&content()).to_uppercase()), &path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), content());
    assert_eq!(names(path.parent().unwrap()), ["file"]);
    assert!(header(&log.lock().unwrap()[0], "user-agent").unwrap().starts_with("burn-gnn/"));
}

/// The connection is cut twice; each request goes on where the last one ended.
#[test]
fn a_cut_connection_is_taken_up() {
    let (url, log) = serve(|i, request, stream| {
        send(request, stream, &content(), "\"a\"", if i < 2 { 150_000 } else { usize::MAX })
    });
    let dir = tempfile::tempdir().unwrap();
    get(&url, Some(&sha256(&content())), &dir.path().join("f")).unwrap();
    assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), content());
    let log = log.lock().unwrap();
    let ranges: Vec<_> = log.iter().map(|r| header(r, "range")).collect();
    assert_eq!(ranges, [None, Some("bytes=150000-".into()), Some("bytes=300000-".into())]);
}

/// Never more than a few bytes: an error that keeps them, and a later call that goes on.
#[test]
fn a_later_call_goes_on() {
    let (url, log) = serve(|i, request, stream| {
        send(request, stream, &content(), "\"a\"", if i < 4 { 1000 } else { usize::MAX })
    });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let e = get(&url, None, &path).unwrap_err();
    assert!(
        matches!(&e, DataError::Download { .. }) && e.to_string().contains("the next call resumes"),
        "{e}"
    );
    let left = names(dir.path());
    assert!(
        left.len() == 2 && left[0].starts_with(".f.mark") && left[1].starts_with(".f.part"),
        "{left:?}"
    );
    get(&url, None, &path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), content());
    assert_eq!(header(&log.lock().unwrap()[4], "range").as_deref(), Some("bytes=4000-"));
    assert_eq!(names(dir.path()), ["f"]);
}

/// The address serves another file: the beginning of the old one is discarded.
#[test]
fn a_changed_file_starts_anew() {
    let (url, _) = serve(|i, request, stream| match i {
        0..4 => send(request, stream, &[7; 5000], "\"old\"", 1000),
        _ => send(request, stream, &content(), "\"new\"", usize::MAX),
    });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    assert!(get(&url, None, &path).is_err());
    get(&url, None, &path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), content());
}

#[test]
fn a_part_that_is_whole_already_is_asked_for_anew() {
    let (url, log) =
        serve(|_, request, stream| send(request, stream, b"four", "\"a\"", usize::MAX));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(".f.partAbC123"), b"four").unwrap();
    std::fs::write(dir.path().join(".f.markAbC123"), b"\"a\"").unwrap();
    get(&url, None, &dir.path().join("f")).unwrap();
    assert_eq!(
        (std::fs::read(dir.path().join("f")).unwrap(), log.lock().unwrap().len()),
        (b"four".to_vec(), 2)
    );
}

#[test]
fn a_wrong_hash_leaves_nothing() {
    let (url, _) = serve(|_, request, stream| send(request, stream, b"other", "\"a\"", usize::MAX));
    let dir = tempfile::tempdir().unwrap();
    let expected = sha256(b"this");
    let e = get(&url, Some(&expected), &dir.path().join("f")).unwrap_err();
    assert!(matches!(&e, DataError::Download { .. }), "{e}");
    assert!(
        e.to_string().contains(&format!("expected SHA-256 {expected}, found {}", sha256(b"other"))),
        "{e}"
    );
    assert!(names(dir.path()).is_empty());
}

#[test]
fn other_answers() {
    let answers = [
        (
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "expected success, found HTTP status 404",
        ),
        (
            "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "found HTTP status 500",
        ),
        (
            "HTTP/1.1 206 Partial Content\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "found HTTP status 206",
        ),
        ("nonsense\r\n\r\n", "http://"),
    ];
    for (answer, part) in answers {
        let (url, log) = serve(move |_, _, stream| drop(stream.write_all(answer.as_bytes())));
        let dir = tempfile::tempdir().unwrap();
        let e = get(&url, None, &dir.path().join("f")).unwrap_err();
        assert!(
            matches!(&e, DataError::Download { .. }) && e.to_string().contains(part),
            "expected {part:?} in {e}"
        );
        assert!(!dir.path().join("f").exists());
        if answer.contains("404") {
            assert_eq!(log.lock().unwrap().len(), 1, "a file that is not there is asked for once");
        }
    }
    // A part of another place than the one asked for.
    let (url, _) = serve(|i, request, stream| {
        if i == 0 {
            send(request, stream, b"0123456789", "\"a\"", 5);
        } else {
            let _ = stream.write_all(
                b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 7-9/10\r\nContent-Length: 3\r\nConnection: close\r\n\r\n789",
            );
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let e = get(&url, None, &dir.path().join("f")).unwrap_err().to_string();
    assert!(e.contains("expected `Content-Range: bytes 5-…/…`, found \"bytes 7-9/10\""), "{e}");
    // No server listens.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let e = get(&format!("http://{gone}/f"), None, &dir.path().join("g")).unwrap_err();
    assert!(matches!(e, DataError::Download { .. }), "{e}");
}

/// An answer with these headers and the body, which ends where the connection does.
fn plain(
    headers: &'static str,
    body: &'static [u8],
) -> impl Fn(usize, &Request, &mut TcpStream) + Send + Sync + 'static {
    move |_, _, stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\n{headers}Connection: close\r\n\r\n");
        let _ = stream.write_all(body);
    }
}

#[test]
fn bodies_that_are_not_the_file() {
    const PAGE: &[u8] = b"\n<!DOCTYPE HTML><html>Please log in</html>";
    let refused = |headers: &'static str, body: &'static [u8], part: &str| {
        let dir = tempfile::tempdir().unwrap();
        let (url, _) = serve(plain(headers, body));
        let e = get(&url, None, &dir.path().join("f")).unwrap_err();
        assert!(
            matches!(&e, DataError::Download { .. }) && e.to_string().contains(part),
            "expected {part:?} in {e}"
        );
        assert!(!dir.path().join("f").exists());
    };
    refused(
        "Content-Type: Text/HTML; charset=utf-8\r\nContent-Length: 3\r\n",
        b"abc",
        "found an HTML page (`Content-Type: Text/HTML",
    );
    refused("Content-Length: 42\r\n", PAGE, "found an HTML page (by its first bytes)");
    // A body without length may end anywhere.
    refused("", b"abc", "expected `Content-Length`, chunks or a known SHA-256");
    // Chunks that break off, in one and between two.
    refused("Transfer-Encoding: chunked\r\n", b"5\r\nab", "expected more bytes");
    refused("Transfer-Encoding: chunked\r\n", b"2\r\nab\r\n", "expected more bytes");
    // A known sum says it all.
    let dir = tempfile::tempdir().unwrap();
    for (headers, body) in
        [("", &b"abc"[..]), ("Content-Type: text/html\r\nContent-Length: 42\r\n", PAGE)]
    {
        let (url, _) = serve(plain(headers, body));
        get(&url, Some(&sha256(body)), &dir.path().join("f")).unwrap();
        assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), body);
    }
    let (url, _) = serve(plain("Content-Length: 42\r\n", PAGE));
    let e = get(&url, Some(&sha256(b"abc")), &dir.path().join("g")).unwrap_err().to_string();
    assert!(e.contains(", an HTML page; the download was discarded"), "{e}");
    assert_eq!(names(dir.path()), ["f"]);
}

/// Neither the length that a server says nor what it sends goes beyond the limit of a set.
#[test]
fn files_beyond_their_limit() {
    for chunked in [false, true] {
        let (url, _) = serve(move |_, _, stream| {
            let head = if chunked {
                "Transfer-Encoding: chunked".into()
            } else {
                format!("Content-Length: {}", 1u64 << 40)
            };
            let _ = write!(stream, "HTTP/1.1 200 OK\r\n{head}\r\nConnection: close\r\n\r\n");
            while stream.write_all(b"4\r\nabcd\r\n").is_ok() {}
        });
        let tmp = tempfile::tempdir().unwrap();
        let url: &'static str = Box::leak(format!("{url}/f").into_boxed_str());
        let file = RemoteFile { name: "f", url, sha256: None, most: 100_000 };
        let e = fetch_files(false, tmp.path(), &[&file]).unwrap_err().to_string();
        assert!(e.contains("expected at most 100000 bytes"), "{e}");
        assert!(names(tmp.path()).is_empty(), "{:?}", names(tmp.path()));
    }
}

/// The sum of the first download is kept and asked of the next ones.
#[test]
fn the_first_download_is_recorded() {
    let (url, _) = serve(|i, request, stream| {
        send(request, stream, if i == 1 { b"other" } else { b"first" }, "\"a\"", usize::MAX)
    });
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("set");
    let url: &'static str = Box::leak(format!("{url}/f").into_boxed_str());
    let file = RemoteFile { name: "f", url, sha256: None, most: 10_000 };
    let fetch = || fetch_files(false, &dir, &[&file]);
    fetch().unwrap();
    assert_eq!(
        std::fs::read_to_string(dir.join("f.sha256")).unwrap(),
        format!("{}  f\n", sha256(b"first"))
    );
    std::fs::remove_file(dir.join("f")).unwrap();
    let e = fetch().unwrap_err();
    assert!(matches!(&e, DataError::Download { .. }), "{e}");
    let text = format!(
        "expected SHA-256 {} of the first download, found {}",
        sha256(b"first"),
        sha256(b"other")
    );
    assert!(e.to_string().contains(&text) && e.to_string().contains("f.sha256"), "{e}");
    assert_eq!(names(&dir), ["f.sha256"]);
    fetch().unwrap();
    assert_eq!(std::fs::read(dir.join("f")).unwrap(), b"first");
    std::fs::remove_file(dir.join("f")).unwrap();
    std::fs::write(dir.join("f.sha256"), "none").unwrap();
    let e = fetch().unwrap_err();
    assert!(matches!(&e, DataError::Format { path, .. } if path.ends_with("f.sha256")), "{e}");
}

/// A sum that the catalog knows, and that of an archive, by the way that sets are fetched.
#[test]
fn other_sums_are_refused() {
    let archive = |a: &[u8]| tgz(&[("raw/a.csv", a), ("split/b.csv", b"2")]);
    let (first, second) = (archive(b"1"), archive(b"3"));
    let (sum, other) = (sha256(&first), sha256(&second));
    let (url, _) = serve(move |i, request, stream| {
        send(request, stream, if i == 1 { &second } else { &first }, "\"a\"", usize::MAX)
    });
    let url: &'static str = Box::leak(format!("{url}/set.tgz").into_boxed_str());
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("set");
    let fetch = |sha256| {
        fetch_files(false, &dir, &[&RemoteFile { name: "raw", url, sha256, most: 10_000 }])
    };
    fetch(None).unwrap();
    assert_eq!(
        std::fs::read_to_string(tmp.path().join("set.tgz.sha256")).unwrap(),
        format!("{sum}  set.tgz\n")
    );
    std::fs::remove_dir_all(&dir).unwrap();
    // Another archive than the first time.
    let e = fetch(None).unwrap_err();
    assert!(matches!(&e, DataError::Download { .. }), "{e}");
    let text = format!("expected SHA-256 {sum} of the first download, found {other}");
    assert!(e.to_string().contains(&text) && e.to_string().contains("set.tgz.sha256"), "{e}");
    assert_eq!(names(tmp.path()), ["set.tgz.sha256"]);
    // A known sum counts, whatever was recorded.
    let known: &'static str = Box::leak(other.clone().into_boxed_str());
    let e = fetch(Some(known)).unwrap_err();
    assert!(
        e.to_string().contains(&format!(
            "expected SHA-256 {other}, found {sum}; the download was discarded"
        )),
        "{e}"
    );
    assert_eq!(names(tmp.path()), ["set.tgz.sha256"]);
    let known: &'static str = Box::leak(sum.into_boxed_str());
    fetch(Some(known)).unwrap();
    assert_eq!(std::fs::read(dir.join("raw/a.csv")).unwrap(), b"1");
}

/// Sums of the catalog are sums, and known for the files that were at hand.
#[test]
fn sums_of_the_catalog() {
    let mut known = 0;
    for set in super::Known::ALL {
        for f in set.about().files {
            assert!(f.url.starts_with("https://") && f.most > 0, "{f:?}");
            let is_sum = |s: &str| {
                s.len() == 64 && s.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            };
            assert!(f.sha256.is_none_or(is_sum), "{f:?}");
            known += usize::from(f.sha256.is_some());
        }
    }
    assert_eq!(known, 23);
}

/// Names the address and the folder of the processes of [`many_at_once`].
const MANY: &str = "BURN_GNN_DOWNLOADS";

/// One of the processes; otherwise nothing.
#[test]
fn one_of_many() {
    let Ok(text) = std::env::var(MANY) else { return };
    let (url, dir) = text.split_once(' ').unwrap();
    fetch_many(url, Path::new(dir)).unwrap();
}

/// A file and an archive, as sets are fetched.
fn fetch_many(url: &str, dir: &Path) -> Result<(), DataError> {
    let url = |end: &str| -> &'static str { Box::leak(format!("{url}/{end}").into_boxed_str()) };
    let most = 10_000_000;
    let plain = RemoteFile { name: "f", url: url("f"), sha256: None, most };
    let packed =
        ["raw", "split"].map(|name| RemoteFile { name, url: url("set.tgz"), sha256: None, most });
    fetch_files(false, &dir.join("plain"), &[&plain])?;
    fetch_files(false, &dir.join("set"), &[&packed[0], &packed[1]])
}

/// A server of a file and an archive that sends slowly and now and then hangs up.
fn slow_and_unsteady() -> String {
    let archive = tgz(&[("raw/a.csv", &content()), ("split/b.csv", b"2")]);
    serve(move |i, request, stream| {
        let file = if request[0].contains("set.tgz") { archive.clone() } else { content() };
        // Every third connection ends too early; parts of others must not be gone on with.
        let most = if i % 3 == 2 { file.len() / 2 } else { usize::MAX };
        let mut slow = vec![];
        let from = header(request, "range")
            .map_or(0, |r| r[6..].trim_end_matches('-').parse::<usize>().unwrap());
        let ranged = header(request, "if-range").is_some();
        let from = if ranged { from } else { 0 };
        if from >= file.len() {
            return send(request, stream, &file, "\"a\"", 0);
        }
        let status = if ranged { "206 Partial Content" } else { "200 OK" };
        let range = format!("Content-Range: bytes {from}-{}/{}\r\n", file.len() - 1, file.len());
        let head = format!(
            "Content-Length: {}\r\nETag: \"a\"\r\nConnection: close\r\n\r\n",
            file.len() - from
        );
        slow.extend(
            format!("HTTP/1.1 {status}\r\n{}{head}", if ranged { &range } else { "" }).into_bytes(),
        );
        slow.extend(&file[from..]);
        for piece in slow[..slow.len().min(most)].chunks(20_000) {
            std::thread::sleep(std::time::Duration::from_millis(2));
            if stream.write_all(piece).is_err() {
                return;
            }
        }
    })
    .0
}

/// Threads and processes that fetch the same set at the same time from a slow server that now and then hangs up: each
/// gets it whole.
#[test]
fn many_at_once() {
    let url = slow_and_unsteady();
    let tmp = tempfile::tempdir().unwrap();
    std::thread::scope(|s| {
        let one = || {
            process("datasets::fetch_tests::one_of_many")
                .env(MANY, format!("{url} {}", tmp.path().display()))
                .output()
                .unwrap()
        };
        let processes: Vec<_> = (0..4).map(|_| s.spawn(one)).collect();
        let threads: Vec<_> = (0..4).map(|_| s.spawn(|| fetch_many(&url, tmp.path()))).collect();
        for t in threads {
            t.join().unwrap().unwrap();
        }
        for p in processes {
            let out = p.join().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        }
    });
    assert!(std::fs::read(tmp.path().join("plain/f")).unwrap() == content());
    assert!(std::fs::read(tmp.path().join("set/raw/a.csv")).unwrap() == content());
    assert_eq!(std::fs::read(tmp.path().join("set/split/b.csv")).unwrap(), b"2");
    assert_eq!(
        (names(tmp.path()), names(&tmp.path().join("plain"))),
        (lines("plain set set.tgz.sha256"), lines("f f.sha256"))
    );
}

fn lines(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Names the address and the folder of the process of [`downloads_killed_at_any_moment`].
const KILLED: &str = "BURN_GNN_KILLED_DOWNLOADS";

/// The process to be killed; otherwise nothing.
#[test]
fn downloads_to_be_killed() {
    let Ok(text) = std::env::var(KILLED) else { return };
    let (url, dir) = text.split_once(' ').unwrap();
    (0..).try_for_each(|i: u32| fetch_many(url, &Path::new(dir).join(i.to_string()))).unwrap();
}

#[test]
fn downloads_killed_at_any_moment() {
    let (url, tmp) = (slow_and_unsteady(), tempfile::tempdir().unwrap());
    let (mut whole, mut missing) = (0, 0);
    for i in 0..kills() {
        // Every third one begins again, the others go on where the one before was killed.
        let home = tmp.path().join((i / 3).to_string());
        std::fs::create_dir_all(&home).unwrap();
        let mut child = process("datasets::fetch_tests::downloads_to_be_killed")
            .env(KILLED, format!("{url} {}", home.display()))
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_secs_f64(0.4 * draw("downloads", i)));
        child.kill().unwrap();
        child.wait().unwrap();
        for set in std::fs::read_dir(&home).unwrap().map(|e| e.unwrap().path()) {
            for (file, bytes) in [
                ("plain/f", content()),
                ("set/raw/a.csv", content()),
                ("set/split/b.csv", b"2".to_vec()),
            ] {
                match std::fs::read(set.join(file)) {
                    Ok(found) => {
                        assert!(found == bytes, "{file} is not whole");
                        whole += 1;
                    }
                    Err(e) => {
                        assert!(e.kind() == std::io::ErrorKind::NotFound, "{e}");
                        missing += 1;
                    }
                }
            }
            // What killed processes left goes with the next call.
            if i % 3 == 2 {
                fetch_many(&url, &set).unwrap();
                assert_eq!(
                    (names(&set), names(&set.join("plain"))),
                    (lines("plain set set.tgz.sha256"), lines("f f.sha256"))
                );
            }
        }
    }
    println!(
        "downloads: {} kills, {whole} files were there and whole, {missing} were not there",
        kills()
    );
}

#[test]
fn downloads_on_a_full_disk() {
    let Some(disk) = small_disk("datasets::fetch_tests::downloads_on_a_full_disk", 2048) else {
        return;
    };
    let (url, _) =
        serve(|_, request, stream| send(request, stream, &content(), "\"a\"", usize::MAX));
    let file = |dir: &Path| dir.join("f");
    let version = |path: &Path| match std::fs::read(path) {
        Ok(bytes) if bytes == b"old" => "old",
        Ok(bytes) if bytes == content() => "new",
        Ok(_) => "damaged",
        Err(_) => "old",
    };
    let put = |dir: &Path| std::fs::write(file(dir), "old").unwrap();
    full_disk(
        "download",
        &disk,
        put,
        |d| get(&url, None, &file(d)).map_err(|e| e.to_string()),
        |d| version(&file(d)),
    );
    // A file of a set, and next to it the checksum of its first download.
    let set_url: &'static str = Box::leak(format!("{url}/f").into_boxed_str());
    let plain = RemoteFile { name: "f", url: set_url, sha256: None, most: 10_000_000 };
    let fetch = |d: &Path| fetch_files(false, d, &[&plain]).map_err(|e| e.to_string());
    full_disk("file of a set", &disk, |_| {}, fetch, |d| version(&file(d)));
    // Room for the archive is not yet room for what is in it.
    let archive = tgz(&[("raw/a.csv", &[7; 300_000]), ("split/b.csv", &content())]);
    let sum = sha256(&archive);
    let (url, _) =
        serve(move |_, request, stream| send(request, stream, &archive, "\"a\"", usize::MAX));
    let url: &'static str = Box::leak(format!("{url}/set.tgz").into_boxed_str());
    let packed =
        ["raw", "split"].map(|name| RemoteFile { name, url, sha256: None, most: 10_000_000 });
    let fetch = |d: &Path| {
        fetch_files(false, &d.join("set"), &[&packed[0], &packed[1]]).map_err(|e| e.to_string())
    };
    let put =
        |d: &Path| std::fs::write(d.join("set.tgz.sha256"), format!("{sum}  set.tgz\n")).unwrap();
    full_disk("archive", &disk, put, fetch, |d| version(&d.join("set/split/b.csv")));
}

/// A part that another process may have put there: a link, and one that a living call writes.
#[cfg(unix)]
#[test]
fn parts_of_others_are_left_alone() {
    let (url, log) =
        serve(|_, request, stream| send(request, stream, b"content", "\"a\"", usize::MAX));
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("other"), "cont").unwrap();
    for (part, mark) in [(".f.partAbC123", ".f.markAbC123"), (".f.partAbC124", ".f.markAbC124")] {
        std::fs::write(at(mark), "\"a\"").unwrap();
        match part {
            ".f.partAbC123" => std::os::unix::fs::symlink(at("other"), at(part)).unwrap(),
            _ => std::fs::hard_link(at("other"), at(part)).unwrap(),
        }
    }
    std::fs::write(at(".f.partAbC125"), "CONT").unwrap();
    std::fs::write(at(".f.markAbC125"), "\"a\"").unwrap();
    let alive = File::options().read(true).write(true).open(at(".f.partAbC125")).unwrap();
    alive.lock().unwrap();
    get(&url, None, &at("f")).unwrap();
    assert_eq!(
        (std::fs::read(at("f")).unwrap(), std::fs::read(at("other")).unwrap()),
        (b"content".to_vec(), b"cont".to_vec())
    );
    assert_eq!(header(&log.lock().unwrap()[0], "range"), None);
    assert_eq!(names(dir.path()).len(), 8);
}

/// A set out of an archive, from the server into its folder, by the way that sets are fetched.
#[test]
fn an_archive_becomes_the_folder_of_the_set() {
    for (end, inner) in [("zip", ""), ("zip", "arxiv/"), ("tgz", ""), ("tgz", "arxiv/")] {
        let bytes = if end == "zip" {
            zip(inner)
        } else {
            tgz(&[(&format!("{inner}raw/a.csv"), b"1"), (&format!("{inner}split/b.csv"), b"2")])
        };
        let (url, log) =
            serve(move |_, request, stream| send(request, stream, &bytes, "\"a\"", usize::MAX));
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("set");
        let url: &'static str = Box::leak(format!("{url}/set.{end}").into_boxed_str());
        let files =
            ["raw", "split"].map(|name| RemoteFile { name, url, sha256: None, most: 10_000 });
        fetch_files(false, &dir, &[&files[0], &files[1]]).unwrap();
        assert_eq!(
            (
                std::fs::read(dir.join("raw/a.csv")).unwrap(),
                std::fs::read(dir.join("split/b.csv")).unwrap()
            ),
            (b"1".to_vec(), b"2".to_vec())
        );
        assert_eq!(
            (names(tmp.path()), log.lock().unwrap().len()),
            (vec!["set".to_owned(), format!("set.{end}.sha256")], 1)
        );
        // What somebody put there stays.
        std::fs::remove_dir_all(dir.join("split")).unwrap();
        std::fs::write(dir.join("raw/a.csv"), "mine").unwrap();
        fetch_files(false, &dir, &[&files[1]]).unwrap();
        assert_eq!(
            (
                std::fs::read(dir.join("raw/a.csv")).unwrap(),
                std::fs::read(dir.join("split/b.csv")).unwrap()
            ),
            (b"mine".to_vec(), b"2".to_vec())
        );
    }
}

fn zip(inner: &str) -> Vec<u8> {
    let mut out = ::zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    for (name, bytes) in [("raw/a.csv", b"1"), ("split/b.csv", b"2")] {
        out.start_file(format!("{inner}{name}"), ::zip::write::SimpleFileOptions::default())
            .unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

fn tgz(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar =
        ::tar::Builder::new(flate2::write::GzEncoder::new(vec![], flate2::Compression::fast()));
    for (name, bytes) in files {
        let mut header = ::tar::Header::new_gnu();
        // Past the checks of the writer, which would not make such names.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, *bytes).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

#[test]
fn hostile_archives() {
    let refused = |name: &str, bytes: Vec<u8>, part: &str| {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let e = unpack(&File::open(&file).unwrap(), &file, &tmp.path().join("set"), 100_000, || {})
            .unwrap_err();
        assert!(
            matches!(e, DataError::Format { .. }) && e.to_string().contains(part),
            "expected {part:?} in {e}"
        );
        assert_eq!(names(tmp.path()), [name], "nothing is left");
    };
    refused("a.tgz", tgz(&[("../x", b"1")]), "expected names inside the folder, found \"../x\"");
    refused("a.tgz", tgz(&[("/x", b"1")]), "expected names inside the folder, found \"/x\"");
    refused("a.tgz", b"nonsense".to_vec(), "expected a gzipped tar archive");
    refused("a.zip", b"nonsense".to_vec(), "expected a zip archive");
    refused(
        "a.zip",
        npz_bytes(&[("../x", vec![1])], false),
        "expected names inside the folder, found \"../x.npy\"",
    );
    refused("a.tgz", tgz(&[("a", &[7; 100_000])]), "expected at most 100000 unpacked bytes");
    let many: Vec<String> = (0..200).map(|i| format!("empty{i}")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &[][..])).collect();
    refused("a.tgz", tgz(&many), "expected at most 100000 unpacked bytes");
    let whole = tgz(&[("a", &[7; 5000])]);
    refused("a.tgz", whole[..whole.len() / 2].to_vec(), "found:");
}

//! Transfers from a server on this machine that does what servers do, and what they should not.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

use super::fetch::fetch_files;
use super::unpack::unpack;
use super::{DataHome, Download, RemoteFile, fetch};
use crate::GraphError;
use crate::io::npz_bytes;

/// The headers of a request, in small letters.
type Request = Vec<String>;

/// Answers each connection as `answer` says, with the number of the connection from 0; returns the address and the requests so far.
fn serve(answer: impl Fn(usize, &Request, &mut TcpStream) + Send + 'static) -> (String, Arc<Mutex<Vec<Request>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let log = Arc::new(Mutex::new(vec![]));
    let seen = log.clone();
    std::thread::spawn(move || {
        for (i, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request: Request = lines.map_while(Result::ok).take_while(|l| !l.is_empty()).map(|l| l.to_lowercase()).collect();
            seen.lock().unwrap().push(request.clone());
            answer(i, &request, &mut stream);
        }
    });
    (address, log)
}

fn header(request: &Request, name: &str) -> Option<String> {
    request.iter().find_map(|l| Some(l.strip_prefix(name)?.trim_start_matches(':').trim().to_owned()))
}

fn content() -> Vec<u8> {
    (0..100_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Sends a file like any server, from where the request asks, but only `most` bytes before it hangs up.
fn send(request: &Request, stream: &mut TcpStream, file: &[u8], etag: &str, most: usize) {
    let from = header(request, "range").and_then(|r| r.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let from = from.filter(|_| header(request, "if-range").is_some_and(|t| t == etag));
    let head = match from {
        Some(from) if from >= file.len() => "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n".to_owned(),
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

fn get(url: &str, sha256: Option<&str>, path: &Path) -> Result<(), GraphError> {
    fetch(Download { url, sha256, progress: false }, path)
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_whole_file() {
    let (url, log) = serve(|_, request, stream| send(request, stream, &content(), "\"a\"", usize::MAX));
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
    let (url, log) = serve(|i, request, stream| send(request, stream, &content(), "\"a\"", if i < 2 { 150_000 } else { usize::MAX }));
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
    let (url, log) = serve(|i, request, stream| send(request, stream, &content(), "\"a\"", if i < 4 { 1000 } else { usize::MAX }));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let e = get(&url, None, &path).unwrap_err();
    assert!(matches!(&e, GraphError::Download { .. }) && e.to_string().contains("the next call goes on"), "{e}");
    assert_eq!(names(dir.path()), [".f.mark", ".f.part"]);
    get(&url, None, &path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), content());
    assert_eq!(header(&log.lock().unwrap()[4], "range").as_deref(), Some("bytes=4000-"));
    assert_eq!(names(dir.path()), ["f"]);
}

/// Another file behind the same address: the beginning of the old one is not kept.
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
    let (url, log) = serve(|_, request, stream| send(request, stream, b"four", "\"a\"", usize::MAX));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(".f.part"), b"four").unwrap();
    std::fs::write(dir.path().join(".f.mark"), b"\"a\"").unwrap();
    get(&url, None, &dir.path().join("f")).unwrap();
    assert_eq!((std::fs::read(dir.path().join("f")).unwrap(), log.lock().unwrap().len()), (b"four".to_vec(), 2));
}

#[test]
fn a_wrong_hash_leaves_nothing() {
    let (url, _) = serve(|_, request, stream| send(request, stream, b"other", "\"a\"", usize::MAX));
    let dir = tempfile::tempdir().unwrap();
    let expected = sha256(b"this");
    let e = get(&url, Some(&expected), &dir.path().join("f")).unwrap_err();
    assert!(matches!(&e, GraphError::Download { .. }), "{e}");
    assert!(e.to_string().contains(&format!("expected SHA-256 {expected}, found {}", sha256(b"other"))), "{e}");
    assert!(names(dir.path()).is_empty());
}

#[test]
fn other_answers() {
    let answers = [
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "expected success, found HTTP status 404"),
        ("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "found HTTP status 500"),
        ("HTTP/1.1 206 Partial Content\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "found HTTP status 206"),
        ("nonsense\r\n\r\n", "http://"),
    ];
    for (answer, part) in answers {
        let (url, log) = serve(move |_, _, stream| drop(stream.write_all(answer.as_bytes())));
        let dir = tempfile::tempdir().unwrap();
        let e = get(&url, None, &dir.path().join("f")).unwrap_err();
        assert!(matches!(&e, GraphError::Download { .. }) && e.to_string().contains(part), "expected {part:?} in {e}");
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
    // Nobody there.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let e = get(&format!("http://{gone}/f"), None, &dir.path().join("g")).unwrap_err();
    assert!(matches!(e, GraphError::Download { .. }), "{e}");
}

/// A set out of an archive, from the server into its folder, by the way that sets are fetched.
#[test]
fn an_archive_becomes_the_folder_of_the_set() {
    for (end, inner) in [("zip", ""), ("zip", "arxiv/"), ("tgz", ""), ("tgz", "arxiv/")] {
        let bytes =
            if end == "zip" { zip(inner) } else { tgz(&[(&format!("{inner}raw/a.csv"), b"1"), (&format!("{inner}split/b.csv"), b"2")]) };
        let (url, log) = serve(move |_, request, stream| send(request, stream, &bytes, "\"a\"", usize::MAX));
        let tmp = tempfile::tempdir().unwrap();
        let (home, dir) = (DataHome::at(tmp.path()).with_progress(false), tmp.path().join("set"));
        let url: &'static str = Box::leak(format!("{url}/set.{end}").into_boxed_str());
        let files = ["raw", "split"].map(|name| RemoteFile { name, url, sha256: None });
        fetch_files(&home, &dir, &[&files[0], &files[1]]).unwrap();
        assert_eq!(
            (std::fs::read(dir.join("raw/a.csv")).unwrap(), std::fs::read(dir.join("split/b.csv")).unwrap()),
            (b"1".to_vec(), b"2".to_vec())
        );
        assert_eq!((names(tmp.path()), log.lock().unwrap().len()), (vec!["set".to_owned()], 1));
        // What somebody put there stays.
        std::fs::remove_dir_all(dir.join("split")).unwrap();
        std::fs::write(dir.join("raw/a.csv"), "mine").unwrap();
        fetch_files(&home, &dir, &[&files[1]]).unwrap();
        assert_eq!(
            (std::fs::read(dir.join("raw/a.csv")).unwrap(), std::fs::read(dir.join("split/b.csv")).unwrap()),
            (b"mine".to_vec(), b"2".to_vec())
        );
    }
}

fn zip(inner: &str) -> Vec<u8> {
    let mut out = ::zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    for (name, bytes) in [("raw/a.csv", b"1"), ("split/b.csv", b"2")] {
        out.start_file(format!("{inner}{name}"), ::zip::write::SimpleFileOptions::default()).unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

fn tgz(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = ::tar::Builder::new(flate2::write::GzEncoder::new(vec![], flate2::Compression::fast()));
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
        let e = unpack(&file, &tmp.path().join("set")).unwrap_err();
        assert!(matches!(e, GraphError::Format { .. }) && e.to_string().contains(part), "expected {part:?} in {e}");
        assert_eq!(names(tmp.path()), [name], "nothing is left");
    };
    refused("a.tgz", tgz(&[("../x", b"1")]), "expected names inside the folder, found \"../x\"");
    refused("a.tgz", tgz(&[("/x", b"1")]), "expected names inside the folder, found \"/x\"");
    refused("a.tgz", b"nonsense".to_vec(), "expected a gzipped tar archive");
    refused("a.zip", b"nonsense".to_vec(), "expected a zip archive");
    refused("a.zip", npz_bytes(&[("../x", vec![1])], false), "expected names inside the folder, found \"../x.npy\"");
    let whole = tgz(&[("a", &[7; 5000])]);
    refused("a.tgz", whole[..whole.len() / 2].to_vec(), "found:");
}

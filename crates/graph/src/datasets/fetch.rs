//! Files from the network, as far as they are not there.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};
use ureq::http::{Response, StatusCode};

use super::unpack::unpack;
use super::{DataHome, Known, RemoteFile};
use crate::GraphError;
use crate::io::files::{cut, io_error};

/// Transfers that are started anew where they broke off, before it is an error.
const TRIES: usize = 4;
/// How long a server may take to answer, or to send the next bytes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A transfer that [`fetch`] makes.
#[derive(Clone, Copy, Debug)]
pub struct Download<'a> {
    /// Address.
    pub url: &'a str,
    /// SHA-256 in hexadecimal digits; `None`: not looked at.
    pub sha256: Option<&'a str>,
    /// Whether a progress bar is drawn (on a terminal).
    pub progress: bool,
}

/// Fetches a file to `path`, which is complete or not there.
///
/// Bytes go to `.<name>.part` beside it. A transfer that breaks off is taken up where it did, in this call or a later one, if the server
/// marks its files (`ETag` or `Last-Modified`) and the mark has not changed; otherwise it starts anew. Its length is compared with what the
/// server says, its SHA-256 with the one given.
///
/// # Errors
/// [`GraphError::Download`] for an answer other than success, another length or SHA-256, or a connection that breaks off again and again;
/// [`GraphError::Io`] for the file.
pub fn fetch(download: Download<'_>, path: impl AsRef<Path>) -> Result<(), GraphError> {
    let path = path.as_ref();
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .timeout_per_read(Some(PATIENCE))
        .user_agent(concat!("burn-gnn/", env!("CARGO_PKG_VERSION")));
    let transfer = Transfer { download, agent: config.build().new_agent(), part: beside(path, "part"), mark: beside(path, "mark") };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|e| io_error(parent, e))?;
    }
    let mut failed = None;
    for _ in 0..TRIES {
        match transfer.once() {
            Ok(()) => {
                transfer.check()?;
                std::fs::rename(&transfer.part, path).map_err(|e| io_error(path, e))?;
                let _ = std::fs::remove_file(&transfer.mark);
                return Ok(());
            }
            Err(Stop::Final(e)) => return Err(e),
            Err(Stop::Again(message)) => failed = Some(message),
        }
    }
    let message = format!("{} ({TRIES} tries; the next call goes on where this one ended)", failed.unwrap_or_default());
    Err(transfer.error(message))
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{end}"))
}

struct Transfer<'a> {
    download: Download<'a>,
    agent: ureq::Agent,
    part: PathBuf,
    /// Holds the server's mark of the file that `part` is the beginning of.
    mark: PathBuf,
}

enum Stop {
    /// Another try will not help.
    Final(GraphError),
    Again(String),
}

impl From<GraphError> for Stop {
    fn from(e: GraphError) -> Self {
        Self::Final(e)
    }
}

impl Transfer<'_> {
    fn error(&self, message: String) -> GraphError {
        GraphError::Download { url: self.download.url.to_owned(), message }
    }

    /// One request; the part is complete afterwards.
    fn once(&self) -> Result<(), Stop> {
        let there = std::fs::metadata(&self.part).map_or(0, |m| m.len());
        let mark = std::fs::read_to_string(&self.mark).ok().filter(|m| !m.is_empty() && there > 0);
        let mut request = self.agent.get(self.download.url);
        if let Some(mark) = &mark {
            request = request.header("Range", format!("bytes={there}-")).header("If-Range", mark);
        }
        let response = request.call().map_err(|e| match e {
            ureq::Error::Io(_) | ureq::Error::Timeout(_) | ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => {
                Stop::Again(format!("expected a connection, found: {e}"))
            }
            e => Stop::Final(self.error(cut(&e.to_string()))),
        })?;
        let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let (start, total) = match response.status() {
            StatusCode::OK => (0, header("Content-Length").and_then(|n| n.parse::<u64>().ok())),
            StatusCode::PARTIAL_CONTENT if mark.is_some() => {
                let range = header("Content-Range").unwrap_or_default();
                let (start, total) = content_range(&range)
                    .filter(|r| r.0 == there)
                    .ok_or_else(|| self.error(format!("expected `Content-Range: bytes {there}-…/…`, found {:?}", cut(&range))))?;
                (start, Some(total))
            }
            // The part is as long as the file, or longer: start anew.
            StatusCode::RANGE_NOT_SATISFIABLE if mark.is_some() => {
                std::fs::remove_file(&self.part).map_err(|e| io_error(&self.part, e))?;
                return Err(Stop::Again("expected more bytes, found the end of the file".into()));
            }
            status => return Err(Stop::Final(self.error(format!("expected success, found HTTP status {status}")))),
        };
        let new_mark = header("ETag").filter(|t| !t.starts_with("W/")).or(header("Last-Modified")).unwrap_or_default();
        std::fs::write(&self.mark, new_mark).map_err(|e| io_error(&self.mark, e))?;
        let written = self.receive(response, start, total)?;
        match total {
            Some(total) if written < total => {
                Err(Stop::Again(format!("expected {total} bytes, found the end of the connection after {written}")))
            }
            Some(total) if written > total => Err(Stop::Final(self.error(format!("expected {total} bytes, found more")))),
            _ => Ok(()),
        }
    }

    /// Appends the body behind `start` bytes of the part; the bytes there are then.
    fn receive(&self, response: Response<ureq::Body>, start: u64, total: Option<u64>) -> Result<u64, Stop> {
        let failed = |e| Stop::Final(io_error(&self.part, e));
        let mut file = OpenOptions::new().create(true).append(true).open(&self.part).map_err(failed)?;
        file.set_len(start).map_err(failed)?;
        let bar = self.bar(start, total);
        let (mut body, mut buffer, mut written) = (response.into_body().into_reader(), vec![0; 1 << 16], start);
        loop {
            let n = match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Stop::Again(format!("expected more bytes after {written}, found: {e}"))),
            };
            file.write_all(&buffer[..n]).map_err(failed)?;
            written += n as u64;
            bar.inc(n as u64);
        }
        file.sync_all().map_err(failed)?;
        bar.finish_and_clear();
        Ok(written)
    }

    fn bar(&self, start: u64, total: Option<u64>) -> ProgressBar {
        if !self.download.progress {
            return ProgressBar::hidden();
        }
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        if let Ok(style) = ProgressStyle::with_template("{bar:32} {bytes}/{total_bytes}  {msg}  {bytes_per_sec}  {eta}") {
            bar.set_style(style);
        }
        bar.set_message(cut(self.download.url));
        bar.set_position(start);
        bar
    }

    /// Compares the SHA-256 of the part; one that differs is thrown away.
    fn check(&self) -> Result<(), GraphError> {
        let Some(expected) = self.download.sha256 else { return Ok(()) };
        let mut file = File::open(&self.part).map_err(|e| io_error(&self.part, e))?;
        let mut hash = Sha256::new();
        std::io::copy(&mut file, &mut hash).map_err(|e| io_error(&self.part, e))?;
        let found: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        if found.eq_ignore_ascii_case(expected) {
            return Ok(());
        }
        let _ = std::fs::remove_file(&self.part).and_then(|()| std::fs::remove_file(&self.mark));
        Err(self.error(format!("expected SHA-256 {expected}, found {found}; the file was thrown away")))
    }
}

/// Start and total of `bytes start-end/total`.
fn content_range(text: &str) -> Option<(u64, u64)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = range.split_once('-')?;
    let (start, end, total): (u64, u64, u64) = (start.parse().ok()?, end.parse().ok()?, total.parse().ok()?);
    (start <= end && end.checked_add(1) == Some(total)).then_some((start, total))
}

/// Fetches the files of a set that are missing: each to its name, or, out of an archive, the whole folder.
pub(super) fn fetch_set(home: &DataHome, set: Known, dir: &Path, missing: &[&RemoteFile]) -> Result<(), GraphError> {
    let about = set.about();
    if home.progress() {
        eprintln!("{}: licence: {}; please cite: {}", set.name(), about.licence, about.citation);
    }
    fetch_files(home, dir, missing)
}

/// [`fetch_set`] of any files.
pub(super) fn fetch_files(home: &DataHome, dir: &Path, missing: &[&RemoteFile]) -> Result<(), GraphError> {
    let progress = home.progress();
    let archive = |f: &RemoteFile| [".zip", ".tgz"].into_iter().find(|end| f.url.ends_with(end) && !f.name.ends_with(end));
    for f in missing {
        let download = Download { url: f.url, sha256: f.sha256, progress };
        match archive(f) {
            None => fetch(download, dir.join(f.name))?,
            // One archive holds them all.
            Some(_) if dir.join(f.name).exists() => {}
            Some(end) => {
                let file = dir.with_extension(&end[1..]);
                fetch(download, &file)?;
                unpack(&file, dir)?;
                std::fs::remove_file(&file).map_err(|e| io_error(&file, e))?;
            }
        }
    }
    Ok(())
}

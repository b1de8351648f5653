//! Downloads missing files.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use burn_gnn_files::DataError;
use burn_gnn_files::internal::{abandoned, builder, folder, locked, prefix};
use sha2::{Digest, Sha256};
use ureq::http::{Response, StatusCode};

use super::unpack::unpack;
use super::{DataHome, Known, RemoteFile};
use crate::files::{
    Progress, create_dirs, cut, format_error, io_error, read_bounded, remove_abandoned, sync_dir,
};

/// Transfers that are started again where they broke off, before it is an error.
const TRIES: usize = 4;
/// How long a server may take to answer, or to send the next bytes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest mark and longest recorded sum that are read.
const SHORT: u64 = 4096;

/// A transfer that [`fetch`] makes.
#[derive(Clone, Copy, Debug)]
pub struct Download<'a> {
    /// Address. One that begins with `https` is never left for one that does not.
    pub url: &'a str,
    /// SHA-256 in hexadecimal digits; `None`: not compared.
    pub sha256: Option<&'a str>,
    /// Whether a progress bar is drawn (on a terminal).
    pub progress: bool,
}

/// Fetches a file to `path`, which is complete or not there.
///
/// Bytes go to a file of this call alone beside it, `.<name>.part` and six random characters, which is renamed when it
/// is whole: of several calls and processes that fetch one file each gets it whole, and the last one wins. A transfer
/// that breaks off is taken up where it did, in this call or in a later one (never in one beside it), if the server
/// marks its files (`ETag` or `Last-Modified`) and the mark has not changed; otherwise it starts again.
///
/// # Errors
/// [`DataError::Download`] for an answer other than success, another length than the server says or another SHA-256,
/// an HTML page where no SHA-256 asks for one, a body of unknown length (neither its length nor a SHA-256 is
/// known), or a connection that breaks off again and again, which alone leaves what came for the next call;
/// [`DataError::Io`] for the file.
pub fn fetch(download: Download<'_>, path: impl AsRef<Path>) -> Result<(), DataError> {
    let path = path.as_ref();
    receive(download, path, &Limits { most: u64::MAX, record: None })?.persist(path)
}

/// What a set asks of a transfer, beside what is in [`Download`].
struct Limits {
    /// Bytes that the file may have.
    most: u64,
    /// Holds the SHA-256 of the first download, where none is known.
    record: Option<PathBuf>,
}

/// Fetches a file into a part beside `path`.
fn receive(download: Download<'_>, path: &Path, limits: &Limits) -> Result<Part, DataError> {
    create_dirs(folder(path)).map_err(|e| io_error(folder(path), e))?;
    let recorded = match (&limits.record, download.sha256) {
        (Some(record), None) => read_sum(record)?,
        _ => None,
    };
    let download = Download { sha256: download.sha256.or(recorded.as_deref()), ..download };
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .https_only(download.url.starts_with("https://"))
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .timeout_per_read(Some(PATIENCE))
        .user_agent(concat!("burn-gnn/", env!("CARGO_PKG_VERSION")));
    let part = Part::open(path).map_err(|e| io_error(path, e))?;
    let transfer = Transfer {
        download,
        agent: config.build().new_agent(),
        path,
        part: &part,
        most: limits.most,
    };
    let mut failed = None;
    for _ in 0..TRIES {
        match transfer.once() {
            Ok(()) => {
                let found = transfer.check(limits, recorded.is_some())?;
                if let (Some(record), None) = (&limits.record, download.sha256) {
                    transfer.record(record, &found)?;
                }
                return Ok(part);
            }
            Err(TransferError::Final(e)) => return Err(e),
            Err(TransferError::Again(message)) => failed = Some(message),
        }
    }
    let message = format!(
        "{} ({TRIES} tries; the next call goes on where this one ended)",
        failed.unwrap_or_default()
    );
    let error = transfer.error(message);
    part.keep();
    Err(error)
}

/// The beginning of a file, under a temporary name that no other call uses: it holds a lock on it. Removed unless it is
/// kept or renamed.
struct Part {
    file: File,
    path: PathBuf,
    /// Holds the server's mark of the file that this is the beginning of.
    mark: PathBuf,
    remove: bool,
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.remove {
            // A part without a mark is removed by the next call, a mark without a part by nobody.
            let _ = std::fs::remove_file(&self.mark);
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Part {
    /// The longest part that an ended call left, or a new one. What else ended calls left is removed.
    fn open(path: &Path) -> std::io::Result<Self> {
        let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?.to_string_lossy();
        let (prefix, dir) = (format!(".{name}.part"), folder(path));
        let mark = |part: &Path| {
            let random =
                part.file_name().unwrap_or_default().to_string_lossy().replacen(&prefix, "", 1);
            dir.join(format!(".{name}.mark{random}"))
        };
        let (file, path) =
            locked(|| builder(&prefix).tempfile_in(dir))?.keep().map_err(|e| e.error)?;
        let mut best = Self { mark: mark(&path), file, path, remove: true };
        for (path, file) in abandoned(dir, &prefix) {
            let other = Self { mark: mark(&path), file, path, remove: true };
            if other.written() > best.written()
                && same_owner(&other.file, &best.file)
                && other.mark().is_some()
            {
                best = other;
            }
        }
        Ok(best)
    }
    fn written(&self) -> u64 {
        self.file.metadata().map_or(0, |m| m.len())
    }
    fn mark(&self) -> Option<String> {
        let is_file = std::fs::symlink_metadata(&self.mark).is_ok_and(|m| m.is_file());
        let text = read_bounded(&self.mark, SHORT).ok().filter(|_| is_file)?;
        String::from_utf8(text).ok().filter(|t| !t.is_empty())
    }
    fn set_mark(&self, mark: &str) -> std::io::Result<()> {
        let _ = std::fs::remove_file(&self.mark);
        // Fails where somebody put a link there.
        File::options().write(true).create_new(true).open(&self.mark)?.write_all(mark.as_bytes())
    }
    /// For the next call.
    fn keep(mut self) {
        self.remove = self.written() == 0 || self.mark().is_none();
    }
    fn persist(mut self, path: &Path) -> Result<(), DataError> {
        let _ = std::fs::remove_file(&self.mark);
        std::fs::rename(&self.path, path).map_err(|e| io_error(path, e))?;
        self.remove = false;
        sync_dir(folder(path)).map_err(|e| io_error(path, e))
    }
}

/// Whether a part was written by whom this process writes as: what others put there is not gone on with.
fn same_owner(a: &File, b: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        matches!((a.metadata(), b.metadata()), (Ok(a), Ok(b)) if a.uid() == b.uid())
    }
    #[cfg(not(unix))]
    {
        let _ = (a, b);
        true
    }
}

struct Transfer<'a> {
    download: Download<'a>,
    agent: ureq::Agent,
    /// Where the file belongs.
    path: &'a Path,
    part: &'a Part,
    most: u64,
}

enum TransferError {
    /// Another try will not help.
    Final(DataError),
    Again(String),
}

impl From<DataError> for TransferError {
    fn from(e: DataError) -> Self {
        Self::Final(e)
    }
}

impl Transfer<'_> {
    fn error(&self, message: String) -> DataError {
        DataError::Download { url: self.download.url.to_owned(), message }
    }

    /// One request; the part is complete afterwards.
    fn once(&self) -> Result<(), TransferError> {
        let there = self.part.written();
        let mark = self.part.mark().filter(|_| there > 0);
        let mut request = self.agent.get(self.download.url);
        if let Some(mark) = &mark {
            request = request.header("Range", format!("bytes={there}-")).header("If-Range", mark);
        }
        let response = request.call().map_err(|e| match e {
            ureq::Error::Io(_)
            | ureq::Error::Timeout(_)
            | ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed => {
                TransferError::Again(format!("expected a connection, found: {e}"))
            }
            e => TransferError::Final(self.error(cut(&e.to_string()))),
        })?;
        let header = |name: &str| {
            response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned)
        };
        let (start, total) = match response.status() {
            StatusCode::OK => (0, header("Content-Length").and_then(|n| n.parse::<u64>().ok())),
            StatusCode::PARTIAL_CONTENT if mark.is_some() => {
                let range = header("Content-Range").unwrap_or_default();
                let (start, total) =
                    content_range(&range).filter(|r| r.0 == there).ok_or_else(|| {
                        self.error(format!(
                            "expected `Content-Range: bytes {there}-…/…`, found {:?}",
                            cut(&range)
                        ))
                    })?;
                (start, Some(total))
            }
            // The part is as long as the file, or longer: start again.
            StatusCode::RANGE_NOT_SATISFIABLE if mark.is_some() => {
                self.part.file.set_len(0).map_err(|e| io_error(self.path, e))?;
                return Err(TransferError::Again(
                    "expected more bytes, found the end of the file".into(),
                ));
            }
            status => {
                return Err(self
                    .error(format!("expected success, found HTTP status {status}"))
                    .into());
            }
        };
        if self.download.sha256.is_none() {
            let kind = header("Content-Type").unwrap_or_default();
            if kind.to_ascii_lowercase().starts_with("text/html") {
                return Err(self.html(&format!("`Content-Type: {}`", cut(&kind))).into());
            }
            // The client notices the end of a chunked body that is cut short; the end of one without length may be
            // anywhere.
            let chunked = header("Transfer-Encoding")
                .is_some_and(|e| e.to_ascii_lowercase().contains("chunked"));
            if total.is_none() && !chunked {
                let why = "expected `Content-Length`, chunks or a known SHA-256, found none: a truncated body would go unnoticed";
                return Err(self.error(why.into()).into());
            }
        }
        if let Some(total) = total.filter(|t| *t > self.most) {
            return Err(self.too_long(total).into());
        }
        let new_mark = header("ETag")
            .filter(|t| !t.starts_with("W/"))
            .or(header("Last-Modified"))
            .unwrap_or_default();
        self.part.set_mark(&new_mark).map_err(|e| io_error(self.path, e))?;
        let written = self.receive(response, start, total)?;
        match total {
            Some(total) if written < total => Err(TransferError::Again(format!(
                "expected {total} bytes, found the end of the connection after {written}"
            ))),
            Some(total) if written > total => {
                Err(self.error(format!("expected {total} bytes, found more")).into())
            }
            _ => Ok(()),
        }
    }

    fn html(&self, found: &str) -> DataError {
        self.error(format!("expected a data file, found an HTML page ({found}); does a login page or a proxy answer for the server?"))
    }
    fn too_long(&self, found: u64) -> DataError {
        self.error(format!("expected at most {} bytes, some times the size of the published file, found {found} or more", self.most))
    }

    /// Writes the body behind `start` bytes of the part; the bytes there are then.
    fn receive(
        &self,
        response: Response<ureq::Body>,
        start: u64,
        total: Option<u64>,
    ) -> Result<u64, TransferError> {
        let failed = |e| TransferError::Final(io_error(self.path, e));
        let mut file = &self.part.file;
        file.set_len(start).and_then(|()| file.seek(SeekFrom::Start(start))).map_err(failed)?;
        let what = format!("fetching {}", cut(self.download.url));
        let bar = Progress::bytes(self.download.progress, &what, total).resumed_at(start);
        let (mut body, mut buffer, mut written) =
            (response.into_body().into_reader(), vec![0; 1 << 16], start);
        loop {
            let n = match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    return Err(TransferError::Again(format!(
                        "expected more bytes after {written}, found: {e}"
                    )));
                }
            };
            file.write_all(&buffer[..n]).map_err(failed)?;
            written += n as u64;
            if written > self.most {
                return Err(self.too_long(written).into());
            }
            bar.inc(n as u64);
        }
        file.sync_all().map_err(failed)?;
        Ok(written)
    }

    /// Looks at the whole part; gives its SHA-256, empty where nobody asks for it.
    fn check(&self, limits: &Limits, is_recorded: bool) -> Result<String, DataError> {
        let failed = |e| io_error(self.path, e);
        let mut file = &self.part.file;
        let mut begin = vec![];
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.take(512).read_to_end(&mut begin))
            .map_err(failed)?;
        let is_html = is_html(&begin);
        if self.download.sha256.is_none() && is_html {
            return Err(self.html("by its first bytes"));
        }
        if self.download.sha256.is_none() && limits.record.is_none() {
            return Ok(String::new());
        }
        let mut hash = Sha256::new();
        file.seek(SeekFrom::Start(0))
            .and_then(|_| std::io::copy(&mut file, &mut hash))
            .map_err(failed)?;
        let found: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        match self.download.sha256 {
            Some(expected) if !found.eq_ignore_ascii_case(expected) => {
                let record = limits.record.as_deref().filter(|_| is_recorded);
                Err(self.error(wrong_sum(expected, &found, record, is_html)))
            }
            _ => Ok(found),
        }
    }

    /// Records the SHA-256 of the first download, or compares it with that of a call that was faster.
    fn record(&self, record: &Path, found: &str) -> Result<(), DataError> {
        let failed = |e| io_error(record, e);
        let (dir, prefix) = (folder(record), prefix(record).map_err(failed)?);
        remove_abandoned(dir, &prefix);
        let mut temp = locked(|| builder(&prefix).tempfile_in(dir)).map_err(failed)?;
        let name = record.file_stem().unwrap_or_default().to_string_lossy();
        writeln!(temp, "{found}  {name}")
            .and_then(|()| temp.as_file().sync_all())
            .map_err(failed)?;
        match temp.persist_noclobber(record) {
            Ok(_) => sync_dir(dir).map_err(failed),
            Err(e) if e.error.kind() == std::io::ErrorKind::AlreadyExists => {
                match read_sum(record)? {
                    Some(expected) if expected != found => {
                        Err(self.error(wrong_sum(&expected, found, Some(record), false)))
                    }
                    _ => Ok(()),
                }
            }
            Err(e) => Err(failed(e.error)),
        }
    }
}

fn wrong_sum(expected: &str, found: &str, record: Option<&Path>, is_html: bool) -> String {
    let page = if is_html { ", an HTML page" } else { "" };
    match record {
        None => {
            format!("expected SHA-256 {expected}, found {found}{page}; the file was thrown away")
        }
        Some(record) => format!(
            "expected SHA-256 {expected} of the first download, found {found}{page}; the file was thrown away; if its publisher replaced it, \
             remove {}",
            record.display()
        ),
    }
}

/// A SHA-256 that [`Transfer::record`] wrote, as `sha256sum` does; `None` where there is no file.
fn read_sum(record: &Path) -> Result<Option<String>, DataError> {
    if std::fs::symlink_metadata(record).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return Ok(None);
    }
    let bytes = read_bounded(record, SHORT)?;
    let text = String::from_utf8_lossy(&bytes);
    let sum = text.split_whitespace().next().unwrap_or_default();
    if sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(Some(sum.to_ascii_lowercase()));
    }
    Err(format_error(
        record,
        format!(
            "expected a SHA-256 of 64 hexadecimal digits, found {:?}; remove the file to record it anew",
            cut(sum)
        ),
    ))
}

/// Whether a file begins as an HTML page does.
fn is_html(begin: &[u8]) -> bool {
    let text = String::from_utf8_lossy(begin)
        .trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
        .to_ascii_lowercase();
    ["<!doctype html", "<html"].iter().any(|tag| text.starts_with(tag))
}

/// Start and total of `bytes start-end/total`.
fn content_range(text: &str) -> Option<(u64, u64)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = range.split_once('-')?;
    let (start, end, total): (u64, u64, u64) =
        (start.parse().ok()?, end.parse().ok()?, total.parse().ok()?);
    (start <= end && end.checked_add(1) == Some(total)).then_some((start, total))
}

/// Fetches the files of a set that are missing: each to its name, or, out of an archive, the whole folder.
pub(super) fn fetch_set(
    home: &DataHome,
    set: Known,
    dir: &Path,
    missing: &[&RemoteFile],
) -> Result<(), DataError> {
    let about = set.about();
    if home.progress() {
        eprintln!("{}: licence: {}; please cite: {}", set.name(), about.licence, about.citation);
    }
    fetch_files(home, dir, missing)
}

/// [`fetch_set`] of any files.
pub(super) fn fetch_files(
    home: &DataHome,
    dir: &Path,
    missing: &[&RemoteFile],
) -> Result<(), DataError> {
    let progress = home.progress();
    let archive = |f: &RemoteFile| {
        [".zip", ".tgz"].into_iter().find(|end| f.url.ends_with(end) && !f.name.ends_with(end))
    };
    for f in missing {
        let download = Download { url: f.url, sha256: f.sha256, progress };
        let limits = |file: &Path| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            Limits { most: f.most, record: Some(file.with_file_name(format!("{name}.sha256"))) }
        };
        match archive(f) {
            None => {
                let file = dir.join(f.name);
                receive(download, &file, &limits(&file))?.persist(&file)?
            }
            // One archive holds them all.
            Some(_) if dir.join(f.name).exists() => {}
            Some(end) => {
                let file = dir.with_extension(&end[1..]);
                let part = receive(download, &file, &limits(&file))?;
                let opened = part.file.try_clone().map_err(|e| io_error(&file, e))?;
                unpack(&opened, &file, dir, f.most, || drop(part))?
            }
        }
    }
    Ok(())
}

//! Downloads files and resumes interrupted downloads.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use burn_gnn_files::DataError;
use burn_gnn_files::internal::{abandoned, builder, folder, locked, prefix};
use sha2::{Digest, Sha256};
use ureq::http::{Response, StatusCode};

use crate::datasets::remote_file::{DatasetInfo, RemoteFile};
use crate::datasets::unpack::unpack;
use crate::files::{
    Progress, create_dirs, cut, format_error, io_error, read_bounded, remove_abandoned, sync_dir,
};

/// Attempts per call. Each attempt resumes where the last one was interrupted.
const TRIES: usize = 4;
/// Timeout for connecting, for the response, and for each read.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Largest accepted size of a validator file and of a checksum file in bytes.
const SHORT: u64 = 4096;

/// A download for [`fetch`].
#[derive(Clone, Copy, Debug)]
pub struct Download<'a> {
    /// Address. A redirect from `https` to `http` is an error.
    pub url: &'a str,
    /// Expected SHA-256 in hexadecimal digits; `None` for no comparison.
    pub sha256: Option<&'a str>,
    /// Whether a progress bar is drawn on a terminal.
    pub progress: bool,
}

/// Downloads a file to `path`. The file appears there only when it is complete.
///
/// Each call writes to its own temporary file in the same folder, `.<name>.part` with six random characters, and renames
/// it at the end. If several calls or processes download the same file, each of them completes and the last rename
/// wins. An interrupted download is resumed, in this call or in a later one, if the server sends a validator (`ETag` or
/// `Last-Modified`) and the validator has not changed. Otherwise it starts again.
///
/// # Errors
/// * [`DataError::Download`] for a response other than success; for a wrong length or SHA-256; for an HTML page, unless
///   a SHA-256 is given; for a body whose end cannot be verified because neither length nor SHA-256 is known; and if the
///   connection fails in every attempt. Only in the last case the received bytes are kept for the next call.
/// * [`DataError::Io`] if the file cannot be written.
pub fn fetch(download: Download<'_>, path: impl AsRef<Path>) -> Result<(), DataError> {
    let path = path.as_ref();
    receive(download, path, &Limits { most: u64::MAX, record: None })?.persist(path)
}

/// Further checks on a file of a data set.
struct Limits {
    /// Largest accepted size in bytes.
    most: u64,
    /// File with the SHA-256 of the first download, for files without a known SHA-256.
    record: Option<PathBuf>,
}

/// Downloads a file into a [`Part`] in the folder of `path`.
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
        .timeout_connect(Some(TIMEOUT))
        .timeout_recv_response(Some(TIMEOUT))
        .timeout_per_read(Some(TIMEOUT))
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
        "{} ({TRIES} attempts; the next call resumes the download)",
        failed.unwrap_or_default()
    );
    let error = transfer.error(message);
    part.keep();
    Err(error)
}

/// The first bytes of a download, in a temporary file that this call has locked. Dropping it removes the file unless
/// it is kept or renamed.
struct Part {
    file: File,
    path: PathBuf,
    /// File with the server's validator (`ETag` or `Last-Modified`) of the download.
    validator: PathBuf,
    remove: bool,
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.remove {
            // The validator goes first: the next call removes a part without validator, but no call would remove a
            // validator without part.
            let _ = std::fs::remove_file(&self.validator);
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Part {
    /// Opens the longest part that an earlier call left, or a new one, and removes all other parts of earlier calls.
    fn open(path: &Path) -> std::io::Result<Self> {
        let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?.to_string_lossy();
        let (prefix, dir) = (format!(".{name}.part"), folder(path));
        let validator = |part: &Path| {
            let random =
                part.file_name().unwrap_or_default().to_string_lossy().replacen(&prefix, "", 1);
            dir.join(format!(".{name}.mark{random}"))
        };
        let (file, path) =
            locked(|| builder(&prefix).tempfile_in(dir))?.keep().map_err(|e| e.error)?;
        let mut best = Self { validator: validator(&path), file, path, remove: true };
        for (path, file) in abandoned(dir, &prefix) {
            let other = Self { validator: validator(&path), file, path, remove: true };
            if other.written() > best.written()
                && same_owner(&other.file, &best.file)
                && other.validator().is_some()
            {
                best = other;
            }
        }
        Ok(best)
    }
    fn written(&self) -> u64 {
        self.file.metadata().map_or(0, |m| m.len())
    }
    fn validator(&self) -> Option<String> {
        let is_file = std::fs::symlink_metadata(&self.validator).is_ok_and(|m| m.is_file());
        let text = read_bounded(&self.validator, SHORT).ok().filter(|_| is_file)?;
        String::from_utf8(text).ok().filter(|t| !t.is_empty())
    }
    fn set_validator(&self, validator: &str) -> std::io::Result<()> {
        let _ = std::fs::remove_file(&self.validator);
        // `create_new` does not follow a symbolic link that another user may have created in between.
        let mut file = File::options().write(true).create_new(true).open(&self.validator)?;
        file.write_all(validator.as_bytes())
    }
    /// Keeps the part for the next call.
    fn keep(mut self) {
        self.remove = self.written() == 0 || self.validator().is_none();
    }
    /// Renames the complete part to `path`.
    fn persist(mut self, path: &Path) -> Result<(), DataError> {
        let _ = std::fs::remove_file(&self.validator);
        std::fs::rename(&self.path, path).map_err(|e| io_error(path, e))?;
        self.remove = false;
        sync_dir(folder(path)).map_err(|e| io_error(path, e))
    }
}

/// Whether two files belong to the same user. Parts of other users are not resumed: their content is not trusted.
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
    /// Final path of the file, for errors.
    path: &'a Path,
    part: &'a Part,
    most: u64,
}

enum TransferError {
    /// Another attempt would fail again.
    Final(DataError),
    /// The connection failed; another attempt may succeed.
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

    /// Sends one request and writes the response. After success the part is complete.
    fn once(&self) -> Result<(), TransferError> {
        let there = self.part.written();
        let validator = self.part.validator().filter(|_| there > 0);
        let mut request = self.agent.get(self.download.url);
        if let Some(validator) = &validator {
            let range = format!("bytes={there}-");
            request = request.header("Range", range).header("If-Range", validator);
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
            StatusCode::PARTIAL_CONTENT if validator.is_some() => {
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
            // The part is not shorter than the file: start again.
            StatusCode::RANGE_NOT_SATISFIABLE if validator.is_some() => {
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
            // The HTTP client detects a truncated chunked body. A body with neither chunks nor length can be truncated
            // unnoticed.
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
        let validator = header("ETag")
            .filter(|t| !t.starts_with("W/"))
            .or(header("Last-Modified"))
            .unwrap_or_default();
        self.part.set_validator(&validator).map_err(|e| io_error(self.path, e))?;
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
        self.error(format!(
            "expected a data file, found an HTML page ({found}); check for a login page or a proxy"
        ))
    }
    fn too_long(&self, found: u64) -> DataError {
        self.error(format!("expected at most {} bytes, a few times the size of the published file, found {found} or more", self.most))
    }

    /// Writes the body after the first `start` bytes of the part and returns the new length.
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

    /// Checks the complete part and returns its SHA-256, or an empty string if it is neither compared nor recorded.
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

    /// Records the SHA-256 of the first download. If a concurrent call has recorded one, compares the two.
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
            format!("expected SHA-256 {expected}, found {found}{page}; the download was discarded")
        }
        Some(record) => format!(
            "expected SHA-256 {expected} of the first download, found {found}{page}; the download was discarded; if the publisher \
             replaced the file, remove {}",
            record.display()
        ),
    }
}

/// Reads a SHA-256 in the format of `sha256sum`, as [`Transfer::record`] writes it; `None` if the file does not exist.
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
            "expected a SHA-256 of 64 hexadecimal digits, found {:?}; remove the file to record it again",
            cut(sum)
        ),
    ))
}

/// Whether a file starts like an HTML page.
fn is_html(begin: &[u8]) -> bool {
    let text = String::from_utf8_lossy(begin)
        .trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
        .to_ascii_lowercase();
    ["<!doctype html", "<html"].iter().any(|tag| text.starts_with(tag))
}

/// Parses `bytes start-end/total` of a range that reaches the end; returns start and total.
fn content_range(text: &str) -> Option<(u64, u64)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = range.split_once('-')?;
    let (start, end, total): (u64, u64, u64) =
        (start.parse().ok()?, end.parse().ok()?, total.parse().ok()?);
    (start <= end && end.checked_add(1) == Some(total)).then_some((start, total))
}

/// Downloads missing files of a data set: each to its name, or an archive that contains the whole folder.
pub(super) fn fetch_set(
    progress: bool,
    set: &str,
    about: &DatasetInfo,
    dir: &Path,
    missing: &[&RemoteFile],
) -> Result<(), DataError> {
    let notice = format!("{set}: licence: {}; please cite: {}", about.licence, about.citation);
    tracing::info!("{notice}");
    Progress::elapsed(progress, set).finish(notice);
    fetch_files(progress, dir, missing)
}

/// [`fetch_set`] without the note on licence and citation.
pub(super) fn fetch_files(
    progress: bool,
    dir: &Path,
    missing: &[&RemoteFile],
) -> Result<(), DataError> {
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
            // The archive of an earlier iteration contained this file.
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

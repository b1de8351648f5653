//! Measures phases.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use crate::limit::{Limit, resident_peak};

/// What a phase took.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Phase {
    pub(crate) name: &'static str,
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
    /// Of the group, page cache included, or of the process.
    pub(crate) peak_bytes: u64,
    /// Of the process alone.
    pub(crate) resident_peak_bytes: u64,
    /// All files at the end of the phase.
    pub(crate) disk_bytes: u64,
}

/// Runs phases and keeps what they took.
pub(crate) struct Phases<'a> {
    pub(crate) done: Vec<Phase>,
    limit: &'a Limit,
    dir: &'a Path,
    quiet: bool,
}

impl<'a> Phases<'a> {
    pub(crate) fn new(limit: &'a Limit, dir: &'a Path, quiet: bool) -> Self {
        Self { done: vec![], limit, dir, quiet }
    }

    pub(crate) fn run<T>(
        &mut self,
        name: &'static str,
        f: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.limit.reset();
        let (began, cpu) = (Instant::now(), cpu_seconds());
        let out = f()?;
        let phase = Phase {
            name,
            wall_s: began.elapsed().as_secs_f64(),
            cpu_s: cpu_seconds() - cpu,
            peak_bytes: self.limit.peak(),
            resident_peak_bytes: resident_peak(),
            disk_bytes: disk_bytes(self.dir),
        };
        if !self.quiet {
            let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            println!(
                "{name:>9}  {:8.2} s  {:8.2} s of processors  peak {:7.1} MiB ({:.1} of the process)  disk {:.1} MiB",
                phase.wall_s,
                phase.cpu_s,
                mib(phase.peak_bytes),
                mib(phase.resident_peak_bytes),
                mib(phase.disk_bytes)
            );
        }
        self.done.push(phase);
        Ok(out)
    }
}

/// Time of processors of all threads; 0 where the system does not say.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 14 and 15, in hundredths of a second. The program's name before them may contain any character.
    let fields: Vec<&str> =
        text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// Bytes of the files in a folder and those below, as they lie on the disk.
pub(crate) fn disk_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let of = |e: std::fs::DirEntry| match e.metadata() {
        Ok(meta) if meta.is_dir() => disk_bytes(&e.path()),
        #[cfg(unix)]
        Ok(meta) => 512 * std::os::unix::fs::MetadataExt::blocks(&meta),
        #[cfg(not(unix))]
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

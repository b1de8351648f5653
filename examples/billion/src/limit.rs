//! Puts the process under a limit of memory: a cgroup where it may make one, else a limit on its heap.

use std::path::{Path, PathBuf};

/// What limits the process.
pub(crate) enum Limit {
    /// A cgroup, which counts the page cache too: its folder, that of the group before, and the names of its files.
    Group { own: PathBuf, before: PathBuf, peak: &'static str },
    /// The system's limit on private memory; mapped files are not counted.
    Heap,
    /// None.
    Nothing(String),
}

impl Limit {
    /// Limits this process, as far as the system lets it.
    pub(crate) fn new(bytes: u64) -> Self {
        let (limit, peak) = ("memory.max", "memory.peak");
        if let Some(group) = version_2().and_then(|dir| enter(&dir, bytes, limit, peak)) {
            return group;
        }
        let (limit, peak) = ("memory.limit_in_bytes", "memory.max_usage_in_bytes");
        if let Some(group) = version_1().and_then(|dir| enter(&dir, bytes, limit, peak)) {
            return group;
        }
        heap(bytes)
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Group { own, .. } => format!("cgroup {}: heap and page cache", own.display()),
            Self::Heap => "RLIMIT_DATA: heap; mapped files are read through the page cache, which the system may drop".into(),
            Self::Nothing(why) => format!("none ({why})"),
        }
    }

    /// Begins a new peak.
    pub(crate) fn reset(&self) {
        // Older kernels keep the peak of a group: then that of a phase is the highest until its end.
        if let Self::Group { own, peak, .. } = self {
            let _ = std::fs::write(own.join(peak), "0");
        }
        let _ = std::fs::write("/proc/self/clear_refs", "5");
    }

    /// Most bytes since [`reset`](Self::reset): of the group, else of the process.
    pub(crate) fn peak(&self) -> u64 {
        let of_group = match self {
            Self::Group { own, peak, .. } => {
                std::fs::read_to_string(own.join(peak)).ok().and_then(|t| t.trim().parse().ok())
            }
            _ => None,
        };
        of_group.unwrap_or_else(resident_peak)
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        if let Self::Group { own, before, .. } = self {
            let left = std::fs::write(before.join("cgroup.procs"), std::process::id().to_string());
            if left.is_ok() {
                let _ = std::fs::remove_dir(own);
            }
        }
    }
}

/// Most bytes of the process in memory.
pub(crate) fn resident_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .map_or(0, |kib| 1024 * kib)
}

/// The group of this process in the unified hierarchy.
fn version_2() -> Option<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = text.lines().find_map(|l| l.strip_prefix("0::"))?;
    let dir = Path::new("/sys/fs/cgroup").join(group.trim_start_matches('/'));
    // A group with processes of its own may not limit its children: a sibling is made then.
    let dir = if dir.join("memory.max").exists() { dir.parent()?.to_owned() } else { dir };
    dir.join("cgroup.controllers").exists().then_some(dir)
}

/// The group of this process in the hierarchy of the memory controller.
fn version_1() -> Option<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = text.lines().find_map(|l| l.split_once(":memory:"))?.1;
    let root = Path::new("/sys/fs/cgroup/memory");
    let dir = root.join(group.trim_start_matches('/'));
    [dir, root.to_owned()].into_iter().find(|dir| dir.join("memory.limit_in_bytes").exists())
}

fn enter(before: &Path, bytes: u64, limit: &str, peak: &'static str) -> Option<Limit> {
    let own = before.join(format!("burn-gnn-billion-{}", std::process::id()));
    std::fs::create_dir(&own).ok()?;
    let id = std::process::id().to_string();
    let entered = std::fs::write(own.join(limit), bytes.to_string())
        .and_then(|()| std::fs::write(own.join("cgroup.procs"), id));
    if entered.is_err() {
        let _ = std::fs::remove_dir(&own);
        return None;
    }
    Some(Limit::Group { own, before: before.into(), peak })
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a call of the system without a wrapper")]
fn heap(bytes: u64) -> Limit {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the call reads the value that is given. RLIMIT_AS would count mapped files as well, which are no
    // memory until they are read.
    match unsafe { libc::setrlimit(libc::RLIMIT_DATA, &limit) } {
        0 => Limit::Heap,
        _ => Limit::Nothing(std::io::Error::last_os_error().to_string()),
    }
}

#[cfg(not(target_os = "linux"))]
fn heap(_: u64) -> Limit {
    Limit::Nothing("no cgroup and no limit on the heap on this system".into())
}

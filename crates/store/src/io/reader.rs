//! Reads many small pieces of a file at once, sorted and merged into fewer requests.

use std::fs::File;
use std::path::Path;
use std::sync::Mutex;

use burn_gnn_files::internal::open;

use super::aligned::Aligned;
use super::request::{LONGEST, Read, Request, SECTOR, merge};
use super::threads;
#[cfg(target_os = "linux")]
use super::uring;
use crate::error::{StoreError, io};

/// Bytes of requests in memory at a time.
const WINDOW: usize = 8 << 20;

/// Reads many pieces of a file, past the page cache if possible.
#[derive(Debug)]
pub(crate) struct Reader {
    file: File,
    bytes: u64,
    sector: u64,
    #[cfg(target_os = "linux")]
    rings: Mutex<Vec<uring::Ring>>,
    #[cfg(target_os = "linux")]
    has_ring: bool,
    buffers: Mutex<Vec<Aligned>>,
}

impl Reader {
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let (file, direct) = open_direct(path)?;
        let bytes = file.metadata().map_err(io(path))?.len();
        #[cfg(target_os = "linux")]
        let ring = uring::Ring::new();
        Ok(Self {
            file,
            bytes,
            sector: if direct { SECTOR } else { 1 },
            #[cfg(target_os = "linux")]
            has_ring: ring.is_some(),
            #[cfg(target_os = "linux")]
            rings: Mutex::new(ring.into_iter().collect()),
            buffers: Mutex::default(),
        })
    }

    /// Whether the file is read in whole sectors.
    pub(crate) fn reads_sectors(&self) -> bool {
        self.sector == SECTOR
    }

    pub(crate) fn engine(&self) -> &'static str {
        #[cfg(target_os = "linux")]
        if self.has_ring {
            return "io_uring";
        }
        "threads"
    }

    /// Reads the given pieces, which must ascend and not overlap, and concatenates them in `out`. Returns the number of
    /// bytes read from the file.
    pub(crate) fn read(&self, reads: &[Read], out: &mut [u8]) -> std::io::Result<u64> {
        let _span = tracing::debug_span!("disk_read").entered();
        let requests = merge(reads, self.sector);
        // A small buffer if the requests are small. A request that is longer than a window grows it below.
        let all: usize = requests.iter().map(|r| r.len.next_multiple_of(SECTOR as usize)).sum();
        let mut buffer = pop(&self.buffers).unwrap_or_else(|| {
            Aligned::new(all.next_power_of_two().min(WINDOW + LONGEST as usize))
        });
        let (mut total, mut next, mut filled) = (0, 0, 0);
        while next < requests.len() {
            let mut size = 0;
            let mut window = vec![];
            while let Some(request) =
                requests.get(next).filter(|r| window.is_empty() || size + r.len <= WINDOW)
            {
                window.push(Request { to: size, ..request.clone() });
                size += request.len.next_multiple_of(SECTOR as usize);
                next += 1;
            }
            if size > buffer.len() {
                // A single row that is longer than a window.
                buffer = Aligned::new(size);
            }
            self.make(&window, buffer.bytes_mut())?;
            for request in &window {
                for read in &reads[request.reads.clone()] {
                    let from = request.to + (read.at - request.at) as usize;
                    out[filled..filled + read.len]
                        .copy_from_slice(&buffer.bytes()[from..from + read.len]);
                    filled += read.len;
                }
                total += request.len as u64;
            }
        }
        push(&self.buffers, buffer);
        Ok(total)
    }

    fn make(&self, window: &[Request], buffer: &mut [u8]) -> std::io::Result<()> {
        #[cfg(target_os = "linux")]
        if self.has_ring
            && let Some(mut ring) = pop(&self.rings).or_else(uring::Ring::new)
        {
            let done = ring.read(&self.file, self.bytes, window, buffer);
            if done.is_ok() {
                // After an error requests may still be in flight: that ring is dropped, which waits for them.
                push(&self.rings, ring);
            }
            return done;
        }
        threads::read(&self.file, self.bytes, window, buffer)
    }
}

/// Opens a file, past the page cache if possible. Returns whether it is.
fn open_direct(path: &Path) -> Result<(File, bool), StoreError> {
    let file = open(path)?.0;
    #[cfg(target_os = "linux")]
    {
        // Some file systems accept the flag but fail reads, so the header page is read as a test.
        let mut page = Aligned::new(SECTOR as usize);
        if set_flags(&file, libc::O_DIRECT)
            && std::os::unix::fs::FileExt::read_at(&file, page.bytes_mut(), 0)
                .is_ok_and(|n| n as u64 == SECTOR)
        {
            return Ok((file, true));
        }
        set_flags(&file, 0);
    }
    Ok((file, false))
}

/// Replaces the status flags of an open file, and returns whether the file system accepts them. This also clears
/// `O_NONBLOCK`, with which the ring could report that bytes are not in memory yet.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a call of the system without a wrapper")]
fn set_flags(file: &File, flags: libc::c_int) -> bool {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open, and the call accesses no memory of the process.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags) == 0 }
}

fn pop<T>(pool: &Mutex<Vec<T>>) -> Option<T> {
    pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop()
}

fn push<T>(pool: &Mutex<Vec<T>>, value: T) {
    pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All engines read the right bytes, with and without the page cache, up to the end of a file that is not a
    /// multiple of sectors.
    #[test]
    fn bytes_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let bytes: Vec<u8> =
            (0..3_000_123u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let reads: Vec<Read> = (0..2000u64)
            .map(|i| Read { at: i * 1490, len: 100 + (i % 7) as usize })
            .chain([Read { at: 3_000_000, len: 123 }])
            .collect();
        let want: Vec<u8> = reads
            .iter()
            .flat_map(|r| bytes[r.at as usize..r.at as usize + r.len].iter().copied())
            .collect();
        let reader = Reader::open(&path).unwrap();
        for _ in 0..2 {
            let mut out = vec![0; want.len()];
            assert!(reader.read(&reads, &mut out).unwrap() >= want.len() as u64 && out == want);
        }
        let (file, requests) = (File::open(&path).unwrap(), merge(&reads, 1));
        let mut buffer = vec![0; 4 << 20];
        let mut at = 0;
        let window: Vec<Request> = requests
            .into_iter()
            .map(|r| {
                at += r.len;
                Request { to: at - r.len, ..r }
            })
            .collect();
        threads::read(&file, bytes.len() as u64, &window, &mut buffer).unwrap();
        assert!(
            window
                .iter()
                .all(|r| buffer[r.to..r.to + r.len] == bytes[r.at as usize..r.at as usize + r.len])
        );
        assert!(
            threads::read(
                &file,
                10 * bytes.len() as u64,
                &[Request { at: 2_999_990, len: 500, reads: 0..1, to: 0 }],
                &mut buffer
            )
            .is_err()
        );
        #[cfg(target_os = "linux")]
        match uring::Ring::new() {
            None => println!("the kernel does not support io_uring"),
            Some(mut ring) => {
                buffer.fill(0);
                ring.read(&file, bytes.len() as u64, &window, &mut buffer).unwrap();
                assert!(
                    window.iter().all(|r| buffer[r.to..r.to + r.len]
                        == bytes[r.at as usize..r.at as usize + r.len])
                );
                let far = Request { at: 2_999_990, len: 500, reads: 0..1, to: 0 };
                assert!(ring.read(&file, 10 * bytes.len() as u64, &[far], &mut buffer).is_err());
            }
        }
    }
}

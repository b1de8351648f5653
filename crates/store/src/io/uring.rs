//! Reads requests by `io_uring`: one thread submits many at a time.

use std::fs::File;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

use super::request::Request;
use super::threads::whole;

/// Maximal number of requests in flight.
const DEPTH: u32 = 128;

/// Ends the process when it is dropped by unwinding.
struct AbortOnDrop;

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// A submission and completion queue of the kernel.
pub(super) struct Ring(IoUring);

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ring({DEPTH} requests)")
    }
}

impl Ring {
    /// Creates a ring; `None` if the kernel does not support it, forbids it, or cannot read by it (before Linux 5.6).
    pub(super) fn new() -> Option<Self> {
        let ring = IoUring::new(DEPTH).ok()?;
        let mut probe = io_uring::Probe::new();
        ring.submitter().register_probe(&mut probe).ok()?;
        probe.is_supported(opcode::Read::CODE).then_some(Self(ring))
    }

    /// As [`threads::read`](super::threads::read).
    #[expect(unsafe_code, reason = "requests of the kernel")]
    pub(super) fn read(
        &mut self,
        file: &File,
        bytes: u64,
        window: &[Request],
        buffer: &mut [u8],
    ) -> std::io::Result<()> {
        assert!(window.iter().all(|r| r.to + r.len <= buffer.len()), "requests lie in the buffer");
        let fd = types::Fd(file.as_raw_fd());
        let start = buffer.as_mut_ptr();
        let (mut next, mut under_way) = (0, 0);
        let mut short: Vec<(usize, usize)> = vec![];
        let mut failed = None;
        loop {
            {
                let mut queue = self.0.submission();
                while failed.is_none() && next < window.len() && under_way < DEPTH as usize {
                    let request = &window[next];
                    // SAFETY: in bounds of `buffer`, as asserted above.
                    let place = unsafe { start.add(request.to) };
                    let entry = opcode::Read::new(fd, place, request.len as u32)
                        .offset(request.at)
                        .build()
                        .user_data(next as u64);
                    // SAFETY: the file and the buffer are borrowed until this function returns, and it returns only
                    // after every submitted request is complete. The ranges of requests do not overlap.
                    if unsafe { queue.push(&entry) }.is_err() {
                        break;
                    }
                    next += 1;
                    under_way += 1;
                }
            }
            if under_way == 0 {
                break;
            }
            match self.0.submit_and_wait(1) {
                Ok(_) => {}
                Err(e)
                    if matches!(
                        e.raw_os_error(),
                        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
                    ) => {}
                Err(e) => {
                    // The kernel may still write to the buffer, so its memory must never be reused, not even by
                    // unwinding: the panic hook reports the reason, then the process ends.
                    let _abort = AbortOnDrop;
                    panic!("io_uring failed with {under_way} requests in flight: {e}");
                }
            }
            for entry in self.0.completion() {
                under_way -= 1;
                let request = entry.user_data() as usize;
                match entry.result() {
                    n if n >= 0 => short.extend(
                        ((n as usize) < window[request].len).then_some((request, n as usize)),
                    ),
                    n if matches!(-n, libc::EINTR | libc::EAGAIN) => short.push((request, 0)),
                    n => failed = Some(std::io::Error::from_raw_os_error(-n)),
                }
            }
        }
        if let Some(e) = failed {
            return Err(e);
        }
        // The rest of what was read in part: at the end of the file there is none.
        for (request, n) in short {
            let Request { at, len, to, .. } = window[request];
            // Whole sectors again, as reads past the page cache begin at one.
            let n = n / super::SECTOR as usize * super::SECTOR as usize;
            whole(file, bytes, at + n as u64, &mut buffer[to + n..to + len])?;
        }
        Ok(())
    }
}

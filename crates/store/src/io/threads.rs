//! Reads requests by a pool of threads, each with one blocking read at a time.

use std::fs::File;
use std::sync::Mutex;

use super::request::Request;

/// Maximal number of threads.
const THREADS: usize = 16;

/// Reads all requests into their positions in `buffer`. A request may extend beyond the end of the file.
pub(super) fn read(
    file: &File,
    bytes: u64,
    window: &[Request],
    buffer: &mut [u8],
) -> std::io::Result<()> {
    let mut places: Vec<(&Request, &mut [u8])> = vec![];
    let (mut rest, mut at) = (buffer, 0);
    for request in window {
        let (place, after) = std::mem::take(&mut rest).split_at_mut(request.to - at + request.len);
        places.push((request, &mut place[request.to - at..]));
        (rest, at) = (after, request.to + request.len);
    }
    let threads = THREADS.min(places.len());
    let places = Mutex::new(places.into_iter());
    let work = || loop {
        let next = places.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
        let Some((request, place)) = next else { return Ok(()) };
        whole(file, bytes, request.at, place)?;
    };
    if threads < 2 {
        return work();
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Reads until the buffer is full or the file ends.
pub(super) fn whole(
    file: &File,
    bytes: u64,
    mut at: u64,
    mut place: &mut [u8],
) -> std::io::Result<()> {
    while !place.is_empty() && at < bytes {
        match read_some(file, place, at) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                at += n as u64;
                place = &mut place[n..];
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(unix)]
fn read_some(file: &File, place: &mut [u8], at: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, place, at)
}

#[cfg(windows)]
fn read_some(file: &File, place: &mut [u8], at: u64) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, place, at)
}

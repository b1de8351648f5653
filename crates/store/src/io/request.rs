//! Merges sorted reads into fewer, aligned requests.

/// Alignment of reads past the page cache.
pub(crate) const SECTOR: u64 = 4096;
/// Gaps up to this size are read too, since that is cheaper than another request.
const GAP: u64 = 4096;
/// Maximal length of a request.
pub(super) const LONGEST: u64 = 256 << 10;
/// A range of bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) at: u64,
    pub(crate) len: usize,
}

/// A request for whole sectors, and the reads that it contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(super) at: u64,
    pub(super) len: usize,
    pub(super) reads: std::ops::Range<usize>,
    /// Position of its bytes in the buffer of the window.
    pub(super) to: usize,
}

/// Merges sorted reads into requests for whole sectors.
pub(super) fn merge(reads: &[Read], sector: u64) -> Vec<Request> {
    let mut requests: Vec<Request> = vec![];
    for (i, read) in reads.iter().enumerate().filter(|(_, r)| r.len > 0) {
        let (from, to) =
            (read.at / sector * sector, (read.at + read.len as u64).next_multiple_of(sector));
        match requests.last_mut() {
            Some(last) if from <= last.at + last.len as u64 + GAP && to - last.at <= LONGEST => {
                last.len = (to.max(last.at + last.len as u64) - last.at) as usize;
                last.reads.end = i + 1;
            }
            _ => requests.push(Request {
                at: from,
                len: (to - from) as usize,
                reads: i..i + 1,
                to: 0,
            }),
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_reads_are_one_request() {
        let read = |at, len| Read { at, len };
        let of = |reads: &[Read], sector| {
            merge(reads, sector).into_iter().map(|r| (r.at, r.len, r.reads)).collect::<Vec<_>>()
        };
        assert_eq!(
            of(&[read(10, 5), read(15, 5), read(9000, 10)], 1),
            [(10, 10, 0..2), (9000, 10, 2..3)]
        );
        assert_eq!(
            of(&[read(10, 5), read(4090, 10), read(20_000, 10)], 4096),
            [(0, 8192, 0..2), (16_384, 4096, 2..3)]
        );
        let many: Vec<Read> = (0..1000).map(|i| read(i * 1000, 1000)).collect();
        let requests = of(&many, 4096);
        assert!(
            requests.len() >= 4 && requests.iter().all(|r| r.1 as u64 <= LONGEST + 4096),
            "{requests:?}"
        );
        assert!(requests.windows(2).all(|w| w[0].2.end == w[1].2.start));
    }
}

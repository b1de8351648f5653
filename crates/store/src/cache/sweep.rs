//! Reads rows sequentially and writes each to all batches that use it.

use std::sync::mpsc::sync_channel;

use burn_gnn_structure::internal::room;
use rayon::prelude::*;

use crate::error::StoreError;
use crate::rows::StoredRows;
use crate::section_writer::SectionWriter;

/// Memory of a read row in addition to its bytes: id, read and request.
const READ_BYTES: u64 = 64;
/// Minimal and maximal bytes of rows per read.
const AT_ONCE: [u64; 2] = [1 << 20, 64 << 20];
/// Bytes that are buffered for one destination before they are written.
const WAITING: [u64; 2] = [8 << 10, 1 << 20];

/// Destination of rows: a section, and the byte offset in it.
#[derive(Debug)]
struct Destination {
    section: usize,
    at: u64,
    bytes: u64,
    waiting: Vec<u8>,
}

/// Copies rows of a file to several positions of another file, in one pass over the input while the budget suffices.
/// Half of the budget holds requested ids, a quarter holds rows that are read, and a quarter holds rows to be written.
#[derive(Debug)]
pub(super) struct Sweep<'a> {
    rows: &'a StoredRows,
    budget: u64,
    /// Requests: row in the upper half, number of the destination in the lower half.
    wanted: Vec<u64>,
    destinations: Vec<Destination>,
    /// Bytes to buffer per destination.
    waiting: u64,
}

impl<'a> Sweep<'a> {
    /// A sweep of at most `most` requests.
    pub(super) fn new(rows: &'a StoredRows, budget: u64, most: u64) -> Result<Self, StoreError> {
        let what = || format!("the ids of {most} packed rows");
        let wanted = room((budget / 16).min(most).into(), what, "use a smaller budget")?;
        Ok(Self { rows, budget, wanted, destinations: vec![], waiting: 0 })
    }

    /// Requests rows with distinct `ids`, which are written to a section in ascending order, at byte offset `at`.
    /// Earlier requests are executed first if the budget does not hold both.
    pub(super) fn want(
        &mut self,
        out: &mut SectionWriter,
        (section, at): (usize, u64),
        ids: &[u32],
    ) -> Result<(), StoreError> {
        let bytes = (ids.len() * self.rows.row_bytes()) as u64;
        let waits = bytes.min(WAITING[0]) + size_of::<Destination>() as u64;
        let wanted = 8 * (self.wanted.len() + ids.len()) as u64;
        if wanted > self.budget / 2 || self.waiting + waits > self.budget / 4 {
            self.run(out)?;
        }
        let number = self.destinations.len() as u64;
        self.wanted.extend(ids.iter().map(|&id| u64::from(id) << 32 | number));
        self.destinations.push(Destination { section, at, bytes, waiting: vec![] });
        self.waiting += waits;
        Ok(())
    }

    /// Executes all requests. Rows are read while earlier ones are copied.
    pub(super) fn run(&mut self, out: &mut SectionWriter) -> Result<(), StoreError> {
        let (rows, each) = (self.rows, self.rows.row_bytes());
        let read = (self.budget / 8).clamp(AT_ONCE[0], AT_ONCE[1]);
        let at_once = (read / (each as u64 + READ_BYTES)).max(1) as usize;
        let room = (self.budget / 4 / self.destinations.len().max(1) as u64).min(WAITING[1]);
        for to in &mut self.destinations {
            to.waiting.reserve_exact(room.min(to.bytes) as usize);
        }
        self.wanted.par_sort_unstable();
        let (wanted, destinations) = (&self.wanted, &mut self.destinations);
        let by_row = || wanted.chunk_by(|a, b| a >> 32 == b >> 32);
        std::thread::scope(|scope| {
            let (done, next) = sync_channel(0);
            scope.spawn(move || {
                let mut of_rows = by_row().peekable();
                while of_rows.peek().is_some() {
                    let ids: Vec<u32> =
                        of_rows.by_ref().take(at_once).map(|of| (of[0] >> 32) as u32).collect();
                    let mut bytes = vec![];
                    let read = rows.read_sorted(&ids, &mut bytes).map(|_| bytes);
                    let failed = read.is_err();
                    if done.send(read).is_err() || failed {
                        return;
                    }
                }
            });
            let mut of_rows = by_row();
            for bytes in next {
                let bytes = bytes?;
                for (row, of) in bytes.chunks_exact(each.max(1)).zip(&mut of_rows) {
                    for &wanted in of {
                        destinations[wanted as u32 as usize].put(out, row, room as usize)?;
                    }
                }
            }
            Ok::<(), StoreError>(())
        })?;
        self.wanted.clear();
        self.waiting = 0;
        self.destinations.drain(..).try_for_each(|mut to| to.write(out))
    }
}

impl Destination {
    /// Buffers a row for a destination, and writes the buffer when it is full.
    fn put(&mut self, out: &mut SectionWriter, row: &[u8], room: usize) -> Result<(), StoreError> {
        if self.waiting.len() + row.len() > room {
            self.write(out)?;
        }
        if row.len() > room {
            out.put_at(self.section, self.at, row)?;
            self.at += row.len() as u64;
        } else {
            self.waiting.extend_from_slice(row);
        }
        Ok(())
    }

    fn write(&mut self, out: &mut SectionWriter) -> Result<(), StoreError> {
        out.put_at(self.section, self.at, &self.waiting)?;
        self.at += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

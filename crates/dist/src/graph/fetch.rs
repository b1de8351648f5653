//! Fetches rows by id from the ranks that own them.

use std::sync::atomic::{AtomicU64, Ordering};

use burn_gnn_graph::internal::prefetch;
use bytemuck::NoUninit;

use super::cache::FeatureCache;
use super::own_rows::{OwnRows, Source};
use super::owners::Owners;
use super::row_bytes::RowBytes;
use crate::comm::{Communicator, Failure};
use crate::error::DistError;
use crate::exchange::{Pack, Unpack, digest, round_trip};

/// Distance of the prefetch: memory of an own row is prefetched this many rows before it is copied.
const PREFETCH_DISTANCE: usize = 8;

/// The rows of one table that a rank requests. Tables are the same on all ranks, ids are not.
pub(crate) struct Wanted<'a> {
    pub(crate) owners: &'a Owners,
    pub(crate) ty: usize,
    /// Type-wise ids in range, repeats allowed.
    pub(crate) ids: &'a [u64],
    pub(crate) row_bytes: usize,
    pub(crate) own: OwnRows<'a>,
    pub(crate) cache: Option<&'a FeatureCache>,
}

impl<'a> Wanted<'a> {
    /// A request without a cache.
    ///
    /// # Errors
    /// An id is out of range.
    pub(crate) fn new(
        owners: &'a Owners,
        ty: usize,
        ids: &'a [u64],
        row_bytes: usize,
        own: OwnRows<'a>,
    ) -> Result<Self, DistError> {
        owners.check(ty, ids)?;
        Ok(Self { owners, ty, ids, row_bytes, own, cache: None })
    }
    /// A request for a table whose own rows `value` computes: a number or an array of numbers per row.
    ///
    /// # Errors
    /// An id is out of range.
    pub(crate) fn made<T: NoUninit>(
        owners: &'a Owners,
        ty: usize,
        ids: &'a [u64],
        value: impl Fn(usize) -> T + Sync + 'a,
    ) -> Result<Self, DistError> {
        let write =
            move |row: usize, out: &mut [u8]| out.copy_from_slice(bytemuck::bytes_of(&value(row)));
        Self::new(owners, ty, ids, size_of::<T>(), OwnRows::Made(Box::new(write)))
    }
    /// Prefetches the memory of an own row.
    fn prefetch_row(&self, own: Source<'_>, row: u32) {
        if let Source::Bytes(bytes) = own {
            prefetch(bytes, row as usize * self.row_bytes, self.row_bytes);
        }
    }
}

/// Number of rows that were read since the graph was opened, by their source.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    local: AtomicU64,
    cached: AtomicU64,
    remote: AtomicU64,
    bytes: AtomicU64,
}

/// Number of rows that were read through a [`DistGraph`](crate::DistGraph), by their source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows that this rank owns.
    pub local: u64,
    /// Rows of other ranks that were in a cache.
    pub cached: u64,
    /// Rows that other ranks sent; a row that occurs several times in a call is sent once.
    pub remote: u64,
    /// Bytes of the rows that other ranks sent.
    pub remote_bytes: u64,
}

impl Counters {
    pub(crate) fn read(&self) -> RowCounts {
        let of = |c: &AtomicU64| c.load(Ordering::Relaxed);
        RowCounts {
            local: of(&self.local),
            cached: of(&self.cached),
            remote: of(&self.remote),
            remote_bytes: of(&self.bytes),
        }
    }
}

/// Fetches rows of several tables, in the order of the request, as bytes per table. Collective: one exchange of ids and
/// one of rows for all tables.
///
/// Own rows are copied directly to the result. A row of another rank is requested once, even if it occurs several
/// times. `what` names the tables; ranks compare it.
pub(crate) fn fetch(
    comm: &dyn Communicator,
    name: &'static str,
    what: &str,
    wanted: Result<Vec<Wanted<'_>>, DistError>,
    counters: &Counters,
) -> Result<Vec<RowBytes>, DistError> {
    let (wanted, failed) = match wanted {
        Ok(wanted) => (wanted, None),
        Err(e) => (vec![], Some(e)),
    };
    let mut out: Vec<RowBytes> =
        wanted.iter().map(|w| RowBytes::with_room(w.ids.len(), w.row_bytes)).collect();
    let mut requested: Vec<Vec<(u64, u32)>> = Vec::with_capacity(wanted.len());
    let tag = digest(what.bytes().map(u64::from));
    let mut requests = vec![Pack::default().with(&[tag]); comm.size()];
    for (w, out) in wanted.iter().zip(&mut out) {
        let remote = w.own.with(|own| copy_available(w, own, out, counters));
        let mut rows = vec![vec![]; comm.size()];
        // Ids are sorted, so repeats are adjacent.
        for same in remote.chunk_by(|a, b| a.0 == b.0) {
            let (owner, row) = w.owners.locate(w.ty, same[0].0);
            rows[owner].push(row);
        }
        let total: usize = rows.iter().map(Vec::len).sum();
        counters.remote.fetch_add(total as u64, Ordering::Relaxed);
        counters.bytes.fetch_add((total * w.row_bytes) as u64, Ordering::Relaxed);
        requests.iter_mut().zip(&rows).for_each(|(r, rows)| r.list(rows));
        requested.push(remote);
    }
    let requests = failed.map_or(Ok(requests), Err);
    let names = [&*format!("{name}: ids"), &*format!("{name}: rows")];
    let mut answers = round_trip(comm, names, requests, |mut request| {
        if request.list_of::<u64>(1)?[0] != tag {
            let message = format!(
                "`{name}`: reads `{what}` while rank {} reads something else; all ranks must make the same calls",
                request.peer()
            );
            return Err(Failure { rank: comm.rank(), message }.into());
        }
        answer(&wanted, request)
    })?;
    for ((w, remote), out) in wanted.iter().zip(&requested).zip(&mut out) {
        for same in remote.chunk_by(|a, b| a.0 == b.0) {
            let owner = w.owners.locate(w.ty, same[0].0).0;
            let row = answers[owner].take(w.row_bytes)?;
            for &(_, i) in same {
                out[i as usize * w.row_bytes..][..w.row_bytes].copy_from_slice(row);
            }
        }
    }
    answers.iter().try_for_each(Unpack::end)?;
    Ok(out)
}

/// [`fetch`] of one table.
pub(crate) fn fetch_one(
    comm: &dyn Communicator,
    name: &'static str,
    what: &str,
    wanted: Result<Wanted<'_>, DistError>,
    counters: &Counters,
) -> Result<RowBytes, DistError> {
    let mut all = fetch(comm, name, what, wanted.map(|w| vec![w]), counters)?;
    Ok(all.swap_remove(0))
}

/// Copies own and cached rows, and leaves room for remote ones. Returns the remote rows as sorted `(id, position)`.
fn copy_available(
    w: &Wanted<'_>,
    own: Source<'_>,
    out: &mut RowBytes,
    counters: &Counters,
) -> Vec<(u64, u32)> {
    let (mut remote, mut local, mut cached) = (vec![], 0, 0);
    for (i, &id) in w.ids.iter().enumerate() {
        if let Some(row) =
            w.ids.get(i + PREFETCH_DISTANCE).and_then(|&next| w.owners.own_row(w.ty, next))
        {
            w.prefetch_row(own, row);
        }
        if let Some(row) = w.owners.own_row(w.ty, id) {
            match own {
                Source::Bytes(bytes) => {
                    out.push(&bytes[row as usize * w.row_bytes..][..w.row_bytes])
                }
                Source::Made(write) => write(row as usize, out.push_later(w.row_bytes)),
            }
            local += 1;
        } else if let Some(row) = w.cache.and_then(|c| c.get(id)) {
            out.push(row);
            cached += 1;
        } else {
            out.push_later(w.row_bytes);
            remote.push((id, i as u32));
        }
    }
    counters.local.fetch_add(local, Ordering::Relaxed);
    counters.cached.fetch_add(cached, Ordering::Relaxed);
    if let Some(cache) = w.cache {
        cache.count(cached, remote.len() as u64);
    }
    remote.sort_unstable();
    remote
}

/// Encodes the rows that a peer requests, table by table.
fn answer(wanted: &[Wanted<'_>], mut request: Unpack) -> Result<Pack, DistError> {
    let mut out = Vec::new();
    for w in wanted {
        let rows = w.owners.read_rows(w.ty, &mut request)?;
        let at = out.len();
        // One more byte for the error flag that `exchange` appends.
        out.reserve(rows.len() * w.row_bytes + 1);
        w.own.with(|own| match own {
            Source::Bytes(bytes) => {
                for (i, &row) in rows.iter().enumerate() {
                    if let Some(&next) = rows.get(i + PREFETCH_DISTANCE) {
                        w.prefetch_row(own, next);
                    }
                    out.extend_from_slice(&bytes[row as usize * w.row_bytes..][..w.row_bytes]);
                }
            }
            Source::Made(write) => {
                out.resize(at + rows.len() * w.row_bytes, 0);
                if w.row_bytes > 0 {
                    rows.iter()
                        .zip(out[at..].chunks_exact_mut(w.row_bytes))
                        .for_each(|(&row, out)| write(row as usize, out));
                }
            }
        });
    }
    Ok(Pack::bytes(out))
}

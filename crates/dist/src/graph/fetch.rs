//! Rows by id from whoever owns them.

use std::sync::atomic::{AtomicU64, Ordering};

use super::cache::HotRows;
use super::owners::Owners;
use crate::exchange::{Pack, Unpack, digest, exchange};
use crate::{Communicator, DistError, Failure};

/// Writes the bytes of an own row.
pub(crate) type ReadRow<'a> = dyn Fn(usize, &mut [u8]) + Sync + 'a;

/// Rows of one table that a rank asks for; tables are the same on all ranks, ids are not.
pub(crate) struct Wanted<'a> {
    pub(crate) owners: &'a Owners,
    pub(crate) ty: usize,
    /// Type-wise ids in range, repeats allowed.
    pub(crate) ids: &'a [u64],
    pub(crate) row_bytes: usize,
    pub(crate) read: Box<ReadRow<'a>>,
    pub(crate) cache: Option<&'a HotRows>,
}

/// Where rows came from, since the graph was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    local: AtomicU64,
    cached: AtomicU64,
    remote: AtomicU64,
    bytes: AtomicU64,
}

/// Rows read through a [`DistGraph`](crate::DistGraph) and where they came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows that this rank owns.
    pub local: u64,
    /// Rows of other ranks that a cache had.
    pub cached: u64,
    /// Rows that travelled, each asked for once per call.
    pub remote: u64,
    /// Bytes of the rows that travelled.
    pub remote_bytes: u64,
}

impl Counters {
    pub(crate) fn read(&self) -> RowCounts {
        let of = |c: &AtomicU64| c.load(Ordering::Relaxed);
        RowCounts { local: of(&self.local), cached: of(&self.cached), remote: of(&self.remote), remote_bytes: of(&self.bytes) }
    }
}

/// The rows asked for, in the order asked, as bytes per table. Collective: one exchange of ids and one of rows for all tables.
///
/// Own rows are copied straight into place; a row of another rank is asked for once, however often it occurs. `what` tells which
/// tables these are; ranks compare it.
pub(crate) fn fetch(
    comm: &dyn Communicator,
    name: &'static str,
    what: &str,
    wanted: Result<Vec<Wanted<'_>>, DistError>,
    counters: &Counters,
) -> Result<Vec<Vec<u8>>, DistError> {
    let (wanted, failed) = match wanted {
        Ok(wanted) => (wanted, None),
        Err(e) => (vec![], Some(e)),
    };
    let mut out: Vec<Vec<u8>> = wanted.iter().map(|w| vec![0; w.ids.len() * w.row_bytes]).collect();
    let mut asked: Vec<Vec<(u64, u32)>> = Vec::with_capacity(wanted.len());
    let tag = digest(what.bytes().map(u64::from));
    let mut requests: Vec<Pack> = (0..comm.size()).map(|_| Pack::default()).collect();
    requests.iter_mut().for_each(|r| r.list(&[tag]));
    for (w, out) in wanted.iter().zip(&mut out) {
        let abroad = near(w, out, counters);
        let mut rows = vec![vec![]; comm.size()];
        // Ascending ids are grouped by owner, and repeats lie side by side.
        for same in abroad.chunk_by(|a, b| a.0 == b.0) {
            let (owner, row) = w.owners.locate(w.ty, same[0].0);
            rows[owner].push(row);
        }
        let total: usize = rows.iter().map(Vec::len).sum();
        counters.remote.fetch_add(total as u64, Ordering::Relaxed);
        counters.bytes.fetch_add((total * w.row_bytes) as u64, Ordering::Relaxed);
        requests.iter_mut().zip(&rows).for_each(|(r, rows)| r.list(rows));
        asked.push(abroad);
    }
    let requests = failed.map_or_else(|| Ok(requests.into_iter().map(Pack::into_bytes).collect()), Err);
    let requests = exchange(comm, &format!("{name}: ids"), requests)?;
    let answers = requests.iter().enumerate().map(|(p, r)| {
        let mut request = Unpack::new(r, p, comm.rank());
        if request.list_of::<u64>(1)?[0] != tag {
            let message = format!("`{name}`: reads `{what}` while rank {p} reads something else; all ranks must make the same calls");
            return Err(Failure { rank: comm.rank(), message }.into());
        }
        answer(&wanted, request)
    });
    let answers = answers.collect();
    let answers = exchange(comm, &format!("{name}: rows"), answers)?;
    let mut readers: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
    for ((w, abroad), out) in wanted.iter().zip(&asked).zip(&mut out) {
        for same in abroad.chunk_by(|a, b| a.0 == b.0) {
            let owner = w.owners.locate(w.ty, same[0].0).0;
            let short = || Unpack::new(&[], owner, comm.rank()).broken();
            let (row, rest) = readers[owner].split_at_checked(w.row_bytes).ok_or_else(short)?;
            readers[owner] = rest;
            for &(_, i) in same {
                out[i as usize * w.row_bytes..][..w.row_bytes].copy_from_slice(row);
            }
        }
    }
    if let Some(p) = readers.iter().position(|r| !r.is_empty()) {
        return Err(Unpack::new(&[], p, comm.rank()).broken().into());
    }
    Ok(out)
}

/// Fills in what this rank has; the others are `(id, position)`, ascending.
fn near(w: &Wanted<'_>, out: &mut [u8], counters: &Counters) -> Vec<(u64, u32)> {
    let (mut abroad, mut local, mut cached) = (vec![], 0, 0);
    for (i, &id) in w.ids.iter().enumerate() {
        let place = i * w.row_bytes..(i + 1) * w.row_bytes;
        if let Some(row) = w.owners.own_row(w.ty, id) {
            (w.read)(row as usize, &mut out[place]);
            local += 1;
        } else if let Some(row) = w.cache.and_then(|c| c.get(id)) {
            out[place].copy_from_slice(row);
            cached += 1;
        } else {
            abroad.push((id, i as u32));
        }
    }
    counters.local.fetch_add(local, Ordering::Relaxed);
    counters.cached.fetch_add(cached, Ordering::Relaxed);
    if let Some(cache) = w.cache {
        cache.count(cached, abroad.len() as u64);
    }
    abroad.sort_unstable();
    abroad
}

/// Rows that a peer asked for, table by table.
fn answer(wanted: &[Wanted<'_>], mut request: Unpack<'_>) -> Result<Vec<u8>, DistError> {
    let mut out = Vec::new();
    for w in wanted {
        let rows = request.list::<u32>()?;
        let count = w.owners.count(w.ty);
        if rows.iter().any(|&r| r as usize >= count) {
            return Err(request.broken().into());
        }
        let at = out.len();
        // One byte more for the flag of the exchange.
        out.reserve(rows.len() * w.row_bytes + 1);
        out.resize(at + rows.len() * w.row_bytes, 0);
        if w.row_bytes > 0 {
            rows.iter().zip(out[at..].chunks_exact_mut(w.row_bytes)).for_each(|(&r, out)| (w.read)(r as usize, out));
        }
    }
    Ok(out)
}

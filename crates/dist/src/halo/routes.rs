//! Routes of halo rows: which rows each rank sends to each other rank.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use burn_gnn_graph::of_ntype;

use crate::comm::{Communicator, Failure};

/// Rows of one node type that a rank sends and receives in a halo exchange.
#[derive(Clone, Debug, Default)]
pub struct TypeHalo {
    /// Number of rows that this rank owns.
    pub num_inner: usize,
    /// Own rows to send to each rank, in the order that the receiver expects. A row may be sent to several ranks.
    pub send: Vec<Vec<u32>>,
    /// Number of rows to receive from each rank. Halo rows are ordered by rank.
    pub recv: Vec<usize>,
}

/// Routes of one node type in a [`HaloPlan`].
#[derive(Clone, Debug)]
pub(crate) struct TypePlan {
    pub(crate) num_inner: usize,
    pub(crate) num_halo: usize,
    /// Own rows to send, ordered by receiver.
    pub(crate) send_ids: Arc<[u32]>,
    pub(crate) send: Vec<usize>,
    pub(crate) recv: Vec<usize>,
    /// Whether any rank has a halo of this type; the same on every rank.
    pub(crate) travels: bool,
}

impl TypePlan {
    /// Range of the halo rows of each owner rank.
    pub(crate) fn halo_rows(&self) -> impl Iterator<Item = Range<usize>> {
        runs(self.num_inner, &self.recv)
    }
    /// Own rows to send, by receiver.
    pub(crate) fn rows_to_send(&self) -> impl Iterator<Item = &[u32]> {
        runs(0, &self.send).map(|run| &self.send_ids[run])
    }
}

/// Consecutive ranges of these lengths.
fn runs(start: usize, lens: &[usize]) -> impl Iterator<Item = Range<usize>> {
    lens.iter().scan(start, |at, &len| {
        let from = std::mem::replace(at, *at + len);
        Some(from..*at)
    })
}

/// The routes of halo rows for all node types, on which all ranks have agreed.
#[derive(Debug)]
pub struct HaloPlan {
    pub(crate) comm: Arc<dyn Communicator>,
    pub(crate) types: Vec<TypePlan>,
    /// Number of exchanges so far, which distinguishes exchanges of the same name.
    pub(crate) calls: AtomicU64,
}

impl HaloPlan {
    /// Compares the rows that this rank sends and receives with those of all other ranks. Collective.
    ///
    /// # Errors
    /// A row to send is out of range; lists do not have one entry per rank; the number of rows of a sender and its
    /// receiver differ.
    pub fn new(comm: Arc<dyn Communicator>, types: Vec<TypeHalo>) -> Result<Arc<Self>, Failure> {
        let (rank, size) = (comm.rank(), comm.size());
        let fail = |message: String| Err(Failure { rank, message });
        for (t, h) in types.iter().enumerate() {
            if h.send.len() != size || h.recv.len() != size {
                let (s, r) = (h.send.len(), h.recv.len());
                return fail(format!(
                    "halo of node type {t}: expected {size} entries in `send` and `recv`, got {s} and {r}"
                ));
            }
            if let Some(bad) = h.send.iter().flatten().find(|&&i| i as usize >= h.num_inner) {
                return fail(format!(
                    "halo of node type {t}: rows to send must lie in 0..{}, got {bad}",
                    h.num_inner
                ));
            }
        }
        // All ranks gather all tables: the number of rows of type `t` that rank `r` expects from rank `p`.
        let wanted: Vec<u64> =
            types.iter().flat_map(|h| h.recv.iter().map(|&n| n as u64)).collect();
        let tables = comm.all_gather("halo plan", bytemuck::cast_slice(&wanted).to_vec())?;
        let tables: Vec<Vec<u64>> =
            tables.iter().map(|b| bytemuck::pod_collect_to_vec(&b[..b.len() / 8 * 8])).collect();
        if let Some(p) = tables.iter().position(|t| t.len() != wanted.len()) {
            return fail(format!("has {} node types, rank {p} has another number", types.len()));
        }
        let mut plans = Vec::with_capacity(types.len());
        for (t, h) in types.into_iter().enumerate() {
            for (p, (rows, table)) in h.send.iter().zip(&tables).enumerate() {
                let (ours, theirs) = (rows.len() as u64, table[t * size + rank]);
                if ours != theirs {
                    return fail(format!(
                        "halo of node type {t}: {ours} rows go to rank {p}, which expects {theirs}"
                    ));
                }
            }
            plans.push(TypePlan {
                num_inner: h.num_inner,
                num_halo: h.recv.iter().sum(),
                send: h.send.iter().map(Vec::len).collect(),
                send_ids: h.send.concat().into(),
                recv: h.recv,
                travels: tables
                    .iter()
                    .any(|table| table[t * size..(t + 1) * size].iter().any(|&n| n > 0)),
            });
        }
        Ok(Arc::new(Self { comm, types: plans, calls: AtomicU64::new(0) }))
    }

    /// Number of node types.
    pub fn num_types(&self) -> usize {
        self.types.len()
    }
    /// Number of rows of a node type that this rank owns.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn num_inner(&self, ntype: usize) -> usize {
        of_ntype(&self.types, ntype).num_inner
    }
    /// Number of halo rows of a node type.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub(crate) fn num_halo(&self, ntype: usize) -> usize {
        of_ntype(&self.types, ntype).num_halo
    }
}

//! Validates a part that was read from a file.

use std::path::Path;

use burn_gnn_graph::{GraphError, HomoId, TypedId};

use super::partition::Partition;
use crate::error::DistError;
use crate::partition_book::Numbering;

/// Returns an error if a part has more local nodes or edges than `u32` can number.
pub(crate) fn check_size(part: usize, nodes: usize, edges: usize) -> Result<(), GraphError> {
    let (relation, limit) = (format!("part {part}"), u64::from(u32::MAX) - 1);
    let counts = [("nodes", nodes as u64), ("edges", edges as u64)];
    match counts.into_iter().find(|&(_, count)| count > limit) {
        None => Ok(()),
        Some((what, count)) => Err(GraphError::TooLarge { relation, what, count, limit }),
    }
}

impl Partition {
    /// Compares the content of a file with the partition book; `path` names the file in errors. Original edge ids are
    /// below the number of edges, unless `edge_ids_have_gaps`.
    pub(crate) fn check(&self, path: &Path, edge_ids_have_gaps: bool) -> Result<(), DistError> {
        let (nodes, edges) = (&self.book.nodes, &self.book.edges);
        self.check_ids(path, "NID", &self.nid, self.num_inner_nodes, nodes, true)?;
        self.check_ids(path, "EID", &self.eid, self.num_inner_edges, edges, false)?;
        self.check_edges(path)?;
        let node_count = |t| nodes.count(t);
        let edge_bound = |t| if edge_ids_have_gaps { Ok(u64::MAX) } else { edges.count(t) };
        let (n, e) = (self.num_inner_nodes, self.num_inner_edges);
        check_originals(path, "orig_nid", (&self.nid, &self.orig_nid, n), nodes, node_count)?;
        check_originals(path, "orig_eid", (&self.eid, &self.orig_eid, e), edges, edge_bound)
    }

    /// Checks that the inner ids are those that the part owns, and that the remaining ids belong to other parts and
    /// increase (with `by_owner`: inside each owner).
    fn check_ids(
        &self,
        path: &Path,
        what: &str,
        ids: &[u64],
        inner: usize,
        of: &Numbering,
        by_owner: bool,
    ) -> Result<(), DistError> {
        let bad = |message: String| Err(DistError::format(path, message));
        let total = of.total();
        if let Some(p) = ids.iter().position(|&i| i >= total) {
            return bad(format!("`{what}`, position {p}: must lie in 0..{total}, got {}", ids[p]));
        }
        let (head, tail) = ids.split_at(inner);
        let own = of.part_total(self.part);
        if head.len() as u64 != own || !of.global_ids(self.part).eq(head.iter().copied()) {
            let n = head.len();
            return bad(format!(
                "`{what}`: the first {n} entries are inner and must be the {own} ids of part {}",
                self.part
            ));
        }
        let mut before = None;
        for (i, &id) in tail.iter().enumerate() {
            let (owner, _) = of.locate(HomoId(id))?;
            let key = Some((if by_owner { owner } else { 0 }, id));
            if owner == self.part || before >= key {
                let p = inner + i;
                return bad(format!(
                    "`{what}`, position {p}: entries after the inner ones must increase and belong to other parts, got {id}"
                ));
            }
            before = key;
        }
        Ok(())
    }

    fn check_edges(&self, path: &Path) -> Result<(), DistError> {
        let bad = |message: String| Err(DistError::format(path, message));
        let schema = self.book.schema();
        let types = self
            .nid
            .iter()
            .map(|&i| Ok(self.book.global_to_node(HomoId(i))?.ty))
            .collect::<Result<Vec<_>, DistError>>()?;
        for (j, (&u, &v)) in self.src.iter().zip(&self.dst).enumerate() {
            let n = self.nid.len();
            let (Some(&s), Some(&d)) = (types.get(u as usize), types.get(v as usize)) else {
                return bad(format!(
                    "edge {j}: `src` and `dst` must lie in 0..{n}, got {u} and {v}"
                ));
            };
            let TypedId { ty, .. } = self.book.global_to_edge(HomoId(self.eid[j]))?;
            if schema.endpoints(ty) != (s, d) {
                let name = &schema.etypes()[ty];
                return bad(format!(
                    "edge {j} of type `{name}` joins `{}` and `{}`",
                    schema.ntypes()[s],
                    schema.ntypes()[d]
                ));
            }
            if (j < self.num_inner_edges) != ((v as usize) < self.num_inner_nodes) {
                return bad(format!(
                    "edge {j}: inner edges, and only they, end in inner nodes; `dst` is {v}"
                ));
            }
        }
        Ok(())
    }
}

fn check_originals(
    path: &Path,
    what: &str,
    (ids, orig, inner): (&[u64], &[u64], usize),
    of: &Numbering,
    bound: impl Fn(usize) -> Result<u64, DistError>,
) -> Result<(), DistError> {
    let bad = |message: String| Err(DistError::format(path, message));
    let mut before: Option<(usize, u64)> = None;
    for (i, (&global, &old)) in ids.iter().zip(orig).enumerate() {
        let TypedId { ty, id } = of.locate(HomoId(global))?.1;
        let bound = bound(ty)?;
        if old >= bound {
            return bad(format!("`{what}`, position {i}: must lie in 0..{bound}, got {old}"));
        }
        if of.is_kept() && old != id {
            return bad(format!(
                "`{what}`, position {i}: ids were kept, so it must be {id}, got {old}"
            ));
        }
        if let Some((_, last)) = before.filter(|b| i < inner && b.0 == ty && b.1 >= old) {
            return bad(format!(
                "`{what}`, position {i}: inner entries of a type must increase, got {old} after {last}"
            ));
        }
        before = Some((ty, old));
    }
    Ok(())
}

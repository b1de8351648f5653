//! Compares parts with the graph that they were cut from.

use burn_gnn_structure::EdgeReader;

use super::assign::rows_of;
use super::{NONE, StoredPart, StoredParts};
use crate::StoredCsc;
use crate::error::{StoreError, format};

impl StoredParts {
    /// Compares the parts with the graph that they were cut from: every node is inner in one part, with all of its
    /// in-edges in their order, their ids, weights and times; halo nodes are where these come from, and no others,
    /// with the parts that they are inner in. Compares all checksums as well.
    ///
    /// # Errors
    /// [`StoreError::Data`] that says what is wrong where; [`StoreError::Damaged`].
    ///
    /// # Cost
    /// A pass over the graph and over the parts; memory for one part's nodes and 4 bytes per node.
    pub fn verify(&self, whole: &StoredCsc) -> Result<(), StoreError> {
        let n = whole.num_nodes().1;
        let mut part_of = vec![NONE; n];
        for p in 0..self.parts() {
            let part = self.part(p)?;
            for &v in part.inner() {
                let wrong = |why: String| format(&part.of.path, why);
                let Some(owner) = part_of.get_mut(v as usize) else {
                    return Err(wrong(format!("expected nodes in 0..{n}, found {v}")));
                };
                if *owner != NONE {
                    return Err(wrong(format!(
                        "node {v}: expected in one part, found in {owner} and {p}"
                    )));
                }
                *owner = p as u32;
            }
        }
        if let Some(v) = part_of.iter().position(|&p| p == NONE) {
            return Err(format(
                &self.dir,
                format!("node {v}: expected in one part, found in none"),
            ));
        }
        let mut edges = 0u64;
        for p in 0..self.parts() {
            edges += verify_part(&self.part(p)?, whole, &part_of)?;
        }
        if edges != whole.num_edges() {
            return Err(format(
                &self.dir,
                format!("expected {} edges in the parts, found {edges}", whole.num_edges()),
            ));
        }
        Ok(())
    }
}

/// Ids, weights and times of the edges at some positions; empty where edges have none. Weights as bits.
type More = (Vec<u64>, Vec<u32>, Vec<i64>);

fn more(csc: &StoredCsc, row: std::ops::Range<u64>) -> Result<More, StoreError> {
    let (mut ids, mut weights, mut times) = (vec![], vec![], vec![]);
    csc.edge_ids_of(row.clone(), &mut ids)?;
    csc.weights_of(row.clone(), &mut weights)?;
    csc.times_of(row, &mut times)?;
    Ok((ids, weights.into_iter().map(f32::to_bits).collect(), times))
}

/// Compares one part; its edges.
fn verify_part(part: &StoredPart, whole: &StoredCsc, part_of: &[u32]) -> Result<u64, StoreError> {
    let (csc, inner, halo, nodes) = (part.csc(), part.inner(), part.halo(), part.nodes());
    let wrong = |why: String| format(csc.path(), why);
    csc.verify()?;
    let facts = |of: &StoredCsc| (of.has_edge_ids(), of.has_weights(), of.has_times());
    let plain = facts(whole) == (false, false, false);
    if facts(csc) != facts(whole) {
        let (expected, found) = (facts(whole), facts(csc));
        return Err(wrong(format!(
            "expected (edge ids, weights, times) as in the graph, {expected:?}, found {found:?}"
        )));
    }
    for (&u, &owner) in halo.iter().zip(part.owners()) {
        let expected = part_of.get(u as usize).copied().unwrap_or(NONE);
        if expected != owner || expected as usize == part.number().0 {
            return Err(wrong(format!(
                "halo node {u}: expected in part {expected}, found {owner}"
            )));
        }
    }
    let (mut used, mut edges, mut row_of) = (vec![false; halo.len()], 0, vec![]);
    rows_of(csc, 0..inner.len() as u32, &mut |local, from, row| {
        let (v, (start, len)) = (inner[local as usize], whole.row(inner[local as usize])?);
        row_of.clear();
        whole.sources_of(start..start + u64::from(len), &mut row_of)?;
        let range = from..from + row.len() as u64;
        let same = part.whole_row(local)? == (start, len)
            && row.iter().map(|&u| nodes.get(u as usize)).eq(row_of.iter().map(Some))
            && (plain || more(csc, range)? == more(whole, start..start + u64::from(len))?);
        if !same {
            return Err(wrong(format!(
                "node {v}: expected the in-edges of the graph, found others"
            )));
        }
        row.iter()
            .filter(|&&u| u as usize >= inner.len())
            .for_each(|&u| used[u as usize - inner.len()] = true);
        edges += row.len() as u64;
        Ok(())
    })?;
    match used.iter().position(|u| !u) {
        Some(at) => {
            Err(wrong(format!("halo node {}: expected an edge from it, found none", halo[at])))
        }
        None => Ok(edges),
    }
}

//! Verifies parts against the whole graph.

use burn_gnn_structure::{EdgeReader, Schema};

use super::files::NONE;
use super::relation_files::{GraphFiles, RelationFiles};
use super::row_stream::rows_of;
use super::stored_part::StoredPart;
use super::stored_parts::StoredParts;
use crate::csc::StoredCsc;
use crate::error::{StoreError, format};

impl StoredParts {
    /// Verifies the parts against the whole graph, and all checksums:
    ///
    /// * Every node is inner in exactly one part, which has all its in-edges in order, with their ids, weights and
    ///   times.
    /// * The halo nodes of a part are exactly the sources of its edges that are not inner, with the right owners.
    ///
    /// # Errors
    /// [`StoreError::Data`] with the file and the first difference; [`StoreError::Damaged`].
    ///
    /// # Cost
    /// One pass over the graph and over the parts. Memory: the nodes of one part, and 4 bytes per node of the graph.
    pub fn verify(&self, graph: &(impl GraphFiles + ?Sized)) -> Result<(), StoreError> {
        let whole = graph.relations()?;
        let part_of = self.owners(&whole)?;
        let mut edges = 0u64;
        for p in 0..self.parts() {
            edges += verify_part(&self.part(p)?, &whole, &part_of)?;
        }
        if edges != whole.num_edges() {
            return Err(format(
                &self.dir,
                format!("expected {} edges in the parts, found {edges}", whole.num_edges()),
            ));
        }
        Ok(())
    }

    /// The owner part of every node, by type.
    fn owners(&self, whole: &RelationFiles<'_>) -> Result<Vec<Vec<u32>>, StoreError> {
        let names = whole.schema.ntypes();
        let mut part_of: Vec<Vec<u32>> = whole.counts.iter().map(|&n| vec![NONE; n]).collect();
        let mut fingerprint = None;
        for p in 0..self.parts() {
            let part = self.part(p)?;
            let wrong = |why: String| format(part.path(), why);
            if part.schema() != &whole.schema {
                let (expected, found) = (described(&whole.schema), described(part.schema()));
                return Err(wrong(format!("expected {expected}, found {found}")));
            }
            let (parts, first) = (part.number().1, part.fingerprint());
            if parts != self.parts() || *fingerprint.get_or_insert(first) != first {
                return Err(wrong(format!(
                    "expected one of {} parts of one partitioning, found one of {parts} parts, or of another partitioning; write the parts again",
                    self.parts()
                )));
            }
            for (t, part_of) in part_of.iter_mut().enumerate() {
                let (name, n) = (&names[t], part_of.len());
                if part.total_nodes(t) != n {
                    let found = part.total_nodes(t);
                    return Err(wrong(format!("`{name}`: expected {n} nodes, found {found}")));
                }
                for &v in part.inner(t) {
                    let Some(owner) = part_of.get_mut(v as usize) else {
                        return Err(wrong(format!(
                            "`{name}`: expected nodes in 0..{n}, found {v}"
                        )));
                    };
                    if *owner != NONE {
                        return Err(wrong(format!(
                            "`{name}`, node {v}: expected in one part, found in {owner} and {p}"
                        )));
                    }
                    *owner = p as u32;
                }
            }
        }
        for (name, part_of) in names.iter().zip(&part_of) {
            if let Some(v) = part_of.iter().position(|&p| p == NONE) {
                let why = format!("`{name}`, node {v}: expected in one part, found in none");
                return Err(format(&self.dir, why));
            }
        }
        Ok(part_of)
    }
}

fn described(schema: &Schema) -> String {
    let edges: Vec<String> = schema.etypes().iter().map(ToString::to_string).collect();
    format!("node types {} with edges {}", schema.ntypes().join(", "), edges.join(", "))
}

/// Ids, weights (as bits) and times of edges; empty if edges have none.
type EdgeColumns = (Vec<u64>, Vec<u32>, Vec<i64>);

fn edge_columns(csc: &StoredCsc, row: std::ops::Range<u64>) -> Result<EdgeColumns, StoreError> {
    let (mut ids, mut weights, mut times) = (vec![], vec![], vec![]);
    csc.edge_ids_of(row.clone(), &mut ids)?;
    csc.weights_of(row.clone(), &mut weights)?;
    csc.times_of(row, &mut times)?;
    Ok((ids, weights.into_iter().map(f32::to_bits).collect(), times))
}

/// Verifies one part, and returns its number of edges.
fn verify_part(
    part: &StoredPart,
    whole: &RelationFiles<'_>,
    part_of: &[Vec<u32>],
) -> Result<u64, StoreError> {
    let wrong = |why: String| format(part.path(), why);
    let (schema, number) = (part.schema(), part.number().0);
    let mut used: Vec<Vec<bool>> = vec![];
    for (t, part_of) in part_of.iter().enumerate() {
        for (&u, &owner) in part.halo(t).iter().zip(part.owners(t)) {
            let expected = part_of.get(u as usize).copied().unwrap_or(NONE);
            if expected != owner || expected as usize == number {
                let name = &schema.ntypes()[t];
                return Err(wrong(format!(
                    "`{name}`, halo node {u}: expected in part {expected}, found {owner}"
                )));
            }
        }
        used.push(vec![false; part.halo(t).len()]);
    }
    let mut edges = 0;
    for (e, csc) in whole.files.iter().enumerate() {
        edges += verify_relation(part, e, csc, &mut used[schema.endpoints(e).0])?;
    }
    for (t, used) in used.iter().enumerate() {
        if let Some(at) = used.iter().position(|u| !u) {
            let (name, u) = (&schema.ntypes()[t], part.halo(t)[at]);
            return Err(wrong(format!(
                "`{name}`, halo node {u}: expected an edge from it, found none"
            )));
        }
    }
    Ok(edges)
}

/// Verifies the edges of one type, marks the halo nodes that are sources, and returns the number of edges.
fn verify_relation(
    part: &StoredPart,
    e: usize,
    whole: &StoredCsc,
    used: &mut [bool],
) -> Result<u64, StoreError> {
    let (csc, (s, d)) = (part.csc(e), part.schema().endpoints(e));
    let (inner, sources, num_inner) = (part.inner(d), part.nodes(s), part.inner(s).len());
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
    let (mut edges, mut row_of) = (0, vec![]);
    rows_of(csc, 0..inner.len() as u32, &mut |local, from, row| {
        let (v, (start, len)) = (inner[local as usize], whole.row(inner[local as usize])?);
        row_of.clear();
        whole.sources_of(start..start + u64::from(len), &mut row_of)?;
        let range = from..from + row.len() as u64;
        let same = part.whole_row(e, local)? == (start, len)
            && row.iter().map(|&u| sources.get(u as usize)).eq(row_of.iter().map(Some))
            && (plain
                || edge_columns(csc, range)?
                    == edge_columns(whole, start..start + u64::from(len))?);
        if !same {
            return Err(wrong(format!(
                "node {v}: expected the in-edges of the graph, found others"
            )));
        }
        row.iter()
            .filter(|&&u| u as usize >= num_inner)
            .for_each(|&u| used[u as usize - num_inner] = true);
        edges += row.len() as u64;
        Ok(())
    })?;
    Ok(edges)
}

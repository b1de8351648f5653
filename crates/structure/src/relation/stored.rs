//! Keeps the edges of a relation in a file until all of them are needed.

use std::fmt::Debug;
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use super::checks::{check_counts, check_limit, check_nodes};
use super::{Coo, Edges, Endpoints, Kept, Relation, UNNAMED};
use crate::GraphError;
use crate::memory::room;
use crate::or_panic::OrPanic;

/// Rows that are read at a time where all edges are.
const ROWS: usize = 1 << 16;

/// In-edges that lie outside of memory, by destination: what a sampler asks a file.
///
/// A row is the in-edges of one destination in ascending original edge id, at consecutive positions; rows stand in the
/// order of destinations. Positions are `u64`, so one relation may have more edges than `u32` numbers.
///
/// A reader checks what it hands out: rows inside of [`num_edges`](Self::num_edges), sources below
/// [`num_src`](Self::num_src). What it finds wrong (a damaged block, a file that cannot be read) is a
/// [`GraphError::Source`].
pub trait EdgeReader: Debug + Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Number of source nodes.
    fn num_src(&self) -> usize;
    /// Number of destination nodes.
    fn num_dst(&self) -> usize;
    /// Number of edges.
    fn num_edges(&self) -> u64;
    /// Appends the first position and the number of edges of each destination, which are in range.
    ///
    /// # Errors
    /// What keeps the reader from reading.
    fn rows(&self, nodes: &[u32], out: &mut Vec<(u64, u32)>) -> Result<(), GraphError>;
    /// Writes the source at each position, which are in range, to `out` of the same length.
    ///
    /// # Errors
    /// What keeps the reader from reading.
    fn sources(&self, positions: &[u64], out: &mut [u32]) -> Result<(), GraphError>;
    /// Appends the sources at consecutive positions.
    ///
    /// # Errors
    /// What keeps the reader from reading.
    fn sources_of(&self, positions: Range<u64>, out: &mut Vec<u32>) -> Result<(), GraphError>;
    /// Whether original edge ids are other numbers than positions.
    fn has_edge_ids(&self) -> bool {
        false
    }
    /// Writes the original id of the edge at each position, which are in range, to `out` of the same length: the
    /// positions themselves where there are no others.
    ///
    /// # Errors
    /// What keeps the reader from reading.
    fn edge_ids(&self, positions: &[u64], out: &mut [u64]) -> Result<(), GraphError> {
        out.copy_from_slice(positions);
        Ok(())
    }
    /// Appends the weights of the edges at consecutive positions; `false` where edges have none.
    ///
    /// # Errors
    /// What keeps the reader from reading.
    fn weights_of(&self, positions: Range<u64>, out: &mut Vec<f32>) -> Result<bool, GraphError> {
        let _ = (positions, out);
        Ok(false)
    }
}

impl Relation {
    /// Edges that stay where `reader` finds them. Samplers read the rows that they draw from; whatever needs all edges
    /// ([`src`](Self::src), [`csc`](Self::csc), an operator on the whole graph) reads them into memory on first use, 8
    /// bytes per edge and as much for each layout, which [`clear_derived`](Self::clear_derived) frees.
    ///
    /// Equal to the relation of the same edges in memory: the same rows in the same order, so the same draws.
    ///
    /// # Errors
    /// More than `u32::MAX - 1` nodes.
    ///
    /// # Panics
    /// Later, where all edges are needed and there are more than [`LIMIT`](Self::LIMIT), memory does not hold them, or
    /// the reader fails; [`read_stored`](Self::read_stored) gives the error instead.
    pub fn from_stored_csc(reader: Arc<dyn EdgeReader>) -> Result<Self, GraphError> {
        check_counts(reader.num_src(), reader.num_dst(), 0)?;
        let edges = Edges {
            num_src: reader.num_src(),
            num_dst: reader.num_dst(),
            endpoints: Endpoints::Stored(reader),
        };
        Ok(Self { edges: Arc::new(edges), kept: Arc::new(Kept::default()), reversed: false })
    }

    /// Who reads the edges, where they are not in memory. `None` for the reverse of such a relation: its rows are those
    /// of sources.
    pub fn stored(&self) -> Option<&Arc<dyn EdgeReader>> {
        match &self.edges.endpoints {
            Endpoints::Stored(reader) if !self.reversed => Some(reader),
            _ => None,
        }
    }

    /// Reads all edges of a [stored](Self::from_stored_csc) relation into memory, unless they are there.
    ///
    /// # Errors
    /// [`GraphError::TooLarge`] for more than [`LIMIT`](Self::LIMIT) edges; [`GraphError::OutOfMemory`]; what the
    /// reader meets.
    ///
    /// # Cost
    /// One pass over the file, 8 bytes per edge.
    pub fn read_stored(&self) -> Result<(), GraphError> {
        match &self.edges.endpoints {
            Endpoints::Given(_) => Ok(()),
            Endpoints::Stored(reader) => {
                self.kept.coo.try_get_or_compute(|| read(&**reader)).map(|_| ())
            }
        }
    }

    pub(super) fn coo(&self, reader: &dyn EdgeReader) -> &Coo {
        let coo = self.kept.coo.try_get_or_compute(|| read(reader));
        coo.map_err(|e| format!("edges of a stored relation: {e}")).or_panic()
    }
}

/// All edges of a reader in edge-id order.
fn read(reader: &dyn EdgeReader) -> Result<Coo, GraphError> {
    let (count, rows) = (reader.num_edges(), reader.num_dst());
    check_limit("edges in memory", count)?;
    let list = |what: &str| {
        room(
            u128::from(count),
            || format!("the {what} of {count} edges"),
            "sample the relation instead",
        )
    };
    let (mut src, mut dst) = (list("sources")?, list("destinations")?);
    let (mut found, mut next) = (vec![], 0u64);
    for from in (0..rows).step_by(ROWS) {
        let nodes: Vec<u32> = (from..(from + ROWS).min(rows)).map(|v| v as u32).collect();
        found.clear();
        reader.rows(&nodes, &mut found)?;
        for (&v, &(start, len)) in nodes.iter().zip(&found) {
            if start != next {
                return Err(layout(format!(
                    "row {v} at position {start} after one that ends at {next}"
                )));
            }
            dst.resize(dst.len() + len as usize, v);
            next += u64::from(len);
        }
        reader.sources_of(found[0].0..next, &mut src)?;
    }
    if (next, src.len() as u64) != (count, count) {
        return Err(layout(format!(
            "{next} edges in rows and {} sources where {count} are said",
            src.len()
        )));
    }
    check_nodes("src", &src, reader.num_src())?;
    if reader.has_edge_ids() {
        (src, dst) = by_edge_id(reader, &src, &dst)?;
    }
    Ok(Coo { src: src.into(), dst: dst.into() })
}

fn layout(found: String) -> GraphError {
    GraphError::Layout { relation: UNNAMED.into(), layout: "csc", found }
}

/// Endpoints of edges in the order of their ids.
fn by_edge_id(
    reader: &dyn EdgeReader,
    src: &[u32],
    dst: &[u32],
) -> Result<(Vec<u32>, Vec<u32>), GraphError> {
    let mut endpoints = (vec![u32::MAX; src.len()], vec![0u32; src.len()]);
    let (mut positions, mut ids) = (vec![], vec![]);
    for from in (0..src.len()).step_by(ROWS) {
        let to = (from + ROWS).min(src.len());
        positions.clear();
        positions.extend(from as u64..to as u64);
        ids.resize(positions.len(), 0);
        reader.edge_ids(&positions, &mut ids)?;
        for (p, &id) in (from..to).zip(&ids) {
            match endpoints.0.get_mut(id as usize) {
                Some(end) if *end == u32::MAX => {
                    (*end, endpoints.1[id as usize]) = (src[p], dst[p])
                }
                found => {
                    let (position, bound, value, repeated) = (p, src.len(), id, found.is_some());
                    return Err(GraphError::EdgeIds {
                        relation: UNNAMED.into(),
                        position,
                        bound,
                        value,
                        repeated,
                    });
                }
            }
        }
    }
    Ok(endpoints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;
    use crate::relation::LIMIT;

    /// A relation in memory, read as if it were in a file.
    #[derive(Debug)]
    struct Reader(Relation, u64);

    impl EdgeReader for Reader {
        fn num_src(&self) -> usize {
            self.0.num_src()
        }
        fn num_dst(&self) -> usize {
            self.0.num_dst()
        }
        fn num_edges(&self) -> u64 {
            self.1
        }
        fn rows(&self, nodes: &[u32], out: &mut Vec<(u64, u32)>) -> Result<(), GraphError> {
            out.extend(
                nodes
                    .iter()
                    .map(|&v| self.0.csc().row(v as usize))
                    .map(|r| (r.start as u64, r.len() as u32)),
            );
            Ok(())
        }
        fn sources(&self, positions: &[u64], out: &mut [u32]) -> Result<(), GraphError> {
            out.iter_mut()
                .zip(positions)
                .for_each(|(u, &p)| *u = self.0.csc().indices()[p as usize]);
            Ok(())
        }
        fn sources_of(&self, positions: Range<u64>, out: &mut Vec<u32>) -> Result<(), GraphError> {
            out.extend_from_slice(
                &self.0.csc().indices()[positions.start as usize..positions.end as usize],
            );
            Ok(())
        }
        fn has_edge_ids(&self) -> bool {
            self.0.csc().edge_ids().is_some()
        }
        fn edge_ids(&self, positions: &[u64], out: &mut [u64]) -> Result<(), GraphError> {
            out.iter_mut()
                .zip(positions)
                .for_each(|(id, &p)| *id = u64::from(self.0.csc().edge_id(p as usize)));
            Ok(())
        }
    }

    fn stored(of: &Relation) -> Relation {
        Relation::from_stored_csc(Arc::new(Reader(of.clone(), of.num_edges() as u64))).unwrap()
    }

    #[test]
    fn all_edges_are_those_in_memory() {
        let edges =
            |e: u32| (0..e).map(|i| (i.wrapping_mul(7) % 9, i.wrapping_mul(5) % 11)).unzip();
        for e in [0, 1, 200] {
            let (src, dst) = edges(e);
            let memory = Relation::from_coo(9, 11, src, dst).unwrap();
            for memory in [memory.clone(), memory.sorted_by_dst()] {
                let mut r = stored(&memory);
                assert!(r.stored().is_some() && r.reverse().stored().is_none() && !r.is_mapped());
                assert_eq!(
                    r.derived_bytes(),
                    Bytes::default(),
                    "nothing is read before it is asked for"
                );
                r.read_stored().unwrap();
                assert_eq!(r.derived_bytes().host, 8 * e as usize);
                assert_eq!((&r, r.csc(), r.csr()), (&memory, memory.csc(), memory.csr()));
                assert_eq!((r.num_src(), r.reverse().src()), (9, memory.dst()));
                r.clear_derived();
                assert_eq!(r.derived_bytes(), Bytes::default());
                assert_eq!(r.reverse().csc(), memory.csr());
            }
        }
    }

    #[test]
    fn what_memory_does_not_hold_is_an_error() {
        let memory = Relation::from_coo(2, 2, vec![0, 1], vec![1, 0]).unwrap();
        let of =
            |edges| Relation::from_stored_csc(Arc::new(Reader(memory.clone(), edges))).unwrap();
        let large = of(LIMIT + 5);
        assert_eq!(large.num_edges() as u64, LIMIT + 5);
        assert!(
            matches!(large.read_stored(), Err(GraphError::TooLarge { count, .. }) if count == LIMIT + 5)
        );
        assert!(matches!(of(3).read_stored(), Err(GraphError::Layout { .. })));
        assert!(memory.read_stored().is_ok() && memory.stored().is_none());
    }
}

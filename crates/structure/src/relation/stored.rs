//! Relations whose edges are read from a file on demand.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::checks::{check_counts, check_limit, check_nodes};
use super::edge_reader::EdgeReader;
use super::edges::{Coo, Edges, Endpoints, Kept, Relation};
use crate::error::graph_error::{GraphError, UNNAMED};
use crate::error::or_panic::OrPanic;
use crate::memory::reserve::{filled, room};

/// Rows per read when all edges are read.
const ROWS: usize = 1 << 16;
/// The fix in errors for edges that do not fit in memory.
const REMEDY: &str = "sample the relation instead";

impl Relation {
    /// A relation whose edges are read through `reader`. Samplers read only the rows that they sample from. Methods
    /// that need all edges ([`src`](Self::src), [`csc`](Self::csc), operators on the whole graph) read them into memory
    /// on first use, with 8 bytes per edge and the same again for each layout; [`clear_derived`](Self::clear_derived)
    /// frees this memory.
    ///
    /// The relation equals one with the same edges in memory: rows have the same order, so samples are the same. Edges
    /// are numbered by ascending original id if the reader has edge ids, otherwise by position.
    ///
    /// # Errors
    /// There are more than `u32::MAX - 1` nodes.
    ///
    /// # Panics
    /// This function does not panic, but methods that need all edges do if there are more than [`LIMIT`](Self::LIMIT)
    /// edges, if they do not fit in memory, or if the reader fails. [`read_stored`](Self::read_stored) returns an error
    /// instead.
    pub fn from_stored_csc(reader: Arc<dyn EdgeReader>) -> Result<Self, GraphError> {
        for count in [reader.num_src(), reader.num_dst()] {
            check_limit("nodes", count as u64)?;
        }
        let edges = Edges {
            num_src: reader.num_src(),
            num_dst: reader.num_dst(),
            endpoints: Endpoints::Stored(reader),
        };
        Ok(Self { edges: Arc::new(edges), kept: Arc::new(Kept::default()), reversed: false })
    }

    /// The reader of a stored relation. `None` for relations in memory, and for the reverse of a stored relation, whose
    /// rows the reader cannot read.
    pub fn stored(&self) -> Option<&Arc<dyn EdgeReader>> {
        match &self.edges.endpoints {
            Endpoints::Stored(reader) if !self.reversed => Some(reader),
            _ => None,
        }
    }

    /// Reads all edges of a [stored](Self::from_stored_csc) relation into memory, unless they are in memory already.
    ///
    /// # Errors
    /// [`GraphError::TooLarge`] for more than [`LIMIT`](Self::LIMIT) edges; [`GraphError::OutOfMemory`]; errors of the
    /// reader.
    ///
    /// # Cost
    /// One pass over the file, 8 bytes per edge.
    pub fn read_stored(&self) -> Result<(), GraphError> {
        match &self.edges.endpoints {
            Endpoints::Given(_) => Ok(()),
            Endpoints::Stored(reader) => {
                self.kept.coo.try_get_or_compute(|| self.read(&**reader)).map(|_| ())
            }
        }
    }

    /// The original id of each edge of a [stored](Self::from_stored_csc) relation whose original ids have gaps, because
    /// edges of its stream were dropped. Original ids ascend with edge ids. `None` if every edge id is the original id.
    ///
    /// Use these ids to gather features that are stored per edge of the stream.
    ///
    /// # Errors
    /// As [`read_stored`](Self::read_stored).
    ///
    /// # Cost
    /// On first use one pass over the ids in the file and a sort. The result is cached with 8 bytes per edge, which
    /// [`clear_derived`](Self::clear_derived) frees.
    pub fn original_edge_ids(&self) -> Result<Option<&[u64]>, GraphError> {
        match &self.edges.endpoints {
            Endpoints::Stored(reader) if reader.edge_id_bound() > reader.num_edges() => {
                let ids = self.kept.original_ids.try_get_or_compute(|| ascending_ids(&**reader))?;
                Ok(Some(ids))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn coo(&self, reader: &dyn EdgeReader) -> &Coo {
        let coo = self.kept.coo.try_get_or_compute(|| self.read(reader));
        coo.map_err(|e| format!("edges of a stored relation: {e}")).or_panic()
    }

    /// All edges of a reader in edge-id order.
    fn read(&self, reader: &dyn EdgeReader) -> Result<Coo, GraphError> {
        // A file may declare any number of nodes. From here on their layouts are allocated.
        check_counts(reader.num_src(), reader.num_dst(), 0)?;
        let (src, dst) = read_rows(reader)?;
        let (src, dst) = if reader.has_edge_ids() {
            by_edge_id(reader, self.original_edge_ids()?, &src, &dst)?
        } else {
            (src, dst)
        };
        Ok(Coo { src: src.into(), dst: dst.into() })
    }
}

/// Reads the sources and destinations of all edges, by position.
fn read_rows(reader: &dyn EdgeReader) -> Result<(Vec<u32>, Vec<u32>), GraphError> {
    let (count, rows) = (reader.num_edges(), reader.num_dst());
    check_limit("edges in memory", count)?;
    let list =
        |what: &str| room(u128::from(count), || format!("the {what} of {count} edges"), REMEDY);
    let (mut src, mut dst) = (list("sources")?, list("destinations")?);
    let (mut found, mut next) = (vec![], 0u64);
    for from in (0..rows).step_by(ROWS) {
        let nodes: Vec<u32> = (from..(from + ROWS).min(rows)).map(|v| v as u32).collect();
        found.clear();
        reader.rows(&nodes, &mut found)?;
        for (&v, &(start, len)) in nodes.iter().zip(&found) {
            if start != next {
                return Err(layout(format!(
                    "row {v} at position {start} after a row that ends at {next}"
                )));
            }
            dst.resize(dst.len() + len as usize, v);
            next += u64::from(len);
        }
        reader.sources_of(found[0].0..next, &mut src)?;
    }
    if (next, src.len() as u64) != (count, count) {
        return Err(layout(format!(
            "{next} edges in rows and {} sources, but the reader declares {count} edges",
            src.len()
        )));
    }
    check_nodes("src", &src, reader.num_src())?;
    Ok((src, dst))
}

fn layout(found: String) -> GraphError {
    GraphError::Layout { relation: UNNAMED.into(), layout: "csc", found }
}

/// Reads original ids in batches, and calls `f` with the positions and the ids of each batch.
fn each_id(
    reader: &dyn EdgeReader,
    mut f: impl FnMut(Range<usize>, &[u64]) -> Result<(), GraphError>,
) -> Result<(), GraphError> {
    let (mut positions, mut ids) = (vec![], vec![]);
    let count = reader.num_edges() as usize;
    for from in (0..count).step_by(ROWS) {
        let to = (from + ROWS).min(count);
        positions.clear();
        positions.extend(from as u64..to as u64);
        ids.resize(positions.len(), 0);
        reader.edge_ids(&positions, &mut ids)?;
        f(from..to, &ids)?;
    }
    Ok(())
}

/// Original ids of all edges, ascending.
fn ascending_ids(reader: &dyn EdgeReader) -> Result<Vec<u64>, GraphError> {
    let (count, bound) = (reader.num_edges(), reader.edge_id_bound());
    check_limit("edges in memory", count)?;
    let mut all = room(u128::from(count), || format!("the ids of {count} edges"), REMEDY)?;
    each_id(reader, |_, ids| {
        all.extend_from_slice(ids);
        Ok(())
    })?;
    all.par_sort_unstable();
    match (all.last(), all.windows(2).find(|w| w[0] == w[1])) {
        (_, Some(w)) => Err(layout(format!("edge id {} a second time", w[0]))),
        (Some(&last), _) if last >= bound => {
            Err(layout(format!("edge id {last}, which is not in 0..{bound}")))
        }
        _ => Ok(all),
    }
}

/// Sorts endpoints by edge id. Original ids are a permutation of the positions or, if they have gaps, the list
/// `original`.
fn by_edge_id(
    reader: &dyn EdgeReader,
    original: Option<&[u64]>,
    src: &[u32],
    dst: &[u32],
) -> Result<(Vec<u32>, Vec<u32>), GraphError> {
    let bound = src.len();
    let ends = |what: &str| {
        filled(u32::MAX, bound as u128, || format!("the {what} of {bound} edges"), REMEDY)
    };
    let mut endpoints = (ends("sources")?, ends("destinations")?);
    each_id(reader, |positions, ids| {
        for (position, &value) in positions.zip(ids) {
            let edge = match original {
                None => usize::try_from(value).ok().filter(|&e| e < bound),
                Some(all) => all.binary_search(&value).ok(),
            };
            match edge.filter(|&e| endpoints.0[e] == u32::MAX) {
                Some(e) => (endpoints.0[e], endpoints.1[e]) = (src[position], dst[position]),
                None => {
                    let (relation, repeated) = (UNNAMED.into(), edge.is_some());
                    return Err(GraphError::EdgeIds { relation, position, bound, value, repeated });
                }
            }
        }
        Ok(())
    })?;
    Ok(endpoints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::bytes::Bytes;
    use crate::relation::checks::LIMIT;

    /// A relation in memory, read as if it were in a file.
    #[derive(Debug)]
    struct Reader(Relation, u64, fn(u64) -> u64);

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
            self.0.csc().edge_ids().is_some() || self.edge_id_bound() > self.1
        }
        fn edge_id_bound(&self) -> u64 {
            (self.2)(self.1)
        }
        fn edge_ids(&self, positions: &[u64], out: &mut [u64]) -> Result<(), GraphError> {
            out.iter_mut()
                .zip(positions)
                .for_each(|(id, &p)| *id = (self.2)(u64::from(self.0.csc().edge_id(p as usize))));
            Ok(())
        }
    }

    fn stored(of: &Relation) -> Relation {
        with_ids(of, |id| id)
    }

    /// A stored relation whose original ids are `original` of the edge ids in memory.
    fn with_ids(of: &Relation, original: fn(u64) -> u64) -> Relation {
        let reader = Reader(of.clone(), of.num_edges() as u64, original);
        Relation::from_stored_csc(Arc::new(reader)).unwrap()
    }

    #[test]
    fn stored_relation_equals_relation_in_memory() {
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
                    "no edges are read before first use"
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

    /// Edges are numbered by ascending original id, whatever the order of positions.
    #[test]
    fn original_ids_with_gaps() {
        let (src, dst) = (0..200u32).map(|i| (i * 7 % 9, i * 5 % 11)).unzip();
        let memory = Relation::from_coo(9, 11, src, dst).unwrap();
        let mut r = with_ids(&memory, |id| 3 * id + 1);
        let ids = r.original_edge_ids().unwrap().unwrap();
        assert!(ids.iter().copied().eq((0..200).map(|e| 3 * e + 1)));
        assert_eq!(r.derived_bytes().host, 8 * 200);
        r.read_stored().unwrap();
        assert_eq!((&r, r.csc(), r.csr()), (&memory, memory.csc(), memory.csr()));
        assert_eq!(r.reverse().original_edge_ids().unwrap().unwrap()[7], 22);
        r.clear_derived();
        assert_eq!(r.derived_bytes(), Bytes::default());
        for none in [memory.clone(), stored(&memory)] {
            assert_eq!(none.original_edge_ids().unwrap(), None);
        }
        let twice = with_ids(&memory, |id| if id == 200 { 300 } else { id / 2 });
        let far = with_ids(&memory, |id| if id == 200 { 201 } else { id + 5 });
        for (wrong, found) in
            [(twice, "edge id 0 a second time"), (far, "edge id 204, which is not in 0..201")]
        {
            let e = wrong.read_stored().unwrap_err();
            assert!(matches!(e, GraphError::Layout { .. }), "{e}");
            assert!(e.to_string().contains(found), "{e}");
        }
        let e = with_ids(&memory, |id| if id == 0 { 1 } else { id }).read_stored().unwrap_err();
        assert!(matches!(e, GraphError::EdgeIds { value: 1, repeated: true, .. }), "{e}");
    }

    #[test]
    fn too_many_edges_are_an_error() {
        let memory = Relation::from_coo(2, 2, vec![0, 1], vec![1, 0]).unwrap();
        let of = |edges| {
            Relation::from_stored_csc(Arc::new(Reader(memory.clone(), edges, |id| id))).unwrap()
        };
        let large = of(LIMIT + 5);
        assert_eq!(large.num_edges() as u64, LIMIT + 5);
        assert!(
            matches!(large.read_stored(), Err(GraphError::TooLarge { count, .. }) if count == LIMIT + 5)
        );
        assert!(matches!(of(3).read_stored(), Err(GraphError::Layout { .. })));
        assert!(memory.read_stored().is_ok() && memory.stored().is_none());
    }
}

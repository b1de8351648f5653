//! Counts degrees of the nodes of a block in the whole graph.

use crate::batch::block::{Block, Origin, Source};
use crate::choice::edge_attributes::{EdgeTimes, read as read_times};
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_graph::{Compressed, EdgeKey, GraphError, of_etype};

impl Block {
    /// In-degree of each destination in the whole graph; see [Degrees](Self#degrees).
    ///
    /// # Panics
    /// Unknown type; a file that cannot be read.
    ///
    /// # Cost
    /// `O(1)` per node, or `O(degree)` if seeds have times.
    #[track_caller]
    pub fn in_degrees(&self, etype: impl EdgeKey) -> Vec<u32> {
        let degrees = self.try_in_degrees(self.etype(etype));
        degrees.map_err(|e| format!("in-degrees of a block: {e}")).or_panic()
    }
    /// [`in_degrees`](Self::in_degrees), with an error instead of a panic.
    ///
    /// # Errors
    /// Unknown or ambiguous type; a file that cannot be read.
    pub fn try_in_degrees(&self, etype: impl EdgeKey) -> Result<Vec<u32>, GraphError> {
        let etype = self.schema().etype(etype)?;
        let (_, d) = self.schema().endpoints(etype);
        match &self.origin {
            Origin::Whole(source) => self.in_degrees_of(source, etype, d, self.num_dst[d]),
            Origin::Remote(facts) => Ok(facts.in_degrees[etype][..self.num_dst[d]].to_vec()),
        }
    }
    /// In-degree of each source in the whole graph, for an edge type whose sources and destinations have the same node
    /// type; see [Degrees](Self#degrees). `None` for other edge types, and for a block [from parts](Self::from_parts)
    /// that has only the degrees of destinations.
    ///
    /// # Panics
    /// As [`in_degrees`](Self::in_degrees).
    ///
    /// # Cost
    /// As [`in_degrees`](Self::in_degrees).
    #[track_caller]
    pub fn src_in_degrees(&self, etype: impl EdgeKey) -> Option<Vec<u32>> {
        let degrees = self.try_src_in_degrees(self.etype(etype));
        degrees.map_err(|e| format!("in-degrees of a block: {e}")).or_panic()
    }
    /// [`src_in_degrees`](Self::src_in_degrees), with an error instead of a panic.
    ///
    /// # Errors
    /// As [`try_in_degrees`](Self::try_in_degrees).
    pub fn try_src_in_degrees(&self, etype: impl EdgeKey) -> Result<Option<Vec<u32>>, GraphError> {
        let etype = self.schema().etype(etype)?;
        let (s, d) = self.schema().endpoints(etype);
        Ok(match &self.origin {
            Origin::Whole(source) if s == d => {
                Some(self.in_degrees_of(source, etype, s, self.num_src[s])?)
            }
            Origin::Remote(facts) if s == d => {
                facts.in_degrees[etype].get(..self.num_src[s]).map(<[u32]>::to_vec)
            }
            _ => None,
        })
    }
    /// Out-degree of each source in the whole graph; see [Degrees](Self#degrees). The first call on a graph builds its
    /// CSR, and reads the edges of a relation in a file into memory.
    ///
    /// # Panics
    /// As [`in_degrees`](Self::in_degrees).
    ///
    /// # Cost
    /// `O(1)` per node, or `O(degree)` if seeds have times.
    #[track_caller]
    pub fn out_degrees(&self, etype: impl EdgeKey) -> Vec<u32> {
        let degrees = self.try_out_degrees(self.etype(etype));
        degrees.map_err(|e| format!("out-degrees of a block: {e}")).or_panic()
    }
    /// [`out_degrees`](Self::out_degrees), with an error instead of a panic.
    ///
    /// # Errors
    /// As [`try_in_degrees`](Self::try_in_degrees); [`GraphError::OutOfMemory`].
    pub fn try_out_degrees(&self, etype: impl EdgeKey) -> Result<Vec<u32>, GraphError> {
        let etype = self.schema().etype(etype)?;
        let (s, _) = self.schema().endpoints(etype);
        match &self.origin {
            Origin::Whole(source) => {
                let whole = source.whole().in_memory(etype)?;
                self.degrees(source, whole.csr(), etype, s, self.num_src[s])
            }
            Origin::Remote(facts) => Ok(facts.out_degrees[etype][..self.num_src[s]].to_vec()),
        }
    }
    fn in_degrees_of(
        &self,
        source: &Source,
        etype: usize,
        ntype: usize,
        rows: usize,
    ) -> Result<Vec<u32>, GraphError> {
        let whole = of_etype(source.whole().relations(), etype);
        let Some(reader) = whole.stored() else {
            return self.degrees(source, whole.csc(), etype, ntype, rows);
        };
        let nodes = &self.nodes[ntype][..rows];
        let nodes: Vec<u32> = nodes.iter().map(|&v| source.id_in_whole(ntype, v)).collect();
        let mut found = Vec::with_capacity(rows);
        reader.rows(&nodes, &mut found)?;
        let Some((_, times)) = self.times_of(etype, ntype) else {
            return Ok(found.into_iter().map(|row| row.1).collect());
        };
        let mut of_row = vec![];
        let before = |(&(start, len), &time): (&(u64, u32), &i64)| {
            of_row.clear();
            read_times(&**reader, start..start + u64::from(len), &mut of_row)?;
            Ok(of_row.iter().filter(|&&t| t < time).count() as u32)
        };
        found.iter().zip(times).map(before).collect()
    }
    /// Times of the edges of a type, and the time of each row of a node type, if seeds and edges have times.
    fn times_of(&self, etype: usize, ntype: usize) -> Option<(&EdgeTimes, &[i64])> {
        let bounds = self.bounds.as_deref()?;
        Some((bounds.rules[etype].times.as_ref()?, &bounds.times[ntype]))
    }
    /// Degrees in `whole` of the first `rows` rows of a node type, of the edges before the time of a row.
    fn degrees(
        &self,
        source: &Source,
        whole: &Compressed,
        etype: usize,
        ntype: usize,
        rows: usize,
    ) -> Result<Vec<u32>, GraphError> {
        let nodes = &self.nodes[ntype][..rows];
        let row = |v: u32| whole.row(source.id_in_whole(ntype, v) as usize);
        let Some((of, times)) = self.times_of(etype, ntype) else {
            return Ok(nodes.iter().map(|&v| row(v).len() as u32).collect());
        };
        let of = of.by_edge(&source.graph.relations()[etype])?;
        let before = |(&v, &time): (&u32, &i64)| {
            row(v).filter(|&p| of[whole.edge_id(p) as usize] < time).count() as u32
        };
        Ok(nodes.iter().zip(times).map(before).collect())
    }
}

//! Which part owns which node and edge, and how the numberings relate.

use std::ops::Range;
use std::sync::Arc;

use burn_gnn_graph::{HomoId, Schema, TypedId};

use crate::DistError;

/// The numbering of one kind of thing (nodes or edges): joint ids run part by part, inside a part type
/// by type; type-wise ids run part by part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeBook {
    what: &'static str,
    num_types: usize,
    /// Per type, `num_parts + 1` type-wise ids: part `p` owns `starts[t][p]..starts[t][p + 1]`.
    starts: Vec<Vec<u64>>,
    /// Joint id at which each (part, type) begins, part by part, and the total.
    begins: Vec<u64>,
}

impl RangeBook {
    /// `counts[t][p]` things of type `t` in part `p`; `None` where they add up to more than `u64`.
    pub(crate) fn new(what: &'static str, num_parts: usize, counts: &[Vec<u64>]) -> Option<Self> {
        let sums = |c: &Vec<u64>| {
            let mut starts = vec![0u64];
            for &n in c {
                starts.push(starts.last()?.checked_add(n)?);
            }
            Some(starts)
        };
        let starts = counts.iter().map(sums).collect::<Option<Vec<_>>>()?;
        let (mut begins, mut at) = (vec![0u64], 0u64);
        for p in 0..num_parts {
            for c in counts {
                at = at.checked_add(c[p])?;
                begins.push(at);
            }
        }
        Some(Self { what, num_types: counts.len(), starts, begins })
    }
    fn num_parts(&self) -> usize {
        self.starts.first().map_or(0, |s| s.len() - 1)
    }
    pub(crate) fn total(&self) -> u64 {
        self.begins.last().copied().unwrap_or(0)
    }
    fn out_of_range(&self, of: &str, id: u64, bound: u64) -> DistError {
        DistError::OutOfRange { what: format!("{} {of}", self.what), id, bound }
    }
    fn starts(&self, ty: usize) -> Result<&[u64], DistError> {
        self.starts.get(ty).map(Vec::as_slice).ok_or_else(|| self.out_of_range("type", ty as u64, self.num_types as u64))
    }
    fn check_part(&self, part: usize) -> Result<(), DistError> {
        let parts = self.num_parts();
        if part < parts { Ok(()) } else { Err(self.out_of_range("partition", part as u64, parts as u64)) }
    }
    pub(crate) fn count(&self, ty: usize) -> Result<u64, DistError> {
        Ok(self.starts(ty)?[self.num_parts()])
    }
    fn owner(&self, id: TypedId) -> Result<usize, DistError> {
        let starts = self.starts(id.ty)?;
        let count = starts[starts.len() - 1];
        if id.id >= count {
            return Err(self.out_of_range("id", id.id, count));
        }
        Ok(starts.partition_point(|&s| s <= id.id) - 1)
    }
    pub(crate) fn range(&self, part: usize, ty: usize) -> Result<Range<u64>, DistError> {
        let starts = self.starts(ty)?;
        self.check_part(part)?;
        Ok(starts[part]..starts[part + 1])
    }
    /// Joint ids of a part, all types.
    pub(crate) fn part_range(&self, part: usize) -> Range<u64> {
        self.begins[part * self.num_types]..self.begins[(part + 1) * self.num_types]
    }
    fn to_joint(&self, id: TypedId) -> Result<HomoId, DistError> {
        let part = self.owner(id)?;
        Ok(HomoId(self.begins[part * self.num_types + id.ty] + (id.id - self.starts[id.ty][part])))
    }
    pub(crate) fn locate(&self, id: HomoId) -> Result<(usize, TypedId), DistError> {
        if id.0 >= self.total() {
            return Err(self.out_of_range("joint id", id.0, self.total()));
        }
        // Empty ranges begin where their successor does, so the last one that begins at or before
        // `id` is not empty.
        let at = self.begins.partition_point(|&b| b <= id.0) - 1;
        let (part, ty) = (at / self.num_types, at % self.num_types);
        Ok((part, TypedId { ty, id: self.starts[ty][part] + (id.0 - self.begins[at]) }))
    }
    fn to_local(&self, id: TypedId, part: usize) -> Result<u64, DistError> {
        let own = self.range(part, id.ty)?;
        let owner = self.owner(id)?;
        if owner != part {
            return Err(DistError::NotOwned { what: self.what.into(), id: id.id, part, owner });
        }
        Ok(id.id - own.start)
    }
    fn local_to_global(&self, ty: usize, local: u64, part: usize) -> Result<u64, DistError> {
        let own = self.range(part, ty)?;
        let count = own.end - own.start;
        if local < count { Ok(own.start + local) } else { Err(self.out_of_range("local id", local, count)) }
    }
    /// `[begin, end)` in the joint numbering, per part, for the metadata file.
    pub(crate) fn joint_ranges(&self, ty: usize) -> Vec<[u64; 2]> {
        let of = |p: usize| {
            let begin = self.begins[p * self.num_types + ty];
            [begin, begin + self.starts[ty][p + 1] - self.starts[ty][p]]
        };
        (0..self.num_parts()).map(of).collect()
    }
}

/// Owners and numberings of a partitioned graph; the same on every rank.
///
/// Three ids name a node (edges alike):
/// * its *type-wise* id, `0..num_nodes(type)`, numbered part by part: what features and other ranks use;
/// * its *joint* id, numbered part by part and inside a part type by type: what files use;
/// * its *local* id inside (part, type), from 0: a row of an owned feature matrix.
///
/// All are new ids; the ids of the input graph are in [`Partition`](crate::Partition) and
/// [`LocalPartition`](crate::LocalPartition). Ids outside their numbering are errors. Lookups cost `O(log parts)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionBook {
    schema: Arc<Schema>,
    num_parts: usize,
    pub(crate) nodes: RangeBook,
    pub(crate) edges: RangeBook,
}

impl PartitionBook {
    /// `None` where counts add up to more than `u64`.
    pub(crate) fn new(schema: Arc<Schema>, num_parts: usize, nodes: &[Vec<u64>], edges: &[Vec<u64>]) -> Option<Self> {
        let nodes = RangeBook::new("node", num_parts, nodes)?;
        let edges = RangeBook::new("edge", num_parts, edges)?;
        Some(Self { schema, num_parts, nodes, edges })
    }
    /// Node types and edge types; type numbers are theirs.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }
    /// Number of parts.
    pub fn num_parts(&self) -> usize {
        self.num_parts
    }
    /// Nodes of a type in the whole graph.
    ///
    /// # Errors
    /// No such type.
    pub fn num_nodes(&self, ntype: usize) -> Result<u64, DistError> {
        self.nodes.count(ntype)
    }
    /// Edges of a type in the whole graph.
    ///
    /// # Errors
    /// No such type.
    pub fn num_edges(&self, etype: usize) -> Result<u64, DistError> {
        self.edges.count(etype)
    }
    /// The part that owns a node.
    ///
    /// # Errors
    /// No such type or id.
    pub fn nid2partid(&self, ntype: usize, id: u64) -> Result<usize, DistError> {
        self.nodes.owner(TypedId { ty: ntype, id })
    }
    /// The part that owns an edge: the owner of its destination.
    ///
    /// # Errors
    /// No such type or id.
    pub fn eid2partid(&self, etype: usize, id: u64) -> Result<usize, DistError> {
        self.edges.owner(TypedId { ty: etype, id })
    }
    /// Type-wise ids of the nodes of a type that a part owns.
    ///
    /// # Errors
    /// No such part or type.
    pub fn partid2nids(&self, part: usize, ntype: usize) -> Result<Range<u64>, DistError> {
        self.nodes.range(part, ntype)
    }
    /// Type-wise ids of the edges of a type that a part owns.
    ///
    /// # Errors
    /// No such part or type.
    pub fn partid2eids(&self, part: usize, etype: usize) -> Result<Range<u64>, DistError> {
        self.edges.range(part, etype)
    }
    /// Joint id of a node.
    ///
    /// # Errors
    /// No such type or id.
    pub fn node_to_joint(&self, id: TypedId) -> Result<HomoId, DistError> {
        self.nodes.to_joint(id)
    }
    /// Type and type-wise id of a joint node id.
    ///
    /// # Errors
    /// No such id.
    pub fn joint_to_node(&self, id: HomoId) -> Result<TypedId, DistError> {
        self.nodes.locate(id).map(|l| l.1)
    }
    /// Joint id of an edge.
    ///
    /// # Errors
    /// No such type or id.
    pub fn edge_to_joint(&self, id: TypedId) -> Result<HomoId, DistError> {
        self.edges.to_joint(id)
    }
    /// Type and type-wise id of a joint edge id.
    ///
    /// # Errors
    /// No such id.
    pub fn joint_to_edge(&self, id: HomoId) -> Result<TypedId, DistError> {
        self.edges.locate(id).map(|l| l.1)
    }
    /// Local id of a node in the part that owns it.
    ///
    /// # Errors
    /// No such type, id or part, or another part owns it.
    pub fn nid2localnid(&self, ntype: usize, id: u64, part: usize) -> Result<u64, DistError> {
        self.nodes.to_local(TypedId { ty: ntype, id }, part)
    }
    /// Local id of an edge in the part that owns it.
    ///
    /// # Errors
    /// As [`nid2localnid`](Self::nid2localnid).
    pub fn eid2localeid(&self, etype: usize, id: u64, part: usize) -> Result<u64, DistError> {
        self.edges.to_local(TypedId { ty: etype, id }, part)
    }
    /// Type-wise id of a local node id.
    ///
    /// # Errors
    /// No such type, part or local id.
    pub fn localnid2nid(&self, ntype: usize, local: u64, part: usize) -> Result<u64, DistError> {
        self.nodes.local_to_global(ntype, local, part)
    }
    /// Type-wise id of a local edge id.
    ///
    /// # Errors
    /// No such type, part or local id.
    pub fn localeid2eid(&self, etype: usize, local: u64, part: usize) -> Result<u64, DistError> {
        self.edges.local_to_global(etype, local, part)
    }
}

#[cfg(test)]
mod tests {
    use burn_gnn_graph::EdgeType;
    use proptest::prelude::*;

    use super::*;

    fn book(nodes: &[Vec<u64>], parts: usize) -> PartitionBook {
        let names = (0..nodes.len()).map(|i| format!("t{i}")).collect();
        let schema = Schema::new(names, vec![EdgeType::new("t0", "r", "t0")]).unwrap();
        PartitionBook::new(Arc::new(schema), parts, nodes, &[vec![1; parts]]).unwrap()
    }

    /// The layout that DGL documents for 3 parts and two types.
    #[test]
    fn part_major_then_type_major() {
        let b = book(&[vec![16, 17, 17], vec![10, 10, 10]], 3);
        assert_eq!(b.nodes.joint_ranges(0), [[0, 16], [26, 43], [53, 70]]);
        assert_eq!(b.nodes.joint_ranges(1), [[16, 26], [43, 53], [70, 80]]);
        assert_eq!(b.joint_to_node(HomoId(26)).unwrap(), TypedId { ty: 0, id: 16 });
        assert_eq!(b.nid2partid(0, 15).unwrap(), 0);
        assert_eq!(b.nid2partid(0, 16).unwrap(), 1);
    }

    #[test]
    fn outside_is_an_error() {
        let b = book(&[vec![2, 3]], 2);
        let text = |e: DistError| e.to_string();
        assert_eq!(text(b.nid2partid(0, 5).unwrap_err()), "node id 5 is out of range 0..5");
        assert_eq!(text(b.nid2partid(1, 0).unwrap_err()), "node type 1 is out of range 0..1");
        assert_eq!(text(b.eid2partid(0, 2).unwrap_err()), "edge id 2 is out of range 0..2");
        assert_eq!(text(b.joint_to_node(HomoId(5)).unwrap_err()), "node joint id 5 is out of range 0..5");
        assert_eq!(text(b.partid2nids(2, 0).unwrap_err()), "node partition 2 is out of range 0..2");
        assert_eq!(text(b.nid2localnid(0, 1, 1).unwrap_err()), "node 1 belongs to part 0, not to part 1");
        assert_eq!(text(b.localnid2nid(0, 3, 1).unwrap_err()), "node local id 3 is out of range 0..3");
    }

    proptest! {
        #[test]
        fn there_and_back(counts in (1usize..5, 1usize..4).prop_flat_map(|(p, t)| {
            proptest::collection::vec(proptest::collection::vec(0u64..5, p), t)
        })) {
            let parts = counts[0].len();
            let b = book(&counts, parts);
            let mut joint = 0;
            for p in 0..parts {
                for t in 0..counts.len() {
                    prop_assert_eq!(b.nodes.joint_ranges(t)[p][0], joint);
                    for id in b.partid2nids(p, t).unwrap() {
                        let typed = TypedId { ty: t, id };
                        prop_assert_eq!(b.nid2partid(t, id).unwrap(), p);
                        prop_assert_eq!(b.node_to_joint(typed).unwrap(), HomoId(joint));
                        prop_assert_eq!(b.joint_to_node(HomoId(joint)).unwrap(), typed);
                        let local = b.nid2localnid(t, id, p).unwrap();
                        prop_assert_eq!(b.localnid2nid(t, local, p).unwrap(), id);
                        joint += 1;
                    }
                }
            }
            prop_assert_eq!(joint, b.nodes.total());
        }
    }
}

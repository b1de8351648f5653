//! Converts between heterogeneous and homogeneous graphs.

use std::collections::BTreeMap;

use crate::features::rows::join_all;
use crate::graph::Graph;
use burn_gnn_structure::internal::{check_id, check_len, check_limit};
use burn_gnn_structure::{EdgeType, GraphError, IdMap, OriginalIds};

/// A homogeneous graph made from a heterogeneous one, with the maps between their ids.
#[derive(Clone, Debug)]
pub struct Homogeneous {
    /// The graph, with node type `_N` and edge type `_E`. Nodes and edges of all types are concatenated in schema order.
    pub graph: Graph,
    /// Global node id ↔ (node type, type-wise id).
    pub node_ids: IdMap,
    /// Global edge id ↔ (edge type, type-wise id).
    pub edge_ids: IdMap,
}

impl Graph {
    /// Converts to a homogeneous graph: nodes and edges of all types are concatenated in schema order and get global ids.
    /// `ndata` and `edata` name the columns to concatenate.
    ///
    /// # Errors
    /// A column that a type lacks, or has with another shape, kind, dtype or device; more nodes or edges than one relation
    /// supports; edges in a file that cannot be read.
    pub fn to_homogeneous(
        &self,
        ndata: &[&str],
        edata: &[&str],
    ) -> Result<Homogeneous, GraphError> {
        let (node_ids, edge_ids) = (self.node_id_map()?, self.edge_id_map()?);
        for (what, count) in [("nodes", node_ids.total()), ("edges", edge_ids.total())] {
            check_limit(what, count).map_err(|e| e.in_relation("(all)"))?;
        }
        self.read_stored()?;
        let total = edge_ids.total() as usize;
        let (mut src, mut dst) = (Vec::with_capacity(total), Vec::with_capacity(total));
        for (t, r) in self.relations().iter().enumerate() {
            let (s, d) = self.schema().endpoints(t);
            let (s, d) = (node_ids.range(s)?.start as u32, node_ids.range(d)?.start as u32);
            src.extend(r.src().iter().map(|u| u + s));
            dst.extend(r.dst().iter().map(|v| v + d));
        }
        let mut graph = Self::homogeneous(node_ids.total() as usize, src, dst)?;
        let (nodes, edges) = graph.frames_mut();
        for (names, old, label, new) in [
            (ndata, self.node_frames(), "all nodes", &mut nodes[0]),
            (edata, self.edge_frames(), "all edges", &mut edges[0]),
        ] {
            for name in names {
                let parts = old.iter().map(|f| f.column(name).cloned());
                let parts = parts.collect::<Result<Vec<_>, _>>()?;
                if let Some(joint) = join_all(label, name, &parts)? {
                    new.insert_column(name, joint)?;
                }
            }
        }
        Ok(Homogeneous { graph, node_ids, edge_ids })
    }
}

/// Converts a homogeneous graph to a heterogeneous one: node `i` has type `ntypes[ntype[i]]`, and edge `j` has relation
/// `relations[etype[j]]`. Nodes and edges of a type keep their order. A relation between several pairs of node types becomes
/// one canonical edge type per pair. Columns are split by type.
///
/// Returns the graph, the global node ids per node type and the global edge ids per edge type (schema order).
///
/// # Errors
/// A graph with several types; lists of other lengths than the numbers of nodes and edges; a type number out of range; edges
/// in a file that cannot be read.
#[allow(clippy::type_complexity)]
pub fn to_heterogeneous(
    graph: &Graph,
    ntypes: &[&str],
    ntype: &[u32],
    relations: &[&str],
    etype: &[u32],
) -> Result<(Graph, Vec<Vec<u32>>, Vec<Vec<u32>>), GraphError> {
    graph.schema().expect_one_type("graph", "`to_homogeneous` makes one of several")?;
    let (relation, nodes) = (graph.in_memory(0)?, &graph.node_counts()[0]);
    for (arg, why, expected, actual) in [
        ("ntype", "one entry per node", *nodes, ntype.len()),
        ("etype", "one entry per edge", relation.num_edges(), etype.len()),
    ] {
        check_len(arg, why, expected, actual).map_err(|e| e.in_relation(""))?;
    }
    for (what, types, bound) in
        [("node type", ntype, ntypes.len()), ("edge type", etype, relations.len())]
    {
        types.iter().try_for_each(|&t| check_id(what, u64::from(t), bound as u64))?;
    }
    let mut members: Vec<Vec<u32>> = vec![vec![]; ntypes.len()];
    let local: Vec<u32> = ntype
        .iter()
        .enumerate()
        .map(|(i, &t)| {
            members[t as usize].push(i as u32);
            members[t as usize].len() as u32 - 1
        })
        .collect();
    let mut edges: BTreeMap<EdgeType, (Vec<u32>, Vec<u32>, Vec<u32>)> = BTreeMap::new();
    for (j, &t) in etype.iter().enumerate() {
        let (u, v) = (relation.src()[j] as usize, relation.dst()[j] as usize);
        let key = EdgeType::new(
            ntypes[ntype[u] as usize],
            relations[t as usize],
            ntypes[ntype[v] as usize],
        );
        let e = edges.entry(key).or_default();
        e.0.push(local[u]);
        e.1.push(local[v]);
        e.2.push(j as u32);
    }
    let mut b = Graph::builder();
    for (name, m) in ntypes.iter().zip(&members) {
        b = b.nodes(*name, m.len());
    }
    let mut joint_edges = vec![];
    for (t, (s, d, j)) in edges {
        b = b.edges(t, s, d);
        joint_edges.push(j);
    }
    let mut out = b.build()?;
    let joint_nodes = out
        .schema()
        .ntypes()
        .iter()
        .map(|t| members[ntypes.iter().position(|n| n == t).unwrap_or(0)].clone())
        .collect::<Vec<_>>();
    let (nodes, edges) = out.frames_mut();
    for (new, old, ids) in [
        (nodes, &graph.node_frames()[0], &joint_nodes),
        (edges, &graph.edge_frames()[0], &joint_edges),
    ] {
        for (new, ids) in new.iter_mut().zip(ids) {
            new.take_rows(old, &OriginalIds::new(ids.clone(), old.len()))?;
        }
    }
    Ok((out, joint_nodes, joint_edges))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{DType, Device, Tensor};
    use proptest::prelude::*;

    fn typed() -> Graph {
        let device = Device::flex();
        let b = Graph::builder().nodes("a", 2).nodes("none", 0).nodes("z", 3);
        let mut g = b
            .edges(("a", "r", "z"), vec![0, 1], vec![2, 0])
            .edges(("z", "r", "z"), vec![1], vec![1])
            .build()
            .unwrap();
        for (t, x) in [
            ("a", vec![[0.0f32, 1.0], [2.0, 3.0]]),
            ("none", vec![]),
            ("z", vec![[4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]),
        ] {
            let n = x.len();
            let data = burn::tensor::TensorData::new(x.into_iter().flatten().collect(), [n, 2]);
            g.nodes_mut(t).unwrap().insert("h", Tensor::<2>::from_data(data, &device)).unwrap();
        }
        g.edges_mut(("a", "r", "z"))
            .unwrap()
            .insert("w", Tensor::<1>::from_data([10.0f32, 11.0], &device))
            .unwrap();
        g.edges_mut(("z", "r", "z"))
            .unwrap()
            .insert("w", Tensor::<1>::from_data([12.0f32], &device))
            .unwrap();
        g
    }

    fn values(frame: &crate::Frame, name: &str) -> Vec<f32> {
        frame.column(name).unwrap().to_data().try_to_vec().unwrap()
    }

    #[test]
    fn one_numbering_type_by_type() {
        let h = typed().to_homogeneous(&["h"], &["w"]).unwrap();
        let r = &h.graph.relations()[0];
        assert_eq!((h.graph.total_nodes(), r.src(), r.dst()), (5, &[0, 1, 3][..], &[4, 2, 3][..]));
        assert_eq!(
            values(&h.graph.node_frames()[0], "h"),
            (0..10).map(|v| v as f32).collect::<Vec<_>>()
        );
        assert_eq!(values(&h.graph.edge_frames()[0], "w"), [10.0, 11.0, 12.0]);
        assert_eq!(h.node_ids.range(2).unwrap(), 2..5);
        assert_eq!(h.edge_ids.range(1).unwrap(), 2..3);
    }

    #[test]
    fn and_back() {
        let g = typed();
        let h = g.to_homogeneous(&["h"], &["w"]).unwrap();
        let (back, nodes, edges) =
            to_heterogeneous(&h.graph, &["a", "none", "z"], &[0, 0, 2, 2, 2], &["r"], &[0, 0, 0])
                .unwrap();
        assert_eq!((back.schema(), back.node_counts()), (g.schema(), g.node_counts()));
        assert_eq!(
            (nodes, edges),
            (vec![vec![0, 1], vec![], vec![2, 3, 4]], vec![vec![0, 1], vec![2]])
        );
        for (x, y) in back.relations().iter().zip(g.relations()) {
            assert_eq!((x.src(), x.dst()), (y.src(), y.dst()));
        }
        for t in ["a", "none", "z"] {
            assert_eq!(values(back.nodes(t).unwrap(), "h"), values(g.nodes(t).unwrap(), "h"));
        }
        assert_eq!(values(back.edges(("z", "r", "z")).unwrap(), "w"), [12.0]);
    }

    /// Global edge ids go with their edges, as those of nodes go with nodes.
    #[test]
    fn global_ids_of_edges_stay() {
        let b =
            Graph::builder().nodes("_N", 3).edges(("_N", "_E", "_N"), vec![0, 1, 2], vec![1, 2, 0]);
        let g = b.edge_ids(("_N", "_E", "_N"), vec![70u64, 80, 90]).build().unwrap();
        let (typed, _, edges) =
            to_heterogeneous(&g, &["a"], &[0, 0, 0], &["r", "s"], &[1, 0, 1]).unwrap();
        let ids = |t: &str| typed.edges(t).unwrap().global_ids().map(|ids| ids.as_slice().to_vec());
        assert_eq!(
            (edges, ids("r"), ids("s")),
            (vec![vec![1], vec![0, 2]], Some(vec![80]), Some(vec![70, 90]))
        );
    }

    #[test]
    fn columns_that_cannot_be_joined() {
        let device = Device::flex();
        let refused = |g: &Graph| g.to_homogeneous(&["h"], &[]).unwrap_err();
        let mut g = typed();
        g.nodes_mut("a").unwrap().remove("h");
        assert!(matches!(refused(&g), GraphError::UnknownColumn { .. }));
        g.nodes_mut("a").unwrap().insert("h", Tensor::<2>::zeros([2, 3], &device)).unwrap();
        assert!(matches!(refused(&g), GraphError::ColumnMismatch { what: "row shape", .. }));
        g.nodes_mut("a").unwrap().remove("h");
        g.nodes_mut("a")
            .unwrap()
            .insert("h", Tensor::<2>::zeros([2, 2], (&device, DType::F64)))
            .unwrap();
        assert!(matches!(refused(&g), GraphError::ColumnMismatch { what: "dtype", .. }));
    }

    #[test]
    fn types_that_do_not_fit() {
        let g = Graph::homogeneous(2, vec![0], vec![1]).unwrap();
        let go = |ntype: &[u32], etype: &[u32]| {
            to_heterogeneous(&g, &["a", "b"], ntype, &["r"], etype).unwrap_err()
        };
        assert!(matches!(go(&[0], &[0]), GraphError::Length { expected: 2, actual: 1, .. }));
        assert!(matches!(go(&[0, 1], &[]), GraphError::Length { expected: 1, actual: 0, .. }));
        assert!(matches!(go(&[0, 2], &[0]), GraphError::IdOutOfRange { id: 2, bound: 2, .. }));
        assert!(matches!(go(&[0, 1], &[1]), GraphError::IdOutOfRange { id: 1, bound: 1, .. }));
        assert!(matches!(
            to_heterogeneous(&typed(), &["a"], &[], &["r"], &[]),
            Err(GraphError::Setting { arg: "graph", .. })
        ));
    }

    proptest! {
        /// Every edge of the typed graph is the edge of the homogeneous graph with its global id.
        #[test]
        fn typed_edges_are_those_of_their_global_ids(
            n in 1u32..8,
            edges in proptest::collection::vec((0u32..8, 0u32..8, 0u32..2), 0..30),
            types in proptest::collection::vec(0u32..3, 8),
        ) {
            let src: Vec<u32> = edges.iter().map(|e| e.0 % n).collect();
            let dst: Vec<u32> = edges.iter().map(|e| e.1 % n).collect();
            let etype: Vec<u32> = edges.iter().map(|e| e.2).collect();
            let g = Graph::homogeneous(n as usize, src.clone(), dst.clone()).unwrap();
            let (typed, nodes, joint) = to_heterogeneous(&g, &["a", "b", "c"], &types[..n as usize], &["r", "s"], &etype).unwrap();
            prop_assert_eq!((typed.total_nodes(), typed.total_edges()), (n as usize, edges.len()));
            for (t, r) in typed.relations().iter().enumerate() {
                let (s, d) = typed.schema().endpoints(t);
                for (e, &j) in joint[t].iter().enumerate() {
                    prop_assert_eq!(nodes[s][r.src()[e] as usize], src[j as usize]);
                    prop_assert_eq!(nodes[d][r.dst()[e] as usize], dst[j as usize]);
                }
            }
        }
    }
}

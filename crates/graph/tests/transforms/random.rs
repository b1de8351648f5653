//! Random typed graphs whose features encode type and id, and the checks that follow from that.

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};
use burn_gnn_graph::{Frame, Graph, Subgraph};
pub(crate) use burn_gnn_testutil::devices;
use proptest::prelude::*;

pub(crate) const NTYPES: [&str; 3] = ["a", "b", "c"];
/// In schema order; a relation name twice, two relations between the same types, loops and bipartite ones.
pub(crate) const ETYPES: [(&str, &str, &str); 6] = [
    ("a", "r", "a"),
    ("a", "s", "b"),
    ("a", "v", "a"),
    ("b", "s", "a"),
    ("b", "t", "c"),
    ("c", "u", "c"),
];
/// Source and destination node types.
pub(crate) const ENDS: [(usize, usize); 6] = [(0, 0), (0, 1), (0, 0), (1, 0), (1, 2), (2, 2)];
/// Edge types with the same source and destination node type.
pub(crate) const SQUARE: [usize; 3] = [0, 2, 5];

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) nodes: [usize; 3],
    /// Per edge type.
    pub(crate) edges: Vec<Vec<(u32, u32)>>,
}

/// Few nodes, so that self loops, parallel edges, isolated nodes and empty types are common.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    let edges = proptest::collection::vec(
        proptest::collection::vec((any::<u16>(), any::<u16>()), 0..14),
        6,
    );
    ([0usize..7, 0usize..4, 0usize..3], edges).prop_map(|(nodes, raw)| {
        let edges = raw.iter().zip(ENDS).map(|(raw, (s, d))| {
            let pairs = raw.iter().filter(|_| nodes[s] > 0 && nodes[d] > 0);
            pairs.map(|&(u, v)| (u as u32 % nodes[s] as u32, v as u32 % nodes[d] as u32)).collect()
        });
        Case { nodes, edges: edges.collect() }
    })
}

/// Ids below `n` out of any numbers.
pub(crate) fn pick(raw: &[u16], n: usize) -> Vec<u32> {
    if n == 0 { vec![] } else { raw.iter().map(|&r| u32::from(r) % n as u32).collect() }
}

/// Each once, in the order of first appearance.
pub(crate) fn once(ids: &[u32]) -> Vec<u32> {
    let mut out = vec![];
    ids.iter().for_each(|id| {
        if !out.contains(id) {
            out.push(*id);
        }
    });
    out
}

pub(crate) fn sorted(ids: &[u32]) -> Vec<u32> {
    let mut out = once(ids);
    out.sort_unstable();
    out
}

pub(crate) fn named(ids: &[Vec<u32>]) -> Vec<(&'static str, &Vec<u32>)> {
    NTYPES.into_iter().zip(ids).collect()
}

impl Case {
    /// Structure only.
    pub(crate) fn bare(&self) -> Graph {
        let mut b = Graph::builder();
        for (name, &n) in NTYPES.iter().zip(&self.nodes) {
            b = b.nodes(*name, n);
        }
        for (etype, edges) in ETYPES.iter().zip(&self.edges) {
            let (src, dst) = edges.iter().copied().unzip();
            b = b.edges(*etype, src, dst);
        }
        b.build().unwrap()
    }

    /// With columns of every kind.
    pub(crate) fn graph(&self, device: &Device) -> Graph {
        let mut g = self.bare();
        for (t, name) in NTYPES.iter().enumerate() {
            let n = self.nodes[t];
            write(g.nodes_mut(name).unwrap(), t, &(0..n as u32).collect::<Vec<_>>(), device);
        }
        for t in 0..ETYPES.len() {
            let n = self.edges[t].len();
            write(g.edges_mut(t).unwrap(), 10 + t, &(0..n as u32).collect::<Vec<_>>(), device);
        }
        g
    }

    /// Ids, ends and features of a subgraph against what is expected of it.
    pub(crate) fn check(&self, sub: &Subgraph, nodes: &[Vec<u32>], edges: &[Vec<u32>]) {
        for (t, ids) in nodes.iter().enumerate() {
            assert_eq!(
                (&sub.node_ids[t].to_vec(), sub.node_ids[t].len()),
                (ids, sub.graph.node_counts()[t]),
                "{t}"
            );
            check_rows(&sub.graph.node_frames()[t], t, ids);
        }
        for (t, ids) in edges.iter().enumerate() {
            let (r, (s, d)) = (&sub.graph.relations()[t], ENDS[t]);
            assert_eq!(
                (&sub.edge_ids[t].to_vec(), sub.edge_ids[t].len()),
                (ids, r.num_edges()),
                "{t}"
            );
            assert_eq!((r.num_src(), r.num_dst()), (nodes[s].len(), nodes[d].len()));
            for (i, &e) in ids.iter().enumerate() {
                let endpoints = (nodes[s][r.src()[i] as usize], nodes[d][r.dst()[i] as usize]);
                assert_eq!(endpoints, self.edges[t][e as usize], "edge {i} of {t}");
            }
            check_rows(&sub.graph.edge_frames()[t], 10 + t, ids);
        }
    }

    pub(crate) fn all_nodes(&self) -> Vec<Vec<u32>> {
        self.nodes.iter().map(|&n| (0..n as u32).collect()).collect()
    }
    pub(crate) fn all_edges(&self) -> Vec<Vec<u32>> {
        self.edges.iter().map(|e| (0..e.len() as u32).collect()).collect()
    }
    /// Edges of every type that pass, as `(edge type, source, destination)`.
    pub(crate) fn edges_where(&self, pass: impl Fn(usize, u32, u32) -> bool) -> Vec<Vec<u32>> {
        let of = |(t, edges): (usize, &Vec<(u32, u32)>)| {
            edges
                .iter()
                .enumerate()
                .filter(|(_, e)| pass(t, e.0, e.1))
                .map(|(i, _)| i as u32)
                .collect()
        };
        self.edges.iter().enumerate().map(of).collect()
    }
    /// Nodes that are endpoints of `edges` and `extra`.
    pub(crate) fn touched(&self, edges: &[Vec<u32>], extra: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let mut nodes = extra.to_vec();
        for (t, ids) in edges.iter().enumerate() {
            for &e in ids {
                nodes[ENDS[t].0].push(self.edges[t][e as usize].0);
                nodes[ENDS[t].1].push(self.edges[t][e as usize].1);
            }
        }
        nodes.iter().map(|ids| sorted(ids)).collect()
    }
}

fn floats(t: usize, ids: &[u32]) -> Vec<f32> {
    ids.iter().flat_map(|&i| [(1000 * t) as f32 + i as f32, 0.5 * i as f32]).collect()
}
fn ints(t: usize, ids: &[u32]) -> Vec<i64> {
    ids.iter().map(|&i| (1000 * t) as i64 + i64::from(i)).collect()
}
fn bools(t: usize, ids: &[u32]) -> Vec<bool> {
    ids.iter().flat_map(|&i| [i % 2 == 0, (i as usize + t).is_multiple_of(3)]).collect()
}

pub(crate) fn write(f: &mut Frame, t: usize, ids: &[u32], device: &Device) {
    let n = ids.len();
    f.insert("x", Tensor::<2>::from_data(TensorData::new(floats(t, ids), [n, 2]), device)).unwrap();
    f.insert(
        "n",
        Tensor::<1, Int>::from_data(TensorData::new(ints(t, ids), [n]), (device, DType::I64)),
    )
    .unwrap();
    f.insert("m", Tensor::<3, Bool>::from_data(TensorData::new(bools(t, ids), [n, 1, 2]), device))
        .unwrap();
}

/// The rows of type `t` that `ids` had.
pub(crate) fn check_rows(f: &Frame, t: usize, ids: &[u32]) {
    assert_eq!(f.columns().map(|(n, _)| n).collect::<Vec<_>>(), ["m", "n", "x"]);
    assert_eq!(f.column("x").unwrap().shape().as_slice(), [ids.len(), 2]);
    assert_eq!(f.column("m").unwrap().shape().as_slice(), [ids.len(), 1, 2]);
    assert_eq!(float(f, "x"), floats(t, ids));
    assert_eq!(int(f, "n"), ints(t, ids));
    assert_eq!(f.column("m").unwrap().to_data().iter::<bool>().collect::<Vec<_>>(), bools(t, ids));
}

pub(crate) fn float(f: &Frame, name: &str) -> Vec<f32> {
    f.column(name).unwrap().to_data().try_to_vec().unwrap()
}
pub(crate) fn int(f: &Frame, name: &str) -> Vec<i64> {
    f.column(name).unwrap().to_data().try_to_vec().unwrap()
}

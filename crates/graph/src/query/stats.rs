//! Statistics of a graph: counts, degrees and memory.

use std::fmt;

use burn_gnn_structure::internal::readable_bytes as bytes;
use rayon::prelude::*;

use crate::features::frame::Frame;
use crate::graph::Graph;
use burn_gnn_structure::{Bytes, Relation};

/// The result of [`Graph::stats`]. `Display` prints a table.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphStats {
    /// Statistics per node type, in schema order.
    pub nodes: Vec<NodeStats>,
    /// Statistics per edge type, in schema order.
    pub edges: Vec<EdgeStats>,
    /// Bytes of the source and destination ids.
    pub edge_bytes: usize,
    /// Bytes of the columns of nodes and edges.
    pub feature_bytes: usize,
    /// Bytes of cached data derived from edges: [`Graph::derived_bytes`].
    pub derived_bytes: Bytes,
}

/// Statistics of the nodes of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStats {
    /// Name of the type.
    pub ntype: String,
    /// Number of nodes.
    pub count: usize,
    /// Number of nodes without any edge.
    pub isolated: usize,
    /// Bytes of the columns.
    pub feature_bytes: usize,
}

/// Statistics of the edges of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeStats {
    /// `source:relation:destination`.
    pub etype: String,
    /// Number of edges.
    pub count: usize,
    /// In-degrees of the destination type.
    pub in_degrees: DegreeStats,
    /// Out-degrees of the source type.
    pub out_degrees: DegreeStats,
    /// Number of self loops; 0 between different node types.
    pub self_loops: usize,
    /// Number of edges that are parallel to an edge of smaller id.
    pub parallel: usize,
    /// Bytes of the columns.
    pub feature_bytes: usize,
}

/// Minimum, mean and maximum degree, and the number of zeros. All are 0 without nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DegreeStats {
    /// Smallest degree.
    pub min: u32,
    /// Mean degree.
    pub mean: f64,
    /// Largest degree.
    pub max: u32,
    /// Number of nodes of degree 0.
    pub zeros: usize,
}

impl DegreeStats {
    fn new(degrees: &[u32], edges: usize) -> Self {
        Self {
            min: degrees.iter().copied().min().unwrap_or(0),
            mean: if degrees.is_empty() { 0.0 } else { edges as f64 / degrees.len() as f64 },
            max: degrees.iter().copied().max().unwrap_or(0),
            zeros: degrees.iter().filter(|&&d| d == 0).count(),
        }
    }
}

impl fmt::Display for DegreeStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{:.1}/{}", self.min, self.mean, self.max))
    }
}

impl Graph {
    /// Counts nodes, edges, degrees, isolated nodes, self loops, parallel edges and bytes, for a first look at a graph.
    /// Prints as a table.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let stats = Graph::homogeneous(4, vec![0, 0, 2, 0], vec![1, 1, 2, 2])?.stats();
    /// assert_eq!((stats.nodes[0].isolated, stats.edges[0].self_loops, stats.edges[0].parallel), (1, 1, 1));
    /// assert_eq!((stats.edges[0].in_degrees.max, stats.edges[0].out_degrees.mean), (2, 1.0));
    /// println!("{stats}");
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Panics
    /// Edges in a file cannot be read; [`read_stored`](Self::read_stored) returns the error.
    ///
    /// # Cost
    /// `O(E log E)`, as it sorts the edges of each type; 8 bytes per edge of the largest type and 8 bytes per node. Nothing is
    /// cached.
    pub fn stats(&self) -> GraphStats {
        let schema = self.schema();
        let mut touched: Vec<Vec<bool>> =
            self.node_counts().iter().map(|&n| vec![false; n]).collect();
        let of_etype = |(t, r): (usize, &Relation)| {
            let (s, d) = schema.endpoints(t);
            let degrees = |ids: &[u32], nodes: usize, touched: &mut [bool]| {
                let mut degrees = vec![0u32; nodes];
                ids.iter().for_each(|&v| degrees[v as usize] += 1);
                touched
                    .iter_mut()
                    .zip(&degrees)
                    .for_each(|(touched, &degree)| *touched |= degree > 0);
                DegreeStats::new(&degrees, ids.len())
            };
            let mut pairs: Vec<u64> = r
                .src()
                .par_iter()
                .zip(r.dst())
                .map(|(&u, &v)| u64::from(v) << 32 | u64::from(u))
                .collect();
            pairs.par_sort_unstable();
            EdgeStats {
                etype: schema.etypes()[t].to_string(),
                count: r.num_edges(),
                out_degrees: degrees(r.src(), r.num_src(), &mut touched[s]),
                in_degrees: degrees(r.dst(), r.num_dst(), &mut touched[d]),
                self_loops: if s == d {
                    pairs.iter().filter(|&&p| p >> 32 == p & u64::from(u32::MAX)).count()
                } else {
                    0
                },
                parallel: pairs.windows(2).filter(|w| w[0] == w[1]).count(),
                feature_bytes: self.edge_frames()[t].column_bytes(),
            }
        };
        let edges: Vec<EdgeStats> = self.relations().iter().enumerate().map(of_etype).collect();
        let of_ntype = |((ntype, touched), frame): ((&String, &Vec<bool>), &Frame)| NodeStats {
            ntype: ntype.clone(),
            count: touched.len(),
            isolated: touched.iter().filter(|&&t| !t).count(),
            feature_bytes: frame.column_bytes(),
        };
        let nodes: Vec<NodeStats> =
            schema.ntypes().iter().zip(&touched).zip(self.node_frames()).map(of_ntype).collect();
        GraphStats {
            edge_bytes: 8 * self.total_edges(),
            feature_bytes: nodes
                .iter()
                .map(|n| n.feature_bytes)
                .chain(edges.iter().map(|e| e.feature_bytes))
                .sum(),
            derived_bytes: self.derived_bytes(),
            nodes,
            edges,
        }
    }
}

/// Formats lines of cells as a table: the first column is left-aligned, the others right-aligned.
fn table(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        write!(f, "{:<1$}", row[0], widths[0])?;
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            write!(f, "  {cell:>width$}")?;
        }
        writeln!(f)?;
    }
    Ok(())
}

impl fmt::Display for GraphStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |row: &[&str]| row.iter().map(|&w| w.to_owned()).collect::<Vec<_>>();
        let mut nodes = vec![words(&["node type", "nodes", "isolated", "features"])];
        nodes.extend(self.nodes.iter().map(|n| {
            vec![
                n.ntype.clone(),
                n.count.to_string(),
                n.isolated.to_string(),
                bytes(n.feature_bytes),
            ]
        }));
        table(f, &nodes)?;
        writeln!(f)?;
        let heads =
            ["edge type", "edges", "in-degree", "out-degree", "self loops", "parallel", "features"];
        let mut edges = vec![words(&heads)];
        edges.extend(self.edges.iter().map(|e| {
            vec![
                e.etype.clone(),
                e.count.to_string(),
                e.in_degrees.to_string(),
                e.out_degrees.to_string(),
                e.self_loops.to_string(),
                e.parallel.to_string(),
                bytes(e.feature_bytes),
            ]
        }));
        table(f, &edges)?;
        let derived = self.derived_bytes.host + self.derived_bytes.device;
        write!(
            f,
            "\nmemory: edges {}, features {}, derived {} (degrees are min/mean/max)",
            bytes(self.edge_bytes),
            bytes(self.feature_bytes),
            bytes(derived)
        )
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor};

    use super::*;

    fn two_types() -> Graph {
        let mut g = Graph::builder()
            .nodes("author", 3)
            .nodes("paper", 4)
            .nodes("venue", 0)
            .edges(("author", "writes", "paper"), vec![0, 0, 0, 2], vec![0, 0, 0, 1])
            .edges(("paper", "cites", "paper"), vec![1, 1, 2], vec![1, 2, 1])
            .edges(("paper", "in", "venue"), vec![], vec![])
            .build()
            .unwrap();
        g.nodes_mut("paper")
            .unwrap()
            .insert("x", Tensor::<2>::zeros([4, 100], &Device::flex()))
            .unwrap();
        g
    }

    #[test]
    fn counts_by_hand() {
        let g = two_types();
        let s = g.stats();
        let nodes: Vec<_> = s
            .nodes
            .iter()
            .map(|n| (n.ntype.as_str(), n.count, n.isolated, n.feature_bytes))
            .collect();
        assert_eq!(nodes, [("author", 3, 1, 0), ("paper", 4, 1, 1600), ("venue", 0, 0, 0)]);
        let [writes, cites, none] = &s.edges[..] else { panic!("{s:?}") };
        assert_eq!(
            (writes.etype.as_str(), writes.count, writes.self_loops, writes.parallel),
            ("author:writes:paper", 4, 0, 2)
        );
        assert_eq!(writes.in_degrees, DegreeStats { min: 0, mean: 1.0, max: 3, zeros: 2 });
        assert_eq!(writes.out_degrees, DegreeStats { min: 0, mean: 4.0 / 3.0, max: 3, zeros: 1 });
        assert_eq!((cites.self_loops, cites.parallel, cites.in_degrees.max), (1, 0, 2));
        assert_eq!(
            (none.count, none.in_degrees, none.out_degrees.zeros),
            (0, DegreeStats::default(), 4)
        );
        assert_eq!((s.edge_bytes, s.feature_bytes, s.derived_bytes), (56, 1600, Bytes::default()));
        assert_eq!(g.derived_bytes(), Bytes::default(), "nothing is kept");
    }

    #[test]
    fn the_table_is_aligned() {
        let text = two_types().stats().to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "node type  nodes  isolated  features");
        assert_eq!(lines[2], "paper          4         1   1.6 KiB");
        assert_eq!(
            lines[5],
            "edge type            edges  in-degree  out-degree  self loops  parallel  features"
        );
        assert_eq!(
            lines[6],
            "author:writes:paper      4    0/1.0/3     0/1.3/3           0         2       0 B"
        );
        assert_eq!(
            lines[10],
            "memory: edges 56 B, features 1.6 KiB, derived 0 B (degrees are min/mean/max)"
        );
        assert_eq!(
            [1023, 1 << 20, 5 << 40, usize::MAX].map(bytes),
            ["1023 B", "1.0 MiB", "5.0 TiB", "16777216.0 TiB"]
        );
        assert!(Graph::builder().build().unwrap().stats().to_string().starts_with("node type"));
    }
}

//! Powers and products of adjacency matrices.

use rayon::prelude::*;

use crate::features::column::Column;
use crate::features::combine::Combine;
use crate::features::combine::Groups;
use crate::features::row_index::row_index;
use crate::graph::Graph;
use crate::graph::ONE_RELATION;
use burn_gnn_structure::internal::{check_counts, check_len, check_limit, reserve, room};
use burn_gnn_structure::{Compressed, EdgeKey, EdgeType, GraphError, Relation};

impl Graph {
    /// Replaces the edges of a type by one edge `u -> v` for every walk of `k` of its edges from `u` to `v`: `(Aᵏ)[u, v]`
    /// parallel edges, where `A[u, v]` is the number of edges `u -> v`. The new edges are sorted by (source, destination) and
    /// have no features; nodes and other edge types are unchanged. As DGL's `khop_graph`. Use
    /// [`to_simple`](Self::to_simple) for one edge per pair, and [`khop_in_subgraph`](Self::khop_in_subgraph) for
    /// neighbourhoods.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let g = Graph::homogeneous(4, vec![0, 0, 1, 2], vec![1, 2, 3, 3])?; // two ways from 0 to 3
    /// let two = g.khop_graph("_E", 2)?;
    /// assert_eq!((two.relation("_E")?.src(), two.relation("_E")?.dst()), (&[0, 0][..], &[3, 3][..]));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown type; different source and destination node types; [`GraphError::TooLarge`] for more than `u32::MAX - 1`
    /// walks; [`GraphError::OutOfMemory`]; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(k · (V + E))` to count the walks. Then, for each source in parallel, `k` passes over the edges that it reaches, and
    /// 16 bytes per pair of nodes in addition to the result. In a graph without cycles walks have at most `V - 1` edges, so
    /// that larger `k` cost nothing; with cycles the time grows with `k`.
    pub fn khop_graph(&self, etype: impl EdgeKey, k: usize) -> Result<Self, GraphError> {
        let t = self.one_node_type(etype, "khop_graph")?;
        let relation = self.in_memory(t)?;
        let (nodes, csr) = (relation.num_src(), relation.csr());
        let count = count_walks(csr, k);
        check_limit("edges", count).map_err(|e| self.in_etype(t, e))?;
        let what = || format!("a graph of {count} walks of {k} edges");
        let (mut src, mut dst) =
            (room(count.into(), what, SMALLER)?, room(count.into(), what, SMALLER)?);
        let size = nodes.div_ceil(4 * rayon::current_num_threads()).max(1);
        // Without walks, the passes over the edges are skipped.
        let sources = if count == 0 { 0 } else { nodes };
        let parts: Vec<Vec<(u32, u32, u64)>> = (0..sources.div_ceil(size))
            .into_par_iter()
            .map(|c| walks(csr, k, c * size..nodes.min((c + 1) * size)))
            .collect::<Result<_, _>>()?;
        for (u, v, count) in parts.into_iter().flatten() {
            src.resize(src.len() + count as usize, u);
            dst.resize(dst.len() + count as usize, v);
        }
        Ok(self.with_relation(
            t,
            Relation::from_coo(nodes, nodes, src, dst).map_err(|e| self.in_etype(t, e))?,
        ))
    }

    /// The product of two weighted adjacency matrices: an edge `u -> v` if there are an edge `u -> m` in this graph and an
    /// edge `m -> v` in `other`, with weight `Σ_m weight(u -> m) · weight(m -> v)` over all such pairs of edges. Gradients
    /// flow through the weights. As DGL's `adj_product_graph`; parallel edges are summed.
    ///
    /// `weight` is a float edge column `[edges]` of both graphs. The result has the source node type of this graph and the
    /// destination node type of `other`, relation `_E` between them, edges sorted by (source, destination), and the weight
    /// as the only feature.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::Graph;
    /// let mut g = Graph::homogeneous(3, vec![0, 0, 1, 2], vec![1, 2, 0, 0])?;
    /// g.edges_mut("_E")?.insert("w", Tensor::<1>::from_data([1.0, 2.0, 3.0, 4.0], &Device::flex()))?;
    /// let square = g.adj_product_graph("_E", &g, "_E", "w")?;
    /// assert_eq!((square.relation("_E")?.src(), square.relation("_E")?.dst()), (&[0, 1, 1, 2, 2][..], &[0, 1, 2, 1, 2][..]));
    /// let w = square.edges("_E")?.get::<1>("w")?.into_data().try_to_vec::<f32>().unwrap();
    /// assert_eq!(w, [1.0 * 3.0 + 2.0 * 4.0, 3.0, 6.0, 4.0, 8.0]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown types; edge types that do not connect, or with different numbers of nodes between them; an unknown column, or
    /// one with another rank, or with different dtypes or devices; [`GraphError::TooLarge`] for more than `u32::MAX - 1`
    /// pairs of edges; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(P log P)` time and `O(P)` memory for `P` pairs of edges.
    pub fn adj_product_graph(
        &self,
        etype: impl EdgeKey,
        other: &Self,
        other_etype: impl EdgeKey,
        weight: &str,
    ) -> Result<Self, GraphError> {
        let (t, o) = (self.schema().etype(etype)?, other.schema().etype(other_etype)?);
        let (first, second) = (&self.schema().etypes()[t], &other.schema().etypes()[o]);
        if first.dst != second.src {
            return Err(GraphError::Metapath {
                position: 1,
                etype: second.to_string(),
                expected: first.dst.clone(),
            });
        }
        let (a, b) = (self.in_memory(t)?, other.in_memory(o)?);
        check_len("nodes", "as the destinations of the first relation", a.num_dst(), b.num_src())
            .map_err(|e| e.in_relation(&second.to_string()))?;
        let new = EdgeType::new(&*first.src, ONE_RELATION, &*second.dst);
        let (w, other_w) =
            (self.edge_frames()[t].get::<1>(weight)?, other.edge_frames()[o].get::<1>(weight)?);
        let label = format!("edges of `{second}`");
        for (what, expected, actual) in [
            ("dtype", format!("{:?}", w.dtype()), format!("{:?}", other_w.dtype())),
            ("device", format!("{:?}", w.device()), format!("{:?}", other_w.device())),
        ] {
            if expected != actual {
                return Err(GraphError::ColumnMismatch {
                    frame: label,
                    name: weight.to_owned(),
                    what,
                    expected,
                    actual,
                });
            }
        }
        let product = Product::new(a, b).map_err(|e| e.in_relation(&new.to_string()))?;
        let device = w.device();
        let weights = if product.pairs.is_empty() {
            Column::new(w).filled(&label, weight, 0, 0.0)?
        } else {
            let index = |of: fn(&(u32, u32)) -> u32| {
                row_index(product.pairs.iter().map(|p| of(p) as usize), &device)
            };
            let terms = w.select(0, index(|p| p.0)) * other_w.select(0, index(|p| p.1));
            let groups = Groups { indptr: &product.indptr, order: None };
            Column::new(terms).combine(&label, weight, groups, Combine::Sum)?
        };
        let mut g = Self::builder().nodes(&new.src, a.num_src());
        if new.src != new.dst {
            g = g.nodes(&new.dst, b.num_dst());
        }
        let relation = Relation::from_coo(a.num_src(), b.num_dst(), product.src, product.dst)?;
        let mut g = g.relation(new, relation).build()?;
        g.edges_mut(0)?.insert_column(weight, weights)?;
        Ok(g)
    }
}

/// Remedy in errors of walks that do not fit into memory.
const SMALLER: &str = "choose a smaller `k` or a subgraph";

/// Number of walks of `k` edges, saturating at `u64::MAX`.
fn count_walks(csr: &Compressed, k: usize) -> u64 {
    // Number of walks from each node.
    let mut counts = vec![1u64; csr.num_rows()];
    for _ in 0..k {
        let row = |v: usize| {
            csr.indices()[csr.row(v)]
                .iter()
                .fold(0u64, |sum, &u| sum.saturating_add(counts[u as usize]))
        };
        let next: Vec<u64> =
            (0..counts.len()).into_par_iter().with_min_len(1 << 12).map(row).collect();
        counts = next;
        if counts.iter().all(|&n| n == 0) {
            break;
        }
    }
    counts.iter().fold(0, |sum: u64, &n| sum.saturating_add(n))
}

/// Number of walks of `k` edges from each of `sources` to each node, sorted; without pairs that no walk connects.
fn walks(
    csr: &Compressed,
    k: usize,
    sources: std::ops::Range<usize>,
) -> Result<Vec<(u32, u32, u64)>, GraphError> {
    let (mut counts, mut found) = (vec![0u64; csr.num_rows()], vec![]);
    let (mut here, mut met) = (vec![], vec![]);
    for source in sources {
        here.clear();
        here.push((source as u32, 1u64));
        for _ in 0..k {
            for &(v, walks) in &here {
                for &u in &csr.indices()[csr.row(v as usize)] {
                    let count = &mut counts[u as usize];
                    if *count == 0 {
                        met.push(u);
                    }
                    *count = count.saturating_add(walks);
                }
            }
            here.clear();
            here.extend(met.drain(..).map(|u| (u, std::mem::take(&mut counts[u as usize]))));
            if here.is_empty() {
                break;
            }
        }
        here.sort_unstable();
        reserve(
            &mut found,
            here.len(),
            || format!("pairs of nodes that walks of {k} edges join"),
            SMALLER,
        )?;
        found.extend(here.iter().map(|&(node, count)| (source as u32, node, count)));
    }
    Ok(found)
}

/// The edges of a product, with the pairs of edges that contribute to each.
struct Product {
    src: Vec<u32>,
    dst: Vec<u32>,
    /// Pairs of edge `i` are `indptr[i]..indptr[i + 1]`.
    indptr: Vec<u32>,
    /// Edge ids in the first and in the second relation.
    pairs: Vec<(u32, u32)>,
}

impl Product {
    fn new(a: &Relation, b: &Relation) -> Result<Self, GraphError> {
        let (first, second) = (a.csr(), b.csr());
        let count: u64 = a.dst().iter().map(|&m| second.row(m as usize).len() as u64).sum();
        check_limit("edges", count)?;
        let what = || format!("{count} pairs of edges");
        let mut pairs = room(u128::from(count), what, "multiply subgraphs with fewer edges")?;
        let (mut src, mut dst, mut indptr, mut of_source) = (vec![], vec![], vec![0], vec![]);
        for u in 0..a.num_src() {
            for p in first.row(u) {
                let middle = first.indices()[p] as usize;
                of_source.extend(
                    second
                        .row(middle)
                        .map(|q| (second.indices()[q], first.edge_id(p), second.edge_id(q))),
                );
            }
            of_source.sort_unstable();
            for group in of_source.chunk_by(|x, y| x.0 == y.0) {
                src.push(u as u32);
                dst.push(group[0].0);
                pairs.extend(group.iter().map(|&(_, e, f)| (e, f)));
                indptr.push(pairs.len() as u32);
            }
            of_source.clear();
        }
        check_counts(a.num_src(), b.num_dst(), src.len())?;
        Ok(Self { src, dst, indptr, pairs })
    }
}

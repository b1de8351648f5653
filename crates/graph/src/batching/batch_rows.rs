//! Top-k selection and broadcast of rows per graph of a batch.

use burn::tensor::{Int, Tensor, TensorData};

use crate::batching::batch::Batch;
use crate::features::frame::Frame;
use crate::features::row_index::row_index;
use burn_gnn_structure::internal::{check_len, filled, setting};
use burn_gnn_structure::{EdgeKey, GraphError, NodeKey};

/// Settings of [`Batch::topk_nodes`] and [`Batch::topk_edges`]: `k`, sort order, and sort column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopK {
    k: usize,
    ascending: bool,
    sort_by: Option<usize>,
}

impl TopK {
    /// Selects the `k` largest entries of each column independently.
    pub fn new(k: usize) -> Self {
        Self { k, ascending: false, sort_by: None }
    }
    /// Selects the smallest entries first (DGL: `descending=False`).
    #[must_use]
    pub fn with_ascending(mut self) -> Self {
        self.ascending = true;
        self
    }
    /// Selects whole rows, sorted by this column (DGL: `sortby`; SortPooling).
    #[must_use]
    pub fn with_sort_by(mut self, column: usize) -> Self {
        self.sort_by = Some(column);
        self
    }
}

/// The result of [`Batch::topk_nodes`] and [`Batch::topk_edges`].
#[derive(Clone, Debug)]
pub struct TopKRows {
    /// Selected values `[graphs, k, columns]`, padded with 0 for graphs with fewer than `k` rows. Gradients flow to the
    /// selected rows.
    pub values: Tensor<3>,
    /// Id of the node or edge of each entry in its graph, -1 for padding: `[graphs, k, columns]`, or `[graphs, k, 1]` for
    /// whole rows. 32-bit integers, or 64-bit integers for more than `i32::MAX` rows.
    pub indices: Tensor<3, Int>,
}

impl Batch {
    /// Selects the `k` largest or smallest entries of a node column `[nodes, columns]` in each graph. Equal entries are
    /// ordered by ascending id; NaN is last. As DGL's `topk_nodes`, except that infinities are kept, graphs without nodes
    /// are allowed, and the index of padding is -1.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::{Graph, TopK, batch};
    /// let (mut a, mut b) = (Graph::homogeneous(3, vec![], vec![])?, Graph::homogeneous(1, vec![], vec![])?);
    /// a.nodes_mut("_N")?.insert("h", Tensor::<2>::from_data([[1.0, 9.0], [3.0, 7.0], [2.0, 8.0]], &Device::flex()))?;
    /// b.nodes_mut("_N")?.insert("h", Tensor::<2>::from_data([[5.0, 6.0]], &Device::flex()))?;
    /// let all = batch([&a, &b])?;
    /// let each = all.topk_nodes("_N", "h", TopK::new(2))?; // every column by itself
    /// assert_eq!(each.values.into_data().try_to_vec::<f32>().unwrap(), [3.0, 9.0, 2.0, 8.0, 5.0, 6.0, 0.0, 0.0]);
    /// let rows = all.topk_nodes("_N", "h", TopK::new(2).with_sort_by(1))?; // whole rows by the second
    /// assert_eq!(rows.values.into_data().try_to_vec::<f32>().unwrap(), [1.0, 9.0, 2.0, 8.0, 5.0, 6.0, 0.0, 0.0]);
    /// assert_eq!(rows.indices.into_data().iter::<i64>().collect::<Vec<_>>(), [0, 2, 0, -1]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown type or column; another rank or kind; `k` is 0; a sort column out of range; [`GraphError::OutOfMemory`] if
    /// `graphs · k · columns` entries do not fit into memory.
    ///
    /// # Cost
    /// `O(rows · columns · log rows + graphs · k · columns)` on the CPU, to which the column is copied.
    pub fn topk_nodes(
        &self,
        ntype: impl NodeKey,
        column: &str,
        top: TopK,
    ) -> Result<TopKRows, GraphError> {
        let t = self.graph().schema().ntype(ntype)?;
        topk(&self.graph().node_frames()[t], self.num_nodes(t)?, column, top)
    }

    /// [`topk_nodes`](Self::topk_nodes) for an edge column.
    ///
    /// # Errors
    /// As [`topk_nodes`](Self::topk_nodes).
    pub fn topk_edges(
        &self,
        etype: impl EdgeKey,
        column: &str,
        top: TopK,
    ) -> Result<TopKRows, GraphError> {
        let t = self.graph().schema().etype(etype)?;
        topk(self.graph().edges(t)?, self.num_edges(t)?, column, top)
    }

    /// Repeats row `i` of `x` for every node of graph `i`: from `[graphs, ..]` to `[nodes, ..]`, the inverse of a readout.
    /// The gradient of a row is the sum over the nodes of its graph. For a batch without nodes the result is a constant
    /// without rows. As DGL's `broadcast_nodes`.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::{Graph, batch};
    /// let all = batch([&Graph::homogeneous(2, vec![0], vec![1])?, &Graph::homogeneous(1, vec![], vec![])?])?;
    /// let x = Tensor::<2>::from_data([[1.0], [2.0]], &Device::flex());
    /// let of_nodes = all.broadcast_nodes("_N", x)?;
    /// assert_eq!(of_nodes.into_data().try_to_vec::<f32>().unwrap(), [1.0, 1.0, 2.0]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown type; a number of rows other than that of graphs.
    pub fn broadcast_nodes<const D: usize>(
        &self,
        ntype: impl NodeKey,
        x: Tensor<D>,
    ) -> Result<Tensor<D>, GraphError> {
        broadcast(self.num_nodes(ntype)?, x)
    }

    /// [`broadcast_nodes`](Self::broadcast_nodes) for the edges of a type.
    ///
    /// # Errors
    /// As [`broadcast_nodes`](Self::broadcast_nodes).
    pub fn broadcast_edges<const D: usize>(
        &self,
        etype: impl EdgeKey,
        x: Tensor<D>,
    ) -> Result<Tensor<D>, GraphError> {
        broadcast(self.num_edges(etype)?, x)
    }
}

fn broadcast<const D: usize>(counts: &[usize], x: Tensor<D>) -> Result<Tensor<D>, GraphError> {
    check_len("x", "one row per graph", counts.len(), x.dims()[0])
        .map_err(|e| e.in_relation(""))?;
    let device = x.device();
    if counts.iter().all(|&n| n == 0) {
        // Some backends fail to launch a kernel without elements.
        let mut shape = x.dims();
        shape[0] = 0;
        return Ok(Tensor::from_data(
            TensorData::new(Vec::<f64>::new(), shape),
            (&device, x.dtype()),
        ));
    }
    Ok(x.select(
        0,
        row_index(
            counts.iter().enumerate().flat_map(|(graph, &n)| std::iter::repeat_n(graph, n)),
            &device,
        ),
    ))
}

fn topk(frame: &Frame, counts: &[usize], column: &str, top: TopK) -> Result<TopKRows, GraphError> {
    let x = frame.get::<2>(column)?;
    let ([rows, width], device, TopK { k, ascending, sort_by }) = (x.dims(), x.device(), top);
    if k == 0 {
        return Err(setting("k", "at least one row", "0"));
    }
    if let Some(by) = sort_by.filter(|&by| by >= width) {
        return Err(setting("sort_by", &format!("a column in 0..{width}"), &by.to_string()));
    }
    let keys: Vec<f64> = x.clone().into_data().iter::<f64>().collect();
    let order = |a: f64, b: f64| {
        let forth = if ascending { a.partial_cmp(&b) } else { b.partial_cmp(&a) };
        forth.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
    };
    let of_row = if sort_by.is_some() { 1 } else { width };
    let size = |columns: usize| {
        (counts.len() as u128).saturating_mul(k as u128).saturating_mul(columns as u128)
    };
    let what = || format!("the first {k} rows of {} graphs with {width} columns", counts.len());
    let remedy = "choose a smaller `k`: graphs with fewer rows are filled up with zeros";
    // Positions of the selected values in row-major order; the position after the last value holds 0, for padding.
    let mut places = filled(rows * width, size(width), what, remedy)?;
    let mut indices = filled(-1i64, size(of_row), what, remedy)?;
    let (mut start, mut ids) = (0, vec![]);
    for (graph, &n) in counts.iter().enumerate() {
        for column in 0..of_row {
            let key = |row: usize| keys[(start + row) * width + sort_by.unwrap_or(column)];
            ids.clear();
            ids.extend(0..n);
            ids.sort_by(|&a, &b| order(key(a), key(b)));
            for (rank, &row) in ids.iter().take(k).enumerate() {
                let at = graph * k + rank;
                indices[at * of_row + column] = row as i64;
                let columns = if sort_by.is_some() { 0..width } else { column..column + 1 };
                columns.for_each(|c| places[at * width + c] = (start + row) * width + c);
            }
        }
        start += n;
    }
    let dtype = x.dtype();
    let zero = Tensor::<1>::from_data(TensorData::new(vec![0.0f64], [1]), (&device, dtype));
    let shape = [counts.len(), k, width];
    let values = if shape.contains(&0) {
        Tensor::from_data(TensorData::new(Vec::<f64>::new(), shape), (&device, dtype))
    } else if rows == 0 {
        zero.expand([shape[0] * k * width]).reshape(shape)
    } else {
        Tensor::cat(vec![x.reshape([rows * width]), zero], 0)
            .select(0, row_index(places.into_iter(), &device))
            .reshape(shape)
    };
    let shape = [counts.len(), k, of_row];
    let indices = if counts.iter().all(|&n| i32::try_from(n).is_ok()) {
        TensorData::new(indices.into_iter().map(|i| i as i32).collect(), shape)
    } else {
        TensorData::new(indices, shape)
    };
    let dtype = indices.dtype();
    Ok(TopKRows { values, indices: Tensor::from_data(indices, (&device, dtype)) })
}

#[cfg(test)]
mod tests {
    use burn::tensor::{DType, Device};
    use burn_gnn_testutil::devices;
    use proptest::prelude::*;

    use super::*;
    use crate::batching::batch::batch;
    use crate::graph::Graph;

    fn graphs(sizes: &[Vec<[i8; 2]>], device: &Device) -> Batch {
        let graphs: Vec<Graph> = sizes
            .iter()
            .map(|rows| {
                let mut g = Graph::builder().nodes("x", rows.len()).nodes("hub", 1);
                g = g.edges(
                    ("x", "to", "hub"),
                    (0..rows.len() as u32).collect(),
                    vec![0; rows.len()],
                );
                let mut g = g.build().unwrap();
                let values: Vec<f64> = rows.iter().flatten().map(|&v| f64::from(v)).collect();
                let h = || {
                    Tensor::<2>::from_data(
                        TensorData::new(values.clone(), [rows.len(), 2]),
                        (device, DType::F64),
                    )
                };
                g.nodes_mut("x").unwrap().insert("h", h()).unwrap();
                g.edges_mut("to").unwrap().insert("h", h()).unwrap();
                g
            })
            .collect();
        batch(&graphs).unwrap()
    }

    fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f64> {
        x.into_data().iter::<f64>().collect()
    }

    proptest! {
        /// Graphs of 0 to 5 rows with many ties, nodes and edges.
        #[test]
        fn as_by_sorting(sizes in prop::collection::vec(prop::collection::vec([-2i8..3, -2i8..3], 0..6), 1..5), k in 1usize..5, ascending in any::<bool>(), by in prop::option::of(0usize..2)) {
            let top = TopK { k, ascending, sort_by: by };
            let (mut values, mut indices) = (vec![], vec![]);
            for rows in &sizes {
                let ranked = |column: usize| {
                    let mut ids: Vec<usize> = (0..rows.len()).collect();
                    ids.sort_by_key(|&i| (if ascending { rows[i][column] } else { -rows[i][column] }, i));
                    ids
                };
                let ranks = [0, 1].map(|column| ranked(by.unwrap_or(column)));
                for rank in 0..k {
                    for (column, of) in ranks.iter().enumerate() {
                        values.push(of.get(rank).map_or(0.0, |&i| f64::from(rows[i][column])));
                        if by.is_none() || column == 0 {
                            indices.push(of.get(rank).map_or(-1, |&i| i as i64));
                        }
                    }
                }
            }
            for device in devices() {
                let all = graphs(&sizes, &device);
                for found in [all.topk_nodes("x", "h", top).unwrap(), all.topk_edges("to", "h", top).unwrap()] {
                    prop_assert_eq!(found.values.dims(), [sizes.len(), k, 2]);
                    prop_assert_eq!(found.indices.dtype(), DType::I32);
                    prop_assert_eq!(found.indices.dims(), [sizes.len(), k, if by.is_some() { 1 } else { 2 }]);
                    prop_assert_eq!(numbers(found.values), values.clone());
                    prop_assert_eq!(found.indices.into_data().iter::<i64>().collect::<Vec<_>>(), indices.clone());
                }
                let x = Tensor::<1>::from_data(TensorData::new((0..sizes.len()).map(|i| i as f64).collect(), [sizes.len()]), (&device, DType::F64));
                let want: Vec<f64> = sizes.iter().enumerate().flat_map(|(i, rows)| vec![i as f64; rows.len()]).collect();
                prop_assert_eq!(numbers(all.broadcast_nodes("x", x.clone()).unwrap()), want.clone());
                prop_assert_eq!(numbers(all.broadcast_edges("to", x).unwrap()), want);
            }
        }
    }

    #[test]
    fn gradients_infinities_and_nan() {
        for device in devices() {
            let device = device.autodiff();
            let rows = [[f64::NEG_INFINITY], [f64::NAN], [2.0], [f64::INFINITY]];
            let x = Tensor::<2>::from_data(rows, (&device, DType::F64)).require_grad();
            let mut g = Graph::homogeneous(4, vec![], vec![]).unwrap();
            g.nodes_mut("_N").unwrap().insert("h", x.clone()).unwrap();
            let all = Batch::new(g, vec![vec![1, 3]], vec![vec![0, 0]]).unwrap();
            let top = all.topk_nodes("_N", "h", TopK::new(2)).unwrap();
            assert_eq!(numbers(top.values.clone()), [f64::NEG_INFINITY, 0.0, f64::INFINITY, 2.0]);
            let grads = top.values.sum().backward();
            assert_eq!(numbers(x.grad(&grads).unwrap()), [1.0, 0.0, 1.0, 1.0]);
            let rising = all.topk_nodes("_N", "h", TopK::new(3).with_ascending()).unwrap();
            assert_eq!(
                rising.indices.into_data().iter::<i64>().collect::<Vec<_>>(),
                [0, -1, -1, 1, 2, 0]
            );
            let y = Tensor::<2>::ones([2, 3], (&device, DType::F64)).require_grad();
            let grads = all.broadcast_nodes("_N", y.clone()).unwrap().sum().backward();
            assert_eq!(numbers(y.grad(&grads).unwrap()), [1.0, 1.0, 1.0, 3.0, 3.0, 3.0]);
        }
    }

    /// Graphs without nodes: results without rows, also under autodiff.
    #[test]
    fn nothing_to_choose_or_repeat() {
        for device in devices() {
            let device = device.autodiff();
            let none = batch(&[
                Graph::homogeneous(0, vec![], vec![]).unwrap(),
                Graph::homogeneous(0, vec![], vec![]).unwrap(),
            ])
            .unwrap();
            let x = Tensor::<2>::ones([2, 3], &device).require_grad();
            let wide = none.broadcast_nodes("_N", x.clone()).unwrap();
            assert_eq!(wide.dims(), [0, 3]);
            // What is added to a loss is 0, with gradient 0.
            let grads = (wide.sum() + x.clone().sum()).backward();
            assert_eq!(numbers(x.grad(&grads).unwrap()), [1.0; 6]);
            let no_graphs = Tensor::<2>::ones([0, 3], &device);
            assert!(none.broadcast_edges("_E", no_graphs).is_err());
        }
    }

    #[test]
    fn what_is_refused() {
        let all = graphs(&[vec![[1, 2]], vec![]], &Device::flex());
        let text = |r: Result<TopKRows, GraphError>| r.unwrap_err().to_string();
        assert_eq!(
            text(all.topk_nodes("x", "h", TopK::new(0))),
            "`k`: expected at least one row, got 0"
        );
        assert_eq!(
            text(all.topk_edges("to", "h", TopK::new(1).with_sort_by(2))),
            "`sort_by`: expected a column in 0..2, got 2"
        );
        assert!(text(all.topk_nodes("x", "y", TopK::new(1))).contains("no column `y`"));
        for k in [usize::MAX, 1 << 50] {
            let e = all.topk_nodes("x", "h", TopK::new(k)).unwrap_err();
            assert!(
                matches!(&e, GraphError::OutOfMemory { bytes, .. } if *bytes == 2 * 2 * 8 * k as u128),
                "{e}"
            );
        }
        let x = Tensor::<2>::ones([3, 1], &Device::flex());
        let e = all.broadcast_nodes("x", x).unwrap_err();
        assert_eq!(
            e.to_string(),
            "`x`: expected length 2 (one row per graph), got 3; give 2 entries"
        );
    }
}

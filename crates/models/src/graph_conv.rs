//! The graph convolution of Kipf and Welling.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_ops::{GraphView, copy_u_sum, matmul_rows, u_mul_e_sum};

use crate::init;

/// How messages are normalised by degree; a degree of 0 counts as 1.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum DegreeNorm {
    /// `l_u = r_v = 1`.
    None,
    /// `l_u = 1 / deg_out(u)`.
    Left,
    /// `r_v = 1 / deg_in(v)`.
    Right,
    /// `l_u = deg_out(u)^-1/2`, `r_v = deg_in(v)^-1/2`.
    Both,
}

/// Describes a [`GraphConv`].
#[derive(Config, Debug)]
pub struct GraphConvConfig {
    /// Columns of the input.
    pub d_input: usize,
    /// Columns of the output.
    pub d_output: usize,
    /// Normalisation by degree.
    #[config(default = "DegreeNorm::Both")]
    pub norm: DegreeNorm,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// Seed of the initial weights.
    #[config(default = 0)]
    pub seed: u64,
    /// Name that keys initial weights; give layers of one model different names.
    #[config(default = "String::from(\"graph_conv\")")]
    pub name: String,
}

/// Graph convolution, `y[v] = r_v · Σ_(u,v,e) l_u · w_e · x[u] W + b`.
///
/// `l` and `r` are set by [`DegreeNorm`]. Edge weights do not enter the degrees. Self loops are the
/// graph's affair: the paper adds them (`Graph::with_self_loops`).
///
/// # Shapes
/// `x: [num_input, d_input]`, `w: [num_edges]` in edge-id order, output `[num_dst, d_output]`.
/// A destination without in-edges gets the bias.
///
/// Weights are multiplied before aggregation when that makes rows narrower, so the halo exchange and
/// the sum move `min(d_input, d_output)` columns.
///
/// # Paper
/// Kipf and Welling, "Semi-supervised classification with graph convolutional networks", ICLR 2017.
#[derive(Module, Debug)]
pub struct GraphConv {
    /// `[d_input, d_output]`.
    pub weight: Param<Tensor<2>>,
    /// `[d_output]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    norm: DegreeNorm,
}

impl GraphConvConfig {
    /// Weights by Glorot's rule, bias 0.
    pub fn init(&self, device: &Device) -> GraphConv {
        let weight =
            init::glorot(self.seed, &format!("{}/weight", self.name), [self.d_input, self.d_output], (self.d_input, self.d_output), device);
        GraphConv { weight, bias: self.bias.then(|| init::zeros(self.d_output, device)), norm: self.norm }
    }
}

/// `[n, 1]` of `degree^power`, degrees at least 1.
fn scale(degrees: &[u32], power: f64, like: &Tensor<2>) -> Tensor<2> {
    let values: Vec<f64> = degrees.iter().map(|&d| f64::from(d.max(1)).powf(power)).collect();
    let n = values.len();
    Tensor::from_data(TensorData::new(values, [n, 1]), (&like.device().without_autodiff(), like.dtype()))
}

impl GraphConv {
    /// On edge type 0 of a graph of one type.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    #[track_caller]
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>) -> Tensor<2> {
        self.forward_on(g, 0, x, None)
    }

    /// On one edge type; `x` holds input rows of its source type, `edge_weight` one number per edge.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    #[track_caller]
    pub fn forward_on<G: GraphView + ?Sized>(&self, g: &G, etype: usize, x: Tensor<2>, edge_weight: Option<Tensor<1>>) -> Tensor<2> {
        let [d_input, d_output] = self.weight.val().dims();
        let before = d_input > d_output;
        let x = if before { matmul_rows(x, self.weight.val()) } else { x };
        let (ntype, _) = g.schema().ends(etype);
        // One exchange for all types: the others travel with no columns.
        let mut rows: Vec<Tensor<2>> = (0..g.schema().ntypes().len())
            .map(|t| if t == ntype { x.clone() } else { Tensor::zeros([g.num_dst(t), 0], (&x.device(), x.dtype())) })
            .collect();
        rows = g.src_rows("graph_conv", rows);
        let mut h = rows.swap_remove(ntype);
        let (left, right) = match self.norm {
            DegreeNorm::None => (0.0, 0.0),
            DegreeNorm::Left => (-1.0, 0.0),
            DegreeNorm::Right => (0.0, -1.0),
            DegreeNorm::Both => (-0.5, -0.5),
        };
        if left != 0.0 {
            let l = scale(&g.out_degrees(etype), left, &h);
            h = h * l;
        }
        let relation = g.relation(etype);
        let mut h = match edge_weight {
            None => copy_u_sum(relation, h),
            Some(w) => u_mul_e_sum(relation, h, w),
        };
        if right != 0.0 {
            let r = scale(&g.in_degrees(etype), right, &h);
            h = h * r;
        }
        let h = if before { h } else { matmul_rows(h, self.weight.val()) };
        match &self.bias {
            Some(b) => h + b.val().unsqueeze(),
            None => h,
        }
    }
}

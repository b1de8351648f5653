//! Gated graph convolution: messages read by a recurrent unit.

use burn::config::Config;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_ops::{Activation, GraphView, RelationalWeight, matmul_rows, relational_aggregate};

use crate::ModelError;
use crate::mlp::{apply, linear, sigmoid};
use crate::pretrained::{Framework, Pretrained, Their};
use crate::relations::Sorted;

/// Describes a [`GatedGraphConv`].
#[derive(Config, Debug)]
pub struct GatedGraphConvConfig {
    /// Columns of states; narrower input is filled up with zeros.
    pub hidden: usize,
    /// Number of steps.
    pub steps: usize,
    /// Number of edge types.
    #[config(default = 1)]
    pub num_etypes: usize,
    /// Seed of the initial weights.
    #[config(default = 0)]
    pub seed: u64,
    /// Name that keys initial weights; give layers of one model different names.
    #[config(default = "String::from(\"gated_graph_conv\")")]
    pub name: String,
}

/// Gated graph convolution. With `h⁰ = [x, 0]` and the same weights in every step,
///
/// ```text
/// a[v] = Σ_r Σ_(u,v) in r (hᵗ[u] W_r + b_r)
/// hᵗ⁺¹ = GRU(a, hᵗ)
/// ```
///
/// # Shapes
/// A graph of one node type and any number of edge types; `x: [num_input, up to hidden]`, output `[num_dst, hidden]`.
/// All input rows must be computed rows: a whole graph or a partition, no block. A node without in-edges reads `a = 0`.
///
/// # Departures from the paper
/// Edges run one way; the paper's second direction is an edge type (`Graph::with_inverse_relations`).
///
/// # Cost
/// One [`relational_aggregate`] over all edge types and one exchange per step.
///
/// # Paper
/// Li, Tarlow, Brockschmidt, Zemel, "Gated graph sequence neural networks", ICLR 2016.
#[derive(Module, Debug)]
pub struct GatedGraphConv {
    /// `W_r: [hidden, hidden]` and `b_r`, per edge type.
    pub linears: Vec<Linear>,
    /// `[hidden, 3 · hidden]` and a bias: reset, update and new gate of messages.
    pub ih: Linear,
    /// The same of states.
    pub hh: Linear,
    #[module(skip)]
    steps: usize,
    #[module(skip)]
    sorted: Sorted,
}

impl GatedGraphConvConfig {
    /// A layer for all edge types of `g`.
    pub fn from_graph<G: GraphView + ?Sized>(g: &G, hidden: usize, steps: usize) -> Self {
        Self::new(hidden, steps).with_num_etypes(g.schema().etypes().len())
    }

    /// Weights by Glorot's rule, biases 0.
    ///
    /// # Errors
    /// No columns.
    pub fn try_init(&self, device: &Device) -> Result<GatedGraphConv, ModelError> {
        ModelError::check_sizes(&[("hidden", self.hidden)], 0.0)?;
        let d = self.hidden;
        let linear = |part: String, o| linear(self.seed, &format!("{}/{part}", self.name), [d, o], true, device);
        Ok(GatedGraphConv {
            linears: (0..self.num_etypes).map(|r| linear(format!("linears/{r}"), d)).collect(),
            ih: linear("ih".into(), 3 * d),
            hh: linear("hh".into(), 3 * d),
            steps: self.steps,
            sorted: Sorted::default(),
        })
    }

    /// [`try_init`](Self::try_init), panicking with its message.
    ///
    /// # Panics
    /// As [`try_init`](Self::try_init) errs.
    #[track_caller]
    pub fn init(&self, device: &Device) -> GatedGraphConv {
        self.try_init(device).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl GatedGraphConv {
    /// States after all steps.
    ///
    /// # Panics
    /// A graph of several node types, another number of edge types, a block, an input wider than `hidden`.
    #[track_caller]
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>) -> Tensor<2> {
        let (schema, [d, _]) = (g.schema(), self.hh.weight.val().dims());
        assert_eq!(schema.ntypes().len(), 1, "gated_graph_conv: node types of the graph");
        assert_eq!(schema.etypes().len(), self.linears.len(), "`num_etypes` of the layer and edge types of the graph");
        let [rows, columns] = x.dims();
        assert!(columns <= d, "gated_graph_conv: `x` must have up to {d} columns (`hidden`), got {columns}");
        let computed = g.num_dst(0);
        assert!(
            rows == computed,
            "gated_graph_conv: `x` has {rows} rows of which {computed} are computed; several steps need a whole graph or a partition"
        );
        let (device, dtype) = (x.device().without_autodiff(), x.dtype());
        let fill = Tensor::<2>::zeros([rows, d - columns], (&device, dtype));
        let h = if columns == d || rows == 0 { x } else { Tensor::cat(vec![x, fill], 1) };
        let sorted = self.sorted.of(g);
        let Some(incoming) = &sorted[0] else {
            let none = Tensor::zeros([rows, d], (&device, dtype));
            return (0..self.steps).fold(h, |h, _| self.unit(none.clone(), h));
        };
        let weight: Tensor<3> = Tensor::stack(incoming.etypes.iter().map(|&r| self.linears[r].weight.val()).collect(), 0);
        // Every message brings its bias: as many as the node has in-edges of the type.
        let counts: Vec<Vec<u32>> = incoming.etypes.iter().map(|&r| g.relation(r).in_degrees().collect()).collect();
        let counts: Vec<f64> = (0..rows).flat_map(|v| counts.iter().map(move |c| f64::from(c[v]))).collect();
        let counts = Tensor::<2>::from_data(TensorData::new(counts, [rows, incoming.etypes.len()]), (&device, dtype));
        let biases = incoming.etypes.iter().filter_map(|&r| self.linears[r].bias.as_ref()).map(|b| b.val()).collect::<Vec<_>>();
        let bias = (!biases.is_empty()).then(|| matmul_rows(counts, Tensor::stack(biases, 0)));
        (0..self.steps).fold(h, |h, _| {
            let src = g.src_rows("gated_graph_conv", vec![h.clone()]).swap_remove(0);
            let a = relational_aggregate(&incoming.index, src, RelationalWeight::Full(weight.clone()), None);
            let a = match &bias {
                Some(bias) => a + bias.clone(),
                None => a,
            };
            self.unit(a, h)
        })
    }

    /// A gated recurrent unit (Cho et al., 2014) with PyTorch's gates: `r`, `z`, `n`.
    fn unit(&self, a: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        let d = h.dims()[1];
        let (a, b) = (apply(&self.ih, a, Activation::None), apply(&self.hh, h.clone(), Activation::None));
        let gate = |x: &Tensor<2>, k: usize| x.clone().slice_dim(1, k * d..(k + 1) * d);
        let r = sigmoid(gate(&a, 0) + gate(&b, 0));
        let z = sigmoid(gate(&a, 1) + gate(&b, 1));
        let n = (gate(&a, 2) + r * gate(&b, 2)).tanh();
        (z.clone().neg() + 1.0) * n + z * h
    }
}

impl Pretrained for GatedGraphConv {
    /// DGL's names. PyG's layer has a matrix for every step where this one has one per edge type: its weights do not fit.
    fn their(&self, _from: Framework, path: &str) -> Their {
        match path.split_once('.') {
            Some((part @ ("ih" | "hh"), field)) => Their::same(format!("gru.{field}_{part}")),
            _ => Their::same(path),
        }
    }
}

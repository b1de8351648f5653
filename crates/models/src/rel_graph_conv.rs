//! The relational graph convolution.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{GraphView, copy_u_mean, copy_u_sum, matmul_rows, u_mul_e_mean, u_mul_e_sum};

use crate::{ModelError, init};

/// How the weights of relations are tied.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum RelWeights {
    /// One matrix per relation.
    Full,
    /// `W_r = Σ_b coeff[r, b] · B_b` with this many bases.
    Basis(usize),
    /// `W_r` is block-diagonal with this many blocks of `d_input / B × d_output / B`.
    BlockDiagonal(usize),
}

/// How messages of one relation are normalised.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum RelNorm {
    /// `1 / in-degree of v in the relation`, as in the paper.
    Right,
    /// None: plain sums.
    None,
}

/// Describes a [`RelGraphConv`].
#[derive(Config, Debug)]
pub struct RelGraphConvConfig {
    /// Columns of the input, for every node type.
    pub d_input: usize,
    /// Columns of the output.
    pub d_output: usize,
    /// Number of edge types of the schema.
    pub num_relations: usize,
    /// How relations share weights.
    #[config(default = "RelWeights::Full")]
    pub weights: RelWeights,
    /// Normalisation of messages.
    #[config(default = "RelNorm::Right")]
    pub norm: RelNorm,
    /// Whether a node's own row takes part, by one weight shared by all types.
    #[config(default = true)]
    pub self_loop: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// Seed of the initial weights.
    #[config(default = 0)]
    pub seed: u64,
    /// Name that keys initial weights; give layers of one model different names.
    #[config(default = "String::from(\"rel_graph_conv\")")]
    pub name: String,
}

/// Relational graph convolution, `y[v] = Σ_r Σ_(u,v,e) in r c_e · x[u] W_r + x[v] W_0 + b`.
///
/// `c_e` is `1 / in-degree of v in r` ([`RelNorm::Right`]) or 1, times the edge's weight where weights
/// are given. Inverse relations are the graph's affair (`Graph::with_inverse_relations`).
///
/// # Shapes
/// `x[t]: [num_input of type t, d_input]`; the result has one `[num_dst of type t, d_output]` per node type.
/// A node that no relation reaches gets its own term and the bias.
///
/// # Departures from the paper
/// None in the formula. Blocks of the block-diagonal form follow DGL: consecutive columns.
///
/// # Cost
/// Per relation one GSpMM and one product over the narrower side; one halo exchange per layer for all
/// node types. A relation without edges anywhere is skipped on every rank.
///
/// # Paper
/// Schlichtkrull, Kipf, Bloem, van den Berg, Titov, Welling, "Modeling relational data with graph
/// convolutional networks", ESWC 2018.
#[derive(Module, Debug)]
pub struct RelGraphConv {
    /// `[R, d_input, d_output]`; bases: `[B, d_input, d_output]`; blocks: `[R · B, d_input / B, d_output / B]`.
    pub weight: Param<Tensor<3>>,
    /// Bases only: `[R, B]`.
    pub coeff: Option<Param<Tensor<2>>>,
    /// `[d_input, d_output]`.
    pub loop_weight: Option<Param<Tensor<2>>>,
    /// `[d_output]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    weights: RelWeights,
    #[module(skip)]
    norm: RelNorm,
    #[module(skip)]
    num_relations: usize,
}

impl RelGraphConvConfig {
    /// Weights by Glorot's rule, bias 0.
    ///
    /// # Errors
    /// No bases or blocks, or blocks that do not divide both widths.
    pub fn try_init(&self, device: &Device) -> Result<RelGraphConv, ModelError> {
        let (r, i, o) = (self.num_relations, self.d_input, self.d_output);
        let name = |p: &str| format!("{}/{p}", self.name);
        let glorot3 = |shape: [usize; 3]| init::glorot(self.seed, &name("weight"), shape, (shape[1], shape[2]), device);
        let positive = |arg: &str, n: usize| {
            if n > 0 { Ok(()) } else { Err(ModelError::OutOfRange { arg: arg.into(), range: "1..".into(), value: "0".into() }) }
        };
        let (weight, coeff) = match self.weights {
            RelWeights::Full => (glorot3([r, i, o]), None),
            RelWeights::Basis(b) => {
                positive("bases", b)?;
                (glorot3([b, i, o]), Some(init::glorot(self.seed, &name("coeff"), [r, b], (r, b), device)))
            }
            RelWeights::BlockDiagonal(b) => {
                positive("blocks", b)?;
                for (what, of) in [("d_input", i), ("d_output", o)] {
                    if of % b != 0 {
                        return Err(ModelError::NotDivisible { arg: "blocks", value: b, what, of });
                    }
                }
                (glorot3([r * b, i / b, o / b]), None)
            }
        };
        Ok(RelGraphConv {
            weight,
            coeff,
            loop_weight: self.self_loop.then(|| init::glorot(self.seed, &name("loop_weight"), [i, o], (i, o), device)),
            bias: self.bias.then(|| init::zeros(o, device)),
            weights: self.weights,
            norm: self.norm,
            num_relations: r,
        })
    }

    /// [`try_init`](Self::try_init), panicking with its message.
    ///
    /// # Panics
    /// As [`try_init`](Self::try_init) errs.
    #[track_caller]
    pub fn init(&self, device: &Device) -> RelGraphConv {
        self.try_init(device).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl RelGraphConv {
    /// Rows of every node type from input rows of every node type.
    ///
    /// # Panics
    /// Shapes or numbers of types that disagree with the graph.
    #[track_caller]
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
        self.forward_weighted(g, x, &[])
    }

    /// [`forward`](Self::forward) with edge weights `[num_edges]` for some edge types (`edge_weights[r]`,
    /// shorter lists mean no weight). Weights multiply messages and do not enter degrees.
    ///
    /// # Panics
    /// Shapes or numbers of types that disagree with the graph.
    #[track_caller]
    pub fn forward_weighted<G: GraphView + ?Sized>(&self, g: &G, x: Vec<Tensor<2>>, edge_weights: &[Option<Tensor<1>>]) -> Vec<Tensor<2>> {
        let schema = g.schema();
        assert_eq!(schema.etypes().len(), self.num_relations, "`num_relations` of the layer and edge types of the graph");
        assert_eq!(schema.ntypes().len(), x.len(), "`x` holds one tensor per node type");
        let [d_input, d_output] = self.widths();
        let src = g.src_rows("rel_graph_conv", x.clone());
        let matrices = self.coeff.as_ref().map(|c| {
            let [b, i, o] = self.weight.val().dims();
            c.val().matmul(self.weight.val().reshape([b, i * o])).reshape([self.num_relations, i, o])
        });
        // A statically narrower side first: the same choice on every rank and for every number of parts.
        let before = d_input > d_output;
        let mut out: Vec<Option<Tensor<2>>> = vec![None; x.len()];
        for r in 0..self.num_relations {
            if g.total_edges(r) == 0 {
                continue;
            }
            let (s, d) = schema.ends(r);
            let multiply = |h: Tensor<2>| self.multiply(h, r, matrices.as_ref());
            let relation = g.relation(r);
            let aggregate = |h: Tensor<2>| match (edge_weights.get(r).cloned().flatten(), self.norm) {
                (None, RelNorm::Right) => copy_u_mean(relation, h),
                (None, RelNorm::None) => copy_u_sum(relation, h),
                (Some(w), RelNorm::None) => u_mul_e_sum(relation, h, w),
                (Some(w), RelNorm::Right) => u_mul_e_mean(relation, h, w),
            };
            let h = src[s].clone();
            let y = if before { aggregate(multiply(h)) } else { multiply(aggregate(h)) };
            out[d] = Some(match out[d].take() {
                Some(sum) => sum + y,
                None => y,
            });
        }
        let finish = |(t, (sum, x)): (usize, (Option<Tensor<2>>, Tensor<2>))| {
            let (device, dtype) = (x.device(), x.dtype());
            let own = self.loop_weight.as_ref().map(|w| matmul_rows(g.dst_rows(t, x), w.val()));
            let y = match (sum, own) {
                (Some(a), Some(b)) => a + b,
                (Some(a), None) | (None, Some(a)) => a,
                (None, None) => Tensor::zeros([g.num_dst(t), d_output], (&device, dtype)),
            };
            match &self.bias {
                Some(b) => y + b.val().unsqueeze(),
                None => y,
            }
        };
        out.into_iter().zip(x).enumerate().map(finish).collect()
    }

    fn widths(&self) -> [usize; 2] {
        let [_, i, o] = self.weight.val().dims();
        match self.weights {
            RelWeights::BlockDiagonal(b) => [i * b, o * b],
            _ => [i, o],
        }
    }

    /// `h W_r`.
    fn multiply(&self, h: Tensor<2>, r: usize, matrices: Option<&Tensor<3>>) -> Tensor<2> {
        if let RelWeights::BlockDiagonal(b) = self.weights {
            let blocks = self.weight.val();
            let [_, i, o] = blocks.dims();
            let parts = (0..b).map(|k| {
                let w = blocks.clone().slice_dim(0, r * b + k..r * b + k + 1).reshape([i, o]);
                matmul_rows(h.clone().slice_dim(1, k * i..(k + 1) * i), w)
            });
            return Tensor::cat(parts.collect(), 1);
        }
        let all = matrices.cloned().unwrap_or_else(|| self.weight.val());
        let [_, i, o] = all.dims();
        matmul_rows(h, all.slice_dim(0, r..r + 1).reshape([i, o]))
    }
}

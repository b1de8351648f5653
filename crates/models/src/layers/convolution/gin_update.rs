//! The perceptron and the coefficient ε that `GinConv` and `GineConv` share.

use burn::module::Param;
use burn::tensor::Tensor;

use crate::error::ModelError;
use crate::layers::dense::mlp::Mlp;
use crate::params::init::Init;
use crate::pretrained::buffers::Buffer;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, indexed};

/// Computes `MLP((1 + ε) · x[v] + sum[v])`.
pub(crate) struct GinUpdate<'a> {
    /// `None`: the identity.
    pub(crate) nn: Option<&'a Mlp>,
    /// A learned ε, `[1]`.
    pub(crate) eps: Option<&'a Param<Tensor<1>>>,
    /// ε if it is not learned.
    pub(crate) init_eps: f64,
}

/// Initializes perceptron and ε.
pub(crate) fn init(
    widths: &[usize],
    (init_eps, learn_eps): (f64, bool),
    init: Init<'_>,
) -> Result<(Option<Mlp>, Option<Param<Tensor<1>>>), ModelError> {
    ModelError::check_finite("init_eps", init_eps)?;
    let nn = (!widths.is_empty()).then(|| Mlp::new(widths, true, init)).transpose()?;
    Ok((nn, learn_eps.then(|| Param::from_tensor(Tensor::full([1], init_eps, init.device)))))
}

impl GinUpdate<'_> {
    /// Feature size that the perceptron reads from sources and destinations.
    pub(crate) fn input_sizes(&self) -> [Option<usize>; 2] {
        let first = self.nn.and_then(|nn| nn.layers.first());
        [first.map(|layer| layer.weight.val().dims()[0]); 2]
    }

    pub(crate) fn forward(&self, dst: Tensor<2>, sum: Tensor<2>) -> Tensor<2> {
        let dst = match self.eps {
            Some(eps) => dst * (eps.val() + 1.0).unsqueeze(),
            None => dst * (1.0 + self.init_eps),
        };
        match self.nn {
            Some(nn) => nn.forward(dst + sum),
            None => dst + sum,
        }
    }

    /// The perceptron is a `Linear`, a `Sequential` with ReLU between its layers, or an `MLP` in the other framework.
    pub(crate) fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        let (module, list) =
            if from == Framework::Dgl { ("apply_func", "linears") } else { ("nn", "lins") };
        match path.strip_prefix("nn.").and_then(indexed) {
            Some(("layers", i, field)) => match self.nn.map(|nn| nn.layers.len()) {
                Some(1) => ParamMapping::same(format!("{module}.{field}")),
                _ => ParamMapping::same(format!("{module}.{}.{field}", 2 * i)),
            }
            .or(format!("{module}.{list}.{i}.{field}")),
            _ => ParamMapping::same(path),
        }
    }

    /// Both frameworks store an ε that is not learned as a buffer.
    pub(crate) fn buffers(&self) -> Vec<Buffer> {
        match self.eps {
            Some(_) => vec![],
            None => vec![Buffer::option("eps", self.init_eps, "init_eps")],
        }
    }
}

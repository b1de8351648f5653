//! Losses of links and their negatives.

use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use burn_gnn_models::ModelError;
use burn_gnn_ops::div_by;
use serde::{Deserialize, Serialize};

use super::functions::{log_sum_exp, softplus, weights};

/// Loss of links with scores `p` and `k` negatives each with scores `s`; `σ(x) = 1 / (1 + e⁻ˣ)`.
///
/// Every loss is a mean over links. A negative whose score is -∞ is ignored, but counts in means over `k`: this is how a
/// drawn negative that is a known link is left out.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_links::LinkLoss;
/// let device = Device::flex();
/// let links = Tensor::<1>::from_data([3.0, 2.0], &device);
/// let negatives = Tensor::<2>::from_data([[0.0, -1.0], [1.0, f32::NEG_INFINITY]], &device);
/// let loss = LinkLoss::Bpr.forward(links, negatives).into_scalar::<f32>();
/// assert!(loss > 0.0 && loss < 0.1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkLoss {
    /// Binary cross entropy, `-log σ(p) - mean_j log σ(-s_j)`: links and negatives have the same weight.
    Bce,
    /// `mean_j max(0, margin - p + s_j)` (Bordes et al., NeurIPS 2013).
    Margin {
        /// Difference of scores above which a negative has no gradient.
        margin: f64,
    },
    /// Bayesian personalised ranking, `-mean_j log σ(p - s_j)` (Rendle, Freudenthaler, Gantner, Schmidt-Thieme, UAI 2009).
    Bpr,
    /// Softmax of the link among its negatives, `-log(e^p / (e^p + Σ_j e^(s_j)))`. With
    /// [`forward_corrected`](Self::forward_corrected) it estimates the softmax over all candidates.
    SampledSoftmax,
    /// Softmax at a temperature, `-log(e^(p/τ) / (e^(p/τ) + Σ_j e^(s_j/τ)))` (van den Oord, Li, Vinyals, 2018).
    InfoNce {
        /// Temperature `τ`, above 0.
        temperature: f64,
    },
    /// `-log σ(γ + p) - Σ_j w_j log σ(-γ - s_j)` with weights `w = softmax(α s)` that are not differentiated (Sun, Deng,
    /// Nie, Tang, ICLR 2019). Scores are negative distances, as those of `RotatE` and `TransE`.
    SelfAdversarial {
        /// Margin `γ`.
        margin: f64,
        /// Temperature `α`: 0 weighs negatives equally.
        temperature: f64,
    },
}

impl LinkLoss {
    /// Checks the options.
    ///
    /// # Errors
    /// A margin or temperature that is not finite, or a temperature that is not above 0 (or below 0 for
    /// [`SelfAdversarial`](Self::SelfAdversarial)).
    pub fn check(&self) -> Result<(), ModelError> {
        let finite = |arg, x: f64| ModelError::check_range(arg, "finite numbers", x, x.is_finite());
        match *self {
            Self::Bce | Self::Bpr | Self::SampledSoftmax => Ok(()),
            Self::Margin { margin } => finite("margin", margin),
            Self::InfoNce { temperature: t } => ModelError::check_range(
                "temperature",
                "numbers above 0",
                t,
                t.is_finite() && t > 0.0,
            ),
            Self::SelfAdversarial { margin, temperature: t } => {
                finite("margin", margin).and_then(|()| {
                    ModelError::check_range(
                        "temperature",
                        "numbers from 0",
                        t,
                        t.is_finite() && t >= 0.0,
                    )
                })
            }
        }
    }

    /// Mean loss of links.
    ///
    /// # Shapes
    /// `links: [n]`, `negatives: [n, k]`, result `[1]`; 0 if `n` or `k` is 0.
    ///
    /// # Panics
    /// `negatives` has another number of rows than `links`, or an option is out of range ([`check`](Self::check)).
    #[track_caller]
    pub fn forward(&self, links: Tensor<1>, negatives: Tensor<2>) -> Tensor<1> {
        let ([n], [rows, k]) = (links.dims(), negatives.dims());
        let checked = ModelError::check_length("rows of negatives", "one per link", n, rows)
            .and_then(|()| self.check());
        if let Err(e) = checked {
            panic!("link_loss: {e}");
        }
        if n == 0 || k == 0 {
            return links.sum() * 0.0 + negatives.sum() * 0.0;
        }
        let links = links.unsqueeze_dim::<2>(1);
        let softmax =
            |p: Tensor<2>, s: Tensor<2>| log_sum_exp(Tensor::cat(vec![p.clone(), s], 1)) - p;
        let rows = match *self {
            Self::Bce => softplus(links.neg()) + softplus(negatives).mean_dim(1),
            Self::Margin { margin } => relu(negatives - links + margin).mean_dim(1),
            Self::Bpr => softplus(negatives - links).mean_dim(1),
            Self::SampledSoftmax => softmax(links, negatives),
            Self::InfoNce { temperature } => {
                softmax(div_by(links, temperature), div_by(negatives, temperature))
            }
            Self::SelfAdversarial { margin, temperature } => {
                let w = weights(negatives.clone(), temperature);
                let of_negatives = (w * softplus(negatives + margin)).sum_dim(1);
                softplus((links + margin).neg()) + of_negatives
            }
        };
        rows.mean()
    }

    /// [`forward`](Self::forward) with the correction for the distribution that negatives are drawn from: `log_q` is
    /// subtracted from the scores.
    ///
    /// ```text
    /// p' = p - log q(link)          s'_j = s_j - log q(j)
    /// ```
    /// `q` is the expected number of times that the candidate is drawn. For [`SampledSoftmax`](Self::SampledSoftmax) and
    /// [`InfoNce`](Self::InfoNce) the loss then estimates the softmax over all candidates. If the link itself is not
    /// drawn but always present, its `q` is 1 and `links_log_q` is `None`.
    ///
    /// # Shapes
    /// `links_log_q: [n]`, `negatives_log_q: [n, k]`.
    ///
    /// # Panics
    /// As [`forward`](Self::forward), and if shapes differ.
    ///
    /// # Source
    /// Bengio and Senécal, "Adaptive importance sampling to accelerate training of a neural probabilistic language model",
    /// 2008; Yi et al., "Sampling-bias-corrected neural modeling for large corpus item recommendations", RecSys 2019.
    #[track_caller]
    pub fn forward_corrected(
        &self,
        links: Tensor<1>,
        links_log_q: Option<Tensor<1>>,
        negatives: Tensor<2>,
        negatives_log_q: Tensor<2>,
    ) -> Tensor<1> {
        let same = |arg: &str, shape: &[usize], actual: &[usize]| {
            assert!(
                shape == actual,
                "link_loss: `{arg}`: expected shape {shape:?} (that of the scores), got {actual:?}; give {shape:?}"
            );
        };
        same("negatives_log_q", &negatives.dims(), &negatives_log_q.dims());
        let links = match links_log_q {
            None => links,
            Some(q) => {
                same("links_log_q", &links.dims(), &q.dims());
                links - q
            }
        };
        self.forward(links, negatives - negatives_log_q)
    }
}

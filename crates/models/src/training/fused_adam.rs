//! Implements fused Adam, one pass over each parameter, as an optimizer of Burn.

use burn::config::Config;
use burn::grad_clipping::GradientClippingConfig;
use burn::optim::decay::WeightDecayConfig;
use burn::optim::{AdamState, AdaptiveMomentumState, LearningRate, ModuleOptimizer, Optimizer};
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{AdamDecay, AdamStep, adam_step};

/// Settings of [`FusedAdam`]; names and defaults are those of Burn's `AdamConfig`.
///
/// ```
/// use burn::module::Param;
/// use burn::optim::GradientsParams;
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::FusedAdamConfig;
/// let device = Device::flex().autodiff();
/// let model = vec![Param::from_tensor(Tensor::<1>::from_data([1.0, -2.0], &device))];
/// let mut optimizer = FusedAdamConfig::new().with_epsilon(1e-8).init();
/// let grads = GradientsParams::from_grads((model[0].val() * 3.0).sum().backward(), &model);
/// let model = optimizer.step(0.1, model, grads);
/// let p = model[0].val().into_data().try_to_vec::<f32>().unwrap();
/// assert!((p[0] - 0.9).abs() < 1e-5 && (p[1] + 2.1).abs() < 1e-5);
/// ```
#[derive(Config, Debug)]
pub struct FusedAdamConfig {
    /// Decay of the first moment.
    #[config(default = 0.9)]
    pub beta_1: f32,
    /// Decay of the second moment.
    #[config(default = 0.999)]
    pub beta_2: f32,
    /// Added to the root of the (corrected) second moment, as in torch.
    #[config(default = 1e-5)]
    pub epsilon: f32,
    /// L2 penalty, added to gradients, as in Burn's `Adam`.
    pub weight_decay: Option<WeightDecayConfig>,
    /// Weight decay that is decoupled from the gradient, as in Burn's `AdamW`. Excludes `weight_decay`.
    pub decoupled_weight_decay: Option<f32>,
    /// Clipping of gradients before the step.
    pub grad_clipping: Option<GradientClippingConfig>,
}

impl FusedAdamConfig {
    /// The bare optimizer, for one parameter group; it does not clip gradients.
    ///
    /// # Panics
    /// If both kinds of weight decay are set.
    #[track_caller]
    pub fn build(&self) -> FusedAdam {
        let decay = match (&self.weight_decay, self.decoupled_weight_decay) {
            (None, None) => AdamDecay::None,
            (Some(l2), None) => AdamDecay::L2(l2.penalty),
            (None, Some(rate)) => AdamDecay::Decoupled(rate),
            (Some(_), Some(_)) => {
                panic!(
                    "FusedAdamConfig: `weight_decay` (L2) and `decoupled_weight_decay` exclude each other; set one of them"
                )
            }
        };
        FusedAdam { beta_1: self.beta_1, beta_2: self.beta_2, epsilon: self.epsilon, decay }
    }

    /// An optimizer for a whole module.
    ///
    /// # Panics
    /// If both kinds of weight decay are set.
    #[track_caller]
    pub fn init(&self) -> ModuleOptimizer {
        let optimizer = ModuleOptimizer::from(self.build());
        match &self.grad_clipping {
            Some(clipping) => optimizer.with_grad_clipping(clipping.init()),
            None => optimizer,
        }
    }
}

/// Adam, or AdamW with decoupled weight decay, by [`adam_step`]: one pass over parameter, gradient and moments,
/// in place where the backend can.
///
/// It computes what Burn's `Adam` and `AdamW` compute, to the bit for f32 and f64, and its state is theirs: a
/// record saved by one loads into the other. AMSGrad is not offered. State is kept by parameter id:
/// [`check_param_ids`](crate::check_param_ids) refuses a module in which two parameters share one, and
/// [`resume_weights`](crate::resume_weights) loads parameters with the ids that a record of the state refers to.
///
/// # Panics
/// A step panics if the loaded state is one of AMSGrad (it has a largest second moment).
#[derive(Clone, Debug)]
pub struct FusedAdam {
    beta_1: f32,
    beta_2: f32,
    epsilon: f32,
    decay: AdamDecay,
}

impl Optimizer for FusedAdam {
    type State<const D: usize> = AdamState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<D>, Option<Self::State<D>>) {
        let (time, moment_1, moment_2) = match state.map(|s| s.momentum) {
            Some(AdaptiveMomentumState { time, moment_1, moment_2, max_moment_2 }) => {
                assert!(
                    max_moment_2.is_none(),
                    "FusedAdam: this state was made by AMSGrad, which FusedAdam does not offer; use Burn's Adam or start from no state"
                );
                // Burn loads every record as the device's default element type.
                (time + 1, moment_1.cast(grad.dtype()), moment_2.cast(grad.dtype()))
            }
            None => (1, grad.zeros_like(), grad.zeros_like()),
        };
        let Self { beta_1, beta_2, epsilon, decay } = *self;
        let step = AdamStep { lr, beta_1, beta_2, epsilon, time, decay };
        let (tensor, moment_1, moment_2) = adam_step(tensor, grad, moment_1, moment_2, step);
        (tensor, Some(AdamState::new(AdaptiveMomentumState::new(time, moment_1, moment_2))))
    }

    fn to_device<const D: usize>(mut state: Self::State<D>, device: &Device) -> Self::State<D> {
        state.momentum = state.momentum.to_device(device);
        state
    }
}

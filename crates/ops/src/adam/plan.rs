//! The numbers of one step.

/// How parameters are pulled towards 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum AdamDecay {
    /// Not at all.
    #[default]
    None,
    /// L2 penalty: `penalty · p` is added to the gradient.
    L2(f32),
    /// `p` loses `lr · rate · p` beside the step (AdamW).
    Decoupled(f32),
}

/// Settings and number of one step of Adam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamStep {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the first moment.
    pub beta_1: f32,
    /// Decay of the second moment.
    pub beta_2: f32,
    /// Added to the root of the second moment.
    pub epsilon: f32,
    /// Number of this step, from 1.
    pub time: usize,
    /// Weight decay.
    pub decay: AdamDecay,
}

/// What the loop over entries multiplies by, from Burn's own f32 arithmetic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factors {
    pub(crate) lr: f64,
    pub(crate) beta: [f64; 2],
    /// `1 - β`.
    pub(crate) rest: [f64; 2],
    /// Added to the gradient, times `p`; nothing without L2.
    pub(crate) penalty: Option<f64>,
    pub(crate) form: Form,
}

/// The same formula as Burn writes it in `Adam` and in `AdamW`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// `p - lr · (m · scale) / (√v + epsilon)`
    Adam { scale: f64, epsilon: f64 },
    /// `p · keep - lr · (m / first) / (√(v / second) + epsilon)`
    AdamW { keep: f64, first: f64, second: f64, epsilon: f64 },
}

impl AdamStep {
    pub(crate) fn factors(&self) -> Factors {
        let time = self.time.min(i32::MAX as usize) as i32;
        let (first, second) = (1.0 - self.beta_1.powi(time), 1.0 - self.beta_2.powi(time));
        let form = match self.decay {
            AdamDecay::Decoupled(rate) => Form::AdamW {
                keep: 1.0 - self.lr * f64::from(rate),
                first: first.into(),
                second: second.into(),
                epsilon: self.epsilon.into(),
            },
            AdamDecay::None | AdamDecay::L2(_) => {
                let root = second.sqrt();
                Form::Adam { scale: (root / first).into(), epsilon: (self.epsilon * root).into() }
            }
        };
        Factors {
            lr: self.lr,
            beta: [self.beta_1.into(), self.beta_2.into()],
            rest: [(1.0 - self.beta_1).into(), (1.0 - self.beta_2).into()],
            penalty: match self.decay {
                AdamDecay::L2(penalty) => Some(penalty.into()),
                AdamDecay::None | AdamDecay::Decoupled(_) => None,
            },
            form,
        }
    }
}

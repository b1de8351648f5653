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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamFactors {
    /// Learning rate.
    pub lr: f64,
    /// Decays of the moments.
    pub beta: [f64; 2],
    /// `1 - β`.
    pub rest: [f64; 2],
    /// Added to the gradient, times `p`; nothing without L2.
    pub penalty: Option<f64>,
    /// How moments are used.
    pub form: AdamForm,
}

/// The same formula as Burn writes it in `Adam` and in `AdamW`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AdamForm {
    /// `p - lr · (m · scale) / (√v + epsilon)`
    Adam {
        /// Both corrections of the moments.
        scale: f64,
        /// Added to the root.
        epsilon: f64,
    },
    /// `p · keep - lr · (m / first) / (√(v / second) + epsilon)`
    AdamW {
        /// What is left of the parameter.
        keep: f64,
        /// Correction of the first moment.
        first: f64,
        /// Correction of the second moment.
        second: f64,
        /// Added to the root.
        epsilon: f64,
    },
}

impl AdamStep {
    /// What the loop over entries multiplies by.
    pub fn factors(&self) -> AdamFactors {
        let time = self.time.min(i32::MAX as usize) as i32;
        let (first, second) = (1.0 - self.beta_1.powi(time), 1.0 - self.beta_2.powi(time));
        let form = match self.decay {
            AdamDecay::Decoupled(rate) => AdamForm::AdamW {
                keep: 1.0 - self.lr * f64::from(rate),
                first: first.into(),
                second: second.into(),
                epsilon: self.epsilon.into(),
            },
            AdamDecay::None | AdamDecay::L2(_) => {
                let root = second.sqrt();
                AdamForm::Adam { scale: (root / first).into(), epsilon: (self.epsilon * root).into() }
            }
        };
        AdamFactors {
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

//! Plans an Adam step: its coefficients, and the rows of a table to update.

use std::sync::Arc;

use crate::error::{PlanError, check_below};

/// Weight decay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum AdamDecay {
    /// No decay.
    #[default]
    None,
    /// L2 penalty: `penalty · p` is added to the gradient.
    L2(f32),
    /// `lr · rate · p` is subtracted from `p`, independently of the gradient (AdamW).
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

/// Coefficients of the loop over entries, computed in f32 as Burn's optimizers do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamFactors {
    /// Learning rate.
    pub lr: f64,
    /// Decays of the moments.
    pub beta: [f64; 2],
    /// `1 - β`.
    pub rest: [f64; 2],
    /// Coefficient of `p` in the gradient; `None` without L2 decay.
    pub penalty: Option<f64>,
    /// Formula of the update.
    pub form: AdamForm,
}

/// The update as Burn computes it in `Adam` and in `AdamW`; the two round differently.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AdamForm {
    /// `p - lr · (m · scale) / (√v + epsilon)`
    Adam {
        /// Bias corrections of both moments.
        scale: f64,
        /// Added to the root.
        epsilon: f64,
    },
    /// `p · keep - lr · (m / first) / (√(v / second) + epsilon)`
    AdamW {
        /// Factor of the parameter after decay.
        keep: f64,
        /// Bias correction of the first moment.
        first: f64,
        /// Bias correction of the second moment.
        second: f64,
        /// Added to the root.
        epsilon: f64,
    },
}

impl AdamStep {
    /// Checks the number of the step. `op` is the name of the operator in the error.
    ///
    /// # Errors
    /// `time` is 0, for which the bias correction divides by 0.
    pub fn check(&self, op: &'static str) -> Result<(), PlanError> {
        if self.time > 0 {
            return Ok(());
        }
        Err(PlanError::Parameter { op, arg: "step.time", range: "at least 1", value: 0.0 })
    }
    /// Coefficients of the loop over entries.
    #[doc(hidden)]
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
                AdamForm::Adam {
                    scale: (root / first).into(),
                    epsilon: (self.epsilon * root).into(),
                }
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

/// A step of some rows of a table. A clone costs one reference count.
#[derive(Clone, Debug)]
pub struct AdamRows {
    step: AdamStep,
    ids: Arc<[u32]>,
    rows: usize,
}

impl AdamRows {
    /// Updates rows `ids` of a table with `rows` rows.
    ///
    /// # Errors
    /// An id that is not below `rows`; ids that are not strictly ascending; a step numbered 0.
    pub fn new(step: AdamStep, ids: &Arc<[u32]>, rows: usize) -> Result<Self, PlanError> {
        const NAME: &str = "adam_step_rows";
        check_below(NAME, "ids", "rows of `param`", rows, ids)?;
        if let Some(i) = ids.windows(2).position(|w| w[0] >= w[1]) {
            return Err(PlanError::Ascending {
                op: NAME,
                arg: "ids",
                position: i + 1,
                before: ids[i],
                value: ids[i + 1],
            });
        }
        step.check(NAME)?;
        Ok(Self { step, ids: ids.clone(), rows })
    }
    /// The step.
    pub fn step(&self) -> &AdamStep {
        &self.step
    }
    /// Rows of the table.
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// The rows to update, ascending.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }
}

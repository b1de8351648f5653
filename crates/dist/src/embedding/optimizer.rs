//! Sparse optimizers: SGD, Adagrad and Adam update single rows.

use hashbrown::HashMap;

use super::element::EmbeddingElement;
use crate::error::DistError;
use crate::shard::{ShardReader, ShardWriter};
use crate::tensor::Pushed;

/// Update rule of a row with gradient `g`. Only rows with a gradient are updated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SparseOptimizer {
    /// `w -= lr · g`.
    Sgd {
        /// Learning rate.
        lr: f64,
    },
    /// `s += g²; w -= lr · g / (√s + epsilon)` (Duchi, Hazan, Singer, JMLR 2011).
    Adagrad {
        /// Learning rate.
        lr: f64,
        /// Added to the root.
        epsilon: f64,
    },
    /// `m = β₁ m + (1 - β₁) g; v = β₂ v + (1 - β₂) g²; w -= lr · (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + epsilon)`
    /// (Kingma and Ba, ICLR 2015), where `t` is the number of calls of
    /// [`DistEmbedding::step`](crate::DistEmbedding::step). This is the rule of torch's `SparseAdam` and of
    /// `burn_gnn_models::SparseAdam`, so training on ranks gives the result of one machine. (DGL counts the steps of
    /// each row.)
    Adam {
        /// Learning rate.
        lr: f64,
        /// Decay of the first moment.
        beta_1: f64,
        /// Decay of the second moment.
        beta_2: f64,
        /// Added to the root.
        epsilon: f64,
    },
}

impl SparseOptimizer {
    /// Plain gradient descent.
    pub fn sgd(lr: f64) -> Self {
        Self::Sgd { lr }
    }
    /// Adagrad with epsilon 1e-10.
    pub fn adagrad(lr: f64) -> Self {
        Self::Adagrad { lr, epsilon: 1e-10 }
    }
    /// Adam with β 0.9 and 0.999, epsilon 1e-8.
    pub fn adam(lr: f64) -> Self {
        Self::Adam { lr, beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8 }
    }
    pub(super) fn with_lr(mut self, new: f64) -> Self {
        let (Self::Sgd { lr } | Self::Adagrad { lr, .. } | Self::Adam { lr, .. }) = &mut self;
        *lr = new;
        self
    }
    pub(super) fn check(&self) -> Result<(), DistError> {
        let settings = match *self {
            Self::Sgd { lr } => vec![("lr", lr, f64::INFINITY)],
            Self::Adagrad { lr, epsilon } => {
                vec![("lr", lr, f64::INFINITY), ("epsilon", epsilon, f64::INFINITY)]
            }
            Self::Adam { lr, beta_1, beta_2, epsilon } => {
                vec![
                    ("lr", lr, f64::INFINITY),
                    ("beta_1", beta_1, 1.0),
                    ("beta_2", beta_2, 1.0),
                    ("epsilon", epsilon, f64::INFINITY),
                ]
            }
        };
        match settings.into_iter().find(|&(_, value, below)| !(value >= 0.0 && value < below)) {
            None => Ok(()),
            Some((arg, value, below)) => {
                let expected =
                    if below == 1.0 { "a number in 0.0..1.0" } else { "a finite number from 0" };
                Err(DistError::Config { arg, expected: expected.into(), found: value.to_string() })
            }
        }
    }
    /// Number of moments per element.
    fn moments(&self) -> usize {
        match self {
            Self::Sgd { .. } => 0,
            Self::Adagrad { .. } => 1,
            Self::Adam { .. } => 2,
        }
    }
}

/// State of an optimizer for the rows of this rank.
#[derive(Debug)]
pub(super) struct State<E> {
    moments: Vec<Vec<E>>,
    /// Number of steps so far.
    time: u32,
}

impl<E: EmbeddingElement> State<E> {
    pub(super) fn new(optimizer: SparseOptimizer, rows: usize, dim: usize) -> Self {
        Self { moments: vec![vec![E::zeroed(); rows * dim]; optimizer.moments()], time: 0 }
    }

    /// Updates the rows that have gradients.
    pub(super) fn step(
        &mut self,
        optimizer: SparseOptimizer,
        own: &mut [E],
        pushed: &[Pushed<E>],
        dim: usize,
    ) {
        self.time = self.time.saturating_add(1);
        if dim == 0 {
            return;
        }
        let t = i32::try_from(self.time).unwrap_or(i32::MAX);
        // Sums in f64 in the order of the received gradients; rows in the order of their first occurrence.
        let (mut position, mut rows, mut sums) = (HashMap::<u32, usize>::new(), vec![], vec![]);
        for (positions, values) in pushed {
            for (&row, g) in positions.iter().zip(values.chunks_exact(dim)) {
                let at = *position.entry(row).or_insert_with(|| {
                    rows.push(row as usize);
                    sums.resize(sums.len() + dim, 0.0);
                    rows.len() - 1
                });
                sums[at * dim..][..dim].iter_mut().zip(g).for_each(|(s, g)| *s += g.wide());
            }
        }
        for (&row, g) in rows.iter().zip(sums.chunks_exact(dim)) {
            let of = row * dim..(row + 1) * dim;
            for (i, g) in of.zip(g) {
                // The sum is rounded to the precision of the rows.
                let g = E::narrow(*g).wide();
                let step = match optimizer {
                    SparseOptimizer::Sgd { lr } => lr * g,
                    SparseOptimizer::Adagrad { lr, epsilon } => {
                        let s = moved(&mut self.moments[0][i], |s| s + g * g);
                        lr * g / (s.sqrt() + epsilon)
                    }
                    SparseOptimizer::Adam { lr, beta_1, beta_2, epsilon } => {
                        let m = moved(&mut self.moments[0][i], |m| beta_1 * m + (1.0 - beta_1) * g)
                            / (1.0 - beta_1.powi(t));
                        let v =
                            moved(&mut self.moments[1][i], |v| beta_2 * v + (1.0 - beta_2) * g * g)
                                / (1.0 - beta_2.powi(t));
                        lr * m / (v.sqrt() + epsilon)
                    }
                };
                own[i] = E::narrow(own[i].wide() - step);
            }
        }
    }

    /// Number of saved step counters: one for Adam, none for the other optimizers.
    fn counts(&self) -> usize {
        usize::from(self.moments.len() == 2)
    }
    pub(super) fn save(&self, out: &mut ShardWriter) {
        for (i, m) in self.moments.iter().enumerate() {
            out.put(&format!("moment_{}", i + 1), m);
        }
        out.put("steps", &[self.time][..self.counts()]);
    }
    pub(super) fn load(&mut self, from: &ShardReader<'_>) -> Result<(), DistError> {
        for (i, m) in self.moments.iter_mut().enumerate() {
            *m = from.take(&format!("moment_{}", i + 1), m.len())?;
        }
        self.time = from.take::<u32>("steps", self.counts())?.into_iter().sum();
        Ok(())
    }
}

/// Updates a moment by `f` and rounds it to its stored precision.
fn moved<E: EmbeddingElement>(moment: &mut E, f: impl Fn(f64) -> f64) -> f64 {
    *moment = E::narrow(f(moment.wide()));
    moment.wide()
}

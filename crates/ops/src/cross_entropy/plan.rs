//! What one cross entropy does, as a plain value.

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::tensor::DType;

use super::{cpu, reference};
use crate::cpu::Host;
use crate::operator::{GnnBackend, Gradient, Keeps, Operator, Saved, Spec, Specs, Tensors};

/// How the losses of rows become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossReduction {
    /// Their sum.
    Sum,
    /// Their sum over their number; 0 without rows.
    Mean,
    /// Their sum over a number given, such as the rows of all ranks; 0 stands for 1.
    Over(usize),
}

/// Shape of the logits, chosen rows, targets and reduction of one cross entropy; a clone costs two reference
/// counts. Rows and targets are in range.
#[derive(Clone, Debug)]
pub(crate) struct CrossEntropyPlan {
    shape: [usize; 2],
    rows: Arc<[u32]>,
    targets: Arc<[u32]>,
    reduction: LossReduction,
}

impl CrossEntropyPlan {
    pub(crate) fn new(shape: [usize; 2], rows: Arc<[u32]>, targets: Arc<[u32]>, reduction: LossReduction) -> Self {
        Self { shape, rows, targets, reduction }
    }
    /// Shape of the logits.
    pub(crate) fn shape(&self) -> [usize; 2] {
        self.shape
    }
    /// Chosen rows.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }
    /// Both arrays, as they are owned.
    #[cfg(feature = "cube")]
    pub(crate) fn arrays(&self) -> (&Arc<[u32]>, &Arc<[u32]>) {
        (&self.rows, &self.targets)
    }
    /// Class of each chosen row.
    pub(crate) fn targets(&self) -> &[u32] {
        &self.targets
    }
    /// What the sum of losses is multiplied by.
    pub(crate) fn factor(&self) -> f64 {
        match self.reduction {
            LossReduction::Sum => 1.0,
            LossReduction::Mean => 1.0 / self.rows.len().max(1) as f64,
            LossReduction::Over(n) => 1.0 / n.max(1) as f64,
        }
    }
}

/// The loss `[1]` of the logits, and for each chosen row its largest logit and 1 / Σ exp(logit - largest), `[rows, 2]`.
impl Operator for CrossEntropyPlan {
    const NAME: &'static str = "cross_entropy_rows";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let dtype = inputs[0].dtype;
        let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        Specs::floats([Spec::new([1], dtype), Spec::new([self.rows.len(), 2], wide)])
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [logits] = inputs.take();
        let (loss, stats) = reference::forward::<B>(logits, self);
        vec![loss, stats].into()
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::forward(self, inputs)
    }
    fn gradient(&self) -> Gradient {
        Gradient::Backward
    }
    fn keeps(&self, _tracked: &[bool]) -> Keeps {
        Keeps { inputs: vec![true], result: false }
    }
    fn backward<B: GnnBackend>(&self, grad: FloatTensor<B>, mut saved: Saved<B>, _wants: &[bool]) -> Vec<Option<FloatTensor<B>>> {
        let mut floats = vec![grad];
        floats.append(&mut saved.results.floats);
        floats.append(&mut saved.kept_inputs());
        vec![Some(B::run(floats.into(), CrossEntropyGrad(self.clone())).read().float())]
    }
}

/// The gradient of the logits, from that of the loss, the statistics and the logits.
#[derive(Clone, Debug)]
pub(crate) struct CrossEntropyGrad(pub(crate) CrossEntropyPlan);

impl Operator for CrossEntropyGrad {
    const NAME: &'static str = "cross_entropy_rows";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::floats([inputs[2].clone()])
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [grad, stats, logits] = inputs.take();
        Tensors::one(reference::gradient::<B>(grad, stats, logits, &self.0))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::gradient(&self.0, inputs)
    }
}

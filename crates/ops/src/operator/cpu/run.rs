//! Runs operators on CPU backends.

use burn::backend::TensorMetadata;

use crate::operator::definition::{Host, Operator, Spec};
use crate::operator::tensors::Tensors;

/// Runs a call. Debug builds compare the shapes of its results with [`Operator::results`].
pub(crate) fn run<B: Host, O: Operator>(inputs: Tensors<B>, op: &O) -> Tensors<B> {
    let _span = tracing::trace_span!("operator", op = O::NAME).entered();
    #[cfg(all(test, feature = "flex"))]
    if let Some(results) = crate::operator::property_tests::instead_of_kernel(&inputs, op) {
        return results;
    }
    if !cfg!(debug_assertions) {
        return op.cpu(inputs);
    }
    let specs = |x: &Tensors<B>| {
        x.floats.iter().map(|x| Spec::new(x.shape(), x.dtype())).collect::<Vec<_>>()
    };
    let announced = op.results(&specs(&inputs));
    let results = op.cpu(inputs);
    if let Some(announced) = announced {
        assert_eq!(specs(&results), announced.floats, "{}: results of {op:?}", O::NAME);
    }
    results
}

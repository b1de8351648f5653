//! Calls the CPU kernels of Adam. Tensors without other references are updated in place.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;
use burn_gnn_cpu::Kernels;
use burn_gnn_plan::AdamStep;

use crate::operator::Tensors;
use crate::operator::cpu::{Float, Host, by_dtype};

/// Entries to be overwritten: of the tensor itself, or of a copy.
enum Buffer<B: Host, T: Float> {
    Own(FloatTensor<B>),
    Copy(Vec<T>, Shape),
}

impl<B: Host, T: Float> Buffer<B, T> {
    fn new(mut tensor: FloatTensor<B>) -> Self {
        if B::floats_mut::<T>(&mut tensor).is_some() {
            return Self::Own(tensor);
        }
        let shape = tensor.shape();
        Self::Copy(B::floats::<T>(&tensor).into_owned(), shape)
    }
    fn entries(&mut self) -> &mut [T] {
        match self {
            Self::Own(tensor) => match B::floats_mut::<T>(tensor) {
                Some(entries) => entries,
                None => unreachable!("`new` checked that the tensor has no other references"),
            },
            Self::Copy(data, _) => data,
        }
    }
    fn finish(self) -> FloatTensor<B> {
        match self {
            Self::Own(tensor) => tensor,
            Self::Copy(data, shape) => B::from_floats(data, shape),
        }
    }
}

pub(super) fn step<B: Host>(step: &AdamStep, inputs: Tensors<B>) -> Tensors<B> {
    let [param, grad, m, v] = inputs.take();
    by_dtype!(param.dtype(), T => {
        let (mut p, mut m, mut v) =
            (Buffer::<B, T>::new(param), Buffer::<B, T>::new(m), Buffer::<B, T>::new(v));
        T::adam(step.factors(), p.entries(), &B::floats::<T>(&grad), m.entries(), v.entries());
        vec![p.finish(), m.finish(), v.finish()].into()
    })
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::backend::Flex;
    use burn::backend::flex::FlexTensor;
    use burn::tensor::TensorData;

    use super::*;
    use crate::AdamDecay;

    const STEP: AdamStep = AdamStep {
        lr: 0.1,
        beta_1: 0.9,
        beta_2: 0.99,
        epsilon: 1e-8,
        time: 1,
        decay: AdamDecay::None,
    };

    fn tensor(value: f32) -> FlexTensor {
        FlexTensor::from_data(TensorData::new(vec![value; 6], [2, 3]))
    }

    #[test]
    fn tensors_without_other_references_are_updated_in_place() {
        let (p, m, v) = (tensor(1.0), tensor(0.0), tensor(0.0));
        let before = [&p, &m, &v].map(|x| x.as_slice::<f32>().unwrap().as_ptr());
        let held = m.clone();
        let [p, m, v] = step::<Flex>(&STEP, vec![p, tensor(0.5), m, v].into()).take();
        let after = [&p, &m, &v].map(|x| x.as_slice::<f32>().unwrap().as_ptr());
        assert_eq!((after[0], after[2]), (before[0], before[2]));
        assert_ne!(after[1], before[1]);
        assert_eq!(held.as_slice::<f32>().unwrap(), [0.0; 6]);
        assert!((m.as_slice::<f32>().unwrap()[0] - 0.05).abs() < 1e-6);
        assert!((p.as_slice::<f32>().unwrap()[5] - 0.9).abs() < 1e-5);
    }

    #[test]
    fn views_are_not_written_through() {
        let p = FlexTensor::from_data(TensorData::new(
            (0..6).map(|x| x as f32).collect::<Vec<_>>(),
            [2, 3],
        ));
        let transposed = p.transpose(0, 1);
        drop(p);
        let zeros = || FlexTensor::from_data(TensorData::new(vec![0f32; 6], [3, 2]));
        let [p, ..] =
            step::<Flex>(&STEP, vec![transposed, zeros(), zeros(), zeros()].into()).take::<3>();
        assert_eq!(p.as_slice::<f32>().unwrap(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    }
}

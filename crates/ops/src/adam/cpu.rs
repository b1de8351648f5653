//! Adam on the tensors of CPU backends, in place where nobody else holds them.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;
use rayon::prelude::*;

use crate::cpu::{Host, by_dtype};
use crate::kernel::{Acc, Elem, Vectorised, vectorised};
use crate::operator::Tensors;
use burn_gnn_plan::{AdamFactors, AdamForm, AdamStep};

/// Entries of one piece of work: four streams of it stay within the second-level cache.
const PIECE: usize = 1 << 15;
/// Entries from which a second thread pays.
const PARALLEL_FROM: usize = 1 << 17;

trait Root {
    fn root(self) -> Self;
}

impl Root for f32 {
    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }
}

impl Root for f64 {
    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }
}

/// Entries to be overwritten: the tensor's own, or a copy.
enum Buffer<B: Host, T: Elem> {
    Own(FloatTensor<B>),
    Copy(Vec<T>, Shape),
}

impl<B: Host, T: Elem> Buffer<B, T> {
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
                None => unreachable!("the tensor was ours alone when the buffer was made, and is still here"),
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

struct Piece<'a, T> {
    f: AdamFactors,
    p: &'a mut [T],
    g: &'a [T],
    m: &'a mut [T],
    v: &'a mut [T],
}

impl<T: Elem> Vectorised for Piece<'_, T>
where
    T::Acc: Root,
{
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { f, p, g, m, v } = self;
        let a = |x: f64| T::Acc::of_f64(x);
        let (lr, b1, b2, r1, r2) = (a(f.lr), a(f.beta[0]), a(f.beta[1]), a(f.rest[0]), a(f.rest[1]));
        let penalty = f.penalty.map(a);
        // One entry, given what the two forms do with parameter and moments.
        macro_rules! each {
            (|$p:ident, $m:ident, $v:ident| $body:expr) => {
                for (((p, &g), m), v) in p.iter_mut().zip(g).zip(m).zip(v) {
                    let $p = p.acc();
                    let g = match penalty {
                        Some(penalty) => $p * penalty + g.acc(),
                        None => g.acc(),
                    };
                    let $m = m.acc() * b1 + g * r1;
                    let $v = v.acc() * b2 + (g * g) * r2;
                    let (start, delta) = $body;
                    *p = T::of(start - delta * lr);
                    *m = T::of($m);
                    *v = T::of($v);
                }
            };
        }
        match f.form {
            AdamForm::Adam { scale, epsilon } => {
                let (scale, epsilon) = (a(scale), a(epsilon));
                each!(|p, m, v| (p, (m * scale) / (v.root() + epsilon)));
            }
            AdamForm::AdamW { keep, first, second, epsilon } => {
                let (keep, first, second, epsilon) = (a(keep), a(first), a(second), a(epsilon));
                each!(|p, m, v| (p * keep, (m / first) / ((v / second).root() + epsilon)));
            }
        }
    }
}

fn update<T: Elem>(f: AdamFactors, p: &mut [T], g: &[T], m: &mut [T], v: &mut [T])
where
    T::Acc: Root,
{
    if p.len() < PARALLEL_FROM {
        return vectorised(Piece { f, p, g, m, v });
    }
    let pieces = p.par_chunks_mut(PIECE).zip(g.par_chunks(PIECE)).zip(m.par_chunks_mut(PIECE)).zip(v.par_chunks_mut(PIECE));
    pieces.for_each(|(((p, g), m), v)| vectorised(Piece { f, p, g, m, v }));
}

pub(super) fn step<B: Host>(step: &AdamStep, inputs: Tensors<B>) -> Tensors<B> {
    let [param, grad, m, v] = inputs.take();
    by_dtype!(param.dtype(), T => {
        let (mut p, mut m, mut v) = (Buffer::<B, T>::new(param), Buffer::<B, T>::new(m), Buffer::<B, T>::new(v));
        update::<T>(step.factors(), p.entries(), &B::floats::<T>(&grad), m.entries(), v.entries());
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

    const STEP: AdamStep = AdamStep { lr: 0.1, beta_1: 0.9, beta_2: 0.99, epsilon: 1e-8, time: 1, decay: AdamDecay::None };

    fn tensor(value: f32) -> FlexTensor {
        FlexTensor::from_data(TensorData::new(vec![value; 6], [2, 3]))
    }

    #[test]
    fn in_place_where_nobody_else_holds_the_tensor() {
        let (p, m, v) = (tensor(1.0), tensor(0.0), tensor(0.0));
        let places = [&p, &m, &v].map(|x| x.as_slice::<f32>().unwrap().as_ptr());
        let held = m.clone();
        let [p, m, v] = step::<Flex>(&STEP, vec![p, tensor(0.5), m, v].into()).take();
        let now = [&p, &m, &v].map(|x| x.as_slice::<f32>().unwrap().as_ptr());
        assert_eq!((now[0], now[2]), (places[0], places[2]));
        assert_ne!(now[1], places[1]);
        assert_eq!(held.as_slice::<f32>().unwrap(), [0.0; 6]);
        assert!((m.as_slice::<f32>().unwrap()[0] - 0.05).abs() < 1e-6);
        assert!((p.as_slice::<f32>().unwrap()[5] - 0.9).abs() < 1e-5);
    }

    #[test]
    fn views_are_not_written_through() {
        let p = FlexTensor::from_data(TensorData::new((0..6).map(|x| x as f32).collect::<Vec<_>>(), [2, 3]));
        let transposed = p.transpose(0, 1);
        drop(p);
        let zeros = || FlexTensor::from_data(TensorData::new(vec![0f32; 6], [3, 2]));
        let [p, ..] = step::<Flex>(&STEP, vec![transposed, zeros(), zeros(), zeros()].into()).take::<3>();
        assert_eq!(p.as_slice::<f32>().unwrap(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    }
}

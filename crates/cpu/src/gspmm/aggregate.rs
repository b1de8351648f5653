//! Computes weighted aggregation, `act(after[v] Σ scale[u] w[e] x[u] + bias)`, and its gradients.

use rayon::prelude::*;

use super::backward;
use super::weighted_sum::{Weighted, weighted_sum};
use crate::dense::widen::widen;
use crate::math::activation::ScalarActivation;
use crate::number::{Acc, Elem};
use crate::parallel::adjacency::Adjacency;
use crate::parallel::collect::collect_rows;
use crate::parallel::output_buffer::Sink;
use crate::parallel::runs::evenly;
use crate::simd::instruction_sets::{Vectorised, vectorised};
use burn_gnn_plan::{Activation, AggregatePlan, DegreeScale, Side};

/// The result of a plan. Operands that the plan does not have may be empty.
pub(crate) fn forward<T: Elem>(plan: &AggregatePlan, x: &[T], weight: &[T], bias: &[T]) -> Vec<T> {
    let bias: Vec<_> = bias.iter().map(|b| b.acc()).collect();
    weighted_sum(&Weighted {
        rows: Adjacency::new(plan.relation().csc()),
        x,
        scale: factors(plan.source()),
        weight: plan.weighted().then_some(weight),
        after: factors(plan.destination()),
        bias: plan.biased().then_some(&bias[..]),
        activation: plan.activation(),
        width: plan.width(),
    })
}

/// The tensors that gradients are computed from. Operands that the plan does not have may be empty.
#[derive(Clone, Copy)]
pub struct GradInputs<'a, T> {
    /// Gradient of the result.
    pub grad: &'a [T],
    /// The result, if the plan has an activation.
    pub out: &'a [T],
    /// The weights, or `x` for the gradient of the weights.
    pub other: &'a [T],
}

/// The gradients of `x` and of the bias, each if `wants` requests it.
pub(crate) fn gradient<T: Elem>(
    plan: &AggregatePlan,
    given: GradInputs<'_, T>,
    wants: [bool; 2],
) -> [Option<Vec<T>>; 2] {
    let (GradInputs { grad, out, other: weight }, [x, bias], width) = (given, wants, plan.width());
    let (d_x, d_bias) = if plan.activation() == Activation::None {
        let (_, d_bias) = before(grad, out, Activation::None, width, bias);
        (x.then(|| over_reverse::<T>(grad, weight, plan)), d_bias)
    } else {
        // `h` is summed over edges and over rows, and only the sums are rounded.
        let grad = widen(grad);
        let (h, d_bias) = before::<T::Acc>(&grad, &widen(out), plan.activation(), width, bias);
        (
            x.then(|| {
                T::round(over_reverse::<T::Acc>(
                    h.as_deref().unwrap_or(&grad),
                    &widen(weight),
                    plan,
                ))
            }),
            d_bias,
        )
    };
    [d_x, bias.then(|| T::round(d_bias))]
}

/// `d w_e = l_u r_v (x[u] · h[v])`, rounded once. The factors are applied to the dot products, one number per edge, so no
/// scaled copy of an operand is made.
pub(crate) fn gradient_of_weight<T: Elem>(
    plan: &AggregatePlan,
    given: GradInputs<'_, T>,
) -> Vec<T> {
    let [grad, x] = [given.grad, given.other].map(widen);
    let h = match plan.activation() {
        Activation::None => None,
        activation => before::<T::Acc>(&grad, &widen(given.out), activation, plan.width(), false).0,
    };
    let given =
        backward::GradInputs { grad: h.as_deref().unwrap_or(&grad), arg: None, lhs: &x, rhs: &[] };
    let mut d: Vec<T::Acc> = backward::gradient(&plan.product(), Side::Rhs, given);
    for (scale, endpoints) in
        [(plan.source(), plan.relation().src()), (plan.destination(), plan.relation().dst())]
    {
        if let Some(by) = factors::<T::Acc>(scale) {
            d.par_iter_mut()
                .zip(endpoints)
                .with_min_len(1 << 14)
                .for_each(|(d, &v)| *d = *d * by[v as usize]);
        }
    }
    T::round(d)
}

fn factors<A: Acc>(scale: Option<&DegreeScale>) -> Option<&[A]> {
    scale.map(|scale| A::either(|| scale.single(), || scale.double()))
}

/// `d x` from `h`, the gradient of the input of the activation: the sum over the reversed relation.
fn over_reverse<T: Elem>(h: &[T], weight: &[T], plan: &AggregatePlan) -> Vec<T> {
    weighted_sum(&Weighted {
        rows: Adjacency::new(plan.relation().csr()),
        x: h,
        scale: factors(plan.destination()),
        weight: plan.weighted().then_some(weight),
        after: factors(plan.source()),
        bias: None,
        activation: Activation::None,
        width: plan.width(),
    })
}

/// Rows per partial column sum. It is fixed, so that bits do not depend on the number of threads.
const BLOCK: usize = 1024;

/// `act'(out) · grad` (`None` if that equals `grad`) and, if `sums` is set, its column sums.
fn before<T: Elem>(
    grad: &[T],
    out: &[T],
    activation: Activation,
    width: usize,
    sums: bool,
) -> (Option<Vec<T>>, Vec<T::Acc>) {
    if width == 0 {
        return (None, Vec::new());
    }
    let rows = grad.len() / width;
    let changed = (activation != Activation::None).then(|| {
        collect_rows(&evenly(rows, 2 * width), width, &|run, to| {
            let part = run.start * width..run.end * width;
            vectorised(Chain { activation, out: &out[part.clone()], grad: &grad[part], to });
        })
    });
    let h = changed.as_deref().unwrap_or(grad);
    let mut total = vec![T::Acc::ZERO; if sums { width } else { 0 }];
    if sums {
        let column_sums = |block: &[T]| vectorised(ColumnSums { block, width });
        let parts: Vec<Vec<T::Acc>> = if h.len() < 1 << 18 {
            h.chunks(BLOCK * width).map(column_sums).collect()
        } else {
            h.par_chunks(BLOCK * width).map(column_sums).collect()
        };
        for part in parts {
            total.iter_mut().zip(part).for_each(|(t, p)| *t += p);
        }
    }
    (changed, total)
}

struct Chain<'a, 'b, T> {
    activation: Activation,
    out: &'a [T],
    grad: &'a [T],
    to: &'a mut Sink<'b, T>,
}

impl<T: Elem> Vectorised for Chain<'_, '_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { activation, out, grad, to } = self;
        let mut map = |f: Activation| {
            to.put_from(grad.len(), |j| T::of(f.chain(out[j].acc(), grad[j].acc())))
        };
        match activation {
            // A separate loop, which needs no multiplications.
            Activation::Relu => map(Activation::Relu),
            other => map(other),
        }
    }
}

struct ColumnSums<'a, T> {
    block: &'a [T],
    width: usize,
}

impl<T: Elem> Vectorised for ColumnSums<'_, T> {
    type Out = Vec<T::Acc>;
    #[inline(always)]
    fn run(self) -> Vec<T::Acc> {
        let mut sums = vec![T::Acc::ZERO; self.width];
        for row in self.block.chunks_exact(self.width) {
            sums.iter_mut().zip(row).for_each(|(s, x)| *s += x.acc());
        }
        sums
    }
}

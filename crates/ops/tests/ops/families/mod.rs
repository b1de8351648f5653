//! Every operator in one form, for tests of properties that all operators have. Unit tests of the crate compile this
//! module too. A new operator adds itself to `list.rs`.

mod list;

pub(crate) use list::{all, few};

use std::sync::Arc;

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::{Relation, RelationStack};
use burn_gnn_ops::*;
use burn_gnn_testutil::graphs;

/// Distinct numbers in ±[0.5, 1.5), a function of the seed.
pub(crate) fn numbers(seed: u64, n: usize) -> Vec<f64> {
    let stream = Stream::new(seed, "test", 0);
    (0..n as u64)
        .map(|i| {
            let x = 2.0 * stream.uniform(i, 0) - 1.0;
            (x + 0.5f64.copysign(x)) * (1.0 + i as f64 * 1e-9)
        })
        .collect()
}

pub(crate) fn f64s<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().convert_dtype(DType::F64).try_into_vec().unwrap()
}

/// The CPU backends by name.
pub(crate) fn devices() -> Vec<(&'static str, Device)> {
    burn_gnn_testutil::named_devices()
}

/// Rows of an operand or of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Src,
    Dst,
    Edge,
    /// One row for the whole graph.
    Whole,
}

/// A graph whose edges have a type and an original id, which reordering does not change.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) relation: Relation,
    pub(crate) types: Vec<u8>,
    pub(crate) ids: Arc<[u64]>,
}

const TYPES: usize = 3;

impl Typed {
    /// Draws types; most edges have type 0.
    pub(crate) fn new(relation: &Relation) -> Self {
        let stream = Stream::new(8, "types", 0);
        let n = relation.num_edges() as u64;
        let types =
            (0..n).map(|e| [0, 0, 0, 0, 1, 2][(stream.uniform(e, 0) * 6.0) as usize]).collect();
        Self { relation: relation.clone(), types, ids: (0..n).map(|e| 1_000_000 - 3 * e).collect() }
    }

    pub(crate) fn rows(&self, on: On) -> usize {
        match on {
            On::Src => self.relation.num_src(),
            On::Dst => self.relation.num_dst(),
            On::Edge => self.relation.num_edges(),
            On::Whole => 1,
        }
    }

    /// A stack of one relation per type in `types`, over two tables.
    fn stack(&self, types: impl Iterator<Item = usize>) -> RelationStack {
        let (n, m) = (self.relation.num_src(), self.relation.num_dst());
        let relation = |ty: usize| {
            let edges: Vec<_> = self
                .edges_of(ty)
                .map(|e| (self.relation.src()[e], self.relation.dst()[e]))
                .collect();
            (ty % 2, graphs::relation(n, m, &edges))
        };
        RelationStack::new(m, &[n, n], &types.map(relation).collect::<Vec<_>>()).unwrap()
    }

    fn edges_of(&self, ty: usize) -> impl Iterator<Item = usize> {
        self.types.iter().enumerate().filter(move |(_, t)| usize::from(**t) == ty).map(|(e, _)| e)
    }

    /// Edges sorted by type, and the position of every edge in this order.
    fn sorted(&self) -> (Vec<u32>, Vec<u32>) {
        let order = TypeIndex::new(&self.types, TYPES).rows().to_vec();
        let mut positions = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &e)| positions[e as usize] = at as u32);
        (order, positions)
    }
}

type Call = dyn Fn(&Typed, &[Tensor<2>], bool) -> Tensor<1> + Sync;

/// An operator with fixed parameters. Operands are matrices, given by rows and number of columns; the result is flat.
pub(crate) struct Family {
    pub(crate) name: String,
    operands: Vec<(On, usize)>,
    out: (On, usize),
    /// Whether the result is one of the messages, so that its value does not depend on any order.
    pub(crate) selects: bool,
    /// Whether the operator uses Burn's products, whose bits depend on the machine.
    pub(crate) by_gemm: bool,
    call: Box<Call>,
}

impl Family {
    fn new(
        name: String,
        operands: &[(On, usize)],
        out: (On, usize),
        call: impl Fn(&Typed, &[Tensor<2>], bool) -> Tensor<1> + Sync + 'static,
    ) -> Self {
        Self {
            name,
            operands: operands.to_vec(),
            out,
            selects: false,
            by_gemm: false,
            call: Box::new(call),
        }
    }

    fn selecting(self, selects: bool) -> Self {
        Self { selects, ..self }
    }

    /// Rows and columns of the vectors of [`values`](Self::values) and [`run`](Self::run): operands, then the result.
    pub(crate) fn shapes(&self) -> Vec<(On, usize)> {
        [&self.operands[..], &[self.out]].concat()
    }

    /// Operands, followed by the cotangent of the result.
    pub(crate) fn values(&self, g: &Typed, seed: u64) -> Vec<Vec<f64>> {
        let shapes = self.shapes().into_iter().enumerate();
        shapes.map(|(i, (on, width))| numbers(16 * seed + i as u64, g.rows(on) * width)).collect()
    }

    /// Gradients of the operands, followed by the result.
    pub(crate) fn run(
        &self,
        g: &Typed,
        values: &[Vec<f64>],
        place: (&Device, DType),
        reference: bool,
    ) -> Vec<Vec<f64>> {
        let (gradients, out) =
            self.run_tracking(g, values, place, reference, &vec![true; self.operands.len()]);
        gradients.into_iter().flatten().chain([out]).collect()
    }

    /// Gradients of the tracked operands, and the result.
    pub(crate) fn run_tracking(
        &self,
        g: &Typed,
        values: &[Vec<f64>],
        place: (&Device, DType),
        reference: bool,
        tracked: &[bool],
    ) -> (Vec<Option<Vec<f64>>>, Vec<f64>) {
        let device = place.0.clone().autodiff();
        let Some((cotangent, operands)) = values.split_last() else {
            unreachable!("a family has a result")
        };
        let leaf = |((&(on, width), x), &tracked): ((&(On, usize), &Vec<f64>), &bool)| {
            let x = Tensor::<2>::from_data(
                TensorData::new(x.clone(), [g.rows(on), width]),
                (&device, place.1),
            );
            if tracked { x.require_grad() } else { x }
        };
        let operands: Vec<_> = self.operands.iter().zip(operands).zip(tracked).map(leaf).collect();
        let out = (self.call)(g, &operands, reference);
        if !tracked.contains(&true) {
            return (vec![None; operands.len()], f64s(out));
        }
        let cotangent = TensorData::new(cotangent.clone(), [cotangent.len()]);
        let mut loss = (out.clone() * Tensor::<1>::from_data(cotangent, (&device, place.1))).sum();
        if reference || g.relation.num_edges() == 0 {
            // References on relations without edges, and stacks without relations, do not connect operands to the
            // autodiff graph.
            loss = operands.iter().fold(loss, |loss, x| loss + (x.clone() * 0.0).sum());
        }
        let grads = loss.backward();
        let gradient = |(x, &tracked): (&Tensor<2>, &bool)| {
            let gradient = x.grad(&grads).map(f64s);
            assert_eq!(
                gradient.is_some(),
                tracked,
                "{}: exactly the tracked operands must have a gradient",
                self.name
            );
            gradient
        };
        (operands.iter().zip(tracked).map(gradient).collect(), f64s(out))
    }
}

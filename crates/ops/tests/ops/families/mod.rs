//! Every family of operators in one form, for what all of them promise: numbers of nodes, order of edges, layout,
//! threads and instruction set do not matter.

mod list;

pub(crate) use list::{all, few};

use std::sync::Arc;

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::{Relation, RelationStack};
use burn_gnn_ops::*;

use crate::{f64s, numbers};

/// What the rows of an operand or of a result belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Src,
    Dst,
    Edge,
    /// One row for the whole graph.
    Whole,
}

/// A graph whose edges have a type, and an id that stays theirs wherever they stand.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) relation: Relation,
    pub(crate) types: Vec<u8>,
    pub(crate) ids: Arc<[u64]>,
}

const TYPES: usize = 3;

impl Typed {
    /// Most edges are of type 0.
    pub(crate) fn new(relation: &Relation) -> Self {
        let stream = Stream::new(8, "types", 0);
        let n = relation.num_edges() as u64;
        let types = (0..n).map(|e| [0, 0, 0, 0, 1, 2][(stream.uniform(e, 0) * 6.0) as usize]).collect();
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

    /// One relation for each of `types`, and its place among the tables.
    fn stack(&self, types: impl Iterator<Item = usize>) -> RelationStack {
        let (n, m) = (self.relation.num_src(), self.relation.num_dst());
        let relation = |ty: usize| {
            let edges: Vec<_> = self.edges_of(ty).map(|e| (self.relation.src()[e], self.relation.dst()[e])).collect();
            (ty % 2, crate::graphs::relation(n, m, &edges))
        };
        RelationStack::new(m, &[n, n], &types.map(relation).collect::<Vec<_>>()).unwrap()
    }

    fn edges_of(&self, ty: usize) -> impl Iterator<Item = usize> {
        self.types.iter().enumerate().filter(move |(_, t)| usize::from(**t) == ty).map(|(e, _)| e)
    }

    /// Edges sorted by type, and the place of every edge among them.
    fn sorted(&self) -> (Vec<u32>, Vec<u32>) {
        let order = TypeIndex::new(&self.types, TYPES).rows().to_vec();
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &e)| place[e as usize] = at as u32);
        (order, place)
    }
}

type Call = dyn Fn(&Typed, &[Tensor<1>], bool) -> Tensor<1> + Sync;

/// An operator with fixed parameters. Operands come flat; a number is that of columns.
pub(crate) struct Family {
    pub(crate) name: String,
    operands: Vec<(On, usize)>,
    out: (On, usize),
    /// Whether the result is one of the messages, so that no order of anything changes its value.
    pub(crate) selects: bool,
    /// Whether Burn's products take part, whose bits depend on the machine.
    pub(crate) by_gemm: bool,
    call: Box<Call>,
}

impl Family {
    fn new(
        name: String,
        operands: &[(On, usize)],
        out: (On, usize),
        call: impl Fn(&Typed, &[Tensor<1>], bool) -> Tensor<1> + Sync + 'static,
    ) -> Self {
        Self { name, operands: operands.to_vec(), out, selects: false, by_gemm: false, call: Box::new(call) }
    }

    fn selecting(self, selects: bool) -> Self {
        Self { selects, ..self }
    }

    /// Where the vectors of [`values`](Self::values) and [`run`](Self::run) lie: operands, result.
    pub(crate) fn places(&self) -> Vec<(On, usize)> {
        [&self.operands[..], &[self.out]].concat()
    }

    /// Operands, and behind them the cotangent of the result.
    pub(crate) fn values(&self, g: &Typed, seed: u64) -> Vec<Vec<f64>> {
        let places = self.places().into_iter().enumerate();
        places.map(|(i, (on, width))| numbers(16 * seed + i as u64, g.rows(on) * width)).collect()
    }

    /// Gradients of the operands, and behind them the result.
    pub(crate) fn run(&self, g: &Typed, values: &[Vec<f64>], place: (&Device, DType), reference: bool) -> Vec<Vec<f64>> {
        let device = place.0.clone().autodiff();
        let line = |x: &Vec<f64>| Tensor::<1>::from_data(TensorData::new(x.clone(), [x.len()]), (&device, place.1));
        let Some((cotangent, operands)) = values.split_last() else { unreachable!("a family has a result") };
        let operands: Vec<_> = operands.iter().map(|x| line(x).require_grad()).collect();
        let out = (self.call)(g, &operands, reference);
        let mut loss = (out.clone() * line(cotangent)).sum();
        if reference {
            // The reference of a relation without edges leaves operands out of its graph.
            loss = operands.iter().fold(loss, |loss, x| loss + (x.clone() * 0.0).sum());
        }
        let grads = loss.backward();
        let gradient = |x: &Tensor<1>| f64s(x.grad(&grads).unwrap_or_else(|| panic!("{}: an operand without gradient", self.name)));
        operands.iter().map(gradient).chain([f64s(out)]).collect()
    }
}

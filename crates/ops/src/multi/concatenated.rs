//! Concatenates source and edge features of several relations.

use burn::tensor::{DType, FloatDType, Tensor};
use burn_gnn_graph::RelationStack;
use burn_gnn_plan::{BinaryOp, PlanError};

use crate::check::{accept, check_edges, check_list, check_same};
use crate::dense::precision::{cast, enter};
use crate::error::OpsError;

/// Concatenates the source tables of a stack, as [`RelationStack::concatenated`] numbers their rows, so that any
/// operator of this crate can run on all relations at once.
///
/// # Shapes
/// `sources[t]` is `[rows of table t, ..]`, all with one feature shape, element type and device; the result
/// `[rows of all tables, ..]`.
///
/// # Gradients
/// Every table gets the gradient of its rows.
///
/// # Panics
/// With the text of the error that [`try_stack_rows`] returns.
///
/// # Cost
/// Every row is copied once; a single table is not copied.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{Relation, RelationStack};
/// use burn_gnn_ops::{copy_u_sum, stack_rows};
/// let writes = Relation::from_coo(2, 1, vec![0, 1], vec![0, 0])?;
/// let cites = Relation::from_coo(1, 1, vec![0], vec![0])?;
/// let stack = RelationStack::new(1, &[2, 1], &[(0, writes), (1, cites)])?;
/// let (authors, papers) = (Tensor::<1>::from_data([1.0, 2.0], &Device::flex()), Tensor::from_data([6.0], &Device::flex()));
/// let rows = stack_rows(&stack, vec![authors, papers]);
/// assert_eq!(copy_u_sum(stack.concatenated(), rows).into_data().try_to_vec::<f32>().unwrap(), [9.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn stack_rows<const D: usize>(stack: &RelationStack, sources: Vec<Tensor<D>>) -> Tensor<D> {
    accept(try_stack_rows("stack_rows", stack, sources))
}

/// [`stack_rows`] that returns an error instead of panicking. `op` is the name of the operator in the error.
///
/// # Errors
/// No tables; not one tensor per table; a tensor with a wrong number of rows; different feature shapes, element types or
/// devices; an element type without a kernel.
pub fn try_stack_rows<const D: usize>(
    op: &'static str,
    stack: &RelationStack,
    sources: Vec<Tensor<D>>,
) -> Result<Tensor<D>, OpsError> {
    check_sources(op, stack, &sources)?;
    match join(sources) {
        Some(rows) => Ok(rows),
        None => unreachable!("`check_sources` rejects a stack without tables"),
    }
}

/// Concatenates validated tensors; `None` without tensors.
fn join<const D: usize>(mut x: Vec<Tensor<D>>) -> Option<Tensor<D>> {
    // A single tensor is not copied.
    if x.len() > 1 { Some(Tensor::cat(x, 0)) } else { x.pop() }
}

fn check_sources<const D: usize>(
    op: &'static str,
    stack: &RelationStack,
    sources: &[Tensor<D>],
) -> Result<(), OpsError> {
    let tables = stack.table_offsets();
    if tables.len() == 1 {
        // Without tables the element type and the device of the result are unknown.
        return Err(PlanError::Parameter {
            op,
            arg: "stack tables",
            range: "at least 1",
            value: 0.0,
        }
        .into());
    }
    let mut rows = tables.windows(2).map(|w| (w[1] - w[0]) as usize);
    check_list(
        op,
        "sources",
        sources,
        "one tensor per table of the stack",
        ("number of rows (rows of its table)", &mut rows),
    )
}

/// Validated operands in the precision in effect. A list that the operator ignores is empty.
pub(super) struct Operands<const L: usize, const R: usize> {
    /// By table.
    pub(super) sources: Vec<Tensor<L>>,
    /// By relation.
    pub(super) edges: Vec<Tensor<R>>,
}

impl<const L: usize, const R: usize> Operands<L, R> {
    pub(super) fn new(
        name: &'static str,
        stack: &RelationStack,
        op: BinaryOp,
        sources: Vec<Tensor<L>>,
        edges: Vec<Tensor<R>>,
    ) -> Result<Self, OpsError> {
        let sources = if op.uses_lhs() { enter_all(name, "sources", sources)? } else { Vec::new() };
        let edges = if op.uses_rhs() { enter_all(name, "edges", edges)? } else { Vec::new() };
        if op.uses_lhs() {
            check_sources(name, stack, &sources)?;
        }
        if op.uses_rhs() {
            if stack.is_empty() {
                return Err(PlanError::Parameter {
                    op: name,
                    arg: "stack relations",
                    range: "at least 1",
                    value: 0.0,
                }
                .into());
            }
            check_edges(name, "edges", &edges, stack)?;
        }
        if let (Some(x), Some(w)) = (sources.first(), edges.first()) {
            check_same(name, ("edges", w), ("sources", x))?;
        }
        Ok(Self { sources, edges })
    }

    /// Element type of all operands.
    pub(super) fn dtype(&self) -> DType {
        match (self.sources.first(), self.edges.first()) {
            (Some(x), _) => x.dtype(),
            (None, Some(w)) => w.dtype(),
            (None, None) => unreachable!("every operator reads an operand"),
        }
    }

    /// Casts f16 and bf16 to f32.
    pub(super) fn wide(self) -> Self {
        if !matches!(self.dtype(), DType::F16 | DType::BF16) {
            return self;
        }
        Self {
            sources: self.sources.into_iter().map(|x| cast(x, FloatDType::F32)).collect(),
            edges: self.edges.into_iter().map(|w| cast(w, FloatDType::F32)).collect(),
        }
    }

    /// All source rows and all edge rows of the concatenated relation.
    pub(super) fn concatenated(self) -> (Option<Tensor<L>>, Option<Tensor<R>>) {
        (join(self.sources), join(self.edges))
    }

    /// The operands of relation `r`, whose sources are the rows of `table`.
    pub(super) fn of(&self, r: usize, table: usize) -> (Option<Tensor<L>>, Option<Tensor<R>>) {
        (self.sources.get(table).cloned(), self.edges.get(r).cloned())
    }
}

fn enter_all<const D: usize>(
    op: &'static str,
    arg: &'static str,
    x: Vec<Tensor<D>>,
) -> Result<Vec<Tensor<D>>, OpsError> {
    x.into_iter().map(|x| enter(op, arg, x)).collect()
}

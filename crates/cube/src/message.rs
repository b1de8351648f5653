//! Computes the message of one edge on the device.

use cubecl::prelude::*;

use crate::layout::Layout;
pub(crate) use crate::layout::Visit;

/// Where an operand's row comes from, seen from an edge that is visited in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The row that is being made; the source, where rows are edges.
    Row,
    /// The node at the other endpoint; the destination, where rows are edges.
    Far,
    /// The edge id.
    Edge,
}

/// How a column of the message finds its operand entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Find {
    /// It has the same column.
    Same,
    /// By a division.
    Repeat,
    /// By a table.
    Table,
}

/// What a message is made of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Formula {
    /// `a`
    A,
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a · b`
    Mul,
    /// `a / b`
    Div,
    /// `-(a · (b / c)) / c`: not through `c²`, which leaves the range of floats long before the quotient does.
    Quotient,
}

/// What is known when a kernel is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    pub(crate) visit: Visit,
    /// Whether long rows are left to another launch.
    pub(crate) split: bool,
    /// Whether positions have an array of edge ids.
    pub(crate) edge_ids: bool,
    pub(crate) formula: Formula,
    /// Whether only argmax or argmin edges bring anything.
    pub(crate) argmax: bool,
    /// Whether `a` is divided by the degree of its row.
    pub(crate) share: bool,
    /// Whether sums are divided by the number of edges.
    pub(crate) mean: bool,
    /// Whether sums are subtracted.
    pub(crate) minus: bool,
    /// Messages that are on their way at a time.
    pub(crate) flight: usize,
}

impl Message {
    /// The row of the far node, of every edge.
    pub(crate) fn new(visit: Visit, layout: Option<&Layout>) -> Self {
        Self {
            visit,
            split: layout.is_some_and(|layout| layout.heavy.is_some()),
            edge_ids: layout.is_some_and(|layout| layout.edge_ids.is_some()),
            formula: Formula::A,
            argmax: false,
            share: false,
            mean: false,
            minus: false,
            flight: 1,
        }
    }
}

/// How rows of an operand are read.
#[derive(CubeType, CubeLaunch)]
pub(crate) struct Operand {
    /// Length of a row, in vectors.
    pub(crate) len: usize,
    /// Columns that an entry serves.
    pub(crate) times: usize,
    /// Where its table of columns starts.
    pub(crate) table: usize,
    #[cube(comptime)]
    pub(crate) place: Place,
    #[cube(comptime)]
    pub(crate) find: Find,
}

/// The edges of one visit.
#[derive(CubeType)]
pub(crate) struct Span {
    pub(crate) row: usize,
    /// The row of the result: of chunks the chunk.
    pub(crate) at: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The edges of task `task`: a row, or a chunk, whose row and start `table` has.
#[cube]
pub(crate) fn span(
    indptr: &[u32],
    table: &[u32],
    task: usize,
    chunks: usize,
    #[comptime] message: Message,
    #[comptime] chunk: usize,
) -> Span {
    let mut row = task;
    let mut start = 0usize;
    let mut end = 1usize;
    if comptime!(message.visit == Visit::Chunks) {
        row = table[task] as usize;
        start = table[chunks + task] as usize;
        end = indptr[row + 1] as usize;
        if end - start > chunk {
            end = start + chunk;
        }
    } else if comptime!(message.visit == Visit::Rows) {
        start = indptr[row] as usize;
        end = indptr[row + 1] as usize;
    }
    Span { row, at: task, start, end }
}

/// Row, far node and edge id of position `p`.
#[derive(CubeType)]
pub(crate) struct Step {
    pub(crate) row: usize,
    pub(crate) far: usize,
    pub(crate) edge: usize,
}

#[cube]
pub(crate) fn step(
    indptr: &[u32],
    indices: &[u32],
    edge_ids: &[u32],
    row: usize,
    p: usize,
    #[comptime] message: Message,
) -> Step {
    let mut near = row;
    let mut far = row;
    let mut edge = row;
    if comptime!(message.visit == Visit::Edges) {
        near = indptr[row] as usize;
        far = indices[row] as usize;
    } else if comptime!(message.visit != Visit::Plain) {
        far = indices[p] as usize;
        if comptime!(message.edge_ids) {
            edge = edge_ids[p] as usize;
        } else {
            edge = p;
        }
    }
    Step { row: near, far, edge }
}

#[cube]
pub(crate) fn at(step: &Step, #[comptime] place: Place) -> usize {
    if comptime!(place == Place::Row) {
        step.row
    } else if comptime!(place == Place::Far) {
        step.far
    } else {
        step.edge
    }
}

/// Vector `col` of the message, as far as this operand makes it.
#[cube]
pub(crate) fn read<F: Float, M: Size, A: Float, N: Size>(
    x: &[Vector<F, M>],
    how: &Operand,
    tables: &[u32],
    step: &Step,
    col: usize,
) -> Vector<A, N> {
    let base = at(step, comptime!(how.place)) * how.len;
    if comptime!(how.find == Find::Same) {
        Vector::<A, N>::cast_from(x[base + col])
    } else if comptime!(how.find == Find::Repeat) {
        Vector::<A, N>::cast_from(x[base + (col * N::value()) / how.times])
    } else {
        Vector::<A, N>::cast_from(x[base + tables[how.table + col] as usize])
    }
}

/// Vector `col` of `a` with `b`, for all formulas but the quotient.
#[cube]
#[allow(clippy::too_many_arguments)]
pub(crate) fn pair<F: Float, MA: Size, MB: Size, A: Float, N: Size>(
    a: &[Vector<F, MA>],
    b: &[Vector<F, MB>],
    how_a: &Operand,
    how_b: &Operand,
    tables: &[u32],
    step: &Step,
    col: usize,
    #[comptime] message: Message,
) -> Vector<A, N> {
    let x = read::<F, MA, A, N>(a, how_a, tables, step, col);
    with::<F, MB, A, N>(x, b, how_b, tables, step, col, message)
}

/// Vector `col` of `x` with `b`, for all formulas but the quotient.
#[cube]
fn with<F: Float, MB: Size, A: Float, N: Size>(
    x: Vector<A, N>,
    b: &[Vector<F, MB>],
    how_b: &Operand,
    tables: &[u32],
    step: &Step,
    col: usize,
    #[comptime] message: Message,
) -> Vector<A, N> {
    if comptime!(message.formula == Formula::A) {
        x
    } else {
        let y = read::<F, MB, A, N>(b, how_b, tables, step, col);
        if comptime!(message.formula == Formula::Add) {
            x + y
        } else if comptime!(message.formula == Formula::Sub) {
            x - y
        } else if comptime!(message.formula == Formula::Mul) {
            x * y
        } else {
            x / y
        }
    }
}

/// Vector `col` of the message of one edge.
#[cube]
#[allow(clippy::too_many_arguments)]
pub(crate) fn message<F: Float, MA: Size, MB: Size, MC: Size, A: Float, N: Size>(
    a: &[Vector<F, MA>],
    b: &[Vector<F, MB>],
    c: &[Vector<F, MC>],
    how_a: &Operand,
    how_b: &Operand,
    how_c: &Operand,
    tables: &[u32],
    argmax: &[Vector<u32, N>],
    degrees: &[u32],
    step: &Step,
    width: usize,
    col: usize,
    #[comptime] message: Message,
) -> Vector<A, N> {
    let zero = Vector::<A, N>::new(A::new(0.0_f32));
    let mut x = read::<F, MA, A, N>(a, how_a, tables, step, col);
    if comptime!(message.share) {
        let row = at(step, comptime!(how_a.place));
        let degree = degrees[row + 1] - degrees[row];
        x *= Vector::<A, N>::new(A::new(1.0_f32) / A::cast_from(degree));
    }
    if comptime!(message.formula == Formula::Quotient) {
        let y = read::<F, MB, A, N>(b, how_b, tables, step, col);
        let z = read::<F, MC, A, N>(c, how_c, tables, step, col);
        x = zero - (x * (y / z)) / z;
    } else {
        x = with::<F, MB, A, N>(x, b, how_b, tables, step, col, message);
    }
    if comptime!(message.argmax) {
        // Chosen, not multiplied by 0: an infinity of another edge must not become NaN.
        let row = at(step, comptime!(how_a.place));
        let is_argmax = argmax[row * width + col].equal(&Vector::<u32, N>::new(step.edge as u32));
        x = select_many(is_argmax, x, zero);
    }
    x
}

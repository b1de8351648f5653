//! Computes the message of an edge on the device.

use cubecl::prelude::*;

use crate::message::walk::{Edges, Span, Step};

/// The operand row that an edge reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The row of the result. If rows are edges: the source.
    Row,
    /// The node at the other endpoint. If rows are edges: the destination.
    Far,
    /// The edge id.
    Edge,
}

/// How the operand entry of a column is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Find {
    /// It is the same column.
    Same,
    /// By a division.
    Repeat,
    /// By a table.
    Table,
}

/// A message as a function of its operands.
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
    /// `-(a · (b / c)) / c`, not `-a · b / c²`: `c²` overflows or underflows long before the quotient does.
    Quotient,
}

/// Computes the messages of edges.
#[cube]
pub(crate) trait Messages<A: Float, N: Size> {
    /// Vector `col` of the message of an edge.
    fn message(&self, step: &Step, col: usize) -> Vector<A, N>;
}

/// Vector `col` of the sum of the messages of a row or chunk, in ascending edge id.
#[cube]
pub(crate) fn sum<A: Float, N: Size, M: Messages<A, N>>(
    edges: &Edges,
    span: &Span,
    messages: &M,
    col: usize,
) -> Vector<A, N> {
    let flight = comptime!(edges.flight);
    let mut sum = Vector::<A, N>::new(A::new(0.0_f32));
    let mut p = span.start;
    if comptime!(flight > 1) {
        while p + flight <= span.end {
            let mut held = Sequence::<Vector<A, N>>::new();
            #[unroll]
            for i in 0..flight {
                held.push(messages.message(&edges.step(span.row, p + i), col));
            }
            #[unroll]
            for i in 0..flight {
                sum += held[i];
            }
            p += flight;
        }
    }
    while p < span.end {
        sum += messages.message(&edges.step(span.row, p), col);
        p += 1;
    }
    sum
}

/// An operand, and how messages read it.
#[derive(CubeType, CubeLaunch)]
pub(crate) struct Operand<F: Float, M: Size> {
    x: Box<[Vector<F, M>]>,
    /// Length of a row, in vectors.
    len: usize,
    /// Number of columns that read an entry.
    times: usize,
    /// Start of its table of columns.
    table: usize,
    #[cube(comptime)]
    place: Place,
    #[cube(comptime)]
    find: Find,
}

#[cube]
impl<F: Float, M: Size> Operand<F, M> {
    fn row(&self, step: &Step) -> usize {
        if comptime!(self.place == Place::Row) {
            step.row
        } else if comptime!(self.place == Place::Far) {
            step.far
        } else {
            step.edge
        }
    }

    /// The entries of this operand that vector `col` of the message reads.
    fn read<A: Float, N: Size>(&self, tables: &[u32], step: &Step, col: usize) -> Vector<A, N> {
        let base = self.row(step) * self.len;
        if comptime!(self.find == Find::Same) {
            Vector::<A, N>::cast_from(self.x[base + col])
        } else if comptime!(self.find == Find::Repeat) {
            Vector::<A, N>::cast_from(self.x[base + (col * N::value()) / self.times])
        } else {
            Vector::<A, N>::cast_from(self.x[base + tables[self.table + col] as usize])
        }
    }
}

/// The operands of a formula, as a kernel reads them.
#[derive(CubeType, CubeLaunch)]
pub(crate) struct Operands<F: Float, N: Size, MA: Size, MB: Size, MC: Size> {
    a: Operand<F, MA>,
    b: Operand<F, MB>,
    c: Operand<F, MC>,
    /// Tables of columns of all operands, followed by the columns of each entry of a contraction.
    pub(crate) tables: Box<[u32]>,
    /// Argmax edge ids by row of `a`, if only these edges contribute.
    argmax: ComptimeOption<Box<[Vector<u32, N>]>>,
    /// Row offsets, if the rows of `a` are divided by their degrees.
    degrees: ComptimeOption<Box<[u32]>>,
    /// Columns, in vectors.
    pub(crate) width: usize,
    #[cube(comptime)]
    formula: Formula,
}

#[cube]
impl<F: Float, A: Float, N: Size, MA: Size, MB: Size, MC: Size> Messages<A, N>
    for Operands<F, N, MA, MB, MC>
{
    fn message(&self, step: &Step, col: usize) -> Vector<A, N> {
        let zero = Vector::<A, N>::new(A::new(0.0_f32));
        let mut x = self.a.read::<A, N>(&self.tables, step, col);
        #[comptime]
        if let ComptimeOption::Some(degrees) = &self.degrees {
            let row = self.a.row(step);
            let degree = degrees[row + 1] - degrees[row];
            x *= Vector::<A, N>::new(A::new(1.0_f32) / A::cast_from(degree));
        }
        if comptime!(self.formula != Formula::A) {
            let y = self.b.read::<A, N>(&self.tables, step, col);
            if comptime!(self.formula == Formula::Add) {
                x += y;
            } else if comptime!(self.formula == Formula::Sub) {
                x -= y;
            } else if comptime!(self.formula == Formula::Mul) {
                x *= y;
            } else if comptime!(self.formula == Formula::Div) {
                x /= y;
            } else {
                let z = self.c.read::<A, N>(&self.tables, step, col);
                x = zero - (x * (y / z)) / z;
            }
        }
        #[comptime]
        if let ComptimeOption::Some(argmax) = &self.argmax {
            // Selected rather than multiplied by 0: an infinity of another edge must not become NaN.
            let ids = argmax[self.a.row(step) * self.width + col];
            let is_argmax = ids.equal(&Vector::<u32, N>::new(step.edge as u32));
            x = select_many(is_argmax, x, zero);
        }
        x
    }
}

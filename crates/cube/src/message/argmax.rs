//! Reduces messages by max or min per column, with the argmax edge ids.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::{DType, Shape};
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::device::launch::{
    address, arg, empty, grid, grid_of_rows, in_flight, vector, wide, zeros,
};
use crate::message::formula::{Formula, Messages, MessagesExpand, Operands};
use crate::message::layout::Layout;
use crate::message::message_pass::{Source, lengths, loads, messages};
use crate::message::walk::{Edges, Visit};

/// Whether `x` replaces `best`: it must be strictly better, so the first of equal messages wins. NaN is better than every
/// number, and the first NaN wins.
#[cube]
fn better<A: Float, N: Size>(
    x: Vector<A, N>,
    best: Vector<A, N>,
    #[comptime] max: bool,
) -> Vector<bool, N> {
    let beyond = if comptime!(max) { x.greater_than(&best) } else { x.less_than(&best) };
    let nan = select_many(best.is_nan(), Vector::<bool, N>::new(false), x.is_nan());
    beyond.or(nan)
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn select_kernel<F: Float, A: Float, O: Float, N: Size, MA: Size, MB: Size>(
    edges: &Edges,
    messages: &Operands<F, N, MA, MB, Const<1>>,
    out: &mut [Vector<O, N>],
    argmax: &mut [Vector<u32, N>],
    #[comptime] max: bool,
    #[define(F, A, O)] _types: [ElemType; 3],
) {
    let pos = ABSOLUTE_POS;
    let span = edges.own_span(messages.width);
    let col = pos % messages.width;
    let flight = comptime!(edges.flight);
    let mut best = Vector::<A, N>::new(A::new(0.0_f32));
    let mut arg = Vector::<u32, N>::new(u32::MAX);
    let mut p = span.start;
    if p < span.end {
        // The first message is the first candidate of all columns, whatever its value.
        let s = edges.step(span.row, p);
        best = messages.message(&s, col);
        arg = Vector::<u32, N>::new(s.edge as u32);
        p += 1;
    }
    if comptime!(flight > 1) {
        while p + flight <= span.end {
            let mut held = Sequence::<Vector<A, N>>::new();
            let mut ids = Sequence::<u32>::new();
            #[unroll]
            for i in 0..flight {
                let s = edges.step(span.row, p + i);
                held.push(messages.message(&s, col));
                ids.push(s.edge as u32);
            }
            #[unroll]
            for i in 0..flight {
                let x = held[i];
                let take = better::<A, N>(x, best, max);
                best = select_many(take, x, best);
                arg = select_many(take, Vector::<u32, N>::new(ids[i]), arg);
            }
            p += flight;
        }
    }
    while p < span.end {
        let s = edges.step(span.row, p);
        let x = messages.message(&s, col);
        let take = better::<A, N>(x, best, max);
        best = select_many(take, x, best);
        arg = select_many(take, Vector::<u32, N>::new(s.edge as u32), arg);
        p += 1;
    }
    out[pos] = Vector::<O, N>::cast_from(best);
    argmax[pos] = arg;
}

/// Combines the argmax or argmin of the chunks of long rows, in order.
#[cube(launch_unchecked, address_type = "dynamic")]
fn combine_argmax_kernel<A: Float, O: Float>(
    parts: &[A],
    part_argmax: &[u32],
    index: &[u32],
    out: &mut [O],
    argmax: &mut [u32],
    rows: usize,
    width: usize,
    #[comptime] max: bool,
    #[define(A, O)] _types: [ElemType; 2],
) {
    let pos = ABSOLUTE_POS;
    if pos >= rows * width {
        terminate!();
    }
    let long = pos / width;
    let col = pos % width;
    let first = index[rows + long] as usize;
    let mut best = Vector::<A, Const<1>>::new(parts[first * width + col]);
    let mut arg = Vector::<u32, Const<1>>::new(part_argmax[first * width + col]);
    for chunk in first + 1..index[rows + long + 1] as usize {
        let x = Vector::<A, Const<1>>::new(parts[chunk * width + col]);
        let id = Vector::<u32, Const<1>>::new(part_argmax[chunk * width + col]);
        let take = better::<A, Const<1>>(x, best, max);
        best = select_many(take, x, best);
        arg = select_many(take, id, arg);
    }
    let at = index[long] as usize * width + col;
    out[at] = O::cast_from(best.extract(0usize));
    argmax[at] = arg.extract(0usize);
}

/// The values and the edge ids of the argmax or argmin, both of `shape`, which has `rows · width` entries.
pub(crate) fn select(
    layout: &Layout,
    formula: Formula,
    operands: &[Source],
    width: usize,
    max: bool,
    shape: Shape,
) -> (CubeTensor, CubeTensor) {
    let like = &operands[0].x;
    if shape.num_elements() == 0 || layout.edges == 0 {
        let argmax = burn_cubecl::ops::numeric::full_device_dtype(
            like.client.clone(),
            shape.clone(),
            like.device.clone(),
            InputScalar::new(-1i32, elem(DType::I32)),
            DType::I32,
        );
        return (zeros(like, shape, like.dtype), argmax);
    }
    let (out, argmax) = (empty(like, shape.clone(), like.dtype), empty(like, shape, DType::I32));
    let launch = |visit, tasks: usize, out: &CubeTensor, argmax: &CubeTensor| {
        let n = vector(&out.client, like.dtype, &lengths(operands, width));
        // A thread holds the best values and their edges. Narrow rows use smaller vectors, so that more threads have work.
        let n = if width <= 64 && n > 1 { n / 2 } else { n };
        let threads = tasks * width / n;
        let (count, dim) = grid_of_rows(&out.client, threads, width);
        // SAFETY: as in `MessagePass::walk`.
        unsafe {
            select_kernel::launch_unchecked(
                &out.client,
                count,
                dim,
                address(operands.iter().map(|source| &source.x).chain([out]), threads),
                n,
                loads(operands, 0, n),
                loads(operands, 1, n),
                Edges::of_rows(layout, visit, in_flight(width)),
                messages(formula, operands, [None, None], &[], width, n),
                arg(out),
                arg(argmax),
                max,
                [elem(like.dtype), elem(wide(like.dtype)), elem(out.dtype)],
            );
        }
    };
    launch(Visit::Rows, layout.rows, &out, &argmax);
    if let Some(heavy) = &layout.heavy {
        let shape = Shape::from(vec![heavy.chunks, width]);
        let (parts, part_argmax) =
            (empty(like, shape.clone(), wide(like.dtype)), empty(like, shape, DType::I32));
        launch(Visit::Chunks, heavy.chunks, &parts, &part_argmax);
        let (count, dim) = grid(&out.client, heavy.rows * width);
        // SAFETY: `index` names rows of the layout and chunks of `parts`; outputs have `width` entries for each row.
        unsafe {
            combine_argmax_kernel::launch_unchecked(
                &out.client,
                count,
                dim,
                address([&parts, &out], heavy.rows * width),
                arg(&parts),
                arg(&part_argmax),
                arg(&heavy.index),
                arg(&out),
                arg(&argmax),
                heavy.rows,
                width,
                max,
                [elem(parts.dtype), elem(out.dtype)],
            );
        }
    }
    (out, argmax)
}

//! Describes and launches a message-passing kernel.

use std::sync::Arc;

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::{AddressType, ElemType};
use cubecl::prelude::{Float, Size};

use crate::device::launch::{
    address, arg, empty, grid, grid_of_rows, in_flight, reshaped, threads_per_block, unread,
    vector, wide, zeros,
};
use crate::device::upload::upload;
use crate::message::broadcast::{Columns, Map};
use crate::message::chunk_sums::sum_rows;
use crate::message::contract::contract_kernel;
use crate::message::edge_sums::walk_kernel;
use crate::message::formula::{Find, Formula, OperandLaunch, OperandsLaunch, Place};
use crate::message::layout::{Endpoints, Layout};
use crate::message::walk::{Edges, EdgesLaunch, Visit};

/// The rows of a result.
#[allow(clippy::large_enum_variant)] // There is one per call, which is moved once.
pub(crate) enum Over {
    /// A row per node: the sum of the messages of its edges.
    Rows(Arc<Layout>),
    /// A row per edge.
    Edges(Endpoints),
    /// This number of rows, without a graph; row `i` reads row `i` of each operand.
    Plain(usize),
}

/// An operand of messages.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) x: CubeTensor,
    pub(crate) place: Place,
    pub(crate) map: Map,
}

impl Source {
    pub(crate) fn new(x: CubeTensor, place: Place, map: Map) -> Self {
        Self { x: into_contiguous(x), place, map }
    }
}

/// One message-passing kernel and its operands.
pub(crate) struct MessagePass {
    pub(crate) over: Over,
    pub(crate) formula: Formula,
    /// The operands `a`, `b`, `c` of the formula, all of one element type.
    pub(crate) operands: Vec<Source>,
    /// Argmax edge ids, one per row and feature of `a`: only these edges contribute.
    pub(crate) argmax: Option<CubeTensor>,
    /// Row offsets, if the rows of `a` are divided by their degrees.
    pub(crate) share: Option<CubeTensor>,
    /// Whether sums are divided by the number of edges.
    pub(crate) mean: bool,
    /// Whether sums are subtracted from 0.
    pub(crate) minus: bool,
    /// Columns of a message.
    pub(crate) width: usize,
    /// How columns are summed into entries of the result.
    pub(crate) own: Map,
    /// Shape and element type of the result.
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

/// The lengths that a vector size must divide.
pub(crate) fn lengths(operands: &[Source], width: usize) -> Vec<usize> {
    let mut lengths = vec![width];
    lengths.extend(operands.iter().map(|s| match &s.map.columns {
        Columns::Same => width,
        Columns::Repeat(times) => *times,
        Columns::Table(_) => 1,
    }));
    lengths
}

/// Vector size of the loads of operand `i`, for messages in vectors of `n`.
pub(crate) fn loads(operands: &[Source], i: usize, n: usize) -> usize {
    operands.get(i).map_or(1, |s| if s.map.columns == Columns::Same { n } else { 1 })
}

/// The kernel argument of operand `i`, for messages in vectors of `n`; a placeholder if there is no such operand.
fn operand<F: Float, M: Size>(operands: &[Source], i: usize, n: usize) -> OperandLaunch<F, M> {
    let Some(Source { x, place, map }) = operands.get(i) else {
        return OperandLaunch::new(unread(), 0, 1, 0, Place::Row, Find::Same);
    };
    let (len, times, find) = match &map.columns {
        Columns::Same => (map.len / n, 1, Find::Same),
        Columns::Repeat(times) => (map.len, *times, Find::Repeat),
        Columns::Table(_) => (map.len, 1, Find::Table),
    };
    let table = operands[..i].iter().map(|source| source.map.table().len()).sum();
    OperandLaunch::new(arg(x), len, times, table, *place, find)
}

/// The kernel argument of all operands, for messages of `width` columns in vectors of `n`.
pub(crate) fn messages<F: Float, N: Size, MA: Size, MB: Size, MC: Size>(
    formula: Formula,
    operands: &[Source],
    [argmax, share]: [Option<&CubeTensor>; 2],
    listed: &[u32],
    width: usize,
    n: usize,
) -> OperandsLaunch<F, N, MA, MB, MC> {
    let tables = operands.iter().flat_map(|source| source.map.table()).chain(listed);
    let tables: Vec<u32> = tables.copied().collect();
    let tables = if tables.is_empty() {
        unread()
    } else {
        arg(&upload("columns", &tables, &operands[0].x.device))
    };
    OperandsLaunch::new(
        operand(operands, 0, n),
        operand(operands, 1, n),
        operand(operands, 2, n),
        tables,
        argmax.map(arg).into(),
        share.map(arg).into(),
        width / n,
        formula,
    )
}

impl MessagePass {
    /// Sums of messages of `width` columns, in the element type of the first operand.
    pub(crate) fn new(
        over: Over,
        formula: Formula,
        operands: Vec<Source>,
        width: usize,
        shape: Shape,
    ) -> Self {
        let dtype = operands[0].x.dtype;
        let (argmax, share, mean, minus) = (None, None, false, false);
        let own = Map::same(width);
        Self { over, formula, operands, argmax, share, mean, minus, width, own, shape, dtype }
    }

    /// Computes the result, which is 0 if there are no messages.
    pub(crate) fn run(self) -> CubeTensor {
        let like = self.operands[0].x.clone();
        let edges = match &self.over {
            Over::Rows(layout) => layout.edges,
            Over::Edges(endpoints) => endpoints.edges,
            Over::Plain(rows) => *rows,
        };
        if self.shape.num_elements() == 0
            || self.width == 0
            || edges == 0
            || self.operands.iter().any(|s| s.x.meta.num_elements() == 0)
        {
            return zeros(&like, self.shape, self.dtype);
        }
        let out = empty(&like, self.shape.clone(), self.dtype);
        match &self.over {
            Over::Rows(layout) => {
                let launch = |visit, tasks, out: &CubeTensor| self.launch(visit, tasks, out);
                sum_rows(layout, &out, self.own.len, wide(self.dtype), self.mean, launch);
            }
            Over::Edges(endpoints) => self.launch(Visit::Edges, endpoints.edges, &out),
            Over::Plain(rows) => self.launch(Visit::Plain, *rows, &out),
        }
        reshaped(out, self.shape)
    }

    fn launch(&self, visit: Visit, tasks: usize, out: &CubeTensor) {
        if self.own.columns == Columns::Same {
            self.walk(visit, tasks, out);
        } else {
            self.contract(visit, tasks, out);
        }
    }

    fn edges(&self, visit: Visit, flight: usize) -> EdgesLaunch {
        match &self.over {
            Over::Rows(layout) => Edges::of_rows(layout, visit, flight),
            Over::Edges(endpoints) => Edges::of_endpoints(endpoints),
            Over::Plain(rows) => Edges::none(*rows, &self.operands[0].x),
        }
    }

    fn messages<F: Float, N: Size, MA: Size, MB: Size, MC: Size>(
        &self,
        listed: &[u32],
        n: usize,
    ) -> OperandsLaunch<F, N, MA, MB, MC> {
        let by_row = [self.argmax.as_ref(), self.share.as_ref()];
        messages(self.formula, &self.operands, by_row, listed, self.width, n)
    }

    fn types(&self, out: &CubeTensor) -> [ElemType; 3] {
        let x = self.operands[0].x.dtype;
        let sums = if x == DType::F64 || out.dtype == DType::F64 { DType::F64 } else { DType::F32 };
        [elem(x), elem(sums), elem(out.dtype)]
    }

    fn address(&self, out: &CubeTensor, threads: usize) -> AddressType {
        address(self.operands.iter().map(|source| &source.x).chain([out]), threads)
    }

    fn walk(&self, visit: Visit, tasks: usize, out: &CubeTensor) {
        let (client, width) = (&out.client, self.width);
        let n = vector(client, self.operands[0].x.dtype, &lengths(&self.operands, width));
        let threads = tasks * width / n;
        let (count, dim) = match self.over {
            Over::Rows(_) => grid_of_rows(client, threads, width),
            _ => grid(client, threads),
        };
        let [la, lb, lc] = [0, 1, 2].map(|i| loads(&self.operands, i, n));
        // SAFETY: ids of a relation lie below its numbers of nodes and edges, which operands have rows for, of the
        // widths that their maps say, all of one type: the code that makes a job has checked it (`check::Call`).
        // Columns of maps lie inside those rows; chunks are those of the layout; `out` has `tasks` rows of `width / n`
        // vectors, and threads beyond them return early.
        unsafe {
            walk_kernel::launch_unchecked(
                client,
                count,
                dim,
                self.address(out, threads),
                n,
                la,
                lb,
                lc,
                self.edges(visit, in_flight(width)),
                self.messages(&[], n),
                arg(out),
                self.mean,
                self.minus,
                self.types(out),
            );
        }
    }

    fn contract(&self, visit: Visit, tasks: usize, out: &CubeTensor) {
        let client = &out.client;
        let entries = self.own.len;
        let is_listed = matches!(self.own.columns, Columns::Table(_));
        let inverse = if is_listed { self.own.inverse() } else { vec![] };
        let mut lengths = lengths(&self.operands, self.width);
        // The columns of a vector belong to one entry.
        lengths.push(if is_listed { 1 } else { self.width / entries });
        let n = vector(client, self.operands[0].x.dtype, &lengths);
        let columns = self.width / entries / n;
        let threads = threads_per_block(client) as usize;
        let group = columns.next_power_of_two().min(32).min(threads);
        let list = self.operands.iter().map(|source| source.map.table().len()).sum();
        let (count, dim) = grid(client, tasks * entries * group);
        let [la, lb, lc] = [0, 1, 2].map(|i| loads(&self.operands, i, n));
        // SAFETY: as in `walk`; threads beyond the last entry visit no edge and write nothing.
        unsafe {
            contract_kernel::launch_unchecked(
                client,
                count,
                dim,
                self.address(out, tasks * entries * group),
                n,
                la,
                lb,
                lc,
                self.edges(visit, 1),
                self.messages(&inverse, n),
                arg(out),
                entries,
                columns,
                list,
                is_listed,
                self.mean,
                self.minus,
                group,
                threads,
                self.types(out),
            );
        }
    }
}

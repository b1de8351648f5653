//! Launches one message-passing kernel from a plan.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use crate::broadcast::{Columns, Map};
use crate::chunk_sums::combine;
use crate::contract::contract_kernel;
use crate::device::{dummy, upload};
use crate::edge_sums::{each_kernel, walk_kernel};
use crate::launch::{
    address, arg, empty, grid, grid_of_rows, in_flight, reshaped, threads_per_block, vector, wide,
    zeros,
};
use crate::layout::{CHUNK, Endpoints, Layout};
use crate::message::{Find, Formula, Message, OperandLaunch, Place, Visit};

/// What the rows of a result are.
#[derive(Clone, Copy)]
pub(crate) enum Over<'a> {
    /// Nodes; their edges are summed.
    Rows(&'a Layout),
    /// Edges.
    Edges(&'a Endpoints),
    /// Rows without edges, this many: operands have one row each.
    Plain(usize),
}

impl Over<'_> {
    fn rows(&self) -> usize {
        match self {
            Self::Rows(layout) => layout.rows,
            Self::Edges(endpoints) => endpoints.edges,
            Self::Plain(rows) => *rows,
        }
    }
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
    fn find(&self) -> Find {
        match self.map.columns {
            Columns::Same => Find::Same,
            Columns::Repeat(_) => Find::Repeat,
            Columns::Table(_) => Find::Table,
        }
    }
}

/// One pass.
pub(crate) struct MessagePass<'a> {
    pub(crate) over: Over<'a>,
    pub(crate) formula: Formula,
    /// `a`, `b`, `c`, as many as the formula has, all of one element type.
    pub(crate) operands: Vec<Source>,
    /// Argmax edge ids, one per row and feature of `a`: only these edges contribute.
    pub(crate) argmax: Option<CubeTensor>,
    /// Row offsets whose differences divide the rows of `a`.
    pub(crate) share: Option<CubeTensor>,
    /// Sums are divided by the number of edges.
    pub(crate) mean: bool,
    /// Sums are subtracted from 0.
    pub(crate) minus: bool,
    /// Columns of a message.
    pub(crate) width: usize,
    /// How columns are summed into entries of the result.
    pub(crate) own: Map,
    /// Shape and element type of the result.
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

/// Tables of columns, concatenated.
pub(crate) struct Tables {
    values: Vec<u32>,
    starts: Vec<usize>,
}

impl Tables {
    pub(crate) fn new(operands: &[Source]) -> Self {
        let mut tables = Self { values: Vec::new(), starts: Vec::new() };
        for source in operands {
            let start = tables.values.len();
            tables.starts.push(start);
            if let Columns::Table(t) = &source.map.columns {
                tables.values.extend(t);
            }
        }
        tables
    }
    /// Uploaded, if there are any; else `dummy`, which is never read.
    pub(crate) fn upload(&self, dummy: &CubeTensor) -> CubeTensor {
        if self.values.is_empty() {
            dummy.clone()
        } else {
            upload("columns", &self.values, &dummy.device)
        }
    }
    /// How a kernel reads operand `i` with messages in vectors of `n`.
    pub(crate) fn launch(&self, operands: &[Source], i: usize, n: usize) -> OperandLaunch {
        let Some(source) = operands.get(i) else {
            return OperandLaunch::new(0, 1, 0, Place::Row, Find::Same);
        };
        let (len, times) = match &source.map.columns {
            Columns::Same => (source.map.len / n, 1),
            Columns::Repeat(times) => (source.map.len, *times),
            Columns::Table(_) => (source.map.len, 1),
        };
        OperandLaunch::new(len, times, self.starts[i], source.place, source.find())
    }
}

/// Lengths that the vectors of operands must divide.
pub(crate) fn lengths(operands: &[Source], width: usize) -> Vec<usize> {
    let mut lengths = vec![width];
    lengths.extend(operands.iter().map(|s| match &s.map.columns {
        Columns::Same => width,
        Columns::Repeat(times) => *times,
        Columns::Table(_) => 1,
    }));
    lengths
}

/// Entries of operand `i` that are loaded at once, for messages in vectors of `n`.
pub(crate) fn loads(operands: &[Source], i: usize, n: usize) -> usize {
    operands.get(i).map_or(1, |s| if s.map.columns == Columns::Same { n } else { 1 })
}

impl MessagePass<'_> {
    /// The result; 0 everywhere if there is no message.
    pub(crate) fn run(self) -> CubeTensor {
        let like = self.operands[0].x.clone();
        let edges = match self.over {
            Over::Rows(layout) => layout.edges,
            _ => self.over.rows(),
        };
        if self.shape.num_elements() == 0
            || self.width == 0
            || edges == 0
            || self.operands.iter().any(|s| s.x.meta.num_elements() == 0)
        {
            return zeros(&like, self.shape, self.dtype);
        }
        let out = empty(&like, self.shape.clone(), self.dtype);
        match self.over {
            Over::Rows(layout) => {
                self.launch(Visit::Rows, layout.rows, &out);
                if let Some(heavy) = &layout.heavy {
                    let parts = empty(
                        &like,
                        Shape::from(vec![heavy.chunks, self.own.len]),
                        wide(self.dtype),
                    );
                    self.launch(Visit::Chunks, heavy.chunks, &parts);
                    combine(&parts, heavy, &layout.indptr, &out, self.own.len, self.mean);
                }
            }
            Over::Edges(endpoints) => self.launch(Visit::Edges, endpoints.edges, &out),
            Over::Plain(rows) => self.launch(Visit::Plain, rows, &out),
        }
        reshaped(out, self.shape)
    }

    fn launch(&self, visit: Visit, tasks: usize, out: &CubeTensor) {
        let how = Message {
            formula: self.formula,
            argmax: self.argmax.is_some(),
            share: self.share.is_some(),
            mean: self.mean,
            minus: self.minus,
            ..Message::new(visit, self.layout())
        };
        match self.layout() {
            _ if self.own.columns != Columns::Same => self.contract(how, tasks, out),
            Some(layout) => self.walk(layout, how, tasks, out),
            None => self.each(how, tasks, out),
        }
    }

    fn layout(&self) -> Option<&Layout> {
        match self.over {
            Over::Rows(layout) => Some(layout),
            _ => None,
        }
    }

    /// Index arrays: offsets or sources, neighbours or destinations, edge ids, chunks. Those that a kernel does not
    /// read are others.
    fn index(&self) -> [CubeTensor; 4] {
        match self.over {
            Over::Rows(layout) => [&layout.indptr, &layout.indices, layout.ids(), layout.table()]
                .map(CubeTensor::clone),
            Over::Edges(endpoints) => [
                endpoints.src.clone(),
                endpoints.dst.clone(),
                endpoints.src.clone(),
                endpoints.src.clone(),
            ],
            Over::Plain(_) => {
                let dummy = dummy(&self.operands[0].x);
                std::array::from_fn(|_| dummy.clone())
            }
        }
    }

    fn types(&self, out: &CubeTensor) -> [cubecl::ir::ElemType; 3] {
        let x = self.operands[0].x.dtype;
        let sums = if x == DType::F64 || out.dtype == DType::F64 { DType::F64 } else { DType::F32 };
        [elem(x), elem(sums), elem(out.dtype)]
    }

    fn operand(&self, i: usize) -> &CubeTensor {
        &self.operands.get(i).unwrap_or(&self.operands[0]).x
    }

    fn walk(&self, layout: &Layout, how: Message, tasks: usize, out: &CubeTensor) {
        let n = vector(&out.client, self.operands[0].x.dtype, &lengths(&self.operands, self.width));
        let (tables, operands, width) = (Tables::new(&self.operands), &self.operands, self.width);
        let [a, b, c] = [0, 1, 2].map(|i| self.operand(i));
        let how = Message { flight: in_flight(width), ..how };
        let threads = tasks * width / n;
        let (count, dim) = grid_of_rows(&out.client, threads, width);
        let [la, lb, lc] = [0, 1, 2].map(|i| loads(operands, i, n));
        let [ha, hb, hc] = [0, 1, 2].map(|i| tables.launch(operands, i, n));
        // SAFETY: ids of a relation lie below its numbers of nodes and edges, which operands have rows for, of the
        // widths that their maps say, all of one type: the code that makes a job has checked it (`check::Call`).
        // Columns of maps lie inside those rows; `table` names rows or chunks of the layout; `out` has `tasks` rows
        // of `width / n` vectors, and threads beyond them return early.
        unsafe {
            walk_kernel::launch_unchecked(
                &out.client,
                count,
                dim,
                address(&[a, b, c, out], threads),
                n,
                la,
                lb,
                lc,
                arg(&layout.indptr),
                arg(&layout.indices),
                arg(layout.ids()),
                arg(layout.table()),
                arg(a),
                arg(b),
                arg(c),
                arg(&tables.upload(&layout.indptr)),
                arg(self.argmax.as_ref().unwrap_or(&layout.indptr)),
                arg(self.share.as_ref().unwrap_or(&layout.indptr)),
                arg(out),
                ha,
                hb,
                hc,
                tasks,
                width / n,
                how,
                CHUNK,
                self.types(out),
            );
        }
    }

    fn each(&self, how: Message, tasks: usize, out: &CubeTensor) {
        let client = out.client.clone();
        let n = vector(&client, self.operands[0].x.dtype, &lengths(&self.operands, self.width));
        let (tables, width) = (Tables::new(&self.operands), self.width / n);
        let (count, dim) = grid(&client, tasks * width);
        let [src, dst, ..] = self.index();
        let [a, b, c] = [0, 1, 2].map(|i| self.operand(i));
        let [la, lb, lc] = [0, 1, 2].map(|i| loads(&self.operands, i, n));
        let device_tables = tables.upload(&src);
        let argmax = self.argmax.as_ref().unwrap_or(&src);
        let degrees = self.share.as_ref().unwrap_or(&src);
        let addresses = address(&[a, b, c, out], tasks * width);
        let [ha, hb, hc] = [0, 1, 2].map(|i| tables.launch(&self.operands, i, n));
        // SAFETY: as in `walk`.
        unsafe {
            each_kernel::launch_unchecked(
                &client,
                count,
                dim,
                addresses,
                n,
                la,
                lb,
                lc,
                arg(&src),
                arg(&dst),
                arg(a),
                arg(b),
                arg(c),
                arg(&device_tables),
                arg(argmax),
                arg(degrees),
                arg(out),
                ha,
                hb,
                hc,
                tasks,
                width,
                how,
                self.types(out),
            );
        }
    }

    fn contract(&self, how: Message, tasks: usize, out: &CubeTensor) {
        let client = out.client.clone();
        let entries = self.own.len;
        let listed = matches!(self.own.columns, Columns::Table(_));
        let mut lengths = lengths(&self.operands, self.width);
        // A vector lies inside the columns of one entry.
        lengths.push(if listed { 1 } else { self.width / entries });
        let n = vector(&client, self.operands[0].x.dtype, &lengths);
        let columns = self.width / entries / n;
        let threads = threads_per_block(&client) as usize;
        let group = columns.next_power_of_two().min(32).min(threads);
        let mut tables = Tables::new(&self.operands);
        let list = tables.values.len();
        if listed {
            tables.values.extend(self.own.inverse());
        }
        let (count, dim) = grid(&client, tasks * entries * group);
        let [indptr, indices, ids, chunks] = self.index();
        let [a, b, c] = [0, 1, 2].map(|i| self.operand(i));
        let [la, lb, lc] = [0, 1, 2].map(|i| loads(&self.operands, i, n));
        let device_tables = tables.upload(&indptr);
        let argmax = self.argmax.as_ref().unwrap_or(&indptr);
        let degrees = self.share.as_ref().unwrap_or(&indptr);
        let addresses = address(&[a, b, c, out], tasks * entries * group);
        let [ha, hb, hc] = [0, 1, 2].map(|i| tables.launch(&self.operands, i, n));
        // SAFETY: as in `walk`; threads beyond the last entry visit no edge and write nothing.
        unsafe {
            contract_kernel::launch_unchecked(
                &client,
                count,
                dim,
                addresses,
                n,
                la,
                lb,
                lc,
                arg(&indptr),
                arg(&indices),
                arg(&ids),
                arg(&chunks),
                arg(a),
                arg(b),
                arg(c),
                arg(&device_tables),
                arg(argmax),
                arg(degrees),
                arg(out),
                ha,
                hb,
                hc,
                tasks,
                entries,
                columns,
                self.width / n,
                list,
                listed,
                how,
                CHUNK,
                group,
                threads,
                self.types(out),
            );
        }
    }
}

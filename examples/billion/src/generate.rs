//! Generates a graph with communities and hubs, every number a function of seed and index.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use burn_gnn_files::NpyHead;
use burn_gnn_store::{Renumbering, RowFormat, RowWriter};

use crate::args::Args;

/// Classes of nodes.
pub(crate) const CLASSES: u32 = 16;
/// Communities of about so many nodes.
const COMMUNITY: u32 = 4096;

/// The graph that is generated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    nodes: u32,
    communities: u32,
    edges: u64,
    seed: u64,
}

/// Mixes a word (splitmix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// In `[0, 1)` with 32 bits.
fn unit(word: u64) -> f64 {
    (word >> 32) as f64 / 4_294_967_296.0
}

impl Shape {
    pub(crate) fn new(args: &Args) -> Self {
        let nodes = args.num_nodes();
        Self {
            nodes,
            communities: nodes.div_ceil(COMMUNITY).max(CLASSES.min(nodes)),
            edges: args.edges,
            seed: mix(args.seed),
        }
    }

    /// The community of a node: ranges of ids, as crawls and citation years give them.
    fn community(&self, v: u32) -> u32 {
        (u64::from(v) * u64::from(self.communities) / u64::from(self.nodes)) as u32
    }
    pub(crate) fn class(&self, v: u32) -> u32 {
        self.community(v) % CLASSES
    }

    /// Node of rank `x` in `[0, 1)` among `from..to`: few are met often. Ranks are dealt over the range, so hubs do
    /// not lie together.
    fn ranked(from: u32, to: u32, x: f64) -> u32 {
        let n = u64::from(to - from);
        let rank = ((x * x * x * n as f64) as u64).min(n - 1);
        // Odd, and prime to most sizes: some nodes share a place, none falls out of the range.
        from + (rank.wrapping_mul(2_654_435_761) % n) as u32
    }

    /// Edge number `i`.
    fn edge(&self, i: u64) -> (u32, u32) {
        let a = mix(self.seed ^ i.wrapping_mul(3));
        let b = mix(a);
        let v = (unit(a) * f64::from(self.nodes)) as u32;
        if b & 15 < 12 {
            let c = self.community(v);
            let begin = |c: u32| {
                (u64::from(c) * u64::from(self.nodes)).div_ceil(u64::from(self.communities)) as u32
            };
            (Self::ranked(begin(c), begin(c + 1), unit(b)), v)
        } else {
            (Self::ranked(0, self.nodes, unit(b)), v)
        }
    }

    /// Writes sources and destinations as `.npy` files, as data sets come.
    pub(crate) fn write_edges(&self, src: &Path, dst: &Path) -> Result<()> {
        let mut out =
            [src, dst].map(File::create).into_iter().collect::<std::io::Result<Vec<_>>>()?;
        let mut out: Vec<BufWriter<File>> =
            out.drain(..).map(|f| BufWriter::with_capacity(1 << 20, f)).collect();
        for file in &mut out {
            file.write_all(&NpyHead::bytes("<u4", &[self.edges as usize]))?;
        }
        for i in 0..self.edges {
            let (u, v) = self.edge(i);
            out[0].write_all(&u.to_le_bytes())?;
            out[1].write_all(&v.to_le_bytes())?;
        }
        out.iter_mut().try_for_each(BufWriter::flush)?;
        Ok(())
    }

    /// Writes features, noise around a corner that the class decides, in the order of the files.
    pub(crate) fn write_rows(
        &self,
        path: &Path,
        width: usize,
        order: Option<&Renumbering>,
    ) -> Result<()> {
        const ROWS: u32 = 1 << 10;
        let mut out = RowWriter::create(path, self.nodes as usize, width, RowFormat::F16)?;
        let mut rows = vec![];
        for from in (0..self.nodes).step_by(ROWS as usize) {
            rows.clear();
            for i in from..self.nodes.min(from.saturating_add(ROWS)) {
                self.row(order.map_or(i, |of| of.original_ids()[i as usize]), width, &mut rows);
            }
            out.put(&rows)?;
        }
        out.finish()?;
        Ok(())
    }

    /// Appends the features of a node.
    pub(crate) fn row(&self, v: u32, width: usize, out: &mut Vec<f32>) {
        let class = self.class(v) as usize;
        for column in (0..width).step_by(4) {
            let word =
                mix(self.seed ^ (u64::from(v) << 20 | column as u64) ^ 0x5eed_0000_0000_0000);
            for k in 0..4.min(width - column) {
                let noise = f32::from((word >> (16 * k)) as u16 as i16) / 16_384.0;
                out.push(noise + f32::from(u8::from((column + k) % CLASSES as usize == class)));
            }
        }
    }
}

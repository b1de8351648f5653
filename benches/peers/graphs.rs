//! Generates synthetic graphs by integer arithmetic that another system can repeat.
//!
//! Random numbers are splitmix64 in counter form: number `i` of stream `seed` is a pure function of both,
//! so every array is filled in parallel. Edges come from R-MAT (Chakrabarti, Zhan, Faloutsos, SDM 2004)
//! with quadrants .5, .2, .2, .1; 60 % of them stay inside one of 128 communities. A homogeneous graph has
//! every edge in both directions, a relation of a typed graph has a reverse `rev_<name>`. The tests hold
//! checksums of all edges; features and labels carry no signal.

use rayon::prelude::*;

/// Output `i` of splitmix64 started at `seed`.
pub(crate) fn mix(seed: u64, i: u64) -> u64 {
    let z = seed.wrapping_add((i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The stable order of `mix(seed, 0..n)`.
pub(crate) fn perm(seed: u64, n: usize) -> Vec<u32> {
    let mut keys: Vec<(u64, u32)> =
        (0..n as u32).into_par_iter().map(|i| (mix(seed, u64::from(i)), i)).collect();
    keys.par_sort_unstable();
    keys.into_par_iter().map(|(_, i)| i).collect()
}

/// Levels that a local edge spends on its community.
const COMMUNITY: u32 = 7;

/// `edges` pairs of a source below `num_src` and a destination below `num_dst`.
fn rmat(seed: u64, edges: usize, num_src: usize, num_dst: usize) -> (Vec<u32>, Vec<u32>) {
    let largest = num_src.max(num_dst) as u64;
    let levels = (u64::BITS - (largest - 1).leading_zeros()).max(COMMUNITY + 1);
    let edge = |i: u64| {
        let local = mix(seed, 64 * i + 63) & 0xFFFF < 39_322;
        let (mut s, mut d) = (0u64, 0u64);
        for level in 0..levels {
            let r = mix(seed, 64 * i + u64::from(level));
            let (q, bit) = (r & 0xFFFF, (r >> 16) & 1);
            let (sb, db) = if local && level < COMMUNITY {
                (bit, bit)
            } else {
                (u64::from(q >= 45_875), u64::from((32_768..45_875).contains(&q) || q >= 58_982))
            };
            (s, d) = ((s << 1) | sb, (d << 1) | db);
        }
        (((s * num_src as u64) >> levels) as u32, ((d * num_dst as u64) >> levels) as u32)
    };
    (0..edges as u64).into_par_iter().map(edge).unzip()
}

/// Numbers in `[-0.5, 0.5)` with 24 bits.
fn floats(seed: u64, n: usize) -> Vec<f32> {
    (0..n as u64)
        .into_par_iter()
        .map(|k| (mix(seed, k) >> 40) as f32 / 16_777_216.0 - 0.5)
        .collect()
}

fn labels(seed: u64, n: usize, classes: usize) -> Vec<i64> {
    (0..n as u64).into_par_iter().map(|v| (mix(seed, v) % classes as u64) as i64).collect()
}

/// `Σ (i + 1) · (src ^ dst << 32)` over edges `i`, modulo 2^64.
#[allow(dead_code)] // each user reads its part
pub(crate) fn checksum(src: &[u32], dst: &[u32]) -> u64 {
    let term = |(i, (&s, &d)): (usize, (&u32, &u32))| {
        (i as u64 + 1).wrapping_mul(u64::from(s) ^ (u64::from(d) << 32))
    };
    src.par_iter().zip(dst).enumerate().map(term).reduce(|| 0, u64::wrapping_add)
}

/// What a task of node classification needs: one node type has it.
pub(crate) struct Task {
    /// `[nodes, width]`, row-major.
    pub(crate) features: Vec<f32>,
    pub(crate) width: usize,
    pub(crate) labels: Vec<i64>,
    pub(crate) classes: usize,
    pub(crate) train: Vec<u32>,
}

impl Task {
    fn new(seed: u64, nodes: usize, width: usize, classes: usize, train: usize) -> Self {
        let mut chosen = perm(seed + 4, nodes);
        chosen.truncate(train);
        Self {
            features: floats(seed + 2, nodes * width),
            width,
            labels: labels(seed + 3, nodes, classes),
            classes,
            train: chosen,
        }
    }
}

/// A graph of one type.
pub(crate) struct Homogeneous {
    pub(crate) nodes: usize,
    pub(crate) src: Vec<u32>,
    pub(crate) dst: Vec<u32>,
    pub(crate) task: Task,
}

/// A relation by the names of its node types and its own.
#[allow(dead_code)] // each user reads its part
pub(crate) struct Edges {
    pub(crate) name: (String, String, String),
    pub(crate) src: Vec<u32>,
    pub(crate) dst: Vec<u32>,
}

/// A graph of several types.
#[allow(dead_code)] // each user reads its part
pub(crate) struct Typed {
    pub(crate) ntypes: Vec<(&'static str, usize)>,
    pub(crate) edges: Vec<Edges>,
    pub(crate) target: &'static str,
    pub(crate) task: Task,
}

/// The homogeneous graph of this name: `cora-like`, `arxiv-like` or `products-slice`.
pub(crate) fn homogeneous(name: &str) -> Option<Homogeneous> {
    let (seed, nodes, edges, width, classes, train) = match name {
        "cora-like" => (11, 2_708, 10_556, 1_433, 7, 140),
        "arxiv-like" => (22, 169_343, 2_332_486, 128, 40, 90_941),
        "products-slice" => (33, 500_000, 20_000_000, 100, 47, 50_000),
        _ => return None,
    };
    let (s, d) = rmat(seed, edges / 2, nodes, nodes);
    let renamed = perm(seed + 1, nodes);
    let end = |first: &[u32], second: &[u32]| {
        first.par_iter().chain(second).map(|&v| renamed[v as usize]).collect()
    };
    Some(Homogeneous {
        nodes,
        src: end(&s, &d),
        dst: end(&d, &s),
        task: Task::new(seed, nodes, width, classes, train),
    })
}

/// The typed graph of this name: `mag-slice` or `am-slice`.
pub(crate) fn typed(name: &str) -> Option<Typed> {
    match name {
        "mag-slice" => {
            let ntypes = vec![
                ("paper", 80_000),
                ("author", 120_000),
                ("institution", 4_000),
                ("field", 30_000),
            ];
            let relation = |s: usize, r: &str, d: usize, e| (s, r.to_owned(), d, e);
            let relations = [
                relation(1, "writes", 0, 350_000),
                relation(0, "cites", 0, 250_000),
                relation(1, "affiliated", 2, 50_000),
                relation(0, "has_topic", 3, 350_000),
            ];
            Some(build(44, ntypes, &relations, "paper", Task::new(44, 80_000, 128, 50, 60_000)))
        }
        "am-slice" => {
            let ntypes = vec![
                ("object", 120_000),
                ("proxy", 150_000),
                ("agent", 60_000),
                ("concept", 70_000),
            ];
            // Sizes of relations fall like 1 / (k + 1).
            let relations: Vec<_> = (0..40)
                .map(|k| (k % 4, format!("r{k}"), (k / 4 + k) % 4, 233_000 / (k + 1)))
                .collect();
            Some(build(55, ntypes, &relations, "object", Task::new(55, 120_000, 16, 11, 1_000)))
        }
        _ => None,
    }
}

/// `relations`: source type, name, destination type, edges.
fn build(
    seed: u64,
    ntypes: Vec<(&'static str, usize)>,
    relations: &[(usize, String, usize, usize)],
    target: &'static str,
    task: Task,
) -> Typed {
    let renamed: Vec<Vec<u32>> =
        ntypes.iter().zip(0..).map(|(&(_, n), t)| perm(seed + 100 + t, n)).collect();
    let mut edges = Vec::with_capacity(2 * relations.len());
    for ((s, name, d, count), k) in relations.iter().zip(0..) {
        let (src, dst) = rmat(seed + 1_000 + k, *count, ntypes[*s].1, ntypes[*d].1);
        let end = |ids: &[u32], t: usize| {
            ids.par_iter().map(|&v| renamed[t][v as usize]).collect::<Vec<_>>()
        };
        let (src, dst) = (end(&src, *s), end(&dst, *d));
        let (s, d) = (ntypes[*s].0.to_owned(), ntypes[*d].0.to_owned());
        edges.push(Edges {
            name: (s.clone(), name.clone(), d.clone()),
            src: src.clone(),
            dst: dst.clone(),
        });
        edges.push(Edges { name: (d, format!("rev_{name}"), s), src: dst, dst: src });
    }
    Typed { ntypes, edges, target, task }
}

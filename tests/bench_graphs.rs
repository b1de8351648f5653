//! Tests the generated graphs of the benchmarks by checksums of all edges, and sums of features and
//! labels.

#[path = "../benches/peers/graphs.rs"]
mod graphs;

/// Combines the checksums of all relations, in order, by `h * 31 + checksum`.
const MAG: u64 = 6_406_742_920_639_272_743;
const AM: u64 = 15_078_040_507_044_144_509;

use graphs::{Task, checksum, homogeneous, mix, perm, typed};

#[test]
fn splitmix64() {
    // First outputs for seed 1234567, as published with the generator (Vigna).
    let want = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
    ];
    assert_eq!([0, 1, 2, 3].map(|i| mix(1_234_567, i)), want);
}

fn check(name: &str, want: u64, max_in_degree: u32, zero_in_degree: usize) {
    let g = homogeneous(name).unwrap();
    assert_eq!(checksum(&g.src, &g.dst), want, "{name}");
    let mut degrees = vec![0u32; g.nodes];
    g.dst.iter().for_each(|&v| degrees[v as usize] += 1);
    assert_eq!(*degrees.iter().max().unwrap(), max_in_degree, "{name}");
    assert_eq!(degrees.iter().filter(|&&d| d == 0).count(), zero_in_degree, "{name}");
    check_task(name, &g.task, g.nodes);
}

fn check_task(name: &str, task: &Task, nodes: usize) {
    assert_eq!((task.features.len(), task.labels.len()), (nodes * task.width, nodes), "{name}");
    assert!(task.features.iter().all(|x| (-0.5..0.5).contains(x)), "{name}");
    assert!(task.labels.iter().all(|&l| (0..task.classes as i64).contains(&l)), "{name}");
    let mut train = task.train.clone();
    train.sort_unstable();
    train.dedup();
    assert!(
        train.len() == task.train.len() && train.last().is_some_and(|&v| (v as usize) < nodes),
        "{name}"
    );
}

#[test]
fn cora_like() {
    check("cora-like", 15_036_222_904_125_240_387, 84, 496);
}

#[test]
fn arxiv_like() {
    check("arxiv-like", 17_248_507_554_381_563_110, 2_480, 21_442);
}

#[test]
fn products_slice() {
    check("products-slice", 4_690_931_994_047_675_963, 14_812, 24_575);
}

fn check_typed(name: &str, sizes: [usize; 3], first: [u64; 2], all: u64) {
    let g = typed(name).unwrap();
    let sums: Vec<u64> = g.edges.iter().map(|e| checksum(&e.src, &e.dst)).collect();
    let total = g.edges.iter().map(|e| e.src.len()).sum::<usize>();
    assert_eq!([g.ntypes.iter().map(|t| t.1).sum(), g.edges.len(), total], sizes, "{name}");
    assert_eq!(sums[..2], first, "{name}");
    // The order of relations matters, which a sum would not detect.
    let folded = sums.iter().fold(0u64, |h, s| h.wrapping_mul(31).wrapping_add(*s));
    assert_eq!(folded, all, "{name}");
    for pair in g.edges.chunks(2) {
        assert_eq!((&pair[0].src, &pair[0].dst), (&pair[1].dst, &pair[1].src));
        let (s, r, d) = &pair[0].name;
        assert_eq!(pair[1].name, (d.clone(), format!("rev_{r}"), s.clone()));
    }
    let nodes = g.ntypes.iter().find(|t| t.0 == g.target).unwrap().1;
    check_task(name, &g.task, nodes);
}

#[test]
fn mag_slice() {
    check_typed(
        "mag-slice",
        [234_000, 8, 2_000_000],
        [8_129_407_036_829_088_277, 16_774_505_022_829_653_049],
        MAG,
    );
}

#[test]
fn am_slice() {
    check_typed(
        "am-slice",
        [400_000, 80, 1_993_770],
        [17_125_304_127_383_079_479, 13_779_004_015_887_219_943],
        AM,
    );
}

#[test]
fn the_rest_of_the_recipe() {
    assert!(homogeneous("mag-slice").is_none() && typed("cora-like").is_none());
    let mut sorted = perm(3, 1_000);
    assert!(!sorted.is_sorted());
    sorted.sort_unstable();
    assert!(sorted.iter().zip(0..).all(|(&v, i)| v == i));
}

//! Peak memory of ranking and selection: blocks of scores, never queries × candidates.

use burn::tensor::{DType, Device};
use burn_gnn_links::{IdLists, RankingConfig, dot_scores, top_k};
use burn_gnn_testutil::counting_allocator::{self, CountingAllocator};
use burn_gnn_testutil::matrix;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const QUERIES: usize = 2_000;
const CANDIDATES: usize = 50_000;

/// Most bytes in use during `run`, beyond those before it.
fn peak(name: &str, run: impl Fn()) -> usize {
    // Threads, and buffers of products.
    run();
    let bytes = counting_allocator::peak(counting_allocator::live(), run);
    println!("{name}: {:.1} MB", bytes as f64 / 1e6);
    bytes
}

/// One test: another one's memory would be counted too.
#[test]
fn memory_is_a_few_blocks() {
    let device = Device::flex();
    let queries = matrix(&device, "queries", QUERIES, 16).cast(DType::F32);
    let candidates = matrix(&device, "candidates", CANDIDATES, 16).cast(DType::F32);
    let targets =
        IdLists::single((0..QUERIES as u32).map(|q| q * 17 % CANDIDATES as u32).collect());
    let config = RankingConfig::new().with_blocks(128, 4096);
    let block = 128 * 4096 * size_of::<f32>();
    let ranked = peak("rank", || {
        let score = dot_scores(queries.clone(), candidates.clone());
        let ranks = config.rank(CANDIDATES, &targets, |_| &[], score).unwrap();
        assert!(ranks.all().iter().all(|&r| r >= 1.0 && r <= CANDIDATES as f64));
    });
    // The scores of a block, their copy, the packed operands of products; all pairs would take 400 MB.
    assert!(ranked < 4 * block + 4_000_000, "{ranked} bytes for blocks of {block}");
    let selected = peak("top_k", || {
        let best = top_k(queries.clone(), candidates.clone(), 10, |_| &[]).unwrap();
        assert_eq!(best.of(0).len(), 10);
    });
    // 256 × 4096 scores per block; 10 entries of 16 bytes per query.
    assert!(selected < 4 * 2 * block + 4_000_000, "{selected} bytes");
}

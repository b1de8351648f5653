//! Measures gathering of features in memory by element type, alone and averaged by destination.

use anyhow::Result;
use burn::tensor::{Tensor, TensorData};
use burn_gnn::graph::Relation;
use burn_gnn::ops::copy_u_mean;
use burn_gnn::sampling::{FeatureSource, MemoryRows, RowType};
use serde_json::json;

use crate::measure::{Entry, bench, device};

/// Rows of the table, and numbers of a row: half a gigabyte in f32, so that rows come from memory.
const ROWS: u32 = 1 << 20;
const WIDTH: usize = 128;
/// Destinations of a batch, and sources of each.
const DESTINATIONS: u32 = 10_240;
const FANOUT: u32 = 10;

pub(crate) fn run() -> Result<()> {
    let mix = |i: u64| {
        (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i >> 3).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
    };
    let values: Vec<f32> =
        (0..u64::from(ROWS) * WIDTH as u64).map(|i| mix(i) as f32 / 4e9 - 0.5).collect();
    let sources = DESTINATIONS * FANOUT;
    let ids: Vec<u32> =
        (0..u64::from(sources)).map(|i| (mix(i) % u64::from(ROWS)) as u32).collect();
    let relation = Relation::from_coo(
        sources as usize,
        DESTINATIONS as usize,
        (0..sources).collect(),
        (0..sources).map(|e| e / FANOUT).collect(),
    )?;
    relation.csc();
    for (name, kept) in
        [("f32", RowType::F32), ("f16", RowType::F16), ("int8", RowType::I8 { scale: 1.0 / 254.0 })]
    {
        let rows = MemoryRows::new(&values, WIDTH, kept.saturating())?;
        let more = [("dim", json!(WIDTH)), ("bytes", json!(rows.bytes()))];
        let gather = || match rows.gather(&ids) {
            Ok(values) => values,
            Err(e) => unreachable!("ids are below the number of rows: {e}"),
        };
        let entry = |op: &str, f: &dyn Fn()| {
            bench(Entry { group: "features", graph: "none", op: &format!("{op}.{name}") }, &more, f)
        };
        entry("gather", &|| drop(gather()));
        entry("gather_then_mean", &|| {
            let x = Tensor::<2>::from_data(
                TensorData::new(gather(), [sources as usize, WIDTH]),
                &device(),
            );
            drop(copy_u_mean(&relation, x));
        });
        entry("gather_mean", &|| match rows.gather_mean(&relation, &ids) {
            Ok(means) => drop(means),
            Err(e) => unreachable!("an id for every source: {e}"),
        });
    }
    Ok(())
}

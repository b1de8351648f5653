//! Writes the tables of the example as a shop might export them.

use std::path::Path;

use anyhow::Result;
use burn_gnn::ops::Stream;

/// `users`, `items` and `buys`; ids are far apart, as in a shop.
pub(crate) fn write(dir: &Path) -> Result<()> {
    let (draw, users, items) = (Stream::new(0, "shop", 0), 600, 300);
    let pick = |row: u64, column: u64, n: u64| (draw.uniform(row, column) * n as f64) as u64;
    let mut text = String::from("id:int64\tlabel:int32\tfeature:string\n");
    for u in 0..users {
        text += &format!(
            "{}\t{}\tcity{}:{}:{:.2}\n",
            1000 + 7 * u,
            u % 3,
            pick(u, 0, 20),
            18 + pick(u, 1, 60),
            5.0 * draw.uniform(u, 2)
        );
    }
    std::fs::write(dir.join("users"), text)?;
    let mut text = String::from("id:int64\tfeature:string\n");
    for i in 0..items {
        let genre = ["crime,history", "science", "poems,plays,letters"][i as usize % 3];
        text += &format!(
            "{}\tbrand{}:{genre}:{:.2}\n",
            50_000_000 + 13 * i,
            pick(i, 3, 30),
            20.0 * draw.uniform(i, 4)
        );
    }
    std::fs::write(dir.join("items"), text)?;
    let mut text = String::from("src_id:int64\tdst_id:int64\tweight:float\n");
    for (u, n) in (0..users).flat_map(|u| (0..6).map(move |n| (u, n))) {
        let liked = draw.uniform(u, 10 + 3 * n) < 0.8;
        let genre = if liked { u % 3 } else { pick(u, 11 + 3 * n, 3) };
        text += &format!(
            "{}\t{}\t1\n",
            1000 + 7 * u,
            50_000_000 + 13 * (genre + 3 * pick(u, 12 + 3 * n, items / 3))
        );
    }
    Ok(std::fs::write(dir.join("buys"), text)?)
}

//! Makes up the tables of a shop.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use burn_gnn::ops::Stream;

const KINDS: [&str; 6] = ["novel", "cook book", "travel guide", "comic", "history", "garden book"];
const USERS: u64 = 600;
const ITEMS: u64 = 180;

/// Writes `users.csv`, `items.csv` and `purchases.csv` to a folder: every user likes two kinds of books, and within them
/// what similar users like; some books sell better than others.
pub(crate) fn write(folder: &Path) -> Result<PathBuf> {
    let s = Stream::new(7, "shop", 0);
    let (mut users, mut items) = ("id,city\n".to_owned(), "id,title,kind\n".to_owned());
    for u in 0..USERS {
        writeln!(users, "{u},{}", ["Bern", "Lyon", "Turin"][u as usize % 3])?;
    }
    for i in 0..ITEMS {
        let kind = KINDS[(i % 6) as usize];
        writeln!(items, "{i},{kind} no. {},{kind}", i / 6 + 1)?;
    }
    let mut purchases = vec![];
    for u in 0..USERS {
        let (first, second) = (u % 6, (u / 6) % 6);
        for n in 0..24 {
            let at = |column| s.uniform(u * 100 + n, column);
            let kind = if at(0) < 0.5 {
                first
            } else if at(0) < 0.85 {
                second
            } else {
                (at(1) * 6.0) as u64
            };
            // Books of small numbers sell better; each group of users has a shelf of its own.
            let shelf = (u / 36) % 3 * 10;
            let number = if at(2) < 0.7 {
                shelf + (at(3) * 10.0) as u64
            } else {
                (at(3).powi(2) * 30.0) as u64
            };
            let day = (at(4) * 300.0) as u64;
            let date = format!("2025-{:02}-{:02}", day / 28 + 1, day % 28 + 1);
            purchases.push((date, u, (number % 30) * 6 + kind));
        }
    }
    purchases.sort();
    let mut text = "user,item,date\n".to_owned();
    for (date, user, item) in purchases {
        writeln!(text, "{user},{item},{date}")?;
    }
    for (name, text) in [("users.csv", users), ("items.csv", items), ("purchases.csv", text)] {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(folder.to_owned())
}

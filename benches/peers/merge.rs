//! Merges the entries of several rounds into the median of every figure.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::measure::median;

/// Fields that identify an entry.
const KEY: [&str; 6] = ["group", "graph", "op", "dim", "hidden", "via"];
/// Fields that describe an entry and are not measurements.
const KEPT: [&str; 5] = ["threads", "bases", "batch", "edges", "rels"];

/// Prints one line per entry of all files. An entry counts as failed only if it failed in every
/// round.
pub(crate) fn run(files: &[String]) -> Result<()> {
    if files.is_empty() {
        bail!("merge: name at least one file of JSON lines");
    }
    let mut order: Vec<String> = vec![];
    let mut rounds: BTreeMap<String, Vec<Map<String, Value>>> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| format!("reading {file}"))?;
        for (number, line) in text.lines().enumerate().filter(|(_, l)| l.starts_with('{')) {
            let map: Map<String, Value> = serde_json::from_str(line)
                .with_context(|| format!("{file}, line {}", number + 1))?;
            let key = KEY.map(|k| map.get(k).map_or(String::new(), Value::to_string)).join(" ");
            let entry = rounds.entry(key.clone()).or_default();
            if entry.is_empty() {
                order.push(key);
            }
            entry.push(map);
        }
    }
    for key in order {
        if let Some(lines) = rounds.remove(&key) {
            println!("{}", Value::Object(merged(&lines)));
        }
    }
    Ok(())
}

fn merged(lines: &[Map<String, Value>]) -> Map<String, Value> {
    let good: Vec<_> = lines.iter().filter(|l| !l.contains_key("error")).collect();
    let Some(first) = good.first() else {
        return lines[0].clone();
    };
    let mut out = Map::new();
    for (name, value) in *first {
        let measured = value.is_f64() || value.is_i64() || value.is_u64();
        if !measured || KEY.contains(&name.as_str()) || KEPT.contains(&name.as_str()) {
            out.insert(name.clone(), value.clone());
        } else {
            let all: Vec<f64> = good.iter().filter_map(|l| l.get(name)?.as_f64()).collect();
            out.insert(name.clone(), json!((median(&all) * 1e3).round() / 1e3));
        }
    }
    out.insert("rounds".to_owned(), json!(good.len()));
    out
}

//! Damages values in section files, descriptions and journals, and updates their checksums.

use burn_gnn_testutil::damage::{Damage, json, number};
use serde_json::{Value, json as value};
use twox_hash::XxHash3_64;

const PAGE: usize = 4096;
const BLOCK: usize = 1 << 16;

/// A damaged copy of a section file, a JSON description or a journal.
pub(crate) fn damaged(whole: &[u8], d: &mut Damage) -> Vec<u8> {
    let bytes = if whole.starts_with(b"BGSTORE\n") {
        sections(whole, d)
    } else if whole.starts_with(b"{") {
        json(whole, d)
    } else {
        journal(whole, d)
    };
    // Sometimes bytes are damaged too.
    if d.below(8) == 0 { d.spoil(&bytes) } else { bytes }
}

fn word(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// Damages header fields, numbers of a section, or the JSON of one.
fn sections(whole: &[u8], d: &mut Damage) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let text = whole[24..24 + word(whole, 8)].to_vec();
    let mut header: Value = serde_json::from_slice(&text).unwrap();
    for _ in 0..=d.below(3) {
        match d.below(4) {
            0 => sign_header(&mut bytes, &json(&text, d)),
            1 => {
                // A number of the header at which sizes go wrong.
                let facts = header["facts"].as_object_mut().unwrap();
                let keys: Vec<String> = facts.keys().cloned().collect();
                if !keys.is_empty() {
                    facts.insert(keys[d.below(keys.len())].clone(), value!(number(d)));
                }
                let header = serde_json::to_vec(&header).unwrap();
                sign_header(&mut bytes, &header);
            }
            _ => section(&mut bytes, &mut header, d),
        }
    }
    bytes
}

fn sign_header(bytes: &mut [u8], text: &[u8]) {
    let text = &text[..text.len().min(PAGE - 24)];
    bytes[8..16].copy_from_slice(&(text.len() as u64).to_le_bytes());
    bytes[16..24].copy_from_slice(&XxHash3_64::oneshot(text).to_le_bytes());
    bytes[24..PAGE].fill(0);
    bytes[24..24 + text.len()].copy_from_slice(text);
}

/// Changes numbers in a section and updates its checksums.
fn section(bytes: &mut [u8], header: &mut Value, d: &mut Damage) {
    let places = header["sections"].as_array().unwrap().len();
    let at = d.below(places);
    let place = &header["sections"][at];
    let of = |field: &str| place[field].as_u64().unwrap() as usize;
    let (offset, mut len, checks) = (of("offset"), of("bytes"), of("checks"));
    if len == 0 {
        return;
    }
    if place["name"] == "types" {
        let changed = json(&bytes[offset..offset + len], d);
        len = changed.len().min(len.next_multiple_of(PAGE));
        bytes[offset..offset + len].copy_from_slice(&changed[..len]);
        header["sections"][at]["bytes"] = value!(len);
        let header = serde_json::to_vec(&header).unwrap();
        sign_header(bytes, &header);
    } else {
        let width = if len < 8 || d.below(2) == 0 { 4.min(len) } else { 8 };
        for _ in 0..=d.below(3) {
            let to = offset + d.below(len / width) * width;
            match d.below(3) {
                // Another number of the section.
                0 => {
                    let from = offset + d.below(len / width) * width;
                    bytes.copy_within(from..from + width, to);
                }
                _ => {
                    let number = number(d).to_le_bytes();
                    bytes[to..to + width].copy_from_slice(&number[..width]);
                }
            }
        }
    }
    for (i, from) in (0..len).step_by(BLOCK).enumerate() {
        let block = &bytes[offset + from..offset + len.min(from + BLOCK)];
        let sum = XxHash3_64::oneshot(block).to_le_bytes();
        bytes[checks + 8 * i..][..8].copy_from_slice(&sum);
    }
}

/// Changes or reorders entries.
fn journal(whole: &[u8], d: &mut Damage) -> Vec<u8> {
    let mut entries: Vec<Vec<u8>> = whole
        .split_inclusive(|&b| b == b'\n')
        .map(|line| line[17..line.len() - 1].to_vec())
        .collect();
    for _ in 0..=d.below(3) {
        let at = 1 + d.below(entries.len().saturating_sub(1));
        if at >= entries.len() {
            break;
        }
        match d.below(7) {
            0 => drop(entries.remove(at)),
            1 => entries.insert(at, entries[at].clone()),
            2 => {
                let other = 1 + d.below(entries.len() - 1);
                entries.swap(at, other);
            }
            3 => entries[at] = json(&entries[at], d),
            4 => {
                let lens: Vec<u64> = (0..d.below(5)).map(|_| number(d)).collect();
                let merged = value!({"Merged": {"buckets": number(d), "lens": lens}});
                entries.push(merged.to_string().into_bytes());
            }
            5 => {
                let run = value!({"Run": {"read": number(d), "kept": number(d)}});
                entries.insert(at, run.to_string().into_bytes());
            }
            _ => {
                let n = number(d);
                let stats =
                    value!({"read": n, "edges": n, "bytes": n, "temporary": n, "resumed": n});
                entries.push(value!({ "Finished": stats }).to_string().into_bytes());
            }
        }
    }
    entries
        .into_iter()
        .flat_map(|text| {
            let sum = format!("{:016x} ", XxHash3_64::oneshot(&text));
            [sum.into_bytes(), text, b"\n".to_vec()].concat()
        })
        .collect()
}

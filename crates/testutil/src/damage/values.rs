//! Damages the values of JSON, `.npy`, safetensors and text files.

use serde_json::Value;

use super::Damage;

/// Numbers that often break the handling of sizes and counts.
const NUMBERS: [u64; 22] = [
    0,
    1,
    2,
    3,
    7,
    8,
    9,
    255,
    256,
    65_535,
    65_536,
    1 << 20,
    1 << 24,
    1 << 26,
    0x7fff_ffff,
    1 << 31,
    0xffff_fffe,
    0xffff_ffff,
    1 << 32,
    1 << 40,
    1 << 63,
    u64::MAX,
];

const TEXTS: [&str; 14] = [
    "",
    ".",
    "..",
    "../x",
    "/etc/passwd",
    "a\0b",
    "C:x",
    "köln",
    "\u{feff}",
    "nan",
    "-1",
    "1e999",
    "__proto__",
    "9223372036854775808",
];

const DTYPES: [&str; 22] = [
    "<f4",
    "<f8",
    "<f2",
    "<i8",
    "<i4",
    "|i1",
    "|u1",
    "|b1",
    ">f4",
    "=i4",
    "<c16",
    "|O",
    "|S1",
    "|S65536",
    "<U3",
    "|V8",
    "<M8[ns]",
    "<f16",
    "<i3",
    "",
    "f4",
    "|S99999999999999999999",
];

/// Maximum length of files that are created by repetition.
const LONG: usize = 1 << 18;

/// Returns a number, often one of the numbers that break sizes.
pub fn number(d: &mut Damage) -> u64 {
    match d.below(3) {
        0 => d.below(300) as u64,
        1 => NUMBERS[d.below(NUMBERS.len())],
        _ => NUMBERS[d.below(NUMBERS.len())].wrapping_add(d.below(5) as u64).wrapping_sub(2),
    }
}

/// Returns a text, often one that is not a valid name.
pub fn word(d: &mut Damage) -> String {
    match d.below(8) {
        0 => "x".repeat(1 << d.below(17)),
        1 => "\u{1f}\"`".repeat(1 << d.below(10)),
        _ => TEXTS[d.below(TEXTS.len())].to_owned(),
    }
}

/// Returns a number of repetitions, which is rarely large.
pub fn times(d: &mut Damage, size: usize) -> usize {
    let most = (LONG / size.max(1)).max(1);
    let up_to = 1 << d.below(19);
    d.below(up_to.min(most)) + 1
}

/// Returns the JSON file with changed values, or with deep nesting.
pub fn json(whole: &[u8], d: &mut Damage) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Value>(whole) else { return d.spoil(whole) };
    if d.below(16) == 0 {
        let deep = times(d, 2);
        let brackets =
            |open: &str, close: &str| open.repeat(deep) + &close.repeat(d.clone().below(2) * deep);
        return if deep.is_multiple_of(2) { brackets("[", "]") } else { brackets("{\"a\":", "}") }
            .into_bytes();
    }
    for _ in 0..=d.below(3) {
        change(&mut value, d);
    }
    value.to_string().into_bytes()
}

/// Changes one value at a random position.
fn change(value: &mut Value, d: &mut Damage) {
    let inside = match value {
        Value::Array(v) => v.len(),
        Value::Object(v) => v.len(),
        _ => 0,
    };
    if inside > 0 && d.below(8) > 0 {
        let at = d.below(inside);
        match value {
            Value::Array(v) => return change(&mut v[at], d),
            Value::Object(v) => {
                if let Some((_, inner)) = v.iter_mut().nth(at) {
                    return change(inner, d);
                }
            }
            _ => {}
        }
    }
    match (d.below(8), &mut *value) {
        (0, _) => *value = Value::Null,
        (1, Value::Array(v)) if !v.is_empty() => {
            // Repeats the same element.
            let item = v[d.below(v.len())].clone();
            let n = times(d, item.to_string().len() + 1);
            v.extend(std::iter::repeat_n(item, n));
        }
        (1, Value::Object(v)) if !v.is_empty() => {
            let (key, item) = v
                .iter()
                .nth(d.below(v.len()))
                .map(|(k, i)| (k.clone(), i.clone()))
                .unwrap_or_default();
            let n = times(d, key.len() + item.to_string().len() + 8);
            v.extend((0..n).map(|i| (format!("{key}{i}"), item.clone())));
        }
        (2, Value::Object(v)) => {
            let key = v.keys().nth(d.below(v.len())).cloned();
            if let Some(item) = key.and_then(|key| v.remove(&key)) {
                v.insert(word(d), item);
            }
        }
        (3, Value::Array(v)) => drop(v.pop()),
        (4, _) => *value = Value::Array(vec![value.clone(), value.clone()]),
        (5 | 6, Value::String(_)) | (7, _) => *value = Value::String(word(d)),
        _ if d.below(8) == 0 => *value = serde_json::json!(-1.5e300),
        _ => *value = Value::from(number(d)),
    }
}

/// Returns the `.npy` file with a changed header.
pub fn npy(whole: &[u8], d: &mut Damage) -> Vec<u8> {
    let text = String::from_utf8_lossy(whole.get(10..128).unwrap_or_default()).into_owned();
    let data = whole.get(128..).unwrap_or_default();
    let field = |name: &str, end: &str| {
        text.split_once(&format!("'{name}': "))
            .and_then(|t| t.1.split_once(end))
            .map_or("", |t| t.0)
            .to_owned()
    };
    let (mut descr, mut order, mut shape) =
        (field("descr", ", 'f"), field("fortran_order", ", 's"), field("shape", ", }"));
    let mut data = data.to_vec();
    for _ in 0..=d.below(2) {
        match d.below(6) {
            0 => descr = format!("'{}'", DTYPES[d.below(DTYPES.len())]),
            1 => descr = "[('a', '<f4'), ('b', '|S3')]".into(),
            2 => order = ["True", "1", "None", "'x'", "false"][d.below(5)].into(),
            3 => {
                let axes: Vec<String> = (0..d.below(5)).map(|_| number(d).to_string()).collect();
                shape = format!("({},)", axes.join(", "));
            }
            4 => {
                let deep = times(d, 1).min(9_000);
                shape = "(".repeat(deep);
            }
            _ => {
                // The number of rows that the bytes are sufficient for.
                let rows = times(d, 8);
                shape = format!("({rows},)");
                descr = ["'<i8'", "'<i4'", "'<f4'", "'|b1'", "'|S1'", "'|i1'"][d.below(6)].into();
                let width =
                    descr.bytes().find(u8::is_ascii_digit).map_or(1, |b| usize::from(b - b'0'));
                data = vec![d.below(3) as u8; rows * width];
            }
        }
    }
    let mut header = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
    if d.below(8) == 0 {
        header += &word(d);
    }
    header.push('\n');
    let mut out = b"\x93NUMPY".to_vec();
    match d.below(8) {
        0 => out.extend([2, 0].into_iter().chain((number(d) as u32).to_le_bytes())),
        1 => out.extend([3, 0].into_iter().chain((header.len() as u32).to_le_bytes())),
        2 => out.extend([d.below(256) as u8, d.below(4) as u8, 9, 9]),
        _ => out.extend([1, 0].into_iter().chain((header.len() as u16).to_le_bytes())),
    }
    out.extend(header.as_bytes());
    out.extend(&data);
    out
}

/// Returns the safetensors file with a changed header or fewer bytes.
pub fn safetensors(whole: &[u8], d: &mut Damage) -> Vec<u8> {
    let len = whole.get(..8).and_then(|l| l.try_into().ok()).map_or(0, u64::from_le_bytes) as usize;
    let Some((header, data)) = whole.get(8..).and_then(|rest| rest.split_at_checked(len)) else {
        return d.spoil(whole);
    };
    let header = json(header, d);
    let declared = if d.below(8) == 0 { number(d) } else { header.len() as u64 };
    let data = match d.below(6) {
        0 => &data[..d.below(data.len() + 1)],
        _ => data,
    };
    [&declared.to_le_bytes()[..], &header[..], data].concat()
}

/// Returns the text with repeated `parts` or changed words.
pub fn text(whole: &[u8], parts: &[&str], d: &mut Damage) -> Vec<u8> {
    let mut out = whole.to_vec();
    for _ in 0..=d.below(2) {
        let room = LONG.saturating_sub(out.len());
        let at = d.below(out.len() + 1);
        let insert = match d.below(6) {
            // Repeats one part, such as empty fields or open brackets.
            0 => {
                let part = parts[d.below(parts.len())];
                part.repeat(times(d, part.len()))
            }
            1 => (0..times(d, 6)).map(|i| format!("{}{i}", parts[i % 2])).collect(),
            // Different names.
            2 => {
                let part = parts[d.below(parts.len())];
                (0..times(d, part.len() + 4)).map(|i| format!("{i:x}{part}")).collect()
            }
            3 => word(d),
            4 => number(d).to_string(),
            _ => {
                // Repeats lines of the file.
                let from = d.below(out.len() + 1);
                let to = (from + d.below(80)).min(out.len());
                String::from_utf8_lossy(&out[from..to]).repeat(times(d, to - from))
            }
        };
        let insert = &insert.as_bytes()[..insert.len().min(room)];
        out.splice(at..at, insert.iter().copied());
    }
    out
}

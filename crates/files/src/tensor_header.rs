//! Writes headers of safetensors files.

use safetensors::Dtype;
use serde_json::{Map, Value, json};

/// The bytes of a safetensors file before its data. Tensors (name, type, shape) are to be written in this order,
/// without gaps; `texts` are the entries of its free metadata.
pub fn tensor_header<'a>(
    tensors: impl IntoIterator<Item = (&'a str, Dtype, &'a [usize])>,
    texts: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<u8> {
    let mut entries = Map::new();
    let texts: Map<String, Value> =
        texts.into_iter().map(|(key, text)| (key.to_owned(), text.into())).collect();
    if !texts.is_empty() {
        entries.insert("__metadata__".into(), Value::Object(texts));
    }
    let mut end = 0u64;
    for (name, dtype, shape) in tensors {
        let start = end;
        end += shape.iter().map(|&n| n as u64).product::<u64>() * (dtype.bitsize() / 8) as u64;
        entries.insert(
            name.to_owned(),
            json!({ "dtype": format!("{dtype:?}"), "shape": shape, "data_offsets": [start, end] }),
        );
    }
    let mut json = Value::Object(entries).to_string().into_bytes();
    json.resize(json.len().next_multiple_of(8), b' ');
    [&(json.len() as u64).to_le_bytes()[..], &json].concat()
}

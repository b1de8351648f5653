//! Writes lists, texts and file ids of the nodes and edges of a part.

use burn_gnn_graph::{Ids, Texts};
use safetensors::Dtype;

use super::tensors::Entry;
use crate::partition::part::attributes::{Attributes, AttributesByType, KINDS};

/// Appends the tensors that store the attributes of a type; `of` is `node/<type>` or `edge/<type>`.
fn attribute_entries<'a>(attributes: &'a Attributes, of: &str, out: &mut Vec<Entry<'a>>) {
    for (name, list) in &attributes.lists {
        let key = format!("list/{of}/{name}");
        out.push(Entry::numbers(format!("{key}/indptr"), Dtype::U64, list.indptr()));
        out.push(Entry::numbers(format!("{key}/values"), Dtype::I64, list.values()));
    }
    for (name, texts) in &attributes.texts {
        put_texts(&format!("text/{of}/{name}"), texts, out);
    }
    match &attributes.ids {
        None => {}
        Some(Ids::Int(ids)) => out.push(Entry::numbers(format!("ids/{of}"), Dtype::I64, &ids[..])),
        Some(Ids::Text(texts)) => put_texts(&format!("ids/{of}"), texts, out),
    }
    if let Some(ids) = &attributes.global_ids {
        out.push(Entry::numbers(format!("global_ids/{of}"), Dtype::U64, ids.as_slice()));
    }
}

fn put_texts<'a>(key: &str, texts: &'a Texts, out: &mut Vec<Entry<'a>>) {
    /// Bytes per write.
    const CHUNK: usize = 1 << 16;
    let bytes = texts.iter().map(str::len).sum();
    out.push(Entry::new(format!("{key}/bytes"), Dtype::U8, vec![bytes], move |w| {
        let mut buffer = String::new();
        for text in texts.iter() {
            buffer.push_str(text);
            if buffer.len() >= CHUNK {
                w.write_all(buffer.as_bytes())?;
                buffer.clear();
            }
        }
        w.write_all(buffer.as_bytes())
    }));
    let ends = texts.iter().scan(0u64, |end, text| {
        *end += text.len() as u64;
        Some(*end)
    });
    out.push(Entry::numbers(format!("{key}/ends"), Dtype::U64, ends.collect::<Vec<u64>>()));
}

/// The tensors that store the attributes of all types. `names` lists the node types and the edge types.
pub(crate) fn entries<'a>(
    attributes: &'a AttributesByType,
    names: [&[String]; 2],
) -> Vec<Entry<'a>> {
    let mut out = vec![];
    for ((kind, of), names) in KINDS.iter().zip(attributes).zip(names) {
        of.iter()
            .zip(names)
            .for_each(|(of, name)| attribute_entries(of, &format!("{kind}/{name}"), &mut out));
    }
    out
}

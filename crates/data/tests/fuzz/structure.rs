//! Files that keep the form of their format and lie inside it: header fields, lengths, types, nesting, entries of
//! archives.

use std::io::{Read, Write};

use burn_gnn_testutil::damage::{Damage, json, npy, number, safetensors, text, times, word};

/// What the bytes of a file are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Json,
    Npy,
    /// A zip archive of `.npy` arrays, or of a pickle and the storages of its tensors.
    Zip,
    Safetensors,
    Parquet,
    Pickle,
    /// Text, and what separates its parts.
    Text(&'static [&'static str]),
    /// Text, compressed.
    Gzip(&'static [&'static str]),
    /// Text, compressed.
    Zstd(&'static [&'static str]),
}

pub(crate) const TABLE: Form = Form::Text(&["\t", "\n", ":", ",", "\r\n"]);
pub(crate) const CSV: Form = Form::Text(&[",", "\n", "\"", "[", "]", "\r\n"]);
pub(crate) const DIALECT: Form = Form::Text(&["::", "\n", "'", "\\", "#", "NA", "\r"]);
pub(crate) const LIST: Form = Form::Text(&[" ", "\t", "\n", ";;", "#"]);
pub(crate) const RDF: Form = Form::Text(&[
    "<u:a>",
    " ",
    ".",
    "\n",
    "(",
    "[",
    ")",
    "]",
    ";",
    ",",
    "\"",
    "'''",
    "_:b",
    "x:a",
    "1.5",
    "@prefix x: <u:> .",
    "\\",
    "#",
]);
pub(crate) const XML: Form = Form::Text(&[
    "<node id=\"a\">",
    "</node>",
    "<edge source=\"0\" target=\"7\"/>",
    "<key id=\"k\" for=\"node\">",
    "<default>",
    "<data key=\"d0\">",
    "</data>",
    "<graph edgedefault=\"directed\">",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "&amp;",
    "&#",
    "<",
    ">",
    "\"",
    "<?x ?>",
    "<!DOCTYPE x [",
]);
pub(crate) const YAML: Form = Form::Text(&[
    "\n",
    "- ",
    ": ",
    "  ",
    "{",
    "[",
    "]",
    "}",
    "&a ",
    "*a",
    "\"",
    "|\n",
    "? ",
    "!!binary ",
]);

/// A damaged copy, and how many bytes a reader may have to look at: more than the file has where it is compressed.
pub(crate) fn damaged(form: Form, whole: &[u8], d: &mut Damage) -> (Vec<u8>, usize) {
    let bytes = match form {
        Form::Json => json(whole, d),
        Form::Npy => npy(whole, d),
        Form::Zip => return archive(whole, d),
        Form::Safetensors => safetensors(whole, d),
        Form::Parquet => parquet(whole, d),
        Form::Pickle => pickle(whole, d),
        Form::Text(parts) => text(whole, parts, d),
        Form::Gzip(parts) | Form::Zstd(parts) => return compressed(form, whole, parts, d),
    };
    // Now and then bytes are damaged, too.
    let bytes = if d.below(8) == 0 { d.spoil(&bytes) } else { bytes };
    let len = bytes.len();
    (bytes, len)
}

/// Arrays of an archive; nothing of one that is none.
fn entries(whole: &[u8]) -> Vec<(String, Vec<u8>)> {
    let Ok(mut zip) = zip::ZipArchive::new(std::io::Cursor::new(whole)) else { return vec![] };
    let mut out = vec![];
    for i in 0..zip.len() {
        let Ok(mut entry) = zip.by_index(i) else { continue };
        let name = entry.name().map_or(String::new(), |n| n.into_owned());
        let mut bytes = vec![];
        if entry.read_to_end(&mut bytes).is_ok() {
            out.push((name, bytes));
        }
    }
    out
}

fn archive(whole: &[u8], d: &mut Damage) -> (Vec<u8>, usize) {
    if d.below(2) == 0 {
        let bytes = zip_fields(whole, d);
        return (bytes, 2 * whole.len());
    }
    let mut arrays = entries(whole);
    if arrays.is_empty() {
        return (d.spoil(whole), whole.len());
    }
    for _ in 0..=d.below(2) {
        let at = d.below(arrays.len());
        match d.below(6) {
            0 => arrays[at].0 = word(d),
            1 => {
                let copies = times(d, 200).min(2_000);
                arrays.extend((0..copies).map(|i| (format!("x{i}.npy"), vec![])));
            }
            2 => drop(arrays.remove(at)),
            3 => arrays[at].1 = vec![0; 1 << d.below(24)],
            _ if arrays[at].0.ends_with(".npy") => arrays[at].1 = npy(&arrays[at].1, d),
            _ if arrays[at].0.ends_with(".pkl") => arrays[at].1 = pickle(&arrays[at].1, d),
            _ => arrays[at].1 = d.spoil(&arrays[at].1),
        }
        if arrays.is_empty() {
            break;
        }
    }
    let method = [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated][d.below(2)];
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    let mut out = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    let mut expanded = 0;
    for (name, bytes) in arrays {
        // A name given twice is refused by the writer.
        if out.start_file(name, options).is_ok() {
            out.write_all(&bytes).unwrap();
            expanded += bytes.len();
        }
    }
    let bytes = out.finish().unwrap().into_inner();
    let looked_at = bytes.len() + expanded;
    (bytes, looked_at)
}

/// A field of a local header, of the directory or of its end gets another value.
fn zip_fields(whole: &[u8], d: &mut Damage) -> Vec<u8> {
    /// Signature, then place and size of its fields.
    type Head = (&'static [u8], &'static [(usize, usize)]);
    const HEADS: [Head; 3] = [
        (b"PK\x03\x04", &[(4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)]),
        (
            b"PK\x01\x02",
            &[
                (6, 2),
                (8, 2),
                (10, 2),
                (16, 4),
                (20, 4),
                (24, 4),
                (28, 2),
                (30, 2),
                (32, 2),
                (34, 2),
                (38, 4),
                (42, 4),
            ],
        ),
        (b"PK\x05\x06", &[(4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)]),
    ];
    let mut bytes = whole.to_vec();
    for _ in 0..=d.below(3) {
        let (signature, fields) = HEADS[d.below(3)];
        let places: Vec<usize> =
            bytes.windows(4).enumerate().filter(|w| w.1 == signature).map(|w| w.0).collect();
        if places.is_empty() {
            continue;
        }
        let ((offset, size), at) = (fields[d.below(fields.len())], places[d.below(places.len())]);
        let value = number(d).to_le_bytes();
        if let Some(field) = bytes.get_mut(at + offset..at + offset + size) {
            field.copy_from_slice(&value[..size]);
        }
    }
    bytes
}

fn parquet(whole: &[u8], d: &mut Damage) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let len = bytes.len();
    // The description is at the end, followed by its length.
    let description =
        whole.get(len - 8..len - 4).and_then(|l| l.try_into().ok()).map_or(0, u32::from_le_bytes)
            as usize;
    let start = (len - 8).saturating_sub(description);
    for _ in 0..=d.below(3) {
        match d.below(6) {
            0 => bytes[len - 8..len - 4].copy_from_slice(&(number(d) as u32).to_le_bytes()),
            // Thrift's numbers are seven bits a byte.
            1 | 2 => {
                let at = start + d.below(description.max(1));
                let mut value = number(d);
                for byte in &mut bytes[at..len - 8] {
                    *byte = (value & 0x7f) as u8 | if value > 0x7f { 0x80 } else { 0 };
                    value >>= 7;
                    if value == 0 {
                        break;
                    }
                }
            }
            3 => bytes[start + d.below(description.max(1))] = d.below(256) as u8,
            _ => {
                let at = 4 + d.below(start.saturating_sub(4).max(1));
                bytes[at] = d.below(256) as u8;
            }
        }
    }
    bytes
}

/// Programs of the opcodes that the reader knows.
fn pickle(whole: &[u8], d: &mut Damage) -> Vec<u8> {
    const OPS: [&[u8]; 36] = [
        b"(",
        b"0",
        b"1",
        b"2",
        b"N",
        b"\x88",
        b"K\x01",
        b"J\xff\xff\xff\xff",
        b"\x8a\x01\x07",
        b"I7\n",
        b"L7L\n",
        b"S'ab'\n",
        b"U\x02ab",
        b"\x8c\x01a",
        b"X\x01\x00\x00\x00a",
        b")",
        b"]",
        b"}",
        b"t",
        b"l",
        b"d",
        b"\x85",
        b"\x86",
        b"a",
        b"e",
        b"s",
        b"u",
        b"q\x01",
        b"h\x01",
        b"\x94",
        b"cnumpy\nndarray\n",
        b"ccollections\nOrderedDict\n",
        b"Q",
        b"R",
        b"b",
        b"]\x94",
    ];
    if d.below(3) == 0 {
        // A value of the file becomes another.
        return d.spoil(whole);
    }
    let mut out = b"\x80\x02".to_vec();
    for _ in 0..=d.below(20) {
        let op = OPS[d.below(OPS.len())];
        let n = if d.below(4) == 0 { times(d, op.len()) } else { 1 };
        out.extend(op.repeat(n));
    }
    match d.below(4) {
        0 => out.extend(whole.strip_prefix(b"\x80\x02").unwrap_or(whole)),
        1 => out.extend(b"T\xff\xff\xff\x7f"),
        2 => out.extend(b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff"),
        _ => out.push(b'.'),
    }
    out
}

fn compressed(form: Form, whole: &[u8], parts: &[&str], d: &mut Damage) -> (Vec<u8>, usize) {
    let gzip = matches!(form, Form::Gzip(_));
    let mut plain = vec![];
    // The file is whole.
    let read = if gzip {
        flate2::read::MultiGzDecoder::new(whole).read_to_end(&mut plain)
    } else {
        zstd::stream::copy_decode(whole, &mut plain).map(|()| 0)
    };
    if read.is_err() {
        return (d.spoil(whole), whole.len());
    }
    let plain = match d.below(8) {
        // Much out of little.
        0 => {
            [&plain[..], &parts[d.below(parts.len())].as_bytes().repeat(1 << d.below(22))].concat()
        }
        _ => text(&plain, parts, d),
    };
    let compress = |plain: &[u8]| {
        if !gzip {
            return zstd::encode_all(plain, 3).unwrap();
        }
        let mut out = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
        out.write_all(plain).unwrap();
        out.finish().unwrap()
    };
    let mut bytes = compress(&plain);
    match d.below(4) {
        // Flags, sizes and sums stand at the beginning and at the end.
        0 => {
            let at = d.below(bytes.len().min(18));
            bytes[at] = number(d) as u8;
        }
        1 => {
            let at = bytes.len() - 1 - d.below(bytes.len().min(8));
            bytes[at] = number(d) as u8;
        }
        // Several members.
        2 => bytes = bytes.repeat(1 + d.below(4)),
        _ => {}
    }
    let looked_at = bytes.len() + 4 * plain.len();
    (bytes, looked_at)
}

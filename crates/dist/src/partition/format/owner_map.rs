//! Reads and writes the owners of global ids: `node_map.npy` and `edge_map.npy`.

use std::io::Write;
use std::path::Path;

use burn_gnn_data::NpyHead;

use super::checksummed_file::write_summed;
use crate::error::DistError;

/// Writes the map; returns the checksum of the file.
pub(crate) fn write(path: &Path, owners: &[i32]) -> Result<String, DistError> {
    write_summed(path, |w| {
        w.write_all(&NpyHead::bytes("<i4", &[owners.len()]))?;
        w.write_all(bytemuck::cast_slice(owners))
    })
}

/// Reads the owners of `len` ids, all below `parts`.
pub(crate) fn read(
    path: &Path,
    bytes: &[u8],
    len: u64,
    parts: usize,
) -> Result<Vec<u32>, DistError> {
    let bad = |message: String| Err(DistError::format(path, message));
    let NpyHead { descr, shape, offset } = NpyHead::read(path, bytes)?;
    let body = &bytes[offset..];
    if descr != "<i4"
        || !matches!(shape[..], [n] if n as u64 == len)
        || body.len() as u64 != len.saturating_mul(4)
    {
        let found = format!("{shape:?} of dtype {descr} in {} bytes", body.len());
        return bad(format!(
            "expected a NumPy array of {len} numbers of dtype int32, found {found}"
        ));
    }
    let owners: Vec<i32> = bytemuck::pod_collect_to_vec(body);
    match owners.iter().position(|&p| p < 0 || p as usize >= parts) {
        Some(i) => bad(format!("position {i}: expected a part in 0..{parts}, got {}", owners[i])),
        None => Ok(owners.into_iter().map(|p| p as u32).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::format::checksummed_file::pending_path;

    #[test]
    fn reads_what_it_writes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.npy");
        let mut bytes = vec![];
        for n in [0u64, 5, 70_000] {
            let sum = write(&path, &(0..n as i32).map(|i| i % 3).collect::<Vec<_>>()).unwrap();
            bytes = std::fs::read(pending_path(&path, &sum)).unwrap();
            assert!(
                read(&path, &bytes, n, 3).unwrap().into_iter().eq((0..n as u32).map(|i| i % 3))
            );
            assert!(
                read(&path, &bytes, n + 1, 3)
                    .unwrap_err()
                    .to_string()
                    .contains("expected a NumPy array of")
            );
            assert!(read(&path, &bytes[..bytes.len() - 1], n, 3).is_err());
        }
        let e = read(&path, &bytes, 70_000, 2).unwrap_err().to_string();
        assert!(e.contains("position 2: expected a part in 0..2, got 2"), "{e}");
    }
}

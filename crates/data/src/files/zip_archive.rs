//! Opens zip archives.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_files::internal::{cut, format_error, io_error};

/// Converts an error of the zip reader.
pub(crate) fn zip_error(path: &Path, e: zip::result::ZipError) -> DataError {
    match e {
        zip::result::ZipError::Io(e)
            if e.get_ref().is_none() && e.kind() != std::io::ErrorKind::UnexpectedEof =>
        {
            io_error(path, e)
        }
        e => format_error(path, format!("expected a zip archive, found: {}", cut(&e.to_string()))),
    }
}

/// Opens a zip archive that starts at the first byte of the file.
///
/// The crate zip 9.4 can search for the start instead, but then it mistakes the second entry of some PyTorch files for
/// the first: their ZIP64 records are as long as the header of an entry with a name of 30 bytes.
///
/// An archive stores the name of each entry twice: in the central directory and in the local header before the
/// entry's bytes. This function compares both, as Python does and the crate does not. The directory has no checksum,
/// so without this check a damaged directory could exchange entries.
pub(crate) fn open_zip<R: Read + Seek>(
    path: &Path,
    mut reader: R,
) -> Result<zip::ZipArchive<R>, DataError> {
    let config = zip::read::Config { archive_offset: zip::read::ArchiveOffset::Known(0) };
    let wrong = |e| zip_error(path, e);
    let archive = zip::ZipArchive::with_config(config, &mut reader).map_err(wrong)?;
    let entry = |i| archive.by_index_data(i).map(|e| (e.header_start(), e.name_raw().to_vec()));
    let entries: Vec<(u64, Vec<u8>)> =
        (0..archive.len()).map(entry).collect::<Result<_, _>>().map_err(wrong)?;
    drop(archive);
    for (start, name) in entries {
        let found = local_name(&mut reader, start, name.len());
        if found.map_err(|e| wrong(e.into()))?.as_ref() != Some(&name) {
            let name = cut(&String::from_utf8_lossy(&name));
            let why = format!(
                "entry `{name}`: expected the same name in the directory and in the local header, found two names"
            );
            return Err(format_error(path, why));
        }
    }
    zip::ZipArchive::with_config(config, reader).map_err(wrong)
}

/// The name in the local header at `start`, or `None` if its length is not `len`.
fn local_name(
    reader: &mut (impl Read + Seek),
    start: u64,
    len: usize,
) -> std::io::Result<Option<Vec<u8>>> {
    /// Length of the header before the name. It ends with the length of the name and of the extra field.
    const FIXED: usize = 30;
    let mut head = [0; FIXED];
    reader.seek(SeekFrom::Start(start))?;
    reader.read_exact(&mut head)?;
    if usize::from(u16::from_le_bytes([head[26], head[27]])) != len {
        return Ok(None);
    }
    let mut name = vec![0; len];
    reader.read_exact(&mut name)?;
    Ok(Some(name))
}

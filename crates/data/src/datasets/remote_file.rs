//! Describes where a data set comes from: files, licence, citation.

/// A file of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// Path of the file in the folder of the data set.
    pub name: &'static str,
    /// Address of the file, or of the archive that contains it.
    pub url: &'static str,
    /// SHA-256 of the download in hexadecimal digits; `None` if it is not known.
    pub sha256: Option<&'static str>,
    /// Largest accepted size of the download and of the unpacked archive in bytes, a few times the published size.
    pub most: u64,
}

/// Source, licence and citation of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatasetInfo {
    /// Licence, as far as it is stated.
    pub licence: &'static str,
    /// Papers to cite.
    pub citation: &'static str,
    /// Files of the data set.
    pub files: &'static [RemoteFile],
}

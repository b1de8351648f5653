//! Encodes messages between ranks, and propagates errors to every rank.

use bytemuck::Pod;

use crate::comm::{Communicator, Failure};
use crate::error::DistError;

/// Encodes a message: a sequence of lists, each preceded by its length.
#[derive(Clone, Default)]
pub(crate) struct Pack(Vec<u8>);

impl Pack {
    /// A message that consists of one list of numbers, without its length.
    pub(crate) fn numbers<T: Pod>(values: &[T]) -> Self {
        Self(bytemuck::cast_slice(values).to_vec())
    }
    /// A message of raw bytes. [`exchange`] appends one byte, so spare capacity avoids a copy.
    pub(crate) fn bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
    pub(crate) fn list<T: Pod>(&mut self, values: &[T]) {
        self.0.extend((values.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytemuck::cast_slice(values));
    }
    /// Appends a list.
    pub(crate) fn with<T: Pod>(mut self, values: &[T]) -> Self {
        self.list(values);
        self
    }
}

/// Decodes a message from a peer.
pub(crate) struct Unpack {
    bytes: Vec<u8>,
    read: usize,
    peer: usize,
    rank: usize,
}

impl Unpack {
    pub(crate) fn new(bytes: Vec<u8>, peer: usize, rank: usize) -> Self {
        Self { bytes, read: 0, peer, rank }
    }
    pub(crate) fn peer(&self) -> usize {
        self.peer
    }
    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Result<&[u8], Failure> {
        let end = self.read.checked_add(len).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| self.malformed())?;
        let from = std::mem::replace(&mut self.read, end);
        Ok(&self.bytes[from..end])
    }
    pub(crate) fn list<T: Pod>(&mut self) -> Result<Vec<T>, Failure> {
        let len = u64::from_le(bytemuck::pod_read_unaligned(self.take(8)?));
        let bytes = usize::try_from(len).ok().and_then(|n| n.checked_mul(size_of::<T>()));
        let bytes = bytes.ok_or_else(|| self.malformed())?;
        Ok(bytemuck::pod_collect_to_vec(self.take(bytes)?))
    }
    /// Reads a list of `len` entries.
    pub(crate) fn list_of<T: Pod>(&mut self, len: usize) -> Result<Vec<T>, Failure> {
        let list = self.list::<T>()?;
        if list.len() == len { Ok(list) } else { Err(self.malformed()) }
    }
    /// The numbers of a message that [`Pack::numbers`] encoded.
    pub(crate) fn numbers<T: Pod>(&self) -> Vec<T> {
        let whole = self.bytes.len() / size_of::<T>() * size_of::<T>();
        bytemuck::pod_collect_to_vec(&self.bytes[..whole])
    }
    /// Returns an error if the message has unread bytes.
    pub(crate) fn end(&self) -> Result<(), Failure> {
        if self.read == self.bytes.len() { Ok(()) } else { Err(self.malformed()) }
    }
    pub(crate) fn malformed(&self) -> Failure {
        malformed(self.peer, self.rank)
    }
}

/// The failure of `rank` when it cannot decode a message from `peer`.
pub(crate) fn malformed(peer: usize, rank: usize) -> Failure {
    let message = format!(
        "rank {peer} sent a message that cannot be read; do all ranks run the same program?"
    );
    Failure { rank, message }
}

/// `all_to_all_v` of messages, or of the error that a rank has instead. Then that rank returns its own error, and every
/// other rank returns a [`Failure`] with the error text from the same call, so that no rank waits for the failed one.
pub(crate) fn exchange(
    comm: &dyn Communicator,
    name: &str,
    messages: Result<Vec<Pack>, DistError>,
) -> Result<Vec<Unpack>, DistError> {
    let (own, mut messages) = match messages {
        Ok(messages) => (None, messages.into_iter().map(Pack::into_bytes).collect()),
        Err(e) => {
            let text = e.to_string().into_bytes();
            (Some(e), vec![text; comm.size()])
        }
    };
    // The error flag is the last byte, because removing it does not move any other byte.
    messages.iter_mut().for_each(|m| m.push(u8::from(own.is_some())));
    let mut received = comm.all_to_all_v(name, messages)?;
    let mut failed = None;
    for (rank, message) in received.iter_mut().enumerate() {
        match message.pop() {
            Some(0) => {}
            Some(_) => {
                failed.get_or_insert_with(|| Failure {
                    rank,
                    message: String::from_utf8_lossy(message).into_owned(),
                });
            }
            None => return Err(malformed(rank, comm.rank()).into()),
        }
    }
    match (own, failed) {
        (Some(e), _) => Err(e),
        (None, Some(f)) => Err(f.into()),
        (None, None) => {
            let unpack = |(peer, bytes)| Unpack::new(bytes, peer, comm.rank());
            Ok(received.into_iter().enumerate().map(unpack).collect())
        }
    }
}

/// Sends a request to every rank, computes the reply to each received request with `answer`, and returns the replies
/// by rank. Takes two exchanges, whose names are given.
pub(crate) fn round_trip(
    comm: &dyn Communicator,
    [request_name, reply_name]: [&str; 2],
    requests: Result<Vec<Pack>, DistError>,
    answer: impl FnMut(Unpack) -> Result<Pack, DistError>,
) -> Result<Vec<Unpack>, DistError> {
    let requests = exchange(comm, request_name, requests)?;
    exchange(comm, reply_name, requests.into_iter().map(answer).collect())
}

/// Returns the value if no rank has an error, otherwise an error on every rank. Collective.
pub(crate) fn agree<T>(
    comm: &dyn Communicator,
    name: &str,
    value: Result<T, DistError>,
) -> Result<T, DistError> {
    let (value, nothing) = match value {
        Ok(value) => (Some(value), Ok(vec![Pack::default(); comm.size()])),
        Err(e) => (None, Err(e)),
    };
    exchange(comm, name, nothing)?;
    value.ok_or_else(|| {
        Failure {
            rank: comm.rank(),
            message: format!("`{name}`: the error of a rank was not received"),
        }
        .into()
    })
}

/// Returns an error on every rank unless all ranks pass equal bytes. Collective.
pub(crate) fn require_equal(
    comm: &dyn Communicator,
    name: &str,
    what: &str,
    bytes: Vec<u8>,
) -> Result<(), DistError> {
    let all = comm.all_gather(name, bytes)?;
    match all.iter().position(|b| *b != all[0]) {
        None => Ok(()),
        Some(rank) => {
            let message = format!(
                "`{name}`: {what} must be the same on all ranks, and differs from that of rank 0"
            );
            Err(Failure { rank, message }.into())
        }
    }
}

/// Hashes a list, so that ranks can compare it.
pub(crate) fn digest(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0xcbf2_9ce4_8422_2325, |h: u64, x| {
        let h = (h ^ x).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        h ^ (h >> 29)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::run_ranks;

    #[test]
    fn lists_are_decoded_as_encoded() {
        let p = Pack::default().with(&[1u32, 2, 3]).with::<u64>(&[]).with(&[7u64]);
        let mut u = Unpack::new(p.0, 0, 1);
        assert_eq!(
            (u.list::<u32>().unwrap(), u.list::<u64>().unwrap(), u.list::<u64>().unwrap()),
            (vec![1, 2, 3], vec![], vec![7])
        );
        assert!(
            u.list::<u8>()
                .unwrap_err()
                .message
                .contains("rank 0 sent a message that cannot be read")
        );
        // A length beyond the end of the message.
        assert!(Unpack::new(u64::MAX.to_le_bytes().to_vec(), 0, 0).list::<u64>().is_err());
    }

    #[test]
    fn an_error_reaches_all_ranks_and_the_next_call_works() {
        let texts = run_ranks(3, |comm| {
            let bad = || DistError::Config { arg: "x", expected: "y".into(), found: "z".into() };
            let e = agree(&*comm, "check", if comm.rank() == 1 { Err(bad()) } else { Ok(()) })
                .unwrap_err();
            agree(&*comm, "again", Ok(()))?;
            Ok::<_, DistError>((matches!(e, DistError::Config { .. }), e.to_string()))
        })
        .unwrap();
        let text = "`x`: expected y, got z";
        assert_eq!(
            texts,
            [
                (false, format!("rank 1: {text}")),
                (true, text.into()),
                (false, format!("rank 1: {text}"))
            ]
        );
    }
}

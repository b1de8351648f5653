//! Packs messages between ranks, and propagates errors to every rank.

use bytemuck::Pod;

use crate::{Communicator, DistError, Failure};

/// A message under way: lists, each behind its length.
#[derive(Default)]
pub(crate) struct Pack(Vec<u8>);

impl Pack {
    pub(crate) fn list<T: Pod>(&mut self, values: &[T]) {
        self.0.extend((values.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytemuck::cast_slice(values));
    }
    /// Room for one byte more, the flag of [`exchange`].
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A message that came from a peer.
pub(crate) struct Unpack<'a> {
    rest: &'a [u8],
    peer: usize,
    rank: usize,
}

impl<'a> Unpack<'a> {
    pub(crate) fn new(bytes: &'a [u8], peer: usize, rank: usize) -> Self {
        Self { rest: bytes, peer, rank }
    }
    pub(crate) fn list<T: Pod>(&mut self) -> Result<Vec<T>, Failure> {
        let (head, tail) = self.rest.split_first_chunk::<8>().ok_or_else(|| self.broken())?;
        let bytes = usize::try_from(u64::from_le_bytes(*head))
            .ok()
            .and_then(|n| n.checked_mul(size_of::<T>()));
        let (values, tail) =
            bytes.and_then(|n| tail.split_at_checked(n)).ok_or_else(|| self.broken())?;
        self.rest = tail;
        Ok(bytemuck::pod_collect_to_vec(values))
    }
    /// A list that has `len` entries.
    pub(crate) fn list_of<T: Pod>(&mut self, len: usize) -> Result<Vec<T>, Failure> {
        let list = self.list::<T>()?;
        if list.len() == len { Ok(list) } else { Err(self.broken()) }
    }
    pub(crate) fn broken(&self) -> Failure {
        Failure {
            rank: self.rank,
            message: format!(
                "rank {} sent a message that cannot be read; do all ranks run the same program?",
                self.peer
            ),
        }
    }
}

/// `all_to_all_v` of what this rank has to say, or of the error that kept it from saying it: then this rank gets its
/// own error back, and every other one a [`Failure`] with its message, in the same call, so that nobody waits for it.
pub(crate) fn exchange(
    comm: &dyn Communicator,
    name: &str,
    messages: Result<Vec<Vec<u8>>, DistError>,
) -> Result<Vec<Vec<u8>>, DistError> {
    let (own, mut messages) = match messages {
        Ok(messages) => (None, messages),
        Err(e) => {
            let text = e.to_string().into_bytes();
            (Some(e), vec![text; comm.size()])
        }
    };
    // Behind the message, where it is taken off without moving the rest.
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
            None => return Err(Unpack::new(&[], rank, comm.rank()).broken().into()),
        }
    }
    match (own, failed) {
        (Some(e), _) => Err(e),
        (None, Some(f)) => Err(f.into()),
        (None, None) => Ok(received),
    }
}

/// The value, if all ranks have theirs; otherwise an error on every rank. Collective.
pub(crate) fn agree<T>(
    comm: &dyn Communicator,
    name: &str,
    value: Result<T, DistError>,
) -> Result<T, DistError> {
    let (value, nothing) = match value {
        Ok(value) => (Some(value), Ok(vec![Vec::new(); comm.size()])),
        Err(e) => (None, Err(e)),
    };
    exchange(comm, name, nothing)?;
    value.ok_or_else(|| {
        Failure { rank: comm.rank(), message: format!("`{name}`: an error got lost") }.into()
    })
}

/// An error on every rank unless all pass equal bytes. Collective.
pub(crate) fn same(
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

/// A hash of a list, to compare it between ranks.
pub(crate) fn digest(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0xcbf2_9ce4_8422_2325, |h: u64, x| {
        let h = (h ^ x).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        h ^ (h >> 29)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_ranks;

    #[test]
    fn lists_come_back() {
        let mut p = Pack::default();
        p.list(&[1u32, 2, 3]);
        p.list::<u64>(&[]);
        p.list(&[7u64]);
        let bytes = p.into_bytes();
        let mut u = Unpack::new(&bytes, 0, 1);
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
        // A length that promises more than there is.
        assert!(Unpack::new(&u64::MAX.to_le_bytes(), 0, 0).list::<u64>().is_err());
    }

    #[test]
    fn one_error_is_seen_by_all_and_the_next_call_works() {
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

//! Exchanges messages of any length between all ranks over MPI.

use mpi::request::multiple_scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Destination as _, Source as _};

/// Bytes of a header, and of the name of a call in it. Longer names are truncated.
const HEAD: usize = 128;
const NAME: usize = HEAD - 16;
/// MPI counts are 32-bit, so longer messages are sent in pieces.
const PIECE: usize = 1 << 30;

/// Message header: the collective call, and the number of bytes that follow.
#[derive(Clone)]
pub(super) struct MessageHeader([u8; HEAD]);

impl MessageHeader {
    pub(super) fn new(call: &str, len: usize) -> Self {
        let mut head = [0; HEAD];
        let mut cut = call.len().min(NAME);
        while !call.is_char_boundary(cut) {
            cut -= 1;
        }
        head[..8].copy_from_slice(&(len as u64).to_le_bytes());
        // Hash of the whole name, so that long names with a common prefix differ.
        head[8..16].copy_from_slice(&fingerprint(call).to_le_bytes());
        head[16..16 + cut].copy_from_slice(&call.as_bytes()[..cut]);
        Self(head)
    }
    fn len(&self) -> usize {
        let mut len = [0; 8];
        len.copy_from_slice(&self.0[..8]);
        u64::from_le_bytes(len) as usize
    }
    pub(super) fn is_call_of(&self, other: &Self) -> bool {
        self.0[8..] == other.0[8..]
    }
    pub(super) fn call(&self) -> String {
        String::from_utf8_lossy(&self.0[16..]).trim_end_matches('\0').to_owned()
    }
}

/// FNV-1a hash.
fn fingerprint(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Exchanges headers, and returns those of the messages to this rank.
pub(super) fn heads(comm: &SimpleCommunicator, mine: &[MessageHeader]) -> Vec<MessageHeader> {
    let send: Vec<u8> = mine.iter().flat_map(|h| h.0).collect();
    let mut received = vec![0u8; send.len()];
    comm.all_to_all_into(&send[..], &mut received[..]);
    let (parts, _) = received.as_chunks::<HEAD>();
    parts.iter().map(|&h| MessageHeader(h)).collect()
}

/// Sends `send[p]` to every other rank `p`, and receives the number of bytes in its header. Empty messages are skipped,
/// because the pointer of an empty vector equals `MPI_IN_PLACE` in Open MPI.
pub(super) fn swap(
    comm: &SimpleCommunicator,
    rank: usize,
    send: &[&[u8]],
    heads: &[MessageHeader],
) -> Vec<Vec<u8>> {
    let mut received: Vec<Vec<u8>> = heads
        .iter()
        .enumerate()
        .map(|(p, h)| vec![0; if p == rank { 0 } else { h.len() }])
        .collect();
    let pieces = |bytes: usize| bytes.div_ceil(PIECE);
    let count =
        received.iter().map(|r| pieces(r.len())).chain(send.iter().map(|s| pieces(s.len()))).sum();
    multiple_scope(count, |scope, requests| {
        for (p, to) in received.iter_mut().enumerate() {
            // MPI delivers the pieces of a message in order.
            for piece in to.chunks_mut(PIECE) {
                requests.add(comm.process_at_rank(p as i32).immediate_receive_into(scope, piece));
            }
        }
        for (p, from) in send.iter().enumerate().filter(|&(p, _)| p != rank) {
            for piece in from.chunks(PIECE) {
                requests.add(comm.process_at_rank(p as i32).immediate_send(scope, piece));
            }
        }
        requests.wait_all(&mut Vec::with_capacity(count));
    });
    received
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_contain_calls_and_lengths() {
        let long = "x".repeat(300);
        let (a, b) =
            (MessageHeader::new("all_gather `a`", 5), MessageHeader::new("all_gather `b`", 5));
        assert_eq!((a.len(), a.call().as_str()), (5, "all_gather `a`"));
        assert!(!a.is_call_of(&b) && a.is_call_of(&MessageHeader::new("all_gather `a`", 6)));
        // Truncated at a character boundary; names that differ after it are distinguished by their hash.
        let cut = MessageHeader::new(&format!("{}é", "x".repeat(NAME - 1)), 0);
        assert_eq!(cut.call().len(), NAME - 1);
        assert!(
            !MessageHeader::new(&long, 0).is_call_of(&MessageHeader::new(&format!("{long}y"), 0))
        );
    }
}
